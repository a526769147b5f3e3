package api

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"plumb/internal/draw/choice"
	"plumb/op"
	"plumb/ops"
	"plumb/tensor"
)

// function is a generated function with the id of its operator.
type function struct {
	id   string
	call any
}

var calls = flag.Int("calls", 3, "how many random calls of each operator TestRandomCalls makes in either way")

// drawer draws arguments. It reads its decisions from bytes, and when they are
// used up goes on by itself.
type drawer struct {
	session *Session
	bytes   []byte
	rest    *rand.Rand
	shapes  [][]int // of the tensors so far: shapes that fit each other are rare
	dtypes  []DType
}

func newDrawer(decisions []byte) *drawer {
	s := NewSession()
	s.LimitMemory(1 << 24)
	seed := uint64(len(decisions))
	for _, b := range decisions {
		seed = choice.Derive(seed, uint64(b))
	}
	return &drawer{session: s, bytes: decisions, rest: rand.New(rand.NewPCG(seed, 0))}
}

// below draws a number in [0, n).
func (d *drawer) below(n int) int {
	if len(d.bytes) == 0 {
		return d.rest.IntN(n)
	}
	b := d.bytes[0]
	d.bytes = d.bytes[1:]
	return int(b) % n
}

func (d *drawer) once(in int) bool { return d.below(in) == 0 }

func pick[T any](d *drawer, from []T) T { return from[d.below(len(from))] }

var (
	ints   = []int{0, 1, 2, 3, -1, 1, 2, 4, 5, -2, 7, -3, 8, 13, -7, 100, 1 << 16, 1<<31 - 1, -1 << 31, 1 << 40, math.MaxInt, -math.MaxInt, math.MinInt}
	floats = []float64{0, 1, 0.5, -1, 2, 0.1, -0.5, 1e-5, 3, 7.5, -2, 1e30, -1e300, math.Inf(1), math.Inf(-1), math.NaN(), 1e-320}
	texts  = []string{"none", "mean", "sum", "same", "valid", "nearest", "bilinear", "bicubic", "linear", "zeros", "constant", "reflect", "fro", "nuc", "tanh", "floor", "trunc", "ij", "xy", "max", "", "é", "border", "circular", "replicate", "amax", "i,j->ij", "ij,jk", "...i->i"}
	sizes  = []int{2, 3, 1, 4, 2, 3, 1, 0, 5, 7}
)

func (d *drawer) shape() []int {
	if len(d.shapes) > 0 && !d.once(3) {
		return pick(d, d.shapes)
	}
	shape := make([]int, pick(d, []int{2, 1, 4, 3, 0, 2, 1, 5, 6}))
	for i := range shape {
		shape[i] = pick(d, sizes)
		if tensor.NumElements(shape[:i+1]) > 2048 {
			shape[i] = 1
		}
	}
	d.shapes = append(d.shapes, shape)
	return shape
}

func (d *drawer) dtype() DType {
	if len(d.dtypes) > 0 && !d.once(4) {
		return pick(d, d.dtypes)
	}
	dt := pick(d, []DType{F32, F64, I64, Boolean, F16, BF16, C64, C128, U8, I8, I16, I32})
	d.dtypes = append(d.dtypes, dt)
	return dt
}

func (d *drawer) tensor() *Tensor {
	if d.once(40) {
		return nil
	}
	t := d.layout(tensor.New(d.dtype(), d.shape()...))
	mode := d.below(4)
	for i := range t.Len() {
		switch mode {
		case 0:
			t.Set(i, complex(float64(d.rest.IntN(4)), 0))
		case 1:
			t.Set(i, complex(pick(&drawer{rest: d.rest}, floats), 0))
		case 2:
			t.SetInt(i, int64(pick(&drawer{rest: d.rest}, ints)))
		default:
			t.Set(i, complex(d.rest.Float64()*4-2, d.rest.Float64()*4-2))
		}
	}
	x := d.session.Wrap(t)
	if t.DType().IsDifferentiable() && d.once(2) {
		_ = x.RequireGrad()
	}
	return x
}

// layout returns a tensor of t's shape that is contiguous, permuted or expanded.
func (d *drawer) layout(t *tensor.Tensor) *tensor.Tensor {
	shape := t.Shape()
	if len(shape) == 0 || !d.once(3) {
		return t
	}
	i := d.below(len(shape))
	if d.once(2) {
		strides := slices.Clone(t.Strides())
		strides[i] = 0
		e, err := tensor.FromBytes(t.DType(), shape, strides, 0, t.Storage())
		if err != nil {
			return t
		}
		return e
	}
	order := make([]int, len(shape))
	for j := range order {
		order[j] = j
	}
	last := len(shape) - 1
	order[i], order[last] = order[last], order[i]
	swapped := slices.Clone(shape)
	swapped[i], swapped[last] = swapped[last], swapped[i]
	return tensor.New(t.DType(), swapped...).Permute(order...)
}

