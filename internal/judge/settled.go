package judge

import (
	"fmt"
	"slices"

	"plumb/backend"
	"plumb/internal/judge/compare"
	"plumb/internal/judge/verdict"
	"plumb/internal/refusal"
	"plumb/tensor"
)

// Settled is what decided one comparison of a case. A judge that has it holds
// two sides to that alone, as the proof of a finding does.
type Settled struct {
	Rule    compare.Rule    `json:"rule,omitempty"`
	Limit   compare.Limit   `json:"limit"`
	Options compare.Options `json:"options"`
	// Classes asks that both sides raise the same class.
	Classes bool `json:"classes,omitempty"`
	// Metadata compares no elements, only dtype and shape.
	Metadata bool `json:"metadata,omitempty"`
}

// Breach returns how got breaks what is settled; "" when it does not.
func (j *Judge) Breach(want, got *tensor.Tensor) string {
	s := j.settled
	if s.Limit.Error != nil && want != nil && !slices.Equal(s.Limit.Error.Shape(), want.Shape()) {
		return fmt.Sprintf("want is %s, which is not what the limit was made for", want)
	}
	if s.Metadata {
		return compare.Metadata(want, got, s.Options).Message
	}
	d := compare.Judge(want, got, s.Limit, s.Options)
	if d.OK && s.Rule == verdict.Bias && verdict.OneSided(&d) {
		return fmt.Sprintf("all %d errors lean to one side", d.Total-d.Hist[0])
	}
	return d.Message
}

// EndAlike reports whether both sides raise, or neither, and where it is
// settled so the same class.
func (j *Judge) EndAlike(want, got *backend.Outcome) bool {
	raised, expected := got.Status == backend.Raised, want.Status == backend.Raised
	return raised == expected && (!j.settled.Classes || refusal.Caught(got) == refusal.Caught(want))
}
