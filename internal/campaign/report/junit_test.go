package report

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"plumb/backend"
	"plumb/internal/judge/verdict"
)

// junit writes a file and returns it.
func junit(t *testing.T, fill func(j *JUnit)) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "j.xml")
	t.Setenv("TMPDIR", t.TempDir())
	j, err := NewJUnit(path, "plumb <run>")
	if err != nil {
		t.Fatal(err)
	}
	fill(j)
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(os.Getenv("TMPDIR")); err != nil || len(left) > 0 {
		t.Errorf("%v are left, %v", left, err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestJUnit writes a run of drawn tests, and the cases of a conformance run.
func TestJUnit(t *testing.T) {
	text := junit(t, func(j *JUnit) {
		j.Started = time.Date(2026, 11, 22, 1, 2, 3, 0, time.UTC)
		j.Properties = [][2]string{{"candidate", "./my <worker>"}, {"seed", "7"}}
		play(j)
		r := record("act.py::test_relu", 2, verdict.Verdict{Word: verdict.Misaligned, Reason: "x differs & <b>\nmore"})
		r.Outcome = &backend.Outcome{Elapsed: 1500 * time.Microsecond}
		j.Record(r)
		for i, word := range append([]verdict.Word{""}, verdict.Words...) {
			j.Add(JUnitCase{Suite: "conv2d", Name: fmt.Sprintf("conv_2d::conv2d_%d.pth", i), Word: word, Reason: "because \x00 \x1b[31m", Elapsed: time.Millisecond})
		}
	})
	golden(t, "junit.xml", text)
}

// suites is what a CI system reads of a file.
type suites struct {
	Tests    int `xml:"tests,attr"`
	Failures int `xml:"failures,attr"`
	Errors   int `xml:"errors,attr"`
	Skipped  int `xml:"skipped,attr"`
	Suites   []struct {
		Name  string `xml:"name,attr"`
		Tests int    `xml:"tests,attr"`
		Cases []struct {
			Class   string      `xml:"classname,attr"`
			Name    string      `xml:"name,attr"`
			Failure *[]struct{} `xml:"failure"`
			Error   *[]struct{} `xml:"error"`
			Skipped *[]struct{} `xml:"skipped"`
			Output  string      `xml:"system-out"`
		} `xml:"testcase"`
	} `xml:"testsuite"`
}

// TestJUnitCounts: cases of suites that take turns are in their suites, in their
// order, as the counts say.
func TestJUnitCounts(t *testing.T) {
	words := []verdict.Word{verdict.Aligned, verdict.Misaligned, verdict.Crash, verdict.Unsupported, ""}
	text := junit(t, func(j *JUnit) {
		for i := range 3000 {
			j.Add(JUnitCase{Suite: fmt.Sprint("f", i%7/3), Name: fmt.Sprint("case ", i), Word: words[i%5], Reason: "why"})
		}
	})
	var got suites
	if err := xml.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	if got.Tests != 3000 || got.Failures != 600 || got.Errors != 600 || got.Skipped != 1200 || len(got.Suites) != 3 {
		t.Errorf("%d tests, %d failures, %d errors, %d skipped in %d suites", got.Tests, got.Failures, got.Errors, got.Skipped, len(got.Suites))
	}
	for _, s := range got.Suites {
		last := -1
		for _, c := range s.Cases {
			var i int
			if _, err := fmt.Sscanf(c.Name, "case %d", &i); err != nil || i <= last || c.Class != s.Name || fmt.Sprint("f", i%7/3) != s.Name {
				t.Fatalf("%s: %s after case %d, %v", s.Name, c.Name, last, err)
			}
			last = i
			if (c.Failure != nil) != (i%5 == 1) || (c.Error != nil) != (i%5 == 2) || (c.Skipped != nil) != (i%5 > 2) {
				t.Errorf("%s: case %d is told as another word", s.Name, i)
			}
		}
		if s.Tests != len(s.Cases) || s.Tests == 0 {
			t.Errorf("%s has %d cases, it says %d", s.Name, len(s.Cases), s.Tests)
		}
	}
}

// TestJUnitParser: junitparser reads the counts, properties and texts, hostile ones too.
func TestJUnitParser(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j.xml")
	text := junit(t, func(j *JUnit) {
		j.Properties = [][2]string{{"seed", "7"}}
		j.Add(JUnitCase{Suite: "f", Name: hostileName, Word: verdict.Misaligned, Reason: hostileName, Output: hostileName})
		j.Add(JUnitCase{Suite: "f", Name: "b", Word: verdict.Aligned})
		j.Add(JUnitCase{Suite: "g", Name: "c", Word: verdict.Crash, Reason: "SIGSEGV"})
	})
	if err := os.WriteFile(path, text, 0o644); err != nil {
		t.Fatal(err)
	}
	readers(t, "junitparser", "-c", `import sys, junitparser
x = junitparser.JUnitXml.fromfile(sys.argv[1])
f, g = x
assert (f.tests, f.failures, g.errors) == (2, 1, 1), (f.tests, f.failures, g.errors)
assert [(p.name, p.value) for p in f.properties()] == [("seed", "7")]
a, b = f
assert a.result[0].type == "misaligned" and "</code><script>" in a.system_out and b.is_passed, a.result`, path)
}

// TestJUnitIsBounded: long texts are cut at a character.
func TestJUnitIsBounded(t *testing.T) {
	long := strings.Repeat("ä", 1<<20)
	text := junit(t, func(j *JUnit) {
		j.Add(JUnitCase{Suite: "f", Name: "a", Word: verdict.Misaligned, Reason: long, Output: long})
		j.Add(JUnitCase{Suite: "f", Name: "b", Err: errors.New(long)})
	})
	if len(text) > 64<<10 || bytes.Contains(text, []byte("\uFFFD")) {
		t.Errorf("%d bytes, or a broken character", len(text))
	}
}

// TestJUnitSaysWhatFailed: a file that cannot be written is an error, and not a
// panic.
func TestJUnitSaysWhatFailed(t *testing.T) {
	j, err := NewJUnit(filepath.Join(t.TempDir(), "j.xml"), "run")
	if err != nil {
		t.Fatal(err)
	}
	if err := j.spool.Close(); err != nil {
		t.Fatal(err)
	}
	for range 2000 {
		j.Add(JUnitCase{Suite: "f", Name: "a", Word: verdict.Misaligned, Reason: strings.Repeat("x", 1000)})
	}
	if err := j.Close(); err == nil || !errors.Is(err, os.ErrClosed) {
		t.Errorf("%v", err)
	}
	if _, err := NewJUnit(filepath.Join(t.TempDir(), "none", "j.xml"), "run"); err == nil {
		t.Error("a folder that is not there")
	}
}
