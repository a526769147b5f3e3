package global_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"plumb/global"
	"plumb/op"
	"plumb/ops"
	"plumb/tensor"
)

func place(t *testing.T, hierarchy ...int) global.Placement {
	t.Helper()
	p, err := global.NewPlacement("cpu", hierarchy)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// counted returns a tensor whose elements are all different.
func counted(d tensor.DType, shape ...int) *tensor.Tensor {
	x := tensor.New(d, shape...)
	for i := range x.Len() {
		x.Set(i, complex(float64(i%100)+1, 0))
	}
	return x
}

// every lists the SBPs of a tensor on a hierarchy of dims dimensions.
func every(dims, axes int) []global.SBP {
	one := []op.SBP{op.B, op.P}
	for axis := range axes {
		one = append(one, op.S(axis))
	}
	all := []global.SBP{{}}
	for range dims {
		var next []global.SBP
		for _, head := range all {
			for _, e := range one {
				next = append(next, append(slices.Clone(head), e))
			}
		}
		all = next
	}
	return all
}

// TestBoxing: from every SBP to every other, on rows and hierarchies, of even,
// uneven, empty and 0-dim tensors, the whole stays the same to the bit.
func TestBoxing(t *testing.T) {
	for _, hierarchy := range [][]int{{1}, {2}, {3}, {4}, {2, 2}, {2, 3}, {1, 2}} {
		p := place(t, hierarchy...)
		for _, x := range []*tensor.Tensor{counted(tensor.F32), counted(tensor.F64, 6, 4), counted(tensor.F32, 5, 3), counted(tensor.I64, 1, 7), counted(tensor.C64, 0, 3), counted(tensor.F16, 3, 2)} {
			for _, from := range every(len(hierarchy), x.Dim()) {
				g, err := global.FromLocal(x, p, from)
				if err != nil {
					t.Fatal(err)
				}
				for _, to := range every(len(hierarchy), x.Dim()) {
					moved, err := g.ToGlobal(context.Background(), p, to)
					if err != nil {
						t.Fatalf("%s to %s: %v", g, to, err)
					}
					back, err := moved.Logical()
					if err != nil || !back.SameBits(x) {
						t.Fatalf("%s to %s: %v, %v", g, to, err, back)
					}
				}
			}
		}
	}
}

// TestBoxingBetweenPlacements: to other ranks, and to a hierarchy of the same.
func TestBoxingBetweenPlacements(t *testing.T) {
	some, err := global.NewPlacement("cpu", []int{3}, 4, 1, 6)
	if err != nil {
		t.Fatal(err)
	}
	placements := []global.Placement{place(t, 2), place(t, 4), place(t, 2, 2), some}
	x := counted(tensor.F32, 5, 4)
	for _, a := range placements {
		for _, from := range every(len(a.Hierarchy), 2) {
			g, err := global.FromLocal(x, a, from)
			if err != nil {
				t.Fatal(err)
			}
			for _, b := range placements {
				for _, to := range every(len(b.Hierarchy), 2) {
					moved, err := g.ToGlobal(context.Background(), b, to)
					if err != nil {
						t.Fatalf("%s to %s by %s: %v", g, b, to, err)
					}
					if back, err := moved.Logical(); err != nil || !back.SameBits(x) {
						t.Fatalf("%s to %s by %s: %v, %v", g, b, to, err, back)
					}
				}
			}
		}
	}
}

// TestPieces: OneFlow's rule, the first n mod p ranks have one more.
func TestPieces(t *testing.T) {
	g, err := global.FromLocal(counted(tensor.F32, 7), place(t, 3), global.SBP{op.S(0)})
	if err != nil {
		t.Fatal(err)
	}
	for rank, want := range []int{3, 2, 2} {
		if n := g.Part(rank).Len(); n != want {
			t.Errorf("rank %d of 3 has %d of 7 elements, want %d", rank, n, want)
		}
	}
	nested, err := global.FromLocal(counted(tensor.F32, 7), place(t, 2, 2), global.SBP{op.S(0), op.S(0)})
	if err != nil {
		t.Fatal(err)
	}
	for rank, want := range [][]float64{{1, 2}, {3, 4}, {5, 6}, {7}} {
		for i, v := range want {
			if part := nested.Part(rank); part.Len() != len(want) || part.Float(i) != v {
				t.Errorf("rank %d of 2x2 has %v, want %v", rank, part, want)
			}
		}
	}
}

func TestIllegal(t *testing.T) {
	p := place(t, 2)
	for name, make := range map[string]func() error{
		"an axis beyond the rank": func() error {
			_, err := global.FromLocal(counted(tensor.F32, 3), p, global.SBP{op.S(1)})
			return err
		},
		"a split of a 0-dim tensor": func() error {
			_, err := global.FromLocal(counted(tensor.F32), p, global.SBP{op.S(0)})
			return err
		},
		"an sbp of another hierarchy": func() error {
			_, err := global.FromLocal(counted(tensor.F32, 3), p, global.SBP{op.B, op.B})
			return err
		},
		"too few parts": func() error {
			_, err := global.FromParts([]*tensor.Tensor{counted(tensor.F32, 3)}, p, global.SBP{op.B})
			return err
		},
		"another placement": func() error {
			x, _ := global.FromLocal(counted(tensor.F32, 3), p, global.SBP{op.B})
			y, _ := global.FromLocal(counted(tensor.F32, 3), place(t, 3), global.SBP{op.B})
			return execute(t, &global.Runtime{Placement: p}, "add", x, y)
		},
	} {
		var rejection *op.Error
		if err := make(); !errors.As(err, &rejection) || rejection.Class != "RuntimeError" {
			t.Errorf("%s: %v is no RuntimeError", name, err)
		}
	}
}

func execute(t *testing.T, rt *global.Runtime, id string, args ...any) error {
	t.Helper()
	call, err := ops.Table().ResolveID(id, args, nil)
	if err != nil {
		return err
	}
	_, err = rt.Execute(context.Background(), call)
	return err
}

// TestBrokenPromises: parts that differ under B, and pieces of another size.
func TestBrokenPromises(t *testing.T) {
	p := place(t, 2)
	for name, c := range map[string]struct {
		parts []*tensor.Tensor
		sbp   op.SBP
		want  string
	}{
		"B":          {[]*tensor.Tensor{counted(tensor.F32, 2), tensor.New(tensor.F32, 2)}, op.B, "ranks 0 and 1 differ under B"},
		"S":          {[]*tensor.Tensor{counted(tensor.F32, 1), counted(tensor.F32, 2)}, op.S(0), "rank 0 holds float32[1], not float32[2]"},
		"P, a shape": {[]*tensor.Tensor{counted(tensor.F32, 2), counted(tensor.F32, 1)}, op.P, "rank 1 holds float32[1], not float32[2]"},
		"a dtype":    {[]*tensor.Tensor{counted(tensor.F32, 2), counted(tensor.F64, 2)}, op.P, "rank 1 holds float64[2]"},
	} {
		g, err := global.FromParts(c.parts, p, global.SBP{c.sbp})
		if err == nil {
			_, err = g.Logical()
		}
		var broken *global.PromiseError
		if !errors.As(err, &broken) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v does not say %q", name, err, c.want)
		}
	}
}

