package diopi

import (
	"slices"
	"strconv"
	"strings"

	"plumb/internal/conform/config"
	"plumb/internal/draw/choice"
	"plumb/program"
	"plumb/tensor"
)

// tensors makes the inputs, and the arguments that they are.
func (b *build) tensors() error {
	para, _ := b.c.Item.Get("tensor_para").(*config.Dict)
	if para == nil {
		return nil
	}
	if name := para.Get("seq_name"); name != nil && name != config.String("") {
		return b.fail("tensors gathered under seq_name are not supported: want gen_policy gen_tensor_list")
	}
	args, _ := para.Get("args").(config.List)
	for _, v := range args {
		a, ok := v.(*config.Dict)
		if !ok {
			continue
		}
		ins, _ := a.Get("ins").(config.String)
		g := &generator{b: b, a: a, ins: string(ins), key: choice.DeriveName(b.seed, string(ins))}
		arg, err := g.argument()
		if err != nil {
			return err
		}
		b.set(string(ins), arg)
	}
	return nil
}

// generator makes the inputs of one argument.
type generator struct {
	b   *build
	a   *config.Dict
	ins string
	key uint64
}

// argument is the argument that the inputs are: a name, a list of names, or None.
func (g *generator) argument() (any, error) {
	switch policy := g.a.Get("gen_policy"); policy {
	case config.String("gen_tensor_by_value"):
		return g.literal()
	case config.String("gen_tensor_list"):
		n, err := g.count()
		if err != nil {
			return nil, err
		}
		return g.list(slices.Repeat([]config.Value{g.a.Get("shape")}, n))
	case config.String("gen_tensor_list_diff_shape"):
		shapes, ok := config.Items(g.a.Get("shape"))
		if !ok {
			return nil, g.b.fail("%s: want a tuple of shapes, not %s", g.ins, config.Show(g.a.Get("shape")))
		}
		return g.list(shapes)
	}
	if g.a.Get("shape") == (config.None{}) {
		return nil, nil
	}
	return g.input(g.ins, g.a.Get("shape"), g.key)
}

// count is the number of tensors of a list: a random one of gen_num_range, whose
// upper end does not count.
func (g *generator) count() (int, error) {
	ends, _ := config.Items(g.a.Get("gen_num_range"))
	if len(ends) == 2 {
		lo, ok := ends[0].(config.Int)
		hi, also := ends[1].(config.Int)
		if ok && also && lo >= 0 && lo <= hi {
			return int(lo) + int(choice.Derive(g.key, 0)%uint64(max(hi-lo, 1))), nil
		}
	}
	return 0, g.b.fail("%s: want gen_num_range [low, high], not %s", g.ins, config.Show(g.a.Get("gen_num_range")))
}

func (g *generator) list(shapes []config.Value) (any, error) {
	list := program.List{}
	for i, s := range shapes {
		r, err := g.input(g.ins+strconv.Itoa(i), s, choice.Derive(g.key, uint64(i)+1))
		if err != nil {
			return nil, err
		}
		list = append(list, r)
	}
	return list, nil
}

// input adds a tensor of generated elements.
func (g *generator) input(name string, shape config.Value, key uint64) (any, error) {
	in := program.Input{Name: g.unused(name)}
	var err error
	if in.Shape, err = g.shape(shape); err != nil {
		return nil, err
	}
	if in.DType, err = g.b.dtype(g.a.Get("dtype")); err != nil {
		return nil, err
	}
	if in.Fill, err = g.fill(in.DType); err != nil {
		return nil, err
	}
	if n := len(in.Shape); in.Fill.Dist == program.Gram {
		if n < 2 {
			return nil, g.b.fail("%s: sym_mat needs matrices, not %v", g.ins, in.Shape)
		}
		in.Fill.Hi = float64(in.Shape[n-1])
		in.Shape[n-1] = in.Shape[n-2]
	}
	if in.Fill.Dist != program.Constant {
		in.Fill.Key = key
	}
	g.layOut(&in)
	return g.add(in)
}

func (g *generator) add(in program.Input) (any, error) {
	g.modes(&in)
	in.RequiresGrad = isTrueList(g.a.Get("requires_grad"))
	if in.RequiresGrad && !in.DType.IsDifferentiable() {
		return nil, g.b.fail("%s of %s cannot require a gradient", g.ins, in.DType)
	}
	g.b.p.Inputs = append(g.b.p.Inputs, in)
	if g.b.sparse && isTrueList(g.a.Get("sparse")) {
		return g.b.call("Tensor.to_sparse_csr", program.Ref(in.Name)), nil
	}
	return program.Ref(in.Name), nil
}

