package baseline

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"testing"

	"plumb/backend"
	"plumb/internal/judge/verdict"
	"plumb/program"
	"plumb/tensor"
)

// rough computes y = 1000·eˣ: in float32 with an error of up to three units in
// the last place, in float64 without.
type rough struct{ toy }

func (rough) Run(_ context.Context, job *backend.Job) (*backend.Outcome, error) {
	x := job.Inputs[0]
	y := tensor.New(x.DType(), x.Shape()...)
	for i := range x.Len() {
		v := 1000 * math.Exp(x.Float(i))
		if x.DType() == tensor.F32 && float32(v) < math.MaxFloat32 {
			bits := math.Float32bits(float32(v))
			v = float64(math.Float32frombits(bits + bits%4))
		}
		y.Set(i, complex(v, 0))
	}
	return &backend.Outcome{Status: backend.OK, Values: []backend.Value{{Tensor: y}}}, nil
}

// recordRough records programs of exp over inputs up to high, with their truth.
func recordRough(t testing.TB, high float64) *Baseline {
	t.Helper()
	p := &program.Program{
		Inputs: []program.Input{{Name: "x", DType: tensor.F32, Shape: []int{50}, Fill: program.Fill{Dist: program.Uniform, Lo: 0.5, Hi: high, Key: 3}}},
		Calls:  []program.Call{{Result: "y", Target: "torch.exp", Args: []any{program.Ref("x")}}},
	}
	cfg := toyGen(t.TempDir(), []Case{{Name: "exp_0", Function: "exp", Programs: func() ([]Variant, error) { return []Variant{{Program: p}}, nil }}})
	cfg.Open = func() (backend.Backend, error) { return rough{}, nil }
	cfg.Predict = nil
	cfg.Truth = Truth{Mode: SmallTruth, Rounds: func(*program.Program) bool { return true }}
	_, err := Gen(context.Background(), cfg)
	must(t, err)
	b, err := Open(cfg.Dir)
	must(t, err)
	return b
}

// asked is the question about the one case of a baseline.
func asked(t testing.TB, b *Baseline) *Question {
	t.Helper()
	var question *Question
	err := b.Run(context.Background(), RunConfig{
		Candidate: "rough", Open: func() (backend.Backend, error) { return rough{}, nil }, OnRecord: func(*Record) {}, Memory: 1 << 20,
		Judge: func(q *Question) *verdict.Verdict {
			if question = q; q.Truth != nil {
				o, err := q.Truth()
				q.Truth = func() (*verdict.Oracle, error) { return o, err }
			}
			return &verdict.Verdict{Word: verdict.Aligned}
		},
	})
	must(t, err)
	if question == nil || question.Truth == nil {
		t.Fatal("no truth came back")
	}
	return question
}

// TestTruth: the recorded oracle has the bits of the truth, and no larger errors
// than the reference makes nearby; where the reference overflows, all its runs.
func TestTruth(t *testing.T) {
	q := asked(t, recordRough(t, 9))
	live := answersOf(t, q)
	o, err := q.Truth()
	must(t, err)
	if !o.Truth.Values[0].Tensor.SameBits(live.Truth.Values[0].Tensor) || o.Inputs != verdict.NearInputs || len(o.Near) != 0 {
		t.Errorf("the truth is another, or of %d inputs", o.Inputs)
	}
	for i := range 50 {
		worst := 0.0
		for _, n := range live.Near {
			worst = max(worst, verdict.Distance(n.Reference.Values[0].Tensor.At(i), n.Truth.Values[0].Tensor.At(i)))
		}
		if own := o.Errors.Values[0].Tensor.Float(i); own > worst || own < worst*(1-0x1p-7) || own == 0 {
			t.Fatalf("element %d: recorded %g, the reference's error is %g", i, own, worst)
		}
	}

	q = asked(t, recordRough(t, 88))
	if o, err = q.Truth(); err != nil || o.Errors != nil || len(o.Near) != verdict.NearInputs {
		t.Fatalf("%v: %d nearby outcomes", err, len(o.Near))
	}
	live = answersOf(t, q)
	for i, n := range o.Near {
		if !n.Reference.Values[0].Tensor.SameBits(live.Near[i].Reference.Values[0].Tensor) || !n.Truth.Values[0].Tensor.SameBits(live.Near[i].Truth.Values[0].Tensor) {
			t.Errorf("the nearby outcome %d is another", i)
		}
	}
}

