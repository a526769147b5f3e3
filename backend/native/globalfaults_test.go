package native_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"plumb/backend"
	"plumb/backend/native"
	"plumb/global"
	"plumb/internal/draw/choice"
	"plumb/internal/draw/opcase"
	"plumb/internal/ranks"
	"plumb/nn"
	"plumb/op"
	"plumb/ops"
	"plumb/program"
	"plumb/tensor"
)

// boxed is a boxing on its way to a fault: what was, what should be, and the
// parts that the ranks are left with.
type boxed struct {
	from, to *global.Tensor
	parts    []*tensor.Tensor
}

// has reports whether an entry of the sbp becomes another; a split stands for all.
func (b *boxed) has(from, to op.SBP) bool {
	f, t := b.from.SBP(), b.to.SBP()
	if len(f) != len(t) || !slices.Equal(b.from.Placement().Hierarchy, b.to.Placement().Hierarchy) {
		return false
	}
	like := func(e, want op.SBP) bool {
		_, split := e.Axis()
		_, any := want.Axis()
		return e == want || split && any
	}
	for k := range f {
		if f[k] != t[k] && like(f[k], from) && like(t[k], to) {
			return true
		}
	}
	return false
}

// whole is the logical value.
func (b *boxed) whole() *tensor.Tensor {
	x, err := b.to.Logical()
	if err != nil {
		panic(err)
	}
	return x
}

// spread gives each rank its part of x by the target's sbp.
func (b *boxed) spread(x *tensor.Tensor) {
	g, err := global.FromLocal(x, b.to.Placement(), b.to.SBP())
	if err != nil {
		panic(err)
	}
	for i, rank := range b.to.Placement().Ranks {
		b.parts[i] = g.Part(rank)
	}
}

// each changes the elements of every part.
func (b *boxed) each(f func(rank int, v complex128) complex128) {
	for rank, part := range b.parts {
		out := part.CloneAs(tensor.Contiguous)
		for i := range out.Len() {
			out.Set(i, f(rank, out.At(i)))
		}
		b.parts[rank] = out
	}
}

// swap exchanges the parts of two ranks, where they have one shape.
func (b *boxed) swap(i, j int) {
	if slices.Equal(b.parts[i].Shape(), b.parts[j].Shape()) {
		b.parts[i], b.parts[j] = b.parts[j], b.parts[i]
	}
}

// axis is the one that the first split entry of the sbp splits; -1 for none.
func axis(s global.SBP) int {
	for _, e := range s {
		if a, split := e.Axis(); split {
			return a
		}
	}
	return -1
}

// cuts gives the ranks the whole after f has changed its slices along the axis
// that an sbp splits.
func (b *boxed) cuts(s global.SBP, f func(n int, at func(i int) *tensor.Tensor)) {
	a := axis(s)
	if a < 0 {
		return
	}
	x := b.whole().CloneAs(tensor.Contiguous)
	f(x.Shape()[a], func(i int) *tensor.Tensor { return x.Narrow(a, i, 1, 1) })
	b.spread(x)
}

func scaled(t *tensor.Tensor, by float64) *tensor.Tensor {
	out := t.CloneAs(tensor.Contiguous)
	for i := range out.Len() {
		out.Set(i, out.At(i)*complex(by, 0))
	}
	return out
}

