package userop

import (
	"testing"

	"plumb/check"
)

func TestOperators(t *testing.T) {
	table, err := Table()
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"leaky_relu_yzh", "bent_identity"} {
		t.Run(id, func(t *testing.T) { check.Operator(t, table, id) })
	}
}
