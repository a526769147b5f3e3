package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func loadDevice(t *testing.T, src string) *Device {
	t.Helper()
	d, err := LoadDevice("device.py", []byte(src))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func deviceFile(t *testing.T) *Device {
	t.Helper()
	src, err := os.ReadFile(filepath.Join("..", "..", "..", "conform", "testdata", "device.py"))
	if err != nil {
		t.Fatal(err)
	}
	return loadDevice(t, string(src))
}

// TestDeviceRules applies each kind of rule to the small config: True is 1 in
// Python, so that the rule about momentum meets the row whose momentum is 1.
func TestDeviceRules(t *testing.T) {
	d := deviceFile(t)
	got := map[string]string{}
	for c := range load(t, "small.py").Cases() {
		if _, skip := d.Apply(c); skip != "" {
			got[strings.TrimSuffix(c.Name, ".pth")] = strings.TrimPrefix(skip, "the device config skips ")
		}
	}
	want := map[string]string{
		"relu::relu_1":             `input with shape {"$tuple": [4]}`,
		"batch_norm::batch_norm_0": "input with requires_grad true",
		"batch_norm::batch_norm_1": "momentum=1",
		"batch_norm::batch_norm_2": "input with requires_grad true",
		"batch_norm::batch_norm_3": "momentum=1",
		"spmm::spmm_4":             `dtype {"$np": "float64"}`,
		"spmm::spmm_5":             `dtype {"$np": "float64"}`,
		"spmm::spmm_6":             `dtype {"$np": "float64"}`,
		"spmm::spmm_7":             `dtype {"$np": "float64"}`,
		"arange::arange_0":         "all of arange::arange",
		"arange::arange_1":         "all of arange::arange",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestDeviceTolerances(t *testing.T) {
	d := loadDevice(t, "device_configs = {'batch_norm': dict(name=['batch_norm'], atol=0.25, rtol_half=1)}")
	for c := range load(t, "small.py").Cases() {
		before := string(c.AppendJSON(nil))
		under, skip := d.Apply(c)
		if skip != "" || string(c.AppendJSON(nil)) != before {
			t.Fatalf("%s was skipped or changed", c.Name)
		}
		atol, rtol := under.Tolerance()
		wantA, wantR := c.Tolerance()
		if c.Config == "batch_norm" && !c.Half {
			wantA = 0.25
		} else if c.Config == "batch_norm" {
			wantR = 1
		}
		if atol != wantA || rtol != wantR {
			t.Errorf("%s: tolerances %g, %g; want %g, %g", c.Name, atol, rtol, wantA, wantR)
		}
	}
}

// TestDeviceWarnings tells what has no effect.
func TestDeviceWarnings(t *testing.T) {
	d := deviceFile(t)
	for c := range load(t, "small.py").Cases() {
		d.Apply(c)
	}
	var got []string
	for _, w := range append(d.Warnings, d.Unused()...) {
		got = append(got, w.Error())
	}
	want := []string{
		`device.py:9:5: the key "relu" is in line 8 too: this later one counts`,
		`device.py:15:105: batch_norm: tensor_para.args[0].dtype[1]: {"$np": "float64"} skips nothing: want Skip({"$np": "float64"})`,
		`device.py:19:59: stack: tensor_args: the key is ignored; is tensor_para meant?`,
		`device.py:19:14: stack: the rule meets no case`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestDeviceErrors(t *testing.T) {
	for src, want := range map[string]string{
		"d = {'a': dict(atol=1)}":                                                       "a: name is missing",
		"d = {'a': dict(name=['f'], atol=-1)}":                                          "a: atol: want a number that is not negative",
		"d = {'a': dict(name=['f'], skip_all=[True])}":                                  "a: skip_all: want True or False",
		"d = {'a': dict(name=['f'], dtype=Skip(1))}":                                    "a: dtype: want a list or a tuple",
		"d = {'a': dict(name=['f'], tensor_para=dict(args=dict()))}":                    "a: tensor_para.args: want a list",
		"d = {'a': dict(name=['f'], tensor_para=dict(args=[dict(ins='x', shape=[])]))}": "a: tensor_para.args[0].ins: want a list of strings",
	} {
		_, err := LoadDevice("d.py", []byte(src))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\nerror %v; want %q", src, err, want)
		}
	}
}

// TestDeviceYAML reads the same rules from YAML.
func TestDeviceYAML(t *testing.T) {
	d, err := LoadDevice("d.yaml", []byte("relu:\n  name: [relu]\n  tensor_para:\n    args:\n      - ins: [input]\n        shape:\n          - $skip: [[4]]\nspmm:\n  name: [spmm]\n  dtype:\n    - $skip: [float64]\n"))
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for c := range load(t, "small.py").Cases() {
		if _, skip := d.Apply(c); skip != "" {
			n++
		}
	}
	if n != 5 {
		t.Errorf("%d cases are skipped, want 5", n)
	}
}
