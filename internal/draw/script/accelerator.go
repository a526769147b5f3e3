package script

import (
	"slices"
	"strings"

	"go.starlark.net/starlark"
)

// accelerators are the kinds of devices beside the CPU that PyTorch and its plugins name. Each
// is a method of tensors and modules too, x.npu(), and a module of torch.
var accelerators = strings.Fields("cuda xpu npu mps hpu mlu musa sdaa gcu xla privateuseone")

// kindOfDevice is "cuda" of "cuda:1"; empty for what is none of the accelerators.
func kindOfDevice(device string) string {
	if kind, _, _ := strings.Cut(device, ":"); isAccelerator(kind) {
		return kind
	}
	return ""
}

func isAccelerator(kind string) bool { return slices.Contains(accelerators, kind) }

// devicesOf is how many devices of a kind the run has.
func (d *draw) devicesOf(kind string) int {
	n := 0
	if d != nil {
		for _, device := range d.env.Devices {
			if kindOfDevice(device) == kind {
				n++
			}
		}
	}
	return n
}

// lacksDevice reports whether a device is an accelerator that the run has not.
func (d *draw) lacksDevice(device string) bool {
	kind := kindOfDevice(device)
	return kind != "" && d.devicesOf(kind) == 0
}

// placed returns the device of the run for one that a test names: the default takes the place
// of an accelerator that the run has not.
func (d *draw) placed(name string) (string, error) {
	switch {
	case !d.lacksDevice(name):
		return name, nil
	case d.env.DeviceStrict:
		return "", lack("the device %q needs a run with --device %s", name, kindOfDevice(name))
	}
	return d.device(), nil
}

// ignoredOfDevices are functions of torch.cuda and the like without effect on a program.
var ignoredOfDevices = strings.Fields("manual_seed manual_seed_all seed seed_all synchronize empty_cache set_device init reset_peak_memory_stats reset_max_memory_allocated set_compile_mode set_option config")

// ofDevice answers calls of torch.cuda, torch.npu and the like that a run knows; nil for others.
func (p path) ofDevice(t *starlark.Thread) starlark.Value {
	kind, name, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(string(p), "torch."), "backends."), ".")
	d, _ := t.Local(drawKey).(*draw)
	n := d.devicesOf(kind)
	switch {
	case kind == "accelerator" && name == "is_available":
		return starlark.Bool(d != nil && kindOfDevice(d.device()) != "")
	case !isAccelerator(kind):
		return nil
	case slices.Contains(ignoredOfDevices, name):
		return starlark.None
	case name == "is_available", name == "is_initialized", name == "is_built":
		return starlark.Bool(n > 0)
	case name == "is_bf16_supported" && n == 0:
		return starlark.False
	case name == "device_count":
		return starlark.MakeInt(n)
	}
	return nil
}
