package optim

import (
	"math"
	"slices"

	"plumb/internal/arg"
	"plumb/op"
)

const resume = "int last_epoch=-1, bool verbose=False"

var scheduleDefs = []*ScheduleDef{
	{
		Name: "LambdaLR", Sig: "LambdaLR(" + resume + ")", function: "lr_lambda",
		Doc:  "initial·f(epoch)",
		rate: func(s *Scheduler, i int) float64 { return s.base[i] * s.lambdas[i](s.LastEpoch) },
	},
	{
		Name: "MultiplicativeLR", Sig: "MultiplicativeLR(" + resume + ")", function: "lr_lambda",
		Doc: "lr·f(epoch)",
		rate: func(s *Scheduler, i int) float64 {
			if s.LastEpoch <= 0 {
				return s.lr(i)
			}
			return s.lr(i) * s.lambdas[i](s.LastEpoch)
		},
	},
	{
		Name: "StepLR", Sig: "StepLR(int step_size, float gamma=0.1, " + resume + ")",
		Doc:   "lr·gamma every step_size epochs",
		check: positive(arg.StepSize),
		rate: func(s *Scheduler, i int) float64 {
			if s.LastEpoch == 0 || s.LastEpoch%s.int(arg.StepSize) != 0 {
				return s.lr(i)
			}
			return s.lr(i) * s.float(arg.Gamma)
		},
		closed: func(s *Scheduler, i int) float64 {
			return s.base[i] * math.Pow(s.float(arg.Gamma), float64(s.LastEpoch/s.int(arg.StepSize)))
		},
	},
	{
		Name: "MultiStepLR", Sig: "MultiStepLR(int[] milestones, float gamma=0.1, " + resume + ")",
		Doc: "lr·gamma at each milestone",
		rate: func(s *Scheduler, i int) float64 {
			n := count(s.args.Ints(arg.Milestones), func(m int) bool { return m == s.LastEpoch })
			if n == 0 {
				return s.lr(i)
			}
			return s.lr(i) * math.Pow(s.float(arg.Gamma), float64(n))
		},
		closed: func(s *Scheduler, i int) float64 {
			n := count(s.args.Ints(arg.Milestones), func(m int) bool { return m <= s.LastEpoch })
			return s.base[i] * math.Pow(s.float(arg.Gamma), float64(n))
		},
	},
	{
		Name: "ConstantLR", Sig: "ConstantLR(float factor=0.3333333333333333, int total_iters=5, " + resume + ")",
		Doc: "initial·factor before total_iters, initial from then on",
		check: func(a op.Args) error {
			return fraction(a, arg.Factor, "Constant multiplicative factor expected to be between 0 and 1.")
		},
		rate: func(s *Scheduler, i int) float64 {
			switch s.LastEpoch {
			case 0:
				return s.lr(i) * s.float(arg.Factor)
			case s.int(arg.TotalIters):
				return s.lr(i) * (1 / s.float(arg.Factor))
			}
			return s.lr(i)
		},
		closed: func(s *Scheduler, i int) float64 {
			if s.LastEpoch >= s.int(arg.TotalIters) {
				return s.base[i] * (s.float(arg.Factor) + (1 - s.float(arg.Factor)))
			}
			return s.base[i] * s.float(arg.Factor)
		},
	},
	{
		Name: "LinearLR", Sig: "LinearLR(float start_factor=0.3333333333333333, float end_factor=1.0, int total_iters=5, " + resume + ")",
		Doc: "initial·factor, which goes from start_factor to end_factor in total_iters epochs",
		check: func(a op.Args) error {
			if err := fraction(a, arg.StartFactor, "Starting multiplicative factor expected to be between 0 and 1."); err != nil {
				return err
			}
			return fraction(a, arg.EndFactor, "Ending multiplicative factor expected to be between 0 and 1.")
		},
		rate: func(s *Scheduler, i int) float64 {
			start, total := s.float(arg.StartFactor), s.int(arg.TotalIters)
			grow := s.float(arg.EndFactor) - start
			switch {
			case s.LastEpoch == 0:
				return s.lr(i) * start
			case s.LastEpoch > total:
				return s.lr(i)
			}
			return s.lr(i) * (1 + grow/(float64(total)*start+float64(s.LastEpoch-1)*grow))
		},
		closed: func(s *Scheduler, i int) float64 {
			start, total := s.float(arg.StartFactor), s.int(arg.TotalIters)
			return s.base[i] * (start + (s.float(arg.EndFactor)-start)*float64(min(total, s.LastEpoch))/float64(total))
		},
	},
	{
		Name: "ExponentialLR", Sig: "ExponentialLR(float gamma, " + resume + ")",
		Doc: "lr·gamma",
		rate: func(s *Scheduler, i int) float64 {
			if s.LastEpoch == 0 {
				return s.lr(i)
			}
			return s.lr(i) * s.float(arg.Gamma)
		},
		closed: func(s *Scheduler, i int) float64 {
			return s.base[i] * math.Pow(s.float(arg.Gamma), float64(s.LastEpoch))
		},
	},
	{
		Name: "PolynomialLR", Sig: "PolynomialLR(int total_iters=5, float power=1.0, " + resume + ")",
		Doc: "initial·(1 − epoch/total_iters)^power",
		rate: func(s *Scheduler, i int) float64 {
			n := float64(s.int(arg.TotalIters))
			if s.LastEpoch == 0 || s.LastEpoch > s.int(arg.TotalIters) {
				return s.lr(i)
			}
			now, before := 1-float64(s.LastEpoch)/n, 1-float64(s.LastEpoch-1)/n
			return s.lr(i) * math.Pow(now/before, s.float(arg.Power))
		},
		closed: func(s *Scheduler, i int) float64 {
			n := s.int(arg.TotalIters)
			return s.base[i] * math.Pow(1-float64(min(n, s.LastEpoch))/float64(n), s.float(arg.Power))
		},
	},
	{
		Name: "CosineAnnealingLR", Sig: "CosineAnnealingLR(int T_max, float eta_min=0, " + resume + ")",
		Doc:   "eta_min + (initial − eta_min)·(1 + cos(π·epoch/T_max))/2",
		check: positive(arg.TMax),
		rate:  cosineAnnealing,
		closed: func(s *Scheduler, i int) float64 {
			low := s.float(arg.EtaMin)
			return low + (s.base[i]-low)*(1+math.Cos(math.Pi*float64(s.LastEpoch)/float64(s.int(arg.TMax))))/2
		},
	},
	{
		Name: "CosineAnnealingWarmRestarts", Sig: "CosineAnnealingWarmRestarts(int T_0, int T_mult=1, float eta_min=0, " + resume + ")",
		Doc: "eta_min + (initial − eta_min)·(1 + cos(π·t/T))/2, where t is the time since the last restart and T, the time between two, grows by T_mult",
		check: func(a op.Args) error {
			if n := a.Int(arg.T0); n <= 0 {
				return op.ValueError("Expected positive integer T_0, but got %d", n)
			}
			if n := a.Int(arg.TMult); n < 1 {
				return op.ValueError("Expected integer T_mult >= 1, but got %d", n)
			}
			return nil
		},
		begin: func(s *Scheduler) error {
			s.vars["T_i"], s.vars["T_cur"] = float64(s.int(arg.T0)), float64(s.LastEpoch)
			return nil
		},
		advance: warmRestart,
		rate: func(s *Scheduler, i int) float64 {
			low := s.float(arg.EtaMin)
			return low + (s.base[i]-low)*(1+math.Cos(math.Pi*s.vars["T_cur"]/s.vars["T_i"]))/2
		},
	},
	{
		Name: "CyclicLR", Sig: "CyclicLR(float[] base_lr, float[] max_lr, float step_size_up=2000, float? step_size_down=None, str mode='triangular', float gamma=1.0, str scale_mode='cycle', bool cycle_momentum=True, float[]? base_momentum=None, float[]? max_momentum=None, " + resume + ")",
		Doc:      "between base_lr and max_lr, up and down, with an amplitude that mode or scale_fn changes; momentum goes the other way. base_momentum is 0.8 and max_momentum 0.9 by default",
		function: "scale_fn", lists: []op.FloatsArg{arg.BaseLR, arg.MaxLR, arg.BaseMomentum, arg.MaxMomentum},
		begin: beginCyclic,
		extra: func(s *Scheduler) error {
			if s.args.Bool(arg.CycleMomentum) {
				for i, g := range s.o.Groups {
					high := s.args.Floats(arg.MaxMomentum)[i]
					g.Set("momentum", high-s.cyclicHeight(high-s.args.Floats(arg.BaseMomentum)[i]))
				}
			}
			return nil
		},
		rate: func(s *Scheduler, i int) float64 {
			low := s.args.Floats(arg.BaseLR)[i]
			return low + s.cyclicHeight(s.args.Floats(arg.MaxLR)[i]-low)
		},
	},
	{
		Name: "OneCycleLR", Sig: "OneCycleLR(float[] max_lr, int? total_steps=None, int? epochs=None, int? steps_per_epoch=None, float pct_start=0.3, str anneal_strategy='cos', bool cycle_momentum=True, float[]? base_momentum=None, float[]? max_momentum=None, float div_factor=25., float final_div_factor=1e4, bool three_phase=False, " + resume + ")",
		Doc:   "from max_lr/div_factor up to max_lr at the fraction pct_start of the steps, and down to max_lr/div_factor/final_div_factor; momentum goes the other way. base_momentum is 0.85 and max_momentum 0.95 by default",
		lists: []op.FloatsArg{arg.MaxLR, arg.BaseMomentum, arg.MaxMomentum},
		check: checkOneCycle,
		begin: beginOneCycle,
		extra: oneCycleMomentum,
		rate: func(s *Scheduler, i int) float64 {
			p, pct := s.phase()
			g := s.o.Groups[i]
			return s.anneal(g.Float(p.startLR), g.Float(p.endLR), pct)
		},
	},
	{
		Name: "CosineDecayLR", Sig: "CosineDecayLR(int decay_steps, float alpha=0.0, " + resume + ")",
		Doc:   "initial·((1 − alpha)·(1 + cos(π·epoch/decay_steps))/2 + alpha) before decay_steps, initial·alpha from then on; OneFlow's, docs.oneflow.org, oneflow.optim.lr_scheduler.CosineDecayLR, where last_epoch is called last_step",
		check: positive(arg.DecaySteps),
		rate: func(s *Scheduler, i int) float64 {
			n, alpha := s.int(arg.DecaySteps), s.float(arg.AlphaFloat)
			if s.LastEpoch >= n {
				return s.base[i] * alpha
			}
			decay := 0.5 * (1 + math.Cos(math.Pi*float64(s.LastEpoch)/float64(n)))
			return s.base[i] * ((1-alpha)*decay + alpha)
		},
	},
}

