package main

import (
	"fmt"
	"slices"
	"strings"

	"plumb/program"
	"plumb/tensor"
)

// fillText is the generator of an input's elements; "" where they are literal.
func fillText(in program.Input) string {
	f := in.Fill
	edges := ""
	if f.Kinks {
		edges += ", kinks=True"
	}
	if f.Special != 0 {
		var kinds []string
		for _, k := range f.Special.Kinds() {
			kinds = append(kinds, strings.ReplaceAll(strings.Trim(k.String(), "[]"), `"`, "'"))
		}
		edges += ", special=[" + strings.Join(kinds, ", ") + "]"
	}
	switch {
	case f.Density > 0 || f.Real:
		return ""
	case in.DType == tensor.Bool && f.Dist == program.Integer:
		return "'Genfunc.mask'"
	case in.DType.IsComplex() && f.Dist != program.Literal:
		return "'Genfunc.randn_complx'"
	case f.Dist == program.Uniform && in.DType.IsFloat():
		return fmt.Sprintf("dict(fn='Genfunc.uniform', low=%s, high=%s%s)", number(f.Lo), number(f.Hi), edges)
	case f.Dist == program.Integer:
		return fmt.Sprintf("dict(fn='Genfunc.randint', low=%d, high=%d%s)", int(f.Lo), int(f.Hi), edges)
	}
	return ""
}

// entry writes an entry of calls of one form.
func (c *liftedCall) entry(name string, rows []*liftedCall) (string, bool) {
	dot := strings.LastIndexByte(c.target, '.')
	module, function := c.target[:dot], c.target[dot+1:]
	if module == "Tensor" {
		module = "torch.Tensor"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "    %s: dict(name=[%s], interface=[%s]", quote(name), quote(function), quote(module))
	if c.eval {
		b.WriteString(", train=False")
	}
	if len(c.call) > 0 {
		var names []string
		for _, n := range c.call {
			names = append(names, quote(n))
		}
		fmt.Fprintf(&b, ", call=[%s]", strings.Join(names, ", "))
	}
	if len(c.outputs) > 0 && !c.plain {
		fmt.Fprintf(&b, ", requires_backward=[%s]", strings.Join(c.outputs, ", "))
	}
	var paras, args []string
	for _, n := range c.names {
		switch c.args[n].(type) {
		case program.Input, []program.Input:
			text, ok := c.tensor(n, rows)
			if !ok {
				return "", false
			}
			args = append(args, text)
		default:
			var column []string
			for _, r := range rows {
				text, _ := literal(r.args[n])
				column = append(column, text)
			}
			if n == "input" {
				return "", false // PyTorch takes a number there by position alone
			}
			paras = append(paras, n+"=["+strings.Join(column, ", ")+"]")
		}
	}
	if len(args) == 0 {
		return "", false
	}
	if len(paras) > 0 {
		fmt.Fprintf(&b, ", para=dict(%s)", strings.Join(paras, ", "))
	}
	fmt.Fprintf(&b, ", tensor_para=dict(args=[%s])),\n", strings.Join(args, ", "))
	return b.String(), true
}

// tensor writes one argument.
func (c *liftedCall) tensor(name string, rows []*liftedCall) (string, bool) {
	var shapes, strides, values []string
	one, list := c.args[name].(program.Input)
	list = !list
	if list {
		one = c.args[name].([]program.Input)[0]
	}
	fill := fillText(one)
	for _, r := range rows {
		if list {
			var each []string
			for _, in := range r.args[name].([]program.Input) {
				if in.DType != one.DType || fillText(in) != fill || in.RequiresGrad != one.RequiresGrad {
					return "", false
				}
				each = append(each, tuple(in.Shape))
			}
			shapes = append(shapes, "("+strings.Join(each, ", ")+",)")
			strides = append(strides, "None")
			continue
		}
		in := r.args[name].(program.Input)
		shapes = append(shapes, tuple(in.Shape))
		if in.Strides == nil {
			strides = append(strides, "None")
		} else {
			strides = append(strides, tuple(in.Strides))
		}
		if fill == "" {
			t := in.Materialize().Contiguous()
			if t.DType().IsComplex() || in.Strides != nil || slices.Contains(in.Shape, 0) {
				return "", false
			}
			values = append(values, nested(t, t.Shape(), 0))
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "dict(ins=[%s], ", quote(name))
	switch {
	case fill == "" && list:
		return "", false
	case fill == "":
		fmt.Fprintf(&b, "value=[%s], gen_policy='gen_tensor_by_value'", strings.Join(values, ", "))
	default:
		fmt.Fprintf(&b, "shape=[%s], gen_fn=%s", strings.Join(shapes, ", "), fill)
	}
	if list {
		b.WriteString(", gen_policy='gen_tensor_list_diff_shape'")
	}
	if c.strided(rows) && fill != "" {
		fmt.Fprintf(&b, ", stride=[%s]", strings.Join(strides, ", "))
	}
	dtype, ok := numpyName(one.DType)
	if !ok {
		return "", false
	}
	fmt.Fprintf(&b, ", dtype=[%s]", dtype)
	if one.RequiresGrad && !c.plain {
		b.WriteString(", requires_grad=[True]")
	}
	return b.String() + ")", true
}

// strided reports whether an argument of a row has strides: then all columns say so.
func (c *liftedCall) strided(rows []*liftedCall) bool {
	return slices.ContainsFunc(rows, func(r *liftedCall) bool {
		for _, v := range r.args {
			if in, ok := v.(program.Input); ok && in.Strides != nil {
				return true
			}
		}
		return false
	})
}

// entries writes the chosen calls of an operator.
func (l *lifter) entries(id string, chosen []*liftedCall) string {
	var forms []string
	rows := map[string][]*liftedCall{}
	for _, c := range chosen {
		f := c.form()
		if rows[f] == nil {
			forms = append(forms, f)
		}
		rows[f] = append(rows[f], c)
	}
	base := strings.TrimPrefix(strings.ReplaceAll(id, ".", "_"), "torch_")
	name := base
	for i := 2; l.named[name]; i++ {
		name = fmt.Sprintf("%s_%d", base, i)
	}
	l.named[name] = true
	var b strings.Builder
	for i, f := range forms {
		text, _ := rows[f][0].entry(fmt.Sprintf("%s_t%d", name, i+1), rows[f])
		b.WriteString(text)
	}
	return b.String()
}
