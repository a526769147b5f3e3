package docs_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"plumb/backend/worker"
)

const root = "../.."

var shell = regexp.MustCompile("(?ms)^```sh\n(.*?)^```$")

// pages are the pages whose commands are run.
var pages = []string{"framework.md", "device.md", "go-code.md", "write-an-operator.md", "kernel.md", "subject.md", "selftest.md", "campaigns.md", "../examples/ownworker/README.md"}

// TestCommands runs the commands of the pages, each block from the repository's
// root, with plumb on the path and a folder of the test for /tmp.
func TestCommands(t *testing.T) {
	if testing.Short() {
		t.Skip("runs other tests")
	}
	if _, _, err := worker.FindPython(""); err != nil {
		t.Skip(err)
	}
	bin := t.TempDir()
	if out, err := exec.Command("go", "build", "-o", filepath.Join(bin, "plumb"), root+"/cmd/plumb").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	t.Setenv("GOCACHE", goCache(t)) // which would be below the next
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	for _, page := range pages {
		t.Run(page, func(t *testing.T) { commands(t, page) })
	}
}

func commands(t *testing.T, page string) {
	text, err := os.ReadFile(filepath.Join(root, "docs", page))
	if err != nil {
		t.Fatal(err)
	}
	blocks := shell.FindAllSubmatch(text, -1)
	if len(blocks) == 0 {
		t.Fatal("the page has no commands")
	}
	tmp := t.TempDir()
	for _, b := range blocks {
		cmd := exec.Command("sh", "-e", "-c", strings.ReplaceAll(string(b[1]), "/tmp/", tmp+"/"))
		cmd.Dir = root
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", b[1], err, out)
		}
	}
}

func goCache(t *testing.T) string {
	out, err := exec.Command("go", "env", "GOCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}
