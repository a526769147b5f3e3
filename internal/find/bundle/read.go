package bundle

import (
	"archive/zip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"plumb/backend"
	"plumb/program"
)

// Read reads a bundle from its folder or zip file and checks every file of it.
// The error says what is missing, damaged or too new.
func Read(path string) (*Bundle, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("bundle: %w", err)
	}
	var b *Bundle
	if info.IsDir() {
		if b, err = read(os.DirFS(path)); err == nil {
			b.Dir = path
		}
	} else {
		b, err = readZipFile(path, info.Size())
	}
	if err != nil {
		return nil, fmt.Errorf("bundle %s: %w", path, err)
	}
	return b, nil
}

func readZipFile(path string, size int64) (*Bundle, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readZip(f, size)
}

func readZip(r io.ReaderAt, size int64) (*Bundle, error) {
	z, err := zip.NewReader(r, size)
	if err != nil {
		return nil, fmt.Errorf("neither a folder nor a zip file: %w", err)
	}
	if len(z.File) > maxFiles {
		return nil, fmt.Errorf("%d files are no bundle", len(z.File))
	}
	return read(z)
}

// read reads finding.json, and then the files that it lists.
func read(dir fs.FS) (*Bundle, error) {
	text, err := readFile(dir, manifestFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("it has no %s", manifestFile)
	}
	if err != nil {
		return nil, err
	}
	m, err := decode(text)
	if err != nil {
		return nil, err
	}
	if len(m.Files) > maxFiles {
		return nil, fmt.Errorf("%s lists %d files, more than a bundle has", manifestFile, len(m.Files))
	}
	b := &Bundle{Verdict: m.Verdict, m: m, files: map[string][]byte{manifestFile: text}}
	for name, want := range m.Files {
		if b.files[name], err = readFile(dir, name); err != nil {
			return nil, err
		}
		if want != "" && sum(b.files[name]) != want {
			return nil, fmt.Errorf("%s is damaged or was changed: its checksum is not the one in %s; a program that you changed runs without plumb", name, manifestFile)
		}
	}
	for _, name := range []string{programFile, inputsFile, expectedFile, gotFile} {
		if b.files[name] == nil {
			return nil, fmt.Errorf("%s does not list %s", manifestFile, name)
		}
	}
	if b.Program, err = program.Parse(programFile, string(b.files[programFile])); err != nil {
		return nil, err
	}
	m.Place.program = b.Program
	return b, b.readFunction()
}

func (b *Bundle) readFunction() (err error) {
	text, ok := b.files[functionFile]
	if !ok {
		text, ok = b.files[gradientFile]
	}
	if ok != (len(b.m.Returns) > 0) {
		return fmt.Errorf("%s names %d results of a function, and %s is there: %t", manifestFile, len(b.m.Returns), functionFile, ok)
	}
	if !ok {
		return nil
	}
	if b.function, err = program.Parse(functionFile, string(text)); err != nil {
		return err
	}
	if n := len(b.function.Calls); n != 1 {
		return fmt.Errorf("%s has %d calls, want one", functionFile, n)
	}
	if f := (backend.Function{Of: b.Program, Returns: b.m.Returns}); !f.Fits() {
		return fmt.Errorf("%s names results that %s has not: %q", manifestFile, programFile, b.m.Returns)
	}
	return nil
}

// readFile reads one file, as far as its kind may be long.
func readFile(dir fs.FS, name string) ([]byte, error) {
	f, err := dir.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	limit := int64(maxText)
	if strings.HasSuffix(name, ".safetensors") {
		limit = maxTensors + maxText
	}
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, fmt.Errorf("%s is damaged: %w", name, err)
	}
	if int64(len(data)) > limit {
		return nil, fmt.Errorf("%s is longer than the %d bytes that a bundle may have there", name, limit)
	}
	return data, nil
}

// WriteZip writes the bundle as one zip file. Equal bundles give equal bytes.
func WriteZip(w io.Writer, b *Bundle) error {
	z := zip.NewWriter(w)
	for _, name := range b.Files() {
		f, err := z.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Deflate})
		if err != nil {
			return fmt.Errorf("zip of bundle %s: %w", b.ID(), err)
		}
		if _, err := f.Write(b.files[name]); err != nil {
			return fmt.Errorf("zip of bundle %s: %w", b.ID(), err)
		}
	}
	if err := z.Close(); err != nil {
		return fmt.Errorf("zip of bundle %s: %w", b.ID(), err)
	}
	return nil
}

// Extract writes the bundle's files into an existing folder.
func (b *Bundle) Extract(dir string) error {
	for _, name := range b.Files() {
		if err := os.WriteFile(filepath.Join(dir, name), b.files[name], 0o644); err != nil {
			return fmt.Errorf("bundle %s: %w", b.ID(), err)
		}
	}
	return nil
}
