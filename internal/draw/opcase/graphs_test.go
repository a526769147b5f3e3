package opcase_test

import (
	"testing"

	"plumb/internal/draw/choice"
	"plumb/internal/draw/opcase"
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

// TestGrapherKeepsToDomains: what may not be any number has been brought into
// its domain, or was sampled for it.
func TestGrapherKeepsToDomains(t *testing.T) {
	g := opcase.NewGrapher(ops.Table())
	into := map[string]string{"Tensor.int": "torch.nn.functional.hardtanh", "torch.histc": "torch.nn.functional.hardtanh", "torch.signbit": "torch.nan_to_num"}
	seen := 0
	for key := range uint64(600) {
		p, err := g.Draw(choice.New(key))
		if err != nil {
			t.Fatal(err)
		}
		by := map[program.Ref]string{}
		for i := range p.Calls {
			c := &p.Calls[i]
			by[program.Ref(c.Result)] = c.Target
			want, bound := into[c.Target]
			x, _ := c.Args[0].(program.Ref)
			if !bound || by[x] == "" {
				continue
			}
			seen++
			if by[x] != want && by[x] != "Tensor.detach" {
				t.Errorf("key %d: %s reads a result of %s, want one of %s", key, c, by[x], want)
			}
		}
	}
	if seen < 10 {
		t.Errorf("%d such calls", seen)
	}
}

// TestGrapherLeavesOut: names and gradients that a backend lacks do not occur.
func TestGrapherLeavesOut(t *testing.T) {
	g := opcase.NewGrapher(ops.Table())
	held := map[string]bool{}
	for _, p := range g.Probes() {
		switch target := p.Program.Calls[0].Target; target {
		case "torch.add", "torch.tanh", "torch.rms_norm", "torch.nn.functional.rms_norm":
			g.Leave(p)
		case "torch.mul":
			g.Hold(p)
		}
	}
	for key := range uint64(400) {
		p, err := g.Draw(choice.New(key))
		if err != nil {
			t.Fatal(err)
		}
		wants := map[program.Ref]bool{}
		for _, in := range p.Inputs {
			wants[program.Ref(in.Name)] = in.RequiresGrad
		}
		for i := range p.Calls {
			c := &p.Calls[i]
			switch c.Target {
			case "torch.add", "torch.rms_norm", "torch.nn.functional.rms_norm":
				t.Errorf("key %d: %s", key, c)
			case "torch.mul":
				c.EachRef(func(r program.Ref) {
					held[string(r)] = true
					if wants[r] {
						t.Errorf("key %d: %s of an input that wants a gradient", key, c)
					}
				})
			}
		}
	}
	if len(held) == 0 {
		t.Error("torch.mul never occurs")
	}
}
