package diopi

import (
	"maps"
	"math"
	"slices"

	"plumb/program"
)

// custom is a function of CustomizedTest as a composition of PyTorch's.
type custom struct {
	tensors string // the arguments that have to be tensors, spaced
	build   func(b *build) []any
	// unknown says, in place of build, what of the function's meaning is not told.
	unknown string
}

// customs are the functions of CustomizedTest. The optimizers take one step, the
// step-th, in the order of PyTorch's single-tensor loops (torch/optim/*.py,
// 1.13), and return the new parameter and state. Those that exist only on CUDA
// call the name that they have there.
var customs = map[string]custom{
	"sgd":                                 {tensors: "param param_grad", build: sgd},
	"adam":                                {tensors: "param param_grad exp_avg exp_avg_sq", build: adam(false)},
	"adamw":                               {tensors: "param param_grad exp_avg exp_avg_sq", build: adam(true)},
	"fused_adamw":                         {tensors: "param param_grad exp_avg exp_avg_sq", build: fusedAdamW},
	"adadelta":                            {tensors: "param param_grad square_avg acc_delta", build: adadelta},
	"rmsprop":                             {tensors: "param param_grad square_avg", build: rmsprop},
	"clip_grad_norm_":                     {build: clipGradNorm},
	"slice_op":                            {tensors: "input", build: sliceOp},
	"index":                               {tensors: "input", build: index},
	"index_put":                           {tensors: "input values", build: indexPut("torch.index_put")},
	"cast_dtype":                          {tensors: "input out", build: castDType},
	"linalgqr":                            {tensors: "input", build: qr},
	"meshgrid":                            {build: meshgrid},
	"sort":                                {tensors: "input", build: sortValues},
	"im2col":                              {tensors: "input", build: plain("torch.nn.functional.unfold")},
	"col2im":                              {tensors: "input", build: plain("torch.nn.functional.fold")},
	"ctc_loss":                            {tensors: "log_probs", build: ctcLoss},
	"nll_loss_v2":                         {tensors: "input target", build: plain("torch.nn.functional.nll_loss")},
	"layer_normGB":                        {tensors: "input", build: plain("torch.nn.functional.layer_norm")},
	"rms_norm":                            {tensors: "input", build: rmsNorm},
	"pool1d":                              {tensors: "input", build: pool("1d")},
	"pool2d":                              {tensors: "input", build: pool("2d")},
	"pool3d":                              {tensors: "input", build: pool("3d")},
	"batch_norm_stats":                    {tensors: "input", build: named("torch.batch_norm_stats", 2, "input", "eps")},
	"batch_norm_elemt":                    {tensors: "input", build: named("torch.batch_norm_elemt", 1, "input", "weight", "bias", "mean", "invstd", "eps")},
	"batch_norm_backward_reduce":          {tensors: "input", build: named("torch.batch_norm_backward_reduce", 4, "grad_output", "input", "mean", "invstd", "weight", "input_g", "weight_g", "bias_g")},
	"batch_norm_backward_elemt":           {tensors: "input", build: named("torch.batch_norm_backward_elemt", 1, "grad_out", "input", "mean", "invstd", "weight", "sum_dy", "sum_dy_xmu", "count")},
	"batch_norm_gather_stats_with_counts": {tensors: "input", build: named("torch.batch_norm_gather_stats_with_counts", 2, "input", "mean_all", "invstd_all", "running_mean", "running_var", "momentum", "eps", "count_all")},
	"rotary_emb_v2":                       {tensors: "query key cos sin", build: rotaryV2},
	"apply_penalty":                       {tensors: "logits presence_penalty frequency_penalty p_token_ids p_token_counts p_cumsum_seq_len", build: applyPenalty},
	"apply_penalty_v2":                    {tensors: "logits presence_penalty frequency_penalty repetition_penalty p_token_ids p_token_counts", build: applyPenaltyV2},
	"destindex_copy_kv":                   {tensors: "k dest_loc out", build: destIndexCopy},
	"flash_attention":                     {tensors: "q k v", build: flashAttention},
	"customized_flash_attention":          {tensors: "q k v", build: flashAttention},
	"flash_attention_varlen":              {tensors: "q k v", build: flashVarlen},
	"customized_flash_attention_varlen":   {tensors: "q k v", build: flashVarlen},
	"context_attention":                   {tensors: "q k v b_start_loc b_seq_len", build: contextAttention},
	"prompt_flash_attention":              {tensors: "query key value", build: promptAttention},

	"rotary_emb":                 {unknown: "how cos, sin, conj and interleaved are meant"},
	"scaled_masked_softmax":      {unknown: "what stands for masked elements"},
	"token_attention":            {unknown: "how its cache is laid out"},
	"token_softmax_reducev":      {unknown: "how its cache is laid out"},
	"paged_attention":            {unknown: "how its cache is laid out"},
	"multihead_attention":        {unknown: "its output, which DIOPI does not check"},
	"multihead_attention_varlen": {unknown: "its output, which DIOPI does not check"},
}

