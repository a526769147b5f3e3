package docs_test

import (
	"os"
	"os/exec"
	"regexp"
	"testing"

	"plumb/backend/worker"
)

var shell = regexp.MustCompile("(?ms)^```sh\n(.*?)^```$")

// pages are the pages whose commands are run.
var pages = []string{"adding-an-operator.md", "go-tests.md", "selftest.md"}

// TestCommands runs the commands of the pages, each block from the repository's root.
func TestCommands(t *testing.T) {
	if testing.Short() {
		t.Skip("runs other tests")
	}
	if _, _, err := worker.FindPython(""); err != nil {
		t.Skip(err)
	}
	for _, page := range pages {
		t.Run(page, func(t *testing.T) { commands(t, page) })
	}
}

func commands(t *testing.T, page string) {
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	blocks := shell.FindAllSubmatch(text, -1)
	if len(blocks) == 0 {
		t.Fatal("the page has no commands")
	}
	for _, b := range blocks {
		cmd := exec.Command("sh", "-e", "-c", string(b[1]))
		cmd.Dir = ".."
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", b[1], err, out)
		}
	}
}
