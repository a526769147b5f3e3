// Package script runs PyTorch-style test files: Python that an editor accepts,
// executed by an embedded Starlark engine behind a source pass. Loading a file
// collects its tests; drawing a test runs it once and records the calls of
// torch as a program, with every random decision taken from package choice.
//
// A call of torch.any.dotted.name is recorded whether or not anybody knows the
// name. What a parameter is, which decides how a generator is drawn and what
// is a mistake in the file, comes from Signatures; computed values that the
// test looks at (x.shape, x.item(), if) come from an Observer.
package script

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.starlark.net/resolve"
	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"plumb/internal/draw/choice"
	"plumb/internal/draw/gen"
	"plumb/program"
	"plumb/tensor"
)

// File is a loaded test file. It may be used by several goroutines.
type File struct {
	Name         string
	Notes        []Note
	Accelerators []int // lines that name one
	src          string
	out          *rewritten
	hints        map[point]string
	calls        map[point]*syntax.CallExpr
	tests        []*Test
	// mentions are the names that the body of the function at a line mentions.
	mentions map[int][]string
	endings  map[int]int // see Test.endings; by the same line

	program  *starlark.Program
	names    starlark.StringDict
	near     *neighbours         // nil for a file that imports none
	fixtures fixtures            // its own, and those of the conftest.py above
	starred  starlark.StringDict // what it imports by *

	floats  tensor.DType // of what its tests make without a dtype; Invalid for the default
	again   bool         // the top of the file runs again for every draw
	oneflow bool         // the file imports OneFlow
}

// Note says what of a file has no effect, such as an unknown decorator.
type Note struct {
	Line int
	Text string
}

// Tests returns the tests in the order of the file.
func (f *File) Tests() []*Test { return f.tests }

// Test is one test function.
type Test struct {
	Name    string // "file::Class::test" or "file::test"
	File    string
	Line    int // of its def
	Options Options
	Skip    string // why it is not to be run; empty otherwise
	// Profile is the target of the calls that a function with @profile
	// measures; empty for tests.
	Profile string
	// Calls, where not 0, is how many calls the test makes of decorated
	// functions: its cases are those.
	Calls int

	file     *File
	fn       *starlark.Function
	head     *starlark.Function // as the file defines it, below decorators of the file
	class    *class
	lacks    string // what the test needs that test files do not have
	wrong    error  // a mistake in the test's head
	examples int    // cases that hypothesis has of it; 0 where it has none
	fixtures fixtures
	params   map[string]starlark.Value // request.param of fixtures, by their names
	given    []starlark.Tuple          // keyword arguments of its function, by @pytest.mark.parametrize
	marked   []*pytestMark             // by other marks, the innermost first
	// attributes are those that its class has in it, by @parameterized_class.
	attributes starlark.StringDict

	global bool // it has @globaltest
	drives bool // it calls decorated functions
	plain  bool // it has no decorator and is run as it is
}

// OfOneFlow reports whether the test's file imports OneFlow: it may call what
// PyTorch lacks.
func (t *Test) OfOneFlow() bool { return t.file.oneflow }

// BackwardMode says which of a test's results are differentiated.
type BackwardMode uint8

// The values of auto_backward.
const (
	NoBackward   BackwardMode = iota // False
	FullBackward                     // True: every result
	AutoBackward                     // "auto": the results that require a gradient
)

// Options are the arguments of @autotest.
type Options struct {
	N              int // cases
	AutoBackward   BackwardMode
	RTol, ATol     *float64 // nil when not given
	CheckGraph     bool
	CheckAllClose  bool
	CheckDType     bool
	RandomGrad     bool // cotangents are random rather than ones
	IncludeComplex bool // half of the cases have complex inputs

	// What AutoTest has not:

	Seed      *uint64         // of the test's cases, instead of the run's
	DTypes    []tensor.DType  // of random float tensors: the test runs for each; nil for float32
	Layouts   []gen.Layout    // of random tensors that name none; nil for contiguous
	Special   program.Special // edge values in random tensors
	Order     int             // of the gradients: 1 or 2
	Tolerance string          // "autotest", "exact", "default" or empty
	Refusals  bool            // most draws are meant to be refused
	Draws     bool            // random results are compared by shape and dtype only
}

// options are the defaults of @autotest.
var options = Options{N: 20, AutoBackward: FullBackward, CheckGraph: true, CheckAllClose: true, RandomGrad: true, Order: 1}

// fileOptions are the parts of Python that Starlark leaves out by default.
var fileOptions = &syntax.FileOptions{Set: true, While: true, TopLevelControl: true, GlobalReassign: true, Recursion: true}

// Load parses a test file, runs its module body and collects its tests. The
// error is an *Error with the position. It imports no module of the tests' own.
func Load(filename string, src []byte) (*File, error) { return LoadBeside(filename, src, nil) }

