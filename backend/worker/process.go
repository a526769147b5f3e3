//go:build unix

package worker

import (
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"plumb/backend"
	"plumb/internal/scratch"
)

// exitFault is the exit status of a worker that failed by its own fault.
const exitFault = 70

const maxFrame = 64 << 20

// process is one life of the worker.
type process struct {
	cmd      *exec.Cmd
	pid      int
	exit     exit     // once it is done
	requests *os.File // written with blocking calls
	replies  *os.File // read with blocking calls
	ended    *os.File // readable once the process has ended, whoever still holds its pipes
	marker   string   // in the environment of all that the process starts
	tail     tail     // of stdout and stderr
	buf      []byte
	sources  string // the directory of the Python sources
	folder   string // that it may write to in a sandbox
	started  time.Time
	orphaned atomic.Bool // it ended because what it is a fork of has ended
	memory   *memory     // that it shares with the host
	ready    int64       // bytes that it had when it was ready
	bounds   bounds
	excess   *excess   // nil until it has taken too much
	looked   time.Time // at what it takes
	counted  time.Time // what all that it has started takes
	tasks    int       // that the machine had then
	before   *taken    // when that was counted first in an exchange
	endings  int64     // by the system, for want of memory, when it was started
	group    *group    // that it and all that it starts are in
	held     int64     // bytes of memory that were the group's own when it was ready
	most     int64     // bytes that a file of its may have
	family   int       // processes of the group when it was ready

	mu     sync.Mutex
	exited bool
	done   chan struct{}
}

// exit is how a process has ended.
type exit struct {
	status  syscall.WaitStatus
	seconds time.Duration // of processor time
}

// cannotServe is the exit status of a worker that says on its standard error why it cannot
// serve here, such as a device that is not there.
const cannotServe = 69

