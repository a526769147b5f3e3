package where

import (
	"slices"
	"testing"
)

func TestOutside(t *testing.T) {
	got := ""
	slices.SortFunc([]int{1, 2}, func(a, b int) int { got = Outside("internal/where"); return 0 })
	if got != "where_test.go:10" {
		t.Errorf("the line is %q", got)
	}
	if p := packageOf("example.com/plumb/graph.(*Builder).Apply"); p != "example.com/plumb/graph" {
		t.Errorf("the package is %q", p)
	}
}
