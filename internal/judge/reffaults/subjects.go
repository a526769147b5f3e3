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

// subjectRow is a fault of another framework: operator, versions, kinds, and in
// which calls: of a dtype, with an element that is at least or at most a number,
// with a number that float32 does not hold, whose text has one of some parts;
// Shows is what the reference has at the first element that differs, Signal that by which a
// candidate ends that crashes.
type subjectRow struct {
	Operator string         `json:"operator"`
	Versions string         `json:"versions"`
	Kinds    []verdict.Kind `json:"kinds"`
	DType    string         `json:"dtype"`
	Least    *float64       `json:"least"`
	Most     *float64       `json:"most"`
	Long     bool           `json:"long"`
	Text     []string       `json:"text"`
	Shows    string         `json:"shows"`
	Signal   string         `json:"signal"`
	Reason   string         `json:"reason"`
	Proof    string         `json:"proof"`
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
	f.KnownFault = verdict.KnownFault{Reference: r.Versions, Target: r.Operator, Kinds: r.Kinds, Signal: r.Signal, Reason: r.Reason, Proof: r.Proof}
	if _, err := verdict.ParseVersions(r.Versions); err != nil {
		return f, err
	}
	if r.DType != "" {
		if f.DType, err = tensor.ParseDType(r.DType); err != nil {
			return f, err
		}
	}
	if r.Least != nil || r.Most != nil {
		f.When = func(p *program.Program) bool {
			return slices.ContainsFunc(p.Inputs, func(in program.Input) bool { return hasElement(&in, r.within) })
		}
	}
	if r.Long {
		if f.When != nil {
			return f, errors.New("long beside least or most")
		}
		f.When = hasLongNumber
	}
	if r.Text != nil {
		if f.When != nil {
			return f, errors.New("text beside least, most or long")
		}
		f.When = r.hasText
	}
	if r.Shows != "" {
		if f.Shows = shown[r.Shows]; f.Shows == nil {
			return f, fmt.Errorf("nothing shows %q", r.Shows)
		}
	}
	return f, nil
}

// hasText reports a call whose text has one of the row's parts.
func (r *subjectRow) hasText(p *program.Program) bool {
	return slices.ContainsFunc(p.Calls, func(c program.Call) bool {
		return slices.ContainsFunc(r.Text, func(part string) bool { return strings.Contains(c.String(), part) })
	})
}

// shown are the words of Shows.
var shown = map[string]func(complex128) bool{
	"infinity": cmplx.IsInf,
	"nan":      cmplx.IsNaN,
	"small":    func(v complex128) bool { return cmplx.Abs(v) < 1e-3 },
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

func (r *subjectRow) within(v float64) bool {
	return (r.Least == nil || v >= *r.Least) && (r.Most == nil || v <= *r.Most)
}
