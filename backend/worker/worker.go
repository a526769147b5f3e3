// Package worker runs programs in a child process that speaks the protocol of
// docs/worker-protocol.md: by default Plumb's own Python worker, which hosts
// PyTorch. Tensors travel in shared memory; the process is restarted when it
// dies, and what killed it is an Outcome.
package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"plumb/backend"
	"plumb/op"
	"plumb/program"
	"plumb/tensor"
)

// Config says which worker to run and within which limits.
type Config struct {
	// Framework is what Plumb's Python worker hosts, one of Frameworks; empty
	// for PyTorch. Python is the interpreter that has it; empty for the one that
	// Find returns.
	Framework, Python string
	// Command, when set, is another worker to run instead of Plumb's Python
	// worker: a program and its arguments.
	Command []string
	// Env is added to the environment of the worker, as "name=value".
	Env []string
	// Mode is the one of the greeting's modes in which programs run; empty for
	// eager.
	Mode string
	// Device is where tensors live, such as "cpu", the default.
	Device string
	// Imports are Python modules that PyTorch's worker imports before it asks for
	// the device, such as torch_npu.
	Imports []string
	// Threads is the number of threads of the subject; 1 by default.
	Threads int
	// MemoryLimit bounds the worker's address space in bytes; 0 does not.
	MemoryLimit int64
	// GrowthLimit bounds what the process takes beyond the memory that it has when
	// it is ready, in bytes without those that are shared; 0 does not. A case in
	// which it takes more ends as oom. A process that has taken half of it is ended
	// after its exchange, and the next one starts another. On Linux alone.
	GrowthLimit int64
	// ProcessLimit bounds the processes that the process has started, and as eight times as
	// many their threads; WriteLimit the bytes to files and pipes that all of them write in
	// one exchange. They are 128 and 4 GB, but no more than the disk has room for, by
	// default. On Linux alone, as is a bound of their processor time: four times
	// CaseTimeout for each of its Threads.
	ProcessLimit int
	WriteLimit   int64
	// Sandbox leaves the process no network and one folder to write to, which is its own
	// (Landlock and seccomp, by plumb_sandbox.py); it does not start where the machine
	// cannot do that.
	Sandbox bool
	// Folder, where it is set, is the one folder that a process which hosts a kernel
	// may write to, and that until it is sealed; PLUMB_WORKER_KERNEL says which kernel.
	Folder string
	// Secret numbers requests such that what has not read one cannot answer it.
	Secret bool
	// CaseTimeout bounds the run of one case; a minute by default.
	CaseTimeout time.Duration
	// Asleep and Busy are after how long a case has hung whose process has done nothing, or
	// has computed, all the while, where they are set: one that waits for a processor has
	// CaseTimeout, and some times as long where it gets less than half of one.
	Asleep, Busy time.Duration
	// StartTimeout bounds the start of the process; two minutes by default.
	StartTimeout time.Duration
}

func (c Config) withDefaults() (Config, error) {
	if c.Device == "" {
		c.Device = "cpu"
	}
	if c.Threads == 0 {
		c.Threads = 1
	}
	if c.CaseTimeout == 0 {
		c.CaseTimeout = time.Minute
	}
	if c.StartTimeout == 0 {
		c.StartTimeout = 2 * time.Minute
	}
	if c.Python == "" && len(c.Command) == 0 {
		path, _, err := Find(cmp.Or(c.Framework, Torch), "")
		if err != nil {
			return c, err
		}
		c.Python = path
	}
	return c, nil
}

// Worker is a backend in a child process.
type Worker struct {
	config       Config
	info         backend.Info
	forwardModes []string // in which it computes no gradients
	byProgram    bool     // it computes gradients by programs of forward calls
	mem          *memory
	proc         *process // nil until the next run restarts it
	encode       encoder
	compiled     int            // how many cases of the exchange may be compiled together
	alone        bool           // its process is no fork
	served       int            // exchanges of the process
	reach        map[string]int // by program name, the longest cotangent that was needed
	sigs         map[string][]*op.Sig

	compilingModes []string // in which a new program is dear

	cpuMu sync.Mutex
	cpu   time.Duration // of the processes that have ended
	now   time.Duration // of the running one
}

var (
	_ backend.Batcher      = (*Worker)(nil)
	_ backend.Signatures   = (*Worker)(nil)
	_ backend.SampleInputs = (*Worker)(nil)
	_ backend.Sharer       = (*Worker)(nil)
)

