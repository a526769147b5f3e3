package optim

import (
	"math"
	"slices"
	"sync"

	"plumb/internal/arg"
	"plumb/op"
)

var plateauDef = sync.OnceValue(func() *ScheduleDef {
	d := &ScheduleDef{
		Name:  "ReduceLROnPlateau",
		Sig:   "ReduceLROnPlateau(str mode='min', float factor=0.1, int patience=10, float threshold=1e-4, str threshold_mode='rel', int cooldown=0, float[]? min_lr=None, float eps=1e-8, bool verbose=False)",
		lists: []op.FloatsArg{arg.MinLR},
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
	case a.Float(arg.Factor) >= 1:
		return nil, op.ValueError("Factor should be < 1.0.")
	case a.Str(arg.Mode) != "min" && a.Str(arg.Mode) != "max":
		return nil, op.ValueError("mode %s is unknown!", a.Str(arg.Mode))
	case a.Str(arg.ThresholdMode) != "rel" && a.Str(arg.ThresholdMode) != "abs":
		return nil, op.ValueError("threshold mode %s is unknown!", a.Str(arg.ThresholdMode))
	}
	r = &ReduceLROnPlateau{o: o, args: a, best: math.Inf(1)}
	if a.Str(arg.Mode) == "max" {
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
	if r.bad > r.args.Int(arg.Patience) {
		r.reduce()
		r.cooldown, r.bad = r.args.Int(arg.Cooldown), 0
	}
	r.last = rates(r.o)
}

func (r *ReduceLROnPlateau) better(metric float64) bool {
	by := r.args.Float(arg.ThresholdFloat)
	switch r.args.Str(arg.Mode) + r.args.Str(arg.ThresholdMode) {
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
		if least := r.args.Floats(arg.MinLR); least != nil {
			low = least[i]
		}
		lr := max(g.LR()*r.args.Float(arg.Factor), low)
		if g.LR()-lr <= r.args.Float(arg.Eps) {
			continue
		}
		g.SetLR(lr)
		if r.args.Bool(arg.Verbose) {
			r.o.printf("Epoch %05d: reducing learning rate of group %d to %.4e.\n", r.LastEpoch, i, lr)
		}
	}
}

// LastLR returns the rates of the groups after the last Step; nil before it.
func (r *ReduceLROnPlateau) LastLR() []float64 { return slices.Clone(r.last) }
