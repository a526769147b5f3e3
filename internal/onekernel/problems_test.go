package onekernel

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"plumb/backend"
	"plumb/backend/worker"
	"plumb/internal/draw/choice"
)

// TestModelsThatComputeMuch: they are made smaller, in multiples of what divides a size, and a
// size that is larger than given last; what is as given may compute more.
func TestModelsThatComputeMuch(t *testing.T) {
	p := &problem{given: map[string]int{"batch": 64, "width": 96, "heads": 8, "length": 40}, session: &Session{maker: &maker{}}}
	p.session.maker.promises.Ranges = map[string][2]int{"batch": {32, 64}}
	drawn := map[string]int{"batch": 64, "width": 48, "heads": 8, "length": 41}
	if got := p.less(drawn, "", mostOfProblem); got != nil {
		t.Errorf("what computes little is made smaller: %v", got)
	}
	if got := p.less(p.given, "", mostWork); got != nil {
		t.Errorf("what is as given is made smaller: %v", got)
	}
	for _, c := range []struct {
		sizes    map[string]int
		elements int
		want     string
	}{
		{drawn, 2 * mostOfProblem, "[map[batch:32 heads:8 length:41 width:48] map[batch:64 heads:8 length:41 width:24] map[batch:64 heads:8 length:16 width:48]]"},
		{drawn, 4 * mostOfProblem, "[map[batch:64 heads:8 length:41 width:8] map[batch:64 heads:8 length:8 width:48]]"},
		{p.given, 2 * mostWork, "[map[batch:64 heads:8 length:40 width:48] map[batch:32 heads:8 length:40 width:96] map[batch:64 heads:8 length:16 width:96]]"},
	} {
		if got := fmt.Sprint(p.less(c.sizes, "", c.elements)); got != c.want {
			t.Errorf("%v of %d elements: %s, want %s", c.sizes, c.elements, got, c.want)
		}
	}
	if got := p.less(drawn, "width", 2*mostOfProblem); got[len(got)-1]["width"] == 48 && got[len(got)-2]["width"] == 48 || got[0]["width"] != 48 {
		t.Errorf("what is in focus is made smaller first: %v", got)
	}
	wide := &problem{given: map[string]int{"batch": 128, "channels": 16}, session: p.session}
	if got := fmt.Sprint(wide.less(map[string]int{"batch": 64, "channels": 16}, "", 100*mostOfProblem)); got != "[]" {
		t.Errorf("below what is promised: %s", got)
	}
	wide.session = &Session{maker: &maker{}}
	if got := fmt.Sprint(wide.less(map[string]int{"batch": 64, "channels": 16}, "", 100*mostOfProblem)); got != "[map[batch:16 channels:16]]" {
		t.Errorf("no smaller than what divides it: %s", got)
	}
	if got := fmt.Sprint(wide.less(map[string]int{"batch": 16, "channels": 16}, "", 4*mostOfProblem)); got != "[map[batch:4 channels:16]]" {
		t.Errorf("a batch that is small: %s", got)
	}
	strided := &problem{given: map[string]int{"depth": 8, "stride": 2}, session: wide.session}
	if got := fmt.Sprint(strided.less(map[string]int{"depth": 8, "stride": 16}, "stride", 88*mostOfProblem)); got != "[map[depth:8 stride:3]]" {
		t.Errorf("a small size that was made larger: %s", got)
	}
	p.given["depth"], drawn["depth"], p.ties = 96, 48, tiesTold
	if got := p.less(drawn, "", 2*mostOfProblem)[1]; got["depth"] != 24 || got["width"] != 24 {
		t.Errorf("sizes that hang together: %v", got)
	}
}

// TestVariancesThatCancelAreSeenInTraining: values far from 0 come first to a model in training,
// whose statistics are theirs; sizes as given are tried once, for they may be too large.
func TestVariancesThatCancelAreSeenInTraining(t *testing.T) {
	p := &problem{given: map[string]int{"batch": 16, "width": 8}, session: &Session{}}
	m := &maker{form: unshaped{}}
	seen := map[bool]int{}
	for i, s := range first {
		c := &Case{Index: i, Regime: s.regime, Sizes: map[string]int{}}
		_ = p.size(c, choice.New(uint64(i)), s, i, 0, m)
		if s.regime == Offset && seen[true]+seen[false] == 0 && c.eval {
			t.Errorf("draw %d is in eval", i)
		}
		if s.regime == Offset {
			seen[c.eval]++
		}
	}
	if seen[true] == 0 || seen[false] == 0 {
		t.Errorf("far from 0, in eval or not: %v", seen)
	}
	whole := func(try int) bool {
		c := &Case{Index: 1, Sizes: map[string]int{}}
		_ = p.size(c, choice.New(uint64(try)), first[1], 1, try, m)
		return maps.Equal(c.Sizes, p.given)
	}
	if !whole(0) || whole(1) && whole(2) && whole(3) {
		t.Error("sizes as given are tried once, and first")
	}
}

