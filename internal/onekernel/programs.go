package onekernel

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
	if m.bounds == nil {
		m.bounds = map[string]int{}
	}
	for name, n := range c.Sizes {
		if n < telltale {
			continue
		}
		bound := max(n*mostPrograms/programs, telltale)
		if known, ok := m.bounds[name]; !ok || bound < known {
			m.bounds[name] = bound
		}
	}
}

// bounded halves a size until its programs are few enough; what lies one above or
// below a power of two still does.
func (m *maker) bounded(name string, n int) int {
	bound, ok := m.bounds[name]
	for ok && n > bound {
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
