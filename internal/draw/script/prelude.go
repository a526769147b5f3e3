package script

import (
	_ "embed"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"

	"go.starlark.net/starlark"

	"plumb/program"
	"plumb/tensor"
)

// What is made of other functions is written as test files are.
var (
	//go:embed prelude/numpy.py
	numpySource []byte
	//go:embed prelude/stdlib.py
	stdlibSource []byte
	//go:embed prelude/torch.py
	torchSource []byte
	//go:embed prelude/init.py
	initSource []byte
	//go:embed prelude/oneflow.py
	oneflowSource []byte
	//go:embed prelude/einops.py
	einopsSource []byte
	//go:embed prelude/npu.py
	npuSource []byte
	//go:embed prelude/distributions.py
	distributionsSource []byte

	numpyPrelude = prelude("numpy.py", numpySource)
	initPrelude  = prelude("init.py", initSource)

	stdlibPrelude  func() starlark.StringDict
	torchPrelude   func() starlark.StringDict
	oneflowPrelude func() starlark.StringDict
	einopsPrelude  func() starlark.StringDict
	npuPrelude     func() starlark.StringDict
	// distributionsPrelude is torch.distributions.
	distributionsPrelude func() starlark.StringDict
	dictBase             func() *class // what a class derives from whose base is dict
)

func init() { // the names of a file are looked up among its own
	stdlibPrelude = prelude("stdlib.py", stdlibSource)
	torchPrelude = prelude("torch.py", torchSource)
	oneflowPrelude = prelude("oneflow.py", oneflowSource)
	einopsPrelude = prelude("einops.py", einopsSource)
	npuPrelude = prelude("npu.py", npuSource)
	distributionsPrelude = prelude("distributions.py", distributionsSource)
	dictBase = func() *class { return stdlibPrelude()["Mapping"].(*class) }
}

// prelude returns what gives the names of a file of ours, read when first asked.
func prelude(name string, src []byte) func() starlark.StringDict {
	return sync.OnceValue(func() starlark.StringDict {
		f := &File{Name: name, src: string(src)}
		names, err := f.run()
		if err != nil {
			panic(err) // a mistake of ours
		}
		for n := range names {
			if strings.HasPrefix(n, "_") {
				delete(names, n)
			}
		}
		return names
	})
}

// arrayPrelude are the functions of numpy.py that arrays have as methods.
var arrayPrelude = map[string]bool{"swapaxes": true, "diagonal": true, "trace": true, "take": true, "repeat": true, "cumprod": true, "ptp": true, "searchsorted": true}

// linearAlgebra are the functions of numpy.py that belong to numpy.linalg.
var linearAlgebra = map[string]bool{"norm": true, "det": true, "inv": true, "solve": true}

// boundTo makes a method of a function of numpy.py; nil for other names.
func (a *array) boundTo(name string) starlark.Value {
	if !arrayPrelude[name] {
		return nil
	}
	fn := numpyPrelude()[name]
	return starlark.NewBuiltin(name, func(t *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
		return starlark.Call(t, fn, append(starlark.Tuple{a}, args...), kwargs)
	})
}

// stdlibPreludes are the modules of which stdlib.py has names.
var stdlibPreludes = []string{"bisect", "collections", "heapq", "io", "itertools", "logging", "operator", "pathlib", "statistics", "tempfile", "types"}

// fromPrelude returns a name of a module that is written in Python; nil for none.
func (l *library) fromPrelude(name string) starlark.Value {
	switch {
	case l == numpy && !linearAlgebra[name]:
		return numpyPrelude()[name]
	case l == numpyLinalg && linearAlgebra[name]:
		return numpyPrelude()[name]
	case slices.Contains(stdlibPreludes, l.name):
		return stdlibPrelude()[name]
	}
	return nil
}

// numpyLinalg is numpy.linalg.
var numpyLinalg = &library{name: "numpy.linalg", names: starlark.StringDict{"LinAlgError": builtin("LinAlgError", func(_ *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
	return &raised{"LinAlgError", a}, nil
})}, lacks: true}

// nonzeroCall is numpy.nonzero.
func nonzeroCall(t *starlark.Thread, a arguments) (starlark.Value, error) {
	x, err := a.array(t, "a")
	if err != nil {
		return nil, err
	}
	var out starlark.Tuple
	for _, where := range nonzero(x) {
		out = append(out, where)
	}
	return out, nil
}

