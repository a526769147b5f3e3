package command

import (
	"strings"
	"testing"

	"plumb/internal/judge/verdict"
)

// TestShippedSuitesAreAligned judges the native operators by the shipped
// suites: on PyTorch where it is, and by the recorded cases anywhere.
func TestShippedSuitesAreAligned(t *testing.T) {
	slow(t)
	t.Run("recorded", func(t *testing.T) { aligned(t, 500, "--reference", "recorded") })
	t.Run("torch", func(t *testing.T) {
		needTorch(t)
		aligned(t, 2000, "--reference", "torch", "--seed", "20261121", "-n", "4")
	})
}

func aligned(t *testing.T, atLeast int, flags ...string) {
	w, _ := play(t, nil, nil, flags...)
	for _, r := range w.findings() {
		if r.Verdict.Word == verdict.Unsupported && lacks(r.Test) {
			continue
		}
		t.Errorf("%s case %d: %s\n%s", r.Test, r.Index, r.Verdict.Text(), r.Program)
	}
	for _, e := range w.ends {
		if e.Err != nil || e.Rejected > 2*e.Judged && !refuses(e.Test) {
			t.Errorf("%s: %d draws were rejected, error %v", e.Test, e.Rejected, e.Err)
		}
	}
	if len(w.records) < atLeast {
		t.Errorf("%d cases, want at least %d", len(w.records), atLeast)
	}
}

// lacks reports whether a shipped test is about what one device cannot do.
func lacks(test string) bool {
	for _, name := range []string{"test_cuda", "test_global", "TestGlobal::test_every_placement"} {
		if strings.Contains(test, "habits.py::"+name) {
			return true
		}
	}
	return false
}

// refuses reports whether a test is about what both sides refuse.
func refuses(test string) bool { return strings.HasSuffix(test, "_refused") }

// crashers are known to end the process of some versions of PyTorch.
var crashers = []string{
	"torch.searchsorted(x, x, sorter=random_tensor(ndim=1, dim0=4, dtype=int, low=10**15, high=10**15 + 1))",
	"torch.nn.functional.ctc_loss(random_tensor(ndim=3, dim0=5, dim1=2, dim2=4), random_tensor(ndim=2, dim0=2, dim1=3, dtype=int, low=10**9, high=10**9 + 1), [5, 5], [3, 3])",
}

// TestCrashIsAVerdict: where PyTorch crashes in some cases of a test, the
// others are judged as ever, and so are the tests after it.
func TestCrashIsAVerdict(t *testing.T) {
	slow(t)
	needTorch(t)
	for _, call := range crashers {
		file := save(t, "crash.py", `
@autotest(n=8, auto_backward=False)
def test_sometimes():
    x = random_tensor(ndim=1, dim0=4)
    if random_bool().value():
        return `+call+`
    return torch.relu(x)

@autotest()
def test_after():
    return torch.relu(random_tensor())
`)
		w, log := play(t, nil, []string{file}, "--reference", "torch", "--seed", "1")
		words := map[string]map[verdict.Word]int{}
		for _, r := range w.records {
			name := r.Test[strings.LastIndex(r.Test, ":")+1:]
			if words[name] == nil {
				words[name] = map[verdict.Word]int{}
			}
			words[name][r.Verdict.Word]++
		}
		sometimes := words["test_sometimes"]
		if sometimes[verdict.Crash] == 0 {
			continue
		}
		if sometimes[verdict.Aligned] == 0 || sometimes[verdict.Crash]+sometimes[verdict.Aligned] != 8 || words["test_after"][verdict.Aligned] != 20 {
			t.Errorf("%v\n%s", words, log)
		}
		again, _ := play(t, nil, []string{save(t, "finding.py", copied(t, log))}, "--reference", "torch")
		if len(again.records) != 1 || again.records[0].Verdict.Word != verdict.Crash {
			t.Errorf("the saved program does not crash again: %v", again.records[0].Verdict)
		}
		return
	}
	t.Skip("none of the calls that crash some PyTorch crashes this one")
}
