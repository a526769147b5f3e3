package optim_test

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"strings"
	"testing"

	"plumb/backend/worker"
	"plumb/tensor"
)

var record = flag.Bool("record", false, "write testdata/torch.json from PyTorch")

//go:embed testdata/reference.py
var script string

// request and reply are what testdata/reference.py reads and writes.
type request struct {
	Train     map[string]trainRequest    `json:"train,omitempty"`
	Schedules map[string]scheduleRequest `json:"schedules,omitempty"`
}

type trainRequest struct {
	DType     string           `json:"dtype"`
	Optimizer string           `json:"optimizer"`
	Options   map[string]any   `json:"options"`
	Groups    []map[string]any `json:"groups"`
	Shapes    [][]int          `json:"shapes"`
	Params    [][]float64      `json:"params"`
	X         *packed          `json:"x,omitempty"`
	Y         *packed          `json:"y,omitempty"`
	Grads     [][][]float64    `json:"grads,omitempty"`
	ClipNorm  []any            `json:"clip_norm,omitempty"`
	ClipValue float64          `json:"clip_value,omitempty"`
	Steps     int              `json:"steps"`
	Parts     int              `json:"parts,omitempty"`
	State     *packedState     `json:"state,omitempty"`
}

type packed struct {
	DType string    `json:"dtype"`
	Shape []int     `json:"shape"`
	Data  []float64 `json:"data"`
}

type packedState struct {
	State  map[int]map[string]json.RawMessage `json:"state"`
	Groups []struct {
		Options map[string]any `json:"options"`
		Params  []int          `json:"params"`
	} `json:"groups"`
}

type scheduleRequest struct {
	Optimizer string         `json:"optimizer"`
	Options   map[string]any `json:"options"`
	Python    string         `json:"python"`
	Steps     int            `json:"steps"`
	Metrics   []float64      `json:"metrics,omitempty"`
}

type reply struct {
	Version string `json:"version"`
	Train   map[string]struct {
		Steps [][]float64  `json:"steps"`
		Norms []float64    `json:"norms"`
		State *packedState `json:"state"`
	} `json:"train,omitempty"`
	Schedules map[string]struct {
		Rates []float64 `json:"rates"`
		Text  string    `json:"text"`
	} `json:"schedules,omitempty"`
}

// ask runs a request on PyTorch; without one the test is skipped.
func ask(t *testing.T, r request) *reply {
	t.Helper()
	python, _, err := worker.FindPython("")
	if err != nil {
		t.Skip("needs a Python with torch: ", strings.SplitN(err.Error(), "\n", 2)[0])
	}
	in, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(python, "-c", script)
	cmd.Stdin = bytes.NewReader(in)
	var fail bytes.Buffer
	cmd.Stderr = &fail
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, fail.String())
	}
	var got reply
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatal(err)
	}
	return &got
}

const recorded = "testdata/torch.json"

// reference returns PyTorch's reply to the request: live where it is
// installed, else what was recorded, which has some steps and cases only.
func reference(t *testing.T, r request) (got *reply, live bool) {
	t.Helper()
	if _, _, err := worker.FindPython(""); err == nil {
		return ask(t, r), true
	}
	text, err := os.ReadFile(recorded)
	if err != nil {
		t.Fatal(err)
	}
	got = &reply{}
	if err := json.Unmarshal(text, got); err != nil {
		t.Fatal(err)
	}
	return got, false
}

func values(t *tensor.Tensor) []float64 {
	var out []float64
	for i := range t.Len() {
		v := t.At(i)
		out = append(out, real(v))
		if t.DType().IsComplex() {
			out = append(out, imag(v))
		}
	}
	return out
}

func fromValues(d tensor.DType, shape []int, data []float64) *tensor.Tensor {
	t := tensor.New(d, shape...)
	for i := range t.Len() {
		if d.IsComplex() {
			t.Set(i, complex(data[2*i], data[2*i+1]))
		} else {
			t.Set(i, complex(data[i], 0))
		}
	}
	return t
}
