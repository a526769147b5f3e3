package command

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
)

// killings runs a campaign whose processes are killed at random times, and holds its
// counts to those of one that nobody disturbs.
type killings struct {
	plumb string // the program
	dir   string
	args  []string // what the campaign judges
	env   []string // of all processes
	kills int
	seed  uint64
	log   io.Writer
}

// campaignCounts are what has to be equal.
type campaignCounts struct {
	State    string                    `json:"state"`
	Cases    int                       `json:"cases"`
	Wanted   int                       `json:"wanted"`
	Verdicts map[string]map[string]int `json:"verdicts"`
}

func (c *campaignCounts) equal(o *campaignCounts) bool {
	return c.Cases == o.Cases && maps.EqualFunc(c.Verdicts, o.Verdicts, maps.Equal[map[string]int])
}

// start starts a command of the program, over a store of the folder.
func (k *killings) start(ctx context.Context, store string, args ...string) (*exec.Cmd, *bytes.Buffer, error) {
	cmd := exec.CommandContext(ctx, k.plumb, args...)
	cmd.Env = append(os.Environ(), "PLUMB_STORE="+filepath.Join(k.dir, store), "PLUMB_CONFIG=none")
	cmd.Env = append(cmd.Env, k.env...)
	out := &bytes.Buffer{}
	cmd.Stdout, cmd.Stderr = out, out
	return cmd, out, cmd.Start()
}

