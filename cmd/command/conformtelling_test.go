package command

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"plumb/internal/mutants"
	"plumb/op"
)

// TestConformGenWarnsOfBlindCases: a recording says which cases could not tell a
// fault, and nothing of those that could.
func TestConformGenWarnsOfBlindCases(t *testing.T) {
	name := save(t, "c.py", `d = {
 'flat': dict(name=['conv2d'], para=dict(dilation=[(2, 2)]), tensor_para=dict(dtype=[np.float32], args=[dict(ins=['input'], shape=[(1, 2, 4, 4)]), dict(ins=['weight'], shape=[(3, 2, 1, 1)])])),
 'deep': dict(name=['conv2d'], para=dict(dilation=[(2, 1)]), tensor_para=dict(dtype=[np.float32], args=[dict(ins=['input'], shape=[(1, 2, 5, 5)]), dict(ins=['weight'], shape=[(3, 2, 2, 3)])])),
 'above': dict(name=['relu'], tensor_para=dict(dtype=[np.float32], args=[dict(shape=[(9,)], gen_fn='Genfunc.rand')])),
 'ones': dict(name=['softmax'], para=dict(dim=[0]), tensor_para=dict(dtype=[np.float32], args=[dict(shape=[(4, 2)], gen_fn='Genfunc.ones')])),
 'alike': dict(name=['max_pool2d'], para=dict(kernel_size=[(2, 2)], padding=[0], dilation=[1]), tensor_para=dict(dtype=[np.float32], args=[dict(ins=['input'], shape=[(1, 2, 5, 5)])])),
 'whole': dict(name=['hardtanh'], para=dict(min_val=[-1], max_val=[0.25]), tensor_para=dict(dtype=[np.float32], args=[dict(ins=['input'], shape=[(9,)])])),
 'mixed': dict(name=['relu'], interface=['torch'], tensor_para=dict(dtype=[np.float32], args=[dict(shape=[(9,)])])),
}`)
	_, warnings, err := conformed(t, "gen", name, "--out", filepath.Join(t.TempDir(), "base"), "--reference", "native")
	for _, want := range []string{
		"warning: flat::conv2d_0.pth cannot tell dilation=(2, 2) from (1, 1), its default: ",
		"warning: above::relu_0.pth cannot tell relu from its argument input: ",
		"warning: ones::softmax_0.pth cannot tell softmax from a constant: ",
	} {
		if err != nil || !strings.Contains(warnings, want) {
			t.Errorf("%v: no %q in\n%s", err, want, warnings)
		}
	}
	if n := strings.Count(warnings, "warning: "); n != 3 {
		t.Errorf("%d warnings\n%s", n, warnings)
	}
}

// TestConformFindings: cases that fail alike are one finding, whose bundle runs on
// the worker again and has its inputs as bytes; an accepted one is none.
func TestConformFindings(t *testing.T) {
	broken := ownWorkerBinary(t, "relu_of(double x) { return x < 0 ? 0 : x; }", "relu_of(double x) { return x < 0.25 ? 0 : x; }")
	dir := t.TempDir()
	args := []string{"run", "--candidate", broken, "--fname", "relu", "--findings", dir, "--known", "none"}
	out, _, err := conformed(t, args...)
	folders, globErr := filepath.Glob(filepath.Join(dir, "*", "finding.json"))
	if exitCode(err) != exitFindings || globErr != nil || len(folders) == 0 || !strings.Contains(out, "finding 1 of ") {
		t.Fatalf("%v, %d bundles\n%s", err, len(folders), out)
	}
	bundle := filepath.Dir(folders[0])
	for _, file := range []string{"input_input.bin", "expected_result.bin", "case.json", "repro.sh", "repro_torch.py"} {
		if _, err := os.Stat(filepath.Join(bundle, file)); err != nil {
			t.Errorf("%v", err)
		}
	}
	again := newRoot()
	again.SetArgs([]string{"repro", bundle, "--as", "plumb", "--run"})
	again.SetOut(&strings.Builder{})
	again.SetErr(&strings.Builder{})
	if err := again.ExecuteContext(t.Context()); exitCode(err) != exitFindings {
		t.Errorf("the bundle: %v", err)
	}
}

// TestSelftestByConformance: the shipped conformance suite finds faults of
// gradients, edge values, attributes and modules, not what is none, and then the
// command fails.
func TestSelftestByConformance(t *testing.T) {
	found := mutantsNamed(t, "relu makes NaN zero", "conv2d ignores dilation", "sum takes dim -1 for the first", "LSTM ignores batch_first", "BatchNorm2d ignores momentum")
	s := newSelftestOf()
	var out strings.Builder
	s.out, s.err, s.conform = &out, &out, true
	for _, m := range append(found, mutants.Mutant{Name: "no fault", In: "sum", Kind: mutants.Attribute, Op: func(*op.Def) {}}) {
		s.mutants = append(s.mutants, &mutantRun{Mutant: m})
	}
	err := s.run(t.Context())
	for _, m := range s.mutants {
		if wanted := m.Name != "no fault"; (m.found != nil) != wanted || m.runs == 0 {
			t.Errorf("%s: found %v in %d runs", m.Name, m.found != nil, m.runs)
		}
	}
	if exitCode(err) != exitFindings || len(s.control) > 0 || !strings.Contains(out.String(), "missed  no fault") {
		t.Errorf("%v, %d false findings\n%s", err, len(s.control), out.String())
	}
}

// TestShippedSuiteFindsFaults is the measurement of plumb selftest --conform.
func TestShippedSuiteFindsFaults(t *testing.T) {
	slow(t)
	s := newSelftestOf()
	var out strings.Builder
	s.out, s.err, s.conform = &out, &out, true
	s.plant("")
	if err := s.run(t.Context()); err != nil {
		t.Errorf("%v\n%s", err, out.String())
	}
}
