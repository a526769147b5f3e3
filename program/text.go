package program

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"plumb/tensor"
)

// Header is the first line of a program's text.
const Header = "# plumb program v1"

const preamble = Header + `
import operator, torch
from plumb import case, integer, tensor, uniform

`

// infix maps the operators that are printed between or before their operands.
var infix = map[string]string{
	"operator.add": "+", "operator.sub": "-", "operator.mul": "*", "operator.truediv": "/",
	"operator.floordiv": "//", "operator.mod": "%", "operator.pow": "**", "operator.matmul": "@",
	"operator.and_": "&", "operator.or_": "|", "operator.xor": "^",
	"operator.lt": "<", "operator.le": "<=", "operator.gt": ">", "operator.ge": ">=",
	"operator.eq": "==", "operator.ne": "!=",
}

// infixTarget is the inverse of infix.
var infixTarget = func() map[string]string {
	m := map[string]string{}
	for target, sign := range infix {
		m[sign] = target
	}
	return m
}()

var prefix = map[string]string{"operator.neg": "-", "operator.invert": "~"}

// String returns the canonical text of the program: a legal Python script that
// Parse reads back to an equal program.
func (p *Program) String() string {
	var b strings.Builder
	b.WriteString(preamble)
	fmt.Fprintf(&b, "case(%s, seed=%d", strconv.Quote(p.Name), p.Seed)
	if p.DType != tensor.Invalid {
		fmt.Fprintf(&b, ", dtype=torch.%s", p.DType)
	}
	if p.RTol != nil {
		fmt.Fprintf(&b, ", rtol=%s", formatFloat(*p.RTol))
	}
	if p.ATol != nil {
		fmt.Fprintf(&b, ", atol=%s", formatFloat(*p.ATol))
	}
	b.WriteString(p.options())
	b.WriteString(")\n")
	for i := range p.Inputs {
		b.WriteString(p.Inputs[i].String())
		b.WriteByte('\n')
	}
	p.writeCalls(&b)
	for _, w := range p.Backward {
		b.WriteString(w.String())
		b.WriteByte('\n')
	}
	return b.String()
}

// options prints what few cases say of themselves.
func (p *Program) options() string {
	s := ""
	if p.Tolerance != "" {
		s += ", tolerance=" + strconv.Quote(p.Tolerance)
	}
	if p.Shapes {
		s += ", elements=False"
	}
	if p.Draws {
		s += `, random="shape"`
	}
	if p.Raises {
		s += ", raises=True"
	}
	if p.Second.Dist != "" {
		s += ", second=" + p.Second.String()
	}
	if p.Step != (Step{}) {
		s += fmt.Sprintf(", sgd=(%s, %s)", formatFloat(p.Step.LR), formatFloat(p.Step.Momentum))
	}
	return s
}

// String returns the input's line of the program text.
func (in *Input) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s = tensor(%s, torch.%s, %s", in.Name, formatInts(in.Shape), in.DType, in.Fill.String())
	if in.Strides != nil {
		fmt.Fprintf(&b, ", strides=%s", formatInts(in.Strides))
	}
	if in.RequiresGrad {
		b.WriteString(", requires_grad=True")
	}
	b.WriteByte(')')
	return b.String()
}

// String returns the expression of the fill.
func (f *Fill) String() string {
	if f.Dist == Literal {
		return formatData(f.Data)
	}
	s := fmt.Sprintf("%s(%s, %s, key=%d", f.Dist, formatFloat(f.Lo), formatFloat(f.Hi), f.Key)
	if f.Dist == Constant {
		s = "constant(" + formatFloat(f.Lo)
	}
	if f.Kinks {
		s += ", kinks=True"
	}
	if f.Scales {
		s += ", scales=True"
	}
	if f.Special != 0 {
		s += ", special=" + f.Special.String()
	}
	if f.Round != tensor.Invalid {
		s += ", round=torch." + f.Round.String()
	}
	if f.Real {
		s += ", real=True"
	}
	if f.Density != 0 {
		s += ", density=" + formatFloat(f.Density)
	}
	return s + ")"
}

// String returns the line of the program text.
func (w *Backward) String() string {
	var args []string
	if w.Cotangent.Dist != "" {
		args = append(args, w.Cotangent.String())
	}
	if w.Auto {
		args = append(args, "auto=True")
	}
	return fmt.Sprintf("%s.backward(%s)", w.Value, strings.Join(args, ", "))
}

// String returns the call's line of the program text.
func (c *Call) String() string { return c.Result + " = " + c.Expr() }

