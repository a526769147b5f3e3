package tensor

//go:generate go run -C ../internal/asmgen ./half -out ../../tensor/floats_amd64.s -stubs ../../tensor/floats_stub_amd64.go -pkg tensor

// FromFloat16s sets dst, which is as long as src, to its exact values.
func FromFloat16s(dst []float32, src []Float16) {
	dst = dst[:len(src)]
	for i := fromFloat16s(dst, src); i < len(src); i++ {
		dst[i] = src[i].Float32()
	}
}

// ToFloat16s sets dst, which is as long as src, by [ToFloat16].
func ToFloat16s(dst []Float16, src []float32) {
	dst = dst[:len(src)]
	for i := toFloat16s(dst, src); i < len(src); i++ {
		dst[i] = ToFloat16(src[i])
	}
}

// FromBFloat16s sets dst, which is as long as src, to its exact values.
func FromBFloat16s(dst []float32, src []BFloat16) {
	dst = dst[:len(src)]
	for i := fromBFloat16s(dst, src); i < len(src); i++ {
		dst[i] = src[i].Float32()
	}
}

// ToBFloat16s sets dst, which is as long as src, by [ToBFloat16].
func ToBFloat16s(dst []BFloat16, src []float32) {
	dst = dst[:len(src)]
	for i := toBFloat16s(dst, src); i < len(src); i++ {
		dst[i] = ToBFloat16(src[i])
	}
}

func toSingles(dst []float32, src []float64) {
	for i := singles(dst, src); i < len(src); i++ {
		dst[i] = float32(src[i])
	}
}

func toDoubles(dst []float64, src []float32) {
	for i := doubles(dst, src); i < len(src); i++ {
		dst[i] = float64(src[i])
	}
}

// throughSingles is how many float32 stand between halves and float64 at a time.
const throughSingles = 512

// fromHalves widens halves to float64.
func fromHalves[H Float16 | BFloat16](widen func([]float32, []H)) func(dst []float64, src []H) {
	return func(dst []float64, src []H) {
		var some [throughSingles]float32
		for len(src) > 0 {
			n := min(len(src), len(some))
			widen(some[:n], src[:n])
			toDoubles(dst[:n], some[:n])
			dst, src = dst[n:], src[n:]
		}
	}
}

// toHalves rounds float64 to halves through float32.
func toHalves[H Float16 | BFloat16](narrow func([]H, []float32)) func(dst []H, src []float64) {
	return func(dst []H, src []float64) {
		var some [throughSingles]float32
		for len(src) > 0 {
			n := min(len(src), len(some))
			toSingles(some[:n], src[:n])
			narrow(dst[:n], some[:n])
			dst, src = dst[n:], src[n:]
		}
	}
}
