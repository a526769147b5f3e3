package command

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"plumb/internal/campaign/report"
)

// terminal is a pseudo-terminal with plumb in it, as it is used at a keyboard.
type terminal struct {
	t       *testing.T
	keys    *os.File // the master
	screens *os.File // what the program has
	cmd     *exec.Cmd

	mu    sync.Mutex
	shown []byte
	moved chan struct{} // something more is shown
	done  chan struct{} // all is
}

// openTerminal returns a pseudo-terminal of so many columns.
func openTerminal(t *testing.T, columns int) *terminal {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip("no pseudo-terminals: ", err)
	}
	var n int
	if err = unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0); err == nil {
		n, err = unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	}
	if err != nil {
		t.Fatal(err)
	}
	slave, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	term := &terminal{t: t, keys: master, screens: slave, moved: make(chan struct{}, 1), done: make(chan struct{})}
	term.resize(columns)
	t.Cleanup(func() { master.Close(); slave.Close() })
	return term
}

func (x *terminal) resize(columns int) {
	x.t.Helper()
	if err := unix.IoctlSetWinsize(int(x.keys.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 40, Col: uint16(columns)}); err != nil {
		x.t.Fatal(err)
	}
}

// plumb starts plumb on the terminal, its standard output there too unless out is set.
func (x *terminal) plumb(out *os.File, env []string, args ...string) {
	x.t.Helper()
	exe, err := os.Executable()
	if err != nil {
		x.t.Fatal(err)
	}
	plumb := filepath.Join(x.t.TempDir(), "plumb")
	if err := os.Symlink(exe, plumb); err != nil {
		x.t.Fatal(err)
	}
	x.cmd = exec.Command(plumb, args...)
	x.cmd.Stdin, x.cmd.Stdout, x.cmd.Stderr = x.screens, x.screens, x.screens
	if out != nil {
		x.cmd.Stdout = out
	}
	x.cmd.Env = append(append(os.Environ(), "TERM=xterm", "NO_COLOR=", "XDG_CACHE_HOME="+x.t.TempDir()), env...)
	x.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := x.cmd.Start(); err != nil {
		x.t.Fatal(err)
	}
	x.screens.Close()
	go func() {
		defer close(x.done)
		for part := make([]byte, 1<<12); ; {
			n, err := x.keys.Read(part)
			if err != nil {
				return // the last program has closed it
			}
			x.mu.Lock()
			x.shown = append(x.shown, part[:n]...)
			x.mu.Unlock()
			select {
			case x.moved <- struct{}{}:
			default:
			}
		}
	}()
}

// text is what was shown so far.
func (x *terminal) text() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return string(x.shown)
}

// until waits until what is shown from some place on holds a text, and returns where it ends.
func (x *terminal) until(from int, what *regexp.Regexp) int {
	x.t.Helper()
	limit := time.After(time.Minute)
	for {
		if at := what.FindStringIndex(x.text()[from:]); at != nil {
			return from + at[1]
		}
		select {
		case <-x.moved:
		case <-limit:
			text := x.text()
			x.t.Fatalf("no %s on the terminal, which ends in %q", what, text[max(0, len(text)-1000):])
		}
	}
}

// end waits for the program and returns its exit code.
func (x *terminal) end() int {
	x.t.Helper()
	ended := make(chan struct{})
	go func() { _ = x.cmd.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-time.After(time.Minute):
		_ = x.cmd.Process.Kill()
		x.t.Fatal("plumb does not end")
	}
	<-x.done
	return x.cmd.ProcessState.ExitCode()
}

// widest is the largest number of columns of a line that is drawn.
func widest(text string) (n int) {
	for line := range strings.SplitSeq(regexp.MustCompile(`\x1b\[[0-9;]*[A-Za-z]`).ReplaceAllString(text, "\n"), "\n") {
		n = max(n, report.Columns(strings.TrimRight(line, "\r")))
	}
	return n
}

// endless is a test file whose run takes longer than any test waits.
func endless(t *testing.T) string {
	return save(t, "endless.py", "@autotest(n=100000, check_graph=False)\ndef test_"+strings.Repeat("long_name_", 30)+"():\n    return torch.relu(random_tensor())\n")
}

// TestTerminal: the live view is drawn again, as wide as the window is now; Ctrl-C ends
// the run soon with what there is.
func TestTerminal(t *testing.T) {
	x := openTerminal(t, 80)
	x.plumb(nil, nil, "run", endless(t), "--reference", "native", "--seed", "1", "--html", filepath.Join(t.TempDir(), "p.html"))
	at := x.until(0, regexp.MustCompile(`cases, [^\x1b]*lane \d[^\x1b]*\x1b\[[23]A\r\x1b\[J\d`))
	if n := widest(x.text()); n != 79 {
		t.Errorf("on 80 columns a line takes %d", n)
	}
	x.resize(200)
	x.until(at, regexp.MustCompile(`lane \d {2}[^\n]{150}`))
	if n := widest(x.text()); n != 199 {
		t.Errorf("on 200 columns a line takes %d", n)
	}
	x.resize(80) // where what was drawn takes three lines
	at = x.until(len(x.text()), regexp.MustCompile(`\x1b\[([4-9]|\d\d)A`))
	began := time.Now()
	if _, err := x.keys.WriteString("\x03"); err != nil {
		t.Fatal(err)
	}
	if code := x.end(); code != exitFault {
		t.Errorf("exit code %d", code)
	}
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("Ctrl-C ends it after %s", took)
	}
	end := screen(regexp.MustCompile(`\x1b\[\d+m|\^C`).ReplaceAllString(x.text()[at:], ""))
	for _, want := range []string{"judged: ", " aligned in ", "native against native, seed 1", "plumb: interrupted"} {
		if !strings.Contains(end, want) {
			t.Errorf("no %q at the end:\n%s", want, end)
		}
	}
	if strings.Contains(end, "lane 1") {
		t.Errorf("the view is left:\n%s", end)
	}
}

