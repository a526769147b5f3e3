package native

import (
	"hash/maphash"
	"time"

	"plumb/backend"
	"plumb/program"
	"plumb/tensor"
)

// watch tells what calls change: in place, as they may, or by writing into an
// argument, as they may not.
type watch struct {
	marks  map[program.Ref]mark
	spoilt map[int]uint64 // inputs of the job that were written into, and their sums before
	// through, where set, is the x.data by which the last call changed x: PyTorch
	// counts that as a change of nothing else.
	through *value
}

// mark is a tensor as it was when it was last looked at.
type mark struct {
	tensor *tensor.Tensor
	sum    uint64 // of its bytes
}

// untimed runs f, which is the harness's work, outside of the time of the run.
func (r *run) untimed(f func()) {
	start := time.Now()
	f()
	r.aside += time.Since(start)
}

var sumSeed = maphash.MakeSeed()

func sum(t *tensor.Tensor) uint64 {
	if t.Len() == 0 {
		return 0
	}
	size := t.DType().Size()
	from := t.Offset() * size
	return maphash.Bytes(sumSeed, t.Storage()[from:from+tensor.Extent(t.Shape(), t.Strides())*size])
}

// mark remembers what a name stands for now.
func (r *run) mark(name string) {
	if r.traced != nil {
		r.traced.mark(name)
	}
	if r.watch == nil {
		return
	}
	if v := r.env[program.Ref(name)]; v.tensor != nil {
		r.watch.marks[program.Ref(name)] = mark{v.tensor.Tensor, sum(v.tensor.Tensor)}
	}
}

// observe reports what a call that has just been run changed.
func (r *run) observe(c *program.Call) {
	if r.traced != nil {
		r.traced.observe(c)
	}
	if r.watch == nil {
		return
	}
	var changed []backend.Named
	if r.space != nil && r.mayChange(c) {
		changed = r.renewed()
		r.watch.through = nil
	}
	changed = append(changed, r.written(c)...)
	r.out.Changes = append(r.out.Changes, changed)
	if r.traced != nil || r.space != nil || r.readAgain(c) {
		r.mark(c.Result)
	}
}

// readAgain reports whether a later call has the result of c as an argument.
func (r *run) readAgain(c *program.Call) (read bool) {
	note := func(ref program.Ref) { read = read || string(ref) == c.Result }
	for _, later := range r.job.Program.Calls[len(r.out.Values):] {
		for _, a := range later.Args {
			program.Refs(a, note)
		}
		for _, kw := range later.Kwargs {
			program.Refs(kw.Value, note)
		}
	}
	return read
}

// renewed returns the names that stand for other elements than before, in the
// order of the program.
func (r *run) renewed() (changed []backend.Named) {
	look := func(name string) {
		ref := program.Ref(name)
		old, ok := r.watch.marks[ref]
		v := r.env[ref]
		if !ok || r.refresh(v) != nil || v.tensor == nil || v.tensor.Tensor == old.tensor {
			return
		}
		if told := r.watch.through == nil || r.watch.through.tensor == v.tensor; told && !v.tensor.Tensor.SameBits(old.tensor) {
			changed = append(changed, backend.Named{Name: name, Tensor: v.tensor.Tensor})
		}
		r.mark(name)
	}
	p := r.job.Program
	for i := range p.Inputs {
		look(p.Inputs[i].Name)
	}
	for i := range p.Calls[:len(r.out.Values)-1] {
		look(p.Calls[i].Result)
	}
	return changed
}

// written returns the arguments into which the call wrote.
func (r *run) written(c *program.Call) (changed []backend.Named) {
	look := func(ref program.Ref) {
		old, ok := r.watch.marks[ref]
		if v := r.env[ref]; !ok || v.tensor == nil || v.tensor.Tensor != old.tensor || sum(old.tensor) == old.sum {
			return
		}
		changed = append(changed, backend.Named{Name: string(ref), Tensor: copyOf(old.tensor)})
		r.spoil(old)
		r.mark(string(ref))
	}
	for _, a := range c.Args {
		program.Refs(a, look)
	}
	for _, kw := range c.Kwargs {
		program.Refs(kw.Value, look)
	}
	return changed
}

// spoil notes that an input of the job, which is the caller's, was written into.
func (r *run) spoil(old mark) {
	for i, t := range r.job.Inputs {
		if _, known := r.watch.spoilt[i]; t == old.tensor && !known {
			r.watch.spoilt[i] = old.sum
		}
	}
}

// restore gives the caller's inputs the elements back that they had, as far as
// the program tells them.
func (r *run) restore() {
	if r.watch == nil {
		return
	}
	for i, before := range r.watch.spoilt {
		if t := r.job.Program.Inputs[i].Materialize(); sum(t) == before {
			r.job.Inputs[i].CopyFrom(t)
		}
	}
}