// positive rejects a zero, by which Python cannot divide, and a negative count.
func positive(name op.IntArg) func(op.Args) error {
	return func(a op.Args) error {
		switch n := a.Int(name); {
		case n == 0:
			return &op.Error{Class: "ZeroDivisionError", Msg: "argument '" + string(name) + "' must not be 0"}
		case n < 0:
			return op.ValueError("argument '%s' must be positive, but is %d", name, n)
		}
		return nil
	}
}

func fraction(a op.Args, name op.FloatArg, message string) error {
	if f := a.Float(name); f > 1 || f < 0 {
		return op.ValueError("%s", message)
	}
	return nil
}

func count(xs []int, hold func(int) bool) int {
	n := 0
	for _, x := range xs {
		if hold(x) {
			n++
		}
	}
	return n
}

func cosineAnnealing(s *Scheduler, i int) float64 {
	epoch, period, low := s.LastEpoch, s.int(arg.TMax), s.float(arg.EtaMin)
	t := float64(period)
	switch {
	case epoch == 0:
		return s.lr(i)
	case s.steps == 1 && epoch > 0:
		return low + (s.base[i]-low)*(1+math.Cos(float64(epoch)*math.Pi/t))/2
	case (epoch-1-period)%(2*period) == 0:
		return s.lr(i) + (s.base[i]-low)*(1-math.Cos(math.Pi/t))/2
	}
	now, before := 1+math.Cos(math.Pi*float64(epoch)/t), 1+math.Cos(math.Pi*float64(epoch-1)/t)
	return now/before*(s.lr(i)-low) + low
}

