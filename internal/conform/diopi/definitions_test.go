package diopi_test

import (
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"plumb/backend"
	"plumb/backend/native"
	"plumb/internal/conform/config"
	"plumb/internal/conform/diopi"
	"plumb/nn"
	"plumb/ops"
	"plumb/program"
	"plumb/tensor"
)

// definition is what a function computes, in plain loops over float64: the
// values of the output numbered so, by the inputs and parameters of a case.
type definition func(c *computed) [][]float64

// computed is a case with its inputs.
type computed struct {
	t    *testing.T
	c    *config.Case
	p    *program.Program
	in   map[string]*tensor.Tensor
	para *config.Dict
}

func (c *computed) size(name string) []int { return c.in[name].Shape() }

// at is an element; of an input that is not there 1 for weights and 0 for others.
func (c *computed) at(name string, i ...int) float64 {
	t := c.in[name]
	if t == nil {
		return map[string]float64{"weight": 1}[name]
	}
	flat := 0
	for k, n := range t.Shape() {
		flat = flat*n + i[k]
	}
	return real(t.At(flat))
}

func (c *computed) number(name string, otherwise float64) float64 {
	if v, ok := config.Number(c.para.Get(name)); ok {
		return v
	}
	return otherwise
}

func (c *computed) truth(name string) bool { return c.para.Get(name) == config.Bool(true) }

func (c *computed) numbers(name string) []int {
	var out []int
	list, _ := config.Items(c.para.Get(name))
	for _, v := range list {
		n, _ := v.(config.Int)
		out = append(out, int(n))
	}
	if t := c.in[name]; t != nil {
		for i := range t.Len() {
			out = append(out, int(t.Int(i)))
		}
	}
	return out
}

func softmax(xs []float64) []float64 {
	most, sum, out := slices.Max(xs), 0.0, make([]float64, len(xs))
	for i, x := range xs {
		out[i] = math.Exp(x - most)
		sum += out[i]
	}
	for i := range out {
		out[i] /= sum
	}
	return out
}

// attend is a row of an attention: the weighted mean of rows of v.
func attend(scores []float64, v func(j int) float64) (sum float64) {
	for j, w := range softmax(scores) {
		sum += w * v(j)
	}
	return sum
}

// dense is an attention over batch, place, head, coordinate; mask is what is
// added behind the diagonal.
func dense(c *computed, scale, mask float64) [][]float64 {
	q, k := c.size("q"), c.size("k")
	var out []float64
	for b := range q[0] {
		for i := range q[1] {
			for h := range q[2] {
				g := h / (q[2] / k[2])
				scores := make([]float64, k[1])
				for j := range scores {
					for x := range q[3] {
						scores[j] += c.at("q", b, i, h, x) * c.at("k", b, j, g, x) * scale
					}
					if j > i && c.truth("is_causal") {
						scores[j] += mask
					}
				}
				for x := range q[3] {
					out = append(out, attend(scores, func(j int) float64 { return c.at("v", b, j, g, x) }))
				}
			}
		}
	}
	return [][]float64{out}
}

// sequences is an attention within sequences, of rows of heads.
func sequences(c *computed, starts, ends []int, scale, mask float64, causal bool, into string) [][]float64 {
	q, k := c.size("q"), c.size("k")
	out := make([]float64, q[0]*q[1]*q[2])
	if into != "" {
		for i := range out {
			out[i] = real(c.in[into].At(i))
		}
	}
	for s := range starts {
		for i := starts[s]; i < ends[s]; i++ {
			for h := range q[1] {
				g := h / (q[1] / k[1])
				scores := make([]float64, ends[s]-starts[s])
				for j := range scores {
					for x := range q[2] {
						scores[j] += c.at("q", i, h, x) * c.at("k", starts[s]+j, g, x) * scale
					}
					if starts[s]+j > i && causal {
						scores[j] += mask
					}
				}
				for x := range q[2] {
					out[(i*q[1]+h)*q[2]+x] = attend(scores, func(j int) float64 { return c.at("v", starts[s]+j, g, x) })
				}
			}
		}
	}
	return [][]float64{out}
}

