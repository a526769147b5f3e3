//go:build unix

package worker

import (
	"sync"
	"testing"

	"plumb/backend"
	"plumb/program"
	"plumb/tensor"
)

var fuzzMemory = sync.OnceValues(newMemory)

// FuzzReply feeds the decoder what a broken worker may send: it must return an
// error or complete outcomes, whatever the bytes.
func FuzzReply(f *testing.F) {
	for _, seed := range []string{
		`{"size":16777216,"cpu":1.5,"cases":[{"status":"ok","values":[["t","float32",64,[2,3],[1,2],true],["u",[1,-2.5,"a\n",null,true]]],"grads":[["t","complex128",128,[],null,false]],"elapsed":7},{"status":"need","need":1000}]}`,
		`{"cases":[{"status":"ok","values":[["m"],["c",["f","nan"],1e3]],"modules":[{"call":0,"initial":[["w",["t","bool",64,[0],null,false]]],"final":[["w",null]],"grads":[]}],"grads":[null]},{"status":"raised","class":"E","message":"m","call":1,"values":[["x","y"]]}]}`,
		`{"cases":[{"status":"oom"},{"status":"unsupported","call":2}],"new":[[{}]]}`,
		`{"cases":[{"status":"need","need":9},{"status":"oom"},{"status":"oom"}]}`,
		`{"size":99999999999,"cases":[]}`, `[]`, `{`, `{"cases":[{"values":[["t","float32",64,[4611686018427387904,4],[0,0],true]]}]}`,
	} {
		f.Add([]byte(seed))
	}
	p := &program.Program{
		Inputs: []program.Input{{Name: "x", DType: tensor.F32, RequiresGrad: true}, {Name: "i", DType: tensor.I64}},
		Calls:  []program.Call{{Result: "a", Target: "torch.f"}, {Result: "b", Target: "torch.g"}},
	}
	job := &backend.Job{Program: p}
	f.Fuzz(func(t *testing.T, payload []byte) {
		mem, err := fuzzMemory()
		if err != nil {
			t.Skip("no shared memory: ", err)
		}
		d := replyDecoder{info: &backend.Info{}, mem: mem, jobs: []*backend.Job{job, job}, todo: []int{0, 1}, lengths: []int{8, 8}, outs: make([]*backend.Outcome, 2)}
		if d.decode(payload) != nil {
			return
		}
		for i, out := range d.outs {
			if out == nil {
				if d.lengths[i] <= 8 {
					t.Errorf("case %d has neither an outcome nor a need", i)
				}
				continue
			}
			if out.Status == backend.OK && len(out.Values) != 2 {
				t.Errorf("case %d is ok with %d values", i, len(out.Values))
			}
			for _, v := range out.Values {
				if v.Tensor != nil && v.Tensor.Len() > 0 {
					v.Tensor.At(v.Tensor.Len() - 1)
				}
			}
		}
		decodeSignatures(payload)
	})
}
