package baseline

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"plumb/backend"
	"plumb/program"
	"plumb/tensor"
)

// picky has no kernel for float16 inputs of an even length, and draws inputs
// itself; blank ones are ones.
type picky struct {
	toy
	drawn, blank *int
}

func (p picky) Run(ctx context.Context, job *backend.Job) (*backend.Outcome, error) {
	if x := job.Inputs[0]; x.DType() == tensor.F16 && x.Len()%2 == 0 {
		return &backend.Outcome{Status: backend.Raised, Class: "RuntimeError", Message: fmt.Sprintf(`"toy%d_cpu" not implemented for 'Half'`, x.Len()%4), Values: []backend.Value{}}, nil
	}
	return p.toy.Run(ctx, job)
}

func (p picky) RunShared(ctx context.Context, jobs []*backend.Job) ([]*backend.Outcome, error) {
	for _, job := range jobs {
		*job = *backend.NewJob(job.Program)
	}
	*p.drawn += len(jobs)
	return backend.RunBatch(ctx, picky{}, jobs)
}

func (p picky) RunHeld(ctx context.Context, job *backend.Job) (*backend.Outcome, error) {
	return p.Run(ctx, job)
}

var _ backend.Sharer = picky{}

func (p picky) RunUninitialized(ctx context.Context, jobs []*backend.Job) ([]*backend.Outcome, error) {
	for _, job := range jobs {
		x := tensor.New(job.Program.Inputs[0].DType, job.Program.Inputs[0].Shape...)
		for i := range x.Len() {
			x.Set(i, 1)
		}
		job.Inputs = []*tensor.Tensor{x}
	}
	*p.blank += len(jobs)
	return backend.RunBatch(ctx, picky{}, jobs)
}

func (picky) Release() {}

// TestRefusedUnseen: what is recorded of cases whose inputs were not drawn is
// what is recorded of drawn ones.
func TestRefusedUnseen(t *testing.T) {
	var cases []Case
	for i, n := range []int{40, 40, 41, 60, 43, 80, 40, 42} {
		p := &program.Program{
			Inputs: []program.Input{{Name: "x", DType: tensor.F16, Shape: []int{n}, Fill: program.Fill{Dist: program.Uniform, Lo: -1, Hi: 1, Key: 9}}},
			Calls:  []program.Call{{Result: "y", Target: "torch.toy", Args: []any{program.Ref("x")}}},
		}
		cases = append(cases, Case{Name: fmt.Sprintf("toy_%d", i), Function: "toy", Programs: func() ([]Variant, error) { return []Variant{{Program: p}}, nil }})
	}
	record := func(ref backend.Backend) string {
		cfg := toyGen(t.TempDir(), cases)
		cfg.Shard = 1
		cfg.Open = func() (backend.Backend, error) { return ref, nil }
		_, err := Gen(context.Background(), cfg)
		must(t, err)
		return cfg.Dir
	}
	drawn, blank := 0, 0
	seen, unseen := record(struct{ backend.Backend }{picky{}}), record(picky{drawn: &drawn, blank: &blank})
	if blank != 7 || drawn != 1+3 {
		t.Errorf("%d cases drawn and %d asked with others, want the first drawn, the two that are not refused, and the one that is in other words", drawn, blank)
	}
	files, err := os.ReadDir(seen)
	must(t, err)
	for _, f := range files {
		a, err := os.ReadFile(filepath.Join(seen, f.Name()))
		must(t, err)
		b, err := os.ReadFile(filepath.Join(unseen, f.Name()))
		must(t, err)
		if !bytes.Equal(a, b) {
			t.Errorf("%s is another where inputs were not drawn", f.Name())
		}
	}
}