// collectiveFaults are those of boxings and collectives as frameworks have had them.
var collectiveFaults = []struct {
	name string
	spot func(b *boxed)
}{
	{"a sum is counted once for each rank", func(b *boxed) {
		if b.has(op.P, op.B) {
			b.each(func(_ int, v complex128) complex128 { return v * complex(float64(len(b.parts)), 0) })
		}
	}},
	{"an all-reduce gives the mean", func(b *boxed) {
		if b.has(op.P, op.B) {
			b.each(func(_ int, v complex128) complex128 { return v / complex(float64(len(b.parts)), 0) })
		}
	}},
	{"an all-reduce is dropped", func(b *boxed) {
		if b.has(op.P, op.B) && axis(b.from.SBP()) < 0 {
			for i, rank := range b.from.Placement().Ranks {
				b.parts[i] = b.from.Part(rank)
			}
		}
	}},
	{"an all-reduce is a broadcast of the first rank's summand", func(b *boxed) {
		if b.has(op.P, op.B) && axis(b.from.SBP()) < 0 && axis(b.to.SBP()) < 0 {
			b.spread(b.from.Part(0))
		}
	}},
	{"a sum lacks the last rank's summand", func(b *boxed) {
		if b.has(op.P, op.B) && axis(b.from.SBP()) < 0 {
			last := b.from.Part(len(b.parts) - 1)
			b.each(func(_ int, v complex128) complex128 { return v })
			for _, part := range b.parts {
				for i := range min(part.Len(), last.Len()) {
					part.Set(i, part.At(i)-last.At(i))
				}
			}
		}
	}},
	{"one rank gets the sum late", func(b *boxed) {
		if b.has(op.P, op.B) {
			b.parts[len(b.parts)-1] = scaled(b.parts[len(b.parts)-1], 0)
		}
	}},
	{"a sum is rounded to float32", func(b *boxed) {
		if b.has(op.P, op.B) && b.to.DType() == tensor.F64 {
			b.each(func(_ int, v complex128) complex128 { return complex(float64(float32(real(v))), 0) })
		}
	}},
	{"a reduce-scatter counts each rank's summand twice", func(b *boxed) {
		if b.has(op.P, op.S(0)) {
			b.each(func(_ int, v complex128) complex128 { return 2 * v })
		}
	}},
	{"a reduce-scatter is dropped: each rank cuts its own summand", func(b *boxed) {
		if b.has(op.P, op.S(0)) && axis(b.from.SBP()) < 0 {
			b.spread(b.from.Part(0))
		}
	}},
	{"a reduce-scatter leaves pieces with the next rank", func(b *boxed) {
		if b.has(op.P, op.S(0)) {
			b.swap(0, 1)
		}
	}},
	{"an all-gather has pieces in another order", func(b *boxed) {
		if b.has(op.S(0), op.B) {
			b.cuts(b.from.SBP(), func(n int, at func(int) *tensor.Tensor) {
				if n > 1 {
					first := at(0).CloneAs(tensor.Contiguous)
					at(0).CopyFrom(at(n - 1))
					at(n - 1).CopyFrom(first)
				}
			})
		}
	}},
	{"an all-gather loses the remainder of uneven pieces", func(b *boxed) {
		if b.has(op.S(0), op.B) {
			b.cuts(b.from.SBP(), func(n int, at func(int) *tensor.Tensor) {
				for i := n - n%len(b.parts); i < n; i++ {
					at(i).CopyFrom(scaled(at(i), 0))
				}
			})
		}
	}},
	{"an all-gather takes uneven pieces for those of torch.chunk", func(b *boxed) {
		if b.has(op.S(0), op.B) {
			b.cuts(b.from.SBP(), func(n int, at func(int) *tensor.Tensor) {
				size := (n + len(b.parts) - 1) / len(b.parts)
				for rank := range b.parts {
					if start, _ := op.Balanced(n, len(b.parts), rank); start != rank*size && start < n && rank*size < n {
						at(start).CopyFrom(at(min(rank*size, n-1)))
					}
				}
			})
		}
	}},
	{"an all-gather gives one rank what it had before", func(b *boxed) {
		if b.has(op.S(0), op.B) {
			b.parts[1] = scaled(b.parts[1], 0)
		}
	}},
	{"pieces overlap by one", func(b *boxed) {
		if b.has(op.S(0), op.B) {
			b.cuts(b.from.SBP(), func(n int, at func(int) *tensor.Tensor) {
				if start, _ := op.Balanced(n, len(b.parts), 1); start > 0 && start < n {
					at(start).CopyFrom(at(start - 1))
				}
			})
		}
	}},
	{"an all-to-all sends the blocks of the first two ranks to each other", func(b *boxed) {
		if b.has(op.S(0), op.S(1)) {
			b.swap(0, 1)
		}
	}},
	{"an all-to-all leaves each rank its own block alone", func(b *boxed) {
		if b.has(op.S(0), op.S(1)) {
			for i, part := range b.parts {
				b.parts[i] = scaled(part, 0)
			}
		}
	}},
	{"a slice is the first piece on every rank", func(b *boxed) {
		if b.has(op.B, op.S(0)) {
			for i := range b.parts {
				if slices.Equal(b.parts[i].Shape(), b.parts[0].Shape()) {
					b.parts[i] = b.parts[0]
				}
			}
		}
	}},
	{"the last rank has the remainder", func(b *boxed) {
		if b.has(op.B, op.S(0)) && !slices.Equal(b.parts[0].Shape(), b.parts[len(b.parts)-1].Shape()) {
			b.parts[0], b.parts[len(b.parts)-1] = b.parts[len(b.parts)-1], b.parts[0]
		}
	}},
	{"a piece begins one late where pieces are uneven", func(b *boxed) {
		if a := axis(b.to.SBP()); b.has(op.B, op.S(0)) && b.to.Shape()[a]%len(b.parts) != 0 {
			b.cuts(b.to.SBP(), func(n int, at func(int) *tensor.Tensor) {
				for i := range n - 1 {
					at(i).CopyFrom(at(i + 1))
				}
			})
		}
	}},
	{"every rank keeps the whole as its summand", func(b *boxed) {
		if b.has(op.B, op.P) {
			for i, rank := range b.from.Placement().Ranks {
				b.parts[i] = b.from.Part(rank)
			}
		}
	}},
	{"a rank without a summand has the piece before it", func(b *boxed) {
		if b.has(op.S(0), op.P) {
			b.parts[1] = b.parts[0]
		}
	}},
	{"the dimensions of the mesh are swapped", func(b *boxed) {
		if h := b.to.Placement().Hierarchy; len(h) == 2 && b.has(op.B, op.S(0)) {
			b.swap(1, h[1])
		}
	}},
	{"a sum over the outer dimension is made over the inner one", func(b *boxed) {
		if f := b.from.SBP(); len(f) == 2 && f[0] == op.P && f[1] != op.P && b.has(op.P, op.B) {
			b.each(func(rank int, v complex128) complex128 { return v * complex(float64(1+rank/2), 0) })
		}
	}},
	{"a piece is read in the order of another layout", func(b *boxed) {
		if b.has(op.B, op.S(0)) && axis(b.to.SBP()) == 1 {
			for i, part := range b.parts {
				flat := part.CloneAs(tensor.Contiguous)
				out := tensor.New(flat.DType(), flat.Shape()...)
				for j := range out.Len() {
					out.Set(j, flat.At(out.Len()-1-j))
				}
				b.parts[i] = out
			}
		}
	}},
}

