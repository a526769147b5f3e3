// Package mutants plants faults: each mutant is the table of all operators and
// modules with one literal changed, a small wrapper around its true entry. A
// tester is worth what it finds of them.
package mutants

import (
	"fmt"
	"slices"
	"strings"

	"plumb/nn"
	"plumb/op"
	"plumb/ops"
	"plumb/program"
	"plumb/tensor"
)

// Kind says what sort of fault a mutant is.
type Kind string

// The kinds. Frameworks have had faults of each.
const (
	Geometry  Kind = "geometry"  // padding, dilation, stride, ceil_mode: off by one or ignored
	Attribute Kind = "attribute" // an argument is ignored or taken for another
	Axis      Kind = "axis"
	Promotion Kind = "promotion" // the dtype of a result, or of what is computed in between
	NonFinite Kind = "nonfinite" // NaN and infinities dropped or made
	ZeroSign  Kind = "zero sign"
	Gradient  Kind = "gradient" // swapped, dropped, of another formula
	Broadcast Kind = "broadcast"
	Ties      Kind = "ties"
	Rounding  Kind = "rounding"
	Overflow  Kind = "overflow"
	Precision Kind = "precision" // terms lost, accumulated in a narrow dtype
	Stale     Kind = "stale"     // memory that is not written, or kept
	Aliasing  Kind = "aliasing"  // an input is written, a copy is none, a view is a copy
	Size      Kind = "size"      // wrong at 0 or 1 elements, for scalars, in the tail of a loop
	Layout    Kind = "layout"    // wrong for transposed, strided, channels-last inputs
	Checks    Kind = "checks"    // refuses what is legal, accepts what is not
	State     Kind = "state"     // of a module: missing, not updated, of the wrong mode
	Wiring    Kind = "wiring"    // a module passes its operator other things
)

// Mutant is one planted fault.
type Mutant struct {
	Name string // says what is wrong, in one line
	In   string // the id of the operator, or the public name of the module
	Kind Kind
	// Op plants it in the literal of an operator, Module in that of a module;
	// exactly one is set.
	Op     func(d *op.Def)
	Module func(d *nn.Def)
	// Minimal is the smallest program that shows it, as a person would write it.
	Minimal Minimal
}

// Minimal describes a program: how many calls it makes, the constructor of a
// module among them, and how many elements its largest input has.
type Minimal struct{ Calls, Elements int }

// Of describes a program.
func Of(p *program.Program) Minimal {
	m := Minimal{Calls: len(p.Calls)}
	for i := range p.Inputs {
		m.Elements = max(m.Elements, tensor.NumElements(p.Inputs[i].Shape))
	}
	return m
}

// Reaches reports whether a program of this size is no larger than want.
func (m Minimal) Reaches(want Minimal) bool {
	return m.Calls <= want.Calls && m.Elements <= want.Elements
}

// All returns every mutant, by family.
func All() []Mutant {
	return slices.Concat(pointMutants, binaryMutants, reduceMutants, shapeMutants, indexMutants, orderMutants,
		matrixMutants, windowMutants, normMutants, lossMutants, moduleMutants)
}

// Tables returns the operators and modules with the fault planted. They share
// nothing that is changed with other tables.
func (m *Mutant) Tables() (*op.Table, *nn.Table, error) {
	return Plant(func(defs map[string]*op.Def, modules map[string]*nn.Def) error {
		d, module := defs[m.In], modules[m.In]
		switch {
		case m.Op != nil && d != nil:
			m.Op(d)
		case m.Module != nil && module != nil:
			m.Module(module)
		default:
			return fmt.Errorf("mutant %q: the tables have no %s", m.Name, m.In)
		}
		return nil
	})
}

// Plant returns the tables of all operators and modules with changes. Change
// is given copies of the literals, operators by id and modules by their first
// public name.
func Plant(change func(defs map[string]*op.Def, modules map[string]*nn.Def) error) (*op.Table, *nn.Table, error) {
	defs, byID := copyDefs()
	modules, byName := copyModules()
	if err := change(byID, byName); err != nil {
		return nil, nil, err
	}
	table, err := op.NewTable(defs...)
	if err != nil {
		return nil, nil, err
	}
	moduleTable, err := nn.NewTable(modules...)
	return table, moduleTable, err
}

// copyDefs copies the literals of the table: making a table changes them.
func copyDefs() (defs []*op.Def, byID map[string]*op.Def) {
	byID = map[string]*op.Def{}
	for _, d := range ops.Table().Defs() {
		c := *d
		c.Kernels = slices.Clone(d.Kernels)
		id, _, _ := strings.Cut(d.Sig, "(")
		byID[id] = &c
		defs = append(defs, &c)
	}
	return defs, byID
}

func copyModules() (defs []*nn.Def, byName map[string]*nn.Def) {
	byName = map[string]*nn.Def{}
	for _, d := range nn.Modules().Defs() {
		c := *d
		byName[d.Name()] = &c
		defs = append(defs, &c)
	}
	return defs, byName
}
