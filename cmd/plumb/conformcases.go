package main

import (
	"fmt"

	"plumb/choice"
	"plumb/conform"
	"plumb/conform/baseline"
	"plumb/program"
	"plumb/tensor"
)

// conformCases are the cases of a config, as far as pick takes them, to record.
func conformCases(c *conform.Config, seed uint64, pick func(function string) bool) []baseline.Case {
	var list []baseline.Case
	for one := range c.Cases() {
		if !pick(one.Function) {
			continue
		}
		atol, rtol := one.Tolerance()
		list = append(list, baseline.Case{
			Name: one.Name, Function: one.Function, ATol: atol, RTol: rtol,
			Programs: func() ([]baseline.Variant, error) { return conformPrograms(one, seed) },
		})
	}
	return list
}

// conformPrograms are the variants of a case.
func conformPrograms(c *conform.Case, seed uint64) ([]baseline.Variant, error) {
	p, err := standIn(c, seed)
	if err != nil {
		return nil, err
	}
	return []baseline.Variant{{Program: p}}, nil
}

func standIn(c *conform.Case, seed uint64) (*program.Program, error) {
	if c.Interface != "torch" && c.Interface != "torch.nn.functional" {
		return nil, fmt.Errorf("interface %s", c.Interface)
	}
	p := &program.Program{Name: c.Name, Seed: seed}
	call := program.Call{Result: "out", Target: c.Interface + "." + c.Function}
	tp, _ := c.Item.Get("tensor_para").(*conform.Dict)
	args, _ := tp.Get("args").(conform.List)
	for i, a := range args {
		d := a.(*conform.Dict)
		name := string(d.Get("ins").(conform.String))
		if _, none := d.Get("shape").(conform.None); none {
			call.Kwargs = append(call.Kwargs, program.Kwarg{Name: name})
			continue
		}
		shape, ok := d.Get("shape").(conform.Tuple)
		if !ok || d.Get("value") != nil || d.Get("gen_policy") != conform.String("default") {
			return nil, fmt.Errorf("argument %s", name)
		}
		in := program.Input{Name: name, Shape: []int{}}
		for _, s := range shape {
			n, ok := s.(conform.Int)
			if !ok {
				return nil, fmt.Errorf("argument %s", name)
			}
			in.Shape = append(in.Shape, int(n))
		}
		dt, _ := d.Get("dtype").(conform.DType)
		if dt == "bool_" {
			dt = "bool"
		}
		var err error
		if in.DType, err = tensor.ParseDType(string(dt)); err != nil {
			return nil, err
		}
		in.Fill = program.Fill{Dist: program.Uniform, Lo: -2, Hi: 2, Key: choice.Derive(seed, uint64(c.Index), uint64(i))}
		if !in.DType.IsDifferentiable() {
			in.Fill.Dist, in.Fill.Hi = program.Integer, 10
			if in.Fill.Lo = 0; in.DType == tensor.Bool {
				in.Fill.Hi = 2
			}
		}
		if g, ok := d.Get("requires_grad").(conform.List); ok && len(g) == 1 && g[0] == conform.Bool(true) && in.DType.IsDifferentiable() {
			in.RequiresGrad = true
		}
		p.Inputs = append(p.Inputs, in)
		call.Kwargs = append(call.Kwargs, program.Kwarg{Name: name, Value: program.Ref(name)})
		if in.RequiresGrad && len(p.Backward) == 0 {
			p.Backward = append(p.Backward, program.Backward{Value: "out"})
		}
	}
	para, _ := c.Item.Get("para").(*conform.Dict)
	for _, k := range para.Keys() {
		v, err := standInValue(para.Get(k))
		if err != nil {
			return nil, err
		}
		call.Kwargs = append(call.Kwargs, program.Kwarg{Name: k, Value: v})
	}
	p.Calls = []program.Call{call}
	return p, nil
}

func standInValue(v conform.Value) (any, error) {
	switch v := v.(type) {
	case conform.None:
		return nil, nil
	case conform.Bool:
		return bool(v), nil
	case conform.Int:
		return int64(v), nil
	case conform.Float:
		return float64(v), nil
	case conform.String:
		return string(v), nil
	case conform.DType:
		return tensor.ParseDType(string(v))
	case conform.Tuple:
		var out program.Tuple
		for _, x := range v {
			y, err := standInValue(x)
			if err != nil {
				return nil, err
			}
			out = append(out, y)
		}
		return out, nil
	}
	return nil, fmt.Errorf("value %T", v)
}