// start makes sure that a process runs.
func (w *Worker) start(ctx context.Context) error {
	if w.proc != nil {
		select {
		case <-w.proc.done:
			w.drop(false)
		default:
			return nil
		}
	}
	forker := w.forker(ctx)
	p, err := w.launch(forker)
	if err != nil && forker != nil {
		w.alone = true
		p, err = w.launch(nil)
	}
	if err != nil {
		return w.startFault(err)
	}
	w.proc, w.served = p, 0
	p.begin()
	timeout, cancel := context.WithTimeout(ctx, w.config.StartTimeout)
	defer cancel()
	stop := context.AfterFunc(timeout, p.kill)
	line, err := p.readLine()
	stop()
	_ = scratch.Remove(p.sources)
	if err == nil {
		err = w.greet(line)
	}
	if err == nil {
		p.bounds, p.ready = w.config.bounds(), own(p.pid)
		p.held, p.family = p.group.ready(p.bounds.tasks()), len(p.group.members())
		p.restrain(0)
		return nil
	}
	tail := w.drop(true)
	if p.exit.status.ExitStatus() == cannotServe && tail != "" {
		return w.startFault(errors.New(strings.TrimSpace(tail)))
	}
	if p.excess = cmp.Or(p.excess, p.refused()); p.excess != nil {
		err = errors.New(p.excess.message)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if forker != nil {
		w.alone = true
		return w.start(ctx)
	}
	if timeout.Err() != nil {
		err = fmt.Errorf("not ready within %s", w.config.StartTimeout)
	}
	return w.startFault(fmt.Errorf("%w\n%s", err, tail))
}

func (w *Worker) startFault(err error) error {
	what := strings.Join(w.config.Command, " ")
	if what == "" {
		what = w.config.Python
	}
	name := cmp.Or(w.info.Name, "worker")
	if len(w.config.Command) == 0 && (w.info.Name == "" || w.info.Name == "worker") {
		if name = cmp.Or(w.config.Framework, "torch"); w.config.Device != "" && w.config.Device != "cpu" {
			name += "@" + w.config.Device
		}
	}
	return &backend.Fault{Backend: name, Err: fmt.Errorf("cannot start %s: %w", what, err)}
}

// launch starts a process, as a fork where there is a forker.
func (w *Worker) launch(forker *forker) (*process, error) {
	p := &process{done: make(chan struct{}), buf: make([]byte, 1<<16), started: time.Now(), memory: w.mem, bounds: w.config.bounds()}
	p.bounds.growth, p.bounds.processor = 0, 0 // what it has at its start is its own
	command := w.config.Command
	if forker != nil {
		command = []string{w.config.Python}
	} else if len(command) == 0 {
		script, err := p.extract()
		if err != nil {
			return nil, err
		}
		command = []string{w.config.Python, script}
	}
	env := w.settings()
	if w.config.Sandbox {
		var err error
		if command, err = p.confine(w.config.Python, command); err != nil {
			p.tidy()
			return nil, err
		}
		env = append(env, building(p.folder)...)
	}
	p.cmd = exec.Command(command[0], command[1:]...)
	p.marker = newMarker()
	p.cmd.Env = append(append(os.Environ(), env...), p.marker)
	p.cmd.Stdout = &p.tail
	p.cmd.Stderr = &p.tail
	p.cmd.WaitDelay = 2 * time.Second
	p.cmd.SysProcAttr = processAttributes()
	p.group = newGroup()
	if err := p.connect(w.mem.file, forker, env); err != nil {
		p.tidy()
		return nil, err
	}
	p.group.join(p.pid, p.bounds.tasks())
	limitFiles(p.pid, 0)
	p.sacrifice()
	return p, nil
}

// extract writes the Python sources, which are needed until the greeting, and
// returns the path of the main one.
func (p *process) extract() (string, error) {
	dir, err := p.unpack()
	return filepath.Join(dir, "plumb_worker.py"), err
}

func (p *process) unpack() (string, error) {
	if p.sources != "" {
		return filepath.Join(p.sources, "py"), nil
	}
	dir, err := scratch.Dir("worker")
	if err != nil {
		return "", err
	}
	p.sources = dir
	return filepath.Join(dir, "py"), os.CopyFS(dir, sources)
}

// confine returns the command that runs another in a sandbox, with a folder of its own
// to write to.
func (p *process) confine(python string, command []string) ([]string, error) {
	if python == "" {
		var err error
		if python, err = exec.LookPath("python3"); err != nil {
			return nil, fmt.Errorf("its sandbox is made by a Python 3: %w", err)
		}
	}
	dir, err := p.unpack()
	if err != nil {
		return nil, err
	}
	if p.folder, err = scratch.Dir("sandbox"); err != nil {
		return nil, err
	}
	return append([]string{python, "-B", filepath.Join(dir, "plumb_sandbox.py"), p.folder}, command...), nil
}

// tidy removes the folders of a process, and its group.
func (p *process) tidy() {
	if p.group != nil {
		p.group.end()
	}
	_ = scratch.Remove(p.sources)
	_ = scratch.Remove(p.folder)
}

func (w *Worker) settings() []string {
	threads := strconv.Itoa(w.config.Threads)
	return append(slices.Concat(w.keeping(), []string{
		"PLUMB_WORKER_DEVICE=" + w.config.Device,
		"PLUMB_WORKER_IMPORT=" + strings.Join(w.config.Imports, ","),
		"PLUMB_WORKER_THREADS=" + threads,
		"PLUMB_WORKER_MEMORY=" + strconv.FormatInt(w.config.MemoryLimit, 10),
		"OMP_NUM_THREADS=" + threads,
		"OPENBLAS_NUM_THREADS=" + threads,
		"MKL_NUM_THREADS=" + threads,
		"MALLOC_MMAP_MAX_=0",
		"MALLOC_TRIM_THRESHOLD_=-1",
		"PLUMB_WORKER_FRAMEWORK=" + w.config.Framework,
		"TORCHINDUCTOR_COMPILE_THREADS=" + threads, // one compiles in the process, whose start is the dearer part
	}), append(building(w.config.Folder), w.config.Env...)...)
}

// buildingFolders are the variables by which what builds is told where.
var buildingFolders = []string{"TORCH_EXTENSIONS_DIR", "TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR", "TRITON_HOME", "NUMBA_CACHE_DIR", "XDG_CACHE_HOME"}

// building is the environment of a kernel that builds in a folder of its own. What the
// user has set for extensions is kept, so that they are built once.
func building(dir string) []string {
	if dir == "" {
		return nil
	}
	env := []string{"PLUMB_WORKER_FOLDER=" + dir, "TMPDIR=" + dir}
	for _, name := range buildingFolders {
		if name != "TORCH_EXTENSIONS_DIR" || os.Getenv(name) == "" {
			env = append(env, name+"="+dir)
		}
	}
	return env
}

// Confined returns the command that runs a program of Python's in the sandbox in which
// kernels are imported, with a folder, which is there, to write to.
func Confined(ctx context.Context, python, folder, program string) (*exec.Cmd, error) {
	text, err := sources.ReadFile("py/plumb_sandbox.py")
	if err != nil {
		return nil, err
	}
	file := filepath.Join(folder, "plumb_sandbox.py")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, python, "-B", file, program)
	cmd.Env = append(os.Environ(), building(folder)...)
	return cmd, nil
}

