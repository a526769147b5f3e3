package scratch

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestMain makes a folder and waits, in the process that TestSweep kills.
func TestMain(m *testing.M) {
	if os.Getenv("SCRATCH_WAITS") == "" {
		os.Exit(m.Run())
	}
	dir, err := Dir("test")
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "file"), nil, 0o644)
	}
	if err != nil {
		os.Exit(1)
	}
	os.Stdout.WriteString(dir + "\n")
	_, _ = io.ReadAll(os.Stdin)
}

// TestSweep: a folder stays while its process lives, and goes after the process
// was killed.
func TestSweep(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), "SCRATCH_WAITS=1")
	if _, err := child.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	line := make([]byte, 4096)
	n, err := out.Read(line)
	if err != nil {
		t.Fatal(err)
	}
	dir := string(line[:n-1])
	own, err := Dir("test")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(own, "file"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	Sweep()
	for _, used := range []string{dir, own} {
		if _, err := os.Stat(used); err != nil {
			t.Errorf("a folder in use is gone: %v", err)
		}
	}
	_ = child.Process.Kill()
	_ = child.Wait()
	Sweep()
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the folder of a process that was killed stays: %v", err)
	}
	if err := Remove(own); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(os.TempDir()); err != nil || len(left) > 0 {
		t.Errorf("%v is left: %v", left, err)
	}
}

// TestLock: a folder has one writer.
func TestLock(t *testing.T) {
	dir := t.TempDir()
	release, taken := Lock(dir)
	if taken {
		t.Fatal("the folder is taken")
	}
	if _, taken := Lock(dir); taken != canLock {
		t.Errorf("a second lock: taken %v", taken)
	}
	release()
	if release, taken = Lock(dir); taken {
		t.Error("it is still taken")
	}
	release()
}

// TestFile: a file leaves nothing behind.
func TestFile(t *testing.T) {
	dir := t.TempDir()
	f, err := File(dir, "test")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString("text"); err != nil {
		t.Error(err)
	}
	if err := Discard(f); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("%v is left: %v", left, err)
	}
}
