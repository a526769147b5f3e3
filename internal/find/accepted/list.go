// Package accepted holds the list of failures that people know of and accept for
// a time: each with its scope, its reason, who answers for it and until when.
// A failure inside a scope is known; another kind of failure at the same place
// is not. An entry that has not failed for some runs is fixed, and should go.
package accepted

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml"

	"plumb/backend"
	"plumb/internal/find/shrink"
	"plumb/internal/judge/verdict"
	"plumb/program"
	"plumb/tensor"
)

// Version is the format that is written and read.
const Version = 1

// maxFile bounds the size of a list.
const maxFile = 1 << 20

// List is a file of entries.
type List struct {
	Version int     `yaml:"version"`
	Known   []Entry `yaml:"known"`
}

// Entry is one accepted failure. Empty fields of the scope match everything;
// Operator, Kind, Reason, Owner and Until must be given.
type Entry struct {
	// Operator is the last part of a public name, such as conv_transpose2d: it
	// stands for the function, the method and the module.
	Operator  string       `yaml:"operator"`
	Kind      verdict.Kind `yaml:"kind"`                // of misalignment, or crash, timeout, oom
	DType     string       `yaml:"dtype,omitempty"`     // of an input, or of the parameters
	Layout    string       `yaml:"layout,omitempty"`    // of an input: non-contiguous, channels_last or expanded
	Mode      string       `yaml:"mode,omitempty"`      // of the candidate: eager, graph
	Candidate string       `yaml:"candidate,omitempty"` // a backend, such as native
	// Signature, where given, is how the failure was seen to fail, and it has to
	// fail so again.
	Signature string `yaml:"signature,omitempty"`
	Reason    string `yaml:"reason"`
	Link      string `yaml:"link,omitempty"`
	Owner     string `yaml:"owner"`
	Until     string `yaml:"until"` // the last day, as 2027-01-31
}

// Read reads a list. Its errors name the entry and the field.
func Read(r io.Reader) (*List, error) {
	b, err := io.ReadAll(io.LimitReader(r, maxFile+1))
	if err != nil {
		return nil, err
	}
	if len(b) > maxFile {
		return nil, fmt.Errorf("the list is larger than %d bytes", maxFile)
	}
	l := &List{}
	if len(bytes.TrimSpace(b)) == 0 {
		return &List{Version: Version}, nil
	}
	if err := yaml.UnmarshalWithOptions(b, l, yaml.Strict()); err != nil {
		return nil, err
	}
	if l.Version != Version {
		return nil, fmt.Errorf("version %d: this plumb reads version %d", l.Version, Version)
	}
	for i := range l.Known {
		if err := l.Known[i].Validate(); err != nil {
			return nil, fmt.Errorf("entry %d: %w", i+1, err)
		}
	}
	return l, nil
}

// Bytes returns the text of the list.
func (l *List) Bytes() ([]byte, error) { return yaml.Marshal(l) }

// layouts are the words for an input's strides.
var layouts = []string{"non-contiguous", "channels_last", "expanded"}

// Validate returns what is wrong with an entry.
func (e *Entry) Validate() error {
	for _, f := range []struct{ name, value, why string }{
		{"operator", e.Operator, "which operator fails"}, {"kind", string(e.Kind), "how it fails"},
		{"reason", e.Reason, "why this is accepted"}, {"owner", e.Owner, "who answers for it"}, {"until", e.Until, "the last day, as 2027-01-31"},
	} {
		if strings.TrimSpace(f.value) == "" {
			return fmt.Errorf("%s is missing: say %s", f.name, f.why)
		}
	}
	if _, err := time.Parse(time.DateOnly, e.Until); err != nil {
		return fmt.Errorf("until: %q is not a day such as 2027-01-31", e.Until)
	}
	if e.Layout != "" && !slices.Contains(layouts, e.Layout) {
		return fmt.Errorf("layout: %q is none of %s", e.Layout, strings.Join(layouts, ", "))
	}
	if e.DType != "" {
		if _, err := tensor.ParseDType(e.DType); err != nil {
			return fmt.Errorf("dtype: %w", err)
		}
	}
	return nil
}

// Expired reports whether the entry's last day is over.
func (e *Entry) Expired(now time.Time) bool {
	until, err := time.Parse(time.DateOnly, e.Until)
	return err != nil || now.UTC().After(until.AddDate(0, 0, 1))
}

// Matches reports whether a failing record is the entry's.
func (e *Entry) Matches(r *verdict.Record) bool {
	return e.covers(r) && e.Kind == KindOf(r.Verdict) && (e.Signature == "" || e.Signature == shrink.SignatureOf(r).String())
}

