package command

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"time"
)

// lanes measures a run of native against itself on several lanes, each with a core of its
// own, against one lane on one core.
type lanes struct {
	killings
	count int
	each  int // cases a test
}

// laneTurns is how often each run is timed; the fastest, which the machine disturbed
// least, counts.
const laneTurns = 3

// run takes turns, so that a busier time of the machine is no run's alone.
func (k *lanes) run(ctx context.Context) error {
	if n := runtime.NumCPU(); k.count > n {
		return usage(fmt.Errorf("--lanes %d: this machine has %s", k.count, count(n, "core")))
	}
	var took [3][]time.Duration
	shapes := [3]struct{ lanes, cores int }{{1, 1}, {1, 2}, {k.count, k.count}}
	for range laneTurns {
		for i, s := range shapes {
			k.env = []string{fmt.Sprintf("GOMAXPROCS=%d", s.cores)}
			began := time.Now()
			args := append([]string{"ops", "run"}, k.args...)
			err := k.ended(ctx, "none.db", append(args, "-n", fmt.Sprint(k.each), "-j", fmt.Sprint(s.lanes), "--seed", fmt.Sprint(k.seed), "--reference", "native", "--candidate", "native", "--store", "none", "-q")...)
			if err != nil && !withoutKernels(err) {
				return err
			}
			took[i] = append(took[i], time.Since(began))
		}
	}
	one := slices.Min(took[0])
	for i, s := range shapes {
		least := slices.Min(took[i])
		fmt.Fprintf(k.log, "%s on %s: %.1f s, %.2f × one lane on one core\n", count(s.lanes, "lane"), count(s.cores, "core"), least.Seconds(), one.Seconds()/least.Seconds())
	}
	return nil
}

// withoutKernels reports whether a run has ended as it does where native, as the reference,
// has no kernel for some dtype: those tests are in error, all others were judged.
func withoutKernels(err error) bool {
	var exit *exec.ExitError
	return errors.As(err, &exit) && exit.ExitCode() == exitUsage && strings.Contains(err.Error(), " in error")
}
