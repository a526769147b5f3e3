package truth

import "math"

// unary makes a Func of eval for finite arguments; of infinities and NaN it is
// NaN until told otherwise.
func unary(eval func(bits, ball) ball) Func {
	return Func{
		arity:   1,
		special: func(x []float64) (float64, bool) { return ieeeNaN, !isFinite(x[0]) },
		eval:    func(p bits, x []ball) ball { return eval(p, x[0]) },
	}
}

// exactUnary is unary for a function that is evaluated without error.
func exactUnary(eval func(ball) ball) Func {
	return unary(func(_ bits, x ball) ball { return eval(x) })
}

// binary makes a Func of eval. Where an argument is zero, infinite or NaN, and
// where there is no result, the value is that of limit.
func binary(limit func(x, y float64) float64, eval func(p bits, x, y ball) ball) Func {
	return Func{
		arity: 2,
		special: func(x []float64) (float64, bool) {
			z := limit(x[0], x[1])
			return z, isSpecial(x[0]) || isSpecial(x[1]) || math.IsNaN(z)
		},
		eval: func(p bits, x []ball) ball { return eval(p, x[0], x[1]) },
	}
}

// selection is a function whose result is an argument, its negative or a constant.
func selection(arity int, f func(x []float64) float64) Func {
	return Func{arity: arity, special: func(x []float64) (float64, bool) { return f(x), true }}
}

// smooth lets zeros be evaluated like other numbers.
func (f Func) smooth() Func {
	rest := f.special
	f.special = func(x []float64) (float64, bool) {
		y, _ := rest(x)
		return y, math.IsNaN(y) || !allFinite(x)
	}
	return f
}

// where gives f the values of v at the first arguments that hold.
func (f Func) where(holds func(x float64) bool, v func(x float64) float64) Func {
	rest := f.special
	f.special = func(x []float64) (float64, bool) {
		if holds(x[0]) {
			return v(x[0]), true
		}
		return rest(x)
	}
	return f
}

func always(v float64) func(float64) float64 { return func(float64) float64 { return v } }

// at gives f a value at one point, which may be zero of either sign.
func (f Func) at(point, v float64) Func {
	return f.where(func(x float64) bool { return x == point }, always(v))
}

func (f Func) atNaN(v float64) Func { return f.where(math.IsNaN, always(v)) }

// limits gives f its values at -Inf and +Inf.
func (f Func) limits(minus, plus float64) Func { return f.at(-inf, minus).at(inf, plus) }

// on makes f NaN outside of [low, high].
func (f Func) on(low, high float64) Func {
	return f.where(func(x float64) bool { return x < low || x > high }, always(ieeeNaN))
}

func (f Func) below(point, v float64) Func {
	return f.where(func(x float64) bool { return x < point }, always(v))
}

// keepsZero makes f(±0) = ±0.
func (f Func) keepsZero() Func {
	return f.where(func(x float64) bool { return x == 0 }, func(x float64) float64 { return x })
}

// poleAtZero makes f(±0) = ±Inf.
func (f Func) poleAtZero() Func {
	return f.where(func(x float64) bool { return x == 0 }, func(x float64) float64 { return withSignOf(inf, x) })
}

func (f Func) atIntegers(v float64) Func {
	return f.where(func(x float64) bool { return isFinite(x) && number(x).mid.IsInt() }, always(v))
}

func isSpecial(x float64) bool { return x == 0 || !isFinite(x) }

func isFinite(x float64) bool { return !math.IsInf(x, 0) && !math.IsNaN(x) }

func allFinite(xs []float64) bool {
	for _, x := range xs {
		if !isFinite(x) {
			return false
		}
	}
	return true
}
