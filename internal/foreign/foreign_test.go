package foreign

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"plumb/op"
	"plumb/ops"
	"plumb/tensor"
)

const f8 = `{"tensor":["float32",[8],[1]]}`

// TestFaults: what is refused says the class, the operator and the argument.
func TestFaults(t *testing.T) {
	l := New(ops.Table())
	for call, want := range map[string]Fault{
		`{"name":"relu","args":[` + f8 + `],"kwargs":[["colour",3]]}`:                {Class: "TypeError", Op: "relu", Argument: "colour"},
		`{"name":"softmax","args":[` + f8 + `],"kwargs":[["dim","x"]]}`:              {Class: "TypeError", Op: "softmax", Argument: "dim"},
		`{"name":"softmax","args":[` + f8 + `,7]}`:                                   {Class: "IndexError", Op: "softmax"},
		`{"name":"leaky_relu","args":[]}`:                                            {Class: "TypeError", Op: "leaky_relu", Argument: "input"},
		`{"name":"no_such","args":[]}`:                                               {Class: "AttributeError", Op: "no_such"},
		`{"name":"relu","args":[` + f8 + `],"kwargs":[["inplace",true]]}`:            {Class: "NotImplementedError", Op: "relu", Argument: "inplace"},
		`{"name":"add","args":[` + f8 + `,{"tensor":["float32",[3],[1]]}]}`:          {Class: "RuntimeError", Op: "add"},
		`{"name":"batch_norm","args":[` + f8 + `,null,null],"kwargs":[["eps","x"]]}`: {Class: "TypeError", Op: "batch_norm", Argument: "eps"},
	} {
		_, err := l.Prepare([]byte(call))
		if err == nil {
			t.Errorf("%s is taken", call)
			continue
		}
		got := l.FaultOf("", err)
		if got.Message == "" || got.Class != want.Class || got.Argument != want.Argument || got.Op != want.Op && !strings.Contains(got.Op, want.Op) {
			t.Errorf("%s: %+v, want %+v", call, *got, want)
		}
	}
}

// TestMemory: memory that cannot be that of the call is refused.
func TestMemory(t *testing.T) {
	l := New(ops.Table())
	d, err := l.Prepare([]byte(`{"name":"relu","args":[` + f8 + `]}`))
	if err != nil {
		t.Fatal(err)
	}
	p := l.Plan(d.Plan)
	x := tensor.New(tensor.F32, 16)
	start := unsafe.Pointer(&x.Storage()[0])
	for what, in := range map[string][]Memory{"none": {}, "null": {nil}, "unaligned": {unsafe.Add(start, 2)}} {
		if err := p.Run(in, []Memory{start}); err == nil {
			t.Errorf("%s: memory is taken", what)
		}
	}
	if err := p.Run([]Memory{start}, []Memory{unsafe.Add(start, 32)}); err != nil {
		t.Error(err)
	}
	l.Forget(d.Plan)
	if l.Plan(d.Plan) != nil || l.Plan(-1) != nil || l.Plan(99) != nil {
		t.Error("a plan that is forgotten is there")
	}
}

// TestViews: a view has the memory of its argument, a sum its own.
func TestViews(t *testing.T) {
	l := New(ops.Table())
	x := tensor.New(tensor.F32, 2, 3)
	for name, want := range map[string][]int{"t": {0}, "neg": {-1}} {
		d, err := l.Prepare([]byte(`{"name":"` + name + `","args":[{"tensor":["float32",[2,3],[3,1]]}]}`))
		if err != nil {
			t.Fatal(err)
		}
		_, shared, err := l.Plan(d.Plan).RunNew([]Memory{unsafe.Pointer(&x.Storage()[0])})
		if err != nil || !slices.Equal(shared, want) {
			t.Errorf("%s views %v, want %v (%v)", name, shared, want, err)
		}
	}
}

// TestBroken: an operator of the user's that panics is an error.
func TestBroken(t *testing.T) {
	table, err := op.NewTable(&op.Def{
		Sig: "broken(Tensor x) -> Tensor",
		Infer: func(a op.Args) ([]op.Meta, error) {
			return []op.Meta{{DType: tensor.F32, Shape: a.Value("x").Shape()}}, nil
		},
		Kernels: []op.Kernel{{Name: "k", Run: func(*op.Run) error {
			panic("a kernel's mistake")
		}}},
		Traits: op.NoGrad, Tol: op.Tol{Class: op.Exact, Reason: "none"},
	})
	if err != nil {
		t.Fatal(err)
	}
	l := New(table)
	d, err := l.Prepare([]byte(`{"name":"broken","args":[` + f8 + `]}`))
	if err != nil {
		t.Fatal(err)
	}
	x := tensor.New(tensor.F32, 8)
	at := []Memory{unsafe.Pointer(&x.Storage()[0])}
	err = l.Plan(d.Plan).Run(at, at)
	if err == nil || !strings.Contains(err.Error(), "broken is broken: a kernel's mistake") {
		t.Error(err)
	}
}

// TestSchemas: most operators can be ones of PyTorch's, and none of its schemas has a
// default before a parameter without one.
func TestSchemas(t *testing.T) {
	l := New(ops.Table())
	whole, gradients := 0, 0
	for _, d := range ops.Table().Defs() {
		o := l.operator(d)
		if o.Schemas[0].Text != "" {
			whole++
		}
		if len(o.VJP) > 0 {
			gradients++
		}
		for _, s := range slices.Concat(o.Schemas, o.VJP) {
			if s.Text == "" && s.Why == "" || len(s.Params) != len(s.KwOnly) || len(s.Params) != len(s.Tensor) {
				t.Errorf("%s: %+v", s.Name, s)
			}
		}
	}
	if whole < 550 || gradients < 350 {
		t.Errorf("%d operators have schemas, %d gradients", whole, gradients)
	}
	if _, err := l.Describe("no_such"); !errors.Is(err, op.ErrUnknown) {
		t.Error(err)
	}
}

// FuzzPrepare: no text ends the process, and what is taken is bounded.
func FuzzPrepare(f *testing.F) {
	for _, seed := range []string{
		`{"name":"add","args":[` + f8 + `,2],"kwargs":[["alpha",{"float":"0x1p-3"}]]}`,
		`{"name":"getitem","args":[` + f8 + `,{"index":[{"slice":[0,null,2]},{"ellipsis":true},null]}]}`,
		`{"id":"add__vjp","args":[` + f8 + `,` + f8 + `,1,` + f8 + `,` + f8 + `,[0,1]]}`,
		`{"name":"zeros","args":[[1,2]],"kwargs":[["dtype",{"dtype":"int8"}]]}`, `{`, `null`, `{"name":"relu","args":[{"tensor":["float32",[4611686018427387904],[1]]}]}`,
	} {
		f.Add([]byte(seed))
	}
	l := New(ops.Table())
	f.Fuzz(func(t *testing.T, text []byte) {
		d, err := l.Prepare(text)
		if err != nil {
			l.FaultOf("", err).JSON()
			return
		}
		l.Forget(d.Plan)
	})
}
