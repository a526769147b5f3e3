package command

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"plumb/internal/project"
)

// TestEveryFlagHasItsKey: in the table of its command, with the value that it has.
func TestEveryFlagHasItsKey(t *testing.T) {
	path := filepath.Join(t.TempDir(), project.Name)
	t.Setenv("PLUMB_CONFIG", path)
	keys := 0
	everyCommand(newRoot(), func(cmd *cobra.Command) {
		if !cmd.Runnable() || cmd.HasSubCommands() || cmd.Name() == "help" || commandPath(cmd) == "version" || commandPath(cmd) == "doctor" {
			return
		}
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			value := f.Value.String()
			if f.Name == "help" || f.Name == "set" || f.Annotations[needsFlag] != nil || value == "" || strings.HasPrefix(value, "[") || value == "false" {
				return
			}
			text := "[" + strings.ReplaceAll(commandPath(cmd), " ", ".") + "]\n" + f.Name + " = '" + value + "'\n"
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			fresh, _, err := newRoot().Find(strings.Fields(commandPath(cmd)))
			if err == nil {
				err = configured(fresh)
			}
			if got := fresh.Flags().Lookup(f.Name); err != nil || got.Annotations[fromFile] == nil || !got.Changed {
				t.Errorf("%s--%s: %v", text, f.Name, err)
			}
			keys++
		})
	})
	if keys < 50 {
		t.Errorf("%d keys", keys)
	}
}
