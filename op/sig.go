package op

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"plumb/tensor"
)

// Kind is the base type of a parameter.
type Kind uint8

// The base types of PyTorch's schema notation that Plumb knows.
const (
	KTensor Kind = iota
	KScalar
	KInt
	KFloat
	KBool
	KStr
	KDType
	KDevice
	KFormat
	KGenerator
	KIndex
	KData
	KShape // int[] where it is an element of a list, int[][]
)

var kindNames = [...]string{
	KTensor: "Tensor", KScalar: "Scalar", KInt: "int", KFloat: "float", KBool: "bool", KStr: "str",
	KDType: "dtype", KDevice: "device", KFormat: "MemoryFormat", KGenerator: "Generator", KIndex: "Index", KData: "Data",
	KShape: "int[]",
}

// String returns the schema's name of the kind.
func (k Kind) String() string { return kindNames[k] }

// Type is a parameter type: a kind, whether it is a list of it, the list's
// length when fixed, and whether None is allowed.
type Type struct {
	Kind     Kind
	List     bool
	N        int // of int[N]; 0 when the length is free
	Optional bool
	Holes    bool // int?[N] and Tensor?[]: elements may be None, which reads as NoInt or nil
}

// NoInt stands for None in an int?[] argument.
const NoInt = math.MinInt

// String returns the schema notation, such as "int[2]?".
func (t Type) String() string {
	s := t.Kind.String()
	if t.Holes {
		s += "?"
	}
	if t.List {
		s += "["
		if t.N > 0 {
			s += strconv.Itoa(t.N)
		}
		s += "]"
	}
	if t.Optional {
		s += "?"
	}
	return s
}

// Element returns the type of the elements of a list.
func (t Type) Element() Type {
	if t.Kind == KShape {
		return Type{Kind: KInt, List: true}
	}
	return Type{Kind: t.Kind}
}

// Param is one parameter of a signature.
type Param struct {
	Name            string
	Type            Type
	Default         any // valid when HasDefault; normalised as Bind does
	HasDefault      bool
	KwOnly          bool
	Choice          bool     // a value of another type is a ValueError: it is none of those to choose from
	OneOf           []string // what text may be given; nil for any
	OnlyInOverloads bool     // callers give it through another signature of the operator
}

// Sig is a parsed signature.
type Sig struct {
	Name    string // as written before the parenthesis, such as "max.dim"
	Params  []Param
	Results []string // names of the results; one unnamed result is ""
	Many    bool     // the result is a list of tensors, as long as the arguments say
	Plain   bool     // the result is a Python bool or number, computed as a 0-d tensor
	Unnamed bool     // no argument may be given by keyword
	text    string
}

// String returns the signature as it was written.
func (s *Sig) String() string { return s.text }

// Written returns the parameters as they were written, each with its type and default.
func (s *Sig) Written() []string {
	_, rest, _ := strings.Cut(s.text, "(")
	return slices.DeleteFunc(splitTop(rest[:closing(rest)]), func(field string) bool { return field == "*" })
}

// Takes reports whether the signature has the parameter.
func (s *Sig) Takes(p Handle) bool { return s.Index(p) >= 0 }

// Index returns the position of the parameter, or -1.
func (s *Sig) Index(p Handle) int { return s.index(p.Name()) }

func (s *Sig) index(name string) int {
	for i := range s.Params {
		if n := s.Params[i].Name; len(n) == len(name) && (len(n) == 0 || n[0] == name[0]) && n == name {
			return i
		}
	}
	return -1
}

// ParseSig reads a signature in PyTorch's schema notation:
//
//	leaky_relu(Tensor input, float negative_slope=0.01, *, bool flag=False) -> Tensor
//	max.dim(Tensor input, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)
//	unbind(Tensor input, int dim=0) -> Tensor[]
//	equal(Tensor input, Tensor other) -> bool
//
// A signature without "->" (a module's constructor) has no results.
func ParseSig(text string) (*Sig, error) {
	fail := func(format string, args ...any) (*Sig, error) {
		return nil, fmt.Errorf("signature %q: %s", text, fmt.Sprintf(format, args...))
	}
	name, rest, ok := strings.Cut(text, "(")
	if !ok {
		return fail("no parameter list")
	}
	end := closing(rest)
	if end < 0 {
		return fail("parentheses do not match")
	}
	s := &Sig{Name: strings.TrimSpace(name), text: text}
	kwOnly := false
	for _, field := range splitTop(rest[:end]) {
		if field == "*" {
			kwOnly = true
			continue
		}
		p, err := parseParam(field)
		if err != nil {
			return fail("%v", err)
		}
		p.KwOnly = kwOnly
		if s.index(p.Name) >= 0 {
			return fail("parameter %s appears twice", p.Name)
		}
		s.Params = append(s.Params, p)
	}
	after := strings.TrimSpace(rest[end+1:])
	if after == "" {
		return s, nil
	}
	results, ok := strings.CutPrefix(after, "->")
	if !ok {
		return fail("unexpected %q after the parameters", after)
	}
	results = strings.TrimSpace(results)
	if strings.HasPrefix(results, "(") {
		results = strings.TrimSuffix(results[1:], ")")
	}
	for _, r := range splitTop(results) {
		typ, name, _ := strings.Cut(r, " ")
		t, err := parseType(typ)
		if err != nil || t.Kind > KBool {
			return fail("result %q is not a tensor, bool or number", r)
		}
		s.Plain = t.Kind != KTensor
		s.Many = s.Many || t.List
		s.Results = append(s.Results, name)
	}
	return s, nil
}

