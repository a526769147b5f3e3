package command

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"plumb/backend/worker"
)

// suite closes after its tests what they share.
type suite struct{ *testing.M }

func (s suite) Run() int {
	code := s.M.Run()
	if torch != nil {
		_ = torch.Close()
	}
	_ = os.RemoveAll(workersInC.dir)
	return code
}

// TestMain keeps tests out of the results store of whoever runs them.
func TestMain(m *testing.M) {
	if _, set := os.LookupEnv(storeVariable); !set {
		_ = os.Setenv(storeVariable, noStore)
	}
	testscript.Main(suite{m}, map[string]func(){
		"plumb": func() { os.Exit(run()) },
	})
}

// findTorch returns the Python that has torch, or why there is none.
var findTorch = sync.OnceValues(func() (string, error) {
	path, _, err := worker.FindPython("")
	return path, err
})

// needTorch returns the Python that has torch, and skips the test without one.
func needTorch(t testing.TB) string {
	path, err := findTorch()
	if err != nil {
		t.Skipf("needs PyTorch: %s", firstLine(err))
	}
	return path
}

// slow skips a test that -short leaves out.
func slow(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("takes long")
	}
}

func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

// save writes a file of the test and returns its path.
func save(t *testing.T, name, text string) string {
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}
