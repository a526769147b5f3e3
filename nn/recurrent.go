package nn

import (
	"fmt"
	"slices"
	"strings"

	"plumb/internal/arg"
	"plumb/op"
	"plumb/tensor"
)

var recurrentModules = []*Def{
	recurrentCell("RNNCell", ", str nonlinearity='tanh'", 1),
	recurrentCell("GRUCell", "", 3),
	recurrentCell("LSTMCell", "", 4),
	recurrentLayers("RNN", ", *, str nonlinearity='tanh', int? proj_size=None, device? device=None, dtype? dtype=None)", 1),
	recurrentLayers("GRU", ", *, int? proj_size=None, device? device=None, dtype? dtype=None)", 3),
	recurrentLayers("LSTM", ", int proj_size=0, device? device=None, dtype? dtype=None)", 4),
}

// hiddenSig is the signature of a call: an LSTM's state is a pair.
func hiddenSig(name string) string {
	if name == "LSTM" || name == "LSTMCell" {
		return "forward(Tensor input, Tensor[]? hx=None)"
	}
	return "forward(Tensor input, Tensor? hx=None)"
}

// hiddenState returns the given state, one tensor or an LSTM's two; nil for none.
func hiddenState(a op.Args) []op.Value {
	if v := a.Value(arg.Hx); v != nil {
		return []op.Value{v}
	}
	return a.Values(arg.HxTensors)
}

// zeroState returns states of zeros for the rows of x.
func zeroState(b op.Builder, x op.Value, weight op.Value, sizes ...int) []op.Value {
	var out []op.Value
	gates := b.Op("linear", x, weight)
	for _, n := range sizes {
		out = append(out, b.Op("zeros_like", b.Op("narrow", gates, 1, 0, n)))
	}
	return out
}

// states is how many hidden tensors a kind of network with the given gates has.
func states(gates int) int {
	if gates == 4 {
		return 2
	}
	return 1
}

func recurrentCell(name, params string, gates int) *Def {
	return &Def{
		Names: []string{"torch.nn." + name},
		Sig:   name + "(int input_size, int hidden_size, bool? bias=True" + params + ", device? device=None, dtype? dtype=None)",
		Doc:   "Applies one step of a recurrent network.",
		State: func(a op.Args) []Slot {
			return gateWeights(a, "", gates*a.Int(arg.HiddenSize), a.Int(arg.InputSize), a.Int(arg.HiddenSize))
		},
		ForwardSig: hiddenSig(name),
		Forward: func(b op.Builder, m *Module, a op.Args) []op.Value {
			return cellForward(b, m, a, gates)
		},
	}
}

// gateWeights are the weights of the gates for one layer and direction.
func gateWeights(a op.Args, suffix string, rows, input, hidden int) []Slot {
	slots := []Slot{
		{Name: "weight_ih" + suffix, Shape: []int{rows, input}},
		{Name: "weight_hh" + suffix, Shape: []int{rows, hidden}},
	}
	if a.Bool(arg.BiasBool) {
		slots = append(slots, Slot{Name: "bias_ih" + suffix, Shape: []int{rows}}, Slot{Name: "bias_hh" + suffix, Shape: []int{rows}})
	}
	for i := range slots {
		slots[i].Kind, slots[i].DType = Param, stateType(a)
	}
	return slots
}

func cellForward(b op.Builder, m *Module, a op.Args, gates int) []op.Value {
	x, hx := a.Value(arg.Input), hiddenState(a)
	n := len(x.Shape())
	if n != 1 && n != 2 {
		op.Fail(&op.Error{Class: "AssertionError", Msg: fmt.Sprintf("input must have 1 or 2 dimensions, but has %d", n)})
	}
	if n == 1 {
		x = b.Op("unsqueeze", x, 0)
		hx = mapAll(hx, func(v op.Value) op.Value { return b.Op("unsqueeze", v, 0) })
	}
	if hx == nil {
		hx = zeroState(b, x, m.values["weight_ih"], slices.Repeat([]int{m.Args.Int(arg.HiddenSize)}, states(gates))...)
	}
	out := step(b, m, "", gates, x, hx)
	if n == 1 {
		out = mapAll(out, func(v op.Value) op.Value { return b.Op("squeeze", v, 0) })
	}
	return out
}

func mapAll(vs []op.Value, f func(op.Value) op.Value) []op.Value {
	var out []op.Value
	for _, v := range vs {
		out = append(out, f(v))
	}
	return out
}

