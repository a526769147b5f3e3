package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"plumb/backend/open"
	"plumb/backend/recorded"
	"plumb/internal/campaign"
	"plumb/internal/draw/choice"
	"plumb/internal/draw/script"
	"plumb/internal/judge/verdict"
	"plumb/program"
	"plumb/suites"
	"plumb/tensor"
)

// tests returns what the files hold, or the shipped tests.
func (r *runner) tests() ([]campaign.Test, error) {
	if r.graphs > 0 {
		if len(r.files) > 0 || r.ops != "" {
			return nil, usage(errors.New("--graphs takes the place of test files and of --ops"))
		}
		test, err := r.graphTest()
		return []campaign.Test{test}, err
	}
	if r.ops != "" {
		draw := r.opTests
		if r.coverage != "" {
			draw = r.coverTests
		}
		ts, err := draw(r.ops)
		if err == nil && len(r.files) > 0 {
			err = fmt.Errorf("--ops %s takes the place of test files; leave out %s", r.ops, r.files[0])
		}
		if err != nil {
			return nil, usage(err)
		}
		return ts, nil
	}
	if open.IsRecorded(r.reference) && len(r.files) == 0 {
		_, path, _ := strings.Cut(r.reference, ":")
		base, err := open.Baseline(path)
		if err != nil {
			return nil, usage(err)
		}
		return r.recordedTests(base), nil
	}
	var out []campaign.Test
	if len(r.files) == 0 {
		for _, f := range suites.Files() {
			ts, err := r.fileTests(f.Name, f.Source)
			if err != nil {
				return nil, usage(err)
			}
			out = append(out, ts...)
		}
		return out, nil
	}
	for _, name := range r.files {
		src, err := readSource(name)
		if err != nil {
			return nil, usage(err)
		}
		ts, err := r.fileTests(filepath.ToSlash(name), src)
		if err != nil {
			return nil, usage(err)
		}
		out = append(out, ts...)
	}
	return out, nil
}

func (r *runner) fileTests(name string, src []byte) ([]campaign.Test, error) {
	if err := checkText(name, src); err != nil {
		return nil, err
	}
	if program.IsProgram(string(src)) {
		p, err := program.Parse(name, string(src))
		if err != nil {
			return nil, err
		}
		if err := p.Check(); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		return []campaign.Test{fixed(name, []*program.Program{p})}, nil
	}
	file, err := script.Load(name, src)
	if err != nil {
		return nil, err
	}
	for _, n := range file.Notes {
		fmt.Fprintf(r.err, "plumb: %s:%d: %s\n", name, n.Line, n.Text)
	}
	if len(file.Tests()) == 0 {
		return nil, fmt.Errorf("%s has no test: write one as\n\n  @autotest()\n  def test_relu():\n      x = random_tensor(ndim=2)\n      return torch.relu(x)", name)
	}
	var out []campaign.Test
	for _, t := range file.Tests() {
		switch {
		case t.Skip == "":
			for _, d := range r.variants(t) {
				out = append(out, r.scriptTest(t, d))
			}
		case r.wanted(t.Name):
			r.skipped++
			r.over = append(r.over, collected{Test: t.Name, File: t.File, Line: t.Line, Skip: t.Skip})
			fmt.Fprintf(r.err, "plumb: %s:%d: %s is skipped: %s\n", name, t.Line, t.Name, t.Skip)
		}
	}
	return out, nil
}

// variants returns the dtypes of random float tensors with which a test runs:
// those of the command line, else its own.
func (r *runner) variants(t *script.Test) []tensor.DType {
	if len(r.dtypes) == 0 && t.Options.DTypes != nil {
		return t.Options.DTypes
	}
	return r.floats
}

// checkText returns an error with the position of what is not text.
func checkText(name string, src []byte) error {
	line, col := 1, 1
	for len(src) > 0 {
		c, size := utf8.DecodeRune(src)
		switch {
		case c == 0 || c == utf8.RuneError && size == 1:
			return fmt.Errorf("%s:%d:%d: this is not text; a test file is Python source in UTF-8", name, line, col)
		case c == '\n':
			line, col = line+1, 1
		default:
			col++
		}
		src = src[size:]
	}
	return nil
}

// scriptTest draws a test's cases. The key of a case comes from the seed, the
// test's name without its folder, and the index. Float is the dtype of float
// tensors; Invalid means float32.
func (r *runner) scriptTest(t *script.Test, float tensor.DType) campaign.Test {
	_, inFile, _ := strings.Cut(t.Name, "::")
	full, name := t.Name, filepath.Base(t.File)+"::"+inFile
	if float != tensor.Invalid {
		full, name = full+"["+float.String()+"]", name+"["+float.String()+"]"
	}
	seed := r.seed
	if t.Options.Seed != nil {
		seed = *t.Options.Seed
	}
	key := choice.DeriveName(seed, name)
	n := t.Options.N
	if r.n > 0 {
		n = r.n * max(t.Calls, 1)
	}
	if r.defined == nil {
		r.defined = map[string]*script.Test{}
	}
	r.defined[full] = t
	test := campaign.Drawn(full, name, n, key, func(src *choice.Source, i int, o campaign.Observer) (*program.Program, error) {
		env := script.Env{
			Signatures: r.sigs, Reference: r.sigs.Reference(), Observer: o, Devices: []string{r.device}, Index: i,
			Float: float, Integers: true, MaxBytes: r.maxBytes, Version: r.sigs.Version,
		}
		p, err := t.Draw(src, env)
		if err == nil && r.checksGraph(t.Options.CheckGraph) && p.Steps() {
			p.Step = program.GraphStep
		}
		return p, err
	})
	test.Graph = r.checksGraph(t.Options.CheckGraph)
	return test
}

func fixed(name string, programs []*program.Program) campaign.Test {
	return campaign.Test{Name: name, N: len(programs), Fixed: true, Graph: true, Draw: func(i int, _ campaign.Observer) (*program.Program, error) {
		return programs[i], nil
	}}
}

// recordedTests returns the tests of a baseline, of each the first -n cases.
func (r *runner) recordedTests(base *recorded.Baseline) []campaign.Test {
	var out []campaign.Test
	programs := map[string][]*program.Program{}
	var names []string
	for _, c := range base.Cases() {
		if programs[c.Test] == nil {
			names = append(names, c.Test)
		}
		if r.n == 0 || len(programs[c.Test]) < r.n {
			programs[c.Test] = append(programs[c.Test], c.Program)
		}
	}
	for _, n := range names {
		out = append(out, fixed(n, programs[n]))
	}
	return out
}

// explain puts the place of the test before what its end says of the
// reference, and makes an error of a test file's test whose every case is
// beyond it. (The table may have operators that the reference lacks.)
func (r *runner) explain(e *verdict.End) {
	beyond := r.beyond
	r.beyond = nil
	var stuck *campaign.StuckError
	switch {
	case r.covering != nil: // the matrix says so
		return
	case e.Err == nil && e.Judged > 0 && !strings.HasPrefix(e.Test, opPrefix) && len(beyond) == e.Judged*len(r.candidates):
		e.Err = fmt.Errorf("%s: the reference supports none of the %d cases: %s", e.Test, e.Judged, beyond[0].Reference.Message)
	case !errors.As(e.Err, &stuck):
		return
	}
	if t := r.defined[e.Test]; t != nil {
		e.Err = fmt.Errorf("%s:%d:1: %w", t.File, t.Line, e.Err)
	}
}
