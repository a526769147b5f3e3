package bundle

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"plumb/backend"
	"plumb/internal/draw/choice"
	"plumb/internal/judge/verdict"
	"plumb/internal/safetensors"
	"plumb/program"
	"plumb/tensor"
)

// The files of every bundle beside finding.json.
const (
	programFile  = "program.py"
	functionFile = "function.py"  // of a bundle with a function that computes a part of the program
	gradientFile = "gradients.py" // what it was called in bundles of version 2
	inputsFile   = "inputs.safetensors"
	expectedFile = "expected.safetensors"
	gotFile      = "got.safetensors"
)

// The module files of a Go test are there to be edited: they have no checksum.
const (
	goModFile = "go.mod"
	goSumFile = "go.sum"
)

// Bounds on a bundle, in bytes.
const (
	maxText    = 16 << 20 // of a file of text
	maxTensors = 1 << 30  // of a file of tensors
	maxFiles   = 32
)

// Bundle is a finding's bundle, whole and checked.
type Bundle struct {
	Dir     string // "" for one that was read from a zip file
	Program *program.Program
	Verdict *verdict.Verdict

	function *program.Program // that computes a part of Program for the candidate; nil without one

	m     *manifest
	files map[string][]byte
}

// Write writes the bundle of f as the folder dir, whose parent it makes. The
// folder appears whole or not at all, and an earlier bundle there is replaced
// only by a whole one. The error says which file could not be written and why.
func Write(dir string, f *Finding) (*Bundle, error) {
	b, err := newBundle(f)
	if err != nil {
		return nil, fmt.Errorf("bundle of %s: %w", f.Program.ID(), err)
	}
	if err := b.write(dir, os.WriteFile); err != nil {
		return nil, fmt.Errorf("bundle %s was not written: %w", dir, err)
	}
	b.Dir = dir
	return b, nil
}

func newBundle(f *Finding) (*Bundle, error) {
	if f.Verdict == nil || f.Expected == nil || f.Got == nil || f.Job == nil {
		return nil, errors.New("a finding needs its verdict, its job and both outcomes")
	}
	f = complete(f)
	p, err := placeOf(f)
	if err != nil {
		return nil, err
	}
	b := &Bundle{Program: f.Program, Verdict: brief(f.Verdict), files: map[string][]byte{}}
	b.m = &manifest{
		Format: 1, ID: f.Program.ID(), Test: f.Test, Index: f.Index, Seed: f.Seed, Count: f.Count, Signature: f.Signature,
		Modes: f.Modes, Verdict: b.Verdict, Place: p, Reference: f.Reference, Candidate: f.Candidate,
		Expected: p.ending(f.Expected), Got: p.ending(f.Got), Shrink: f.Shrink, Timeout: f.Timeout.Seconds(), Growth: f.Growth,
		Choices: choice.Format(f.Choices), Original: f.Original, Sides: map[string]script{}, Files: map[string]string{},
	}
	b.files[programFile] = []byte(f.Program.String())
	if g := f.Function; g != nil {
		b.m.Format, b.m.ID, b.m.Returns = Format, g.Program.ID(), g.Returns
		b.files[functionFile] = []byte(g.Program.String())
		b.function = g.Program
	}
	expected := outcomeTensors(f.Program, f.Expected, p)
	if p.Limit.Error != nil {
		expected = append(expected, safetensors.Entry{Name: limitKey, Tensor: p.Limit.Error})
	}
	for name, entries := range map[string][]safetensors.Entry{
		inputsFile: inputTensors(f), expectedFile: expected, gotFile: outcomeTensors(f.Program, f.Got, p),
	} {
		if b.files[name], err = encode(entries); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	if err := b.addScripts(f, p); err != nil {
		return nil, err
	}
	if err := b.addRaw(f); err != nil {
		return nil, err
	}
	return b, b.seal()
}

// complete fills in what a finding may leave out.
func complete(f *Finding) *Finding {
	c := *f
	if c.Timeout == 0 {
		c.Timeout = time.Minute
	}
	c.Count = max(c.Count, 1)
	job := *f.Job
	if job.State == nil {
		job.State = f.Expected.Initial
	}
	if job.Inputs == nil {
		for i := range f.Program.Inputs {
			job.Inputs = append(job.Inputs, f.Program.Inputs[i].Materialize())
		}
	}
	c.Job = &job
	c.Expected, c.Got = secondOrZeros(f.Expected, f.Got), secondOrZeros(f.Got, f.Expected)
	return &c
}

// secondOrZeros returns o with zeros for the gradients of the second order that
// only the other side has: one that does not exist is one that vanishes.
func secondOrZeros(o, other *backend.Outcome) *backend.Outcome {
	c := *o
	for _, s := range other.Slots {
		if s.Part.IsSecond() && s.Tensor != nil && o.Has(backend.PartSecondGrad) && o.At(s.Place) == nil {
			c = *c.With(s.Place, tensor.New(s.Tensor.DType(), s.Tensor.Shape()...))
		}
	}
	return &c
}

// brief drops what only a run's statistics need.
func brief(v *verdict.Verdict) *verdict.Verdict {
	c := *v
	c.Margins, c.Truths, c.Settled = nil, nil, nil
	return &c
}

// seal lists the files and writes finding.json.
func (b *Bundle) seal() error {
	clear(b.m.Files)
	for name, data := range b.files {
		switch name {
		case manifestFile:
		case goModFile, goSumFile:
			b.m.Files[name] = ""
		default:
			b.m.Files[name] = sum(data)
		}
	}
	text, err := b.m.encode()
	b.files[manifestFile] = text
	return err
}

// write makes the folder beside its place and moves it there.
func (b *Bundle) write(dir string, writeFile func(string, []byte, os.FileMode) error) (err error) {
	parent := filepath.Dir(dir)
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return err
	}
	tmp, err := os.MkdirTemp(parent, ".plumb-*")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(tmp)) }()
	if err := os.Chmod(tmp, 0o755); err != nil {
		return err
	}
	fresh := filepath.Join(tmp, "new")
	if err := os.Mkdir(fresh, 0o755); err != nil {
		return err
	}
	for _, name := range b.Files() {
		if err := writeFile(filepath.Join(fresh, name), b.files[name], 0o644); err != nil {
			return err
		}
	}
	return replace(fresh, dir, filepath.Join(tmp, "old"))
}

