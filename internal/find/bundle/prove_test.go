package bundle_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"plumb/backend"
	"plumb/internal/find/bundle"
	"plumb/internal/judge/verdict"
	"plumb/program"
)

// TestMain's process stands in for a bundle's program: see prove.
const actAs = "PLUMB_TEST_ACT_AS"

func init() {
	act, counter, ok := strings.Cut(os.Getenv(actAs), ": ")
	if !ok {
		return
	}
	f, err := os.OpenFile(counter, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		panic(err)
	}
	fmt.Fprint(f, "x")
	f.Close()
	runs, _ := os.ReadFile(counter)
	fmt.Println("this is run", len(runs))
	code := map[string]int{"misaligned": 1, "aligned": 0, "unable": 2, "second": 0}[act]
	if act == "second" && len(runs) == 2 {
		code = 1
	}
	if act == "then hang" && len(runs) == 1 {
		os.Exit(1)
	}
	if strings.HasSuffix(act, "hang") {
		time.Sleep(time.Minute)
	}
	if act == "panic" {
		panic("boom")
	}
	os.Exit(code)
}

func TestProve(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for act, want := range map[string]struct{ text, reason string }{
		"misaligned": {"reproduced 3/3", ""},
		"aligned":    {"not reproduced", "earlier case"},
		"second":     {"flaky 1/3", "2 of 3"},
		"unable":     {"unproved", "exit status 2"},
		"hang":       {"unproved", "did not end"},
	} {
		b := written(t)
		counter := filepath.Join(t.TempDir(), "runs")
		p, err := b.Prove(t.Context(), bundle.ProveOptions{
			Command: func(_ *bundle.Bundle, dir string) []string { return []string{self, dir} },
			Env:     []string{actAs + "=" + act + ": " + counter},
			Timeout: map[bool]time.Duration{true: 300 * time.Millisecond}[act == "hang"],
		})
		if err != nil || p.String() != want.text || !strings.Contains(p.Reason, want.reason) || (p.Reason == "") != (want.reason == "") {
			t.Errorf("%s: %+v, %v", act, p, err)
		}
		if act == "misaligned" && p.Output != "this is run 3" {
			t.Errorf("the output is %q", p.Output)
		}
	}
}

// TestProveWithin: a run that is cut off because all together take too long leaves
// what those before it have shown.
func TestProveWithin(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for act, want := range map[string]struct{ text, reason string }{
		"then hang": {"reproduced 1/1", ""},
		"hang":      {"unproved", "did not end within"},
	} {
		b, started := written(t), time.Now()
		counter := filepath.Join(t.TempDir(), "runs")
		p, err := b.Prove(t.Context(), bundle.ProveOptions{
			Command: func(_ *bundle.Bundle, dir string) []string { return []string{self, dir} },
			Env:     []string{actAs + "=" + act + ": " + counter},
			Within:  2 * time.Second,
		})
		if err != nil || p.String() != want.text || !strings.Contains(p.Reason, want.reason) || time.Since(started) > time.Minute {
			t.Errorf("%s: %+v, %v after %v", act, p, err, time.Since(started))
		}
	}
}

// TestProveCrash: a process that dies without a word, or of a Go panic, proves a crash,
// and nothing else.
func TestProveCrash(t *testing.T) {
	f := toy(t)
	f.Got = &backend.Outcome{Status: backend.Crashed, Message: "boom"}
	f.Verdict = verdict.Judge(f.Program, f.Expected, f.Got, verdict.Policy{})
	crash, err := bundle.Write(filepath.Join(t.TempDir(), "bundle"), f)
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, how := range []string{"kill -SEGV $$", actAs + "='panic: " + filepath.Join(t.TempDir(), "runs") + "' exec " + self} {
		dies := bundle.ProveOptions{Command: func(*bundle.Bundle, string) []string { return []string{"/bin/sh", "-c", how} }}
		for b, want := range map[*bundle.Bundle]bundle.State{crash: bundle.Reproduced, written(t): bundle.Unproved} {
			if p, err := b.Prove(t.Context(), dies); err != nil || p.State != want {
				t.Errorf("%s: %s: %+v, %v", how, want, p, err)
			}
		}
	}
}

