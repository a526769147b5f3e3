package verdict

import (
	"slices"

	"plumb/internal/judge/compare"
	"plumb/op"
	"plumb/tensor"
)

// comparison is one comparison of two tensors while it is settled.
type comparison struct {
	where      Where
	want, got  *tensor.Tensor
	unread     bool // want was read while it was compared, and is not in memory
	sameInputs bool // the call's inputs have the same bits on both sides
	limit      compare.Limit
	options    compare.Options
	diff       compare.Diff
	// truth says where both sides stand to the truth, of a distance; settled that
	// it decided in the candidate's favour.
	truth   *Truth
	settled bool
}

// settlers decide about what the comparison with the limit has found, in this
// order, each where the rule that is broken now is its own; within is that none
// is. They are the rows of "What settles a comparison" in docs/numerics.md.
var settlers = []struct {
	broken compare.Rule
	settle func(*judge, *comparison)
}{
	{compare.NonFinite, (*judge).leaveUndecided},
	{within, (*judge).findBias},
	{compare.Distance, (*judge).acceptNearTruth},
	{compare.NonFinite, (*judge).acceptScalar},
}

const within compare.Rule = ""

// record notes one comparison of two tensors.
func (j *judge) record(w Where, want, got *tensor.Tensor, basis compare.Basis) {
	if j.p.Shapes {
		j.shapes(w, want, got)
		return
	}
	c := &j.current
	*c = j.compared(w, want, got, &basis)
	for _, s := range settlers {
		if c.diff.Rule == s.broken && (c.diff.OK || !c.unread) {
			s.settle(j, c)
		}
	}
	j.v.Compared++
	j.noteWide(c)
	j.noteTruth(c)
	j.noteMargin(c)
	if !c.diff.OK {
		j.noteDifference(c)
	}
}

// compared holds two tensors to their limit.
func (j *judge) compared(w Where, want, got *tensor.Tensor, basis *compare.Basis) comparison {
	c := comparison{where: w, want: want, got: got, sameInputs: basis.Same, options: j.policy.Compare}
	c.limit = j.limit(w, want, got, basis)
	c.options.SignedZero = c.options.SignedZero || basis.Same && signsZero(c.limit.Class, want, basis.Tols)
	expected := compare.Operand{Tensor: want, Open: j.ref.Unread[want]}
	c.unread = expected.Open != nil
	c.diff = expected.Judge(got, c.limit, c.options)
	return c
}

// leaveUndecided leaves out what is infinite or NaN where either side
// may be right: see decidable.
func (j *judge) leaveUndecided(c *comparison) {
	if g := j.decidable(c.where, c.want, c.got); g != nil {
		c.got = g
		c.diff = compare.Judge(c.want, c.got, c.limit, c.options)
	}
}

// findBias finds errors within a pointwise limit that all have one sign.
func (j *judge) findBias(c *comparison) {
	if c.limit.Class == op.Pointwise && OneSided(&c.diff) {
		j.bias(c.where, c.want, c.got, &c.diff)
	}
}

// acceptNearTruth lets stand what is as near to the truth as it may be: the
// correctly rounded result of a scalar function, else the reference in float64.
func (j *judge) acceptNearTruth(c *comparison) {
	var scalar *tensor.Tensor
	if c.sameInputs {
		scalar = j.scalarTruth(c.where, c.want)
	}
	c.truth = j.policy.Oracle.settle(c.where, c.want, c.got, c.limit, scalar)
	if c.truth != nil && c.truth.Ratio <= 1 {
		j.acquit(c, c.truth)
	}
}

// acceptScalar lets stand an infinity, a NaN or a zero that is the correctly
// rounded result of a scalar function. Others that differ are judged without it.
func (j *judge) acceptScalar(c *comparison) {
	if !c.sameInputs {
		return
	}
	exact := j.exactly(c)
	if exact == nil {
		return
	}
	rounded := exact.Convert(c.want.DType())
	if d := compare.Judge(rounded, c.got, c.limit, c.options); d.OK {
		j.acquit(c, &Truth{Where: c.where, Ratio: d.WorstRatio, values: exact})
	} else if g := rightly(c.want, c.got, rounded); g != nil {
		c.got = g
		c.diff = compare.Judge(c.want, c.got, c.limit, c.options)
		if c.diff.Rule == compare.Distance {
			j.acceptNearTruth(c)
		}
	}
}

// acquit lets a comparison stand, by its distance from the truth.
func (j *judge) acquit(c *comparison, t *Truth) {
	c.diff.OK, c.diff.WorstRatio, c.settled = true, t.Ratio, true
	j.v.Settled = append(j.v.Settled, *t)
}

// noteTruth notes how far both sides are from the truth, where the oracle was
// asked about every comparison.
func (j *judge) noteTruth(c *comparison) {
	if j.policy.Oracle == nil || !j.policy.Oracle.All || c.want == nil || c.got == nil || !slices.Equal(c.want.Shape(), c.got.Shape()) {
		return
	}
	if t := j.policy.Oracle.settle(c.where, c.want, c.got, c.limit, nil); t != nil {
		j.v.Truths = append(j.v.Truths, *t)
	}
}

// noteMargin notes how near a comparison came to its limit.
func (j *judge) noteMargin(c *comparison) {
	class := c.limit.Class
	if c.settled {
		class = Relative
	}
	j.margin(c.where, c.want, class, c.diff.WorstRatio)
	if j.policy.Explain {
		j.v.Margins[len(j.v.Margins)-1].Why = why(c)
	}
}

// margin notes how near a comparison with want came to a limit of a class.
func (j *judge) margin(w Where, want *tensor.Tensor, class op.Class, ratio compare.Number) {
	m := Margin{Part: w.Part, Call: w.Call, Name: w.Name, Target: w.Target, Class: class, Ratio: ratio}
	if want != nil {
		m.DType = want.DType().String()
	}
	j.v.Margins = append(j.v.Margins, m)
	if j.v.WorstAt == nil || ratio > j.v.Worst {
		worst := m // it alone is kept beyond the margins
		j.v.Worst, j.v.WorstAt = ratio, &worst
	}
}

// around is how many neighbours of the worst element are kept to either side.
const around = 3

// noteDifference notes a comparison that failed, the first with what surrounds
// its worst element.
func (j *judge) noteDifference(c *comparison) {
	d := Difference{Where: c.where, Kind: Kind(c.diff.Rule), Limit: c.limit, Diff: c.diff, Truth: c.truth}
	if c.diff.Rule == compare.NonFinite || c.diff.Rule == compare.Distance {
		d.Kind = Kind(c.where.Part)
		if worst := c.diff.Worst; len(j.v.Differences) == 0 && worst != nil {
			d.Around = compare.Around(c.want, c.got, worst, around, c.limit, c.options)
			d.Map = compare.HeatMap(c.want, c.got, worst, c.limit, c.options)
			if c.truth != nil {
				c.truth.fill(d.Around)
			}
			d.Explained = c.limit.Explain(worst)
			d.exact = j.exact(c)
		}
	}
	j.v.Differences = append(j.v.Differences, d)
}

// exact returns the truth of a comparison, where it is known: that by which it
// was settled, else the correctly rounded result, else the reference in float64.
func (j *judge) exact(c *comparison) *tensor.Tensor {
	if c.truth != nil {
		return c.truth.values
	}
	if c.sameInputs && c.want.Len() == c.got.Len() {
		if t := j.scalarTruth(c.where, c.want); t != nil {
			return t
		}
	}
	return j.wide(c.where, c.want)
}
