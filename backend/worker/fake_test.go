//go:build unix

package worker

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"plumb/backend"
	"plumb/program"
	"plumb/tensor"
)

// ended are what is to be done after the tests, which share workers.
var ended []func()

// TestMain is also the fake worker: a worker in another language than Python.
func TestMain(m *testing.M) {
	if hello := os.Getenv("PLUMB_FAKE_WORKER"); hello != "" {
		fakeWorker(hello)
	}
	code := m.Run()
	for _, end := range ended {
		end()
	}
	End()
	os.Exit(code)
}

const fakeHello = `plumb-worker 1 {"name":"fake","version":"0","devices":["cpu"],"modes":["eager"],"cpu":0.5,"unknown":{}}`

func fakeWorker(hello string) {
	requests, replies := bufio.NewReader(os.NewFile(3, "requests")), os.NewFile(4, "replies")
	mem, err := unix.Mmap(5, 0, startMemory, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		panic(err)
	}
	fmt.Println("a print of the subject")
	fmt.Fprintln(replies, hello)
	for {
		var size [4]byte
		if _, err := io.ReadFull(requests, size[:]); err != nil {
			os.Exit(0)
		}
		frame := make([]byte, binary.LittleEndian.Uint32(size[:]))
		io.ReadFull(requests, frame)
		fakeFrame(replies, fakeReply(frame, mem, replies))
	}
}

func fakeFrame(replies *os.File, reply string) {
	replies.Write(append(binary.LittleEndian.AppendUint32(nil, uint32(len(reply))), reply...))
}

type fakeCase struct {
	Mode   string
	Inputs []json.RawMessage
	Calls  [][]json.RawMessage
}

func fakeReply(frame []byte, mem []byte, replies *os.File) string {
	var request struct {
		Cases      []fakeCase
		Signatures string
	}
	if err := json.Unmarshal(frame, &request); err != nil {
		os.Exit(70)
	}
	if request.Signatures != "" {
		return `{"signatures":["` + request.Signatures + `(Tensor input) -> Tensor","nonsense"]}`
	}
	var cases []string
	if n := len(request.Cases); n > 4 && request.Cases[0].Mode == "compile" {
		time.Sleep(time.Hour)
	} else if n > 0 && request.Cases[0].Mode == "compile" {
		time.Sleep(700 * time.Millisecond)
	}
	for i, c := range request.Cases {
		binary.NativeEndian.PutUint32(mem, uint32(i+1))
		binary.NativeEndian.PutUint32(mem[4:], 0)
		cases = append(cases, fakeOutcome(c, mem, replies))
	}
	return `{"cpu":1.5,"size":1,"new":[{}],"cases":[` + strings.Join(cases, ",") + `]}`
}

