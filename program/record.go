package program

import (
	"errors"
	"fmt"
	"strings"

	"plumb/op"
	"plumb/tensor"
)

// Symbol is a value of a program that is being recorded: its name and what is
// inferred of it.
type Symbol struct {
	Ref  Ref
	meta op.Meta
}

// NewSymbol returns a value of which the meta is known.
func NewSymbol(ref Ref, meta op.Meta) *Symbol { return &Symbol{ref, meta} }

// DType returns the inferred element type.
func (s *Symbol) DType() tensor.DType { return s.meta.DType }

// Shape returns the inferred shape.
func (s *Symbol) Shape() []int { return s.meta.Shape }

// Strides returns the inferred strides.
func (s *Symbol) Strides() []int {
	if s.meta.Strides != nil {
		return s.meta.Strides
	}
	return tensor.ContiguousStrides(s.meta.Shape)
}

// OwnPrefix marks targets that name an operator of the table by its id, such
// as "plumb.max.dim", rather than by a public name.
const OwnPrefix = "plumb."

// The targets of calls about ranks, whose arguments are texts such as
// "cpu[[0, 1], [2, 3]]" and "[S(0), B]".
const (
	// ToGlobal is OneFlow's x.to_global(placement=…, sbp=…, grad_sbp=…): a copy of the
	// tensor, which subjects that run over ranks bring to a placement and an sbp.
	ToGlobal = "Tensor.to_global"
	// Itself is the argument of to_global that brings the tensor there too: so are a
	// module's own parameters placed.
	Itself = "itself"
	// ToLocal is x.to_local(placement=…, sbp=…, rank=…): what the rank holds of a
	// tensor that lies so, a piece of it.
	ToLocal = "Tensor.to_local"
	// ModuleToGlobal is m.to_global(placement=…, sbp=…): the module, whose state is
	// brought there.
	ModuleToGlobal = "Module.to_global"
)

// AboutRanks reports whether a call says where tensors lie.
func (c *Call) AboutRanks() bool {
	return c.Target == ToGlobal || c.Target == ToLocal || c.Target == ModuleToGlobal
}

// Recorder is an op.Applier that appends the calls to a program instead of
// computing them.
type Recorder struct {
	Program *Program
	table   *op.Table
	prefix  string
}

// NewRecorder returns a recorder whose results are named prefix0, prefix1, …
func NewRecorder(p *Program, table *op.Table, prefix string) *Recorder {
	return &Recorder{p, table, prefix}
}

// Symbol returns the symbol of an input of the program.
func (in *Input) Symbol() *Symbol {
	return &Symbol{Ref(in.Name), op.Meta{DType: in.DType, Shape: in.Shape, Strides: in.Strides}}
}

// Apply records an operator by id.
func (r *Recorder) Apply(id string, args []any, kwargs []op.Kwarg) ([]op.Value, error) {
	call, err := r.table.ResolveID(id, args, kwargs)
	if err != nil {
		return nil, err
	}
	if call.Def.Compose != nil {
		return call.Parts(op.Builder{Applier: r})
	}
	c := Call{Result: fmt.Sprintf("%s%d", r.prefix, len(r.Program.Calls)), Target: OwnPrefix + id}
	for _, a := range args {
		c.Args = append(c.Args, FromOp(a))
	}
	for _, kw := range kwargs {
		c.Kwargs = append(c.Kwargs, Kwarg{kw.Name, FromOp(kw.Value)})
	}
	return r.Record(c, call)
}

// Record appends a call whose bound form is known, and names its results: a
// tuple's elements are named by further calls of operator.getitem.
func (r *Recorder) Record(c Call, bound *op.Call) ([]op.Value, error) {
	metas, err := bound.Infer()
	if err != nil {
		return nil, err
	}
	r.Program.Calls = append(r.Program.Calls, c)
	if len(metas) == 1 && !bound.Def.Sigs()[0].Many {
		return []op.Value{&Symbol{Ref(c.Result), metas[0]}}, nil
	}
	var out []op.Value
	for i, m := range metas {
		name := fmt.Sprintf("%s_%d", c.Result, i)
		r.Program.Calls = append(r.Program.Calls, Call{Result: name, Target: "operator.getitem", Args: []any{Ref(c.Result), int64(i)}})
		out = append(out, &Symbol{Ref(name), m})
	}
	return out, nil
}

