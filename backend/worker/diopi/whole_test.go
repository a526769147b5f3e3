package diopi

import (
	"strings"
	"testing"

	"plumb/backend"
	"plumb/program"
	"plumb/tensor"
)

// TestWholesTakeAnyKeywords: a file may ask for a function by what it does not take.
func TestWholesTakeAnyKeywords(t *testing.T) {
	var none program.List
	one := program.List{program.Tuple{tensor.F32, program.Tuple{int64(2)}}}
	for name, w := range wholes {
		for _, c := range []struct {
			kwargs []program.Kwarg
			says   string
		}{
			{[]program.Kwarg{{Name: outputs, Value: none}}, "no outputs are asked for"},
			{[]program.Kwarg{{Name: outputs, Value: int64(3)}}, "no outputs are asked for"},
			{[]program.Kwarg{{Name: "q", Value: program.Ref("x")}, {Name: outputs, Value: one}}, "x is no input"},
			{[]program.Kwarg{{Name: outputs, Value: one}}, ""},
			{[]program.Kwarg{{Name: "input", Value: "text"}, {Name: "q", Value: 2.5}, {Name: "params", Value: none}, {Name: outputs, Value: one}}, ""},
		} {
			call := &program.Call{Target: "CustomizedTest." + name, Kwargs: c.kwargs}
			b, err := w.bind(name, call, &backend.Job{Program: &program.Program{Calls: []program.Call{*call}}})
			if err == nil {
				_, err = b.call(&w.forward)
			}
			if c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
				t.Errorf("%s: %v, want %q", name, err, c.says)
			}
		}
	}
}
