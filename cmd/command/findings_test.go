package command

import (
	"errors"
	"slices"
	"testing"

	"plumb/internal/campaign"
	"plumb/internal/find/shrink"
	"plumb/program"
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

// TestCasesBefore: a failing case is tried after the cases of the run before it, the
// nearest ones, in their order, and those of its own test last.
func TestCasesBefore(t *testing.T) {
	test := func(n int) campaign.Test {
		return campaign.Test{N: n, Draw: func(i int, _ campaign.Observer) (*program.Program, error) {
			if i == 2 {
				return nil, errors.New("not drawn")
			}
			return &program.Program{Seed: uint64(n*1000 + i)}, nil
		}}
	}
	own := []*program.Program{{Seed: 7}, {Seed: 8}}
	seeds := func(tests ...campaign.Test) (seeds []uint64) {
		for _, p := range before(tests, own, nil) {
			seeds = append(seeds, p.Seed)
		}
		return seeds
	}
	if got, want := seeds(test(1), test(4)), []uint64{1000, 4000, 4001, 4003, 7, 8}; !slices.Equal(got, want) {
		t.Errorf("%v, not %v", got, want)
	}
	many := seeds(test(3), test(150), test(190))
	if len(many) != maxBefore || many[0] != 150141 || many[9] != 190000 || many[len(many)-1] != 8 {
		t.Errorf("%d cases: %v", len(many), many)
	}
}