// step applies the cell of a layer and direction to the input at one time.
func step(b op.Builder, m *Module, suffix string, gates int, x op.Value, hx []op.Value) []op.Value {
	wi, wh, bi, bh := m.param("weight_ih"+suffix), m.param("weight_hh"+suffix), m.param("bias_ih"+suffix), m.param("bias_hh"+suffix)
	switch gates {
	case 4:
		return b.All("lstm_cell.projected", x, hx, wi, wh, bi, bh)
	case 3:
		return b.All("gru_cell", x, hx[0], wi, wh, bi, bh)
	}
	switch f := m.Args.Str(arg.Nonlinearity); f {
	case "tanh", "relu":
		return b.All("rnn_"+f+"_cell", x, hx[0], wi, wh, bi, bh)
	default:
		op.Fail(op.RuntimeError("nonlinearity must be 'tanh' or 'relu', but is '%s'", f))
	}
	return nil
}

func recurrentLayers(name, params string, gates int) *Def {
	return &Def{
		Names:  []string{"torch.nn." + name},
		Sig:    name + "(int input_size, int hidden_size, int num_layers=1, bool bias=True, bool batch_first=False, float dropout=0.0, bool bidirectional=False" + params,
		Doc:    "Applies layers of a recurrent network to a sequence.",
		Reject: checkRecurrent,
		State: func(a op.Args) []Slot {
			var slots []Slot
			for layer := range a.Int(arg.NumLayers) {
				for _, suffix := range layerSuffixes(a, layer) {
					input := a.Int(arg.InputSize)
					if layer > 0 {
						input = directions(a) * outputSize(a)
					}
					slots = append(slots, gateWeights(a, suffix, gates*a.Int(arg.HiddenSize), input, outputSize(a))...)
					if n := projection(a); n > 0 {
						slots = append(slots, Slot{Name: "weight_hr" + suffix, Kind: Param, DType: stateType(a), Shape: []int{n, a.Int(arg.HiddenSize)}})
					}
				}
			}
			return slots
		},
		ForwardSig: hiddenSig(name),
		Paired:     gates == 4,
		Forward: func(b op.Builder, m *Module, a op.Args) []op.Value {
			return layersForward(b, m, a, gates)
		},
	}
}

func checkRecurrent(a op.Args) error {
	lstm := a.Sig.Name == "LSTM"
	if a.Sig.Takes(arg.Nonlinearity) && !slices.Contains([]string{"tanh", "relu"}, a.Str(arg.Nonlinearity)) {
		return op.ValueError("nonlinearity must be 'tanh' or 'relu', but is '%s'", a.Str(arg.Nonlinearity))
	}
	if !lstm && a.Has(arg.ProjSize) {
		return op.ValueError("proj_size is only supported for LSTM")
	}
	if p := a.Float(arg.Dropout); !(p >= 0 && p <= 1) {
		return op.ValueError("dropout should be a number in range [0, 1], but is %v", p)
	}
	if n := a.Int(arg.ProjSize); n < 0 || n >= a.Int(arg.HiddenSize) {
		return op.ValueError("proj_size must not be negative and must be smaller than hidden_size=%d, but is %d", a.Int(arg.HiddenSize), n)
	}
	if a.Int(arg.NumLayers) < 1 {
		return op.IndexError("num_layers must be positive, but is %d", a.Int(arg.NumLayers))
	}
	return nil
}

// projection is the size to which an LSTM projects its output; 0 for none.
func projection(a op.Args) int { return a.Int(arg.ProjSize) }

// outputSize is the number of features of one direction's output.
func outputSize(a op.Args) int {
	if n := projection(a); n > 0 {
		return n
	}
	return a.Int(arg.HiddenSize)
}

func directions(a op.Args) int {
	if a.Bool(arg.Bidirectional) {
		return 2
	}
	return 1
}

// layerSuffixes are the endings of the names of a layer's parameters, per direction.
func layerSuffixes(a op.Args, layer int) []string {
	suffix := fmt.Sprintf("_l%d", layer)
	if a.Bool(arg.Bidirectional) {
		return []string{suffix, suffix + "_reverse"}
	}
	return []string{suffix}
}

