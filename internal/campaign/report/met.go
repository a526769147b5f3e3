package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"plumb/backend"
	"plumb/internal/judge/verdict"
	"plumb/program"
	"plumb/tensor"
)

// Cell is an operator with the dtype and the layout of an input of its program.
type Cell struct{ Operator, DType, Layout string }

// Cells are those that a program meets.
func Cells(p *program.Program) map[Cell]bool {
	out := map[Cell]bool{}
	for _, operator := range Operators(p) {
		for k := range p.Inputs {
			out[Cell{operator, p.Inputs[k].DType.String(), layoutOf(&p.Inputs[k])}] = true
		}
		if len(p.Inputs) == 0 {
			out[Cell{operator, p.DType.String(), ""}] = true
		}
	}
	return out
}

// Operators are those that a program calls, as functions, methods or modules, each
// once.
func Operators(p *program.Program) []string {
	var out []string
	for i := range p.Calls {
		target := p.Calls[i].Target
		if strings.HasPrefix(target, "Module.") { // of a module that another call made
			continue
		}
		if name := verdict.OperatorName(target); !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// layoutOf names how an input lies in memory.
func layoutOf(in *program.Input) string {
	switch {
	case in.Strides == nil || tensor.Contiguous.Matches(in.Shape, in.Strides):
		return "contiguous"
	case tensor.ChannelsLast.Matches(in.Shape, in.Strides):
		return "channels_last"
	}
	return "strided"
}

// Met counts what cases met; its zero value has met nothing.
type Met struct {
	cells map[Cell]map[string]map[verdict.Word]int // by mode
	last  *program.Program
	of    map[Cell]bool // the last program's, which has a record per candidate and mode
}

// Add counts a record.
func (m *Met) Add(r *verdict.Record) {
	if r.Program == nil {
		return
	}
	if m.last != r.Program {
		m.last, m.of = r.Program, Cells(r.Program)
	}
	if m.cells == nil {
		m.cells = map[Cell]map[string]map[verdict.Word]int{}
	}
	modes := r.Modes
	if len(modes) == 0 {
		modes = []string{backend.Eager}
	}
	for c := range m.of {
		if m.cells[c] == nil {
			m.cells[c] = map[string]map[verdict.Word]int{}
		}
		for _, mode := range modes {
			if m.cells[c][mode] == nil {
				m.cells[c][mode] = map[verdict.Word]int{}
			}
			m.cells[c][mode][r.Verdict.Word]++
		}
	}
}

// MetCell is a cell in a mode, with the verdicts of the cases that met it.
type MetCell struct {
	Cell
	Mode  string
	Words map[verdict.Word]int
}

// Cells returns all that was met, in the order of their names.
func (m *Met) Cells() []MetCell {
	var out []MetCell
	for c, modes := range m.cells {
		for mode, words := range modes {
			out = append(out, MetCell{c, mode, words})
		}
	}
	key := func(c MetCell) string { return strings.Join([]string{c.Operator, c.DType, c.Layout, c.Mode}, "\x00") }
	slices.SortFunc(out, func(a, b MetCell) int { return strings.Compare(key(a), key(b)) })
	return out
}

// String says how much was met, in words.
func (m *Met) String() string {
	if len(m.cells) == 0 {
		return ""
	}
	var names [4]map[string]bool
	for i := range names {
		names[i] = map[string]bool{}
	}
	cells := 0
	for c, modes := range m.cells {
		for mode := range modes {
			for i, name := range []string{c.Operator, c.DType, c.Layout, mode} {
				names[i][name] = name != ""
			}
			cells++
		}
	}
	return fmt.Sprintf("%s, %s, layouts %s, modes %s: %s", plural(len(names[0]), "operator"), plural(len(names[1]), "dtype"),
		list(names[2]), list(names[3]), plural(cells, "cell"))
}

func list(names map[string]bool) string {
	return strings.Join(slices.DeleteFunc(slices.Sorted(maps.Keys(names)), func(s string) bool { return s == "" }), ", ")
}
