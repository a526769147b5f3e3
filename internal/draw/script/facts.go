package script

import (
	"slices"
	"strings"

	"go.starlark.net/starlark"

	"plumb/tensor"
)

// initializing calls a function of torch.nn.init; nil for any other.
func (p path) initializing(t *starlark.Thread, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	name, ok := strings.CutPrefix(string(p), "torch.nn.init.")
	if !ok || strings.HasPrefix(name, "_") {
		return nil, nil
	}
	if f := initPrelude()[name]; f != nil {
		return starlark.Call(t, f, args, kwargs)
	}
	return nil, nil
}

// dtypeFact answers what torch says of dtypes, or of the dtypes of tensors and
// numbers; nil for any other function, and for arguments that PyTorch refuses.
func (p path) dtypeFact(args starlark.Tuple) (starlark.Value, error) {
	switch p {
	case "torch.numel", "torch.is_floating_point", "torch.is_complex":
		if s, err := symbolOf(args, 1); s != nil || err != nil {
			_, v, err := s.observed(strings.TrimPrefix(string(p), "torch."), nil, nil)
			return v, err
		}
	case "torch.promote_types", "torch.can_cast":
		if len(args) != 2 {
			return nil, nil
		}
		a, isType := args[0].(dtype)
		b, areTypes := args[1].(dtype)
		switch {
		case !isType || !areTypes:
		case p == "torch.can_cast":
			return starlark.Bool(canCast(tensor.DType(a), tensor.DType(b))), nil
		default:
			return dtype(tensor.Promote(tensor.DType(a), tensor.DType(b))), nil
		}
	case "torch.result_type":
		return resultTypeOf(args)
	}
	return nil, nil
}

// symbolOf returns the first of n arguments if it is a value of the program, else nil.
func symbolOf(args starlark.Tuple, n int) (*symbol, error) {
	if len(args) != n {
		return nil, nil
	}
	switch v := args[0].(type) {
	case *symbol:
		return v, nil
	case *attr:
		return v.resolve()
	}
	return nil, nil
}

// canCast is torch.can_cast: whether values of a dtype convert to another by
// PyTorch's rules of type promotion.
func canCast(from, to tensor.DType) bool {
	switch {
	case from.IsComplex() && !to.IsComplex():
		return false
	case from.IsFloat() && (to.IsInt() || to == tensor.Bool):
		return false
	}
	return from == tensor.Bool || to != tensor.Bool
}

// resultTypeOf is torch.result_type of two tensors or numbers.
func resultTypeOf(args starlark.Tuple) (starlark.Value, error) {
	if len(args) != 2 {
		return nil, nil
	}
	var ranks [3]tensor.DType // with dimensions, 0-d, numbers
	for i := range args {
		d, rank := tensor.Invalid, 2
		switch s, err := symbolOf(args[i:i+1], 1); {
		case err != nil:
			return nil, err
		case s != nil:
			t, err := s.tensor()
			if t == nil || err != nil {
				return nil, err
			}
			if d, rank = t.DType(), 0; t.Dim() == 0 {
				rank = 1
			}
		default:
			if d = numberType(args[i]); d == tensor.Invalid {
				return nil, nil
			}
		}
		ranks[rank] = tensor.Promote(ranks[rank], d)
	}
	return dtype(tensor.PromoteWrapped(ranks[0], ranks[1], ranks[2])), nil
}

// numberType is the dtype of a number in type promotion; Invalid for what is no number.
func numberType(v starlark.Value) tensor.DType {
	switch v.(type) {
	case starlark.Bool:
		return tensor.Bool
	case starlark.Int:
		return tensor.I64
	case starlark.Float:
		return tensor.F32
	case complexNumber:
		return tensor.C64
	}
	return tensor.Invalid
}

// typedConstructors are the classes of tensors that older files call, and their dtypes.
var typedConstructors = map[path]tensor.DType{
	"torch.Tensor": tensor.F32, "torch.FloatTensor": tensor.F32, "torch.DoubleTensor": tensor.F64, "torch.HalfTensor": tensor.F16, "torch.BFloat16Tensor": tensor.BF16,
	"torch.LongTensor": tensor.I64, "torch.IntTensor": tensor.I32, "torch.ShortTensor": tensor.I16, "torch.CharTensor": tensor.I8, "torch.ByteTensor": tensor.U8, "torch.BoolTensor": tensor.Bool,
}

// constructing makes torch.LongTensor([…]) a call of torch.tensor with its
// dtype, and torch.LongTensor(2, 3) one of torch.empty; nil for other arguments.
func (p path) constructing(t *starlark.Thread, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	d, ok := typedConstructors[p]
	if !ok || len(kwargs) > 0 {
		return nil, nil
	}
	if sizes := !slices.ContainsFunc(args, func(v starlark.Value) bool { return numberType(v) != tensor.I64 }); sizes {
		if len(args) == 0 {
			args = starlark.Tuple{starlark.MakeInt(0)}
		}
		return path("torch.empty").CallInternal(t, args, ofType(d))
	}
	if _, isList := args[0].(*starlark.List); !isList || len(args) != 1 {
		return nil, nil
	}
	return path("torch.tensor").CallInternal(t, args, ofType(d))
}

func ofType(d tensor.DType) []starlark.Tuple {
	return []starlark.Tuple{{starlark.String("dtype"), dtype(d)}}
}

// retyped answers methods that are others by a dtype: x.type(d) is x.to(d), and
// x.new_tensor(data) is torch.tensor of x's dtype; nil for the rest.
func (d *draw) retyped(s *symbol, name string, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	if len(args) != 1 {
		return nil, nil
	}
	if name == "new_tensor" {
		return d.newTensor(s, args, kwargs)
	}
	if len(kwargs) > 0 {
		return nil, nil
	}
	switch name {
	case "to":
		if args[0] == starlark.Value(path("torch.Tensor")) { // of what a graph holds, in OneFlow
			return s, nil
		}
	case "type":
		if into, ok := args[0].(dtype); ok {
			return d.method(s, "to", starlark.Tuple{into}, nil)
		}
	}
	return nil, nil
}

// newTensor is x.new_tensor(data), which lies as x does.
func (d *draw) newTensor(s *symbol, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	t, err := s.tensor()
	if t == nil || err != nil {
		return nil, err
	}
	said := func(name string) bool {
		return slices.ContainsFunc(kwargs, func(kw starlark.Tuple) bool { return kw[0] == starlark.Value(starlark.String(name)) })
	}
	if !said("dtype") {
		kwargs = append(slices.Clip(kwargs), ofType(t.DType())...)
	}
	if s.spread != nil && !said("placement") && !said("device") {
		all, err := s.signature()
		if err != nil {
			return nil, err
		}
		kwargs = append(kwargs, starlark.Tuple{starlark.String("placement"), s.spread.placement}, starlark.Tuple{starlark.String("sbp"), all})
	}
	return path("torch.tensor").CallInternal(d.thread, args, kwargs)
}
