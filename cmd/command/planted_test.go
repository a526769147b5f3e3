package command

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"
	"time"

	"plumb/backend"
	"plumb/backend/native"
	"plumb/backend/worker"
	"plumb/internal/campaign"
	"plumb/internal/campaign/report"
	"plumb/internal/find/finding"
	"plumb/internal/judge/verdict"
	"plumb/internal/mutants"
	"plumb/nn"
	"plumb/op"
	"plumb/program"
	"plumb/tensor"
)

// defect is planted into one literal of the table.
type defect struct {
	name  string
	tests string // the shipped tests that find it, as for -k
	file  string // or the text of a test file that does
	plant func(defs map[string]*op.Def)
	word  verdict.Word
	kind  verdict.Kind
	// baseline says that the recorded cases suffice.
	baseline bool
}

var defects = []defect{
	{
		name:  "conv_transpose2d ignores output_padding",
		tests: "test_conv_transpose2d",
		plant: func(defs map[string]*op.Def) {
			mutants.RewriteArgs(defs["conv_transpose2d"], func(a op.Args) op.Args { return mutants.With(a, op.IntsArg("output_padding"), []int{0, 0}) })
		},
		word: verdict.Misaligned, kind: "shape", baseline: true,
	},
	{
		name:  "the module ConvTranspose2d, likewise",
		tests: "test_conv_transpose2d_output_padding",
		plant: func(defs map[string]*op.Def) {
			mutants.RewriteArgs(defs["conv_transpose2d"], func(a op.Args) op.Args { return mutants.With(a, op.IntsArg("output_padding"), []int{0, 0}) })
		},
		word: verdict.Misaligned, kind: "shape", baseline: true,
	},
	{
		name:  "leaky_relu has a wrong gradient for x = 0 only",
		tests: "test_leaky_relu",
		plant: leakyAtZero,
		word:  verdict.Misaligned, kind: verdict.Kind(backend.PartGrad),
	},
	{
		name:  "tanh gives (1, n) for (n)",
		tests: "test_tanh",
		plant: func(defs map[string]*op.Def) {
			d := defs["tanh"]
			infer := d.Infer
			d.Infer = func(a op.Args) ([]op.Meta, error) {
				out, err := infer(a)
				if err == nil && len(out[0].Shape) == 1 {
					out[0].Shape, out[0].Strides = []int{1, out[0].Shape[0]}, nil
				}
				return out, err
			}
			mutants.Around(d, func(c *op.Run, run func(*op.Run) error) error {
				in := c.Tensor("input")
				out := tensor.New(c.Out[0].DType(), in.Shape()...)
				err := run(&op.Run{Args: c.Args, Out: []*tensor.Tensor{out}, Scratch: c.Scratch})
				for i := range out.Len() {
					c.Out[0].Set(i, out.At(i))
				}
				return err
			})
		},
		word: verdict.Misaligned, kind: "shape", baseline: true,
	},
	{
		name:  "softmax panics for some shapes",
		tests: "test_softmax",
		plant: func(defs map[string]*op.Def) {
			mutants.Around(defs["softmax"], func(c *op.Run, run func(*op.Run) error) error {
				if s := c.Tensor("input").Shape(); s[0] > 1 {
					return fmt.Errorf("%d", s[len(s)]) // an index out of range
				}
				return run(c)
			})
		},
		word: verdict.Crash, baseline: true,
	},
	{
		name:  "sigmoid of float64 gives float32",
		tests: "test_sigmoid",
		plant: func(defs map[string]*op.Def) {
			d := defs["sigmoid"]
			infer := d.Infer
			d.Infer = func(a op.Args) ([]op.Meta, error) {
				out, err := infer(a)
				if err == nil && out[0].DType == tensor.F64 {
					out[0].DType = tensor.F32
				}
				return out, err
			}
			mutants.Around(d, func(c *op.Run, run func(*op.Run) error) error {
				out := tensor.New(c.Tensor("input").DType(), c.Out[0].Shape()...)
				err := run(&op.Run{Args: c.Args, Out: []*tensor.Tensor{out}, Scratch: c.Scratch})
				c.Out[0].CopyFrom(out)
				return err
			})
		},
		word: verdict.Misaligned, kind: "dtype", baseline: true,
	},
	{
		name:  "sum refuses scalars",
		tests: "test_sum",
		plant: func(defs map[string]*op.Def) {
			check := defs["sum"].Reject
			defs["sum"].Reject = func(a op.Args) error {
				if len(a.Value("input").Shape()) == 0 {
					return op.RuntimeError("expected a tensor with dimensions")
				}
				if check != nil {
					return check(a)
				}
				return nil
			}
		},
		word: verdict.Misaligned, kind: verdict.Exception,
	},
	{
		name: "softmax takes dimensions that are out of range",
		file: `
@autotest()
def test_softmax():
    return torch.softmax(random_tensor(ndim=2), dim=random(0, 5))
`,
		plant: func(defs map[string]*op.Def) {
			mutants.RewriteArgs(defs["softmax"], func(a op.Args) op.Args {
				return mutants.With(a, op.IntArg("dim"), a.Int("dim")%max(len(a.Value("input").Shape()), 1))
			})
		},
		word: verdict.Misaligned, kind: verdict.Exception,
	},
	{
		name: "max drops NaN",
		file: `
@autotest(auto_backward=False)
def test_max():
    return torch.max(torch.log(random_tensor(ndim=2)))
`,
		plant: func(defs map[string]*op.Def) {
			mutants.Around(defs["max"], func(c *op.Run, run func(*op.Run) error) error {
				clean := *c
				clean.Args = c.MapValues(func(v op.Value) op.Value {
					t := v.(*tensor.Tensor)
					t = t.Convert(t.DType())
					for i := range t.Len() {
						if math.IsNaN(t.Float(i)) {
							t.Set(i, complex(math.Inf(-1), 0))
						}
					}
					return t
				})
				return run(&clean)
			})
		},
		word: verdict.Misaligned, kind: verdict.Kind(backend.PartValue),
	},
}

