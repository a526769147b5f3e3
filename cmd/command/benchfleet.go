package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"time"
)

// siege runs a campaign on several workers while these and the coordinator are
// killed and stopped.
type siege struct {
	killings
	workers  int
	subjects string // of each worker
	listen   string
	begin    []string
	rnd      *rand.Rand
	at       []*process // workers
	server   *process
	net      *breakable    // between the workers and the coordinator
	stopped  time.Duration // that a worker is
	cut      time.Duration // that the network is
	deeds    []int         // of strike, that are to come before any comes again
	early    atomic.Int64  // workers that ended before the campaign
	held     []int64       // what the coordinator had in memory, in bytes, now and then
}

// process is one that runs, with what it prints.
type process struct {
	cmd  *exec.Cmd
	out  *bytes.Buffer
	done chan struct{}
	err  error
}

func (k *siege) launch(ctx context.Context, args ...string) (*process, error) {
	cmd, out, err := k.start(ctx, "killed.db", args...)
	if err != nil {
		return nil, err
	}
	p := &process{cmd: cmd, out: out, done: make(chan struct{})}
	go func() { p.err = cmd.Wait(); close(p.done) }()
	return p, nil
}

// kill ends the process at once.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.done
}

func (p *process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// run runs the campaign calmly, and under siege.
func (k *siege) run(ctx context.Context) error {
	began := time.Now()
	if err := k.killings.ended(ctx, "calm.db", append([]string{"campaign", "run", "-q"}, k.args...)...); err != nil {
		return err
	}
	calm := time.Since(began)
	want, err := k.counts(ctx, "calm.db")
	if err != nil {
		return err
	}
	k.rnd = rand.New(rand.NewPCG(k.seed, 2))
	k.subjects = "native,native:graph"
	if err := k.serve(ctx); err != nil {
		return err
	}
	defer k.end()
	for !k.server.ended() { // workers that have not come yet are no worse for what is done
		if got, err := k.counts(ctx, "killed.db"); err == nil && got.Cases > 0 {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	deeds := map[string]int{}
	for range k.kills {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Duration(k.rnd.Int64N(int64(calm)/3 + 1))):
		}
		if k.server.ended() && k.server.cmd.ProcessState.ExitCode() >= 0 {
			break
		}
		what, err := k.strike(ctx)
		if err != nil {
			return err
		}
		deeds[what]++
	}
	if err := k.finish(ctx); err != nil {
		return err
	}
	got, err := k.counts(ctx, "killed.db")
	if err != nil {
		return err
	}
	fmt.Fprintf(k.log, "%d workers, %v: %d cases %v; undisturbed %d cases %v\n", k.workers, deeds, got.Cases, got.Verdicts, want.Cases, want.Verdicts)
	if !got.equal(want) || got.State != "ended" {
		return errors.New("the counts differ")
	}
	if n := k.early.Load(); n > 0 {
		return fmt.Errorf("%s ended before the campaign", count(int(n), "worker"))
	}
	return nil
}

// serve starts the coordinator and the workers.
func (k *siege) serve(ctx context.Context) (err error) {
	if k.listen, err = freeAddress(); err != nil {
		return err
	}
	if k.net, err = newBreakable(k.listen); err != nil {
		return err
	}
	k.begin = append(k.serving(), k.args...)
	if k.server, err = k.launch(ctx, k.begin...); err != nil {
		return err
	}
	for range k.workers {
		if err := k.recruit(ctx); err != nil {
			k.end()
			return err
		}
	}
	return nil
}

func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}

// recruit starts a worker.
func (k *siege) recruit(ctx context.Context) error {
	p, err := k.launch(ctx, "worker", "--join", "nats://"+k.net.address(), "--subjects", k.subjects, "-j", "1", "--give-up", "1m")
	if err != nil {
		return err
	}
	k.at = append(k.at, p)
	go func() {
		<-p.done
		k.left(ctx, p)
	}()
	return nil
}

// left keeps that a worker took the campaign for ended while it was not, such as one whose
// coordinator was killed.
func (k *siege) left(ctx context.Context, p *process) {
	if p.cmd.ProcessState.ExitCode() != exitAligned {
		return
	}
	if got, err := k.counts(ctx, "killed.db"); err == nil && got.Cases < got.Wanted {
		k.early.Add(1)
	}
}

// strike does one thing at random, each before any comes again, and says which.
func (k *siege) strike(ctx context.Context) (string, error) {
	if len(k.deeds) == 0 {
		k.deeds = k.rnd.Perm(4)
	}
	deed, n := k.deeds[0], k.rnd.IntN(len(k.at))
	k.deeds = k.deeds[1:]
	switch deed {
	case 0:
		k.server.kill()
		return "coordinators killed", k.serveAgain(ctx)
	case 1: // it goes on when others have its units
		p := k.at[n]
		if p.cmd.Process.Signal(syscall.SIGSTOP) == nil {
			time.AfterFunc(k.stopped, func() { _ = p.cmd.Process.Signal(syscall.SIGCONT) })
		}
		return fmt.Sprintf("workers stopped for %s", k.stopped), nil
	case 2: // its units are others', and there are no others
		k.net.cut(true)
		time.AfterFunc(k.cut, func() { k.net.cut(false) })
		return fmt.Sprintf("networks cut for %s", k.cut), nil
	default:
		k.at[n].kill()
		k.at = append(k.at[:n], k.at[n+1:]...)
		return "workers killed", k.recruit(ctx)
	}
}

// serving is the command of a coordinator whose workers judge, and no more.
func (k *siege) serving() []string {
	return []string{"campaign", "serve", "--listen", k.listen, "--lease", "2s", "--bundles", "0"}
}

// serveAgain starts the coordinator of the campaign, or of one if there is none yet.
func (k *siege) serveAgain(ctx context.Context) (err error) {
	args := k.begin
	if _, err := os.Stat(filepath.Join(k.dir, "killed.db")); err == nil {
		if _, err := k.counts(ctx, "killed.db"); err == nil {
			args = append(k.serving(), "--resume", "last")
		}
	}
	k.server, err = k.launch(ctx, args...)
	return err
}

// stall is how long a campaign may be without another case, glance between looks at it.
const (
	stall  = 10 * time.Minute
	glance = 10 * time.Second
)

// finish waits for the end of the campaign, for as long as it gets on.
func (k *siege) finish(ctx context.Context) error {
	cases, since := 0, time.Now()
	for over := false; !over; {
		select {
		case <-k.server.done:
			over = true
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(glance):
			k.held = append(k.held, memoryOf(k.server.cmd.Process.Pid))
			if now, err := k.counts(ctx, "killed.db"); err == nil && now.Cases > cases {
				cases, since = now.Cases, time.Now()
			}
			if time.Since(since) > stall {
				return fmt.Errorf("the campaign does not end: no case after %d within %s", cases, stall)
			}
		}
	}
	if code := k.server.cmd.ProcessState.ExitCode(); code != exitAligned && code != exitFindings {
		return fmt.Errorf("the coordinator ends with %d:\n%s", code, k.server.out)
	}
	return nil
}

// end ends what runs still.
func (k *siege) end() {
	for _, p := range append(k.at, k.server) {
		if p != nil {
			p.kill()
		}
	}
	k.net.close()
}
