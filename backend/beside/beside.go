// Package beside runs a backend of this program's in another process of it, whose death
// costs one case: the case is a crash, and the next one has a new process.
package beside

import (
	"cmp"
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"time"

	"plumb/backend"
	"plumb/program"
)

// Config says how the other process is started.
type Config struct {
	// Command starts a process that calls Serve on its standard input and output.
	Command []string
	// Called is what the process is called, its argument 0.
	Called string
	// Timeout is how long a case may take; 0 for DefaultTimeout.
	Timeout time.Duration
	// Guard, where it is set, watches over the process until stop is called, which says
	// why it has ended it, if it has.
	Guard func(pid int) (stop func() (why string))
}

// DefaultTimeout is how long a case may take where nobody says how long.
const DefaultTimeout = 5 * time.Minute

// Backend runs programs in another process. It is for one goroutine.
type Backend struct {
	cfg  Config
	info backend.Info
	at   *process // nil where the last one has died
}

var _ backend.Modal = (*Backend)(nil)

// Open starts the process. Where it cannot be, the error is a *backend.Fault.
func Open(c Config) (*Backend, error) {
	if c.Timeout == 0 {
		c.Timeout = DefaultTimeout
	}
	b := &Backend{cfg: c}
	p, err := b.start()
	if err != nil {
		return nil, err
	}
	b.at = p
	return b, nil
}

// Info returns what the backend says of itself in the other process.
func (b *Backend) Info() backend.Info { return b.info }

// In returns the backend in another mode, in the same process.
func (b *Backend) In(mode string) (backend.Backend, error) {
	return &inMode{b, mode}, nil // Info lists those that there are
}

// inMode is the backend in another mode than its own.
type inMode struct {
	*Backend
	mode string
}

// Info returns what it says in the mode.
func (m *inMode) Info() backend.Info {
	info := m.info
	info.Mode, info.Version = m.mode, m.mode
	return info
}

// Run runs a program in the mode.
func (m *inMode) Run(ctx context.Context, job *backend.Job) (*backend.Outcome, error) {
	return m.run(ctx, m.mode, job)
}

// Run runs a program. A process that dies, or says nothing for too long, is replaced
// by another; the program runs once more in that one where others had run before it.
func (b *Backend) Run(ctx context.Context, job *backend.Job) (*backend.Outcome, error) {
	return b.run(ctx, "", job)
}

func (b *Backend) run(ctx context.Context, mode string, job *backend.Job) (*backend.Outcome, error) {
	for {
		if b.at == nil {
			p, err := b.start()
			if err != nil {
				return nil, err
			}
			b.at = p
		}
		fresh := b.at.cases == 0
		out, err := b.at.run(ctx, b.cfg.Timeout, asked(mode, job))
		if end := (*endError)(nil); errors.As(err, &end) {
			if b.at = nil; fresh {
				return end.outcome(), nil
			}
			continue
		}
		return out, err
	}
}

// Close ends the process.
func (b *Backend) Close() error {
	if b.at != nil {
		b.at.end()
		b.at = nil
	}
	return nil
}

// process is one that serves.
type process struct {
	cmd     *exec.Cmd
	in      io.WriteCloser
	say     *gob.Encoder
	heard   chan reply
	printed LastText
	guarded func() (why string)
	cases   int
}

func (b *Backend) start() (*process, error) {
	p := &process{heard: make(chan reply)}
	p.cmd = exec.Command(b.cfg.Command[0], b.cfg.Command[1:]...)
	p.cmd.Args[0] = cmp.Or(b.cfg.Called, b.cfg.Command[0])
	p.cmd.Stderr = &p.printed
	p.cmd.WaitDelay = time.Second
	p.cmd.SysProcAttr = ProcessAttributes()
	in, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, b.fault(err)
	}
	out, err := p.cmd.StdoutPipe()
	if err == nil {
		err = p.cmd.Start()
	}
	if err != nil {
		return nil, b.fault(err)
	}
	p.in, p.say = in, gob.NewEncoder(in)
	if b.cfg.Guard != nil {
		p.guarded = b.cfg.Guard(p.cmd.Process.Pid)
	}
	go func() {
		defer close(p.heard)
		for read := gob.NewDecoder(out); ; {
			var r reply
			if read.Decode(&r) != nil {
				return
			}
			p.heard <- r
		}
	}()
	r, err := p.hear(context.Background(), time.Minute)
	if err == nil && r.Error != "" {
		p.end()
		err = errors.New(r.Error)
	}
	if err != nil {
		return nil, b.fault(err)
	}
	b.info = r.Info
	return p, nil
}