// Open starts a worker and returns when it is ready. The error is a
// *backend.Fault, with the command that repairs it when there is one.
func Open(ctx context.Context, config Config) (*Worker, error) {
	config, err := config.withDefaults()
	if err != nil {
		return nil, err
	}
	mem, err := newMemory()
	if err != nil {
		return nil, &backend.Fault{Backend: "worker", Err: fmt.Errorf("shared memory: %w", err)}
	}
	w := &Worker{config: config, mem: mem, reach: map[string]int{}, sigs: map[string][]*op.Sig{}}
	w.info.Name, w.encode.secret = "worker", config.Secret
	if len(config.Command) == 0 {
		w.encode.drawn = map[stream]int{}
		w.encode.narrow = cmp.Or(config.Framework, Torch) == Torch
	}
	if err := w.start(ctx); err != nil {
		mem.close()
		return nil, err
	}
	if err := w.setMode(config.Mode); err != nil {
		w.Close()
		return nil, &backend.Fault{Backend: w.info.Name, Err: err}
	}
	return w, nil
}

// Info describes the subject as its handshake did, and the mode.
func (w *Worker) Info() backend.Info {
	info := w.info
	info.Mode = w.encode.mode
	w.describe(&info)
	info.Features = maps.Clone(info.Features)
	return info
}

// ByProgram reports whether the subject, which computes no gradients itself, is to
// compute them by programs of forward calls (package derive).
func (w *Worker) ByProgram() bool { return w.byProgram }

// Close ends the process.
func (w *Worker) Close() error {
	if w.proc != nil {
		w.drop(true)
	}
	w.mem.close()
	return nil
}

// CPUTime returns the processor time that the worker's processes have used, as
// of their last answer; starting and importing the framework are part of it.
func (w *Worker) CPUTime() time.Duration {
	w.cpuMu.Lock()
	defer w.cpuMu.Unlock()
	return w.cpu + w.now
}

func (w *Worker) setCPU(now time.Duration) {
	w.cpuMu.Lock()
	w.now = now
	w.cpuMu.Unlock()
}

// Run runs one program.
func (w *Worker) Run(ctx context.Context, job *backend.Job) (*backend.Outcome, error) {
	outs, err := w.RunBatch(ctx, []*backend.Job{job})
	if err != nil {
		return nil, err
	}
	return outs[0], nil
}

// RunBatch runs the jobs in one exchange. When the worker does not survive
// it, every job is run again by itself, so that the outcome of each is its own;
// halves of them where it compiles them together, and that took too long.
func (w *Worker) RunBatch(ctx context.Context, jobs []*backend.Job) ([]*backend.Outcome, error) {
	outs := make([]*backend.Outcome, len(jobs))
	if err := w.run(ctx, jobs, outs, copied); err != nil {
		return nil, err
	}
	return outs, nil
}

// RunHeld is Run whose outcome may lie in the region that both share: it is valid
// until Release or the next run.
func (w *Worker) RunHeld(ctx context.Context, job *backend.Job) (*backend.Outcome, error) {
	outs := make([]*backend.Outcome, 1)
	if err := w.run(ctx, []*backend.Job{job}, outs, held); err != nil {
		return nil, err
	}
	return outs[0], nil
}

// use is how an exchange uses the region that both share.
type use int

const (
	copied use = iota // inputs are copied into it, and results out of it
	held              // results stay in it
	drawn             // inputs are drawn there, too
)

func (w *Worker) run(ctx context.Context, jobs []*backend.Job, outs []*backend.Outcome, as use) error {
	if jobs[0].Alone && w.proc != nil && w.served > 0 {
		w.drop(true)
	}
	lost, err := w.attempt(ctx, jobs, outs, as)
	if lost != nil && lost.status != backend.TimedOut && (!lost.begun || lost.orphaned || lost.noise && len(jobs) == 1) {
		lost, err = w.attempt(ctx, jobs, outs, as) // it had died before, as what it is a fork of, or what came before has spoken: the jobs are not to blame
	}
	if err != nil || lost == nil {
		return err
	}
	if len(jobs) == 1 {
		outs[0] = lost.outcome(jobs[0].Program)
		return nil
	}
	if half := len(jobs) / 2; lost.status == backend.TimedOut && w.together() { // one by one each would be compiled alone, which takes as long again
		if err := w.run(ctx, jobs[:half], outs[:half], as); err != nil {
			return err
		}
		return w.run(ctx, jobs[half:], outs[half:], as)
	}
	for i := range jobs {
		if err := w.run(ctx, jobs[i:i+1], outs[i:i+1], as); err != nil {
			return err
		}
	}
	return nil
}

