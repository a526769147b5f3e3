package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"plumb/internal/draw/choice"
	"plumb/internal/draw/opcase"
	"plumb/op"
	"plumb/program"
	"plumb/tensor"
)

// entry is what becomes an entry of the config.
type entry struct {
	opcase.Drawer
	name, target string
	dtypes       []tensor.DType
	rows         []row
	literal      bool // tensors of floats are literal too
	inPlace      bool
	plain        bool  // without gradients
	scales       *span // of the elements of floats, which are of all sizes
}

// outputs are the results that have gradients, where there are several results
// or a list of them; none otherwise. Ok is false where a config cannot say which
// they are: the only element of a list.
func (e *entry) outputs() (chosen []string, ok bool) {
	sig := e.Def.Sigs()[0]
	if len(sig.Results) < 2 && !sig.Many {
		return nil, true
	}
	for i := 0; ; i++ {
		for _, r := range e.rows {
			metas, err := r.call.Infer()
			if err != nil {
				return nil, false
			}
			if i >= len(metas) {
				return chosen, len(metas) > 1 && len(chosen) > 0
			}
			if i < len(metas) && !metas[i].DType.IsDifferentiable() {
				return chosen, len(chosen) > 0
			}
		}
		chosen = append(chosen, strconv.Itoa(i))
	}
}

func (e *entry) function() string { return e.target[strings.LastIndex(e.target, ".")+1:] }

func (e *entry) module() string {
	if m := e.target[:strings.LastIndex(e.target, ".")]; m != "Tensor" {
		return m
	}
	return "torch.Tensor"
}

func (e *entry) text() (string, bool) {
	outputs, ok := e.outputs()
	e.plain = e.plain || !ok
	var paras, args []string
	for _, n := range e.rows[0].names {
		if shapeOf(e.rows[0].args[n]) != "para" {
			args = append(args, e.argument(n))
			continue
		}
		column, ok := literals(n, e.rows)
		if !ok || n == "input" { // PyTorch takes a number there by position alone
			return "", false
		}
		paras = append(paras, column)
	}
	if len(args) == 0 && len(paras) == 0 {
		return "", false
	}
	var b strings.Builder
	fmt.Fprintf(&b, "    %s: dict(name=[%s], interface=[%s]", quote(e.name), quote(e.function()), quote(e.module()))
	if e.inPlace {
		b.WriteString(", is_inplace=True")
	}
	if len(outputs) > 0 && !e.plain {
		fmt.Fprintf(&b, ", requires_backward=[%s]", strings.Join(outputs, ", "))
	}
	if e.Def.Traits.Has(op.Random) {
		b.WriteString(", no_output_ref=True")
	}
	if len(paras) > 0 {
		fmt.Fprintf(&b, ", para=dict(%s)", strings.Join(paras, ", "))
	}
	if len(args) > 0 {
		fmt.Fprintf(&b, ", tensor_para=dict(args=[%s])", strings.Join(args, ", "))
	}
	b.WriteString("),\n")
	return b.String(), true
}

// literals is a column of para.
func literals(name string, rows []row) (string, bool) {
	var column []string
	for _, r := range rows {
		text, ok := literal(program.FromOp(r.args[name]))
		if !ok {
			return "", false
		}
		column = append(column, text)
	}
	return name + "=[" + strings.Join(column, ", ") + "]", true
}

// literal writes a parameter in the language of configs.
func literal(v any) (string, bool) {
	switch v := v.(type) {
	case nil:
		return "None", true
	case bool:
		if v {
			return "True", true
		}
		return "False", true
	case int64:
		return strconv.FormatInt(v, 10), true
	case float64:
		return number(v), true
	case string:
		return quote(v), true
	case tensor.DType:
		return numpyName(v)
	case program.Tuple:
		text, ok := elements(v)
		if len(v) == 1 {
			text += ","
		}
		return "(" + text + ")", ok
	case program.List:
		text, ok := elements(v)
		return "[" + text + "]", ok
	}
	return "", false
}

func elements(list []any) (string, bool) {
	var out []string
	for _, e := range list {
		text, ok := literal(e)
		if !ok {
			return "", false
		}
		out = append(out, text)
	}
	return strings.Join(out, ", "), true
}

func number(v float64) string {
	if math.IsInf(v, 0) || math.IsNaN(v) {
		return fmt.Sprintf("float(%s)", quote(strings.ToLower(strings.TrimPrefix(strconv.FormatFloat(v, 'g', -1, 64), "+"))))
	}
	s := strconv.FormatFloat(v, 'g', -1, 64)
	if !strings.ContainsAny(s, ".e") {
		s += ".0"
	}
	return s
}

func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", "\\'") + "'" }

// numpyName is a dtype by numpy's name for its class.
func numpyName(d tensor.DType) (string, bool) {
	switch d {
	case tensor.BF16:
		return "", false
	case tensor.Bool:
		return "np.bool_", true
	}
	return "np." + d.String(), true
}

