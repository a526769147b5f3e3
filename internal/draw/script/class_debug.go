package script

import (
	"slices"

	"go.starlark.net/starlark"

	"plumb/program"
)

// outline collects what the debug of a graph tells of the modules in it, which
// the program does not name.
type outline struct {
	program.Outline
	paths map[*object]string // of modules that the file defines
}

// outlined notes a call of a module that the file defines, if the graph that
// calls it is being told of.
func (d *draw) outlined(o *object, args starlark.Tuple, call func() (starlark.Value, error)) (starlark.Value, error) {
	if d == nil || d.outline == nil {
		return call()
	}
	from := len(d.prog.Calls)
	out, err := call()
	d.outline.Parts = append(d.outline.Parts, program.Part{
		Name: d.outline.paths[o], Class: o.class.name, From: from, To: len(d.prog.Calls), Inputs: tensorsIn(args), Outputs: tensorsIn(out),
	})
	return out, err
}

// name notes the attributes of an object, under a prefix, that are modules.
func (u *outline) name(o *object, prefix string) {
	if u.paths[o] != "" {
		return
	}
	u.paths[o] = prefix
	for _, c := range o.children() {
		name := c.name
		if prefix != "" {
			name = prefix + "." + name
		}
		switch m := c.value.(type) {
		case *symbol:
			u.Names[m.ref] = name
		case *object:
			u.name(m, name)
		}
	}
}

// told runs the first call of a graph, and prints how the graph is built where
// debug asks for it.
func (g *graphState) told(d *draw, o *object, args starlark.Tuple, call func() (starlark.Value, error)) (starlark.Value, error) {
	if g.level < 0 || g.built || d.env.Debug == nil || d.env.Print == nil {
		return call()
	}
	g.built = true
	defer func(outer *outline) { d.outline = outer }(d.outline)
	u := &outline{Outline: program.Outline{Names: map[program.Ref]string{}}, paths: map[*object]string{}}
	u.name(o, "")
	d.outline = u
	from := len(d.prog.Calls)
	out, err := call()
	if err != nil {
		return nil, err
	}
	u.Parts = append(u.Parts, program.Part{Graph: true, Name: o.class.name, From: from, To: len(d.prog.Calls), Inputs: tensorsIn(args), Outputs: tensorsIn(out)})
	so := *d.prog
	so.Name, so.Inputs, so.Calls, so.Backward = o.class.name, slices.Clip(so.Inputs), slices.Clip(so.Calls), nil
	d.print(d.env.Debug(&so, &u.Outline, g.level))
	return out, nil
}

// tensorsIn lists the names in a value, in lists, tuples and dicts too.
func tensorsIn(v starlark.Value) []program.Ref {
	var out []program.Ref
	switch v := v.(type) {
	case *symbol:
		return []program.Ref{v.ref}
	case starlark.Tuple:
		for _, e := range v {
			out = append(out, tensorsIn(e)...)
		}
	case *starlark.List:
		for i := range v.Len() {
			out = append(out, tensorsIn(v.Index(i))...)
		}
	case *starlark.Dict:
		for _, item := range v.Items() {
			out = append(out, tensorsIn(item[1])...)
		}
	}
	return out
}
