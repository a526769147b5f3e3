package script

import (
	"fmt"
	"math"
	"math/big"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"plumb/tensor"
)

// maxDepth bounds the recursion into lists that may hold themselves.
const maxDepth = 50

// maxString bounds the strings that formatting makes, in bytes.
const maxString = 1 << 20

// equal is Python's == of plain values: numbers of all types compare by value,
// at every depth.
func equal(x, y starlark.Value, depth int) (bool, error) {
	if depth > maxDepth {
		return false, fmt.Errorf("values are nested too deep to be compared")
	}
	if a, b, ok := complexes(x, y); ok {
		return a == b, nil
	}
	if a, ok := x.(*object); ok && x != y {
		if v, ok, err := special(a.thread, x, "__eq__", y); ok {
			return err == nil && bool(v.Truth()), err
		}
	}
	if a, b, ok := twoData(x, y, false); ok {
		return equal(a, b, depth+1)
	}
	if a, ok := y.(numpyType); ok {
		x, y = a, x
	}
	if a, ok := x.(numpyType); ok {
		d, err := numpyDType(y)
		return err == nil && d == tensor.DType(a), nil
	}
	x, y = number(asTuple(x)), number(asTuple(y))
	if a, ok := x.(version); ok {
		b, ok := y.(version)
		return ok && slices.Equal(a, b), nil
	}
	if a, ok := x.(*address); ok {
		b, ok := y.(*address)
		if !ok {
			return false, nil
		}
		return a.s.d.onePlace(a, b)
	}
	xs, xSeq := sequence(x)
	ys, ySeq := sequence(y)
	if xSeq && ySeq && x.Type() == y.Type() {
		if len(xs) != len(ys) {
			return false, nil
		}
		for i := range xs {
			if identical(xs[i], ys[i]) && !isNaN(xs[i]) {
				continue
			}
			if eq, err := equal(xs[i], ys[i], depth+1); err != nil || !eq {
				return false, err
			}
		}
		return true, nil
	}
	a, isDict := x.(*starlark.Dict)
	b, isDict2 := y.(*starlark.Dict)
	if isDict && isDict2 {
		return equalDicts(a, b, depth)
	}
	if x.Type() != y.Type() && !(isNumber(x) && isNumber(y)) {
		return false, nil
	}
	if xf, yf := pathOf(x), pathOf(y); xf != "" || yf != "" {
		return xf == yf, nil
	}
	if isNaN(x) || isNaN(y) {
		return false, nil
	}
	if isNumber(x) || comparable(x) {
		return starlark.Equal(x, y)
	}
	return x == y, nil
}

func pathOf(v starlark.Value) string {
	switch v := asPath(v).(type) {
	case path:
		return string(v)
	case *pyType:
		return v.name
	}
	return ""
}

// comparable reports whether Starlark's own comparison knows the value.
func comparable(v starlark.Value) bool {
	switch v.(type) {
	case starlark.String, starlark.Bytes, *starlark.Set, starlark.NoneType, dtype, format, ellipsis, missing, foreign, placement:
		return true
	}
	return v.Type() == "range"
}

func equalDicts(a, b *starlark.Dict, depth int) (bool, error) {
	if a.Len() != b.Len() {
		return false, nil
	}
	for _, item := range a.Items() {
		v, found, err := b.Get(item[0])
		if err != nil || !found {
			return false, err
		}
		if eq, err := equal(item[1], v, depth+1); err != nil || !eq {
			return false, err
		}
	}
	return true, nil
}

// identical reports whether x and y are one value.
func identical(x, y starlark.Value) bool { return reflect.ValueOf(x).Comparable() && x == y }

func isNaN(v starlark.Value) bool {
	f, ok := v.(starlark.Float)
	return ok && math.IsNaN(float64(f))
}

func isNumber(v starlark.Value) bool {
	switch v.(type) {
	case starlark.Int, starlark.Float, starlark.Bool:
		return true
	}
	return false
}

// sequence returns the elements of a list or tuple.
func sequence(v starlark.Value) ([]starlark.Value, bool) {
	switch v := v.(type) {
	case starlark.Tuple:
		return v, true
	case *starlark.List:
		out := make([]starlark.Value, v.Len())
		for i := range out {
			out[i] = v.Index(i)
		}
		return out, true
	}
	return nil, false
}

