package coverage_test

import (
	"bytes"
	"reflect"
	"strings"
	"testing"

	"plumb/internal/campaign/coverage"
)

func small() (*coverage.Matrix, *coverage.Op) {
	m := &coverage.Matrix{Reference: "torch 1", Seed: 7, Cases: 2, DTypes: []string{"float32", "bfloat16"}, Layouts: []string{"contiguous", "gapped"}}
	return m, m.Add("relu")
}

func fill(m *coverage.Matrix, o *coverage.Op) {
	for _, dir := range coverage.Directions {
		for _, dt := range m.DTypes {
			for _, l := range m.Layouts {
				m.Set(o, dir, dt, l, coverage.Aligned, "")
			}
		}
	}
}

func TestTheWorstCaseOfACellCounts(t *testing.T) {
	m, o := small()
	for _, step := range []struct {
		state coverage.State
		want  string
	}{
		{coverage.Impossible, " ."}, {coverage.Refused, " x"}, {coverage.Beyond, " u"}, {coverage.Aligned, " +"},
		{coverage.Refused, " +"}, {coverage.Misaligned, " !"}, {coverage.Aligned, " !"},
	} {
		m.Set(o, coverage.Forward, "float32", "gapped", step.state, "because of "+string(rune(step.state)))
		if got := o.Cells[coverage.Forward]["float32"]; got != step.want {
			t.Errorf("after %c: %q, want %q", step.state, got, step.want)
		}
		want := "because of " + step.want[1:]
		if step.want == " +" {
			want = ""
		}
		if got := o.Reason(coverage.Forward, "float32", "gapped"); got != want {
			t.Errorf("after %c: the reason is %q, want %q", step.state, got, want)
		}
	}
	if len(o.Reasons) != 1 {
		t.Errorf("reasons that no cell has: %v", o.Reasons)
	}
}

func TestUnexplainedCells(t *testing.T) {
	m, o := small()
	if got := m.Unexplained(); len(got) != 12 || got[0] != "relu forward float32 contiguous" {
		t.Errorf("of an empty matrix: %q", got)
	}
	fill(m, o)
	m.Set(o, coverage.Second, "bfloat16", "gapped", coverage.Misaligned, "")
	if got := m.Unexplained(); len(got) != 1 || got[0] != "relu second bfloat16 gapped" {
		t.Errorf("without a reason: %q", got)
	}
}

func TestReadGivesWhatWriteWrote(t *testing.T) {
	m, o := small()
	fill(m, o)
	m.Set(o, coverage.Backward, "bfloat16", "gapped", coverage.Misaligned, `a < "b"`)
	var b bytes.Buffer
	if err := m.Write(&b); err != nil {
		t.Fatal(err)
	}
	got, err := coverage.Read(&b)
	if err != nil || !reflect.DeepEqual(got, m) {
		t.Errorf("%v\n%+v\n%+v", err, got.Ops[0], o)
	}
}

func TestReadRefusesOtherFiles(t *testing.T) {
	m, _ := small()
	var b bytes.Buffer
	if err := m.Write(&b); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"", "[]", "{}", "null", strings.Replace(b.String(), `"contiguous",`, "", 1)} {
		if _, err := coverage.Read(strings.NewReader(text)); err == nil || !strings.HasPrefix(err.Error(), "no coverage file: ") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

const picture = `
                                      f32      bf16    
relu                         forward  ++       ++      
                             backward ++       +!      
                             second   ++       ++      
    off by one
      backward bfloat16: gapped

forward   4 "+"
backward  1 "!"  3 "+"
second    4 "+"
`

func TestText(t *testing.T) {
	m, o := small()
	fill(m, o)
	m.Set(o, coverage.Backward, "bfloat16", "gapped", coverage.Misaligned, "off by one")
	var b bytes.Buffer
	m.Text(&b, true)
	if !strings.HasPrefix(b.String(), coverage.Legend) || !strings.HasSuffix(b.String(), "2 cases a cell against torch 1, seed 7\n"+picture) {
		t.Errorf("%s", b.String())
	}
}

// TestShipped: every cell of the matrix that comes with Plumb has a reason
// unless it is aligned.
func TestShipped(t *testing.T) {
	m, err := coverage.Shipped()
	if err != nil {
		t.Fatal(err)
	}
	if cells := m.Unexplained(); len(cells) > 0 {
		t.Errorf("%d cells without a reason, such as %s", len(cells), cells[0])
	}
	if n := m.Counts(coverage.Forward)[coverage.Aligned]; len(m.Ops) < 480 || n < 20000 || m.Date == "" || !strings.HasPrefix(m.Reference, "torch ") {
		t.Errorf("%d operators, %d cells aligned, against %q on %q", len(m.Ops), n, m.Reference, m.Date)
	}
	var b bytes.Buffer
	if err := m.WriteFile("x.zst", &b); err != nil {
		t.Fatal(err)
	}
	again, err := coverage.ReadFile("x.zst", &b)
	if err != nil || len(again.Ops) != len(m.Ops) {
		t.Errorf("read again: %v", err)
	}
}
