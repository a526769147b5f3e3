//go:build !amd64

package variate

var useAVX2 bool // for tests

func normals([]float32, []uint64, uint32) int { return 0 }

func normals64([]float64, []uint64, uint32) int { return 0 }

func uniforms(_ []float64, _ []uint64, _, _, _ float64) int { return 0 }

func integers([]int32, []uint64, float64, float64) int { return 0 }

func round([]float32, []float64, float32) int { return 0 }

func truncate([]int32, []float32) int { return 0 }

func narrow8([]int8, []int32) int { return 0 }

func narrow16([]int16, []int32) int { return 0 }

func widen([]int64, []int32) int { return 0 }
