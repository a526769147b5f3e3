package optim

import (
	"fmt"
	"math"
	"slices"
	"sync"

	"plumb/op"
)

var plateauDef = sync.OnceValue(func() *ScheduleDef {
	d := &ScheduleDef{
		Name:  "ReduceLROnPlateau",
		Sig:   "ReduceLROnPlateau(str mode='min', float factor=0.1, int patience=10, float threshold=1e-4, str threshold_mode='rel', int cooldown=0, float[]? min_lr=None, float eps=1e-8, bool verbose=False)",
		lists: []string{"min_lr"},
	}
	d.sig = op.MustParseSig(d.Sig)
	return d
})

// ReduceLROnPlateau multiplies the rates by factor when a metric has not
// improved for more than patience epochs.
type ReduceLROnPlateau struct {
	// LastEpoch counts the steps.
	LastEpoch int

	o        *Optimizer
	args     op.Args
	best     float64
	bad      int // epochs without improvement
	cooldown int // epochs to wait
	last     []float64
}

// NewReduceLROnPlateau attaches the schedule to an optimizer. Args and kwargs
// are those of PyTorch after the optimizer. The error is a rejection.
func NewReduceLROnPlateau(o *Optimizer, args []any, kwargs ...op.Kwarg) (r *ReduceLROnPlateau, err error) {
	defer func() { named(&err, "ReduceLROnPlateau") }()
	a, err := plateauDef().bind(o, args, kwargs)
	if err != nil {
		return nil, err
	}
	switch {
	case a.Float("factor") >= 1:
		return nil, op.ValueError("Factor should be < 1.0.")
	case a.Str("mode") != "min" && a.Str("mode") != "max":
		return nil, op.ValueError("mode %s is unknown!", a.Str("mode"))
	case a.Str("threshold_mode") != "rel" && a.Str("threshold_mode") != "abs":
		return nil, op.ValueError("threshold mode %s is unknown!", a.Str("threshold_mode"))
	}
	r = &ReduceLROnPlateau{o: o, args: a, best: math.Inf(1)}
	if a.Str("mode") == "max" {
		r.best = math.Inf(-1)
	}
	return r, nil
}

// Step notes the metric of an epoch.
func (r *ReduceLROnPlateau) Step(metric float64) {
	r.LastEpoch++
	r.bad++
	if r.better(metric) {
		r.best, r.bad = metric, 0
	}
	if r.cooldown > 0 {
		r.cooldown--
		r.bad = 0
	}
	if r.bad > r.args.Int("patience") {
		r.reduce()
		r.cooldown, r.bad = r.args.Int("cooldown"), 0
	}
	r.last = rates(r.o)
}

func (r *ReduceLROnPlateau) better(metric float64) bool {
	by := r.args.Float("threshold")
	switch r.args.Str("mode") + r.args.Str("threshold_mode") {
	case "minrel":
		return metric < r.best*(1-by)
	case "minabs":
		return metric < r.best-by
	case "maxrel":
		return metric > r.best*(by+1)
	}
	return metric > r.best+by
}

func (r *ReduceLROnPlateau) reduce() {
	for i, g := range r.o.Groups {
		low := 0.0
		if least := r.args.Floats("min_lr"); least != nil {
			low = least[i]
		}
		lr := max(g.LR()*r.args.Float("factor"), low)
		if g.LR()-lr <= r.args.Float("eps") {
			continue
		}
		g.SetLR(lr)
		if r.args.Bool("verbose") {
			fmt.Fprintf(Output, "Epoch %05d: reducing learning rate of group %d to %.4e.\n", r.LastEpoch, i, lr)
		}
	}
}

// LastLR returns the rates of the groups after the last Step; nil before it.
func (r *ReduceLROnPlateau) LastLR() []float64 { return slices.Clone(r.last) }
