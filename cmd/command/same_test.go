package command

import (
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"plumb/backend"
	"plumb/backend/native"
	"plumb/internal/campaign"
	"plumb/internal/judge"
	"plumb/internal/judge/verdict"
	"plumb/nn"
	"plumb/ops"
	"plumb/suites"
)

// drawn is a reference whose outcomes tell what was drawn. Values are native's,
// for tests that look at them while they are drawn; its graph modes are left out.
type drawn struct{ backend.Backend }

func (d drawn) Run(ctx context.Context, job *backend.Job) (*backend.Outcome, error) {
	values := make([]backend.Value, len(job.Program.Calls))
	out, err := d.Backend.Run(ctx, job)
	if err != nil {
		return nil, err
	}
	copy(values, out.Values)
	h := sha256.New()
	fmt.Fprint(h, job.Program)
	for _, in := range job.Inputs {
		fmt.Fprintln(h, in, in.Strides())
		h.Write(in.Bytes())
	}
	return &backend.Outcome{Status: backend.OK, Message: fmt.Sprintf("%x", h.Sum(nil)), Values: values}, nil
}

// draws returns a hash of the program and the input bits of n cases of every
// test, by test and index; 0 is as many as the test says.
func draws(t *testing.T, seed uint64, n, jobs, batch int, files []suites.File) map[string]string {
	d := drawing{seed: seed, n: n, device: "cpu", sigs: &signatures{}}
	open := func() (backend.Backend, error) { return drawn{native.New(ops.Table(), nn.Modules())}, nil }
	hashes := map[string]string{}
	cfg := campaign.Config{
		Reference: open, Candidates: []campaign.Candidate{{Name: "drawn", Open: open}}, Jobs: jobs, Batch: batch,
		Judge:    judge.New(judge.Config{}),
		OnRecord: func(r *verdict.Record) { hashes[fmt.Sprint(r.Test, " ", r.Index)] = r.Reference.Message },
		OnEnd: func(e *verdict.End) {
			if e.Err != nil {
				t.Error(e.Err)
			}
		},
	}
	for _, f := range files {
		l, err := d.file(f.Name, f.Source)
		if err != nil {
			t.Fatal(err)
		}
		cfg.Tests = append(cfg.Tests, l.tests...)
	}
	if err := campaign.Run(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	return hashes
}

// TestSameSeedSameBits: programs and input bits follow from the seed, the test
// and the index alone, not from lanes, batches or the order of the files.
func TestSameSeedSameBits(t *testing.T) {
	slow(t)
	reversed := suites.Files()
	slices.Reverse(reversed)
	orders := []struct {
		jobs, batch int
		files       []suites.File
	}{{2, 32, suites.Files()}, {8, 1, reversed}}
	before := map[string]string{}
	for seed := uint64(1); seed <= 2; seed++ {
		want := draws(t, seed, 3, 1, 2, suites.Files())
		if len(want) < 1500 {
			t.Fatalf("%d cases of the shipped suites, want at least 1500", len(want))
		}
		for _, c := range orders {
			if got := draws(t, seed, 3, c.jobs, c.batch, c.files); !maps.Equal(got, want) {
				t.Errorf("seed %d: %d lanes, batches of %d, first %s: other draws than one by one", seed, c.jobs, c.batch, c.files[0].Name)
			}
		}
		for k, v := range want {
			if before[k] == v && !strings.Contains(k, "::test_seed_of_its_own") && !lacks(k) {
				t.Errorf("seed %d draws %s as the seed before drew it", seed, k)
			}
		}
		before, orders = want, nil // the second seed need only differ
	}
}

// TestSeedsMeanTheSameEverywhere pins the bits of one small file: they are part
// of what a seed promises across machines and versions.
func TestSeedsMeanTheSameEverywhere(t *testing.T) {
	file := suites.File{Name: "folder/pinned.py", Source: []byte(`
@autotest(n=8)
def test_pinned():
    k = random(1, 5)
    x = random_tensor(ndim=3, dim0=k, dim1=random(1, 9), low=random(-3.5, 0.25).to(float), high=7)
    y = random_tensor(ndim=2, dim0=k, dtype=oneof(torch.int64, torch.float64, torch.float16, torch.uint8))
    return torch.add(x, 2 * random(0.5, 1.5).to(float)), torch.relu(y)
`)}
	h := sha256.New()
	hashes := draws(t, 42, 0, 2, 3, []suites.File{file})
	for _, k := range slices.Sorted(maps.Keys(hashes)) {
		fmt.Fprintln(h, hashes[k])
	}
	const want = "a1040e263a117ee3"
	if got := fmt.Sprintf("%x", h.Sum(nil)[:8]); got != want || len(hashes) != 8 {
		t.Errorf("%d cases hash to %s, want 8 and %s", len(hashes), got, want)
	}
}
