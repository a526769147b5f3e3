package campaign

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"plumb/backend"
	"plumb/internal/judge"
	"plumb/internal/judge/verdict"
	"plumb/program"
	"plumb/tensor"
)

// modal gives one number, by mode.
type modal struct {
	mode  string
	gives map[string]float64
	blame string // of the mode graph
}

func (m *modal) Info() backend.Info {
	return backend.Info{Name: "modal", Modes: []string{backend.Eager, "graph", Plain, "jit"}, Mode: m.mode}
}
func (m *modal) Close() error { return nil }
func (m *modal) In(mode string) (backend.Backend, error) {
	return &modal{mode, m.gives, m.blame}, nil
}
func (m *modal) Run(context.Context, *backend.Job) (*backend.Outcome, error) {
	v, ok := m.gives[m.mode]
	if !ok {
		return &backend.Outcome{Status: backend.Unsupported, Message: m.mode + " cannot"}, nil
	}
	out := &backend.Outcome{Status: backend.OK, Values: []backend.Value{{Tensor: tensor.Scalar(tensor.F32, complex(v, 0))}}}
	if m.mode == "graph" && m.blame != "" {
		out.Blame, out.Evidence = m.blame, "pass "+m.blame+" changes output 0"
	}
	return out, nil
}

// together computes wrongly what comes with others, in one of its modes.
type together struct{ modal }

func (m *together) Info() backend.Info {
	info := m.modal.Info()
	info.Features = map[string]string{backend.Together: "jit"}
	return info
}

func (m *together) RunBatch(ctx context.Context, jobs []*backend.Job) ([]*backend.Outcome, error) {
	if len(jobs) == 1 {
		return backend.RunEach(ctx, &m.modal, jobs)
	}
	return backend.RunEach(ctx, &modal{m.mode, map[string]float64{m.mode: 2}, ""}, jobs)
}

// TestFailsByItself: a case that fails among others counts as it does by itself,
// where the mode compiles them together, and nowhere else.
func TestFailsByItself(t *testing.T) {
	for mode, want := range map[string]verdict.Word{"jit": verdict.Aligned, backend.Eager: verdict.Misaligned} {
		p := &program.Program{Name: "t", Calls: []program.Call{{Result: "y", Target: "torch.f"}}}
		all, cases := &together{modal{mode, map[string]float64{mode: 1}, ""}}, 0
		err := Run(t.Context(), Config{
			Tests: []Test{{Name: "t", N: 3, Fixed: true, Draw: func(int, Observer) (*program.Program, error) { return p, nil }}}, Jobs: 1, Batch: 3,
			Reference:  func() (backend.Backend, error) { return &modal{"", map[string]float64{"": 1}, ""}, nil },
			Candidates: []Candidate{{"c", func() (backend.Backend, error) { return all, nil }}},
			Judge:      judge.New(judge.Config{}),
			OnRecord: func(r *verdict.Record) {
				if cases++; r.Verdict.Word != want {
					t.Errorf("%s: %s, want %s", mode, r.Verdict.Word, want)
				}
			},
			OnEnd: func(*verdict.End) {},
		})
		if err != nil || cases != 3 {
			t.Errorf("%s: %d cases, %v", mode, cases, err)
		}
	}
}

// haunted computes wrongly, and says that something was left beside it, until it is asked
// for a process of its own.
type haunted struct{ modal }

func (h *haunted) Run(ctx context.Context, job *backend.Job) (*backend.Outcome, error) {
	if job.Alone {
		return h.modal.Run(ctx, job)
	}
	out, err := (&modal{h.mode, map[string]float64{h.mode: 2}, ""}).Run(ctx, job)
	out.Beside = true
	return out, err
}

// TestFailsBeside: a case that fails beside what an earlier one has left running counts
// as it does in a process of its own.
func TestFailsBeside(t *testing.T) {
	records := judgedIn(t, &haunted{modal{"", map[string]float64{"": 1}, ""}}, false)
	if len(records) != 1 || records[0].Verdict.Word != verdict.Aligned {
		t.Errorf("%+v", records[0].Verdict)
	}
}

// judgedIn judges one program, which gives 1, on a candidate in its modes.
func judgedIn(t *testing.T, m backend.Backend, graph bool) []*verdict.Record {
	t.Helper()
	p := &program.Program{Name: "t", Calls: []program.Call{{Result: "y", Target: "torch.f"}}}
	test := Test{Name: "t", N: 1, Fixed: true, Graph: graph, Draw: func(int, Observer) (*program.Program, error) { return p, nil }}
	var records []*verdict.Record
	reference := &modal{backend.Eager, map[string]float64{backend.Eager: 1}, ""}
	err := Run(context.Background(), Config{
		Tests: []Test{test}, Jobs: 1, Batch: 1,
		Reference:  func() (backend.Backend, error) { return reference, nil },
		Candidates: []Candidate{{"c", func() (backend.Backend, error) { return m, nil }}},
		Judge:      judge.New(judge.Config{}),
		OnRecord:   func(r *verdict.Record) { records = append(records, r) },
		OnEnd:      func(*verdict.End) {},
	})
	if err != nil {
		t.Fatal(err)
	}
	return records
}