// boxingCases are programs whose tensors are boxed in many ways: calls drawn as
// plumb ops run draws them, and some that place tensors.
func boxingCases(t *testing.T) []*program.Program {
	t.Helper()
	var all []*program.Program
	for key := range uint64(20) {
		for _, id := range []string{"matmul", "sum", "add", "softmax", "cumsum", "layer_norm"} {
			d := opcase.Drawer{Table: ops.Table(), Def: ops.Table().Def(id)}
			if p, err := d.Legal(choice.New(choice.DeriveName(key, id)), tensor.F64); err == nil {
				all = append(all, p)
			}
		}
		for _, to := range []string{"P", "B", "S(0)", "S(1)"} {
			p, err := program.Parse("p.py", fmt.Sprintf("# plumb program v1\nimport operator, torch\nfrom plumb import case, integer, tensor, uniform\n\ncase(\"t\", seed=%d)\nx = tensor((5, 3), torch.float64, uniform(0.5, 1.0, key=1))\na = x.to_global(sbp=%q)\ny = torch.neg(a)\n", key, to))
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, p)
		}
	}
	return all
}

// TestWrongCollectivesAreFound plants faults in boxings and collectives: each is
// found by the cases of an operator's default budget or one of two more.
func TestWrongCollectivesAreFound(t *testing.T) {
	cases := boxingCases(t)
	one := native.New(ops.Table(), nn.Modules())
	var want []*backend.Outcome
	for _, p := range cases {
		out, err := one.Run(t.Context(), backend.NewJob(p))
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, out)
	}
	found := func(spot func(b *boxed)) bool {
		for i, p := range cases {
			mode := []string{"global", "global-3", "global-2x2"}[i%3]
			over, err := one.In(mode)
			if err != nil {
				t.Fatal(err)
			}
			tampered := over.(*native.GlobalBackend).Tampered(func(from, to *global.Tensor, parts []*tensor.Tensor) {
				defer func() {
					if p := recover(); p != nil {
						t.Errorf("a fault cannot be planted: %v", p)
					}
				}()
				spot(&boxed{from, to, parts})
			})
			got, err := tampered.Run(t.Context(), backend.NewJob(p))
			if err != nil {
				t.Fatal(err)
			}
			if len(p.Calls) > 1 && p.Calls[0].Target == program.ToGlobal && got.Status != want[i].Status && got.Status == backend.Raised {
				continue // an sbp that does not fit the hierarchy
			}
			if alike(want[i], got) != nil {
				return true
			}
		}
		return false
	}
	if found(func(*boxed) {}) {
		t.Fatal("ranks without a fault are found wrong")
	}
	for _, f := range collectiveFaults {
		if !found(f.spot) {
			t.Errorf("%s is not found in %d cases", f.name, len(cases))
		}
	}
}

