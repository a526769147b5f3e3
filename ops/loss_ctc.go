package ops

import (
	"math"
	"slices"

	"plumb/internal/arg"
	"plumb/internal/kernel"
	"plumb/op"
	"plumb/tensor"
)

// Connectionist temporal classification.
var ctcLosses = []*op.Def{
	composed(&op.Def{
		Sig:     "ctc_loss(Tensor log_probs, Tensor targets, Tensor input_lengths, Tensor target_lengths, int blank=0, str reduction='mean', bool zero_infinity=False) -> Tensor",
		Choices: []string{"reduction"},
		More:    []string{"ctc_loss(Tensor log_probs, Tensor targets, int[] input_lengths, int[] target_lengths, int blank=0, str reduction='mean', bool zero_infinity=False) -> Tensor"},
		Names:   []string{"torch.nn.functional.ctc_loss"},
		Doc:     "Connectionist temporal classification: −log of the probability of all paths through log_probs [time, batch, classes] that give the targets, blanks and repetitions removed. The mean divides each loss by its number of targets; zero_infinity replaces infinite losses, and their gradients, by 0.",
		Reject:  firstError(checkLossReduction, checkCTC),
		Sample:  sampleCTC,
		Tol:     lossTol,
	}, func(b op.Builder, a op.Args) op.Value {
		how := chosenReduction(a)
		x := a.Value(arg.LogProbs)
		unbatched := len(x.Shape()) == 2
		if unbatched {
			x = b.Op("unsqueeze", x, 1)
		}
		loss := b.Op("ctc_loss.samples", x, a.Value(arg.Targets), a.Any(arg.InputLengths), a.Any(arg.TargetLengths), a.Int(arg.Blank), how == "mean", a.Bool(arg.ZeroInfinity))
		if unbatched && how == "none" {
			return b.Op("squeeze", loss, 0)
		}
		return reduceLoss(b, loss, how)
	}),
	{
		Sig:   "ctc_loss.samples(Tensor log_probs, Tensor targets, Tensor input_lengths, Tensor target_lengths, int blank, bool average, bool zero_infinity) -> Tensor",
		More:  []string{"ctc_loss.samples(Tensor log_probs, Tensor targets, int[] input_lengths, int[] target_lengths, int blank, bool average, bool zero_infinity) -> Tensor"},
		Doc:   "The losses of ctc_loss; average divides them by their numbers of targets. As PyTorch's, the gradient takes log_probs as normalised.",
		SBP:   axes("log_probs .n., targets n., input_lengths n, target_lengths n -> n"),
		Infer: inferCtcLossSamples,
		Kernels: []op.Kernel{
			{Name: "float32", When: op.DTypeIn(arg.LogProbs, tensor.F32), Run: ctcRun[float32]},
			{Name: "float64", When: op.DTypeIn(arg.LogProbs, tensor.F64), Run: ctcRun[float64]},
		},
		Grad:   op.GradientOf(arg.LogProbs, ctcLossSamplesGrad),
		Sample: func(s *op.Sampler) []any { return append(sampleCTC(s)[:4], 0, s.Bool(), s.Bool()) },
		Tol:    lossTol,
	},
	{
		Sig:    "ctc_loss.backward(Tensor grad, Tensor log_probs, Tensor targets, Tensor input_lengths, Tensor target_lengths, int blank, bool average, bool zero_infinity) -> Tensor",
		More:   []string{"ctc_loss.backward(Tensor grad, Tensor log_probs, Tensor targets, int[] input_lengths, int[] target_lengths, int blank, bool average, bool zero_infinity) -> Tensor"},
		Doc:    "Gradient of ctc_loss.samples with respect to log_probs.",
		Traits: op.NoGrad,
		SBP:    anyOf(linear(arg.Grad), axes("grad n, log_probs .n., targets n., input_lengths n, target_lengths n -> .n.")),
		Infer:  inferLike(arg.LogProbs),
		Kernels: []op.Kernel{
			{Name: "float32", When: op.DTypeIn(arg.LogProbs, tensor.F32), Run: ctcBackwardRun[float32]},
			{Name: "float64", When: op.DTypeIn(arg.LogProbs, tensor.F64), Run: ctcBackwardRun[float64]},
		},
		Sample: sampleCtcLossBackward,
		Tol:    lossTol,
	},
}

