package kernel

import "golang.org/x/sys/cpu"

var hasFMA = cpu.X86.HasAVX2 && cpu.X86.HasFMA

func micro32() func(*tile[float32]) {
	if hasFMA {
		return fmaMicro32
	}
	return realMicro[float32]
}

func micro64() func(*tile[float64]) {
	if hasFMA {
		return fmaMicro64
	}
	return realMicro[float64]
}

// availableRows are the tiles over rows that lie anywhere, where the processor has what they need.
func availableRows() (r rowsTiles) {
	if hasFMA {
		r = rowsTiles{gemmRows32, gemmRows64}
	}
	return r
}

func fmaMicro32(t *tile[float32]) {
	if t.rows == tileRows && t.cols == 16 && t.cs == 1 {
		gemmTile32(t.k, &t.a[0], &t.b[0], &t.c[0], t.rs, t.add)
		return
	}
	var whole [tileRows * 16]float32
	gemmTile32(t.k, &t.a[0], &t.b[0], &whole[0], 16, false)
	t.merge(whole[:])
}

func fmaMicro64(t *tile[float64]) {
	if t.rows == tileRows && t.cols == 8 && t.cs == 1 {
		gemmTile64(t.k, &t.a[0], &t.b[0], &t.c[0], t.rs, t.add)
		return
	}
	var whole [tileRows * 8]float64
	gemmTile64(t.k, &t.a[0], &t.b[0], &whole[0], 8, false)
	t.merge(whole[:])
}
