package diopi

import (
	"slices"

	"plumb/internal/conform/config"
	"plumb/program"
	"plumb/tensor"
)

// custom is a function that PyTorch has no name for, or that it has on some
// devices or in other libraries alone, as a composition of PyTorch's.
type custom struct {
	tensors string // the arguments that have to be tensors, spaced
	floats  string // the numbers that DIOPI's function takes in float32, spaced
	one     bool   // DIOPI's interface has a function that does what the composition does in steps
	build   func(b *build) []any
}

// customs are the functions of CustomizedTest. The optimizers take one step in
// the order of PyTorch's single-tensor loops (torch/optim/*.py, 1.13), and
// return the new parameter and state.
var customs = map[string]custom{
	"sgd":                                 {one: true, tensors: "param param_grad", build: sgd},
	"adam":                                {one: true, tensors: "param param_grad exp_avg exp_avg_sq", floats: "lr beta1 beta2 eps weight_decay", build: adam(false)},
	"adamw":                               {one: true, tensors: "param param_grad exp_avg exp_avg_sq", floats: "lr beta1 beta2 eps weight_decay", build: adam(true)},
	"fused_adamw":                         {one: true, build: fusedAdamW},
	"adadelta":                            {one: true, tensors: "param param_grad square_avg acc_delta", floats: "lr rho eps weight_decay", build: adadelta},
	"rmsprop":                             {one: true, tensors: "param param_grad square_avg", floats: "lr alpha eps weight_decay momentum", build: rmsprop},
	"clip_grad_norm_":                     {one: true, build: clipGradNorm},
	"slice_op":                            {tensors: "input", build: sliceOp},
	"index":                               {tensors: "input", build: index},
	"index_put":                           {tensors: "input values", build: indexPut("torch.index_put")},
	"cast_dtype":                          {tensors: "input out", build: castDType},
	"linalgqr":                            {tensors: "input", build: qr},
	"meshgrid":                            {build: meshgrid},
	"sort":                                {tensors: "input", build: sorted},
	"im2col":                              {tensors: "input", build: plain("torch.nn.functional.unfold")},
	"col2im":                              {tensors: "input", build: plain("torch.nn.functional.fold")},
	"ctc_loss":                            {tensors: "log_probs", build: ctcLoss},
	"nll_loss_v2":                         {one: true, tensors: "input target", build: plain("torch.nn.functional.nll_loss")},
	"layer_normGB":                        {one: true, tensors: "input", build: plain("torch.nn.functional.layer_norm")},
	"spmm":                                {one: true, tensors: "input mat2", build: spmm},
	"rms_norm":                            {one: true, tensors: "input", build: rmsNorm},
	"pool1d":                              {one: true, tensors: "input", build: pool("1d")},
	"pool2d":                              {one: true, tensors: "input", build: pool("2d")},
	"pool3d":                              {one: true, tensors: "input", build: pool("3d")},
	"batch_norm_stats":                    {one: true, tensors: "input", build: batchNormStats},
	"batch_norm_elemt":                    {one: true, tensors: "input mean invstd", floats: "eps", build: batchNormElemt},
	"batch_norm_backward_reduce":          {one: true, tensors: "grad_output input mean invstd", build: batchNormBackwardReduce},
	"batch_norm_backward_elemt":           {one: true, tensors: "grad_out input mean invstd sum_dy sum_dy_xmu count", build: batchNormBackwardElemt},
	"batch_norm_gather_stats_with_counts": {one: true, tensors: "mean_all invstd_all count_all", floats: "momentum eps", build: batchNormGather},
	"rotary_emb":                          {one: true, tensors: "cos sin", build: rotary},
	"rotary_emb_v2":                       {one: true, tensors: "query key cos sin", build: rotaryV2},
	"apply_penalty":                       {one: true, tensors: "logits presence_penalty frequency_penalty p_token_ids p_token_counts p_cumsum_seq_len", build: applyPenalty},
	"apply_penalty_v2":                    {one: true, tensors: "logits presence_penalty frequency_penalty repetition_penalty p_token_ids p_token_counts", build: applyPenaltyV2},
	"destindex_copy_kv":                   {one: true, tensors: "k dest_loc out", build: destIndexCopy},
	"flash_attention":                     {one: true, tensors: "q k v", floats: "softmax_scale", build: flashAttention},
	"customized_flash_attention":          {one: true, tensors: "q k v", floats: "softmax_scale", build: flashAttention},
	"flash_attention_varlen":              {one: true, tensors: "q k v", floats: "softmax_scale", build: varlen("cu_seqlens_q", scaleOf("softmax_scale"))},
	"customized_flash_attention_varlen":   {one: true, tensors: "q k v", floats: "softmax_scale", build: varlen("cu_seqlens_q", scaleOf("softmax_scale"))},
	"multihead_attention":                 {one: true, tensors: "q k v", build: multihead},
	"multihead_attention_varlen":          {one: true, tensors: "q k v", build: varlen("cu_seqlens", scaleOf("scale"))},
	"scaled_masked_softmax":               {one: true, build: scaledMaskedSoftmax},
	"context_attention":                   {one: true, tensors: "q k v b_start_loc b_seq_len", build: contextAttention},
	"prompt_flash_attention":              {one: true, tensors: "query key value", build: promptAttention},
	"token_attention":                     {one: true, tensors: "q k out b_loc b_start_loc b_seq_len", build: tokenAttention},
	"token_softmax_reducev":               {one: true, tensors: "logics v out b_loc b_start_loc b_seq_len", build: tokenReduce},
	"paged_attention":                     {one: true, tensors: "query key value", build: pagedAttention},
}

