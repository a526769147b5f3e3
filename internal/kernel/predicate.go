package kernel

// Holds makes dst = 1 where f holds and 0 elsewhere.
func Holds[T number](f func(T) bool) func(dst []uint8, a []T) {
	return func(dst []uint8, a []T) {
		a = a[:len(dst)]
		for i := range dst {
			dst[i] = truth(f(a[i]))
		}
	}
}