func (d *drawer) list(n int, add func()) {
	for range pick(d, []int{2, 1, 3, 0, n, 4}) {
		add()
	}
}

// value draws a value of a Go type of package api.
func (d *drawer) value(t reflect.Type) reflect.Value {
	switch reflect.Zero(t).Interface().(type) {
	case *Tensor:
		return reflect.ValueOf(d.tensor())
	case Scalar:
		return reflect.ValueOf(d.scalar())
	case DType:
		if d.once(10) {
			return reflect.ValueOf(DType(d.below(256)))
		}
		return reflect.ValueOf(d.dtype())
	case Device:
		return reflect.ValueOf(pick(d, []Device{"cpu", "cuda", "", "meta"}))
	case MemoryFormat:
		return reflect.ValueOf(MemoryFormat(d.below(5)))
	case Index:
		return reflect.ValueOf(d.index())
	}
	switch t.Kind() {
	case reflect.Int:
		return reflect.ValueOf(pick(d, ints))
	case reflect.Float64:
		return reflect.ValueOf(pick(d, floats))
	case reflect.Bool:
		return reflect.ValueOf(d.once(2))
	case reflect.String:
		return reflect.ValueOf(pick(d, texts))
	case reflect.Pointer:
		p := reflect.New(t.Elem())
		p.Elem().Set(d.value(t.Elem()))
		return p
	case reflect.Slice:
		l := reflect.MakeSlice(t, 0, 4)
		d.list(6, func() { l = reflect.Append(l, d.value(t.Elem())) })
		return l
	case reflect.Struct:
		return d.options(t)
	}
	v := reflect.New(t).Elem()
	if x := d.argument(t); x != nil && !d.once(20) {
		v.Set(reflect.ValueOf(x))
	}
	return v
}

// argument draws one of an interface: Arg, or any of nested data.
func (d *drawer) argument(t reflect.Type) any {
	if t.NumMethod() == 0 {
		return d.data(3)
	}
	of := []reflect.Type{reflect.TypeFor[*Tensor](), reflect.TypeFor[Scalar](), reflect.TypeFor[Ints](), reflect.TypeFor[Floats](), reflect.TypeFor[Str]()}
	kind := pick(d, []int{0, 1, 0, 1, 2, 3, 4})
	return d.value(of[kind]).Convert(of[kind]).Interface()
}

func (d *drawer) data(depth int) any {
	if depth == 0 || d.once(2) {
		return d.scalar().Any()
	}
	var l []any
	d.list(5, func() { l = append(l, d.data(depth-1)) })
	return l
}

func (d *drawer) scalar() Scalar {
	switch d.below(6) {
	case 0:
		return Number(pick(d, floats))
	case 1:
		return Number(d.once(2))
	case 2:
		return Number(complex(pick(d, floats), 1))
	case 3:
		return Scalar{}
	}
	return Number(pick(d, ints))
}

func (d *drawer) index() Index {
	ix := Index{}
	optional := func() *int {
		if d.once(3) {
			return nil
		}
		return new(pick(d, ints))
	}
	d.list(6, func() {
		switch d.below(7) {
		case 0:
			ix = append(ix, op.Slice{Start: optional(), Stop: optional(), Step: optional()})
		case 1:
			ix = append(ix, op.Ellipsis{})
		case 2:
			ix = append(ix, d.tensor())
		case 3:
			ix = append(ix, nil)
		case 4:
			ix = append(ix, d.data(2))
		case 5:
			ix = append(ix, d.once(2))
		default:
			ix = append(ix, pick(d, ints))
		}
	})
	return ix
}

// options sets some of the fields.
func (d *drawer) options(t reflect.Type) reflect.Value {
	v := reflect.New(t).Elem()
	for i := range t.NumField() {
		if d.once(2) {
			v.Field(i).Set(d.value(t.Field(i).Type).Convert(t.Field(i).Type))
		}
	}
	return v
}

// typed calls a generated function with arguments of its types.
func (d *drawer) typed(f function) []any {
	v := reflect.ValueOf(f.call)
	t := v.Type()
	var args []reflect.Value
	for i := range t.NumIn() {
		in := t.In(i)
		switch {
		case in == reflect.TypeFor[*Session]():
			args = append(args, reflect.ValueOf(d.session))
		case t.IsVariadic() && i == t.NumIn()-1:
			if !d.once(3) {
				args = append(args, d.options(in.Elem()))
			}
		default:
			args = append(args, d.value(in))
		}
	}
	var out []any
	for _, r := range v.Call(args) {
		out = append(out, r.Interface())
	}
	return out
}

