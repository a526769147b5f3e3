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
	kind, _, _ := strings.Cut(device, ":")
	if slices.Contains(accelerators, kind) {
		return kind
	}
	return ""
}

// hasKind reports whether the run has a device of a kind.
func (d *draw) hasKind(kind string) bool {
	return d != nil && slices.ContainsFunc(d.env.Devices, func(device string) bool { return kindOfDevice(device) == kind })
}

// placed returns the device of the run for one that a test names: the default takes the place
// of an accelerator that the run has not.
func (d *draw) placed(name string) (string, error) {
	kind := kindOfDevice(name)
	switch {
	case kind == "" || d.hasKind(kind):
		return name, nil
	case d.env.DeviceStrict:
		return "", lack("the device %q needs a run with --device %s", name, kind)
	}
	return d.device(), nil
}

// ignoredOfDevices are functions of torch.cuda and the like without effect on a program.
var ignoredOfDevices = strings.Fields("manual_seed manual_seed_all seed seed_all synchronize empty_cache set_device init reset_peak_memory_stats reset_max_memory_allocated set_compile_mode set_option config")

// ofDevice answers calls of torch.cuda, torch.npu and the like that a run knows; nil for others.
func (p path) ofDevice(t *starlark.Thread) starlark.Value {
	kind, name, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(string(p), "torch."), "backends."), ".")
	d, _ := t.Local(drawKey).(*draw)
	has := d.hasKind(kind)
	switch {
	case kind == "accelerator" && name == "is_available":
		return starlark.Bool(d != nil && kindOfDevice(d.device()) != "")
	case kindOfDevice(kind) == "":
		return nil
	case slices.Contains(ignoredOfDevices, name):
		return starlark.None
	case name == "is_available", name == "is_initialized", name == "is_built":
		return starlark.Bool(has)
	case name == "is_bf16_supported" && !has:
		return starlark.False
	case name == "device_count" && !has:
		return starlark.MakeInt(0)
	}
	return nil
}
