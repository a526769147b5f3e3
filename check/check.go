// Package check runs all the checks that follow from an operator's literal, for
// operators of Plumb and for those of others alike:
//
//	func TestOperators(t *testing.T) {
//		table, err := op.NewTable(append(mine, ops.All()...)...)
//		…
//		check.Operator(t, table, "my_operator")
//	}
//
// They follow from the literal alone; package plumb judges programs that a test
// writes, and both take its flags.
//
// Each thing that the literal declares is held to what it promises: inference
// against execution, from shapes alone and of every layout; kernels on calls that
// are strided, sliced, expanded, aliased, of no dimension, of no element and large,
// in memory that holds anything; traits by calls of which they say that they are
// alike; SBP on 2 and 3 ranks; gradients by difference quotients of first and
// second order, with some of them wanted; graphs with passes and without; Exact,
// Formula, Law and the numerics class; and Sample, of which every attribute is to
// be drawn. An operator with public names is judged against PyTorch under each of
// them, with illegal calls, which both sides have to refuse with the same class of
// error, at the edges of ranges, and with arguments left out.
//
// A finding names the field of op.Def that promises what does not hold. What could
// not be checked is the subtest "unchecked", which is skipped with the list of it.
package check

import (
	"strings"
	"testing"

	"plumb/internal/gotest"
	"plumb/internal/judge/verdict"
	"plumb/internal/opcheck"
	"plumb/op"
)

// Cases is how many calls of each kind are judged against PyTorch.
const Cases = 50

// Operator runs the checks of an operator of the table as subtests. Names are
// looked up in the table's order: an operator that shares one with Plumb's own
// stands before them. Without PyTorch, what needs it is skipped.
func Operator(t *testing.T, table *op.Table, id string) {
	t.Helper()
	d := table.Def(id)
	if d == nil {
		t.Fatalf("the table has no operator %s", id)
	}
	report := opcheck.Run(table, id, opcheck.Options{Seed: gotest.SeedOr(0)})
	t.Logf("dtypes of %s: %v", id, report.DTypes)
	for _, aspect := range opcheck.Aspects {
		findings := report.Of(aspect)
		if len(findings) == 0 && report.Checked[aspect] == 0 {
			continue
		}
		t.Run(aspect, func(t *testing.T) {
			for _, f := range findings {
				t.Error(f)
			}
			t.Logf("%d comparisons", report.Checked[aspect])
		})
	}
	if len(d.Names) > 0 && len(report.DTypes) > 0 {
		t.Run("aligned", func(t *testing.T) { aligned(t, table, d, report) })
	}
	if len(report.Unchecked) > 0 {
		t.Run("unchecked", func(t *testing.T) {
			var lines []string
			for _, g := range report.Unchecked {
				lines = append(lines, "  "+g.String())
			}
			t.Skipf("NOT CHECKED of %s:\n%s", id, strings.Join(lines, "\n"))
		})
	}
}

// aligned judges the operator against PyTorch.
func aligned(t *testing.T, table *op.Table, d *op.Def, report *opcheck.Report) {
	seed := gotest.SeedOr(0)
	beside := opcheck.NewBeside(d)
	defer func() {
		for _, f := range beside.Findings {
			t.Error(f)
		}
		report.Unchecked = append(report.Unchecked, beside.Gaps...)
	}()
	s := gotest.Run(t, gotest.Config{
		Table: table, Seed: seed, SameException: true, OnRecord: beside.Record,
		Tests: opcheck.Tests(table, d, report.DTypes, seed, gotest.Number(Cases)),
	})
	if !t.Failed() && (s.Words[verdict.Aligned] == 0 || s.Words[verdict.Rejected] == 0) {
		t.Error("no legal or no illegal call was judged")
	}
}

// Grade plants faults in copies of an operator's literal, one in each, and logs
// which of them Operator would find: an operator of which many are missed is
// checked too little, mostly by its Sample. It returns how many were planted and how
// many are missed. PyTorch is not asked.
func Grade(t *testing.T, table *op.Table, id string) (planted, missed int) {
	t.Helper()
	g, err := opcheck.Grade(t.Context(), table, id, opcheck.Options{Seed: gotest.SeedOr(0), Calls: 8}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Log(g)
	return len(g.Faults), len(g.Missed())
}
