package verdict

import (
	"fmt"
	"strings"

	"plumb/backend"
	"plumb/internal/judge/compare"
	"plumb/internal/refusal"
	"plumb/tensor"
)

// TruthName stands for the truth among the names of subjects.
const TruthName = "truth"

// Voter is a subject with what it did with the case of a finding.
type Voter struct {
	Name    string
	Outcome *backend.Outcome
}

// Vote says what the reference, the candidates and the truth hold where the
// sides of a finding first differ, and who is alone with it.
type Vote struct {
	Name string   `json:"name,omitempty"` // what differs: the result, input or parameter
	At   []int    `json:"at,omitempty"`   // the element; of a difference of elements
	Rows []Ballot `json:"rows"`           // the reference, the candidates, the truth
	// Alone are the subjects that agree with no other and not with the truth,
	// where some do agree.
	Alone []string `json:"alone,omitempty"`
	// Blame names the reference where it alone differs from the truth and a
	// candidate, which agree.
	Blame string `json:"blame,omitempty"`
}

// Ballot is a row of a vote.
type Ballot struct {
	Subject string `json:"subject"`
	Holds   string `json:"holds"`
	// Abstains says that nothing can be told of the subject here: it does not
	// support the program, or has no gradients.
	Abstains bool `json:"abstains,omitempty"`

	element *tensor.Tensor // of one element, where elements differ
	kind    string         // what is compared where there is none
}

// ToBlame names what is wrong, where that is known: a pass of a graph, its
// tracing, or the reference.
func (v *Verdict) ToBlame() string {
	if v.Blame == "" && v.Vote != nil {
		return v.Vote.Blame
	}
	return v.Blame
}

// Poll returns a finding's verdict with the vote of all subjects; the verdict
// itself where fewer than three have a say.
func (v *Verdict) Poll(reference Voter, candidates []Voter) *Verdict {
	if !v.Word.IsFinding() || v.Word == Fault {
		return v
	}
	p := &poll{of: v, reference: reference.Name, say: (*poll).ending}
	if v.Word == Misaligned && v.Kind != Exception {
		if len(v.Differences) == 0 || !p.at(&v.Differences[0], reference.Outcome) {
			return v
		}
	}
	for _, voter := range append([]Voter{reference}, candidates...) {
		p.rows = append(p.rows, p.ballot(voter))
	}
	p.truth()
	if vote := p.count(); vote != nil {
		voted := *v
		voted.Vote = vote
		return &voted
	}
	return v
}

// poll gathers a vote.
type poll struct {
	of        *Verdict
	reference string
	first     *Difference
	index     []int
	want      *tensor.Tensor
	say       func(*poll, *backend.Outcome) Ballot
	rows      []Ballot
}

// at says where the sides differ; false where subjects cannot be asked about it.
func (p *poll) at(d *Difference, reference *backend.Outcome) bool {
	p.first, p.want = d, At(reference, d.Where)
	switch d.Diff.Rule {
	case compare.Distance, compare.NonFinite:
		p.index, p.say = d.Diff.First, (*poll).element
		return p.want != nil && p.index != nil
	case compare.Shape, compare.DType:
		p.say = (*poll).metadata
		return p.want != nil
	}
	return false
}

func (p *poll) ballot(voter Voter) Ballot {
	o := voter.Outcome
	b := Ballot{Holds: "it is not there", Abstains: true}
	switch {
	case o == nil:
	case o.Status == backend.Unsupported || o.NoKernel:
		b.Holds = "not supported"
	case p.first != nil && o.ForwardOnly && p.first.Where.Part.IsGradient():
		b.Holds = "no gradients"
	default:
		b = p.say(p, o)
	}
	b.Subject = voter.Name
	return b
}

// ending is the say about whether the program runs.
func (p *poll) ending(o *backend.Outcome) Ballot {
	if o.Status == backend.OK {
		return Ballot{Holds: "runs"}
	}
	text, _, _ := strings.Cut(exception(o), "\n")
	b := Ballot{Holds: strings.TrimSuffix(string(o.Status)+": "+text, ": "), kind: string(o.Status)}
	if v := p.of; v.Reference != nil && v.Candidate != nil && v.Reference.Status == v.Candidate.Status {
		b.kind += refusal.Caught(o) // both sides raise, and the classes differ
	}
	return b
}

// metadata is the say about a dtype and a shape.
func (p *poll) metadata(o *backend.Outcome) Ballot {
	t := At(o, p.first.Where)
	switch {
	case t != nil:
		text := fmt.Sprintf("%s %s", t.DType(), tensor.ShapeString(t.Shape()))
		return Ballot{Holds: text, kind: text}
	case o.Status != backend.OK:
		return p.ending(o)
	}
	return Ballot{Holds: "no tensor is kept", Abstains: true}
}