// scipySpecial is scipy.special, as far as tests of operators ask it.
var scipySpecial = &library{name: "scipy.special", names: func() starlark.StringDict {
	names := starlark.StringDict{}
	for name, f := range map[string]func(float64) float64{
		"erf": math.Erf, "erfc": math.Erfc, "erfinv": math.Erfinv, "gamma": math.Gamma, "expm1": math.Expm1, "log1p": math.Log1p,
		"gammaln": func(x float64) float64 { y, _ := math.Lgamma(x); return y }, "expit": func(x float64) float64 { return 1 / (1 + math.Exp(-x)) },
		"logit": func(x float64) float64 { return math.Log(x / (1 - x)) },
	} {
		names[name] = elementFunc(name, f)
	}
	return names
}(), lacks: true}

// isSubclass is issubclass.
func isSubclass(_ *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
	if len(a) != 2 {
		return nil, fmt.Errorf("issubclass takes a class and a class, not %d arguments", len(a))
	}
	bases := []starlark.Value{a[1]}
	if several, ok := a[1].(starlark.Tuple); ok {
		bases = several
	}
	for _, base := range bases {
		name := className(base)
		of, isModule := asPath(a[0]).(path)
		own := []string{className(a[0])}
		if c, ok := a[0].(*class); ok {
			if slices.Contains(c.order, asClass(base)) {
				return starlark.True, nil
			}
			own = exceptionNames(className(c.base))
			of, isModule = asPath(c.base).(path)
		} else if exceptions[own[0]] != "" {
			own = exceptionNames(own[0])
		}
		if slices.Contains(own, name) || isModule && program.IsModule(string(of)) && strings.HasSuffix(name, ".Module") {
			return starlark.True, nil
		}
	}
	return starlark.False, nil
}

func asClass(v starlark.Value) *class {
	c, _ := v.(*class)
	return c
}

// numpyLimits is numpy.finfo and iinfo.
func numpyLimits(p path) func(*starlark.Thread, arguments) (starlark.Value, error) {
	return func(_ *starlark.Thread, a arguments) (starlark.Value, error) {
		d, err := numpyDType(a.values[0])
		if x, ok := a.values[0].(*array); ok {
			d, err = x.t.DType(), nil
		}
		if err != nil {
			return nil, err
		}
		return limits(p, starlark.Tuple{dtype(d)})
	}
}

// pairwise is a function of numpy of two floats, element by element.
func pairwise(f func(x, y float64) float64) func(*starlark.Thread, arguments) (starlark.Value, error) {
	return func(t *starlark.Thread, a arguments) (starlark.Value, error) {
		xs, err := a.arrays(t)
		if err != nil {
			return nil, err
		}
		d := resultType(xs[0], xs[1])
		if !d.IsFloat() {
			d = floatFor(d)
		}
		ts, shape, err := broadcastAll(xs...)
		if err != nil {
			return nil, err
		}
		out := tensor.New(d, shape...)
		for i := range out.Len() {
			out.Set(i, complex(f(ts[0].Float(i), ts[1].Float(i)), 0))
		}
		return (&array{out}).scalar(), nil
	}
}

// isSubtype is numpy.issubdtype.
func isSubtype(_ *starlark.Thread, a arguments) (starlark.Value, error) {
	d, err := numpyDType(a.values[0])
	if err != nil {
		return nil, err
	}
	if kind, ok := a.values[1].(foreign); ok {
		switch kind {
		case "numpy.floating":
			return starlark.Bool(d.IsFloat()), nil
		case "numpy.integer", "numpy.signedinteger":
			return starlark.Bool(d.IsInt()), nil
		case "numpy.complexfloating":
			return starlark.Bool(d.IsComplex()), nil
		case "numpy.inexact":
			return starlark.Bool(d.IsFloat() || d.IsComplex()), nil
		}
		return nil, fmt.Errorf("issubdtype knows floating, integer, inexact and complexfloating, not %s", string(kind))
	}
	other, err := numpyDType(a.values[1])
	return starlark.Bool(d == other), err
}

// inStdlib is a function or class of stdlib.py.
type inStdlib string

func (f inStdlib) String() string        { return string(f) }
func (f inStdlib) Type() string          { return "function" }
func (f inStdlib) Freeze()               {}
func (f inStdlib) Truth() starlark.Bool  { return true }
func (f inStdlib) Hash() (uint32, error) { return hashString(string(f)) }
func (f inStdlib) Name() string          { return string(f) }

// CallInternal calls it. Stdlib.py is read by what has pytest's names, which
// must not depend on it.
func (f inStdlib) CallInternal(t *starlark.Thread, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	return starlark.Call(t, stdlibPrelude()[string(f)], args, kwargs)
}
