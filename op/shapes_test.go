package op_test

import (
	"reflect"
	"testing"

	"plumb/op"
)

// TestListsOfShapes: int[][] parses, has defaults, takes lists of lists of ints however
// they are made, and refuses others by what they are.
func TestListsOfShapes(t *testing.T) {
	sig, err := op.ParseSig("f(int[][] shapes, int[][]? more=None, int[][] fixed=[[1, 2], []]) -> Tensor")
	if err != nil {
		t.Fatal(err)
	}
	if got := sig.Params[1].Type.String(); got != "int[][]?" {
		t.Errorf("the type is %s", got)
	}
	for _, given := range []any{[][]int{{3}, {}, {4, 5}}, []any{[]int{3}, []any{}, []any{int64(4), 5}}} {
		a, err := sig.Bind([]any{given}, nil, false)
		if err != nil {
			t.Fatal(err)
		}
		if got := a.Shapes("shapes"); !reflect.DeepEqual(got, [][]int{{3}, {}, {4, 5}}) {
			t.Errorf("%v is bound as %v", given, got)
		}
		if got := a.Shapes("fixed"); a.Has(op.ShapesArg("more")) || !reflect.DeepEqual(got, [][]int{{1, 2}, {}}) {
			t.Errorf("the defaults are %v, %v", a.Any(op.ShapesArg("more")), got)
		}
	}
	for _, c := range []struct {
		given any
		want  string
	}{
		{[]any{[]int{1}, "two"}, "f: argument 'shapes' must be int[][], but element 1 is str"},
		{[]any{int64(1), int64(2)}, "f: argument 'shapes' must be int[][], but element 0 is int"},
		{int64(1), "f: argument 'shapes' must be int[][], not int"},
		{[]any{[]any{1.5}}, "f: argument 'shapes' must be int[][], but element 0 is list of float"},
		{[]any{nil}, "f: argument 'shapes' must be int[][], but element 0 is None"},
	} {
		if _, err := sig.Bind([]any{c.given}, nil, false); err == nil || err.Error() != c.want {
			t.Errorf("%v: %v, want %s", c.given, err, c.want)
		}
	}
	for _, text := range []string{"f(int[][][] x) -> Tensor", "f(int[2][] x) -> Tensor", "f(str[][] x) -> Tensor"} {
		if _, err := op.ParseSig(text); err == nil {
			t.Errorf("%s parses", text)
		}
	}
}
