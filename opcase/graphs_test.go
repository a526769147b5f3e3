package opcase_test

import (
	"testing"

	"plumb/choice"
	"plumb/opcase"
	"plumb/ops"
	"plumb/program"
)

// TestGrapher draws programs: as long as is asked for, the same for a key, of
// most operators, and mostly of calls that read what others made.
func TestGrapher(t *testing.T) {
	g := opcase.NewGrapher(ops.Table())
	targets, chained, all := map[string]bool{}, 0, 0
	for key := range uint64(300) {
		p, err := g.Draw(choice.New(key))
		if err != nil {
			t.Fatal(err)
		}
		if again, err := g.Draw(choice.New(key)); err != nil || again.ID() != p.ID() {
			t.Fatalf("key %d draws two programs: %v", key, err)
		}
		if len(p.Calls) < 3 {
			t.Errorf("key %d: %d calls", key, len(p.Calls))
		}
		for i := range p.Calls {
			targets[p.Calls[i].Target] = true
			all++
			if readsCall(&p.Calls[i]) {
				chained++
			}
		}
	}
	if len(targets) < 400 || chained < all/2 {
		t.Errorf("%d names; %d of %d calls read the result of another", len(targets), chained, all)
	}
}

func readsCall(c *program.Call) (found bool) {
	for _, a := range c.Args {
		program.Refs(a, func(r program.Ref) { found = found || r[0] == 'v' })
	}
	return found
}
