package command

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"plumb/backend/worker"
)

// versionInfo says what this program is.
type versionInfo struct {
	Version  string   `json:"version"`
	Commit   string   `json:"commit"`
	Modified bool     `json:"modified,omitempty"` // the sources were not those of the commit
	Go       string   `json:"go"`
	Platform string   `json:"platform"`
	CPU      []string `json:"cpu"`
	BLAS     string   `json:"blas,omitempty"` // of the reference
}

// thisBuild reads what the Go tool has written into the program.
func thisBuild() versionInfo {
	b := versionInfo{Version: "unknown", Commit: "unknown", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH, CPU: cpuFeatures()}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	b.Version = info.Main.Version
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	return b
}

// plumbVersion is the commit or the version that the program was built from.
func plumbVersion() string {
	b := thisBuild()
	if b.Commit != "unknown" {
		return b.Commit[:min(12, len(b.Commit))]
	}
	return b.Version
}

func newVersion() *cobra.Command {
	var blas, asJSON bool
	var python string
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version, commit, Go version and CPU features",
		Example: `  plumb version
  plumb version --blas      also the linear algebra library that PyTorch uses`,
		Args: noArguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			b := thisBuild()
			if blas {
				var err error
				if b.BLAS, err = loadedBLAS(cmd.Context(), python); err != nil {
					return harness(err)
				}
			}
			if asJSON {
				return json.NewEncoder(cmd.OutOrStdout()).Encode(b)
			}
			b.print(cmd.OutOrStdout())
			return nil
		},
	}
	fl := cmd.Flags()
	fl.BoolVar(&blas, "blas", false, "start PyTorch and print the linear algebra library (BLAS) that it uses")
	pythonFlag(fl, &python)
	jsonFlag(fl, &asJSON, "print one object")
	needs(cmd, "python", "blas")
	return cmd
}

// loadedBLAS asks PyTorch.
func loadedBLAS(ctx context.Context, python string) (string, error) {
	path, _, err := worker.FindPython(python)
	if err != nil {
		return "", err
	}
	w, err := worker.Open(ctx, worker.Config{Python: path})
	if err != nil {
		return "", err
	}
	defer w.Close()
	if blas := w.Info().Features["blas"]; blas != "" {
		return blas, nil
	}
	return "unknown", nil
}

func (b *versionInfo) print(out io.Writer) {
	commit := b.Commit
	if b.Modified {
		commit += ", modified"
	}
	fmt.Fprintf(out, "plumb     %s\ncommit    %s\ngo        %s\nplatform  %s\ncpu       %s\n", b.Version, commit, b.Go, b.Platform, strings.Join(b.CPU, " "))
	if b.BLAS != "" {
		fmt.Fprintf(out, "blas      %s\n", b.BLAS)
	}
}
