package script

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.starlark.net/starlark"
)

// maxWidth bounds the widths and precisions of formatting.
const maxWidth = 1000

// formatSpec is the part of a format field after its colon, or of a % conversion.
type formatSpec struct {
	fill      rune
	align     byte // one of <>^=; 0 for the type's own
	sign      byte // one of + - and blank; 0 for none
	alternate bool
	width     int
	group     byte
	precision int // -1 when not given
	verb      byte
}

func parseSpec(s string) (formatSpec, error) {
	f := formatSpec{fill: ' ', precision: -1}
	bad := fmt.Errorf("invalid format specifier %q", s)
	r := []rune(s)
	if len(r) > 1 && strings.ContainsRune("<>^=", r[1]) {
		f.fill, f.align, r = r[0], byte(r[1]), r[2:]
	} else if len(r) > 0 && strings.ContainsRune("<>^=", r[0]) {
		f.align, r = byte(r[0]), r[1:]
	}
	take := func(set string) byte {
		if len(r) > 0 && strings.ContainsRune(set, r[0]) {
			c := byte(r[0])
			r = r[1:]
			return c
		}
		return 0
	}
	count := func() int {
		n := 0
		for len(r) > 0 && r[0] >= '0' && r[0] <= '9' {
			n = min(n*10+int(r[0]-'0'), maxWidth+1)
			r = r[1:]
		}
		return n
	}
	f.sign = take("+- ")
	f.alternate = take("#") != 0
	if take("0") != 0 && f.align == 0 {
		f.fill, f.align = '0', '='
	}
	f.width = count()
	f.group = take(",_")
	if take(".") != 0 {
		if len(r) == 0 || r[0] < '0' || r[0] > '9' {
			return f, fmt.Errorf("format specifier missing precision")
		}
		f.precision = count()
	}
	f.verb = take("bcdeEfFgGnosxX%")
	if len(r) > 0 {
		return f, bad
	}
	if f.width > maxWidth || f.precision > maxWidth {
		return f, fmt.Errorf("a format of more than %d characters", maxWidth)
	}
	return f, nil
}

// worded is the text of a value, or what repr says of it. A tensor's is what PyTorch
// prints, but for the text of one without dimensions: its number, as format has it.
func worded(v starlark.Value, repeats bool) (string, error) {
	if a, ok := v.(*attr); ok {
		s, err := a.resolve()
		if err != nil {
			return "", err
		}
		v = s
	}
	if s, ok := v.(*symbol); ok && s.kind == kindTensor {
		t, err := s.tensor()
		if err != nil {
			return "", err
		}
		if repeats || t != nil && t.Dim() > 0 {
			text, err := s.printed()
			return str(text), err
		}
	}
	v, err := settled(v)
	if err != nil || !repeats {
		return str(v), err
	}
	return repr(v, 0), nil
}

// formatValue is Python's format(v, spec).
func formatValue(v starlark.Value, spec string) (string, error) {
	if spec == "" {
		return worded(v, false)
	}
	f, err := parseSpec(spec)
	if err != nil {
		return "", err
	}
	if v, err = settled(v); err != nil {
		return "", err
	}
	if f.verb != 0 && f.verb != 's' {
		v = number(v)
	}
	switch v := v.(type) {
	case starlark.Int:
		return f.integer(v)
	case starlark.Float:
		return f.float(float64(v))
	case starlark.String:
		if f.verb == 0 || f.verb == 's' {
			return f.text(string(v)), nil
		}
	case starlark.Bool:
		return f.integer(number(v).(starlark.Int))
	default:
		return "", fmt.Errorf("unsupported format string %q for %s", spec, v.Type())
	}
	return "", fmt.Errorf("unknown format code '%c' for %s", f.verb, v.Type())
}

func (f formatSpec) text(s string) string {
	if f.precision >= 0 && utf8.RuneCountInString(s) > f.precision {
		s = string([]rune(s)[:f.precision])
	}
	return f.pad("", s, '<')
}

// pad fills up to the width; sign and what stands before the digits stay in
// front of the fill for "=".
func (f formatSpec) pad(sign, body string, align byte) string {
	if f.align != 0 {
		align = f.align
	}
	n := f.width - utf8.RuneCountInString(sign+body)
	if n <= 0 {
		return sign + body
	}
	fill := func(n int) string { return strings.Repeat(string(f.fill), n) }
	switch align {
	case '<':
		return sign + body + fill(n)
	case '^':
		return fill(n/2) + sign + body + fill(n-n/2)
	case '=':
		return sign + fill(n) + body
	}
	return fill(n) + sign + body
}

