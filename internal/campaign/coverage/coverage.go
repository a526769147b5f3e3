// Package coverage holds the matrix of what was compared: operator × direction
// × dtype × layout. A run fills it in, a file keeps it, and Text prints it.
package coverage

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
)

// State is the symbol of a cell.
type State byte

// The states.
const (
	Empty      State = ' ' // not filled in
	Aligned    State = '+' // agrees with the reference; second order: with difference quotients
	Misaligned State = '!' // a finding
	Known      State = 'k' // a fault of the reference that is proved
	Refused    State = 'x' // both sides refuse; the reason is the reference's
	Beyond     State = 'u' // the reference does not have it
	None       State = '-' // no gradient by definition
	Impossible State = '.' // no such call
	Unmeasured State = '~' // not measured here
)

// rank orders the states: among the cases of a cell the earliest wins.
var rank = []State{Misaligned, Known, Aligned, Beyond, Refused, Unmeasured, None, Impossible, Empty}

// Legend explains the symbols.
const Legend = `+ aligned: compared with the reference; second order: the gradient's gradient agrees with
  difference quotients (plumb ops gradcheck), as the reference cannot call gradients by name
! misaligned   k a known fault of the reference   x both sides refuse such calls
u the reference has no such operator or dtype   - no gradient by definition
. no such call can be written   ~ not measured   (blank: the run did not reach it)
`

// Direction is what is compared.
type Direction string

// The directions.
const (
	Forward  Direction = "forward"
	Backward Direction = "backward"
	Second   Direction = "second"
)

// Directions lists them in order.
var Directions = []Direction{Forward, Backward, Second}

// Matrix is the coverage of a set of operators.
type Matrix struct {
	Reference string   `json:"reference"` // with its version
	Date      string   `json:"date,omitempty"`
	Seed      uint64   `json:"seed"`
	Cases     int      `json:"cases"` // of each cell
	DTypes    []string `json:"dtypes"`
	Layouts   []string `json:"layouts"` // of each cell's symbols, in order
	Ops       []*Op    `json:"ops"`
}

// Op is an operator's part of the matrix.
type Op struct {
	ID string `json:"op"`
	// Cells are the symbols, one per layout, by direction and dtype.
	Cells map[Direction]map[string]string `json:"cells"`
	// Reasons says of cells, as "forward float16 0-d", why they are not aligned.
	Reasons map[string][]string `json:"reasons,omitempty"`
}

// Add returns a new operator of the matrix with empty cells.
func (m *Matrix) Add(id string) *Op {
	o := &Op{ID: id, Cells: map[Direction]map[string]string{}, Reasons: map[string][]string{}}
	for _, dir := range Directions {
		o.Cells[dir] = map[string]string{}
		for _, dt := range m.DTypes {
			o.Cells[dir][dt] = strings.Repeat(string(rune(Empty)), len(m.Layouts))
		}
	}
	m.Ops = append(m.Ops, o)
	return o
}

// Op returns an operator of the matrix by id, or nil.
func (m *Matrix) Op(id string) *Op {
	i := slices.IndexFunc(m.Ops, func(o *Op) bool { return o.ID == id })
	if i < 0 {
		return nil
	}
	return m.Ops[i]
}

// Set adds a case to a cell. Any state but Aligned has a reason.
func (m *Matrix) Set(o *Op, dir Direction, dtype, layout string, s State, reason string) {
	at := slices.Index(m.Layouts, layout)
	cells := []byte(o.Cells[dir][dtype])
	if slices.Index(rank, s) >= slices.Index(rank, State(cells[at])) {
		return
	}
	cells[at] = byte(s)
	o.Cells[dir][dtype] = string(cells)
	cell := strings.Join([]string{string(dir), dtype, layout}, " ")
	for text, of := range o.Reasons {
		o.Reasons[text] = slices.DeleteFunc(of, func(c string) bool { return c == cell })
		if len(o.Reasons[text]) == 0 {
			delete(o.Reasons, text)
		}
	}
	if s != Aligned {
		o.Reasons[reason] = append(o.Reasons[reason], cell)
	}
}

// Reason returns why a cell is not aligned; "" when it is, or when it is empty.
func (o *Op) Reason(dir Direction, dtype, layout string) string {
	cell := strings.Join([]string{string(dir), dtype, layout}, " ")
	for text, of := range o.Reasons {
		if slices.Contains(of, cell) {
			return text
		}
	}
	return ""
}

// Unexplained returns the cells that are empty, or not aligned without a reason.
func (m *Matrix) Unexplained() []string {
	var out []string
	for _, o := range m.Ops {
		for _, dir := range Directions {
			for _, dt := range m.DTypes {
				for i, l := range m.Layouts {
					if s := State(o.Cells[dir][dt][i]); s == Empty || s != Aligned && o.Reason(dir, dt, l) == "" {
						out = append(out, fmt.Sprintf("%s %s %s %s", o.ID, dir, dt, l))
					}
				}
			}
		}
	}
	return out
}

// Counts returns how many cells of a direction have each state.
func (m *Matrix) Counts(dir Direction) map[State]int {
	n := map[State]int{}
	for _, o := range m.Ops {
		for _, cells := range o.Cells[dir] {
			for i := range len(cells) {
				n[State(cells[i])]++
			}
		}
	}
	return n
}

// Write writes the matrix as JSON.
func (m *Matrix) Write(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", " ")
	return enc.Encode(m)
}

// Read reads what Write wrote. The error says what is missing.
func Read(r io.Reader) (*Matrix, error) {
	var m Matrix
	if err := json.NewDecoder(r).Decode(&m); err != nil {
		return nil, fmt.Errorf("no coverage file: %w", err)
	}
	if len(m.Layouts) == 0 || len(m.DTypes) == 0 {
		return nil, fmt.Errorf("no coverage file: it names no layouts and dtypes")
	}
	for _, o := range m.Ops {
		for _, dir := range Directions {
			for _, dt := range m.DTypes {
				if len(o.Cells[dir][dt]) != len(m.Layouts) {
					return nil, fmt.Errorf("no coverage file: %s has %q for %s %s, want a symbol for each of %d layouts", o.ID, o.Cells[dir][dt], dir, dt, len(m.Layouts))
				}
			}
		}
	}
	return &m, nil
}