// argument is one tensor argument: a column of shapes with a generator, or of
// literal elements.
func (e *entry) argument(name string) string {
	var shapes, values []string
	var all []*tensor.Tensor
	list := false
	for _, r := range e.rows {
		switch v := r.args[name].(type) {
		case *tensor.Tensor:
			all = append(all, v)
			shapes = append(shapes, tuple(v.Shape()))
			values = append(values, nested(v, v.Shape(), 0))
		case []any:
			ts, _ := tensors(v)
			all = append(all, ts...)
			var each []string
			for _, t := range ts {
				each = append(each, tuple(t.Shape()))
			}
			list = true
			shapes = append(shapes, "("+strings.Join(each, ", ")+",)")
		}
	}
	own, dtypes := all[0].DType(), e.dtypes
	if own != dtypes[0] {
		dtypes = []tensor.DType{own}
	}
	literal := !list && (e.literal || own != e.dtypes[0])
	var b strings.Builder
	fmt.Fprintf(&b, "dict(ins=[%s], ", quote(name))
	if literal {
		fmt.Fprintf(&b, "value=[%s], gen_policy='gen_tensor_by_value'", strings.Join(values, ", "))
	} else if e.scales != nil && own == e.dtypes[0] && !list {
		if e.Def.ScalarFunction() && e.rows[0].flat() {
			shapes = []string{tuple([]int{wideElements})}
		}
		fmt.Fprintf(&b, "shape=[%s], gen_fn=%s", strings.Join(shapes, ", "), e.scaled(name))
	} else {
		fmt.Fprintf(&b, "shape=[%s], gen_fn=%s", strings.Join(shapes, ", "), generator(own, append(all, e.further(name)...)))
	}
	if list {
		b.WriteString(", gen_policy='gen_tensor_list_diff_shape'")
	}
	fmt.Fprintf(&b, ", dtype=[%s]", strings.Join(numpyNames(dtypes), ", "))
	if !e.plain && own.IsDifferentiable() && !e.Def.Traits.Has(op.NoGrad) && !e.Def.IsFixed(name) {
		b.WriteString(", requires_grad=[True]")
	}
	return b.String() + ")"
}

func numpyNames(dtypes []tensor.DType) []string {
	var out []string
	for _, d := range dtypes {
		if name, ok := numpyName(d); ok {
			out = append(out, name)
		}
	}
	return out
}

// further are the tensors that an argument is in more samples.
func (e *entry) further(name string) []*tensor.Tensor {
	var out []*tensor.Tensor
	for key := range uint64(12) {
		r, _ := sampled(e.Drawer, e.target, e.dtypes[0], choice.Derive(3, key))
		switch v := r.args[name].(type) {
		case *tensor.Tensor:
			out = append(out, v)
		case []any:
			list, _ := tensors(v)
			out = append(out, list...)
		}
	}
	return out
}

// generator covers the elements that Sample gave.
func generator(dt tensor.DType, all []*tensor.Tensor) string {
	switch {
	case dt == tensor.Bool:
		return "'Genfunc.mask'"
	case dt.IsComplex():
		return "'Genfunc.randn_complx'"
	}
	lo, hi := math.Inf(1), math.Inf(-1)
	for _, t := range all {
		for i := range t.Len() {
			lo, hi = min(lo, t.Float(i)), max(hi, t.Float(i))
		}
	}
	if lo > hi {
		lo, hi = 0, 1
	}
	if dt.IsFloat() {
		return fmt.Sprintf("dict(fn='Genfunc.uniform', low=%s, high=%s)", number(roundTo(lo)), number(roundTo(max(hi, lo+0.01))))
	}
	return fmt.Sprintf("dict(fn='Genfunc.randint', low=%d, high=%d)", int(lo), int(hi)+1)
}

// roundTo keeps two decimals.
func roundTo(v float64) float64 { return math.Round(v*100) / 100 }

func tuple(shape []int) string {
	var out []string
	for _, n := range shape {
		out = append(out, strconv.Itoa(n))
	}
	if len(out) == 1 {
		return "(" + out[0] + ",)"
	}
	return "(" + strings.Join(out, ", ") + ")"
}

// nested writes the elements of a tensor as nested lists.
func nested(t *tensor.Tensor, shape []int, at int) string {
	if len(shape) == 0 {
		switch {
		case t.DType() == tensor.Bool:
			return map[bool]string{true: "True", false: "False"}[t.Int(at) != 0]
		case t.DType().IsFloat():
			return number(t.Float(at))
		}
		return strconv.FormatInt(t.Int(at), 10)
	}
	step := tensor.NumElements(shape[1:])
	var out []string
	for i := range shape[0] {
		out = append(out, nested(t, shape[1:], at+i*step))
	}
	return "[" + strings.Join(out, ", ") + "]"
}
