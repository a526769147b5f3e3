package report

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"slices"

	"plumb/internal/judge/verdict"
	"plumb/program"
	"plumb/tensor"
)

// Traits are what a case has that other cases of its operators may not have, by their
// hashes, each once: its cells, each argument of a call by its bucket (none, a bool, the
// sign and the octave of a number, a text, the length of a list), and of each input how
// many axes it has, and whether one of them is 0 or 1.
func Traits(p *program.Program) []uint64 {
	var out []uint64
	add := func(parts ...any) {
		h := fnv.New64a()
		fmt.Fprint(h, parts...)
		out = append(out, h.Sum64())
	}
	for c := range Cells(p) {
		add("cell ", c)
	}
	for i := range p.Calls {
		c := &p.Calls[i]
		name := verdict.OperatorName(c.Target)
		for k, v := range c.Args {
			add("argument ", name, " ", k, " ", bucket(v))
		}
		for _, kw := range c.Kwargs {
			add("argument ", name, " ", kw.Name, " ", bucket(kw.Value))
		}
		for k := range p.Inputs {
			shape := p.Inputs[k].Shape
			add("axes ", name, " ", k, " ", len(shape), slices.Contains(shape, 0), slices.Contains(shape, 1))
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// bucket is the text of the bucket in which an argument lies.
func bucket(v any) string {
	switch v := v.(type) {
	case nil:
		return "none"
	case program.Ref:
		return "tensor"
	case int64:
		return fmt.Sprintf("int%+d", octave(float64(v)))
	case float64:
		return fmt.Sprintf("float%+d", octave(v))
	case program.List:
		return several("list", v)
	case program.Tuple:
		return several("tuple", v)
	case bool, string, tensor.DType, tensor.MemoryFormat:
		return fmt.Sprint(v)
	}
	return fmt.Sprintf("%T", v)
}

// several is the bucket of a list: its length and what is in it.
func several[L ~[]any](kind string, list L) string {
	var in []string
	for _, v := range list {
		in = append(in, bucket(v))
	}
	slices.SortFunc(in, cmp.Compare)
	return fmt.Sprint(kind, len(list), slices.Compact(in))
}

// octave is 0 for zero, ±1 for a magnitude up to 1, ±2 up to 2, ±3 up to 4, and so on up to
// ±5; 9 for what is not finite.
func octave(x float64) int {
	n, size := 0, x
	if size < 0 {
		size = -size
	}
	switch {
	case size == 0:
		return 0
	case !(size < 1e300):
		return 9
	}
	for n = 1; size > 1 && n < 5; n++ {
		size /= 2
	}
	if x < 0 {
		return -n
	}
	return n
}
