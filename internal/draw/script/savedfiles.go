package script

import (
	"fmt"
	"slices"

	"go.starlark.net/starlark"
)

// What torch.save writes stays in the draw, under the file's name or the buffer, and torch.load
// gives it back: a test touches no file.

// savedFile is what a test saved.
type savedFile struct {
	value  starlark.Value
	loaded bool // it was handed out
}

// fileName names a file that a test gives: a text, a path, or the object that stands for it.
func fileName(t *starlark.Thread, file starlark.Value) (string, error) {
	if s, ok := starlark.AsString(file); ok {
		return s, nil
	}
	if v, ok, err := special(t, file, "__fspath__"); ok {
		return str(v), err
	}
	if o, ok := file.(*object); ok {
		return fmt.Sprintf("%p", o), nil
	}
	return "", lack("a file that is %s is not supported in test files", article(file.Type()))
}

// saving answers torch.save and torch.load.
func (p path) saving(t *starlark.Thread, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	d, err := drawOf(t, string(p))
	if err != nil {
		return nil, err
	}
	names := []string{"f", "map_location"}
	if p == "torch.save" {
		names = []string{"obj", "f"}
	}
	kwargs = slices.DeleteFunc(slices.Clone(kwargs), func(kw starlark.Tuple) bool { // about the format
		name := str(kw[0])
		return name == "weights_only" || name == "pickle_module" || name == "mmap" || name[0] == '_'
	})
	given := arguments{string(p), names, make([]starlark.Value, 2)}
	if err := given.bind(args, kwargs); err != nil {
		return nil, err
	}
	if given.get("f") == nil {
		return nil, fmt.Errorf("%s takes a file", p)
	}
	name, err := fileName(t, given.get("f"))
	if err != nil {
		return nil, err
	}
	if p == "torch.save" {
		kept, err := copyPart(given.get("obj"), map[starlark.Value]starlark.Value{})
		if err != nil {
			return nil, err
		}
		if d.files == nil {
			d.files = map[string]*savedFile{}
		}
		d.files[name] = &savedFile{value: kept}
		return starlark.None, nil
	}
	kept := d.files[name]
	switch {
	case kept == nil:
		return nil, &refusedError{"FileNotFoundError", fmt.Sprintf("[Errno 2] No such file or directory: '%s'", name)}
	case kept.loaded:
		return copyPart(kept.value, map[starlark.Value]starlark.Value{})
	}
	kept.loaded = true
	return kept.value, nil
}

// fileExists is os.path.exists.
func fileExists(t *starlark.Thread, a starlark.Tuple) (starlark.Value, error) {
	d, drawing := t.Local(drawKey).(*draw)
	if !drawing || len(a) != 1 {
		return starlark.False, nil
	}
	name, err := fileName(t, a[0])
	return starlark.Bool(d.files[name] != nil), err
}

// freshName gives each temporary file and folder of a test a name of its own.
func freshName(t *starlark.Thread, _ starlark.Tuple) (starlark.Value, error) {
	d, err := drawOf(t, "tempfile")
	if err != nil {
		return nil, err
	}
	d.temporary++
	return starlark.String(fmt.Sprintf("/tmp/tmp%d", d.temporary)), nil
}