// element is the say about an element.
func (p *poll) element(o *backend.Outcome) Ballot {
	t := At(o, p.first.Where)
	if t == nil || o.NoElements || compare.Metadata(p.want, t, compare.Options{}).Message != "" {
		return p.metadata(o)
	}
	t = elementAt(t, p.index)
	return Ballot{Holds: compare.Element(t, 0), element: t}
}

// truth adds the row of the truth, rounded to the dtype of the results.
func (p *poll) truth() {
	if p.index == nil || p.first.exact == nil {
		return
	}
	exact := elementAt(p.first.exact, p.index)
	rounded := elementAt(p.want, p.index).Clone()
	if exact.DType() == tensor.I64 {
		rounded.SetInt(0, exact.Int(0)) // a float64 has not all digits
	} else {
		rounded.Set(0, exact.At(0))
	}
	p.rows = append(p.rows, Ballot{Subject: TruthName, Holds: compare.Element(exact, 0), element: rounded})
}

// elementAt returns the element at an index.
func elementAt(t *tensor.Tensor, index []int) *tensor.Tensor {
	for d, i := range index {
		t = t.Narrow(d, i, 1, 1)
	}
	return t
}

// agree reports whether two rows are alike, within the limit of the comparison.
func (p *poll) agree(a, b *Ballot) bool {
	if a.element == nil || b.element == nil {
		return a.element == nil && b.element == nil && a.kind == b.kind
	}
	limit := p.first.Limit
	if limit.Error != nil {
		limit.Error = elementAt(limit.Error, p.index)
	}
	return compare.Judge(a.element, b.element, limit, compare.Options{}).OK
}

// count finds who is alone. The truth leads its camp, so that nobody is alone
// who is within the limit of it.
func (p *poll) count() *Vote {
	var camps [][]*Ballot
	voters := 0
	for i := range p.rows {
		b := &p.rows[(i+len(p.rows)-1)%len(p.rows)] // the last is the truth, if any is
		if b.Abstains {
			continue
		}
		voters++
		found := false
		for k := range camps {
			if found = p.agree(camps[k][0], b); found {
				camps[k] = append(camps[k], b)
				break
			}
		}
		if !found {
			camps = append(camps, []*Ballot{b})
		}
	}
	if voters < 3 {
		return nil
	}
	vote := &Vote{At: p.index, Rows: p.rows}
	if p.first != nil {
		vote.Name = p.first.Where.Name
	}
	vote.settle(camps, p.reference)
	return vote
}

// settle names who is alone, and whom that blames.
func (v *Vote) settle(camps [][]*Ballot, reference string) {
	upheld := false
	for _, camp := range camps {
		upheld = upheld || len(camp) > 1 && camp[0].Subject == TruthName
	}
	if len(camps) == v.voters() { // nobody agrees with anybody
		return
	}
	for i := range v.Rows {
		for _, camp := range camps {
			if len(camp) == 1 && camp[0] == &v.Rows[i] && camp[0].Subject != TruthName {
				v.Alone = append(v.Alone, camp[0].Subject)
			}
		}
	}
	if upheld && len(v.Alone) == 1 && v.Alone[0] == reference {
		v.Blame = reference
	}
}

func (v *Vote) voters() int {
	n := 0
	for _, b := range v.Rows {
		if !b.Abstains {
			n++
		}
	}
	return n
}

// Candidates counts the candidates that were asked.
func (v *Vote) Candidates() int {
	n := len(v.Rows) - 1
	if n >= 0 && v.Rows[n].Subject == TruthName {
		n--
	}
	return n
}

func (v *Vote) text(b *strings.Builder) {
	if v == nil {
		return
	}
	where := v.Name
	if v.At != nil {
		where += " at " + tensor.ShapeString(v.At)
	}
	fmt.Fprintf(b, "  %s\n", strings.TrimRight("vote        "+where, " "))
	width := 0
	for _, row := range v.Rows {
		width = max(width, len(row.Subject))
	}
	for _, row := range v.Rows {
		fmt.Fprintf(b, "    %-*s  %s\n", width, row.Subject, row.Holds)
	}
	if len(v.Alone) > 0 {
		fmt.Fprintf(b, "  alone       %s\n", strings.Join(v.Alone, ", "))
	}
	if v.Blame != "" {
		fmt.Fprintf(b, "  blame       %s\n", v.Blame)
	}
}
