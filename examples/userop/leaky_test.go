package userop

import (
	"testing"

	"plumb/check"
)

func TestLeakyRelu(t *testing.T) {
	table, err := Table()
	if err != nil {
		t.Fatal(err)
	}
	check.Operator(t, table, "leaky_relu_yzh")
}
