package command

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"plumb/backend"
	"plumb/backend/native"
	"plumb/internal/conform/baseline"
	"plumb/internal/conform/telling"
	"plumb/nn"
	"plumb/op"
	"plumb/ops"
	"plumb/program"
	"plumb/tensor"
)

// Bounds on the cases that are looked at before a recording: the elements of
// one, how many of them, and the warnings that are printed.
const (
	toldElements = 4096
	toldCases    = 4000
	toldWarnings = 20
)

// blind collects what the cases of a config could not tell apart.
type blind struct {
	teller telling.Teller
	order  []string
	by     map[string]*blindness
}

// blindness is what cases of one function could not tell.
type blindness struct {
	first, what, advice string
	more                int
}

// warnBlind says which cases of a config cannot tell their operator from a
// constant, from doing nothing, or an attribute from a value beside it, as
// Plumb's own operators compute them, and what to change.
func warnBlind(ctx context.Context, cases []baseline.Case, w io.Writer) {
	table, modules := ops.Table(), nn.Modules()
	b := &blind{by: map[string]*blindness{}}
	b.teller = telling.Teller{Backend: native.New(table, modules), Defaults: telling.Defaults(table, func(target string) []*op.Sig {
		if d := modules.Lookup(target); d != nil {
			return d.Sigs()
		}
		return nil
	})}
	for i := range cases[:min(len(cases), toldCases)] {
		if ctx.Err() != nil {
			return
		}
		variants, err := cases[i].Programs()
		if err != nil || elementsOf(variants[0].Program) > toldElements {
			continue
		}
		b.look(ctx, &cases[i], variants[0].Program)
	}
	b.print(w)
}

func elementsOf(p *program.Program) int {
	n := 0
	for i := range p.Inputs {
		n += tensor.NumElements(p.Inputs[i].Shape)
	}
	return n
}

func (b *blind) look(ctx context.Context, c *baseline.Case, p *program.Program) {
	job := backend.NewJob(p)
	o, err := b.teller.Backend.Run(ctx, job)
	if err != nil || o.Status != backend.OK {
		return
	}
	if same := telling.Trivial(p, job.Inputs, o); same != "" {
		b.add(c, same, c.Function+" from "+same, "draw elements that the function changes, of both signs and not all alike")
		return
	}
	for _, n := range b.teller.Neighbours(p) {
		if !slices.Contains(telling.Confusions, n.Kind) {
			continue
		}
		if other, err := b.teller.Run(ctx, n.Program); err == nil && !telling.Tells(o, other) {
			b.add(c, n.Arg, fmt.Sprintf("%s=%s from %s, %s", n.Arg, program.FormatArg(n.From), program.FormatArg(n.To), n.Kind),
				fmt.Sprintf("give it shapes, elements or other arguments for which %s matters", n.Arg))
		}
	}
}

func (b *blind) add(c *baseline.Case, about, what, advice string) {
	key := c.Function + " " + about
	if one := b.by[key]; one != nil {
		one.more++
		return
	}
	b.order = append(b.order, key)
	b.by[key] = &blindness{first: c.Name, what: what, advice: advice}
}

func (b *blind) print(w io.Writer) {
	for i, key := range b.order {
		if i == toldWarnings {
			fmt.Fprintf(w, "warning: and %d more kinds of cases that cannot tell something\n", len(b.order)-i)
			return
		}
		one, also := b.by[key], ""
		if one.more > 0 {
			also = fmt.Sprintf(", and %s of it", count(one.more, "other case"))
		}
		fmt.Fprintf(w, "warning: %s cannot tell %s%s: %s\n", one.first, strings.TrimSpace(one.what), also, one.advice)
	}
}