// layersForward runs the layers over time, which is dimension 0 of x.
func layersForward(b op.Builder, m *Module, a op.Args, gates int) []op.Value {
	c, x, hx := m.Args, a.Value(arg.Input), hiddenState(a)
	if m.Training && c.Float(arg.Dropout) > 0 && c.Int(arg.NumLayers) > 1 {
		op.Fail(unsupported(m, "dropout", c.Float(arg.Dropout)))
	}
	batched := len(x.Shape()) == 3
	for _, h := range hx {
		if want := len(x.Shape()); len(h.Shape()) != want && (want == 2 || want == 3) {
			op.Fail(op.RuntimeError("hx must have %d dimensions for an input of %d, but has %d", want, want, len(h.Shape())))
		}
	}
	batchDim := 1
	if c.Bool(arg.BatchFirst) {
		batchDim = 0
	}
	if !batched {
		x = b.Op("unsqueeze", x, batchDim)
		hx = mapAll(hx, func(v op.Value) op.Value { return b.Op("unsqueeze", v, 1) })
	}
	checkSequence(m, x, hx, 1-batchDim)
	if batchDim == 0 {
		x = b.Op("transpose", x, 0, 1)
	}
	out, last := runLayers(b, m, x, hx, gates)
	if batchDim == 0 {
		out = b.Op("transpose", out, 0, 1)
	}
	if !batched {
		out = b.Op("squeeze", out, batchDim)
		last = mapAll(last, func(v op.Value) op.Value { return b.Op("squeeze", v, 1) })
	}
	return append(one(out), last...)
}

func checkSequence(m *Module, x op.Value, hx []op.Value, timeDim int) {
	c, s := m.Args, x.Shape()
	if len(s) != 3 {
		op.Fail(op.RuntimeError("input must have 2 or 3 dimensions, but has shape %s", tensor.ShapeString(s)))
	}
	if s[2] != c.Int(arg.InputSize) {
		op.Fail(op.RuntimeError("input has %d features, but input_size is %d", s[2], c.Int(arg.InputSize)))
	}
	for i, h := range hx {
		size := outputSize(c)
		if i == 1 {
			size = c.Int(arg.HiddenSize)
		}
		want := []int{c.Int(arg.NumLayers) * directions(c), s[1-timeDim], size}
		if !slices.Equal(h.Shape(), want) {
			op.Fail(op.RuntimeError("hx must have shape %s, but has %s", tensor.ShapeString(want), tensor.ShapeString(h.Shape())))
		}
	}
	if s[timeDim] == 0 {
		op.Fail(op.RuntimeError("input must have at least one time step"))
	}
}

// runLayers returns the output of the last layer and the final states, all
// layers and directions stacked.
func runLayers(b op.Builder, m *Module, x op.Value, hx []op.Value, gates int) (op.Value, []op.Value) {
	c := m.Args
	final := make([][]op.Value, states(gates))
	for layer := range c.Int(arg.NumLayers) {
		var sides []op.Value
		for _, suffix := range layerSuffixes(c, layer) {
			state := initialState(b, m, x, hx, suffix, len(final[0]), gates)
			out, state := runDirection(b, m, x, state, suffix, gates)
			sides = append(sides, out)
			for i, s := range state {
				final[i] = append(final[i], s)
			}
		}
		x = sides[0]
		if len(sides) > 1 {
			x = b.Op("cat", sides, -1)
		}
	}
	var last []op.Value
	for _, f := range final {
		last = append(last, b.Op("stack", f, 0))
	}
	return x, last
}

func initialState(b op.Builder, m *Module, x op.Value, hx []op.Value, suffix string, at, gates int) []op.Value {
	if hx != nil {
		return mapAll(hx, func(v op.Value) op.Value { return b.Op("select", v, 0, at) })
	}
	sizes := []int{outputSize(m.Args), m.Args.Int(arg.HiddenSize)}
	return zeroState(b, b.Op("select", x, 0, 0), m.values["weight_ih"+suffix], sizes[:states(gates)]...)
}

// runDirection runs one layer forwards or, for a "_reverse" suffix, backwards in time.
func runDirection(b op.Builder, m *Module, x op.Value, state []op.Value, suffix string, gates int) (op.Value, []op.Value) {
	n := x.Shape()[0]
	outs := make([]op.Value, n)
	reverse := strings.HasSuffix(suffix, "_reverse")
	for t := range n {
		if reverse {
			t = n - 1 - t
		}
		state = step(b, m, suffix, gates, b.Op("select", x, 0, t), state)
		if w := m.param("weight_hr" + suffix); w != nil {
			state[0] = b.Op("linear", state[0], w)
		}
		outs[t] = state[0]
	}
	return b.Op("stack", outs, 0), state
}
