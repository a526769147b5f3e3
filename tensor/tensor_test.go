package tensor

import (
	"math"
	"slices"
	"testing"
)

// nearestHalf rounds by search over every finite Float16: the oracle.
func nearestHalf(f float32) Float16 {
	best, dist := Float16(0), math.Inf(1)
	for h := range Float16(0x7c01) { // up to +Inf, which stands for 65536
		v := float64(h.Float32())
		if h == 0x7c00 {
			v = 65536
		}
		d := math.Abs(v - math.Abs(float64(f)))
		if d < dist || d == dist && h&1 == 0 {
			best, dist = h, d
		}
	}
	if math.Signbit(float64(f)) {
		best |= 0x8000
	}
	return best
}

func TestFloat16(t *testing.T) {
	for h := range 1 << 16 {
		f := Float16(h).Float32()
		if f != f {
			continue
		}
		if got := ToFloat16(f); got != Float16(h) {
			t.Fatalf("%#04x → %v → %#04x", h, f, got)
		}
	}
	for _, f := range []float32{65504, 65519.99, 65520, 1e30, 0x1p-24, 0x1p-25, 0x1.000002p-25, 0x1.8p-24, 0x1p-14, 0x1.ffcp-15, 0x1.ffep-15, 1.00048828125, 1.0014648, -0.1, 3e-39, float32(math.Copysign(0, -1))} {
		if got, want := ToFloat16(f), nearestHalf(f); got != want {
			t.Errorf("ToFloat16(%v) = %#04x, want %#04x", f, got, want)
		}
	}
	if ToFloat16(float32(math.Inf(-1))) != 0xfc00 || ToFloat16(float32(math.NaN()))&0x7e00 != 0x7e00 {
		t.Error("infinities or NaN are wrong")
	}
}

func TestBFloat16(t *testing.T) {
	for h := range 1 << 16 {
		f := BFloat16(h).Float32()
		if got := ToBFloat16(f); f == f && got != BFloat16(h) {
			t.Fatalf("%#04x → %v → %#04x", h, f, got)
		}
	}
	for f, want := range map[float32]BFloat16{
		math.Float32frombits(0x3f808000): 0x3f80, // tie to even, down
		math.Float32frombits(0x3f818000): 0x3f82, // tie to even, up
		math.Float32frombits(0x3f808001): 0x3f81,
		math.MaxFloat32:                  0x7f80,
	} {
		if got := ToBFloat16(f); got != want {
			t.Errorf("ToBFloat16(%v) = %#04x, want %#04x", f, got, want)
		}
	}
}

func TestPromote(t *testing.T) {
	for _, c := range []struct{ a, b, want DType }{
		{Bool, U8, U8}, {U8, I8, I16}, {I64, F16, F16}, {F16, BF16, F32}, {F64, C64, C128},
		{I32, F32, F32}, {BF16, F32, F32}, {U8, I64, I64}, {F32, C64, C64}, {C64, C128, C128}, {Invalid, I8, I8},
	} {
		if got := Promote(c.a, c.b); got != c.want {
			t.Errorf("Promote(%s, %s) = %s, want %s", c.a, c.b, got, c.want)
		}
		if got := Promote(c.b, c.a); got != c.want {
			t.Errorf("Promote(%s, %s) = %s, want %s", c.b, c.a, got, c.want)
		}
	}
	for _, c := range []struct{ dim, zero, wrapped, want DType }{
		{F16, F64, Invalid, F16}, {I32, F64, Invalid, F64}, {I8, I64, Invalid, I8}, {F16, Invalid, F32, F16},
		{I64, Invalid, F32, F32}, {Bool, Invalid, I64, I64}, {F64, Invalid, C64, C128}, {Invalid, I32, F32, F32}, {Invalid, F16, F32, F16},
	} {
		if got := PromoteWrapped(c.dim, c.zero, c.wrapped); got != c.want {
			t.Errorf("PromoteWrapped(%s, %s, %s) = %s, want %s", c.dim, c.zero, c.wrapped, got, c.want)
		}
	}
}

