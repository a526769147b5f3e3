//go:build unix

package worker

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// sanitizers end a program with this status.
const sanitized = 99

// checkedOwnWorker is the worker in C with what its compiler has against wrong
// memory and undefined behaviour.
func checkedOwnWorker(t *testing.T) string {
	t.Helper()
	cc, err := exec.LookPath("cc")
	if err != nil {
		t.Skip("no cc here: the worker that it compiles is not tested")
	}
	flags := []string{"-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"}
	probe := exec.Command(cc, append(flags, "-x", "c", "-o", t.TempDir()+"/probe", "-")...)
	probe.Stdin = strings.NewReader("int main(void) { return 0; }")
	if probe.Run() != nil {
		t.Skip("cc has no sanitizers here: frames are not tried against them")
	}
	return ownBinary(t, "worker.c", flags...)
}

// serve lets a worker answer frames over a region, and returns its replies and
// its end.
func serve(t *testing.T, binary string, region []byte, frames ...[]byte) ([]byte, string, int) {
	t.Helper()
	memory, err := os.CreateTemp(t.TempDir(), "region")
	if err != nil {
		t.Fatal(err)
	}
	defer memory.Close()
	if _, err := memory.Write(region); err != nil {
		t.Fatal(err)
	}
	theirs, requests, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	replies, mine, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	cmd := exec.Command(binary)
	cmd.Stderr = &log
	cmd.ExtraFiles = []*os.File{theirs, mine, memory}
	cmd.Env = append(os.Environ(), fmt.Sprintf("ASAN_OPTIONS=exitcode=%d:detect_leaks=1", sanitized), fmt.Sprintf("UBSAN_OPTIONS=exitcode=%d", sanitized))
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	theirs.Close()
	mine.Close()
	go func() {
		for _, f := range frames {
			if _, err := requests.Write(f); err != nil {
				break // it has ended
			}
		}
		requests.Close()
	}()
	said, _ := io.ReadAll(replies)
	replies.Close()
	err = cmd.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return said, log.String(), cmd.ProcessState.ExitCode()
}

func framed(payload string) []byte {
	return append(binary.LittleEndian.AppendUint32(nil, uint32(len(payload))), payload...)
}

// ownRequest is one of cases of many kinds; %s is further inputs.
const ownRequest = `{"id":7,"cases":[{"seed":42,"inputs":[["float32",64,[2,3],null,true],["int64",128,[2],null,false],["float64",192,[2,2],[1,2],false]%s],` +
	`"calls":[["torch.relu",[["r",0]]],["torch.add",[["r",0],0.5]],["torch.max",[["r",2],1],{"keepdim":true}],["operator.getitem",[["r",5],1]],` +
	`["Tensor.neg_",[["r",1]],{},[["torch.no_grad",[]]]],["torch.cat",[["l",[["r",0],["r",0]]]],{"dim":0}],["torch.reshape",[["r",2],["u",[4,1]]]],` +
	`["torch.nn.functional.hardtanh",[["r",0],["f","-inf"],1e0]],["torch.mm",[["r",2],["r",2]]],["operator.getitem",[["r",2],["u",[["s",null,1,null],["e"],null,-1]]]],["torch.clone",[["r",12]]]]}],"size":4096,"out":1024}`

