package verdict

import (
	"fmt"
	"math"
	"slices"

	"plumb/backend"
	"plumb/internal/judge/compare"
	"plumb/op"
	"plumb/program"
	"plumb/tensor"
)

// Weakness is a fake of one expected result that its judgement accepts.
type Weakness struct {
	Fake  string `json:"fake"`
	Where Where  `json:"where"`
	// Equal says that the fake has the expected values: not the limit is too
	// wide, but the case cannot tell this fake from the truth.
	Equal bool `json:"equal,omitempty"`
}

// The fakes; fakeNames has them in the order in which they are tried.
const (
	zeros      = "zeros"
	constants  = "constant"
	shifts     = "shifted along dim"
	transposes = "transposed"
	oneOff     = "one element off"
	flips      = "sign flipped"
)

var fakeNames = []string{zeros, constants, shifts, transposes, oneOff, flips}

// Power reports what a case would have let pass: it replaces one expected
// result of ref at a time by each of these fakes, and has judge say what it
// would say of a candidate that gave it.
//
//	zeros                 every element 0
//	constant              every element the mean; of two elements or more
//	shifted along dim i   element k is element k-1, the first one the last
//	transposed            the last two dims, where their sizes are equal
//	one element off       the middle element, by 10 times its limit
//	sign flipped          every element negated; of gradients
//
// The results are the values that p differentiates, or the last call's when
// there are none, and the gradients of inputs and parameters. A fake is
// accepted when the verdict is Aligned. One that has the expected values proves
// nothing against a limit; it is reported, as Equal, for zeros and constant.
// What depends on random draws is not faked: its limit is about many elements.
// Judge is called up to about ten times for each result; ref is not changed.
// There is nothing to report when ref did not end well, or when the program
// asks for shapes only.
func Power(p *program.Program, ref *backend.Outcome, judge func(p *program.Program, ref, cand *backend.Outcome) *Verdict) []Weakness {
	if ref.Status != backend.OK || p.Shapes {
		return nil
	}
	var found []Weakness
	random := drawnPlaces(judge(p, ref, ref))
	for _, r := range results(p, ref) {
		if random[place{r.where.Part, r.where.Call, r.where.Name}] {
			continue
		}
		t := &trial{r: r, judge: func(fake *tensor.Tensor) *Verdict { return judge(p, ref, r.with(fake)) }}
		t.run()
		found = append(found, t.found...)
	}
	return found
}

// place identifies what is compared.
type place struct {
	part backend.Part
	call int
	name string
}

// drawnPlaces returns what a verdict has judged by statistics.
func drawnPlaces(v *Verdict) map[place]bool {
	found := map[place]bool{}
	for _, m := range v.Margins {
		if m.Class == op.Statistical {
			found[place{m.Part, m.Call, m.Name}] = true
		}
	}
	return found
}

// result is one expected tensor and how to put another in its place.
type result struct {
	where Where
	want  *tensor.Tensor
	with  func(*tensor.Tensor) *backend.Outcome
}

func results(p *program.Program, ref *backend.Outcome) []result {
	var list []result
	for i := range p.Calls {
		if i < len(ref.Values) && isOutput(p, i) {
			w := Where{Part: backend.PartValue, Call: i, Line: p.Calls[i].String(), Target: p.Calls[i].Target, Name: p.Calls[i].Result}
			list = appendValues(list, w, &ref.Values[i], func(v backend.Value) *backend.Outcome {
				fake := *ref
				fake.Values = slices.Clone(ref.Values)
				fake.Values[i] = v
				return &fake
			})
		}
	}
	return appendGrads(list, p, ref)
}

func isOutput(p *program.Program, call int) bool {
	if len(p.Backward) == 0 {
		return call == len(p.Calls)-1
	}
	return slices.ContainsFunc(p.Backward, func(b program.Backward) bool { return string(b.Value) == p.Calls[call].Result })
}

