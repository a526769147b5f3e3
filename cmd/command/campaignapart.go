package command

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"plumb/backend/beside"
	"plumb/backend/worker"
	"plumb/internal/campaign/ledger"
	"plumb/internal/campaign/report"
	"plumb/internal/campaign/store"
	"plumb/internal/judge/verdict"
)

// apart judges units of one candidate in a process of its own. Where that process dies,
// the units that it had are judged one at a time; of one in which it dies again, each
// case; and a case that ends a process which has judged nothing before it has its
// verdict: it is the crash of whatever runs in the process of Plumb itself.
type apart struct {
	assignment
	next func() []ledger.Unit      // of another round; none ends the work
	done func(ledger.Result) error // of each unit
	log  io.Writer
	span time.Duration // that a case may take; a process that is silent for longer is ended

	at   *judgeProcess
	held []ledger.Unit // that the process has
	late []ledger.Unit // to be judged one at a time
}

// assignment is what a process that judges is told first.
type assignment struct {
	Spec      []byte `json:"spec"`
	Candidate string `json:"candidate"`
	Python    string `json:"python"`
	Jobs      int    `json:"jobs"`
	Sandbox   bool   `json:"sandbox"`
	// Held are the files of recorded results that lie elsewhere than their names say.
	Held map[string]string `json:"held,omitempty"`
}

// judgeMessage is what the process says: that it waits for a round, the result of a unit, what
// a case that is alone is where nothing follows, or why it ends.
type judgeMessage struct {
	Ready  bool           `json:"ready,omitempty"`
	Result *ledger.Result `json:"result,omitempty"`
	Last   *store.Case    `json:"last,omitempty"`
	Error  string         `json:"error,omitempty"`
	Exit   int            `json:"exit,omitempty"`
}

// deathError is that of a process which ended without saying why.
type deathError struct {
	how    string
	filled bool // it took too much memory
}

// Error says how.
func (e *deathError) Error() string { return "the process that judges ended: " + e.how }

// newApart is who judges units of a spec with one of its candidates.
func newApart(s *spec, candidate string, on local) (*apart, error) {
	text, err := s.encode()
	if err != nil {
		return nil, err
	}
	span := defaultSpan
	if given, err := time.ParseDuration(s.Settings["timeout"]); err == nil {
		span = given
	}
	return &apart{assignment: assignment{text, candidate, on.python, on.jobs, on.sandbox, on.held}, log: on.log, span: asks * span}, nil
}

// A case has so long on a subject, and is run there so often at most, that a process
// which says nothing for longer hangs.
const (
	defaultSpan = time.Minute
	asks        = 4
)

// work judges until next has no more.
func (a *apart) work(ctx context.Context) error {
	defer a.end()
	for {
		round := a.round()
		if len(round) == 0 {
			return nil
		}
		err := a.judge(ctx, round, a.done)
		if death := (*deathError)(nil); !errors.As(err, &death) {
			if err != nil {
				return err
			}
			continue
		}
		switch {
		case len(round) > 1:
			fmt.Fprintf(a.log, "plumb: %s; what it had is judged again, one unit at a time\n", firstLineOf(err.Error()))
			a.late = append(a.late, a.held...)
		case len(a.held) > 0:
			if err := a.split(ctx, round[0]); err != nil {
				return err
			}
		}
	}
}

// round is the next one: of one unit where a process has died.
func (a *apart) round() []ledger.Unit {
	if len(a.late) > 0 {
		first := a.late[:1:1]
		a.late = a.late[1:]
		return first
	}
	return a.next()
}

// split judges the cases of a unit one by one, and makes one result of theirs.
func (a *apart) split(ctx context.Context, u ledger.Unit) error {
	whole := ledger.Result{Unit: u.N, Worker: workerName()}
	for i := range u.Size {
		one := ledger.Unit{N: u.N, Test: u.Test, Subject: u.Subject, First: u.First + i, Size: 1}
		r, err := a.alone(ctx, one)
		if err != nil {
			return err
		}
		whole.Judged += r.Judged
		whole.Rejected += r.Rejected
		whole.Elapsed += r.Elapsed
		whole.Cases = append(whole.Cases, r.Cases...)
		if whole.Error, whole.Lacks = r.Error, r.Lacks; r.Error != "" || r.Lacks {
			break
		}
	}
	return a.done(whole)
}