// unshaped is a form that refuses all sizes.
type unshaped struct{ form }

func (unshaped) signature(context.Context, *Case) (*Signature, error) { return nil, errors.New("none") }

// TestProductsOfSizesAreOdd: in one of the first draws that of all large sizes is.
func TestProductsOfSizesAreOdd(t *testing.T) {
	p := &problem{given: map[string]int{"batch": 16, "features": 64, "height": 256, "width": 256}, session: &Session{}}
	seen := 0
	for i, s := range first[:tenth] {
		c := &Case{Index: i, Sizes: map[string]int{}}
		_ = p.size(c, choice.New(uint64(i)), s, i, 0, &maker{form: unshaped{}})
		if c.Sizes["features"]*c.Sizes["height"]*c.Sizes["width"]%2 == 1 {
			seen++
		}
	}
	if seen == 0 {
		t.Error("none is odd")
	}
	if a, b := odd(64), odd(63); a != 63 || b != 63 {
		t.Errorf("%d and %d of 64 and 63", a, b)
	}
}

// TestOrdersOfSizes: a sequence is no longer than its longest, once that is known.
func TestOrdersOfSizes(t *testing.T) {
	p := &problem{given: map[string]int{"longest": 1024, "length": 512, "heads": 8}, session: &Session{maker: &maker{}}}
	sizes := map[string]int{"longest": 16, "length": 40, "heads": 8}
	if got := fmt.Sprint(p.disordered(sizes)); got != "[[length longest]]" {
		t.Errorf("out of order: %s", got)
	}
	p.ordered(sizes)
	if sizes["longest"] != 16 {
		t.Error("an order that nothing has told of")
	}
	p.orders = p.disordered(sizes)
	p.ordered(sizes)
	if sizes["longest"] != 40 || sizes["length"] != 40 {
		t.Errorf("in order: %v", sizes)
	}
	for _, less := range p.less(sizes, "", 2*mostOfProblem) {
		if less["length"] > less["longest"] {
			t.Errorf("made smaller out of order: %v", less)
		}
	}
	if got := p.less(map[string]int{"longest": 40, "length": 40, "heads": 8}, "", 2*mostOfProblem); len(got) != 1 {
		t.Errorf("the shorter one may be made smaller: %v", got)
	}
}

// TestLoopsOfModels: what a kernel computes that is not recorded follows from a call that was.
func TestLoopsOfModels(t *testing.T) {
	p := &problem{}
	of := func(index, reference, kernel int) *result {
		return &result{Case: &Case{Index: index}, kernel: &backend.Outcome{Status: backend.OK}, refSeen: observed{Elements: reference}, seen: observed{Elements: kernel}}
	}
	for _, c := range []struct {
		r    *result
		want int
	}{{of(5, 100, 0), 100}, {of(0, 100, 1000), 1000}, {of(5, 50, 0), 500}, {of(2, 50, 20), 500}} {
		if got := p.computes(c.r); got != c.want {
			t.Errorf("call %d computes %d, want %d", c.r.Index, got, c.want)
		}
	}
}

// TestOddSizesThatAreBroadcast: halves of a size of 1 are of 1 and 0 elements, which the reference
// broadcasts by accident: to refuse it is no limit.
func TestOddSizesThatAreBroadcast(t *testing.T) {
	if _, _, err := worker.FindPython(""); err != nil {
		t.Skip(err)
	}
	dir := t.TempDir()
	write := func(name, class, body string) string {
		path := filepath.Join(dir, name)
		text := "import torch\nimport torch.nn as nn\n\nclass " + class + `(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.l = nn.Linear(4, dim)

    def forward(self, x):
        y = self.l(x)
` + body + `

batch = 4
dim = 8

def get_inputs():
    return [torch.randn(batch, 4)]

def get_init_inputs():
    return [dim]
`
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	against := write("problem.py", "Model", "        a, b = y[:, 0::2], y[:, 1::2]\n        return (a * 2 - b * a).sum(-1)")
	kernel := write("solution.py", "ModelNew", "        y = y.view(x.shape[0], -1, 2)\n        return (y[..., 0] * (2 - y[..., 1])).sum(-1)")
	r := report(t, Options{Kernel: kernel, Against: against, Seed: 1, Cases: 6, Sizes: []string{"dim=1..2"}}.Filled())
	if r.Verdict != Right {
		t.Errorf("%s: %v", r.Verdict, r.Reasons)
	}
}
