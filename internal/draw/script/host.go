package script

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"go.starlark.net/starlark"

	"plumb/op"
	"plumb/ops"
	"plumb/program"
	"plumb/tensor"
)

// oneflowOnly are the names of OneFlow that PyTorch has no counterpart of.
var oneflowOnly = map[string]bool{
	"unittest": true, "placement": true, "sbp": true, "comm": true, "_oneflow_internal": true, "framework": true, "test_utils": true,
	"boxing": true, "utils": true, "mock_torch": true, "one_embedding": true, "global_view": true, "cuda": false, "io": true, "remat": true, "asyncs": true, "autoprof": true,
	"to_global": true, "to_local": true, "new_ones": true, "ParameterServer": true, "profiler": true, "distributed": true, "data": true, "graph": true, "hub": true,
}

// functionals are functions that OneFlow has beside its operators, PyTorch in
// torch.nn.functional alone.
var functionals = map[string]bool{
	"affine_grid": true, "elu": true, "fold": true, "gelu": true, "glu": true, "grid_sample": true, "hardshrink": true, "hardsigmoid": true, "hardswish": true,
	"hardtanh": true, "interpolate": true, "leaky_relu": true, "linear": true, "log_sigmoid": true, "logsigmoid": true, "mish": true, "normalize": true, "one_hot": true,
	"pad": true, "silu": true, "softplus": true, "softshrink": true, "softsign": true, "unfold": true,
}

// oneflow maps a name of OneFlow's to torch's: a test's calls run on every
// framework. What has no counterpart stays foreign.
func oneflow(name string) starlark.Value {
	if name == "" {
		return flow{}
	}
	first, _, _ := strings.Cut(name, ".")
	if v, ok := globalNames[name]; ok {
		return v
	}
	if v := ofOneFlow(name); v != nil {
		return v
	}
	if name == "_C" {
		return functionsInC{}
	}
	if oneflowOnly[first] {
		return foreign("oneflow." + name)
	}
	if v, ok := torchConstants[name]; ok {
		return v
	}
	if functionals[name] {
		return path("torch.nn.functional." + strings.Replace(name, "log_sigmoid", "logsigmoid", 1))
	}
	if name == "nn" {
		return flowModules{"torch.nn"}
	}
	return path("torch." + name)
}

// ofOneFlow is a function that OneFlow has beside PyTorch's; nil for other names.
func ofOneFlow(name string) starlark.Value {
	if v := oneflowPrelude()["of_"+strings.ReplaceAll(name, ".", "_")]; v != nil {
		return v
	}
	return nil
}

// functionsInC is the module oneflow._C, whose functions are those of torch and of
// torch.nn.functional.
type functionsInC struct{ flow }

func (functionsInC) String() string { return "oneflow._C" }

// Attr returns the counterpart of a function.
func (functionsInC) Attr(name string) (starlark.Value, error) {
	if v := ofOneFlow("_C." + name); v != nil {
		return v, nil
	}
	functional := "torch.nn.functional." + name
	if len(ops.Table().Lookup("torch."+name)) == 0 && len(ops.Table().Lookup(functional)) > 0 {
		return path(functional), nil
	}
	return oneflow(name), nil
}

// flow is the module oneflow.
type flow struct{}

func (flow) String() string        { return "oneflow" }
func (flow) Type() string          { return "module" }
func (flow) Freeze()               {}
func (flow) Truth() starlark.Bool  { return true }
func (flow) Hash() (uint32, error) { return hashString("oneflow") }
func (flow) AttrNames() []string   { return nil }

// Attr returns the counterpart of a name.
func (flow) Attr(name string) (starlark.Value, error) { return oneflow(name), nil }

// defaultVersion is torch.__version__ when nobody said another.
const defaultVersion = "1.13.1"

func init() {
	torchConstants["__version__"] = starlark.String(defaultVersion)
}

// torchVersion is the reference's while a test is drawn.
func torchVersion(t *starlark.Thread) starlark.String {
	if d, ok := t.Local(drawKey).(*draw); ok && d.env.Version != nil {
		if v := d.env.Version(); v != "" {
			return starlark.String(v)
		}
	}
	return defaultVersion
}

