//go:build !linux

package worker

import (
	"context"
	"errors"

	"plumb/backend"
)

// Forker is a process of which workers are forks; there is one on Linux.
type Forker struct{}

// OpenForker fails.
func OpenForker(context.Context, Config) (*Forker, error) {
	return nil, &backend.Fault{Backend: "worker", Err: errors.New("workers are forked on Linux alone")}
}

// Gone reports true.
func (f *Forker) Gone() bool { return true }

// Close does nothing.
func (f *Forker) Close() {}