// order compares plain values by <, <=, > or >=.
func order(token syntax.Token, x, y starlark.Value, depth int) (bool, error) {
	x, y = number(x), number(y)
	a, isVersion := x.(version)
	b, isVersion2 := y.(version)
	if isVersion && isVersion2 {
		return starlark.Compare(token, starlark.MakeInt(slices.Compare(a, b)), starlark.MakeInt(0))
	}
	xs, xSeq := sequence(x)
	ys, ySeq := sequence(y)
	if depth > maxDepth {
		return false, fmt.Errorf("values are nested too deep to be compared")
	}
	if !xSeq || !ySeq || x.Type() != y.Type() {
		if a, ok := x.(starlark.Float); ok && isNumber(y) {
			b, _ := starlark.AsFloat(y)
			return orderFloats(token, float64(a), b), nil
		}
		if b, ok := y.(starlark.Float); ok && isNumber(x) {
			a, _ := starlark.AsFloat(x)
			return orderFloats(token, a, float64(b)), nil
		}
		if x.Type() != y.Type() {
			return false, fmt.Errorf("'%s' not supported between instances of '%s' and '%s'", token, x.Type(), y.Type())
		}
		return starlark.Compare(token, x, y)
	}
	for i := range min(len(xs), len(ys)) {
		if eq, err := equal(xs[i], ys[i], depth+1); err != nil {
			return false, err
		} else if !eq {
			return order(token, xs[i], ys[i], depth+1)
		}
	}
	return starlark.Compare(token, starlark.MakeInt(len(xs)), starlark.MakeInt(len(ys)))
}

// orderFloats compares as IEEE 754 does, unlike Starlark for a NaN.
func orderFloats(token syntax.Token, a, b float64) bool {
	switch token {
	case syntax.LT:
		return a < b
	case syntax.LE:
		return a <= b
	case syntax.GT:
		return a > b
	}
	return a >= b
}

// divide is / of plain numbers; floorDivide is //, and modulo is %.
func divide(x, y starlark.Value) (starlark.Value, error) {
	a, okA := starlark.AsFloat(x)
	b, okB := starlark.AsFloat(y)
	if !okA || !okB {
		return nil, operands("/", x, y)
	}
	if b == 0 {
		return nil, fmt.Errorf("division by zero")
	}
	xi, xInt := x.(starlark.Int)
	yi, yInt := y.(starlark.Int)
	if xInt && yInt {
		f, _ := new(big.Rat).SetFrac(xi.BigInt(), yi.BigInt()).Float64()
		return starlark.Float(f), nil
	}
	return starlark.Float(a / b), nil
}

func operands(sign string, x, y starlark.Value) error {
	return fmt.Errorf("unsupported operands for %s: %s and %s", sign, x.Type(), y.Type())
}

// floorMod returns Python's floor division and remainder of floats.
func floorMod(a, b float64) (div, mod float64) {
	mod = math.Mod(a, b)
	div = (a - mod) / b
	if mod != 0 {
		if (b < 0) != (mod < 0) {
			mod += b
			div--
		}
	} else {
		mod = math.Copysign(0, b)
	}
	if div == 0 {
		return math.Copysign(0, a/b), mod
	}
	floor := math.Floor(div)
	if div-floor > 0.5 {
		floor++
	}
	return floor, mod
}

func floorDivide(x, y starlark.Value) (starlark.Value, error) {
	if fx, fy, ok := floats(x, y); ok {
		if fy == 0 {
			return nil, fmt.Errorf("float floor division by zero")
		}
		div, _ := floorMod(fx, fy)
		return starlark.Float(div), nil
	}
	return starlark.Binary(syntax.SLASHSLASH, x, y)
}

func modulo(x, y starlark.Value) (starlark.Value, error) {
	if fx, fy, ok := floats(x, y); ok {
		if fy == 0 {
			return nil, fmt.Errorf("float modulo")
		}
		_, mod := floorMod(fx, fy)
		return starlark.Float(mod), nil
	}
	return starlark.Binary(syntax.PERCENT, x, y)
}

