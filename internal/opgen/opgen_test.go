package main

import (
	"os"
	"path/filepath"
	"testing"

	"plumb/nn"
	"plumb/ops"
)

func TestOutputsAreFresh(t *testing.T) {
	dir, err := root()
	if err != nil {
		t.Fatal(err)
	}
	files, err := outputs(ops.Table(), nn.Modules())
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range files {
		got, err := os.ReadFile(filepath.Join(dir, path))
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != string(want) {
			t.Errorf("%s is stale; run go generate ./api", path)
		}
	}
}