// KindOf returns the kind of a misalignment, or the word of another failure.
func KindOf(v *verdict.Verdict) verdict.Kind {
	if v.Kind != "" {
		return v.Kind
	}
	return verdict.Kind(v.Word)
}

// covers reports whether the record's program lies in the entry's scope: at the
// call that differs, or, where none is blamed, in any call.
func (e *Entry) covers(r *verdict.Record) bool {
	candidate, _, _ := strings.Cut(r.Candidate, ":")
	if e.Candidate != "" && e.Candidate != candidate && e.Candidate != r.Candidate || !e.inModes(r.Modes) {
		return false
	}
	return e.calls(r) && e.hasDType(r.Program) && e.hasLayout(r.Program)
}

// inModes reports whether the entry is for a failure in the modes. One for
// eager holds whatever fails beside it; one for graph holds for graphs without
// passes too.
func (e *Entry) inModes(modes []string) bool {
	if e.Mode == "" || e.Mode == backend.Eager {
		return e.Mode == "" || len(modes) == 0 || slices.Contains(modes, backend.Eager)
	}
	return len(modes) > 0 && !slices.ContainsFunc(modes, func(m string) bool { return m != e.Mode && !strings.HasPrefix(m, e.Mode+"-") })
}

func (e *Entry) calls(r *verdict.Record) bool {
	if w := r.Verdict.Where; w != nil && w.Target != "" {
		return verdict.OperatorName(w.Target) == verdict.OperatorName(e.Operator)
	}
	return slices.ContainsFunc(r.Program.Calls, func(c program.Call) bool { return verdict.OperatorName(c.Target) == verdict.OperatorName(e.Operator) })
}

func (e *Entry) hasDType(p *program.Program) bool {
	d, _ := tensor.ParseDType(e.DType)
	return e.DType == "" || p.DType == d || slices.ContainsFunc(p.Inputs, func(in program.Input) bool { return in.DType == d })
}

func (e *Entry) hasLayout(p *program.Program) bool {
	return e.Layout == "" || slices.ContainsFunc(p.Inputs, func(in program.Input) bool {
		if in.Strides == nil || tensor.Contiguous.Matches(in.Shape, in.Strides) {
			return false
		}
		switch e.Layout {
		case "channels_last":
			return tensor.ChannelsLast.Matches(in.Shape, in.Strides)
		case "expanded":
			return slices.Contains(in.Strides, 0)
		}
		return true
	})
}

// Watch follows a list through a run.
type Watch struct {
	list    *List
	now     time.Time
	failed  []int // cases of each entry that failed, by entry
	covered []int // cases in each entry's scope that did not
}

// NewWatch returns a watch that knows what day it is.
func NewWatch(l *List, now time.Time) *Watch {
	return &Watch{l, now, make([]int, len(l.Known)), make([]int, len(l.Known))}
}

// Excuse makes a failing record known when an entry matches that has not
// expired, and counts what the entries cover.
func (w *Watch) Excuse(r *verdict.Record) {
	for i := range w.list.Known {
		e := &w.list.Known[i]
		switch {
		case !r.Verdict.Word.IsFinding():
			if r.Verdict.Word == verdict.Aligned && e.covers(r) {
				w.covered[i]++
			}
		case e.Expired(w.now):
		case e.Matches(r):
			w.failed[i]++
			v := *r.Verdict
			v.Word, v.Reason = verdict.Known, fmt.Sprintf("%s (%s, until %s); %s", e.Reason, e.Owner, e.Until, v.Reason)
			r.Verdict = &v
			return
		}
	}
}

// enough is how many cases in an entry's scope make a run say something of it.
const enough = 10

// Clean returns the entries that had cases in this run, none of which failed;
// Failed those of which some did.
func (w *Watch) Clean() (clean, failed []*Entry) {
	for i := range w.list.Known {
		switch {
		case w.failed[i] > 0:
			failed = append(failed, &w.list.Known[i])
		case w.covered[i] >= enough:
			clean = append(clean, &w.list.Known[i])
		}
	}
	return clean, failed
}

// Expired returns the entries whose last day is over.
func (w *Watch) Expired() []*Entry {
	var out []*Entry
	for i := range w.list.Known {
		if w.list.Known[i].Expired(w.now) {
			out = append(out, &w.list.Known[i])
		}
	}
	return out
}

// String names the entry's scope, such as "shape of conv_transpose2d (bfloat16)".
func (e *Entry) String() string {
	s := fmt.Sprintf("%s of %s", e.Kind, e.Operator)
	var narrow []string
	for _, f := range []string{e.DType, e.Layout, e.Mode, e.Candidate} {
		if f != "" {
			narrow = append(narrow, f)
		}
	}
	if narrow != nil {
		s += " (" + strings.Join(narrow, ", ") + ")"
	}
	return s
}
