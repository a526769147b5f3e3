package op

import (
	"fmt"
	"slices"
	"strings"
	"sync"
)

// States are what kernels keep from one run to the next, each for the calls of one key.
// A graph, a plan and a session have some. They are for any number of goroutines.
type States struct {
	mu   sync.Mutex
	kept []kept // the latest last
}

type kept struct {
	kernel *Kernel
	key    string
	state  any
}

// maxStates is how many states are kept; the one unused for longest goes first.
const maxStates = 64

// of returns the state of a kernel for a call, which it makes where there is none.
func (s *States) of(k *Kernel, a Args) (any, error) {
	key := k.StateKey(a)
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.kept, func(e kept) bool { return e.kernel == k && e.key == key })
	if i < 0 {
		state, err := k.state(a)
		if err != nil {
			return nil, err
		}
		if s.kept = append(s.kept, kept{k, key, state}); len(s.kept) > maxStates {
			s.kept = slices.Delete(s.kept, 0, 1)
		}
		return state, nil
	}
	e := s.kept[i]
	s.kept = append(slices.Delete(s.kept, i, i+1), e)
	return e.state, nil
}

// state makes the kernel's state from layouts and attributes.
func (k *Kernel) state(a Args) (any, error) { return k.State(Laid(a)) }

// Laid returns the arguments with tensors of which layouts alone are known.
func Laid(a Args) Args {
	return a.MapValues(func(v Value) Value { return Layout(Meta{v.DType(), v.Shape(), v.Strides()}) })
}

// StateKey is what calls agree in that share a state of the kernel.
func (k *Kernel) StateKey(a Args) string {
	var b strings.Builder
	for i, p := range a.Sig.Params {
		if k.Keyed != nil && !slices.ContainsFunc(k.Keyed, func(h Handle) bool { return h.Name() == p.Name }) {
			continue
		}
		b.WriteString(p.Name)
		one := Args{Vals: a.Vals[i : i+1]}
		if _, isIndex := a.Vals[i].(Index); !isIndex && len(one.AllValues()) == 0 {
			fmt.Fprintf(&b, "=%v;", a.Vals[i])
			continue
		}
		for _, v := range one.AllValues() {
			fmt.Fprintf(&b, "=%s%v%v;", v.DType(), v.Shape(), v.Strides())
		}
		if x, ok := a.Vals[i].(Index); ok {
			fmt.Fprintf(&b, "%v;", x.mapValues(func(Value) Value { return nil }))
		}
	}
	return b.String()
}

// Prepare gives a run on the host its temporary memory and its state, of s where that is
// not nil.
func (k *Kernel) Prepare(run *Run, s *States) (err error) {
	if k.Scratch != nil {
		run.Scratch = make([]byte, k.Scratch(run.Args))
	}
	return k.remember(run, s)
}

func (k *Kernel) remember(run *Run, s *States) (err error) {
	switch {
	case k.State == nil:
	case s == nil:
		run.State, err = k.state(run.Args)
	default:
		run.State, err = s.of(k, run.Args)
	}
	return err
}