func (f formatSpec) signOf(negative bool) string {
	switch {
	case negative:
		return "-"
	case f.sign == '+' || f.sign == ' ':
		return string(f.sign)
	}
	return ""
}

func (f formatSpec) integer(v starlark.Int) (string, error) {
	base, prefix := 10, ""
	switch f.verb {
	case 0, 'd', 'n':
	case 'b':
		base, prefix = 2, "0b"
	case 'o':
		base, prefix = 8, "0o"
	case 'x', 'X':
		base, prefix = 16, "0x"
	case 'c':
		n, ok := v.Int64()
		if !ok || n < 0 || n > utf8.MaxRune {
			return "", fmt.Errorf("%%c arg not in range")
		}
		return f.pad("", string(rune(n)), '<'), nil
	case 's':
		return "", fmt.Errorf("unknown format code 's' for int")
	default:
		x, _ := starlark.AsFloat(v)
		return f.float(x)
	}
	b := v.BigInt()
	digits := b.Text(base)
	negative := strings.HasPrefix(digits, "-")
	digits = strings.TrimPrefix(digits, "-")
	every := 3
	if base != 10 {
		every = 4
	}
	digits = f.grouped(digits, every)
	if !f.alternate {
		prefix = ""
	}
	if f.verb == 'X' {
		digits, prefix = strings.ToUpper(digits), strings.ToUpper(prefix)
	}
	return f.pad(f.signOf(negative)+prefix, digits, '>'), nil
}

func (f formatSpec) grouped(digits string, every int) string {
	if f.group == 0 {
		return digits
	}
	var b strings.Builder
	for i, c := range digits {
		if i > 0 && (len(digits)-i)%every == 0 {
			b.WriteByte(f.group)
		}
		b.WriteRune(c)
	}
	return b.String()
}

func (f formatSpec) float(x float64) (string, error) {
	negative := math.Signbit(x) && !math.IsNaN(x)
	a := math.Abs(x)
	precision, suffix := f.precision, ""
	if precision < 0 {
		precision = 6
	}
	var s string
	switch verb := f.verb; {
	case verb == 's' || verb == 'd' || verb == 'b' || verb == 'o' || verb == 'x' || verb == 'X' || verb == 'c':
		return "", fmt.Errorf("unknown format code '%c' for float", verb)
	case math.IsInf(a, 1):
		s = "inf"
	case math.IsNaN(a):
		s = "nan"
	case verb == '%':
		s, suffix = strconv.FormatFloat(float64(a*100), 'f', precision, 64), "%"
	case verb == 'f' || verb == 'F':
		s = strconv.FormatFloat(a, 'f', precision, 64)
	case verb == 'e' || verb == 'E':
		s = strconv.FormatFloat(a, 'e', precision, 64)
	case verb == 0 && f.precision < 0:
		s = floatRepr(a)
	default:
		s = general(a, max(precision, 1), f.alternate)
		if verb == 0 && !strings.ContainsAny(s, ".e") {
			s += ".0"
		}
	}
	if f.verb == 'E' || f.verb == 'F' || f.verb == 'G' {
		s = strings.ToUpper(s)
	}
	whole, rest := s, ""
	if i := strings.IndexAny(s, ".eE"); i >= 0 {
		whole, rest = s[:i], s[i:]
	}
	return f.pad(f.signOf(negative), f.grouped(whole, 3)+rest+suffix, '>'), nil
}

// general is the format g: fixed for moderate exponents, without trailing zeros.
func general(a float64, precision int, keep bool) string {
	e := strconv.FormatFloat(a, 'e', precision-1, 64)
	mantissa, power, _ := strings.Cut(e, "e")
	exp, _ := strconv.Atoi(power)
	if exp >= -4 && exp < precision {
		s := strconv.FormatFloat(a, 'f', precision-1-exp, 64)
		if !keep && strings.Contains(s, ".") {
			s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
		}
		return s
	}
	if !keep && strings.Contains(mantissa, ".") {
		mantissa = strings.TrimRight(strings.TrimRight(mantissa, "0"), ".")
	}
	return mantissa + "e" + power
}