// fakeOutcome does what the target of the case's only call says; any other
// target is the value to answer with.
func fakeOutcome(c fakeCase, mem []byte, replies *os.File) string {
	value := "null"
	switch target := string(c.Calls[0][0]); target {
	case `"first"`: // the first input
		value = strings.Replace(string(c.Inputs[0]), `[`, `["t",`, 1)
	case `"kill"`:
		fmt.Fprintln(os.Stderr, "about to die")
		unix.Kill(os.Getpid(), unix.SIGKILL)
		time.Sleep(time.Hour)
	case `"exit"`:
		os.Exit(3)
	case `"fault"`:
		fmt.Fprintln(os.Stderr, "broken worker")
		os.Exit(70)
	case `"spins late"`:
		time.Sleep(300 * time.Millisecond)
		for spun := 0; ; spun++ {
		}
	case `"spin"`:
		for spun := 0; ; spun++ { // of processor time
		}
	case `"hang"`:
		time.Sleep(time.Hour)
	case `"garbage"`:
		io.WriteString(replies, "hello world, this is no frame")
		time.Sleep(time.Hour)
	case `"notjson"`:
		io.WriteString(replies, "\x03\x00\x00\x00{{{")
		time.Sleep(time.Hour)
	case `"again"`: // answers twice
		defer fakeFrame(replies, `{"cases":[{"status":"ok","values":[5]}]}`)
	case `"later"`: // answers again when nobody asked
		fakeFrame(replies, `{"id":1,"cases":[{"status":"ok","values":[5]}]}`)
		for unread := 1; unread > 0; time.Sleep(time.Millisecond) { // the true answer is not to come with it
			if unread, _ = unix.IoctlGetInt(int(replies.Fd()), unix.TIOCINQ); unread < 0 {
				os.Exit(70)
			}
		}
	case `"late"`: // answers again when the next one is asked
		time.AfterFunc(30*time.Millisecond, func() { fakeFrame(replies, `{"id":1,"cases":[{"status":"ok","values":[5]}]}`) })
	case `"slow"`:
		time.Sleep(60 * time.Millisecond)
	case `"orphan"`: // dies while what it started holds the pipes
		orphan(false)
		os.Exit(3)
	case `"escaped"`: // and has left the process group
		orphan(true)
		os.Exit(3)
	case `"grow"`: // and stays so
		grow()
		value = strconv.Itoa(os.Getpid())
	case `"threads"`: // which it keeps
		for range 15 {
			go func() {
				runtime.LockOSThread()
				time.Sleep(time.Hour)
			}()
		}
		time.Sleep(50 * time.Millisecond)
		value = strconv.Itoa(os.Getpid())
	case `"swell"`: // without end
		for {
			grow()
			time.Sleep(30 * time.Millisecond)
		}
	case `"bomb"`: // processes without end, which leave its group
		for {
			orphan(true)
			time.Sleep(time.Millisecond)
		}
	case `"crowd"`: // threads that compute
		for range 4 {
			go func() {
				for spun := 0; ; spun++ {
				}
			}()
		}
		time.Sleep(time.Hour)
	case `"write"`: // a file without end
		f, err := os.CreateTemp("", "plumb-fake-")
		if err != nil {
			panic(err)
		}
		os.Remove(f.Name())
		for b := make([]byte, 1<<20); ; time.Sleep(time.Millisecond) {
			f.Write(b)
		}
	case `"pour"`:
		for b := bytes.Repeat([]byte("spam "), 1<<16); ; {
			os.Stdout.Write(b)
		}
	case `"take"`: // of the shared memory, without telling
		unix.Ftruncate(5, 400<<20)
		unix.Fallocate(5, 0, 0, 400<<20)
		time.Sleep(time.Hour)
	case `"burst"`: // memory as fast as can be, and says how much
		b, _ := unix.Mmap(-1, 0, 2<<30, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
		unix.Madvise(b, unix.MADV_HUGEPAGE)
		for i := 0; i < len(b); i += 4096 {
			b[i] = 1
			binary.NativeEndian.PutUint32(mem[8:], uint32(i>>20))
		}
	case `"throng"`: // of processes, gone before anybody looks
		r, w, _ := os.Pipe()
		cmd := exec.Command("sh", "-c", "i=0; while [ $i -lt 40 ]; do read x <&3 & i=$((i+1)); done")
		cmd.ExtraFiles = []*os.File{r}
		cmd.Run()
		w.Close()
	case `"sparse"`: // a file without blocks
		path, _ := exec.LookPath("truncate")
		unix.Exec(path, []string{"truncate", "-s", "1T", os.Getenv("FAKE_FILE")}, os.Environ())
	case `"elsewhere"`: // a process with a session of its own, and no marker
		pid, err := exec.Command("env", "-i", "setsid", "-f", "sh", "-c", "echo $$; exec sleep 600 >/dev/null 2>&1").Output()
		if err != nil {
			panic(err)
		}
		value = strings.TrimSpace(string(pid))
	case `"flood"`:
		return `{"status":"raised","class":"` + strings.Repeat("Long", 1000) + `","message":"` + strings.Repeat("\\u001b]0;title\\u0007\\u202e", 50000) + `","call":0}`
	case `"loud"`:
		fmt.Fprint(os.Stderr, "\x1b[2J\x00\a"+strings.Repeat("spam ", 1<<18))
		os.Exit(3)
	case `"reach"`: // what it can of the world
		value = strconv.Itoa(reach())
	case `"die once"`:
		clear(mem[:8])
		if mem[len(mem)-1] == 0 {
			mem[len(mem)-1] = 1
			os.Exit(1)
		}
	default:
		json.Unmarshal(c.Calls[0][0], &value)
	}
	return `{"status":"ok","x":[1,{"a":"]"}],"values":[` + value + `],"elapsed":5}`
}

var kept [][]byte

// grow takes 24 MB, outside Go's heap: the race detector multiplies what is in it.
func grow() {
	b, err := unix.Mmap(-1, 0, 24<<20, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		panic(err)
	}
	for i := 0; i < len(b); i += 4096 {
		b[i] = 1
	}
	kept = append(kept, b)
}

// orphan starts a process that holds the worker's pipes and outlives it.
func orphan(escaped bool) {
	cmd := exec.Command("sleep", "3600")
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.ExtraFiles = []*os.File{os.NewFile(3, "requests"), os.NewFile(4, "replies")}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: escaped}
	if err := cmd.Start(); err != nil {
		panic(err)
	}
	fmt.Fprintf(os.Stderr, "started %d\n", cmd.Process.Pid)
}

