package command

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"

	"plumb/internal/campaign"
	"plumb/suites"
)

// everyGenerator uses each name of the vocabulary that draws.
var everyGenerator = suites.File{Name: "generators.py", Source: []byte(`
import unittest
from typing import Union, Tuple, List

@autotest(layouts=True, special=True, dtypes=[torch.float32, torch.float16, torch.int16])
def test_tensors():
    k = random(1, 5)
    x = random_tensor(ndim=3, dim0=k, dim1=random(1, 9), low=random(-3.5, 0.25).to(float), high=7)
    y = random_tensor(ndim=2, dim0=k, dtype=random_dtype(["all", "complex"]), layout="non-contiguous", special=["nan", "zeros"])
    return torch.add(x, 2 * random(0.5, 1.5).to(float)), torch.relu(y)

@autotest(order=2, include_complex=True, auto_backward="auto")
def test_scalars():
    a = random(0, 9).to(Union[int, float]) | nothing()
    b = random_or_nothing(1, 4).to(int) | constant(3) | oneof(7, 8, 9, possibility=[0.5, 0.25, 0.25])
    c = random(1, 3).to(Tuple[int, float]).value(), random(1, 3).to(List[int]).value(), random(1, 3).to(_size_2_t).value(), random_bool().value()
    x = choice_tensor(9, size=(3, 2), dtype=float, requires_grad=True)
    y = random_pytorch_tensor(ndim=2, dim0=3, dim1=2)
    return torch.add(x, y), torch.sum(x, dim=random(0, 2).to(int))

@autotest(n=2)
def _test_called(test_case, n, placement):
    device = random_device()
    return torch.relu(random_tensor(ndim=n).to(device))

class TestCalls(unittest.TestCase):
    def test_calls(test_case):
        for n in range(3):
            for placement in all_placement():
                _test_called(test_case, n, placement)
`)}

// caseSeeds is how many seeds of each test are drawn.
const caseSeeds = 1000

// drawSeeds draws the cases of the files' tests, from the last seed to the
// first if backwards, in goroutines that share the tests. It returns a hash of
// each program and its inputs' bits, by test and seed.
func drawSeeds(t *testing.T, lanes int, backwards bool, files ...suites.File) map[string]string {
	t.Helper()
	d := drawing{device: "cpu", sigs: &signatures{}}
	type job struct {
		test  campaign.Test
		index int
	}
	var jobs []job
	for _, f := range files {
		l, err := d.file(f.Name, f.Source)
		if err != nil {
			t.Fatal(err)
		}
		for _, test := range l.tests {
			for i := range caseSeeds {
				jobs = append(jobs, job{test, i})
			}
		}
	}
	if backwards {
		slices.Reverse(jobs)
	}
	hashes := map[string]string{}
	var mu sync.Mutex
	var wg sync.WaitGroup
	for lane := range lanes {
		wg.Go(func() {
			for k := lane; k < len(jobs); k += lanes {
				name := fmt.Sprint(jobs[k].test.Name, " ", jobs[k].index)
				h, err := hashOf(jobs[k].test, jobs[k].index)
				if err != nil {
					t.Errorf("%s: %v", name, err)
					return
				}
				mu.Lock()
				hashes[name] = h
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return hashes
}

func hashOf(test campaign.Test, index int) (string, error) {
	p, err := test.Draw(index, nil)
	if err != nil {
		return "", err
	}
	h := sha256.New()
	fmt.Fprint(h, p)
	for i := range p.Inputs {
		x := p.Inputs[i].Materialize()
		fmt.Fprintln(h, x.DType(), x.Shape(), x.Strides())
		h.Write(x.Bytes())
	}
	return fmt.Sprintf("%x", h.Sum(nil)), nil
}

// TestThousandSeeds: a thousand seeds of each test give the same programs and
// the same bits in any order, from several goroutines, from files loaded in
// another order, and on every machine: the last is the pinned hash.
func TestThousandSeeds(t *testing.T) {
	bench := suites.File{Name: "cases.py", Source: benchCases}
	want := drawSeeds(t, 1, false, bench, everyGenerator)
	if n := (12 + 3 + 1 + 1) * caseSeeds; len(want) != n {
		t.Fatalf("%d cases, want %d", len(want), n)
	}
	if got := drawSeeds(t, 8, true, everyGenerator, bench); !maps.Equal(got, want) {
		t.Error("eight goroutines, the files in another order and the seeds backwards draw other cases")
	}
	distinct := map[string]bool{}
	all := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(want)) {
		distinct[want[name]] = true
		fmt.Fprintln(all, name, want[name])
	}
	if len(distinct) != len(want) {
		t.Errorf("%d different cases of %d", len(distinct), len(want))
	}
	const pinned = "9166f6dfb6a70147"
	if got := fmt.Sprintf("%x", all.Sum(nil)[:8]); got != pinned {
		t.Errorf("the cases hash to %s, want %s", got, pinned)
	}
}
