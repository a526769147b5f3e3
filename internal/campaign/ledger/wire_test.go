package ledger

import (
	"bytes"
	"encoding/json"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"plumb/internal/campaign/report"
	"plumb/internal/campaign/store"
)

// TestPack: results that have travelled are those that were sent, and what is cut short or
// made up is an error.
func TestPack(t *testing.T) {
	sent := []Result{
		{Unit: 1 << 40, Judged: 2, Rejected: 1, Elapsed: time.Second, Worker: "w", Error: "e", Lacks: true, Cases: []store.Case{
			{Test: "t", Name: "n", Variant: "v", Number: 1, Program: "0123456789abcdef", Subject: "s", Mode: "m", Operators: []string{"a", "b"}, DTypes: "float32", Outcome: report.Passed, Word: "aligned", Kind: "k", Reason: "r", Lenient: "l", Compared: 3, Drawn: 2, Worst: 0.25, WorstAt: "value y", Elapsed: time.Millisecond, Reference: time.Microsecond, Text: "p"},
			{Test: "t", Number: -2, Subject: "s", Word: "crash", Worst: math.NaN()},
		}},
		{Unit: -1},
	}
	data := Pack(sent)
	got, err := Unpack(data)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(sent, got, cmpopts.EquateNaNs()); diff != "" {
		t.Error(diff)
	}
	for i := range data {
		if _, err := Unpack(data[:i]); err == nil {
			t.Errorf("%d of %d bytes are read", i, len(data))
		}
	}
	for _, data := range [][]byte{append(data, 0), {1, 0, 0, 0, 0, 7}, bytes.Repeat([]byte{0xff}, 40)} {
		if got, err := Unpack(data); err == nil {
			t.Errorf("%x is read: %+v", data, got)
		}
	}
}

// TestWire: a result that has travelled is the one that was sent.
func TestWire(t *testing.T) {
	sent := Result{Unit: 3, Judged: 2, Elapsed: time.Second, Worker: "w", Cases: []store.Case{
		{Test: "t", Number: 1, Subject: "s", Word: "aligned", Worst: 0.25, WorstAt: "value y", Elapsed: time.Millisecond, Reference: time.Microsecond},
		{Test: "t", Number: 2, Subject: "s", Word: "crash", Worst: math.NaN(), Text: "p"},
	}}
	text, err := json.Marshal(sent)
	if err != nil {
		t.Fatal(err)
	}
	var got Result
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(sent, got, cmpopts.EquateNaNs()); diff != "" {
		t.Error(diff)
	}
	if err := json.Unmarshal([]byte(`{"unit":1,"cases":[{}],"worst":[]}`), &got); err == nil {
		t.Error("a result without limits is read")
	}
}
