package worker

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestMemoryOfKernels: the arguments of a kernel lie between pages without access, and
// what is written beside them is told.
func TestMemoryOfKernels(t *testing.T) {
	runKernels(t, "room.py", "torch")
}

// TestLaunchesThatDoNothing: zeros are what a product has that leaves out blocks, whether its
// launches run or not, and tell of no decoy.
func TestLaunchesThatDoNothing(t *testing.T) {
	runKernels(t, "launches.py", "torch")
}

// TestDeepGraphs: PyTorch 2 dies when it frees a graph of some ten thousand functions in a row
// of each of which there was a Python object.
func TestDeepGraphs(t *testing.T) {
	runKernels(t, "deep.py", "torch")
}

// TestWeightsOfRecurrentLayers: PyTorch 1.13 keeps those of nn.LSTM in a list that a call's do not reach.
func TestWeightsOfRecurrentLayers(t *testing.T) {
	runKernels(t, "recurrent.py", "torch")
}

// TestSizesOfFunctionsInC: they are told in the words that PyTorch has for them.
func TestSizesOfFunctionsInC(t *testing.T) {
	runKernels(t, "declared.py", "torch")
}

// TestFormsOfKernels: parameters of functions in C++ and of registered operators, and what may
// switch the record of operators off.
func TestFormsOfKernels(t *testing.T) {
	runKernels(t, "forms.py", "torch")
}

// TestForksHaveFoldersOfTheirOwn: what modules keep of folders when they are imported, before
// the fork that hosts an operator, is of that one's.
func TestForksHaveFoldersOfTheirOwn(t *testing.T) {
	runKernels(t, "folders.py", "torch")
}

// TestTritonOnTheCPU: bounds, races, the order of programs, bfloat16 and libdevice in
// Triton's interpreter.
func TestTritonOnTheCPU(t *testing.T) {
	runKernels(t, "interpreter.py", "triton")
}

// TestTritonCompiledWithoutGPU: what a compiler refuses, and what it approximates.
func TestTritonCompiledWithoutGPU(t *testing.T) {
	runKernels(t, "compiled.py", "triton")
}

// TestNativeCodeHasThreads: a call of what forks is made where two threads are awake.
func TestNativeCodeHasThreads(t *testing.T) {
	runKernels(t, "threads.py", "torch")
}

// runKernels runs a program of testdata/kernels with the sources of the worker, by each
// Python here that has a module: the one that is found, and those of PLUMB_KERNELS_PYTHON.
func runKernels(t *testing.T, program, module string) {
	t.Helper()
	if testing.Short() {
		t.Skip("takes long")
	}
	pythons := filepath.SplitList(os.Getenv("PLUMB_KERNELS_PYTHON"))
	if path, _, err := FindPython(""); err == nil {
		pythons = append(pythons, path)
	}
	here, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	ran := false
	for _, python := range pythons {
		if exec.Command(python, "-c", "import torch, "+module).Run() != nil {
			continue
		}
		ran = true
		cmd := exec.Command(python, "-B", filepath.Join(here, "testdata", "kernels", program))
		cmd.Env = append(os.Environ(), "PYTHONPATH="+filepath.Join(here, "py"), "OMP_NUM_THREADS=1", "TRITON_CACHE_DIR="+t.TempDir())
		if text, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", python, err, strings.TrimSpace(string(text)))
		}
	}
	if !ran {
		t.Skipf("no Python here has %s; PLUMB_KERNELS_PYTHON lists more", module)
	}
}
