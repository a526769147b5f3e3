package report

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"plumb/internal/find/finding"
	"plumb/internal/find/shrink"
	"plumb/internal/judge/compare"
	"plumb/internal/judge/verdict"
	"plumb/program"
)

// outlined is an outline of a case that passes, failures and findings under a name.
func outlined(name string, findings int) *Outline {
	o := NewOutline("plumb run", "dev", func(string) (string, int) { return "a b.py", 12 })
	rec := func(word verdict.Word, i int) *verdict.Record {
		return &verdict.Record{Test: name, Index: i, Candidate: name, Program: &program.Program{Name: name, Inputs: []program.Input{{Name: "x"}}}, Verdict: &verdict.Verdict{Word: word, Reason: name + "\n" + name, Worst: compare.Number(math.Inf(1))}}
	}
	o.Record(rec(verdict.Aligned, 0))
	for i := range findings {
		o.Record(rec(verdict.Misaligned, i+1))
		r := rec(verdict.Misaligned, i+1)
		o.AddFindings([]*finding.Finding{{
			ID: r.Program.ID(), Common: name, Proof: name, Bundle: name, Result: &shrink.Result{Record: r, Signature: shrink.Signature{Word: verdict.Misaligned, Operator: name}},
			Groups: []*finding.Group{{Test: name, Candidate: name, First: r, Count: 3}},
		}})
	}
	o.End(&verdict.End{Test: name, Err: errors.New(name)})
	o.Summarise(&Summary{Seed: 7, Reference: name, Candidates: []string{name}})
	return o
}

