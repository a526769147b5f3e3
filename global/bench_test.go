package global_test

import (
	"context"
	"testing"
	"time"

	"plumb/global"
	"plumb/op"
	"plumb/tensor"
)

// BenchmarkBoxing brings 64 MiB over two ranks from one sbp to another, and
// reports its speed as a share of that of copying the bytes that the target's
// parts hold, measured in the same run.
func BenchmarkBoxing(b *testing.B) {
	p, err := global.NewPlacement("cpu", []int{2})
	if err != nil {
		b.Fatal(err)
	}
	x := tensor.New(tensor.F32, 4096, 4096)
	for _, c := range []struct{ from, to op.SBP }{{op.S(0), op.S(1)}, {op.S(0), op.B}, {op.B, op.S(0)}, {op.P, op.S(0)}, {op.P, op.B}} {
		b.Run(c.from.String()+"to"+c.to.String(), func(b *testing.B) {
			g, err := global.FromLocal(x, p, global.SBP{c.from})
			if err != nil {
				b.Fatal(err)
			}
			var boxing, copying time.Duration
			for b.Loop() {
				start := time.Now()
				moved, err := g.ToGlobal(context.Background(), p, global.SBP{c.to})
				if err != nil {
					b.Fatal(err)
				}
				boxing += time.Since(start)
				start = time.Now()
				for rank := range 2 {
					part := moved.Part(rank).Contiguous()
					to := make([]byte, len(part.Storage()))
					copy(to, part.Storage())
				}
				copying += time.Since(start)
			}
			b.ReportMetric(copying.Seconds()/boxing.Seconds(), "x-memcpy")
		})
	}
}
