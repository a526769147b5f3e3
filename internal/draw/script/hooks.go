package script

import (
	"slices"
	"strings"

	"go.starlark.net/starlark"
)

// torchCalls are the functions and classes of torch that torch.py has: those
// of lists, where some is set, only for what is no single tensor.
var torchCalls = map[path]struct {
	name string
	some func(first starlark.Value) bool
}{
	"torch.nn.ParameterList": {name: "ParameterList"}, "torch.nn.ParameterDict": {name: "ParameterDict"},
	"torch.nn.modules.loss._Loss": {name: "Loss"}, "torch.nn.modules.loss._WeightedLoss": {name: "WeightedLoss"},
	"torch.nn.utils.clip_grad_norm_": {name: "clip_grad_norm_"}, "torch.nn.utils.clip_grad_value_": {name: "clip_grad_value_"},
	"torch.nn.utils.parameters_to_vector": {name: "parameters_to_vector"}, "torch.nn.utils.vector_to_parameters": {name: "vector_to_parameters"},
	"torch.nn.utils.weight_norm": {name: "weight_norm"}, "torch.nn.utils.parametrizations.weight_norm": {name: "weight_norm"},
	"torch.nn.utils.rnn.pad_sequence": {name: "pad_sequence"},
	"torch.autograd.gradcheck":        {name: "gradcheck"}, "torch.autograd.gradgradcheck": {name: "gradgradcheck"}, "torch.utils.checkpoint.checkpoint": {name: "checkpoint"}, "torch.testing.make_tensor": {name: "make_tensor"},
	"torch.ctc_loss":        {name: "ctc_loss"},
	"torch.hann_window":     {name: "hann_window"},
	"torch.cast":            {name: "cast"}, // OneFlow's
	"torch.optim.Optimizer": {name: "Optimizer"}, "torch.optim.optimizer.Optimizer": {name: "Optimizer"},
	"torch.utils.data.TensorDataset": {name: "TensorDataset"}, "torch.utils.data.DataLoader": {name: "DataLoader"}, "torch.utils.data.IterableDataset": {name: "IterableDataset"},
	"torch.utils.data.Subset": {name: "Subset"}, "torch.utils.data.ConcatDataset": {name: "ConcatDataset"}, "torch.utils.data.random_split": {name: "random_split"},
	"torch.utils.data.Sampler": {name: "Sampler"}, "torch.utils.data.SequentialSampler": {name: "SequentialSampler"}, "torch.utils.data.RandomSampler": {name: "RandomSampler"},
	"torch.utils.data.SubsetRandomSampler": {name: "SubsetRandomSampler"}, "torch.utils.data.BatchSampler": {name: "BatchSampler"}, "torch.utils.data.default_collate": {name: "default_collate"},
	"torch.utils.data.dataloader.default_collate": {name: "default_collate"},
	"torch.autograd.backward":                     {"backward", func(v starlark.Value) bool { _, several := sequence(v); return several }},
	"torch.einsum":                                {"einsum", func(v starlark.Value) bool { _, isTensor := v.(*symbol); return isTensor }},
}

// fromTorchPrelude answers a call that torch.py has; nil for others.
func (p path) fromTorchPrelude(t *starlark.Thread, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	if name, functional := strings.CutPrefix(string(p), "torch.nn."); functional {
		if fn := ofOneFlow("nn." + name); fn != nil {
			return starlark.Call(t, fn, args, kwargs)
		}
	}
	if p == "torch.broadcast_like" { // which OneFlow's pairs give PyTorch's side too
		return starlark.Call(t, ofOneFlow("broadcast_like"), args, kwargs)
	}
	if c, ok := torchCalls[p]; ok && c.some != nil && (len(args) == 0 || !c.some(args[0])) {
		return nil, nil
	}
	if _, begins := hookedCalls[string(p)]; begins { // of several tensors: one pass, whose hooks run once
		if d, ok := t.Local(drawKey).(*draw); ok && d.hooked() {
			return nil, nil
		}
	}
	fn := p.inPrelude()
	if fn == nil {
		if strings.HasPrefix(string(p), "torch.distributions.") {
			return nil, lack("%s is not supported in test files", p)
		}
		return nil, nil
	}
	return starlark.Call(t, fn, args, kwargs)
}