// changed calls an operator with the arguments of its sample, some of them
// changed: that reaches further than what typed draws.
func (d *drawer) changed(def *op.Def) []any {
	dt := pick(d, []DType{F64, F32, d.dtype()})
	sampled := def.Sample(&op.Sampler{Source: choice.New(d.rest.Uint64()), DType: dt})
	args := make([]any, len(sampled))
	for i, a := range sampled {
		args[i] = d.change(a, 3)
	}
	if d.once(12) && len(args) > 0 {
		args = args[:len(args)-1]
	}
	out, err := d.session.Call(def.ID(), args...)
	results := []any{err}
	for _, t := range out {
		results = append(results, t)
	}
	return results
}

func (d *drawer) change(v any, depth int) any {
	changed := d.once(4)
	switch v := v.(type) {
	case op.Kwarg:
		return op.Kw(v.Name, d.change(v.Value, depth-1))
	case *tensor.Tensor:
		d.shapes, d.dtypes = append(d.shapes, v.Shape()), append(d.dtypes, v.DType())
		if changed {
			return d.tensor()
		}
		x := d.session.Wrap(v)
		if v.DType().IsDifferentiable() {
			_ = x.RequireGrad()
		}
		return x
	case []any:
		var l []any
		for _, e := range v {
			if !d.once(8) {
				l = append(l, d.change(e, depth-1))
			}
		}
		return l
	case []int:
		l := slices.Clone(v)
		for i := range l {
			if d.once(6) {
				l[i] = pick(d, ints)
			}
		}
		if d.once(8) {
			l = append(l, pick(d, ints))
		}
		return l
	}
	if !changed {
		return v
	}
	of := []reflect.Type{reflect.TypeFor[int](), reflect.TypeFor[[]int](), reflect.TypeFor[float64](), reflect.TypeFor[bool](), reflect.TypeFor[string](), reflect.TypeFor[DType](), reflect.TypeFor[*Tensor](), reflect.TypeFor[Index]()}
	for i, t := range of {
		if reflect.TypeOf(v) == t && !d.once(6) {
			return d.value(of[i]).Interface()
		}
	}
	return d.value(pick(d, of)).Interface()
}

// backward differentiates what wants a gradient.
func backward(results []any) {
	for _, r := range results[:min(len(results), 4)] {
		if t, ok := r.(*Tensor); ok && t != nil && t.RequiresGrad() {
			_ = t.Backward(t.Detach())
		}
	}
}

// guarded runs f and returns what it panicked with, and where.
func guarded(f func()) (failure string) {
	defer func() {
		if r := recover(); r != nil {
			failure = fmt.Sprintf("%v\n%s", r, frames(string(debug.Stack())))
		}
	}()
	f()
	return ""
}

// frames keeps the innermost frames of this module.
func frames(stack string) string {
	var own []string
	_, stack, _ = strings.Cut(stack, "panic(")
	for line := range strings.Lines(stack) {
		if strings.Contains(line, "/plumb/") || strings.Contains(line, ".go:") && !strings.Contains(line, "/src/") {
			own = append(own, strings.TrimSpace(line))
		}
	}
	return "  " + strings.Join(own[:min(len(own), 5)], "\n  ")
}

// try calls the operator in both ways with the decisions; the first panic is
// the test's failure.
func try(t *testing.T, f function, decisions []byte) (accepted int) {
	ways := map[string]func(*drawer) []any{"typed": func(d *drawer) []any { return d.typed(f) }}
	if def := ops.Table().Def(f.id); def.Sample != nil {
		ways["changed"] = func(d *drawer) []any { return d.changed(def) }
	}
	for way, call := range ways {
		begin := time.Now()
		failure := guarded(func() {
			results := call(newDrawer(decisions))
			if !slices.ContainsFunc(results, func(r any) bool { err, ok := r.(error); return ok && err != nil }) {
				accepted++
			}
			backward(results)
		})
		if failure != "" {
			t.Errorf("%s (%s), decisions %v: %s", f.id, way, decisions, failure)
		}
		if took := time.Since(begin); took > 2*time.Second {
			t.Logf("%s (%s), decisions %v: %v", f.id, way, decisions, took)
		}
	}
	return accepted
}

// FuzzCalls calls the whole table with random arguments: each call gives
// results or an error, never a panic, in bounded memory.
func FuzzCalls(f *testing.F) {
	for i := range functions {
		f.Add(uint16(i), []byte{byte(i)})
	}
	f.Fuzz(func(t *testing.T, which uint16, decisions []byte) {
		try(t, functions[int(which)%len(functions)], decisions)
	})
}

// TestRandomCalls is FuzzCalls with decisions that are the same every time.
func TestRandomCalls(t *testing.T) {
	accepted, made := 0, 0
	for i, f := range functions {
		t.Run(f.id, func(t *testing.T) {
			before := accepted
			made += *calls
			for n := range *calls {
				accepted += try(t, f, []byte{byte(i), byte(i >> 8), byte(n), byte(n >> 8)})
			}
			t.Logf("%d of %d calls were accepted", accepted-before, 2**calls)
		})
	}
	if made > 1000 && accepted < made/2 {
		t.Errorf("only %d of %d calls were accepted: the draws reach no kernel", accepted, 2*made)
	}
}
