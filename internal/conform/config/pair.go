package config

import (
	"cmp"
	"slices"
)

// pair holds the columns of an entry to the lengths that pairing them needs.
func (e *entry) pair(at place, _ *Dict) error {
	if len(e.args) == 0 {
		return nil
	}
	args := at.key("tensor_para").key("args")
	if len(e.paras) > 0 {
		if err := e.besidePara(args); err != nil {
			return err
		}
	}
	var err error
	if e.dtypes, err = e.common(args, "dtype", func(a *arg) []Value { return a.dtypes }); err != nil {
		return err
	}
	shapes, err := e.common(args, "shape", func(a *arg) []Value { return a.shape })
	if err != nil {
		return err
	}
	if e.rows = shapes; e.args[0].value != nil {
		e.rows = len(e.args[0].value)
	}
	for _, a := range e.args {
		key, n := "shape", shapes
		if a.value != nil {
			key, n = "value", len(a.value)
		}
		if n < e.rows {
			return args.errorf("%s has %d entries of %s where the first argument has %d", a.ins, n, key, e.rows)
		}
		if n > e.rows {
			args.warnf("%s has %d entries of %s, and only the first argument's %d are used", a.ins, n, key, e.rows)
		}
		if err := e.checkStrides(args, a); err != nil {
			return err
		}
	}
	return nil
}

// besidePara wants exactly one entry of each column for each row of para.
func (e *entry) besidePara(args place) error {
	for _, a := range e.args {
		for _, c := range []struct {
			key    string
			column []Value
		}{{"shape", a.shape}, {"value", a.value}} {
			if c.column != nil && len(c.column) != len(e.paras) {
				return args.errorf("%s has %d entries of %s where para has %d", a.ins, len(c.column), c.key, len(e.paras))
			}
		}
	}
	return nil
}

// common is the length of the arguments' columns. A column of one entry stands
// for any number of them, and then all others agree; where no column has just
// one, the first argument's length counts, as in DIOPI.
func (e *entry) common(args place, key string, column func(*arg) []Value) (int, error) {
	n, ones := 1, false
	var first string
	for _, a := range e.args {
		switch c := column(a); {
		case c == nil:
		case len(c) == 1:
			ones = true
		case first == "":
			n, first = len(c), a.ins
		}
	}
	for _, a := range e.args {
		c := column(a)
		if c == nil || len(c) == 1 || len(c) == n {
			continue
		}
		if ones || len(c) < n {
			return 0, args.errorf("%s has %d entries of %s where %s has %d", a.ins, len(c), key, first, n)
		}
		args.warnf("%s has %d entries of %s, and only as many as %s's %d are used", a.ins, len(c), key, first, n)
	}
	return n, nil
}

// checkStrides wants the strides of an argument to lay out its shapes without
// overlap.
func (e *entry) checkStrides(args place, a *arg) error {
	if a.stride == nil {
		return nil
	}
	if e.args[0].stride == nil {
		return args.errorf("%s has stride, and the first argument %s has none", a.ins, e.args[0].ins)
	}
	for j := range min(e.rows, e.strided()) {
		if j >= len(a.stride) {
			return args.errorf("%s has %d entries of stride where the first argument has %d", a.ins, len(a.stride), e.strided())
		}
		v := a.strideAt(j, e.strided())
		if v == nil {
			continue
		}
		stride, ok := Items(v)
		if !ok || wantSizes(args, stride) != nil {
			return args.errorf("%s: entry %d of stride: want None or a tuple of strides, not %s", a.ins, j, Show(v))
		}
		var shape []Value
		if a.shape != nil {
			shape, _ = Items(nth(a.shape, j))
		}
		if shape == nil || wantSizes(args, shape) != nil || len(shape) != len(stride) {
			return args.errorf("%s: entry %d of stride: %s does not fit the shape", a.ins, j, Show(v))
		}
		if overlaps(shape, stride) {
			return args.errorf("%s: entry %d of stride: %s lets elements overlap", a.ins, j, Show(v))
		}
	}
	return nil
}

// overlaps is DIOPI's test of strides, all of which are not negative.
func overlaps(shape, stride []Value) bool {
	type dim struct{ size, stride int64 }
	dims := make([]dim, len(shape))
	for i := range dims {
		dims[i] = dim{int64(shape[i].(Int)), int64(stride[i].(Int))}
	}
	slices.SortStableFunc(dims, func(a, b dim) int { return cmp.Compare(a.stride, b.stride) })
	for i := range len(dims) - 1 {
		d, next := dims[i], dims[i+1].stride
		switch {
		case d.size == 0:
			if -d.stride >= next {
				return true
			}
		case next == 0:
			return true
		case d.stride > 0 && d.size-1 > (next-1)/d.stride:
			return true
		}
	}
	return false
}

// count is the number of cases, before they are made.
func (e *entry) count(at place) (int, error) {
	if len(e.args) == 0 {
		return len(e.functions) * len(e.paras), nil
	}
	groups := e.rows
	for _, a := range e.args {
		if groups *= len(a.sparse); groups > maxCases {
			return 0, at.errorf("the entry expands to more than %d cases", maxCases)
		}
	}
	if len(e.paras) > 0 && groups > len(e.paras) {
		return 0, at.errorf("sparse makes %d groups of tensors where para has %d", groups, len(e.paras))
	}
	n := groups * e.dtypes
	if n > maxCases {
		return 0, at.errorf("the entry expands to more than %d cases", maxCases)
	}
	return n * len(e.functions), nil
}
