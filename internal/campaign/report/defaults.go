package report

import (
	"fmt"
	"slices"
	"strings"

	"plumb/internal/judge/verdict"
	"plumb/program"
)

// form is how many legal calls failed that give the same arguments, of those judged.
type form struct {
	variant
	positional int
	keywords   []string
}

// called counts a legal case by what its call gives; nil is none.
func (c *Cluster) called(call *program.Call, failed bool) {
	if call == nil {
		return
	}
	f := form{positional: len(call.Args)}
	for _, kw := range call.Kwargs {
		f.keywords = append(f.keywords, kw.Name)
	}
	slices.Sort(f.keywords)
	key := fmt.Sprint(f.positional, f.keywords)
	if c.forms == nil {
		c.forms = map[string]*form{}
	}
	if c.forms[key] == nil {
		c.forms[key] = &f
	}
	c.forms[key].judged++
	if failed {
		c.forms[key].failed++
	}
}

// lastCall is a program's last call of an operator, which is no module's: of a case that is drawn for one
// operator the last of all, whatever its public name.
func lastCall(p *program.Program, operator string, ofOne bool) *program.Call {
	if p == nil {
		return nil
	}
	for i := len(p.Calls) - 1; i >= 0; i-- {
		if ofOne || verdict.OperatorName(p.Calls[i].Target) == operator && !program.IsModule(p.Calls[i].Target) {
			return &p.Calls[i]
		}
	}
	return nil
}

// wrongDefault returns the first parameter of PyTorch's signatures without which nearly
// every call fails, as some come out alike by chance, where there are enough, and with
// which three quarters are aligned; "" for none.
func (c *Cluster) wrongDefault(signatures []string) string {
	if c.Failed < fewest {
		return ""
	}
	for _, sig := range signatures {
		for _, o := range defaulted(sig) {
			var without, with variant
			for _, f := range c.forms {
				to := &without
				if slices.Contains(f.keywords, o.name) || o.at < f.positional {
					to = &with
				}
				to.failed, to.judged = to.failed+f.failed, to.judged+f.judged
			}
			if without.judged >= fewest && 10*without.failed >= 9*without.judged && with.judged >= fewest && 4*with.failed <= with.judged {
				return o.name
			}
		}
	}
	return ""
}

// parameter is one of a signature, by its position.
type parameter struct {
	name string
	at   int
}

// defaulted returns the parameters of a signature that have a default; those that
// may only be named are at positions that no call has.
func defaulted(signature string) (found []parameter) {
	const named = 1 << 20
	_, inside, _ := strings.Cut(signature, "(")
	inside, _, _ = strings.Cut(inside, ") ->")
	at := 0
	for part := range strings.SplitSeq(inside, ", ") {
		if part == "*" {
			at = named
			continue
		}
		before, _, has := strings.Cut(part, "=")
		if words := strings.Fields(before); has && len(words) > 0 {
			found = append(found, parameter{words[len(words)-1], at})
		}
		at++
	}
	return found
}
