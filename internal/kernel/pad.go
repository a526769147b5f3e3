package kernel

import "plumb/tensor"

// PadConstant sets out to the value and then to in's entries, which begin at
// entry low[d] of dimension d; a negative low leaves out in's first entries.
func PadConstant(out, in, value *tensor.Tensor, low []int) error {
	fill, err := value.Expand(out.Shape()...)
	if err != nil {
		return err
	}
	out.CopyFrom(fill)
	for d, l := range low {
		n := min(in.Shape()[d]-max(-l, 0), out.Shape()[d]-max(l, 0))
		if n <= 0 {
			return nil
		}
		out, in = out.Narrow(d, max(l, 0), n, 1), in.Narrow(d, max(-l, 0), n, 1)
	}
	out.CopyFrom(in)
	return nil
}
