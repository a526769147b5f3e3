package onekernel

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"plumb/backend"
	"plumb/internal/judge"
	"plumb/tensor"
)

// choosers are the calls of a case's reference that take elements by their order.
type choosers struct {
	*Session
	of     *result
	job    *backend.Job
	free   bool // which of equal elements they take is their own
	made   []*judge.Choice
	decide bool // what it computes follows from decisions that are near
	left   int  // how often the case may be judged by other choices
	narrow map[*judge.Choice][]float64
}

// tried is how often a case is judged by other choices, and hopeful how often in a row while
// none explains more of what differs.
const tried, hopeful = 96, 12

// choosers returns the calls of a case that choose; nil for none, or where what one chooses
// from has no error bounds.
func (s *Session) choosers(r *result) *choosers {
	if s.judge == nil || r.chosen {
		return nil
	}
	c := &choosers{Session: s, of: r, job: backend.NewJob(r.program), free: r.choosesFreely(), left: tried, narrow: map[*judge.Choice][]float64{}}
	if c.choose(nil) == nil || len(c.made) == 0 && !c.decide {
		return nil
	}
	return c
}

// choose judges the case by a reference that takes elements at other places, by choice; nil
// where that cannot be told.
func (c *choosers) choose(places map[int][]int) *result {
	first, n := c.made == nil, 0
	judged := c.judge.Choosing(c.job, c.of.ref, c.of.kernel, func(of *judge.Choice) {
		if other := places[n]; other != nil {
			copy(of.Places, other)
		}
		if n++; first {
			c.made = append(c.made, of)
		}
	})
	if judged == nil {
		return nil
	}
	c.decide = judged.Near
	own := *c.of
	own.ref, own.verdict, own.chosen, own.undecided = judged.Reference, judged.Verdict(nil), true, judged.Near
	return &own
}

// explain reports whether the kernel's results are those of a reference that takes other
// elements, each as near to the reference's as their rounding errors are large.
func (c *choosers) explain() bool {
	places, others := map[int][]int{}, map[int][][]int{}
	for i := range c.made {
		if got := c.told(i); got != nil {
			places[i], others[i] = got[0], got[1:]
		}
	}
	best := c.choose(places)
	if best == nil {
		return false
	}
	if !c.wrong(best) {
		return true
	}
	for _, last := range []bool{false, true} {
		stable := maps.Clone(places)
		for i, of := range c.made {
			if stable[i] == nil && (c.free || of.Errors != nil) {
				stable[i] = c.stable(of, last)
			}
		}
		now := c.choose(stable)
		if now == nil || !c.wrong(now) {
			return now != nil
		}
		if now.apart(best) < 0 {
			places, best = stable, now
		}
	}
	idle := 0
	attempt := func(i int, other []int) bool {
		was := places[i]
		places[i], c.left, idle = other, c.left-1, idle+1
		now := c.choose(places)
		if now == nil || !c.wrong(now) {
			return now != nil
		}
		if places[i] = was; now.apart(best) < 0 {
			places[i], best, idle = other, now, 0
		}
		return false
	}
	for i, of := range c.made {
		for _, other := range others[i] {
			if attempt(i, other) {
				return true
			}
		}
		for l := range of.Lines {
			for k := range of.K {
				for _, p := range c.near(of, l, k) {
					if c.left == 0 || idle == hopeful {
						return false
					}
					if attempt(i, taking(of, places[i], l, k, p)) {
						return true
					}
				}
			}
		}
	}
	return false
}

// apart compares how much of two verdicts on a case differs.
func (r *result) apart(other *result) int {
	count := func(r *result) (n int, ratio float64) {
		for _, d := range r.verdict.Differences {
			n, ratio = n+max(1, d.Diff.Mismatches), ratio+float64(d.Diff.WorstRatio)
		}
		return n, ratio
	}
	n, by := count(r)
	m, than := count(other)
	return cmp.Or(cmp.Compare(n, m), cmp.Compare(by, than))
}

// told lists the kernel's places of a choice where one of its results is those, or two are what
// a size divides them into, as a beam and its token, and each may stand for the reference's.
func (c *choosers) told(i int) (all [][]int) {
	of := c.made[i]
	var integers [][2]*tensor.Tensor // of the reference, and of the kernel
	for k, v := range c.of.kernel.Values {
		if k >= len(c.of.ref.Values) {
			break
		}
		want := leaves(c.of.ref.Values[k])
		for n, t := range leaves(v) {
			if n < len(want) && !want[n].DType().IsFloat() && t.Len() == len(of.Places) {
				integers = append(integers, [2]*tensor.Tensor{want[n], t})
			}
		}
	}
	for _, t := range integers {
		for _, dim := range dimensions(t[1], of) {
			if got := along(t[1], dim, of); got != nil && c.stand(of, got) {
				all = append(all, got)
				break
			}
		}
	}
	for _, high := range integers {
		for _, low := range integers {
			if high == low || !slices.Equal(high[1].Shape(), low[1].Shape()) || !slices.Equal(high[0].Shape(), low[0].Shape()) {
				continue
			}
			for _, dim := range dimensions(high[1], of) {
				for _, by := range c.sizes() {
					want, got := joined(high[0], low[0], dim, by, of), joined(high[1], low[1], dim, by, of)
					if want != nil && got != nil && c.stand(of, want) && c.stand(of, got) {
						all = append(all, got)
					}
				}
			}
		}
	}
	return all
}

