package op

import (
	"fmt"
	"slices"
	"strings"

	"plumb/tensor"
)

// Kernel is a candidate implementation. Of those for the device of a call's tensors
// whose predicate holds, the first of the highest priority runs.
type Kernel struct {
	Name string
	// Device is the name of the device on whose tensors it works; "" stands for the host.
	Device   string
	When     Pred
	Priority int
	// Since is the first version of PyTorch that has a kernel for such a call on the
	// CPU, such as "2"; "" where 1.13 has one too.
	Since string
	// Scratch returns the bytes of temporary memory that Run wants; nil means none. It
	// reads attributes and layouts, no elements.
	Scratch func(a Args) int
	// State makes what Run reads as c.State: a plan, a table of places. It is made once
	// for the calls of a graph's node, a plan or a session that agree in Keyed, from
	// their attributes and layouts: no elements are known. Several runs may read it at a
	// time, and none changes it.
	State func(a Args) (any, error)
	// Keyed names the arguments that State reads, of tensors the layout; nil stands for
	// all of them.
	Keyed []Handle
	// Over names tensors in whose memory the first result may lie, where it has their
	// layout and nothing else reads them: Run reads no element of them after it wrote one
	// to the same place.
	Over []TensorArg
	// Reports says that Run calls Done.
	Reports bool
	Run     func(c *Run) error
}

// Run is one execution of a kernel: its arguments, whose tensors are
// *tensor.Tensor, its results, allocated as Infer said with unspecified
// contents, its temporary memory and the key of its random stream.
type Run struct {
	Args
	Out     []*tensor.Tensor
	Scratch []byte
	State   any    // what the kernel's State made
	Key     uint64 // of the random stream; see Random
	// Limit is that of the call, for what a kernel calls in its turn: see Call.
	Limit int
	// Done, where it is not nil, is told by a kernel that Reports of each range
	// of elements of the first result, in the order of memory, once it changes
	// them no more; the ranges make up the result. Calls may be concurrent.
	Done func(lo, hi int)
	// Device has the tensors, of whose elements the kernel touches none: it queues its
	// work on the device's stream Stream. Nil stands for the host.
	Device *Device
	Stream int
	// ScratchOn is what Scratch is on a device: bytes there.
	ScratchOn *tensor.Tensor
}

// Pred is a predicate over the arguments, their dtypes, attributes and layouts, that can
// say what it asks for.
type Pred struct {
	Text  string
	Holds func(a Args) bool
	all   []Pred // of And
}

// failing returns what does not hold of the arguments; "" where all does.
func (p Pred) failing(a Args) string {
	if len(p.all) == 0 {
		if p.Holds == nil || p.Holds(a) {
			return ""
		}
		return p.Text
	}
	var texts []string
	for _, q := range p.all {
		if text := q.failing(a); text != "" {
			texts = append(texts, text)
		}
	}
	return strings.Join(texts, " and ")
}

// DTypeIn holds when a tensor argument has one of the dtypes.
func DTypeIn(p TensorArg, ds ...tensor.DType) Pred {
	var names []string
	for _, d := range ds {
		names = append(names, d.String())
	}
	return Pred{
		Text:  fmt.Sprintf("dtype of %s in {%s}", p, strings.Join(names, ", ")),
		Holds: func(a Args) bool { return a.Value(p) != nil && slices.Contains(ds, a.Value(p).DType()) },
	}
}

// AttributeIn holds when an argument is one of the values.
func AttributeIn[T comparable](p Arg[T], values ...T) Pred {
	return Pred{
		Text:  fmt.Sprintf("%s in %v", p, values),
		Holds: func(a Args) bool { return a.Any(p) != nil && slices.Contains(values, read(a, p)) },
	}
}

// ContiguousIn holds when tensor arguments lie in memory in row-major order without gaps.
func ContiguousIn(ps ...TensorArg) Pred {
	return Pred{
		Text: fmt.Sprintf("%v contiguous", ps),
		Holds: func(a Args) bool {
			return !slices.ContainsFunc(ps, func(p TensorArg) bool {
				v := a.Value(p)
				return v == nil || !tensor.Contiguous.Matches(v.Shape(), v.Strides())
			})
		},
	}
}

// Not holds when the predicate does not.
func Not(p Pred) Pred {
	return Pred{Text: "not " + p.Text, Holds: func(a Args) bool { return p.Holds != nil && !p.Holds(a) }}
}

// And holds when all of the predicates hold.
func And(preds ...Pred) Pred {
	var texts []string
	for _, p := range preds {
		texts = append(texts, p.Text)
	}
	return Pred{
		Text: strings.Join(texts, " and "),
		Holds: func(a Args) bool {
			return !slices.ContainsFunc(preds, func(p Pred) bool { return p.Holds != nil && !p.Holds(a) })
		},
		all: preds,
	}
}

// With returns a copy of the literal with further kernels, such as those of a device.
func (d *Def) With(kernels ...Kernel) *Def {
	own := *d
	own.Kernels = slices.Concat(d.Kernels, kernels)
	return &own
}

// Kernel returns the kernel that computes the call on the host, or an error that lists
// every candidate with the predicate that failed. Its class is that of
// PyTorch's '"op" not implemented for' error.
func (d *Def) Kernel(a Args) (*Kernel, error) {
	if k := d.kernelOn("", a); k != nil {
		return k, nil
	}
	return nil, d.noKernel("", a)
}

// kernelOn returns the kernel of a device that computes the call; nil for none.
func (d *Def) kernelOn(device string, a Args) *Kernel {
	var best *Kernel
	for i := range d.Kernels {
		k := &d.Kernels[i]
		if k.Device == device && (k.When.Holds == nil || k.When.Holds(a)) && (best == nil || k.Priority > best.Priority) {
			best = k
		}
	}
	return best
}

func (d *Def) noKernel(device string, a Args) error {
	var failed []string
	for _, k := range d.Kernels {
		var why []string
		if k.Device != device {
			why = append(why, "device "+hostOr(k.Device))
		}
		if text := k.When.failing(a); text != "" {
			why = append(why, text)
		}
		failed = append(failed, fmt.Sprintf("%s needs %s", k.Name, strings.Join(why, " and ")))
	}
	if failed == nil {
		failed = []string{"it has none"}
	}
	on := ""
	if device != "" {
		on = " on " + device
	}
	err := RuntimeError("no kernel for %s%s: %s", describe(a), on, strings.Join(failed, "; "))
	err.Op = d.ID()
	return err
}

func hostOr(device string) string {
	if device == "" {
		return tensor.HostName
	}
	return device
}

func describe(a Args) string {
	var parts []string
	for _, v := range a.AllValues() {
		parts = append(parts, v.DType().String()+tensor.ShapeString(v.Shape()))
	}
	return "(" + strings.Join(parts, ", ") + ")"
}