// percent is Python's text % args.
func percent(text string, v starlark.Value) (string, error) {
	args, isTuple := v.(starlark.Tuple)
	if !isTuple {
		args = starlark.Tuple{v}
	}
	mapping, _ := v.(starlark.Mapping)
	used := 0
	next := func() (starlark.Value, error) {
		if used >= len(args) {
			return nil, fmt.Errorf("not enough arguments for format string")
		}
		used++
		return args[used-1], nil
	}
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] != '%' {
			b.WriteByte(text[i])
			continue
		}
		s, n, err := conversion(text[i+1:], next, mapping)
		if err != nil {
			return "", err
		}
		b.WriteString(s)
		if i += n; b.Len() > maxString {
			return "", fmt.Errorf("the formatted string is too long")
		}
	}
	if _, isDict := v.(*starlark.Dict); used < len(args) && !(isDict || !isTuple && used > 0) {
		return "", fmt.Errorf("not all arguments converted during string formatting")
	}
	return b.String(), nil
}

// conversion formats one conversion, which follows its % sign, and returns its
// length.
func conversion(s string, next func() (starlark.Value, error), mapping starlark.Mapping) (string, int, error) {
	c := conversionReader{s: s, next: next, spec: formatSpec{fill: ' ', align: '>', precision: -1}}
	v, err := c.key(mapping)
	if err != nil {
		return "", 0, err
	}
	c.flags()
	if err := c.sizes(); err != nil {
		return "", 0, err
	}
	if c.at >= len(s) {
		return "", 0, fmt.Errorf("incomplete format")
	}
	verb := s[c.at]
	if verb == '%' {
		return "%", c.at + 1, nil
	}
	if v == nil {
		if v, err = next(); err != nil {
			return "", 0, err
		}
	}
	out, err := c.spec.convert(verb, v)
	return out, c.at + 1, err
}

// conversionReader reads the parts of a % conversion from left to right.
type conversionReader struct {
	s    string
	at   int
	next func() (starlark.Value, error)
	spec formatSpec
}

// key reads "(key)" and returns the mapping's value of it; nil without one.
func (c *conversionReader) key(mapping starlark.Mapping) (starlark.Value, error) {
	if !strings.HasPrefix(c.s, "(") {
		return nil, nil
	}
	end := strings.IndexByte(c.s, ')')
	if end < 0 || mapping == nil {
		return nil, fmt.Errorf("format requires a mapping")
	}
	v, found, err := mapping.Get(starlark.String(c.s[1:end]))
	if err != nil || !found {
		return nil, fmt.Errorf("the format's key %q is not in the dict", c.s[1:end])
	}
	c.at = end + 1
	return v, nil
}

func (c *conversionReader) flags() {
	f := &c.spec
	for ; c.at < len(c.s) && strings.IndexByte("-+ 0#", c.s[c.at]) >= 0; c.at++ {
		switch c.s[c.at] {
		case '-':
			f.align = '<'
		case '0':
			if f.align != '<' {
				f.fill, f.align = '0', '='
			}
		case '#':
			f.alternate = true
		default:
			f.sign = c.s[c.at]
		}
	}
}

// sizes reads width and precision.
func (c *conversionReader) sizes() error {
	f := &c.spec
	if err := c.count(&f.width); err != nil {
		return err
	}
	if f.width < 0 {
		f.width, f.align, f.fill = -f.width, '<', ' '
	}
	if c.at < len(c.s) && c.s[c.at] == '.' {
		c.at++
		return c.count(&f.precision)
	}
	return nil
}

// count reads a number; a * takes it from the values.
func (c *conversionReader) count(into *int) error {
	n := 0
	if c.at < len(c.s) && c.s[c.at] == '*' {
		c.at++
		w, err := c.next()
		if err != nil {
			return err
		}
		if n, err = starlark.AsInt32(w); err != nil {
			return err
		}
	}
	for ; c.at < len(c.s) && isDigit(c.s[c.at]); c.at++ {
		n = min(n*10+int(c.s[c.at]-'0'), maxWidth+1)
	}
	if *into = n; n > maxWidth {
		return fmt.Errorf("a format of more than %d characters", maxWidth)
	}
	return nil
}