// ignoredPaths are calls of torch without effect on a program.
var ignoredPaths = map[path]bool{
	"torch.set_printoptions": true, "torch.seed": true, "torch.set_num_threads": true, "torch.use_deterministic_algorithms": true, "torch.set_float32_matmul_precision": true,
}

// onHost answers calls of torch that compute nothing on a device; nil for the rest.
func (p path) onHost(t *starlark.Thread, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	if ignoredPaths[p] {
		return starlark.None, nil
	}
	if v := p.ofDevice(t); v != nil {
		return v, nil
	}
	for _, answer := range []func() (starlark.Value, error){
		func() (starlark.Value, error) { return p.unbound(t, args, kwargs) },
		func() (starlark.Value, error) { return p.ofModule(t, args, kwargs) },
		func() (starlark.Value, error) { return p.hosted(t, args) },
		func() (starlark.Value, error) { return p.optimizing(t, args, kwargs) },
		func() (starlark.Value, error) { return p.fromTorchPrelude(t, args, kwargs) },
		func() (starlark.Value, error) { return p.initializing(t, args, kwargs) },
		func() (starlark.Value, error) { return p.constructing(t, args, kwargs) },
		func() (starlark.Value, error) { return p.dtypeFact(args) },
		func() (starlark.Value, error) { return p.byName(t, args, kwargs) },
		func() (starlark.Value, error) { return p.compiling(args) },
	} {
		if v, err := answer(); v != nil || err != nil {
			return v, err
		}
	}
	if strings.HasPrefix(string(p), "torch.jit.") || strings.HasPrefix(string(p), "torch.distributed.") || strings.HasPrefix(string(p), "torch.utils.") && !strings.HasPrefix(string(p), "torch.utils.dlpack") || strings.HasPrefix(string(p), "torch.optim.") {
		return nil, lack("%s is not supported in test files", p)
	}
	return nil, nil
}

// byName answers single calls of torch; nil for others.
func (p path) byName(t *starlark.Thread, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	if f, ok := derivatives[p]; ok {
		return f.derive(t, p, args, kwargs)
	}
	if program.IsScope(string(p)) {
		return newScope(t, string(p), args, kwargs)
	}
	switch p {
	case "torch.inference_mode":
		return newScope(t, "torch.no_grad", nil, nil)
	case "torch.autograd.set_grad_enabled":
		return newScope(t, "torch.set_grad_enabled", args, kwargs)
	case "torch.manual_seed", "torch.random.manual_seed":
		return starlark.None, reseed(t, args)
	case "torch.get_rng_state", "torch.random.get_rng_state":
		return saveStream(t)
	case "torch.set_rng_state", "torch.random.set_rng_state":
		return restoreStream(t, args)
	case "torch.random.fork_rng":
		return forkStream(), nil
	case "torch.device":
		return deviceOf(t, args, kwargs)
	case "torch.Size":
		if len(args) == 0 {
			return starlark.Tuple{}, nil
		}
		vs, err := iterate(t, args[0])
		return starlark.Tuple(vs), err
	case "torch.get_num_threads":
		return starlark.MakeInt(1), nil
	case "torch.testing.assert_close":
		return assertTensorsClose(t, args, kwargs)
	case "torch.is_tensor":
		return isInstance(t, append(args[:len(args):len(args)], path("torch.Tensor")))
	case "torch._assert":
		return assert(t, args)
	case "torch.broadcast_shapes":
		return broadcastShapes(args)
	case "torch.get_default_dtype":
		return defaultDType(t), nil
	case "torch.set_default_dtype":
		return p.setDefault(t, args)
	case "torch.finfo", "torch.iinfo":
		return limits(p, args)
	case "torch.tensor", "torch.as_tensor", "torch.from_numpy", "torch.Tensor", "torch.FloatTensor", "torch.asarray":
		return p.fromArray(t, args, kwargs)
	case "torch.Generator":
		return &randomGenerator{}, nil
	case "torch.save", "torch.load":
		return p.saving(t, args, kwargs)
	case "torch.jit.is_scripting", "torch.jit.is_tracing":
		return starlark.False, nil
	case "torch.is_grad_enabled":
		d, err := drawOf(t, string(p))
		if err != nil {
			return nil, err
		}
		return starlark.Bool(d.inBackward == 0 && (&program.Call{Scopes: d.current()}).Grad()), nil
	case "torch.set_default_tensor_type", "torch.set_default_device", "torch.autograd.graph.saved_tensors_hooks":
		return nil, lack("%s is not supported in test files", p)
	}
	return nil, nil
}

