package userop

import (
	"slices"
	"testing"

	"plumb/api"
	"plumb/device/sim"
)

func TestOnDevice(t *testing.T) {
	table, err := Table()
	if err != nil {
		t.Fatal(err)
	}
	s := api.NewSessionOn(table)
	x, err := api.FromSlice(s, []float32{-10, 0, 3}, 3)
	if err != nil {
		t.Fatal(err)
	}
	there, err := x.To(sim.Default.Device)
	if err != nil {
		t.Fatal(err)
	}
	before := sim.Default.Counts()
	y, err := LeakyReLU{Alpha: 0.5}.Call(there)
	if err != nil {
		t.Fatal(err)
	}
	after := sim.Default.Counts()
	if after.Launches != before.Launches+1 || after.FromDevice != before.FromDevice {
		t.Errorf("the kernel of the device did not run: %+v, %+v", before, after)
	}
	if got := y.Float64s(); y.Device() != sim.Default.Device || !slices.Equal(got, []float64{-5, 0, 3}) {
		t.Errorf("%v on %s", got, y.Device())
	}
}
