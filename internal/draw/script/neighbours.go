package script

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	slash "path"
	"slices"
	"strings"
	"sync"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"plumb/ops"
)

// neighbours are the modules that a test file imports from beside it, or from a folder above.
type neighbours struct {
	read func(path string) ([]byte, error)

	mu         sync.Mutex
	files      map[string]*nearby // by path
	properties map[string]bool    // the names of attributes that functions of any file compute
}

// nearby is a module that was read.
type nearby struct {
	names starlark.StringDict
	file  *File
	err   error // why its names cannot be used
}

// foldersAbove is how many folders above that of the test file an import looks.
const foldersAbove = 3

// conftest is the file whose fixtures the tests of its folder and those below have.
const conftest = "conftest.py"

// module finds a module that a file imports; nil where there is none.
func (n *neighbours) module(from, name string) *nearby {
	if n == nil || n.read == nil {
		return nil
	}
	dir := slash.Dir(from)
	rest := strings.TrimLeft(name, ".")
	if dots := len(name) - len(rest); dots > 0 {
		for range dots - 1 {
			dir = slash.Join(dir, "..")
		}
		return n.file(slash.Join(dir, strings.ReplaceAll(rest, ".", "/")+".py"))
	}
	for range foldersAbove + 1 {
		if found := n.file(slash.Join(dir, strings.ReplaceAll(rest, ".", "/")+".py")); found != nil {
			return found
		}
		dir = slash.Join(dir, "..")
	}
	return nil
}

// file reads a module once; nil where there is no file.
func (n *neighbours) file(at string) *nearby {
	n.mu.Lock()
	if found, ok := n.files[at]; ok {
		n.mu.Unlock()
		return found
	}
	src, err := n.read(at)
	var found *nearby
	if !errors.Is(err, fs.ErrNotExist) {
		found = &nearby{err: err, file: &File{Name: at, src: string(src), near: n}}
	}
	if n.files == nil {
		n.files = map[string]*nearby{}
	}
	n.files[at] = found // an import in a circle finds no names
	n.mu.Unlock()
	if found != nil && err == nil {
		own, err := found.file.run()
		names := maps.Clone(found.file.starred)
		maps.Copy(names, own)
		n.mu.Lock()
		found.names, found.err = names, err
		n.mu.Unlock()
	}
	return found
}

// withProperties returns the names of attributes that functions compute: of a file and of all
// that were read before it, whose classes it may use.
func (n *neighbours) withProperties(tree *syntax.File) map[string]bool {
	own := properties(tree)
	if n == nil {
		return own
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	maps.Copy(own, n.properties)
	n.properties = maps.Clone(own)
	return own
}

// meet reads the modules that a file imports anywhere, so that draws find them read.
func (f *File) meet(imports []string) {
	for _, name := range imports {
		if isForeign(name) {
			f.near.module(f.Name, name)
		}
	}
}

// fixtures are those of the conftest.py beside a file and above, the nearest first; and
// what is wrong with one.
func (n *neighbours) fixtures(from string) (fixtures, []Note) {
	out := ownFixtures()
	if n == nil || n.read == nil || slash.Base(from) == conftest {
		return out, nil
	}
	var notes []Note
	dir := slash.Dir(from)
	for range foldersAbove + 1 {
		if found := n.file(slash.Join(dir, conftest)); found != nil {
			if found.err != nil {
				notes = append(notes, Note{1, fmt.Sprintf("fixtures are not taken: %v", found.err)})
			}
			for name, f := range found.file.fixtures {
				if out[name] == nil || out[name].of != nil {
					out[name] = f
				}
			}
		}
		dir = slash.Join(dir, "..")
	}
	return out, notes
}

// Imports are the paths of the modules that the file, and what it imports, has read.
func (f *File) Imports() []string {
	var paths []string
	if f.near != nil {
		f.near.mu.Lock()
		defer f.near.mu.Unlock()
		for at, found := range f.near.files {
			if found != nil {
				paths = append(paths, at)
			}
		}
	}
	slices.Sort(paths)
	return paths
}

// within is where an error in a module that was read is, to go before it; "" for another.
func (n *neighbours) within(stack starlark.CallStack) string {
	for i := range stack {
		pos := stack.At(i).Pos
		if n == nil || pos.Filename() == "<builtin>" {
			continue
		}
		n.mu.Lock()
		defer n.mu.Unlock()
		if n.files[pos.Filename()] != nil {
			return fmt.Sprintf("%s:%d: ", pos.Filename(), pos.Line)
		}
		return ""
	}
	return ""
}

// nearModule is what an import of a module beside the file binds; nil where there is
// none. A module that cannot be read is as one that there is not, with a note.
func nearModule(t *starlark.Thread, name string) starlark.Value {
	d, ok := t.Local(drawKey).(*draw)
	if !ok {
		return nil
	}
	found := d.test.file.near.module(d.test.file.Name, name)
	if found == nil {
		return nil
	}
	if found.err != nil {
		if l, loads := t.Local(loadKey).(*loader); loads {
			l.note(t, "%s is not imported: %v", name, found.err)
		}
		return nil
	}
	return &nearLibrary{library{name: name, names: found.names}}
}

// nearLibrary is a module of the tests' own. An operator that the program adds to
// Plumb's goes before a function of its name.
type nearLibrary struct{ library }

// Attr returns a name of the module.
func (l *nearLibrary) Attr(name string) (starlark.Value, error) {
	if ops.Added(name) != nil {
		return foreign(l.name).Attr(name)
	}
	return l.library.Attr(name)
}

// folder is a folder of modules beside the file, which an import of one of them binds.
type folder struct {
	name string // with dots
	from string // the file
	near *neighbours
}

func (d *folder) String() string        { return d.name }
func (d *folder) Type() string          { return "module" }
func (d *folder) Freeze()               {}
func (d *folder) Truth() starlark.Bool  { return true }
func (d *folder) Hash() (uint32, error) { return hashString(d.name) }
func (d *folder) AttrNames() []string   { return nil }

// Attr returns a module of the folder, or a folder in it.
func (d *folder) Attr(name string) (starlark.Value, error) {
	name = d.name + "." + name
	if found := d.near.module(d.from, name); found != nil && found.err == nil {
		return &nearLibrary{library{name: name, names: found.names}}, nil
	}
	if d.near.holds(name) {
		return &folder{name, d.from, d.near}, nil
	}
	return foreign(name), nil
}

// holds reports whether a module was read that lies in a folder, however deep.
func (n *neighbours) holds(name string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	within := "/" + strings.ReplaceAll(name, ".", "/") + "/"
	for at, found := range n.files {
		if found != nil && strings.Contains("/"+at, within) {
			return true
		}
	}
	return false
}

// nearFolder is what "import a.b.c" binds to a where a is a folder; nil where it is none, or
// the module is not there.
func nearFolder(t *starlark.Thread, root, module string) starlark.Value {
	d, ok := t.Local(drawKey).(*draw)
	if !ok || root == module {
		return nil
	}
	near := d.test.file.near
	if near.module(d.test.file.Name, root) != nil || near.module(d.test.file.Name, module) == nil {
		return nil
	}
	return &folder{root, d.test.file.Name, near}
}
