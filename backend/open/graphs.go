package open

import (
	"fmt"
	"strings"

	"plumb/backend"
	"plumb/backend/worker"
)

// NeedGraphModes returns why the flag that asks for a check of graphs cannot be
// honoured for a candidate: it has no graph modes beside the mode in which it
// runs. It returns nil where it has.
func NeedGraphModes(flag, name string, info backend.Info) error {
	switch {
	case info.Own() != backend.Eager:
		return fmt.Errorf("%s has no effect on %s: it runs every case in the mode %s already", flag, name, info.Own())
	case name == "torch" || strings.HasPrefix(name, "torch:"):
		return fmt.Errorf("%s: PyTorch's graphs are candidates of their own: torch:%s", flag, strings.Join(worker.TorchModes[1:], " or torch:"))
	case len(info.GraphModes()) == 0:
		return fmt.Errorf("%s: %s has no graph mode; leave the flag out", flag, name)
	}
	return nil
}
