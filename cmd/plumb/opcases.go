package main

import (
	"context"
	"fmt"
	"path"
	"strings"

	"plumb/backend"
	"plumb/internal/campaign"
	"plumb/internal/draw/choice"
	"plumb/internal/draw/opcase"
	"plumb/internal/judge/verdict"
	"plumb/op"
	"plumb/ops"
	"plumb/program"
	"plumb/tensor"
)

// opDTypes are the dtypes in which operators are drawn unless some are named.
var opDTypes = []tensor.DType{
	tensor.F32, tensor.F64, tensor.F16, tensor.BF16, tensor.C64, tensor.C128,
	tensor.Bool, tensor.U8, tensor.I8, tensor.I16, tensor.I32, tensor.I64,
}

// opPrefix begins the names of the tests that follow from literals.
const opPrefix = "ops::"

// opTests are the tests that follow from the literals of the operators whose
// id or public name matches the pattern: one per operator and legal dtype, and
// one of calls that break a rule. A pattern of in-place forms, such as
// "Tensor.*_", draws calls by such names only.
func (r *runner) opTests(pattern string) ([]campaign.Test, error) {
	var out []campaign.Test
	matched := false
	for _, d := range ops.Table().Defs() {
		ok, err := answersTo(d, pattern)
		if err != nil {
			return nil, fmt.Errorf("--ops %s: %w", pattern, err)
		}
		if !ok || len(d.Names) == 0 {
			continue
		}
		matched = true
		drawer := opcase.Drawer{Table: ops.Table(), Def: d, InPlace: op.InPlace(pattern)}
		among := opDTypes
		if len(r.dtypes) > 0 {
			among = r.floats
		}
		legal := drawer.DTypes(among...)
		for _, dt := range legal {
			out = append(out, r.opTest(d, dt.String(), 20, func(src *choice.Source, _ int) (*program.Program, error) { return drawer.Legal(src, dt) }))
		}
		if len(legal) > 0 {
			dt := legal[0]
			t := r.opTest(d, "illegal", 2*opcase.Rules(), func(src *choice.Source, i int) (*program.Program, error) { return drawer.Illegal(src, dt, i) })
			t.Fixed = true
			out = append(out, t)
		}
	}
	if !matched {
		return nil, fmt.Errorf("--ops %s: no operator's name matches; plumb ops lists them", pattern)
	}
	return out, nil
}

// answersTo reports whether one of the globs, separated by commas, matches the
// operator's id or one of its public names, with or without what is before the
// last dot.
func answersTo(d *op.Def, patterns string) (bool, error) {
	names := append([]string{d.ID()}, d.Names...)
	for _, n := range names {
		for _, s := range []string{n, n[strings.LastIndexByte(n, '.')+1:]} {
			for pattern := range strings.SplitSeq(patterns, ",") {
				if ok, err := path.Match(pattern, s); ok || err != nil {
					return ok, err
				}
			}
		}
	}
	return false, nil
}

func (r *runner) opTest(d *op.Def, variant string, n int, draw func(*choice.Source, int) (*program.Program, error)) campaign.Test {
	name := fmt.Sprintf(opPrefix+"%s[%s]", d.ID(), variant)
	key := choice.DeriveName(r.seed, name)
	if r.n > 0 {
		n = r.n
	}
	return campaign.Drawn(name, name, n, key, func(src *choice.Source, i int, _ campaign.Observer) (*program.Program, error) { return draw(src, i) })
}

// graphTest is the test of --graphs: programs of operators that every backend
// has, differentiated where the reference can.
func (r *runner) graphTest() (campaign.Test, error) {
	const name = "graphs::random"
	g := opcase.NewGrapher(ops.Table())
	if r.probe != nil {
		if err := r.probe(g); err != nil {
			return campaign.Test{}, err
		}
	}
	return campaign.Drawn(name, name, r.graphs, choice.DeriveName(r.seed, name), func(src *choice.Source, _ int, _ campaign.Observer) (*program.Program, error) {
		return g.Draw(src)
	}), nil
}

// probe tells a grapher what the backends lack.
func probe(ctx context.Context, g *opcase.Grapher, cfg *campaign.Config) error {
	probes := g.Probes()
	programs := make([]*program.Program, len(probes))
	for i := range probes {
		programs[i] = probes[i].Program
	}
	openers := []campaign.Opener{cfg.Reference}
	for _, c := range cfg.Candidates {
		openers = append(openers, c.Open)
	}
	for _, open := range openers {
		outcomes, err := campaign.Try(ctx, open, programs)
		if err != nil {
			return harness(err)
		}
		for i, out := range outcomes {
			switch {
			case out.Status == backend.Unsupported:
				g.Leave(probes[i])
			case verdict.LacksKernel(out):
				g.Hold(probes[i])
			}
		}
	}
	return nil
}
