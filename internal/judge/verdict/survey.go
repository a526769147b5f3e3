package verdict

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"plumb/backend"
)

// Survey collects what Power found in the sampled cases of one test.
type Survey struct {
	cases []surveyed
}

type surveyed struct {
	index int
	found []Weakness
}

// Weak says which fakes the sampled cases of a test accept.
type Weak struct {
	Cases   int        `json:"cases"` // sampled ones that accept a fake
	Sampled int        `json:"sampled"`
	Fakes   []Accepted `json:"weak"`
}

// Accepted is a fake that cases of a test accept for one result.
type Accepted struct {
	Fake  string       `json:"fake"`
	Part  backend.Part `json:"part"`
	Name  string       `json:"name"`
	Path  []int        `json:"path,omitempty"`
	Cases int          `json:"cases"` // that accept it
	First int          `json:"first"` // index of the first of them
	// Equal says that the expected result is itself zeros or constant in every
	// sampled case.
	Equal bool `json:"equal,omitempty"`
}

// Add notes what Power found in the case of an index.
func (s *Survey) Add(index int, found []Weakness) {
	s.cases = append(s.cases, surveyed{index, found})
}

// Len returns the number of cases added.
func (s *Survey) Len() int { return len(s.cases) }

// Weak returns what the test's cases accept; nil for nothing. A fake with the
// expected values counts only when every case accepts it: a test may well draw
// an input whose result is zero, but not always.
func (s *Survey) Weak() *Weak {
	fakes := s.accepted()
	if len(fakes) == 0 {
		return nil
	}
	w := &Weak{Sampled: len(s.cases), Fakes: fakes}
	for _, c := range s.cases {
		if slices.ContainsFunc(c.found, func(f Weakness) bool { return w.has(f) }) {
			w.Cases++
		}
	}
	return w
}

func (w *Weak) has(f Weakness) bool {
	return slices.ContainsFunc(w.Fakes, func(a Accepted) bool {
		return a.key() == f.key() && (!f.Equal || a.Cases == w.Sampled)
	})
}

func (s *Survey) accepted() []Accepted {
	var all []*tally
	byKey := map[string]*tally{}
	for _, c := range s.cases {
		for _, f := range c.found {
			t := byKey[f.key()]
			if t == nil {
				t = &tally{Accepted: Accepted{Fake: f.Fake, Part: f.Where.Part, Name: f.Where.Name, Path: f.Where.Path}}
				byKey[f.key()] = t
				all = append(all, t)
			}
			t.add(c.index, f.Equal)
		}
	}
	var out []Accepted
	for _, t := range all {
		if t.settle(len(s.cases)) {
			out = append(out, t.Accepted)
		}
	}
	slices.SortFunc(out, func(a, b Accepted) int {
		return cmp.Or(cmp.Compare(rank(a.Part), rank(b.Part)), cmp.Compare(a.place(), b.place()), cmp.Compare(a.order(), b.order()), cmp.Compare(a.Fake, b.Fake))
	})
	return out
}

// tally counts who accepts one fake, equal or not.
type tally struct {
	Accepted
	equal, wrong, firstWrong int
}

func (t *tally) add(index int, equal bool) {
	if t.equal+t.wrong == 0 {
		t.First = index
	}
	switch {
	case equal:
		t.equal++
		return
	case t.wrong == 0:
		t.firstWrong = index
	}
	t.wrong++
}

// settle reports whether the fake speaks against the test.
func (t *tally) settle(sampled int) bool {
	t.Equal = t.wrong == 0
	t.Cases = t.equal + t.wrong
	if t.Cases < sampled {
		t.Cases, t.First = t.wrong, t.firstWrong
	}
	return t.wrong > 0 || t.equal == sampled
}

func rank(p backend.Part) int {
	return slices.Index([]backend.Part{backend.PartValue, backend.PartGrad, backend.PartParamGrad}, p)
}

func (a *Accepted) place() string {
	s := a.Name
	for _, i := range a.Path {
		s += fmt.Sprintf("[%d]", i)
	}
	if a.Part == backend.PartGrad || a.Part == backend.PartParamGrad {
		return "gradient of " + s
	}
	return s
}

// order is that of Power.
func (a *Accepted) order() int {
	return slices.IndexFunc(fakeNames, func(name string) bool { return strings.HasPrefix(a.Fake, name) })
}

func (a *Accepted) key() string { return a.Fake + "\x00" + string(a.Part) + "\x00" + a.place() }

func (w *Weakness) key() string {
	a := Accepted{Fake: w.Fake, Part: w.Where.Part, Name: w.Where.Name, Path: w.Where.Path}
	return a.key()
}

// maxPlaces is how many results String names.
const maxPlaces = 4

// String says it in a line, such as "weak 2/3 sampled cases: zeros accepted for
// gradient of x".
func (w *Weak) String() string {
	var parts []string
	for rest := w.Fakes; len(rest) > 0; {
		n := 1
		for n < len(rest) && rest[n].place() == rest[0].place() && rest[n].Part == rest[0].Part {
			n++
		}
		parts = append(parts, placeText(rest[:n]))
		rest = rest[n:]
	}
	if more := len(parts) - maxPlaces; more > 0 {
		parts = append(parts[:maxPlaces], fmt.Sprintf("and for %s", plural(more, "more result")))
	}
	return fmt.Sprintf("weak %d/%d sampled cases: %s", w.Cases, w.Sampled, strings.Join(parts, "; "))
}

// placeText tells the fakes that are accepted for one result.
func placeText(fakes []Accepted) string {
	names, always := make([]string, len(fakes)), ""
	for i, a := range fakes {
		names[i] = a.Fake
		switch {
		case !a.Equal:
		case a.Fake == zeros:
			always = ", which is all zeros"
		case always == "":
			always = ", which is " + a.Fake
		}
	}
	return fmt.Sprintf("%s accepted for %s%s", strings.Join(names, ", "), fakes[0].place(), always)
}