// MustParseSig is ParseSig for literals; it panics on an error.
func MustParseSig(text string) *Sig {
	s, err := ParseSig(text)
	if err != nil {
		panic(err)
	}
	return s
}

// closing returns the index of the parenthesis that closes s's start.
func closing(s string) int {
	depth := 1
	for i, c := range s {
		switch c {
		case '(', '[':
			depth++
		case ')', ']':
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return -1
}

func splitTop(s string) []string {
	var parts []string
	depth, start := 0, 0
	for i, c := range s {
		switch c {
		case '(', '[':
			depth++
		case ')', ']':
			depth--
		case ',':
			if depth == 0 {
				parts = append(parts, strings.TrimSpace(s[start:i]))
				start = i + 1
			}
		}
	}
	if last := strings.TrimSpace(s[start:]); last != "" {
		parts = append(parts, last)
	}
	return parts
}

func parseType(s string) (Type, error) {
	var t Type
	base := s
	if strings.HasSuffix(base, "?") {
		t.Optional, base = true, strings.TrimSuffix(base, "?")
	}
	if open := strings.LastIndexByte(base, '['); open >= 0 && strings.HasSuffix(base, "]") {
		t.List = true
		if n := base[open+1 : len(base)-1]; n != "" {
			v, err := strconv.Atoi(n)
			if err != nil || v < 1 {
				return t, fmt.Errorf("bad list length in type %q", s)
			}
			t.N = v
		}
		base = base[:open]
		if base == "int?" || base == "Tensor?" {
			t.Holes, base = true, strings.TrimSuffix(base, "?")
		}
	}
	for k, name := range kindNames {
		if name == base && (Kind(k) != KShape || t.List) {
			t.Kind = Kind(k)
			return t, nil
		}
	}
	return t, fmt.Errorf("unknown type %q", s)
}

func parseParam(field string) (Param, error) {
	typ, rest, ok := strings.Cut(field, " ")
	if !ok {
		return Param{}, fmt.Errorf("parameter %q has no name", field)
	}
	t, err := parseType(typ)
	if err != nil {
		return Param{}, err
	}
	name, def, has := strings.Cut(strings.TrimSpace(rest), "=")
	p := Param{Name: strings.TrimSpace(name), Type: t}
	if !has {
		return p, nil
	}
	raw, err := parseDefault(strings.TrimSpace(def))
	if err != nil {
		return p, fmt.Errorf("default of %s: %w", p.Name, err)
	}
	if p.Default, err = normalise(t, raw); err != nil {
		return p, fmt.Errorf("default of %s: %w", p.Name, err)
	}
	p.HasDefault = true
	return p, nil
}

func parseDefault(s string) (any, error) {
	switch s {
	case "None":
		return nil, nil
	case "True":
		return true, nil
	case "False":
		return false, nil
	}
	if strings.HasPrefix(s, "[") && strings.HasSuffix(s, "]") {
		list := []any{}
		for _, e := range splitTop(s[1 : len(s)-1]) {
			v, err := parseDefault(e)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		return list, nil
	}
	if q := strings.Trim(s, `'"`); len(q) == len(s)-2 {
		return q, nil
	}
	if f, err := tensor.ParseMemoryFormat(s); err == nil {
		return f, nil
	}
	if i, err := strconv.ParseInt(s, 10, 64); err == nil {
		return i, nil
	}
	if f, err := strconv.ParseFloat(s, 64); err == nil {
		return f, nil
	}
	return nil, fmt.Errorf("cannot read %q", s)
}