func root(n int) float64 { return 1 / math.Sqrt(float64(n)) }

var definitions = map[string]definition{
	"rotary_emb": func(c *computed) [][]float64 {
		in, n := c.in["input"], 0
		shape := in.Shape()
		d := shape[len(shape)-1]
		sign := 1.0
		if c.truth("conj") {
			sign = -1
		}
		out := make([]float64, in.Len())
		rows := c.size("cos")[0]
		for r := range in.Len() / d {
			place := r
			for _, s := range shape[slices.Index(shape[:len(shape)-1], rows)+1 : len(shape)-1] {
				place /= s
			}
			for x := range d / 2 {
				co, si := c.at("cos", place%rows, 0, x), sign*c.at("sin", place%rows, 0, x)
				a, b := real(in.At(r*d+x)), real(in.At(r*d+d/2+x))
				out[r*d+x], out[r*d+d/2+x] = a*co-b*si, a*si+b*co
				n++
			}
		}
		return [][]float64{out}
	},
	"multihead_attention": func(c *computed) [][]float64 {
		return dense(c, c.number("scale", root(c.size("q")[3])), -1e4)
	},
	"flash_attention": func(c *computed) [][]float64 {
		return dense(c, c.number("softmax_scale", root(c.size("q")[3])), math.Inf(-1))
	},
	"multihead_attention_varlen": func(c *computed) [][]float64 {
		ends := c.numbers("cu_seqlens")
		return sequences(c, ends[:len(ends)-1], ends[1:], c.number("scale", root(c.size("q")[2])), -1e4, c.truth("is_causal"), "")
	},
	"customized_flash_attention_varlen": func(c *computed) [][]float64 {
		ends := c.numbers("cu_seqlens_q")
		return sequences(c, append([]int{0}, ends[:len(ends)-1]...), ends, root(c.size("q")[2]), -1e4, true, "")
	},
	"context_attention": func(c *computed) [][]float64 {
		starts, ends := c.numbers("b_start_loc"), c.numbers("b_seq_len")
		for i := range ends {
			ends[i] += starts[i]
		}
		return sequences(c, starts, ends, root(c.size("q")[2]), -1e8, true, "out")
	},
	"scaled_masked_softmax": func(c *computed) [][]float64 {
		s := c.size("input")
		var out []float64
		for b := range s[0] {
			for h := range s[1] {
				for i := range s[2] {
					row := make([]float64, s[3])
					for j := range row {
						row[j] = c.at("input", b, h, i, j) * c.number("scale", 1)
						if c.truth("fixed_triu_mask") && j > i || !c.truth("fixed_triu_mask") && c.at("mask", b, 0, i, j) != 0 {
							row[j] = -1e4
						}
					}
					out = append(out, softmax(row)...)
				}
			}
		}
		return [][]float64{out}
	},
	"token_attention": func(c *computed) [][]float64 {
		q, n := c.size("q"), c.size("out")[1]
		out := make([]float64, q[1]*n)
		for i := range out {
			out[i] = real(c.in["out"].At(i))
		}
		starts, lengths, most := c.numbers("b_start_loc"), c.numbers("b_seq_len"), int(c.number("max_input_len", 0))
		for i, long := range lengths {
			for j := range long {
				slot := int(c.at("b_loc", i, most-long+j))
				for h := range q[1] {
					sum := 0.0
					for x := range q[2] {
						sum += c.at("q", i, h, x) * c.at("k", slot, h, x)
					}
					out[h*n+starts[i]+j] = sum * root(q[2])
				}
			}
		}
		return [][]float64{out}
	},
	"token_softmax_reducev": func(c *computed) [][]float64 {
		v := c.size("v")
		starts, lengths, most := c.numbers("b_start_loc"), c.numbers("b_seq_len"), int(c.number("max_input_len", 0))
		var out []float64
		for i, long := range lengths {
			for h := range v[1] {
				row := make([]float64, long)
				for j := range row {
					row[j] = c.at("logics", h, starts[i]+j)
				}
				for x := range v[2] {
					out = append(out, attend(row, func(j int) float64 { return c.at("v", int(c.at("b_loc", i, most-long+j)), h, x) }))
				}
			}
		}
		return [][]float64{out}
	},
	"paged_attention": func(c *computed) [][]float64 {
		n, kv, d, long := int(c.number("numHeads", 0)), int(c.number("numKeyValueHeads", 0)), int(c.number("dim", 0)), c.numbers("actualSeqLengths")[0]
		var out []float64
		for h := range n {
			g := h / (n / kv)
			scores := make([]float64, long)
			for j := range scores {
				for x := range d {
					scores[j] += c.at("query", 0, h*d+x) * c.at("key", j, g*d+x) * root(d)
				}
			}
			for x := range d {
				out = append(out, attend(scores, func(j int) float64 { return c.at("value", j, g*d+x) }))
			}
		}
		return [][]float64{out}
	},
	"prompt_flash_attention": func(c *computed) [][]float64 {
		n, d, places := int(c.number("numHeads", 0)), int(c.number("dim", 0)), int(c.number("maxInputLen", 0))
		rows := c.size("query")[0]
		out := make([]float64, rows*n*d)
		for r := range rows {
			first := r / places * places
			for h := range n {
				scores := make([]float64, r-first+1)
				for j := range scores {
					for x := range d {
						scores[j] += c.at("query", r, h*d+x) * c.at("key", first+j, h*d+x) * root(d)
					}
				}
				for x := range d {
					out[(r*n+h)*d+x] = attend(scores, func(j int) float64 { return c.at("value", first+j, h*d+x) })
				}
			}
		}
		return [][]float64{out}
	},
	"spmm": func(c *computed) [][]float64 {
		rows, across, inner := c.size("input")[0], c.size("mat2")[1], c.size("mat2")[0]
		out := make([]float64, rows*across)
		for i := range out {
			for k := range inner {
				out[i] += c.at("input", i/across, k) * c.at("mat2", k, i%across)
			}
		}
		return [][]float64{out}
	},
	"apply_penalty": func(c *computed) [][]float64 {
		s, ends := c.size("logits"), c.numbers("p_cumsum_seq_len")
		out := make([]float64, s[0]*s[1])
		for i := range out {
			out[i] = real(c.in["logits"].At(i))
		}
		for i := range s[0] {
			for k := ends[i]; k < ends[i+1]; k++ {
				out[i*s[1]+int(c.at("p_token_ids", k))] -= c.at("p_token_counts", k)*c.at("frequency_penalty", i) + c.at("presence_penalty", i)
			}
		}
		return [][]float64{out}
	},
	"apply_penalty_v2": func(c *computed) [][]float64 {
		out := make([]float64, c.in["logits"].Len())
		for i := range out {
			out[i] = real(c.in["logits"].At(i))
		}
		for k, id := range c.numbers("p_token_ids") {
			again := c.at("repetition_penalty", k)
			if out[id] > 0 {
				again = 1 / again
			}
			out[id] = out[id]*again - c.at("p_token_counts", k)*c.at("frequency_penalty", k) - c.at("presence_penalty", k)
		}
		return [][]float64{out}
	},
	"batch_norm_stats": func(c *computed) [][]float64 {
		means, stds := channels(c)
		for i := range stds {
			stds[i] = 1 / math.Sqrt(stds[i]+c.number("eps", 0))
		}
		return [][]float64{means, stds}
	},
	"batch_norm_gather_stats_with_counts": func(c *computed) [][]float64 {
		s, eps := c.size("mean_all"), c.number("eps", 0)
		var means, stds []float64
		for ch := range s[1] {
			n, m, moment := 0.0, 0.0, 0.0
			for w := range s[0] {
				n += c.at("count_all", w)
				m += c.at("count_all", w) * c.at("mean_all", w, ch)
			}
			m /= n
			for w := range s[0] {
				apart := c.at("mean_all", w, ch) - m
				moment += c.at("count_all", w) * (math.Pow(c.at("invstd_all", w, ch), -2) - eps + apart*apart)
			}
			means, stds = append(means, m), append(stds, 1/math.Sqrt(moment/n+eps))
		}
		return [][]float64{means, stds}
	},
	"sigmoid_focal_loss": func(c *computed) [][]float64 {
		x, alpha := c.in["inputs"], c.number("alpha", 0.25)
		out, sum := make([]float64, x.Len()), 0.0
		for i := range out {
			p, t := 1/(1+math.Exp(-real(x.At(i)))), real(c.in["targets"].At(i))
			right := p
			if t == 0 {
				right = 1 - p
			}
			out[i] = -math.Log(right) * math.Pow(1-right, c.number("gamma", 2))
			if alpha >= 0 {
				out[i] *= alpha*t + (1-alpha)*(1-t)
			}
			sum += out[i]
		}
		switch c.para.Get("reduction") {
		case config.String("mean"):
			return [][]float64{{sum / float64(len(out))}}
		case config.String("sum"):
			return [][]float64{{sum}}
		}
		return [][]float64{out}
	},
	"nms":       suppressed,
	"roi_align": pooled,
	"adam": func(c *computed) [][]float64 {
		return adam(c, c.number("step", 0)+1, false, func(name string, i int) float64 { return real(c.in[name].At(i)) }, c.in["param"].Len())
	},
	"adamw": func(c *computed) [][]float64 {
		return adam(c, c.number("step", 0)+1, true, func(name string, i int) float64 { return real(c.in[name].At(i)) }, c.in["param"].Len())
	},
}

