package baseline

import (
	"bytes"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// TestFrames writes bytes that compress and bytes that do not, in pieces: they
// come back, and those that do not take hardly more than they are.
func TestFrames(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{0, 1, 4095, 4096, blockBytes, blockBytes + 1, frameBytes, 3*frameBytes + 5} {
		for _, random := range []bool{false, true} {
			in := make([]byte, n)
			for i := range in {
				if in[i] = byte(i / 100); random {
					in[i] = byte(rng.Uint32())
				}
			}
			var out bytes.Buffer
			f, err := newFrames(&out)
			must(t, err)
			for p := in; len(p) > 0; {
				k := min(len(p), 1+rng.IntN(2*frameBytes))
				_, err := f.Write(p[:k])
				must(t, err)
				p = p[k:]
			}
			must(t, f.Flush())
			if most := n + n/1000 + 16; out.Len() > most || !random && n > 5000 && out.Len() > n/20 {
				t.Errorf("%d bytes, random %v: %d", n, random, out.Len())
			}
			if random && n >= 4096 && !bytes.Contains(out.Bytes(), in[:100]) {
				t.Errorf("%d random bytes were not kept as they are", n)
			}
			z, err := zstd.NewReader(&out)
			must(t, err)
			back, err := io.ReadAll(z)
			z.Close()
			if err != nil || !bytes.Equal(back, in) {
				t.Errorf("%d bytes, random %v: others come back (%v)", n, random, err)
			}
		}
	}
}

// TestTensorsAreLetGo reads the tensors of a shard for its cases in turn: at no
// time is one held that only earlier cases need.
func TestTensorsAreLetGo(t *testing.T) {
	dir := t.TempDir()
	cfg := toyGen(dir, toyCases(40, 42, 44, 40))
	cfg.Predict = nil
	_, err := Gen(t.Context(), cfg)
	must(t, err)
	b, err := Open(dir)
	must(t, err)
	r, err := openShard(b.files, &b.Manifest.Shards[0])
	must(t, err)
	defer r.close()
	for i := range r.text.Cases {
		if i != 1 { // one that is not selected
			r.needs(i, &r.text.Cases[i].Variants[0], 1)
		}
	}
	var names [][]string
	for i := range r.text.Cases {
		var own []string
		for name, at := range r.last {
			if at == i {
				own = append(own, name)
			}
		}
		names = append(names, own)
	}
	for i := range r.text.Cases {
		for _, name := range names[i] {
			_, err := r.blob(name)
			must(t, err)
		}
		r.done(i)
		for name := range r.held {
			if r.last[name] <= i {
				t.Errorf("after case %d tensor %s is held", i, name)
			}
		}
	}
	if len(names[0]) == 0 || len(names[1]) != 0 || len(names[2]) == 0 || len(r.held) != 0 {
		t.Errorf("needed %v, held in the end %d", names, len(r.held))
	}
}
