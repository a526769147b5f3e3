package graph

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"plumb/op"
	"plumb/tensor"
)

// TreeFunc is a function of trees, written on a Builder: op.Value, and []any
// and map[string]any of trees. Other leaves are those that were given. What
// fails in it ends it through op.Fail.
type TreeFunc func(b *Builder, args ...any) any

// NewTree returns a graph of a function of trees, for Call.
func NewTree(table *op.Table, name string, f TreeFunc, o Options) *Graph {
	return &Graph{Name: name, table: table, function: f, options: o, parts: 1, compiled: map[string]*entry{}}
}

// tree is nested lists and maps whose tensors are numbered.
type tree struct {
	shape  any // a leaf that is a tensor is a slot
	leaves []*tensor.Tensor
}

// slot stands for a tensor of a tree by its number.
type slot int

// treeOf returns the list of the tensors.
func treeOf(ts []*tensor.Tensor) *tree {
	shape := make([]any, len(ts))
	for i := range ts {
		shape[i] = slot(i)
	}
	return &tree{shape, ts}
}

// flattened takes the tensors of arguments out of them.
func flattened(args []any) (*tree, error) {
	t := &tree{}
	shape, err := mapTree("argument ", args, func(path string, leaf any) (any, error) {
		x, ok := leaf.(*tensor.Tensor)
		if !ok {
			return leaf, constantLeaf(path, leaf)
		}
		t.leaves = append(t.leaves, x)
		return slot(len(t.leaves) - 1), nil
	})
	t.shape = shape
	return t, err
}

func constantLeaf(path string, leaf any) error {
	switch leaf.(type) {
	case nil, bool, int, int64, float64, string, tensor.DType:
		return nil
	}
	return fmt.Errorf("%s is %T: a tree has tensors, []any, map[string]any and plain constants", path, leaf)
}

// mapTree puts f of each leaf, with its place in words, in a copy of a tree;
// maps are walked in the order of their keys.
func mapTree(path string, t any, f func(path string, leaf any) (any, error)) (any, error) {
	var err error
	switch t := t.(type) {
	case []any:
		out := make([]any, len(t))
		for i, e := range t {
			if out[i], err = mapTree(element(path, i), e, f); err != nil {
				return nil, err
			}
		}
		return out, nil
	case map[string]any:
		out := map[string]any{}
		for _, k := range slices.Sorted(maps.Keys(t)) {
			if out[k], err = mapTree(fmt.Sprintf("%s[%q]", path, k), t[k], f); err != nil {
				return nil, err
			}
		}
		return out, nil
	}
	return f(path, t)
}

func element(path string, i int) string {
	if strings.HasSuffix(path, " ") {
		return fmt.Sprint(path, i)
	}
	return fmt.Sprintf("%s[%d]", path, i)
}

// with returns the tree's shape with values in the place of its tensors.
func (t *tree) with(value func(i int) any) any {
	out, _ := mapTree("", t.shape, func(_ string, leaf any) (any, error) {
		if i, ok := leaf.(slot); ok {
			return value(int(i)), nil
		}
		return leaf, nil
	})
	return out
}

// filled returns the tree with tensors.
func (t *tree) filled(ts []*tensor.Tensor) any {
	return t.with(func(i int) any { return ts[i] })
}

// signature returns a text that trees share for which one trace will do.
func (t *tree) signature() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%#v;", t.shape)
	for _, x := range t.leaves {
		b.WriteString(metaText(x))
	}
	return b.String()
}

func metaText(x *tensor.Tensor) string {
	return fmt.Sprintf("%s%v%v;", x.DType(), x.Shape(), x.Strides())
}

// results takes the values of a traced result out of it.
func (b *Builder) results(result any) (*tree, []*Value) {
	var out []*Value
	shape, err := mapTree("result ", result, func(path string, leaf any) (any, error) {
		v, ok := leaf.(op.Value)
		if !ok {
			return leaf, constantLeaf(path, leaf)
		}
		out = append(out, b.output(v))
		return slot(len(out) - 1), nil
	})
	if err != nil {
		op.Fail(err)
	}
	return &tree{shape: shape}, out
}
