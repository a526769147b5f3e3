package picture

import (
	"encoding/xml"
	"io"
	"math"
	"strings"
	"testing"

	"plumb/backend"
	"plumb/internal/judge/compare"
	"plumb/internal/judge/verdict"
	"plumb/tensor"
)

// field is one in which the elements that wrong chooses are off.
func field(wrong func(at []int) bool, shape ...int) *Field {
	want, got := tensor.New(tensor.F32, shape...), tensor.New(tensor.F32, shape...)
	f := &Field{Shape: shape}
	for i := range want.Len() {
		want.Set(i, complex(float64(i%7), 0))
		got.Set(i, want.At(i))
		if wrong(f.Index(i)) {
			got.Set(i, want.At(i)+1)
		}
	}
	return measure(want, got, compare.Limit{ATol: 0.25})
}

func TestWords(t *testing.T) {
	for want, f := range map[string]*Field{
		"only index 2 of dim 1 (of 5)":                                                         field(func(at []int) bool { return at[1] == 2 }, 3, 5, 4),
		"only the first index of dim 0 (of 3)":                                                 field(func(at []int) bool { return at[0] == 0 }, 3, 5, 4),
		"only the last index, 3, of dim 2 (of 4)":                                              field(func(at []int) bool { return at[2] == 3 }, 3, 5, 4),
		"only the first and the last index of dim 1 (of 5)":                                    field(func(at []int) bool { return at[1]%4 == 0 }, 3, 5, 4),
		"only from index 3 on of dim 1 (of 5)":                                                 field(func(at []int) bool { return at[1] >= 3 }, 3, 5, 4),
		"only every second index from 1 on of dim 0 (of 9)":                                    field(func(at []int) bool { return at[0]%2 == 1 }, 9, 2),
		"only at a border: first of dim 1, last of dim 1, last of dim 2":                       field(func(at []int) bool { return at[1]%4 == 0 || at[2] == 3 }, 3, 5, 4),
		"only indices 1 to 2 of dim 0 (of 4); only indices 1, 4 of dim 1 (of 6)":               field(func(at []int) bool { return (at[0] == 1 || at[0] == 2) && at[1]%3 == 1 }, 4, 6),
		"only at a border: first of dim 2, last of dim 2, first of dim 3, last of dim 3":       field(func(at []int) bool { return at[2]%6 == 0 || at[3]%4 == 0 }, 2, 3, 7, 5), // padding of a convolution
		"only index 3 of dim 0 (of 6), where a part of a split in 2 begins":                    field(func(at []int) bool { return at[0] == 3 }, 6, 3),
		"only index 4 of dim 0 (of 7), where a part of a split in 2 begins":                    field(func(at []int) bool { return at[0] == 4 }, 7, 3),
		"only indices 4, 7 of dim 1 (of 10), where a part of a split in 3 begins":              field(func(at []int) bool { return at[1] == 4 || at[1] == 7 }, 2, 10),
		"only every third index from 2 on of dim 0 (of 12), where a part of a split in 4 ends": field(func(at []int) bool { return at[0]%3 == 2 && at[0] < 11 }, 12, 2),
		"all 12 elements": field(func([]int) bool { return true }, 3, 4),
		"":                field(func(at []int) bool { return (at[0]+at[1])%2 == 0 }, 6, 6),
	} {
		if got := f.Words(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestText(t *testing.T) {
	f := field(func(at []int) bool { return at[0] == 1 && at[2] == 3 }, 2, 3, 4)
	want := `dim 0       2  ·█
dim 1       3  ███
dim 2       4  ···█
dims 1 × 2 at [1]
               ···▓
               ···▓
               ···▓`
	if got := strings.Join(f.Text(80), "\n"); got != strings.ReplaceAll(want, "█", "▓") {
		t.Errorf("\n%s\nwant\n%s", got, want)
	}
	for _, line := range field(func(at []int) bool { return at[1] > 100 }, 100, 300).Text(60) {
		if n := len([]rune(line)); n > 60 {
			t.Errorf("a line of %d characters: %s", n, line)
		}
	}
}

// TestSVG: pictures are well-formed, whatever is in the tensor.
func TestSVG(t *testing.T) {
	odd := field(func(at []int) bool { return at[1] == 1 }, 4, 3)
	odd.Got[4], odd.Want[7], odd.ULP[4], odd.Ratio[4] = math.NaN(), math.Inf(-1), math.NaN(), math.Inf(1)
	for _, f := range []*Field{odd, field(func([]int) bool { return true }), field(func(at []int) bool { return at[0] > 5 }, 1000), field(func(at []int) bool { return at[0] == at[1] }, 200, 200)} {
		pictures := f.Histogram() + f.Scatter()
		for d := range f.Shape {
			pictures += f.Strip(d)
		}
		for _, s := range f.Slices() {
			pictures += f.Heat(s)
		}
		d := xml.NewDecoder(strings.NewReader("<g>" + pictures + "</g>"))
		for {
			if _, err := d.Token(); err == io.EOF {
				break
			} else if err != nil {
				t.Fatalf("%v: %s", err, pictures)
			}
		}
		if strings.Contains(pictures, "NaN") || len(pictures) > 64<<10 {
			t.Errorf("%d bytes of %v", len(pictures), f.Shape)
		}
	}
	if at := odd.Unlike(5); len(at) != 2 {
		t.Errorf("%d elements are not finite on one side, want 2: %v", len(at), at)
	}
}

// TestMissingSecondGradient: one that a side does not have is drawn as the zeros that it
// was compared as.
func TestMissingSecondGradient(t *testing.T) {
	at := backend.Place{Part: backend.PartSecondGrad, Owner: "x"}
	want := tensor.New(tensor.F32, 2)
	want.Set(1, 3)
	r := &verdict.Record{
		Reference: &backend.Outcome{Slots: []backend.Slot{{Place: at, Tensor: want}}}, Outcome: &backend.Outcome{},
		Verdict: &verdict.Verdict{Differences: []verdict.Difference{{Where: verdict.Where{Part: at.Part, Name: at.Owner}, Diff: compare.Diff{Rule: compare.Distance}}}},
	}
	if f := Of(r); f == nil || f.Over != 1 || f.Want[1] != 3 || f.Got[1] != 0 {
		t.Errorf("%+v", f)
	}
}
