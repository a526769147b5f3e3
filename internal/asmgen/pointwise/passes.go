package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

func zeros(n int) []VecVirtual {
	list := make([]VecVirtual, n)
	for i := range list {
		list[i] = YMM()
		VXORPD(list[i], list[i], list[i])
	}
	return list
}

// folded adds up 64-bit lanes: (0+2) + (1+3) of the sum of the vectors, which
// are added in pairs.
func folded(sums []VecVirtual) VecVirtual {
	for len(sums) > 1 {
		half := len(sums) / 2
		for i := range half {
			VADDPD(sums[i+half], sums[i], sums[i])
		}
		sums = sums[:half]
	}
	hi, lo := XMM(), sums[0].AsX()
	VEXTRACTF128(Imm(1), sums[0], hi)
	VADDPD(hi, lo, lo)
	VPERMILPD(Imm(1), lo, hi)
	VADDSD(hi, lo, lo)
	return lo.(VecVirtual)
}

func sum() {
	p := begin("sumAVX", "func(a *float32, n int) float64", []string{"sumAVX returns the sum of n elements, a multiple of 16, in float64."}, "a")
	sums := zeros(4)
	p.whole("_loop", 16, func() {
		for k, s := range sums {
			VADDPD(p.wide(0, 4*k), s, s)
		}
	})
	Store(folded(sums), ReturnIndex(0))
	finish()
}

func squares() {
	p := begin("squaresAVX", "func(a *float32, n int, mean float64) float64", []string{"squaresAVX returns Σ (a - mean)² over n elements, a multiple of 16, in float64."}, "a")
	mean := number("mean")
	sums := zeros(4)
	p.whole("_loop", 16, func() {
		for k, s := range sums {
			x := p.wide(0, 4*k)
			VSUBPD(mean, x, x)
			VFMADD231PD(x, x, s)
		}
	})
	Store(folded(sums), ReturnIndex(0))
	finish()
}

func largest() {
	p := begin("maxAVX", "func(a *float32, n int) float32", []string{"maxAVX returns the largest of n elements, a multiple of 16 and not 0. A NaN counts only among the first 16."}, "a")
	top := [2]VecVirtual{YMM(), YMM()}
	VMOVUPS(p.at(0, 0), top[0])
	VMOVUPS(p.at(0, 8), top[1])
	p.whole("_loop", 16, func() {
		for k, t := range top {
			x := YMM()
			VMOVUPS(p.at(0, 8*k), x)
			VMAXPS(t, x, t)
		}
	})
	VMAXPS(top[0], top[1], top[0])
	hi, lo := XMM(), top[0].AsX()
	VEXTRACTF128(Imm(1), top[0], hi)
	VMAXPS(hi, lo, lo)
	VPERMILPS(Imm(0x4e), lo, hi)
	VMAXPS(hi, lo, lo)
	VPERMILPS(Imm(0xb1), lo, hi)
	VMAXPS(hi, lo, lo)
	Store(lo, ReturnIndex(0))
	finish()
}

func exponentials() {
	p := begin("expSumAVX", "func(dst, a *float32, n int, top float64) float64",
		[]string{"expSumAVX sets dst to e^(a - top) and returns the sum, in float64, over n elements, a multiple of 8."}, "dst", "a")
	top := number("top")
	sums := zeros(2)
	p.whole("_loop", 8, func() {
		for k, s := range sums {
			x := p.wide(1, 4*k)
			VSUBPD(top, x, x)
			e := emit(exp(clamp(input(0), 700)), x)
			VADDPD(e, s, s)
			y := XMM()
			VCVTPD2PSY(e, y)
			VMOVUPS(y, p.at(0, 4*k))
		}
	})
	Store(folded(sums), ReturnIndex(0))
	finish()
}

func differences() {
	p := begin("subtractAVX", "func(dst, a *float32, n int, first, second float64)", []string{"subtractAVX sets dst to a - first - second, in float64."}, "dst", "a")
	first, second := number("first"), number("second")
	p.each(func(get func(k int) VecVirtual) VecVirtual {
		x := get(1)
		VSUBPD(first, x, x)
		VSUBPD(second, x, x)
		return x
	})
	finish()
}

