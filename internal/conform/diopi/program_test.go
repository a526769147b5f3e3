package diopi

import (
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"

	"plumb/internal/conform/config"
	"plumb/program"
	"plumb/tensor"
)

const programConfig = `
diopi_configs = {
    'plain': dict(name=['add'], interface=['torch'], is_inplace=True, dtype=[np.float32, np.uint8],
        para=dict(alpha=[2]),
        tensor_para=dict(args=[dict(ins=['input'], shape=((2, 3),), requires_grad=[False], no_contiguous=[True]),
                               dict(ins=['other'], shape=((3, 1),), gen_fn='Genfunc.randint')])),
    'grad': dict(name=['relu'], is_inplace=True, tensor_para=dict(dtype=[np.float64], gen_fn='Genfunc.rand',
        args=[dict(ins=['input'], shape=((4, 3),), stride=((1, 5),), requires_grad=[True])])),
    'method': dict(name=['expand'], interface=['torch.Tensor'], para=dict(size=[(2, -1)]),
        tensor_para=dict(args=[dict(ins=['input'], shape=((3,),), dtype=[np.complex64])])),
    'list': dict(name=['cat'], interface=['torch'], para=dict(dim=[-1]),
        tensor_para=dict(args=[dict(ins=['tensors'], shape=((2, 1),), dtype=[np.int32], gen_fn='Genfunc.mask',
                                    gen_policy='gen_tensor_list', gen_num_range=[3, 3])])),
    'none': dict(name=['batch_norm'], para=dict(training=[True], dtype=[np.float16]),
        tensor_para=dict(dtype=[np.float32], args=[dict(ins=['input'], shape=((2, 2),), gen_fn=dict(fn='Genfunc.uniform', low=-1, high=2)),
                               dict(ins=['running_mean'], shape=(None,)), dict(ins=['tensor'], shape=((), ), gen_fn='Genfunc.empty')])),
    'value': dict(name=['index_put'], interface=['CustomizedTest'], is_inplace=True, para=dict(accumulate=[True]),
        tensor_para=dict(args=[dict(ins=['input'], shape=((3,),), dtype=[np.float32], gen_fn='Genfunc.positive'),
                               dict(ins=['indices1'], value=([1, 0, 1],), dtype=[np.bool_], gen_policy='gen_tensor_by_value'),
                               dict(ins=['values'], shape=((2,),), dtype=[np.float32], gen_fn='Genfunc.ones')])),
    'cut': dict(name=['slice_op'], interface=['CustomizedTest'], para=dict(index=[slice(0, 3, 2)], dim=[-1]),
        tensor_para=dict(args=[dict(ins=['input'], shape=((2, 4),), dtype=[np.int32], gen_fn=dict(fn='Genfunc.randn_int', low=-4, high=4))])),
    'parts': dict(name=['sort'], interface=['torch'], requires_backward=[0],
        tensor_para=dict(args=[dict(ins=['input'], shape=((5,),), dtype=[np.float32], requires_grad=[True])])),
    'definite': dict(name=['cholesky_ex'], interface=['torch.linalg'],
        tensor_para=dict(args=[dict(ins=['input'], shape=((3, 4),), dtype=[np.float32], gen_fn='Genfunc.sym_mat')])),
    'thin': dict(name=['spmm'], interface=['torch'], sparse_format='csr',
        tensor_para=dict(dtype=[np.float32], args=[dict(ins=['input'], shape=((4, 4),), sparse=[True]), dict(ins=['mat2'], shape=((4, 2),))])),
    'drawn': dict(name=['bernoulli'], no_output_ref=True, is_inplace=True, para=dict(p=[None]),
        tensor_para=dict(args=[dict(ins=['input'], shape=((9,),), dtype=[np.float32], gen_fn='Genfunc.rand')])),
    'module': dict(name=['BatchNorm1d'], interface=['torch.nn'], train=False, para=dict(num_features=[2], momentum=[None]),
        tensor_para=dict(args=[dict(ins=['input'], shape=((3, 2),), dtype=[np.float64], gen_fn=dict(fn='Genfunc.uniform', low=-1, high=1, kinks=True, special=['nan', 'zeros']))])),
    'states': dict(name=['LSTM'], interface=['torch.nn'], call=['input', 'hx'], requires_backward=[0], para=dict(input_size=[2], hidden_size=[3]),
        tensor_para=dict(dtype=[np.float32], args=[dict(ins=['hx'], shape=(((1, 1, 3), (1, 1, 3)),), gen_policy='gen_tensor_list_diff_shape'),
                               dict(ins=['input'], shape=((4, 1, 2),), requires_grad=[True])])),
    'step': dict(name=['sgd'], interface=['CustomizedTest'], para=dict(lr=[0.5], momentum=[0.25], nesterov=[False], weight_decay=[0], dampening=[0]),
        tensor_para=dict(dtype=[np.float32], args=[dict(ins=['param', 'param_grad', 'buf'], shape=((2,),))])),
}
`

