package command

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"plumb/backend"
	"plumb/internal/campaign/report"
	"plumb/internal/judge/verdict"
	"plumb/internal/mutants"
	"plumb/internal/onekernel"
	"plumb/op"
	"plumb/program"
)

// judges are the commands that judge: each writes a page and reports, and keeps its run.
var judges = []string{"run", "ops run", "ops check", "ops gradcheck", "graph run", "conform run", "matrix", "kernel", "selftest"}

// TestEveryJudgeWritesFiles: --html, --report and --store are on every command that judges.
func TestEveryJudgeWritesFiles(t *testing.T) {
	seen := map[string]bool{}
	everyCommand(newRoot(), func(cmd *cobra.Command) {
		seen[strings.TrimPrefix(cmd.CommandPath(), "plumb ")] = cmd.Flags().Lookup("html") != nil && cmd.Flags().Lookup("report") != nil && cmd.Flags().Lookup("store") != nil
	})
	for _, name := range judges {
		if !seen[name] {
			t.Errorf("plumb %s lacks --html, --report or --store", name)
		}
	}
}

// filedTo is a filed that writes a page and Markdown.
func filedTo(t *testing.T, name string) (f *filed, to report.Sinks, read func() (page, markdown string)) {
	dir := t.TempDir()
	f = &filed{html: filepath.Join(dir, "p.html")}
	if err := f.files.Set("markdown=" + filepath.Join(dir, "r.md")); err != nil {
		t.Fatal(err)
	}
	return f, f.begin(name, time.Now(), nil), func() (string, string) {
		t.Helper()
		if err := f.end(nil, os.Stderr); err != nil {
			t.Fatal(err)
		}
		return readFile(t, f.html), readFile(t, filepath.Join(dir, "r.md"))
	}
}

// recordOf is an aligned record of a test.
func recordOf(test string) *verdict.Record {
	return &verdict.Record{Test: test, Candidate: "native", Program: &program.Program{Name: test}, Verdict: &verdict.Verdict{Word: verdict.Aligned}, Reference: &backend.Outcome{}, Outcome: &backend.Outcome{}}
}

func has(t *testing.T, what, text string, wants ...string) {
	t.Helper()
	for _, want := range wants {
		if !strings.Contains(text, want) {
			t.Errorf("%s has no %q", what, want)
		}
	}
}

// TestSelftestPage: what escapes comes first, with the counts by operator and kind.
func TestSelftestPage(t *testing.T) {
	s := newSelftestOf()
	f, to, read := filedTo(t, "plumb selftest")
	s.filed, s.to, s.told = *f, to, report.NewSummary()
	s.mutants = []*mutantRun{
		{Mutant: mutants.Mutant{Name: "sum forgets <b>the last</b>", In: "sum", Kind: mutants.Attribute, Op: func(*op.Def) {}}, runs: 7},
		{Mutant: mutants.Mutant{Name: "sum runs", In: "sum", Kind: mutants.Gradient, Op: func(*op.Def) {}}, found: recordOf("suites/reduce.py::test_sum")},
	}
	s.tellCase(recordOf("suites/reduce.py::test_sum"))
	s.tell(s.summarise(time.Second))
	page, markdown := read()
	has(t, "the page", page, "1 of 2 faults found, 0 false findings", "escapes: sum forgets &lt;b&gt;", "By operator", "By kind", "<td>2</td><td>1</td><td>1</td>", "suites/reduce.py::test_sum case 0")
	has(t, "the Markdown", markdown, "### Plumb: 1 failed case in 3 cases", "escapes&#58; sum forgets")
}

// kernelFiles holds what plumb kernel writes to what it says.
func kernelFiles(t *testing.T, page, markdown string, r *onekernel.Report) {
	t.Helper()
	if r.Verdict == onekernel.Right {
		has(t, "the page", page, `<header class="good">`, "<strong>right</strong>", "Tried")
		has(t, "the Markdown", markdown, "### Plumb: aligned")
		return
	}
	has(t, "the page", page, `<header class="bad">`, "<strong>"+string(r.Verdict)+"</strong>", "Tried", r.Reasons[0].Kind)
	has(t, "the Markdown", markdown, "### Plumb: "+count(min(len(r.Reasons), 8), "finding"))
	if r.Smallest != nil && r.Smallest.Want != "" {
		has(t, "the page", page, "Diverging elements", "error ÷ limit", "Copy command")
	}
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestAnnotations: where a code host runs the command, it is told without a flag.
func TestAnnotations(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("GITHUB_ACTIONS", "true")
	t.Setenv("GITLAB_CI", "true")
	t.Setenv("CI_PROJECT_DIR", dir)
	var f filed
	to := f.begin("plumb run", time.Now(), func(string) (string, int) { return "x.py", 7 })
	r := recordOf("x.py::test_x")
	r.Verdict = &verdict.Verdict{Word: verdict.Misaligned, Reason: "one\ntwo"}
	to.Record(r)
	var log strings.Builder
	if err := f.end(nil, &log); err != nil {
		t.Fatal(err)
	}
	if got, want := log.String(), "::error file=x.py,line=7,title=plumb%3A misaligned::native, x.py::test_x: one%0Atwo\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	has(t, "GitLab's report", readFile(t, filepath.Join(dir, "gl-code-quality-report.json")), `"begin": 7`, `"path": "x.py"`)
}
