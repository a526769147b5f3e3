package command

import (
	"testing"

	"plumb/internal/find/shrink"
)

// TestPlantedDefectsAreMinimised: what is found of a planted defect becomes a
// program of few calls on few elements that fails alike.
func TestPlantedDefectsAreMinimised(t *testing.T) {
	for _, f := range defects {
		t.Run(f.name, func(t *testing.T) {
			var files []string
			if f.file != "" {
				files = []string{save(t, "planted.py", f.file)}
			}
			w, log := play(t, planted(t, f.plant), files, "--reference", "native", "--seed", "1", "-k", f.tests, "-n", "20")
			if err := w.run.minimise(t.Context()); err != nil {
				t.Fatal(err)
			}
			if len(w.minimal) == 0 {
				t.Fatalf("no finding\n%s", log)
			}
			for _, m := range w.minimal {
				p := m.Result.Record.Program
				elements := 0
				for _, in := range p.Inputs {
					elements += in.Materialize().Len()
				}
				t.Logf("%s, seen %d times, %d runs, minimal %t\ncommon: %s\n%s", m.Result.Signature, m.Count(), m.Result.Runs, m.Result.Minimal, m.Common, p)
				if shrink.SignatureOf(m.Result.Record) != m.Result.Signature {
					t.Errorf("the minimal program fails as %s, not as %s", shrink.SignatureOf(m.Result.Record), m.Result.Signature)
				}
				if len(p.Calls) > 2 || elements > 8 {
					t.Errorf("%d calls on %d elements are not minimal", len(p.Calls), elements)
				}
			}
		})
	}
}