// floats returns two numbers of which at least one is a float.
func floats(x, y starlark.Value) (a, b float64, ok bool) {
	_, xf := x.(starlark.Float)
	_, yf := y.(starlark.Float)
	if !xf && !yf || !isNumber(x) || !isNumber(y) {
		return 0, 0, false
	}
	a, _ = starlark.AsFloat(x)
	b, _ = starlark.AsFloat(y)
	return a, b, true
}

// repr is Python's repr, and str its str; depth bounds the recursion.
func repr(v starlark.Value, depth int) string {
	if depth > maxDepth {
		return "..."
	}
	switch v := v.(type) {
	case *object:
		if s := v.text("__repr__"); s != "" {
			return s
		}
		return v.plain(depth)
	case starlark.String:
		return quoted(string(v))
	case starlark.Float:
		return floatRepr(float64(v))
	case complexNumber:
		return complexRepr(complex128(v))
	case *starlark.List:
		items, _ := sequence(v)
		return "[" + reprAll(items, depth) + "]"
	case starlark.Tuple:
		if len(v) == 1 {
			return "(" + repr(v[0], depth+1) + ",)"
		}
		return "(" + reprAll(v, depth) + ")"
	case *starlark.Dict:
		var parts []string
		for _, item := range v.Items() {
			parts = append(parts, repr(item[0], depth+1)+": "+repr(item[1], depth+1))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case *starlark.Set:
		if v.Len() == 0 {
			return "set()"
		}
		var items []starlark.Value
		for e := range starlark.Elements(v) {
			items = append(items, e)
		}
		return "{" + reprAll(items, depth) + "}"
	case *symbol:
		return v.text()
	case *pyType:
		return "<class '" + v.name + "'>"
	}
	return v.String()
}

func reprAll(vs []starlark.Value, depth int) string {
	var b strings.Builder
	for i, v := range vs {
		if i > 0 {
			b.WriteString(", ")
		}
		if b.Len() > maxString {
			return b.String() + "..."
		}
		b.WriteString(repr(v, depth+1))
	}
	return b.String()
}

func str(v starlark.Value) string {
	if s, ok := v.(starlark.String); ok {
		return string(s)
	}
	switch e := v.(type) {
	case *raised:
		return e.message()
	case *object:
		if s := e.text("__str__"); s != "" {
			return s
		}
		if args, ok := e.state.(starlark.Tuple); ok {
			return messageOf(args)
		}
	}
	return repr(v, 0)
}

func quoted(s string) string {
	quote := "'"
	if strings.Contains(s, "'") && !strings.Contains(s, `"`) {
		quote = `"`
	}
	var b strings.Builder
	b.WriteString(quote)
	for _, c := range s {
		switch {
		case c == '\\' || string(c) == quote:
			b.WriteString(`\` + string(c))
		case c == '\n':
			b.WriteString(`\n`)
		case c == '\t':
			b.WriteString(`\t`)
		case c == '\r':
			b.WriteString(`\r`)
		case c < ' ' || c == 0x7f:
			fmt.Fprintf(&b, `\x%02x`, c)
		default:
			b.WriteRune(c)
		}
	}
	return b.String() + quote
}

// floatRepr is the shortest text that reads back, in Python's style.
func floatRepr(f float64) string {
	switch {
	case math.IsNaN(f):
		return "nan"
	case math.IsInf(f, 1):
		return "inf"
	case math.IsInf(f, -1):
		return "-inf"
	}
	s := strconv.FormatFloat(f, 'e', -1, 64)
	_, e, _ := strings.Cut(s, "e")
	if exp, _ := strconv.Atoi(e); exp < -4 || exp >= 16 {
		return s
	}
	s = strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}

func complexRepr(c complex128) string {
	part := func(f float64) string { return strings.TrimSuffix(floatRepr(f), ".0") }
	im := part(imag(c)) + "j"
	if real(c) == 0 && !math.Signbit(real(c)) {
		return im
	}
	if !strings.HasPrefix(im, "-") {
		im = "+" + im
	}
	return "(" + part(real(c)) + im + ")"
}
