package command

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"unicode/utf8"

	"github.com/spf13/pflag"

	"plumb/backend"
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

// drawing says how the cases of a command are drawn.
type drawing struct {
	given    *uint64 // the seed that the command line gives
	seed     uint64
	n        int             // cases per test; 0 for its own number
	dtypes   []tensor.DType  // of random float tensors; nil for the test's own
	device   string          // that random_device() gives
	strict   bool            // a test that names a CUDA device needs one
	maxBytes int             // of a random tensor
	graph    func(bool) bool // says whether a test is judged in graph modes
	shapes   shapes
	shared   atomic.Bool // a program was drawn that several cases share
	sigs     *signatures
	printed  printed
	// read reads what test files import, by slashed paths; nil for readSource.
	read func(path string) ([]byte, error)
}

func (d *drawing) register(fl *pflag.FlagSet) {
	fl.VarP(wholeNumber(&d.n, 1), "number", "n", "cases per test (default: the test's own, 20 unless it says otherwise)")
	fl.Var(anySeed(&d.given), "seed", "the seed of all cases (default: a new one, printed at the end)")
	fl.Var(oneOf(&d.shapes, fewShapes, anyShapes), "shapes", "few: of 20 cases of a test, two programs are drawn, each with other elements each time, from 16 that stay the same from run to run, for subjects that compile; any: each case draws its own (default: few where a candidate says that compiling is dear, else any)")
}

func (d *drawing) registerDTypes(fl *pflag.FlagSet) {
	fl.Var(floatTypes(&d.dtypes), "dtype", "run every test with this dtype for random float tensors and modules; may be repeated (default float32)")
}

// settle takes the seed of the command line, else of an earlier run, else a new one.
func (d *drawing) settle(earlier *uint64) {
	switch {
	case d.given != nil:
		d.seed = *d.given
	case earlier != nil:
		d.seed = *earlier
	default:
		d.seed = rand.Uint64() >> 32
	}
}

// loaded is what test files hold.
type loaded struct {
	tests   []campaign.Test
	defined map[string]*script.Test // by the test's name; not those of saved programs
	skipped []*script.Test          // that say that they are not to be run
	saved   int                     // tests that are saved programs
	notes   []string
	imports []string // paths of the modules that they import
}

// add takes what another file holds.
func (l *loaded) add(o *loaded) {
	l.tests, l.skipped, l.notes = append(l.tests, o.tests...), append(l.skipped, o.skipped...), append(l.notes, o.notes...)
	l.saved += o.saved
	for name, t := range o.defined {
		l.defined[name] = t
	}
}

// shipped loads the shipped suites, or the cases of the baseline that is the reference.
func (d *drawing) shipped(s *subjects) (*loaded, error) {
	out := &loaded{defined: map[string]*script.Test{}}
	if open.IsRecorded(s.reference) {
		_, path, _ := strings.Cut(s.reference, ":")
		base, err := open.Baseline(path)
		if err == nil {
			out.tests = d.recorded(base)
		}
		return out, err
	}
	for _, f := range suites.Files() {
		l, err := d.file(f.Name, f.Source)
		if err != nil {
			return nil, err
		}
		out.add(l)
	}
	return out, nil
}

// files loads test files and saved programs; of a folder it takes the files
// test_*.py in it and below. Where there are several, what is no Python costs
// its own file alone.
func (d *drawing) files(names []string) (*loaded, error) {
	names, notes, err := withinFolders(names)
	if err != nil {
		return nil, err
	}
	out := &loaded{defined: map[string]*script.Test{}, notes: notes}
	for _, name := range names {
		src, err := readSource(name)
		if err != nil {
			return nil, err
		}
		name = filepath.ToSlash(name)
		l, err := d.file(name, src)
		switch {
		case err == nil:
			out.add(l)
		case len(names) == 1:
			return nil, err
		default:
			out.tests = append(out.tests, mistaken(name, err))
		}
	}
	return out, nil
}

