package choice

// Cases are the sources of a test's cases, which follow from the key and the index
// of each alone.
type Cases struct {
	Key uint64
	// Few has cases share programs: of each Round cases in a row Few programs are
	// drawn. Those of the first cases are among Pool that follow from Name, not from
	// the key, so that they recur from one seed to another.
	Few  bool
	Name string
	// Turns is how many cases in a row take the calls of a test in turn, each of
	// which has programs of its own; 0 is 1.
	Turns int
}

// How many programs there are for the cases of a test that share them.
const (
	Round = 20
	Few   = 2
	Pool  = 16
)

// Any are cases of which each draws its own program.
func Any(key uint64) func() Cases { return func() Cases { return Cases{Key: key} } }

// Source returns the source of a case, which repeats the record first.
func (c Cases) Source(index int, record []Choice) *Source {
	s := Replay(Derive(c.Key, uint64(index)), record)
	if !c.Few {
		return s
	}
	turns := max(c.Turns, 1)
	turn := index / turns
	return s.Sharing(Derive(DeriveName(c.program(turn), c.Name), uint64(index%turns)))
}

// Sharing is how many cases have one program.
func (c Cases) Sharing() int {
	if !c.Few {
		return 1
	}
	return Round / Few
}

// program numbers the program of a turn. Later rounds have others, also beyond the
// pool: a test of which few draws are legal needs many.
func (c Cases) program(turn int) uint64 {
	n := uint64(turn/Round*Few + turn%Few)
	if n < Pool {
		return (n + c.Key) % Pool
	}
	return n
}
