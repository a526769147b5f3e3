package reffaults

import (
	"bytes"
	"cmp"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/cmplx"
	"path"
	"slices"
	"strings"

	"plumb/internal/judge/verdict"
	"plumb/program"
	"plumb/tensor"
)

// subjectFiles have the faults of other frameworks, a file each.
//
//go:embed subjects/*.json
var subjectFiles embed.FS

// subjectRow is a fault of another framework: operator (none stands for all), versions,
// kinds, and in which calls it shows. A row says at least one of what follows Kinds, beside a
// dtype. Where elements of a result belong to elements of inputs, by their shapes,
// what Least, Most and Has say is held of each that differs.
type subjectRow struct {
	Operator string         `json:"operator"`
	Versions string         `json:"versions"`
	Kinds    []verdict.Kind `json:"kinds"`
	// Everywhere says that all calls have the fault, in the row's dtype where it has one.
	Everywhere bool   `json:"everywhere"`
	DType      string `json:"dtype"` // of what takes part in the call
	// Least, Most and Beyond bound an element of an input, the real part of a complex
	// one, and its magnitude; At are the numbers that it may be.
	Least  *float64  `json:"least"`
	Most   *float64  `json:"most"`
	Beyond float64   `json:"beyond"`
	At     []float64 `json:"at"`
	Has    []string  `json:"has"` // what inputs have, all of it: words of inputsHave
	// Arguments have one of the values: null where it is not given, any where there
	// is no value in the list. Names are those of the operator's signature.
	Arguments map[string][]any `json:"arguments"`
	By        string           `json:"by"`     // the argument by which the gradient is wrong
	Within    float64          `json:"within"` // the largest error by the reference's elements
	Long      bool             `json:"long"`   // a number of the call is none of float32
	Text      []string         `json:"text"`   // parts, one of which a call's text has
	Shows     string           `json:"shows"`  // what the reference has where it differs: a word of shown
	Gives     string           `json:"gives"`  // what the subject has there: a word of shown
	Says      string           `json:"says"`   // what the exception's message has in it
	Signal    string           `json:"signal"` // by which the candidate ends, of a crash
	Reason    string           `json:"reason"`
	Proof     string           `json:"proof"`
}

// others are the frameworks beside PyTorch.
var others = readSubjects()

// Subjects are the faults of other frameworks.
var Subjects = func() (all []verdict.CandidateFault) {
	for _, fw := range others {
		all = append(all, fw.Faults...)
	}
	return all
}()

// readSubjects reads the files that are shipped; a mistake in one is ours.
func readSubjects() (all []Framework) {
	files, err := subjectFiles.ReadDir("subjects")
	if err != nil {
		panic(err)
	}
	for _, file := range files {
		text, err := subjectFiles.ReadFile("subjects/" + file.Name())
		if err != nil {
			panic(err)
		}
		fw, err := readSubject(strings.TrimSuffix(path.Base(file.Name()), ".json"), text)
		if err != nil {
			panic(err)
		}
		all = append(all, fw)
	}
	return all
}

func readSubject(name string, text []byte) (Framework, error) {
	var file struct {
		Name   string       `json:"name"` // where it is not that of the file
		Module string       `json:"module"`
		Setup  string       `json:"setup"`
		Faults []subjectRow `json:"faults"`
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&file); err != nil {
		return Framework{}, fmt.Errorf("faults of %s: %w", name, err)
	}
	fw := Framework{Name: cmp.Or(file.Name, name), Module: file.Module, Setup: file.Setup}
	for _, r := range file.Faults {
		f, err := r.fault()
		if err != nil {
			return fw, fmt.Errorf("faults of %s: %s: %w", name, r.Operator, err)
		}
		fw.Faults = append(fw.Faults, f)
	}
	return fw, nil
}

