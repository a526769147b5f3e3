// Package wheel makes a Python package of a shared library of operators: a wheel for
// Linux on x86-64, which pip installs.
package wheel

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"debug/elf"
	"embed"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
)

//go:embed python/*.py
var sources embed.FS

// Wheel is what a wheel is made of.
type Wheel struct {
	Name    string // of the Python package
	Version string
	Main    string // the Go package that exports the operators
	Summary string
}

var (
	packageName = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)
	version     = regexp.MustCompile(`^[0-9]+(\.[0-9]+)*((a|b|rc)[0-9]+)?(\.post[0-9]+)?(\.dev[0-9]+)?$`)
)

// Build compiles the library, writes the wheel into a folder and returns its path.
func (w *Wheel) Build(folder string) (path string, err error) {
	if err := w.check(); err != nil {
		return "", err
	}
	temp, err := os.MkdirTemp("", "plumb-wheel-")
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temp)) }()
	lib := filepath.Join(temp, "libplumb.so")
	if err := compile(w.Main, lib); err != nil {
		return "", err
	}
	return w.Pack(lib, folder)
}

func (w *Wheel) check() error {
	switch {
	case runtime.GOOS != "linux" || runtime.GOARCH != "amd64":
		return fmt.Errorf("wheels are for Linux on x86-64, not for %s on %s", runtime.GOOS, runtime.GOARCH)
	case !packageName.MatchString(w.Name):
		return fmt.Errorf("%q is no name of a Python package: want lower-case letters, digits and underscores", w.Name)
	case !version.MatchString(w.Version):
		return fmt.Errorf("%q is no version, such as 0.1.0", w.Version)
	}
	return nil
}

// compile builds the library, for which cgo needs a C compiler.
func compile(main, lib string) error {
	cmd := exec.Command("go", "build", "-buildmode=c-shared", "-trimpath", "-ldflags=-s -w", "-o", lib, main)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=1")
	out, err := cmd.CombinedOutput()
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return errors.New("go is not installed, which compiles the library")
	case err != nil && bytes.Contains(out, []byte("C compiler")):
		return fmt.Errorf("a C compiler is needed beside Go, such as gcc: %s", bytes.TrimSpace(out))
	case err != nil:
		return fmt.Errorf("go build %s: %w\n%s", main, err, bytes.TrimSpace(out))
	}
	return nil
}

// Pack writes a wheel with a library that is compiled already.
func (w *Wheel) Pack(lib, folder string) (string, error) {
	if err := w.check(); err != nil {
		return "", err
	}
	tag, err := platform(lib)
	if err != nil {
		return "", err
	}
	files, err := w.files(lib, tag)
	if err != nil {
		return "", err
	}
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, f := range files {
		h := &zip.FileHeader{Name: f.name, Method: zip.Deflate}
		h.SetMode(0o644)
		if strings.HasSuffix(f.name, ".so") {
			h.SetMode(0o755)
		}
		out, err := z.CreateHeader(h)
		if err != nil {
			return "", err
		}
		if _, err := out.Write(f.data); err != nil {
			return "", err
		}
	}
	if err := z.Close(); err != nil {
		return "", err
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", err
	}
	path := filepath.Join(folder, fmt.Sprintf("%s-%s-py3-none-%s.whl", w.Name, w.Version, tag))
	return path, os.WriteFile(path, b.Bytes(), 0o644)
}

type file struct {
	name string
	data []byte
}

// files are those of the wheel, its RECORD last.
func (w *Wheel) files(lib, tag string) ([]file, error) {
	var files []file
	entries, err := fs.ReadDir(sources, "python")
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		text, err := fs.ReadFile(sources, "python/"+e.Name())
		if err != nil {
			return nil, err
		}
		files = append(files, file{w.Name + "/" + e.Name(), bytes.ReplaceAll(text, []byte("NAME"), []byte(w.Name))})
	}
	so, err := os.ReadFile(lib)
	if err != nil {
		return nil, err
	}
	info := fmt.Sprintf("%s-%s.dist-info/", w.Name, w.Version)
	files = append(files, file{w.Name + "/libplumb.so", so},
		file{info + "METADATA", fmt.Appendf(nil, "Metadata-Version: 2.1\nName: %s\nVersion: %s\nSummary: %s\nRequires-Python: >=3.8\nRequires-Dist: numpy\n", w.Name, w.Version, w.Summary)},
		file{info + "WHEEL", fmt.Appendf(nil, "Wheel-Version: 1.0\nGenerator: plumb\nRoot-Is-Purelib: false\nTag: py3-none-%s\n", tag)})
	var record strings.Builder
	for _, f := range files {
		sum := sha256.Sum256(f.data)
		fmt.Fprintf(&record, "%s,sha256=%s,%d\n", f.name, base64.RawURLEncoding.EncodeToString(sum[:]), len(f.data))
	}
	fmt.Fprintf(&record, "%sRECORD,,\n", info)
	return append(files, file{info + "RECORD", []byte(record.String())}), nil
}

var glibc = regexp.MustCompile(`^GLIBC_2\.(\d+)`)

// platform returns the tag of the systems on which a library runs: those whose C
// library has all versions that it asks for.
func platform(lib string) (string, error) {
	f, err := elf.Open(lib)
	if err != nil {
		return "", fmt.Errorf("the library %s: %w", lib, err)
	}
	defer f.Close() //nolint:errcheck // it is read only
	symbols, err := f.ImportedSymbols()
	if err != nil {
		return "", fmt.Errorf("the library %s: %w", lib, err)
	}
	newest := []int{17} // no wheel asks for less
	for _, s := range symbols {
		if m := glibc.FindStringSubmatch(s.Version); m != nil {
			n, err := strconv.Atoi(m[1])
			if err != nil {
				return "", err
			}
			newest = append(newest, n)
		}
	}
	return fmt.Sprintf("manylinux_2_%d_x86_64", slices.Max(newest)), nil
}