func affine() {
	p := begin("affineAVX", "func(dst, a *float32, n int, factor, offset float64)", []string{"affineAVX sets dst to a·factor + offset, in float64."}, "dst", "a")
	factor, offset := number("factor"), number("offset")
	p.each(func(get func(k int) VecVirtual) VecVirtual {
		x := get(1)
		VFMADD213PD(offset, factor, x)
		return x
	})
	finish()
}

func affineRow() {
	p := begin("affineRowAVX", "func(dst, a, weight, bias *float32, n int, factor, offset float32)",
		[]string{"affineRowAVX sets dst to (a·factor + offset)·weight + bias, with one rounding for each product and sum."}, "dst", "a", "weight", "bias")
	factor, offset := YMM(), YMM()
	VBROADCASTSS(addressOf("factor"), factor)
	VBROADCASTSS(addressOf("offset"), offset)
	body := func(get func(k int) VecVirtual) VecVirtual {
		x := get(1)
		VFMADD213PS(offset, factor, x)
		w := get(2)
		VFMADD213PS(get(3), w, x)
		return x
	}
	p.whole("_loop", 8, func() {
		VMOVUPS(body(func(k int) VecVirtual {
			x := YMM()
			VMOVUPS(p.at(k, 0), x)
			return x
		}), p.at(0, 0))
	})
	mask := YMM()
	p.rest(mask, func() {
		VMASKMOVPS(body(func(k int) VecVirtual {
			x := YMM()
			VMASKMOVPS(p.at(k, 0), mask, x)
			return x
		}), mask, p.at(0, 0))
	})
	finish()
}

// gradientSums is Σ g and Σ g·(x - mean), each g times its weight.
func gradientSums(name string, weighted bool) {
	signature, pointers := "func(grad, x *float32, n int, mean float64, out *[2]float64)", []string{"grad", "x"}
	doc := " sets out to Σ g and Σ g·(x - mean), in float64, over n elements, a multiple of 8"
	if weighted {
		signature, pointers = "func(grad, x, weight *float32, n int, mean float64, out *[2]float64)", append(pointers, "weight")
		doc += "; g stands for g·weight"
	}
	p := begin(name, signature, []string{name + doc + "."}, pointers...)
	mean := number("mean")
	sums, products := zeros(2), zeros(2)
	p.whole("_loop", 8, func() {
		for k := range sums {
			g, x := p.weighted(4*k, weighted), p.wide(1, 4*k)
			VSUBPD(mean, x, x)
			VADDPD(g, sums[k], sums[k])
			VFMADD231PD(g, x, products[k])
		}
	})
	out := Load(Param("out"), GP64())
	VMOVSD(folded(sums), Mem{Base: out})
	VMOVSD(folded(products), Mem{Base: out, Disp: 8})
	finish()
}

func (p *pass) weighted(offset int, weighted bool) VecVirtual {
	g := p.wide(0, offset)
	if weighted {
		VMULPD(p.wide(2, offset), g, g)
	}
	return g
}

// projection is scale·(g - meanG - (x - mean)·slope), each g times its weight.
func projection(name string, weighted bool) {
	signature, pointers := "func(dst, grad, x *float32, n int, mean, scale, meanG, slope float64)", []string{"dst", "grad", "x"}
	doc := " sets dst to scale·(g - meanG - (x - mean)·slope), in float64"
	if weighted {
		signature, pointers = "func(dst, grad, x, weight *float32, n int, mean, scale, meanG, slope float64)", append(pointers, "weight")
		doc += "; g stands for g·weight"
	}
	p := begin(name, signature, []string{name + doc + "."}, pointers...)
	mean, scale, meanG, slope := number("mean"), number("scale"), number("meanG"), number("slope")
	p.each(func(get func(k int) VecVirtual) VecVirtual {
		g, x := get(1), get(2)
		if weighted {
			VMULPD(get(3), g, g)
		}
		VSUBPD(mean, x, x)
		VSUBPD(meanG, g, g)
		VFNMADD231PD(slope, x, g)
		VMULPD(scale, g, g)
		return g
	})
	finish()
}

