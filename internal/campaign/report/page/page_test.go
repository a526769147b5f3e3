package page

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"plumb/backend"
	"plumb/internal/campaign/report"
	"plumb/internal/find/finding"
	"plumb/internal/find/shrink"
	"plumb/internal/judge/compare"
	"plumb/internal/judge/verdict"
	"plumb/program"
	"plumb/tensor"
)

const hostile = "<script>window.hostile=1</script><img src=x onerror=window.hostile=1>\x1b[31m\u202eevil\x00\xff'\"--></textarea>"

// run makes a page of a run of n cases, of which each hundredth fails.
func run(n int, name string) *Page { return runOf(n, 100, name) }

// runOf is run with another share of failures.
func runOf(n, every int, name string) *Page {
	p := New("plumb run", time.Date(2026, 11, 26, 20, 0, 0, 0, time.UTC))
	p.Environment = [][2]string{{"command", "plumb run " + name}}
	p.Sections = []Section{{Title: "Own" + name, Intro: name, Head: []string{"what" + name, "n"}, Rows: [][]string{{"a" + name, "2"}, {"b", name}, {"c", "11"}}}}
	s := report.NewSummary()
	s.Candidates, s.Reference, s.Seed = []string{"native", name}, "torch", 7
	var failing []*verdict.Record
	for i := range n {
		r := record(i, every, fmt.Sprintf("suites/file%d.py::test_%d%s", i/500, i/10, name), name)
		if i%every == min(3, every-1) {
			failing = append(failing, r)
		}
		s.Add(r)
		p.Record(r)
		if i%10 == 9 {
			p.End(&verdict.End{Test: r.Test})
		}
	}
	var fs []*finding.Finding
	for _, r := range failing[:min(len(failing), 50)] {
		fs = append(fs, &finding.Finding{ID: r.Program.ID(), Result: &shrink.Result{Record: r}, Common: name, Groups: []*finding.Group{{Test: r.Test, Candidate: r.Candidate, First: r, Count: 1}}})
	}
	p.Findings(fs)
	s.Tests = n / 10
	p.Summary(s)
	return p
}

var operators = strings.Fields("relu conv2d matmul softmax layer_norm gelu add where cumsum topk")

func record(i, every int, test, name string) *verdict.Record {
	op := operators[i%len(operators)]
	want := tensor.New(tensor.F32, 3, 4, 6, 5)
	got := tensor.New(tensor.F32, 3, 4, 6, 5)
	r := &verdict.Record{
		Test: test, Index: i, Candidate: "native", Modes: []string{"eager"},
		Program: &program.Program{
			Name: test, Seed: uint64(i),
			Inputs: []program.Input{{Name: "x", DType: tensor.F32, Shape: []int{3, 4, 6, 5}, Fill: program.Fill{Dist: program.Uniform, Lo: -1, Hi: 1, Key: uint64(i)}}},
			Calls:  []program.Call{{Result: "y", Target: "torch." + op, Args: []any{program.Ref("x"), name}}},
		},
		Reference: &backend.Outcome{Values: []backend.Value{{Tensor: want}}, Elapsed: time.Duration(i%977) * time.Microsecond},
		Outcome:   &backend.Outcome{Values: []backend.Value{{Tensor: got}}},
		Verdict:   &verdict.Verdict{Word: verdict.Aligned, Worst: 0.25, Margins: []verdict.Margin{{Target: "torch." + op, DType: "float32", Ratio: compare.Number(float64(i%100) / 120)}}},
	}
	if i%every != min(3, every-1) {
		r.Reference.Values, r.Outcome.Values = nil, nil
		return r
	}
	for k := range want.Len() {
		want.Set(k, complex(float64(k%17), 0))
		got.Set(k, complex(float64(k%17), 0))
		if k%5 == 4 {
			got.Set(k, complex(float64(k%17)+0.5, 0))
		}
	}
	limit := compare.Limit{ATol: 1e-3, Reason: name}
	d := verdict.Difference{Where: verdict.Where{Part: backend.PartValue, Name: name, Target: "torch." + op}, Limit: limit, Diff: compare.Tensors(want, got, limit, compare.Options{})}
	r.Verdict = &verdict.Verdict{Word: verdict.Misaligned, Kind: "value", Reason: fmt.Sprintf("%s case %d: %s", name, i, d.Diff.Message), Where: &d.Where, Differences: []verdict.Difference{d}}
	return r
}

