//go:build !amd64

package kernel

func micro32() func(*tile[float32]) { return realMicro[float32] }
func micro64() func(*tile[float64]) { return realMicro[float64] }

func rows32() func(k int, a, b *float32, offsets *int, c *float32, ldc int, add bool) { return nil }
