package command

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"

	"plumb/op"
)

// reached tells which lines of operators no check reaches. It builds this program
// again with coverage of the packages that the operators' functions are of, and has
// that check them.
type reached struct {
	out  io.Writer
	args []string // of the check, for the program that is built
}

func (r *reached) run(ctx context.Context, defs []*op.Def) error {
	sources := map[string]*source{} // by import path
	for _, d := range defs {
		for _, f := range functionsOf(d) {
			pkg := packageOfFunction(f.Name())
			if sources[pkg] == nil {
				sources[pkg] = &source{starts: map[string][]int{}}
			}
			file, line := f.FileLine(f.Entry())
			sources[pkg].starts[file] = append(sources[pkg].starts[file], line)
		}
	}
	program := ownProgram()
	if program == "" {
		return usage(errors.New("--cover builds this program again, and it does not know of which package it is: run it as go run ./plumb"))
	}
	if slices.ContainsFunc(slices.Collect(maps.Keys(sources)), func(pkg string) bool { return !isOurs(pkg) }) {
		maps.DeleteFunc(sources, func(pkg string, _ *source) bool { return isOurs(pkg) }) // helpers of package ops
	}
	profile, checked, err := r.profile(ctx, program, sources)
	if err != nil {
		return err
	}
	if err := r.text(profile, sources); err != nil {
		return harness(err)
	}
	return checked
}

// ownProgram is the import path of this program; "" where it is not known.
func ownProgram() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Path == "command-line-arguments" {
		return ""
	}
	return info.Path
}

// profile builds the program, has it check, and returns its profile, and how the check ended.
func (r *reached) profile(ctx context.Context, program string, sources map[string]*source) (profile []byte, checked, err error) {
	dir, err := os.MkdirTemp("", "plumb-cover-")
	if err != nil {
		return nil, nil, harness(err)
	}
	defer os.RemoveAll(dir)
	pkgs := []string{program} // without it there are no counters
	for pkg := range sources {
		pkgs = append(pkgs, pkg)
	}
	binary, counters := filepath.Join(dir, "plumb"), filepath.Join(dir, "counters")
	if err := os.Mkdir(counters, 0o755); err != nil {
		return nil, nil, harness(err)
	}
	build := exec.CommandContext(ctx, "go", "build", "-cover", "-coverpkg="+strings.Join(pkgs, ","), "-o", binary, program)
	if text, err := build.CombinedOutput(); err != nil {
		return nil, nil, usage(fmt.Errorf("--cover needs Go, and to be run in the module of %s: %v\n%s", program, err, text))
	}
	check := exec.CommandContext(ctx, binary, r.args...)
	check.Env = append(os.Environ(), "GOCOVERDIR="+counters)
	check.Stdout, check.Stderr = r.out, os.Stderr
	if err := check.Run(); err != nil {
		if check.ProcessState == nil || check.ProcessState.ExitCode() != exitFindings {
			return nil, nil, harness(err)
		}
		checked = &exitError{exitFindings, nil}
	}
	text := filepath.Join(dir, "profile")
	if out, err := exec.CommandContext(ctx, "go", "tool", "covdata", "textfmt", "-i="+counters, "-o="+text).CombinedOutput(); err != nil {
		return nil, nil, harness(fmt.Errorf("%w\n%s", err, out))
	}
	if profile, err = os.ReadFile(text); err == nil && len(profile) == 0 {
		err = harness(errors.New("the program that was built with coverage has left no counters"))
	}
	return profile, checked, err
}

// text lists the stretches of the operators' source that were not reached.
func (r *reached) text(profile []byte, sources map[string]*source) error {
	found := 0
	for pkg, s := range sources {
		if err := s.parse(); err != nil {
			return err
		}
		for _, b := range unreached(string(profile), pkg) {
			file, lines := s.within(b)
			if file == "" {
				continue
			}
			if found++; found == 1 {
				fmt.Fprintln(r.out, "\nNOT REACHED by any check")
			}
			fmt.Fprintf(r.out, "  %s:%d  %s\n", file, b.from, strings.TrimSpace(lines[b.from-1]))
		}
	}
	if found == 0 {
		fmt.Fprintln(r.out, "\nevery line of the definition is reached")
	}
	return nil
}

// functionsOf are the functions of a literal that are not nil.
func functionsOf(d *op.Def) (fs []*runtime.Func) {
	var walk func(v reflect.Value)
	walk = func(v reflect.Value) {
		switch v.Kind() {
		case reflect.Func:
			if f := runtime.FuncForPC(v.Pointer()); !v.IsNil() && f != nil {
				fs = append(fs, f)
			}
		case reflect.Struct:
			for i := range v.NumField() {
				if v.Type().Field(i).IsExported() {
					walk(v.Field(i))
				}
			}
		case reflect.Slice:
			if v.Type().Elem().Kind() == reflect.Struct {
				for i := range v.Len() {
					walk(v.Index(i))
				}
			}
		}
	}
	walk(reflect.ValueOf(d).Elem())
	return fs
}