// TestFaultsOfRanks: a rank that dies, hangs, is late or comes to another exchange
// within a program is named, with the exchange in which the others wait.
func TestFaultsOfRanks(t *testing.T) {
	p, err := program.Parse("p.py", "# plumb program v1\nimport operator, torch\nfrom plumb import case, integer, tensor, uniform\n\ncase(\"t\", seed=1)\nx = tensor((5, 3), torch.float64, uniform(0.5, 1.0, key=1))\na = x.to_global(placement=\"cpu[0, 1, 2]\", sbp=\"S(0)\")\nb = a.to_global(sbp=\"S(1)\")\ny = torch.exp(b)\n")
	if err != nil {
		t.Fatal(err)
	}
	hang := make(chan struct{})
	defer close(hang)
	to := "S(0) to S(1)"
	for name, c := range map[string]struct {
		spoils  ranks.Spoils
		status  backend.Status
		message string
	}{
		"dies": {func(rank int, what string) (string, error) {
			if rank == 1 && what == to {
				return "", errors.New("no memory")
			}
			return what, nil
		}, backend.Crashed, "rank 1 failed: no memory; rank 0 waits in S(0) to S(1), rank 2 waits in S(0) to S(1)"},
		"hangs": {func(rank int, what string) (string, error) {
			if rank == 2 && what == to {
				<-hang
			}
			return what, nil
		}, backend.TimedOut, "rank 2 did not come: context deadline exceeded; rank 0 waits in S(0) to S(1), rank 1 waits in S(0) to S(1)"},
		"disagrees": {func(rank int, what string) (string, error) {
			if rank == 0 && what == to {
				return "P to B", nil
			}
			return what, nil
		}, backend.Crashed, "rank 0 came to P to B; rank 1 waits in S(0) to S(1), rank 2 waits in S(0) to S(1)"},
		"is late, but not too late": {func(rank int, what string) (string, error) {
			if rank == 1 {
				time.Sleep(time.Millisecond)
			}
			return what, nil
		}, backend.OK, ""},
	} {
		t.Run(name, func(t *testing.T) {
			over, err := native.New(ops.Table(), nn.Modules()).In("global-3")
			if err != nil {
				t.Fatal(err)
			}
			limit := time.Minute
			if c.status == backend.TimedOut {
				limit = 300 * time.Millisecond
			}
			out, err := over.(*native.GlobalBackend).Within(limit).Run(ranks.Spoilt(t.Context(), c.spoils), backend.NewJob(p))
			if err != nil {
				t.Fatal(err)
			}
			if out.Status != c.status || !strings.Contains(out.Message, c.message) {
				t.Errorf("%s: %s, want %s: %s", out.Status, out.Message, c.status, c.message)
			}
		})
	}
}
