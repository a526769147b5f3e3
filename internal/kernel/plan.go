package kernel

import (
	"slices"
)

// plan is an iteration over elements of several operands at once: the common
// shape, outermost dimension first, and each operand's strides in it.
// Dimensions of size 1 are gone and dimensions that every operand lays out as
// one are merged, so that the last one is the longest run there is.
type plan struct {
	shape []int
	steps [][]int
	total int
}

// mergedPlan keeps the order of the dimensions.
func mergedPlan(shape []int, strides ...[]int) *plan {
	p := &plan{total: 1, steps: make([][]int, len(strides))}
	for d, n := range shape {
		p.total *= n
		if n != 1 {
			p.push(d, n, strides)
		}
	}
	if len(p.shape) == 0 {
		p.shape = []int{p.total}
		for k := range p.steps {
			p.steps[k] = []int{0}
		}
	}
	return p
}

// orderedPlan sorts the dimensions by operand 0's strides, largest outermost.
func orderedPlan(shape []int, strides ...[]int) *plan {
	order := make([]int, len(shape))
	for d := range order {
		order[d] = d
	}
	slices.SortStableFunc(order, func(a, b int) int { return strides[0][b] - strides[0][a] })
	sorted := make([][]int, len(strides))
	for k, s := range strides {
		sorted[k] = permuted(s, order)
	}
	return mergedPlan(permuted(shape, order), sorted...)
}

func permuted(xs, order []int) []int {
	out := make([]int, len(xs))
	for i, d := range order {
		out[i] = xs[d]
	}
	return out
}

func (p *plan) push(d, n int, strides [][]int) {
	last := len(p.shape) - 1
	if last >= 0 && p.extends(last, d, n, strides) {
		p.shape[last] *= n
		for k, s := range strides {
			p.steps[k][last] = s[d]
		}
		return
	}
	p.shape = append(p.shape, n)
	for k, s := range strides {
		p.steps[k] = append(p.steps[k], s[d])
	}
}

func (p *plan) extends(last, d, n int, strides [][]int) bool {
	for k, s := range strides {
		if p.steps[k][last] != n*s[d] {
			return false
		}
	}
	return true
}

// run is the length of the innermost dimension.
func (p *plan) run() int { return p.shape[len(p.shape)-1] }

// step is operand k's stride in the innermost dimension.
func (p *plan) step(k int) int { return p.steps[k][len(p.shape)-1] }

// at returns the place in operand k of the element at linear position pos.
func (p *plan) at(k, pos int) int {
	at := 0
	if p.total == 0 {
		return at
	}
	for d := len(p.shape) - 1; d >= 0; d-- {
		n := p.shape[d]
		at += pos % n * p.steps[k][d]
		pos /= n
	}
	return at
}

// linear reports whether operand k's element at linear position i is at place i.
func (p *plan) linear(k int) bool {
	want := 1
	for d := len(p.shape) - 1; d >= 0; d-- {
		if p.steps[k][d] != want && p.shape[d] != 1 {
			return false
		}
		want *= p.shape[d]
	}
	return true
}

// constant reports whether operand k is one element repeated.
func (p *plan) constant(k int) bool {
	for d, n := range p.shape {
		if n != 1 && p.steps[k][d] != 0 {
			return false
		}
	}
	return true
}

// segments calls f for the pieces of innermost runs of operand k that cover
// the linear positions lo to lo+n-1: from is the position relative to lo.
func (p *plan) segments(k, lo, n int, f func(from, n, at int)) {
	if n <= 0 {
		return
	}
	last := len(p.shape) - 1
	run, steps := p.shape[last], p.steps[k]
	index := make([]int, last+1)
	at := 0
	for d, pos := last, lo; d >= 0; d-- {
		index[d] = pos % p.shape[d]
		at += index[d] * steps[d]
		pos /= p.shape[d]
	}
	for from := 0; from < n; {
		m := min(run-index[last], n-from)
		f(from, m, at)
		from += m
		at -= index[last] * steps[last]
		index[last] = 0
		for d := last - 1; d >= 0; d-- {
			index[d]++
			at += steps[d]
			if index[d] < p.shape[d] {
				break
			}
			at -= p.shape[d] * steps[d]
			index[d] = 0
		}
	}
}
