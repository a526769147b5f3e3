// Package baselines embeds the recorded reference data that Plumb ships, so
// that operators can be judged on a machine without PyTorch.
package baselines

import (
	"bytes"
	_ "embed"
	"io"
)

// Made by: go run ./cmd/plumb run --seed 2 -n 8 --record baselines/torch.safetensors.zst
//
//go:embed torch.safetensors.zst
var torch []byte

// Default returns the baseline of the shipped suites, recorded on PyTorch.
func Default() io.Reader { return bytes.NewReader(torch) }
