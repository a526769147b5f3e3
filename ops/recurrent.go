package ops

import (
	"slices"

	"plumb/internal/arg"
	"plumb/op"
	"plumb/tensor"
)

const cellParams = ", Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None) -> "

var recurrentOps = []*op.Def{
	simpleCell("rnn_tanh_cell", "tanh"),
	simpleCell("rnn_relu_cell", "relu"),
	{
		Sig:    "gru_cell(Tensor input, Tensor hx" + cellParams + "Tensor",
		Names:  []string{"torch.gru_cell"},
		Doc:    "One step of a gated recurrent unit: h' = (1−z)·n + z·h, with r, z = σ(W·x + b + W'·h + b') and n = tanh(W·x + b + r·(W'·h + b')).",
		Reject: firstError(checkCell, rejectTypes(arg.Input, integralSet...)),
		Compose: func(b op.Builder, a op.Args) []op.Value {
			h := a.Value(arg.Hx)
			x, y := gates(b, cellInput(b, a), 3), gates(b, cellHidden(b, a, h), 3)
			reset := b.Op("sigmoid", addOnto(b, y[0], x[0]))
			update := b.Op("sigmoid", addOnto(b, y[1], x[1]))
			fresh := b.Op("tanh", b.Add(x[2], b.Mul(y[2], reset)))
			return []op.Value{b.Add(b.Mul(b.Sub(h, fresh), update), fresh)}
		},
		Sample: func(s *op.Sampler) []any { return sampleCell(s, 3) },
		Tol:    cellTol,
	},
	lstmCell("lstm_cell", []string{"torch.lstm_cell"}, false),
	lstmCell("lstm_cell.projected", nil, true),
}

// lstmCell is one step of an LSTM, whose hidden state may be smaller than its
// cell state when it is projected.
func lstmCell(id string, names []string, projected bool) *op.Def {
	return &op.Def{
		Sig:   id + "(Tensor input, Tensor[] hx" + cellParams + "(Tensor hidden, Tensor cell)",
		Names: names,
		Doc:   "One step of a long short-term memory: c' = f·c + i·g and h' = o·tanh(c'), with i, f, o = σ(W·x + b + W'·h + b') and g = tanh of such a sum.",
		Reject: func(a op.Args) error {
			if n := len(a.Values(arg.HxTensors)); n != 2 {
				return op.RuntimeError("hx must have two elements, but has %d", n)
			}
			if projected {
				return nil
			}
			return firstError(checkCell, rejectTypes(arg.Input, integralSet...))(a)
		},
		Compose: composeLSTM,
		Sample:  sampleLstmCell,
		Tol:     cellTol,
	}
}

func sampleLstmCell(s *op.Sampler) []any {
	args := sampleCell(s, 4)
	args[1] = []any{args[1], s.Tensor(-2, 2, args[1].(*tensor.Tensor).Shape()...)}
	return args
}

func composeLSTM(b op.Builder, a op.Args) []op.Value {
	h, c := a.Values(arg.HxTensors)[0], a.Values(arg.HxTensors)[1]
	parts := gates(b, addOnto(b, cellHidden(b, a, h), cellInput(b, a)), 4)
	in, forget, out := b.Op("sigmoid", parts[0]), b.Op("sigmoid", parts[1]), b.Op("sigmoid", parts[3])
	c = b.Add(b.Mul(forget, c), b.Mul(in, b.Op("tanh", parts[2])))
	return []op.Value{b.Mul(out, b.Op("tanh", c)), c}
}

var cellTol = accumulating(func(a op.Args) int {
	return sizeOf(a.Value(arg.WIH), 1) + sizeOf(a.Value(arg.WHH), 1) + 2
}, "each gate sums one product per input and hidden feature and two biases")

func simpleCell(id, function string) *op.Def {
	return &op.Def{
		Sig:    id + "(Tensor input, Tensor hx" + cellParams + "Tensor",
		Names:  []string{"torch." + id},
		Doc:    "One step of an Elman network: h' = " + function + "(W·x + b + W'·h + b').",
		Reject: checkCell,
		Compose: func(b op.Builder, a op.Args) []op.Value {
			return []op.Value{b.Op(function, addOnto(b, cellHidden(b, a, a.Value(arg.Hx)), cellInput(b, a)))}
		},
		Sample: func(s *op.Sampler) []any { return sampleCell(s, 1) },
		Tol:    cellTol,
	}
}

