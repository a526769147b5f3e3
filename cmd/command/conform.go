package command

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"plumb/internal/conform/config"
)

func newConform() *cobra.Command {
	return parent(&cobra.Command{
		Use:   "conform",
		Short: "Record a conformance config on the reference, judge backends by it",
		Long: `Conform reads configs in the language of DIOPI's conformance test (a Python file
with the dict, or YAML) and expands them to cases. Gen records what PyTorch
computes for them, run judges a backend by that recording, and history shows
earlier runs.`,
	}, newConformExpand(), newConformList(), newConformGen(), newConformRun(), newConformHistory())
}

// readConfig loads a config and prints its warnings.
func readConfig(name string, warnings io.Writer) (*config.Config, error) {
	src, err := configText(name)
	if err != nil {
		return nil, err
	}
	return loadConfig(name, src, warnings)
}

// configText reads the text of a config.
func configText(name string) ([]byte, error) {
	f, err := openRegular(name)
	if err != nil {
		return nil, usage(err)
	}
	defer f.Close()
	src, err := io.ReadAll(io.LimitReader(f, config.MaxSource+1))
	if err != nil {
		return nil, usage(err)
	}
	return src, nil
}

func loadConfig(name string, src []byte, warnings io.Writer) (*config.Config, error) {
	c, err := config.Load(name, src)
	if err != nil {
		return nil, usage(err)
	}
	for _, w := range c.Warnings {
		fmt.Fprintln(warnings, "warning:", w)
	}
	return c, nil
}
