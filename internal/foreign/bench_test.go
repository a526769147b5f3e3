package foreign

import (
	"testing"
	"unsafe"

	"plumb/ops"
)

// BenchmarkAdd is a plan of two float32[8], run.
func BenchmarkAdd(b *testing.B) {
	l := New(ops.Table())
	d, err := l.Prepare([]byte(`{"name":"add","args":[{"tensor":["float32",[8],[1]]},{"tensor":["float32",[8],[1]]}]}`))
	if err != nil {
		b.Fatal(err)
	}
	x, y, out := make([]float32, 8), make([]float32, 8), make([]float32, 8)
	in, results := []Memory{unsafe.Pointer(&x[0]), unsafe.Pointer(&y[0])}, []Memory{unsafe.Pointer(&out[0])}
	b.ReportAllocs()
	for b.Loop() {
		if err := l.Plan(d.Plan).Run(in, results); err != nil {
			b.Fatal(err)
		}
	}
}