func warmRestart(s *Scheduler, epoch float64, given bool) (float64, error) {
	if !given && s.LastEpoch < 0 {
		epoch, given = 0, true
	}
	first, grow := float64(s.int(arg.T0)), float64(s.int(arg.TMult))
	switch {
	case !given:
		epoch = float64(s.LastEpoch + 1)
		s.vars["T_cur"]++
		if s.vars["T_cur"] >= s.vars["T_i"] {
			s.vars["T_cur"] -= s.vars["T_i"]
			s.vars["T_i"] *= grow
		}
	case epoch < 0:
		return 0, op.ValueError("Expected non-negative epoch, but got %v", epoch)
	case epoch < first:
		s.vars["T_i"], s.vars["T_cur"] = first, epoch
	case grow == 1:
		s.vars["T_cur"] = math.Mod(epoch, first)
	default:
		n := math.Floor(math.Log(epoch/first*(grow-1)+1) / math.Log(grow))
		s.vars["T_cur"] = epoch - first*(math.Pow(grow, n)-1)/(grow-1)
		s.vars["T_i"] = first * math.Pow(grow, n)
	}
	s.LastEpoch = int(math.Floor(epoch))
	return epoch, nil
}

// orElse fills a list parameter that was not given.
func (s *Scheduler) orElse(name op.Handle, v float64) {
	if !s.args.Has(name) {
		s.args.Vals[s.args.Sig.Index(name)] = slices.Repeat([]float64{v}, len(s.o.Groups))
	}
}

