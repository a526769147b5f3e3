package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Modes choose cases and change how a candidate runs them. The zero Modes
// leave every case as it is.
type Modes struct {
	// Functions are the names that run; none for all.
	Functions []string
	// Without are dtypes, by numpy's names: a case with an argument of one is
	// skipped (DIOPI's --filter_dtype).
	Without []DType
	// ChannelsLast lays out the image arguments of ChannelsLastFunctions with
	// their channels last. Such arguments of fewer than MinDim dimensions skip
	// the case; 0 means 3.
	ChannelsLast bool
	MinDim       int
	// FourBytes gives the arguments of Int32Functions int32 instead of int64.
	FourBytes bool
	// Model, where it has a name, leaves the functions that it calls.
	Model *Model
	// Device has the rules of a device config, which apply last; nil for none.
	Device *Device
}

// Model is a network by the operators that it is made of.
type Model struct {
	Name      string
	Functions []string
}

// relayout says which arguments of a function are images.
type relayout struct {
	spatial int // dimensions; 0 for as many as there are beside batch and channels
	args    []string
}

// images are the functions of the NHWC mode, after DIOPI's nhwc_op.
var images = map[string]relayout{
	"conv2d":              {2, []string{"input", "weight"}},
	"conv3d":              {3, []string{"input", "weight"}},
	"batch_norm":          {0, []string{"input"}},
	"adaptive_avg_pool2d": {2, []string{"input"}},
	"adaptive_max_pool2d": {2, []string{"input"}},
	"adaptive_avg_pool3d": {3, []string{"input"}},
	"adaptive_max_pool3d": {3, []string{"input"}},
	"avg_pool2d":          {2, []string{"input"}},
	"max_pool2d":          {2, []string{"input"}},
	"max_pool3d":          {3, []string{"input"}},
	"interpolate":         {0, []string{"input"}},
	"pad":                 {0, []string{"input"}},
	"roi_align":           {2, []string{"input"}},
}

// indices are the arguments that the four-bytes mode makes int32, after
// DIOPI's dtype_op.
var indices = map[string][]string{
	"cross_entropy": {"target"},
	"ctc_loss":      {"targets", "input_lengths", "target_lengths"},
	"embedding":     {"input"},
	"gather":        {"index"},
	"index":         {"idx1", "idx2", "idx3"},
	"index_fill":    {"index"},
	"index_put":     {"indices1", "indices2", "indices3"},
	"index_select":  {"index"},
	"nll_loss":      {"target"},
	"nll_loss_v2":   {"target"},
	"one_hot":       {"input"},
	"scatter":       {"index"},
}

// counted are the functions whose int64 results may be int32 in the four-bytes
// mode, after DIOPI's dtype_out_op.
var counted = []string{
	"max_pool1d", "max_pool2d", "max_pool3d", "adaptive_max_pool1d", "adaptive_max_pool2d", "adaptive_max_pool3d",
	"max", "min", "sort", "topk", "unique", "argmax", "one_hot",
}

// ChannelsLastFunctions are the functions that the NHWC mode changes, sorted.
func ChannelsLastFunctions() []string { return sortedKeys(images) }

// Int32Functions are the functions whose arguments the four-bytes mode changes,
// sorted.
func Int32Functions() []string { return sortedKeys(indices) }

func sortedKeys[V any](m map[string]V) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

// Check returns an error where the modes name what the config does not have.
func (m *Modes) Check(c *Config) error {
	for _, d := range m.Without {
		if !slices.Contains(dtypes, string(d)) {
			return fmt.Errorf("no dtype is named %s; want one of %s", d, strings.Join(dtypes, " "))
		}
	}
	var known []string
	for _, e := range c.entries {
		known = append(known, e.functions...)
	}
	for _, f := range m.Functions {
		if slices.Contains(known, f) {
			continue
		}
		if meant := nearest(f, known); meant != "" {
			return fmt.Errorf("the config has no function %s; is %s meant?", f, meant)
		}
		return fmt.Errorf("the config has no function %s; plumb conform list shows those it has", f)
	}
	return nil
}

// Takes says whether the case is among those that were asked for, by function
// and model.
func (m *Modes) Takes(c *Case) bool {
	if len(m.Functions) > 0 && !slices.Contains(m.Functions, c.Function) {
		return false
	}
	return m.Model == nil || slices.Contains(m.Model.Functions, c.Function)
}

// Apply returns the case as a candidate is to run it, or the reason why it
// does not. The case itself is not changed.
func (m *Modes) Apply(c *Case) (*Case, string) {
	for _, a := range c.arguments() {
		if d, ok := a.Get("dtype").(DType); ok && slices.Contains(m.Without, d) {
			return c, fmt.Sprintf("--filter-dtype leaves out %s", d)
		}
	}
	if m.ChannelsLast {
		var skip string
		if c, skip = c.channelsLast(cmp.Or(m.MinDim, 3)); skip != "" {
			return c, skip
		}
	}
	if m.FourBytes {
		c = c.fourBytes()
	}
	if m.Device == nil {
		return c, ""
	}
	return m.Device.Apply(c)
}

// channelsLast marks the images of the case; least is the number of dimensions
// below which it is skipped.
func (c *Case) channelsLast(least int) (*Case, string) {
	r, ok := images[c.Function]
	if !ok {
		return c, ""
	}
	out := *c
	out.orders = map[string][]int{}
	for _, a := range c.arguments() {
		name, _ := a.Get("ins").(String)
		shape, ok := Items(a.Get("shape"))
		if !ok || !slices.Contains(r.args, string(name)) {
			continue
		}
		n := len(shape)
		if n < least || n > 5 {
			return c, fmt.Sprintf("--nhwc takes %d to 5 dimensions, and %s has %d", least, name, n)
		}
		if order := channelsLastOrder(n, r.spatial); order != nil {
			out.orders[string(name)] = order
		}
	}
	return &out, ""
}

// channelsLastOrder is the order in memory, outermost first, of n dimensions
// with the channels last; nil where there is no such layout. The channels come
// before the spatial dimensions, of which there are all but two for 0.
func channelsLastOrder(n, spatial int) []int {
	if spatial == 0 {
		spatial = n - 2
	}
	channel := n - spatial - 1
	if channel != 0 && channel != 1 || spatial < 1 {
		return nil
	}
	order := make([]int, 0, n)
	for i := range n {
		if i != channel {
			order = append(order, i)
		}
	}
	return append(order, channel)
}

// fourBytes is the case with int32 for its int64 indices.
func (c *Case) fourBytes() *Case {
	out := *c
	out.narrow = indices[c.Function]
	out.narrowResults = slices.Contains(counted, c.Function)
	return &out
}

// Order returns the order in memory of an argument's dimensions, outermost
// first, that the NHWC mode asks for; nil for the case's own layout.
func (c *Case) Order(arg string) []int { return c.orders[arg] }

// Narrow says that the four-bytes mode gives an argument int32 where the
// config says int64.
func (c *Case) Narrow(arg string) bool { return slices.Contains(c.narrow, arg) }

// NarrowResults says that int64 results may be int32: the four-bytes mode.
func (c *Case) NarrowResults() bool { return c.narrowResults }