// withinFolders puts the test files of a folder in its place, and notes where it leaves
// out others that have tests.
func withinFolders(names []string) (files, notes []string, err error) {
	for _, name := range names {
		info, err := os.Stat(name)
		if errors.Is(err, os.ErrNotExist) && name == string(suitesSource) { // they are there without their folder
			for _, f := range suites.Files() {
				files = append(files, f.Name)
			}
			continue
		}
		if err != nil || !info.IsDir() {
			files = append(files, name)
			continue
		}
		before, others := len(files), []string(nil)
		err = filepath.WalkDir(name, func(path string, e fs.DirEntry, err error) error {
			switch ok, _ := filepath.Match("test_*.py", e.Name()); {
			case err != nil || e.IsDir():
			case ok:
				files = append(files, path)
			case hasTests(path):
				others = append(others, path)
			}
			return err
		})
		switch {
		case err != nil:
			return nil, nil, err
		case len(files) == before && len(others) > 0:
			return nil, nil, fmt.Errorf("%s holds no file test_*.py; %s", name, haveTests(others))
		case len(files) == before:
			return nil, nil, fmt.Errorf("%s holds no file test_*.py", name)
		case len(others) > 0:
			notes = append(notes, fmt.Sprintf("%s stands for its files test_*.py; %s", name, haveTests(others)))
		}
	}
	return files, notes, nil
}

var decorated = regexp.MustCompile(`(?m)^[ \t]*@(\w+\.)*autotest\b`)

// hasTests reports whether a file of a folder looks as if it had tests.
func hasTests(path string) bool {
	if filepath.Ext(path) != ".py" {
		return false
	}
	src, err := readSource(path)
	return err == nil && decorated.Match(src)
}

func haveTests(files []string) string {
	if len(files) == 1 {
		return files[0] + " has tests too: name it to run them"
	}
	return fmt.Sprintf("%d others have tests too, such as %s: name them to run them", len(files), files[0])
}

// mistaken is a file that cannot be loaded, as a test in error.
func mistaken(name string, err error) campaign.Test {
	return campaign.Test{Name: name, N: 1, Fixed: true, Draw: func(int, campaign.Observer) (*program.Program, error) { return nil, err }}
}

// file loads a test file or a saved program.
func (d *drawing) file(name string, src []byte) (*loaded, error) {
	if err := checkText(name, src); err != nil {
		return nil, err
	}
	out := &loaded{defined: map[string]*script.Test{}}
	if program.IsProgram(string(src)) {
		p, err := program.Parse(name, string(src))
		if err != nil {
			return nil, err
		}
		if err := p.Validate(); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		out.tests, out.saved = []campaign.Test{fixed(name, []*program.Program{p})}, 1
		return out, nil
	}
	read := d.read
	if read == nil {
		read = readSource
	}
	file, err := script.LoadBeside(name, src, read)
	if err != nil {
		return nil, err
	}
	out.imports = file.Imports()
	for _, n := range file.Notes {
		out.notes = append(out.notes, fmt.Sprintf("%s:%d: %s", name, n.Line, n.Text))
	}
	if len(file.Accelerators) > 0 && !d.strict && d.device == newSubjects().device {
		out.notes = append(out.notes, fmt.Sprintf("%s:%d: the accelerator that it names is the CPU in this run (%s); see --device-strict", name, file.Accelerators[0], count(len(file.Accelerators), "line")))
	}
	if len(file.Tests()) == 0 {
		return nil, fmt.Errorf("%s has no test: write one as\n\n  @autotest()\n  def test_relu():\n      x = random_tensor(ndim=2)\n      return torch.relu(x)", name)
	}
	for _, t := range file.Tests() {
		if t.Skip != "" {
			out.skipped = append(out.skipped, t)
			continue
		}
		for _, float := range d.variants(t) {
			test := d.test(t, float)
			out.defined[test.Name] = t
			out.tests = append(out.tests, test)
		}
	}
	return out, nil
}