// leakyAtZero gives leaky_relu the slope 1 at x = 0, where PyTorch has
// negative_slope.
func leakyAtZero(defs map[string]*op.Def) {
	defs["leaky_relu"].Grad = func(g *op.Grad) {
		g.To("input", func() op.Value {
			slope := g.Scalar("negative_slope").Any()
			if !g.Has(op.AnyArg("negative_slope")) || slope == nil {
				slope = g.Float("negative_slope")
			}
			return g.Op("where", g.Op("ge", g.Value("input"), 0), g.G(), g.Mul(g.G(), slope))
		})
	}
}

// planted returns the table of all operators with a defect in it.
func planted(t testing.TB, plant func(map[string]*op.Def)) *op.Table {
	table, _, err := mutants.Plant(func(defs map[string]*op.Def, _ map[string]*nn.Def) error {
		plant(defs)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// watcher is what plumb run prints, and what it prints it from.
type watcher struct {
	report.Console
	records []*verdict.Record
	ends    []*verdict.End
	run     *runCommand
	minimal []*finding.Finding
}

func (w *watcher) Findings(fs []*finding.Finding) {
	w.minimal = fs
	w.Console.Findings(fs)
}

func (w *watcher) Record(r *verdict.Record) {
	w.records = append(w.records, r)
	w.Console.Record(r)
}

func (w *watcher) End(e *verdict.End) {
	w.ends = append(w.ends, e)
	w.Console.End(e)
}

// findings returns the records that are not aligned.
func (w *watcher) findings() []*verdict.Record {
	var out []*verdict.Record
	for _, r := range w.records {
		if r.Verdict.Word != verdict.Aligned && r.Verdict.Word != verdict.Rejected {
			out = append(out, r)
		}
	}
	return out
}

// play is plumb run with the flags, on a native candidate of the table; nil
// stands for the true one.
func play(t testing.TB, table *op.Table, files []string, flags ...string) (*watcher, string) {
	t.Helper()
	if table == nil {
		return playOn(t, nil, files, flags...)
	}
	return playOn(t, native.New(table, nn.Modules()), files, flags...)
}

// playOn is play on another candidate, called native too.
func playOn(t testing.TB, candidate backend.Backend, files []string, flags ...string) (*watcher, string) {
	t.Helper()
	var out bytes.Buffer
	w := &watcher{Console: report.Console{W: &out}}
	r := &runCommand{session: newSession(drawingKeys...)}
	r.out, r.err, r.summary, r.sink = &out, io.Discard, report.NewSummary(), w
	if err := r.command().ParseFlags(append(flags, "--set", "findings=none")); err != nil { // their proof would run this test binary
		t.Fatal(err)
	}
	if r.subjects.reference == "torch" {
		r.subjects.python = needTorch(t)
	}
	tests, err := r.prepare(t.Context(), files)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.cases.sigs.Close)
	if r.subjects.reference == "torch" {
		r.cfg.Reference, r.cfg.Jobs = openTorch(), 1
	}
	if candidate != nil {
		r.cfg.Candidates = []campaign.Candidate{{Name: "native", Open: func() (backend.Backend, error) { return candidate, nil }}}
	}
	r.cfg.Tests = tests
	if err := r.progress.run(t.Context(), r.cfg); err != nil {
		t.Fatal(err)
	}
	w.run = r
	return w, out.String()
}

// lasting is a worker that several runs share.
type lasting struct{ *worker.Worker }

// Close leaves the worker running.
func (lasting) Close() error { return nil }

// torch is the worker of all tests that play.
var torch *worker.Worker

func openTorch() campaign.Opener {
	return func() (backend.Backend, error) {
		if torch == nil {
			path, err := findTorch()
			if err != nil {
				return nil, err
			}
			if torch, err = worker.Open(context.Background(), worker.Config{Python: path, CaseTimeout: time.Minute}); err != nil {
				return nil, err
			}
		}
		return lasting{torch}, nil
	}
}

// references are those that this machine has.
func references(f *defect) []string {
	refs := []string{"native"}
	if _, err := findTorch(); err == nil {
		refs = append(refs, "torch")
	}
	if f.baseline {
		refs = append(refs, "recorded")
	}
	return refs
}

// TestPlantedDefectsAreFoundAndShownAgain tests the tester: with the true
// operators as the reference, with PyTorch where it is, and where the recorded
// cases suffice with those, a defect is found, and its program, copied from the
// log and saved, shows it again.
func TestPlantedDefectsAreFoundAndShownAgain(t *testing.T) {
	slow(t)
	for _, f := range append(defects, stateDefects...) {
		for _, ref := range references(&f) {
			t.Run(f.name+"/"+ref, func(t *testing.T) {
				table := planted(t, f.plant)
				var files []string
				if f.file != "" {
					files = []string{save(t, "planted.py", f.file)}
				}
				w, log := play(t, table, files, "--reference", ref, "--seed", "1", "-k", f.tests)
				found := w.findings()
				if len(found) == 0 {
					t.Fatalf("not found in %d cases", len(w.records))
				}
				first := found[0]
				if first.Verdict.Word != f.word || first.Verdict.Kind != f.kind {
					t.Errorf("the verdict is %s (%s), want %s (%s): %s", first.Verdict.Word, first.Verdict.Kind, f.word, f.kind, first.Verdict.Reason)
				}
				text := copied(t, log)
				if text != first.Program.String() {
					t.Errorf("the log shows\n%s\nbut the program is\n%s", text, first.Program)
				}
				again, _ := play(t, table, []string{save(t, "finding.py", text)}, "--reference", ref)
				// A fault that shows otherwise in a graph has a record of its own there.
				if n := len(again.records); n < 1 || n > 3 {
					t.Fatalf("%d records of one program in three modes", n)
				}
				if v := again.records[0].Verdict; v.Word != f.word || v.Kind != f.kind {
					t.Errorf("again: %s (%s), want %s (%s): %s", v.Word, v.Kind, f.word, f.kind, v.Reason)
				}
				if id := again.records[0].Program.ID(); id != first.Program.ID() {
					t.Errorf("again: the program %s, not %s", id, first.Program.ID())
				}
			})
		}
	}
}

// TestTheTrueTableHasNoneOfThem is the other half: what finds the defects finds
// nothing else.
func TestTheTrueTableHasNoneOfThem(t *testing.T) {
	for _, f := range append(defects, stateDefects...) {
		var files []string
		if f.file != "" {
			files = []string{save(t, "planted.py", f.file)}
		}
		w, log := play(t, planted(t, func(map[string]*op.Def) {}), files, "--reference", "native", "--seed", "1", "-k", f.tests)
		if len(w.findings()) > 0 || len(w.records) == 0 {
			t.Errorf("%s: %d records\n%s", f.name, len(w.records), log)
		}
	}
}

// copied returns the first program in a log, as a person would copy it: up to
// the blank line after its last line.
func copied(t *testing.T, log string) string {
	_, body, found := strings.Cut(log, program.Header+"\n")
	imports, body, more := strings.Cut(body, "\n\n")
	lines, _, end := strings.Cut(body, "\n\n")
	if !found || !more || !end {
		t.Fatalf("no program in\n%s", log)
	}
	return program.Header + "\n" + imports + "\n\n" + lines + "\n"
}

// TestLeakyReluAtZeroIsFoundByChance: the shipped tests, at their own number
// of cases, find a gradient that is wrong for x = 0 alone with nearly every seed.
func TestLeakyReluAtZeroIsFoundByChance(t *testing.T) {
	slow(t)
	table := planted(t, leakyAtZero)
	seeds, cases := 0, 0
	for seed := range 20 {
		w, _ := play(t, table, nil, "--reference", "native", "--seed", fmt.Sprint(seed), "-k", "leaky_relu", "--set", "oracle=off")
		n := len(w.findings())
		if cases += n; n > 0 {
			seeds++
		}
	}
	t.Logf("found with %d of 20 seeds, in %d cases", seeds, cases)
	if seeds < 15 {
		t.Errorf("found with %d of 20 seeds, want at least 15", seeds)
	}
}
