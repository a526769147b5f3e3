package open

import (
	"slices"
	"strings"

	"plumb/backend/worker"
)

// Spec is the name of a subject taken apart:
// NAME[@DEVICE][:MODE][:PYTHON] of a framework, where an engine of ONNX has the
// name onnx:ENGINE, native[@DEVICE][:MODE], recorded[:FILE], diopi:FILE, or
// PATH[:MODE] of a worker. A part with a slash is a Python.
type Spec struct {
	Name   string // of the framework, "native", "recorded", "diopi", or the path of a worker
	Device string
	Mode   string
	Path   string // of the Python, or the file of a recording or library
}

// Native is the name of Plumb's own operators.
const Native = "native"

// Library is the name of a library in C with DIOPI's interface.
const Library = "diopi"

// recordedName is the name of results that were recorded.
const recordedName = "recorded"

// onnx is the name before that of an engine which runs ONNX.
const onnx = "onnx"

// ParseSpec takes the name of a subject apart. What follows "torch:" and is no
// mode of it is the Python, though it may have no slash.
func ParseSpec(text string) Spec {
	name, rest, _ := strings.Cut(text, ":")
	s := Spec{Name: name}
	switch {
	case s.IsCommand() || name == "native":
		s.Mode = rest
		return s
	case name == recordedName || name == Library:
		s.Path = rest
		return s
	}
	if name == onnx {
		engine, after, _ := strings.Cut(rest, ":")
		name, rest = name+":"+engine, after
	}
	s.Name, s.Device, _ = strings.Cut(name, "@")
	s.Mode, s.Path, _ = strings.Cut(rest, ":")
	if strings.ContainsAny(s.Mode, `/\`) || s.IsTorch() && !slices.Contains(worker.TorchModes, s.Mode) {
		s.Mode, s.Path = "", rest
	}
	return s
}

// String returns the name that ParseSpec takes apart.
func (s Spec) String() string {
	text := s.Name
	if s.Device != "" {
		text += "@" + s.Device
	}
	for _, part := range []string{s.Mode, s.Path} {
		if part != "" {
			text += ":" + part
		}
	}
	return text
}

// IsTorch reports whether the subject is PyTorch, live.
func (s Spec) IsTorch() bool { return s.Name == worker.Torch }

// IsFramework reports whether Plumb's Python worker hosts the subject.
func (s Spec) IsFramework() bool { return slices.Contains(worker.Frameworks, s.Name) }

// IsCommand reports whether the subject is a worker of another's.
func (s Spec) IsCommand() bool { return strings.ContainsRune(s.Name, '/') }

// File is the path of the file that is named: a worker, a library or a baseline; "" for
// none. A Python is none: its version tells what it runs.
func (s Spec) File() string {
	switch {
	case s.IsCommand():
		return s.Name
	case s.IsLibrary(), s.Name == recordedName:
		return s.Path
	}
	return ""
}

// IsLibrary reports whether the subject is a library in C.
func (s Spec) IsLibrary() bool { return s.Name == Library }