func written(t testing.TB, format string, o *Outline) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := Formats[format](o, &b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

const hostileName = "</code><script>x</script>`|@team [a](javascript:x) ![i](http://e/x) \u202e\x1b[31m::error::x\n# head\n```\n"

// TestMarkdown: findings come first, no comment is longer than a code host takes, and
// no name gets out of its place.
func TestMarkdown(t *testing.T) {
	text := string(written(t, "markdown", outlined("some name", 2)))
	if !strings.HasPrefix(text, "### Plumb: 2 findings, 2 failed cases in 3 cases\n") || strings.Count(text, "#### misaligned of some name") != 2 {
		t.Errorf("%s", text)
	}
	long := written(t, "markdown", outlined(strings.Repeat("<|`&", 200), 300))
	if len(long) > maxMarkdown || !strings.HasSuffix(string(long), "… and more, which the run's other reports have.\n") {
		t.Errorf("%d bytes, ending in %q", len(long), long[len(long)-80:])
	}
	markdownHolds(t, string(written(t, "markdown", outlined(hostileName, 1))))
}

// markdownHolds demands that nothing outside of code is markup of a name's.
func markdownHolds(t *testing.T, text string) {
	t.Helper()
	outside, fence := []string{}, ""
	for line := range strings.SplitSeq(text, "\n") {
		switch ticks := line[:len(line)-len(strings.TrimLeft(line, "`"))]; {
		case fence == "" && len(ticks) >= 3:
			fence = ticks
		case fence != "" && line == fence:
			fence = ""
		case fence == "":
			outside = append(outside, line)
		}
	}
	rest := strings.NewReplacer("<code>", "", "</code>", "").Replace(strings.Join(outside, "\n"))
	if fence != "" || strings.ContainsAny(rest, "<>`|@![]\x1b\u202e") || strings.Count(rest, "\n# ") > 0 {
		t.Errorf("fence %q; outside of code:\n%s", fence, rest)
	}
}

// TestSchema holds the published schema to the fields that are written, and what is
// written to the schema by check-jsonschema.
func TestSchema(t *testing.T) {
	path := filepath.Join("..", "..", "..", "docs", "schema", "report.json")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	type node struct {
		Properties map[string]json.RawMessage
		Required   []string
		Items      *json.RawMessage
	}
	var check func(raw json.RawMessage, of reflect.Type)
	check = func(raw json.RawMessage, of reflect.Type) {
		var n node
		if err := json.Unmarshal(raw, &n); err != nil {
			t.Fatal(err)
		}
		fields := 0
		for i := range of.NumField() {
			name, rest, _ := strings.Cut(of.Field(i).Tag.Get("json"), ",")
			if name == "-" || name == "" {
				continue
			}
			fields++
			if n.Properties[name] == nil || slices.Contains(n.Required, name) == strings.Contains(rest, "omitempty") {
				t.Errorf("%s of %s: the schema lacks it, or differs in whether it may lack", name, of)
			}
			if ft := of.Field(i).Type; ft.Kind() == reflect.Slice && ft.Elem().Kind() == reflect.Pointer {
				var list node
				if err := json.Unmarshal(n.Properties[name], &list); err != nil || list.Items == nil {
					t.Fatalf("%s: %v", name, err)
				}
				check(*list.Items, ft.Elem().Elem())
			}
		}
		if fields != len(n.Properties) {
			t.Errorf("%s has %d fields, the schema %d", of, fields, len(n.Properties))
		}
	}
	check(text, reflect.TypeFor[Outline]())
	out := filepath.Join(t.TempDir(), "r.json")
	if err := os.WriteFile(out, written(t, "json", outlined(hostileName, 2)), 0o644); err != nil {
		t.Fatal(err)
	}
	readers(t, "check_jsonschema", "-m", "check_jsonschema", "--schemafile", path, out)
}

// readers runs a Python module that reads what Plumb writes, with PLUMB_READERS or
// python3; the test ends without it.
func readers(t *testing.T, module string, args ...string) {
	t.Helper()
	python := os.Getenv("PLUMB_READERS")
	if python == "" {
		python = "python3"
	}
	if exec.Command(python, "-c", "import "+module).Run() != nil {
		t.Skipf("needs Python's %s: PLUMB_READERS names a Python that has it", module)
	}
	if out, err := exec.Command(python, args...).CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

// TestSARIF: results are at their tests' lines; sarif-tools reads them.
func TestSARIF(t *testing.T) {
	text := written(t, "sarif", outlined(hostileName, 2))
	for _, want := range []string{`"uri": "a%20b.py"`, `"startLine": 12`, `"ruleId": "misaligned"`} {
		if strings.Count(string(text), want) != 2 {
			t.Errorf("lacks %s:\n%s", want, text)
		}
	}
	out := filepath.Join(t.TempDir(), "r.sarif")
	if err := os.WriteFile(out, text, 0o644); err != nil {
		t.Fatal(err)
	}
	readers(t, "sarif", "-c", `import sys
from sarif import loader
f = loader.load_sarif_file(sys.argv[1])
records = f.get_records()
assert len(records) == 2 and records[0]["Location"] == "a%20b.py" and records[0]["Line"] == 12 and records[0]["Severity"] == "error", records`, out)
}

// TestNodeReaders: sarif-multitool and allure take what is written, from the folder in
// PLUMB_TEST_NODE_MODULES.
func TestNodeReaders(t *testing.T) {
	modules := os.Getenv("PLUMB_TEST_NODE_MODULES")
	if modules == "" {
		t.Skip("no PLUMB_TEST_NODE_MODULES with @microsoft/sarif-multitool and allure")
	}
	dir := t.TempDir()
	run := func(program string, args ...string) string {
		t.Helper()
		cmd := exec.Command(filepath.Join(modules, ".bin", program), args...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v: %s", program, err, out)
		}
		return string(out)
	}
	o := outlined(hostileName, 2)
	sarif, results := filepath.Join(dir, "r.sarif"), filepath.Join(dir, "results")
	if err := os.WriteFile(sarif, written(t, "sarif", o), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := o.Allure(results); err != nil {
		t.Fatal(err)
	}
	if out := run("sarif-multitool", "validate", sarif); strings.Contains(out, "error ") {
		t.Errorf("sarif-multitool: %s", out)
	}
	run("allure", "generate", results, "-o", filepath.Join(dir, "report"))
	if text, err := os.ReadFile(filepath.Join(dir, "report", "summary.json")); err != nil || !strings.Contains(string(text), `"failed":1`) {
		t.Errorf("allure: %v %s", err, text)
	}
}

// TestOtherFormats: the badge is XML, GitLab's report is a list, annotations are
// one command a line, whatever a name holds.
func TestOtherFormats(t *testing.T) {
	for findings, want := range map[int]string{0: "1 finding", 2: "2 findings"} { // a mistake in a test is one
		badge := written(t, "badge", outlined(hostileName, findings))
		if err := xml.Unmarshal(badge, new(struct{ XMLName xml.Name })); err != nil || !strings.Contains(string(badge), ">"+want+"<") {
			t.Errorf("%v: %s", err, badge)
		}
	}
	if badge := string(written(t, "badge", NewOutline("", "", nil))); !strings.Contains(badge, ">nothing judged<") {
		t.Error(badge)
	}
	var issues []map[string]any
	if err := json.Unmarshal(written(t, "gitlab", outlined(hostileName, 2)), &issues); err != nil || len(issues) != 2 || issues[0]["fingerprint"] == "" {
		t.Errorf("%v: %v", err, issues)
	}
	var b bytes.Buffer
	if err := outlined(hostileName, 30).Annotations(&b); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
	for _, line := range lines {
		if !strings.HasPrefix(line, "::error file=a b.py,line=12,title=plumb%3A misaligned") {
			t.Errorf("%q", line)
		}
	}
	if len(lines) != mostAnnotations {
		t.Errorf("%d lines", len(lines))
	}
}

// TestAllure: a result for each test and candidate, with the programs of findings, and
// the same history in another run.
func TestAllure(t *testing.T) {
	histories := map[string]int{}
	for range 2 {
		dir := filepath.Join(t.TempDir(), "results")
		o := outlined(hostileName, 3)
		if err := o.Allure(dir); err != nil {
			t.Fatal(err)
		}
		results, err := filepath.Glob(filepath.Join(dir, "*-result.json"))
		if err != nil || len(results) != len(o.Tests) {
			t.Fatalf("%d results of %d tests: %v", len(results), len(o.Tests), err)
		}
		for _, path := range results {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			var r allureResult
			if err := json.Unmarshal(text, &r); err != nil {
				t.Fatal(err)
			}
			histories[r.HistoryID]++
			if r.Status != "failed" || r.Details.Message == "" || len(r.Files) != 3 {
				t.Errorf("%s", text)
			}
			for _, f := range r.Files {
				if program, err := os.ReadFile(filepath.Join(dir, f.Source)); err != nil || len(program) == 0 {
					t.Errorf("%q: %v", f.Source, err)
				}
			}
		}
	}
	for id, n := range histories {
		if n != 2 {
			t.Errorf("history %s has %d runs", id, n)
		}
	}
}

// unseen are characters that nothing which people read may hold as they are.
const unseen = "\x00\x07\x1b\r\u202e\u2067"

// FuzzFormats: whatever a name holds, each format stays what its readers read, and
// nothing of the name is obeyed.
func FuzzFormats(f *testing.F) {
	f.Add(hostileName)
	f.Add("::error file=x::y\r\n::set-output name=a::b")
	f.Add("\xff\u202e|a|\n|-|\n```\n<!-- ]]> \u2067")
	f.Fuzz(func(t *testing.T, name string) {
		o := outlined(name, 2)
		for _, format := range []string{"json", "sarif", "gitlab"} {
			if text := written(t, format, o); !json.Valid(text) || !utf8.Valid(text) || format != "json" && bytes.ContainsAny(text, unseen) {
				t.Errorf("%s: %s", format, text)
			}
		}
		if badge := written(t, "badge", o); xml.Unmarshal(badge, new(struct{ XMLName xml.Name })) != nil {
			t.Errorf("%s", badge)
		}
		text := string(written(t, "markdown", o))
		if len(text) > maxMarkdown || !utf8.ValidString(text) || strings.ContainsAny(text, unseen) {
			t.Errorf("%q", text)
		}
		markdownHolds(t, text)
		var b bytes.Buffer
		if err := o.Annotations(&b); err != nil {
			t.Fatal(err)
		}
		for line := range strings.SplitSeq(strings.TrimSuffix(b.String(), "\n"), "\n") {
			if !strings.HasPrefix(line, "::error file=a b.py,line=12,title=plumb%3A ") || strings.Count(line, "::") < 2 || strings.ContainsAny(line, unseen) {
				t.Errorf("%q", line)
			}
		}
		dir := t.TempDir()
		if err := o.Allure(dir); err != nil {
			t.Fatal(err)
		}
		results, _ := filepath.Glob(filepath.Join(dir, "*-result.json"))
		for _, path := range results {
			if text, err := os.ReadFile(path); err != nil || !json.Valid(text) || bytes.ContainsAny(text, unseen) {
				t.Errorf("%v: %s", err, text)
			}
		}
	})
}