// The programs of the config by case; the in-place variant follows behind "in place".
var programTexts = map[string]string{
	"plain::add_0.pth": `
		input = tensor((3, 2), torch.float32, normal(0.0, 1.0, key=K), strides=(1, 3))
		other = tensor((3, 1), torch.float32, integer(0.0, 10.0, key=K))
		result = torch.add(input=input, other=other, alpha=2)
		in place
		input = tensor((3, 2), torch.float32, normal(0.0, 1.0, key=K), strides=(1, 3))
		other = tensor((3, 1), torch.float32, integer(0.0, 10.0, key=K))
		result = input.add_(other=other, alpha=2)`,
	"module::BatchNorm1d_0.pth": `
		input = tensor((3, 2), torch.float64, uniform(-1.0, 1.0, key=K, kinks=True, special=["zeros", "nan"]))
		step0 = torch.nn.BatchNorm1d(num_features=2, momentum=None)
		step1 = step0.eval()
		result = step1(input)`,
	"states::LSTM_0.pth": `
		hx0 = tensor((1, 1, 3), torch.float32, normal(0.0, 1.0, key=K))
		hx1 = tensor((1, 1, 3), torch.float32, normal(0.0, 1.0, key=K))
		input = tensor((4, 1, 2), torch.float32, normal(0.0, 1.0, key=K), requires_grad=True)
		step0 = torch.nn.LSTM(input_size=2, hidden_size=3)
		result = step0(input, hx=(hx0, hx1))
		step2 = result[0]
		step2.backward(uniform(-1.0, 1.0, key=K))`,
	"grad::relu_0.pth": `
		input = tensor((4, 3), torch.float64, uniform(0.0, 1.0, key=K), strides=(1, 5), requires_grad=True)
		result = torch.nn.functional.relu(input=input)
		result.backward(uniform(-1.0, 1.0, key=K))
		in place
		input = tensor((4, 3), torch.float64, uniform(0.0, 1.0, key=K), strides=(1, 5))
		result = torch.nn.functional.relu(input=input, inplace=True)`,
	"method::expand_0.pth": `
		input = tensor((3,), torch.complex64, normal(0.0, 1.0, key=K, real=True))
		result = input.expand(size=(2, -1))`,
	"list::cat_0.pth": `
		tensors0 = tensor((2, 1), torch.int32, integer(0.0, 2.0, key=K))
		tensors1 = tensor((2, 1), torch.int32, integer(0.0, 2.0, key=K))
		tensors2 = tensor((2, 1), torch.int32, integer(0.0, 2.0, key=K))
		result = torch.cat(tensors=[tensors0, tensors1, tensors2], dim=-1)`,
	"none::batch_norm_0.pth": `
		input = tensor((2, 2), torch.float32, uniform(-1.0, 2.0, key=K))
		tensor_ = tensor((), torch.float32, constant(-77.0))
		result = torch.nn.functional.batch_norm(input=input, running_mean=None, tensor=tensor_, training=True, dtype=torch.float16)`,
	"value::index_put_0.pth": `
		input = tensor((3,), torch.float32, folded(0.0, 1.0, key=K))
		indices1 = tensor((3,), torch.bool, [True, False, True])
		values = tensor((2,), torch.float32, constant(1.0))
		result = torch.index_put(input, [indices1], values, accumulate=True)
		in place
		input = tensor((3,), torch.float32, folded(0.0, 1.0, key=K))
		indices1 = tensor((3,), torch.bool, [True, False, True])
		values = tensor((2,), torch.float32, constant(1.0))
		result = input.index_put_([indices1], values, accumulate=True)`,
	"cut::slice_op_0.pth": `
		input = tensor((2, 4), torch.int32, integer(-4.0, 4.0, key=K))
		result = input[:, 0:3:2]`,
	"parts::sort_0.pth": `
		input = tensor((5,), torch.float32, normal(0.0, 1.0, key=K), requires_grad=True)
		result = torch.sort(input=input)
		step1 = result[0]
		step1.backward(uniform(-1.0, 1.0, key=K))`,
	"definite::cholesky_ex_0.pth": `
		input = tensor((3, 3), torch.float32, gram(0.001, 4.0, key=K))
		result = torch.linalg.cholesky_ex(input=input)`,
	"thin::spmm_0.pth": `
		input = tensor((4, 4), torch.float32, normal(0.0, 1.0, key=K, density=0.2))
		mat2 = tensor((4, 2), torch.float32, normal(0.0, 1.0, key=K))
		result = torch.mm(input, mat2)`,
	"drawn::bernoulli_0.pth": `
		input = tensor((9,), torch.float32, uniform(0.0, 1.0, key=K))
		result = torch.bernoulli(input=input)
		in place
		input = tensor((9,), torch.float32, uniform(0.0, 1.0, key=K))
		result = input.bernoulli_(input)`,
	"step::sgd_0.pth": `
		param = tensor((2,), torch.float32, normal(0.0, 1.0, key=K))
		param_grad = tensor((2,), torch.float32, normal(0.0, 1.0, key=K))
		buf = tensor((2,), torch.float32, normal(0.0, 1.0, key=K))
		step0 = torch.mul(buf, 0.25)
		result1 = torch.add(step0, param_grad, alpha=1.0)
		result0 = torch.add(param, result1, alpha=-0.5)`,
}

