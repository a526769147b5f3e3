package onekernel

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"plumb/backend"
	"plumb/internal/draw/choice"
	"plumb/tensor"
)

// TaskFile is what lays a folder in GPU MODE's form out.
const TaskFile = "task.yml"

// Task is what is read of a folder in GPU MODE's form.
type Task struct {
	Files []struct {
		Name   string `yaml:"name"`
		Source string `yaml:"source"`
	} `yaml:"files"`
	Tests      []map[string]any `yaml:"tests"`
	Benchmarks []map[string]any `yaml:"benchmarks"`
}

const (
	submissionMark = "@SUBMISSION@" // the source of the file that is judged
	referenceName  = "reference.py"
	maxTask        = 1 << 20 // bytes of a task.yml
)

// ReadTask reads a folder's task.yml by a decoder of YAML.
func ReadTask(dir string, decode func([]byte, any) error) (*Task, error) {
	path := filepath.Join(dir, TaskFile)
	if decode == nil {
		return nil, fmt.Errorf("%s: a task is judged by plumb kernel alone", path)
	}
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case info.Size() > maxTask:
		return nil, fmt.Errorf("%s is larger than %d bytes", path, maxTask)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	t := &Task{}
	if err := decode(text, t); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if len(t.Tests)+len(t.Benchmarks) == 0 {
		return nil, fmt.Errorf("%s has neither tests nor benchmarks", path)
	}
	return t, nil
}

// lay copies a task's files: for the reference all but the submission, for the
// kernel all but the reference, so that there is nothing to import there. A file that is
// not there, such as the evaluation of a folder that was copied alone, is left out: who
// imports it says so.
func (t *Task) lay(dir, submission, to string) (kernel, reference string, err error) {
	files := map[string]string{"submission.py": submissionMark, referenceName: referenceName}
	for _, f := range t.Files {
		files[f.Name] = f.Source
	}
	for name, source := range files {
		if !filepath.IsLocal(name) {
			return "", "", fmt.Errorf("%s: the file %q lies outside of the folder", TaskFile, name)
		}
		if source != submissionMark && !strings.HasPrefix(source, "@") {
			found := beside(dir, source)
			switch {
			case found == "" && name == referenceName:
				return "", "", &Mistake{fmt.Errorf("%s has no %s", dir, source)}
			case found == "":
				continue
			}
			source = found
		}
		for side, skipped := range map[string]bool{"kernel": name == referenceName, "reference": source == submissionMark} {
			if skipped {
				continue
			}
			from, at := source, filepath.Join(to, side, name)
			if from == submissionMark {
				from, kernel = submission, at
			}
			if err := copyFile(from, at); err != nil {
				return "", "", err
			}
		}
	}
	if kernel == "" {
		return "", "", fmt.Errorf("%s names no file of source %q", TaskFile, submissionMark)
	}
	return kernel, filepath.Join(to, "reference", referenceName), nil
}

// beside is where a file of a task lies: where the task says, else in its own folder; ""
// where it is in neither.
func beside(dir, source string) string {
	for _, path := range []string{filepath.Join(dir, source), filepath.Join(dir, filepath.Base(source))} {
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	return ""
}

func copyFile(from, to string) error {
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	return os.WriteFile(to, text, 0o644)
}

// layOut gives both sides a folder of their own where the reference is a task.
func (s *Session) layOut() error {
	c := s.cfg
	if c.Reference == nil || c.Reference.Form != "task" {
		return nil
	}
	t, err := ReadTask(c.Reference.File, c.YAML)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "task-")
	if err != nil {
		return err
	}
	s.folder = dir
	ref := *c.Reference
	c.Reference = &ref
	c.Kernel.placed, ref.placed, err = t.lay(ref.File, c.Kernel.File, dir)
	s.task = &task{session: s, of: append(slices.Clone(t.Tests), t.Benchmarks...)}
	return err
}

// task draws the cases of a folder in GPU MODE's form: the arguments of its tests and
// benchmarks, then others near them. The reference makes the inputs.
type task struct {
	session *Session
	of      []map[string]any
	data    json.RawMessage // of the case that was told last, but its tensors
}

// seedArg is what generate_input calls its seed.
const seedArg = "seed"

