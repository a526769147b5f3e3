package verdict

import (
	"slices"
	"strings"
	"testing"

	"plumb/backend"
	"plumb/internal/judge/compare"
	"plumb/tensor"
)

// TestPoll: who is alone, and when that blames the reference.
func TestPoll(t *testing.T) {
	holds := func(v float64) *backend.Outcome {
		return &backend.Outcome{Status: backend.OK, Values: []backend.Value{{Tensor: tensor.Scalar(tensor.F32, complex(v, 0))}}}
	}
	raises := &backend.Outcome{Status: backend.Raised, Class: "ValueError", Message: "no"}
	lacks := &backend.Outcome{Status: backend.Unsupported}
	truth := func(v float64) *tensor.Tensor { return tensor.Scalar(tensor.F64, complex(v, 0)) }
	for name, c := range map[string]struct {
		ref   *backend.Outcome
		cands []*backend.Outcome // named a, b, …; the finding is of a
		exact *tensor.Tensor
		kind  Kind
		none  bool
		alone string
		blame string
	}{
		"the reference against truth and candidates": {ref: holds(2), cands: []*backend.Outcome{holds(1), holds(1)}, exact: truth(1), alone: "torch", blame: "torch"},
		"one candidate and the truth":                {ref: holds(2), cands: []*backend.Outcome{holds(1)}, exact: truth(1), alone: "torch", blame: "torch"},
		"no truth blames nobody":                     {ref: holds(2), cands: []*backend.Outcome{holds(1), holds(1)}, alone: "torch"},
		"the candidate":                              {ref: holds(2), cands: []*backend.Outcome{holds(1), holds(2)}, alone: "a"},
		"the candidate, says the truth":              {ref: holds(2), cands: []*backend.Outcome{holds(1)}, exact: truth(2), alone: "a"},
		"two are":                                    {ref: holds(2), cands: []*backend.Outcome{holds(1), holds(3)}, exact: truth(3), alone: "torch a"},
		"nobody agrees":                              {ref: holds(2), cands: []*backend.Outcome{holds(1), holds(3)}},
		"two against two":                            {ref: holds(2), cands: []*backend.Outcome{holds(1), holds(1), holds(2)}},
		"within the limit of the truth":              {ref: holds(1.2), cands: []*backend.Outcome{holds(0.8), holds(1)}, exact: truth(1)},
		"what lacks it has no vote":                  {ref: holds(2), cands: []*backend.Outcome{holds(1), lacks}, none: true},
		"two voices":                                 {ref: holds(2), cands: []*backend.Outcome{holds(1)}, none: true},
		"an exception":                               {ref: raises, cands: []*backend.Outcome{holds(1), holds(3)}, kind: Exception, alone: "torch"},
		"a candidate that raises too":                {ref: holds(2), cands: []*backend.Outcome{holds(1), raises, holds(2)}, alone: "a b"},
	} {
		v := &Verdict{Word: Misaligned, Kind: c.kind, Differences: []Difference{{
			Where: Where{Part: backend.PartValue, Name: "y"}, Limit: compare.Limit{ATol: 0.25}, exact: c.exact,
			Diff: compare.Diff{Rule: compare.Distance, First: []int{}},
		}}}
		var voters []Voter
		for i, o := range c.cands {
			voters = append(voters, Voter{string(rune('a' + i)), o})
		}
		got := v.Poll(Voter{"torch", c.ref}, voters)
		if c.none {
			if got.Vote != nil {
				t.Errorf("%s: %+v", name, got.Vote)
			}
			continue
		}
		if got.Vote == nil || !slices.Equal(got.Vote.Alone, strings.Fields(c.alone)) || got.ToBlame() != c.blame {
			t.Errorf("%s: %+v, want %q alone and %q to blame", name, got.Vote, c.alone, c.blame)
		}
		if v.Vote != nil {
			t.Errorf("%s: the verdict, which others share, is changed", name)
		}
	}
}

// TestPollOfIntegers: the truth of an int64 has digits that a float64 lacks.
func TestPollOfIntegers(t *testing.T) {
	holds := func(v int64) *tensor.Tensor {
		x := tensor.Scalar(tensor.I64, 0)
		x.SetInt(0, v)
		return x
	}
	outcome := func(v int64) *backend.Outcome {
		return &backend.Outcome{Status: backend.OK, Values: []backend.Value{{Tensor: holds(v)}}}
	}
	v := &Verdict{Word: Misaligned, Differences: []Difference{{
		Where: Where{Part: backend.PartValue, Name: "y"}, Limit: compare.Exactly(""), exact: holds(1<<62 + 1),
		Diff: compare.Diff{Rule: compare.Distance, First: []int{}},
	}}}
	got := v.Poll(Voter{"torch", outcome(1<<62 + 1)}, []Voter{{"a", outcome(1 << 62)}})
	if got.Vote == nil || !slices.Equal(got.Vote.Alone, []string{"a"}) || got.ToBlame() != "" {
		t.Errorf("%+v, want a alone", got.Vote)
	}
}
