package command

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

// newDocs is plumb docs: documentation that is made of the commands themselves.
func newDocs() *cobra.Command {
	man := &cobra.Command{
		Use:   "man FOLDER",
		Short: "Write a man page per command into a folder",
		Example: `  plumb docs man ~/.local/share/man/man1 && man plumb-run
  plumb docs man man && man -l man/plumb-run.1`,
		Args: takes(1, 1, "a folder"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return usage(err)
			}
			root := cmd.Root()
			root.DisableAutoGenTag = true
			header := &doc.GenManHeader{Title: "PLUMB", Section: "1", Source: "plumb", Manual: "Plumb"}
			if err := doc.GenManTree(root, header, args[0]); err != nil {
				return fault(err)
			}
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "a page per command is in %s: man -l %[1]s/plumb.1\n", args[0])
			return err
		},
	}
	return parent(&cobra.Command{Use: "docs", Short: "Documentation made of the commands"}, man)
}
