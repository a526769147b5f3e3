package script

import (
	"fmt"
	"slices"

	"go.starlark.net/starlark"
)

func itertoolsNames() starlark.StringDict {
	return starlark.StringDict{
		"product": starlark.NewBuiltin("itertools.product", func(t *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
			a := arguments{"product", []string{"repeat"}, []starlark.Value{starlark.MakeInt(1)}}
			if err := a.rebind(nil, kwargs); err != nil {
				return nil, err
			}
			repeat, err := starlark.AsInt32(a.values[0])
			if err != nil || repeat < 0 || repeat > 1000 {
				return nil, fmt.Errorf("product: repeat must be from 0 to 1000")
			}
			rows, err := cartesian(t, slices.Repeat([]starlark.Value(args), repeat))
			return &iterator{rest: rows}, err
		}),
		"permutations": builtin("itertools.permutations", arrangements(true)), "combinations": builtin("itertools.combinations", arrangements(false)),
		"chain": chainType{}, "repeat": builtin("itertools.repeat", repeated), "accumulate": builtin("itertools.accumulate", accumulate),
	}
}

// cartesian returns the tuples of the product of sequences, the last running fastest.
func cartesian(t *starlark.Thread, seqs []starlark.Value) ([]starlark.Value, error) {
	rows := []starlark.Tuple{{}}
	for _, s := range seqs {
		vs, err := iterate(t, s)
		if err != nil {
			return nil, err
		}
		if len(vs) > 0 && len(rows) > maxElements/64/len(vs) {
			return nil, fmt.Errorf("a product of too many elements")
		}
		next := make([]starlark.Tuple, 0, len(rows)*len(vs))
		for _, r := range rows {
			for _, v := range vs {
				next = append(next, append(slices.Clip(r), v))
			}
		}
		rows = next
	}
	out := make([]starlark.Value, len(rows))
	for i, r := range rows {
		out[i] = r
	}
	return out, nil
}

// arrangements makes permutations, and combinations without regard of order.
func arrangements(ordered bool) func(*starlark.Thread, starlark.Tuple) (starlark.Value, error) {
	return func(t *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
		if len(a) < 1 || len(a) > 2 || !ordered && len(a) != 2 {
			return nil, fmt.Errorf("this takes a sequence and a length")
		}
		vs, err := iterate(t, a[0])
		if err != nil {
			return nil, err
		}
		n := len(vs)
		if len(a) == 2 && a[1] != starlark.None {
			if n, err = starlark.AsInt32(a[1]); err != nil || n < 0 {
				return nil, fmt.Errorf("the length must be a number that is not negative")
			}
		}
		var out []starlark.Value
		if n <= len(vs) {
			out, err = arrange(vs, n, ordered)
		}
		return &iterator{rest: out}, err
	}
}

func arrange(vs []starlark.Value, n int, ordered bool) ([]starlark.Value, error) {
	const most = maxElements / 64
	var out []starlark.Value
	picked := make([]int, 0, n)
	used := make([]bool, len(vs))
	visits := 0
	var walk func(from int) bool
	walk = func(from int) bool {
		if visits++; visits > 4*most {
			return false
		}
		if len(picked) == n {
			row := make(starlark.Tuple, n)
			for i, j := range picked {
				row[i] = vs[j]
			}
			out = append(out, row)
			return len(out) <= most
		}
		start := from
		if ordered {
			start = 0
		}
		for i := start; i < len(vs); i++ {
			if used[i] {
				continue
			}
			used[i], picked = true, append(picked, i)
			ok := walk(i + 1)
			used[i], picked = false, picked[:len(picked)-1]
			if !ok {
				return false
			}
		}
		return true
	}
	if n > 1000 || !walk(0) {
		return nil, fmt.Errorf("too many arrangements")
	}
	return out, nil
}

// chainType is itertools.chain, with its from_iterable.
type chainType struct{}