// size takes the arguments of a test as they are, in the first cases, and later those
// of one in which sizes are others.
func (t *task) size(c *Case, src *choice.Source, s step, i, try int, m *maker) error {
	c.test, c.own = i%len(t.of), i < len(t.of) && try == 0
	if try > 0 {
		c.test = src.Index(len(t.of))
	}
	args := t.of[c.test]
	names := slices.Sorted(maps.Keys(args))
	for _, name := range names {
		if n, ok := whole(args[name]); ok && name != seedArg {
			c.Sizes[name] = n
		}
	}
	sized := slices.Sorted(maps.Keys(c.Sizes))
	if !c.own && m.promises.Shapes != Given && len(sized) > 0 {
		focus := (i + try) % len(sized)
		for k, name := range sized {
			n := near{given: c.Sizes[name], unit: t.unit(name), any: m.promises.Shapes == Any, small: try > 1}.draw(src, s, k == focus)
			c.Sizes[name] = m.within(src, name, n)
		}
	}
	if !c.own { // what the data are is the task's, in the range that it has
		c.Regime = Usual
	}
	return m.rewrite(c)
}

// unit is what divides an argument in all tests.
func (t *task) unit(name string) int {
	d := 0
	for _, args := range t.of {
		if n, ok := whole(args[name]); ok {
			d = gcd(d, n)
		}
	}
	return max(d, 1)
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

func whole(v any) (int, bool) {
	switch v := v.(type) {
	case int:
		return v, true
	case int64:
		return int(v), true
	case uint64:
		return int(v), v < 1<<31
	}
	return 0, false
}

// args are the arguments of generate_input.
func (t *task) args(c *Case) map[string]any {
	args := maps.Clone(t.of[c.test])
	for name, n := range c.Sizes {
		args[name] = n
	}
	if _, has := args[seedArg]; has && (!c.own || c.again) {
		args[seedArg] = c.Key >> 33
	}
	return args
}

// taskData is what the reference tells of its inputs.
type taskData struct {
	Data    json.RawMessage `json:"data"`
	Tensors []struct {
		DType     string `json:"dtype"`
		Shape     []int  `json:"shape"`
		Strides   []int  `json:"strides"`
		Bytes     []byte `json:"bytes"`
		Unwritten bool   `json:"unwritten"`
	} `json:"tensors"`
}

func (t *task) signature(ctx context.Context, c *Case) (*Signature, error) {
	var told taskData
	if err := t.session.reference.ask(ctx, map[string]any{"shape": map[string]any{"args": t.args(c), "most": most}}, &told); err != nil {
		return nil, err
	}
	t.data, c.data = told.Data, told.Data
	sig := &Signature{}
	for k, e := range told.Tensors {
		dt, err := tensor.ParseDType(e.DType)
		if err != nil {
			return nil, err
		}
		data := tensor.New(dt, e.Shape...)
		if copied := copy(data.Bytes(), e.Bytes); copied != tensor.NumElements(e.Shape)*dt.Size() {
			return nil, fmt.Errorf("tensor %d comes in %d bytes", k, len(e.Bytes))
		}
		in := Input{Name: fmt.Sprintf("x%d", k), DType: dt, Literal: data, NoGrad: true, Output: e.Unwritten}
		if !slices.Equal(e.Strides, tensor.ContiguousStrides(e.Shape)) {
			in.Strides = e.Strides
		}
		for _, n := range e.Shape {
			in.Dims = append(in.Dims, number(n))
		}
		sig.add(in)
	}
	if len(sig.Inputs) == 0 {
		return nil, errors.New("generate_input gives no tensor")
	}
	return sig, nil
}

// shape tells both sides what of a case's data is no tensor.
func (t *task) shape(ctx context.Context, c *Case) (string, error) {
	if string(t.data) != string(c.data) {
		if _, err := t.signature(ctx, c); err != nil {
			return "", err
		}
	}
	var none struct{}
	err := t.session.kernel.ask(ctx, map[string]any{"shape": map[string]any{"data": c.data}}, &none)
	return "", err
}

// withoutOutputs drops what either side leaves in the tensors that are there to be
// written to: what the reference changes, and what nothing was written to. The
// results are what is compared.
func (r *result) withoutOutputs() {
	for k := range r.sig.Inputs {
		in := &r.sig.Inputs[k]
		in.Output = in.Output || changes(r.ref, in.Name)
	}
	output := func(slot backend.Slot) bool {
		return slot.Part == backend.PartChange && slices.ContainsFunc(r.sig.Inputs, func(in Input) bool { return in.Output && in.Name == slot.Owner })
	}
	r.ref.Slots = slices.DeleteFunc(r.ref.Slots, output)
	r.kernel.Slots = slices.DeleteFunc(r.kernel.Slots, output)
}

// sharesOutput reports whether a result lies in a tensor that is there for it.
func (r *result) sharesOutput() bool {
	return slices.ContainsFunc(r.seen.Shares, func(k int) bool { return k < len(r.sig.Inputs) && r.sig.Inputs[k].Output })
}
