package truth

import "math/big"

// pow returns x^y for x > 0: exactly when that has few bits, else as e^(y·log x).
func (p bits) pow(x, y ball) ball {
	if z, ok := exactPower(x.mid, y.mid); ok {
		return z
	}
	q := p + 2*guard
	return p.exp(q.mul(y, q.log(x)))
}

// exactBits is more than twice the digits of any dtype: a power with more bits
// is neither a number of the dtype nor halfway between two.
const exactBits = 256

// exactPower returns x^y if it is a dyadic number of at most exactBits bits.
//
// With y = n/2^j and n odd it is rational only if x is a square j times over.
func exactPower(x, y *big.Float) (ball, bool) {
	if x.Cmp(big.NewFloat(1)) == 0 {
		return integer(1), true
	}
	x, y = new(big.Float).Set(x), new(big.Float).Set(y)
	for ; !y.IsInt(); y.SetMantExp(y, 1) {
		root := exactly(x)
		if root = bits(x.Prec()).sqrt(root); !root.exact() {
			return ball{}, false
		}
		x = root.mid
	}
	if y.MantExp(nil) > 32 {
		return ball{}, false
	}
	n, _ := y.Int64()
	odd, e := dyadic(x)
	if odd.IsInt64() && odd.Int64() == 1 {
		if e*int(n) > far || e*int(n) < -far {
			return ball{}, false
		}
		return power2(e * int(n)), true
	}
	if n < 0 || n*int64(odd.BitLen()) > exactBits {
		return ball{}, false
	}
	odd.Exp(odd, big.NewInt(n), nil)
	return exactly(new(big.Float).SetInt(odd)).scale(e * int(n)), true
}

// dyadic returns x > 0 as an odd number times 2^e.
func dyadic(x *big.Float) (odd *big.Int, e int) {
	prec := int(x.MinPrec())
	m := new(big.Float)
	e = x.MantExp(m)
	odd, _ = m.SetMantExp(m, prec).Int(nil)
	return odd, e - prec
}