// channels are the means and biased variances of the channels of input.
func channels(c *computed) (means, spreads []float64) {
	in := c.in["input"]
	s := in.Shape()
	inner := tensor.NumElements(s[2:])
	n := float64(s[0] * inner)
	for ch := range s[1] {
		sum, square := 0.0, 0.0
		each := func(f func(x float64)) {
			for b := range s[0] {
				for i := range inner {
					f(real(in.At((b*s[1]+ch)*inner + i)))
				}
			}
		}
		each(func(x float64) { sum += x })
		each(func(x float64) { square += (x - sum/n) * (x - sum/n) })
		means, spreads = append(means, sum/n), append(spreads, square/n)
	}
	return means, spreads
}

// adam is the t-th step of Adam, or of AdamW.
func adam(c *computed, t float64, decoupled bool, at func(name string, i int) float64, n int) [][]float64 {
	lr, b1, b2, decay := c.number("lr", 0), c.number("beta1", 0), c.number("beta2", 0), c.number("weight_decay", 0)
	out := make([][]float64, 4)
	for i := range n {
		p, g := at("param", i), at("param_grad", i)
		if decoupled {
			p *= 1 - lr*decay
		} else {
			g += decay * p
		}
		m, v, most := b1*at("exp_avg", i)+(1-b1)*g, b2*at("exp_avg_sq", i)+(1-b2)*g*g, at("max_exp_avg_sq", i)
		top := v
		if c.truth("amsgrad") {
			most = max(most, v)
			top = most
		}
		p -= lr / (1 - math.Pow(b1, t)) * m / (math.Sqrt(top)/math.Sqrt(1-math.Pow(b2, t)) + c.number("eps", 0))
		for k, x := range []float64{p, m, v, most} {
			out[k] = append(out[k], x)
		}
	}
	return out
}

