package diopi

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	_ "embed" // the worker's sources
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

//go:embed child/child.c
var childSource string

//go:embed functions.txt
var functionsText string

// ctypes are the types in C of the kinds of parameters in functions.txt, and the
// member of the child's union that holds such an argument. Structures, pointers
// and enumerations pass as the header's do.
var ctypes = map[byte][2]string{
	't': {"void *", "p"},        // diopiTensorHandle_t
	'c': {"const void *", "p"},  // diopiConstTensorHandle_t
	'T': {"void **", "p"},       // diopiTensorHandle_t*
	'C': {"const void **", "p"}, // diopiConstTensorHandle_t*
	'z': {"size_list", "z"},     // diopiSize_t
	'Z': {"const size_list *", "p"},
	's': {"const scalar *", "p"}, // diopiScalar_t*
	'i': {"int64_t", "i"},
	'I': {"const int64_t *", "p"},
	'w': {"int32_t", "i"},
	'd': {"double", "d"},
	'D': {"const double *", "p"},
	'f': {"float", "d"},
	'b': {"bool", "b"},
	'B': {"const bool *", "p"},
	'n': {"const char *", "n"},
	'r': {"int", "i"},    // diopiReduction_t
	'm': {"int", "i"},    // diopiRoundMode_t
	'o': {"int", "i"},    // diopiMemoryFormat_t
	'g': {"void *", "p"}, // diopiGeneratorHandle_t
}

// kinds are the kinds of the parameters of each function after the context.
var kinds = func() map[string]string {
	all := map[string]string{}
	for line := range strings.Lines(functionsText) {
		if name, ks, ok := strings.Cut(strings.TrimSpace(line), " "); ok && name != "#" {
			all[name] = ks
		}
	}
	return all
}()

// source is the child with a typed call for each list of kinds, and the table of
// the functions.
func source() string {
	var calls, table strings.Builder
	made := map[string]bool{}
	names := make([]string, 0, len(kinds))
	for name := range kinds {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		ks := kinds[name]
		fmt.Fprintf(&table, "\t{\"%s\", \"%s\", call_%s},\n", name, ks, ks)
		if made[ks] {
			continue
		}
		made[ks] = true
		var types, args strings.Builder
		for i := range len(ks) {
			c := ctypes[ks[i]]
			fmt.Fprintf(&types, ", %s", c[0])
			fmt.Fprintf(&args, ", a[%d].%s", i, c[1])
		}
		fmt.Fprintf(&calls, "static int call_%s(void *f, value *a) { return ((int (*)(context *%s))f)(&ctx%s); }\n", ks, types.String(), args.String())
	}
	return childSource + "\n" + calls.String() + "\nconst function plumb_functions[] = {\n" + table.String() + "\t{0}};\n"
}

// ErrNoCompiler says that the child cannot be built.
var ErrNoCompiler = errors.New("a library in C needs a C compiler once, for the process that loads it: install cc, gcc or clang, or name one in $CC")

// Child returns the path of the program that loads libraries, which is built when
// it is first asked for and kept in the user's cache.
func Child() (string, error) {
	compiler, err := findCompiler()
	if err != nil {
		return "", err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	text := source()
	sum := sha256.Sum256([]byte(compiler + "\n" + text))
	path := filepath.Join(cache, "plumb", "diopi-"+hex.EncodeToString(sum[:8]))
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	return path, build(compiler, text, path)
}

func findCompiler() (string, error) {
	for _, name := range []string{os.Getenv("CC"), "cc", "gcc", "clang"} {
		if name == "" {
			continue
		}
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", ErrNoCompiler
}

// build compiles into a folder of its own first: another Plumb may do the same.
func build(compiler, text, path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	dir, err := os.MkdirTemp(filepath.Dir(path), "building-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	made := filepath.Join(dir, "child")
	cmd := exec.Command(compiler, "-std=gnu11", "-O1", "-rdynamic", "-x", "c", "-", "-o", made, "-ldl")
	cmd.Stdin = strings.NewReader(text)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s cannot build the process that loads a library in C: %w\n%s", cmp.Or(compiler, "cc"), err, said.String())
	}
	return os.Rename(made, path)
}
