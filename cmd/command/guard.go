package command

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"plumb/backend"
	"plumb/backend/beside"
	"plumb/backend/worker"
	"plumb/internal/scratch"
	"plumb/ops"
)

// A command that judges runs in a process which another one, its guard, waits for.
// Where it dies without having said that it ends, by what an operator does in the process
// of Plumb, the guard begins it again with native in processes of their own: there the
// same death costs one case, which is a crash. What was printed is not printed again.

// guardVariable is set for a process that has a guard, to how it runs native.
const guardVariable = "PLUMB_GUARDED"

// The ways in which a guarded process runs native.
const (
	runsInside = "inside" // in the process of Plumb
	runsBeside = "beside" // in processes of its own
)

// guardedMark is the annotation of commands that have a guard.
const guardedMark = "guarded"

// guarded lets a command have a guard.
func guarded(cmd *cobra.Command) *cobra.Command {
	cmd.Annotations = map[string]string{guardedMark: ""}
	return cmd
}

// guard runs a guarded command in another process and returns its exit code; done is
// false where this process is to run it.
func guard(root *cobra.Command, args []string) (code int, done bool) {
	if runtime.GOOS == "windows" || os.Getenv(guardVariable) != "" {
		return 0, false
	}
	cmd, _, err := root.Find(args)
	if err != nil {
		return 0, false
	}
	if _, has := cmd.Annotations[guardedMark]; !has {
		return 0, false
	}
	var g guardian
	file, err := scratch.File("", "guard")
	if err != nil {
		return 0, false // no room for a file: the command says so itself
	}
	defer scratch.Discard(file) //nolint:errcheck // it has no name
	g.file = file
	g.listen()
	return g.run(args), true
}

// guardian waits for a guarded process.
type guardian struct {
	file    *os.File // what the process says of itself: see guardedProcess
	signals chan os.Signal
	asked   atomic.Bool // somebody asked it to end
	filled  string      // why it was ended for want of memory, "" where it was not
}

// listen hands on what this process alone is sent. What a terminal sends, both get.
func (g *guardian) listen() {
	g.signals = make(chan os.Signal, 4)
	signal.Notify(g.signals, os.Interrupt, syscall.SIGTERM, syscall.SIGQUIT)
}

func (g *guardian) run(args []string) int {
	for _, way := range []string{runsInside, runsBeside} {
		state, err := g.once(args, way)
		if err != nil {
			fmt.Fprintln(os.Stderr, "plumb:", err)
			return exitFault
		}
		ended, crash := g.told()
		sig, killed := signalOf(state)
		switch {
		case ended && !killed:
			return state.ExitCode()
		case killed && sig == syscall.SIGPIPE || g.asked.Load():
			if killed {
				return 128 + int(sig) // as a shell says it
			}
			return max(state.ExitCode(), exitFault)
		}
		how := cmp.Or(g.filled, firstLineOf((&beside.LastText{}).Of(crash).How(state.String())))
		if way == runsBeside {
			fmt.Fprintf(os.Stderr, "plumb: the process of Plumb ended again: %s; what it does outside of native's operators ends it: plumb campaign run names the case\n", how)
			return exitFault
		}
		fmt.Fprintf(os.Stderr, "plumb: the process of Plumb ended: %s; the run begins again, with native in processes of its own, where that costs one case\n", how)
	}
	return exitFault
}

// once runs the command once.
func (g *guardian) once(args []string, way string) (*os.ProcessState, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(exe, args...)
	cmd.Args[0] = os.Args[0]
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), guardVariable+"="+way)
	cmd.ExtraFiles = []*os.File{g.file}
	cmd.SysProcAttr = beside.ProcessAttributes()
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	over := make(chan struct{})
	defer close(over)
	go func() {
		for {
			select {
			case s := <-g.signals:
				g.asked.Store(true)
				_ = cmd.Process.Signal(s)
			case <-over:
				return
			}
		}
	}()
	stop := worker.Guard(cmd.Process.Pid, 0)
	err = cmd.Wait()
	g.filled = stop()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		return nil, err
	}
	return cmd.ProcessState, nil
}

// signalOf is the signal by which a process ended.
func signalOf(state *os.ProcessState) (syscall.Signal, bool) {
	status, ok := state.Sys().(syscall.WaitStatus)
	if !ok || !status.Signaled() {
		return 0, false
	}
	return status.Signal(), true
}

