package optim

import (
	"maps"
	"slices"

	"plumb/op"
)

// Group is a group of parameters with options of its own, under PyTorch's
// names: float64, bool, []float64, or nil for None. Schedules add theirs, such
// as "initial_lr".
type Group struct {
	Params  []*Param
	options map[string]any
	order   []string
}

// Get returns an option; nil for None and for one that the group lacks.
func (g *Group) Get(name string) any { return g.options[name] }

// Has reports whether the group has an option, be it None.
func (g *Group) Has(name string) bool { _, ok := g.options[name]; return ok }

// Set sets or adds an option.
func (g *Group) Set(name string, v any) {
	if g.options == nil {
		g.options = map[string]any{}
	}
	if !g.Has(name) {
		g.order = append(g.order, name)
	}
	g.options[name] = v
}

// Names lists the options in the order in which they were added.
func (g *Group) Names() []string { return slices.Clone(g.order) }

// Float returns a number; 0 when there is none.
func (g *Group) Float(name string) float64 { v, _ := g.options[name].(float64); return v }

// Bool returns a flag; false when there is none.
func (g *Group) Bool(name string) bool { v, _ := g.options[name].(bool); return v }

// Floats returns a list of numbers, such as betas; nil when there is none.
func (g *Group) Floats(name string) []float64 { v, _ := g.options[name].([]float64); return v }

// LR returns the learning rate.
func (g *Group) LR() float64 { return g.Float("lr") }

// SetLR sets the learning rate.
func (g *Group) SetLR(lr float64) { g.Set("lr", lr) }

func (g *Group) clone() *Group {
	return &Group{Params: g.Params, options: maps.Clone(g.options), order: slices.Clone(g.order)}
}

// with returns options as keyword arguments of an update.
func (g *Group) with(names ...string) []any {
	kws := make([]any, len(names))
	for i, n := range names {
		kws[i] = op.Kw(n, g.options[n])
	}
	return kws
}
