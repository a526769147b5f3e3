package main

import (
	"cmp"
	"regexp"
	"strings"
	"testing"

	"plumb/internal/conform/config"
	"plumb/internal/conform/diopi"
	"plumb/op"
	"plumb/ops"
)

// unspoken are the operators with a public name that no entry of the config
// calls, and why.
var unspoken = map[string]string{
	"cholesky": "PyTorch 2.15 has removed torch.cholesky",
	"to":       "its argument is a dtype or a device, which the sample gives as another tensor's",
	"getitem":  "an index of slices, Ellipsis and tensors",
}

// TestConfigHasEveryOperator: what a call by keywords reaches has an entry.
func TestConfigHasEveryOperator(t *testing.T) {
	c, err := config.Load("plumb.py", conformance(ops.Table()))
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Warnings) > 0 {
		t.Errorf("%d warnings, the first: %v", len(c.Warnings), c.Warnings[0])
	}
	has := map[string]bool{}
	for _, e := range c.Entries() {
		has[e] = true
	}
	for _, def := range ops.Table().Defs() {
		name := strings.ReplaceAll(def.ID(), ".", "_")
		found := has[name] || has[name+"_int"] || has[name+"_bool"] || has[name+"_complex"]
		_, speaks := spoken(def)
		switch reason := unspoken[def.ID()]; {
		case found && (reason != "" || def.Traits.Has(op.Undefined)):
			t.Errorf("%s has an entry: it is not %q", def.ID(), cmp.Or(reason, "undefined"))
		case !found && speaks && reason == "" && !def.Traits.Has(op.Undefined):
			t.Errorf("%s has no entry", def.ID())
		}
	}
}

// steadyEntries are those whose calls draw nothing, as -lift has seen, such as a
// dropout that evaluates.
var steadyEntries = regexp.MustCompile(`_t[0-9]+$|_evaluat`)

// TestConfigSaysWhatIsDrawn: a random operator has no recorded results where it
// draws.
func TestConfigSaysWhatIsDrawn(t *testing.T) {
	c, err := config.Load("plumb.py", conformance(ops.Table()))
	if err != nil {
		t.Fatal(err)
	}
	for one := range c.Cases() {
		defs := ops.Table().Lookup(one.Interface + "." + one.Function)
		if len(defs) > 0 && !steadyEntries.MatchString(one.Config) && defs[0].Traits.Has(op.Random) != (diopi.Manual(one) != "") {
			t.Errorf("%s: random %v, judged by %q", one.Name, defs[0].Traits.Has(op.Random), diopi.Manual(one))
		}
	}
}