// Customized lists the functions of CustomizedTest that have programs.
func Customized() []string {
	names := slices.Sorted(maps.Keys(customs))
	return slices.DeleteFunc(names, func(n string) bool { return customs[n].unknown != "" })
}

// Unknown lists the functions of CustomizedTest that have no program, with what
// of their meaning is not told.
func Unknown() map[string]string {
	out := map[string]string{}
	for name, c := range customs {
		if c.unknown != "" {
			out[name] = c.unknown
		}
	}
	return out
}

// customized appends the composition.
func (b *build) customized() ([]any, error) {
	c, ok := customs[b.c.Function]
	if !ok {
		return nil, b.fail("CustomizedTest.%s is not known", b.c.Function)
	}
	if c.unknown != "" {
		return nil, b.fail("CustomizedTest.%s: %s is not told", b.c.Function, c.unknown)
	}
	for name := range words(c.tensors) {
		if _, ok := b.arg(name).(program.Ref); !ok {
			return nil, b.fail("CustomizedTest.%s needs a tensor %s", b.c.Function, name)
		}
	}
	return b.compose(c)
}

// compose turns what a builder cannot say into an error.
func (b *build) compose(c custom) (out []any, err error) {
	defer func() {
		switch e := recover().(type) {
		case nil:
		case *Untranslated:
			err = e
		default:
			panic(e)
		}
	}()
	return c.build(b), nil
}

// refuse ends a builder.
func (b *build) refuse(format string, args ...any) { panic(b.fail(format, args...)) }

// arg is an argument, nil where there is none.
func (b *build) arg(name string) any {
	v, _ := b.get(name)
	return v
}

// number is a numeric argument, or its default.
func (b *build) number(name string, def float64) float64 {
	switch v := b.arg(name).(type) {
	case int64:
		return float64(v)
	case float64:
		return v
	case bool:
		if v {
			return 1
		}
		return 0
	}
	return def
}

// input is the input that an argument names.
func (b *build) input(name string) *program.Input {
	i := slices.IndexFunc(b.p.Inputs, func(in program.Input) bool { return b.arg(name) == program.Ref(in.Name) })
	if i < 0 {
		b.refuse("CustomizedTest.%s needs a tensor %s", b.c.Function, name)
	}
	return &b.p.Inputs[i]
}

// literals are the integers of a list, or of a tensor that is given by value.
func (b *build) literals(name string) []int64 {
	var out []int64
	switch v := b.arg(name).(type) {
	case program.List:
		for _, x := range v {
			n, ok := x.(int64)
			if !ok {
				b.refuse("%s: want a list of integers", name)
			}
			out = append(out, n)
		}
		return out
	case program.Ref:
		if data := b.input(name).Fill.Data; data != nil {
			for i := range data.Len() {
				out = append(out, data.Int(i))
			}
			return out
		}
	}
	b.refuse("%s: want integers by value", name)
	return nil
}

func kw(name string, v any) program.Kwarg { return program.Kwarg{Name: name, Value: v} }

// plain calls a function by the same arguments.
func plain(target string) func(*build) []any {
	return func(b *build) []any { return []any{b.call(target, b.args)} }
}

func qr(b *build) []any {
	return b.split(b.call("torch.linalg.qr", b.arg("input"), b.without("input")), 2)
}

// named calls a function by position, with the arguments of those names.
func named(target string, n int, names ...string) func(*build) []any {
	return func(b *build) []any {
		args := make([]any, len(names))
		for i, name := range names {
			args[i] = b.arg(name)
		}
		r := b.call(target, args...)
		if n == 1 {
			return []any{r}
		}
		return b.split(r, n)
	}
}

// split are the n elements of a tuple.
func (b *build) split(r program.Ref, n int) []any {
	out := make([]any, n)
	for i := range out {
		out[i] = b.call("operator.getitem", r, int64(i))
	}
	return out
}

// decayed is the gradient with weight decay.
func (b *build) decayed() any {
	if wd := b.number("weight_decay", 0); wd != 0 {
		return b.call("torch.add", b.arg("param_grad"), b.arg("param"), kw("alpha", wd))
	}
	return b.arg("param_grad")
}

// mix is a·x + b·y.
func (b *build) mix(a float64, x any, c float64, y any) any {
	return b.call("torch.add", b.call("torch.mul", x, a), y, kw("alpha", c))
}

// mixSquare is a·x + b·y².
func (b *build) mixSquare(a float64, x any, c float64, y any) any {
	return b.call("torch.addcmul", b.call("torch.mul", x, a), y, y, kw("value", c))
}

