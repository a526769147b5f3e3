package report

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"plumb/internal/judge/verdict"
)

func conformance() *Conformance {
	c := NewConformance("my <worker>", "torch 1.13.1", 7, map[string][]string{"net": {"relu", "conv2d", "nms"}, "other": {"add"}})
	for _, one := range []ConformanceCase{
		{"relu_0", "relu", "float32", verdict.Aligned, "", true, ""},
		{"relu_1", "relu", "float64", verdict.Misaligned, "<b>wrong</b>", true, "passes"},
		{"relu_2", "relu", "float16", verdict.Rejected, "both refuse", false, ""},
		{"conv2d_0", "conv2d", "float32", verdict.Unsupported, "no kernel", true, ""},
		{"conv2d_1", "conv2d", "float32", "", "left out", true, ""},
		{"nms_0", "nms", "float32", verdict.Unsupported, "not recorded", false, ""},
		{"add_0", "add", "int64", verdict.Known, "", true, ""},
		{"add_1", "add", "int64", verdict.Crash, "died", true, ""},
	} {
		c.Add(one)
	}
	c.Finish()
	return c
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
	golden(t, "conformance.json", data)
	if strings.Contains(page.String(), "<b>wrong") || strings.Contains(page.String(), "my <worker>") {
		t.Error("the page does not escape what it shows")
	}
}
