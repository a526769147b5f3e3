package recorded

import (
	"encoding/json"
	"fmt"
	"slices"

	"plumb/backend"
	"plumb/internal/safetensors"
	"plumb/program"
	"plumb/tensor"
)

// The JSON text of a baseline. Field names are short: they occur often.
type (
	fileJSON struct {
		Version int          `json:"version"`
		Info    backend.Info `json:"info"`
		Cases   []caseJSON   `json:"cases"`
	}
	caseJSON struct {
		Test    string    `json:"test"`
		ID      string    `json:"id"`
		Program string    `json:"program"`
		Outcome Structure `json:"outcome"`
	}
)

// maxInput is the size, in bytes, of the largest input that tensors refer to.
const maxInput = 16 << 20

// encoder collects tensors by their bits.
type encoder struct {
	tensors []safetensors.Entry
	known   map[string]stored // by dtype and bytes
}

// stored is where bits are to be found: in a stored tensor or in an input.
type stored struct {
	ref   TensorRef
	shape []int
}

func encode(info backend.Info, cases []Case) ([]safetensors.Entry, []byte, error) {
	e := &encoder{known: map[string]stored{}}
	f := fileJSON{Version: Version, Info: info, Cases: []caseJSON{}}
	seen := map[string]bool{}
	for i, c := range cases {
		id := c.Program.ID()
		if seen[id] {
			continue
		}
		seen[id] = true
		o, err := e.outcome(c)
		if err != nil {
			return nil, nil, fmt.Errorf("case %d (%s): %w", i, c.Test, err)
		}
		f.Cases = append(f.Cases, caseJSON{c.Test, id, c.Program.String(), *o})
	}
	text, err := json.Marshal(f)
	return e.tensors, text, err
}

// caseEncoder also knows the inputs of one case.
type caseEncoder struct {
	*encoder
	inputs map[string]stored
}

func (e *encoder) outcome(c Case) (*Structure, error) {
	k := &caseEncoder{e, map[string]stored{}}
	k.addInputs(c.Program)
	return Describe(c.Outcome, func(_ string, t *tensor.Tensor) *TensorRef { return k.tensor(t) })
}

func (e *caseEncoder) addInputs(p *program.Program) {
	for i := range p.Inputs {
		in := &p.Inputs[i]
		if !refersTo(in) {
			continue
		}
		t := in.Materialize()
		if key := bits(t); e.inputs[key].shape == nil {
			e.inputs[key] = stored{TensorRef{Input: in.Name}, t.Shape()}
		}
	}
}

// refersTo reports whether an input is small enough to take elements from.
func refersTo(in *program.Input) bool {
	if tensor.CheckShape(in.DType, in.Shape) != nil {
		return false
	}
	n := tensor.NumElements(in.Shape) * in.DType.Size()
	return n > 0 && n <= maxInput && (in.Strides == nil || Modest(in.Shape, in.Strides))
}

// Modest reports whether a layout is valid and wastes little memory.
func Modest(shape, strides []int) bool {
	if len(strides) != len(shape) {
		return false
	}
	n := tensor.NumElements(shape)
	limit := 4*n + 64
	extent := 1
	for i, s := range strides {
		if s < 0 || s > limit {
			return false
		}
		if shape[i] > 0 {
			extent += (shape[i] - 1) * s
		}
		if extent > limit {
			return false
		}
	}
	return true
}

func bits(t *tensor.Tensor) string { return string(rune(t.DType())) + string(t.Bytes()) }

// tensor returns where t's elements are to be found; they are stored when they
// are new.
func (e *caseEncoder) tensor(t *tensor.Tensor) *TensorRef {
	key := bits(t)
	at, ok := e.inputs[key]
	if !ok {
		at, ok = e.known[key]
	}
	if !ok {
		at = stored{TensorRef{Stored: fmt.Sprintf("%05d", len(e.tensors))}, t.Shape()}
		e.known[key] = at
		e.tensors = append(e.tensors, safetensors.Entry{Name: at.ref.Stored, Tensor: t})
	}
	ref := at.ref
	if !slices.Equal(at.shape, t.Shape()) {
		shape := append([]int{}, t.Shape()...)
		ref.Shape = &shape
	}
	if !t.IsContiguous() && Modest(t.Shape(), t.Strides()) {
		ref.Strides = t.Strides()
	}
	return &ref
}