// connect starts the command, or a fork, with its three descriptors.
func (p *process) connect(memory *os.File, forker *forker, env []string) error {
	theirRequests, requests, err := os.Pipe()
	if err != nil {
		return err
	}
	defer theirRequests.Close()
	replies, theirReplies, err := os.Pipe()
	if err != nil {
		requests.Close()
		return err
	}
	defer theirReplies.Close()
	ended, end, err := os.Pipe()
	if err != nil {
		requests.Close()
		replies.Close()
		return err
	}
	for _, f := range []*os.File{theirRequests, requests, replies, theirReplies} {
		if err := unix.SetNonblock(int(f.Fd()), false); err != nil {
			return err
		}
	}
	p.requests, p.replies, p.ended = requests, replies, ended
	if forker != nil {
		if err := p.forked(forker, env, theirRequests, theirReplies, memory, end); err != nil {
			end.Close()
			p.close()
			return err
		}
		return nil
	}
	p.cmd.ExtraFiles = []*os.File{theirRequests, theirReplies, memory}
	started := make(chan error)
	go p.live(started, end)
	if err := <-started; err != nil {
		p.close()
		return err
	}
	return nil
}

// live starts the command and waits for its end on one thread: the kernel
// kills the worker when the thread that started it ends. What the process has
// started ends with it.
func (p *process) live(started chan<- error, end *os.File) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer end.Close()
	err := p.cmd.Start()
	if err == nil {
		p.pid = p.cmd.Process.Pid
	}
	started <- err
	if err != nil {
		return
	}
	p.wait()
	state := p.cmd.ProcessState
	status, _ := state.Sys().(syscall.WaitStatus)
	p.exit = exit{status, state.UserTime() + state.SystemTime()}
	close(p.done)
}

func (p *process) close() {
	p.requests.Close()
	p.replies.Close()
	p.ended.Close()
}

// kill ends the worker's process group.
func (p *process) kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.exited {
		unix.Kill(-p.pid, unix.SIGKILL)
	}
}

// company reports whether it has processes beside it that were not there when it was
// ready; as far as control groups tell.
func (p *process) company() bool { return len(p.group.members()) > p.family }

// leave notes that the process group is no longer the worker's own.
func (p *process) leave() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.exited = true
}

// drop forgets the process, after it has ended, and returns the end of what
// it printed.
func (w *Worker) drop(kill bool) string {
	p := w.proc
	w.proc = nil
	if kill {
		p.kill()
	}
	<-p.done
	p.close()
	p.tidy()
	w.cpuMu.Lock()
	w.cpu += p.exit.seconds
	w.now = 0
	w.cpuMu.Unlock()
	return p.tail.String()
}

// greet reads the handshake.
func (w *Worker) greet(line string) error {
	rest, ok := strings.CutPrefix(line, "plumb-worker ")
	if !ok {
		return fmt.Errorf("it greeted with %q instead of \"plumb-worker 1 {…}\"", clip(line))
	}
	version, hello, _ := strings.Cut(rest, " ")
	if version != "1" {
		return fmt.Errorf("it speaks version %s of the worker protocol, this Plumb version 1", clip(version))
	}
	var h struct {
		backend.Info
		CPU       float64 `json:"cpu"`
		Gradients any     `json:"gradients"`
		Elements  *bool   `json:"elements"`
		Refusals  *bool   `json:"refusals"`
		Forms     *bool   `json:"forms"`

		ForwardModes   []string `json:"forward_modes"`
		CompilingModes []string `json:"compiling_modes"`
	}
	if err := json.Unmarshal([]byte(hello), &h); err != nil {
		return fmt.Errorf("its greeting: %w", err)
	}
	if h.Name == "" {
		return errors.New("its greeting has no name")
	}
	w.info = printable(h.Info)
	w.byProgram = h.Gradients == "program"
	w.info.ForwardOnly = h.Gradients == false || w.byProgram
	w.forwardModes, w.compilingModes = h.ForwardModes, h.CompilingModes
	w.info.NoElements = h.Elements != nil && !*h.Elements
	w.info.Permissive = h.Refusals != nil && !*h.Refusals
	w.info.OwnForms = h.Forms != nil && !*h.Forms
	w.setCPU(seconds(h.CPU))
	return nil
}