// suppressed is nms, box by box.
func suppressed(c *computed) [][]float64 {
	order := make([]int, c.size("scores")[0])
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return map[bool]int{true: -1, false: 1}[c.at("scores", a) > c.at("scores", b)] * map[bool]int{true: 0, false: 1}[c.at("scores", a) == c.at("scores", b)]
	})
	area := func(i int) float64 {
		return (c.at("boxes", i, 2) - c.at("boxes", i, 0)) * (c.at("boxes", i, 3) - c.at("boxes", i, 1))
	}
	var kept []float64
	for _, i := range order {
		hidden := slices.ContainsFunc(kept, func(k float64) bool {
			j := int(k)
			side := func(x int) float64 {
				return max(0, min(c.at("boxes", i, x+2), c.at("boxes", j, x+2))-max(c.at("boxes", i, x), c.at("boxes", j, x)))
			}
			both := side(0) * side(1)
			return both/(area(i)+area(j)-both) > c.number("iou_threshold", 0)
		})
		if !hidden {
			kept = append(kept, float64(i))
		}
	}
	return [][]float64{kept}
}

// pooled is roi_align, sample by sample, as torchvision's kernel takes them.
func pooled(c *computed) [][]float64 {
	s, rois := c.size("input"), c.size("boxes")[0]
	high, across := int(c.number("output_size", 0)), int(c.number("output_size", 0))
	if n := c.numbers("output_size"); len(n) == 2 {
		high, across = n[0], n[1]
	}
	offset := 0.0
	if c.truth("aligned") {
		offset = 0.5
	}
	var out []float64
	for k := range rois {
		image := int(c.at("boxes", k, 0))
		edge := func(i int) float64 { return c.at("boxes", k, i)*c.number("spatial_scale", 1) - offset }
		wide, tall := edge(3)-edge(1), edge(4)-edge(2)
		if !c.truth("aligned") {
			wide, tall = max(wide, 1), max(tall, 1)
		}
		nx, ny := int(c.number("sampling_ratio", 0)), int(c.number("sampling_ratio", 0))
		if nx <= 0 {
			nx, ny = int(math.Ceil(wide/float64(across))), int(math.Ceil(tall/float64(high)))
		}
		for ch := range s[1] {
			for ph := range high {
				for pw := range across {
					sum := 0.0
					for iy := range max(ny, 0) {
						for ix := range max(nx, 0) {
							y := edge(2) + tall/float64(high)*(float64(ph)+(float64(iy)+0.5)/float64(ny))
							x := edge(1) + wide/float64(across)*(float64(pw)+(float64(ix)+0.5)/float64(nx))
							sum += sampleAt(c, image, ch, y, x, s[2], s[3])
						}
					}
					out = append(out, sum/float64(max(nx*ny, 1)))
				}
			}
		}
	}
	return [][]float64{out}
}