func (r *subjectRow) fault() (f verdict.CandidateFault, err error) {
	f.KnownFault = verdict.KnownFault{Reference: r.Versions, Target: r.Operator, Kinds: r.Kinds, Signal: r.Signal,
		Says: r.Says, Within: r.Within, Reason: r.Reason, Proof: r.Proof}
	if _, err := verdict.ParseVersions(r.Versions); err != nil {
		return f, err
	}
	if r.DType != "" {
		if f.DType, err = tensor.ParseDType(r.DType); err != nil {
			return f, err
		}
	}
	if r.Shows != "" {
		if f.Shows = shown[r.Shows]; f.Shows == nil {
			return f, fmt.Errorf("nothing shows %q", r.Shows)
		}
	}
	if r.Gives != "" {
		if f.Gives = shown[r.Gives]; f.Gives == nil {
			return f, fmt.Errorf("nothing gives %q", r.Gives)
		}
	}
	if r.By != "" {
		f.By = func(c *program.Call) (program.Ref, bool) {
			v, _ := argumentNamed(c, r.By)
			ref, ok := v.(program.Ref)
			return ref, ok
		}
	}
	whens, places, err := r.conditions()
	if err != nil {
		return f, err
	}
	narrow := len(whens) > 0 || r.By != "" || r.Within > 0 || r.Shows != "" || r.Gives != "" || r.Says != "" || r.Signal != ""
	if narrow == r.Everywhere {
		return f, errors.New("a row says in which calls the fault shows, or that it does everywhere")
	}
	if len(whens) > 0 {
		f.When = func(p *program.Program) bool {
			return !slices.ContainsFunc(whens, func(when func(*program.Program) bool) bool { return !when(p) })
		}
	}
	if len(places) > 0 {
		f.Places = allPlaces(places)
	}
	return f, nil
}

// conditions are what the row says of calls and of elements.
func (r *subjectRow) conditions() (whens []func(*program.Program) bool, places []place, err error) {
	if r.Least != nil || r.Most != nil || r.Beyond > 0 || len(r.At) > 0 {
		whens = append(whens, func(p *program.Program) bool {
			return slices.ContainsFunc(p.Inputs, func(in program.Input) bool { return hasOne(&in, r.within) })
		})
		places = append(places, someInput(r.within))
	}
	for _, word := range r.Has {
		h, ok := inputsHave[word]
		if !ok {
			return nil, nil, fmt.Errorf("no input has %q", word)
		}
		whens = append(whens, h.when)
		if h.at != nil {
			places = append(places, h.at)
		}
	}
	if len(r.Arguments) > 0 {
		whens = append(whens, r.hasArguments)
	}
	if r.Long {
		whens = append(whens, hasLongNumber)
	}
	if r.Text != nil {
		whens = append(whens, r.hasText)
	}
	return whens, places, nil
}

// hasText reports a call whose text has one of the row's parts.
func (r *subjectRow) hasText(p *program.Program) bool {
	return slices.ContainsFunc(p.Calls, func(c program.Call) bool {
		return slices.ContainsFunc(r.Text, func(part string) bool { return strings.Contains(c.String(), part) })
	})
}

// shown are the words of Shows and Gives.
var shown = map[string]func(complex128) bool{
	"zero":      func(v complex128) bool { return v == 0 },
	"infinity":  cmplx.IsInf,
	"nan":       cmplx.IsNaN,
	"small":     func(v complex128) bool { return cmplx.Abs(v) < 1e-3 },
	"subnormal": func(v complex128) bool { return v != 0 && cmplx.Abs(v) < 0x1p-126 }, // of float32
}

// hasLongNumber reports a call with a number that float32 does not hold.
func hasLongNumber(p *program.Program) bool {
	return slices.ContainsFunc(p.Calls, func(c program.Call) bool {
		return slices.ContainsFunc(c.Args, isLong) || slices.ContainsFunc(c.Kwargs, func(k program.Kwarg) bool { return isLong(k.Value) })
	})
}

func isLong(v any) bool {
	x, ok := v.(float64)
	return ok && !math.IsNaN(x) && float64(float32(x)) != x
}

func (r *subjectRow) within(v complex128) bool {
	x := real(v)
	return (r.Least == nil || x >= *r.Least) && (r.Most == nil || x <= *r.Most) && math.Abs(x) >= r.Beyond &&
		(len(r.At) == 0 || slices.Contains(r.At, x))
}