// modes gives the input the layout and the dtype that the modes of a run ask for.
func (g *generator) modes(in *program.Input) {
	if order := g.b.c.Order(g.ins); order != nil && len(order) == len(in.Shape) {
		in.Strides = tensor.PermutedStrides(in.Shape, order)
	}
	if !g.b.c.Narrow(g.ins) || in.DType != tensor.I64 {
		return
	}
	in.DType = tensor.I32
	if in.Fill.Data != nil {
		in.Fill.Data = in.Fill.Data.Convert(tensor.I32)
	}
}

// taken are words that cannot name an input of a program.
var taken = []string{"torch", "operator", "tensor", "case", "slice", "float", "complex", "lambda", "in", "is", "from", "import", "with", "None", "True", "False",
	string(program.Uniform), string(program.Integer), string(program.Normal), string(program.Folded), string(program.Gram), string(program.Constant), "getattr", "setattr", Result}

// unused is a name for an input: the argument's, with underscores where it is
// another thing's.
func (g *generator) unused(name string) string {
	for slices.Contains(taken, name) {
		name += "_"
	}
	return g.b.p.Unused(name)
}

// shape is a shape; an integer is the size of the only dimension.
func (g *generator) shape(v config.Value) ([]int, error) {
	if n, ok := v.(config.Int); ok {
		v = config.Tuple{n}
	}
	sizes, ok := config.Items(v)
	shape := make([]int, len(sizes))
	for i, s := range sizes {
		n, isInt := s.(config.Int)
		ok = ok && isInt
		shape[i] = int(n)
	}
	if !ok {
		return nil, g.b.fail("%s: want a shape, not %s", g.ins, config.Show(v))
	}
	return shape, nil
}

// layOut gives the input the strides that the config tells, or reverses the
// axes of a contiguous tensor where it is to be not contiguous.
func (g *generator) layOut(in *program.Input) {
	if stride, ok := config.Items(g.a.Get(g.ins + "stride")); ok {
		in.Strides = make([]int, len(stride))
		for i, s := range stride {
			n, _ := s.(config.Int)
			in.Strides[i] = int(n)
		}
	}
	if isTrue(g.a.Get("no_contiguous")) && len(in.Shape) > 1 {
		if in.Strides == nil {
			in.Strides = tensor.ContiguousStrides(in.Shape)
		}
		in.Shape, in.Strides = reversed(in.Shape), reversed(in.Strides)
	}
}

func reversed(xs []int) []int {
	out := slices.Clone(xs)
	slices.Reverse(out)
	return out
}

// isTrue is Python's truth of a value.
func isTrue(v config.Value) bool {
	switch v := v.(type) {
	case nil, config.None:
		return false
	case config.Bool:
		return bool(v)
	case config.Int:
		return v != 0
	case config.Float:
		return v != 0
	case config.String:
		return v != ""
	case config.List:
		return len(v) > 0
	case config.Tuple:
		return len(v) > 0
	}
	return true
}

// isTrueList reports whether v is [True].
func isTrueList(v config.Value) bool {
	list, ok := v.(config.List)
	return ok && len(list) == 1 && list[0] == config.Bool(true)
}

// fill describes what a generator draws in a dtype.
func (g *generator) fill(d tensor.DType) (program.Fill, error) {
	name, lo, hi, density, err := g.named()
	if err != nil {
		return program.Fill{}, err
	}
	normal := program.Fill{Dist: program.Normal, Hi: 1, Real: d.IsComplex()}
	var f program.Fill
	switch name {
	case "rand":
		f = program.Fill{Dist: program.Uniform, Hi: 1, Real: d.IsComplex()}
	case "randn":
		f = normal
	case "uniform":
		f = program.Fill{Dist: program.Uniform, Lo: lo, Hi: hi, Real: d.IsComplex()}
	case "empty":
		f = program.Fill{Dist: program.Constant, Lo: unset}
	case "ones":
		f = program.Fill{Dist: program.Constant, Lo: 1}
	case "zeros":
		f = program.Fill{Dist: program.Constant}
	case "mask":
		f = program.Fill{Dist: program.Integer, Hi: 2}
	case "randint":
		f = integers(d, lo, hi)
	case "positive":
		f = program.Fill{Dist: program.Folded, Hi: 1, Real: d.IsComplex()}
	case "sym_mat":
		f = program.Fill{Dist: program.Gram, Lo: 1e-3}
	case "randn_int":
		if f = normal; d == tensor.I32 {
			f = integers(d, lo, hi)
		}
	case "randn_complx":
		f = program.Fill{Dist: program.Normal, Hi: 1}
	default:
		return f, g.b.fail("%s: the generator %s is not supported", g.ins, name)
	}
	if err := g.edges(&f); err != nil {
		return f, err
	}
	if f.Density = density; density > 0 && f.Dist == program.Gram {
		return f, g.b.fail("%s: the generator %s_sparse is not supported", g.ins, name)
	}
	return f, nil
}

