package check_test

import (
	"testing"

	"plumb/check"
	"plumb/ops"
)

// TestOperator runs the checks on one of Plumb's own operators; those of
// examples/userop run them on operators from outside.
func TestOperator(t *testing.T) { check.Operator(t, ops.Table(), "hardtanh") }
