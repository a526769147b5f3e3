// Package open opens backends by the names that flags take.
package open

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"plumb/backend"
	"plumb/backend/beside"
	"plumb/backend/derive"
	"plumb/backend/native"
	"plumb/backend/recorded"
	"plumb/backend/worker"
	"plumb/backend/worker/diopi"
	"plumb/baselines"
	"plumb/device/sim"
	"plumb/internal/spell"
	"plumb/nn"
	"plumb/op"
	"plumb/tensor"
)

// Help lists the names, for the text of a flag.
const Help = `NAME[@DEVICE][:MODE][:PYTHON] of a framework: "torch" (found through --python, $PLUMB_PYTHON, python3, /usr/bin/python3), "torch:jit.trace" (PyTorch's own graphs: jit.trace, jit.script, fx, compile, export; its function transforms: functional, vmap), "torch@cuda:/path/to/python", "oneflow" (its Python is found through $PLUMB_ONEFLOW_PYTHON), "onnx:ort" (an engine that runs ONNX; also "onnx:openvino"); "native", "native@sim" (on a device that is registered), "native:graph" (static graphs), "native:graph-plain" (without passes); "recorded:FILE"; "diopi:FILE.so" (a library in C with DIOPI's interface); or the path of a worker, such as ./my-worker or ./my-worker:MODE (docs/worker-protocol.md)`

// Error says that no backend has a name, or that it cannot be opened for what
// follows the colon.
type Error struct{ Err error }

// Error returns what is wrong with the name.
func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Set opens backends and remembers what it found of them.
type Set struct {
	Table   *op.Table     // of native
	Python  string        // that has torch; empty for the one that worker.FindPython finds
	Timeout time.Duration // of one case of a worker; 0 for its default
	Imports []string      // Python modules that PyTorch's worker imports first
	Threads int           // of a worker; 0 for one
	Memory  int64         // bytes of address space of a worker; 0 for no limit
	Growth  int64         // bytes that a worker may take beyond those at its start; 0 for no limit
	Sandbox bool          // workers have no network, and one folder to write to
	// Beside starts a process that serves native, whose name is added, for each instance;
	// nil for none: native runs in this process.
	Beside []string
	// Held says where a file of recorded results lies that a name has by another path.
	Held   map[string]string
	Int32s bool // native takes indices of int32 wherever it takes int64

	mu    sync.Mutex
	onSim *op.Table           // Table with kernels of the simulated device
	found map[[2]string]found // by the framework and the Python asked for
	is    map[string]string   // name and version by backend, such as "torch 1.13.1"
	spent time.Duration       // CPU time of closed workers after their start
}

// Opener returns how to start instances of a backend, after checking that it
// can be started. The error is an *Error, or a *backend.Fault when what the
// backend needs is not on this machine.
func (s *Set) Opener(ctx context.Context, spec string) (func() (backend.Backend, error), error) {
	of := ParseSpec(spec)
	switch {
	case of.IsCommand():
		return s.command(ctx, of.Name, of.Mode)
	case of.Name == Native:
		return s.native(of)
	case of.IsFramework():
		path, version, err := s.findPython(of)
		if err != nil && of.IsTorch() && of.Path != "" && !strings.ContainsRune(of.Path, '/') {
			return nil, &Error{fmt.Errorf("%q is neither a mode of torch, which has %s, nor a Python that has it: %w", of.Path, strings.Join(worker.TorchModes, ", "), err)}
		}
		if err != nil {
			return nil, err
		}
		s.note(spec, of.Name+" "+version)
		return func() (backend.Backend, error) { return s.open(ctx, s.python(of, path, max(s.Threads, 1))) }, nil
	case of.IsLibrary():
		return s.library(ctx, of.Path)
	case of.Name == recordedName:
		base, err := Baseline(cmp.Or(s.Held[of.Path], of.Path))
		if err != nil {
			return nil, &Error{err}
		}
		s.note(spec, base.Reference().Name+" "+base.Reference().Version)
		return func() (backend.Backend, error) { return base, nil }, nil
	}
	if info, err := os.Stat(of.Name); err == nil && info.Mode().IsRegular() {
		return nil, &Error{fmt.Errorf("unknown backend %q: the file of this name is ./%s", spec, spec)}
	}
	return nil, &Error{fmt.Errorf("unknown backend %q%s: want %s", spec, spell.Guess(of.Name, append([]string{Native, recordedName}, worker.Frameworks...)), Help)}
}

// native returns how to make backends of Plumb's own operators.
func (s *Set) native(of Spec) (func() (backend.Backend, error), error) {
	open := func() (backend.Backend, error) {
		table := s.Table
		if of.Device == sim.Name {
			var err error
			if table, err = s.ported(); err != nil {
				return nil, err
			}
		}
		own := native.New(table, nn.Modules())
		if s.Int32s {
			own = own.TakingInt32()
		}
		if of.Device != "" && of.Device != tensor.HostName {
			d := op.DeviceNamed(of.Device)
			if d == nil {
				return nil, fmt.Errorf("%s: there is no device %q; there are %s", of, of.Device, strings.Join(append([]string{tensor.HostName}, tensor.Devices()...), ", "))
			}
			own = own.On(d)
		}
		return own.In(of.Mode)
	}
	if _, err := open(); err != nil {
		return nil, &Error{err}
	}
	if s.Beside != nil {
		return func() (backend.Backend, error) {
			b, err := beside.Open(beside.Config{Command: append(slices.Clone(s.Beside), of.String()), Called: os.Args[0], Timeout: s.Timeout, Guard: s.guard})
			if err != nil {
				return nil, err
			}
			return b, nil
		}, nil
	}
	return open, nil
}

