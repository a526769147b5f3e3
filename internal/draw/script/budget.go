package script

import (
	"fmt"

	"go.starlark.net/starlark"
)

// budgetKey is the thread-local name of what a draw, or the loading of a file,
// has allocated in strings, lists and arrays.
const budgetKey = "plumb.bytes"

// maxBytes bounds that: steps are counted, but one step may make a large value.
const maxBytes = 128 << 20

// spend counts what a value takes; nil when there is no thread to count for.
func spend(t *starlark.Thread, v starlark.Value) error {
	if t == nil {
		return nil
	}
	n := 0
	switch v := v.(type) {
	case starlark.String:
		n = len(v)
	case *array:
		n = v.t.Len() * v.t.DType().Size()
	case *starlark.List, starlark.Tuple:
		n = 16 * starlark.Len(v)
	}
	if n < 1024 {
		return nil
	}
	spent, _ := t.Local(budgetKey).(int)
	if spent += n; spent > maxBytes {
		return fmt.Errorf("this takes more than %d MiB", maxBytes>>20)
	}
	t.SetLocal(budgetKey, spent)
	return nil
}
