package global

import (
	"slices"

	"plumb/op"
	"plumb/tensor"
)

// Traffic is how many elements travel between ranks, by the dimension of the
// hierarchy, outermost first, in which sender and receiver differ first.
type Traffic []int

func (t Traffic) total() int {
	sum := 0
	for _, n := range t {
		sum += n
	}
	return sum
}

// traffic counts what a boxing among the ranks of a placement moves of a tensor
// of the shape, without going through its ranks one with one: dimensions of the
// hierarchy that split no axis together are counted apart and multiplied.
func traffic(shape []int, p Placement, from, to SBP) Traffic {
	if slices.Equal(from, to) {
		return make(Traffic, len(p.Hierarchy))
	}
	if pieces := scattered(p, shape, from, to); pieces != nil {
		t := direct(shape, p.Hierarchy, from, pieces)
		for k, n := range direct(shape, p.Hierarchy, pieces, to) {
			t[k] += n
		}
		return t
	}
	return direct(shape, p.Hierarchy, from, to)
}

// direct is traffic on one way.
func direct(shape, hierarchy []int, from, to SBP) Traffic {
	dims := len(hierarchy)
	// within[m] are the elements that ranks get from those that differ from them
	// in no dimension before m: from themselves, for the last.
	within := make([]int, dims+1)
	for m := range within {
		within[m] = 1
	}
	free := make([]bool, len(shape))
	for axis := range free {
		free[axis] = true
	}
	for _, c := range coupled(hierarchy, from, to) {
		for _, axis := range c.axes {
			free[axis] = false
		}
		for m, n := range c.count(shape, hierarchy, from, to) {
			within[m] *= n
		}
	}
	whole := 1
	for axis, n := range shape {
		if free[axis] {
			whole *= n
		}
	}
	t := make(Traffic, dims)
	for k := range t {
		t[k] = (within[k] - within[k+1]) * whole
	}
	return t
}

// coupling is some dimensions of a hierarchy, and the axes that they split
// before or afterwards: no other dimension does.
type coupling struct{ dims, axes []int }

// coupled groups the dimensions.
func coupled(hierarchy []int, from, to SBP) []coupling {
	var all []coupling
	for k := range hierarchy {
		c := coupling{dims: []int{k}}
		for _, e := range []op.SBP{from[k], to[k]} {
			if axis, split := e.Axis(); split && !slices.Contains(c.axes, axis) {
				c.axes = append(c.axes, axis)
			}
		}
		var apart []coupling
		for _, o := range all {
			if !slices.ContainsFunc(o.axes, func(axis int) bool { return slices.Contains(c.axes, axis) }) {
				apart = append(apart, o)
				continue
			}
			c.dims = append(slices.Clone(o.dims), c.dims...)
			for _, axis := range o.axes {
				if !slices.Contains(c.axes, axis) {
					c.axes = append(c.axes, axis)
				}
			}
		}
		slices.Sort(c.dims)
		all = append(apart, c)
	}
	return all
}

// count goes through all pairs of places in the group's dimensions, and returns
// for each m how many elements of its axes those give that differ in none before m.
func (c coupling) count(shape, hierarchy []int, from, to SBP) []int {
	within := make([]int, len(hierarchy)+1)
	at := func(place int) []int {
		coordinates := make([]int, len(c.dims))
		for i, k := range slices.Backward(c.dims) {
			coordinates[i], place = place%hierarchy[k], place/hierarchy[k]
		}
		return coordinates
	}
	places := 1
	for _, k := range c.dims {
		places *= hierarchy[k]
	}
	has, wants := make([]region, places), make([]region, places)
	for i := range places {
		has[i], wants[i] = c.region(shape, hierarchy, from, at(i)), c.region(shape, hierarchy, to, at(i))
	}
	for i := range places {
		x := at(i)
		for j := range places {
			y := at(j)
			given, same := true, len(hierarchy)
			for n, k := range slices.Backward(c.dims) {
				given = given && hands(from[k], to[k], x[n], y[n])
				if x[n] != y[n] {
					same = k
				}
			}
			if !given {
				continue
			}
			elements := 1
			for a := range c.axes {
				lo := max(has[i].start[a], wants[j].start[a])
				hi := min(has[i].start[a]+has[i].size[a], wants[j].start[a]+wants[j].size[a])
				elements *= max(hi-lo, 0)
			}
			for m := range same + 1 {
				within[m] += elements
			}
		}
	}
	return within
}

// region is what a place has of the group's axes.
func (c coupling) region(shape, hierarchy []int, s SBP, at []int) region {
	r := region{make([]int, len(c.axes)), make([]int, len(c.axes))}
	for a, axis := range c.axes {
		r.size[a] = shape[axis]
		for i, k := range c.dims {
			if split, is := s[k].Axis(); is && split == axis {
				start, n := op.Balanced(r.size[a], hierarchy[k], at[i])
				r.start[a], r.size[a] = r.start[a]+start, n
			}
		}
	}
	return r
}

// elements is how many the ranks hold together.
func (s SBP) elements(shape []int, p Placement) int {
	n := tensor.NumElements(shape)
	for k, ranks := range p.Hierarchy {
		if _, split := s[k].Axis(); !split {
			n *= ranks
		}
	}
	return n
}
