package command

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"plumb/internal/campaign/report"
	"plumb/internal/campaign/store"
)

// storedExample is a store whose runs have whatever a column may hold.
func storedExample(t *testing.T) *store.Store {
	t.Helper()
	s, err := store.Open(filepath.Join(t.TempDir(), "s.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	for run := range 2 {
		w, err := s.Begin(&store.Run{Command: "plumb run", Started: time.UnixMilli(1_800_000_000_000), Seed: math.MaxUint64, Subjects: []store.Subject{{Name: "torch", Version: "2"}, {Name: "native", Version: "1"}}})
		for i := 0; i < 40 && err == nil; i++ {
			c := store.Case{Test: "a.py::test_é", Number: i, Subject: "native", Mode: "eager, graph", Operators: []string{"x"}, DTypes: "float32 int64", Outcome: report.Passed, Word: "aligned", Compared: i, Worst: float64(i) / 7, WorstAt: "grad x", Elapsed: time.Duration(i) * time.Microsecond, Program: "0123456789abcdef"}
			switch i % 4 {
			case 1:
				c.Worst, c.Outcome, c.Word, c.Kind, c.Reason = math.Inf(1), report.Failed, "misaligned", "value", "two\nlines, \"quoted\" \x00"
			case 2:
				c.Worst, c.Outcome, c.Word, c.Name, c.Variant = math.NaN(), report.Skipped, "", "act::x_1.pth", "inplace"
			}
			err = w.Add(c)
		}
		if err = errors.Join(err, w.End(true, run)); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// TestExportsAgree lets pyarrow read the exported Parquet file: its rows, types and
// nulls are those of the CSV file.
func TestExportsAgree(t *testing.T) {
	s := storedExample(t)
	runs, err := runsNamed(s, []string{"1", "2"})
	if err != nil {
		t.Fatal(err)
	}
	var lines, table, objects bytes.Buffer
	if err := errors.Join(exportCSV(s, runs, &lines), exportParquet(s, runs, &table), exportLines(s, runs, &objects)); err != nil {
		t.Fatal(err)
	}
	want, err := csv.NewReader(&lines).ReadAll()
	if err != nil || len(want) != 81 {
		t.Fatalf("%d lines, %v", len(want), err)
	}
	if n := strings.Count(objects.String(), `"worst":`); n != 2*20 {
		t.Errorf("%d objects have a worst error, want 40", n)
	}
	python := os.Getenv("PLUMB_READERS")
	if exec.Command(python, "-c", "import pyarrow.parquet").Run() != nil {
		t.Skip("needs Python's pyarrow: PLUMB_READERS names a Python that has it")
	}
	cmd := exec.Command(python, "-c", `import csv, io, os, sys, pyarrow as pa, pyarrow.parquet as pq
t = pq.read_table(pa.BufferReader(sys.stdin.buffer.read()), use_threads=False)
def text(name, v):
    if v is None: return ''
    if name == 'started': return v.strftime('%Y-%m-%dT%H:%M:%SZ')
    if name.endswith('seconds'): return '%.6f' % v
    return v if isinstance(v, str) else repr(v)
out = csv.writer(sys.stdout, lineterminator='\n')
out.writerow(t.column_names)
out.writerow([str(c.type) for c in t.schema])
for row in t.to_pylist(): out.writerow([text(n, v) for n, v in row.items()])
sys.stdout.flush()
os._exit(0)  # pyarrow's threads abort one process in forty that ends`)
	cmd.Stdin = &table
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, said.String())
	}
	got, err := csv.NewReader(bytes.NewReader(out)).ReadAll()
	if err != nil || len(got) != len(want)+1 {
		t.Fatalf("%d lines, %v", len(got), err)
	}
	for i, name := range want[0] {
		kind := map[string]string{"started": "timestamp[ms, tz=UTC]", "seed": "uint64", "run": "int64", "n": "int64", "number": "int64", "compared": "int64", "worst": "double", "seconds": "double", "reference_seconds": "double"}[name]
		if kind == "" {
			kind = "string"
		}
		if got[0][i] != name || got[1][i] != kind {
			t.Errorf("column %d is %s of %s, want %s of %s", i, got[0][i], got[1][i], name, kind)
		}
		for row := range want[1:] {
			if a, b := got[row+2][i], want[row+1][i]; a != b && !sameNumber(a, b) {
				t.Errorf("row %d: %s is %q, in the CSV file %q", row, name, a, b)
			}
		}
	}
}

// sameNumber reports whether Python's and Go's text are of one number.
func sameNumber(a, b string) bool {
	var x, y float64
	_, err := fmt.Sscan(a, &x)
	_, err2 := fmt.Sscan(b, &y)
	return err == nil && err2 == nil && x == y
}
