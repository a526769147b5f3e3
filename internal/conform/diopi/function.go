package diopi

import (
	"slices"
	"strings"

	"plumb/internal/conform/config"
	"plumb/program"
)

// forward appends the calls that compute the case's outputs.
func (b *build) forward() ([]any, error) {
	c := b.c
	if own, ok := compositionOf(b.c); ok {
		return b.customized(own)
	}
	if c.Interface == "CustomizedTest" {
		return nil, b.fail("CustomizedTest.%s is not known", c.Function)
	}
	if m := manual[c.Function]; m.draw != nil && Manual(c) != "" {
		return m.draw(b)
	}
	if program.IsModule(c.Interface + "." + c.Function) {
		return b.module()
	}
	if c.Interface == "torch.Tensor" {
		return b.method(c.Function)
	}
	return []any{b.call(c.Interface+"."+c.Function, b.args)}, nil
}

// composition is the function as a composition, where it is one. DIOPI's entries
// of attention with dropout name no interface: they run the same attention.
func compositionOf(c *config.Case) (custom, bool) {
	if c.Interface == "CustomizedTest" || strings.HasPrefix(c.Function, "multihead_attention") {
		own, ok := customs[c.Function]
		return own, ok
	}
	own, ok := elsewhere[c.Interface+"."+c.Function]
	return own, ok
}

// method calls a method of the argument input.
func (b *build) method(name string) ([]any, error) {
	input, _ := b.get("input")
	if _, ok := input.(program.Ref); !ok {
		return nil, b.fail("Tensor.%s needs a tensor input", name)
	}
	return []any{b.call("Tensor."+name, input, b.without("input", "dtype"))}, nil
}

// inPlace appends the calls of the in-place variant.
func (b *build) inPlace() ([]any, error) {
	c := b.c
	switch {
	case c.Function == "index_put" && c.Interface == "CustomizedTest":
		return b.compose(custom{build: indexPut("Tensor.index_put_")})
	case c.Function == "bernoulli" && Manual(c) != "":
		return bernoulliIn(b)
	case slices.Contains([]string{"uniform", "random", "normal_"}, c.Function) && Manual(c) != "":
		return b.forward()
	case c.Function == "normal" || c.Function == "randperm":
		return nil, b.fail("%s has no in-place variant", c.Function)
	}
	switch c.Interface {
	case "torch.nn.functional":
		return []any{b.call(c.Interface+"."+c.Function, b.args, program.Kwarg{Name: "inplace", Value: true})}, nil
	case "torch", "torch.Tensor":
		return b.method(strings.TrimSuffix(c.Function, "_") + "_")
	}
	return nil, b.fail("%s.%s has no in-place variant", c.Interface, c.Function)
}

// parts is how many outputs the function returns as a tuple; 0 for a single
// tensor.
func (b *build) parts() int {
	if _, ok := compositionOf(b.c); ok {
		return 0
	}
	if v, _ := b.get("return_indices"); v == true {
		return 2
	}
	switch b.c.Function {
	case "sort", "qr", "eigh", "topk", "cummax", "cummin", "kthvalue", "mode", "cholesky_ex", "std_mean", "var_mean", "slogdet":
		return 2
	case "LSTM", "GRU", "RNN", "MultiheadAttention":
		return 2
	case "max", "min", "median", "nanmedian":
		if dim, ok := b.get("dim"); ok && dim != nil {
			return 2
		}
	case "svd", "linalg_svd":
		return 3
	}
	return 0
}

// Manual names the statistical check by which a case without a reference
// output is judged; it is empty for all other cases. The check is that of the
// law of the operator that draws, as far as there is one.
func Manual(c *config.Case) string {
	if c.Item.Get("no_output_ref") != config.Bool(true) {
		return ""
	}
	if m, ok := manual[c.Function]; ok {
		return m.law
	}
	if strings.HasPrefix(c.Function, "multihead_attention") {
		return ""
	}
	return "shape"
}

// manual are the functions that DIOPI checks by hand: what their results
// follow, and how they are called where PyTorch calls them otherwise.
var manual = map[string]struct {
	law  string
	draw func(*build) ([]any, error)
}{
	"dropout":     {"dropout", nil},
	"dropout2d":   {"dropout", nil},
	"randperm":    {"randperm", plainly("torch.randperm")},
	"normal":      {"normal", plainly("torch.normal")},
	"multinomial": {"multinomial", plainly("torch.multinomial")},
	"bernoulli":   {"bernoulli", bernoulli},
	"uniform":     {"uniform", drawIn("uniform_", "start", "end")},
	"random":      {"random", drawIn("random_", "start", "end")},
	"normal_":     {"normal", drawIn("normal_", "mean", "std")},
}

func plainly(target string) func(*build) ([]any, error) {
	return func(b *build) ([]any, error) { return []any{b.call(target, b.args)}, nil }
}

// drawIn calls a method that draws in place, by position: an argument of None,
// and one that is missing, is left out.
func drawIn(method string, names ...string) func(*build) ([]any, error) {
	return func(b *build) ([]any, error) {
		args := []any{b.arg("input")}
		if _, ok := args[0].(program.Ref); !ok {
			return nil, b.fail("Tensor.%s needs a tensor input", method)
		}
		for _, name := range names {
			if v := b.arg(name); v != nil {
				args = append(args, v)
			}
		}
		if b.c.Function == "random" && len(args) == 2 && b.arg("start") != nil {
			args = append(args, nil)
		}
		return []any{b.call("Tensor."+method, args...)}, nil
	}
}

// bernoulli draws with the probabilities that are the input's elements, or, in
// its shape, with the probability p.
func bernoulli(b *build) ([]any, error) {
	b.args = slices.DeleteFunc(b.args, func(kw program.Kwarg) bool { return kw.Name == "p" && kw.Value == nil })
	return []any{b.call("torch.bernoulli", b.args)}, nil
}

// bernoulliIn draws in place.
func bernoulliIn(b *build) ([]any, error) {
	if p := b.arg("p"); p != nil {
		return []any{b.call("Tensor.bernoulli_", b.arg("input"), p)}, nil
	}
	return []any{b.call("Tensor.bernoulli_", b.arg("input"), b.arg("input"))}, nil
}
