//go:build !amd64

package kernel

func micro32() func(*tile[float32]) { return realMicro[float32] }
func micro64() func(*tile[float64]) { return realMicro[float64] }

func availableRows() (r rowsTiles) { return r }
