package truth

import (
	"go/ast"
	"go/parser"
	"go/token"
	"testing"
)

// functions are the functions of this package by the names in testdata.
var functions = map[string]Func{
	"add": Add.Fixed(2, 1), "sub": Sub.Fixed(2, 1), "constant": Constant(3),
	"exp": Exp, "exp2": Exp2, "expm1": Expm1, "log": Log, "log2": Log2, "log10": Log10, "log1p": Log1p,
	"sqrt": Sqrt, "rsqrt": Rsqrt, "reciprocal": Reciprocal, "square": Square, "pow": Pow, "sin": Sin, "cos": Cos,
	"tan": Tan, "asin": Asin, "acos": Acos, "atan": Atan, "atan2": Atan2, "sinh": Sinh, "cosh": Cosh,
	"tanh": Tanh, "asinh": Asinh, "acosh": Acosh, "atanh": Atanh, "sinc": Sinc, "hypot": Hypot,
	"rad2deg": Rad2deg, "deg2rad": Deg2rad, "erf": Erf, "erfc": Erfc, "ndtr": Ndtr, "logit": Logit,
	"logit:eps": LogitWithin, "logaddexp": LogAddExp, "logaddexp2": LogAddExp2, "xlogy": XLogY,
	"xlog1py": XLog1pY, "entr": Entr, "sigmoid": Sigmoid, "logsigmoid": LogSigmoid, "silu": Silu, "mish": Mish,
	"gelu": Gelu, "gelu:tanh": GeluTanh, "selu": Selu, "softsign": Softsign, "tanhshrink": Tanhshrink,
	"hardsigmoid": Hardsigmoid, "hardswish": Hardswish, "relu": Relu, "relu6": Relu6, "leaky_relu": LeakyRelu,
	"elu": Elu, "celu": Celu, "softplus": Softplus, "hardshrink": Hardshrink, "softshrink": Softshrink,
	"hardtanh": Hardtanh, "threshold": Threshold, "add:alpha": Add, "sub:alpha": Sub, "rsub:alpha": Rsub,
	"mul": Mul, "div": Div, "ldexp": Ldexp, "addcmul": Addcmul, "addcdiv": Addcdiv, "lerp": Lerp, "fmod": Fmod,
	"remainder": Remainder, "identity": Identity, "neg": Neg, "abs": Abs, "sign": Sign, "floor": Floor,
	"ceil": Ceil, "trunc": Trunc, "round": Round, "frac": Frac, "copysign": Copysign, "maximum": Maximum,
	"minimum": Minimum, "fmax": Fmax, "fmin": Fmin,
}

// TestEveryFunctionIsTested: the tests of this package walk functions.
func TestEveryFunctionIsTested(t *testing.T) {
	tested := map[string]bool{}
	for name := range identifiers(t, "functions_test.go") {
		tested[name] = true
	}
	for name, id := range identifiers(t, "functions.go") {
		if id.Obj != nil && id.Obj.Kind == ast.Var && id.IsExported() && !tested[name] {
			t.Errorf("%s is not tested", name)
		}
	}
}

func identifiers(t *testing.T, path string) map[string]*ast.Ident {
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ids := map[string]*ast.Ident{}
	ast.Inspect(file, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok {
			ids[id.Name] = id
		}
		return true
	})
	return ids
}