// appendValues appends the tensors of v; numbers as 0-d tensors.
func appendValues(list []result, w Where, v *backend.Value, with func(backend.Value) *backend.Outcome) []result {
	switch {
	case v.Tensor != nil:
		return append(list, result{w, v.Tensor, func(t *tensor.Tensor) *backend.Outcome {
			return with(backend.Value{Tensor: t, RequiresGrad: v.RequiresGrad})
		}})
	case v.IsTuple:
		for i := range v.Tuple {
			part := w
			part.Path = append(slices.Clone(w.Path), i)
			list = appendValues(list, part, &v.Tuple[i], func(e backend.Value) *backend.Outcome {
				tuple := slices.Clone(v.Tuple)
				tuple[i] = e
				return with(backend.Value{IsTuple: true, Tuple: tuple})
			})
		}
		return list
	}
	t := number(v.Plain)
	if t == nil {
		return list
	}
	return append(list, result{w, t, func(t *tensor.Tensor) *backend.Outcome {
		plain, _ := t.Item() // t has one element
		return with(backend.Value{Plain: plain})
	}})
}

// number returns a Python number as a 0-d tensor; nil for anything else.
func number(v any) *tensor.Tensor {
	switch v := v.(type) {
	case bool:
		return tensor.Of(tensor.Bool, nil, []bool{v})
	case int64:
		return integer(v)
	case float64:
		return tensor.Scalar(tensor.F64, complex(v, 0))
	case complex128:
		return tensor.Scalar(tensor.C128, v)
	}
	return nil
}

// appendGrads appends the gradients of inputs and parameters.
func appendGrads(list []result, p *program.Program, ref *backend.Outcome) []result {
	for _, at := range backend.Places(p, ref) {
		w := Where{Part: at.Part, Call: len(p.Calls), Name: at.String()}
		isInput := slices.ContainsFunc(p.Inputs, func(in program.Input) bool { return in.Name == at.Owner })
		switch {
		case at.Part == backend.PartGrad && isInput:
		case at.Part == backend.PartParamGrad:
			i := slices.IndexFunc(p.Calls, func(c program.Call) bool { return c.Result == at.Owner })
			w.Target = p.Calls[i].Target
		default:
			continue
		}
		if want := ref.At(at); want != nil {
			list = append(list, result{w, want, func(t *tensor.Tensor) *backend.Outcome { return ref.With(at, t) }})
		}
	}
	return list
}

// trial tries every fake of one result.
type trial struct {
	r     result
	judge func(fake *tensor.Tensor) *Verdict
	found []Weakness
}

func (t *trial) run() {
	want := t.r.want.Contiguous()
	t.degenerate(zeros, tensor.New(want.DType(), want.Shape()...))
	if want.Len() > 1 {
		t.degenerate(constants, constant(want))
	}
	for d, n := range want.Shape() {
		if n > 1 {
			t.rearranged(fmt.Sprintf("%s %d", shifts, d), shifted(want, d))
		}
	}
	if n := want.Dim(); n > 1 && want.Shape()[n-1] == want.Shape()[n-2] {
		t.rearranged(transposes, want.Transpose(n-2, n-1).Clone())
	}
	if want.Len() > 0 && t.acceptsOff(want) {
		t.accept(oneOff, false)
	}
	if t.r.where.Part != backend.PartValue && want.DType().IsDifferentiable() {
		t.rearranged(flips, negated(want))
	}
}

// degenerate tries a fake that holds no information, whatever is expected.
func (t *trial) degenerate(name string, fake *tensor.Tensor) {
	if equal(t.r.want, fake) {
		t.accept(name, true)
	} else if t.accepts(fake) {
		t.accept(name, false)
	}
}

// rearranged tries a fake that is a mistake only where it changes something.
func (t *trial) rearranged(name string, fake *tensor.Tensor) {
	if !equal(t.r.want, fake) && t.accepts(fake) {
		t.accept(name, false)
	}
}

func equal(want, fake *tensor.Tensor) bool {
	return compare.Tensors(want, fake, compare.Exactly(""), compare.Options{}).OK
}

func (t *trial) accepts(fake *tensor.Tensor) bool {
	return t.judge(asLaidOut(fake, t.r.want)).Word == Aligned
}

