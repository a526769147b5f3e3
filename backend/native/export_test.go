package native

import (
	"plumb/global"
	"plumb/tensor"
)

// Tampered returns the backend with faults in what boxings bring about.
func (b *GlobalBackend) Tampered(f func(from, to *global.Tensor, parts []*tensor.Tensor)) *GlobalBackend {
	c := *b
	c.tamper = f
	return &c
}
