package command

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const netConfig = `import numpy as np
net_config = {
    'relu': dict(name=['relu'], tensor_para=dict(args=[dict(shape=((2, 3), (4,)), dtype=[np.float32])])),
    'pick': dict(name=['index_select'], interface=['torch'], para=dict(dim=[0 for i in range(2)]),
                 tensor_para=dict(args=[dict(shape=((5,), (6,)), dtype=[np.float32]),
                                        dict(ins=['index'], shape=((3,), (2,)), dtype=[np.int64], gen_fn=dict(fn='Genfunc.randint', high=4))])),
}
`

// netConfigs is a folder of configs of networks: net, of another variable odd.
func netConfigs(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"cv_configs/net_config.py": netConfig, "seg_configs/odd_config.py": netConfig} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestConformModelConfigs: a network's own config replaces the whole one.
func TestConformModelConfigs(t *testing.T) {
	dir := netConfigs(t)
	out, _, err := conformed(t, "expand", "--model", "Net", "--model-configs", dir)
	if want := "relu::relu_0.pth\nrelu::relu_1.pth\npick::index_select_0.pth\npick::index_select_1.pth\n"; err != nil || out != want {
		t.Errorf("%v\n%s", err, out)
	}
	base := filepath.Join(t.TempDir(), "baseline")
	if out, _, err = conformed(t, "gen", "--model", "net", "--model-configs", dir, "--out", base, "--reference", "native"); err != nil || !strings.Contains(out, "4 cases") {
		t.Errorf("%v\n%s", err, out)
	}
	out, _, err = conformed(t, "run", "--model", "net", "--model-configs", dir, "--baseline", base)
	if err != nil || !strings.Contains(out, "4 of 4 judged") {
		t.Errorf("%v\n%s", err, out)
	}
	out, _, err = conformed(t, "list", "--model", "net", "--model-configs", dir)
	if err != nil || !strings.HasSuffix(out, "2 functions, 4 cases of 2 entries\n") {
		t.Errorf("%v\n%s", err, out)
	}
	for want, args := range map[string]string{
		"--model nett: " + dir + " has net odd; is net meant?":              "expand --model nett --model-configs " + dir,
		"the config is in net_config; that of --model odd is in odd_config": "expand --model odd --model-configs " + dir,
		"--model-configs gives the config of net: leave x.py out":           "expand x.py --model net --model-configs " + dir,
		"--model-configs needs --model":                                     "expand --model-configs " + dir,
		"no such folder":                                                    "list --model net --model-configs " + filepath.Join(dir, "none"),
		"want {cv,det,seg,other}_configs/NAME_config.py in it":              "gen --out y --model net --model-configs " + t.TempDir(),
		"--model resnet51: suites/conformance/models.json has":              "gen --out y --model resnet51",
		"is resnet50 meant?":                                                "run --model resnet51",
	} {
		_, _, err := conformed(t, strings.Fields(args)...)
		if exitCode(err) != exitUsage || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", args, err, want)
		}
	}
}

// TestConformExpandExitCodes: what a script can go by.
func TestConformExpandExitCodes(t *testing.T) {
	a := save(t, "a.py", netConfig)
	b := save(t, "b.py", strings.NewReplacer("(4,)", "(5,)", "'pick'", "'take'").Replace(netConfig))
	same := save(t, "same.py", netConfig)
	device := save(t, "device.py", "from skip import Skip\nd = {'relu': dict(name=['relu'], tensor_para=dict(args=[dict(ins=['input'], shape=[Skip((4,))])]))}")
	for _, c := range []struct {
		args []string
		code int
		out  string
	}{
		{[]string{a, "--filter-dtype", "float32"}, exitNothing, ""},
		{[]string{a, "--fname", "relu"}, exitAligned, "relu::relu_0.pth\nrelu::relu_1.pth\n"},
		{[]string{a, "--dropped"}, exitAligned, ""},
		{[]string{a, "--fname", "relu", "--device-config", device, "--dropped"}, exitFindings,
			"relu::relu_1.pth\tthe device config skips input with shape {\"$tuple\": [4]}\npick::index_select_0.pth\t--fname does not name index_select\npick::index_select_1.pth\t--fname does not name index_select\n"},
		{[]string{a, "--dropped", "--json", "--filter-dtype", "int64"}, exitFindings,
			`{"case":"pick::index_select_0.pth","reason":"--filter-dtype leaves out int64"}` + "\n" + `{"case":"pick::index_select_1.pth","reason":"--filter-dtype leaves out int64"}` + "\n"},
		{[]string{a, "--diff", same}, exitAligned, ""},
		{[]string{a, "--diff", b}, exitFindings, "~ relu::relu_1.pth\n- pick::index_select_0.pth\n- pick::index_select_1.pth\n+ take::index_select_0.pth\n+ take::index_select_1.pth\n"},
		{[]string{a, "--diff", b, "--device-config", device, "--fname", "relu"}, exitFindings, "+ relu::relu_1.pth\n"},
		{[]string{a, "--fname", "rely"}, exitUsage, ""},
	} {
		out, _, err := conformed(t, append([]string{"expand"}, c.args...)...)
		if exitCode(err) != c.code || out != c.out {
			t.Errorf("%q: %v\n%s", c.args, err, out)
		}
	}
}
