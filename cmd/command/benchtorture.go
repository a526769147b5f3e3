package command

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"plumb/backend/worker"
	"plumb/internal/campaign/store"
	"plumb/internal/judge/verdict"
)

// torture judges a subject that does everything wrong, each thing in a test of its
// own, on several workers.
type torture struct {
	siege
	cases int // that each test has
	every int // about one of so many cases is one in which the subject misbehaves
	span  time.Duration
}

// deeds are the functions of bench/unruly.py in their order, with what a case is in
// which one is done: who forks or writes without end may reach the limit of time first.
var deeds = []struct {
	name  string
	words []verdict.Word
}{
	{"segfault", []verdict.Word{verdict.Crash}},
	{"abort", []verdict.Word{verdict.Crash}},
	{"leave", []verdict.Word{verdict.Crash}},
	{"hang", []verdict.Word{verdict.Timeout}},
	{"spin", []verdict.Word{verdict.Timeout}},
	{"swell", []verdict.Word{verdict.OOM}},
	{"bomb", []verdict.Word{verdict.Crash, verdict.Timeout}},
	{"crowd", []verdict.Word{verdict.Timeout}},
	{"fill", []verdict.Word{verdict.Crash, verdict.Timeout}},
	{"pour", []verdict.Word{verdict.Crash, verdict.Timeout}},
	{"orphan", []verdict.Word{verdict.Crash}},
	{"scribble", []verdict.Word{verdict.Aligned, verdict.Misaligned}},
	{"flood", []verdict.Word{verdict.Aligned}},
	{"garbage", []verdict.Word{verdict.Crash}},
	{"truncate", []verdict.Word{verdict.Aligned}},
	{"lie", []verdict.Word{verdict.Crash}},
	{"close", []verdict.Word{verdict.Crash}},
	{"late", []verdict.Word{verdict.Timeout}},
	{"waver", []verdict.Word{verdict.Misaligned}},
}

//go:embed bench/unruly.py
var unruly string

// write makes the subject and its tests, and returns their paths.
func (k *torture) write(ctx context.Context) (subject, tests string, err error) {
	python, _, err := worker.Find("numpy", "")
	if err != nil {
		return "", "", err
	}
	dir := filepath.Join(k.dir, "unruly")
	if err := k.ended(ctx, "none.db", "subject", "new", "unruly", dir, "--module", "numpy", "--own", "--python", python); err != nil {
		return "", "", err
	}
	adapter, table := filepath.Join(dir, "plumb_unruly.py"), filepath.Join(dir, "unruly.json")
	text, err := os.ReadFile(adapter)
	if err != nil {
		return "", "", err
	}
	calls, err := os.ReadFile(table)
	if err != nil {
		return "", "", err
	}
	const mul = `"multiply(*self.alike(input, other))"`
	tests = filepath.Join(k.dir, "torture.py")
	err = errors.Join(
		os.WriteFile(adapter, append(text, "\n\n"+unruly...), 0o600),
		os.WriteFile(table, []byte(strings.Replace(string(calls), mul, `"self.deed(multiply(*self.alike(input, other)), other)"`, 1)), 0o600),
		os.WriteFile(tests, []byte(k.tests()), 0o600))
	return filepath.Join(dir, "unruly"), tests, err
}

func (k *torture) tests() string {
	var b strings.Builder
	for n, d := range deeds {
		fmt.Fprintf(&b, `@autotest()
def test_%s():
    x = random_tensor(ndim=2, dim0=random(1, 9), dim1=random(1, 9))
    return x * (%d.0 if random(0, %d).to(int).value() == 0 else 2.0)

`, d.name, -1000-n, k.every)
	}
	return b.String()
}

// place is a case.
type place struct {
	test   string
	number int
}

// failed are the verdicts of the failing cases of the last campaign of a store.
func (k *torture) failed(name string) (map[place]verdict.Word, error) {
	db, err := store.Read(filepath.Join(k.dir, name))
	if err != nil {
		return nil, err
	}
	defer db.Close()
	c, err := db.Campaign("last")
	if err != nil {
		return nil, err
	}
	words := map[place]verdict.Word{}
	return words, db.Failures(c.ID, 1<<30, func(c *store.Case) error {
		_, test, _ := strings.Cut(c.Test, "::test_")
		words[place{test, c.Number}] = verdict.Word(c.Word)
		return nil
	})
}

// run has one worker tell which cases are those of misdeeds, then has all of them do
// them, and holds each case to what it has to be.
func (k *torture) run(ctx context.Context) error {
	subject, tests, err := k.write(ctx)
	if err != nil {
		return err
	}
	k.args = []string{tests, "--reference", "native", "--candidate", subject, "-n", fmt.Sprint(k.cases), "--seed", fmt.Sprint(k.seed), "--set", "timeout=" + k.span.String(), "--set", "growth=256MB"}
	k.subjects = "native," + subject
	k.env = []string{"PLUMB_UNRULY=tell"}
	if err := k.ended(ctx, "calm.db", append([]string{"campaign", "run", "-q"}, k.args...)...); err != nil {
		return err
	}
	told, err := k.failed("calm.db")
	if err != nil {
		return err
	}
	want, err := k.counts(ctx, "calm.db")
	if err != nil {
		return err
	}
	k.env = nil
	if err := k.serve(ctx); err != nil {
		return err
	}
	defer k.end()
	if err := k.finish(ctx); err != nil {
		return err
	}
	did, err := k.failed("killed.db")
	if err != nil {
		return err
	}
	got, err := k.counts(ctx, "killed.db")
	if err != nil {
		return err
	}
	fmt.Fprintf(k.log, "%d cases, misdeeds in %d of them, %d workers: %v\n", got.Cases, len(told), k.workers, got.Verdicts)
	if n := len(k.held); n > 8 {
		fmt.Fprintf(k.log, "memory of the coordinator: at most %d MB in the first half, %d MB in the second\n", slices.Max(k.held[:n/2])>>20, slices.Max(k.held[n/2:])>>20)
	}
	if got.Cases != want.Cases {
		return fmt.Errorf("%d cases; where the subject behaves there are %d", got.Cases, want.Cases)
	}
	return misjudged(told, did)
}

// misjudged says where the verdicts are not those that misdeeds have to have.
func misjudged(told, did map[place]verdict.Word) error {
	var wrong []error
	for _, d := range deeds {
		for at := range told {
			if got := cmp.Or(did[at], verdict.Aligned); at.test == d.name && !slices.Contains(d.words, got) {
				wrong = append(wrong, fmt.Errorf("case %d of %s is %q, want %q", at.number, at.test, got, d.words))
			}
		}
	}
	for at, got := range did {
		if _, ok := told[at]; !ok {
			wrong = append(wrong, fmt.Errorf("case %d of %s is %q, and nothing is wrong with it", at.number, at.test, got))
		}
	}
	return errors.Join(wrong...)
}
