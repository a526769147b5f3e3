package nn

import (
	"fmt"
	"sort"
	"sync"

	"plumb/op"
)

// Table is a set of kinds of modules, found by public name.
type Table struct {
	defs   []*Def
	byName map[string]*Def
}

// NewTable returns a table of the definitions, checked for consistency.
func NewTable(defs ...*Def) (*Table, error) {
	t := &Table{defs: defs, byName: map[string]*Def{}}
	for _, d := range defs {
		if err := d.init(); err != nil {
			return nil, err
		}
		if d.Forward == nil || d.Doc == "" {
			return nil, fmt.Errorf("module %s has no Forward or no Doc", d.Name())
		}
		for _, n := range d.Names {
			if t.byName[n] != nil {
				return nil, fmt.Errorf("module %s is defined twice", n)
			}
			t.byName[n] = d
		}
	}
	return t, nil
}

// Modules returns the table of All.
var Modules = sync.OnceValue(func() *Table {
	t, err := NewTable(All()...)
	if err != nil {
		panic(err)
	}
	return t
})

// Defs returns the definitions in the order of the table.
func (t *Table) Defs() []*Def { return t.defs }

// Lookup returns the definition of a public name; nil when it is unknown.
func (t *Table) Lookup(name string) *Def { return t.byName[name] }

// Names returns every public name, sorted.
func (t *Table) Names() []string {
	var names []string
	for n := range t.byName {
		names = append(names, n)
	}
	sort.Strings(names)
	return names
}

// one returns a single result.
func one(v op.Value) []op.Value { return []op.Value{v} }