func fake(t *testing.T, config Config) *Worker {
	t.Helper()
	config.Command = []string{os.Args[0]}
	if config.Env == nil {
		config.Env = []string{"PLUMB_FAKE_WORKER=" + fakeHello}
	}
	w, err := Open(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	return w
}

func fakeJob(target string) *backend.Job {
	return new(builder).in("x", f32([]int{2}, 1, 2), false).call("y", target).job()
}

func TestFakeRoundTrip(t *testing.T) {
	w := fake(t, Config{})
	if w.Info().Name != "fake" {
		t.Errorf("info %+v", w.Info())
	}
	for _, dtype := range tensor.DTypes {
		x := tensor.NewStrided(dtype, []int{3, 2}, []int{1, 4})
		for i := range 6 {
			x.Set(i, complex(float64(i), 0))
		}
		out := runOK(t, w, new(builder).in("x", x, false).call("y", "first"))
		same(t, dtype.String(), out.Values[0].Tensor, x)
		if out.Elapsed != 5 {
			t.Errorf("elapsed %d", out.Elapsed)
		}
	}
	if got := w.CPUTime(); got != 1500*time.Millisecond {
		t.Errorf("processor time %s", got)
	}
	sigs, err := w.Signatures("f")
	if err != nil || len(sigs) != 1 || sigs[0].Params[0].Name != "input" {
		t.Errorf("signatures %v, %v", sigs, err)
	}
}

// TestForwardModes: in a mode without gradients a worker is asked for none.
func TestForwardModes(t *testing.T) {
	w := fake(t, Config{Env: []string{"PLUMB_FAKE_WORKER=" + strings.Replace(fakeHello, "unknown", `modes":["eager","flat"],"forward_modes":["flat"],"x`, 1)}})
	for _, mode := range []string{"eager", "flat", "eager"} {
		in, err := w.In(mode)
		if err != nil {
			t.Fatal(err)
		}
		out, err := in.Run(t.Context(), new(builder).in("x", f32([]int{2}, 1, 2), true).call("y", "first").back("y", program.Fill{}).job())
		if err != nil || out.ForwardOnly != (mode == "flat") || in.Info().ForwardOnly != (mode == "flat") || out.Values[0].RequiresGrad == (mode == "flat") {
			t.Errorf("%s: %+v, %+v, %v", mode, in.Info(), out, err)
		}
	}
}

// TestForwardOnly: a worker that says it has no gradients is asked for none.
func TestForwardOnly(t *testing.T) {
	for field, forward := range map[string]bool{"unknown": false, `gradients":true,"x`: false, `gradients":false,"x`: true, `gradients":"program","x`: true} {
		w := fake(t, Config{Env: []string{"PLUMB_FAKE_WORKER=" + strings.Replace(fakeHello, "unknown", field, 1)}})
		b := new(builder).in("x", f32([]int{2}, 1, 2), true).call("y", "first").back("y", program.Fill{})
		out := runOK(t, w, b)
		if w.Info().ForwardOnly != forward || out.ForwardOnly != forward || out.Values[0].RequiresGrad == forward {
			t.Errorf("%s: %+v, %+v", field, w.Info(), out)
		}
		if w.ByProgram() != strings.Contains(field, "program") {
			t.Errorf("%s: by a program: %t", field, w.ByProgram())
		}
		if err := w.encode.request(w.mem, []*backend.Job{b.job()}, []int{0}, []int{2}); err != nil {
			t.Fatal(err)
		}
		if asks := bytes.Contains(w.encode.buf, []byte("grads")) || bytes.Contains(w.encode.buf, []byte("backward")); asks == forward {
			t.Errorf("%s: %s", field, w.encode.buf)
		}
	}
}

func TestLosses(t *testing.T) {
	for _, test := range []struct {
		target  string
		status  backend.Status
		class   string
		message string
	}{
		{"kill", backend.Crashed, "SIGKILL", "about to die"},
		{"exit", backend.Crashed, "exit status 3", "in exit"},
		{"hang", backend.TimedOut, "", "no answer within 300ms in hang"},
		{"garbage", backend.Crashed, "garbage", "garbage on the pipe"},
		{"notjson", backend.Crashed, "garbage", "garbage on the pipe"},
		{"die once", backend.OK, "", ""},
		{"again", backend.Crashed, "any", ""},
		{"later", backend.Crashed, "protocol", "an answer to request 1"},
		{"orphan", backend.Crashed, "exit status 3", "in orphan"},
		{"escaped", backend.Crashed, "exit status 3", "in escaped"},
		{"fault", backend.Crashed, "worker", "broken worker"},
		{"loud", backend.Crashed, "exit status 3", "spam spam"},
	} {
		t.Run(test.target, func(t *testing.T) {
			t.Parallel()
			limit := 10 * time.Second // those that die need not wait for a processor at load
			if test.status == backend.TimedOut {
				limit = 300 * time.Millisecond
			}
			w := fake(t, Config{CaseTimeout: limit})
			outs, err := w.RunBatch(t.Context(), []*backend.Job{fakeJob("first"), fakeJob(test.target), fakeJob("1"), fakeJob("2")})
			if err != nil {
				t.Fatal(err)
			}
			for i, want := range []backend.Status{backend.OK, test.status, backend.OK, backend.OK} {
				if outs[i] == nil || outs[i].Status != want {
					t.Fatalf("case %d: %+v, want %s", i, outs[i], want)
				}
			}
			same(t, "first", outs[0].Values[0].Tensor, f32([]int{2}, 1, 2))
			if outs[2].Values[0].Plain != int64(1) || outs[3].Values[0].Plain != int64(2) {
				t.Errorf("order: %v, %v", outs[2].Values, outs[3].Values)
			}
			if out := outs[1]; strings.ContainsAny(out.Message, "\x00\x1b\a") || len(out.Message) > 2*tailSize || out.Class != test.class && test.class != "any" || !strings.Contains(out.Message, test.message) || out.Call != 0 {
				t.Errorf("%+v", out)
			}
		})
	}
}

// A worker that dies before it begins a case says nothing about the case.
func TestIdleDeath(t *testing.T) {
	w := fake(t, Config{})
	if out, err := w.Run(t.Context(), fakeJob("die once")); err != nil || out.Status != backend.OK {
		t.Errorf("%+v, %v", out, err)
	}
}

// A reply that breaks the rules costs the case that was run.
func TestBreaches(t *testing.T) {
	for target, message := range map[string]string{
		`["t","float32",16777216,[1],null,false]`:               "exceeds its storage",
		`["t","float32",-4,[1],null,false]`:                     "outside the shared memory",
		`["t","float32",64,[4611686018427387904,4],null,false]`: "too large",
		`["t","float32",64,[1099511627776],[0],false]`:          "too large",
		`["t","float32",64,[2],[-1],false]`:                     "negative strides",
		`["t","float32",65,[1],null,false]`:                     "not aligned",
		`["t","quint8",64,[1],null,false]`:                      "unknown dtype",
		`["t","float32"]`:                                       "expected",
		`["z"]`:                                                 "tag",
		`1,2`:                                                   "more values than calls",
		`{}`:                                                    "unexpected",
		`["u",[` + strings.Repeat("1,", maxValues) + `1]]`:      "elements of tuples",
		strings.Repeat(`["u",[`, 50) + strings.Repeat(`]]`, 50): "nested",
		`["u",[` + strings.Repeat(hugeTensor+",", 8) + `null]]`: "times the shared memory",
	} {
		w := fake(t, Config{Env: []string{"PLUMB_FAKE_WORKER=" + fakeHello}})
		out, err := w.Run(t.Context(), fakeJob(target))
		if err != nil || out.Status != backend.Crashed || out.Class != "protocol" || !strings.Contains(out.Message, message) {
			t.Errorf("%.60s: %+v, %v; want a crash with %q", target, out, err, message)
		}
		if out, err := w.Run(t.Context(), fakeJob("7")); err != nil || out.Values[0].Plain != int64(7) {
			t.Errorf("%.60s: afterwards %v, %v", target, out, err)
		}
		w.Close()
	}
}

// TestOrphans: what a worker leaves behind ends with it, whatever it does to
// be left alone, and nobody waits for it.
func TestOrphans(t *testing.T) {
	if _, err := os.Stat("/proc/self/environ"); err != nil {
		t.Skip("needs /proc")
	}
	for _, target := range []string{"orphan", "escaped"} {
		w := fake(t, Config{})
		start := time.Now()
		out, err := w.Run(t.Context(), fakeJob(target))
		if err != nil || out.Status != backend.Crashed {
			t.Fatalf("%s: %+v, %v", target, out, err)
		}
		if took := time.Since(start); took > 30*time.Second {
			t.Errorf("%s: a crash took %s", target, took)
		}
		_, after, _ := strings.Cut(out.Message, "started ")
		pid, err := strconv.Atoi(strings.TrimSpace(after))
		if err != nil {
			t.Fatalf("%s: %q", target, out.Message)
		}
		if state, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)); err == nil && !strings.Contains(string(state), ") Z ") {
			t.Errorf("%s: the process %d that the worker started lives: %s", target, pid, state)
		}
	}
}