// reseed is torch.manual_seed: the next call that may draw from the subjects'
// random streams is recorded behind it.
func reseed(t *starlark.Thread, args starlark.Tuple) error {
	d, drawing := t.Local(drawKey).(*draw)
	if !drawing || len(args) != 1 {
		return nil
	}
	v, err := settled(args[0])
	if n, ok := v.(starlark.Int); ok && err == nil {
		if seed, fits := n.Int64(); fits {
			d.seeded(seed)
		}
	}
	return err
}

// stream is a state of the subjects' random streams: that behind a seed.
type stream int64

func (stream) String() string        { return "random state" }
func (stream) Type() string          { return "Tensor" }
func (stream) Freeze()               {}
func (stream) Truth() starlark.Bool  { return true }
func (stream) Hash() (uint32, error) { return 0, fmt.Errorf("unhashable: a random state") }

// savedSeeds is where the seeds begin with which draws go on whose state is saved.
const savedSeeds = 1 << 40

// saveStream is torch.get_rng_state: where no seed says how the draws go on, one does then.
func saveStream(t *starlark.Thread) (starlark.Value, error) {
	d, err := drawOf(t, "torch.get_rng_state")
	if err != nil {
		return nil, err
	}
	if d.seed == nil || d.data.drawn > 0 {
		d.seeded(savedSeeds + int64(len(d.prog.Calls)+len(d.prog.Inputs)))
	}
	return stream(*d.seed), nil
}

// restoreStream is torch.set_rng_state.
func restoreStream(t *starlark.Thread, args starlark.Tuple) (starlark.Value, error) {
	d, err := drawOf(t, "torch.set_rng_state")
	if err != nil {
		return nil, err
	}
	if len(args) != 1 {
		return nil, fmt.Errorf("torch.set_rng_state takes a state")
	}
	s, ok := args[0].(stream)
	if !ok {
		return nil, lack("torch.set_rng_state of what get_rng_state has not given is not supported in test files")
	}
	d.seeded(int64(s))
	return starlark.None, nil
}

// forkStream is torch.random.fork_rng.
func forkStream() *manager {
	var before starlark.Value
	return &manager{
		enter: func(t *starlark.Thread) (_ starlark.Value, err error) {
			before, err = saveStream(t)
			return starlark.None, err
		},
		exit: func(t *starlark.Thread) (starlark.Value, error) { return restoreStream(t, starlark.Tuple{before}) },
	}
}

// randomGenerator is a torch.Generator: what it is seeded with seeds the draws of the
// next call that takes it.
type randomGenerator struct {
	seed    int64
	pending bool
}

func (g *randomGenerator) String() string        { return "torch.Generator" }
func (g *randomGenerator) Type() string          { return "torch.Generator" }
func (g *randomGenerator) Freeze()               {}
func (g *randomGenerator) Truth() starlark.Bool  { return true }
func (g *randomGenerator) Hash() (uint32, error) { return hashString("torch.Generator") }
func (g *randomGenerator) AttrNames() []string   { return []string{"manual_seed", "initial_seed"} }

