package script

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"go.starlark.net/starlark"

	"plumb/backend"
	"plumb/backend/native"
	"plumb/internal/draw/choice"
	"plumb/nn"
	"plumb/op"
	"plumb/ops"
	"plumb/program"
	"plumb/tensor"
)

// snippet is a test body that is run by the engine and by CPython.
type snippet struct{ name, source string }

const snippetHeader = `import collections, copy, functools, itertools, math, operator, os, sys, unittest
import numpy as np
import random as pyrandom
import torch
import torch.nn as nn
import torch.nn.functional as F
from plumb import *
`

// show, in a snippet, compares the repr of a value.
func init() {
	predeclared["show"] = builtin("show", func(t *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
		d, err := drawOf(t, "show")
		if err == nil && d.env.trace != nil {
			d.env.trace("show", starlark.String(repr(a[0], 0)))
		}
		return starlark.None, err
	})
}

// snippets reads testdata/language.txt: "-- name --" begins a snippet, what
// stands before a line of "====" belongs to the module, and "=> v" shows v. A
// snippet without a random tensor has one, x.
func snippets(t *testing.T) []snippet {
	data, err := os.ReadFile("testdata/language.txt")
	if err != nil {
		t.Fatal(err)
	}
	var out []snippet
	for _, part := range strings.Split("\n"+string(data), "\n-- ")[1:] {
		name, text, ok := strings.Cut(part, " --\n")
		if !ok {
			t.Fatalf("%q begins no snippet", part)
		}
		out = append(out, snippet{name, wrapped(text)})
	}
	return out
}

func wrapped(text string) string {
	module, body, ok := strings.Cut(text, "====\n")
	if !ok {
		module, body = "", text
	}
	if !strings.Contains(text, "random_tensor") {
		body = "x = random_tensor(ndim=2, dim0=2, dim1=3)\n" + body
	}
	if strings.Contains(body, "class TestIt") {
		return snippetHeader + module + body
	}
	var b strings.Builder
	b.WriteString(snippetHeader + module + "@autotest(n=1)\ndef test_it(test_case):\n")
	for _, line := range strings.Split(strings.TrimRight(body, "\n"), "\n") {
		if value, ok := strings.CutPrefix(line, "=> "); ok {
			line = "show((" + value + "))"
		}
		b.WriteString("    " + line + "\n")
	}
	return b.String()
}

// tableSigs are the signatures of Plumb's own operators.
type tableSigs struct{}

func (tableSigs) Signatures(name string) ([]*op.Sig, error) {
	var sigs []*op.Sig
	for _, d := range ops.Table().Lookup(name) {
		sigs = append(sigs, d.Sigs()...)
	}
	if d := nn.Modules().Lookup(name); d != nil {
		sigs = append(sigs, d.Sigs()...)
	}
	return sigs, nil
}

// nativeObserver answers with Plumb's own values.
type nativeObserver struct{ *native.Backend }

func (o nativeObserver) Observe(p *program.Program, refs ...program.Ref) ([]backend.Value, error) {
	return backend.Observe(p, refs, func(job *backend.Job) (*backend.Outcome, error) {
		out, err := o.Run(context.Background(), job)
		if err == nil && out.Status != backend.OK {
			err = fmt.Errorf("%s: %s", out.Status, out.Message)
		}
		return out, err
	})
}

type recordedInput struct {
	Shape        []int  `json:"shape"`
	DType        string `json:"dtype"`
	Data         any    `json:"data"`
	RequiresGrad bool   `json:"requires_grad"`
}

type recordedCase struct {
	Name   string          `json:"name"`
	Source string          `json:"source"`
	Inputs []recordedInput `json:"inputs"`
	Trace  []any           `json:"trace"`
}

// drawSnippet returns what the engine recorded, in the words of recorder.py.
func drawSnippet(s snippet) (c recordedCase, lines []string, err error) {
	f, err := Load(s.name, []byte(s.source))
	if err != nil {
		return c, nil, err
	}
	if len(f.Tests()) != 1 {
		return c, nil, fmt.Errorf("%d tests; notes %v", len(f.Tests()), f.Notes)
	}
	c = recordedCase{Name: s.name, Source: s.source, Inputs: []recordedInput{}, Trace: []any{}}
	env := Env{Signatures: tableSigs{}, Observer: nativeObserver{native.New(ops.Table(), nn.Modules())}}
	var shown []string
	env.trace = func(what string, v starlark.Value) {
		if what == "show" {
			shown = append(shown, "show "+string(v.(starlark.String)))
			return
		}
		c.Trace = append(c.Trace, []any{what, traced(v)})
	}
	p, err := f.Tests()[0].Draw(choice.New(7), env)
	if err != nil {
		return c, nil, err
	}
	for i := range p.Inputs {
		in := &p.Inputs[i]
		t := in.Materialize()
		c.Inputs = append(c.Inputs, recordedInput{in.Shape, in.DType.String(), texts(t), in.RequiresGrad})
	}
	return c, append(canonical(p), shown...), nil
}

