package kernel

import (
	"fmt"
	"testing"
)

// benchConvs are convolutions of the conformance set with large images.
var benchConvs = map[string]Conv{
	"transpose3d_2": {N: 2, Groups: 8, XC: 128, YC: 16, X: [3]int{68, 68, 12}, Y: [3]int{32, 32, 4}, Window: Window{[3]int{4, 4, 4}, [3]int{2, 2, 2}, [3]int{1, 1, 1}, [3]int{2, 2, 2}}},
	"transpose3d_3": {N: 2, Groups: 1, XC: 64, YC: 64, X: [3]int{161, 161, 6}, Y: [3]int{160, 160, 5}, Window: Window{[3]int{2, 2, 2}, [3]int{1, 1, 1}, [3]int{}, [3]int{1, 1, 1}}},
	"transpose3d_4": {N: 2, Groups: 1, XC: 1, YC: 64, X: [3]int{640, 640, 10}, Y: [3]int{320, 320, 5}, Window: Window{[3]int{2, 2, 2}, [3]int{2, 2, 2}, [3]int{1, 1, 1}, [3]int{2, 2, 2}}},
	"transpose2d_4": {N: 2, Groups: 1, XC: 1, YC: 64, X: [3]int{1, 640, 640}, Y: [3]int{1, 320, 320}, Window: Window{[3]int{1, 2, 2}, [3]int{1, 2, 2}, [3]int{0, 1, 1}, [3]int{1, 2, 2}}},
	"2d_0":          {N: 2, Groups: 1, XC: 256, YC: 12, X: [3]int{1, 200, 304}, Y: [3]int{1, 100, 152}, Window: Window{[3]int{1, 1, 1}, [3]int{1, 2, 2}, [3]int{}, [3]int{1, 1, 1}}},
	"2d_1":          {N: 2, Groups: 2048, XC: 1, YC: 1, X: [3]int{1, 64, 64}, Y: [3]int{1, 64, 64}, Window: Window{[3]int{1, 3, 3}, [3]int{1, 1, 1}, [3]int{0, 12, 12}, [3]int{1, 12, 12}}},
}

func BenchmarkConv(b *testing.B) {
	SetThreads(1)
	defer SetThreads(0)
	for name, c := range benchConvs {
		benchConv[float32](b, name+"/f32", c)
		benchConv[float64](b, name+"/f64", c)
	}
}

func benchConv[T float32 | float64](b *testing.B, name string, c Conv) {
	x, w, y := make([]T, c.N*c.Groups*c.XC*volume(c.X)), make([]T, c.Groups*c.YC*c.patch()), make([]T, c.N*c.Groups*c.YC*c.positions())
	for i := range x {
		x[i] = T(i%17) - 8
	}
	for i := range y {
		y[i] = T(i%13) - 6
	}
	image, p := volume(c.X), c.positions()
	vx := Volume[T]{x, [5]int{c.Groups * c.XC * image, image, c.X[1] * c.X[2], c.X[2], 1}}
	vy := Volume[T]{y, [5]int{c.Groups * c.YC * p, p, c.Y[1] * c.Y[2], c.Y[2], 1}}
	b.Run(fmt.Sprintf("%s/map", name), func(b *testing.B) {
		for b.Loop() {
			ConvForward(&c, vx, w, nil, y)
		}
	})
	b.Run(fmt.Sprintf("%s/image", name), func(b *testing.B) {
		for b.Loop() {
			ConvInput(&c, vy, w, nil, x)
		}
	})
	b.Run(fmt.Sprintf("%s/weight", name), func(b *testing.B) {
		for b.Loop() {
			ConvWeight(&c, vx, y, w)
		}
	})
}
