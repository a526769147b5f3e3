package native

import (
	"time"

	"plumb/global"
	"plumb/tensor"
)

// Tampered returns the backend with faults in what boxings bring about.
func (b *GlobalBackend) Tampered(f func(from, to *global.Tensor, parts []*tensor.Tensor)) *GlobalBackend {
	c := *b
	c.tamper = f
	return &c
}

// Within returns the backend with another limit of time.
func (b *GlobalBackend) Within(d time.Duration) *GlobalBackend {
	c := *b
	c.limit = d
	return &c
}