// printable is a description that may be shown.
func printable(i backend.Info) backend.Info {
	short := func(s string) string { return backend.Printable(s, maxName) }
	i.Name, i.Version = short(i.Name), short(i.Version)
	for _, list := range [][]string{i.Devices, i.Modes} {
		for k := range list {
			list[k] = short(list[k])
		}
	}
	features := map[string]string{}
	for k, v := range i.Features {
		features[short(k)] = short(v)
	}
	i.Features = features
	return i
}

func clip(s string) string { return s[:min(len(s), 80)] }

// starved is how many times as long as a case has one has that waits for a processor.
const starved = 4

// roundTrip sends a frame and returns the payload of the answer, valid until
// the next one; or how the worker was lost.
func (w *Worker) roundTrip(ctx context.Context, frame []byte) ([]byte, *loss, error) {
	p := w.proc
	var timedOut atomic.Int64
	kill := func(after time.Duration) {
		if timedOut.CompareAndSwap(0, int64(after)) {
			p.kill()
		}
	}
	before, queued := p.used(), time.Duration(0)
	if w.config.Asleep > 0 {
		queued = p.queued()
	}
	var timers []*time.Timer
	at := func(after time.Duration, hung func(used, queued time.Duration) bool) {
		timers = append(timers, time.AfterFunc(after, func() {
			if hung == nil || before >= 0 && hung(p.used()-before, p.queued()-queued) {
				kill(after)
			}
		}))
	}
	if most := w.patience(); before < 0 {
		at(most, nil)
	} else if w.config.Asleep == 0 { // somebody may have stopped it, for a time
		at(most, func(time.Duration, time.Duration) bool { return !p.stopped() })
		at(starved*most, nil)
	} else { // one that gets little of a processor has longer
		at(most, func(used, queued time.Duration) bool { return used+queued < most/20 || used > most/2 })
		at(starved*most, nil)
	}
	if after := w.config.Asleep; after > 0 {
		for k := after; k < starved*w.patience(); k += after { // one that had to do first sleeps for the most of a longer time
			at(k, func(used, queued time.Duration) bool { return used+queued < k/20 })
		}
	}
	if after := w.config.Busy; after > 0 {
		for k := after; k < starved*w.patience(); k += after { // as soon as it has had a processor for so long
			at(k, func(used, _ time.Duration) bool { return used > after*4/5 })
		}
	}
	stop := context.AfterFunc(ctx, p.kill)
	p.begin()
	err := p.write(frame)
	var reply []byte
	if err == nil {
		reply, err = p.readFrame()
	}
	stop()
	for _, t := range timers {
		t.Stop()
	}
	if err == nil {
		if p.excess = cmp.Or(p.excess, p.refused()); p.excess == nil {
			return reply, nil, nil
		}
		p.kill()
	}
	lost := w.bury(err, time.Duration(timedOut.Load()))
	if ctx.Err() != nil {
		return nil, nil, ctx.Err()
	}
	return nil, lost, nil
}