func columns() {
	p := begin("addColumnsAVX", "func(grad, x *float32, n, step int, factors, offsets *[4]float64, sums, products *float64)",
		[]string{"addColumnsAVX adds g to sums and g·(x·factor + offset) to products, over four rows that lie step elements apart, for n elements of each, a multiple of 4."}, "grad", "x")
	step := Load(Param("step"), GP64())
	SHLQ(Imm(2), step)
	for len(p.pointers) < 8 {
		next := GP64()
		LEAQ(Mem{Base: p.pointers[len(p.pointers)-2], Index: step, Scale: 1}, next)
		p.pointers = append(p.pointers, next)
	}
	factors, offsets := fourOf("factors"), fourOf("offsets")
	sums, products := Load(Param("sums"), GP64()), Load(Param("products"), GP64())
	p.whole("_loop", 4, func() {
		s, sx := YMM(), YMM()
		VMOVUPD(Mem{Base: sums, Index: p.i, Scale: 8}, s)
		VMOVUPD(Mem{Base: products, Index: p.i, Scale: 8}, sx)
		for r := range 4 {
			g, x := p.wide(2*r, 0), p.wide(2*r+1, 0)
			VFMADD213PD(offsets[r], factors[r], x)
			VADDPD(g, s, s)
			VFMADD231PD(g, x, sx)
		}
		VMOVUPD(s, Mem{Base: sums, Index: p.i, Scale: 8})
		VMOVUPD(sx, Mem{Base: products, Index: p.i, Scale: 8})
	})
	finish()
}

// fourOf returns the numbers of the named array, each in all lanes.
func fourOf(name string) (list [4]VecVirtual) {
	at := Load(Param(name), GP64())
	for i := range list {
		list[i] = YMM()
		VBROADCASTSD(Mem{Base: at, Disp: 8 * i}, list[i])
	}
	return list
}

// tapRow is a row of a convolution of one channel.
func tapRow() {
	p := begin("tapRowAVX", "func(dst, x *float32, n int, start float32, taps *float32, offsets *int, count int)",
		[]string{"tapRowAVX sets dst[i] to start + Σ taps[t]·x[offsets[t]+i], over count taps, at least one; each product and sum is rounded once."}, "dst", "x")
	start := YMM()
	VBROADCASTSS(addressOf("start"), start)
	taps, offsets, count := Load(Param("taps"), GP64()), Load(Param("offsets"), GP64()), Load(Param("count"), GP64())
	each := func(label string, add func(from, tap Register)) {
		t, from, tap := GP64(), GP64(), YMM()
		XORQ(t, t)
		Label(p.name + label)
		MOVQ(Mem{Base: offsets, Index: t, Scale: 8}, from)
		LEAQ(Mem{Base: p.pointers[1], Index: from, Scale: 4}, from)
		VBROADCASTSS(Mem{Base: taps, Index: t, Scale: 4}, tap)
		add(from, tap)
		INCQ(t)
		CMPQ(t, count)
		JL(LabelRef(p.name + label))
	}
	for _, vectors := range []int{4, 1} {
		name := "_" + string(rune('0'+vectors))
		p.whole(name, 8*vectors, func() {
			sums := make([]VecVirtual, vectors)
			for k := range sums {
				sums[k] = YMM()
				VMOVUPS(start, sums[k])
			}
			each(name+"_tap", func(from, tap Register) {
				for k, s := range sums {
					VFMADD231PS(Mem{Base: from, Index: p.i, Scale: 4, Disp: 32 * k}, tap, s)
				}
			})
			for k, s := range sums {
				VMOVUPS(s, p.at(0, 8*k))
			}
		})
	}
	mask := YMM()
	p.rest(mask, func() {
		s := YMM()
		VMOVUPS(start, s)
		each("_rest_tap", func(from, tap Register) {
			x := YMM()
			VMASKMOVPS(Mem{Base: from, Index: p.i, Scale: 4}, mask, x)
			VFMADD231PS(x, tap, s)
		})
		VMASKMOVPS(s, mask, p.at(0, 0))
	})
	finish()
}