func (t *trial) accept(name string, equal bool) {
	t.found = append(t.found, Weakness{name, t.r.where, equal})
}

// asLaidOut returns t with the strides of like, unless those repeat elements.
func asLaidOut(t, like *tensor.Tensor) *tensor.Tensor {
	if slices.Equal(t.Strides(), like.Strides()) || slices.Contains(like.Strides(), 0) {
		return t
	}
	u := tensor.NewStrided(t.DType(), t.Shape(), like.Strides())
	u.CopyFrom(t)
	return u
}

// constant returns want with every element replaced by the mean of the finite
// ones; of integers and bools, the nearest to it.
func constant(want *tensor.Tensor) *tensor.Tensor {
	n, sum := 0, complex128(0)
	for i := range want.Len() {
		if v := want.At(i); finite(v) {
			sum += v / complex(float64(want.Len()), 0)
			n++
		}
	}
	mean := complex128(0)
	if n > 0 {
		mean = sum * complex(float64(want.Len())/float64(n), 0)
	}
	if !want.DType().IsDifferentiable() {
		mean = complex(math.Round(real(mean)), 0)
	}
	fake := tensor.New(want.DType(), want.Shape()...)
	fake.Set(0, mean)
	bytes := fake.Bytes()
	for done := want.DType().Size(); done < len(bytes); done *= 2 {
		copy(bytes[done:], bytes[:done])
	}
	return fake
}

func finite(v complex128) bool {
	zero := real(v) - real(v) + imag(v) - imag(v)
	return zero == 0
}

// shifted returns want rolled by one along dim d.
func shifted(want *tensor.Tensor, d int) *tensor.Tensor {
	fake := tensor.New(want.DType(), want.Shape()...)
	src, dst := want.Bytes(), fake.Bytes()
	inner := tensor.NumElements(want.Shape()[d+1:]) * want.DType().Size()
	block := inner * want.Shape()[d]
	for at := 0; at < len(src); at += block {
		copy(dst[at+inner:at+block], src[at:])
		copy(dst[at:at+inner], src[at+block-inner:])
	}
	return fake
}

// negated flips the sign bit of every component.
func negated(want *tensor.Tensor) *tensor.Tensor {
	fake := want.Clone()
	size, bytes := want.DType().Real().Size(), fake.Bytes()
	for top := size - 1; top < len(bytes); top += size {
		bytes[top] ^= 0x80
	}
	return fake
}

const (
	offBy    = 10 // limits
	attempts = 5
)

// acceptsOff reports whether the middle element may be off by 10 limits, or by
// the least step where that is more. The limit is found by asking: observed
// error ÷ limit grows with the error.
func (t *trial) acceptsOff(want *tensor.Tensor) bool {
	i := want.Len() / 2
	if want.DType() == tensor.Bool {
		fake := want.Clone()
		fake.SetInt(i, 1-want.Int(i))
		return t.accepts(fake)
	}
	if !finite(want.At(i)) {
		return false
	}
	least := 1.0
	if want.DType().IsDifferentiable() {
		least = compare.Spacing(math.Abs(real(want.At(i))), want.DType())
	}
	by := max(math.Abs(real(want.At(i)))/64, 1.0/(1<<14), least)
	word := Misaligned
	for range attempts {
		v := t.judge(asLaidOut(off(want, i, by), t.r.want))
		word = v.Word
		switch ratio := float64(v.Worst); {
		case word == Aligned && (ratio >= offBy || ratio == 0):
			return true
		case word != Aligned && (ratio <= 2*offBy || by <= least || math.IsInf(ratio, 0)):
			return false
		default:
			by = max(by*1.01*offBy/ratio, least)
		}
	}
	return word == Aligned
}

func off(want *tensor.Tensor, i int, by float64) *tensor.Tensor {
	fake := want.Clone()
	if want.DType().IsInt() {
		fake.SetInt(i, want.Int(i)+int64(by))
		return fake
	}
	fake.Set(i, want.At(i)+complex(by, 0))
	return fake
}