func programCases(t *testing.T) map[string]*config.Case {
	t.Helper()
	c, err := config.Load("p.py", []byte(programConfig))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]*config.Case{}
	for one := range c.Cases() {
		out[one.Name] = one
	}
	return out
}

// body is a program's text without what is the same for all, keys as K.
func body(p *program.Program) string {
	_, text, _ := strings.Cut(p.String(), "case(")
	_, text, _ = strings.Cut(text, "\n")
	return keyOf.ReplaceAllString(text, "key=K")
}

var keyOf = regexp.MustCompile(`key=[0-9]+`)

func TestProgram(t *testing.T) {
	cases := programCases(t)
	for name, want := range programTexts {
		c := cases[name]
		if c == nil {
			t.Errorf("there is no case %s", name)
			continue
		}
		p, err := Program(c, 7)
		if err != nil {
			t.Errorf("%v", err)
			continue
		}
		got := body(p)
		in, ok, err := InPlace(c, 7)
		if err != nil {
			t.Errorf("%v", err)
		}
		if ok {
			got += "in place\n" + body(in)
			for i := range in.Inputs {
				if in.Inputs[i].Fill.Key != p.Inputs[i].Fill.Key {
					t.Errorf("%s: the in-place variant has other inputs", name)
				}
			}
		}
		if want = strings.ReplaceAll(strings.TrimPrefix(want, "\n"), "\t", "") + "\n"; got != want {
			t.Errorf("%s:\ngot\n%swant\n%s", name, got, want)
		}
		back, err := program.Parse("", p.String())
		if err != nil || back.ID() != p.ID() {
			t.Errorf("%s: the text does not read back: %v", name, err)
		}
	}
}

// The key of an input depends on the seed, the case and the argument alone.
func TestProgramKeys(t *testing.T) {
	cases := programCases(t)
	key := func(name string, seed uint64, i int) uint64 {
		p, err := Program(cases[name], seed)
		if err != nil {
			t.Fatal(err)
		}
		return p.Inputs[i].Fill.Key
	}
	keys := []uint64{
		key("plain::add_0.pth", 1, 0), key("plain::add_0.pth", 2, 0), key("plain::add_0.pth", 1, 1),
		key("plain::add_1.pth", 1, 0), key("list::cat_0.pth", 1, 0), key("list::cat_0.pth", 1, 1),
	}
	if again := key("plain::add_0.pth", 1, 0); again != keys[0] {
		t.Errorf("the key is %d, and %d the second time", keys[0], again)
	}
	if slices.Sort(keys); len(slices.Compact(keys)) != 6 {
		t.Errorf("keys repeat: %v", keys)
	}
	if keys := key("plain::add_0.pth", 1, 0); keys != 14370126934343422462 {
		t.Errorf("the key of seed 1 is %d: every recorded baseline has other inputs now", keys)
	}
}

