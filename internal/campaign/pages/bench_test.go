package pages

import (
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"plumb/internal/campaign/report"
	"plumb/internal/campaign/store"
)

// large is a store of runs of which the last has so many cases of a thousand tests and
// so many findings, most of which earlier runs saw too.
func large(t testing.TB, cases, findings int) *store.Store {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s.db")
	s, err := store.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	const runs = 60
	for run := range runs {
		w, err := s.Begin(&store.Run{
			Command: "plumb campaign run", Args: []string{"campaign", "run", "suites"}, Started: time.Unix(1_800_000_000+int64(run)*3600, 0), Seed: 7,
			Subjects: []store.Subject{{Name: "torch", Version: "2.15"}, {Name: "native", Version: fmt.Sprint(run / 10)}},
		})
		if err != nil {
			t.Fatal(err)
		}
		n, seen := cases/50, 0
		if run == runs-1 {
			n = cases
		}
		if run >= runs-3 {
			seen = findings
		}
		for i := 0; i < n && err == nil; i++ {
			test := i * 1000 / n
			c := store.Case{
				Test: fmt.Sprintf("suites/family%02d.py::test_operator_%d", test/50, test), Number: i, Program: fmt.Sprintf("%016x", i*2654435761), Subject: "native", Mode: "eager, graph",
				Operators: []string{fmt.Sprintf("operator_%d", test%500), "other"}, DTypes: []string{"float32", "float64", "int64 float16"}[i%3], Outcome: report.Passed, Word: "aligned",
				Compared: 3, Worst: float64(i%100) / 101, WorstAt: "grad x", Elapsed: time.Millisecond, Reference: time.Millisecond,
			}
			if (i+run)%97 == 0 {
				c.Outcome, c.Word, c.Kind, c.Worst = report.Failed, "misaligned", "value", 3
				c.Reason, c.Text = "value y[3] is 1, and the reference has 2: 3e7 ULP, limit 4 ULP", "# plumb program v1\nx = tensor((2,), torch.float32)\ny = torch.relu(x)\n"
			}
			err = w.Add(c)
		}
		for i := 0; i < seen && err == nil; i++ {
			err = w.Sight(&store.Sighting{
				Subject: "native", Operator: fmt.Sprintf("operator_%d", i%500), What: fmt.Sprintf("misaligned value of operator_%d, form %d (float)", i%500, i), Test: fmt.Sprintf("suites/family%02d.py::test_operator_%d", i%20, i%1000),
				Cases: 1 + i%9, Reason: "value y[3] is 1, and the reference has 2: 3e7 ULP, limit 4 ULP", Program: "x = tensor((2,), torch.float32)\ny = torch.relu(x)\n", Bundle: "/nowhere/" + fmt.Sprint(i), Proof: "fails in a fresh process",
			})
		}
		if err = errors.Join(err, w.End(true, 1)); err != nil {
			t.Fatal(err)
		}
	}
	return reread(t, s, path)
}

// BenchmarkPages makes each page of a store of 60 runs, of which one has 100,000 cases
// and three have 10,000 findings each. Nobody waits 100 ms for one that does not move.
func BenchmarkPages(b *testing.B) {
	v := served(b, large(b, 100_000, 10_000), "")
	for _, path := range []string{
		"/", "/?before=20", "/runs/last", "/runs/last/cases", "/runs/last/cases?from=99000", "/runs/last/cases?outcome=failed", "/runs/last/cases?outcome=failed&from=90000", "/runs/last/cases?outcome=skipped",
		"/runs/last/cases?test=suites/family19.py::test_operator_999", "/runs/last/cases/99999", "/compare?a=59&b=60", "/compare?a=58&b=59", "/compare?a=1&b=60",
		"/findings", "/findings?after=9000", "/findings/1", "/tests", "/tests?q=999", "/tests?after=800", "/tests/one?name=suites/family19.py::test_operator_999",
		"/operators", "/operators/one?name=other", "/operators/one?name=operator_7", "/matrix", "/matrix?q=_7", "/flaky", "/metrics",
	} {
		b.Run(path, func(b *testing.B) {
			for b.Loop() {
				if w := get(v, path); w.Code != http.StatusOK {
					b.Fatal(w.Code)
				} else {
					b.ReportMetric(float64(w.Body.Len())/1024, "kB")
				}
			}
		})
	}
}