// elsewhere are functions that other interfaces name: those of torchvision, and
// those of torch that have no kernel of their own in most backends.
var elsewhere = map[string]custom{
	"torchvision.ops.nms":                {one: true, tensors: "boxes scores", build: nms},
	"torchvision.ops.roi_align":          {one: true, tensors: "input boxes", build: roiAlign},
	"torchvision.ops.sigmoid_focal_loss": {one: true, tensors: "inputs targets", floats: "alpha gamma", build: focalLoss},
	"torch.spmm":                         {one: true, tensors: "input mat2", build: spmm},
	"torch.triangular_solve":             {one: true, tensors: "input A", build: triangularSolve},
	"torch._foreach_norm":                {one: true, build: foreachNorm},
}

// One reports whether the case's function is one of DIOPI's interface whose program
// is a composition of others: what a library does with those says nothing of it.
func One(c *config.Case) bool {
	own, ok := compositionOf(c)
	return ok && own.one
}

// Narrow is the program of a case with its numbers in float32, as the function of DIOPI's
// interface takes them; nil where it takes none so, and where all of the case is in half
// types, which tell no float32 from a float64.
func Narrow(c *config.Case, seed uint64) (*program.Program, error) {
	own, ok := compositionOf(c)
	b, err := newBuild(c, seed, false)
	if err != nil || !ok || !slices.ContainsFunc(b.p.Inputs, func(in program.Input) bool { return in.DType == tensor.F32 || in.DType == tensor.F64 }) {
		return nil, err
	}
	narrower := false
	for name := range words(own.floats) {
		if x, ok := b.arg(name).(float64); ok && float64(float32(x)) != x {
			b.set(name, float64(float32(x)))
			narrower = true
		}
	}
	if !narrower {
		return nil, nil
	}
	return b.whole()
}

