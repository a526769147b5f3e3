package kernel

import (
	"slices"
	"testing"

	"plumb/internal/draw/choice"
	"plumb/tensor"
)

// stream is the random stream of a key, as an operator's call has it.
func stream(key uint64) Stream {
	rng := choice.NewPhilox(key)
	return func(dst []uint64, at int) {
		for i := range dst {
			dst[i], _ = rng.Pair(uint64(at + i))
		}
	}
}

func TestFillDependsOnTheStreamAlone(t *testing.T) {
	defer SetThreads(0)
	SetThreads(1)
	want := tensor.New(tensor.F32, 70, 900)
	Fill(want, stream(1), 2, Normal)
	for threads := 2; threads < 5; threads++ {
		SetThreads(threads)
		got := tensor.NewStrided(tensor.F32, want.Shape(), []int{1, 70})
		Fill(got, stream(1), 2, Normal)
		if !got.Contiguous().SameBits(want) {
			t.Errorf("other strides and %d threads give other numbers", threads)
		}
	}
}

func TestShuffleIsAPermutation(t *testing.T) {
	for _, n := range []int{0, 1, 2, 1000, 3000} {
		order := make([]int64, n)
		Shuffle(order, stream(uint64(n)))
		slices.Sort(order)
		for i, v := range order {
			if v != int64(i) {
				t.Fatalf("%d numbers: %d is missing", n, i)
			}
		}
	}
}

func TestMultinomialWithoutReplacement(t *testing.T) {
	dst := make([]int64, 4)
	Multinomial(dst, []float64{0, 1, 0, 2}, false, []float64{0.9, 0.9, 0.5, 0.5})
	if dst[0] != 3 || dst[1] != 1 {
		t.Errorf("the positive weights are drawn as %v, want 3 and 1 first", dst)
	}
	slices.Sort(dst)
	if !slices.Equal(dst, []int64{0, 1, 2, 3}) {
		t.Errorf("drew %v, want each index once", dst)
	}
}

func TestPoissonOfLargeRates(t *testing.T) {
	rate := slices.Repeat([]float64{1234}, 400)
	out := make([]float64, len(rate))
	words := make([]uint64, len(rate))
	stream(5)(words, 0)
	Poisson(rate)(out, words, 0)
	sum := 0.0
	for _, v := range out {
		sum += v
	}
	if mean := sum / 400; mean < 1225 || mean > 1243 {
		t.Errorf("the mean of 400 counts is %v, want 1234 ± 1.8", mean)
	}
}
