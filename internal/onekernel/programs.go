package onekernel

import (
	"cmp"
	"maps"
	"math"
	"slices"
)

// mostPrograms is how many programs of Triton a call should have: the interpreter
// takes half a millisecond and more for one, whatever its block.
const mostPrograms = 512

// telltale is the size from which on the number of programs says how it grows with it.
const telltale = 8

// learn bounds the sizes of symbols by the programs that a case of them has had.
func (m *maker) learn(c *Case, programs int) {
	if programs == 0 || m.legal != nil { // an operator's literal has other symbols each time
		return
	}
	for name, n := range c.Sizes {
		if n >= telltale {
			m.bound(name, max(n*mostPrograms/programs, telltale))
		}
	}
}

// anyName is the name under which the sizes of all symbols are bounded.
const anyName = ""

// slowed bounds the sizes after a case of which so many of all programs ran in time: those
// of an operator's literal, whose symbols are others each time, all alike.
func (m *maker) slowed(c *Case, ran, all int) {
	if m.legal == nil {
		m.learn(c, mostPrograms*max(all, 2*ran)/max(ran, 1))
		return
	}
	largest := slices.Max(append(c.lengths(), 0))
	m.bound(anyName, max(largest*ran/max(all, 2*ran), 8*telltale))
}

func (m *maker) bound(name string, n int) {
	if m.bounds == nil {
		m.bounds = map[string]int{}
	}
	if known, ok := m.bounds[name]; !ok || n < known {
		m.bounds[name] = n
	}
}

// mostWork is how many elements the operators of a reference should give in a call: the
// judge runs it some thirty times where a result is in doubt.
const mostWork = 1 << 22

// shrink makes a case smaller whose reference computes with far more elements than it is
// given, as attention does; it reports whether it has. Sizes are bounded from then on.
func (m *maker) shrink(c *Case, elements int) bool {
	if elements <= mostWork || m.form != nil || c.again {
		return false
	}
	largest := slices.MaxFunc(c.names(), func(a, b string) int { return cmp.Compare(c.Sizes[a], c.Sizes[b]) })
	n := c.Sizes[largest]
	bound := int(float64(n) * math.Sqrt(mostWork/float64(elements)))
	if bound < telltale || bound >= n {
		return false
	}
	if m.legal == nil {
		m.bound(largest, bound)
	}
	smaller := *c
	smaller.Sizes = maps.Clone(c.Sizes)
	smaller.Sizes[largest] = halved(n, bound)
	if m.rewrite(&smaller) != nil || m.legal != nil && !m.legal(smaller.program) {
		return false
	}
	*c = smaller
	return true
}

// bounded halves a size until its programs are few enough; what lies one above or
// below a power of two still does.
func (m *maker) bounded(name string, n int) int {
	for _, of := range []string{name, anyName} {
		if bound, ok := m.bounds[of]; ok {
			n = halved(n, bound)
		}
	}
	return n
}

func halved(n, bound int) int {
	for n > bound {
		n = n/2 | n&1
	}
	return n
}

// slow says of a case whose programs took too long how many there were.
func (seen *observed) slow() (string, bool) {
	for _, e := range seen.Evidence {
		if e[0] == "slow" {
			return e[1], true
		}
	}
	return "", false
}
