package worker

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"plumb/internal/scratch"
)

// forker is a process that has imported PyTorch, of which workers are forks: each
// starts in a few milliseconds, and with nothing of those before it.
type forker struct {
	host    *net.UnixConn
	cmd     *exec.Cmd
	tail    tail
	sources string
	ready   chan struct{}
	cost    atomic.Int64  // processor time until it was ready, until a fork has taken it over
	gone    chan struct{} // closed when it has ended
	waited  chan struct{} // closed when it was waited for

	asking  sync.Mutex
	answers chan *life // to what is asked

	mu    sync.Mutex
	lives map[int]*life // by process
}

// life is one fork.
type life struct {
	pid   int
	ended chan exit
}

// lost is the end of a fork of which nothing is told: those of a process that has
// ended are killed.
var lost = exit{status: syscall.WaitStatus(unix.SIGKILL), seconds: -1}

// largestRequest bounds what a fork is told.
const largestRequest = 1 << 17

// openForker starts one for workers of a configuration.
func (w *Worker) openForker(ctx context.Context) (*forker, error) {
	f := &forker{ready: make(chan struct{}), gone: make(chan struct{}), waited: make(chan struct{}), answers: make(chan *life, 1), lives: map[int]*life{}}
	if err := f.start(w.config.Python, w.forkSettings()); err != nil {
		return nil, err
	}
	var err error
	select {
	case <-f.ready:
		return f, nil
	case <-f.gone:
		err = errForkerGone
	case <-ctx.Done():
		err = ctx.Err()
	}
	f.close()
	return nil, err
}

func (f *forker) start(python string, env []string) error {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	ours, theirs := os.NewFile(uintptr(pair[0]), "forker"), os.NewFile(uintptr(pair[1]), "forker")
	defer ours.Close()
	defer theirs.Close()
	conn, err := net.FileConn(ours)
	if err != nil {
		return err
	}
	f.host = conn.(*net.UnixConn)
	if f.sources, err = scratch.Dir("worker"); err != nil {
		return err
	}
	if err := os.CopyFS(f.sources, sources); err != nil {
		return err
	}
	f.cmd = exec.Command(python, filepath.Join(f.sources, "py", "plumb_fork.py"))
	f.cmd.Env = append(os.Environ(), env...)
	f.cmd.Stdout, f.cmd.Stderr = &f.tail, &f.tail
	f.cmd.WaitDelay = time.Second
	f.cmd.ExtraFiles = []*os.File{theirs}
	f.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // it ends, and removes its sources, when the host has gone
	if err := f.cmd.Start(); err != nil {
		return err
	}
	go func() {
		_ = f.cmd.Wait()
		close(f.waited)
	}()
	go f.listen()
	return nil
}

// listen reads what the process tells, until it ends.
func (f *forker) listen() {
	defer f.end()
	buf := make([]byte, 1<<12)
	for {
		n, err := f.host.Read(buf)
		if err != nil || n == 0 {
			return
		}
		var told struct {
			Ready         bool
			Forked, Ended int
			Status        uint32
			Seconds       float64
		}
		if json.Unmarshal(buf[:n], &told) != nil {
			return
		}
		switch {
		case told.Ready:
			f.cost.Store(int64(seconds(told.Seconds)))
			close(f.ready)
		case told.Forked > 0:
			l := &life{told.Forked, make(chan exit, 1)}
			f.mu.Lock()
			f.lives[l.pid] = l
			f.mu.Unlock()
			f.answers <- l
		case told.Ended > 0:
			f.mu.Lock()
			l := f.lives[told.Ended]
			delete(f.lives, told.Ended)
			f.mu.Unlock()
			if l != nil {
				l.ended <- exit{syscall.WaitStatus(told.Status), seconds(told.Seconds)}
			}
		}
	}
}

func (f *forker) end() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, l := range f.lives {
		l.ended <- lost
	}
	f.lives = nil
	close(f.gone)
}

// errForkerGone says that no more forks come of a process.
var errForkerGone = errors.New("the process that forks workers has ended")

// fork makes a worker, with what is added to the environment and its descriptors.
func (f *forker) fork(env []string, files ...*os.File) (*life, error) {
	dir, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	env = append(os.Environ(), env...)
	if !utf8.ValidString(dir + strings.Join(env, "")) {
		return nil, errors.New("a worker's environment that is not UTF-8")
	}
	message, err := json.Marshal(map[string]any{"directory": dir, "environment": env})
	if err != nil {
		return nil, err
	}
	if len(message) > largestRequest {
		return nil, fmt.Errorf("a worker's environment of %d bytes", len(message))
	}
	var fds []int
	for _, file := range files {
		fds = append(fds, int(file.Fd()))
	}
	f.asking.Lock()
	defer f.asking.Unlock()
	if _, _, err := f.host.WriteMsgUnix(message, unix.UnixRights(fds...), nil); err != nil {
		return nil, cmp.Or(err, errForkerGone)
	}
	select {
	case l := <-f.answers:
		return l, nil
	case <-f.gone:
		return nil, errForkerGone
	}
}

// finish lets the process end by itself, which removes its sources.
func (f *forker) finish() {
	f.host.Close()
	select {
	case <-f.waited:
		_ = scratch.Remove(f.sources)
	case <-time.After(time.Second):
		f.close()
	}
}

// close ends the process, and its forks with it.
func (f *forker) close() {
	f.host.Close()
	if f.cmd != nil && f.cmd.Process != nil {
		unix.Kill(-f.cmd.Process.Pid, unix.SIGKILL)
	}
	<-f.gone
	_ = scratch.Remove(f.sources)
}

// forked starts a process as a fork.
func (p *process) forked(f *forker, env []string, requests, replies, memory *os.File, end *os.File) error {
	said, say, err := os.Pipe()
	if err != nil {
		return err
	}
	l, err := f.fork(slices.Concat(env, []string{p.marker}), requests, replies, memory, say)
	say.Close()
	if err != nil {
		said.Close()
		return err
	}
	p.pid = l.pid
	heard := make(chan struct{})
	go func() {
		io.Copy(&p.tail, said)
		close(heard)
	}()
	go func() {
		p.exit = <-l.ended
		if p.exit == lost {
			p.orphaned.Store(true)
			shared.forget(func(one *sharedForker) bool { return one.forker.Load() == f })
		}
		p.exit.seconds += time.Duration(f.cost.Swap(0))
		p.leave()
		p.group.end()
		killMarked(p.marker)
		select {
		case <-heard:
		case <-time.After(p.cmd.WaitDelay):
		}
		said.Close()
		end.Close()
		close(p.done)
	}()
	return nil
}
