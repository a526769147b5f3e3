package onekernel

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"plumb/backend"
	"plumb/internal/draw/choice"
)

// mostOff is how many arguments of a task are tried off the multiples that its tests have.
const mostOff = 4

// offUnit calls a kernel that is right at sizes which some number divides, as all of a task's
// tests are, beside them. What comes of that is told and blames nobody: the task has asked
// for no such size, and a kernel that refuses it says so itself.
func (s *Session) offUnit(ctx context.Context) error {
	if s.task == nil || s.blamed() || s.maker.promises.Shapes != Near {
		return nil
	}
	known, earlier, notes := s.findings, s.earlier, s.notes
	s.earlier = map[string]uint64{}
	defer func() { s.findings, s.earlier = known, earlier }()
	for _, c := range s.task.beside() {
		if s.maker.rewrite(c.Case) != nil {
			continue
		}
		r, err := s.one(ctx, c.Case)
		s.notes = notes
		if err != nil {
			return err
		}
		if what := wrongly(r); what != "" {
			s.note(fmt.Sprintf("only tried where %s is a multiple of %d, as in the task's tests: at %d it %s, which --shapes any would blame", c.name, c.unit, c.Sizes[c.name], what))
			return nil
		}
	}
	return nil
}

// wrongly says how a kernel answers a call that is none of those it promises; "" where it is
// right, or refuses it.
func wrongly(r *result) string {
	switch {
	case r == nil:
		return ""
	case r.kernel.Status == backend.Crashed:
		return "ends its process"
	case slices.ContainsFunc(r.problems, func(f finding) bool { return f.word() == Unsafe }):
		return "reaches memory that is not its own"
	case r.misaligned:
		return "differs"
	}
	return ""
}

// besides is a case of which one size is one more than what divides it in all tests.
type besides struct {
	*Case
	name string
	unit int
}

// beside lists such a case of each argument that all tests have as a multiple of something.
func (t *task) beside() []besides {
	var all []besides
	sizes := map[string]int{}
	for name, v := range t.of[0] {
		if n, ok := whole(v); ok && name != seedArg {
			sizes[name] = n
		}
	}
	m := t.session.maker
	for k, name := range slices.Sorted(maps.Keys(sizes)) {
		unit := t.unit(name)
		if r, ok := m.promises.Ranges[name]; unit == 1 || ok && (unit+1 < r[0] || unit+1 > r[1]) {
			continue
		}
		of := maps.Clone(sizes)
		of[name] = unit + 1
		c := &Case{Index: len(first) + k, DType: m.promises.DTypes[0], Regime: Usual, Layout: Contiguous, Sizes: of, Key: choice.Derive(m.seed, uint64(k))}
		if all = append(all, besides{c, name, unit}); len(all) == mostOff {
			break
		}
	}
	return all
}
