package campaign

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"plumb/backend"
	"plumb/internal/judge"
	"plumb/internal/judge/verdict"
	"plumb/program"
	"plumb/tensor"
)

// compiler notes how many jobs each of its exchanges has; the first one says that it
// has begun and ends once all the other lanes have asked.
type compiler struct {
	modal
	began, asked chan struct{}
	mu           sync.Mutex
	sizes        []int
}

func newCompiler() *compiler {
	return &compiler{modal: modal{mode: "jit"}, began: make(chan struct{}), asked: make(chan struct{})}
}

func (c *compiler) Info() backend.Info {
	info := c.modal.Info()
	info.Features = map[string]string{backend.Together: "jit"}
	return info
}

func (c *compiler) RunBatch(ctx context.Context, jobs []*backend.Job) ([]*backend.Outcome, error) {
	c.mu.Lock()
	first := len(c.sizes) == 0
	c.sizes = append(c.sizes, len(jobs))
	c.mu.Unlock()
	if first {
		close(c.began)
		<-c.asked
	}
	var outs []*backend.Outcome
	for _, j := range jobs {
		outs = append(outs, &backend.Outcome{Status: backend.OK, Values: []backend.Value{{Tensor: tensor.Scalar(tensor.F32, complex(float64(len(j.Program.Name)), 0))}}})
	}
	return outs, nil
}

// TestGather: what lanes ask for while the instance is busy is one exchange, of
// which each has its own part.
func TestGather(t *testing.T) {
	c := newCompiler()
	p := newPool(func() (backend.Backend, error) { return c, nil }, 1)
	s, err := p.take(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	p.give(s)
	names := []string{"a", "bb", "ccc", "dddd"}
	got := make([]float64, len(names))
	var lanes sync.WaitGroup
	for i, name := range names {
		lanes.Go(func() {
			outs, err := p.run(t.Context(), 0, []*backend.Job{{Program: &program.Program{Name: name}}})
			if err != nil {
				t.Error(err)
				return
			}
			got[i] = real(outs[0].Values[0].Tensor.At(0))
		})
		if i == 0 {
			<-c.began
		}
	}
	for waits := 0; waits < len(names)-1; time.Sleep(time.Millisecond) {
		p.mu.Lock()
		waits = len(p.waiting)
		p.mu.Unlock()
	}
	close(c.asked)
	lanes.Wait()
	if want := []float64{1, 2, 3, 4}; !slices.Equal(got, want) {
		t.Errorf("results of %v, want %v", got, want)
	}
	if want := []int{1, 3}; !slices.Equal(c.sizes, want) {
		t.Errorf("exchanges of %v, want %v", c.sizes, want)
	}
}

// TestExchangesHoldPrograms: cases that differ in their elements alone count once.
func TestExchangesHoldPrograms(t *testing.T) {
	var p pool
	for i := range gathered + 1 {
		var r request
		for seed := range 5 {
			r.forms = append(r.forms, (&program.Program{Name: string(rune('a' + i)), Seed: uint64(seed)}).Form())
		}
		p.waiting = append(p.waiting, &r)
	}
	if n := len(p.next()); n != gathered || len(p.waiting) != 1 {
		t.Errorf("an exchange of %d programs, which leaves %d", n, len(p.waiting))
	}
}

// TestLanesOfTogether: tests of one case each meet in the exchanges of one
// instance, and each case has its own verdict.
func TestLanesOfTogether(t *testing.T) {
	c := newCompiler()
	close(c.asked)
	var tests []Test
	for _, name := range []string{"t", "uu", "t", "t", "uu"} {
		p := &program.Program{Name: name, Calls: []program.Call{{Result: "y", Target: "torch.f"}}}
		tests = append(tests, Test{Name: name, N: 1, Fixed: true, Draw: func(int, Observer) (*program.Program, error) { return p, nil }})
	}
	words := map[verdict.Word]int{}
	err := Run(t.Context(), Config{
		Tests: tests, Jobs: 1, Batch: 1,
		Reference:  func() (backend.Backend, error) { return &modal{"", map[string]float64{"": 1}, ""}, nil },
		Candidates: []Candidate{{"c", func() (backend.Backend, error) { return c, nil }}},
		Judge:      judge.New(judge.Config{}),
		OnRecord:   func(r *verdict.Record) { words[r.Verdict.Word]++ },
		OnEnd:      func(*verdict.End) {},
	})
	if err != nil || words[verdict.Aligned] != 3 || words[verdict.Misaligned] != 2 {
		t.Errorf("%v, %v", words, err)
	}
}
