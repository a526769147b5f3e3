package global

import (
	"fmt"
	"strings"

	"plumb/graph"
)

// String returns the plan as text: a line for each action, values as %id with
// their sbp, what boxings move, and at the end what all of it takes.
func (p *Plan) String() string {
	var b strings.Builder
	for _, a := range p.Actions {
		fmt.Fprintln(&b, p.line(a))
	}
	var out []string
	for _, h := range p.Outputs {
		out = append(out, h.String())
	}
	fmt.Fprintf(&b, "return %s\n", strings.Join(out, ", "))
	fmt.Fprintf(&b, "%s move, %s; the first rank holds at most %d bytes\n", bytesText(p.Traffic()), p.split(), p.Memory())
	return b.String()
}

// split says which dimension of the hierarchy carries how much.
func (p *Plan) split() string {
	var parts []string
	for k, n := range p.Traffic() {
		parts = append(parts, fmt.Sprintf("%d between the %d ranks of dimension %d", n, p.Placement.Hierarchy[k], k))
	}
	return strings.Join(parts, ", ")
}

func bytesText(t Traffic) string { return fmt.Sprintf("%d bytes", t.total()) }

// String returns the value's number and its sbp.
func (h *Held) String() string { return fmt.Sprintf("%%%d:%s", h.Value.ID(), h.SBP) }

func (p *Plan) line(a *Action) string {
	if a.boxes() {
		t := p.moved(a)
		return fmt.Sprintf("%s = box(%s)  # %s", a.To[0], a.From[0], bytesText(t))
	}
	var to, from []string
	for _, h := range a.To {
		to = append(to, fmt.Sprintf("%s %s", h, describe(h.Value)))
	}
	for _, h := range a.From {
		from = append(from, h.String())
	}
	text := strings.Join(to, ", ") + " = "
	switch a.Node.Kind {
	case graph.Input:
		return text + "input " + a.Node.Name
	case graph.Apply:
		text += a.Node.Call.Def.ID()
	default:
		text += string(a.Node.Kind)
	}
	text += "(" + strings.Join(from, ", ") + ")"
	if a.Gathered != "" {
		text += "  # all ranks compute the whole: " + a.Gathered
	}
	return text
}

func describe(v *graph.Value) string {
	return fmt.Sprintf("%s%v", v.DType(), v.Shape())
}
