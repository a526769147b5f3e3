package truth

import "math/big"

// ball is a real number that is known to lie within 2^err of mid. A ball with
// err = none is exact; one with err = lost says nothing.
type ball struct {
	mid *big.Float
	err int
}

const (
	none = -1 << 40
	lost = 1 << 40
)

// bits is a working precision; its methods are arithmetic that rounds to it.
type bits int

func exactly(x *big.Float) ball { return ball{x, none} }

func integer(n int) ball { return exactly(new(big.Float).SetInt64(int64(n))) }

func number(x float64) ball { return exactly(new(big.Float).SetFloat64(x)) }

// power2 returns 2^n.
func power2(n int) ball { return exactly(new(big.Float).SetMantExp(big.NewFloat(1), n)) }

func (b ball) exact() bool { return b.err < none/2 }

func (b ball) lost() bool { return b.err > lost/2 }

func (b ball) zero() bool { return b.mid.Sign() == 0 }

// size returns the least n with |mid| < 2^n; none for zero.
func (b ball) size() int {
	if b.zero() {
		return none
	}
	return b.mid.MantExp(nil)
}

func (b ball) sign() int { return b.mid.Sign() }

func (b ball) neg() ball { return ball{new(big.Float).Neg(b.mid), b.err} }

func (b ball) abs() ball { return ball{new(big.Float).Abs(b.mid), b.err} }

// withSign returns b, of a sign that is known, negated where x < 0.
func (b ball) withSign(x ball) ball {
	if x.sign() < 0 {
		return b.neg()
	}
	return b
}

// scale returns b·2^n.
func (b ball) scale(n int) ball {
	if b.zero() {
		return ball{b.mid, shift(b.err, n)}
	}
	return ball{new(big.Float).SetMantExp(b.mid, n), shift(b.err, n)}
}

// widen adds 2^errs to the radius.
func (b ball) widen(errs ...int) ball { return ball{b.mid, join(append(errs, b.err)...)} }

func (b ball) float() float64 {
	x, _ := b.mid.Float64()
	return x
}

// shift returns the exponent of 2^err · 2^n, where 0 and the unknown stay.
func shift(err, n int) int {
	if err < none/2 || err > lost/2 {
		return err
	}
	return err + n
}

// join returns an exponent of at least Σ 2^errs.
func join(errs ...int) int {
	worst, n := none, 0
	for _, e := range errs {
		if e < none/2 {
			continue
		}
		worst, n = max(worst, e), n+1
	}
	for ; n > 1; n = (n + 1) / 2 {
		worst = shift(worst, 1)
	}
	return worst
}

func (p bits) float() *big.Float { return new(big.Float).SetPrec(uint(p)) }

// rounding returns the error bound of a freshly rounded result.
func (p bits) rounding(z *big.Float) int {
	if z.Acc() == big.Exact {
		return none
	}
	return z.MantExp(nil) - int(p)
}

func (p bits) add(a, b ball) ball {
	z := p.float().Add(a.mid, b.mid)
	return ball{z, join(a.err, b.err, p.rounding(z))}
}

func (p bits) sub(a, b ball) ball {
	z := p.float().Sub(a.mid, b.mid)
	return ball{z, join(a.err, b.err, p.rounding(z))}
}

func (p bits) mul(a, b ball) ball {
	z := p.float().Mul(a.mid, b.mid)
	return ball{z, join(spread(a.size(), b.err), spread(b.size(), a.err), spread(a.err, b.err), p.rounding(z))}
}

// spread returns the exponent of 2^size · 2^err.
func spread(size, err int) int {
	if size < none/2 || err < none/2 {
		return none
	}
	if size > lost/2 || err > lost/2 {
		return lost
	}
	return size + err
}

// quo uses |a/b - (a+δ)/(b+ε)| ≤ (|δ| + |a/b|·|ε|) / |b+ε|.
func (p bits) quo(a, b ball) ball {
	if b.zero() || !b.exact() && b.err > b.size()-3 {
		return ball{new(big.Float), lost}
	}
	z := p.float().Quo(a.mid, b.mid)
	quotient := ball{mid: z}
	least := b.size() - 2
	return ball{z, join(shift(a.err, -least), shift(spread(quotient.size(), b.err), -least), p.rounding(z))}
}

// sqrt uses |√(a+δ) - √a| ≤ |δ|/√a.
func (p bits) sqrt(a ball) ball {
	if a.zero() && a.exact() {
		return a
	}
	if a.sign() <= 0 || !a.exact() && a.err > a.size()-3 {
		return ball{new(big.Float), lost}
	}
	z := p.float().Sqrt(a.mid)
	root := ball{z, none}
	if exactSquare := (2 * p).float().Mul(z, z); exactSquare.Cmp(a.mid) != 0 {
		root.err = root.size() - int(p) + 1
	}
	return root.widen(shift(a.err, 1-root.size()))
}

// plus is add without rounding.
func plus(a, b ball) ball {
	if a.zero() || b.zero() {
		return bits(max(a.mid.MinPrec(), b.mid.MinPrec(), 1)).add(a, b)
	}
	top := max(a.size(), b.size())
	low := min(a.size()-int(a.mid.MinPrec()), b.size()-int(b.mid.MinPrec()))
	return bits(top-low+1).add(a, b)
}
