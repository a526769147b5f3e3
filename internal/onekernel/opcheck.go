package onekernel

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"plumb/backend"
	"plumb/backend/worker"
)

// opcheck has PyTorch's own tests of a registered operator run on calls that were
// right: its schema, its gradients' registration, its fake implementation, and whether
// it can be compiled.
func (s *Session) opcheck(ctx context.Context) error {
	if !s.cfg.registered() || s.right() == 0 {
		return nil
	}
	h, err := openHost(ctx, s.cfg, s.kernel.spec, s.sandbox.folder) // what is compiled there writes files
	if err != nil {
		return err
	}
	defer h.Close()
	var told struct {
		Lacks  string
		Failed [][3]any
	}
	asked, err := s.holdAll(ctx, h)
	if err == nil {
		var calls [][2]any
		for k, r := range asked {
			calls = append(calls, [2]any{k, r.gradient()})
		}
		err = h.ask(ctx, map[string]any{"opcheck": map[string]any{"calls": calls}}, &told)
	}
	var lost *worker.Lost
	switch {
	case errors.As(err, &lost):
		s.add(finding{Kind: "opcheck", Text: "its process ends in opcheck: " + firstLine(lost.Message)})
		return nil
	case err != nil:
		s.note("opcheck: " + firstLine(err.Error()))
	case told.Lacks != "":
		s.note("opcheck: " + told.Lacks)
	}
	for _, f := range told.Failed {
		s.unchecked(asked[int(f[0].(float64))], fmt.Sprint(f[1]), firstLine(fmt.Sprint(f[2])))
	}
	return nil
}

// registered reports whether the kernel is an operator of torch.library's.
func (c *Config) registered() bool {
	return c.Kernel.Form == "operator" && strings.Contains(c.Kernel.Name, "::")
}

// preparing says what else is imported before the processes of a kernel are made.
func (c *Config) preparing() []string {
	if c.registered() {
		return []string{"PLUMB_FORK_OPERATORS=1"}
	}
	return nil
}

// holdAll has a process hold the arguments of calls that were right: contiguous ones,
// others, and some that require gradients.
func (s *Session) holdAll(ctx context.Context, h *host) ([]*result, error) {
	var none described
	if err := h.ask(ctx, map[string]any{"describe": nil}, &none); err != nil {
		return nil, err
	}
	var held []*result
	for _, fits := range []func(*result) bool{
		func(r *result) bool { return r.Layout == Contiguous && !r.gradient() },
		func(r *result) bool { return r.Layout != Contiguous && !r.gradient() },
		(*result).gradient,
	} {
		r := s.fitting(fits)
		if r == nil {
			continue
		}
		if s.told.Destination {
			out, err := s.results(r.Case)
			if err == nil {
				err = h.ask(ctx, map[string]any{"prepare": map[string]any{"out": out}}, &struct{}{})
			}
			if err != nil {
				return nil, err
			}
		}
		if err := timed(ctx, h, map[string]any{"hold": len(held)}, nil); err != nil {
			return nil, err
		}
		if _, err := h.Run(ctx, backend.NewJob(r.program)); err != nil {
			return nil, err
		}
		held = append(held, r)
	}
	return held, nil
}

// gradient reports whether a case has asked for gradients, and they were there.
func (r *result) gradient() bool { return r.Grad && len(r.program.Backward) > 0 }

// fitting is the first right case of some kind that has elements, of real numbers.
func (s *Session) fitting(fits func(*result) bool) *result {
	for _, r := range s.outcomes {
		if r.fine() && r.elements() > 0 && r.Regime != NonFinite && r.Regime != Extremes && fits(r) {
			return r
		}
	}
	return nil
}

// lacking are texts of opcheck about what an operator need not have to be right: then it
// cannot be compiled, which is told.
var lacking = []string{"no fake impl", "register_fake", "Meta tensors", "'Meta' backend"}

// unchecked says of a test of opcheck's that it fails.
func (s *Session) unchecked(r *result, test, text string) {
	if test == "opcheck" {
		s.note("opcheck: " + text)
		return
	}
	for _, part := range lacking {
		if strings.Contains(text, part) {
			s.note("opcheck: it has no fake implementation, so that nothing that calls it can be compiled")
			return
		}
	}
	s.add(finding{Kind: "opcheck", Text: fmt.Sprintf("fails opcheck's %s (%s): %s", test, r.Case, text)})
}

// note tells something once.
func (s *Session) note(text string) {
	if !slices.Contains(s.notes, text) {
		s.notes = append(s.notes, text)
	}
}
