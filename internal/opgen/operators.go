package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"plumb/backend"
	"plumb/backend/native"
	"plumb/internal/draw/choice"
	"plumb/internal/draw/opcase"
	"plumb/nn"
	"plumb/op"
	"plumb/program"
	"plumb/tensor"
)

// operatorData is what the kit for subjects in Python knows of an operator, so
// that a framework with an interface of its own needs to say that alone.
type operatorData struct {
	Signatures []string `json:"signatures"`
	// Constant says that no result has a gradient.
	Constant bool `json:"constant,omitempty"`
	// Floats says that calls of integers give results of the default dtype.
	Floats bool `json:"floats,omitempty"`
	// View says that the result may share the first argument's memory.
	View bool `json:"view,omitempty"`
	// Variadic says that public functions take the elements of the first argument one by one.
	Variadic bool `json:"variadic,omitempty"`
}

// operators writes the operators by id; the public names, each with the ids
// that it may mean and their parameters where the name has others; and the
// constructors of modules.
func operators(table *op.Table, modules *nn.Table) []byte {
	data := map[string]any{}
	for _, def := range table.Defs() {
		data[def.ID()] = operatorData{
			Signatures: texts(def.Sigs()),
			Constant:   def.Traits.Has(op.NoGrad),
			Floats:     floats(table, def),
			View:       def.Traits.Has(op.View),
			Variadic:   def.Variadic,
		}
	}
	names := map[string]any{}
	for _, name := range table.Names() {
		var meanings []any
		for _, def := range table.Lookup(name) {
			meanings = append(meanings, meaning(def, name))
		}
		names[name] = meanings
	}
	constructors := map[string]any{}
	for _, def := range modules.Defs() {
		for _, name := range def.Names {
			constructors[name] = texts(def.Sigs())
		}
	}
	return grouped(map[string]map[string]any{"operators": data, "names": names, "modules": constructors})
}

// meaning is an operator's id, with its parameters where the name has others.
func meaning(def *op.Def, name string) any {
	called := paramNames(def.Called(name))
	if slices.Equal(called, paramNames(def.Sigs()[0])) {
		return def.ID()
	}
	return []any{def.ID(), called}
}

func paramNames(s *op.Sig) []string {
	names := []string{}
	for _, p := range s.Params {
		names = append(names, p.Name)
	}
	return names
}

func texts(sigs []*op.Sig) []string {
	all := []string{}
	for _, s := range sigs {
		all = append(all, s.String())
	}
	return all
}

// floats reports whether a sampled call, of integers alone, gives float32.
func floats(table *op.Table, def *op.Def) bool {
	d := opcase.Drawer{Table: table, Def: def}
	if def.Traits.Has(op.Random) || len(d.DTypes(tensor.I64)) == 0 {
		return false
	}
	for i := range uint64(drawsOfIntegers) {
		p, err := d.Legal(choice.New(choice.Derive(0, i)), tensor.I64)
		if err != nil {
			return false
		}
		if !givesFloat(p) {
			return ofIntegers(table, p) == tensor.F32
		}
	}
	return false
}

// drawsOfIntegers are drawn until one is of integers alone.
const drawsOfIntegers = 16

// ofIntegers returns the dtype of what a program of integers gives.
func ofIntegers(table *op.Table, p *program.Program) tensor.DType {
	job := &backend.Job{Program: p}
	for i := range p.Inputs {
		job.Inputs = append(job.Inputs, p.Inputs[i].Materialize())
	}
	out, err := native.New(table, nn.Modules()).Run(context.Background(), job)
	if err != nil || out.Status != backend.OK || len(out.Values) == 0 || out.Values[len(out.Values)-1].Tensor == nil {
		return tensor.Invalid
	}
	return out.Values[len(out.Values)-1].Tensor.DType()
}

// givesFloat reports whether an input or a number of a program's call is no integer.
func givesFloat(p *program.Program) bool {
	isFloat := func(v any) bool { _, ok := v.(float64); return ok }
	c := &p.Calls[0]
	return slices.ContainsFunc(p.Inputs, func(in program.Input) bool { return in.DType.IsDifferentiable() }) ||
		slices.ContainsFunc(c.Args, isFloat) || slices.ContainsFunc(c.Kwargs, func(k program.Kwarg) bool { return isFloat(k.Value) })
}

// grouped writes an object of objects with a line for each entry of these.
func grouped(groups map[string]map[string]any) []byte {
	var b bytes.Buffer
	line := json.NewEncoder(&b)
	line.SetEscapeHTML(false)
	for i, group := range slices.Sorted(maps.Keys(groups)) {
		fmt.Fprintf(&b, "%s\n %q: {", []string{"{", ","}[min(i, 1)], group)
		for j, name := range slices.Sorted(maps.Keys(groups[group])) {
			fmt.Fprintf(&b, "%s\n  %q: ", []string{"", ","}[min(j, 1)], name)
			if err := line.Encode(groups[group][name]); err != nil {
				panic(err) // texts and flags alone
			}
			b.Truncate(b.Len() - 1)
		}
		b.WriteString("\n }")
	}
	b.WriteString("\n}\n")
	return b.Bytes()
}
