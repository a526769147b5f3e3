package kernel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// TestDirectConvolution wants the bits of the product with packed patches.
func TestDirectConvolution(t *testing.T) {
	if rowTiles.f32 == nil {
		t.Skip("this processor has no tile for it")
	}
	defer func(r rowsTiles) { rowTiles = r }(rowTiles)
	tile, called := rowTiles.f32, 0
	defer SetThreads(0)
	rng := rand.New(rand.NewPCG(17, 18))
	for n := range 60 {
		SetThreads(1 + n%3)
		c := &Conv{N: 1 + rng.IntN(2), Groups: 1 + rng.IntN(2), XC: 2 + rng.IntN(70), YC: 1 + rng.IntN(20)}
		for a := range 3 {
			c.Kernel[a], c.Stride[a], c.Dilation[a], c.Padding[a] = 1, 1, 1, 0
			c.X[a] = 1
			if a > 0 || n%4 == 0 {
				c.Kernel[a], c.Dilation[a], c.Padding[a] = 1+rng.IntN(3), 1+rng.IntN(2), rng.IntN(3)
				c.X[a] = 5 + rng.IntN(12+20*(a/2))
			}
			c.Y[a] = c.X[a] + 2*c.Padding[a] - (c.Kernel[a]-1)*c.Dilation[a]
		}
		step := 1 + rng.IntN(2)
		image := volume(c.X) * step
		strides := [5]int{c.Groups * c.XC * image, image, c.X[1] * c.X[2] * step, c.X[2] * step, step}
		x, w := numbers(rng, c.N*c.Groups*c.XC*image), numbers(rng, c.Groups*c.YC*c.patch())
		var b []float32
		if rng.IntN(2) == 0 {
			b = numbers(rng, c.Groups*c.YC)
		}
		got, want := numbers(rng, c.N*c.Groups*c.YC*c.positions()), numbers(rng, c.N*c.Groups*c.YC*c.positions())
		rowTiles.f32 = func(k int, a, b *float32, offsets *int, to *float32, ldc int, add bool) {
			called++
			tile(k, a, b, offsets, to, ldc, add)
		}
		if n%3 > 0 {
			rowTiles.f32 = tile
		}
		ConvForward(c, Volume[float32]{x, strides}, w, b, got)
		rowTiles.f32 = nil
		ConvForward(c, Volume[float32]{x, strides}, w, b, want)
		g, back, plain := numbers(rng, len(got)), make([]float32, c.N*c.Groups*c.XC*volume(c.X)), make([]float32, c.N*c.Groups*c.XC*volume(c.X))
		p := c.positions()
		of := Volume[float32]{g, [5]int{c.Groups * c.YC * p, p, c.Y[1] * c.Y[2], c.Y[2], 1}}
		ConvInput(c, of, w, nil, plain)
		rowTiles.f32 = tile
		ConvInput(c, of, w, nil, back)
		agree(t, fmt.Sprintf("input of %+v", *c), back, plain, 400)
		for i := range want {
			if math.Float32bits(got[i]) != math.Float32bits(want[i]) {
				t.Fatalf("%+v: element %d is %v, packed %v", *c, i, got[i], want[i])
			}
		}
	}
	if called == 0 {
		t.Error("no convolution was direct")
	}
}
