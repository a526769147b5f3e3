package sim_test

import (
	"testing"

	"plumb/device/sim"
	"plumb/internal/draw/choice"
	"plumb/internal/draw/opcase"
	"plumb/internal/eager"
	"plumb/op"
	"plumb/ops"
	"plumb/tensor"
)

var dtypes = []tensor.DType{tensor.F32, tensor.F16, tensor.I64, tensor.Bool, tensor.C64}

// computed returns the results of a call and the gradients of its arguments, on a device
// or, of nil, on the host, and what the tensor arguments hold afterwards.
func computed(t *testing.T, table *op.Table, call *op.Call, d *op.Device) (all []*tensor.Tensor, failed error) {
	t.Helper()
	s := eager.New(table)
	s.Seed(7)
	s.On(d, 0)
	vars := map[op.Value]*eager.Var{}
	var leaves []op.Value
	c := *call
	c.Def = table.Def(call.Def.ID())
	c.Args = call.Args.MapValues(func(v op.Value) op.Value {
		x := v.(*tensor.Tensor)
		if vars[v] == nil {
			vars[v] = s.Leaf(x.CloneStrided(x.Strides()), x.DType().IsDifferentiable())
			leaves = append(leaves, vars[v])
		}
		return vars[v]
	})
	add := func(v op.Value) {
		x := v.(*eager.Var).Tensor
		if x.Device() != d {
			t.Fatalf("a result of %s is on %s: %d %s of %v", c.Def.ID(), x.Device(), len(all), x, call.Args.Vals)
		}
		h, err := x.To(nil)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, h)
	}
	out, err := s.Execute(&c)
	if err != nil {
		return nil, err
	}
	for _, v := range append(out, leaves...) {
		add(v)
	}
	if !eager.RequiresGrad(out[0]) {
		return all, nil
	}
	ones, err := s.Apply("ones_like", []any{out[0]}, nil)
	if err != nil {
		t.Fatal(err)
	}
	grads, err := s.Backward(out[:1], ones, false)
	for _, l := range leaves {
		if g := grads[l]; g != nil {
			add(g)
		}
	}
	return all, err
}

// TestWholeTable runs every operator, and its gradient, on a device: the bits are those of the
// host, with kernels of the device and by copies alone.
func TestWholeTable(t *testing.T) {
	held := sim.New("held", sim.Options{Held: true})
	ported, err := sim.Ported(ops.Table(), held.Name)
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for _, d := range ops.Table().Defs() {
		if d.Sample == nil {
			continue
		}
		drawer := opcase.Drawer{Table: ops.Table(), Def: d}
		for _, dt := range drawer.DTypes(dtypes...) {
			call, err := drawer.Bind(choice.New(choice.Derive(3, uint64(dt))), dt)
			if err != nil {
				continue
			}
			want, wantErr := computed(t, ops.Table(), call, nil)
			for _, table := range []*op.Table{ported, ops.Table()} {
				if table != ported && d.Exact == nil {
					continue // no kernel of the device: tried
				}
				got, err := computed(t, table, call, held.Device)
				if (err == nil) != (wantErr == nil) {
					t.Errorf("%s, %s: error %v on the device, %v on the host", d.ID(), dt, err, wantErr)
				}
				if len(got) != len(want) {
					t.Errorf("%s, %s: %d results on the device, %d on the host", d.ID(), dt, len(got), len(want))
					continue
				}
				for i := range got {
					if !got[i].SameBits(want[i]) || !sameStrides(got[i], want[i]) {
						t.Errorf("%s, %s: result %d is %v %v on the device, %v %v on the host", d.ID(), dt, i, got[i], got[i].Strides(), want[i], want[i].Strides())
					}
				}
			}
			count++
		}
	}
	c := held.Counts()
	t.Logf("%d calls: %+v", count, c)
	if count < 1000 || c.Launches < 500 {
		t.Errorf("%d calls, %+v", count, c)
	}
}

func sameStrides(a, b *tensor.Tensor) bool {
	for i, n := range a.Shape() {
		if n > 1 && a.Strides()[i] != b.Strides()[i] {
			return false
		}
	}
	return true
}