// customized appends the composition.
func (b *build) customized(c custom) ([]any, error) {
	for name := range words(c.tensors) {
		if _, ok := b.arg(name).(program.Ref); !ok {
			return nil, b.fail("%s.%s needs a tensor %s", b.c.Interface, b.c.Function, name)
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

// first is the name of the first of the arguments that is a tensor.
func (b *build) first(names ...string) string {
	for _, name := range names {
		if _, ok := b.arg(name).(program.Ref); ok {
			return name
		}
	}
	b.refuse("%s.%s needs a tensor %s", b.c.Interface, b.c.Function, names[0])
	return ""
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

// literals are the integers of a list or of a tensor, whose elements follow
// from the case.
func (b *build) literals(name string) []int64 {
	var out []int64
	switch v := b.arg(name).(type) {
	case program.List:
		return b.integers(name, v)
	case program.Tuple:
		return b.integers(name, v)
	case program.Ref:
		if data := b.input(name).Materialize(); !data.DType().IsFloat() {
			for i := range data.Len() {
				out = append(out, data.Int(i))
			}
			return out
		}
	}
	b.refuse("%s: want integers", name)
	return nil
}

func (b *build) integers(name string, list []any) []int64 {
	out := make([]int64, len(list))
	for i, x := range list {
		n, ok := x.(int64)
		if !ok {
			b.refuse("%s: want a list of integers", name)
		}
		out[i] = n
	}
	return out
}

func kw(name string, v any) program.Kwarg { return program.Kwarg{Name: name, Value: v} }

// plain calls a function by the same arguments.
func plain(target string) func(*build) []any {
	return func(b *build) []any { return []any{b.call(target, b.args)} }
}

// qr has columns of Q and rows of R with the signs that make the diagonal of R
// positive, since they are unique only up to these; of the columns that complete
// Q, the projection onto their span.
func qr(b *build) []any {
	x, mode := b.input("input").Shape, "reduced"
	if m, ok := b.arg("mode").(string); ok {
		mode = m
	}
	out := b.split(b.call("torch.linalg.qr", b.arg("input"), b.without("input")), 2)
	if len(x) < 2 {
		return out
	}
	q, r := out[0], out[1]
	rows, thin := x[len(x)-2], min(x[len(x)-2], x[len(x)-1])
	signs := b.call("torch.sign", b.call("torch.diagonal", r, int64(0), int64(-2), int64(-1)))
	upper := func(x any) any {
		if mode == "complete" && thin < rows {
			return b.at(x, program.Ellipsis{}, program.Slice{Stop: int64(thin)}, program.Slice{})
		}
		return x
	}
	triangle := b.call("torch.mul", upper(r), b.call("torch.unsqueeze", signs, int64(-1)))
	if mode == "r" {
		return []any{q, triangle}
	}
	row := b.call("torch.unsqueeze", signs, int64(-2))
	if mode != "complete" || thin == rows {
		return []any{b.call("torch.mul", q, row), triangle}
	}
	first := b.call("torch.mul", b.at(q, program.Ellipsis{}, program.Slice{Stop: int64(thin)}), row)
	rest := b.at(q, program.Ellipsis{}, program.Slice{Start: int64(thin)})
	span := b.call("torch.matmul", rest, b.call("torch.transpose", rest, int64(-2), int64(-1)))
	return []any{first, triangle, span}
}

// spmm is a matrix product; of which layout its matrices are is no matter of
// what it computes.
func spmm(b *build) []any { return []any{b.call("torch.mm", b.arg("input"), b.arg("mat2"))} }

// triangularSolve is the solution X of A·X = input, and A as it was broadcast.
func triangularSolve(b *build) []any {
	x, y := b.input("input").Shape, b.input("A").Shape
	if len(x) < 2 || len(y) < 2 {
		b.refuse("input and A: want matrices, not %v and %v", x, y)
	}
	batch, err := tensor.BroadcastShapes(x[:len(x)-2], y[:len(y)-2])
	if err != nil {
		b.refuse("input and A: %v", err)
	}
	of, upper := b.arg("A"), b.number("upper", 1) != 0
	if b.arg("transpose") == true {
		of, upper = b.call("torch.transpose", of, int64(-2), int64(-1)), !upper
	}
	solution := b.call("torch.linalg.solve_triangular", of, b.arg("input"), kw("upper", upper), kw("unitriangular", b.arg("unitriangular") == true))
	shape := append(slices.Clone(batch), y[len(y)-2:]...)
	return []any{solution, b.call("torch.clone", b.call("torch.broadcast_to", b.arg("A"), sizes(shape...)))}
}

// foreachNorm is the norm of each tensor of a list.
func foreachNorm(b *build) []any {
	list, _ := b.arg("self").(program.List)
	if len(list) == 0 {
		b.refuse("_foreach_norm needs tensors")
	}
	out := make([]any, len(list))
	for i, x := range list {
		out[i] = b.call("torch.linalg.vector_norm", x, b.number("ord", 2))
	}
	return out
}

// at is x[places].
func (b *build) at(x any, places ...any) program.Ref {
	if len(places) == 1 {
		return b.call("operator.getitem", x, places[0])
	}
	return b.call("operator.getitem", x, program.Tuple(places))
}

// wide is a tensor in float32 where it is of a half type, else itself.
func (b *build) wide(x any, d tensor.DType) any {
	if !half(d) {
		return x
	}
	return b.call("Tensor.to", x, kw("dtype", tensor.F32))
}

// narrow is a tensor that was computed wide in dtype d.
func (b *build) narrow(x any, d tensor.DType) any {
	if !half(d) {
		return x
	}
	return b.call("Tensor.to", x, kw("dtype", d))
}

func half(d tensor.DType) bool { return d == tensor.F16 || d == tensor.BF16 }

// long is a tensor of indices in int64, which every PyTorch takes.
func (b *build) long(name string) any {
	if b.input(name).DType == tensor.I64 {
		return b.arg(name)
	}
	return b.call("Tensor.to", b.arg(name), kw("dtype", tensor.I64))
}

// split are the n elements of a tuple.
func (b *build) split(r program.Ref, n int) []any {
	out := make([]any, n)
	for i := range out {
		out[i] = b.call("operator.getitem", r, int64(i))
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

// sorted leaves out the indices of a sort that is not stable, since which of
// equal elements is named is not defined; of a tensor without dimensions it is.
func sorted(b *build) []any {
	out := b.split(b.call("torch.sort", b.args), 2)
	if b.arg("stable") != true && len(b.input("input").Shape) > 0 {
		return out[:1]
	}
	return out
}

func ctcLoss(b *build) []any {
	p := b.call("torch.log_softmax", b.arg("log_probs"), int64(2))
	return []any{b.call("torch.nn.functional.ctc_loss", p, b.without("log_probs"))}
}

// rmsNorm is x ÷ √(mean x² + eps) · weight + bias over the last dimensions, as
// many as normalized_shape has, of halves in float32.
func rmsNorm(b *build) []any {
	n := 1
	if shape, ok := b.arg("normalized_shape").(program.Tuple); ok {
		n = len(shape)
	}
	dims := program.Tuple{}
	for i := n; i > 0; i-- {
		dims = append(dims, int64(-i))
	}
	d := b.input("input").DType
	x := b.wide(b.arg("input"), d)
	square := b.call("torch.mean", b.call("torch.mul", x, x), dims, true)
	out := b.call("torch.mul", x, b.call("torch.rsqrt", b.call("torch.add", square, b.number("eps", 1e-6))))
	if w := b.arg("weight"); w != nil {
		out = b.call("torch.mul", out, w)
	}
	if bias := b.arg("bias"); bias != nil {
		out = b.call("torch.add", out, bias)
	}
	return []any{b.narrow(out, d)}
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