func TestUint8BeginsAt0(t *testing.T) {
	g := generator{a: &config.Dict{}, b: &build{c: &config.Case{}}}
	fn := &config.Dict{}
	fn.Set("fn", config.String("Genfunc.randint"))
	fn.Set("low", config.Int(-4))
	fn.Set("high", config.Int(4))
	g.a.Set("gen_fn", fn)
	for d, want := range map[tensor.DType]float64{tensor.U8: 0, tensor.I8: -4} {
		if f, err := g.fill(d); err != nil || f.Lo != want || f.Hi != 4 {
			t.Errorf("randint of %s is %s, %v", d, f.String(), err)
		}
	}
	fn.Set("fn", config.String("Genfunc.randn_int"))
	for d, want := range map[tensor.DType]program.Dist{tensor.I32: program.Integer, tensor.I64: program.Normal} {
		if f, err := g.fill(d); err != nil || f.Dist != want {
			t.Errorf("randn_int of %s is %s, %v", d, f.String(), err)
		}
	}
}

func TestUntranslated(t *testing.T) {
	for src, want := range map[string]string{
		`dict(name=['paged_attention'], interface=['CustomizedTest'], tensor_para=dict(args=[dict(ins=['q'], shape=((2,),), dtype=[np.float32])]))`:                              "needs a tensor query",
		`dict(name=['mystery'], interface=['CustomizedTest'], tensor_para=dict(args=[dict(ins=['q'], shape=((2,),), dtype=[np.float32])]))`:                                      "CustomizedTest.mystery is not known",
		`dict(name=['sgd'], interface=['CustomizedTest'], tensor_para=dict(args=[dict(ins=['param'], shape=((2,),), dtype=[np.float32])]))`:                                      "needs a tensor param_grad",
		`dict(name=['relu'], tensor_para=dict(args=[dict(ins=['input'], shape=((2,),), dtype=[np.uint16])]))`:                                                                    "PyTorch has no dtype",
		`dict(name=['relu'], tensor_para=dict(args=[dict(ins=['input'], shape=((2,),), dtype=[np.int32], requires_grad=[True])]))`:                                               "cannot require a gradient",
		`dict(name=['sort'], interface=['torch'], requires_backward=[3], tensor_para=dict(args=[dict(ins=['input'], shape=((2,),), dtype=[np.float32], requires_grad=[True])]))`: "requires_backward",
	} {
		c, err := config.Load("p.py", []byte("diopi_configs = {'x': "+src+"}"))
		if err != nil {
			t.Errorf("%s: %v", src, err)
			continue
		}
		for one := range c.Cases() {
			_, err := Program(one, 1)
			var u *Untranslated
			if !errors.As(err, &u) || !strings.Contains(u.Reason, want) {
				t.Errorf("%s: %v, want %q", src, err, want)
			}
		}
	}
}

func TestManual(t *testing.T) {
	cases := programCases(t)
	if m := Manual(cases["drawn::bernoulli_0.pth"]); m != "bernoulli" {
		t.Errorf("bernoulli is checked by %q", m)
	}
	if m := Manual(cases["plain::add_0.pth"]); m != "" {
		t.Errorf("add is checked by %q", m)
	}
	if got := Changes(cases["none::batch_norm_0.pth"]); !slices.Equal(got, []string{"running_mean", "running_var"}) {
		t.Errorf("batch_norm changes %v", got)
	}
}

// TestSparse: the variant with sparse arguments has the inputs of the case.
func TestSparse(t *testing.T) {
	cases := programCases(t)
	p, ok, err := Sparse(cases["thin::spmm_0.pth"], 7)
	if err != nil || !ok {
		t.Fatalf("no variant: %v", err)
	}
	want := "input = tensor((4, 4), torch.float32, normal(0.0, 1.0, key=K, density=0.2))\nmat2 = tensor((4, 2), torch.float32, normal(0.0, 1.0, key=K))\n" +
		"step0 = input.to_sparse_csr()\nresult = torch.mm(step0, mat2)\n"
	if got := body(p); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	if _, ok, _ := Sparse(cases["plain::add_0.pth"], 7); ok {
		t.Error("add has a sparse variant")
	}
}
