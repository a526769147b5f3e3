package baseline

import (
	"context"
	"regexp"
	"slices"

	"plumb/backend"
	"plumb/backend/recorded"
	"plumb/internal/refusal"
	"plumb/program"
	"plumb/tensor"
)

// A reference on a CPU has no kernel for some functions of half types, and a
// PyTorch before 2 takes no int32 as an index. What such a case comes to is no
// secret: the reference computes it in float32 and in float64, or with int64,
// and the results are rounded. The case is judged by that, with the limits of
// its own types, and says so.

// StandIns says which cases another one stands in for.
type StandIns string

// The reference is asked another question where it refuses the case, wherever
// there is another one, or never.
const (
	WhereRefused StandIns = "refused"
	Always       StandIns = "always"
	Never        StandIns = "never"
)

// The questions that stand in, as Refusal names them.
const (
	inFloat32 = "float32"
	inInt64   = "int64"
)

// StandsIn reports whether the outcome of a variant is what the reference said
// when it was asked in other types.
func (e *Entry) StandsIn(variant string) bool { return e.Refused[variant].StandIn != "" }

// wider are the types in which the reference is asked, and what it says where it
// has to be.
type wider struct {
	in      string
	dtype   func(tensor.DType) tensor.DType
	refuses func(o *backend.Outcome) bool
}

var widers = []*wider{
	{inFloat32, func(d tensor.DType) tensor.DType {
		if isHalf(d) {
			return tensor.F32
		}
		return d
	}, func(o *backend.Outcome) bool {
		refusal.Classify(o)
		return o.NoKernel
	}},
	{inInt64, func(d tensor.DType) tensor.DType {
		if d == tensor.I32 {
			return tensor.I64
		}
		return d
	}, func(o *backend.Outcome) bool { return wantsLong.MatchString(o.Message) }},
}

func isHalf(d tensor.DType) bool { return d == tensor.F16 || d == tensor.BF16 }

// wantsLong is what PyTorch says of indices that are not int64.
var wantsLong = regexp.MustCompile(`(?i)expected (target |scalar )?(dtype |type )(to be )?(int64|long)|must be long, |of type LongTensor|applicable to index tensor`)

// wider are the types in which to ask about a program that ended so; nil for none.
func (l *genLane) wider(p *program.Program, o *backend.Outcome) *wider {
	if l.StandIns == Never || o.Status == backend.OK && l.StandIns != Always {
		return nil
	}
	for _, w := range widers {
		changes := func(in program.Input) bool { return w.dtype(in.DType) != in.DType }
		if slices.ContainsFunc(p.Inputs, changes) && (o.Status == backend.OK || o.Status == backend.Raised && w.refuses(o)) {
			return w
		}
	}
	return nil
}

// standIn is what the reference is asked in place of a program.
type standIn struct {
	*wider
	like map[string]*tensor.Tensor // of the dtypes that the results of the program have, by place
	own  []tensor.DType            // those of the results that are one tensor, by call
}

func newStandIn(w *wider, like *backend.Outcome) *standIn {
	s := &standIn{wider: w, like: tensorsOf(like)}
	for _, v := range like.Values {
		d := tensor.Invalid
		if v.Tensor != nil {
			d = v.Tensor.DType()
		}
		s.own = append(s.own, d)
	}
	return s
}

// job is the question in place of a job, over the same values. What a call
// computes is rounded before the next one reads it, as a kernel of the half type
// rounds it, and so are gradients on their way back. It returns where the calls
// of the job are among those of the question.
func (s *standIn) job(job *backend.Job) (*backend.Job, []int) {
	p := program.Replace(job.Program, s.dtype)
	calls, at, now := p.Calls, make([]int, len(p.Calls)), map[program.Ref]any{}
	p.Calls = nil
	read := func(r program.Ref) any {
		if v, ok := now[r]; ok {
			return v
		}
		return r
	}
	for i, c := range calls {
		for k := range c.Args {
			c.Args[k] = program.MapRefs(c.Args[k], read)
		}
		for k := range c.Kwargs {
			c.Kwargs[k].Value = program.MapRefs(c.Kwargs[k].Value, read)
		}
		at[i] = len(p.Calls)
		if p.Calls = append(p.Calls, c); i < len(s.own) && isHalf(s.own[i]) {
			narrow := s.cast(p, program.Ref(c.Result), s.own[i])
			now[program.Ref(c.Result)] = s.cast(p, narrow, s.dtype(s.own[i]))
		}
	}
	for i, b := range p.Backward {
		p.Backward[i].Value, _ = read(b.Value).(program.Ref)
	}
	out := &backend.Job{Program: p, State: job.State, Reach: job.Reach, Cotangents: s.dtype(job.Cotangents)}
	for i, t := range job.Inputs {
		out.Inputs = append(out.Inputs, t.Convert(p.Inputs[i].DType))
	}
	return out, at
}

func (s *standIn) cast(p *program.Program, x program.Ref, d tensor.DType) program.Ref {
	name := p.Unused(string(x) + "_" + d.String())
	p.Calls = append(p.Calls, program.Call{Result: name, Target: "Tensor.to", Args: []any{x}, Kwargs: []program.Kwarg{{Name: "dtype", Value: d}}})
	return program.Ref(name)
}

