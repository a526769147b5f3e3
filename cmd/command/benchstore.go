package command

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"plumb/internal/campaign/ledger"
	"plumb/internal/campaign/report"
	"plumb/internal/campaign/store"
)

// benchStore fills a store with the cases of two campaigns, and measures how fast it
// takes them, how large it is, and how soon it answers.
func benchStore(ctx context.Context, out io.Writer, path string, rows int) error {
	db, err := store.Open(path)
	if err != nil {
		return err
	}
	defer db.Close()
	var runs []int64
	began := time.Now()
	for n := range 2 {
		run, err := fillCampaign(ctx, db, rows/2, n)
		if err != nil {
			return err
		}
		runs = append(runs, run)
	}
	took := time.Since(began)
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%d cases written in %s: %.0f a second, %.0f bytes a case, %.2f GB\n", rows, took.Round(time.Millisecond), float64(rows)/took.Seconds(), float64(info.Size())/float64(rows), float64(info.Size())/1e9)
	began = time.Now()
	c, err := db.Campaign("last")
	if err != nil {
		return err
	}
	res, err := readCampaign(db, c)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "status of %d cases: %s\n", res.Cases, time.Since(began).Round(time.Microsecond))
	began = time.Now()
	changes := 0
	each := func(*store.Change) error { changes++; return nil }
	if err := db.DiffTests(runs[0], runs[1], each); err != nil {
		return err
	}
	fmt.Fprintf(out, "two runs compared by tests: %d changes, %s\n", changes, time.Since(began).Round(time.Millisecond))
	began, changes = time.Now(), 0
	if _, err := db.Diff(runs[0], runs[1], each); err != nil {
		return err
	}
	fmt.Fprintf(out, "two runs compared by cases: %d changes, %s\n", changes, time.Since(began).Round(time.Millisecond))
	began = time.Now()
	if err := db.Delete(runs[0]); err != nil {
		return err
	}
	fmt.Fprintf(out, "one of them deleted: %s\n", time.Since(began).Round(time.Millisecond))
	if most := mostMemory(); most > 0 {
		fmt.Fprintf(out, "most memory: %d MB\n", most>>20)
	}
	return nil
}

// mostMemory is the most that this process had in memory, in bytes; 0
// where the system does not tell.
func mostMemory() int64 {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		var kb int64
		if n, _ := fmt.Sscanf(line, "VmHWM: %d kB", &kb); n == 1 {
			return kb << 10
		}
	}
	return 0
}

// The shape of what is filled in: tests as large as those of a long nightly.
const (
	filledTests = 1000
	filledUnit  = 64
)

// fillCampaign makes a campaign with so many cases, through the books as a
// campaign does; of later ones other cases fail, in one of a hundred tests.
func fillCampaign(ctx context.Context, db *store.Store, cases, run int) (int64, error) {
	spec, err := (&spec{}).encode()
	if err != nil {
		return 0, err
	}
	c := &store.Campaign{Name: "filled", Spec: spec, Run: store.Run{Command: "plumb bench campaign", Started: time.Now(), Subjects: []store.Subject{{Name: "torch"}, {Name: "native"}}}}
	var parts []store.Part
	each := max(cases/filledTests, 1)
	for i := range min(filledTests, cases) {
		parts = append(parts, store.Part{Test: fmt.Sprintf("tests/test_%d.py::test_operator_%d", i/20, i), Subject: "native", Depends: []byte{byte(i), byte(i >> 8)}, Wanted: each, Fixed: true})
	}
	if err := db.NewCampaign(c, parts); err != nil {
		return 0, err
	}
	books, err := ledger.Open(db, c, filledUnit, ledger.Budget{})
	if err != nil {
		return 0, err
	}
	for ctx.Err() == nil {
		units, err := books.Take("native", 8)
		if err != nil {
			return 0, err
		}
		if len(units) == 0 {
			break
		}
		var results []ledger.Result
		for _, u := range units {
			results = append(results, filledUnitOf(u, run))
		}
		if err := books.Finish(results); err != nil {
			return 0, err
		}
	}
	if ctx.Err() != nil {
		return 0, ctx.Err()
	}
	return c.ID, books.End(true, exitAligned)
}

// filledUnitOf are cases as a run has them: one in a thousand fails.
func filledUnitOf(u ledger.Unit, run int) ledger.Result {
	r := ledger.Result{Unit: u.N, Worker: "bench", Judged: u.Size}
	for i := range u.Size {
		n := u.First + i
		c := store.Case{Test: u.Test, Number: n, Program: fmt.Sprintf("%08x%08x", len(u.Test), n), Subject: "native", Mode: "eager", Operators: []string{fmt.Sprintf("op%d", u.N%200)}, DTypes: "float32",
			Outcome: report.Passed, Word: "aligned", Compared: 2, Worst: float64(n%97) / 100, WorstAt: "grad x", Elapsed: time.Duration(50+n%50) * time.Microsecond, Reference: 120 * time.Microsecond}
		fails := n%1000 == 7
		if run > 0 && strings.HasSuffix(u.Test, "33") {
			fails = n%1000 == 8
		}
		if fails {
			c.Outcome, c.Word, c.Kind, c.Reason, c.Text = report.Failed, "misaligned", "value", "an element is 3 ULP beyond its limit", "# plumb program v1\n"
		}
		r.Cases = append(r.Cases, c)
	}
	return r
}
