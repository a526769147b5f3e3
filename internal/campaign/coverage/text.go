package coverage

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// Text prints the matrix: of every operator a line per direction, of every
// dtype the symbols of the layouts, and with reasons what each stands for.
func (m *Matrix) Text(w io.Writer, reasons bool) {
	fmt.Fprint(w, Legend)
	fmt.Fprintf(w, "the symbols of a dtype stand for: %s\n%d cases a cell against %s%s, seed %d\n\n", strings.Join(m.Layouts, ", "), m.Cases, m.Reference, m.on(), m.Seed)
	width := max(len(m.Layouts), 8)
	m.heading(w, width)
	for _, o := range m.Ops {
		for i, dir := range Directions {
			name := ""
			if i == 0 {
				name = o.ID
			}
			fmt.Fprintf(w, "%-28s %-8s", name, dir)
			for _, dt := range m.DTypes {
				fmt.Fprintf(w, " %-*s", width, o.Cells[dir][dt])
			}
			fmt.Fprintln(w)
		}
		if reasons {
			o.reasons(w)
		}
	}
	fmt.Fprintln(w)
	m.totals(w)
}

func (m *Matrix) on() string {
	if m.Date == "" {
		return ""
	}
	return " on " + m.Date
}

func (m *Matrix) heading(w io.Writer, width int) {
	fmt.Fprintf(w, "%-28s %-8s", "", "")
	for _, dt := range m.DTypes {
		fmt.Fprintf(w, " %-*s", width, short(dt))
	}
	fmt.Fprintln(w)
}

// short fits a dtype's name into a column.
func short(dtype string) string {
	return strings.NewReplacer("bfloat", "bf", "complex", "c", "float", "f", "uint", "u", "int", "i").Replace(dtype)
}

func (o *Op) reasons(w io.Writer) {
	for _, text := range slices.Sorted(maps.Keys(o.Reasons)) {
		fmt.Fprintf(w, "    %s\n", text)
		for _, group := range o.groups(o.Reasons[text]) {
			fmt.Fprintf(w, "      %s\n", group)
		}
	}
}

// groups joins cells that differ in their layout only.
func (o *Op) groups(cells []string) []string {
	var order []string
	layouts := map[string][]string{}
	for _, c := range cells {
		i := strings.LastIndexByte(c, ' ')
		if layouts[c[:i]] == nil {
			order = append(order, c[:i])
		}
		layouts[c[:i]] = append(layouts[c[:i]], c[i+1:])
	}
	for i, c := range order {
		order[i] = c + ": " + strings.Join(layouts[c], ", ")
	}
	return order
}

func (m *Matrix) totals(w io.Writer) {
	for _, dir := range Directions {
		n := m.Counts(dir)
		fmt.Fprintf(w, "%-8s", dir)
		for _, s := range rank {
			if n[s] > 0 {
				fmt.Fprintf(w, "  %d %q", n[s], string(rune(s)))
			}
		}
		fmt.Fprintln(w)
	}
}
