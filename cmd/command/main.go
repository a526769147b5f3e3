// Package command is the whole of plumb as a function: a program of your own that
// calls Main with your operators has every command with them in it.
//
//	func main() {
//		command.Main(op.NewTable(append(mine, ops.All()...)...))
//	}
//
// Test files call an operator of yours by its id behind the name of any module that
// Plumb does not know: "import mylib", "mylib.leaky_relu_yzh(x)". One with a public
// name is judged by PyTorch under that; one without is for references and candidates
// that are modes of native, and for the checks that need no reference. Who judges
// operators under go test alone imports packages plumb and check, which bring
// neither this command line nor its database.
package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"plumb/backend"
	"plumb/backend/open"
	"plumb/backend/worker"
	"plumb/internal/campaign/report"
	"plumb/internal/scratch"
	"plumb/op"
	"plumb/ops"
)

// The exit codes.
const (
	exitAligned  = 0
	exitFindings = 1
	exitUsage    = 2
	exitFault    = 3
	exitNothing  = 5 // as pytest's, where no test was collected
)

// Main runs the command line over the operators of a table, and ends the process
// with its exit code. The table has Plumb's own operators too, ops.All; the error
// is that of making it.
func Main(table *op.Table, err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "plumb: the table of operators:", err)
		os.Exit(exitUsage)
	}
	for _, d := range ops.All() {
		if table.Def(d.ID()) == nil {
			fmt.Fprintf(os.Stderr, "plumb: the table of operators lacks Plumb's own, such as %s: op.NewTable(append(yours, ops.All()...)...)\n", d.ID())
			os.Exit(exitUsage)
		}
	}
	ops.Use(table)
	os.Exit(run())
}

// run runs the command line and returns its exit code, in another process where the
// command has a guard.
func run() int {
	root := newRoot()
	if code, done := guard(root, os.Args[1:]); done {
		return code
	}
	thisProcess = underGuard()
	code := runHere(root)
	worker.End()
	thisProcess.ends()
	return code
}

func runHere(root *cobra.Command) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	defer context.AfterFunc(ctx, endSoon)() // before stop, whose end of ctx is no signal
	collectLess()
	scratch.Sweep()
	worker.Sweep()
	out := &stdout{file: os.Stdout}
	root.SetOut(out)
	cmd, err := root.ExecuteContextC(ctx)
	err = out.lost(err)
	var e *exitError
	switch {
	case err == nil:
		return exitAligned
	case ctx.Err() != nil && !errors.As(err, &e):
		err = errInterrupted
	}
	if errors.As(err, &e) {
		if e.err != nil {
			fmt.Fprintln(os.Stderr, "plumb:", report.ErrorText(e.err))
		}
		return e.code
	}
	fmt.Fprintf(os.Stderr, "plumb: %v\n  see: %s --help\n", err, cmd.CommandPath())
	return exitUsage
}

// grace is how long a command that a signal ends may take to say what it has.
const grace = time.Second

// endSoon ends the process where the command does not end by itself: a read
// that blocks and a kernel that computes know nothing of the signal. A second
// signal ends it at once.
func endSoon() {
	again := make(chan os.Signal, 1)
	signal.Notify(again, os.Interrupt, syscall.SIGTERM)
	first, over := time.Now(), time.After(grace)
	for waits := true; waits; {
		select {
		case <-again:
			waits = isEcho(first)
		case <-over:
			waits = false
		}
	}
	thisProcess.ends()
	fmt.Fprintln(os.Stderr, "plumb:", errInterrupted.err)
	os.Exit(exitFault)
}

// errInterrupted ends a command after a signal.
var errInterrupted = &exitError{exitFault, errors.New("interrupted")}

// collectLess lets more garbage gather between collections, unless GOGC says
// how much: results are large and short-lived, and memory that goes back to
// the system after every few of them has to be mapped again.
func collectLess() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(usualGarbage)
	}
}

// usualGarbage is how much garbage gathers, in percent of what lives.
const usualGarbage = 400

