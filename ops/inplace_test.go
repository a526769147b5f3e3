package ops_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"plumb/op"
	"plumb/ops"
)

// without are PyTorch's in-place names that no operator answers to, each with
// the reason.
var without = map[string]string{
	"apply_": "takes a Python function", "map_": "takes a Python function", "map2_": "takes a Python function",
	"set_": "exchanges storages", "share_memory_": "moves storages", "rename_": "names dimensions",
	"resize_": "leaves elements unspecified", "resize_as_": "leaves elements unspecified",
	"resize_as_sparse_": "sparse", "sparse_resize_": "sparse", "sparse_resize_and_clear_": "sparse",
	"requires_grad_": "an attribute, no operator", "fill_diagonal_": "no pure form",
	"bernoulli_": "draws", "cauchy_": "draws", "exponential_": "draws", "geometric_": "draws", "log_normal_": "draws",
	"normal_": "draws", "random_": "draws", "uniform_": "draws",
	"embedding_renorm_": "embedding's own",
	"elu_":              "scales beside alpha that the pure form lacks",
}

// TestInPlaceNames compares the table's in-place names with those of the
// PyTorch that is installed: an operator that answers to a name answers to its
// in-place form exactly when PyTorch has that.
func TestInPlaceNames(t *testing.T) {
	const script = `
import torch
for prefix, owner in (("Tensor", torch.Tensor), ("torch", torch), ("torch.nn.functional", torch.nn.functional)):
    for n in dir(owner):
        if n.endswith("_") and not n.endswith("__") and not n.startswith("_"):
            print(prefix + "." + n)
print(torch.__version__)`
	out, err := exec.Command("/usr/bin/python3", "-c", script).Output()
	if err != nil {
		t.Skip("no PyTorch here")
	}
	theirs := strings.Fields(string(out))
	if !strings.HasPrefix(theirs[len(theirs)-1], "1.13") {
		t.Skip("the names are those of PyTorch 1.13")
	}
	table := ops.Table()
	for _, n := range theirs[:len(theirs)-1] {
		last := n[strings.LastIndexByte(n, '.')+1:]
		pure := table.Lookup(strings.TrimSuffix(n, "_"))
		if without[last] == "" && len(pure) > 0 && len(table.Lookup(n)) == 0 {
			t.Errorf("no operator answers to %s", n)
		}
	}
	for _, n := range table.Names() {
		if !op.InPlace(n) || strings.HasPrefix(n, "operator.") || strings.HasSuffix(n, "__") {
			continue
		}
		if !slices.Contains(theirs, n) {
			t.Errorf("PyTorch has no %s", n)
		}
	}
}
