package ledger

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"plumb/internal/campaign/store"
)

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
