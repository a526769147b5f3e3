package truth

import (
	"math"
	"math/big"
	mathbits "math/bits"
)

// guard bits make up for what reductions and series lose.
const guard = 12

// A result of 2^±far stands for all that every dtype overflows or underflows,
// products with numbers of any dtype included; exp and erfc lead there from
// arguments of 2^farArg on.
const (
	far    = 8192
	farArg = 12
)

// exp returns e^x: x = n·ln 2 + r, then the series of r/2^k and k squarings.
func (p bits) exp(x ball) ball {
	if x.zero() && x.exact() {
		return integer(1)
	}
	if x.isVast() {
		return p.beyond(x.sign())
	}
	if x.err > -1 {
		return ball{x.mid, lost}
	}
	w := int(p) + guard
	n := nearest(x.float() / math.Ln2)
	r := fix(x.mid, w)
	if n != 0 {
		g := guard
		product := new(big.Int).Mul(ln2.fixed(w+g), big.NewInt(int64(n)))
		r.Sub(r, product.Rsh(product, uint(g)))
	}
	k := max(0, 1<<(mathbits.Len(uint(w))/2)+min(r.BitLen()-w, 0)) // some √w
	y, units := expSeries(r, w+k)
	for range k {
		y.Mul(y, y).Rsh(y, uint(w+k))
	}
	// The units double with each squaring; the reduction adds four of 2^-w.
	z := ball{unfix(y, w+k, 0).mid, mathbits.Len(uint(units+k+8)) + 2 - w}.scale(n)
	return z.widen(spread(z.size(), shift(x.err, 1)))
}

// isVast reports whether |x| ≥ 2^farArg, up to a small relative error.
func (b ball) isVast() bool { return b.size() > farArg && b.err < b.size()-8 }

// beyond stands for a positive number so large or, for sign < 0, so small that
// every dtype overflows or underflows.
func (p bits) beyond(sign int) ball {
	return ball{power2(sign * far).mid, sign*far - int(p)}
}

// expm1 returns e^x - 1.
func (p bits) expm1(x ball) ball {
	if x.zero() {
		return x.widen(x.err)
	}
	q := p + bits(guard+max(0, -x.size()))
	return q.sub(q.exp(x), integer(1))
}

// log returns the natural logarithm of x > 0: with x = m·2^e and an estimate y
// of log m, it is e·ln 2 + y + log(m·e^-y), whose last term is small.
func (p bits) log(x ball) ball {
	if x.sign() <= 0 || !x.exact() && x.err > x.size()-3 {
		return ball{new(big.Float), lost}
	}
	m := new(big.Float)
	e := x.mid.MantExp(m)
	if m.Cmp(big.NewFloat(math.Sqrt2/2)) < 0 {
		m.SetMantExp(m, 1)
		e--
	}
	relative := shift(x.err, 2-x.size())
	off := plus(exactly(m), integer(-1))
	if off.zero() {
		return p.mul(integer(e), ln2.ball(p+guard)).widen(relative)
	}
	q := p + guard
	if e == 0 {
		q += bits(-off.size())
	}
	z := q.logNearOne(exactly(m))
	if e != 0 {
		z = q.add(z, q.mul(integer(e), ln2.ball(q+guard)))
	}
	return z.widen(relative)
}

// logNearOne returns log m for m in [√½, √2).
func (p bits) logNearOne(m ball) ball {
	estimate := estimateLog(m.float())
	if estimate == 0 {
		t := p.sub(m, integer(1))
		return p.artanhSeries(p.quo(t, p.add(m, integer(1)))).scale(1)
	}
	t := p.mul(m, p.exp(number(-estimate)))
	s := p.quo(p.sub(t, integer(1)), p.add(t, integer(1)))
	return p.add(number(estimate), p.artanhSeries(s).scale(1))
}

// artanhSeries returns artanh(x) for small x, arctanSeries arctan(x).
func (p bits) artanhSeries(x ball) ball { return p.oddSeries(x, 1) }
func (p bits) arctanSeries(x ball) ball { return p.oddSeries(x, -1) }

