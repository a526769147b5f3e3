package command

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"plumb/internal/wheel"
)

func newOpsWheel() *cobra.Command {
	w := &wheel.Wheel{Summary: "Operators of Plumb, called from Python"}
	var out string
	cmd := &cobra.Command{
		Use:   "wheel [PACKAGE]",
		Short: "Make a Python package of operators, for numpy, DLPack and PyTorch",
		Long: `Wheel compiles a Go package that exports a table of operators to a shared library
and writes it as a wheel for Linux on x86-64, which pip installs: numpy's arrays,
PyTorch's tensors and whatever speaks DLPack are arguments of its operators. Such a
package of your own is three lines, which plumb ops new writes; that of Plumb's
operators is the default. It needs Go and a C compiler.`,
		Example: `  plumb ops wheel
  plumb ops wheel ./python --name leaky
  pip install ./leaky-0.1.0-*.whl && python3 -c 'import leaky; help(leaky.ops.leaky_relu_yzh)'`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			w.Main = "plumb/cmd/plumblib"
			if len(args) == 1 {
				w.Main = args[0]
			}
			path, err := w.Build(out)
			if err != nil {
				return usage(err)
			}
			info, err := os.Stat(path)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s: %.1f MB\nnext: pip install %s\n", path, float64(info.Size())/1e6, path)
			return err
		},
	}
	cmd.Flags().StringVar(&w.Name, "name", "plumb", "the name of the Python package")
	cmd.Flags().StringVar(&w.Version, "version", "0.1.0", "its version")
	cmd.Flags().StringVar(&out, "out", ".", "the folder to write the wheel into")
	return cmd
}
