package native

import (
	"context"
	"maps"
	"testing"

	"plumb/backend"
	"plumb/device/sim"
	"plumb/global"
	"plumb/nn"
	"plumb/op"
	"plumb/ops"
	"plumb/program"
	"plumb/tensor"
)

// devicePrograms are those of graphs, and what a graph cannot hold.
var devicePrograms = map[string]string{
	"elements tell": `x = tensor((6,), torch.float32, uniform(-1.0, 1.0, key=1), requires_grad=True)
p = torch.gt(x, 0)
i = torch.nonzero(p)
n = torch.tensor(2)
y = torch.repeat_interleave(x, n)
k = torch.allclose(x, x)
z = torch.masked_select(x, p)
y.backward()
`,
	"as a number": `x = tensor((3,), torch.float32, uniform(-1.0, 1.0, key=1), requires_grad=True)
s = torch.sum(x)
d = s.detach()
y = torch.full((2,), d)
z = torch.zeros(3)
r = torch.arange(3)
w = torch.mul(r, x)
w.backward(uniform(-1.0, 1.0, key=2))
`,
	"views": `x = tensor((2, 6), torch.float32, uniform(-1.0, 1.0, key=1), requires_grad=True)
v = x.view(2, 3, 2)
c = torch.view_as_complex(v)
m = torch.mul(c, 2)
r = torch.view_as_real(m)
a = x.as_strided((2, 2), (1, 2), 3)
b = a.clone()
u = b.add_(1.0)
parts = torch.split(x, 2, 1)
r.backward(uniform(-1.0, 1.0, key=2))
`,
}

func outcomes(t *testing.T, src string, b *Backend) []*backend.Outcome {
	t.Helper()
	p, err := program.Parse("p.py", graphHeader+src)
	if err != nil {
		t.Fatal(err)
	}
	var all []*backend.Outcome
	for _, mode := range Modes[:3] {
		in, err := b.In(mode)
		if err != nil {
			t.Fatal(err)
		}
		out, err := in.Run(context.Background(), backend.NewJob(p))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, out)
	}
	return all
}

// TestDevice runs programs on a device whose queue does nothing before it has to, call by
// call and as graphs: their outcomes are those of the host. Without Sync they are not.
func TestDevice(t *testing.T) {
	d := sim.New("backend", sim.Options{Held: true})
	table, err := sim.Ported(ops.Table(), d.Name)
	if err != nil {
		t.Fatal(err)
	}
	hasty := *d.Device
	hasty.Sync = func(int) error { return nil }
	host := New(table, nn.Modules())
	programs := maps.Clone(graphPrograms)
	maps.Copy(programs, devicePrograms)
	differ := 0
	for name, src := range programs {
		want, got, wrong := outcomes(t, src, host), outcomes(t, src, host.On(d.Device)), outcomes(t, src, host.On(&hasty))
		for i, mode := range Modes[:3] {
			if !backend.Same(want[i], got[i]) {
				t.Errorf("%s, %s: on the device %s %s\n%+v\non the host %s %s\n%+v", name, mode, got[i].Status, got[i].Message, got[i].Values, want[i].Status, want[i].Message, want[i].Values)
			}
			if !backend.Same(want[i], wrong[i]) {
				differ++
			}
		}
	}
	if n := len(programs) * len(Modes[:3]); differ < n/2 {
		t.Errorf("%d of %d outcomes differ where nothing waits for the device", differ, n)
	}
	if _, err := host.On(d.Device).In(Global); err == nil {
		t.Error("ranks on a device that is not registered")
	}
	if c := d.Counts(); c.Launches == 0 || c.FromDevice == 0 {
		t.Errorf("%+v", c)
	}
	full := sim.New("full", sim.Options{Memory: 100})
	for _, out := range outcomes(t, graphPrograms["module"], host.On((*op.Device)(full.Device))) {
		if out.Status == backend.OK {
			t.Error("runs in 100 bytes")
		}
	}
}

// TestRanksOnDevice runs programs over ranks that have their parts on a device, each on a
// stream: their outcomes are those of ranks on the host, and kernels of the device ran.
func TestRanksOnDevice(t *testing.T) {
	d := sim.New("ranks", sim.Options{Held: true, Streams: 3})
	op.RegisterDevice(d.Device)
	table, err := sim.Ported(ops.Table(), d.Name)
	if err != nil {
		t.Fatal(err)
	}
	host := New(table, nn.Modules())
	there := host.On(d.Device)
	compared := 0
	for name, src := range graphPrograms {
		p, err := program.Parse("p.py", graphHeader+src)
		if err != nil {
			t.Fatal(err)
		}
		for _, mode := range []string{"global-3", "global-2x2", "global-graph-2x2"} {
			var outs []*backend.Outcome
			for _, b := range []*Backend{host, there} {
				in, err := b.In(mode)
				if err != nil {
					t.Fatal(err)
				}
				out, err := in.Run(t.Context(), backend.NewJob(p))
				if err != nil {
					t.Fatal(err)
				}
				outs = append(outs, out)
			}
			if outs[0].Status == backend.OK {
				compared++
			}
			if !backend.Same(outs[0], outs[1]) {
				t.Errorf("%s, %s: on the device %s %s, on the host %s %s", name, mode, outs[1].Status, outs[1].Message, outs[0].Status, outs[0].Message)
			}
		}
	}
	if c := d.Counts(); compared < 9 || c.Launches < 100 || c.ToDevice < 100 {
		t.Errorf("%d compared, %+v", compared, c)
	}
	p, err := global.NewPlacement(d.Name, []int{2})
	if err != nil {
		t.Fatal(err)
	}
	x, err := global.FromLocal(tensor.Float64s(tensor.F32, []int{3}, 1, 2, 3), p, global.SBP{op.S(0)})
	if err != nil {
		t.Fatal(err)
	}
	if x.Part(0).Device() != d.Device || x.Part(1).Device() != d.Device {
		t.Errorf("the parts are on %s and %s", x.Part(0).Device(), x.Part(1).Device())
	}
}