// FromOp turns an operator's argument into a program's.
func FromOp(v any) any {
	switch v := v.(type) {
	case *Symbol:
		return v.Ref
	case int:
		return int64(v)
	case op.Scalar:
		return v.Any()
	case op.DeviceName:
		return string(v)
	case []int:
		t := make(Tuple, len(v))
		for i, e := range v {
			t[i] = int64(e)
		}
		return t
	case []float64:
		t := make(Tuple, len(v))
		for i, e := range v {
			t[i] = e
		}
		return t
	case []bool:
		return listOf(v)
	case []string:
		return listOf(v)
	case []tensor.DType:
		return listOf(v)
	case []op.Scalar:
		return listOf(v)
	case [][]int:
		return listOf(v)
	case []any:
		return listFromOp(v)
	case op.Index:
		return Tuple(listFromOp(v))
	case op.Slice:
		return Slice{partFromOp(v.Start), partFromOp(v.Stop), partFromOp(v.Step)}
	case op.Ellipsis:
		return Ellipsis{}
	case []op.Value:
		l := make(List, len(v))
		for i, e := range v {
			l[i] = FromOp(e)
		}
		return l
	}
	return v
}

func listOf[T any](vs []T) List {
	l := make(List, len(vs))
	for i, v := range vs {
		l[i] = FromOp(v)
	}
	return l
}

func listFromOp(vs []any) List {
	l := make(List, len(vs))
	for i, e := range vs {
		l[i] = FromOp(e)
	}
	return l
}

func partFromOp(n *int) any {
	if n == nil {
		return nil
	}
	return int64(*n)
}

// ToOp turns a program's argument into an operator's; value looks names up.
func ToOp(v any, value func(Ref) (any, error)) (any, error) {
	switch v := v.(type) {
	case Ref:
		return value(v)
	case List:
		return listToOp(v, value)
	case Tuple:
		return listToOp(v, value)
	case Slice:
		return sliceToOp(v, value)
	case Ellipsis:
		return op.Ellipsis{}, nil
	}
	return v, nil
}

// indexToOp is ToOp for what stands between the brackets of x[…], where a
// tuple means several indices and a list one.
func indexToOp(v any, value func(Ref) (any, error)) (any, error) {
	x, err := ToOp(v, value)
	if err != nil {
		return nil, err
	}
	if _, ok := v.(Tuple); ok {
		return op.Index(x.([]any)), nil
	}
	return op.IndexOf(x), nil
}

func sliceToOp(s Slice, value func(Ref) (any, error)) (any, error) {
	var out op.Slice
	for _, part := range []struct {
		from any
		to   **int
	}{{s.Start, &out.Start}, {s.Stop, &out.Stop}, {s.Step, &out.Step}} {
		v, err := ToOp(part.from, value)
		if err != nil {
			return nil, err
		}
		if v == nil {
			continue
		}
		n, err := op.IntOf(v)
		switch {
		case errors.Is(err, op.ErrNoElements):
			return nil, err
		case err != nil:
			return nil, op.TypeError("slice indices must be integers or None or have an __index__ method, not %s", op.TypeName(v))
		}
		*part.to = &n
	}
	return out, nil
}

func listToOp(vs []any, value func(Ref) (any, error)) (any, error) {
	out := make([]any, len(vs))
	for i, e := range vs {
		x, err := ToOp(e, value)
		if err != nil {
			return nil, err
		}
		out[i] = x
	}
	return out, nil
}

// Resolve binds a call of a program to an operator of the table, by public
// name or, behind OwnPrefix, by id; an attribute such as x.T is an operator
// "Tensor.T" too.
func Resolve(table *op.Table, target string, args []any, kwargs []op.Kwarg) (*op.Call, error) {
	if target == "getattr" && len(args) == 2 {
		return table.Resolve(fmt.Sprintf("Tensor.%v", args[1]), args[:1], nil)
	}
	if id, own := strings.CutPrefix(target, OwnPrefix); own {
		return table.ResolveID(id, args, kwargs)
	}
	return table.Resolve(target, args, kwargs)
}

// indexes reports whether the second argument is an index.
func (c *Call) indexes() bool {
	switch c.Target {
	case "operator.getitem", "operator.setitem", "Tensor.__getitem__", "Tensor.__setitem__", OwnPrefix + "getitem", OwnPrefix + "setitem":
		return true
	}
	return false
}

// OpArgs turns a call's arguments into an operator's; value looks names up.
func (c *Call) OpArgs(value func(Ref) (any, error)) (args []any, kwargs []op.Kwarg, err error) {
	for i, a := range c.Args {
		to := ToOp
		if i == 1 && c.indexes() {
			to = indexToOp
		}
		v, err := to(a, value)
		if err != nil {
			return nil, nil, err
		}
		args = append(args, v)
	}
	for _, kw := range c.Kwargs {
		v, err := ToOp(kw.Value, value)
		if err != nil {
			return nil, nil, err
		}
		kwargs = append(kwargs, op.Kw(kw.Name, v))
	}
	return args, kwargs, nil
}
