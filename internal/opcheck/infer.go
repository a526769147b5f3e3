package opcheck

import (
	"errors"
	"slices"

	"plumb/op"
	"plumb/tensor"
)

// inference checks what Infer says against what the signature, the arguments'
// shapes and the results say.
func (c *checker) inference() {
	for _, d := range c.calls {
		c.try(d.Call, func() { c.infer(d.Call, d.out) })
		for _, l := range layoutsOf {
			call := with(d.Call, l.of)
			c.try(call, func() {
				if out, err := c.run(call); err == nil {
					c.infer(call, out)
				}
			})
		}
	}
	c.edgeShapes()
}

// infer checks one call.
func (c *checker) infer(call *op.Call, out []*tensor.Tensor) {
	field := "Infer"
	if c.def.Compose != nil {
		field = "Compose"
	}
	metas, err := call.Infer()
	if err != nil {
		c.find(field, call, "refuses what the operator computes: %v", err)
		return
	}
	c.count()
	sig := c.def.Sigs()[0]
	if !sig.Many && len(metas) != len(sig.Results) {
		c.find(field, call, "has %d results, the signature %d", len(metas), len(sig.Results))
		return
	}
	if len(metas) != len(out) {
		c.find(field, call, "has %d results, execution %d", len(metas), len(out))
		return
	}
	for i, m := range metas {
		strides := m.Strides
		if strides == nil {
			strides = tensor.ContiguousStrides(m.Shape)
		}
		t := out[i]
		switch {
		case t.DType() != m.DType || !slices.Equal(t.Shape(), m.Shape):
			c.find(field, call, "says that result %d is %s%v, and it is %s", i, m.DType, m.Shape, t)
		case !sameStrides(m.Shape, t.Strides(), strides):
			c.find(field, call, "says that result %d has the strides %v, and it has %v", i, strides, t.Strides())
		case c.def.View == nil && !c.def.Traits.Has(op.View) && c.def.Compose == nil && overlaps(m.Shape, strides):
			c.find(field, call, "lays result %d out with the strides %v of shape %v: elements share memory", i, strides, m.Shape)
		}
	}
	c.described(call, metas, field)
	c.broadcasts(call, metas, field)
}

func sameStrides(shape, a, b []int) bool {
	if slices.Contains(shape, 0) {
		return true
	}
	for i, n := range shape {
		if n != 1 && a[i] != b[i] {
			return false
		}
	}
	return true
}

// overlaps reports whether two indices of a shape lie in one place.
func overlaps(shape, strides []int) bool {
	n := tensor.NumElements(shape)
	if n > 1<<12 {
		return false
	}
	seen := map[int]bool{}
	index := make([]int, len(shape))
	for range n {
		at := 0
		for d, i := range index {
			at += i * strides[d]
		}
		if seen[at] {
			return true
		}
		seen[at] = true
		for d := len(index) - 1; d >= 0; d-- {
			if index[d]++; index[d] < shape[d] {
				break
			}
			index[d] = 0
		}
	}
	return false
}

// described infers the call from layouts alone, as a graph does.
func (c *checker) described(call *op.Call, metas []op.Meta, field string) {
	if c.def.Traits.Has(op.Dynamic) {
		return
	}
	layouts := &op.Call{Def: call.Def, Args: call.Args.MapValues(func(v op.Value) op.Value {
		return op.Layout(op.Meta{DType: v.DType(), Shape: v.Shape(), Strides: v.Strides()})
	})}
	got, err := layouts.Infer()
	if err != nil && errors.Is(err, op.ErrNoElements) {
		c.find("Traits", call, "lack Dynamic: what Infer says depends on elements")
		return
	}
	if err != nil || len(got) != len(metas) {
		c.find(field, call, "depends on elements, which graphs have not: from shapes alone it says %v", err)
		return
	}
	for i := range got {
		if got[i].DType != metas[i].DType || !slices.Equal(got[i].Shape, metas[i].Shape) {
			c.find(field, call, "depends on elements: from shapes alone result %d is %s%v, with elements %s%v", i, got[i].DType, got[i].Shape, metas[i].DType, metas[i].Shape)
		}
	}
}

// broadcasts holds an elementwise operator to the shape to which its tensors broadcast, and its
// results to the floating dtype that these share.
func (c *checker) broadcasts(call *op.Call, metas []op.Meta, field string) {
	if !elementwise(call) || len(call.Args.AllValues()) == 0 {
		return
	}
	shape, err := broadcastShape(call)
	if err != nil {
		return
	}
	rows := slices.ContainsFunc(tensorsOf(call), func(x *tensor.Tensor) bool { return !x.IsContiguous() })
	if m := metas[0]; m.Strides != nil && !rows && c.def.View == nil && !c.def.Traits.Has(op.View) && !sameStrides(m.Shape, m.Strides, tensor.ContiguousStrides(m.Shape)) {
		c.find(field, call, "lays the result of contiguous tensors out with the strides %v of shape %v", m.Strides, m.Shape)
	}
	if !slices.Equal(metas[0].Shape, shape) {
		c.find(field, call, "says %v of a function of elements (Exact), whose tensors broadcast to %v", metas[0].Shape, shape)
	}
	own := call.Args.AllValues()[0].DType()
	for _, v := range call.Args.AllValues() {
		if v.DType() != own {
			return
		}
	}
	if takes := c.def.Sigs()[0].Index(op.AnyArg("dtype")) >= 0; own.IsFloat() && metas[0].DType.IsFloat() && metas[0].DType.Size() < own.Size() && !takes {
		c.find(field, call, "says %s of a function of elements of %s", metas[0].DType, own)
	}
}

// edgeShapes makes 0-dimensional and zero-size tensors of sampled ones, and for
// functions of elements those of many dimensions: such a call is refused with an
// error, or computed.
func (c *checker) edgeShapes() {
	for _, d := range c.calls {
		if d.key > 3 || len(d.Args.AllValues()) == 0 {
			continue
		}
		edges := []func(*tensor.Tensor) *tensor.Tensor{
			func(x *tensor.Tensor) *tensor.Tensor { return refit(x, nil) },
			func(x *tensor.Tensor) *tensor.Tensor { return emptied(x, 0) },
			func(x *tensor.Tensor) *tensor.Tensor { return emptied(x, x.Dim()-1) },
			func(x *tensor.Tensor) *tensor.Tensor { return refit(x, slices.Repeat([]int{1}, x.Dim())) },
		}
		if elementwise(d.Call) {
			edges = append(edges, func(x *tensor.Tensor) *tensor.Tensor { return refit(x, []int{2, 1, 3, 2, 1, 2}) })
		}
		for _, edge := range edges {
			call := with(d.Call, edge)
			c.try(call, func() { c.edge(call) })
		}
	}
}

// emptied makes a dimension 0.
func emptied(x *tensor.Tensor, dim int) *tensor.Tensor {
	if x.Dim() == 0 {
		return refit(x, []int{0})
	}
	shape := slices.Clone(x.Shape())
	shape[max(dim, 0)] = 0
	return refit(x, shape)
}

func (c *checker) edge(call *op.Call) {
	out, err := c.run(call)
	switch {
	case err == nil:
		c.infer(call, out)
		c.elements(call, out, false)
	case !rejection(err):
		c.find("Kernels", call, "fails: %v", err)
	case elementwise(call):
		if _, err := broadcastShape(call); err != nil {
			return
		}
		c.find(refuser(call), call, "refuses a function of elements (Exact) of this shape: %v", err)
	}
}
