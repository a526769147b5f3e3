package foreign

import (
	"encoding/json"
	"fmt"
	"math"
	"math/cmplx"
	"reflect"
	"strconv"
	"testing"
	"unsafe"

	"plumb/internal/autograd"
	"plumb/internal/draw/choice"
	"plumb/internal/eager"
	"plumb/op"
	"plumb/ops"
	"plumb/tensor"
)

// writer writes arguments as requests have them.
type writer struct{ tensors []*tensor.Tensor }

func (w *writer) value(v any) any {
	switch v := v.(type) {
	case *tensor.Tensor:
		w.tensors = append(w.tensors, v)
		return map[string]any{"tensor": []any{v.DType().String(), append([]int{}, v.Shape()...), append([]int{}, v.Strides()...)}}
	case float64:
		return map[string]any{"float": strconv.FormatFloat(v, 'x', -1, 64)}
	case complex128:
		return map[string]any{"complex": []string{strconv.FormatFloat(real(v), 'x', -1, 64), strconv.FormatFloat(imag(v), 'x', -1, 64)}}
	case op.Scalar:
		return w.value(v.Any())
	case tensor.DType:
		return map[string]any{"dtype": v.String()}
	case tensor.MemoryFormat:
		return map[string]any{"format": v.String()}
	case op.DeviceName:
		return map[string]any{"device": string(v)}
	case op.Ellipsis:
		return map[string]any{"ellipsis": true}
	case op.Slice:
		return map[string]any{"slice": []*int{v.Start, v.Stop, v.Step}}
	case []int:
		list := make([]any, len(v))
		for i, n := range v {
			if n != math.MinInt {
				list[i] = n
			}
		}
		return list
	case []any:
		list := make([]any, len(v))
		for i, e := range v {
			list[i] = w.value(e)
		}
		return list
	case []float64:
		list := make([]any, len(v))
		for i, e := range v {
			list[i] = w.value(e)
		}
		return list
	case op.Index:
		return map[string]any{"index": w.value([]any(v))}
	}
	return v
}

