package onekernel

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"

	"plumb/backend"
	"plumb/internal/judge/compare"
	"plumb/internal/judge/verdict"
	"plumb/program"
)

// Found is what is said against a kernel, with a call that shows it.
type Found struct {
	Reason
	First *verdict.Record // as it was drawn
	Small *verdict.Record // the smallest that is known
}

// Records are the calls that were judged, as records of a run: what the kernel
// refuses is unsupported, and what is within its limits is aligned.
func (r *Report) Records() []*verdict.Record {
	var all []*verdict.Record
	for _, of := range r.session.outcomes {
		all = append(all, r.record(of, ""))
	}
	return all
}

// Found returns what is said against the kernel. What was seen in no call, such as
// at its import, has a record without one.
func (r *Report) Found() []Found {
	if r.session == nil || r.Verdict == Right || r.Verdict == Nothing {
		return nil
	}
	var all []Found
	for i, reason := range r.Reasons {
		f := Found{Reason: reason}
		at := slices.IndexFunc(r.session.outcomes, func(of *result) bool { return of.has(reason.Kind) })
		if at >= 0 {
			f.First = r.record(r.session.outcomes[at], reason.Kind)
		} else {
			f.First = r.callless(reason)
		}
		if f.Small = f.First; i == 0 && r.Smallest != nil {
			f.Small = r.record(r.Smallest.result, reason.Kind)
		}
		all = append(all, f)
	}
	return all
}

// has reports whether a case shows a kind of problem.
func (r *result) has(kind string) bool {
	return slices.ContainsFunc(r.problems, func(f finding) bool { return f.Kind == kind }) || kind == "refuses" && r.kernel.Status == backend.Raised
}

func (r *Report) callless(reason Reason) *verdict.Record {
	return &verdict.Record{
		Test: "kernel::" + r.Kernel, Candidate: r.Kernel, Modes: []string{backend.Eager}, Program: &program.Program{Name: r.Kernel},
		Verdict:   &verdict.Verdict{Word: verdict.Misaligned, Kind: verdict.Kind(reason.Kind), Reason: reason.Text},
		Reference: &backend.Outcome{}, Outcome: &backend.Outcome{},
	}
}

// record is a case as a record; kind is the problem that it is to show, "" for its first.
func (r *Report) record(of *result, kind string) *verdict.Record {
	return &verdict.Record{
		Test: "kernel::" + r.Kernel, Index: of.Index, Candidate: r.Kernel, Modes: []string{backend.Eager},
		Program: of.program, Verdict: of.told(kind), Reference: of.ref, Outcome: of.kernel,
	}
}

// endings are the words of what a kernel's process did instead of returning.
var endings = map[backend.Status]verdict.Word{backend.Crashed: verdict.Crash, backend.TimedOut: verdict.Timeout, backend.OutOfMemory: verdict.OOM}

// timesLimit is what the judge says of an error.
var timesLimit = regexp.MustCompile(`is (\S+) x the limit`)

// beyond says of an error how far it is beyond the limit of kernels.
func (r *result) beyond(reason string) string {
	return timesLimit.ReplaceAllStringFunc(reason, func(text string) string {
		ratio, err := strconv.ParseFloat(timesLimit.FindStringSubmatch(text)[1], 64)
		if err != nil {
			return text
		}
		return fmt.Sprintf("is %.3g x the limit", ratio/r.slack)
	})
}

// told is the verdict on a case by the limits of kernels.
func (r *result) told(kind string) *verdict.Verdict {
	v := &verdict.Verdict{}
	if r.verdict != nil {
		*v = *r.verdict
	}
	v.Differences, v.Margins = slices.Clone(v.Differences), slices.Clone(v.Margins)
	for i := range v.Differences {
		d := &v.Differences[i]
		d.Limit = d.Limit.Times(r.slack)
		d.Diff.WorstRatio /= compare.Number(r.slack)
	}
	excused := r.fine()
	scale := func(ratio *compare.Number) {
		if *ratio /= compare.Number(r.slack); excused { // by more than the limit
			*ratio = min(*ratio, 1)
		}
	}
	for i := range v.Margins {
		scale(&v.Margins[i].Ratio)
	}
	scale(&v.Worst)
	v.Reason = r.beyond(v.Reason)
	at := slices.IndexFunc(r.problems, func(f finding) bool { return kind == "" || f.Kind == kind })
	switch word := endings[r.kernel.Status]; {
	case at < 0 && excused:
		v.Word, v.Kind, v.Reason, v.Where, v.Differences = verdict.Aligned, "", "", nil, nil
	case at < 0:
		v.Word, v.Reason = verdict.Unsupported, "the candidate does not support this program: "+refusal(r)
	case r.misaligned && r.problems[at].Kind == string(v.Kind): // the judge's own words
	default:
		problem := r.problems[at]
		v.Word, v.Kind, v.Reason = verdict.Misaligned, verdict.Kind(problem.Kind), problem.Text
		if word != "" {
			v.Word = word
		}
		if !r.misaligned {
			v.Where, v.Differences = nil, nil
		}
	}
	return v
}