func sgd(b *build) []any {
	d, buf := b.decayed(), b.arg("buf")
	if m := b.number("momentum", 0); m != 0 {
		if buf == nil {
			buf = b.call("torch.clone", d)
		} else {
			buf = b.mix(m, buf, 1-b.number("dampening", 0), d)
		}
		if b.arg("nesterov") == true {
			d = b.call("torch.add", d, buf, kw("alpha", m))
		} else {
			d = buf
		}
	}
	return []any{b.call("torch.add", b.arg("param"), d, kw("alpha", -b.number("lr", 1e-3))), buf}
}

func adam(decoupled bool) func(*build) []any {
	return func(b *build) []any {
		param, g := b.arg("param"), b.arg("param_grad")
		lr := b.number("lr", 1e-3)
		if decoupled {
			param = b.call("torch.mul", param, 1-lr*b.number("weight_decay", 0))
		} else {
			g = b.decayed()
		}
		beta1, beta2, step := b.number("beta1", 0.9), b.number("beta2", 0.999), b.number("step", 1)
		m := b.mix(beta1, b.arg("exp_avg"), 1-beta1, g)
		v := b.mixSquare(beta2, b.arg("exp_avg_sq"), 1-beta2, g)
		top, most := v, b.arg("max_exp_avg_sq")
		if b.arg("amsgrad") == true {
			most = b.call("torch.maximum", most, v)
			top = most
		}
		root := b.call("torch.div", b.call("torch.sqrt", top), math.Sqrt(1-math.Pow(beta2, step)))
		scale := b.call("torch.add", root, b.number("eps", 1e-8))
		return []any{b.call("torch.addcdiv", param, m, scale, kw("value", -lr/(1-math.Pow(beta1, step)))), m, v, most}
	}
}

// fusedAdamW updates its arguments; the outputs are what they are afterwards.
func fusedAdamW(b *build) []any {
	state := []any{b.arg("param"), b.arg("param_grad"), b.arg("exp_avg"), b.arg("exp_avg_sq"), b.arg("max_exp_avg_sq")}
	var lists []any
	for _, v := range state {
		lists = append(lists, program.List{v})
	}
	if b.arg("amsgrad") != true {
		lists[4], state = program.List{}, state[:4]
	}
	lists = append(lists, program.List{b.call("torch.full", program.Tuple{}, b.number("step", 1))})
	for _, name := range []string{"lr", "beta1", "beta2", "weight_decay", "eps", "amsgrad"} {
		lists = append(lists, kw(name, b.arg(name)))
	}
	b.call("torch._fused_adamw_", append(lists, kw("maximize", false))...)
	var out []any
	for _, i := range []int{0, 2, 3, 4} {
		if i < len(state) {
			out = append(out, b.call("operator.getitem", state[i], program.Ellipsis{}))
		}
	}
	return out
}

func adadelta(b *build) []any {
	g, rho, eps := b.decayed(), b.number("rho", 0.9), b.number("eps", 1e-6)
	v := b.mixSquare(rho, b.arg("square_avg"), 1-rho, g)
	std := b.call("torch.sqrt", b.call("torch.add", v, eps))
	acc := b.arg("acc_delta")
	delta := b.call("torch.mul", b.call("torch.div", b.call("torch.sqrt", b.call("torch.add", acc, eps)), std), g)
	param := b.call("torch.add", b.arg("param"), delta, kw("alpha", -b.number("lr", 1)))
	return []any{param, v, b.mixSquare(rho, acc, 1-rho, delta)}
}

func rmsprop(b *build) []any {
	g, alpha, mean, buf := b.decayed(), b.number("alpha", 0.99), b.arg("grad_avg"), b.arg("momentum_buffer")
	v := b.mixSquare(alpha, b.arg("square_avg"), 1-alpha, g)
	spread := v
	if b.arg("centered") == true {
		mean = b.mix(alpha, mean, 1-alpha, g)
		spread = b.call("torch.addcmul", v, mean, mean, kw("value", -1.0))
	}
	root := b.call("torch.add", b.call("torch.sqrt", spread), b.number("eps", 1e-8))
	lr := b.number("lr", 1e-2)
	var param any
	if m := b.number("momentum", 0); m > 0 {
		buf = b.call("torch.addcdiv", b.call("torch.mul", buf, m), g, root)
		param = b.call("torch.add", b.arg("param"), buf, kw("alpha", -lr))
	} else {
		param = b.call("torch.addcdiv", b.arg("param"), g, root, kw("value", -lr))
	}
	return []any{param, v, mean, buf}
}