// exitError ends the command with a code; a nil err prints nothing.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string { return fmt.Sprintf("exit code %d: %v", e.code, e.err) }

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "plumb",
		Short: "Tell whether operators compute what PyTorch's compute",
		Long: `Plumb draws random tensor programs from PyTorch-style tests, runs them on a
reference (PyTorch) and on candidates (by default Plumb's own operators), forward
and backward, and compares every tensor.

  plumb run                      the shipped suites, fresh random cases
  plumb run my_test.py -n 100    your own tests
  plumb ops run 'conv*'          operators, without a test file
  plumb doctor                   what is installed here, and what is missing
  plumb tour                     two minutes with a planted fault, without PyTorch

Exit codes: 0 aligned, 1 findings, 2 a mistake in a command or a test, 3 a fault,
5 nothing was judged. plumb help exit tells more.`,
		SilenceErrors:     true,
		SilenceUsage:      true,
		PersistentPreRunE: checkFlags,
	}
	root.AddCommand(newRun(), newOps(), newMatrix(), newGraph(), newConform(), newHistory(), newServe(), newRepro(), newBisect(), newKnown(), newFaults(), newMargins(), newSelftest(), newBench(), newProfile(), newDoctor(), newSubject(), newVersion(), newExplain(), newTour(), newDocs(), newKernel(), newConfig(), newCampaign(), newWorker(), newDB())
	root.AddCommand(newSettingsHelp(), newBackendsHelp(), newExitHelp())
	root.SetHelpCommand(newHelp())
	cobra.AddTemplateFunc("flagText", flagText)
	root.SetUsageTemplate(usageText)
	root.SetFlagErrorFunc(flagError)
	completes(root)
	return root
}

// newHelp is plumb help.
func newHelp() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND | TOPIC]",
		Short: "Explain a command or a topic",
		RunE: func(help *cobra.Command, names []string) error {
			cmd, rest, err := help.Root().Find(names)
			if err != nil || len(rest) > 0 {
				return usage(fmt.Errorf("there is no command or topic %q%s; plumb help lists them", strings.Join(names, " "), likeBelow(cmd, rest)))
			}
			cmd.InitDefaultHelpFlag()
			return cmd.Help()
		},
	}
}

// likeBelow guesses which command below one is meant.
func likeBelow(cmd *cobra.Command, rest []string) string {
	if cmd == nil || len(rest) == 0 {
		return ""
	}
	var all []string
	for _, c := range cmd.Commands() {
		all = append(all, c.Name())
	}
	return like(rest[0], all)
}

// newBackendsHelp is plumb help backends.
func newBackendsHelp() *cobra.Command {
	return &cobra.Command{Use: "backends", Short: "The names of references and candidates", Long: `A reference or a candidate is named as

` + open.Help + `

What is installed here: plumb doctor.`}
}

// newExitHelp is plumb help exit.
func newExitHelp() *cobra.Command {
	return &cobra.Command{Use: "exit", Short: "The exit codes", Long: `The exit code of a command that judges is the first of these that holds:

  2  a mistake in the command or in a test; nothing else is said then
  1  findings: something speaks against a candidate
  3  a fault: of Plumb, of a worker, of a recording, of a file that cannot be
     written, standard output among them
  5  nothing was judged: all that was asked for is unsupported, skipped or too
     large, or the selection names nothing (-k zzzz); with --min-implemented also
     where fewer cases were judged than that. A sentence says why
  0  all that was judged is aligned

Nothing judged is no pass. How much of what was asked was judged is the first
line of every summary, and what is unsupported is counted there by its reason.`}
}

// usage wraps a mistake of the caller's.
func usage(err error) error { return &exitError{exitUsage, err} }

// harness wraps an error of a backend: what is missing on this machine is for
// the user to mend, the rest is a fault.
func harness(err error) error {
	var e *exitError
	var f *backend.Fault
	var name *open.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &e):
		return err
	case errors.As(err, &name):
		return usage(err)
	}
	if errors.As(err, &f) && f.Fix != "" {
		return &exitError{exitUsage, err}
	}
	return &exitError{exitFault, err}
}
