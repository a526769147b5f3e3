package truth

import "math/big"

func (p bits) sinc(x ball) ball {
	q := p + guard + bits(max(0, x.size()))
	t := q.mul(x, pi.ball(q+guard))
	s, _ := q.sinCos(t)
	return q.quo(s, t)
}

// logit returns log(x/(1-x)), from 1/4 on log1p((2x-1)/(1-x)).
func (p bits) logit(x ball) ball {
	if x.size() < -1 {
		return p.log(p.quo(x, plus(integer(1), x.neg())))
	}
	return p.log1p(p.quo(plus(x.scale(1), integer(-1)), plus(integer(1), x.neg())))
}

// logitWithin is logit of x limited to [eps, 1-eps].
func (p bits) logitWithin(x, eps ball) ball {
	return p.logit(clamp(x, eps, plus(integer(1), eps.neg())))
}

func (p bits) logAddExp(x, y ball) ball {
	if x.mid.Cmp(y.mid) < 0 {
		x, y = y, x
	}
	return p.add(x, p.log1p(p.exp(plus(y, x.neg()))))
}

func (p bits) logAddExp2(x, y ball) ball {
	if x.mid.Cmp(y.mid) < 0 {
		x, y = y, x
	}
	power := p.pow(integer(2), plus(y, x.neg()))
	if x.mid.Cmp(y.mid) == 0 {
		return plus(x, power)
	}
	return p.add(x, p.quo(p.log1p(power), ln2.ball(p+guard)))
}

func (p bits) slope(x, slope ball) ball {
	if x.sign() > 0 {
		return x
	}
	return p.mul(x, slope)
}

// elu returns x for x > 0, and alpha·(e^inner - 1) elsewhere.
func (p bits) elu(x, alpha, inner ball) ball {
	if x.sign() > 0 {
		return x
	}
	return p.mul(alpha, p.expm1(inner))
}

// selu is scale·elu(x, alpha) with the 31 decimal places of PyTorch's constants.
func (p bits) selu(x ball) ball {
	alpha, scale := p.decimal("16732632423543772848170429916717"), p.decimal("10507009873554804934193349852946")
	return p.mul(scale, p.elu(x, alpha, x))
}

// decimal returns digits·10^-31.
func (p bits) decimal(digits string) ball {
	n, _ := new(big.Int).SetString(digits, 10)
	power := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(len(digits)-1)), nil)
	return p.quo(exactly(new(big.Float).SetInt(n)), exactly(new(big.Float).SetInt(power)))
}

// softplusUpTo is softplus of beta·x over beta, and x where beta·x > threshold.
func (p bits) softplusUpTo(x, beta, threshold ball) ball {
	t := p.mul(x, beta)
	if t.mid.Cmp(threshold.mid) > 0 {
		return x
	}
	return p.quo(p.softplus(t), beta)
}

func (p bits) softshrink(x, lambda ball) ball {
	switch {
	case x.mid.Cmp(lambda.mid) > 0:
		return p.sub(x, lambda)
	case x.mid.Cmp(lambda.neg().mid) < 0:
		return p.add(x, lambda)
	}
	return integer(0)
}

// log2 returns log x / log 2, exactly for powers of two.
func (p bits) log2(x ball) ball {
	if isPower2(x.mid) {
		return integer(x.size() - 1)
	}
	return p.quo(p.log(x), ln2.ball(p+guard))
}

// log10 returns log x / log 10, exactly for powers of ten.
func (p bits) log10(x ball) ball {
	power := big.NewFloat(1)
	for n := range 23 {
		if power.Cmp(x.mid) == 0 {
			return integer(n)
		}
		power.Mul(power, big.NewFloat(10))
	}
	return p.quo(p.log(x), p.log(integer(10)))
}

// signedPow is pow for negative x too; y is then an integer.
func (p bits) signedPow(x, y ball) ball {
	z := p.pow(x.abs(), y)
	if odd := y.mid.IsInt() && int(y.mid.MinPrec()) == y.size(); x.sign() < 0 && odd {
		return z.neg()
	}
	return z
}

// ndtr returns Φ(x) = erfc(-x/√2)/2.
func (p bits) ndtr(x ball) ball {
	q := p + guard
	return q.erfc(q.quo(x.neg(), q.sqrt(integer(2)))).scale(-1)
}

// gelu returns x·Φ(x).
func (p bits) gelu(x ball) ball {
	q := p + guard
	return q.mul(x, q.ndtr(x))
}

// geluTanh returns x·(1 + tanh u)/2 = x/(1 + e^-2u), u = √(2/π)·(x + 0.044715·x³).
func (p bits) geluTanh(x ball) ball {
	q := p + guard
	cube := q.quo(q.mul(integer(44715), q.mul(x, q.mul(x, x))), integer(1000000))
	u := q.mul(q.sqrt(q.quo(integer(2), pi.ball(q+guard))), q.add(x, cube))
	return q.mul(x, q.sigmoid(u.scale(1)))
}

// hardStep limits x + 3 to [0, 6].
func hardStep(x ball) ball { return clamp(plus(x, integer(3)), integer(0), integer(6)) }

func positive(x ball) ball {
	if x.sign() > 0 {
		return x
	}
	return integer(0)
}

func clamp(x, low, high ball) ball {
	switch {
	case x.mid.Cmp(low.mid) < 0:
		return low
	case x.mid.Cmp(high.mid) > 0:
		return high
	}
	return x
}

func floor(x ball) ball {
	n, accuracy := x.mid.Int(nil)
	if accuracy == big.Above { // cut off towards zero
		n.Sub(n, big.NewInt(1))
	}
	return exactly(new(big.Float).SetInt(n))
}

func trunc(x ball) ball { return floor(x.abs()).withSign(x) }

func roundToEven(x ball) ball {
	above := plus(x.abs(), power2(-1))
	n, accuracy := above.mid.Int(nil)
	if accuracy == big.Exact { // halfway between two integers
		n.SetBit(n, 0, 0)
	}
	return exactly(new(big.Float).SetInt(n)).withSign(x)
}

// fmod returns the remainder of the integers that x and y are multiples of a
// power of two by.
func fmod(x, y ball) ball {
	n, e := dyadic(x.abs().mid)
	m, f := dyadic(y.abs().mid)
	unit := min(e, f)
	n.Lsh(n, uint(e-unit))
	m.Lsh(m, uint(f-unit))
	return exactly(new(big.Float).SetInt(n.Rem(n, m))).scale(unit).withSign(x)
}

// remainder is Python's: it has the sign of y.
func remainder(x, y ball) ball {
	r := fmod(x, y)
	if r.sign() != 0 && r.sign() != y.sign() {
		return plus(r, y)
	}
	return r
}
