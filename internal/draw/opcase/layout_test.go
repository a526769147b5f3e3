package opcase_test

import (
	"errors"
	"slices"
	"testing"

	"plumb/internal/draw/choice"
	"plumb/internal/draw/opcase"
	"plumb/ops"
	"plumb/program"
	"plumb/tensor"
)

// has reports whether an input lies as the layout says.
func has(in *program.Input, l opcase.Layout) bool {
	strides := in.Strides
	if strides == nil {
		strides = tensor.ContiguousStrides(in.Shape)
	}
	switch l {
	case opcase.Contiguous:
		return tensor.Contiguous.Matches(in.Shape, strides)
	case opcase.ChannelsLast:
		return tensor.ChannelsLast.Matches(in.Shape, strides) && !tensor.Contiguous.Matches(in.Shape, strides)
	case opcase.Permuted:
		return !tensor.Contiguous.Matches(in.Shape, strides) && tensor.Extent(in.Shape, strides) == tensor.NumElements(in.Shape)
	case opcase.Gapped:
		return tensor.Extent(in.Shape, strides) > tensor.NumElements(in.Shape)
	case opcase.ZeroDim:
		return len(in.Shape) == 0
	case opcase.ZeroSize:
		return slices.Contains(in.Shape, 0)
	}
	return false
}

// TestArrangedGivesWhatIsAsked: of every operator, a call has an input of the
// dtype and one in the layout, is a valid program and the same every time.
func TestArrangedGivesWhatIsAsked(t *testing.T) {
	table := ops.Table()
	for _, d := range table.Defs() {
		if len(d.Names) == 0 || d.Sample == nil {
			continue
		}
		drawer := opcase.Drawer{Table: table, Def: d}
		for _, dt := range []tensor.DType{tensor.F32, tensor.C128, tensor.I64} {
			for _, l := range opcase.Layouts {
				p, err := drawer.Arranged(choice.New(7), dt, l)
				if impossible := (*opcase.ImpossibleError)(nil); errors.As(err, &impossible) && impossible.Reason != "" {
					continue
				}
				if err != nil {
					t.Errorf("%s %s %s: %v", d.ID(), dt, l, err)
					continue
				}
				typed := func(in program.Input) bool { return in.DType == dt }
				laid := func(in program.Input) bool { return has(&in, l) }
				if len(p.Inputs) > 0 && (!slices.ContainsFunc(p.Inputs, typed) || !slices.ContainsFunc(p.Inputs, laid)) {
					t.Errorf("%s %s %s: no input is so in\n%s", d.ID(), dt, l, p)
				}
				if again, err := drawer.Arranged(choice.New(7), dt, l); err != nil || again.ID() != p.ID() {
					t.Errorf("%s %s %s: the same source gives another call", d.ID(), dt, l)
				}
			}
		}
	}
}

// TestEveryLayoutIsReached: where Sample gives it or shapes have to change for it.
func TestEveryLayoutIsReached(t *testing.T) {
	table := ops.Table()
	for id, refused := range map[string]map[opcase.Layout]bool{
		"add":     {},
		"softmax": {},
		"conv2d":  {opcase.ZeroDim: true},
		"matmul":  {opcase.ZeroDim: true},
	} {
		drawer := opcase.Drawer{Table: table, Def: table.Def(id)}
		for _, l := range opcase.Layouts {
			p, err := drawer.Arranged(choice.New(3), tensor.F32, l)
			if err != nil {
				t.Errorf("%s %s: %v", id, l, err)
				continue
			}
			if taken := len(p.Backward) > 0; taken == refused[l] {
				t.Errorf("%s %s: the operator takes it: %v\n%s", id, l, taken, p)
			}
		}
	}
}

// TestEveryOperatorIsDrawn: compositions too, which have no kernel of their own.
func TestEveryOperatorIsDrawn(t *testing.T) {
	table := ops.Table()
	for _, d := range table.Defs() {
		drawer := opcase.Drawer{Table: table, Def: d}
		if len(d.Names) > 0 && d.Sample != nil && len(drawer.DTypes(tensor.F32, tensor.C64, tensor.I64, tensor.Bool)) == 0 {
			t.Errorf("%s is legal in no dtype", d.ID())
		}
	}
}

// TestStepsHaveTheirKernels: a composition is legal in a dtype that each of its steps has a
// kernel for.
func TestStepsHaveTheirKernels(t *testing.T) {
	table := ops.Table()
	drawer := opcase.Drawer{Table: table, Def: table.Def("softmin")}
	if got := drawer.DTypes(tensor.I64, tensor.F32, tensor.C64); !slices.Equal(got, []tensor.DType{tensor.F32}) {
		t.Errorf("softmin is legal in %v", got)
	}
}