// ported returns the table for the simulated device.
func (s *Set) ported() (_ *op.Table, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.onSim == nil {
		s.onSim, err = sim.Ported(s.Table, sim.Name)
	}
	return s.onSim, err
}

// IsRecorded reports whether a backend's name is that of a baseline, which
// holds the outcomes of some programs and can be asked about no other.
func IsRecorded(spec string) bool { return ParseSpec(spec).Name == recordedName }

// Is returns the name and version of an opened backend's subject, such as
// "torch 1.13.1"; empty for native.
func (s *Set) Is(spec string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.is[spec]
}

func (s *Set) note(spec, is string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.is == nil {
		s.is = map[string]string{}
	}
	s.is[spec] = is
}

// TakeSpent returns the CPU time of the workers that were closed since it was
// last called, without that of their start.
func (s *Set) TakeSpent() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	spent := s.spent
	s.spent = 0
	return spent
}

func (s *Set) findPython(of Spec) (path, version string, err error) {
	asked := of.Path
	if of.IsTorch() {
		asked = cmp.Or(asked, s.Python)
	}
	key := [2]string{of.Name, asked}
	s.mu.Lock()
	defer s.mu.Unlock()
	if found, ok := s.found[key]; ok {
		return found.path, found.version, nil
	}
	if path, version, err = worker.Find(of.Name, asked); err == nil {
		if s.found == nil {
			s.found = map[[2]string]found{}
		}
		s.found[key] = found{path, version}
	}
	return path, version, err
}

// found is a Python, and the version of its framework.
type found struct{ path, version string }

// meteredWorker adds its CPU time to the total when it is closed.
type meteredWorker struct {
	*worker.Worker
	owner *Set
	start time.Duration
}

// python is the configuration of Plumb's own worker.
func (s *Set) python(of Spec, path string, threads int) worker.Config {
	c := worker.Config{Framework: of.Name, Python: path, Device: of.Device, Mode: of.Mode, Threads: threads, MemoryLimit: s.Memory, GrowthLimit: s.Growth}
	if of.IsTorch() {
		c.Imports = s.Imports
	}
	return c
}

// command returns how to start the program at a path as a worker in a mode.
func (s *Set) command(ctx context.Context, path, mode string) (func() (backend.Backend, error), error) {
	found, err := exec.LookPath(path)
	if err != nil {
		return nil, &Error{fmt.Errorf("the worker %s cannot be started: %w", path, err)}
	}
	return func() (backend.Backend, error) {
		return s.open(ctx, worker.Config{Command: []string{found}, Mode: mode, Threads: max(s.Threads, 1), MemoryLimit: s.Memory, GrowthLimit: s.Growth})
	}, nil
}

// library returns how to start the child that loads a library in C.
func (s *Set) library(ctx context.Context, file string) (func() (backend.Backend, error), error) {
	path, err := filepath.Abs(file)
	if err == nil {
		_, err = os.Stat(path)
	}
	switch {
	case file == "":
		return nil, &Error{fmt.Errorf("%s: names no library: want %s:FILE.so", Library, Library)}
	case err != nil:
		return nil, &Error{fmt.Errorf("the library of %s:%s cannot be loaded: %w", Library, file, err)}
	}
	return func() (backend.Backend, error) {
		return diopi.Open(ctx, path, s.Table, nn.Modules(), worker.Config{CaseTimeout: s.Timeout, Threads: max(s.Threads, 1), MemoryLimit: s.Memory, GrowthLimit: s.Growth, Sandbox: s.Sandbox})
	}, nil
}

// guard watches over a process of native's, which is held to what workers may take.
func (s *Set) guard(pid int) func() string { return worker.Guard(pid, s.Growth) }

func (s *Set) open(ctx context.Context, c worker.Config) (backend.Backend, error) {
	if c.CaseTimeout == 0 {
		c.CaseTimeout = s.Timeout
	}
	c.Sandbox = s.Sandbox
	w, err := worker.Open(ctx, c)
	if err != nil {
		return nil, err
	}
	m := &meteredWorker{w, s, w.CPUTime()}
	if w.ByProgram() {
		return derive.New(m, s.Table, nn.Modules()), nil
	}
	return m, nil
}

// Close closes the worker.
func (m *meteredWorker) Close() error {
	m.owner.mu.Lock()
	m.owner.spent += m.CPUTime() - m.start
	m.owner.mu.Unlock()
	return m.Worker.Close()
}

// ControlThreads is the number of threads of Threaded's instances.
const ControlThreads = 4

// Threaded starts a live reference with several threads; nil for others.
func (s *Set) Threaded(ctx context.Context, spec string) (backend.Backend, error) {
	of := ParseSpec(spec)
	if !of.IsFramework() {
		return nil, nil
	}
	path, _, err := s.findPython(of)
	if err != nil {
		return nil, err
	}
	return s.open(ctx, s.python(of, path, ControlThreads))
}

// embedded reads the embedded baseline once: nothing changes it.
var embedded = sync.OnceValues(func() (*recorded.Baseline, error) { return recorded.Read(baselines.Default()) })

// Baseline reads a baseline file, or the embedded one for "".
func Baseline(path string) (*recorded.Baseline, error) {
	if path == "" {
		return embedded()
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	base, err := recorded.Read(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return base, nil
}

// InMode returns the name of a backend in a mode, of the name of one that says
// nothing of modes: "native:graph", "torch:fx:/usr/bin/python3".
func InMode(spec, mode string) string {
	of := ParseSpec(spec)
	of.Mode = mode
	return of.String()
}