// alone judges one case, in a new process where it has ended one that had judged others.
func (a *apart) alone(ctx context.Context, u ledger.Unit) (*ledger.Result, error) {
	var got *ledger.Result
	keep := func(r ledger.Result) error { got = &r; return nil }
	for fresh := a.at == nil || a.at.dead; ; fresh = true {
		err := a.judge(ctx, []ledger.Unit{u}, keep)
		death := (*deathError)(nil)
		switch {
		case err == nil && got == nil:
			return nil, fmt.Errorf("case %d of %s has no result", u.First, u.Test)
		case err == nil:
			return got, nil
		case !errors.As(err, &death):
			return nil, err
		case fresh:
			fmt.Fprintf(a.log, "plumb: case %d of %s on %s ends the process that judges it: %s\n", u.First, u.Test, u.Subject, firstLineOf(death.how))
			return a.crash(u, death), nil
		}
	}
}

// crash is the result of a case that ends the process.
func (a *apart) crash(u ledger.Unit, death *deathError) *ledger.Result {
	c := a.at.last
	if c == nil { // it has not been drawn
		c = &store.Case{Test: u.Test, Number: u.First, Subject: u.Subject, Outcome: report.Failed, Word: string(verdict.Crash)}
	}
	if death.filled {
		c.Word = string(verdict.OOM)
	}
	c.Reason, c.Worst = death.Error(), math.NaN()
	return &ledger.Result{Unit: u.N, Judged: 1, Worker: workerName(), Cases: []store.Case{*c}}
}

// judge has the process judge units, and starts one where there is none.
func (a *apart) judge(ctx context.Context, units []ledger.Unit, done func(ledger.Result) error) error {
	if a.at == nil || a.at.dead {
		p, err := a.start(ctx)
		if err != nil {
			return err
		}
		a.at = p
	}
	a.held, a.at.last = slices.Clone(units), nil
	if err := a.at.say.Encode(units); err != nil {
		return a.at.lost()
	}
	most := 0
	for _, u := range units {
		most = max(most, u.Size)
	}
	for {
		t, err := a.at.hear(time.Duration(most)*a.span + time.Minute)
		switch {
		case err != nil:
			return unlessEnded(ctx, err)
		case t.Error != "" || t.Exit != 0:
			_ = a.at.lost()
			return unlessEnded(ctx, &exitError{t.Exit, errors.New(t.Error)})
		case t.Last != nil:
			a.at.last = t.Last
		case t.Ready:
			return nil
		case t.Result != nil:
			if err := done(*t.Result); err != nil {
				return err
			}
			a.held = slices.DeleteFunc(a.held, func(u ledger.Unit) bool { return u.N == t.Result.Unit })
		}
	}
}

// unlessEnded is the error of a context that has ended, else another.
func unlessEnded(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// end lets the process end.
func (a *apart) end() {
	if a.at != nil {
		a.at.end()
	}
}

// judgeProcess is a process that judges.
type judgeProcess struct {
	cmd     *exec.Cmd
	in      io.Closer
	say     *json.Encoder
	heard   chan judgeMessage
	printed beside.LastText
	guarded func() (why string)
	dead    bool
	last    *store.Case // what its case is if it says nothing more
}

// start starts a process and waits until it has opened its subjects.
func (a *apart) start(ctx context.Context) (*judgeProcess, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, &exitError{exitFault, err}
	}
	p := &judgeProcess{heard: make(chan judgeMessage)}
	p.cmd = exec.CommandContext(ctx, exe, "campaign", "judge")
	p.cmd.Args[0] = os.Args[0]
	p.cmd.Cancel = func() error { return p.cmd.Process.Signal(os.Interrupt) }
	p.cmd.WaitDelay = 5 * time.Second
	p.printed.Log = a.log
	p.cmd.Stderr = &p.printed
	in, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, &exitError{exitFault, err}
	}
	out, err := p.cmd.StdoutPipe()
	if err == nil {
		err = p.cmd.Start()
	}
	if err != nil {
		return nil, &exitError{exitFault, err}
	}
	p.in, p.say, p.guarded = in, json.NewEncoder(in), worker.Guard(p.cmd.Process.Pid, 0)
	go func() {
		defer close(p.heard)
		for read := json.NewDecoder(bufio.NewReaderSize(out, 1<<20)); ; {
			var t judgeMessage
			if read.Decode(&t) != nil {
				return
			}
			p.heard <- t
		}
	}()
	if err := p.say.Encode(a.assignment); err != nil {
		return nil, &exitError{exitFault, errors.New(p.lost().Error())}
	}
	switch t, err := p.hear(time.Hour); {
	case err != nil:
		return nil, unlessEnded(ctx, &exitError{exitFault, errors.New(err.Error())}) // another would not start either
	case t.Error != "":
		p.end()
		return nil, unlessEnded(ctx, &exitError{t.Exit, errors.New(t.Error)})
	}
	return p, nil
}