func (w *writer) request(t *testing.T, id string, args []any) []byte {
	t.Helper()
	pos, kws := []any{}, [][2]any{}
	for _, a := range args {
		if kw, ok := a.(op.Kwarg); ok {
			kws = append(kws, [2]any{kw.Name, w.value(kw.Value)})
		} else {
			pos = append(pos, w.value(a))
		}
	}
	text, err := json.Marshal(map[string]any{"id": id, "args": pos, "kwargs": kws})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func at(t *tensor.Tensor) Memory {
	if t.Len() == 0 {
		return nil
	}
	return unsafe.Pointer(&t.Storage()[t.Offset()*t.DType().Size()])
}

// through runs a call as those do who do not write Go.
func through(t *testing.T, l *Library, text []byte, tensors []*tensor.Tensor) ([]*tensor.Tensor, error) {
	t.Helper()
	d, err := l.Prepare(text)
	if err != nil {
		return nil, err
	}
	defer l.Forget(d.Plan)
	p := l.Plan(d.Plan)
	var in []Memory
	for _, x := range tensors {
		in = append(in, at(x))
	}
	if d.New {
		out, _, err := p.RunNew(in)
		return out, err
	}
	var out []*tensor.Tensor
	var results []Memory
	for _, r := range d.Results {
		dt, err := tensor.ParseDType(r.DType)
		if err != nil {
			t.Fatal(err)
		}
		x := tensor.NewStrided(dt, r.Shape, r.Strides)
		for i := range x.Storage() {
			x.Storage()[i] = 0x5a
		}
		out, results = append(out, x), append(results, at(x))
	}
	return out, p.Run(in, results)
}

func drawn(d *op.Def, seed uint64) []any {
	s := &op.Sampler{Source: choice.New(seed), DType: tensor.F64}
	return d.Sample(s)
}

func split(args []any) (pos []any, kws []op.Kwarg) {
	for _, a := range args {
		if kw, ok := a.(op.Kwarg); ok {
			kws = append(kws, kw)
		} else {
			pos = append(pos, a)
		}
	}
	return pos, kws
}

// TestTable: a sample call of every operator has the results from outside that it has
// in Go, to the bit.
func TestTable(t *testing.T) {
	l := New(ops.Table())
	ran := 0
	for _, d := range ops.Table().Defs() {
		if d.Sample == nil || d.Traits.Has(op.Random) {
			continue
		}
		for seed := range uint64(2) {
			w := &writer{}
			args := drawn(d, seed)
			text := w.request(t, d.ID(), args)
			pos, kws := split(args)
			call, err := ops.Table().ResolveID(d.ID(), pos, kws)
			if err != nil || call.InPlace {
				continue
			}
			if len(d.Mutates) > 0 { // both runs change what they are given
				continue
			}
			want, err := call.Execute()
			if err != nil {
				t.Errorf("%s: %v", d.ID(), err)
				continue
			}
			got, err := through(t, l, text, w.tensors)
			if err != nil {
				t.Errorf("%s: %v\n%s", d.ID(), err, text)
				continue
			}
			ran++
			if diff := differ(got, want); diff != "" {
				t.Errorf("%s: %s\n%s", d.ID(), diff, text)
			}
		}
	}
	if ran < 1000 {
		t.Errorf("%d calls ran, want 1000", ran)
	}
}

func differ(got, want []*tensor.Tensor) string {
	if len(got) != len(want) {
		return fmt.Sprintf("%d results, want %d", len(got), len(want))
	}
	for i := range got {
		if !got[i].SameBits(want[i]) {
			return fmt.Sprintf("result %d: %s, want %s", i, got[i], want[i])
		}
	}
	return ""
}

// TestVJPOfTheTable: the operator that computes the gradients of another computes
// those of a session with a tape.
func TestVJPOfTheTable(t *testing.T) {
	l := New(ops.Table())
	ran := 0
	for _, d := range ops.Table().Defs() {
		if d.Sample == nil || !d.Differentiable() || d.Traits.Has(op.Random) || len(d.Mutates) > 0 {
			continue
		}
		if err := oneVJP(t, l, d, &ran); err != nil {
			t.Errorf("%s: %v", d.ID(), err)
		}
	}
	if ran < 300 {
		t.Errorf("gradients of %d operators were compared, want 300", ran)
	}
}

func oneVJP(t *testing.T, l *Library, d *op.Def, ran *int) error {
	pos, kws := split(drawn(d, 5))
	s := eager.New(ops.Table())
	var leaves []*eager.Var
	taped := func(v any) any { return leaf(s, v, &leaves) }
	for i := range pos {
		pos[i] = taped(pos[i])
	}
	for i := range kws {
		kws[i].Value = taped(kws[i].Value)
	}
	call, err := ops.Table().ResolveID(d.ID(), pos, kws)
	if err != nil || call.InPlace {
		return err
	}
	out, err := s.Execute(call)
	if err != nil || !differentiable(out) || d.Constant != nil {
		return err
	}
	var cots []op.Value
	for i, v := range out {
		c := tensor.New(v.DType(), v.Shape()...)
		for j := range c.Len() {
			c.Set(j, complex(1+0.25*float64((i+3*j)%7), 0))
		}
		cots = append(cots, c)
	}
	var args []any
	for i, v := range call.Args.Vals {
		p := call.Args.Sig.Params[i]
		if p.HasDefault && reflect.DeepEqual(v, p.Default) || v == nil && !p.HasDefault && len(d.More) > 0 {
			continue // as the overload has it that the call is of
		}
		args = append(args, op.Kw(p.Name, plainly(v)))
	}
	var wanted []int
	var inputs []op.Value
	for i, v := range call.Args.AllValues() {
		if eager.RequiresGrad(v) {
			wanted, inputs = append(wanted, i), append(inputs, v)
		}
	}
	want, err := s.Backward(floats(out), floats(cots), false, inputs...)
	if err != nil {
		return nil // what PyTorch refuses to differentiate
	}
	if d.Sigs()[0].Many {
		args = append(args, op.Kw("vjp1_results", plainly(out)), op.Kw("vjp1_gradients", plainly(cots)))
	} else {
		for i := range out {
			args = append(args, op.Kw(fmt.Sprint("vjp1_result", i), plainly(out[i])), op.Kw(fmt.Sprint("vjp1_gradient", i), plainly(cots[i])))
		}
	}
	w := &writer{}
	text := w.request(t, autograd.VJPName(d.ID()), append(args, op.Kw("vjp1_wanted", wanted)))
	got, err := through(t, l, text, w.tensors)
	if err != nil {
		return err
	}
	*ran++
	for i, x := range inputs {
		g, ok := want[x].(*eager.Var)
		if !ok {
			continue
		}
		if !near(got[i], g.Tensor) {
			return fmt.Errorf("gradient %d is %v, want %v\n%s", i, got[i].Bytes(), g.Bytes(), text)
		}
	}
	return nil
}

func leaf(s *eager.Session, v any, leaves *[]*eager.Var) any {
	switch v := v.(type) {
	case *tensor.Tensor:
		x := s.Leaf(v, v.DType().IsDifferentiable())
		*leaves = append(*leaves, x)
		return x
	case []any:
		list := make([]any, len(v))
		for i, e := range v {
			list[i] = leaf(s, e, leaves)
		}
		return list
	}
	return v
}

func plainly(v any) any {
	switch v := v.(type) {
	case *eager.Var:
		return v.Tensor
	case []op.Value:
		list := make([]any, len(v))
		for i, e := range v {
			list[i] = plainly(e)
		}
		return list
	}
	return v
}

func differentiable(out []op.Value) bool {
	for _, v := range out {
		if !eager.RequiresGrad(v) && v.DType().IsDifferentiable() {
			return false
		}
	}
	return len(floats(out)) > 0
}

func floats(vs []op.Value) (out []op.Value) {
	for _, v := range vs {
		if v.DType().IsDifferentiable() {
			out = append(out, v)
		}
	}
	return out
}

// near allows the sums of gradients another order.
func near(a, b *tensor.Tensor) bool {
	for i := range a.Len() {
		x, y := a.At(i), b.At(i)
		bothNaN := cmplx.IsNaN(x) && cmplx.IsNaN(y)
		if x != y && !bothNaN && !(cmplx.Abs(x-y) <= 1e-10*(1+cmplx.Abs(x))) {
			return false
		}
	}
	return a.DType() == b.DType() && a.Len() == b.Len()
}