// bury says why the process that failed with err did; after is what it was given, where it
// was ended for that.
func (w *Worker) bury(err error, after time.Duration) *loss {
	p := w.proc
	garbage, itself := errors.Is(err, errGarbage), false
	if !garbage {
		select { // let it report its own end
		case <-p.done:
			itself = true
		case <-time.After(2 * time.Second):
		}
	}
	tail := w.drop(true)
	w.forget(p.started)
	class := ending(p.exit.status)
	p.excess = cmp.Or(p.excess, p.refused())
	switch {
	case p.orphaned.Load():
		w.alone = true
		lost := w.lost(class, "what it is a fork of has ended", tail)
		lost.orphaned = true
		return lost
	case after > 0:
		lost := w.lost("", fmt.Sprintf("no answer within %s", after), tail)
		lost.status = backend.TimedOut
		return lost
	case p.excess != nil:
		lost := w.lost(p.excess.class, p.excess.message, tail)
		lost.status = p.excess.status
		return lost
	case class == "SIGXFSZ":
		return w.lost("output", fmt.Sprintf("it wrote a file of more than %d MB", p.most>>20), tail)
	case itself && class == "SIGKILL" && memoryEndings() > p.endings:
		lost := w.lost("memory", "the system has ended it for want of memory", tail)
		lost.status = backend.OutOfMemory
		return lost
	case garbage:
		lost := w.lost("garbage", err.Error(), tail)
		lost.noise = w.served > 0
		return lost
	case p.exit.status.ExitStatus() == exitFault:
		return w.lost("worker", "the worker failed", tail)
	}
	return w.lost(class, "ended by "+class, tail)
}

// ending names the signal or the exit status.
func ending(status syscall.WaitStatus) string {
	if status.Signaled() {
		return unix.SignalName(status.Signal())
	}
	return fmt.Sprintf("exit status %d", status.ExitStatus())
}

// await returns when a pipe can be used, or false when the process has ended
// and the pipe says nothing more: what it has started may hold the other end.
func (p *process) await(fd int, event int16) (bool, error) {
	fds := []unix.PollFd{{Fd: int32(fd), Events: event}, {Fd: int32(p.ended.Fd()), Events: unix.POLLIN}}
	for {
		n, err := unix.Poll(fds, patience())
		p.watch()
		if n != 0 && err != unix.EINTR {
			return fds[0].Revents != 0, err
		}
	}
}

// pipeRoom is what a pipe that can be written to takes without blocking (PIPE_BUF).
const pipeRoom = 4096

func (p *process) write(b []byte) error {
	fd := int(p.requests.Fd())
	for len(b) > 0 {
		if open, err := p.await(fd, unix.POLLOUT); err != nil || !open {
			return cmp.Or[error](err, io.ErrUnexpectedEOF)
		}
		n, err := unix.Write(fd, b[:min(len(b), pipeRoom)])
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}

func (p *process) read(b []byte) (int, error) {
	fd := int(p.replies.Fd())
	for {
		if open, err := p.await(fd, unix.POLLIN); err != nil || !open {
			return 0, cmp.Or[error](err, io.ErrUnexpectedEOF)
		}
		n, err := unix.Read(fd, b)
		switch {
		case err == unix.EINTR:
			continue
		case err != nil:
			return 0, err
		case n == 0:
			return 0, io.ErrUnexpectedEOF
		}
		return n, nil
	}
}

func (p *process) readFrame() ([]byte, error) {
	have := 0
	want := 4
	for have < want {
		n, err := p.read(p.buf[have:])
		if err != nil {
			return nil, err
		}
		if have += n; have < 4 || want > 4 {
			continue
		}
		size := binary.LittleEndian.Uint32(p.buf)
		if size > maxFrame {
			return nil, fmt.Errorf("%w: a frame of %d bytes", errGarbage, size)
		}
		if want = 4 + int(size); want > len(p.buf) {
			p.buf = append(p.buf, make([]byte, want-len(p.buf))...)
		}
	}
	if have > want {
		return nil, fmt.Errorf("%w: %d bytes after the frame", errGarbage, have-want)
	}
	return p.buf[4:want], nil
}

func (p *process) readLine() (string, error) {
	have := 0
	for have < len(p.buf) {
		n, err := p.read(p.buf[have:])
		if err != nil {
			return "", fmt.Errorf("it ended before its greeting (%w)", err)
		}
		have += n
		if line, rest, ok := strings.Cut(string(p.buf[:have]), "\n"); ok && rest == "" {
			return line, nil
		}
	}
	return "", fmt.Errorf("%w instead of a greeting", errGarbage)
}

// tail keeps the last 4 KiB that were written to it.
type tail struct {
	mu    sync.Mutex
	bytes []byte
}

const tailSize = 4 << 10

// Write never fails.
func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.bytes = append(t.bytes, b...)
	if extra := len(t.bytes) - tailSize; extra > 0 {
		t.bytes = append(t.bytes[:0], t.bytes[extra:]...)
	}
	return len(b), nil
}

// String returns what is kept, as backend.Printable shows it.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(backend.Printable(string(t.bytes), tailSize))
}