// hear returns what the process says next; a *deathError where it has ended, or is
// silent for too long.
func (p *judgeProcess) hear(silence time.Duration) (judgeMessage, error) {
	timer := time.NewTimer(silence)
	defer timer.Stop()
	select {
	case t, ok := <-p.heard:
		if ok {
			return t, nil
		}
		return judgeMessage{}, p.lost()
	case <-timer.C:
		_ = p.cmd.Process.Kill()
		_ = p.lost()
		return judgeMessage{}, &deathError{how: fmt.Sprintf("no word from it within %s", silence)}
	}
}

// lost waits for the end of a process that says nothing more, and says how it ended.
func (p *judgeProcess) lost() error {
	p.dead = true
	_ = p.in.Close()
	for range p.heard {
	}
	why := p.guarded() // while the process's number is its own
	_ = p.cmd.Wait()
	return &deathError{cmp.Or(why, p.printed.How(p.cmd.ProcessState.String())), why != ""}
}

// end lets the process end by itself, and waits for it.
func (p *judgeProcess) end() {
	if !p.dead {
		_ = p.lost()
	}
}

// newCampaignJudge is the command of such a process, which nobody types.
func newCampaignJudge() *cobra.Command {
	return &cobra.Command{
		Use: "judge", Hidden: true, Args: noArguments(),
		Short: "Judge units that plumb campaign run and plumb worker hand over",
		RunE: func(cmd *cobra.Command, _ []string) error {
			say := json.NewEncoder(cmd.OutOrStdout())
			err := judgeUnits(cmd.Context(), json.NewDecoder(cmd.InOrStdin()), say, cmd.ErrOrStderr())
			var e *exitError
			switch {
			case err == nil:
				return nil
			case !errors.As(err, &e) || e.err == nil:
				e = &exitError{exitFault, err}
			}
			return errors.Join(say.Encode(judgeMessage{Error: e.err.Error(), Exit: e.code}), &exitError{code: e.code})
		},
	}
}

// judgeUnits judges the rounds of units that it reads.
func judgeUnits(ctx context.Context, in *json.Decoder, say *json.Encoder, log io.Writer) error {
	var a assignment
	if err := in.Decode(&a); err != nil {
		return err
	}
	s, err := decodeSpec(a.Spec)
	if err != nil {
		return err
	}
	l, err := newLabourer(ctx, s, a.Candidate, local{a.Python, a.Jobs, a.Sandbox, a.Held, log})
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	rounds := make(chan []ledger.Unit)
	go func() {
		defer close(rounds)
		defer stop(errInterrupted) // whoever hands out units is gone
		for {
			var units []ledger.Unit
			if in.Decode(&units) != nil {
				return
			}
			rounds <- units
		}
	}()
	l.next = func() []ledger.Unit {
		if err := say.Encode(judgeMessage{Ready: true}); err != nil {
			stop(err)
			return nil
		}
		return <-rounds
	}
	l.done = func(r ledger.Result) error { return say.Encode(judgeMessage{Result: &r}) }
	l.alone = func(c store.Case) {
		if err := say.Encode(judgeMessage{Last: &c}); err != nil {
			stop(err)
		}
	}
	return l.work(ctx)
}
