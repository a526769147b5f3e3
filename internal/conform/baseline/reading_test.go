package baseline

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"plumb/backend"
	"plumb/internal/draw/choice"
	"plumb/internal/judge/verdict"
	"plumb/program"
	"plumb/tensor"
)

// affine computes y = 2·x+1 and the gradient 3·x. Every third element of a noisy
// one is off by a part in 2¹⁵, and one element of y by off.
type affine struct {
	noisy bool
	off   float64
}

func (affine) Info() backend.Info { return backend.Info{Name: "affine", Version: "1"} }
func (affine) Close() error       { return nil }

func (a affine) Run(_ context.Context, job *backend.Job) (*backend.Outcome, error) {
	x := job.Inputs[0]
	of := func(slope, constant complex128) *tensor.Tensor {
		y := tensor.New(x.DType(), x.Shape()...)
		for i := range x.Len() {
			v := slope*x.At(i) + constant
			if a.noisy && i%3 == 0 {
				v *= 1 + 0x1p-15
			}
			y.Set(i, v)
		}
		return y
	}
	y := of(2, 1)
	y.Set(y.Len()-2, y.At(y.Len()-2)+complex(a.off, 0))
	return &backend.Outcome{
		Status: backend.OK, Values: []backend.Value{{Tensor: y, RequiresGrad: true}}, Slots: []backend.Slot{{Place: backend.Place{Part: backend.PartGrad, Owner: "x"}, Tensor: of(3, 0)}},
	}, nil
}

func affineCases(dtypes ...tensor.DType) []Case {
	var list []Case
	for i, d := range dtypes {
		list = append(list, Case{Name: "entry::affine_" + d.String(), Function: "affine", Programs: func() ([]Variant, error) {
			return []Variant{{Program: &program.Program{
				Name: "affine", Seed: uint64(i),
				Inputs: []program.Input{{Name: "x", DType: d, Shape: []int{3, readBytes/3/d.Size() + 7}, RequiresGrad: true, Fill: program.Fill{Dist: program.Uniform, Lo: -1, Hi: 1, Key: choice.Derive(7, uint64(i))}}},
				Calls:  []program.Call{{Result: "y", Target: "torch.affine", Args: []any{program.Ref("x")}}},
			}}}, nil
		}})
	}
	return list
}

// TestReading: results that are read while they are compared have the verdict
// that they have in memory, whether they are stored whole or as a difference
// from a prediction, aligned or not.
func TestReading(t *testing.T) {
	dtypes := []tensor.DType{tensor.F32, tensor.F64, tensor.C64}
	for _, predict := range []func() backend.Backend{nil, func() backend.Backend { return affine{} }} {
		dir := t.TempDir()
		_, err := Gen(context.Background(), GenConfig{
			Dir: dir, Plumb: "test", Config: "config.py", Source: []byte("{}"), Cases: affineCases(dtypes...), Jobs: 1, Memory: 64 << 20,
			Open:    func() (backend.Backend, error) { return affine{noisy: true}, nil },
			Predict: predict,
		})
		must(t, err)
		b, err := Open(dir)
		must(t, err)
		for _, tc := range []struct {
			cand affine
			tol  float64
			read int // results that are compared with nothing in memory, of two a case
		}{{affine{}, 1e-2, 2}, {affine{off: 1}, 1e-2, 0}, {affine{}, 0, 0}} {
			whole, _ := judgeAffine(t, b, tc.cand, tc.tol, 0)
			streamed, read := judgeAffine(t, b, tc.cand, tc.tol, 1)
			if whole != streamed {
				t.Errorf("%+v: in memory\n%s\nread\n%s", tc, whole, streamed)
			}
			if read != tc.read*len(dtypes) {
				t.Errorf("%+v: %d results were read while they were compared, want %d", tc, read, tc.read*len(dtypes))
			}
		}
	}
}

// judgeAffine returns the verdicts as JSON, and how many results were compared
// and found within limits without being in memory.
func judgeAffine(t *testing.T, b *Baseline, cand affine, tol float64, from int) (lines string, read int) {
	t.Helper()
	err := b.Run(context.Background(), RunConfig{
		Candidate: "affine", Open: func() (backend.Backend, error) { return cand, nil }, Predict: func() backend.Backend { return affine{} },
		Read: from, Jobs: 1, Memory: 64 << 20,
		Judge: func(q *Question) *verdict.Verdict {
			v := verdict.Judge(q.Job.Program, q.Ref, q.Cand, verdict.Policy{RTol: &tol, ATol: &tol})
			if q.Ref.Unread != nil && v.Word == verdict.Aligned {
				read += len(v.Margins)
			}
			return v
		},
		OnRecord: func(r *Record) {
			text, err := json.Marshal(r.Verdict)
			must(t, err)
			lines += fmt.Sprintf("%s %s\n", r.Entry.Name, text)
		},
	})
	must(t, err)
	return lines, read
}
