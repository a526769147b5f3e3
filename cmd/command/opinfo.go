package command

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"

	"plumb/backend"
	"plumb/internal/campaign"
	"plumb/program"
	"plumb/tensor"
)

// opInfoDTypes are the dtypes of sample inputs unless some are named.
var opInfoDTypes = []tensor.DType{tensor.F32, tensor.F64, tensor.I64, tensor.Bool, tensor.C64}

// opInfo makes tests of the reference's own sample inputs.
type opInfo struct {
	source backend.SampleInputs
	cases  *drawing
	made   int            // samples that are programs
	left   map[string]int // samples that are none, by reason
}

// opInfoTests are the tests of the entries whose name matches a pattern: one per
// entry and dtype, and one of calls that PyTorch refuses.
func opInfoTests(ctx context.Context, patterns []string, c *drawing, cfg *campaign.Config, log io.Writer) ([]campaign.Test, error) {
	b, err := cfg.Reference()
	if err != nil {
		return nil, harness(err)
	}
	defer b.Close()
	source, ok := b.(backend.SampleInputs)
	if !ok {
		return nil, usage(fmt.Errorf("--opinfo: %s has no sample inputs; the reference has to be PyTorch", b.Info().Name))
	}
	entries, err := source.OpInfo()
	if err != nil {
		return nil, usage(fmt.Errorf("--opinfo: %w", err))
	}
	o := &opInfo{source: source, cases: c, left: map[string]int{}}
	var tests []campaign.Test
	for i, entry := range entries {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if !slices.ContainsFunc(patterns, func(p string) bool { return fits(entry.Name, p) }) {
			continue
		}
		found, err := o.entry(i, entry)
		if err != nil {
			return nil, err
		}
		tests = append(tests, found...)
	}
	o.tell(log)
	if len(tests) == 0 {
		return nil, nothing(fmt.Errorf("--opinfo: no entry of PyTorch's sample inputs matches; they are named like add, nn.functional.conv2d, max.reduction_with_dim"))
	}
	return tests, nil
}

// entry returns an entry's tests.
func (o *opInfo) entry(i int, entry backend.OpInfo) ([]campaign.Test, error) {
	among := opInfoDTypes
	if o.cases.dtypes != nil {
		among = o.cases.dtypes
	}
	variants := slices.DeleteFunc(slices.Clone(among), func(dt tensor.DType) bool { return !slices.Contains(entry.DTypes, dt) })
	if entry.Illegal {
		variants = append(variants, tensor.Invalid)
	}
	var tests []campaign.Test
	for _, dt := range variants {
		programs, left, err := o.source.OpInfoCases(i, dt, uint32(o.cases.seed))
		if err != nil {
			left = map[string]int{err.Error(): 1}
		}
		for why, n := range left {
			o.left[why] += n
		}
		o.made += len(programs)
		if n := o.cases.n; n > 0 && len(programs) > n {
			programs = programs[:n]
		}
		for _, p := range programs {
			p.Raises = dt == tensor.Invalid
		}
		if len(programs) > 0 {
			tests = append(tests, saved(programs))
		}
	}
	return tests, nil
}

// saved is a test of programs that are there already.
func saved(programs []*program.Program) campaign.Test {
	return campaign.Test{Name: programs[0].Name, N: len(programs), Fixed: true, Draw: func(i int, _ campaign.Observer) (*program.Program, error) {
		p := *programs[i]
		return &p, nil
	}}
}

// tell says how many samples are programs, and why the others are none.
func (o *opInfo) tell(log io.Writer) {
	all := o.made
	for _, n := range o.left {
		all += n
	}
	if all > 0 {
		fmt.Fprintf(log, "plumb: %d of %d sample inputs are programs (%.1f%%)\n", o.made, all, 100*float64(o.made)/float64(all))
	}
	reasons := slices.SortedFunc(maps.Keys(o.left), func(a, b string) int {
		return cmp.Or(o.left[b]-o.left[a], cmp.Compare(a, b))
	})
	for i, why := range reasons {
		if i == 5 {
			fmt.Fprintf(log, "plumb: … and %d more reasons\n", len(reasons)-i)
			return
		}
		fmt.Fprintf(log, "plumb: %d sample inputs are no programs: %s\n", o.left[why], why)
	}
}