// Attr returns a method.
func (g *randomGenerator) Attr(name string) (starlark.Value, error) {
	switch name {
	case "manual_seed":
		return method(name, func(args starlark.Tuple) (starlark.Value, error) {
			if len(args) != 1 {
				return nil, fmt.Errorf("manual_seed takes a seed")
			}
			v, err := settled(args[0])
			if n, ok := v.(starlark.Int); ok && err == nil {
				g.seed, g.pending = n.Int64()
			}
			return g, err
		}), nil
	case "initial_seed":
		return method(name, func(starlark.Tuple) (starlark.Value, error) { return starlark.MakeInt64(g.seed), nil }), nil
	}
	return nil, nil
}

// drawnBy takes a generator from the arguments of a call, and seeds its draws.
func (d *draw) drawnBy(kwargs []starlark.Tuple) []starlark.Tuple {
	i := slices.IndexFunc(kwargs, func(kw starlark.Tuple) bool { _, ok := kw[1].(*randomGenerator); return ok })
	if i < 0 {
		return kwargs
	}
	if g := kwargs[i][1].(*randomGenerator); g.pending {
		d.seeded(g.seed)
		g.pending = false
	}
	return slices.Delete(slices.Clone(kwargs), i, i+1)
}

// draws reports whether a call may draw from the subjects' random streams.
func draws(target string) bool {
	return target == "Module.__call__" || target == "Module.forward" ||
		slices.ContainsFunc(ops.Table().Lookup(target), func(d *op.Def) bool { return d.Traits.Has(op.Random) && !d.Traits.Has(op.Undefined) })
}

// deviceOf is torch.device: a string such as "cuda:1".
func deviceOf(t *starlark.Thread, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	a := arguments{"torch.device", []string{"type", "index"}, []starlark.Value{nil, starlark.None}}
	if err := a.rebind(args, kwargs); err != nil {
		return nil, err
	}
	name, ok := starlark.AsString(a.values[0])
	if !ok { // a generator, or a device already
		return a.values[0], nil
	}
	if a.values[1] != starlark.None {
		name += ":" + str(a.values[1])
	}
	if d, ok := t.Local(drawKey).(*draw); ok {
		var err error
		if name, err = d.placed(name); err != nil {
			return nil, err
		}
	}
	return starlark.String(name), nil
}

// broadcastShapes is torch.broadcast_shapes; nil for what PyTorch refuses.
func broadcastShapes(args starlark.Tuple) (starlark.Value, error) {
	shape := []int{}
	for _, a := range args {
		d, err := dims(a)
		if err != nil {
			return nil, nil
		}
		if shape, err = tensor.BroadcastShapes(shape, d); err != nil {
			return nil, nil
		}
	}
	return intTuple(shape), nil
}

// asTensor is torch.as_tensor of a tensor: itself, or converted.
func (s *symbol) asTensor(t *starlark.Thread, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	given := arguments{"as_tensor", []string{"data", "dtype", "device", "copy"}, make([]starlark.Value, 4)}
	if err := given.bind(args, kwargs); err != nil {
		return nil, err
	}
	var out starlark.Value = s
	var err error
	if into := given.get("dtype"); into != nil && into != starlark.None {
		out, err = s.d.method(s, "to", starlark.Tuple{into}, nil)
	}
	if v := given.get("copy"); err == nil && v != nil && bool(v.Truth()) {
		return s.d.apply("Tensor.clone", out)
	}
	return out, err
}

// fromArray makes a numpy array a literal input; nil for other arguments.
func (p path) fromArray(t *starlark.Thread, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	if len(args) == 0 {
		return nil, nil
	}
	as := p == "torch.as_tensor" || p == "torch.asarray"
	if x, ok := args[0].(*symbol); ok && as {
		return x.asTensor(t, args, kwargs)
	}
	if !holdsArray(args[0], 0) {
		if _, listed := sequence(args[0]); as && (listed || isNumber(args[0])) {
			return path("torch.tensor").CallInternal(t, args, kwargs)
		}
		return nil, nil
	}
	d, err := drawOf(t, string(p))
	if err != nil {
		return nil, err
	}
	given := arguments{string(p), []string{"data", "dtype", "device", "requires_grad"}, make([]starlark.Value, 4)}
	if err := given.bind(args, kwargs); err != nil {
		return nil, err
	}
	a, err := toArray(t, args[0], tensor.Invalid)
	if err != nil {
		return nil, err
	}
	into := a.t.DType()
	if v, ok := given.get("dtype").(dtype); ok {
		into = tensor.DType(v)
	}
	if p == "torch.Tensor" || p == "torch.FloatTensor" {
		into = tensor.F32
	}
	s := d.literal(&array{a.t.Convert(into)})
	if v := given.get("requires_grad"); v != nil && bool(v.Truth()) {
		d.prog.Inputs[len(d.prog.Inputs)-1].RequiresGrad = true
	}
	return s, nil
}