func cellInput(b op.Builder, a op.Args) op.Value {
	return b.Op("linear", a.Value(arg.Input), a.Value(arg.WIH), a.Any(arg.BIH))
}

func cellHidden(b op.Builder, a op.Args, h op.Value) op.Value {
	return b.Op("linear", h, a.Value(arg.WHH), a.Any(arg.BHH))
}

// addOnto adds the input's part to the hidden one, which it must not widen:
// PyTorch adds in place.
func addOnto(b op.Builder, hidden, input op.Value) op.Value {
	sum := b.Add(hidden, input)
	if !slices.Equal(sum.Shape(), hidden.Shape()) {
		op.Fail(op.RuntimeError("the products with w_ih have shape %s, which does not fit those with w_hh of shape %s", tensor.ShapeString(input.Shape()), tensor.ShapeString(hidden.Shape())))
	}
	return sum
}

// gates divides the features among n gates.
func gates(b op.Builder, v op.Value, n int) []op.Value {
	parts := b.All("chunk", v, n, 1)
	if len(parts) != n {
		op.Fail(op.RuntimeError("the weights have %d rows, which cannot be divided among %d gates", v.Shape()[1], n))
	}
	return parts
}

// checkCell rejects an input and hidden states that do not fit the weights.
// What lacks a dimension is an IndexError where PyTorch asks for its size, and
// it asks in this order.
func checkCell(a op.Args) error {
	x := a.Value(arg.Input).Shape()
	features, err := columns(a, arg.WIH)
	if err != nil {
		return err
	}
	if len(x) < 2 {
		return op.IndexError("input must have 2 dimensions, but has %d", len(x))
	}
	if x[1] != features {
		return op.RuntimeError("input has %d features, but w_ih expects %d", x[1], features)
	}
	if features, err = columns(a, arg.WHH); err != nil {
		return err
	}
	hidden := a.Values(arg.HxTensors)
	if h := a.Value(arg.Hx); h != nil {
		hidden = []op.Value{h}
	}
	for _, h := range hidden {
		if err := checkHidden(h.Shape(), x[0], features); err != nil {
			return err
		}
	}
	for _, w := range []op.TensorArg{arg.WIH, arg.WHH} {
		if s := a.Value(w).Shape(); len(s) != 2 {
			return op.RuntimeError("%s must be a matrix, but has shape %s", w, tensor.ShapeString(s))
		}
	}
	return nil
}

// columns returns the size of dimension 1 of a weight.
func columns(a op.Args, weight op.TensorArg) (int, error) {
	s := a.Value(weight).Shape()
	if len(s) < 2 {
		return 0, op.IndexError("%s must be a matrix, but has shape %s", weight, tensor.ShapeString(s))
	}
	return s[1], nil
}

func checkHidden(h []int, batch, features int) error {
	switch {
	case len(h) == 0 || len(h) == 1 && h[0] == batch:
		return op.IndexError("hx must have 2 dimensions, but has %d", len(h))
	case h[0] != batch:
		return op.RuntimeError("hx of shape %s does not fit a batch of %d", tensor.ShapeString(h), batch)
	case h[1] != features:
		return op.RuntimeError("hx has %d features, but w_hh expects %d", h[1], features)
	}
	return nil
}

func sampleCell(s *op.Sampler, gates int) []any {
	d := s.Dims(3)
	args := []any{
		s.Tensor(-2, 2, d[0], d[1]), s.Tensor(-2, 2, d[0], d[2]),
		s.Tensor(-1, 1, gates*d[2], d[1]), s.Tensor(-1, 1, gates*d[2], d[2]),
	}
	if s.Bool() {
		args = append(args, s.Tensor(-1, 1, gates*d[2]), s.Tensor(-1, 1, gates*d[2]))
	}
	return args
}