// ended runs a command to its end; findings are one.
func (k *killings) ended(ctx context.Context, store string, args ...string) error {
	cmd, out, err := k.start(ctx, store, args...)
	if err == nil {
		err = cmd.Wait()
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == exitFindings {
		return nil
	}
	if err != nil {
		return fmt.Errorf("plumb %v: %w\n%s", args, err, out)
	}
	return nil
}

// counts are those of the last campaign of a store.
func (k *killings) counts(ctx context.Context, store string) (*campaignCounts, error) {
	cmd := exec.CommandContext(ctx, k.plumb, "campaign", "status", "--json", "--store", filepath.Join(k.dir, store))
	text, err := cmd.Output()
	if err != nil {
		return nil, err
	}
	c := &campaignCounts{}
	return c, json.Unmarshal(text, c)
}

// run runs both campaigns.
func (k *killings) run(ctx context.Context) error {
	begin := append([]string{"campaign", "run", "-q"}, k.args...)
	began := time.Now()
	if err := k.ended(ctx, "calm.db", begin...); err != nil {
		return err
	}
	took := time.Since(began)
	want, err := k.counts(ctx, "calm.db")
	if err != nil {
		return err
	}
	rnd := rand.New(rand.NewPCG(k.seed, 25))
	killed := 0
	for args := begin; killed < k.kills; {
		over, err := k.kill(ctx, args, k.pause(rnd, took))
		if err != nil {
			return err
		}
		if over {
			break
		}
		if _, err := k.counts(ctx, "killed.db"); err == nil { // there is a campaign
			args = []string{"campaign", "resume", "-q"}
			killed++
		}
	}
	if err := k.ended(ctx, "killed.db", "campaign", "resume", "-q"); err != nil {
		return err
	}
	got, err := k.counts(ctx, "killed.db")
	if err != nil {
		return err
	}
	fmt.Fprintf(k.log, "%d × kill -9: %d cases %v; undisturbed %d cases %v\n", killed, got.Cases, got.Verdicts, want.Cases, want.Verdicts)
	if !got.equal(want) || got.State != "ended" {
		return errors.New("the counts differ")
	}
	return nil
}

// starting is about what a process needs before it judges.
const starting = 300 * time.Millisecond

// pause is a time after which a process is killed: short enough for all killings to
// be in one campaign.
func (k *killings) pause(rnd *rand.Rand, took time.Duration) time.Duration {
	return time.Duration(rnd.Int64N(int64(took/time.Duration(k.kills)*3/2 + starting)))
}

// kill starts a command and kills it after a time; over says that it had ended.
func (k *killings) kill(ctx context.Context, args []string, after time.Duration) (over bool, err error) {
	cmd, out, err := k.start(ctx, "killed.db", args...)
	if err != nil {
		return false, err
	}
	timer := time.AfterFunc(after, func() { _ = cmd.Process.Kill() })
	defer timer.Stop()
	_ = cmd.Wait()
	switch code := cmd.ProcessState.ExitCode(); {
	case code == exitAligned, code == exitFindings:
		return true, nil
	case code < 0: // by the signal
		return false, nil
	default:
		return false, fmt.Errorf("plumb %v ends with %d: %s", args, code, out)
	}
}

func newBenchCampaign() *cobra.Command {
	k := &killings{kills: 50}
	var rows, workers, simulated, onLanes int
	reference := "native"
	hard := &torture{every: 32, span: 4 * time.Second}
	cmd := &cobra.Command{
		Use:   "campaign [SOURCE…]",
		Short: "Campaigns whose processes are killed, and stores of many cases",
		Long: fmt.Sprintf(`Campaign runs the sources (default: ops:'re*' of native against itself) as a campaign
that nobody disturbs, and as one whose process is killed (SIGKILL) at random times
and gone on with, and compares the counts. With --torture each of %d tests has so
many cases, judged by two workers (or --workers) on a subject that dies, hangs,
swells, forks, floods, lies and so on, and each case is held to the verdict
that it has to have. With --lanes it times a run of native against itself (default:
of every operator) on so many lanes, each with a core, against one lane on one core;
beside it one lane on two cores, where reference and candidate of a lane run at the
same time. With --rows it fills a store with so many cases instead, and
measures what is asked of it.`, len(deeds)),
		Example: `  plumb bench campaign --kills 50
  plumb bench campaign --torture 4000 --workers 2
  plumb bench campaign --lanes 2
  plumb bench campaign --rows 10000000
  plumb bench campaign --simulate 64 --reference torch 'ops:lo*'`,
		RunE: func(cmd *cobra.Command, sources []string) error {
			dir, err := os.MkdirTemp("", "plumb-campaign-")
			if err != nil {
				return &exitError{exitFault, err}
			}
			defer os.RemoveAll(dir)
			if rows > 0 {
				return harness(benchStore(cmd.Context(), cmd.OutOrStdout(), filepath.Join(dir, "rows.db"), rows))
			}
			if len(sources) == 0 && onLanes > 0 {
				sources = []string{"*"}
			} else if len(sources) == 0 {
				sources = []string{"ops:re*"}
			}
			exe, err := os.Executable()
			if err != nil {
				return &exitError{exitFault, err}
			}
			k.plumb, k.dir, k.log = exe, dir, cmd.OutOrStdout()
			if onLanes > 0 {
				k.args = sources
				return harness((&lanes{killings: *k, count: onLanes, each: 12}).run(cmd.Context()))
			}
			if hard.cases > 0 {
				hard.siege = siege{killings: *k, workers: cmp.Or(workers, 2)}
				return harness(hard.run(cmd.Context()))
			}
			k.args = append(sources, "--reference", reference, "-n", "200", "--seed", "25")
			if simulated > 0 {
				return harness((&scaling{siege: siege{killings: *k, workers: cmp.Or(workers, 1)}, reference: reference, simulated: simulated, cases: scalingCases}).run(cmd.Context()))
			}
			if workers > 0 {
				return harness((&siege{killings: *k, workers: workers, stopped: time.Minute, cut: 30 * time.Second}).run(cmd.Context()))
			}
			return harness(k.run(cmd.Context()))
		},
	}
	fl := cmd.Flags()
	fl.Var(wholeNumber(&k.kills, 1), "kills", "how often the campaign is killed")
	fl.Var(fixedSeed(&k.seed, 25), "seed", "of the times at which it is killed")
	fl.Var(wholeNumber(&workers, 1), "workers", "have so many workers judge it, and kill these and the coordinator, stop one for a minute, and cut the network for 30 s")
	fl.Var(wholeNumber(&hard.cases, 1), "torture", "judge a subject that misbehaves in every way, with so many cases a way")
	fl.Var(wholeNumber(&hard.every, 1), "every", "with --torture: about one of so many cases is one of misbehaviour")
	fl.Var(wholeNumber(&rows, 1), "rows", "fill a store with so many cases and measure it")
	fl.Var(wholeNumber(&onLanes, 2), "lanes", "time a run of native against itself on so many lanes; SOURCE is then a pattern of operators")
	fl.Var(wholeNumber(&simulated, 4), "simulate", "serve the campaign undisturbed to one worker, and simulate 10,000,000 cases on so many workers with what its cases cost")
	fl.StringVar(&reference, "reference", reference, "with --simulate: of the campaign whose cases the workers have, such as torch; the coordinator costs what it does where native is judged by itself")
	needs(cmd, "every", "torture")
	bars(cmd, "lanes", "kills", "workers", "torture", "rows", "simulate")
	needs(cmd, "reference", "simulate")
	return cmd
}