func inferCtcLossSamples(a op.Args) ([]op.Meta, error) {
	x := a.Value(arg.LogProbs)
	return one(x.DType(), x.Shape()[1:2], nil), nil
}

func ctcLossSamplesGrad(g *op.Grad) op.Value {
	return g.Op("ctc_loss.backward", g.G(), g.Value(arg.LogProbs), g.Value(arg.Targets), g.Any(arg.InputLengths), g.Any(arg.TargetLengths), g.Int(arg.Blank), g.Bool(arg.Average), g.Bool(arg.ZeroInfinity))
}

func sampleCtcLossBackward(s *op.Sampler) []any {
	args := append(sampleCTC(s)[:4], 0, s.Bool(), s.Bool())
	x := args[0].(*tensor.Tensor)
	return append([]any{s.Tensor(-1, 1, x.Shape()[1]).Convert(x.DType())}, args...)
}

// lengthCount returns how many lengths an argument has, a tensor or a list.
func lengthCount(a op.Args, name op.Handle) int {
	if v, ok := a.Any(name).(op.Value); ok {
		return tensor.NumElements(v.Shape())
	}
	return len(a.Any(name).([]int))
}

// lengthsOf returns the lengths of an argument in a kernel.
func lengthsOf(a op.Args, name op.Handle) []int {
	t, ok := a.Any(name).(*tensor.Tensor)
	if !ok {
		return a.Any(name).([]int)
	}
	out := make([]int, t.Len())
	for i := range out {
		out[i] = int(t.Int(i))
	}
	return out
}

func checkCTC(a op.Args) error {
	x, t := a.Value(arg.LogProbs), a.Value(arg.Targets)
	s := x.Shape()
	for _, name := range []op.TensorArg{arg.InputLengths, arg.TargetLengths} {
		if v := a.Value(name); v != nil && v.DType() != tensor.U8 && v.DType() != tensor.I32 && v.DType() != tensor.I64 {
			return op.RuntimeError("argument '%s' must be integral, but is %s", name, v.DType())
		}
	}
	switch {
	case len(s) == 0:
		return op.IndexError("argument 'log_probs' must have 2 or 3 dimensions, but has none")
	case len(s) != 2 && len(s) != 3:
		return op.RuntimeError("argument 'log_probs' must have 2 or 3 dimensions, but has %d", len(s))
	case x.DType() != tensor.F32 && x.DType() != tensor.F64:
		return op.RuntimeError("not implemented for argument 'log_probs' of dtype %s", x.DType())
	case slices.Contains(s, 0):
		return op.RuntimeError("argument 'log_probs' of size %s must not be empty", tensor.ShapeString(s))
	case len(t.Shape()) == 0 || len(t.Shape()) > 2:
		return op.RuntimeError("argument 'targets' must have 1 or 2 dimensions, but has %d", len(t.Shape()))
	case a.Int(arg.Blank) < 0 || a.Int(arg.Blank) >= s[len(s)-1]:
		return op.RuntimeError("argument 'blank' must be one of %d classes, but is %d", s[len(s)-1], a.Int(arg.Blank))
	}
	batch := 1
	if len(s) == 3 {
		batch = s[1]
	}
	if ts := t.Shape(); len(s) == 3 && len(ts) == 2 && ts[0] != batch {
		return op.RuntimeError("argument 'targets' of size %s must have a row for each of %d samples", tensor.ShapeString(ts), batch)
	}
	for _, name := range []op.TensorArg{arg.InputLengths, arg.TargetLengths} {
		if n := lengthCount(a, name); n != batch {
			return op.RuntimeError("argument '%s' must have a length for each of %d samples, but has %d", name, batch, n)
		}
	}
	return nil
}

