//go:build !unix

package worker

import (
	"context"
	"errors"
	"os"

	"plumb/backend"
)

var errUnsupported = errors.New("worker processes need a Unix system")

func memoryFile() (*os.File, error) { return nil, errUnsupported }

func (m *memory) remap(int) error { return errUnsupported }
func (m *memory) trim()           {}
func unmap([]byte)                {}
func (m *memory) close()          {}

type process struct{}

func (w *Worker) start(context.Context) error {
	return &backend.Fault{Backend: w.info.Name, Err: errUnsupported}
}

func (w *Worker) roundTrip(context.Context, []byte) ([]byte, *loss, error) {
	return nil, nil, w.fault(errUnsupported)
}

func (w *Worker) drop(bool) string { return "" }