// answer is an outcome of the question as one of the program: in its calls and
// dtypes; nil where a result is not of the same kind and shape.
func (s *standIn) answer(o *backend.Outcome, at []int) *backend.Outcome {
	own := *o
	own.Values, own.Slots = make([]backend.Value, len(at)), nil
	for i, k := range at {
		own.Values[i] = o.Values[k]
	}
	for _, slot := range o.Slots {
		if slot.Part == backend.PartChange {
			slot.Call = slices.Index(at, slot.Call)
		}
		if slot.Call >= 0 {
			own.Slots = append(own.Slots, slot)
		}
	}
	n, same := 0, true
	out := mapped(&own, len(at), func(place string, t *tensor.Tensor) *tensor.Tensor {
		want := s.like[place]
		if n++; want == nil || s.dtype(want.DType()) != t.DType() || !slices.Equal(t.Shape(), want.Shape()) {
			same = false
			return t
		}
		return t.Convert(want.DType())
	})
	if !same || n != len(s.like) {
		return nil
	}
	return out
}

// mapped is an outcome with what f makes of its tensors; nil where it cannot be
// described.
func mapped(o *backend.Outcome, calls int, f func(place string, t *tensor.Tensor) *tensor.Tensor) *backend.Outcome {
	own := tensorsOf(o)
	text, err := recorded.Describe(o, func(place string, _ *tensor.Tensor) *recorded.TensorRef {
		return &recorded.TensorRef{Stored: place}
	})
	if err != nil {
		return nil
	}
	out, err := text.Outcome(calls, func(at *recorded.TensorRef) (*tensor.Tensor, error) {
		return f(at.Stored, own[at.Stored]), nil
	})
	if err != nil {
		return nil
	}
	return out
}

// detach gives the variants that are not asked about again inputs and outcomes of
// their own: those that they have lie in memory that the next run of the reference
// writes to.
func detach(ways []*way, asked map[*way]*wider) {
	for _, w := range ways {
		if asked[w] != nil && w.outcome.Status != backend.OK {
			continue // its inputs are drawn again
		}
		for i, t := range w.job.Inputs {
			w.job.Inputs[i] = copyOf(t)
		}
		if w.outcome.Status != backend.OK {
			continue
		}
		if o := mapped(w.outcome, len(w.Program.Calls), func(_ string, t *tensor.Tensor) *tensor.Tensor { return copyOf(t) }); o != nil {
			w.outcome = o
		}
	}
}

// substitute asks the reference for what it refused in other words, and takes
// the answers for the outcomes of the variants. The dtypes of the results are
// those of Plumb's own operators.
func (l *genLane) substitute(ctx context.Context, ways []*way) error {
	asked := map[*way]*wider{}
	for _, w := range ways {
		if in := l.wider(w.Program, w.outcome); in != nil {
			asked[w] = in
		}
	}
	if len(asked) == 0 || l.judged == nil {
		return nil
	}
	detach(ways, asked)
	for _, w := range ways {
		if in := asked[w]; in != nil {
			if err := l.substituteOne(ctx, w, in); err != nil {
				return err
			}
		}
	}
	return nil
}

func (l *genLane) substituteOne(ctx context.Context, w *way, in *wider) error {
	for _, like := range []func(context.Context, *backend.Job) (*backend.Outcome, error){l.layouts, l.judged.Run} {
		done, err := l.substituteLike(ctx, w, in, like)
		if done || err != nil {
			return err
		}
	}
	return nil
}

// layouts is the outcome of a job as far as its dtypes and shapes are known without
// computing it; changes in place are not.
func (l *genLane) layouts(ctx context.Context, job *backend.Job) (*backend.Outcome, error) {
	if b, ok := l.judged.(interface {
		Layouts(context.Context, *backend.Job) *backend.Outcome
	}); ok {
		return b.Layouts(ctx, withoutCotangents(job)), nil
	}
	return &backend.Outcome{Status: backend.Unsupported}, nil
}

// withoutCotangents is a job with cotangents that need not be drawn.
func withoutCotangents(job *backend.Job) *backend.Job {
	p := *job.Program
	p.Backward = slices.Clone(p.Backward)
	for i := range p.Backward {
		p.Backward[i].Cotangent = program.Fill{}
	}
	return &backend.Job{Program: &p, Inputs: job.Inputs, State: job.State}
}

// substituteLike asks for results of the dtypes and shapes that like tells.
func (l *genLane) substituteLike(ctx context.Context, w *way, in *wider, like func(context.Context, *backend.Job) (*backend.Outcome, error)) (done bool, err error) {
	job := backend.NewJob(w.Program)
	if w.outcome.Status != backend.OK {
		w.job = job
	}
	known, err := like(ctx, job)
	if err != nil || known.Status != backend.OK {
		return false, err
	}
	s := newStandIn(in, known)
	job.Reach, job.Cotangents = backend.Reach(w.Program, known), backend.CotangentType(w.Program, known)
	question, at := s.job(job)
	said, err := l.runHeld(ctx, question)
	if err != nil || said.Status != backend.OK {
		return true, err
	}
	o := s.answer(said, at)
	if o == nil {
		return false, nil
	}
	w.refusal = Refusal{Status: w.outcome.Status, Class: w.outcome.Class, Message: w.outcome.Message, StandIn: in.in}
	w.job, w.outcome, w.standIn = job, o, s
	return true, nil
}