func (b *Backend) fault(err error) error {
	return &backend.Fault{Backend: strings.Join(b.cfg.Command, " "), Err: err}
}

// run runs one program; the error is an *endError where the process has ended.
func (p *process) run(ctx context.Context, timeout time.Duration, q request) (*backend.Outcome, error) {
	p.cases++
	if p.say.Encode(q) != nil {
		return nil, p.ended(backend.Crashed)
	}
	r, err := p.hear(ctx, timeout)
	switch {
	case err != nil:
		return nil, err
	case r.Error != "":
		return nil, errors.New(r.Error)
	}
	return r.outcome()
}

// hear waits for what the process says.
func (p *process) hear(ctx context.Context, patience time.Duration) (reply, error) {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case r, ok := <-p.heard:
		if ok {
			return r, nil
		}
		return reply{}, p.ended(backend.Crashed)
	case <-timer.C:
		_ = p.cmd.Process.Kill()
		end := p.ended(backend.TimedOut)
		end.how = fmt.Sprintf("no reply within %s", patience)
		return reply{}, end
	case <-ctx.Done():
		_ = p.cmd.Process.Kill()
		_ = p.ended(backend.Crashed)
		return reply{}, context.Cause(ctx)
	}
}

// end lets the process end.
func (p *process) end() { _ = p.ended(backend.OK) }

// ended waits for the end of a process that is ending.
func (p *process) ended(as backend.Status) *endError {
	_ = p.in.Close()
	for range p.heard {
	}
	why := ""
	if p.guarded != nil {
		why = p.guarded() // while the process's number is its own
	}
	_ = p.cmd.Wait()
	return &endError{as, cmp.Or(why, p.printed.How(p.cmd.ProcessState.String()))}
}

// endError is that of a process which ended.
type endError struct {
	status backend.Status
	how    string
}

// Error says how it ended.
func (e *endError) Error() string { return "the process ended: " + e.how }

// outcome is that of the program which ran there by itself.
func (e *endError) outcome() *backend.Outcome {
	status := e.status
	if strings.Contains(e.how, "out of memory") {
		status = backend.OutOfMemory
	}
	return &backend.Outcome{Status: status, Class: "process", Message: e.how}
}

// Serve runs the programs that it reads on a backend, until there are no more.
func Serve(ctx context.Context, in io.Reader, out io.Writer, open func() (backend.Backend, error)) error {
	read, say := gob.NewDecoder(in), gob.NewEncoder(out)
	own, err := open()
	if err != nil {
		return say.Encode(reply{Error: err.Error()})
	}
	defer own.Close()
	if err := say.Encode(reply{Info: own.Info()}); err != nil {
		return err
	}
	modes := map[string]backend.Backend{"": own}
	for {
		var q request
		if err := read.Decode(&q); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		if err := say.Encode(q.serve(ctx, own, modes)); err != nil {
			return err
		}
	}
}

// serve runs one program.
func (q *request) serve(ctx context.Context, own backend.Backend, modes map[string]backend.Backend) reply {
	if modes[q.Mode] == nil {
		modal, ok := own.(backend.Modal)
		if !ok {
			return reply{Error: (&backend.ModeError{Backend: own.Info().Name, Mode: q.Mode}).Error()}
		}
		in, err := modal.In(q.Mode)
		if err != nil {
			return reply{Error: err.Error()}
		}
		modes[q.Mode] = in
	}
	p, err := program.Parse("case", q.Program)
	if err != nil {
		return reply{Error: err.Error()}
	}
	job, err := q.job(p)
	if err != nil {
		return reply{Error: err.Error()}
	}
	o, err := modes[q.Mode].Run(ctx, job)
	if err != nil {
		return reply{Error: err.Error()}
	}
	return replied(o)
}