// TestTextsAreBounded: what a subject says is kept short, and commands no terminal.
func TestTextsAreBounded(t *testing.T) {
	out, err := fake(t, Config{}).Run(t.Context(), fakeJob("flood"))
	if err != nil || out.Status != backend.Raised {
		t.Fatalf("%+v, %v", out, err)
	}
	if len(out.Class) > 2*maxName || len(out.Message) > 5*maxMessage || strings.ContainsAny(out.Message, "\x1b\a\u202e") || !strings.HasPrefix(out.Message, `\x1b]0;title\x07\u202e`) {
		t.Errorf("class of %d bytes, message of %d: %.80q", len(out.Class), len(out.Message), out.Message)
	}
}

// TestNeighboursAreNotBlamed: what a worker says unasked costs the case that
// it says it in, not the one that comes next.
func TestNeighboursAreNotBlamed(t *testing.T) {
	w := fake(t, Config{})
	for _, target := range []string{"1", "again", "2", "again", "3", "late", "slow"} {
		want := backend.OK
		if target == "again" {
			want = backend.Crashed
		}
		if out, err := w.Run(t.Context(), fakeJob(target)); err != nil || out.Status != want {
			t.Errorf("%s: %+v, %v", target, out, err)
		}
	}
}

const hugeTensor = `["t","uint8",64,[16000000],null,false]`

