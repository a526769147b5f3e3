package config

import (
	"fmt"
	"iter"
	"slices"
	"strconv"
)

// Case is one expanded case.
type Case struct {
	Index    int    // in the config
	Name     string // "<config>::<function>_<number>.pth"
	Config   string // the key of the entry
	Function string
	// Interface is the Python prefix of the function, such as torch.
	Interface string
	// Half says that the tolerances of half precision hold: an argument is
	// float16, int16 or uint16.
	Half bool
	// Item is the dict of the case as DIOPI's parser makes it.
	Item *Dict

	tolerances bool             // see GivesTolerances
	orders     map[string][]int // by argument, see Order
	narrow     []string         // see Narrow
	narrowAt   *int             // see NarrowResult
}

// AppendJSON appends the case as one object without line ends: index, case,
// config, function, interface, tol and item. A Python value that JSON lacks is
// an object: {"$tuple": [...]}, {"$np": "float32"}, {"$float": "inf"} or
// {"$slice": [start, stop, step]}; a number with a point or an exponent is a
// float.
func (c *Case) AppendJSON(b []byte) []byte {
	b = append(b, `{"index": `...)
	b = strconv.AppendInt(b, int64(c.Index), 10)
	for _, f := range []struct{ key, value string }{{"case", c.Name}, {"config", c.Config}, {"function", c.Function}, {"interface", c.Interface}} {
		b = append(append(append(b, `, "`...), f.key...), `": `...)
		b = String(f.value).AppendJSON(b)
	}
	b = c.tolerance().AppendJSON(append(b, `, "tol": `...))
	return append(c.Item.AppendJSON(append(b, `, "item": `...)), '}')
}

// Same says whether a case of the same name asks for the same, wherever it
// stands in its config.
func (c *Case) Same(other *Case) bool {
	moved := *other
	moved.Index = c.Index
	return string(c.AppendJSON(nil)) == string(moved.AppendJSON(nil))
}

func (c *Case) tolerance() *Dict {
	suffix := ""
	if c.Half {
		suffix = "_half"
	}
	d := &Dict{}
	d.Set("atol", c.Item.Get("atol"+suffix))
	d.Set("rtol", c.Item.Get("rtol"+suffix))
	d.Set("mismatch_ratio_threshold", c.Item.Get("mismatch_ratio_threshold"))
	d.Set("half", Bool(c.Half))
	return d
}

// Tolerance returns the absolute and relative tolerance that hold for the case.
func (c *Case) Tolerance() (atol, rtol float64) {
	d := c.tolerance()
	atol, _ = Number(d.Get("atol"))
	rtol, _ = Number(d.Get("rtol"))
	return atol, rtol
}

// GivesTolerances reports whether the config has tolerances of its own: those of
// an entry that has none are the language's then.
func (c *Case) GivesTolerances() bool { return c.tolerances }

// MismatchRatio is the share of elements that DIOPI lets differ.
func (c *Case) MismatchRatio() float64 {
	r, _ := Number(c.Item.Get("mismatch_ratio_threshold"))
	return r
}

// Cases are the cases of the config, in DIOPI's order: by entry and function,
// then by dtype, then by shape group and, within one, by the product of sparse.
func (c *Config) Cases() iter.Seq[*Case] {
	return func(yield func(*Case) bool) {
		index, given := 0, slices.ContainsFunc(c.entries, func(e *entry) bool { return e.tolerances })
		for _, e := range c.entries {
			for _, fn := range e.functions {
				number := 0
				for item, half := range e.items(fn) {
					one := &Case{
						Index: index, Name: fmt.Sprintf("%s::%s_%d.pth", e.name, fn, number),
						Config: e.name, Function: fn, Interface: e.module, Half: half, Item: item, tolerances: given,
					}
					if !yield(one) {
						return
					}
					number++
					index++
				}
			}
		}
	}
}

// items are the items of one function, and whether half tolerances hold.
func (e *entry) items(fn string) iter.Seq2[*Dict, bool] {
	return func(yield func(*Dict, bool) bool) {
		if len(e.args) == 0 {
			for _, para := range e.paras {
				if !yield(e.item(fn, para, nil), false) {
					return
				}
			}
			return
		}
		for i := range e.dtypes {
			half := slices.ContainsFunc(e.args, func(a *arg) bool { return isHalf(nth(a.dtypes, i)) })
			j := 0
			for group := range e.groups(i) {
				para := &Dict{}
				if len(e.paras) > 0 {
					para = e.paras[j]
				}
				if !yield(e.item(fn, para, group), half) {
					return
				}
				j++
			}
		}
	}
}

// nth is an entry of a column, of which one entry stands for any number.
func nth(column []Value, i int) Value {
	if len(column) == 1 {
		return column[0]
	}
	return column[i]
}

func isHalf(v Value) bool {
	return v == DType("float16") || v == DType("int16") || v == DType("uint16")
}

// item puts the parts of one case in the places that layOut made.
func (e *entry) item(fn string, para *Dict, args []*Dict) *Dict {
	list := make(List, len(args))
	for i, a := range args {
		list[i] = a
	}
	tensors := e.tensors.clone()
	tensors.Set("args", list)
	item := e.base.clone()
	item.Set("name", String(fn))
	item.Set("para", para)
	item.Set("tensor_para", tensors)
	return item
}

// groups are the arguments of each case with the i-th dtypes: the rows of the
// shape columns, each as often as the product of sparse has elements.
func (e *entry) groups(i int) iter.Seq[[]*Dict] {
	return func(yield func([]*Dict) bool) {
		row := make([]*Dict, len(e.args))
		for j := range e.rows {
			for k, a := range e.args {
				row[k] = a.row(j, e.strided())
				row[k].Set("dtype", nth(a.dtypes, i))
			}
			if !e.product(row, 0, yield) {
				return
			}
		}
	}
}

// product yields the rows that differ from the given one by sparse, the last
// argument's changing first.
func (e *entry) product(row []*Dict, k int, yield func([]*Dict) bool) bool {
	for k < len(row) && len(e.args[k].sparse) == 1 {
		k++
	}
	if k == len(row) {
		return yield(row)
	}
	for _, s := range e.args[k].sparse {
		row[k] = row[k].clone()
		row[k].Set("sparse", List{s})
		if !e.product(row, k+1, yield) {
			return false
		}
	}
	return true
}

// strided is the number of rows that have strides: DIOPI asks the first
// argument, whichever has them.
func (e *entry) strided() int { return len(e.args[0].stride) }

// row is the argument in the j-th shape group.
func (a *arg) row(j, strided int) *Dict {
	d := a.dict.clone()
	if a.value != nil {
		d.Set("value", a.value[j])
	} else {
		d.Set("shape", nth(a.shape, j))
	}
	if a.stride == nil {
		return d
	}
	if stride := a.strideAt(j, strided); stride != nil {
		d.Set(a.ins+"stride", stride)
		return d
	}
	return d.clone("stride")
}

// strideAt is the strides of the j-th group, or nil.
func (a *arg) strideAt(j, strided int) Value {
	if j >= strided || a.stride[j] == (None{}) {
		return nil
	}
	return a.stride[j]
}