// TestSignatures: what a call costs decides by which signature it runs.
func TestSignatures(t *testing.T) {
	p := place(t, 4)
	for _, c := range []struct {
		x, w op.SBP
		want string
	}{
		{op.S(0), op.B, "input: S(0) -> S(0)"},
		{op.B, op.S(1), "other: S(1) -> S(1)"},
		{op.S(1), op.S(0), "input: S(1), other: S(0) -> P"},
		{op.B, op.B, "-> B"},
		{op.P, op.B, "input: P -> P"},
	} {
		x, err := global.FromLocal(counted(tensor.F32, 8, 8), p, global.SBP{c.x})
		if err != nil {
			t.Fatal(err)
		}
		w, err := global.FromLocal(counted(tensor.F32, 8, 8), p, global.SBP{c.w})
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		rt := &global.Runtime{Placement: p, Explain: func(s global.Step) { got = s.Signature[0].String() }}
		if err := execute(t, rt, "matmul", x, w); err != nil {
			t.Fatal(err)
		}
		if got != c.want {
			t.Errorf("matmul of %s and %s runs by %s, want %s", c.x, c.w, got, c.want)
		}
	}
}

// TestCountedBytes: where pieces are even, boxing moves as much as the cost says.
func TestCountedBytes(t *testing.T) {
	for _, ranks := range []int{2, 4} {
		p := place(t, ranks)
		x := counted(tensor.F32, 8, 8)
		for _, from := range every(1, 2) {
			for _, to := range every(1, 2) {
				g, err := global.FromLocal(x, p, from)
				if err != nil {
					t.Fatal(err)
				}
				want := global.Cost(from[0], to[0], 4*x.Len(), ranks)
				if got := g.Bytes(p, to); got != want {
					t.Errorf("%s to %s on %d ranks moves %d bytes, by the table %d", from, to, ranks, got, want)
				}
			}
		}
	}
}

// TestLocalGradients: gradients of what the ranks take out make up that of the whole:
// of pieces their row, of copies their sum, of summands the one that all have.
func TestLocalGradients(t *testing.T) {
	for _, hierarchy := range [][]int{{3}, {2, 2}} {
		p := place(t, hierarchy...)
		x := counted(tensor.F64, 5, 3)
		for _, s := range every(len(hierarchy), x.Dim()) {
			g, err := global.FromLocal(x, p, s)
			if err != nil {
				t.Fatal(err)
			}
			copies := 1.0
			for k, e := range s {
				if e == op.B {
					copies *= float64(hierarchy[k])
				}
			}
			var gradients []*tensor.Tensor
			for i, rank := range p.Ranks {
				_, size, err := s.Piece(p, x.Shape(), rank)
				if err != nil && !slices.Contains(s, op.P) {
					t.Fatal(err)
				}
				local := g.ToLocal(rank)
				if err == nil && !slices.Equal(local.Shape(), size) {
					t.Errorf("rank %d has %s by %s, Piece says %v", i, local, s, size)
				}
				gradient := tensor.New(tensor.F64, local.Shape()...)
				for j := range gradient.Len() {
					gradient.Set(j, 2)
				}
				gradients = append(gradients, gradient)
			}
			whole, err := g.LocalGradient(gradients)
			if err != nil {
				t.Fatalf("%s: %v", s, err)
			}
			logical, err := whole.Logical()
			if err != nil {
				t.Fatalf("%s: %v", s, err)
			}
			for i := range logical.Len() {
				if real(logical.At(i)) != 2*copies {
					t.Fatalf("by %s element %d of the gradient is %v, not %v", s, i, logical.At(i), 2*copies)
				}
			}
		}
	}
	g, err := global.FromLocal(counted(tensor.F32, 4), place(t, 2), global.SBP{op.P})
	if err != nil {
		t.Fatal(err)
	}
	if part := g.ToLocal(7); part.Len() != 0 {
		t.Errorf("rank 7 of 2 has %s", part)
	}
	if _, err := g.LocalGradient([]*tensor.Tensor{counted(tensor.F32, 4), tensor.New(tensor.F32, 4)}); err == nil {
		t.Error("gradients that differ are those of summands of one tensor")
	}
}