func beginCyclic(s *Scheduler) error {
	s.orElse(arg.BaseMomentum, 0.8)
	s.orElse(arg.MaxMomentum, 0.9)
	if s.scale == nil && !slices.Contains([]string{"triangular", "triangular2", "exp_range"}, s.args.Str(arg.Mode)) {
		return op.ValueError("mode is invalid and scale_fn is None")
	}
	cycled := s.args.Bool(arg.CycleMomentum)
	if cycled && !s.o.defaults.Has("momentum") {
		return op.ValueError("optimizer must support momentum with `cycle_momentum` option enabled")
	}
	for i, g := range s.o.Groups {
		if s.LastEpoch == -1 {
			g.SetLR(s.args.Floats(arg.BaseLR)[i])
			if cycled {
				g.Set("momentum", s.args.Floats(arg.BaseMomentum)[i])
			}
		}
	}
	return nil
}

// cyclicHeight is the part of a range that the present place in the cycle and
// the mode leave.
func (s *Scheduler) cyclicHeight(span float64) float64 {
	up := s.float(arg.StepSizeUp)
	down := up
	if s.args.Has(arg.StepSizeDown) {
		down = s.float(arg.StepSizeDown)
	}
	total := up + down
	ratio := up / total
	cycle := math.Floor(1 + float64(s.LastEpoch)/total)
	x := 1 + float64(s.LastEpoch)/total - cycle
	part := (x - 1) / (ratio - 1)
	if x <= ratio {
		part = x / ratio
	}
	return span * part * s.cyclicScale(cycle)
}

func (s *Scheduler) cyclicScale(cycle float64) float64 {
	switch mode := s.args.Str(arg.Mode); {
	case s.scale != nil && s.args.Str(arg.ScaleMode) == "cycle":
		return s.scale(cycle)
	case s.scale != nil:
		return s.scale(float64(s.LastEpoch))
	case mode == "triangular2":
		return 1 / math.Pow(2, cycle-1)
	case mode == "exp_range":
		return math.Pow(s.float(arg.Gamma), float64(s.LastEpoch))
	}
	return 1
}