// sizes are those of the case's arguments, each once.
func (c *choosers) sizes() (all []int) {
	for i := range c.of.program.Inputs {
		all = append(all, c.of.program.Inputs[i].Shape...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// joined are the places that a size divides into quotients and rests; nil where they are none.
func joined(high, low *tensor.Tensor, dim, by int, of *judge.Choice) []int {
	if by == 0 || of.N%by != 0 {
		return nil
	}
	places, rest := along(high, dim, of), along(low, dim, of)
	if places == nil || rest == nil {
		return nil
	}
	for i := range places {
		if places[i] = places[i]*by + rest[i]; rest[i] >= by || places[i] >= of.N {
			return nil
		}
	}
	return places
}

// dimensions are those along which a tensor may have the places of a choice, that along which
// it was made first.
func dimensions(t *tensor.Tensor, of *judge.Choice) (all []int) {
	for dim := range max(1, t.Dim()) {
		if t.Dim() > 0 && tensor.NumElements(t.Shape()[dim+1:]) == of.Inner {
			all = slices.Insert(all, 0, dim)
		} else {
			all = append(all, dim)
		}
	}
	return all
}

// along are the elements of places along a dimension, line by line; nil where that is not as
// long as a choice is, or one is no place.
func along(t *tensor.Tensor, dim int, of *judge.Choice) []int {
	n, inner := 1, 1
	if of.K > 1 {
		if n, inner = t.Shape()[dim], tensor.NumElements(t.Shape()[dim+1:]); n != of.K {
			return nil
		}
	}
	all := make([]int, t.Len())
	for i := range all {
		p := real(t.At(i))
		if p != math.Trunc(p) || p < 0 || p >= float64(of.N) {
			return nil
		}
		all[(i/(n*inner)*inner+i%inner)*n+i/inner%n] = int(p)
	}
	return all
}

// stand reports whether each place may stand for the one of a choice, and they are as distinct
// in each line.
func (c *choosers) stand(of *judge.Choice, got []int) bool {
	for l := range of.Lines {
		seen, had := map[int]bool{}, map[int]bool{}
		for k := range of.K {
			at := l*of.K + k
			if !c.alike(of, l, of.Places[at], got[at]) {
				return false
			}
			seen[got[at]], had[of.Places[at]] = true, true
		}
		if len(seen) < len(had) {
			return false
		}
	}
	return true
}

// alike reports whether one place of a line may stand for another: its element is no further
// from the other's than the errors of both.
func (c *choosers) alike(of *judge.Choice, line, p, q int) bool {
	p, q = line*of.N+p, line*of.N+q
	v, w := of.Values[p], of.Values[q]
	equal := v == w || math.IsNaN(v) && math.IsNaN(w)
	if p == q || of.Errors == nil {
		return p == q || equal && c.free
	}
	err := c.of.slack * of.Unit * (of.Errors[p] + of.Errors[q])
	return equal || math.Abs(v-w) <= err || c.rounded(of)[p] == c.rounded(of)[q]
}

// rounded are the numbers of a choice in the dtype of the case, where tiny ones vanish and huge
// ones overflow.
func (c *choosers) rounded(of *judge.Choice) []float64 {
	known := c.narrow[of]
	if known == nil {
		t := tensor.New(tensor.F64, len(of.Values))
		copy(tensor.Data[float64](t), of.Values)
		known = tensor.Data[float64](t.Convert(c.of.DType).Convert(tensor.F64))
		c.narrow[of] = known
	}
	return known
}

// stable are the places of a choice that takes, of equal elements of a line, the first ones
// first, or the last ones, as a stable sort does.
func (c *choosers) stable(of *judge.Choice, last bool) []int {
	type equal struct { // what is equal in a line
		line int
		to   float64
	}
	left, numbers := map[equal][]int{}, c.rounded(of)
	for l := range of.Lines {
		for p := range of.N {
			e := equal{l, numbers[l*of.N+p]}
			left[e] = append(left[e], p)
		}
	}
	places := slices.Clone(of.Places)
	for i, p := range places {
		e := equal{i / of.K, numbers[i/of.K*of.N+p]}
		switch all := left[e]; {
		case len(all) == 0: // NaN equals nothing
		case last:
			places[i], left[e] = all[len(all)-1], all[:len(all)-1]
		default:
			places[i], left[e] = all[0], all[1:]
		}
	}
	return places
}

// near lists the places that may stand for the k-th of a line, and are not it.
func (c *choosers) near(of *judge.Choice, line, k int) (all []int) {
	want := of.Places[line*of.K+k]
	for p := range of.N {
		if p != want && c.alike(of, line, want, p) {
			all = append(all, p)
		}
	}
	return all
}

// taking are the places of a choice with the k-th of a line at p, or exchanged with what is there.
func taking(of *judge.Choice, places []int, line, k, p int) []int {
	if places == nil {
		places = of.Places
	}
	places = slices.Clone(places)
	row := places[line*of.K:][:of.K]
	if at := slices.Index(row, p); at >= 0 {
		row[at] = row[k]
	}
	row[k] = p
	return places
}

// choosing are PyTorch's operators that do not say which of equal elements they take; the
// first ones, ordered of them, take the largest or the smallest first.
var choosing = []string{"aten::topk", "aten::sort", "aten::argsort", "aten::kthvalue", "aten::median"}

const ordered = 3

// stable is what a worker tells of beside a sort's name where that is asked to be stable.
const stable = ".stable"

func (r *result) choosesFreely() bool {
	ran := r.refSeen.Operators
	return slices.ContainsFunc(choosing, func(name string) bool {
		return slices.Contains(ran, name) && !slices.Contains(ran, name+stable)
	})
}

// displaced reports whether all that differs follows from which of nearly equal elements are
// taken, where the reference's choice among them is its own.
func (s *Session) displaced(r *result) bool {
	if c := s.choosers(r); c != nil {
		return c.explain()
	}
	return !r.chosen && r.displaced()
}
