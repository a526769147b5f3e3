package worker

import (
	"fmt"
	"testing"

	"plumb/backend"
	"plumb/program"
)

// TestNamesOfLongPrograms: a name stands for the same place in a program of any length.
func TestNamesOfLongPrograms(t *testing.T) {
	p := &program.Program{Inputs: []program.Input{{Name: "x"}, {Name: "y"}}}
	for len(p.Calls) < 2*long {
		e := encoder{job: &backend.Job{Program: p}, names: namesOf(p)}
		for i, name := range []program.Ref{"x", "y"} {
			if at, err := e.index(name); at != i || err != nil {
				t.Errorf("%d calls: %s is %d, %v", len(p.Calls), name, at, err)
			}
		}
		for i := range p.Calls {
			if at, err := e.index(program.Ref(p.Calls[i].Result)); at != 2+i || err != nil {
				t.Errorf("%d calls: %s is %d, %v", len(p.Calls), p.Calls[i].Result, at, err)
			}
		}
		if _, err := e.index("z"); err == nil {
			t.Error("z is a name")
		}
		p.Calls = append(p.Calls, program.Call{Result: fmt.Sprint("v", len(p.Calls))})
	}
}