// holdsArray reports whether a value is an array, or a list that holds one.
func holdsArray(v starlark.Value, depth int) bool {
	if _, ok := v.(*array); ok {
		return true
	}
	vs, ok := sequence(v)
	if !ok || depth > maxDepth {
		return false
	}
	for _, e := range vs {
		if holdsArray(e, depth+1) {
			return true
		}
	}
	return false
}

// limits is finfo and iinfo.
func limits(p path, args starlark.Tuple) (starlark.Value, error) {
	d := dtype(tensor.F32)
	if len(args) == 1 {
		given, ok := args[0].(dtype)
		if !ok {
			return nil, fmt.Errorf("%s takes a dtype, not %s", p, args[0].Type())
		}
		d = given
	}
	names := starlark.StringDict{"dtype": starlark.String(tensor.DType(d).String()), "bits": starlark.MakeInt(8 * tensor.DType(d).Size())}
	if p == "torch.iinfo" {
		if !tensor.DType(d).IsInt() {
			return nil, fmt.Errorf("torch.iinfo() requires an integer dtype, not %s", d)
		}
		lo, hi := int64(0), int64(math.MaxUint8)
		if tensor.DType(d) != tensor.U8 {
			hi = math.MaxInt64 >> (64 - 8*tensor.DType(d).Size())
			lo = -hi - 1
		}
		names["min"], names["max"] = starlark.MakeInt64(lo), starlark.MakeInt64(hi)
		return &library{name: string(p), names: names}, nil
	}
	f, ok := floatLimits[tensor.DType(d).Real()]
	if !ok {
		return nil, fmt.Errorf("torch.finfo() requires a floating point dtype, not %s", d)
	}
	for i, name := range []string{"eps", "max", "tiny"} {
		names[name] = starlark.Float(f[i])
	}
	names["min"], names["smallest_normal"] = starlark.Float(-f[1]), starlark.Float(f[2])
	return &library{name: string(p), names: names}, nil
}

// floatLimits are eps, the largest value and the smallest normal one.
var floatLimits = map[tensor.DType][3]float64{
	tensor.F16: {0x1p-10, 65504, 0x1p-14}, tensor.BF16: {0x1p-7, 0x1.fep127, 0x1p-126},
	tensor.F32: {0x1p-23, math.MaxFloat32, 0x1p-126}, tensor.F64: {0x1p-52, math.MaxFloat64, 0x1p-1022},
}

// compiled are the functions that give a function or module back to be run in
// another way: how it is run is the candidate's mode.
var compiled = []path{"torch.compile", "torch.jit.script", "torch.jit.trace", "torch.jit.ignore", "torch.jit.unused", "torch.jit.export", "torch.autograd.function.once_differentiable"}

// compiling is a call of one of them; without a function it gives a decorator.
func (p path) compiling(args starlark.Tuple) (starlark.Value, error) {
	if !slices.Contains(compiled, p) {
		return nil, nil
	}
	if len(args) == 0 {
		return unchanged, nil
	}
	if _, callable := args[0].(starlark.Callable); !callable {
		return nil, lack("%s of %s is not supported in test files", p, article(args[0].Type()))
	}
	return args[0], nil
}

// unchanged is the decorator that changes nothing.
var unchanged = ofOne("compile", func(_ *starlark.Thread, f starlark.Value) (starlark.Value, error) { return f, nil })
