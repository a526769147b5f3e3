package onekernel

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"plumb/backend"
	"plumb/internal/campaign/report/picture"
	"plumb/tensor"
)

// ParseLayout returns the layout of a name.
func ParseLayout(name string) (Layout, error) {
	all := []Layout{Contiguous, Transposed, Sliced, Expanded}
	if !slices.Contains(all, Layout(name)) {
		return "", fmt.Errorf("%q is no layout; there are contiguous, transposed, sliced, expanded", name)
	}
	return Layout(name), nil
}

// Plain reads a value of Python's: a number, True, False, None, a dtype, a tuple of
// these, or a string.
func Plain(text string) any { return plain(text) }

// toldAtMost is how many reasons, and how much evidence, a person is told: each program of a launch
// may be one.
const toldAtMost = 8

// widest bounds a line of a subject's text, in bytes.
const widest = 300

// Text is the report as a person reads it.
func (r *Report) Text() string {
	var b strings.Builder
	line := func(format string, args ...any) {
		b.WriteString(backend.Printable(fmt.Sprintf(format, args...), 4096) + "\n")
	}
	by := ""
	if r.Reference != "" {
		by = " (" + r.Reference + ")"
	}
	line("%s: %s, judged by %s%s", strings.ToUpper(string(r.Verdict)), r.Kernel, r.Against, by)
	few := func(begin string, of []Reason) {
		for _, reason := range of[:min(len(of), toldAtMost)] {
			line("%s%s%s", begin, short(reason.Text), times(reason.Cases))
		}
		if n := len(of) - toldAtMost; n > 0 {
			line("%sand %d more, which --json lists", begin, n)
		}
	}
	few("  ", r.Reasons)
	if r.When != "" && r.Verdict != Right {
		line("  %s", r.When)
	}
	if s := r.Smallest; s != nil {
		line("smallest call: %s", s.Case)
		for _, text := range strings.Split(strings.TrimSpace(s.Program), "\n") {
			if !strings.HasPrefix(text, "#") && !strings.HasPrefix(text, "import") && !strings.HasPrefix(text, "from") && !strings.HasPrefix(text, "case(") && text != "" {
				line("    %s", short(text))
			}
		}
		if s.Want != "" {
			line("  %s at %v: got %s, want %s%s; limit %s", s.Where, s.Index, s.Got, s.Want, truth(s.Truth), s.Limit)
		} else if s.Reason != "" {
			line("  %s", short(s.Reason))
		}
		for _, text := range r.where() {
			line("  %s", text)
		}
	}
	if r.Bundle != nil {
		line("  bundle: %s", r.Bundle)
	}
	few("evidence: ", slices.DeleteFunc(slices.Clone(r.Evidence), func(e Reason) bool {
		return slices.ContainsFunc(r.Reasons, func(told Reason) bool { return told.Text == e.Text })
	}))
	if len(r.Promises) > 0 {
		line("promised: %s", strings.Join(r.Promises, "; "))
	}
	if t := r.Tried; t.Cases == 0 {
		line("tried: no call")
	} else {
		line("tried: %d calls, %d right, %d refused; %s; %s; %d with gradients; sizes %s", t.Cases, t.Right, t.Refused,
			strings.Join(t.DTypes, ", "), strings.Join(t.Layouts, ", "), t.Gradients, ends3(t.Sizes))
	}
	for text, cases := range r.Refused {
		line("refused: %s, %d ×, as for %s", short(text), len(cases), cases[0])
	}
	if r.Time != nil {
		for i := range r.Time.Points {
			line("time: %s", &r.Time.Points[i])
		}
		if r.Time.Refused != "" {
			line("time: %s", short(r.Time.Refused))
		}
	}
	for _, what := range r.Sandbox.Missing {
		line("sandbox without %s", short(what))
	}
	for _, n := range r.Notes {
		line("note: %s", short(n))
	}
	line("seed %d, %.1f s", r.Seed, r.Seconds)
	return b.String()
}

// pictureWidth is that of a picture of where a result differs.
const pictureWidth = 76

// where shows where the result of the first failing call differs, or of the smallest
// one, whichever has more to see; nothing where it is no matter of place.
func (r *Report) where() []string {
	found := r.Found()
	if len(found) == 0 {
		return nil
	}
	field, of := picture.Of(found[0].Small), "there"
	if drawn := picture.Of(found[0].First); drawn != nil && (field == nil || len(drawn.Ratio) > len(field.Ratio)) {
		field, of = drawn, "in the first failing call"
	}
	if field == nil || len(field.Ratio) < 2 {
		return nil
	}
	head := fmt.Sprintf("%s %d of %d elements of %s are beyond the limit: %s", of, field.Over, len(field.Ratio), tensor.ShapeString(field.Shape), cmp.Or(field.Words(), "spread over it"))
	return append(append([]string{head}, field.Text(pictureWidth)...), picture.Legend)
}

func short(text string) string {
	if len(text) > widest {
		return text[:widest] + " …"
	}
	return text
}

// fixes say what to do about a file that cannot be loaded, by what its exception says.
var fixes = []struct{ says, fix string }{
	{"No module named", "--python names a Python that has it"},
	{"CUDA_HOME", "CUDA C++ takes nvcc: judge it on a machine with CUDA"},
	{"Ninja is required", "pip install ninja, for the Python of --python"},
}

// withFix is what an exception says, and what to do about it where that is known.
func withFix(text string) string {
	for _, f := range fixes {
		if strings.Contains(text, f.says) {
			return text + "; " + f.fix
		}
	}
	return text
}

func times(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(" (%d ×)", n)
}

func truth(text string) string {
	if text == "" {
		return ""
	}
	return ", truth " + text
}

func ends3(sizes []int) string {
	if len(sizes) == 0 {
		return "none"
	}
	return fmt.Sprintf("%d to %d", sizes[0], sizes[len(sizes)-1])
}