// packageOfFunction cuts a function's name after the path of its package.
func packageOfFunction(name string) string {
	slash := strings.LastIndexByte(name, '/') + 1
	pkg, _, _ := strings.Cut(name[slash:], ".")
	return name[:slash] + pkg
}

// block is a stretch of a file that no check has run.
type block struct {
	file     string // its name without folders
	from, to int    // lines
}

// unreached are the blocks of a package in a coverage profile whose count is 0.
func unreached(profile, pkg string) (blocks []block) {
	lines := bufio.NewScanner(strings.NewReader(profile))
	for lines.Scan() {
		path, rest, ok := strings.Cut(lines.Text(), ".go:")
		if !ok || filepath.ToSlash(filepath.Dir(path)) != pkg || !strings.HasSuffix(rest, " 0") {
			continue
		}
		from, to, _ := strings.Cut(rest, ",")
		b := block{file: filepath.Base(path) + ".go"}
		b.from, _ = strconv.Atoi(strings.Split(from, ".")[0])
		b.to, _ = strconv.Atoi(strings.Split(to, ".")[0])
		blocks = append(blocks, b)
	}
	slices.SortFunc(blocks, func(a, b block) int {
		if n := strings.Compare(a.file, b.file); n != 0 {
			return n
		}
		return a.from - b.from
	})
	return blocks
}

// source is what of a package belongs to the operators.
type source struct {
	starts map[string][]int // lines on which their functions start, by file
	text   map[string][]string
	own    map[string][][2]int // stretches of lines, by a file's name without folders
}

// parse finds the literals and functions that have the lines, and the functions of the
// package that these name.
func (s *source) parse() error {
	s.text, s.own = map[string][]string{}, map[string][][2]int{}
	fset := token.NewFileSet()
	named := map[string]ast.Node{} // functions and variables of the package
	var queue []ast.Node
	for file := range s.starts {
		paths, err := filepath.Glob(filepath.Join(filepath.Dir(file), "*.go"))
		if err != nil {
			return err
		}
		for _, path := range paths {
			if s.text[filepath.Base(path)] != nil || strings.HasSuffix(path, "_test.go") {
				continue
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			s.text[filepath.Base(path)] = strings.Split(string(text), "\n")
			parsed, err := parser.ParseFile(fset, path, text, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			queue = append(queue, s.begin(fset, parsed, path, named)...)
		}
	}
	seen := map[ast.Node]bool{}
	for len(queue) > 0 {
		n := queue[0]
		if queue = queue[1:]; seen[n] {
			continue
		}
		seen[n] = true
		from, to := fset.Position(n.Pos()), fset.Position(n.End())
		name := filepath.Base(from.Filename)
		s.own[name] = append(s.own[name], [2]int{from.Line, to.Line})
		ast.Inspect(n, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok && named[id.Name] != nil {
				queue = append(queue, named[id.Name])
			}
			return true
		})
	}
	return nil
}

// begin returns the literals of op.Def and the functions of a file that start on one
// of the lines or have it within, and notes what its declarations are called.
func (s *source) begin(fset *token.FileSet, file *ast.File, path string, named map[string]ast.Node) (found []ast.Node) {
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if ok && f.Recv == nil {
			named[f.Name.Name] = f
		}
	}
	for _, line := range s.starts[path] {
		var within ast.Node
		ast.Inspect(file, func(n ast.Node) bool {
			if n == ast.Node(file) {
				return true
			}
			if n == nil || fset.Position(n.Pos()).Line > line || fset.Position(n.End()).Line < line {
				return false
			}
			switch n := n.(type) {
			case *ast.CompositeLit:
				if within == nil || isDef(n) {
					within = n
				}
			case *ast.FuncDecl:
				within = n
			}
			return true
		})
		if within != nil {
			found = append(found, within)
		}
	}
	return found
}

// isDef reports whether a literal is of op.Def: it has the field Sig.
func isDef(n *ast.CompositeLit) bool {
	return slices.ContainsFunc(n.Elts, func(e ast.Expr) bool {
		kv, ok := e.(*ast.KeyValueExpr)
		if !ok {
			return false
		}
		key, ok := kv.Key.(*ast.Ident)
		return ok && key.Name == "Sig"
	})
}

// within returns the file's name and lines, where the block is part of the operators.
func (s *source) within(b block) (file string, lines []string) {
	for _, own := range s.own[b.file] {
		if b.from >= own[0] && b.to <= own[1] {
			return b.file, s.text[b.file]
		}
	}
	return "", nil
}