// oddSeries returns Σ sign^n·x^(2n+1)/(2n+1) for |x| < 1/2.
func (p bits) oddSeries(x ball, sign int) ball {
	total, power, square := x, x, p.mul(x, x)
	if sign < 0 {
		square = square.neg()
	}
	for n := 3; !power.zero() && power.size() > x.size()-int(p); n += 2 {
		power = p.mul(power, square)
		total = p.add(total, p.quo(power, integer(n)))
	}
	return total.widen(power.size())
}

// log1p returns log(1 + x).
func (p bits) log1p(x ball) ball {
	if x.size() < -2*far {
		return x.widen(2 * x.size())
	}
	return p.log(plus(integer(1), x))
}

// sinCos returns sin(x) and cos(x): π is computed to as many bits as the
// exponent of x asks for (Payne and Hanek).
func (p bits) sinCos(x ball) (sin, cos ball) {
	if x.lost() || x.zero() {
		return x, integer(1).widen(x.err)
	}
	w := int(p) + guard + max(0, -x.size())
	r, quadrant := fix(x.mid, w), 0
	if x.size() > 0 {
		r, quadrant = reduceByHalfPi(r, x.size(), w)
	}
	s, c, units := sinCosSeries(r, w)
	sin, cos = unfix(s, w, units+8).widen(x.err), unfix(c, w, units+8).widen(x.err)
	if quadrant&1 != 0 {
		sin, cos = cos, sin.neg()
	}
	if quadrant&2 != 0 {
		sin, cos = sin.neg(), cos.neg()
	}
	return sin, cos
}

// reduceByHalfPi returns r with |r| < 1 and x - r a multiple n of π/2, to
// within three units, and n modulo 4, for |x| < 2^size.
func reduceByHalfPi(x *big.Int, size, w int) (*big.Int, int) {
	half := pi.fixed(w + size)
	half.Rsh(half, 1)
	wide := new(big.Int).Lsh(x, uint(size))
	n := new(big.Int).Lsh(wide, 1)
	n.Add(n, half).Div(n, new(big.Int).Lsh(half, 1))
	r := wide.Sub(wide, half.Mul(half, n))
	return r.Rsh(r, uint(size)), int(n.And(n, big.NewInt(3)).Int64())
}

func (p bits) tan(x ball) ball {
	q := p + guard
	s, c := q.sinCos(x)
	return q.quo(s, c)
}

// atan returns arctan(x) = y + arctan((x·cos y - sin y)/(cos y + x·sin y))
// with an estimate y; from 2 on by that of 1/x.
func (p bits) atan(x ball) ball {
	if x.zero() {
		return x
	}
	q := p + guard
	if x.size() > 1 {
		y := q.atan(q.quo(integer(1), x))
		half := pi.ball(q + guard).scale(-1)
		if x.sign() < 0 {
			half = half.neg()
		}
		return q.sub(half, y)
	}
	q += bits(max(0, -x.size()))
	mid := exactly(x.mid)
	y := number(estimateAtan(x.float()))
	if y.zero() {
		return q.arctanSeries(mid).widen(x.err)
	}
	s, c := q.sinCos(y)
	rest := q.quo(q.sub(q.mul(mid, c), s), q.add(c, q.mul(mid, s)))
	return q.add(y, q.arctanSeries(rest)).widen(x.err)
}

// atan2 returns the angle of the point (x, y), both not zero.
func (p bits) atan2(y, x ball) ball {
	z := p.atan(p.quo(y, x))
	switch {
	case x.sign() > 0:
		return z
	case y.sign() > 0:
		return p.add(z, pi.ball(p+guard))
	}
	return p.sub(z, pi.ball(p+guard))
}

// asin returns arctan(x/√((1-x)·(1+x))).
func (p bits) asin(x ball) ball {
	rest := p.mul(plus(integer(1), x.neg()), plus(integer(1), x))
	if rest.zero() {
		return p.mul(x, pi.ball(p+guard).scale(-1))
	}
	return p.atan(p.quo(x, p.sqrt(rest)))
}

// acos returns 2·arctan(√((1-x)/(1+x))).
func (p bits) acos(x ball) ball {
	below, above := plus(integer(1), x.neg()), plus(integer(1), x)
	if above.zero() {
		return pi.ball(p + guard)
	}
	return p.atan(p.sqrt(p.quo(below, above))).scale(1)
}

// sinh returns (t + t/(t+1))/2 with t = e^x - 1.
func (p bits) sinh(x ball) ball {
	t := p.expm1(x.abs())
	return p.add(t, p.quo(t, p.add(t, integer(1)))).scale(-1).withSign(x)
}

