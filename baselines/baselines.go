// Package baselines embeds the recorded reference data that Plumb ships, so
// that operators can be judged on a machine without PyTorch.
package baselines

import (
	"bytes"
	"embed"
	"io"
	"io/fs"
)

// Made by: go run ./cmd/plumb run --seed 2 -n 8 --record baselines/torch.safetensors.zst
//
//go:embed torch.safetensors.zst
var torch []byte

// Default returns the baseline of the shipped suites, recorded on PyTorch.
func Default() io.Reader { return bytes.NewReader(torch) }

// ConformanceConfig is the shipped conformance config, for conform.Load: every
// operator of Plumb's table, in the language of DIOPI's.
//
//go:embed conformance/config.py
var ConformanceConfig []byte

// Made by: go run ./cmd/plumb conform gen baselines/conformance/config.py --out NEW --truth contested
//
//go:embed conformance
var conformed embed.FS

// Conformance returns the baseline of the shipped conformance config, recorded
// on PyTorch: a directory for package conform/baseline.
func Conformance() fs.FS {
	dir, err := fs.Sub(conformed, "conformance")
	if err != nil {
		panic(err) // the name is valid
	}
	return dir
}