func TestConvertEveryPair(t *testing.T) {
	values := []float64{0, 1, 2, 77, 100}
	for _, from := range DTypes {
		src := Float64s(from, []int{5}, values...)
		for _, to := range DTypes {
			got := src.Convert(to)
			for i := range values {
				want := src.At(i)
				if to == Bool && want != 0 {
					want = 1
				}
				if got.At(i) != want {
					t.Errorf("%s → %s: %v became %v", from, to, src.At(i), got.At(i))
				}
			}
		}
	}
	big := New(I64, 1)
	big.SetInt(0, math.MaxInt64-1)
	if got := big.Clone().Int(0); got != math.MaxInt64-1 {
		t.Errorf("int64 lost bits: %d", got)
	}
	if got := Float64s(F64, []int{1}, 1+0x1p-24+0x1p-40).Convert(F32).Float(0); got != 1+0x1p-23 {
		t.Errorf("float64 to float32 is not to nearest: %v", got)
	}
}

// TestMoversDoWhatLoadAndStoreDo takes each element of a transposed tensor by
// itself, too.
func TestMoversDoWhatLoadAndStoreDo(t *testing.T) {
	values := []float64{0, -1, 1.75, -2.5, 300, -70000, 3e9, 1e19, -1e19, 65519, 1e-8, 3e38, 1e300, math.Inf(1), math.Inf(-1), math.NaN(), math.Copysign(0, -1), 2049}
	for _, from := range DTypes {
		src := New(from, 6, 3)
		for i, v := range values {
			src.Set(i, complex(v, -v))
		}
		for _, to := range DTypes {
			for _, x := range []*Tensor{src, src.Transpose(0, 1), src.Narrow(0, 2, 3, 1)} {
				want := New(to, x.Shape()...)
				for i := range x.Len() {
					want.Set(i, x.At(i))
				}
				if got := x.Convert(to); !got.SameBits(want) {
					t.Errorf("%s → %s of shape %v: %v, element by element %v", from, to, x.Shape(), got, want)
				}
			}
		}
	}
}

func TestIndexOfPartlyContiguousTensors(t *testing.T) {
	x := arange(2, 3, 4)
	for _, c := range []struct {
		view *Tensor
		want []int64
	}{
		{x.Narrow(0, 1, 1, 1), []int64{12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23}},
		{x.Narrow(1, 1, 2, 1), []int64{4, 5, 6, 7, 8, 9, 10, 11, 16, 17, 18, 19, 20, 21, 22, 23}},
		{x.Select(2, 1), []int64{1, 5, 9, 13, 17, 21}},
		{x.Select(0, 1).Transpose(0, 1), []int64{12, 16, 20, 13, 17, 21, 14, 18, 22, 15, 19, 23}},
	} {
		for i, want := range c.want {
			if got, f := c.view.Int(i), c.view.Convert(F32).Float(i); got != want || f != float64(want) {
				t.Errorf("shape %v, strides %v: element %d is %d and %v, want %d", c.view.Shape(), c.view.Strides(), i, got, f, want)
			}
		}
	}
}

func arange(shape ...int) *Tensor {
	t := New(I64, shape...)
	for i := range t.Len() {
		t.SetInt(i, int64(i))
	}
	return t
}

func ints(t *Tensor) []int64 {
	out := make([]int64, t.Len())
	for i := range out {
		out[i] = t.Int(i)
	}
	return out
}

func TestViews(t *testing.T) {
	x := arange(2, 3, 4)
	p := x.Permute(2, 0, 1)
	for i := range 4 {
		for j := range 2 {
			for k := range 3 {
				if got, want := p.Int((i*2+j)*3+k), int64((j*3+k)*4+i); got != want {
					t.Fatalf("permuted [%d,%d,%d] is %d, want %d", i, j, k, got, want)
				}
			}
		}
	}
	if _, ok := p.View(24); ok {
		t.Error("a permuted tensor was viewed as flat")
	}
	if got := p.Reshape(8, 3); got.Int(3) != p.Int(3) || !got.IsContiguous() {
		t.Error("reshape of a permuted tensor is wrong")
	}
	if v, ok := x.Narrow(1, 1, 2, 1).View(2, 8); !ok || !slices.Equal(ints(v)[:2], []int64{4, 5}) || v.Int(8) != 16 {
		t.Error("a narrowed tensor can be viewed with its inner dimensions merged")
	}
	if got := x.Narrow(2, 1, 2, 2).Select(0, 1).Clone(); !slices.Equal(ints(got), []int64{13, 15, 17, 19, 21, 23}) {
		t.Errorf("strided slice %v", ints(got))
	}
	e, err := x.Select(2, 0).Expand(5, 2, 3)
	if err != nil || e.Int(6*4+5) != 20 || e.Strides()[0] != 0 {
		t.Errorf("expand: %v", err)
	}
	if _, err := x.Expand(2, 4, 4); err == nil {
		t.Error("expand of 3 to 4 was accepted")
	}
	if v, ok := New(F32, 0, 3).View(3, 0, 7); !ok || v.Len() != 0 {
		t.Error("an empty tensor can be viewed as any empty shape")
	}
}