// TestTruthsOfABatch: cases whose truth is asked for together have their own.
func TestTruthsOfABatch(t *testing.T) {
	var cases []Case
	for i, n := range []int{50, 20, 70} {
		p := &program.Program{
			Inputs: []program.Input{{Name: "x", DType: tensor.F32, Shape: []int{n}, Fill: program.Fill{Dist: program.Uniform, Lo: 0.5, Hi: 9, Key: uint64(i)}}},
			Calls:  []program.Call{{Result: "y", Target: "torch.exp", Args: []any{program.Ref("x")}}},
		}
		cases = append(cases, Case{Name: fmt.Sprintf("exp_%d", i), Function: "exp", Programs: func() ([]Variant, error) { return []Variant{{Program: p}}, nil }})
	}
	cfg := toyGen(t.TempDir(), cases)
	cfg.Open = func() (backend.Backend, error) { return rough{}, nil }
	cfg.Predict = nil
	cfg.Truth = Truth{Mode: SmallTruth, Rounds: func(*program.Program) bool { return true }}
	_, err := Gen(t.Context(), cfg)
	must(t, err)
	b, err := Open(cfg.Dir)
	must(t, err)
	n := 0
	must(t, b.Run(t.Context(), RunConfig{
		Candidate: "rough", Open: func() (backend.Backend, error) { return rough{}, nil }, OnRecord: func(*Record) {}, Memory: 1 << 20,
		Judge: func(q *Question) *verdict.Verdict {
			n++
			o, err := q.Truth()
			if err != nil || !o.Truth.Values[0].Tensor.SameBits(answersOf(t, q).Truth.Values[0].Tensor) {
				t.Errorf("%s: the truth is another (%v)", q.Entry.Name, err)
			}
			return &verdict.Verdict{Word: verdict.Aligned}
		},
	}))
	if n != len(cases) {
		t.Errorf("%d cases judged", n)
	}
}

// answersOf asks the reference again.
func answersOf(t testing.TB, q *Question) *verdict.Oracle {
	t.Helper()
	outcomes, err := backend.RunBatch(context.Background(), rough{}, verdict.Questions(q.Job, nil))
	must(t, err)
	return verdict.OracleOf(q.Ref, outcomes)
}

// TestTruthModes: which cases are asked about.
func TestTruthModes(t *testing.T) {
	rounds := true
	argue := false
	l := &genLane{generator: &generator{}, judged: rough{}}
	l.Truth = Truth{
		Rounds:   func(*program.Program) bool { return rounds },
		Arguable: func(_ *backend.Job, _, _ *backend.Outcome) bool { return argue },
	}
	wants := func(n int, d tensor.DType) bool {
		x := tensor.New(d, n)
		w := &way{job: &backend.Job{Program: &program.Program{}, Inputs: []*tensor.Tensor{x}}, outcome: &backend.Outcome{Status: backend.OK, Values: []backend.Value{{Tensor: x}}}}
		got, err := l.contested(context.Background(), w, nil)
		must(t, err)
		return got
	}
	for _, tt := range []struct {
		mode          TruthMode
		rounds, argue bool
		n             int
		d             tensor.DType
		want          bool
	}{
		{"", true, true, 4, tensor.F32, false},
		{NoTruth, true, true, 4, tensor.F32, false},
		{Contested, true, false, 4, tensor.F32, false},
		{Contested, true, true, 4, tensor.F32, true},
		{SmallTruth, true, false, 256, tensor.F32, true},
		{SmallTruth, true, false, 257, tensor.F32, false},
		{SmallTruth, true, true, 257, tensor.F32, true},
		{SmallTruth, false, false, 4, tensor.F16, false},
		{AllTruth, true, false, truthElements / 2, tensor.F32, true},
		{AllTruth, true, true, truthElements/2 + 1, tensor.F32, false},
		{AllTruth, true, true, 4, tensor.F64, false},
		{AllTruth, true, true, 4, tensor.I32, false},
	} {
		l.Truth.Mode, rounds, argue = tt.mode, tt.rounds, tt.argue
		if got := wants(tt.n, tt.d); got != tt.want {
			t.Errorf("%+v: %v", tt, got)
		}
	}
}

// TestNoTruth: what was recorded without the truth is judged without.
func TestNoTruth(t *testing.T) {
	dir := small(t, true)
	lines := runToy(t, dir, toy{noise: true}, toy{})
	if count(lines, "aligned") != 7 {
		t.Error(slices.Compact(lines))
	}
}

// FuzzTruth decodes the text of a truth over a few tensors.
func FuzzTruth(f *testing.F) {
	for _, high := range []float64{9, 88} {
		b := recordRough(f, high)
		shard, err := openShard(b.files, &b.Manifest.Shards[0])
		must(f, err)
		defer shard.close()
		truth, err := json.Marshal(shard.text.Cases[0].Variants[0].Truth)
		must(f, err)
		f.Add(truth, []byte{1, 2, 3, 4})
	}
	f.Add([]byte(`{"truth":{"v0":null},"near":[{}]}`), []byte{})
	b := recordRough(f, 9)
	q := asked(f, b)
	f.Fuzz(func(t *testing.T, text, blob []byte) {
		var truth truthJSON
		if json.Unmarshal(text, &truth) != nil {
			return
		}
		stored := blobMap{"0": tensor.Of(tensor.U8, []int{len(blob)}, blob), "1": tensor.New(tensor.BF16, 50)}
		o, err := truth.oracle(q.Job, q.Ref, stored)
		if err == nil && o.Truth == nil {
			t.Fatal("neither an oracle nor an error")
		}
	})
}