func (p bits) cosh(x ball) ball {
	y := p.exp(x)
	return p.add(y, p.quo(integer(1), y)).scale(-1)
}

// tanh returns t/(t+2) with t = e^2x - 1.
func (p bits) tanh(x ball) ball {
	t := p.expm1(x.abs().scale(1))
	return p.quo(t, p.add(t, integer(2))).withSign(x)
}

// asinh returns log1p(a + a²/(1 + √(1+a²))) with a = |x|.
func (p bits) asinh(x ball) ball {
	a := x.abs()
	square := p.mul(a, a)
	root := p.sqrt(p.add(integer(1), square))
	return p.log1p(p.add(a, p.quo(square, p.add(integer(1), root)))).withSign(x)
}

// acosh returns log1p(t + √(t·(x+1))) with t = x - 1.
func (p bits) acosh(x ball) ball {
	t := plus(x, integer(-1))
	return p.log1p(p.add(t, p.sqrt(p.mul(t, plus(x, integer(1))))))
}

// atanh returns log1p(2a/(1-a))/2 with a = |x|.
func (p bits) atanh(x ball) ball {
	a := x.abs()
	y := p.log1p(p.quo(a.scale(1), plus(integer(1), a.neg()))).scale(-1)
	return y.withSign(x)
}

// sigmoid returns 1/(1 + e^-x).
func (p bits) sigmoid(x ball) ball {
	return p.quo(integer(1), p.add(integer(1), p.exp(x.neg())))
}

// softplus returns log(1 + e^x).
func (p bits) softplus(x ball) ball {
	if x.sign() > 0 {
		return p.add(x, p.log1p(p.exp(x.neg())))
	}
	return p.log1p(p.exp(x))
}

// erf returns 2x/√π · e^-x² · Σ (2x²)^n/(3·5·…·(2n+1)).
func (p bits) erf(x ball) ball {
	if x.zero() {
		return x.widen(x.err)
	}
	mid := exactly(x.mid)
	if x.isVast() {
		return integer(1).widen(-far).withSign(x)
	}
	if p.isFar(x) {
		return p.sub(integer(1), p.erfcFar(mid.abs())).withSign(x).widen(shift(x.err, 1))
	}
	q := p + 2*guard
	square := q.mul(mid, mid)
	series, relative := erfSeries(fix(square.scale(1).mid, int(q)), int(q))
	y := unfix(series, int(q), 0)
	y.err = spread(y.size(), join(relative, shift(square.err, 1)))
	y = q.mul(q.mul(mid.scale(1), y), q.exp(square.neg()))
	return q.quo(y, q.sqrt(pi.ball(q+guard))).widen(shift(x.err, 1))
}

// isFar reports whether the asymptotic series of erfc is good for p bits.
func (p bits) isFar(x ball) bool {
	f := x.float()
	return f*f > float64(p+4*guard)*math.Ln2
}

// erfcFar returns e^-x²/(x√π) · Σ (-1)^n·(2n-1)!!/(2x²)^n.
func (p bits) erfcFar(x ball) ball {
	q := p + 2*guard
	square := q.mul(x, x)
	v := q.quo(integer(1), square.scale(1))
	series, err := erfcSeries(fix(v.mid, int(q)), int(q))
	y := unfix(series, int(q), 0)
	y.err = join(err, v.err)
	return q.quo(q.mul(y, q.exp(square.neg())), q.mul(x, q.sqrt(pi.ball(q+guard))))
}

// erfc returns 1 - erf(x), for x > 1/2 without loss. Its relative derivative
// is at most 2|x| + 2.
func (p bits) erfc(x ball) ball {
	if x.size() < 0 || x.sign() < 0 {
		return p.sub(integer(1), p.erf(x))
	}
	if x.isVast() {
		return p.beyond(-1)
	}
	if x.err > -x.size()-4 {
		return ball{x.mid, lost}
	}
	mid, y := exactly(x.mid), ball{}
	if p.isFar(x) {
		y = p.erfcFar(mid)
	} else {
		q := p + bits(x.float()*x.float()/math.Ln2) + guard
		y = q.sub(integer(1), q.erf(mid))
	}
	return y.widen(spread(y.size(), shift(x.err, x.size()+4)))
}