func sampleAt(c *computed, image, ch int, y, x float64, h, w int) float64 {
	if y < -1 || y > float64(h) || x < -1 || x > float64(w) {
		return 0
	}
	corner := func(v float64, n int) (low, high int, rest float64) {
		v = max(v, 0)
		if int(v) >= n-1 {
			return n - 1, n - 1, 0
		}
		return int(v), int(v) + 1, v - math.Floor(v)
	}
	y0, y1, fy := corner(y, h)
	x0, x1, fx := corner(x, w)
	p := func(y, x int) float64 { return c.at("input", image, ch, y, x) }
	return (1-fy)*((1-fx)*p(y0, x0)+fx*p(y0, x1)) + fy*((1-fx)*p(y1, x0)+fx*p(y1, x1))
}

// TestDefinitions holds the compositions, and their gradients, to loops that know nothing of
// them.
func TestDefinitions(t *testing.T) {
	src, err := os.ReadFile("../../../conform/testdata/functions.py")
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Load("functions.py", src)
	if err != nil {
		t.Fatal(err)
	}
	seen, differentiated := map[string]int{}, map[string]int{}
	for c := range cfg.Cases() {
		define := definitions[c.Function]
		p, err := diopi.Program(c, 5)
		if err != nil {
			t.Errorf("%v", err)
			continue
		}
		if define == nil || slices.ContainsFunc(p.Inputs, func(in program.Input) bool { return in.DType == tensor.F16 }) {
			continue
		}
		seen[c.Function]++
		one := &computed{t: t, c: c, p: p, in: map[string]*tensor.Tensor{}, para: &config.Dict{}}
		if para, ok := c.Item.Get("para").(*config.Dict); ok {
			one.para = para
		}
		job := backend.NewJob(p)
		for i, in := range p.Inputs {
			one.in[strings.TrimRight(in.Name, "_")] = job.Inputs[i]
		}
		got := one.hold(define(one), job)
		if got != nil && len(p.Backward) > 0 && differentiated[c.Function] < 2 {
			differentiated[c.Function]++
			one.holdGradients(define, job, got)
		}
	}
	if len(differentiated) < 7 {
		t.Errorf("gradients were held to the definitions of %v alone", differentiated)
	}
	for name := range definitions {
		if seen[name] == 0 {
			t.Errorf("no case of %s was held to its definition", name)
		}
	}
}