// attempt sets outs, asking again for jobs whose cotangents were too short. It
// returns how the worker was lost when it was.
func (w *Worker) attempt(ctx context.Context, jobs []*backend.Job, outs []*backend.Outcome, as use) (*loss, error) {
	lengths := make([]int, len(jobs))
	todo := make([]int, len(jobs))
	for i, job := range jobs {
		todo[i] = i
		lengths[i] = w.cotangentLength(job)
	}
	for round := range 2 {
		w.encode.typed = round == 0
		lost, err := w.exchange(ctx, jobs, todo, lengths, outs, as)
		if lost != nil || err != nil {
			return lost, err
		}
		again := todo[:0]
		for _, i := range todo {
			if outs[i] == nil {
				name := jobs[i].Program.Name
				w.reach[name] = max(w.reach[name], min(lengths[i], maxReach))
				again = append(again, i)
			}
		}
		if todo = again; len(todo) == 0 {
			return nil, nil
		}
	}
	return w.refuse(fmt.Errorf("%w: asked twice for a longer cotangent", errBreach)), nil
}

// minCotangent is the least length of a stream that is sent, maxReach the most
// that is remembered of what a test needed.
const (
	minCotangent = 256
	maxReach     = 1 << 16
)

// cotangentLength guesses how many elements the differentiated values have.
func (w *Worker) cotangentLength(job *backend.Job) int {
	n := max(minCotangent, w.reach[job.Program.Name])
	if job.Reach > 0 {
		return max(n, min(job.Reach, maxCotangent))
	}
	for i := range job.Program.Inputs {
		in := &job.Program.Inputs[i]
		n = max(n, tensor.NumElements(in.Shape)*in.DType.Size()/in.DType.Real().Size())
	}
	return n
}

// RunShared is RunBatch for jobs without inputs, which it draws where the subject
// reads them. Inputs and outcomes may lie in the region that both share: they are
// valid until Release or the next run.
func (w *Worker) RunShared(ctx context.Context, jobs []*backend.Job) ([]*backend.Outcome, error) {
	w.encode.uninitialised = false
	return w.runShared(ctx, jobs)
}

// RunUninitialized is RunShared with uninitialised floats, and what they are is not
// kept: for a question whose answer rests on dtypes and shapes.
func (w *Worker) RunUninitialized(ctx context.Context, jobs []*backend.Job) ([]*backend.Outcome, error) {
	w.encode.uninitialised = true
	defer func() { w.encode.uninitialised = false }()
	return w.runShared(ctx, jobs)
}

func (w *Worker) runShared(ctx context.Context, jobs []*backend.Job) ([]*backend.Outcome, error) {
	outs := make([]*backend.Outcome, len(jobs))
	todo, lengths := make([]int, len(jobs)), make([]int, len(jobs))
	for i, job := range jobs {
		todo[i], lengths[i] = i, w.cotangentLength(job)
	}
	var lost *loss
	for round := range 2 { // again where cotangents were too short, with what then is known
		w.encode.typed = round == 0
		for i, job := range jobs {
			job.Inputs, outs[i] = nil, nil
		}
		var err error
		if lost, err = w.exchange(ctx, jobs, todo, lengths, outs, drawn); err != nil {
			return nil, err
		}
		if lost != nil || !slices.Contains(outs, nil) {
			break
		}
	}
	if lost != nil || slices.Contains(outs, nil) {
		for _, job := range jobs {
			job.Inputs = nil
			for i := range job.Program.Inputs {
				job.Inputs = append(job.Inputs, job.Program.Inputs[i].Materialize())
			}
		}
		return w.RunBatch(ctx, jobs)
	}
	if !w.encode.uninitialised {
		for i, job := range jobs {
			redraw(job, outs[i])
		}
	}
	return outs, nil
}

// redraw sets the inputs that a run has changed to what they were.
func redraw(job *backend.Job, o *backend.Outcome) {
	for i := range job.Program.Inputs {
		in := &job.Program.Inputs[i]
		if slices.ContainsFunc(o.Slots, func(s backend.Slot) bool { return s.Part == backend.PartChange && s.Owner == in.Name }) {
			job.Inputs[i] = in.Materialize()
		}
	}
}

// Release ends the use of what RunShared returned.
func (w *Worker) Release() { w.mem.release() }

