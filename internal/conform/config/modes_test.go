package config

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func only(t *testing.T, src string) []*Case {
	t.Helper()
	c, err := Load("m.py", []byte("d = {"+src+"}"))
	if err != nil {
		t.Fatal(err)
	}
	var out []*Case
	for one := range c.Cases() {
		out = append(out, one)
	}
	return out
}

func TestFilterDType(t *testing.T) {
	m := &Modes{Without: []DType{"float64"}}
	var left []string
	for c := range load(t, "small.py").Cases() {
		if _, skip := m.Apply(c); skip == "" {
			left = append(left, c.Name)
		} else if skip != "--filter-dtype leaves out float64" {
			t.Errorf("%s: %s", c.Name, skip)
		}
	}
	for _, name := range left {
		if strings.HasPrefix(name, "relu") || name >= "spmm::spmm_4" && name < "spmm::spmm_8" {
			t.Errorf("%s has float64", name)
		}
	}
	if len(left) != 22-6-4 {
		t.Errorf("%d cases are left", len(left))
	}
}

func TestChannelsLast(t *testing.T) {
	for _, c := range []struct {
		src   string
		least int
		order []int
		skip  string
	}{
		{"'a': dict(name=['conv2d'], tensor_para=dict(args=[dict(shape=[(2, 3, 4, 5)])]))", 0, []int{0, 2, 3, 1}, ""},
		{"'a': dict(name=['max_pool2d'], tensor_para=dict(args=[dict(shape=[(3, 4, 5)])]))", 0, []int{1, 2, 0}, ""},
		{"'a': dict(name=['max_pool2d'], tensor_para=dict(args=[dict(shape=[(3, 4, 5)])]))", 4, nil, "--nhwc takes 4 to 5 dimensions, and input has 3"},
		{"'a': dict(name=['conv3d'], tensor_para=dict(args=[dict(shape=[(2, 3, 4, 5, 6)])]))", 0, []int{0, 2, 3, 4, 1}, ""},
		{"'a': dict(name=['batch_norm'], tensor_para=dict(args=[dict(shape=[(2, 3, 4)])]))", 0, []int{1, 2, 0}, ""},
		{"'a': dict(name=['adaptive_avg_pool3d'], tensor_para=dict(args=[dict(shape=[(3, 4, 5, 6)])]))", 0, []int{1, 2, 3, 0}, ""},
		{"'a': dict(name=['interpolate'], tensor_para=dict(args=[dict(shape=[(3, 4, 5, 6)])]))", 0, []int{0, 2, 3, 1}, ""},
		{"'a': dict(name=['pad'], tensor_para=dict(args=[dict(shape=[(2, 3, 4, 5, 6)])]))", 0, []int{0, 2, 3, 4, 1}, ""},
		{"'a': dict(name=['pad'], tensor_para=dict(args=[dict(shape=[(1, 2, 3, 4, 5, 6)])]))", 0, nil, "--nhwc takes 3 to 5 dimensions, and input has 6"},
		{"'a': dict(name=['conv3d'], tensor_para=dict(args=[dict(shape=[(3, 4, 5)])]))", 0, nil, "--nhwc has no layout for input of 3 dimensions, where conv3d takes images of 3"},
		{"'a': dict(name=['conv2d'], tensor_para=dict(args=[dict(shape=[(2, 3, 4, 5, 6)])]))", 0, nil, "--nhwc has no layout for input of 5 dimensions, where conv2d takes images of 2"},
		{"'a': dict(name=['conv2d'], tensor_para=dict(args=[dict(shape=[(2, 3, 4, 5)], stride=[(60, 20, 5, 1)])]))", 0, nil, ""},
		{"'a': dict(name=['conv2d'], tensor_para=dict(args=[dict(shape=[(2, 3, 4, 5)], stride=[None])]))", 0, []int{0, 2, 3, 1}, ""},
		{"'a': dict(name=['batch_norm'], tensor_para=dict(args=[dict(shape=[(2, 3)])]))", 0, nil, "--nhwc takes 3 to 5 dimensions, and input has 2"},
		{"'a': dict(name=['batch_norm'], tensor_para=dict(args=[dict(shape=[(2, 3)])]))", 2, nil, ""},
		{"'a': dict(name=['relu'], tensor_para=dict(args=[dict(shape=[(2, 3, 4, 5)])]))", 0, nil, ""},
		{"'a': dict(name=['conv2d'], tensor_para=dict(args=[dict(ins=['bias'], shape=[(2, 3, 4, 5)])]))", 0, nil, ""},
	} {
		out, skip := (&Modes{ChannelsLast: true, MinDim: c.least}).Apply(only(t, c.src)[0])
		if skip != c.skip || !cmp.Equal(out.Order("input"), c.order) {
			t.Errorf("%s: order %v, skip %q; want %v, %q", c.src, out.Order("input"), skip, c.order, c.skip)
		}
	}
}