// Expr returns the right-hand side of the call's line.
func (c *Call) Expr() string {
	if op, ok := infix[c.Target]; ok && len(c.Args) == 2 && len(c.Kwargs) == 0 {
		return FormatArg(c.Args[0]) + " " + op + " " + FormatArg(c.Args[1])
	}
	first, isRef := Ref(""), false
	if len(c.Args) > 0 {
		first, isRef = c.Args[0].(Ref)
	}
	if !isRef {
		return c.Target + c.formatArgs(c.Args)
	}
	if op, ok := prefix[c.Target]; ok && len(c.Args) == 1 {
		return op + string(first)
	}
	switch kind, name, _ := strings.Cut(c.Target, "."); {
	case c.Target == "operator.getitem" && len(c.Args) == 2:
		return string(first) + "[" + formatIndex(c.Args[1]) + "]"
	case c.Target == "getattr" && len(c.Args) == 2:
		if attr, ok := c.Args[1].(string); ok {
			return string(first) + "." + attr
		}
	case c.Target == "Module.__call__":
		return string(first) + c.formatArgs(c.Args[1:])
	case kind == "Tensor" || kind == "Module":
		return string(first) + "." + name + c.formatArgs(c.Args[1:])
	}
	return c.Target + c.formatArgs(c.Args)
}

func (c *Call) formatArgs(args []any) string {
	var parts []string
	for _, a := range args {
		parts = append(parts, FormatArg(a))
	}
	for _, kw := range c.Kwargs {
		parts = append(parts, kw.Name+"="+FormatArg(kw.Value))
	}
	return "(" + strings.Join(parts, ", ") + ")"
}

// FormatArg returns the Python expression of an argument.
func FormatArg(v any) string {
	switch v := v.(type) {
	case nil:
		return "None"
	case Ref:
		return string(v)
	case bool:
		if v {
			return "True"
		}
		return "False"
	case int64:
		return strconv.FormatInt(v, 10)
	case float64:
		return formatFloat(v)
	case complex128:
		return "complex(" + formatFloat(real(v)) + ", " + formatFloat(imag(v)) + ")"
	case string:
		return strconv.Quote(v)
	case tensor.DType:
		return "torch." + v.String()
	case tensor.MemoryFormat:
		return "torch." + v.String()
	case List:
		return "[" + formatAll(v) + "]"
	case Tuple:
		if len(v) == 1 {
			return "(" + FormatArg(v[0]) + ",)"
		}
		return "(" + formatAll(v) + ")"
	case Slice:
		return "slice(" + formatAll([]any{v.Start, v.Stop, v.Step}) + ")"
	case Ellipsis:
		return "..."
	}
	return fmt.Sprintf("<%T>", v)
}

func formatAll(vs []any) string {
	var parts []string
	for _, v := range vs {
		parts = append(parts, FormatArg(v))
	}
	return strings.Join(parts, ", ")
}

// formatIndex prints what stands between brackets, slices as a:b:c.
func formatIndex(v any) string {
	switch v := v.(type) {
	case Tuple:
		if len(v) == 0 {
			return "()"
		}
		var parts []string
		for _, e := range v {
			parts = append(parts, formatIndex1(e))
		}
		s := strings.Join(parts, ", ")
		if len(v) == 1 {
			s += ","
		}
		return s
	}
	return formatIndex1(v)
}

func formatIndex1(v any) string {
	s, ok := v.(Slice)
	if !ok {
		return FormatArg(v)
	}
	part := func(v any) string {
		if v == nil {
			return ""
		}
		return FormatArg(v)
	}
	text := part(s.Start) + ":" + part(s.Stop)
	if s.Step != nil {
		text += ":" + part(s.Step)
	}
	return text
}

func formatFloat(f float64) string {
	switch {
	case math.IsNaN(f):
		return `float("nan")`
	case math.IsInf(f, 1):
		return `float("inf")`
	case math.IsInf(f, -1):
		return `float("-inf")`
	}
	s := strconv.FormatFloat(f, 'g', -1, 64)
	if !strings.ContainsAny(s, ".e") {
		s += ".0"
	}
	return s
}

func formatInts(xs []int) string {
	t := make(Tuple, len(xs))
	for i, x := range xs {
		t[i] = int64(x)
	}
	return FormatArg(t)
}

// formatData prints the elements of a literal, shortest text that reads back
// to the same bits.
func formatData(t *tensor.Tensor) string {
	parts := make([]string, t.Len())
	for i := range parts {
		switch d := t.DType(); {
		case d == tensor.Bool:
			parts[i] = FormatArg(t.Int(i) != 0)
		case d.IsInt():
			parts[i] = strconv.FormatInt(t.Int(i), 10)
		case d.IsComplex():
			parts[i] = FormatArg(t.At(i))
		default:
			parts[i] = formatFloat(t.Float(i))
		}
	}
	return "[" + strings.Join(parts, ", ") + "]"
}
