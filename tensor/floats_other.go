//go:build !amd64

package tensor

func fromFloat16s([]float32, []Float16) int { return 0 }

func toFloat16s([]Float16, []float32) int { return 0 }

func fromBFloat16s([]float32, []BFloat16) int { return 0 }

func toBFloat16s([]BFloat16, []float32) int { return 0 }

func singles([]float32, []float64) int { return 0 }

func doubles([]float64, []float32) int { return 0 }
