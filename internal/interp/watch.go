package interp

import (
	"hash/maphash"
	"slices"
	"strings"

	"plumb/backend"
	"plumb/op"
	"plumb/program"
	"plumb/tensor"
)

// watch tells what calls change: in place, as they may, or by writing into an
// argument, as they may not.
type watch struct {
	*Run
	marks  map[program.Ref]mark
	spoilt map[int]uint64 // inputs of the job that were written into, and their sums before
	blind  bool           // kernels are trusted
}

var _ observer = (*watch)(nil)

// mark is a tensor as it was when it was last looked at.
type mark struct {
	tensor *tensor.Tensor
	sum    uint64 // of its bytes
}

var sumSeed = maphash.MakeSeed()

// pure reports whether no kernel of a program is to write to an argument, as those
// of modules and of operators that name such arguments may.
func (in *Interpreter) pure(p *program.Program) bool {
	return !slices.ContainsFunc(p.Calls, func(c program.Call) bool {
		return program.IsModule(c.Target) || strings.HasPrefix(c.Target, "Module.") ||
			slices.ContainsFunc(in.table.Lookup(c.Target), func(d *op.Def) bool { return len(d.Mutates) > 0 })
	})
}

// sum is that of a tensor's bytes; 0 where nothing is taken to change them.
func (w *watch) sum(t *tensor.Tensor) uint64 {
	if w.blind {
		return 0
	}
	return sum(t)
}

func sum(t *tensor.Tensor) uint64 {
	if t.Len() == 0 {
		return 0
	}
	t = here(t)
	size := t.DType().Size()
	from := t.Offset() * size
	return maphash.Bytes(sumSeed, t.Storage()[from:from+tensor.Extent(t.Shape(), t.Strides())*size])
}

// named remembers what a name stands for now.
func (w *watch) named(name string) {
	if v := w.env[program.Ref(name)]; v.tensor != nil {
		w.marks[program.Ref(name)] = mark{v.tensor.Tensor, w.sum(v.tensor.Tensor)}
	}
}

// called reports what a call changed.
func (w *watch) called(c *program.Call) {
	w.out.Watched = true
	if w.space != nil {
		if gathered := w.gathered(c); gathered || w.mayChange(c) {
			w.renewed(c, gathered)
		}
	}
	if c.Target == "setattr" {
		w.assigned()
	}
	w.written(c)
	if w.space != nil || w.readAgain(c) {
		w.named(c.Result)
	}
}

// gathered reports whether a pass backward has added to an argument of the call, which
// is seen once something has it as an argument.
func (w *watch) gathered(c *program.Call) (more bool) {
	note := func(ref program.Ref) {
		old, ok := w.marks[ref]
		if v := w.env[ref]; ok && v.tensor != nil && w.refresh(v) == nil && v.tensor.Tensor != old.tensor {
			more = true
		}
	}
	for _, a := range c.Args {
		program.Refs(a, note)
	}
	return more
}

// assigned takes as known what x.data = y made of x: PyTorch counts that as no change.
func (w *watch) assigned() {
	for ref, old := range w.marks {
		if v := w.env[ref]; v.tensor != nil && v.tensor.Tensor != old.tensor {
			w.named(string(ref))
		}
	}
}

// readAgain reports whether a later call has the result of c as an argument.
func (w *watch) readAgain(c *program.Call) (read bool) {
	note := func(ref program.Ref) { read = read || string(ref) == c.Result }
	for _, later := range w.job.Program.Calls[len(w.out.Values):] {
		for _, a := range later.Args {
			program.Refs(a, note)
		}
		for _, kw := range later.Kwargs {
			program.Refs(kw.Value, note)
		}
	}
	return read
}

// changed reports what the call that has just been run left in a tensor.
func (w *watch) changed(name string, t *tensor.Tensor) {
	w.out.Add(backend.Place{Part: backend.PartChange, Call: len(w.out.Values) - 1, Owner: name}, t)
}

// renewed reports the names that stand for other elements than before, in the
// order of the program: gradients, if they were added to, once one is an argument.
func (w *watch) renewed(c *program.Call, gathered bool) {
	look := func(name string) {
		ref := program.Ref(name)
		old, ok := w.marks[ref]
		v := w.env[ref]
		if !ok || !gathered && w.comesFrom(ref, "grad") != "" || w.refresh(v) != nil || v.tensor == nil || v.tensor.Tensor == old.tensor {
			return
		}
		if w.counts(c, ref) && !here(v.tensor.Tensor).SameBits(here(old.tensor)) {
			w.changed(name, v.tensor.Tensor)
		}
		w.named(name)
	}
	p := w.job.Program
	for i := range p.Inputs {
		look(p.Inputs[i].Name)
	}
	for i := range p.Calls[:len(w.out.Values)-1] {
		look(p.Calls[i].Result)
	}
}

// written reports the arguments into which the call wrote.
func (w *watch) written(c *program.Call) {
	look := func(ref program.Ref) {
		old, ok := w.marks[ref]
		if v := w.env[ref]; !ok || v.tensor == nil || v.tensor.Tensor != old.tensor || w.sum(old.tensor) == old.sum {
			return
		}
		w.changed(string(ref), copyOf(old.tensor))
		w.spoil(old)
		w.named(string(ref))
	}
	for _, a := range c.Args {
		program.Refs(a, look)
	}
	for _, kw := range c.Kwargs {
		program.Refs(kw.Value, look)
	}
}

// spoil notes that an input of the job, which is the caller's, was written into.
func (w *watch) spoil(old mark) {
	for i, t := range w.job.Inputs {
		if _, known := w.spoilt[i]; t == old.tensor && !known {
			w.spoilt[i] = old.sum
		}
	}
}

// restore gives the caller's inputs the elements back that they had, as far as
// the program tells them.
func (w *watch) restore() {
	for i, before := range w.spoilt {
		if t := w.job.Program.Inputs[i].Materialize(); sum(t) == before {
			w.job.Inputs[i].CopyFrom(t)
		}
	}
}