// LoadBeside is Load of a file with others beside it, which read reads: modules that it
// imports, and the fixtures of conftest.py. Of a file that there is not the error is
// fs.ErrNotExist.
func LoadBeside(filename string, src []byte, read func(path string) ([]byte, error)) (*File, error) {
	f := &File{Name: filename, src: string(src), near: &neighbours{read: read}}
	if _, err := f.run(); err != nil {
		return nil, err
	}
	return f, nil
}

// run executes the file and returns its names.
func (f *File) run() (starlark.StringDict, error) {
	f.out = &rewritten{}
	out, scanErr := prepass(f.src)
	if scanErr != nil {
		return nil, f.errorAt(pointAt(f.src, scanErr.at), scanErr.msg)
	}
	f.out, f.Accelerators = out, out.accelerators
	f.meet(out.imports)
	near, notes := f.near.fixtures(f.Name)
	names := f.newNames(out)
	program, err := f.compile(names)
	if err != nil {
		return nil, f.located(err)
	}
	f.program, f.names = program, names.all()
	l := newLoader(f)
	l.fixtures, f.Notes = near, notes
	d := newDraw(&Test{Name: f.Name, file: f}, choice.New(0), Env{})
	defer d.close()
	thread := d.thread
	thread.SetLocal(loadKey, l)
	var globals starlark.StringDict
	err = guarded(func() (err error) {
		globals, err = program.Init(thread, f.names)
		return err
	})
	if err != nil {
		return nil, f.located(err)
	}
	f.again = l.drew || slices.ContainsFunc(modulesSetUp, globals.Has) || slices.ContainsFunc(slices.Collect(maps.Values(globals)), isChangeable)
	globals.Freeze()
	f.fixtures = l.fixtures
	l.enlist()
	f.mark(globals["pytestmark"])
	return globals, nil
}

// isChangeable reports whether a value outside of a test is one that tests may
// change.
func isChangeable(v starlark.Value) bool {
	switch v.(type) {
	case *starlark.List, *starlark.Dict, *starlark.Set, *object, *cell, *class:
		return true
	}
	return false
}

// rerun runs the top of the file for a draw, so that the tensors and lists
// that it makes are the draw's own, and returns the test as it is then.
func (f *File) rerun(d *draw, t *Test) (*Test, error) {
	fresh := *f
	fresh.tests, fresh.Notes = nil, nil
	l := newLoader(&fresh)
	l.fixtures, _ = f.near.fixtures(f.Name)
	d.thread.SetLocal(loadKey, l)
	defer d.thread.SetLocal(loadKey, nil)
	if _, err := f.program.Init(d.thread, f.names); err != nil {
		return nil, err
	}
	for _, u := range l.plain {
		fresh.tests = append(fresh.tests, u.test)
	}
	all := append(fresh.tests, l.shared...)
	i := slices.IndexFunc(all, func(other *Test) bool { return other.Name == t.Name })
	if i < 0 {
		return nil, fmt.Errorf("%s is not defined again", t.Name)
	}
	now := *t
	now.fn, now.head, now.class, now.fixtures = all[i].fn, all[i].head, all[i].class, all[i].fixtures
	now.given, now.params, now.attributes = all[i].given, all[i].params, all[i].attributes
	return &now, nil
}

// compile turns the file's source into a program. Names that nothing defines
// are errors where they are used, as in Python.
func (f *File) compile(names *names) (*starlark.Program, error) {
	var undefined map[point]string
	for {
		tree, err := fileOptions.Parse(f.Name, f.out.text, 0)
		if err != nil {
			return nil, err
		}
		if err := f.rewrite(tree, undefined); err != nil {
			return nil, err
		}
		program, err := starlark.FileProgram(tree, names.has)
		if undefined != nil || err == nil {
			return program, err
		}
		if undefined = undefinedNames(err); undefined == nil {
			return nil, err
		}
	}
}

// undefinedNames are the messages about names that nothing defines, by
// position; nil when the error tells of something else as well.
func undefinedNames(err error) map[point]string {
	var list resolve.ErrorList
	if !errors.As(err, &list) {
		return nil
	}
	out := map[point]string{}
	for _, e := range list {
		if !strings.HasPrefix(e.Msg, "undefined: ") {
			return nil
		}
		out[at(e.Pos)] = e.Msg
	}
	return out
}

// names are those that a file may use without defining them. Where a part of
// the file was dropped, or a module is not known of which everything is
// imported, any other name may have been defined there.
type names struct {
	opaque bool
	known  starlark.StringDict
	lost   []string
}

func (f *File) newNames(out *rewritten) *names {
	n := &names{out.opaque, maps.Clone(predeclared), nil}
	f.starred = starlark.StringDict{}
	for _, module := range out.stars {
		all, known := f.exported(module)
		maps.Copy(n.known, all)
		maps.Copy(f.starred, all)
		n.opaque = n.opaque || !known
	}
	return n
}