// The file has how many lines were printed, whether the process said that it ends, and
// then what Go's runtime says of a crash.
const (
	saidEnd   = 8
	saidCrash = 9
	mostCrash = 64 << 10
)

// told reads the file, and makes it ready for another process.
func (g *guardian) told() (ended bool, crash []byte) {
	text := make([]byte, saidCrash+mostCrash)
	n, _ := g.file.ReadAt(text, 0)
	text = text[:n]
	_ = g.file.Truncate(saidEnd)
	if n <= saidEnd {
		return false, nil
	}
	return text[saidEnd] != 0, text[min(saidCrash, n):]
}

// guardedProcess is what this process says to its guard; nil without one.
type guardedProcess struct {
	file  *os.File
	way   string
	skip  uint64 // lines that are printed already
	lines uint64
}

// underGuard is what this process is to its guard.
func underGuard() *guardedProcess {
	way := os.Getenv(guardVariable)
	_ = os.Unsetenv(guardVariable) // what this process starts has no guard
	if way != runsInside && way != runsBeside {
		return nil
	}
	syscall.CloseOnExec(guardFile)
	p := &guardedProcess{file: os.NewFile(guardFile, "guard"), way: way}
	if _, err := p.file.Seek(saidCrash, 0); err != nil {
		return nil
	}
	var count [8]byte
	if n, _ := p.file.ReadAt(count[:], 0); n == len(count) {
		p.skip = binary.LittleEndian.Uint64(count[:])
	}
	_ = debug.SetCrashOutput(p.file, debug.CrashOptions{}) // the state of the process tells less
	return p
}

// guardFile is the descriptor of the file in a process that has a guard.
const guardFile = 3

// fresh is what is left of a text to be printed where its first lines have been.
func (p *guardedProcess) fresh(b []byte) []byte {
	if p == nil {
		return b
	}
	from := 0
	for at := range b {
		if b[at] == '\n' {
			if p.lines++; p.lines == p.skip {
				from = at + 1
			}
		}
	}
	if p.lines < p.skip {
		return nil
	}
	return b[from:]
}

// printed tells how many lines have been.
func (p *guardedProcess) printed() {
	if p == nil || p.lines < p.skip {
		return
	}
	_, _ = p.file.WriteAt(binary.LittleEndian.AppendUint64(nil, p.lines), 0) // else they are printed twice
}

// ends tells that the process ends by itself.
func (p *guardedProcess) ends() {
	if p != nil {
		_, _ = p.file.WriteAt([]byte{1}, saidEnd)
	}
}

// servesNative says how native runs in processes of its own; nil where it does not.
func (p *guardedProcess) servesNative() []string {
	if p == nil || p.way != runsBeside {
		return nil
	}
	exe, err := os.Executable()
	if err != nil {
		return nil
	}
	return []string{exe, "campaign", "native"}
}

// thisProcess is what this process is to its guard.
var thisProcess *guardedProcess

// newCampaignNative is the command of a process that serves native, which nobody types.
func newCampaignNative() *cobra.Command {
	return &cobra.Command{
		Use: "native NAME", Hidden: true, Args: takes(1, 1, "a name of native"),
		Short: "Run programs on native for plumb run",
		RunE: func(cmd *cobra.Command, args []string) error {
			err := beside.Serve(cmd.Context(), cmd.InOrStdin(), cmd.OutOrStdout(), func() (backend.Backend, error) {
				return openNative(cmd.Context(), args[0])
			})
			if err != nil {
				return &exitError{exitFault, err}
			}
			return nil
		},
	}
}

// openNative opens native in this process.
func openNative(ctx context.Context, name string) (backend.Backend, error) {
	s := newSubjects()
	s.set.Table = ops.Table()
	opener, err := s.set.Opener(ctx, name)
	if err != nil {
		return nil, err
	}
	return opener()
}

// isEcho reports whether a second signal is the first one's, which a terminal sent to
// this process and to its guard.
func isEcho(first time.Time) bool {
	return thisProcess != nil && time.Since(first) < echo
}

// echo is how long a signal takes through the guard at most.
const echo = 200 * time.Millisecond