func TestMemoryFormats(t *testing.T) {
	x := arange(2, 3, 4, 5)
	c := x.CloneAs(ChannelsLast)
	if !slices.Equal(c.Strides(), []int{60, 1, 15, 3}) || !ChannelsLast.Matches(c.Shape(), c.Strides()) || c.IsContiguous() {
		t.Errorf("channels-last strides %v", c.Strides())
	}
	if !c.SameBits(x) {
		t.Error("channels-last changed the elements")
	}
	if got := DenseLike([]int{2, 3, 4, 5}, c.Strides()); !slices.Equal(got, c.Strides()) {
		t.Errorf("DenseLike gave %v", got)
	}
	if !Contiguous.Matches([]int{1, 3}, []int{99, 1}) || !Contiguous.Matches([]int{4, 0}, []int{7, 7}) {
		t.Error("strides of size-1 dimensions or empty tensors do not matter")
	}
}

func TestFromBytesIsBounded(t *testing.T) {
	storage := New(F32, 6).Storage()
	for _, c := range []struct {
		shape, strides []int
		offset         int
		ok             bool
	}{
		{[]int{2, 3}, []int{3, 1}, 0, true}, {[]int{2, 3}, []int{3, 1}, 3, false}, {[]int{6}, []int{-1}, 5, true},
		{[]int{6}, []int{-1}, 4, false}, {[]int{1000}, []int{0}, 5, true}, {[]int{0}, []int{1 << 30}, 0, true},
		{[]int{2}, []int{math.MaxInt}, 0, false}, {[]int{-1}, []int{1}, 0, false}, {[]int{1 << 40, 1 << 40}, []int{0, 0}, 0, false},
		{[]int{2}, []int{1, 1}, 0, false}, {[]int{1}, []int{1}, -1, false}, {nil, nil, math.MaxInt, false},
	} {
		if _, err := FromBytes(F32, c.shape, c.strides, c.offset, storage); (err == nil) != c.ok {
			t.Errorf("shape %v, strides %v, offset %d: error %v", c.shape, c.strides, c.offset, err)
		}
	}
}

func TestBroadcastShapes(t *testing.T) {
	got, err := BroadcastShapes([]int{3, 1}, []int{4}, nil, []int{2, 1, 1})
	if err != nil || !slices.Equal(got, []int{2, 3, 4}) {
		t.Errorf("%v, %v", got, err)
	}
	if got, err := BroadcastShapes([]int{0}, []int{1}); err != nil || got[0] != 0 {
		t.Errorf("0 with 1: %v, %v", got, err)
	}
	if _, err := BroadcastShapes([]int{3}, []int{4}); err == nil || err.Error() != "shapes [3] and [4] are not broadcastable" {
		t.Errorf("3 with 4: %v", err)
	}
}

func FuzzViewStrides(f *testing.F) {
	f.Add(uint8(2), uint8(3), uint8(4), uint8(6), uint8(0))
	f.Fuzz(func(t *testing.T, a, b, c, d, perm uint8) {
		shape := []int{int(a % 5), int(b % 5), int(c % 5)}
		x := arange(shape...)
		orders := [][]int{{0, 1, 2}, {1, 0, 2}, {2, 1, 0}, {0, 2, 1}}
		x = x.Permute(orders[perm%4]...)
		n := int(d%7) + 1
		if x.Len()%n != 0 {
			return
		}
		if v, ok := x.View(n, x.Len()/n); ok && !slices.Equal(ints(v), ints(x)) {
			t.Fatalf("view of %v %v as [%d %d] changed the order", x.Shape(), x.Strides(), n, x.Len()/n)
		}
	})
}
