package pages

import (
	"archive/zip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// The limits of a download.
const (
	downloads    = 4 // at a time
	downloadTime = 10 * time.Minute
	maxManifest  = 16 << 20
	maxBundle    = 1 << 30 // bytes of its files
	maxFiles     = 32
)

// The files that say that a folder is a bundle: that of a finding lists its files,
// that of a kernel has always the same.
const findingFile = "finding.json"

var kernelFiles = []string{"report.json", "repro.py", "program.py", "repro.bin"}

// folder is a bundle's folder that was opened: nothing outside it is read.
type folder struct {
	root  *os.Root
	names []string
}

// openBundle opens the folder of a bundle and looks what belongs to it. A folder
// without its manifest, a link, and what is no plain file belong to none, whoever
// wrote the store.
func openBundle(dir string) (*folder, error) {
	if !filepath.IsAbs(dir) {
		return nil, fmt.Errorf("%q: %w", dir, fs.ErrNotExist) // of a process that worked elsewhere
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	f := &folder{root: root}
	if f.names, err = f.list(); err == nil {
		err = f.bounded()
	}
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return f, nil
}

func (f *folder) list() ([]string, error) {
	manifest, err := f.open(findingFile)
	if errors.Is(err, fs.ErrNotExist) {
		return f.kernel()
	}
	if err != nil {
		return nil, err
	}
	defer manifest.Close()
	var is struct {
		Files map[string]string `json:"files"`
	}
	if err := json.NewDecoder(io.LimitReader(manifest, maxManifest)).Decode(&is); err != nil {
		return nil, fmt.Errorf("%s: %w", findingFile, err)
	}
	names := []string{findingFile}
	for name := range is.Files {
		if names = append(names, name); len(names) > maxFiles {
			return nil, fmt.Errorf("%s lists more than %d files", findingFile, maxFiles)
		}
	}
	return names, nil
}

// kernel are the files of a kernel's bundle, the first two of which are always there.
func (f *folder) kernel() (names []string, err error) {
	for i, name := range kernelFiles {
		switch _, err := f.root.Lstat(name); {
		case err == nil:
			names = append(names, name)
		case i < 2 || !errors.Is(err, fs.ErrNotExist):
			return nil, err
		}
	}
	return names, nil
}

func (f *folder) bounded() error {
	size := int64(0)
	for _, name := range f.names {
		info, err := f.root.Lstat(name)
		switch {
		case err != nil:
			return err
		case name != filepath.Base(name) || !info.Mode().IsRegular():
			return fmt.Errorf("%q is no plain file of the folder", name)
		}
		if size += info.Size(); size > maxBundle {
			return fmt.Errorf("the bundle has more than %d MB", maxBundle>>20)
		}
	}
	return nil
}

// open opens a plain file; a pipe that took its place is not waited for.
func (f *folder) open(name string) (*os.File, error) {
	file, err := f.root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(fmt.Errorf("%q is no plain file", name), err, file.Close())
	}
	return file, nil
}

// write writes the files as a zip file.
func (f *folder) write(out io.Writer) error {
	z := zip.NewWriter(out)
	room := int64(maxBundle)
	for _, name := range f.names {
		w, err := z.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Deflate})
		if err != nil {
			return err
		}
		file, err := f.open(name)
		if err != nil {
			return err
		}
		n, err := io.Copy(w, io.LimitReader(file, room+1))
		if err = errors.Join(err, file.Close()); err != nil {
			return err
		}
		if room -= n; room < 0 {
			return fmt.Errorf("%s grows", name)
		}
	}
	return z.Close()
}

// kindOf says whose bundle can be downloaded: "finding" or "kernel"; "" where there is none.
func kindOf(dir string) string {
	f, err := openBundle(dir)
	if err != nil {
		return ""
	}
	defer f.root.Close()
	if f.names[0] == findingFile {
		return "finding"
	}
	return "kernel"
}

// download sends the bundle of a finding as it was seen in a run.
func (v *Server) download(w http.ResponseWriter, r *http.Request) {
	select {
	case v.downloads <- struct{}{}:
		defer func() { <-v.downloads }()
	default:
		w.Header().Set("Retry-After", "5")
		http.Error(w, "too many downloads at a time", http.StatusServiceUnavailable)
		return
	}
	var f *folder
	v.answer(w, r, func(one *request) error {
		id, err := one.whole("id")
		if err != nil {
			return err
		}
		run, err := one.whole("run")
		if err != nil {
			return err
		}
		dir, err := one.store.BundleOf(id, run)
		if err != nil {
			return err
		}
		if dir == "" {
			return missing(fmt.Sprintf("run %d has no bundle of finding %d", run, id))
		}
		if f, err = openBundle(dir); err != nil {
			return missing(fmt.Sprintf("the bundle of finding %d from run %d is no longer on this machine: %v", id, run, err))
		}
		w.Header().Set("Content-Disposition", fmt.Sprintf(`attachment; filename="plumb-finding-%d-run-%d.zip"`, id, run))
		one.kind = "application/zip"
		return nil
	})
	if f == nil {
		return
	}
	defer f.root.Close()
	if r.Method == http.MethodHead {
		return
	}
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(downloadTime))
	if f.write(w) != nil {
		panic(http.ErrAbortHandler) // half a file is not to look whole
	}
}
