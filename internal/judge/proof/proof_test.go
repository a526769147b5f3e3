package proof_test

import (
	"context"
	"os/exec"
	"strings"
	"testing"
	"time"

	"plumb/internal/judge/proof"
)

// python returns a Python, and skips where there is none.
func python(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("no python3: ", err)
	}
	return path
}

// TestRun: what a proof does costs itself alone.
func TestRun(t *testing.T) {
	cases := []struct {
		proof   string
		word    proof.Word
		message string
	}{
		{"same([1, nan], [1, nan])", proof.Held, ""},
		{"\nx = one + 1\nx == 1\n", proof.Gone, ""},
		{"import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)", proof.Changed, "it crashes: SIGSEGV"},
		{"while True: pass\nTrue", proof.Changed, "it takes more than 1 s"},
		{"import os\nos._exit(0)", proof.Changed, "it ends without an answer"},
		{"print('x' * 10**7)\nraise ValueError('no ' * 1000)\nTrue", proof.Changed, "ValueError: no no"},
		{"1 +", proof.Changed, "SyntaxError"},
		{"raise SystemExit(3)\nTrue", proof.Changed, "SystemExit: 3"},
		{"1", proof.Changed, "the last line gives 1, not True or False"},
		{"x = 1", proof.Changed, ""},
		{"one = 5\none == 5", proof.Held, ""},
		{"one == 1", proof.Held, ""},
		{"raises(lambda: int('x'), 'ValueError', 'invalid literal')", proof.Held, ""},
		{"raises(lambda: int('1'), 'ValueError', 'invalid literal')", proof.Gone, ""},
		{"raises(lambda: int('x'), 'TypeError')", proof.Changed, "ValueError"},
		{"raises(lambda: int('x'), 'ValueError', 'something else')", proof.Changed, "ValueError"},
		{"accepts(lambda: int('x'))", proof.Gone, ""},
		{"import os\ndies(lambda: os.kill(os.getpid(), 8))", proof.Held, ""},
		{"dies(lambda: int('x'))", proof.Gone, ""},
		{"near([1., 2.], [1.00001, 2.])", proof.Held, ""},
		{"near([1., 2.], [1.01, 2.])", proof.Gone, ""},
		{"near([1.], [1., 1.]) or near(1., [1.]) or same([nan], [1])", proof.Gone, ""},
		{"off([1 + 2**-50], [1]) == 8", proof.Held, ""},
	}
	proofs := make([]string, len(cases))
	for i, c := range cases {
		proofs[i] = c.proof
	}
	next := 0
	fw := proof.Framework{Python: python(t), Module: "json", Setup: "one = 1", Seconds: 1}
	version, err := fw.Run(t.Context(), proofs, func(i int, r proof.Result) {
		if i != next {
			t.Errorf("result %d comes at %d", i, next)
		}
		next++
		if c := cases[i]; r.Word != c.word || !strings.HasPrefix(r.Message, c.message) || len(r.Message) > 400 {
			t.Errorf("%q: %s %q, want %s %q", c.proof, r.Word, r.Message, c.word, c.message)
		}
	})
	if err != nil || version == "" || next != len(cases) {
		t.Errorf("version %q, %d of %d results: %v", version, next, len(cases), err)
	}
}

// TestRunFails: what is no framework is said, and an end that is asked for comes
// soon.
func TestRunFails(t *testing.T) {
	path := python(t)
	for _, fw := range []proof.Framework{
		{Python: path, Module: "nosuchmodule", Seconds: 1},
		{Python: path, Module: "json", Setup: "1/0", Seconds: 1},
	} {
		if _, err := fw.Run(t.Context(), []string{"True"}, func(int, proof.Result) {}); err == nil || !strings.Contains(err.Error(), "Error") {
			t.Errorf("%v: %v", fw, err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	begun := time.Now()
	fw := proof.Framework{Python: path, Module: "json", Seconds: 60}
	if _, err := fw.Run(ctx, []string{"while True: pass\nTrue"}, func(int, proof.Result) {}); err == nil || time.Since(begun) > 30*time.Second {
		t.Errorf("%v after %s", err, time.Since(begun))
	}
}
