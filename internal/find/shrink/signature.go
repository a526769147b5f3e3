package shrink

import (
	"slices"
	"strings"

	"plumb/backend"
	"plumb/internal/judge/compare"
	"plumb/internal/judge/verdict"
	"plumb/tensor"
)

// Signature says how a case fails, as far as a smaller case must fail alike:
// not where in its program, in which shape or by how much.
type Signature struct {
	Word verdict.Word `json:"word"`
	Kind verdict.Kind `json:"kind,omitempty"`
	// Rule tells a wrong number from a wrong NaN, infinity or sign of zero.
	Rule compare.Rule `json:"rule,omitempty"`
	// Operator is the last part of the name of the call that differs or raised;
	// empty for gradients of inputs.
	Operator string `json:"operator,omitempty"`
	// DTypes is the class of the dtype that differs: float, half, complex, int
	// or bool.
	DTypes string `json:"dtypes,omitempty"`
	// Reference and Candidate are the classes of the exceptions; for a crash,
	// its message without numbers.
	Reference string `json:"reference,omitempty"`
	Candidate string `json:"candidate,omitempty"`
	// Mode names the modes that fail where that of single calls does not; Blame is
	// the verdict's.
	Mode  string `json:"mode,omitempty"`
	Blame string `json:"blame,omitempty"`
}

// SignatureOf returns the signature of a judged case.
func SignatureOf(r *verdict.Record) Signature {
	v := r.Verdict
	s := Signature{Word: v.Word, Kind: v.Kind, Blame: v.Blame}
	if !slices.Contains(r.Modes, backend.Eager) {
		s.Mode = r.Mode()
	}
	if v.Word != verdict.Misaligned || v.Kind == verdict.Exception { // else a side raised after they had differed
		s.Reference, s.Candidate = sideOf(v.Reference), sideOf(v.Candidate)
	}
	if v.Where != nil {
		s.Operator = v.Where.Target[strings.LastIndexByte(v.Where.Target, '.')+1:]
		if t := verdict.At(r.Reference, *v.Where); t != nil {
			s.DTypes = dtypeClass(t.DType())
		}
	}
	if len(v.Differences) > 0 {
		s.Rule = v.Differences[0].Diff.Rule
	}
	return s
}

func sideOf(s *verdict.Side) string {
	switch {
	case s == nil:
		return ""
	case s.Status == backend.Raised:
		return s.Class
	}
	line, _, _ := strings.Cut(s.Message, "\n")
	return string(s.Status) + " " + strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return -1
		}
		return r
	}, line)
}

func dtypeClass(d tensor.DType) string {
	switch {
	case d.IsComplex():
		return "complex"
	case d == tensor.F16 || d == tensor.BF16:
		return "half"
	case d.IsFloat():
		return "float"
	case d.IsInt():
		return "int"
	}
	return d.String()
}

// String prints the signature in one line, such as
// "misaligned value of conv2d (float)".
func (s Signature) String() string {
	parts := []string{string(s.Word)}
	if s.Kind != "" {
		parts = append(parts, string(s.Kind))
	}
	if s.Operator != "" {
		parts = append(parts, "of "+s.Operator)
	}
	if s.DTypes != "" {
		parts = append(parts, "("+s.DTypes+")")
	}
	for _, side := range []struct{ name, what string }{{"reference", s.Reference}, {"candidate", s.Candidate}} {
		if side.what != "" {
			parts = append(parts, side.name+" "+side.what)
		}
	}
	if s.Mode != "" {
		parts = append(parts, "in "+s.Mode)
	}
	if s.Blame != "" {
		parts = append(parts, "("+s.Blame+")")
	}
	return strings.Join(parts, " ")
}
