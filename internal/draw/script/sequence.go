package script

import (
	"fmt"
	"iter"

	"go.starlark.net/starlark"
)

func init() {
	predeclared[fnSequence] = builtin(fnSequence, makeSequence)
	predeclared[fnYield] = builtin(fnYield, yield)
	predeclared[fnYieldFrom] = builtin(fnYieldFrom, yieldFrom)
}

// yieldKey is the thread-local name of what takes the values that a function yields.
const yieldKey = "plumb.yield"

// nestedKey is the thread-local name of how many sequences are being made
// inside one another.
const nestedKey = "plumb.nested"

// maxNested bounds that.
const maxNested = 100

// yielded is what a sequence gives next.
type yielded struct {
	value starlark.Value
	err   error
}

// makeSequence gives an iterator over what a body yields; the body runs as far
// as it is asked to.
func makeSequence(t *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
	nested, _ := t.Local(nestedKey).(int)
	if nested >= maxNested {
		return nil, fmt.Errorf("maximum recursion depth exceeded")
	}
	within := &starlark.Thread{Name: t.Name, Print: t.Print}
	for _, key := range []string{drawKey, loadKey, budgetKey, bodiesKey} {
		within.SetLocal(key, t.Local(key))
	}
	within.SetLocal(nestedKey, nested+1)
	next, stop := iter.Pull(func(take func(yielded) bool) {
		within.SetLocal(yieldKey, take)
		if _, err := starlark.Call(within, a[0], nil, nil); err != nil {
			take(yielded{err: err})
		}
	})
	if d, ok := t.Local(drawKey).(*draw); ok {
		d.stops = append(d.stops, stop)
	}
	return &iterator{more: func() (starlark.Value, error) {
		before := within.ExecutionSteps()
		within.SetMaxExecutionSteps(before + maxSteps - min(t.ExecutionSteps(), maxSteps-1))
		y, _ := next()
		t.Steps += within.ExecutionSteps() - before
		return y.value, y.err
	}}, nil
}

func yield(t *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
	take, ok := t.Local(yieldKey).(func(yielded) bool)
	if !ok {
		return nil, fmt.Errorf("yield belongs into a function")
	}
	if !take(yielded{value: a[0]}) {
		return nil, fmt.Errorf("nobody asks for more")
	}
	return starlark.None, nil
}

func yieldFrom(t *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
	vs, err := iterate(t, a[0])
	for _, v := range vs {
		if err == nil {
			_, err = yield(t, starlark.Tuple{v})
		}
	}
	return starlark.None, err
}
