package onekernel

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"

	"plumb/backend"
)

// mostPrograms is how many programs of Triton a call should have: the interpreter
// takes half a millisecond and more for one, whatever its block.
const mostPrograms = 512

// telltale is the size below which none is brought: the number of programs hardly depends
// on smaller ones.
const telltale = 8

// launched is how many programs a call of some sizes has had.
type launched struct {
	sizes    map[string]int
	programs int
}

// learn keeps how many programs a case has had.
func (m *maker) learn(c *Case, programs int) {
	if programs == 0 || m.legal != nil { // an operator's literal has other symbols each time
		return
	}
	m.ran = append(m.ran, launched{c.Sizes, programs})
}

// programs is how many a call of some sizes may have: the mean, in orders of magnitude, of the
// bounds that those before it give. A grid is of blocks, so that no size has them grow faster
// than itself, or become fewer.
func (m *maker) programs(sizes map[string]int) int {
	least, most := 0., math.Inf(1)
	for _, known := range m.ran {
		above, below := float64(known.programs), float64(known.programs)
		for name, size := range sizes {
			before := max(known.sizes[name], 1)
			if size > before {
				above *= float64((size + before - 1) / before)
			} else {
				below *= float64(size) / float64(before)
			}
		}
		least, most = max(least, below), min(most, above)
	}
	if len(m.ran) == 0 {
		return 0
	}
	return int(min(math.Sqrt(max(least, 1)*most), math.MaxInt32))
}

// thin halves sizes until the programs are few enough, first the one on which most hangs.
func (m *maker) thin(sizes map[string]int) {
	for m.programs(sizes) > mostPrograms {
		best, least := "", math.MaxInt
		for _, name := range slices.Sorted(maps.Keys(sizes)) {
			n := sizes[name]
			if r, ok := m.promises.Ranges[name]; n < telltale || ok && halved(n, n-1) < r[0] {
				continue
			}
			sizes[name] = halved(n, n-1)
			if p := m.programs(sizes); p < least || p == least && n > sizes[best] {
				best, least = name, p
			}
			sizes[name] = n
		}
		if best == "" {
			return
		}
		sizes[best] = halved(sizes[best], sizes[best]-1)
	}
}

// lighten makes a case smaller of whose programs so many of all run in time; it reports
// whether it has.
func (m *maker) lighten(c *Case, ran, all int) bool {
	if m.form != nil || c.again {
		return false
	}
	smaller := *c
	smaller.Sizes = maps.Clone(c.Sizes)
	for part := 1; part < max(all/max(ran, 1), spare) && len(c.Sizes) > 0; part *= 2 {
		largest := smaller.largest()
		if smaller.Sizes[largest] < telltale/2 {
			break
		}
		smaller.Sizes[largest] = halved(smaller.Sizes[largest], smaller.Sizes[largest]-1)
	}
	if maps.Equal(smaller.Sizes, c.Sizes) || m.rewrite(&smaller) != nil || m.legal != nil && !m.legal(smaller.program) {
		return false
	}
	*c = smaller
	return true
}

// narrow makes a case that takes too long smaller in all but its largest size, which shows
// the most, or where all are multiples of what some kernels demand in those alone that lie
// outside of matrices; it reports whether it has.
func (m *maker) narrow(c *Case) bool {
	if m.form != nil || c.again {
		return false
	}
	smaller, largest := *c, c.largest()
	smaller.Sizes = maps.Clone(c.Sizes)
	outer := c.outside()
	for name, n := range c.Sizes {
		if r, ok := m.promises.Ranges[name]; name != largest && (len(outer) == 0 || outer[name]) && n > narrowest && (!ok || r[0] <= narrowest) {
			smaller.Sizes[name] = narrowest
		}
	}
	if maps.Equal(smaller.Sizes, c.Sizes) || m.rewrite(&smaller) != nil || m.legal != nil && !m.legal(smaller.program) {
		return false
	}
	*c = smaller
	return true
}

// outside are the symbols of a case of multiples of telltale that are no size of a matrix in any
// tensor: how many matrices there are. None of another case.
func (c *Case) outside() map[string]bool {
	all := map[string]bool{}
	for name, n := range c.Sizes {
		if n%telltale != 0 {
			return nil
		}
		all[name] = true
	}
	for _, in := range c.sig.Inputs {
		for _, d := range in.Dims[max(0, len(in.Dims)-2):] {
			for _, name := range d.symbols() {
				delete(all, name)
			}
		}
	}
	return all
}

// narrowest is the size to which the others are brought.
const narrowest = 2

// What Triton's interpreter may compute, in its operations: a second is some 80 thousand. It
// is counted, and by no clock, so that the same request has the same verdict however busy the
// machine is. A kernel has what some eight seconds take, more where its user gives it more
// time, and a call an eighth of what is left, within bounds, the first one a quarter; a call
// that is made again, twice what it took.
const (
	workASecond = 52_500 // of the budget, whose rest processes and the judge take
	usualOfCall = 100_000
	leastOfCall = 20_000
	ofLeft      = 8
	ofAll       = 4
	usualBudget = 12 * time.Second
)

// overdrawn is how many times its work a kernel may have for the draws that always come;
// twinned the part after which calls that follow others are few: fewTwins.
const overdrawn, twinned, fewTwins = 1.5, 0.15, 2

// dear is the part of its work that a call of a kernel takes which is not made often.
const dear = 1. / 64

