package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"plumb/internal/judge/verdict"
)

func conformance() *Conformance {
	c := NewConformance("my <worker>", "torch 1.13.1", 7, map[string][]string{"net": {"relu", "conv2d", "nms"}, "other": {"add"}})
	for _, one := range []ConformanceCase{
		{"relu_0", "relu", "float32", verdict.Aligned, "", true, "", false},
		{"relu_1", "relu", "float64", verdict.Misaligned, "<b>wrong</b>", true, "passes", false},
		{"relu_2", "relu", "float16", verdict.Rejected, "both refuse", false, "", false},
		{"conv2d_0", "conv2d", "float32", verdict.Unsupported, "no kernel", true, "", false},
		{"conv2d_1", "conv2d", "float32", "", "left out", true, "", false},
		{"nms_0", "nms", "float32", verdict.Unsupported, "not recorded", false, "", false},
		{"add_0", "add", "int64", verdict.Known, "", true, "", false},
		{"add_1", "add", "int64", verdict.Crash, "died", true, "", false},
	} {
		c.Add(one)
		c.Describe(one, details[one.Case])
	}
	c.About = [][2]string{{"config", "config.py | x"}}
	c.Finish()
	before := NewConformance("my <worker>", "torch 1.13.1", 7, nil)
	before.Add(ConformanceCase{Case: "relu_0", Function: "relu", DType: "float32", Word: verdict.Aligned, Recorded: true})
	before.Add(ConformanceCase{Case: "conv2d_0", Function: "conv2d", DType: "float32", Word: verdict.Crash, Recorded: true})
	before.Add(ConformanceCase{Case: "add_0", Function: "add", DType: "int64", Word: verdict.Unsupported, Recorded: true})
	before.Finish()
	c.Compare("run 6", before)
	return c
}

// details are of the cases of conformance, by name.
var details = map[string]CaseDetails{
	"relu_0":   {ModeBackward, 16, "", time.Second},
	"relu_1":   {ModeBackward, 64, "value", time.Second / 4},
	"relu_2":   {ModeForward, 32, "value", 0},
	"conv2d_0": {ModeForward, 16, "", 0},
	"conv2d_1": {ModeForward, 16, "", 0},
	"nms_0":    {ModeForward, 16, "", 0},
	"add_0":    {ModeInPlace, 8, "", time.Second / 2},
	"add_1":    {ModeInPlace, 8, "", 0},
}

// TestConformanceAlike: cases that fail alike are one line, with the smallest.
func TestConformanceAlike(t *testing.T) {
	c := NewConformance("c", "r", 1, nil)
	for i, bytes := range []int64{64, 0, 16, 32} {
		one := ConformanceCase{Case: fmt.Sprint("relu_", i), Function: "relu", DType: "float32", Word: verdict.Misaligned, Reason: fmt.Sprint("reason ", i), Recorded: true}
		c.Add(one)
		c.Describe(one, CaseDetails{Mode: ModeForward, Bytes: bytes, Kind: "value"})
		c.Describe(one, CaseDetails{Mode: ModeForward, Bytes: bytes, Kind: "grad"})
	}
	c.Finish()
	want := Alike{Function: "relu", Mode: ModeForward, Verdict: verdict.Misaligned, Kind: "value", Cases: 4, Smallest: "relu_2", Bytes: 16, DType: "float32", Reason: "reason 2"}
	if len(c.Clusters) != 2 || !slices.ContainsFunc(c.Clusters, func(a *Alike) bool { return *a == want }) {
		t.Errorf("%+v", c.Clusters)
	}
}

// TestConformanceCoverage: what a network lacks, and what is not known of it.
func TestConformanceCoverage(t *testing.T) {
	c := NewConformance("c", "r", 1, map[string][]string{"a": {"relu"}, "b": {"relu", "conv2d"}, "c": {"relu", "add"}, "d": {"relu", "nms"}})
	for f, word := range map[string]verdict.Word{"relu": verdict.Aligned, "conv2d": verdict.Misaligned, "add": verdict.Unsupported} {
		c.Add(ConformanceCase{Case: f, Function: f, DType: "float32", Word: word, Recorded: true})
	}
	c.Finish()
	want := []string{"a: yes", "b: with wrong results", "c: no", "d: as far as told"}
	for i, one := range c.Coverage {
		if got := one.Model + ": " + one.Answer(); got != want[i] {
			t.Errorf("%s, want %s", got, want[i])
		}
	}
}

func TestConformanceCounts(t *testing.T) {
	c := conformance()
	if c.Asked != 3 || c.Implemented != 2 {
		t.Errorf("%d of %d functions implemented, want 2 of 3: nothing of nms was recorded", c.Implemented, c.Asked)
	}
	if got, want := c.Total, (ConformanceRow{Name: "all", Passed: 2, Failed: 2, Unsupported: 1, Skipped: 1, Unrecorded: 2, Lenient: 1, Reason: "<b>wrong</b>"}); got != want {
		t.Errorf("total %+v, want %+v", got, want)
	}
	net := c.Models[0]
	if net.Name != "net" || net.Functions != 2 || net.Implemented != 1 || net.Passed != 1 {
		t.Errorf("model %+v", net)
	}
	if len(c.Failures) != 2 || c.Failures[1].Verdict != verdict.Crash {
		t.Errorf("failures %+v", c.Failures)
	}
}

func TestConformanceWritten(t *testing.T) {
	var text, page bytes.Buffer
	c := conformance()
	c.Text(&text, true)
	if err := c.HTML(&page); err != nil {
		t.Fatal(err)
	}
	data, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "conformance.txt", text.Bytes())
	golden(t, "conformance.html", page.Bytes())
	var markdown bytes.Buffer
	if err := c.Markdown(&markdown); err != nil {
		t.Fatal(err)
	}
	golden(t, "conformance.md", markdown.Bytes())
	for line := range strings.Lines(markdown.String()) {
		if strings.HasPrefix(line, "|") && strings.Contains(line, "<b>") {
			t.Errorf("the Markdown does not escape %s", line)
		}
	}
	golden(t, "conformance.json", data)
	if strings.Contains(page.String(), "<b>wrong") || strings.Contains(page.String(), "my <worker>") {
		t.Error("the page does not escape what it shows")
	}
}