// clipGradNorm returns the norm of all gradients, and the gradients as clipped.
func clipGradNorm(b *build) []any {
	grads, _ := b.arg("tensors").(program.List)
	if len(grads) == 0 {
		b.refuse("CustomizedTest.clip_grad_norm_ needs tensors")
	}
	p := b.number("norm_type", 2)
	norms := program.List{}
	for _, g := range grads {
		if math.IsInf(p, 1) {
			norms = append(norms, b.call("torch.max", b.call("torch.abs", g)))
		} else {
			norms = append(norms, b.call("torch.norm", g, p))
		}
	}
	all := b.call("torch.stack", norms)
	total := b.call("torch.max", all)
	if !math.IsInf(p, 1) {
		b.p.Calls = b.p.Calls[:len(b.p.Calls)-1]
		total = b.call("torch.norm", all, p)
	}
	scale := b.call("torch.mul", b.call("torch.reciprocal", b.call("torch.add", total, 1e-6)), b.number("max_norm", 0))
	scale = b.call("torch.clamp", scale, kw("max", 1.0))
	out := []any{total}
	for _, g := range grads {
		out = append(out, b.call("torch.mul", g, scale))
	}
	return out
}

func sliceOp(b *build) []any {
	dim, n := int(b.number("dim", 0)), len(b.input("input").Shape)
	if dim < 0 {
		dim += n
	}
	at := program.Tuple{}
	for range dim {
		at = append(at, program.Slice{})
	}
	return []any{b.call("operator.getitem", b.arg("input"), append(at, b.arg("index")))}
}

// index is input[...] by all other arguments; those before the first tensor
// that are None stand for the dimensions before it.
func index(b *build) []any {
	at, gap := program.Tuple{}, false
	for _, a := range b.without("input") {
		if a.Value == nil {
			if gap = gap || !slices.Contains(at, any(program.Ellipsis{})); gap {
				continue
			}
		}
		if gap {
			at, gap = append(at, program.Ellipsis{}), false
		}
		if a.Value != nil {
			at = append(at, a.Value)
		}
	}
	return []any{b.call("operator.getitem", b.arg("input"), at)}
}

func indexPut(target string) func(*build) []any {
	return func(b *build) []any {
		at := program.List{}
		for _, name := range []string{"indices1", "indices2", "indices3"} {
			if v := b.arg(name); v != nil {
				at = append(at, v)
			}
		}
		return []any{b.call(target, b.arg("input"), at, b.arg("values"), kw("accumulate", b.arg("accumulate") == true))}
	}
}

func castDType(b *build) []any {
	return []any{b.call("Tensor.to", b.arg("input"), kw("dtype", b.input("out").DType))}
}

func meshgrid(b *build) []any {
	list, _ := b.arg("tensors").(program.List)
	return b.split(b.call("torch.meshgrid", list), len(list))
}

// sortValues leaves out the indices of a sort that is not stable: which of equal
// elements is named is not defined.
func sortValues(b *build) []any {
	out := b.split(b.call("torch.sort", b.args), 2)
	if b.arg("stable") != true {
		return out[:1]
	}
	return out
}

func ctcLoss(b *build) []any {
	p := b.call("torch.log_softmax", b.arg("log_probs"), int64(2))
	return []any{b.call("torch.nn.functional.ctc_loss", p, b.without("log_probs"))}
}

// rmsNorm is x ÷ √(mean x² + eps) · weight + bias over the last dimensions, as
// many as normalized_shape has.
func rmsNorm(b *build) []any {
	n := 1
	if shape, ok := b.arg("normalized_shape").(program.Tuple); ok {
		n = len(shape)
	}
	dims := program.Tuple{}
	for i := n; i > 0; i-- {
		dims = append(dims, int64(-i))
	}
	x := b.arg("input")
	square := b.call("torch.mean", b.call("torch.mul", x, x), dims, true)
	out := b.call("torch.mul", x, b.call("torch.rsqrt", b.call("torch.add", square, b.number("eps", 1e-6))))
	if w := b.arg("weight"); w != nil {
		out = b.call("torch.mul", out, w)
	}
	if bias := b.arg("bias"); bias != nil {
		out = b.call("torch.add", out, bias)
	}
	return []any{out}
}

func pool(dims string) func(*build) []any {
	return func(b *build) []any {
		mode, _ := b.arg("mode").(string)
		names := map[string][]string{
			"avg": {"kernel_size", "stride", "padding", "ceil_mode", "count_include_pad"},
			"max": {"kernel_size", "stride", "padding", "dilation", "ceil_mode"},
		}[mode]
		if names == nil {
			b.refuse("mode: want avg or max, not %q", mode)
		}
		target := "torch.nn.functional."
		if b.arg("adaptive") == true {
			target, names = target+"adaptive_", []string{"output_size"}
		}
		var args []program.Kwarg
		for _, a := range b.args {
			if slices.Contains(names, a.Name) {
				args = append(args, a)
			}
		}
		return []any{b.call(target+mode+"_pool"+dims, b.arg("input"), args)}
	}
}
