package api_test

import (
	"slices"
	"testing"

	"plumb/api"
	"plumb/device/sim"
)

// TestDevice: tensors move to a device and back, their gradients too.
func TestDevice(t *testing.T) {
	s := api.NewSession()
	x, err := api.FromSlice(s, []float32{1, -2, 3}, 3)
	if err == nil {
		err = x.RequireGrad()
	}
	if err != nil {
		t.Fatal(err)
	}
	there, err := x.To(sim.Default.Device)
	if err != nil {
		t.Fatal(err)
	}
	y, err := api.Mul(there, there)
	if err == nil {
		y, err = api.Sum(y)
	}
	if err != nil || y.Device() != sim.Default.Device || !y.RequiresGrad() {
		t.Fatalf("%v on %s, %v", y, y.Device(), err)
	}
	if err := y.Backward(); err != nil {
		t.Fatal(err)
	}
	if v, err := y.Item(); err != nil || v.Float() != 14 {
		t.Errorf("Σx² = %v, %v", v, err)
	}
	if g := x.Grad(); g == nil || g.Device() != nil || !slices.Equal(g.Float64s(), []float64{2, -4, 6}) {
		t.Errorf("2x = %v", g)
	}
	if back, err := there.To(nil); err != nil || back.Device() != nil || !slices.Equal(back.Float64s(), x.Float64s()) {
		t.Errorf("back: %v, %v", back, err)
	}
	if err := s.On(sim.Default.Device, sim.Streams); err == nil {
		t.Error("a stream that there is not")
	}
	if err := s.On(sim.Default.Device, 1); err != nil {
		t.Fatal(err)
	}
	if z, err := s.Arange(api.Number(3)); err != nil || z.Device() != sim.Default.Device {
		t.Errorf("arange on %s: %v", z.Device(), err)
	}
}
