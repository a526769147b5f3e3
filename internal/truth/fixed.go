package truth

import (
	"math/big"
	mathbits "math/bits"
	"sync"
)

// A fixed-point number n of w bits stands for n·2^-w. Every shift to the right
// and every division loses less than one unit.

// fix returns x as a fixed-point number of w bits, cut off.
func fix(x *big.Float, w int) *big.Int {
	if x.Sign() == 0 {
		return new(big.Int)
	}
	n, _ := new(big.Float).SetMantExp(x, w).Int(nil)
	return n
}

// unfix returns the fixed-point number n of w bits with an error of units.
func unfix(n *big.Int, w, units int) ball {
	return ball{new(big.Float).SetMantExp(new(big.Float).SetInt(n), -w), mathbits.Len(uint(units)) - w}
}

func one(w int) *big.Int { return new(big.Int).Lsh(big.NewInt(1), uint(w)) }

// expSeries returns Σ r^n/n! for |r| < 2^-1 and how many units it is off.
func expSeries(r *big.Int, w int) (*big.Int, int) {
	sum := one(w)
	term, d := new(big.Int).Set(r), new(big.Int)
	sum.Add(sum, r)
	n := int64(2)
	for ; term.BitLen() > 1; n++ {
		term.Mul(term, r).Rsh(term, uint(w))
		term.Quo(term, d.SetInt64(n))
		sum.Add(sum, term)
	}
	return sum, 3*int(n) + 3
}

// sinCosSeries returns sin(r) and cos(r) for |r| < 1 and how many units they are off.
func sinCosSeries(r *big.Int, w int) (sin, cos *big.Int, units int) {
	square := new(big.Int).Mul(r, r)
	square.Rsh(square, uint(w))
	series := func(first *big.Int, k int64) *big.Int {
		sum, term, d := new(big.Int).Set(first), new(big.Int).Set(first), new(big.Int)
		for ; term.BitLen() > 1; k += 2 {
			term.Mul(term, square).Rsh(term, uint(w))
			term.Quo(term, d.SetInt64(-k*(k+1)))
			sum.Add(sum, term)
			units += 4
		}
		return sum
	}
	sin = series(r, 2)
	cos = series(one(w), 1)
	return sin, cos, units + 8
}

// erfSeries returns Σ y^n/(3·5·…·(2n+1)), of positive terms, for y ≥ 0, and
// the exponent of its relative error.
//
// A unit lost in y or in a term grows at most as the terms do, so N terms are
// off by less than N² units times the largest of them.
func erfSeries(y *big.Int, w int) (*big.Int, int) {
	sum, term, d := one(w), one(w), new(big.Int)
	n := int64(1)
	for ; term.BitLen() > 1; n++ {
		term.Mul(term, y).Rsh(term, uint(w))
		term.Quo(term, d.SetInt64(2*n+1))
		sum.Add(sum, term)
	}
	return sum, 2*mathbits.Len64(uint64(n)) + 3 - w
}

// erfcSeries returns Σ (-1)^n·(2n-1)!!·v^n, the asymptotic series of erfc for
// v = 1/(2t²), and the exponent of its error, which is below the first term
// that is left out.
func erfcSeries(v *big.Int, w int) (*big.Int, int) {
	sum, term, d := one(w), one(w), new(big.Int)
	n := int64(1)
	for ; term.BitLen() > 1; n++ {
		before := term.BitLen()
		term.Mul(term, v).Mul(term, d.SetInt64(1-2*n)).Rsh(term, uint(w))
		if term.BitLen() > before {
			break
		}
		sum.Add(sum, term)
	}
	return sum, max(term.BitLen(), 2*mathbits.Len64(uint64(n))) + 2 - w
}

// constant is a number that is computed once for the largest precision asked for.
type constant struct {
	mu    sync.Mutex
	bits  int
	value *big.Int
	eval  func(w int) *big.Int
}

// fixed returns the constant with w fractional bits, off by at most two units.
func (c *constant) fixed(w int) *big.Int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.value == nil || c.bits < w {
		c.bits = w + w/2
		c.value = c.eval(c.bits + 32)
		c.value.Rsh(c.value, 32)
	}
	return new(big.Int).Rsh(c.value, uint(c.bits-w))
}

func (c *constant) ball(p bits) ball { return unfix(c.fixed(int(p)), int(p), 2) }

// ln2 = 18·artanh(1/26) - 2·artanh(1/4801) + 8·artanh(1/8749).
var ln2 = &constant{eval: func(w int) *big.Int {
	return combine(w, 1, [2]int64{18, 26}, [2]int64{-2, 4801}, [2]int64{8, 8749})
}}

// pi = 16·arctan(1/5) - 4·arctan(1/239), the formula of Machin.
var pi = &constant{eval: func(w int) *big.Int {
	return combine(w, -1, [2]int64{16, 5}, [2]int64{-4, 239})
}}

// combine returns Σ factor·Σ sign^n·x^-(2n+1)/(2n+1) over the (factor, x).
func combine(w int, sign int64, terms ...[2]int64) *big.Int {
	sum := new(big.Int)
	for _, t := range terms {
		factor, x := t[0], t[1]
		power, square, d := one(w), big.NewInt(sign*x*x), new(big.Int)
		power.Quo(power, big.NewInt(x))
		part := new(big.Int)
		for n := int64(1); power.Sign() != 0; n += 2 {
			part.Add(part, new(big.Int).Quo(power, d.SetInt64(n)))
			power.Quo(power, square)
		}
		sum.Add(sum, part.Mul(part, big.NewInt(factor)))
	}
	return sum
}
