package docs_test

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
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
	source, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	blocks := shell.FindAllSubmatch(source, -1)
	if len(blocks) == 0 {
		t.Fatal("the page has no commands")
	}
	dir := t.TempDir() // stands in for /tmp
	for _, b := range blocks {
		text := strings.ReplaceAll(string(b[1]), "/tmp/", dir+"/")
		cmd := exec.Command("sh", "-e", "-c", text)
		cmd.Dir = ".."
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", text, err, out)
		}
	}
}
