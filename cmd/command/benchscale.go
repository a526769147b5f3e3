package command

import (
	"container/heap"
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"time"

	"plumb/internal/campaign/store"
)

// scaling is a simulation of many workers: what a case costs them and the coordinator is
// that of a campaign that was served.
type scaling struct {
	siege
	reference string
	simulated int // workers
	cases     int
}

// costs are those of a campaign that was served.
type costs struct {
	units       []unitCost
	coordinator time.Duration // of a case
}

type unitCost struct {
	cases int
	took  time.Duration
}

// scalingCases is how many cases are simulated.
const scalingCases = 10_000_000

func (k *scaling) run(ctx context.Context) error {
	c, err := k.served(ctx, "native") // whose cases come fast enough for the coordinator to work rather than wait
	if err == nil && k.reference != "native" {
		coordinator := c.coordinator
		if c, err = k.served(ctx, k.reference); err == nil {
			c.coordinator = coordinator
		}
	}
	if err != nil {
		return err
	}
	var cases int
	var took time.Duration
	for _, u := range c.units {
		cases, took = cases+u.cases, took+u.took
	}
	each := took / time.Duration(max(cases, 1))
	fmt.Fprintf(k.log, "%d cases served to %d workers: %s a case on a worker, %s of CPU on the coordinator\n", cases, k.workers, each, c.coordinator)
	for n := k.simulated / 4; n <= 4*k.simulated; n *= 2 {
		busy, coordinator, span := c.simulate(n, k.cases, rand.New(rand.NewPCG(k.seed, uint64(n))))
		fmt.Fprintf(k.log, "%d cases by %d workers: %s, workers %.1f%% busy, coordinator %.2f cores\n", k.cases, n, span.Round(time.Second), 100*busy, coordinator)
	}
	fmt.Fprintf(k.log, "the coordinator's core is saturated by %.0f workers\n", float64(each)/float64(c.coordinator))
	return nil
}

// served serves the campaign with a reference and returns what it cost.
func (k *scaling) served(ctx context.Context, reference string) (*costs, error) {
	k.subjects, k.args[slices.Index(k.args, "--reference")+1] = "native,"+reference, reference
	if err := k.serve(ctx); err != nil {
		return nil, err
	}
	defer func() { k.end(); k.at = nil }()
	if err := k.finish(ctx); err != nil {
		return nil, err
	}
	return k.recorded()
}

// recorded are the costs of the campaign that was served.
func (k *scaling) recorded() (*costs, error) {
	db, err := store.Read(filepath.Join(k.dir, "killed.db"))
	if err != nil {
		return nil, err
	}
	defer db.Close()
	one, err := db.Campaign("last")
	if err != nil {
		return nil, err
	}
	c, cases := &costs{}, 0
	err = db.UnitTimes(one.ID, func(n int, took time.Duration) error {
		if n > 0 {
			c.units, cases = append(c.units, unitCost{n, took}), cases+n
		}
		return nil
	})
	state := k.server.cmd.ProcessState
	c.coordinator = (state.UserTime() + state.SystemTime()) / time.Duration(max(cases, 1))
	return c, err
}

// leased is how many units a worker has at a time: see the rounds of plumb worker.
const leased = roundUnits

// simulate has workers take leases of units, and the coordinator count each lease that
// comes back before it gives another: one after the other.
func (c *costs) simulate(workers, cases int, rnd *rand.Rand) (busy, coordinator float64, span time.Duration) {
	var back arrivals // when workers come back, with how many cases
	for range workers {
		heap.Push(&back, arrival{})
	}
	var worked, counted, free time.Duration
	for given := 0; len(back) > 0; {
		a := heap.Pop(&back).(arrival)
		service := time.Duration(a.cases) * c.coordinator
		counted += service
		free = max(free, a.at) + service
		span = free
		if given >= cases {
			continue
		}
		next := arrival{at: free}
		for range leased {
			u := c.units[rnd.IntN(len(c.units))]
			next.cases, next.at = next.cases+u.cases, next.at+u.took
		}
		given += next.cases
		worked += next.at - free
		heap.Push(&back, next)
	}
	return float64(worked) / float64(time.Duration(workers)*span), float64(counted) / float64(span), span
}

// arrival is that of a worker with what it has judged.
type arrival struct {
	at    time.Duration
	cases int
}

// arrivals are a heap, the earliest first.
type arrivals []arrival

func (a arrivals) Len() int           { return len(a) }
func (a arrivals) Less(i, j int) bool { return a[i].at < a[j].at }
func (a arrivals) Swap(i, j int)      { a[i], a[j] = a[j], a[i] }

// Push appends.
func (a *arrivals) Push(x any) { *a = append(*a, x.(arrival)) }

// Pop removes the last.
func (a *arrivals) Pop() any {
	old := *a
	last := old[len(old)-1]
	*a = old[:len(old)-1]
	return last
}
