package command

import (
	"bufio"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"

	"plumb/backend/worker"
	"plumb/tensor"
)

//go:embed bench/graph.py
var benchGraph string

// graphPeer is the Python process that runs the blocks on PyTorch.
type graphPeer struct {
	cmd     *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Reader
	dir     string
	Version string `json:"torch"`
	Compile bool   `json:"compile"` // torch.compile is there
}

// peerError is what PyTorch answered instead of a result.
type peerError struct{ Message string }

// Error is PyTorch's message.
func (e *peerError) Error() string { return e.Message }

// peerTensor describes a tensor that lies in a file.
type peerTensor struct {
	Name  string `json:"name"`
	DType string `json:"dtype"`
	Shape []int  `json:"shape"`
	File  string `json:"file"`
}

func startGraphPeer(ctx context.Context, python string, threads int, blocks []graphBlock) (_ *graphPeer, err error) {
	if python, _, err = worker.FindPython(python); err != nil {
		return nil, err
	}
	p := &graphPeer{}
	if p.dir, err = os.MkdirTemp("", "plumb-bench"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			os.RemoveAll(p.dir)
		}
	}()
	setup, err := p.store(threads, blocks)
	if err != nil {
		return nil, err
	}
	if err := p.start(ctx, python, threads); err != nil {
		return nil, err
	}
	if err := p.ask(string(setup), p); err != nil {
		p.close()
		return nil, fmt.Errorf("the Python process: %w", err)
	}
	return p, nil
}

// store writes the tensors of the blocks into files.
func (p *graphPeer) store(threads int, blocks []graphBlock) ([]byte, error) {
	described := map[string][]peerTensor{}
	for _, k := range blocks {
		for _, t := range k.tensors() {
			file := filepath.Join(p.dir, k.name+"."+t.name)
			if err := os.WriteFile(file, t.Bytes(), 0o600); err != nil {
				return nil, err
			}
			described[k.name] = append(described[k.name], peerTensor{t.name, t.DType().String(), t.Shape(), file})
		}
	}
	return json.Marshal(map[string]any{"threads": threads, "blocks": described})
}

func (p *graphPeer) start(ctx context.Context, python string, threads int) (err error) {
	p.cmd = exec.CommandContext(ctx, python, "-c", benchGraph)
	for _, name := range []string{"OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"} {
		p.cmd.Env = append(p.cmd.Environ(), fmt.Sprintf("%s=%d", name, threads))
	}
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	p.out = bufio.NewReader(out)
	return p.cmd.Start()
}

// ask writes a line and reads the answer; a *peerError where that is one.
func (p *graphPeer) ask(line string, answer any) error {
	if _, err := fmt.Fprintln(p.in, line); err != nil {
		return errors.New("it ended; it needs torch")
	}
	text, err := p.out.ReadBytes('\n')
	if err != nil {
		return errors.New("it ended; it needs torch")
	}
	var failed struct{ Error string }
	if json.Unmarshal(text, &failed) == nil && failed.Error != "" {
		return &peerError{failed.Error}
	}
	return json.Unmarshal(text, answer)
}

func (p *graphPeer) close() {
	p.in.Close()
	_ = p.cmd.Wait()
	os.RemoveAll(p.dir)
}

func (p *graphPeer) side(k *graphBlock, step, mode string) graphRunner {
	return &peerRunner{p, k.name + " " + step + " " + mode}
}

// peerRunner runs a step in the Python process.
type peerRunner struct {
	peer *graphPeer
	what string // block, step and mode
}

func (r *peerRunner) check() ([]*tensor.Tensor, error) {
	file := filepath.Join(r.peer.dir, "results")
	var shapes [][]int
	if err := r.peer.ask(fmt.Sprintf("check %s %s", r.what, file), &shapes); err != nil {
		return nil, err
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var out []*tensor.Tensor
	for _, s := range shapes {
		t := tensor.New(tensor.F32, s...)
		if copy(t.Storage(), data) < len(t.Bytes()) {
			return nil, errors.New("the results are cut off")
		}
		data = data[len(t.Bytes()):]
		out = append(out, t)
	}
	return out, nil
}

func (r *peerRunner) time(repeats int, cpu bool) (seconds float64, err error) {
	clock := "time"
	if cpu {
		clock = "cpu"
	}
	err = r.peer.ask(fmt.Sprintf("%s %s %d", clock, r.what, repeats), &seconds)
	return seconds, err
}

func (r *peerRunner) memory() (bytes int, err error) {
	err = r.peer.ask(fmt.Sprintf("memory %s 0", r.what), &bytes)
	return bytes, err
}
