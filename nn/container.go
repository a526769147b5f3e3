package nn

import (
	"slices"
	"strconv"
	"strings"

	"plumb/internal/arg"
	"plumb/op"
)

// containers hold modules. A Sequential takes modules, or Named ones; a
// ModuleList takes a list of modules; a ModuleDict takes Named ones.
var containers = []*Def{
	{
		Names:     []string{"torch.nn.Sequential"},
		Sig:       "Sequential()",
		Doc:       "Applies modules one after the other.",
		Container: true,
		Forward: func(b op.Builder, m *Module, a op.Args) []op.Value {
			out := one(a.Value(arg.Input))
			for _, c := range m.Children {
				next, err := c.Call(b, []any{out[0]}, nil)
				if err != nil {
					op.Fail(err)
				}
				out = next
			}
			return out
		},
	},
	moduleList,
	{
		Names:     []string{"torch.nn.ModuleDict"},
		Sig:       "ModuleDict()",
		Doc:       "Holds modules by name, which others call.",
		Container: true,
		Forward:   noForward,
	},
}

var moduleList = &Def{
	Names:     []string{"torch.nn.ModuleList"},
	Sig:       "ModuleList()",
	Doc:       "Holds a list of modules, which others call.",
	Container: true,
	Forward:   noForward,
}

func noForward(_ op.Builder, m *Module, _ op.Args) []op.Value {
	op.Fail(&op.Error{Class: "NotImplementedError", Msg: "the module has no forward: its children are to be called"})
	return nil
}

// Named is a module under a name in a Sequential or ModuleDict.
type Named struct {
	Name   string
	Module *Module
}

// contain makes a container of modules, Named ones, or a list of them.
func (d *Def) contain(args []any, kwargs []op.Kwarg) (*Module, error) {
	if len(kwargs) > 0 {
		return nil, op.TypeError("got an unexpected keyword argument '%s'", kwargs[0].Name)
	}
	if len(args) == 1 {
		if list, ok := args[0].([]any); ok {
			args = list
		}
	}
	m := &Module{Def: d, Args: op.Args{Sig: d.sigs[0]}, Training: true, values: map[string]op.Value{}}
	for i, a := range args {
		c, ok := a.(Named)
		if !ok {
			c.Name = strconv.Itoa(i)
			c.Module, ok = a.(*Module)
		}
		if !ok || c.Module == nil {
			return nil, op.TypeError("%s is not a Module subclass", op.TypeName(a))
		}
		if c.Name == "" || strings.Contains(c.Name, ".") {
			return nil, &op.Error{Class: "KeyError", Msg: "module name can't be empty or contain \".\", got: " + strconv.Quote(c.Name)}
		}
		if m.Child(c.Name) != nil {
			return nil, &op.Error{Class: "KeyError", Msg: "module " + strconv.Quote(c.Name) + " appears twice"}
		}
		m.Children, m.names = append(m.Children, c.Module), append(m.names, c.Name)
	}
	return m, nil
}

// Child returns the child of a name, in containers without names its index;
// nil when there is none.
func (m *Module) Child(name string) *Module {
	for i, c := range m.Children {
		if m.childName(i) == name {
			return c
		}
	}
	return nil
}

// ChildName returns the name of a child; "" for another module.
func (m *Module) ChildName(child *Module) string {
	if i := slices.Index(m.Children, child); i >= 0 {
		return m.childName(i)
	}
	return ""
}

func (m *Module) childName(i int) string {
	if i < len(m.names) {
		return m.names[i]
	}
	return strconv.Itoa(i)
}
