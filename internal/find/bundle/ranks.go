package bundle

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"text/template"

	_ "embed"

	"plumb/global"
	"plumb/program"
)

//go:embed ranks.tmpl
var ranksText string

var ranksTemplate = template.Must(template.New("ranks").Parse(ranksText))

// ranksScript is what the template of a program over ranks is filled with.
type ranksScript struct {
	Title, Reason, Framework, How string
	OneFlow                       bool
	Ranks                         int
	Hierarchy                     string // of DTensor's mesh, a tuple
	Program, Results              string
}

// addRanks writes a program that says how its inputs lie on ranks for the
// frameworks that have such tensors; nothing for other programs, and for inputs
// that are too large to be written.
func (b *Bundle) addRanks(f *Finding, p *place) error {
	hierarchy, ranks := placementsOf(f.Program)
	w := &pythonFile{f: f, p: p, onRanks: true}
	body := w.program()
	if hierarchy == nil || w.usesFile {
		return nil
	}
	s := ranksScript{Title: w.title(), Reason: clean(f.Verdict.Reason), Ranks: ranks, Program: body, Results: strings.Join(resultsOf(f.Program), ", ")}
	for _, n := range hierarchy {
		s.Hierarchy += fmt.Sprintf("%d, ", n)
	}
	s.Hierarchy = "(" + strings.TrimSpace(s.Hierarchy) + ")"
	for _, framework := range []struct{ name, file, how string }{
		{"DTensor", "ranks_dtensor.py", "Run it with PyTorch 2.15, whose LocalTensorMode stands for all ranks."},
		{"OneFlow", "ranks_oneflow.py", "Run it with OneFlow: it starts a process for each rank."},
	} {
		s.Framework, s.How, s.OneFlow = framework.name, framework.how, framework.name == "OneFlow"
		var text bytes.Buffer
		if err := ranksTemplate.Execute(&text, s); err != nil {
			return fmt.Errorf("%s: %w", framework.file, err)
		}
		b.files[framework.file] = text.Bytes()
		b.m.Run = append(b.m.Run, "python3 "+framework.file)
	}
	return nil
}

// placementsOf returns the hierarchy of a program's first placement, and how many
// ranks all of them speak of; nil where there is none.
func placementsOf(p *program.Program) (hierarchy []int, ranks int) {
	for i := range p.Calls {
		if p.Calls[i].Target != program.ToGlobal {
			continue
		}
		for _, kw := range p.Calls[i].Kwargs {
			text, _ := kw.Value.(string)
			if q, err := global.ParsePlacement(text); kw.Name == "placement" && err == nil {
				if hierarchy == nil {
					hierarchy = q.Hierarchy
				}
				ranks = max(ranks, 1+slices.Max(q.Ranks))
			}
		}
	}
	return hierarchy, ranks
}

// resultsOf are the entries of a dict: what the last call gave, and gradients.
func resultsOf(p *program.Program) []string {
	var all []string
	if n := len(p.Calls); n > 0 {
		all = append(all, fmt.Sprintf("%q: %s", p.Calls[n-1].Result, p.Calls[n-1].Result))
	}
	for i := range p.Inputs {
		if in := &p.Inputs[i]; in.RequiresGrad {
			all = append(all, fmt.Sprintf("%q: %s.grad", "gradient of "+in.Name, in.Name))
		}
	}
	return all
}

// localLines write what a rank holds of a tensor: a piece of each dimension of
// the hierarchy that splits it.
func localLines(c *program.Call, text string) []string {
	lines := []string{fmt.Sprintf("%s = %s.clone()  # %s", c.Result, program.FormatArg(c.Args[0]), text)}
	said := map[string]any{}
	for _, kw := range c.Kwargs {
		said[kw.Name] = kw.Value
	}
	placement, _ := said["placement"].(string)
	entries, _ := said["sbp"].(string)
	rank, _ := said["rank"].(int64)
	p, err := global.ParsePlacement(placement)
	if err != nil {
		return lines
	}
	s, err := global.ParseSBP(entries)
	at := slices.Index(p.Ranks, int(rank))
	if err != nil || at < 0 || s.Fits(p) != nil {
		return lines
	}
	for k, i := range p.Coordinates(at) {
		if axis, split := s[k].Axis(); split {
			lines = append(lines,
				fmt.Sprintf("size, more = divmod(%s.shape[%d], %d)", c.Result, axis, p.Hierarchy[k]),
				fmt.Sprintf("%s = %s.narrow(%d, %d * size + min(%d, more), size + (%d < more))", c.Result, c.Result, axis, i, i, i))
		}
	}
	return lines
}