func TestProveFromZip(t *testing.T) {
	b := written(t)
	var packed bytes.Buffer
	if err := bundle.WriteZip(&packed, b); err != nil {
		t.Fatal(err)
	}
	z, err := bundle.ReadZip(bytes.NewReader(packed.Bytes()), int64(packed.Len()))
	if err != nil {
		t.Fatal(err)
	}
	var dirs []string
	p, err := z.Prove(t.Context(), bundle.ProveOptions{Runs: 1, Command: func(_ *bundle.Bundle, dir string) []string {
		dirs = append(dirs, dir)
		return []string{"/bin/sh", "-c", "test ! -f " + filepath.Join(dir, "program.py")}
	}})
	if err != nil || p.State != bundle.Reproduced {
		t.Errorf("%+v, %v", p, err)
	}
	if _, err := os.Stat(dirs[0]); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is left: %v", dirs[0], err)
	}
}

func TestProveMissingProgram(t *testing.T) {
	p, err := written(t).Prove(t.Context(), bundle.ProveOptions{Command: func(*bundle.Bundle, string) []string { return []string{"/no/such/python"} }})
	if err != nil || p.State != bundle.Unproved || !strings.Contains(p.Reason, "/no/such/python") {
		t.Errorf("%+v, %v", p, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := written(t).Prove(ctx, bundle.ProveOptions{}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// TestPrefix: the cases that together leave the state behind are found,
// wherever they lie among others, in few runs.
func TestPrefix(t *testing.T) {
	cases := make([]*program.Program, 100)
	for i := range cases {
		cases[i] = &program.Program{Seed: uint64(i)}
	}
	for _, needed := range [][]uint64{{}, {0}, {99}, {42}, {3, 97}, {10, 11, 12}, {0, 50, 99}} {
		runs := 0
		got, err := bundle.Prefix(cases, func(prefix []*program.Program) (bool, error) {
			runs++
			for _, seed := range needed {
				if !slices.ContainsFunc(prefix, func(p *program.Program) bool { return p.Seed == seed }) {
					return false, nil
				}
			}
			return slices.IsSortedFunc(prefix, func(a, b *program.Program) int { return int(a.Seed) - int(b.Seed) }), nil
		})
		var seeds []uint64
		for _, p := range got {
			seeds = append(seeds, p.Seed)
		}
		if err != nil || !slices.Equal(seeds, needed) || got == nil {
			t.Errorf("%v: %v, %v", needed, seeds, err)
		}
		if runs > 80 {
			t.Errorf("%v: %d runs", needed, runs)
		}
	}
	never := func([]*program.Program) (bool, error) { return false, nil }
	if got, err := bundle.Prefix(cases, never); got != nil || err != nil {
		t.Errorf("what never fails: %v, %v", got, err)
	}
	if got, err := bundle.Prefix(nil, never); got != nil || err != nil {
		t.Errorf("no cases: %v, %v", got, err)
	}
	broken := errors.New("broken")
	if _, err := bundle.Prefix(cases, func(p []*program.Program) (bool, error) {
		return len(p) == 100, map[bool]error{true: broken}[len(p) == 50]
	}); !errors.Is(err, broken) {
		t.Errorf("an error of a run: %v", err)
	}
}

// TestNeeds: the case that the bundle's failure depends on is found by running
// it after others in fresh processes.
func TestNeeds(t *testing.T) {
	var cases []*program.Program
	for seed := range uint64(20) {
		cases = append(cases, &program.Program{Name: "earlier", Seed: seed})
	}
	stub := func(script string) bundle.ProveOptions {
		return bundle.ProveOptions{Command: func(*bundle.Bundle, string) []string { return []string{"/bin/sh", "-c", script, "stub"} }}
	}
	got, err := written(t).Needs(t.Context(), cases, stub(`if grep -q "seed=13" "$2"; then exit 1; fi`))
	if err != nil || len(got) != 1 || got[0].Seed != 13 {
		t.Errorf("%v, %v; want the case of seed 13", got, err)
	}
	if got, err := written(t).Needs(t.Context(), cases, stub("exit 0")); got != nil || err != nil {
		t.Errorf("what never fails: %v, %v", got, err)
	}
	if _, err := written(t).Needs(t.Context(), cases, stub("exit 3")); err == nil {
		t.Error("a run that cannot tell tells nothing")
	}
}

func TestProgramsInOneText(t *testing.T) {
	ps := []*program.Program{{Name: "one", Seed: 1}, toy(t).Program, {Name: "two", Seed: 2}}
	again, err := bundle.SplitPrograms("after.py", bundle.JoinPrograms(ps))
	if err != nil || bundle.JoinPrograms(again) != bundle.JoinPrograms(ps) || len(again) != 3 {
		t.Errorf("%v, %v", again, err)
	}
	for text, want := range map[string]string{
		"x = 1\n":                              "does not begin with",
		program.Header + "\nx = (\n":           "after.py, program 1",
		program.Header + "\n" + program.Header: "",
	} {
		if _, err := bundle.SplitPrograms("after.py", text); want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