// TestOwnWorkerReadsHostileFrames: whatever a frame says, the kit ends with the
// status of a worker that has failed, or answers; it never reads or writes
// elsewhere.
func TestOwnWorkerReadsHostileFrames(t *testing.T) {
	binary := checkedOwnWorker(t)
	region := make([]byte, 4096)
	valid := fmt.Sprintf(ownRequest, "")
	said, log, code := serve(t, binary, region, framed(valid), framed(valid))
	if code != 0 || strings.Count(string(said), `"status":"ok"`) != 2 || log != "" {
		t.Fatalf("exit %d\n%s\n%s", code, said, log)
	}
	with := func(input string) string { return fmt.Sprintf(ownRequest, ","+input) }
	hostile := map[string]string{
		"an offset outside":      with(`["float32",4096,[2],null,false]`),
		"an offset below":        with(`["float32",-64,[2],null,false]`),
		"an odd offset":          with(`["float32",65,[2],null,false]`),
		"a size beyond":          with(`["float32",64,[1000000],null,false]`),
		"a product that wraps":   with(`["float32",64,[4294967296,4294967296,4294967296],null,false]`),
		"a negative size":        with(`["float32",64,[-1,-1],null,false]`),
		"a huge stride":          with(`["float32",64,[2,2],[9223372036854775807,1],false]`),
		"a negative stride":      with(`["float32",64,[2,2],[-1,1],false]`),
		"many dimensions":        with(`["float32",64,[` + strings.Repeat("1,", 40) + `1],null,false]`),
		"a dtype of no kind":     with(`["float8",64,[1],null,false]`),
		"an input of nothing":    with(`[]`),
		"inputs that are text":   `{"id":1,"cases":[{"inputs":"x","calls":[["torch.relu",[["r",0]]]]}],"size":0,"out":64}`,
		"a value that is none":   `{"id":1,"cases":[{"inputs":[],"calls":[["torch.relu",[["r",0]]]]}],"size":0,"out":64}`,
		"a value below":          `{"id":1,"cases":[{"inputs":[],"calls":[["torch.relu",[["r",-1]]]]}],"size":0,"out":64}`,
		"a call of nothing":      `{"id":1,"cases":[{"inputs":[],"calls":[[]]}],"size":0,"out":64}`,
		"a call without more":    `{"id":1,"cases":[{"inputs":[],"calls":[["torch.relu"]]}],"size":0,"out":64}`,
		"a list that is none":    `{"id":1,"cases":[{"inputs":[],"calls":[["torch.cat",[["l"]]]]}],"size":0,"out":64}`,
		"results at the end":     strings.Replace(valid, `"out":1024`, `"out":1099511627776`, 1),
		"results below":          strings.Replace(valid, `"out":1024`, `"out":-64`, 1),
		"a region without end":   strings.Replace(valid, `"size":4096`, `"size":9223372036854775807`, 1),
		"cases that are none":    `{"id":1,"cases":5,"size":0,"out":64}`,
		"an array":               `[1,2]`,
		"nothing":                ``,
		"depth":                  strings.Repeat("[", 1<<16),
		"depth of objects":       strings.Repeat(`{"a":`, 1<<16),
		"an open string":         `{"id":"`,
		"an open escape":         `{"id":"\`,
		"a broken escape":        `{"id":"\u12`,
		"half a surrogate":       `{"signatures":"\ud800\u0041\udc00"}`,
		"zeros":                  strings.Repeat("\x00", 100),
		"something behind":       valid + "x",
		"a number of many signs": `{"id":` + strings.Repeat("-", 1000) + `}`,
	}
	for name, payload := range hostile {
		if said, log, code := serve(t, binary, region, framed(payload)); code != 0 && code != exitFault || code == exitFault && !strings.HasPrefix(log, "plumb_worker: ") {
			t.Errorf("%s: exit %d\n%s\n%s", name, code, said, log)
		}
	}
	for name, frame := range map[string][]byte{"a length beyond": {0xff, 0xff, 0xff, 0xff}, "a frame that ends": framed(valid)[:100], "half a length": {1, 0}} {
		if said, log, code := serve(t, binary, region, frame); code != 0 && code != exitFault {
			t.Errorf("%s: exit %d\n%s\n%s", name, code, said, log)
		}
	}
}

// TestOwnWorkerReadsBrokenFrames changes bytes of a request at random.
func TestOwnWorkerReadsBrokenFrames(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a worker for each frame")
	}
	binary := checkedOwnWorker(t)
	region := make([]byte, 4096)
	rng := rand.New(rand.NewPCG(1, 2))
	const frames, alphabet = 250, `0123456789[]{}",-.eE\ nrtf`
	for i := range frames {
		payload := []byte(fmt.Sprintf(ownRequest, ""))
		for range 1 + rng.IntN(4) {
			payload[rng.IntN(len(payload))] = alphabet[rng.IntN(len(alphabet))]
		}
		if _, log, code := serve(t, binary, region, framed(string(payload))); code != 0 && code != exitFault {
			t.Fatalf("frame %d: exit %d\n%s\n%s", i, code, payload, log)
		}
	}
}