func (f formatSpec) convert(verb byte, v starlark.Value) (string, error) {
	if verb != 's' && verb != 'r' && verb != 'a' {
		var err error
		if v, err = settled(v); err != nil {
			return "", err
		}
	}
	switch verb {
	case 's', 'r', 'a':
		text, err := worded(v, verb != 's')
		if err != nil {
			return "", err
		}
		if f.align == '=' {
			f.fill, f.align = ' ', '>'
		}
		return f.text(text), nil
	case 'c':
		if s, ok := starlark.AsString(v); ok {
			return f.pad("", s, '>'), nil
		}
	case 'd', 'i', 'u':
		v = number(v)
		if x, ok := v.(starlark.Float); ok {
			n, err := starlark.NumberToInt(x)
			if err != nil {
				return "", err
			}
			v = n
		}
		verb = 'd'
		f.precision = -1
	case 'e', 'E', 'f', 'F', 'g', 'G', 'x', 'X', 'o':
		v = number(v)
	default:
		return "", fmt.Errorf("unsupported format character '%c'", verb)
	}
	f.verb = verb
	switch v := v.(type) {
	case starlark.Int:
		return f.integer(v)
	case starlark.Float:
		return f.float(float64(v))
	}
	return "", fmt.Errorf("%%%c format: a number is required, not %s", verb, v.Type())
}

// formatted is Python's text.format(*args, **kwargs).
func formatted(text string, args starlark.Tuple, kwargs []starlark.Tuple) (string, error) {
	var b strings.Builder
	auto := 0
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case (c == '{' || c == '}') && i+1 < len(text) && text[i+1] == c:
			b.WriteByte(c)
			i++
		case c == '}':
			return "", fmt.Errorf("single '}' in a format string")
		case c == '{':
			f, n := replacementField(text[i+1:])
			if n < 0 {
				return "", fmt.Errorf("a '{' of the format string has no '}'")
			}
			s, err := f.format(args, kwargs, &auto)
			if err != nil {
				return "", err
			}
			b.WriteString(s)
			i += n
		default:
			b.WriteByte(c)
		}
		if b.Len() > maxString {
			return "", fmt.Errorf("the formatted string is too long")
		}
	}
	return b.String(), nil
}

func (f field) format(args starlark.Tuple, kwargs []starlark.Tuple, auto *int) (string, error) {
	v, err := f.lookup(args, kwargs, auto)
	if err != nil {
		return "", err
	}
	if f.conv == "r" {
		text, err := worded(v, true)
		if err != nil {
			return "", err
		}
		v = starlark.String(text)
	}
	spec := f.spec
	if strings.Contains(spec, "{") {
		n := *auto
		if spec, err = formatted(strings.ReplaceAll(spec, "{}", "{"+strconv.Itoa(n)+"}"), args, kwargs); err != nil {
			return "", err
		}
		*auto += strings.Count(f.spec, "{}")
	}
	return formatValue(v, spec)
}

func (f field) lookup(args starlark.Tuple, kwargs []starlark.Tuple, auto *int) (starlark.Value, error) {
	name, rest := f.expr, ""
	if i := strings.IndexAny(name, ".["); i >= 0 {
		name, rest = name[:i], name[i:]
	}
	var v starlark.Value
	if n, err := strconv.Atoi(name); err == nil || name == "" {
		if name == "" {
			n = *auto
			*auto++
		}
		if n < 0 || n >= len(args) {
			return nil, fmt.Errorf("the format string needs argument %d", n+1)
		}
		v = args[n]
	} else {
		for _, kw := range kwargs {
			if string(kw[0].(starlark.String)) == name {
				v = kw[1]
			}
		}
		if v == nil {
			return nil, fmt.Errorf("the format string needs the argument %s", name)
		}
	}
	if rest == "" {
		return v, nil
	}
	if key, ok := strings.CutPrefix(rest, "["); ok && strings.HasSuffix(key, "]") {
		return item(v, strings.TrimSuffix(key, "]"))
	}
	return nil, fmt.Errorf("the field %q of a format string is not supported", f.expr)
}

func item(v starlark.Value, key string) (starlark.Value, error) {
	if n, err := strconv.Atoi(key); err == nil {
		if x, ok := v.(starlark.Indexable); ok && n >= 0 && n < x.Len() {
			return x.Index(n), nil
		}
	}
	if m, ok := v.(starlark.Mapping); ok {
		if e, found, err := m.Get(starlark.String(key)); err == nil && found {
			return e, nil
		}
	}
	return nil, fmt.Errorf("the format string's index %q is not in %s", key, v.Type())
}