// TestNothingIsLeft: what a run has in the folder for temporary files is gone soon after
// its end, also where it was killed.
func TestNothingIsLeft(t *testing.T) {
	slow(t)
	python := needTorch(t)
	for _, killed := range []bool{false, true} {
		dir := t.TempDir()
		n := "2"
		if killed {
			n = "1000000"
		}
		cmd := exec.Command(plumbProgram(t), "ops", "run", "relu", "-n", n, "--store", "none", "--json", "--python", python)
		cmd.Env = append(os.Environ(), "TMPDIR="+dir)
		cases, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if _, err := cases.Read(make([]byte, 1)); err != nil { // until then the next run removes it
			t.Fatal(err)
		}
		if in, _ := os.ReadDir(dir); killed && len(in) == 0 {
			t.Error("nothing was there before it was killed")
		}
		if killed {
			_ = cmd.Process.Kill()
		}
		_, _ = io.Copy(io.Discard, cases)
		_ = cmd.Wait()
		left, until := []os.DirEntry{nil}, time.Now().Add(20*time.Second)
		for len(left) > 0 && time.Now().Before(until) {
			time.Sleep(20 * time.Millisecond)
			left, _ = os.ReadDir(dir)
		}
		if len(left) > 0 {
			t.Errorf("killed %t: %s is left", killed, left[0].Name())
		}
	}
}

// TestHistoryFitsTheTerminal: the list of runs has fewer columns where there is less room.
func TestHistoryFitsTheTerminal(t *testing.T) {
	kept := filepath.Join(t.TempDir(), "plumb.db")
	x := openTerminal(t, 80)
	x.plumb(nil, nil, "ops", "run", "relu", "-n", "1", "--reference", "native", "--store", kept, "-q")
	x.end()
	for width, has := range map[int]string{80: "failed", 200: "unsupported"} {
		x := openTerminal(t, width)
		x.plumb(nil, nil, "history", "--store", kept)
		if code := x.end(); code != 0 || widest(x.text()) > width || !strings.Contains(x.text(), has) {
			t.Errorf("at %d columns, exit code %d:\n%s", width, code, x.text())
		}
	}
}

// TestPaintOnTerminals: what is painted, and where, is as it is asked for.
func TestPaintOnTerminals(t *testing.T) {
	file := save(t, "short.py", "@autotest(n=3, check_graph=False)\ndef test_short():\n    return torch.relu(random_tensor())\n")
	codes := regexp.MustCompile(`\x1b\[\d+m`)
	for _, c := range []struct {
		env, args             string
		file                  bool // the standard output is one
		painted, paintedFiles bool
	}{
		{painted: true},
		{env: "NO_COLOR=1"},
		{env: "TERM=dumb"},
		{args: "--color never"},
		{env: "NO_COLOR=1", args: "--color always", painted: true},
		{file: true},
		{file: true, args: "--color always", paintedFiles: true},
	} {
		dir := t.TempDir()
		files := map[string]string{}
		for _, format := range []string{"html", "junit", "markdown"} {
			files[format] = filepath.Join(dir, format)
		}
		args := append([]string{"run", file, "--reference", "native", "-q"}, strings.Fields(c.args)...)
		for format, path := range files {
			args = append(args, "--"+format, path)
		}
		var out *os.File
		if c.file {
			var err error
			if out, err = os.Create(filepath.Join(dir, "out")); err != nil {
				t.Fatal(err)
			}
		}
		x := openTerminal(t, 80)
		x.plumb(out, strings.Fields(c.env), args...)
		if code := x.end(); code != exitAligned {
			t.Fatalf("%+v ends with %d:\n%s", c, code, x.text())
		}
		if painted := codes.MatchString(x.text()); painted != c.painted {
			t.Errorf("%+v: painted %v:\n%q", c, painted, x.text())
		}
		if strings.Contains(x.text(), "\x1b[J") || strings.Contains(x.text(), "lane ") {
			t.Errorf("%+v: -q shows a view:\n%q", c, x.text())
		}
		for format, path := range files {
			if text := readFile(t, path); strings.Contains(text, "\x1b") {
				t.Errorf("%+v: codes in %s", c, format)
			}
		}
		if c.file {
			if text := readFile(t, out.Name()); !strings.Contains(text, "3 aligned") || bytes.Contains([]byte(text), []byte("\x1b")) != c.paintedFiles {
				t.Errorf("%+v: the output file has %q", c, text)
			}
		}
	}
}
