package baseline

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"plumb/backend"
	"plumb/internal/draw/choice"
	"plumb/internal/judge/verdict"
	"plumb/program"
	"plumb/tensor"
)

// toy computes y = 2·x+1 of every input x, as float32; the reference's last
// bits are others where noise says so.
type toy struct {
	noise  bool
	refuse bool // inputs of an odd length
	crash  bool // at them
	calls  *int
	stop   func() // called at every batch
	hang   int    // inputs of so many elements hang until the run ends
	late   bool   // what an ended run asks has timed out
}

func (toy) Info() backend.Info { return backend.Info{Name: "toy", Version: "1"} }
func (toy) Close() error       { return nil }

func (t toy) Run(ctx context.Context, job *backend.Job) (*backend.Outcome, error) {
	if err := ctx.Err(); err != nil && !t.late {
		return nil, err
	}
	if t.calls != nil {
		*t.calls++
	}
	if t.stop != nil {
		t.stop()
	}
	if ctx.Err() != nil {
		return &backend.Outcome{Status: backend.TimedOut, Class: "timeout"}, nil
	}
	x := job.Inputs[0]
	if t.hang > 0 && x.Len() == t.hang {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if t.crash && x.Len()%2 == 1 {
		return &backend.Outcome{Status: backend.Crashed, Class: "SIGSEGV", Message: "boom"}, nil
	}
	if t.refuse && x.Len()%2 == 1 {
		return &backend.Outcome{Status: backend.Raised, Class: "RuntimeError", Message: "odd"}, nil
	}
	y := tensor.New(tensor.F32, x.Shape()...)
	out := tensor.Data[float32](y)
	less := tensor.New(tensor.Bool, x.Shape()...)
	for i := range out {
		out[i] = float32(2*x.Float(i)) + 1
		if t.noise && i%3 == 0 {
			out[i] = math.Float32frombits(math.Float32bits(out[i]) + uint32(i%5))
		}
		if out[i] < 1 {
			less.SetInt(i, 1)
		}
	}
	return &backend.Outcome{
		Status: backend.OK,
		Values: []backend.Value{{IsTuple: true, Tuple: []backend.Value{{Tensor: y, RequiresGrad: true}, {Tensor: x}, {Tensor: less}, {Tensor: tensor.New(tensor.I64, 3)}}}},
		Slots:  []backend.Slot{{Place: backend.Place{Part: backend.PartGrad, Owner: "x"}, Tensor: y.Clone()}},
	}, nil
}

// toyCases are cases with inputs of these numbers of elements.
func toyCases(sizes ...int) []Case {
	var list []Case
	for i, n := range sizes {
		list = append(list, Case{Name: fmt.Sprintf("entry::toy_%d.pth", i), Function: "toy", ATol: 1e-5, RTol: 1e-5, Programs: func() ([]Variant, error) {
			if n < 0 {
				return nil, errors.New("no program")
			}
			p := &program.Program{
				Name: "toy", Seed: uint64(i),
				Inputs: []program.Input{{Name: "x", DType: tensor.F32, Shape: []int{n}, RequiresGrad: true, Fill: program.Fill{Dist: program.Uniform, Lo: -1, Hi: 1, Key: choice.Derive(7, uint64(i))}}},
				Calls:  []program.Call{{Result: "y", Target: "torch.toy", Args: []any{program.Ref("x")}}},
			}
			return []Variant{{Program: p}}, nil
		}})
	}
	return list
}

func toyGen(dir string, cases []Case) GenConfig {
	return GenConfig{
		Dir: dir, Plumb: "test", Config: "config.py", Source: []byte("{}"), Seed: 7, Cases: cases, Jobs: 1, Memory: 64 << 20, Shard: 1 << 20,
		Open:    func() (backend.Backend, error) { return toy{noise: true, refuse: true}, nil },
		Predict: func() backend.Backend { return toy{} },
	}
}

var toySizes = []int{0, 1, 2, 40, -1, 3, 40000, 100000, 40, 300000, 8, 6}

// sameOutcome is a judgement that asks for the same bits.
func sameOutcome(q *Question) *verdict.Verdict {
	p := *q.Job.Program
	zero := 0.0
	return verdict.Judge(&p, q.Ref, q.Cand, verdict.Policy{RTol: &zero, ATol: &zero})
}

// runToy judges a candidate and returns a line per record.
func runToy(t *testing.T, dir string, cand, like toy) []string {
	t.Helper()
	b, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	err = b.Run(context.Background(), RunConfig{
		Candidate: "toy", Open: func() (backend.Backend, error) { return cand, nil }, Predict: func() backend.Backend { return like },
		Judge: sameOutcome, Jobs: 2, Memory: 64 << 20,
		OnRecord: func(r *Record) {
			lines = append(lines, fmt.Sprintf("%s %s %s", r.Entry.Name, r.Verdict.Word, r.Verdict.Reason))
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return lines
}

func count(lines []string, word string) int {
	n := 0
	for _, l := range lines {
		if strings.Fields(l)[1] == word {
			n++
		}
	}
	return n
}

// TestGenRun records, and judges the reference by what was recorded: every bit
// is as it was, of few and of many elements, predicted and not.
func TestGenRun(t *testing.T) {
	for _, self := range []bool{false, true} {
		dir := t.TempDir()
		cfg := toyGen(dir, toyCases(toySizes...))
		if self {
			cfg.Predict = nil
		}
		m, err := Gen(context.Background(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		if !m.Complete || len(m.Cases) != len(toySizes) || len(m.Shards) != 3 {
			t.Fatalf("complete %v, %d cases, %d shards", m.Complete, len(m.Cases), len(m.Shards))
		}
		if _, err := os.Stat(filepath.Join(dir, journalName)); err == nil {
			t.Error("the journal is left")
		}
		raw := int64(0)
		for _, n := range toySizes {
			raw += int64(max(n, 0)) * 9
		}
		if !self && m.Bytes() > raw/20 {
			t.Errorf("%d bytes for results of %d", m.Bytes(), raw)
		}
		lines := runToy(t, dir, toy{noise: true, refuse: true}, toy{})
		if len(lines) != len(toySizes) || count(lines, "aligned") != len(toySizes)-3 || count(lines, "unsupported") != 1 || count(lines, "rejected") != 2 {
			t.Errorf("self-contained %v:\n%s", self, strings.Join(lines, "\n"))
		}
		lines = runToy(t, dir, toy{}, toy{})
		if n := count(lines, "misaligned"); n != 7 {
			t.Errorf("self-contained %v: %d misaligned, want 7:\n%s", self, n, strings.Join(lines, "\n"))
		}
	}
}

// TestRefused: a candidate is asked what the reference refused. What it computes
// there cannot be judged, and is said; a crash is its own.
func TestRefused(t *testing.T) {
	dir := t.TempDir()
	if _, err := Gen(context.Background(), toyGen(dir, toyCases(3, 40))); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		cand toy
		want string
	}{
		{toy{noise: true, refuse: true}, "entry::toy_0.pth rejected the reference refused this case when it was recorded: RuntimeError: odd; so does the candidate: RuntimeError: odd"},
		{toy{noise: true}, "entry::toy_0.pth unsupported the reference refused this case when it was recorded: RuntimeError: odd; the candidate computes it, and there is nothing to judge that by"},
		{toy{noise: true, crash: true}, "entry::toy_0.pth crash the reference refused this case when it was recorded: RuntimeError: odd; the candidate crashed: SIGSEGV: boom"},
	} {
		lines := runToy(t, dir, tt.cand, toy{})
		if len(lines) != 2 || lines[0] != tt.want || lines[1] != "entry::toy_1.pth aligned " {
			t.Errorf("%s\nwant %s", strings.Join(lines, "\n"), tt.want)
		}
	}
}

// twice gives cases a second variant, but the first of them.
func twice(list []Case) []Case {
	for i := 1; i < len(list); i++ {
		one := list[i].Programs
		list[i].Programs = func() ([]Variant, error) {
			vs, err := one()
			return append(vs, Variant{Name: "again", Program: vs[0].Program}), err
		}
	}
	return list
}

// interruptedToy runs a candidate until stop, and returns the names of the
// records, and whether some came before the end.
func interruptedToy(t *testing.T, dir string, jobs int, cand func(stop func()) toy) (names []string, early bool) {
	t.Helper()
	b, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	err = b.Run(ctx, RunConfig{
		Candidate: "toy", Open: func() (backend.Backend, error) { return cand(cancel), nil }, Predict: func() backend.Backend { return toy{} },
		Judge: sameOutcome, Jobs: jobs, Memory: 64 << 20,
		OnRecord: func(r *Record) {
			if r.Verdict == nil || r.Verdict.Word != verdict.Aligned {
				t.Errorf("%s: %v", r.Entry.Name, r.Verdict)
			}
			names = append(names, r.Entry.Name)
			early = early || ctx.Err() == nil
		},
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	return names, early
}

// TestRecordsComeEarly: records are handed on while their shard is under way, in
// order, and those of a case together.
func TestRecordsComeEarly(t *testing.T) {
	dir := t.TempDir()
	if _, err := Gen(context.Background(), toyGen(dir, twice(toyCases(slices.Repeat([]int{40}, 240)...)))); err != nil {
		t.Fatal(err)
	}
	calls := 0
	names, early := interruptedToy(t, dir, 1, func(stop func()) toy {
		return toy{noise: true, late: true, calls: &calls, stop: func() {
			if calls == 150 {
				stop()
			}
		}}
	})
	if len(names) == 0 || len(names) > 150 || len(names)%2 != 1 || !early {
		t.Errorf("%d records, early: %v", len(names), early)
	}
	for i, name := range names {
		if want := fmt.Sprintf("entry::toy_%d.pth", (i+1)/2); name != want {
			t.Errorf("record %d is of %s, want %s", i, name, want)
		}
	}
}

// TestRecordsOfLaterShards: what was judged behind a shard that is not finished
// is handed on when the run ends.
func TestRecordsOfLaterShards(t *testing.T) {
	dir := t.TempDir()
	if _, err := Gen(context.Background(), toyGen(dir, toyCases(300000, 200000, 200002, 200004))); err != nil {
		t.Fatal(err)
	}
	var calls atomic.Int32
	names, _ := interruptedToy(t, dir, 2, func(stop func()) toy {
		return toy{noise: true, hang: 300000, stop: func() {
			if calls.Add(1) == 4 {
				stop()
			}
		}}
	})
	if len(names) < 2 || slices.Contains(names, "entry::toy_0.pth") || !slices.IsSorted(names) {
		t.Errorf("%v", names)
	}
}

// TestPredictorChanged decodes what was recorded with another predictor: each
// case that rests on it says so, and none has a wrong verdict.
func TestPredictorChanged(t *testing.T) {
	dir := t.TempDir()
	if _, err := Gen(context.Background(), toyGen(dir, toyCases(8, 40000, 50000))); err != nil {
		t.Fatal(err)
	}
	lines := runToy(t, dir, toy{noise: true}, toy{noise: true})
	if count(lines, "aligned") != 1 || count(lines, "fault") != 2 || !strings.Contains(lines[1], "recorded by plumb test: record again, or with --self-contained") {
		t.Error(strings.Join(lines, "\n"))
	}
}

// TestInterrupted stops a recording, uses what there is, and goes on: the files
// are those of a recording in one go, and finished shards are not made again.
func TestInterrupted(t *testing.T) {
	sizes := []int{18 << 14, 17 << 14, 4, 18 << 14}
	whole, dir := t.TempDir(), t.TempDir()
	if _, err := Gen(context.Background(), toyGen(whole, toyCases(sizes...))); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	calls := 0
	cfg := toyGen(dir, toyCases(sizes...))
	cfg.Open = func() (backend.Backend, error) {
		return toy{noise: true, refuse: true, calls: &calls, stop: func() {
			if calls == 3 {
				cancel()
			}
		}}, nil
	}
	m, err := Gen(ctx, cfg)
	if !errors.Is(err, context.Canceled) || m == nil || m.Complete || len(m.Shards) != 2 || len(m.Cases) != 2 {
		t.Fatalf("%v, %+v", err, m)
	}
	if lines := runToy(t, dir, toy{noise: true}, toy{}); len(lines) != 2 || count(lines, "aligned") != 2 {
		t.Error(strings.Join(lines, "\n"))
	}
	calls = 10
	if _, err := Gen(context.Background(), cfg); err != nil {
		t.Fatal(err)
	}
	if calls != 10+2 {
		t.Errorf("%d cases were run again, want 2", calls-10)
	}
	for _, f := range []string{manifestName, "cases-00000.safetensors.zst", "cases-00001.safetensors.zst"} {
		a, err1 := os.ReadFile(filepath.Join(whole, f))
		b, err2 := os.ReadFile(filepath.Join(dir, f))
		if err := errors.Join(err1, err2); err != nil || !bytes.Equal(a, b) {
			t.Errorf("%s differs from that of a recording in one go (%v)", f, err)
		}
	}
}

// TestDamagedShardsAreMadeAgain spoils a finished shard between two runs.
func TestDamagedShardsAreMadeAgain(t *testing.T) {
	dir := t.TempDir()
	cases := toyCases(18<<14, 17<<14)
	ctx, cancel := context.WithCancel(context.Background())
	calls := 0
	cfg := toyGen(dir, cases)
	cfg.Open = func() (backend.Backend, error) {
		return toy{noise: true, calls: &calls, stop: func() {
			if calls == 2 {
				cancel()
			}
		}}, nil
	}
	if _, err := Gen(ctx, cfg); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	flip(t, filepath.Join(dir, "cases-00000.safetensors.zst"), 100)
	calls = 10
	if m, err := Gen(context.Background(), cfg); err != nil || !m.Complete || calls != 12 {
		t.Fatalf("%v, %d cases run", err, calls-10)
	}
	if lines := runToy(t, dir, toy{noise: true}, toy{}); count(lines, "aligned") != 2 {
		t.Error(strings.Join(lines, "\n"))
	}
}

func flip(t *testing.T, path string, at int) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b[at] ^= 4
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestReferenceChanged goes on with another version of the reference.
func TestReferenceChanged(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(context.Background())
	cfg := toyGen(dir, toyCases(18<<14, 17<<14))
	cfg.Open = func() (backend.Backend, error) { return toy{stop: cancel}, nil }
	if _, err := Gen(ctx, cfg); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	cfg.Open = func() (backend.Backend, error) { return newer{}, nil }
	if _, err := Gen(context.Background(), cfg); err == nil || !strings.Contains(err.Error(), "was begun with toy 1, the reference is toy 2") {
		t.Error(err)
	}
}

type newer struct{ toy }

func (newer) Info() backend.Info { return backend.Info{Name: "toy", Version: "2"} }

// TestNeeds: a case is expected to grow as earlier ones of its function have
// grown; small ones tell nothing, and other functions are as before.
func TestNeeds(t *testing.T) {
	g := &generator{GenConfig: GenConfig{Cases: []Case{{Function: "upsample"}, {Function: "relu"}}}, growth: map[string]int64{}}
	large, other := planned{index: 0, bytes: batchBytes}, planned{index: 1, bytes: batchBytes}
	g.grew(planned{index: 0, bytes: batchBytes - 1}, 100*batchBytes)
	if n := g.needs([]planned{large}); n != perInput*batchBytes {
		t.Errorf("%d bytes before anything is known, want %d", n, int64(perInput*batchBytes))
	}
	g.grew(large, 8*batchBytes)
	g.grew(large, 2*batchBytes)
	if n := g.needs([]planned{large, other}); n != (17+perInput)*batchBytes {
		t.Errorf("%d bytes, want 17 times and %d times %d", n, perInput, int64(batchBytes))
	}
}