// replace moves fresh to dir, and what was there to old, or back. Another
// process may be doing the same.
func replace(fresh, dir, old string) error {
	var err error
	for range 3 {
		moved := os.Rename(dir, old)
		if moved != nil && !errors.Is(moved, fs.ErrNotExist) {
			return moved
		}
		if err = os.Rename(fresh, dir); err == nil {
			return nil
		}
		if moved == nil {
			return errors.Join(err, os.Rename(old, dir))
		}
	}
	return err
}

// ID returns the identity of the bundle's program.
func (b *Bundle) ID() string { return b.m.ID }

// Files lists the names of the files, sorted.
func (b *Bundle) Files() []string {
	var names []string
	for name := range b.files {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// File returns the content of a file; nil when the bundle lacks it.
func (b *Bundle) File(name string) []byte { return b.files[name] }

// Finding returns what the bundle holds of its finding: the outcomes and the
// limit of the verdict are in its files only.
func (b *Bundle) Finding() (*Finding, error) {
	job, err := b.Job()
	if err != nil {
		return nil, err
	}
	var g *backend.Function
	if b.function != nil {
		g = &backend.Function{Program: b.function, Of: b.Program, Returns: b.m.Returns}
	}
	choices, err := choice.Parse(b.m.Choices)
	return &Finding{
		Function: g, Program: b.Program, Job: job, Verdict: b.Verdict, Reference: b.m.Reference, Candidate: b.m.Candidate,
		Seed: b.m.Seed, Test: b.m.Test, Index: b.m.Index, Choices: choices, Original: b.m.Original, Shrink: b.m.Shrink,
		Count: b.m.Count, Signature: b.m.Signature, Modes: b.m.Modes, Timeout: b.timeout(), Growth: max(b.m.Growth, 0),
	}, err
}

func (b *Bundle) timeout() time.Duration {
	if !(b.m.Timeout > 0 && b.m.Timeout < 1e9) {
		return time.Minute
	}
	return time.Duration(b.m.Timeout * float64(time.Second))
}

// Proof returns what Prove found when the bundle was made; nil when it was not asked.
func (b *Bundle) Proof() *Proof { return b.m.Proof }

// Job returns what a backend is to run: the inputs in the strides of the
// program, and the modules' initial state.
func (b *Bundle) Job() (*backend.Job, error) {
	f, err := safetensors.Parse(b.files[inputsFile], safetensors.Limits{})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", inputsFile, err)
	}
	job := &backend.Job{Program: b.Program, State: map[string]backend.State{}}
	for i := range b.Program.Inputs {
		in := &b.Program.Inputs[i]
		t := f.Tensor(in.Name)
		if t == nil || t.DType() != in.DType || !slices.Equal(t.Shape(), in.Shape) {
			return nil, fmt.Errorf("%s does not hold the program's input %s", inputsFile, in.Name)
		}
		if t, err = laidOut(t, in.Strides); err != nil {
			return nil, fmt.Errorf("input %s: %w", in.Name, err)
		}
		job.Inputs = append(job.Inputs, t)
	}
	for _, e := range f.Tensors {
		module, name, ok := strings.Cut(e.Name, ".")
		if ok && b.isModule(module) {
			job.State[module] = append(job.State[module], backend.Named{Name: name, Tensor: e.Tensor})
		}
	}
	return job, nil
}

func (b *Bundle) isModule(name string) bool {
	return slices.ContainsFunc(b.Program.Calls, func(c program.Call) bool { return c.Result == name && program.IsModule(c.Target) })
}

// laidOut returns t with the strides; nil means contiguous.
func laidOut(t *tensor.Tensor, strides []int) (*tensor.Tensor, error) {
	if strides == nil || slices.Equal(strides, t.Strides()) {
		return t, nil
	}
	if len(strides) != t.Dim() || !fits(t, strides) {
		return nil, fmt.Errorf("strides %s of %s", tensor.ShapeString(strides), t)
	}
	u := tensor.NewStrided(t.DType(), t.Shape(), strides)
	u.CopyFrom(t)
	return u, nil
}

// fits reports whether a tensor with the strides takes no more memory than a
// bundle may hold.
func fits(t *tensor.Tensor, strides []int) bool {
	n := 1
	for i, d := range t.Shape() {
		if strides[i] < 0 || strides[i] > maxTensors || d > 1 && strides[i] > (maxTensors-n)/(d-1) {
			return false
		}
		n += max(d-1, 0) * strides[i]
	}
	return n <= maxTensors/t.DType().Size()
}
