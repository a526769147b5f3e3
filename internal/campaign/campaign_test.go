package campaign

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"plumb/backend"
	"plumb/internal/judge"
	"plumb/internal/judge/verdict"
	"plumb/program"
	"plumb/tensor"
)

// fake is a backend whose outcome depends on the program's seed alone.
type fake struct {
	run    func(p *program.Program) *backend.Outcome
	err    error
	closed *atomic.Int32
}

func (f *fake) Info() backend.Info { return backend.Info{Name: "fake"} }
func (f *fake) Close() error       { f.closed.Add(1); return nil }
func (f *fake) Run(_ context.Context, j *backend.Job) (*backend.Outcome, error) {
	return f.run(j.Program), f.err
}

func raised(msg string) *backend.Outcome {
	return &backend.Outcome{Status: backend.Raised, Class: "RuntimeError", Message: msg}
}

// draws makes a test whose program i has seed i.
func draws(name string, n int) Test {
	return Test{Name: name, N: n, Draw: func(i int, _ Observer) (*program.Program, error) {
		return &program.Program{Name: name, Seed: uint64(i)}, nil
	}}
}

type result struct {
	lines []string
	ends  []string
	err   error
	open  int32
}

// play runs the tests against a backend that rejects the seeds that reject accepts.
func play(jobs, batch int, reject func(uint64) bool, tests ...Test) result {
	var res result
	var opened, closed atomic.Int32
	run := func(p *program.Program) *backend.Outcome {
		if reject(p.Seed) {
			return raised(fmt.Sprintf("odd %d", p.Seed%3))
		}
		return &backend.Outcome{Status: backend.OK}
	}
	open := func() (backend.Backend, error) {
		opened.Add(1)
		return &fake{run: run, closed: &closed}, nil
	}
	var inLane sync.Map
	err := Run(context.Background(), Config{
		Tests: tests, Reference: open, Candidates: []Candidate{{"a", open}, {"b", open}}, Jobs: jobs, Batch: batch, Judge: judge.New(judge.Config{}),
		OnCase: func(r *verdict.Record) { inLane.Store(fmt.Sprint(r.Test, r.Index), true) },
		OnRecord: func(r *verdict.Record) {
			if _, seen := inLane.Load(fmt.Sprint(r.Test, r.Index)); !seen {
				res.err = fmt.Errorf("case %d of %s was not shown by its lane", r.Index, r.Test)
			}
			res.lines = append(res.lines, fmt.Sprintf("%s %d %s %s", r.Test, r.Index, r.Candidate, r.Verdict.Word))
		},
		OnEnd: func(e *verdict.End) {
			res.ends = append(res.ends, fmt.Sprintf("%s %d judged %d rejected, error %v", e.Test, e.Judged, e.Rejected, e.Err))
		},
	})
	res.err = cmp.Or(err, res.err)
	res.open = opened.Load() - closed.Load()
	return res
}

func TestOrderDoesNotDependOnLanes(t *testing.T) {
	third := func(seed uint64) bool { return seed%3 == 1 }
	tests := []Test{draws("x", 10), draws("y", 1), draws("z", 37)}
	want := play(1, 1, third, tests...)
	if want.err != nil || len(want.ends) != 3 || want.ends[0] != "x 10 judged 5 rejected, error <nil>" {
		t.Fatalf("one by one: %v, %v", want.ends, want.err)
	}
	for _, c := range [][2]int{{1, 8}, {2, 3}, {5, 1}, {4, 32}} {
		got := play(c[0], c[1], third, tests...)
		if got.err != nil || !slices.Equal(got.lines, want.lines) || !slices.Equal(got.ends, want.ends) {
			t.Errorf("%d jobs, batches of %d: %v\n%s\nwant\n%s", c[0], c[1], got.err, strings.Join(got.lines, "\n"), strings.Join(want.lines, "\n"))
		}
		if got.open != 0 {
			t.Errorf("%d backends were left open", got.open)
		}
	}
}

func TestStuckTestShowsTheMostFrequentMessage(t *testing.T) {
	got := play(2, 4, func(seed uint64) bool { return seed != 7 }, draws("x", 3), draws("y", 0))
	want := "x: the reference rejected 60 draws and accepted 1; "
	if len(got.ends) != 2 || !strings.Contains(got.ends[0], want) || !strings.Contains(got.ends[0], "RuntimeError: odd 0") {
		t.Errorf("%v", got.ends)
	}
}