func written(t testing.TB, p *Page) []byte {
	var b bytes.Buffer
	if err := p.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestPage: it holds all, is small, and names nothing that lies elsewhere.
func TestPage(t *testing.T) {
	page := written(t, run(10000, ""))
	failures := written(t, runOf(10000, 1, ""))
	if len(page) > 2<<20 || len(failures) > 2<<20 {
		t.Errorf("pages of 10,000 cases take %d bytes, and %d where each fails", len(page), len(failures))
	}
	t.Log(len(page), len(failures))
	text := string(page)
	for _, want := range []string{"only the last index, 4, of dim 3 (of 5)", "100 misaligned, 9900 aligned", `<span class="f">torch.softmax</span>`, "error by place: 6 of 30 elements", "histogram of the error"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page has no %q", want)
		}
	}
	for _, bad := range []string{"http://", "https://", "//cdn", " on", " style="} {
		body := text[strings.Index(text, "<body>"):strings.Index(text, `<script type="application/json"`)]
		if strings.Contains(body, bad+"load=") || strings.Contains(body, bad) && bad != " on" {
			t.Errorf("the page has %q", bad)
		}
	}
}

// TestHostileText: nothing of it is markup, and nothing moves a reader's eye.
func TestHostileText(t *testing.T) {
	harmless(t, hostile)
	harmless(t, strings.Repeat("x", 1<<20))
}

func FuzzPage(f *testing.F) {
	f.Add(hostile)
	f.Add("</script><script>")
	f.Add(strings.Repeat("x", 1<<16))
	f.Fuzz(harmless)
}

func harmless(t *testing.T, name string) {
	text := string(written(t, run(20, name)))
	if n := strings.Count(text, "<script"); n != 2 {
		t.Errorf("%d scripts", n)
	}
	if strings.ContainsAny(text, "\x00\x1b\u202e\u2066") || strings.Contains(text, "<img") || strings.ToValidUTF8(text, "") != text {
		at := strings.IndexAny(text, "\x00\x1b\u202e\u2066")
		t.Errorf("something is as it was given: %q", text[max(0, at-80):min(len(text), at+80)])
	}
	if len(text) > 1<<20 {
		t.Errorf("%d bytes", len(text))
	}
}

// TestBrowser looks at pages in Chromium, where there is one, with playwright-core
// and axe-core from the folder in PLUMB_TEST_NODE_MODULES.
func TestBrowser(t *testing.T) {
	chromium, err := exec.LookPath("chromium")
	modules := os.Getenv("PLUMB_TEST_NODE_MODULES")
	if err != nil || modules == "" {
		t.Skip("no chromium, or no PLUMB_TEST_NODE_MODULES with playwright-core and axe-core")
	}
	for name, p := range map[string]*Page{"ordinary": run(300, ""), "large": run(10000, ""), "failures": runOf(10000, 1, ""), "hostile": run(300, hostile)} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "page.html")
			if err := os.WriteFile(path, written(t, p), 0o600); err != nil {
				t.Fatal(err)
			}
			axe := filepath.Join(modules, "axe-core", "axe.min.js")
			if name == "large" || name == "failures" {
				axe = "-"
			}
			args := []string{"testdata/browser.cjs", chromium, axe, path}
			if dir := os.Getenv("PLUMB_TEST_SHOTS"); dir != "" {
				args = append(args, filepath.Join(dir, name))
			}
			cmd := exec.CommandContext(t.Context(), "node", args...)
			cmd.Env = append(os.Environ(), "NODE_PATH="+modules)
			out, err := cmd.Output()
			var got struct {
				Errors, Axe []string
				MS          map[string]float64
			}
			if err := json.Unmarshal(out, &got); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			if err != nil || len(got.Errors)+len(got.Axe) > 0 {
				t.Errorf("%v\nerrors: %s\naxe: %s", err, strings.Join(got.Errors, "\n"), strings.Join(got.Axe, "\n"))
			}
			t.Log(got.MS)
		})
	}
}