func (chainType) String() string        { return "itertools.chain" }
func (chainType) Type() string          { return "function" }
func (chainType) Freeze()               {}
func (chainType) Truth() starlark.Bool  { return true }
func (chainType) Hash() (uint32, error) { return 0, nil }
func (chainType) Name() string          { return "chain" }
func (chainType) AttrNames() []string   { return []string{"from_iterable"} }

// CallInternal chains its arguments.
func (chainType) CallInternal(t *starlark.Thread, args starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
	return concat(t, args)
}

// Attr returns from_iterable.
func (chainType) Attr(name string) (starlark.Value, error) {
	if name != "from_iterable" {
		return nil, nil
	}
	return builtin(name, func(t *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
		if len(a) != 1 {
			return nil, fmt.Errorf("from_iterable takes one sequence")
		}
		vs, err := iterate(t, a[0])
		if err != nil {
			return nil, err
		}
		return concat(t, vs)
	}), nil
}

func repeated(_ *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
	if len(a) != 2 {
		return nil, lack("itertools.repeat without a number of times is not supported in test files")
	}
	n, err := small("itertools.repeat", a[1:], 1, maxElements)
	if err != nil {
		return nil, err
	}
	return &iterator{rest: slices.Repeat([]starlark.Value{a[0]}, int(n[0]))}, nil
}

func accumulate(t *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
	if len(a) < 1 || len(a) > 2 {
		return nil, fmt.Errorf("accumulate takes a sequence and a function")
	}
	vs, err := iterate(t, a[0])
	if err != nil {
		return nil, err
	}
	out := slices.Clone(vs)
	for i := 1; i < len(out); i++ {
		if len(a) == 2 {
			out[i], err = starlark.Call(t, a[1], starlark.Tuple{out[i-1], vs[i]}, nil)
		} else {
			out[i], err = operators["add"].call(t, out[i-1], vs[i])
		}
		if err != nil {
			return nil, err
		}
	}
	return &iterator{rest: out}, nil
}

// genArgList is the cartesian product of a dict's lists, as lists.
func genArgList(t *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
	_, rows, err := argProduct(t, a)
	return &iterator{rest: rows}, err
}

func genArgDict(t *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
	keys, rows, err := argProduct(t, a)
	if err != nil {
		return nil, err
	}
	out := make([]starlark.Value, len(rows))
	for i, r := range rows {
		d := starlark.NewDict(len(keys))
		for j, k := range keys {
			if err := d.SetKey(k, r.(starlark.Tuple)[j]); err != nil {
				return nil, err
			}
		}
		out[i] = d
	}
	return &iterator{rest: out}, nil
}

func argProduct(t *starlark.Thread, a starlark.Tuple) (keys, rows []starlark.Value, err error) {
	if len(a) != 1 {
		return nil, nil, fmt.Errorf("this takes one dict of lists")
	}
	d, ok := a[0].(*starlark.Dict)
	if !ok {
		return nil, nil, fmt.Errorf("this takes a dict of lists, not %s", a[0].Type())
	}
	var seqs []starlark.Value
	for _, item := range d.Items() {
		keys, seqs = append(keys, item[0]), append(seqs, item[1])
	}
	rows, err = runProduct(t, seqs)
	return keys, rows, err
}

func cartesianProduct(t *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
	if len(a) != 1 {
		return nil, fmt.Errorf("this takes one sequence of sequences")
	}
	seqs, err := iterate(t, a[0])
	if err != nil {
		return nil, err
	}
	rows, err := runProduct(t, seqs)
	return &iterator{rest: rows}, err
}

// runProduct is the product of what a run can have: an accelerator that it has
// not is no element beside others.
func runProduct(t *starlark.Thread, seqs []starlark.Value) ([]starlark.Value, error) {
	d, _ := t.Local(drawKey).(*draw)
	for i, s := range seqs {
		vs, err := iterate(t, s)
		if err != nil {
			return nil, err
		}
		here := slices.DeleteFunc(slices.Clone(vs), func(v starlark.Value) bool {
			s, ok := v.(starlark.String)
			return ok && d.lacksDevice(string(s))
		})
		if len(here) > 0 {
			seqs[i] = starlark.Tuple(here)
		}
	}
	return cartesian(t, seqs)
}