// warming returns the twins that follow a case while the kernel has not had as many calls of
// one size as a warm-up has, and whether it has with these: where a call takes long, they
// follow a later case that takes less.
func (s *Session) warming(c *Case) ([]int, bool) {
	switch {
	case !s.dear(c) || c.Index >= always-2:
		return twins(0), true
	case c.Index == 0:
		return nil, false
	}
	return twins(c.Index), false
}

func (s *Session) dear(c *Case) bool { return float64(c.work) > dear*float64(s.mayWork()) }

// worked reports whether the interpreter has done a part of what it may.
func (s *Session) worked(part float64) bool { return float64(s.work) > part*float64(s.mayWork()) }

func (s *Session) mayWork() int {
	return int(cmp.Or(s.cfg.Budget, usualBudget).Seconds() * workASecond)
}

// allowance is what the interpreter may compute in a call.
func (s *Session) allowance(c *Case) int {
	n := s.mayWork() / ofAll
	if len(s.outcomes) > 0 {
		n = max(leastOfCall, min(usualOfCall, (s.mayWork()-s.work)/ofLeft))
	}
	return max(n, 2*c.work)
}

// spare is how many times fewer programs a call that is made smaller has at least: it is
// made again some times.
const spare = 4

// anyName is the name under which the sizes of all symbols are bounded.
const anyName = ""

// slowed bounds the largest size after a case of which so many of all programs ran in time:
// those of an operator's literal, whose symbols are others each time, all alike.
func (m *maker) slowed(c *Case, ran, all int) {
	name, least := anyName, 8*telltale
	largest := slices.Max(append(c.lengths(), 0))
	if m.legal == nil {
		name, least = c.largest(), telltale
	}
	m.bound(name, max(largest*ran/max(all, 2*ran), least))
}

// largest is the symbol of the largest size, "" where there is none.
func (c *Case) largest() string {
	if len(c.names()) == 0 {
		return ""
	}
	return slices.MaxFunc(c.names(), func(a, b string) int { return cmp.Compare(c.Sizes[a], c.Sizes[b]) })
}

func (m *maker) bound(name string, n int) {
	if m.bounds == nil {
		m.bounds = map[string]int{}
	}
	if known, ok := m.bounds[name]; !ok || n < known {
		m.bounds[name] = n
	}
}

// mostWork is how many elements the operators of a reference should give in a call, some
// more for each operator that runs: the judge runs it some thirty times where a result is in
// doubt, and a recurrence of thousands of steps is slow however few they give.
const mostWork = 1 << 22

// shrink makes a case smaller whose reference computes with far more elements than it is
// given, as attention does; it reports whether it has. Sizes are bounded from then on.
func (m *maker) shrink(c *Case, r *result) bool {
	if p, ok := m.form.(*problem); ok { // a layer of the model's is a loop in the kernel
		return !c.again && p.shrink(c, p.computes(r))
	}
	elements := r.refSeen.Elements
	if elements <= mostWork || m.form != nil || c.again {
		return false
	}
	largest := c.largest()
	n := c.Sizes[largest]
	bound := int(float64(n) * math.Sqrt(mostWork/float64(elements)))
	if largest == "" || bound < telltale || bound >= n {
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

// computes is how many elements the reference's operators gave in a call, or the kernel's where there
// were more and they were recorded: a running sum may be a masked sum over all pairs.
func (r *result) computes() int {
	if r.recorded() && r.kernel.Status == backend.OK {
		return max(r.refSeen.Elements, r.seen.Elements)
	}
	return r.refSeen.Elements
}

// computed is how many elements operators have given in a call, for so many of its arguments.
type computed struct {
	sizes           map[string]int
	given, elements int
}

// counts keeps how many elements a case has taken.
func (m *maker) counts(c *Case, elements int) {
	if elements > 0 && m.legal == nil && m.form == nil {
		m.work = append(m.work, computed{c.Sizes, c.sig.elements(c.Sizes), elements})
	}
}

// foresee halves the largest size until what is computed is little enough, by how that has
// grown with this size: a call that is far too large may take all memory, and tells nothing
// then.
func (m *maker) foresee(sig *Signature, sizes map[string]int) {
	name := (&Case{sig: sig, Sizes: sizes}).largest()
	var small, large *computed
	for i := range m.work {
		k := &m.work[i]
		if n := k.sizes[name]; n >= telltale && (small == nil || n < small.sizes[name]) {
			small = k
		}
		if large == nil || k.sizes[name] > large.sizes[name] {
			large = k
		}
	}
	if small == nil || large.sizes[name] < 2*small.sizes[name] {
		return
	}
	share := func(k *computed) float64 { return float64(k.elements) / float64(max(k.given, 1)) }
	grows := max(0, min(1, math.Log(share(large)/share(small))/math.Log(float64(large.sizes[name])/float64(small.sizes[name]))))
	for {
		n := sizes[name]
		beyond := float64(n) / float64(large.sizes[name])
		if r, ok := m.promises.Ranges[name]; beyond <= 1 || ok && halved(n, n-1) < r[0] ||
			float64(sig.elements(sizes))*share(large)*math.Pow(beyond, grows) <= mostWork {
			return
		}
		sizes[name] = halved(n, n-1)
	}
}

// elements is how many a signature's inputs have together, of given sizes.
func (sig *Signature) elements(sizes map[string]int) int {
	all := 0
	for i := range sig.Inputs {
		n := 1
		for _, d := range sig.Inputs[i].Dims {
			n *= max(d.At(sizes), 0)
		}
		all += n
	}
	return all
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
