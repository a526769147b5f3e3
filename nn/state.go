package nn

import (
	"fmt"
	"slices"
	"strings"

	"plumb/op"
	"plumb/tensor"
)

// Entry is a parameter or buffer under its name in the state_dict.
type Entry struct {
	Name  string
	Value op.Value
}

// StateDict returns the module's parameters and buffers, and its children's,
// in the order of PyTorch's state_dict. Those that are not loaded have a nil Value.
func (m *Module) StateDict() []Entry {
	var out []Entry
	for _, s := range m.State() {
		out = append(out, Entry{s.Name, m.Value(s.Name)})
	}
	return out
}

// LoadStateDict sets the module's parameters and buffers; a *tensor.Tensor of
// another dtype is converted. When strict, the names must be exactly those of
// the module. The error is a RuntimeError that lists everything that does not
// fit; nothing is loaded then.
func (m *Module) LoadStateDict(entries []Entry, strict bool) error {
	slots := map[string]Slot{}
	for _, s := range m.State() {
		slots[s.Name] = s
	}
	var fit []Entry
	var unexpected, wrong, missing []string
	for _, e := range entries {
		s, ok := slots[e.Name]
		if !ok {
			unexpected = append(unexpected, e.Name)
			continue
		}
		e.Value = converted(e.Value, s.DType)
		if !slices.Equal(e.Value.Shape(), s.Shape) || e.Value.DType() != s.DType {
			wrong = append(wrong, fmt.Sprintf("%s is %s%s, not %s%s", e.Name, s.DType, tensor.ShapeString(s.Shape), e.Value.DType(), tensor.ShapeString(e.Value.Shape())))
		}
		fit = append(fit, e)
	}
	for _, s := range m.State() {
		if !slices.ContainsFunc(entries, func(e Entry) bool { return e.Name == s.Name }) {
			missing = append(missing, s.Name)
		}
	}
	if !strict {
		unexpected, missing = nil, nil
	}
	if problems := listed("missing", missing) + listed("unexpected", unexpected) + listed("of another size or dtype", wrong); problems != "" {
		err := op.RuntimeError("the state_dict does not fit: %s", strings.TrimPrefix(problems, "; "))
		err.Op = m.Def.Name()
		return err
	}
	for _, e := range fit {
		if err := m.Load(e.Name, e.Value); err != nil {
			return err
		}
	}
	return nil
}

func converted(v op.Value, d tensor.DType) op.Value {
	if t, ok := v.(*tensor.Tensor); ok && t.DType() != d {
		return t.Convert(d)
	}
	return v
}

func listed(what string, names []string) string {
	if len(names) == 0 {
		return ""
	}
	return "; " + what + ": " + strings.Join(names, ", ")
}