func TestFourBytes(t *testing.T) {
	gather := only(t, "'a': dict(name=['gather'], tensor_para=dict(args=[dict(ins=['input', 'index'], shape=[(2,)])]))")[0]
	out, _ := (&Modes{FourBytes: true}).Apply(gather)
	if out.Narrow("input") || !out.Narrow("index") || out.NarrowResult(0) || gather.Narrow("index") {
		t.Error("gather: index alone is narrowed, in the new case alone")
	}
	for args, want := range map[string][]string{
		"binary_cross_entropy_with_logits": {"pos_weight"},
		"index":                            {"idx1", "idx2"},
		"index_put":                        {"indices1", "indices2"},
		"nll_loss_v2":                      nil,
	} {
		one := only(t, "'a': dict(name=['"+args+"'], tensor_para=dict(args=[dict(shape=[(2,)])]))")[0]
		out, _ := (&Modes{FourBytes: true}).Apply(one)
		for _, name := range []string{"input", "target", "pos_weight", "idx1", "idx2", "idx3", "indices1", "indices2", "indices3"} {
			if out.Narrow(name) != slices.Contains(want, name) {
				t.Errorf("%s: %s is int32: %v", args, name, out.Narrow(name))
			}
		}
	}
}

// TestFourBytesResults: results by their position, -1 for none.
func TestFourBytesResults(t *testing.T) {
	for _, c := range []struct {
		function, para string
		at             int
	}{
		{"topk", "", 1}, {"max_pool1d", "", 1}, {"argmax", "", 0}, {"argmin", "", 0}, {"argsort", "", 0}, {"relu", "", -1},
		{"unique", "return_inverse=[True]", 1}, {"unique", "return_inverse=[False], return_counts=[True]", -1},
		{"arange", "end=[4]", 0}, {"arange", "end=[4.0]", -1}, {"arange", "end=[4], dtype=[np.int64]", -1}, {"arange", "end=[4], dtype=[None]", 0},
		{"randperm", "n=[4]", 0}, {"randperm", "n=[4], dtype=[np.int64]", -1},
	} {
		one := only(t, "'a': dict(name=['"+c.function+"'], para=dict("+c.para+"), tensor_para=dict(args=[dict(shape=[(2,)])]))")[0]
		if c.para == "" {
			one = only(t, "'a': dict(name=['"+c.function+"'], tensor_para=dict(args=[dict(shape=[(2,)])]))")[0]
		}
		out, _ := (&Modes{FourBytes: true}).Apply(one)
		for at := range 3 {
			if out.NarrowResult(at) != (at == c.at) || one.NarrowResult(at) {
				t.Errorf("%s(%s): result %d may be int32: %v", c.function, c.para, at, out.NarrowResult(at))
			}
		}
	}
}

func TestFunctionsAndModel(t *testing.T) {
	c := load(t, "small.py")
	m := &Modes{Functions: []string{"relu", "stack"}, Model: &Model{"net", []string{"relu", "sigmoid"}}}
	n := 0
	for one := range c.Cases() {
		if m.Takes(one) {
			n++
		}
	}
	if n != 3 {
		t.Errorf("%d cases are taken, want the 3 of relu", n)
	}
	if err := m.Check(c); err != nil {
		t.Error(err)
	}
	for _, bad := range []struct {
		m    Modes
		want string
	}{
		{Modes{Functions: []string{"sigmoyd"}}, "is sigmoid meant?"},
		{Modes{Functions: []string{"convolution"}}, "plumb conform list"},
		{Modes{Without: []DType{"f64"}}, "no dtype is named f64"},
	} {
		if err := bad.m.Check(c); err == nil || !strings.Contains(err.Error(), bad.want) {
			t.Errorf("error %v, want %q", err, bad.want)
		}
	}
}