// traced encodes a value for recorder.py.
func traced(v starlark.Value) any {
	switch v := v.(type) {
	case starlark.NoneType:
		return []any{"n"}
	case starlark.Bool:
		return []any{"b", bool(v)}
	case starlark.Int:
		return []any{"i", v.String()}
	case starlark.Float:
		return []any{"f", strconv.FormatFloat(float64(v), 'g', -1, 64)}
	case starlark.String:
		return []any{"s", string(v)}
	case dtype:
		return []any{"d", tensor.DType(v).String()}
	case *array:
		return []any{"a", v.t.DType().String(), append([]int{}, v.t.Shape()...), texts(v.t)}
	case *starlark.List, starlark.Tuple:
		vs, _ := sequence(v)
		out := []any{}
		for _, e := range vs {
			out = append(out, traced(e))
		}
		return []any{map[bool]string{true: "l", false: "t"}[v.Type() == "list"], out}
	}
	return []any{"missing"}
}

func texts(t *tensor.Tensor) any {
	out := []any{}
	float := func(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }
	for i := range t.Len() {
		switch d := t.DType(); {
		case d.IsComplex():
			out = append(out, []string{float(real(t.At(i))), float(imag(t.At(i)))})
		case d.IsFloat():
			out = append(out, float(t.Float(i)))
		default:
			out = append(out, strconv.FormatInt(t.Int(i), 10))
		}
	}
	return out
}

// canonical returns the calls of the program under canonical names.
func canonical(p *program.Program) []string {
	names := map[program.Ref]program.Ref{}
	for i, in := range p.Inputs {
		names[program.Ref(in.Name)] = program.Ref(fmt.Sprintf("in%d", i))
	}
	for i, c := range p.Calls {
		names[program.Ref(c.Result)] = program.Ref(fmt.Sprintf("c%d", i))
	}
	rename := func(v any) any { return program.MapRefs(v, func(r program.Ref) any { return names[r] }) }
	q := &program.Program{}
	for _, c := range p.Calls {
		c.Result = string(names[program.Ref(c.Result)])
		c.Args = rename(program.List(c.Args)).(program.List)
		kwargs := c.Kwargs
		c.Kwargs = nil
		for _, kw := range kwargs {
			c.Kwargs = append(c.Kwargs, program.Kwarg{Name: kw.Name, Value: rename(kw.Value)})
		}
		q.Calls = append(q.Calls, c)
	}
	_, text, _ := strings.Cut(q.String(), "case(")
	_, text, _ = strings.Cut(text, "\n")
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	for _, b := range p.Backward {
		lines = append(lines, "backward "+string(names[b.Value]))
	}
	return lines
}

// TestLanguageAgreesWithCPython runs every snippet by the engine and by
// CPython, over PyTorch, with the same inputs and drawn values: both must
// record the same program.
func TestLanguageAgreesWithCPython(t *testing.T) {
	python := os.Getenv("PLUMB_PYTHON")
	if python == "" {
		python = "/usr/bin/python3"
	}
	if err := exec.Command(python, "-c", "import torch, numpy").Run(); err != nil {
		t.Skipf("%s has no torch and numpy: %v", python, err)
	}
	all := snippets(t)
	if len(all) < 200 {
		t.Errorf("%d snippets, want at least 200", len(all))
	}
	var cases []recordedCase
	drawn := map[string][]string{}
	for _, s := range all {
		c, lines, err := drawSnippet(s)
		if err != nil {
			t.Errorf("%s: %v", s.name, err)
			continue
		}
		if drawn[s.name] != nil {
			t.Errorf("two snippets are called %s", s.name)
		}
		cases, drawn[s.name] = append(cases, c), lines
	}
	for _, r := range record(t, python, cases) {
		got, want := strings.Join(drawn[r.Name], "\n"), strings.Join(r.Lines, "\n")
		switch {
		case r.Error != "":
			t.Errorf("%s: CPython: %s\nthe engine recorded\n%s", r.Name, r.Error, got)
		case got != want:
			t.Errorf("%s: the engine recorded\n%s\nCPython\n%s", r.Name, got, want)
		}
	}
}

type recordedLines struct {
	Name  string   `json:"name"`
	Lines []string `json:"lines"`
	Error string   `json:"error"`
}

func record(t *testing.T, python string, cases []recordedCase) []recordedLines {
	t.Helper()
	in, err := json.Marshal(cases)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(python, "testdata/recorder.py")
	var stderr bytes.Buffer
	cmd.Stdin, cmd.Stderr = bytes.NewReader(in), &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("recorder.py: %v\n%s", err, stderr.String())
	}
	var lines []recordedLines
	if err := json.Unmarshal(out, &lines); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return lines
}