// variants returns the dtypes of random float tensors with which a test runs:
// those of the command line, else its own; Invalid for float32.
func (d *drawing) variants(t *script.Test) []tensor.DType {
	switch {
	case d.dtypes != nil:
		return d.dtypes
	case t.Options.DTypes != nil:
		return t.Options.DTypes
	}
	return []tensor.DType{tensor.Invalid}
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

// test draws a test's cases. The key of a case comes from the seed, the test's
// name without its folder, and the index.
func (d *drawing) test(t *script.Test, float tensor.DType) campaign.Test {
	_, inFile, _ := strings.Cut(t.Name, "::")
	full, name := t.Name, filepath.Base(t.File)+"::"+inFile
	if float != tensor.Invalid {
		full, name = full+"["+float.String()+"]", name+"["+float.String()+"]"
	}
	seed := d.seed
	if t.Options.Seed != nil {
		seed = *t.Options.Seed
	}
	n := t.Options.N
	if d.n > 0 {
		n = d.n * max(t.Calls, 1)
	}
	graph := t.Options.CheckGraph
	if d.graph != nil {
		graph = d.graph(graph)
	}
	test := campaign.Drawn(full, name, n, d.drawn(name, seed, t.Calls, true), func(src *choice.Source, i int, o campaign.Observer) (*program.Program, error) {
		env := script.Env{
			Signatures: d.sigs, Reference: d.sigs.Reference(), Observer: o, Devices: []string{d.device}, DeviceStrict: d.strict, Index: i,
			Float: float, Integers: true, MaxBytes: d.maxBytes, Version: d.sigs.Version,
			Print: d.printed.of(full, i), Debug: debugGraph,
		}
		p, err := t.Draw(src, env)
		if err == nil && graph && p.Steps() {
			p.Step = program.GraphStep
		}
		return p, err
	})
	test.Graph = graph
	return test
}

func fixed(name string, programs []*program.Program) campaign.Test {
	return campaign.Test{Name: name, N: len(programs), Fixed: true, Graph: true, Draw: func(i int, _ campaign.Observer) (*program.Program, error) {
		return programs[i], nil
	}}
}

// recorded returns the tests of a baseline, of each the first -n cases.
func (d *drawing) recorded(base *recorded.Baseline) []campaign.Test {
	var out []campaign.Test
	programs := map[string][]*program.Program{}
	var names []string
	for _, c := range base.Cases() {
		if programs[c.Test] == nil {
			names = append(names, c.Test)
		}
		if d.n == 0 || len(programs[c.Test]) < d.n {
			programs[c.Test] = append(programs[c.Test], c.Program)
		}
	}
	for _, n := range names {
		out = append(out, fixed(n, programs[n]))
	}
	return out
}

// maxSource bounds a saved program, whose text may hold literal tensors; a test
// file is smaller.
const maxSource = 256 << 20

// readSource reads a test file, or a shipped suite that is not on the disk.
func readSource(name string) ([]byte, error) {
	if info, err := os.Stat(name); err == nil && info.Mode().IsRegular() && info.Size() > maxSource {
		return nil, fmt.Errorf("%s is larger than %d MiB; it is no test file", name, maxSource>>20)
	}
	src, err := readRegular(name)
	if errors.Is(err, os.ErrNotExist) {
		if at := slices.IndexFunc(suites.Files(), func(f suites.File) bool { return f.Name == name }); at >= 0 {
			return suites.Files()[at].Source, nil
		}
	}
	return src, err
}

// explainer adds to the errors of tests where they stand and what the
// reference lacks.
type explainer struct {
	defined    map[string]*script.Test
	candidates int
	beyond     []*verdict.Record // cases of the running test that the reference does not support
}

func (x *explainer) record(rec *verdict.Record) {
	if rec.Reference.Status == backend.Unsupported && rec.Verdict.Word == verdict.Unsupported {
		x.beyond = append(x.beyond, rec)
	}
}

// end adds the test's position to its error. Where the reference supports none
// of its cases, that is the error, unless they call what OneFlow alone has. (The
// table may have operators that the reference lacks.)
func (x *explainer) end(e *verdict.End) {
	beyond := x.beyond
	x.beyond = nil
	var stuck *campaign.StuckError
	t := x.defined[e.Test]
	switch {
	case e.Err == nil && (t == nil || !t.OfOneFlow()) && e.Judged > 0 && len(beyond) == e.Judged*x.candidates:
		e.Err = fmt.Errorf("%s: the reference supports none of the %d cases: %s", e.Test, e.Judged, beyond[0].Reference.Message)
	case !errors.As(e.Err, &stuck):
		return
	}
	if t != nil {
		e.Err = fmt.Errorf("%s:%d:1: %w", t.File, t.Line, e.Err)
	}
}