func TestFixedProgramsAreNotReplaced(t *testing.T) {
	x := draws("x", 4)
	x.Fixed = true
	got := play(2, 3, func(seed uint64) bool { return seed == 1 }, x)
	if got.ends[0] != "x 3 judged 1 rejected, error <nil>" || len(got.lines) != 8 {
		t.Errorf("%v %v", got.ends, got.lines)
	}
}

func TestDrawErrorEndsItsTestOnly(t *testing.T) {
	bad := draws("bad", 5)
	bad.Draw = func(i int, _ Observer) (*program.Program, error) { return nil, errors.New("bad.py:1:2: no such thing") }
	got := play(2, 2, func(uint64) bool { return false }, bad, draws("good", 3))
	if got.err != nil || len(got.ends) != 2 || !strings.Contains(got.ends[0], "bad.py:1:2") || got.ends[1] != "good 3 judged 0 rejected, error <nil>" {
		t.Errorf("%v %v", got.ends, got.err)
	}
}

func TestFaultEndsTheRun(t *testing.T) {
	var opened, closed atomic.Int32
	fault := &backend.Fault{Backend: "fake", Err: errors.New("broken pipe")}
	open := func() (backend.Backend, error) {
		opened.Add(1)
		return &fake{run: func(*program.Program) *backend.Outcome { return nil }, err: fault, closed: &closed}, nil
	}
	err := Run(context.Background(), Config{
		Tests: []Test{draws("x", 100)}, Reference: open, Candidates: []Candidate{{"a", open}}, Jobs: 3, Batch: 2, Judge: judge.New(judge.Config{}),
		OnRecord: func(*verdict.Record) { t.Error("a record of a broken backend") }, OnEnd: func(*verdict.End) {},
	})
	if n := opened.Load(); !errors.Is(err, fault) || n == 0 || closed.Load() != n {
		t.Errorf("error %v, %d of %d backends closed", err, closed.Load(), n)
	}
}

func TestCancelEndsTheRun(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	var closed atomic.Int32
	ok := func(*program.Program) *backend.Outcome { return &backend.Outcome{Status: backend.OK} }
	open := func() (backend.Backend, error) { return &fake{run: ok, closed: &closed}, nil }
	n := 0
	err := Run(ctx, Config{
		Tests: []Test{draws("x", 1<<40)}, Reference: open, Candidates: []Candidate{{"a", open}}, Jobs: 2, Batch: 4, Judge: judge.New(judge.Config{}),
		OnRecord: func(*verdict.Record) {
			if n++; n == 20 {
				cancel()
			}
		}, OnEnd: func(*verdict.End) {},
	})
	if bound := 20 + (runAhead+2)*2*4; !errors.Is(err, context.Canceled) || n > bound {
		t.Errorf("error %v after %d records, want at most %d", err, n, bound)
	}
}

// TestASlowCaseHoldsBackTheOthers: what waits for it is bounded.
func TestASlowCaseHoldsBackTheOthers(t *testing.T) {
	var closed atomic.Int32
	var ran atomic.Int64
	waiting := int64(0)
	run := func(p *program.Program) *backend.Outcome {
		if p.Seed == 0 && p.Name == "slow" {
			time.Sleep(50 * time.Millisecond)
			waiting = max(waiting, ran.Load())
		}
		ran.Add(1)
		return &backend.Outcome{Status: backend.OK}
	}
	open := func() (backend.Backend, error) { return &fake{run: run, closed: &closed}, nil }
	records := 0
	err := Run(t.Context(), Config{
		Tests: []Test{draws("slow", 1), draws("x", 5000), draws("y", 5000)}, Reference: open, Candidates: []Candidate{{"a", open}}, Jobs: 2, Batch: 4, Judge: judge.New(judge.Config{}),
		OnRecord: func(*verdict.Record) { records++ }, OnEnd: func(*verdict.End) {},
	})
	if bound := int64(2 * (runAhead + 2) * 2 * 4); err != nil || records != 10001 || waiting > bound {
		t.Errorf("error %v, %d records, %d runs while one was slow, want at most %d", err, records, waiting, bound)
	}
}

func TestCancelledCasesAreNotJudged(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	var closed atomic.Int32
	run := func(p *program.Program) *backend.Outcome {
		if p.Seed == 9 {
			cancel()
		}
		if ctx.Err() != nil {
			return &backend.Outcome{Status: backend.TimedOut}
		}
		return &backend.Outcome{Status: backend.OK}
	}
	open := func() (backend.Backend, error) { return &fake{run: run, closed: &closed}, nil }
	n := 0
	err := Run(ctx, Config{
		Tests: []Test{draws("x", 100)}, Reference: open, Candidates: []Candidate{{"a", open}}, Jobs: 2, Batch: 4, Judge: judge.New(judge.Config{}),
		OnRecord: func(r *verdict.Record) {
			if n++; r.Reference.Status != backend.OK || r.Outcome.Status != backend.OK {
				t.Errorf("case %d was cancelled and is judged", r.Index)
			}
		}, OnEnd: func(*verdict.End) {},
	})
	if !errors.Is(err, context.Canceled) || n > 9 {
		t.Errorf("error %v after %d records", err, n)
	}
}

