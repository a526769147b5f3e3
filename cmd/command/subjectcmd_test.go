package command

import (
	"strings"
	"testing"

	"plumb/backend"
	"plumb/tensor"
)

// TestTourNamesWhatFails: the next step after a tour is the operator that fails,
// whatever has gaps alone before it.
func TestTourNamesWhatFails(t *testing.T) {
	var out strings.Builder
	failing := tellTour(&out, tourRows([]byte(`{"test":"ops::add[float32]","verdict":"aligned"}
{"test":"ops::relu[float32]","verdict":"unsupported","reason":"no relu"}
{"test":"ops::sum[float32]","verdict":"unsupported","reason":"no int8"}
{"test":"ops::sum[float64]","verdict":"misaligned","reason":"wrong\nmore"}
`)))
	want := `add            1 aligned
relu           1 unsupported
  1 × unsupported: no relu
sum            1 misaligned, 1 unsupported
  1 × misaligned: wrong
  1 × unsupported: no int8
`
	if failing != "sum" || out.String() != want {
		t.Errorf("%s of\n%s", failing, &out)
	}
}

// TestProbeTellsWhatCameBack: what is no tensor of a known dtype is named.
func TestProbeTellsWhatCameBack(t *testing.T) {
	want := tensor.New(tensor.F32, 2)
	if got := altered(backend.Value{Plain: "mine.Tensor()"}, want, "Tensor.clone"); !strings.HasPrefix(got, "NO: Tensor.clone returned no tensor") || !strings.HasSuffix(got, "but mine.Tensor()") {
		t.Error(got)
	}
	if got := altered(backend.Value{Tensor: want}, want, "Tensor.clone"); got != "" {
		t.Error(got)
	}
}
