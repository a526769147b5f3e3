package conform

import (
	"fmt"
	"strings"

	"plumb/backend"
	"plumb/internal/conform/baseline"
	"plumb/internal/conform/config"
	"plumb/internal/conform/diopi"
	"plumb/internal/judge/verdict"
	"plumb/program"
	"plumb/tensor"
)

// note tells of a failure what --compat and --failure-debug-level ask for.
func (k *Kit) note(r *baseline.Record, ref, cand *backend.Outcome) map[string]string {
	c, _ := k.under(r.Entry)
	switch r.Verdict.Word {
	case verdict.Aligned, verdict.Rejected, verdict.Unsupported:
		return nil
	}
	if c == nil || cand.Status != backend.OK {
		return nil
	}
	if k.Forward {
		ref = ref.Without(backend.Part.IsGradient)
	}
	p := r.Program
	if r.Function != nil {
		p = r.Function.Of
	}
	notes := map[string]string{}
	if k.Lenient {
		notes["diopi"] = lenient(c, p, ref, cand)
	}
	if k.Debug > 0 {
		notes["debug"] = k.describe(c, p, ref, cand)
	}
	return notes
}

// lenient is what DIOPI's comparison says of the outputs and gradients.
func lenient(c *config.Case, p *program.Program, ref, cand *backend.Outcome) string {
	rule := diopi.LenientRule(c)
	for _, o := range outputsOf(p, ref, cand) {
		if o.want == nil || o.got == nil {
			if o.want != o.got {
				return "fails: " + o.name + " is on one side only"
			}
			continue
		}
		if ok, why := rule.Accepts(o.want, o.got); !ok {
			return "fails: " + o.name + ": " + why
		}
	}
	return "passes"
}

// compared is a result that DIOPI compares: one of the function's, or a gradient.
type compared struct {
	name      string
	want, got *tensor.Tensor
}

func outputsOf(p *program.Program, ref, cand *backend.Outcome) []compared {
	var out []compared
	for i, c := range p.Calls {
		if strings.HasPrefix(c.Result, diopi.Result) && i < len(ref.Values) && i < len(cand.Values) {
			out = appendOutputs(out, c.Result, ref.Values[i], cand.Values[i])
		}
	}
	for _, in := range p.Inputs {
		if want, got := ref.Grad(in.Name), cand.Grad(in.Name); want != nil || got != nil {
			out = append(out, compared{"gradient of " + in.Name, want, got})
		}
	}
	return out
}

func appendOutputs(out []compared, name string, want, got backend.Value) []compared {
	if !want.IsTuple && !got.IsTuple {
		return append(out, compared{name, want.Tensor, got.Tensor})
	}
	for i := range max(len(want.Tuple), len(got.Tuple)) {
		var w, g backend.Value
		if i < len(want.Tuple) {
			w = want.Tuple[i]
		}
		if i < len(got.Tuple) {
			g = got.Tuple[i]
		}
		out = appendOutputs(out, fmt.Sprintf("%s[%d]", name, i), w, g)
	}
	return out
}

// describe is the text of a failure at the debug level.
func (k *Kit) describe(c *config.Case, p *program.Program, ref, cand *backend.Outcome) string {
	var b strings.Builder
	b.Write(c.AppendJSON([]byte("case        ")))
	b.WriteString("\n")
	for _, o := range outputsOf(p, ref, cand) {
		fmt.Fprintf(&b, "%s\n", o.name)
		for _, side := range []struct {
			name string
			t    *tensor.Tensor
		}{{"want", o.want}, {"got", o.got}} {
			fmt.Fprintf(&b, "  %-4s      %s\n", side.name, k.side(side.t))
		}
	}
	return b.String()
}

func (k *Kit) side(t *tensor.Tensor) string {
	if t == nil {
		return "none"
	}
	var sum complex128
	for i := range t.Len() {
		sum += t.At(i)
	}
	text := fmt.Sprintf("%s %s, strides %v, sum %v", t.DType(), tensor.ShapeString(t.Shape()), t.Strides(), real(sum))
	if t.DType().IsComplex() {
		text = fmt.Sprintf("%s %s, strides %v, sum %v", t.DType(), tensor.ShapeString(t.Shape()), t.Strides(), sum)
	}
	if k.Debug > 1 {
		text += "\n            " + strings.ReplaceAll(t.String(), "\n", "\n            ")
	}
	return text
}