func TestObserveRunsThePrefix(t *testing.T) {
	var closed atomic.Int32
	run := func(p *program.Program) *backend.Outcome {
		if len(p.Calls) == 0 {
			return &backend.Outcome{Status: backend.OK}
		}
		return &backend.Outcome{Status: backend.OK, Values: []backend.Value{{Plain: int64(5)}}}
	}
	open := func() (backend.Backend, error) { return &fake{run: run, closed: &closed}, nil }
	var saw any
	asks := Test{Name: "x", N: 1, Draw: func(i int, o Observer) (*program.Program, error) {
		vs, err := o.Observe(&program.Program{Calls: []program.Call{{Result: "y", Target: "torch.f"}}}, "y")
		saw = vs[0].Plain
		return &program.Program{}, err
	}}
	err := Run(context.Background(), Config{
		Tests: []Test{asks}, Reference: open, Candidates: []Candidate{{"a", open}}, Judge: judge.New(judge.Config{}),
		OnRecord: func(*verdict.Record) {}, OnEnd: func(*verdict.End) {},
	})
	if err != nil || saw != int64(5) {
		t.Errorf("saw %v, error %v", saw, err)
	}
}

// TestLargeCases: the outcomes under way stay within Memory whatever the lanes,
// and a case that has more than it is skipped, with its size.
func TestLargeCases(t *testing.T) {
	const memory, large = 1 << 20, 700 << 10
	var held, most atomic.Int64
	size := func(seed uint64) int {
		if seed%10 == 7 {
			return large
		}
		return 100 << 10
	}
	run := func(p *program.Program) *backend.Outcome {
		return &backend.Outcome{Status: backend.OK, Values: []backend.Value{{Tensor: tensor.New(tensor.U8, size(p.Seed))}}}
	}
	test := draws("x", 60)
	test.Draw = func(i int, _ Observer) (*program.Program, error) {
		return &program.Program{Name: "x", Seed: uint64(i), Calls: []program.Call{{Result: "y", Target: "torch.f"}}}, nil
	}
	words := map[verdict.Word]int{}
	err := Run(t.Context(), Config{
		Tests: []Test{test}, Jobs: 3, Batch: 8, Memory: memory, Judge: judge.New(judge.Config{}),
		Reference: func() (backend.Backend, error) {
			return &fake{closed: new(atomic.Int32), run: func(p *program.Program) *backend.Outcome {
				now := held.Add(int64(size(p.Seed)))
				most.Store(max(most.Load(), now))
				return run(p)
			}}, nil
		},
		Candidates: []Candidate{{"a", func() (backend.Backend, error) { return &fake{closed: new(atomic.Int32), run: run}, nil }}},
		OnRecord: func(r *verdict.Record) {
			held.Add(-int64(size(r.Program.Seed)))
			words[r.Verdict.Word]++
			if r.Verdict.Word == verdict.Skipped && !strings.Contains(r.Verdict.Reason, "0 MB in each subject, more than half of the 1 MB") {
				t.Error(r.Verdict.Reason)
			}
		},
		OnEnd: func(e *verdict.End) {
			if e.Err != nil || e.Judged != 60 {
				t.Error(e)
			}
		},
	})
	if err != nil || words[verdict.Aligned] != 54 || words[verdict.Skipped] != 6 {
		t.Error(err, words)
	}
	if most.Load() > memory+large { // the size of a case is known when it has run
		t.Errorf("%d bytes of the reference's outcomes were held at once", most.Load())
	}
}

// TestCostWithoutMemory: where the number of cases alone is bounded, large ones are not
// taken for many, nor is all garbage collected before each of their batches.
func TestCostWithoutMemory(t *testing.T) {
	cfg := &Config{Jobs: 2, Batch: 8}
	r := &testRun{Test: &Test{N: 8, Fixed: true}, cfg: cfg, largest: 1 << 30}
	if got := r.Cost(); got != 8 || got > cfg.limit() {
		t.Errorf("a batch of 8 costs %d of %d", got, cfg.limit())
	}
}
