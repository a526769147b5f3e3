package truth

import "math"

// Estimates need not be right: balls bound what they leave. They are series of
// their own, so that no error of a library that kernels call is ours too.

// nearest returns an integer next to x.
func nearest(x float64) int {
	if x < 0 {
		return -int(0.5 - x)
	}
	return int(x + 0.5)
}

// estimateLog returns log m for m in [√½, √2): 2·artanh((m-1)/(m+1)).
func estimateLog(m float64) float64 {
	t := (m - 1) / (m + 1)
	sum, power := 0.0, t
	for n := 1; n < 23; n += 2 {
		sum += power / float64(n)
		power *= t * t
	}
	return 2 * sum
}

// estimateAtan returns arctan x for |x| < 2: that of a near c and what is left.
func estimateAtan(x float64) float64 {
	c, angle := 0.0, 0.0
	switch size := math.Abs(x); {
	case size > 1.25:
		c, angle = 1.5, 0.982793723247329067985710611014666
	case size > 0.75:
		c, angle = 1, math.Pi/4
	case size > 0.25:
		c, angle = 0.5, 0.463647609000806116214256231461214
	}
	c, angle = withSignOf(c, x), withSignOf(angle, x)
	t := (x - c) / (1 + x*c)
	sum, power := 0.0, t
	for n := 1; n < 29; n += 2 {
		sum += power / float64(n)
		power *= -t * t
	}
	return angle + sum
}
