//go:build !linux

package worker

import (
	"context"
	"errors"
)

// forker is a process of which workers are forks; there is one on Linux.
type forker struct{}

func (w *Worker) openForker(context.Context) (*forker, error) {
	return nil, errors.New("workers are forked on Linux alone")
}

func (f *forker) finish() {}