// hold compares what native computes, which it returns, with what it is by definition.
func (c *computed) hold(want [][]float64, job *backend.Job) *backend.Outcome {
	o, err := native.New(ops.Table(), nn.Modules()).Run(c.t.Context(), job)
	if err != nil || o.Status != backend.OK {
		c.t.Errorf("%s: %v %s", c.c.Name, err, o.Message)
		return nil
	}
	got, err := diopi.Outputs(c.p, func(i int) []*tensor.Tensor { return []*tensor.Tensor{o.Values[i].Tensor} })
	if err != nil {
		c.t.Fatal(err)
	}
	for k, row := range want {
		if k >= len(got) || got[k] == nil {
			continue // it is what it was
		}
		if got[k].Len() != len(row) {
			c.t.Errorf("%s: output %d has %d elements, want %d", c.c.Name, k, got[k].Len(), len(row))
			continue
		}
		for i, w := range row {
			if g := real(got[k].At(i)); math.Abs(g-w) > 1e-4*(1+math.Abs(w)) {
				c.t.Errorf("%s: output %d element %d is %v, want %v", c.c.Name, k, i, g, w)
				break
			}
		}
	}
	return o
}

// holdGradients compares gradients that native computes with the differences of the
// definition between two neighbours, of a few elements of each input that wants one.
func (c *computed) holdGradients(define func(*computed) [][]float64, job *backend.Job, got *backend.Outcome) {
	loss := func() (sum float64) {
		rows := define(c)
		for _, b := range c.p.Backward {
			at, ok := diopi.Position(string(b.Value))
			if !ok || at >= len(rows) {
				c.t.Fatalf("%s differentiates %s, which no definition gives", c.c.Name, b.Value)
			}
			for i, v := range b.Cotangent.Cotangent(len(rows[at])) {
				sum += v * rows[at][i]
			}
		}
		return sum
	}
	for i, in := range c.p.Inputs {
		if !in.RequiresGrad {
			continue
		}
		name := strings.TrimRight(in.Name, "_")
		x, grad := job.Inputs[i].Convert(tensor.F64), got.Grad(in.Name)
		c.in[name] = x
		for k := range 3 {
			at := (k*7919 + 13) % x.Len()
			was := x.At(at)
			const step = 1e-4
			x.Set(at, was+step)
			above := loss()
			x.Set(at, was-step)
			want := (above - loss()) / (2 * step)
			x.Set(at, was)
			if g := real(grad.At(at)); math.Abs(g-want) > 1e-4*(1+math.Abs(want)) {
				c.t.Errorf("%s: the gradient of %s at element %d is %v, want %v", c.c.Name, in.Name, at, g, want)
			}
		}
		c.in[name] = job.Inputs[i]
	}
}
