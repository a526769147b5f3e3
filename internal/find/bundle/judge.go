package bundle

import (
	"fmt"
	"slices"

	"plumb/backend"
	"plumb/internal/judge/compare"
	"plumb/internal/safetensors"
	"plumb/tensor"
)

// Result says what a run of the bundle's program on the candidate shows.
type Result struct {
	Misaligned bool
	// Unable says that the candidate does not support the program now.
	Unable bool
	Text   string // one line or several, without a newline at the end
}

// Judge compares what the candidate gives now with what the reference gave
// when the bundle was written, at the bundle's place and by its limit. The
// error says that the bundle's tensors are not what its place needs.
func (b *Bundle) Judge(o *backend.Outcome) (Result, error) {
	if o.Status == backend.Unsupported {
		return Result{Unable: true, Text: "the candidate does not support this program: " + o.Message}, nil
	}
	p := b.m.Place
	p.program = b.Program
	if p.Mode == byEnding {
		o = o.Condemned()
	}
	now := Ending{Status: o.Status, Class: o.Class, Message: o.Message, Call: o.Call}
	want := &b.m.Expected
	switch _, bad := badEndings[o.Status]; {
	case p.Mode == byEnding && (bad || badEndings[want.Status] != ""), bad:
		return misaligned("the candidate %s; the reference %s", finish(&now), finish(want)), nil
	case p.Mode == byEnding:
		return aligned("the candidate %s, the reference too", finish(&now)), nil
	case p.Mode == byException:
		return b.judgeException(&now), nil
	}
	v := p.value(o)
	if !v.ok {
		return misaligned("the candidate %s before it came to %s", finish(&now), p.Where), nil
	}
	return b.judgeValue(v)
}

// JudgeTensor is Judge for a result at the bundle's place that was computed by
// other means than the bundle's program; err is the error of computing it.
func (b *Bundle) JudgeTensor(t *tensor.Tensor, err error) (Result, error) {
	b.m.Place.program = b.Program
	now := Ending{Status: backend.OK}
	if err != nil {
		now.Status, now.Class, now.Message = backend.Raised, "error", err.Error()
	}
	switch {
	case b.m.Place.Mode == byException:
		return b.judgeException(&now), nil
	case err != nil:
		return misaligned("the candidate %s; the reference %s", finish(&now), finish(&b.m.Expected)), nil
	}
	return b.judgeValue(found{is: "a tensor", number: t, ok: true})
}

func misaligned(format string, args ...any) Result {
	return Result{Misaligned: true, Text: "misaligned: " + fmt.Sprintf(format, args...)}
}

func aligned(format string, args ...any) Result {
	return Result{Text: "aligned: " + fmt.Sprintf(format, args...)}
}

func (b *Bundle) judgeException(now *Ending) Result {
	want := &b.m.Expected
	text := fmt.Sprintf("the candidate %s; the reference %s", finish(now), finish(want))
	if !b.m.Place.judge().EndAlike(want.outcome(), now.outcome()) {
		return misaligned("%s", text)
	}
	return aligned("%s", text)
}

func (e *Ending) outcome() *backend.Outcome {
	return &backend.Outcome{Status: e.Status, Class: e.Class, Message: e.Message}
}

func (b *Bundle) judgeValue(v found) (Result, error) {
	p, want := b.m.Place, &b.m.Expected
	switch p.Mode {
	case byStructure:
		return judged(v.is, want.Is, p), nil
	case byText:
		return judged(v.is+" "+v.text, want.Is+" "+want.Text, p), nil
	case byRequiresGrad:
		return judged(fmt.Sprint("requires_grad ", v.grad), fmt.Sprint("requires_grad ", want.RequiresGrad), p), nil
	case byBits:
		was, err := b.tensorAt(gotFile, &b.m.Got)
		if err != nil || was != nil && v.number != nil && was.SameBits(v.number) {
			return misaligned("%s: the same bits as those that were judged", p.Where), err
		}
		return aligned("%s: other bits than those that were judged", p.Where), nil
	}
	expected, err := b.tensorAt(expectedFile, want)
	if err != nil {
		return Result{}, err
	}
	if err := b.loadLimit(); err != nil {
		return Result{}, err
	}
	if v.number == nil && expected != nil && p.twice() {
		v.number = tensor.New(expected.DType(), expected.Shape()...)
	}
	if text := p.judge().Breach(expected, v.number); text != "" {
		return misaligned("%s: %s (limit: %s)", p.Where, text, p.Limit), nil
	}
	return aligned("%s is within the limit: %s", p.Where, p.Limit), nil
}

func judged(got, want string, p *place) Result {
	if got != want {
		return misaligned("%s: got %s, want %s", p.Where, got, want)
	}
	return aligned("%s: %s", p.Where, got)
}

// tensorAt reads the tensor of the place as a side had it; nil for none.
func (b *Bundle) tensorAt(file string, e *Ending) (*tensor.Tensor, error) {
	f, err := safetensors.Parse(b.files[file], safetensors.Limits{})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	t := f.Tensor(b.m.Place.key())
	if t == nil {
		return nil, nil
	}
	return laidOut(t, e.Strides)
}

// loadLimit reads the part of the limit that differs from element to element.
func (b *Bundle) loadLimit() error {
	f, err := safetensors.Parse(b.files[expectedFile], safetensors.Limits{})
	if err != nil {
		return fmt.Errorf("%s: %w", expectedFile, err)
	}
	t := f.Tensor(limitKey)
	if t == nil {
		return nil
	}
	want := f.Tensor(b.m.Place.key())
	if t.DType() != tensor.F64 || want == nil || !slices.Equal(t.Shape(), want.Shape()) {
		return fmt.Errorf("%s: the limit is %s for %s", expectedFile, t, b.m.Place.Where)
	}
	b.m.Place.Limit.Error = t
	return nil
}

// Limit returns the limit at the bundle's place.
func (b *Bundle) Limit() (compare.Limit, error) {
	err := b.loadLimit()
	return b.m.Place.Limit, err
}
