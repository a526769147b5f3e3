package docs_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

// TestCampaignExamples: the manifests are YAML of the kinds that they should be, the
// script is a shell's, and each flag of plumb in them exists.
func TestCampaignExamples(t *testing.T) {
	read := func(name string) []byte {
		text, err := os.ReadFile(filepath.Join(root, "examples/campaign", name))
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	kinds := map[string]int{}
	d := yaml.NewDecoder(bytes.NewReader(read("kubernetes.yaml")), yaml.Strict())
	for {
		var one struct {
			APIVersion string         `yaml:"apiVersion"`
			Kind       string         `yaml:"kind"`
			Metadata   map[string]any `yaml:"metadata"`
			Spec       map[string]any `yaml:"spec"`
		}
		if err := d.Decode(&one); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if one.APIVersion == "" || one.Metadata["name"] == nil || one.Spec == nil {
			t.Errorf("%+v", one)
		}
		kinds[one.Kind]++
	}
	if kinds["Service"] != 1 || kinds["StatefulSet"] != 1 || kinds["Deployment"] != 1 {
		t.Error(kinds)
	}
	var workflow struct {
		Jobs map[string]struct {
			Steps []map[string]any `yaml:"steps"`
		} `yaml:"jobs"`
	}
	if err := yaml.Unmarshal(read("github.yaml"), &workflow); err != nil || len(workflow.Jobs["aligned"].Steps) < 5 {
		t.Error(err, workflow)
	}
	if out, err := exec.Command("sh", "-n", filepath.Join(root, "examples/campaign/slurm.sh")).CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	var flags []string
	for _, file := range []string{"campaign.go", "campaignserve.go", "campaignspec.go", "drawing.go", "subjects.go", "flags.go", "storedfiles.go", "reportfiles.go"} {
		source, err := os.ReadFile(filepath.Join(root, "cmd/command", file))
		if err != nil {
			t.Fatal(err)
		}
		flags = append(flags, string(source))
	}
	for _, name := range []string{"kubernetes.yaml", "slurm.sh", "github.yaml"} {
		for line := range strings.Lines(string(read(name))) {
			at := strings.Index(line, "--listen")
			if at < 0 && !strings.Contains(line, "plumb campaign") && !strings.Contains(line, "worker") {
				continue
			}
			for _, word := range strings.FieldsFunc(line, func(r rune) bool { return strings.ContainsRune(" ,[]\"", r) }) {
				if name, ok := strings.CutPrefix(word, "--"); ok && name != "" && !strings.Contains(strings.Join(flags, ""), `"`+name+`"`) {
					t.Errorf("plumb has no flag --%s: %s", name, line)
				}
			}
		}
	}
}