// inPrelude is what our files of Python have for a name of torch; nil for none.
func (p path) inPrelude() starlark.Value {
	if name, ok := strings.CutPrefix(string(p), "torch.distributions."); ok {
		return distributionsPrelude()[lastName(name)]
	}
	if c, ok := torchCalls[p]; ok {
		return torchPrelude()[c.name]
	}
	return nil
}

// hook is a function that a module calls when something happens to it.
type hook struct {
	fn   starlark.Value
	when hookTime
}

type hookTime uint8

const (
	behindForward hookTime = iota
	beforeForward
	behindBackward
	beforeBackward
)

// hooks are those of a module, in the order of their registration.
type hooks struct{ list []*hook }

// register adds a hook and returns its handle.
func (h *hooks) register(fn starlark.Value, when hookTime) starlark.Value {
	added := &hook{fn, when}
	h.list = append(h.list, added)
	return handle(func() { h.list = slices.DeleteFunc(h.list, func(other *hook) bool { return other == added }) })
}

// handle is what registers a hook returns: remove takes it away.
func handle(remove func()) starlark.Value {
	return &library{name: "RemovableHandle", names: starlark.StringDict{"remove": builtin("remove", func(*starlark.Thread, starlark.Tuple) (starlark.Value, error) {
		remove()
		return starlark.None, nil
	})}}
}

// at are the hooks of one time.
func (h *hooks) at(when hookTime) []*hook {
	var out []*hook
	for _, k := range h.list {
		if k.when == when {
			out = append(out, k)
		}
	}
	return out
}

// around calls a module between its hooks.
func (h *hooks) around(t *starlark.Thread, module starlark.Value, args starlark.Tuple, call func(starlark.Tuple) (starlark.Value, error)) (starlark.Value, error) {
	for _, k := range h.at(beforeForward) {
		v, err := starlark.Call(t, k.fn, starlark.Tuple{module, args}, nil)
		if err != nil {
			return nil, err
		}
		if given, ok := v.(starlark.Tuple); ok {
			args = given
		} else if v != starlark.None {
			args = starlark.Tuple{v}
		}
	}
	args, watched, err := h.watchInputs(t, module, args)
	if err != nil {
		return nil, err
	}
	out, err := call(args)
	for _, k := range h.at(behindForward) {
		if err != nil {
			return nil, err
		}
		var v starlark.Value
		if v, err = starlark.Call(t, k.fn, starlark.Tuple{module, args, out}, nil); err == nil && v != starlark.None {
			out = v
		}
	}
	if err != nil || watched == nil {
		return out, err
	}
	return h.watchOutputs(watched, out)
}

// hooksOf are the hooks of a module.
func hooksOf(m starlark.Value) *hooks {
	if s, ok := m.(*symbol); ok {
		return &s.hooks
	}
	return &stateOf(m.(*object)).hooks
}

func registerHook(when hookTime) func(*draw, starlark.Value, arguments) (starlark.Value, error) {
	return func(_ *draw, m starlark.Value, a arguments) (starlark.Value, error) {
		return hooksOf(m).register(a.get("hook"), when), nil
	}
}

// hookedInside reports whether a module that the subject calls itself, as part
// of a container, has hooks that would not run.
func (s *symbol) hookedInside() bool {
	return s.hosted == nil && slices.ContainsFunc(s.children, func(c named) bool {
		inner, ok := c.value.(*symbol)
		return ok && (len(inner.hooks.list) > 0 || inner.hookedInside())
	})
}
