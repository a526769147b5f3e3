package command

import (
	"fmt"
	"slices"

	"plumb/backend/open"
	"plumb/backend/worker"
	"plumb/internal/campaign/report"
	"plumb/internal/judge/verdict"
	"plumb/op"
	"plumb/ops"
)

// callables returns how PyTorch and the adapter of a framework call an
// operator; nil for subjects without an adapter: native, PyTorch, recordings.
func callables(candidate, operator string) *report.Callables {
	spec := open.ParseSpec(candidate)
	if spec.IsTorch() || !spec.IsFramework() && !spec.IsCommand() {
		return nil
	}
	out := &report.Callables{}
	names := []string{operator}
	for _, d := range called(operator) {
		out.Torch = append(append(out.Torch, d.Sig), d.More...)
		names = append(append(names, d.ID()), d.Names...)
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		if entry, _ := worker.TableEntry(spec.Name, name); entry != "" {
			out.Subject = append(out.Subject, fmt.Sprintf("%q: %s", name, entry))
		}
	}
	_, has := worker.TableEntry(spec.Name, "")
	switch {
	case !has:
		out.Subject = []string{"the table of " + spec.Name + ", or its own code"}
	case len(out.Subject) == 0:
		out.Subject = []string{"no entry: called by PyTorch's name and arguments"}
	}
	return out
}

// called returns the operators of an id, or of a name as findings have it:
// without underscores.
func called(operator string) []*op.Def {
	if defs, err := selectOps([]string{operator}); err == nil {
		return defs
	}
	return slices.DeleteFunc(slices.Clone(ops.Table().Defs()), func(d *op.Def) bool {
		return verdict.OperatorName(d.ID()) != operator
	})
}
