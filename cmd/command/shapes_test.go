package command

import (
	"testing"

	"plumb/backend"
	"plumb/internal/draw/choice"
)

const sharedTest = `
@autotest(layouts=True)
def test_shared():
    x = random_tensor(ndim=random(1, 5), dim0=random(1, 6), dim1=random(1, 9))
    return torch.sum(x * random(0.0, 1.0).to(float), dim=random(0, 1).to(int), keepdim=random_bool())
`

// TestFewShapesAreDrawn: cases share programs, not elements, where a candidate says
// that compiling is dear or the command line does.
func TestFewShapesAreDrawn(t *testing.T) {
	for _, c := range []struct {
		given    shapes
		compiles bool
		want     int // programs of a round
	}{
		{"", false, choice.Round},
		{"", true, choice.Few},
		{anyShapes, true, choice.Round},
		{fewShapes, false, choice.Few},
	} {
		d := drawing{device: "cpu", sigs: &signatures{}, shapes: c.given}
		l, err := d.file("shared.py", []byte(sharedTest))
		if err != nil {
			t.Fatal(err)
		}
		d.settleShapes([]backend.Info{{}, {Compiles: c.compiles}})
		outlines, whole := map[string]bool{}, map[string]bool{}
		for i := range choice.Round {
			p, err := l.tests[0].Draw(i, nil)
			if err != nil {
				t.Fatal(err)
			}
			outlines[p.Form()], whole[p.String()] = true, true
		}
		if len(outlines) > c.want || c.want > choice.Few && len(outlines) <= choice.Few || len(whole) != choice.Round {
			t.Errorf("--shapes %q, compiles %v: %d programs of %d cases, %d outlines, want %d", c.given, c.compiles, len(whole), choice.Round, len(outlines), c.want)
		}
		if d.shared.Load() != (c.want == choice.Few) {
			t.Errorf("--shapes %q, compiles %v: shared is %v", c.given, c.compiles, d.shared.Load())
		}
	}
}
