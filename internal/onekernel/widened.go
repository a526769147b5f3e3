package onekernel

import (
	"context"
	"fmt"
	"math"
	"math/cmplx"
	"slices"

	"plumb/backend"
	"plumb/internal/judge/compare"
	"plumb/program"
	"plumb/tensor"
)

// What a kernel that was right in float32 is asked in float64. The bound of a deep chain of
// operators allows for roundings that all go one way, and hides another formula somewhere in it.
const (
	// asked is how many cases.
	asked = 3
	// another is how many times the reference's own error in float32 a formula is off that no
	// rounding explains: four times what OpenCL leaves to its worst functions, in their last place.
	another = 64
	// nudge is how far arguments are moved, as a part of themselves: some roundings of float32.
	nudge = 0x1p-20
	// steady is what is left of a difference, at most, that moves with its arguments.
	steady = 1. / 16
	// alike is how many times as far off a kernel may be in float64 as in float32 for the same reason: one
	// whose float32 accumulators make no number of float64 arguments is further.
	asFar = 4
)

// widened has a kernel of a problem that was right within the bounds of float32 compute in
// float64, where it does: what is as far from the reference there as in float32, and as far at
// arguments nearby, is none of roundings, in whatever dtype they are inside of it.
func (s *Session) widened(ctx context.Context) error {
	if _, of := s.maker.form.(*problem); !of || s.blamed() || s.cfg.Precision != "" && s.cfg.Precision != Full {
		return nil
	}
	for _, r := range s.plainest() {
		text, answers, err := s.formula(ctx, r)
		if err != nil || !answers {
			return err
		}
		if text != "" {
			s.add(finding{Kind: "formula", Text: text})
			return nil
		}
	}
	return nil
}

// plainest are the right cases to be asked in float64: of the values as given first.
func (s *Session) plainest() []*result {
	var all []*result
	for _, regime := range []Regime{AsGiven, Usual, Large, Offset} {
		at := slices.IndexFunc(s.outcomes, func(r *result) bool {
			return r.Regime == regime && r.DType == tensor.F32 && !r.again && r.fine() && finite(r.ref) && !s.dear(r.Case)
		})
		if at >= 0 && len(all) < asked {
			all = append(all, s.outcomes[at])
		}
	}
	return all
}

// formula says how a kernel's result of a case in float64 is another formula's, "" where it is
// none; it does not answer where it does not compute in float64.
func (s *Session) formula(ctx context.Context, r *result) (text string, answers bool, err error) {
	c := *r.Case
	c.program = inFloat64(r.program)
	forward(c.program)
	for i := range c.program.Inputs {
		c.program.Inputs[i].RequiresGrad = false
	}
	var of [2][2][]*tensor.Tensor // here and nearby; of the reference and of the kernel
	for k := range of {
		if k == 1 {
			move(c.program, c.Key)
		}
		both, err := s.inBoth(ctx, &c)
		if both == nil || err != nil {
			return "", false, err
		}
		of[k] = *both
	}
	narrow, kernel := all(r.ref), all(r.kernel)
	for i, want := range of[0][0] {
		got := of[0][1][i]
		if i >= min(len(narrow), len(kernel)) || narrow[i].DType() != tensor.F32 || narrow[i].Len() != want.Len() || kernel[i].Len() != want.Len() {
			continue
		}
		err, own, at := 0., 0., 0
		off := func(want, got *tensor.Tensor, i int) float64 { return cmplx.Abs(got.At(i) - want.At(i)) }
		for k := range want.Len() {
			err, own = max(err, off(want, narrow[i], k)), max(own, off(want, kernel[i], k))
			if off(want, got, k) > off(want, got, at) {
				at = k
			}
		}
		err = max(err, compare.Roundoff(tensor.F32)*compare.Largest(want))
		far, change := 0., 0.
		if want.Len() > 0 {
			far = off(want, got, at)
		}
		for k := range want.Len() {
			change = max(change, cmplx.Abs(got.At(k)-want.At(k)-(of[1][1][i].At(k)-of[1][0][i].At(k))))
		}
		if far > another*err && far <= asFar*own && change <= steady*far {
			return fmt.Sprintf("computes by another formula: in float64 too it is off by %.2g times the reference's largest error in float32, and by as much at arguments nearby, so that no rounding explains it (%s: got %.9g, want %.9g at element %d)", math.Round(far/err), r.Case, real(got.At(at)), real(want.At(at)), at), true, nil
		}
	}
	return "", true, nil
}

// inBoth are the results of a case of both sides, nil where one has none in float64.
func (s *Session) inBoth(ctx context.Context, c *Case) (*[2][]*tensor.Tensor, error) {
	refused, err := s.shape(ctx, c)
	if refused != nil || err != nil {
		return nil, err
	}
	job := backend.NewJob(c.program)
	got, seen, err := s.tryKernel(ctx, c, job)
	if err == nil {
		err = s.forget(ctx, seen)
	}
	if err != nil || got.Status != backend.OK {
		return nil, err
	}
	want, _, err := s.tryReference(ctx, job)
	if err != nil || want.Status != backend.OK || !finite(want) || !finite(got) {
		return nil, err
	}
	both := &[2][]*tensor.Tensor{all(want), all(got)}
	if len(both[0]) != len(both[1]) {
		return nil, nil
	}
	for i, w := range both[0] {
		if g := both[1][i]; g.DType() != w.DType() || !slices.Equal(g.Shape(), w.Shape()) {
			return nil, nil
		}
	}
	return both, nil
}

// move has the float arguments of a program differ a little.
func move(p *program.Program, key uint64) {
	for i := range p.Inputs {
		in := &p.Inputs[i]
		if in.DType != tensor.F64 {
			continue
		}
		drawn := *in
		drawn.Strides = nil
		data := drawn.Materialize().Contiguous()
		sign := program.Input{Name: in.Name, DType: tensor.F64, Shape: in.Shape, Fill: program.Fill{Dist: program.Integer, Lo: 0, Hi: 2, Key: key + uint64(i)}}
		signs := sign.Materialize()
		for k := range data.Len() {
			data.Set(k, data.At(k)*(1+nudge*(2*signs.At(k)-1)))
		}
		in.Fill = program.Fill{Dist: program.Literal, Data: data}
	}
}