func TestCancel(t *testing.T) {
	w := fake(t, Config{})
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := w.Run(ctx, fakeJob("hang")); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v", err)
	}
	if out, err := w.Run(t.Context(), fakeJob("7")); err != nil || out.Values[0].Plain != int64(7) {
		t.Errorf("afterwards %v, %v", out, err)
	}
}

func TestBadStart(t *testing.T) {
	for name, test := range map[string]struct {
		config  Config
		message string
	}{
		"no such program": {Config{Command: []string{"/no/such/worker"}}, "/no/such/worker"},
		"ends at once":    {Config{Command: []string{"sh", "-c", "echo broken library >&2; exit 1"}}, "broken library"},
		"greets wrongly":  {Config{Command: []string{"sh", "-c", "echo hello >&4; sleep 9"}}, "greeted with"},
		"newer protocol":  {Config{Command: []string{"sh", "-c", "echo 'plumb-worker 2 {}' >&4; sleep 9"}}, "version 2"},
		"never greets":    {Config{Command: []string{"sleep", "60"}, StartTimeout: 50 * time.Millisecond}, "not ready within 50ms"},
	} {
		_, err := Open(t.Context(), test.config)
		var fault *backend.Fault
		if !errors.As(err, &fault) || !strings.Contains(err.Error(), test.message) {
			t.Errorf("%s: error %v, want one with %q", name, err, test.message)
		}
	}
}

func TestUndefinedName(t *testing.T) {
	w := fake(t, Config{})
	_, err := w.Run(t.Context(), new(builder).call("y", "first", program.Ref("z")).job())
	if err == nil || !strings.Contains(err.Error(), "call first: undefined name z") {
		t.Errorf("error %v", err)
	}
}
