package interp

import (
	"fmt"

	"plumb/program"
	"plumb/tensor"
)

// placer brings a tensor to a placement and an sbp.
type placer func(t *tensor.Tensor, placement, sbp string) error

// toGlobal brings a tensor to where it is told; without ranks that is nowhere.
// The result is the tensor itself.
func (r *Run) toGlobal(c *program.Call) (*value, error) {
	ref, ok := c.Args[0].(program.Ref)
	v := r.env[ref]
	if !ok || len(c.Args) != 1 || v == nil || v.tensor == nil {
		return nil, fmt.Errorf("%w: %s of something other than a tensor", errUnsupported, c.Target)
	}
	if err := r.refresh(v); err != nil || r.place == nil {
		return &value{tensor: v.tensor}, err
	}
	said := map[string]string{}
	for _, kw := range c.Kwargs {
		text, ok := kw.Value.(string)
		if !ok {
			return nil, fmt.Errorf("%w: %s with %s that is no text", errUnsupported, c.Target, kw.Name)
		}
		said[kw.Name] = text
	}
	return &value{tensor: v.tensor}, r.place(v.tensor.Tensor, said["placement"], said["sbp"])
}
