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

// relayout says which arguments of a function are images, and of how many
// spatial dimensions: 0 for any.
type relayout struct {
	spatial int
	args    []string
}

// images are the functions of the NHWC mode, as in DIOPI's nhwc_op.
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
	"roi_align":           {0, []string{"input"}},
}

// indices are the arguments that the four-bytes mode makes int32, as in DIOPI's
// dtype_op.
var indices = map[string][]string{
	"binary_cross_entropy_with_logits": {"pos_weight"},
	"cross_entropy":                    {"target"},
	"ctc_loss":                         {"targets", "input_lengths", "target_lengths"},
	"embedding":                        {"input"},
	"gather":                           {"index"},
	"index":                            {"idx1", "idx2"},
	"index_fill":                       {"index"},
	"index_put":                        {"indices1", "indices2"},
	"index_select":                     {"index"},
	"nll_loss":                         {"target"},
	"one_hot":                          {"input"},
	"scatter":                          {"index"},
}

// counted are the results that may be int32 in the four-bytes mode, by their
// position among the results of the function: those that DIOPI's functions make
// int32, which are more than its dtype_out_op lists.
var counted = map[string]int{
	"max_pool1d": 1, "max_pool2d": 1, "max_pool3d": 1,
	"adaptive_max_pool1d": 1, "adaptive_max_pool2d": 1, "adaptive_max_pool3d": 1,
	"max": 1, "min": 1, "sort": 1, "topk": 1, "unique": 1,
	"argmax": 0, "argmin": 0, "argsort": 0, "one_hot": 0, "arange": 0, "randperm": 0,
}

// ChannelsLastFunctions are the functions that the NHWC mode changes, sorted.
func ChannelsLastFunctions() []string { return sortedKeys(images) }

// Int32Functions are the functions whose arguments the four-bytes mode changes,
// sorted.
func Int32Functions() []string { return sortedKeys(indices) }

// Int32Results are the functions of which the four-bytes mode takes an int32
// result for an int64 one, sorted.
func Int32Results() []string { return sortedKeys(counted) }

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
func (m *Modes) Takes(c *Case) bool { return m.unasked(c) == "" }

// unasked says why the case is not among those; empty where it is.
func (m *Modes) unasked(c *Case) string {
	if len(m.Functions) > 0 && !slices.Contains(m.Functions, c.Function) {
		return "--fname does not name " + c.Function
	}
	if m.Model != nil && !slices.Contains(m.Model.Functions, c.Function) {
		return m.Model.Name + " does not call " + c.Function
	}
	return ""
}

// LeavesOut says why the modes leave the case out; empty where they do not.
func (m *Modes) LeavesOut(c *Case) string {
	if why := m.unasked(c); why != "" {
		return why
	}
	_, why := m.Apply(c)
	return why
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
		if n < least || n > maxImage {
			return c, fmt.Sprintf("--nhwc takes %d to %d dimensions, and %s has %d", least, maxImage, name, n)
		}
		order := channelsLastOrder(n, r.spatial)
		if order == nil && n >= minImage {
			return c, fmt.Sprintf("--nhwc has no layout for %s of %d dimensions, where %s takes images of %d", name, n, c.Function, r.spatial)
		}
		if explicit := a.Get(string(name) + "stride"); order != nil && explicit == nil {
			out.orders[string(name)] = order
		}
	}
	return &out, ""
}

// An image has a channel and up to three spatial dimensions, and may be one of a
// batch.
const (
	minImage = 3
	maxImage = 5
)

// channelsLastOrder is the order in memory, outermost first, of n dimensions
// with the channel last; nil where there is no such layout. As in DIOPI three
// dimensions have no batch, also where (N, C, L) is meant, and four have none
// where the spatial dimensions are three.
func channelsLastOrder(n, spatial int) []int {
	channel := 1
	switch {
	case n < minImage || n > maxImage || n == minImage && spatial == 3 || n == maxImage && spatial == 2:
		return nil
	case n == minImage, n == 4 && spatial == 3:
		channel = 0
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
	if at, ok := counted[c.Function]; ok && c.countsFreely() {
		out.narrowAt = &at
	}
	return &out
}

// countsFreely says that the case has the result of counted, and that nothing in
// it asks for a dtype: arange and randperm are int32 where none is given, and
// arange of no float; the second result of unique is the inverse or the counts.
func (c *Case) countsFreely() bool {
	para, _ := c.Item.Get("para").(*Dict)
	if para == nil {
		para = &Dict{}
	}
	switch c.Function {
	case "unique":
		return para.Get("return_inverse") == Bool(true)
	case "arange", "randperm":
		for _, k := range para.Keys() {
			_, float := para.Get(k).(Float)
			if float || k == "dtype" && para.Get(k) != (None{}) {
				return false
			}
		}
	}
	return true
}

// Order returns the order in memory of an argument's dimensions, outermost
// first, that the NHWC mode asks for; nil for the case's own layout.
func (c *Case) Order(arg string) []int { return c.orders[arg] }

// Narrow says that the four-bytes mode gives an argument int32 where the
// config says int64.
func (c *Case) Narrow(arg string) bool { return slices.Contains(c.narrow, arg) }

// NarrowResult says that the result at a position among those of the function
// may be int32 where it is int64: the four-bytes mode.
func (c *Case) NarrowResult(at int) bool { return c.narrowAt != nil && *c.narrowAt == at }
