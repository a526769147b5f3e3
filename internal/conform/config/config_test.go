package config

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var rewrite = flag.Bool("rewrite", false, "rewrite the goldens")

func load(t *testing.T, name string) *Config {
	t.Helper()
	src, err := os.ReadFile(filepath.Join("..", "..", "..", "conform", "testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	c, err := Load(name, src)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func lines(c *Config) string {
	var b []byte
	for one := range c.Cases() {
		b = append(one.AppendJSON(b), '\n')
	}
	return string(b)
}

// TestSmallConfig expands our own config, from both languages.
func TestSmallConfig(t *testing.T) {
	golden := filepath.Join("..", "..", "..", "conform", "testdata", "small.jsonl")
	if *rewrite {
		if err := os.WriteFile(golden, []byte(lines(load(t, "small.py"))), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"small.py", "small.yaml"} {
		if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(lines(load(t, name)), "\n")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestCaseNames(t *testing.T) {
	var got []string
	for one := range load(t, "small.py").Cases() {
		got = append(got, one.Name)
	}
	want := strings.Fields(`
		relu::relu_0.pth relu::relu_1.pth relu::relu_2.pth relu::sigmoid_0.pth relu::sigmoid_1.pth relu::sigmoid_2.pth
		batch_norm::batch_norm_0.pth batch_norm::batch_norm_1.pth batch_norm::batch_norm_2.pth batch_norm::batch_norm_3.pth
		spmm::spmm_0.pth spmm::spmm_1.pth spmm::spmm_2.pth spmm::spmm_3.pth
		spmm::spmm_4.pth spmm::spmm_5.pth spmm::spmm_6.pth spmm::spmm_7.pth
		arange::arange_0.pth arange::arange_1.pth stack::stack_0.pth stack::stack_1.pth`)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestTolerance tells the cases whose tolerances are those of half precision.
func TestTolerance(t *testing.T) {
	for one := range load(t, "small.py").Cases() {
		atol, rtol := one.Tolerance()
		got := [3]any{one.Half, atol, rtol}
		want := [3]any{false, 1e-5, 1e-5}
		switch one.Name {
		case "batch_norm::batch_norm_0.pth", "batch_norm::batch_norm_1.pth":
			want = [3]any{false, 1e-3, 1e-5}
		case "batch_norm::batch_norm_2.pth", "batch_norm::batch_norm_3.pth":
			want = [3]any{true, 1e-2, 0.1}
		case "stack::stack_0.pth", "stack::stack_1.pth":
			want = [3]any{true, 1e-2, 5e-2}
		}
		if got != want {
			t.Errorf("%s: %v, want %v", one.Name, got, want)
		}
	}
}

// wrap puts the text of a dict of one entry into a config.
func wrap(entry string) string {
	if strings.HasPrefix(entry, "file:") {
		return strings.TrimPrefix(entry, "file:")
	}
	return "diopi_configs = {'e': dict(\n" + entry + "\n)}"
}

// TestErrors wants the position, the entry and the key of each mistake.
func TestErrors(t *testing.T) {
	for _, c := range []struct{ src, want string }{
		{"file:", "c.py: no variable holds a dict of configs; want diopi_configs = {...}"},
		{"file:a = {}\nb = {}\nnet_config = {}\nten_config = {}", "c.py: which dict is the config, a or b or net_config or ten_config?"},
		{"file:a = {}\nnet_config = {'e': 3}", "c.py:2:20: e: want a dict, not 3"},
		{"file:a = {}\nb = {}", "c.py: which dict is the config, a or b? Name it diopi_configs"},
		{"file:a = {'e': 3}", "c.py:1:11: e: want a dict, not 3"},
		{"file:a = {'e': ", "c.py:1:11: got end of file, want primary expression"},
		{"file:a = {'e': unknown}", "c.py:1:11: undefined: unknown"},
		{"file:for x in []: pass", "c.py:1:1: a config consists of imports and of NAME = value"},
		{"file:a = 'x", "c.py:1:5: a string has no closing quote"},
		{"file:a = [].append", "c.py:1:5: this expression has no place in a config: want literals, dict(...), slice(...), float(...) and np.NAME"},
		{"file:a = list(range(9))", "c.py:1:5: list has no place in a config"},
		{"file:a = np.float80", "c.py:1:7: np has no float80; it has"},
		{"file:a = {1: 2}", "c.py:1:6: the key of a dict has to be a string literal"},
		{"file:np = 3", "c.py:1:1: np cannot be assigned"},
		{"file:a = {'e': [1] * 9999999}", "c.py:1:15: this makes more than 2097152 elements"},
		{"file:a = {'e': [0 for i in range(9999999)]}", "c.py:1:28: this makes more than 2097152 elements"},
		{"file:a = {'e': [[0 for j in range(2000)] for i in range(2000)]}", "too many steps"},
		{"file:a = {'e': range(3)}", "c.py: a range is no value of a config"},
		{"file:range = 3", "c.py:1:1: range cannot be assigned"},
		{"file:a = {'e': [i for range in [3]]}", "c.py:1:18: range cannot be assigned"},
		{"file:a = {'e': 9223372036854775808}", "c.py: the integer 9223372036854775808 needs more than 64 bits"},
		{"file:a = " + strings.Repeat("[", 100), "c.py:1:64: brackets are nested too deep"},
		{"file:" + strings.Repeat("#", 4<<20+1), "c.py: the config is larger than 4 MiB"},
		{"file:x = [1]\n" + strings.Repeat("x = [x, x]\n", 40) + "a = {'e': x}", "c.py: the config holds more than 2097152 values"},
		{"file:x = [1]\n" + strings.Repeat("x = [x]\n", 100) + "a = {'e': x}", "c.py: the config is nested too deep"},
		{"name=['f'], tensor_para=dict(args=[dict(shape=[()], dtype=[np.int8]), dict(shape=[()], dtype=[np.int8] * 2), dict(ins=['b'], shape=[()], dtype=[np.int8] * 3)])", "c.py:2:35: e: tensor_para.args: b has 3 entries of dtype where input has 2"},
		{"file:x = 3\n" + strings.Repeat("x = x * x\n", 40) + "a = {'e': x}", "c.py:9:7: this integer needs more than 256 bits"},
		{"file:x = [1] * 1000\na = {'e': [1 for a in x for b in x for c in x]}", "too many steps"},
		{"file:a = {'e': dict(name=['f'], para=dict(a=[1] * 1048577))}", "c.py:1:40: e: para.a: the entry expands to more than 1048576 cases"},
		{"file:a = " + strings.Repeat("-", 1000), "c.py:1:303: an expression has too many parts"},
		{"", "c.py:1:23: e: name is missing: want the list of the functions"},
		{"name='f'", `c.py:2:6: e: name: want a list of strings, not "f"`},
		{"name=['f', 3]", `c.py:2:12: e: name[1]: want a string, not 3`},
		{"name=['f'], atol='1'", `c.py:2:18: e: atol: want a number that is not negative, not "1"`},
		{"name=['f'], para=dict(a=[1], b=[1, 2])", "c.py:2:32: e: para.b: 2 values beside 1 of a: every column of para is as long as the others"},
		{"name=['f'], para=dict(a=1)", "c.py:2:25: e: para.a: want a list or a tuple, not 1"},
		{"name=['f'], para=dict(a=[Skip(1)])", "c.py:2:26: e: para.a[0]: Skip belongs to device rules"},
		{"name=['f'], tensor_para=dict(args=[dict(ins=['x'])])", "c.py:2:36: e: tensor_para.args[0]: the argument has neither shape nor value"},
		{"name=['f'], tensor_para=dict(args=[dict(ins='x', shape=[])])", `c.py:2:45: e: tensor_para.args[0].ins: want a list of strings, not "x"`},
		{"name=['f'], tensor_para=dict(args=[dict(shape=[(2, -1)])])", "c.py:2:52: e: tensor_para.args[0].shape[0][1]: want None, a size or a tuple of sizes, not -1"},
		{"name=['f'], tensor_para=dict(args=[dict(shape=3)])", "c.py:2:47: e: tensor_para.args[0].shape: want a list, a tuple, a bool or a string, not 3"},
		{"name=['f'], dtype=['float32'], tensor_para=dict(args=[dict(shape=[()])])", `c.py:2:20: e: dtype[0]: want a dtype such as np.float32, not "float32"`},
		{"name=['f'], tensor_para=dict(args=[dict(shape=[(), ()]), dict(ins=['b'], shape=[(), (), ()])])", "e: tensor_para.args: b has 3 entries of shape, and only"},
		{"name=['f'], tensor_para=dict(args=[dict(shape=[(), (), ()]), dict(ins=['b'], shape=[(), ()])])", "c.py:2:35: e: tensor_para.args: b has 2 entries of shape where input has 3"},
		{"name=['f'], para=dict(a=[1, 2]), tensor_para=dict(args=[dict(shape=[()])])", "c.py:2:56: e: tensor_para.args: input has 1 entries of shape where para has 2"},
		{"name=['f'], tensor_para=dict(args=[dict(shape=[(2, 2)], stride=[(1,)])])", `c.py:2:35: e: tensor_para.args: input: entry 0 of stride: {"$tuple": [1]} does not fit the shape`},
		{"name=['f'], tensor_para=dict(args=[dict(shape=[(3, 2)], stride=[(1, 2)])])", `c.py:2:35: e: tensor_para.args: input: entry 0 of stride: {"$tuple": [1, 2]} lets elements overlap`},
		{"name=['f'], tensor_para=dict(args=[dict(shape=[(3,)]), dict(ins=['b'], shape=[(3,)], stride=[(1,)])])", "c.py:2:35: e: tensor_para.args: b has stride, and the first argument input has none"},
		{"name=['f'], tensor_para=dict(args=[dict(shape=[(3,)], gen_policy='gen_tensor_list')])", "c.py:2:36: e: tensor_para.args[0].gen_num_range: gen_tensor_list wants [low, high], not []"},
		{"name=['f'], tensor_para=dict(args=[dict(shape=[(3,)], gen_fn=3)])", "c.py:2:62: e: tensor_para.args[0].gen_fn: want a generator such as 'Genfunc.randn' or dict(fn=..., low=..., high=...), not 3"},
		{"name=['f'], para=dict(a=[1]), tensor_para=dict(args=[dict(shape=[(3,)], sparse=[True, False])])", "c.py:1:23: e: sparse makes 2 groups of tensors where para has 1"},
		{"name=['f'], tensor_para=dict(args=[dict(ins=['" + strings.Repeat("a','", 30) + "b'], shape=[(3,)], sparse=[True, False])])", "c.py:1:23: e: the entry expands to more than 1048576 cases"},
	} {
		conf, err := Load("c.py", []byte(wrap(c.src)))
		got := "no error"
		if err != nil {
			got = err.Error()
		} else if len(conf.Warnings) > 0 {
			got = conf.Warnings[0].Error()
		}
		if !strings.Contains(got, c.want) {
			t.Errorf("%.120s:\ngot  %s\nwant %s", c.src, got, c.want)
		}
	}
}

func TestYAMLErrors(t *testing.T) {
	for _, c := range []struct{ src, want string }{
		{"", "c.yaml: the document is empty"},
		{"a: {}\n---\nb: {}", "c.yaml: want one document, not 2"},
		{strings.Repeat("#", 1<<20+1), "c.yaml: the config is larger than 1 MiB"},
		{strings.Repeat("k: 1\n", 40000), "c.yaml:32769:2: the config has more than 32768 keys"},
		{"- 1", "c.yaml:1:1: want a mapping of entries, not [1]"},
		{"e: [", "c.yaml:1:4: "},
		{"e:\n  name: f", `c.yaml:2:9: e: name: want a list of strings, not "f"`},
		{"e: &a {}\nf: *a", "a config has no anchors, aliases, tags or directives"},
		{"e: !x {}", "a config has no anchors, aliases, tags or directives"},
		{"e: {}\ne: {}", "c.yaml:2:1: "},
		{"e: {1: 2}", "the key of a mapping has to be a string"},
		{"e:\n  name: [f]\n  para:\n    a: [$np: float80]", `c.yaml:4:9: {"$np": "float80"} stands for no value`},
		{"e:\n  name: [f]\n  tensor_para:\n    args:\n      - shape: [[2]]\n        dtype: [float80]", `c.yaml:6:17: e: tensor_para.args[0].dtype[0]: want a dtype such as np.float32, not "float80"`},
		{"a: " + strings.Repeat("[", 100), "c.yaml:1:64: the YAML is nested too deep"},
		{strings.Repeat("- ", 100), "the YAML is nested too deep"},
	} {
		_, err := Load("c.yaml", []byte(c.src))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.60s:\ngot  %v\nwant %s", c.src, err, c.want)
		}
	}
}

// TestWarnings tells of what DIOPI ignores without a word.
func TestWarnings(t *testing.T) {
	const arg = "tensor_para=dict(args=[dict(shape=[(2,)], "
	for _, c := range []struct{ src, want string }{
		{"file:a = {\n'e': 3,\n'e': dict(name=['f'], para=dict(a=[1]))}", `c.py:3:1: the key "e" is in line 2 too: this later one counts`},
		{"name=['f'], approximate=['tanh'], para=dict(a=[1])", "c.py:2:25: e: approximate: the key is ignored"},
		{"name=['f'], tensor_para=dict(genfunc='x', args=[dict(shape=[()])])", "c.py:2:38: e: tensor_para.genfunc: the key is ignored; is gen_fn meant?"},
		{"name=['f'], " + arg + "shapes=[(3,)])])", "c.py:2:62: e: tensor_para.args[0].shapes: the key is ignored; is shape meant?"},
		{"name=['f'], is_inplace=[True], para=dict(a=[1])", "c.py:2:24: e: is_inplace: [true] is not the literal True, and never enables the in-place form"},
		{"name=['f'], no_output_ref=False, para=dict(a=[1])", "c.py:2:27: e: no_output_ref: false skips the reference all the same"},
		{"name=['f'], " + arg + "no_contiguous=[False])])", "e: tensor_para.args[0].no_contiguous: a list that is not empty is true"},
		{"name=['f'], " + arg + "requires_grad=True)])", "e: tensor_para.args[0].requires_grad: true is not [True], and computes no gradient"},
		{"name=['f'], " + arg + "gen_fn='Genfunc.rnd')])", `e: tensor_para.args[0].gen_fn: no generator is named "Genfunc.rnd"`},
		{"name=['f'], " + arg + "gen_policy='list')])", `e: tensor_para.args[0].gen_policy: no policy is named "list"`},
		{"name=['f'], " + arg + "value=[1])])", "e: tensor_para.args[0].shape: value wins over shape"},
		{"name=['f', 'f'], para=dict(a=[1])", "c.py:2:12: e: name[1]: f is named twice; it expands once"},
		{"name=['f']", "c.py:1:23: e: this expands to no case"},
	} {
		conf, err := Load("c.py", []byte(wrap(c.src)))
		if err != nil {
			t.Errorf("%s: %v", c.src, err)
			continue
		}
		if len(conf.Warnings) != 1 || !strings.Contains(conf.Warnings[0].Error(), c.want) {
			t.Errorf("%s:\ngot  %v\nwant %s", c.src, conf.Warnings, c.want)
		}
	}
}

// TestPython is the part of Python that configs may have beyond literals.
func TestPython(t *testing.T) {
	for _, c := range []struct{ src, want string }{
		{"-float('inf')", `{"$float": "-inf"}`},
		{"np.nan", `{"$float": "nan"}`},
		{"1e-5", "1e-05"},
		{"1e16", "1e+16"},
		{"123456789.0", "123456789.0"},
		{"bool(3)", "true"},
		{"[0] * 2 + [1 + 2 * 3]", "[0, 0, 7]"},
		{"7 // 2 if 1 < 2 else 0", "3"},
		{"[x for x in (1, 2) if x != 1]", "[2]"},
		{"[False for i in range(3)]", "[false, false, false]"},
		{"[(i, 2 * j) for i in range(1, 4, 2) for j in range(2)]", `[{"$tuple": [1, 0]}, {"$tuple": [1, 2]}, {"$tuple": [3, 0]}, {"$tuple": [3, 2]}]`},
		{"(lambda *a: [Genfunc.randn for x in a])(1, 2)", `["Genfunc.randn", "Genfunc.randn"]`},
		{"slice(3)", `{"$slice": [null, 3, null]}`},
		{"numpy.bool_", `{"$np": "bool_"}`},
		{"'\u00e9\"<'", `"é\"<"`},
		{"(1, 2)[-1]", "2"},
		{`"""import x
import y"""`, `"import x\nimport y"`},
	} {
		conf, err := Load("c.py", []byte(wrap("name=['f'], para=dict(a=["+c.src+"])")))
		if err != nil {
			t.Errorf("%s: %v", c.src, err)
			continue
		}
		for one := range conf.Cases() {
			if got := string(one.Item.Get("para").(*Dict).Get("a").AppendJSON(nil)); got != c.want {
				t.Errorf("%s: %s, want %s", c.src, got, c.want)
			}
		}
	}
}

func TestOverlaps(t *testing.T) {
	for _, c := range []struct {
		shape, stride []Value
		want          bool
	}{
		{[]Value{Int(2), Int(3), Int(4)}, []Value{Int(12), Int(4), Int(1)}, false},
		{[]Value{Int(3), Int(2)}, []Value{Int(1), Int(3)}, false},
		{[]Value{Int(3), Int(2)}, []Value{Int(1), Int(2)}, true},
		{[]Value{Int(8)}, []Value{Int(0)}, false},
		{[]Value{Int(2), Int(2)}, []Value{Int(0), Int(1)}, false},
		{[]Value{Int(2), Int(2)}, []Value{Int(0), Int(0)}, true},
		{[]Value{Int(0), Int(2)}, []Value{Int(1), Int(1)}, false},
		{[]Value{Int(1 << 40), Int(2)}, []Value{Int(1 << 40), Int(1<<62 + 1)}, true},
	} {
		if got := overlaps(c.shape, c.stride); got != c.want {
			t.Errorf("shape %v, stride %v: %v", c.shape, c.stride, got)
		}
	}
}

// FuzzLoad wants Load to end with a config or an error, and a config to expand
// to lines.
func FuzzLoad(f *testing.F) {
	for _, name := range []string{"small.py", "small.yaml"} {
		src, err := os.ReadFile(filepath.Join("..", "..", "..", "conform", "testdata", name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(src, strings.HasSuffix(name, ".yaml"))
	}
	f.Add([]byte("x = lambda a: [a + a]\ny = {'e': dict(name=['f'], para=dict(a=x([1] * 3)))}"), false)
	f.Add([]byte("import a\nfrom b import (c)\nz = {'e': dict(name=['f'], para=dict(a=[1.5, None, np.inf, slice(1)]))}"), false)
	f.Add([]byte("e:\n  name: [f]\n  tensor_para:\n    args: [{shape: [[2], null]}]"), true)
	f.Fuzz(func(t *testing.T, src []byte, isYAML bool) {
		name := "c.py"
		if isYAML {
			name = "c.yaml"
		}
		c, err := Load(name, src)
		if err != nil {
			if err.Error() == "" {
				t.Error("an error says nothing")
			}
			return
		}
		n := 0
		for one := range c.Cases() {
			if line := one.AppendJSON(nil); bytes.ContainsRune(line, '\n') {
				t.Errorf("a case of two lines: %s", line)
			}
			if n++; n > 100 {
				break
			}
		}
	})
}
