package truth

import (
	"math"
	"testing"

	"plumb/internal/draw/choice"
	"plumb/tensor"
)

func BenchmarkRound(b *testing.B) {
	rng := choice.NewPhilox(1)
	args := make([]float64, 256)
	for i := range args {
		u, _ := rng.Pair(uint64(i))
		args[i] = math.Ldexp(float64(u>>11), -50) // below 8
	}
	for _, id := range []string{"exp", "log", "tanh", "sigmoid", "erf", "erfc", "gelu", "gelu:tanh", "sin", "atan", "pow", "div"} {
		f := functions[id]
		for _, d := range []tensor.DType{tensor.F32, tensor.F64} {
			b.Run(id+"/"+d.String(), func(b *testing.B) {
				b.ReportAllocs()
				for i := range b.N {
					x := []float64{formatOf(d).round64(args[i%256]), formatOf(d).round64(args[(i+1)%256])}
					f.Round(d, x[:f.arity]...)
				}
			})
		}
	}
}