func (n *names) has(name string) bool {
	if n.known.Has(name) {
		return true
	}
	if !n.opaque || starlark.Universe.Has(name) {
		return false
	}
	n.lost = append(n.lost, name)
	return true
}

// all returns the values of the names, once it is known which the file uses.
func (n *names) all() starlark.StringDict {
	for _, name := range n.lost {
		n.known[name] = foreign(name)
	}
	return n.known
}

func (f *File) rewrite(tree *syntax.File, undefined map[point]string) error {
	f.endings = endings(tree)
	l := &lowerer{bodies: map[*syntax.DefStmt]bool{}}
	tree.Stmts = l.stmts(tree.Stmts)
	if l.err != nil {
		return *l.err
	}
	held := findCells(tree.Stmts, l.bodies)
	r := &rewriter{marks: f.out.marks, hints: map[point]string{}, calls: map[point]*syntax.CallExpr{}, undefined: undefined, properties: f.near.withProperties(tree), held: held}
	tree.Stmts = append(held.module.made(syntax.MakePosition(&f.Name, 1, 1)), r.stmts(tree.Stmts)...)
	f.hints, f.calls, f.mentions = r.hints, r.calls, map[int][]string{}
	syntax.Walk(tree, func(n syntax.Node) bool {
		if def, ok := n.(*syntax.DefStmt); ok {
			f.mentions[int(def.Def.Line)] = mentions(def)
		}
		return true
	})
	if r.err != nil {
		return *r.err
	}
	return nil
}

func mentions(def *syntax.DefStmt) []string {
	var names []string
	syntax.Walk(def, func(n syntax.Node) bool {
		if id, ok := n.(*syntax.Ident); ok && id != def.Name {
			names = append(names, id.Name)
		}
		return true
	})
	return names
}

// errorAt returns an error at a position of the original source.
func (f *File) errorAt(p point, msg string) *Error {
	return &Error{File: f.Name, Line: int(p.line), Col: int(p.col), Msg: msg, Source: sourceLine(f.src, int(p.line))}
}

// located turns an error of any stage into an *Error in the original source.
func (f *File) located(err error) error {
	var p point
	msg := err.Error()
	var syntaxErr syntax.Error
	var resolveErrs resolve.ErrorList
	var evalErr *starlark.EvalError
	var placed *positioned
	switch {
	case errors.As(err, &syntaxErr):
		p, msg = at(syntaxErr.Pos), syntaxErr.Msg
	case errors.As(err, &resolveErrs):
		p, msg = at(resolveErrs[0].Pos), resolveErrs[0].Msg
	case errors.As(err, &placed):
		p = placed.at
	case errors.As(err, &evalErr):
		p = f.innermost(evalErr.CallStack)
		msg = f.near.within(evalErr.CallStack) + msg
	}
	var lack *unsupportedInFiles
	isLack := errors.As(err, &lack)
	if isLack && lack.at.line > 0 {
		e := f.errorAt(lack.at, msg)
		e.Unsupported = true
		return e
	}
	p = f.argument(p, err)
	msg = strings.Replace(msg, "Starlark computation cancelled: too many steps", fmt.Sprintf("this takes more than %d steps; a test must end by itself", maxSteps), 1)
	out := &Error{File: f.Name, Msg: msg}
	if p.line > 0 {
		out = f.errorAt(f.out.source(p), msg)
	}
	out.Unsupported = isLack
	var large *gen.TooLarge
	out.TooLarge = errors.As(err, &large)
	return out
}

// innermost returns the position of the innermost frame in the file.
func (f *File) innermost(stack starlark.CallStack) point {
	for i := range stack {
		if pos := stack.At(i).Pos; pos.Filename() == f.Name {
			return at(pos)
		}
	}
	return point{}
}

// top returns the position of the innermost running frame in the file.
func (f *File) top(t *starlark.Thread) point {
	for i := range t.CallStackDepth() {
		if pos := t.CallFrame(i).Pos; pos.Filename() == f.Name {
			return at(pos)
		}
	}
	return point{}
}

// argument moves the position of a call to the argument that is wrong, else to
// the start of the call.
func (f *File) argument(p point, err error) point {
	call, ok := f.calls[p]
	if !ok {
		return p
	}
	var wrong *argumentError
	if errors.As(err, &wrong) {
		if e := argumentExpr(call, wrong); e != nil {
			return at(syntax.Start(e))
		}
	}
	return at(syntax.Start(call))
}

func argumentExpr(call *syntax.CallExpr, wrong *argumentError) syntax.Expr {
	for i, a := range call.Args {
		b, named := a.(*syntax.BinaryExpr)
		named = named && b.Op == syntax.EQ
		switch {
		case named && b.X.(*syntax.Ident).Name == wrong.name:
			return a
		case !named && i == wrong.index:
			return a
		}
	}
	return nil
}