// ctcSamples prepares every sample of the call.
func ctcSamples[T float32 | float64](c *op.Run) ([]kernel.CTC[T], error) {
	x, t := c.Tensor(arg.LogProbs), c.Tensor(arg.Targets)
	s, data := x.Shape(), contiguousData[T](x)
	times, counts := lengthsOf(c.Args, arg.InputLengths), lengthsOf(c.Args, arg.TargetLengths)
	out := make([]kernel.CTC[T], s[1])
	offset := 0
	for n := range out {
		if t.Dim() == 2 {
			offset = n * t.Shape()[1]
		}
		switch {
		case times[n] < 0 || times[n] > s[0]:
			return nil, op.RuntimeError("argument 'input_lengths' must be at most %d, but has %d", s[0], times[n])
		case counts[n] < 0 || t.Dim() == 2 && counts[n] > t.Shape()[1] || offset+counts[n] > t.Len():
			return nil, op.RuntimeError("argument 'target_lengths' has %d, which argument 'targets' of size %s lacks", counts[n], tensor.ShapeString(t.Shape()))
		}
		labels := make([]int, counts[n])
		for i := range labels {
			labels[i] = int(t.Int(offset + i))
			if labels[i] < 0 || labels[i] >= s[2] {
				return nil, op.RuntimeError("argument 'targets' has %d, which is none of %d classes", labels[i], s[2])
			}
		}
		offset += counts[n]
		out[n] = kernel.CTC[T]{LogProbs: data, Batch: s[1], Sample: n, Classes: s[2], Time: times[n], Blank: c.Int(arg.Blank), Labels: labels}
	}
	if t.Dim() < 2 && offset != t.Len() {
		return nil, op.RuntimeError("argument 'targets' must have the %d elements of target_lengths, but has %d", offset, t.Len())
	}
	if t.Dim() == 1 && offset != t.Len() {
		return nil, op.RuntimeError("argument 'targets' has %d elements, the lengths want %d", t.Len(), offset)
	}
	return out, nil
}

// ctcShare is the factor of a sample's loss in the result.
func ctcShare(a op.Args, labels []int) float64 {
	if a.Bool(arg.Average) {
		return 1 / float64(max(len(labels), 1))
	}
	return 1
}

func ctcRun[T float32 | float64](c *op.Run) error {
	samples, err := ctcSamples[T](c)
	if err != nil {
		return err
	}
	out := tensor.Data[T](c.Out[0])
	kernel.Parallel(len(samples), 1, func(lo, hi int) {
		for n := lo; n < hi; n++ {
			loss, _ := samples[n].Loss()
			if c.Bool(arg.ZeroInfinity) && math.IsInf(loss, 1) {
				loss = 0
			}
			out[n] = T(loss * ctcShare(c.Args, samples[n].Labels))
		}
	})
	return nil
}

func ctcBackwardRun[T float32 | float64](c *op.Run) error {
	samples, err := ctcSamples[T](c)
	if err != nil {
		return err
	}
	clear(c.Out[0].Storage())
	grad, out := c.Tensor(arg.Grad), tensor.Data[T](c.Out[0])
	kernel.Parallel(len(samples), 1, func(lo, hi int) {
		for n := lo; n < hi; n++ {
			if loss, _ := samples[n].Loss(); c.Bool(arg.ZeroInfinity) && math.IsInf(loss, 1) {
				continue
			}
			samples[n].Grad(grad.Float(n)*ctcShare(c.Args, samples[n].Labels), out)
		}
	})
	return nil
}

// sampleCTC draws log_probs in float32: their gradient, which takes them as
// normalised, is no difference quotient.
func sampleCTC(s *op.Sampler) []any {
	time, batch, classes := int(s.Int(4, 7)), int(s.Int(1, 4)), int(s.Int(2, 5))
	x := s.Tensor(-3, -0.5, time, batch, classes).Convert(tensor.F32)
	targets, times, counts := tensor.New(tensor.I64, batch, 2), tensor.New(tensor.I64, batch), tensor.New(tensor.I64, batch)
	for n := range batch {
		targets.SetInt(2*n, int64(1+s.Index(classes-1)))
		targets.SetInt(2*n+1, int64(1+s.Index(classes-1)))
		times.SetInt(n, int64(time-s.Index(2)))
		counts.SetInt(n, s.Int(0, 3))
	}
	return []any{x, targets, times, counts, op.Kw("reduction", lossReductions[s.Index(3)]), op.Kw("zero_infinity", s.Bool())}
}