// TestModes: a failure is one record with the modes that fail alike, and says
// what of the graph is to blame.
func TestModes(t *testing.T) {
	good, bad, worse := 1.0, 2.0, 3.0
	for _, c := range []struct {
		name                string
		eager, graph, plain *float64
		own, blame          string
		want                string // word, modes and blame of each record
	}{
		{"all agree", &good, &good, &good, "", "", "aligned in eager, graph, graph-plain"},
		{"all fail alike", &bad, &bad, &bad, "", "", "misaligned in eager, graph, graph-plain"},
		{"all fail, by other numbers", &bad, &worse, &worse, "", "", "misaligned in eager, graph, graph-plain"},
		{"eager fails", &bad, &good, &good, "", "", "misaligned in eager"},
		{"a pass", &good, &bad, &good, "", "fuse", "misaligned in graph: pass fuse"},
		{"a pass, within the limit", &good, &good, &good, "", "fuse", "crash in graph: pass fuse"},
		{"tracing", &good, &bad, &bad, "", "", "misaligned in graph, graph-plain: tracing"},
		{"tracing, then a pass", &good, &bad, &worse, "", "fuse", "misaligned in graph: pass fuse; misaligned in graph-plain: tracing"},
		{"eager and a pass", &bad, &worse, &bad, "", "fuse", "misaligned in eager, graph-plain; misaligned in graph: pass fuse"},
		{"not captured", &good, nil, nil, "", "", "aligned in eager (graph cannot)"},
		{"not captured, and wrong", &bad, nil, nil, "", "", "misaligned in eager"},
		{"its own mode is a graph", &good, &bad, &bad, "graph", "", "misaligned in graph"},
	} {
		m := &modal{c.own, map[string]float64{}, c.blame}
		if m.mode == "" {
			m.mode = backend.Eager
		}
		for mode, v := range map[string]*float64{backend.Eager: c.eager, "graph": c.graph, Plain: c.plain} {
			if v != nil {
				m.gives[mode] = *v
			}
		}
		var got []string
		for _, r := range judgedIn(t, m, true) {
			s := string(r.Verdict.Word) + " in " + r.Mode()
			if r.Verdict.Blame != "" {
				s += ": " + r.Verdict.Blame
			}
			if _, why, ok := strings.Cut(r.Uncaptured, ": "); ok {
				s += " (" + why + ")"
			}
			got = append(got, s)
		}
		if s := strings.Join(got, "; "); s != c.want {
			t.Errorf("%s: %s, want %s", c.name, s, c.want)
		}
		if r := judgedIn(t, m, false); len(r) != 1 || r[0].Mode() != m.mode {
			t.Errorf("%s: without graphs: %d records, in %s", c.name, len(r), r[0].Mode())
		}
	}
}

// TestMemoryOfModes: of modes that agree one outcome is held, and large cases
// are exchanged one by one.
func TestMemoryOfModes(t *testing.T) {
	m := &modal{backend.Eager, map[string]float64{backend.Eager: 1, "graph": 1, Plain: 1, "jit": 1}, ""}
	cand := newPool(func() (backend.Backend, error) { return m, nil }, 1)
	if s, err := cand.take(t.Context(), nil); err != nil {
		t.Fatal(err)
	} else {
		cand.give(s)
	}
	l := &lane{cfg: &Config{Judge: judge.New(judge.Config{})}}
	job := backend.NewJob(&program.Program{Name: "t", Calls: []program.Call{{Result: "y", Target: "torch.f"}}})
	ref, err := m.Run(t.Context(), job)
	if err != nil {
		t.Fatal(err)
	}
	trials, err := l.try(t.Context(), cand, &Test{Graph: true}, []*backend.Job{job}, []*backend.Outcome{ref})
	if err != nil {
		t.Fatal(err)
	}
	for _, other := range trials[0] {
		if other.outcome != trials[0][0].outcome {
			t.Errorf("%s holds results of its own", other.mode)
		}
	}
	small := &backend.Outcome{Values: []backend.Value{{Tensor: tensor.New(tensor.U8, 1)}}}
	large := &backend.Outcome{Values: []backend.Value{{IsTuple: true, Tuple: []backend.Value{{Tensor: tensor.New(tensor.U8, exchangeBytes)}}}}}
	for _, c := range []struct {
		refs []*backend.Outcome
		want int
	}{{[]*backend.Outcome{small, small, small}, 3}, {[]*backend.Outcome{small, large}, 1}, {[]*backend.Outcome{large, small}, 1}} {
		if got := exchange(c.refs); got != c.want {
			t.Errorf("%d of %d cases in an exchange, want %d", got, len(c.refs), c.want)
		}
	}
}

// TestLargeOutcomesGo: what is aligned and large is not held while other modes run.
func TestLargeOutcomesGo(t *testing.T) {
	large := &backend.Outcome{Status: backend.OK, Values: []backend.Value{{Tensor: tensor.New(tensor.U8, exchangeBytes+1)}}}
	open := func() (backend.Backend, error) {
		return &fake{closed: new(atomic.Int32), run: func(*program.Program) *backend.Outcome { return large }}, nil
	}
	p := &program.Program{Name: "t", Calls: []program.Call{{Result: "y", Target: "torch.f"}}}
	err := Run(t.Context(), Config{
		Tests:     []Test{{Name: "t", N: 1, Fixed: true, Draw: func(int, Observer) (*program.Program, error) { return p, nil }}},
		Reference: open, Candidates: []Candidate{{"c", open}}, Judge: judge.New(judge.Config{}),
		OnRecord: func(r *verdict.Record) {
			if r.Verdict.Word != verdict.Aligned || r.Outcome.Values != nil || r.Reference.Values == nil {
				t.Errorf("%s, the candidate's values %v", r.Verdict.Word, r.Outcome.Values)
			}
		},
		OnEnd: func(*verdict.End) {},
	})
	if err != nil {
		t.Error(err)
	}
}