// exchange sends the jobs that todo lists and sets their outs; a job that
// needs longer cotangents keeps a nil outcome and gets its length.
func (w *Worker) exchange(ctx context.Context, jobs []*backend.Job, todo, lengths []int, outs []*backend.Outcome, as use) (*loss, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := w.start(ctx); err != nil {
		return nil, err
	}
	w.mem.release()
	w.encode.shared = as == drawn
	info := w.info
	info.ForwardOnly = w.forwardOnly(w.encode.mode)
	w.encode.forward = info.ForwardOnly
	if err := w.encode.request(w.mem, jobs, todo, lengths); err != nil {
		return nil, w.fault(err)
	}
	w.mem.clearMark()
	w.compiled = 0
	if w.together() {
		w.compiled = len(todo)
	}
	d := replyDecoder{mem: w.mem, jobs: jobs, todo: todo, lengths: lengths, outs: outs, shared: as != copied, info: &info}
	lost, err := w.answer(ctx, &d)
	w.compiled = 0
	if lost != nil || err != nil {
		return lost, err
	}
	if lost, err := w.confirm(ctx); lost != nil || err != nil {
		return lost, err
	}
	w.served++
	w.setCPU(d.cpu)
	if len(w.config.Command) > 0 && w.proc.company() { // those of Plumb's own have their ranks
		for _, i := range todo {
			if outs[i] != nil {
				outs[i].Beside = true
			}
		}
	}
	if most := w.config.GrowthLimit / 2; most > 0 && w.proc.grown() > most || w.proc.crowded() {
		w.drop(true)
	}
	if as == copied {
		w.mem.release()
	}
	return nil, nil
}

// answer sends the request and decodes its reply.
func (w *Worker) answer(ctx context.Context, d *replyDecoder) (*loss, error) {
	d.request = w.encode.number
	reply, lost, err := w.roundTrip(ctx, w.encode.frame())
	if lost != nil || err != nil {
		return lost, err
	}
	if err := d.decode(reply); err != nil {
		return w.refuse(err), nil
	}
	return nil, nil
}

// confirm asks a worker that is not Plumb's own for nothing: what it has said
// unasked comes first, and costs the cases that were run last, not those that
// come next.
func (w *Worker) confirm(ctx context.Context) (*loss, error) {
	if len(w.config.Command) == 0 {
		return nil, nil
	}
	if err := w.encode.request(w.mem, nil, nil, nil); err != nil {
		return nil, w.fault(err)
	}
	return w.answer(ctx, &replyDecoder{mem: w.mem})
}

// refuse ends a worker whose reply breaks the protocol.
func (w *Worker) refuse(err error) *loss {
	tail := w.drop(true)
	class := "protocol"
	if errors.Is(err, errGarbage) {
		class = "garbage"
	}
	lost := w.lost(class, err.Error(), tail)
	lost.noise = w.served > 0
	return lost
}

// Signatures asks the worker for the parameters of a public name; nil when it
// does not tell, or not by the protocol. Answers are kept.
func (w *Worker) Signatures(name string) ([]*op.Sig, error) {
	if sigs, ok := w.sigs[name]; ok {
		return sigs, nil
	}
	ctx := context.Background()
	if err := w.start(ctx); err != nil {
		return nil, err
	}
	reply, lost, err := w.roundTrip(ctx, signatureRequest(name))
	if err != nil {
		return nil, err
	}
	var texts []string
	if lost == nil {
		if texts, err = decodeSignatures(reply); err != nil {
			w.drop(true)
		} else if _, err := w.confirm(ctx); err != nil {
			return nil, err
		}
	}
	var sigs []*op.Sig
	for _, text := range texts {
		if sig, err := op.ParseSig(text); err == nil {
			sigs = append(sigs, sig)
		}
	}
	w.sigs[name] = sigs
	return sigs, nil
}

func (w *Worker) fault(err error) error { return &backend.Fault{Backend: w.info.Name, Err: err} }

// loss says how a worker was lost in an exchange.
type loss struct {
	begun    bool // it had begun to run a case
	status   backend.Status
	noise    bool // its reply was none, and it had run other cases
	orphaned bool // what it was a fork of has ended
	call     int  // that was running
	class    string
	message  string
}

func (w *Worker) lost(class, message, tail string) *loss {
	_, call, begun := w.mem.mark()
	if tail != "" {
		message += "\n" + tail
	}
	return &loss{begun: begun, status: backend.Crashed, call: call, class: class, message: message}
}

// outcome blames the one program that was running.
func (l *loss) outcome(p *program.Program) *backend.Outcome {
	call := min(l.call, len(p.Calls))
	where := "the backward pass"
	if call < len(p.Calls) {
		where = p.Calls[call].Target
	}
	out := &backend.Outcome{Status: l.status, Class: l.class, Call: call}
	head, rest, more := strings.Cut(l.message, "\n")
	out.Message = head + " in " + where
	if more {
		out.Message += "\n" + rest
	}
	return out
}