// edges mixes the kinks and edge values that the generator names among the elements.
func (g *generator) edges(f *program.Fill) error {
	d, ok := g.a.Get("gen_fn").(*config.Dict)
	if !ok {
		return nil
	}
	f.Kinks, f.Scales = isTrue(d.Get("kinks")), isTrue(d.Get("scales"))
	kinds, _ := config.Items(d.Get("special"))
	for _, v := range kinds {
		name, _ := v.(config.String)
		kind, err := program.ParseSpecial(string(name))
		if err != nil {
			return g.b.fail("%s: %v", g.ins, err)
		}
		f.Special |= kind
	}
	if f.Scales && (f.Dist != program.Uniform || !(f.Lo < f.Hi)) {
		return g.b.fail("%s: scales are for uniform elements of a range", g.ins)
	}
	if (f.Kinks || f.Special != 0) && f.Dist != program.Uniform && f.Dist != program.Integer {
		return g.b.fail("%s: kinks and special are for uniform and randint", g.ins)
	}
	return nil
}

// unset is what Genfunc.empty gives: a number that shows where it is read.
const unset = -77

// integers is randint, whose lower end is 0 for uint8 whatever the config says.
func integers(d tensor.DType, lo, hi float64) program.Fill {
	if d == tensor.U8 {
		lo = 0
	}
	return program.Fill{Dist: program.Integer, Lo: lo, Hi: hi}
}

// named is the generator's name and its parameters; a density of 0 means all.
func (g *generator) named() (name string, lo, hi, density float64, err error) {
	hi = 10
	sparse := 0.2
	switch v := g.a.Get("gen_fn").(type) {
	case config.String:
		name = string(v)
	case *config.Dict:
		fn, _ := v.Get("fn").(config.String)
		name = string(fn)
		for key, to := range map[string]*float64{"low": &lo, "high": &hi, "density": &sparse} {
			if n, ok := config.Number(v.Get(key)); ok {
				*to = n
			}
		}
	default:
		return "", 0, 0, 0, g.b.fail("%s: want a generator, not %s", g.ins, config.Show(g.a.Get("gen_fn")))
	}
	name = strings.TrimPrefix(name, "Genfunc.")
	if base, ok := strings.CutSuffix(name, "_sparse"); ok || isTrueList(g.a.Get("sparse")) {
		name, density = base, sparse
	}
	return name, lo, hi, density, nil
}

// literal adds a tensor of the elements that the config tells.
func (g *generator) literal() (any, error) {
	v := g.a.Get("value")
	if v == nil || v == (config.None{}) {
		return nil, nil
	}
	d, err := g.b.dtype(g.a.Get("dtype"))
	if err != nil {
		return nil, err
	}
	var flat []config.Value
	shape, ok := nested(v, &flat)
	if !ok {
		return nil, g.b.fail("%s: %s is no array", g.ins, config.Show(v))
	}
	t := tensor.New(d, shape...)
	for i, x := range flat {
		switch x := x.(type) {
		case config.Int:
			t.SetInt(i, int64(x))
		case config.Bool:
			if x {
				t.SetInt(i, 1)
			}
		case config.Float:
			t.Set(i, complex(float64(x), 0))
		default:
			return nil, g.b.fail("%s: %s is no number", g.ins, config.Show(x))
		}
	}
	in := program.Input{Name: g.unused(g.ins), DType: d, Shape: shape, Fill: program.Fill{Dist: program.Literal, Data: t}}
	return g.add(in)
}

// nested is the shape of nested lists of equal lengths, whose elements it
// appends to flat.
func nested(v config.Value, flat *[]config.Value) (shape []int, ok bool) {
	list, isList := config.Items(v)
	if !isList {
		*flat = append(*flat, v)
		return []int{}, true
	}
	var inner []int
	for i, x := range list {
		s, ok := nested(x, flat)
		if !ok || i > 0 && !slices.Equal(s, inner) {
			return nil, false
		}
		inner = s
	}
	return append([]int{len(list)}, inner...), true
}
