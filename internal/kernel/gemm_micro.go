package kernel

func (t *tile[T]) put(i, j int, v T) {
	at := i*t.rs + j*t.cs
	if t.add {
		t.c[at] += v
	} else {
		t.c[at] = v
	}
}

// merge puts the top left corner of a whole tile.
func (t *tile[T]) merge(whole []T) {
	for i := range t.rows {
		row := whole[i*t.width:][:t.cols]
		switch {
		case t.cs != 1:
			for j, v := range row {
				t.put(i, j, v)
			}
		case t.add:
			to := t.c[i*t.rs:][:t.cols]
			for j, v := range row {
				to[j] += v
			}
		default:
			copy(t.c[i*t.rs:], row)
		}
	}
}

func realMicro[T gemmReal](t *tile[T]) {
	for i := 0; i < t.rows; i += 2 {
		for j := 0; j < t.cols; j += 4 {
			sum := dot2x4(t.k, t.width, t.a[i:], t.b[j:])
			for r := range min(2, t.rows-i) {
				for c := range min(4, t.cols-j) {
					t.put(i+r, j+c, sum[r][c])
				}
			}
		}
	}
}

func dot2x4[T gemmReal](k, width int, a, b []T) [2][4]T {
	var s0, s1, s2, s3, t0, t1, t2, t3 T
	for p := range k {
		x, y := a[p*tileRows:][:2], b[p*width:][:4]
		s0 = T(x[0]*y[0]) + s0
		s1 = T(x[0]*y[1]) + s1
		s2 = T(x[0]*y[2]) + s2
		s3 = T(x[0]*y[3]) + s3
		t0 = T(x[1]*y[0]) + t0
		t1 = T(x[1]*y[1]) + t1
		t2 = T(x[1]*y[2]) + t2
		t3 = T(x[1]*y[3]) + t3
	}
	return [2][4]T{{s0, s1, s2, s3}, {t0, t1, t2, t3}}
}

func complexMicro[T complex64 | complex128](t *tile[T]) {
	for i := range t.rows {
		for j := range t.cols {
			var sum T
			for p := range t.k {
				sum += T(complexProduct(complex128(t.a[p*tileRows+i]), complex128(t.b[p*t.width+j])))
			}
			t.put(i, j, sum)
		}
	}
}

func complexProduct(x, y complex128) complex128 {
	return complex(
		float64(real(x)*real(y))-float64(imag(x)*imag(y)),
		float64(real(x)*imag(y))+float64(imag(x)*real(y)))
}
