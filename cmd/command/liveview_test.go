package command

import (
	"bytes"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"plumb/internal/campaign"
	"plumb/internal/judge/verdict"
)

// screen is what a terminal shows after these bytes: it knows the codes that the
// live view uses, and keeps any other.
func screen(text string) string {
	lines := []string{""}
	at := 0
	code := regexp.MustCompile(`^\x1b\[(\d*)([AJ])`)
	for len(text) > 0 {
		switch m := code.FindStringSubmatch(text); {
		case m != nil && m[2] == "A":
			n, _ := strconv.Atoi(m[1])
			at, text = at-n, text[len(m[0]):]
			continue
		case m != nil:
			lines, text = append(lines[:at], ""), text[len(m[0]):]
			continue
		}
		switch text[0] {
		case '\r':
		case '\n':
			if at++; at == len(lines) {
				lines = append(lines, "")
			}
		default:
			lines[at] += text[:1]
		}
		text = text[1:]
	}
	return strings.Join(lines, "\n")
}

func newLive(tty bool) (*live, *inTurn, *bytes.Buffer) {
	var mu sync.Mutex
	var b bytes.Buffer
	l := &live{mu: &mu, w: &b, tty: tty}
	return l, &inTurn{&mu, &b, l}, &b
}

// TestLiveViewLeavesNothing: what is drawn tells how the run gets on, what is
// printed stays, and nothing of the view does.
func TestLiveViewLeavesNothing(t *testing.T) {
	l, out, b := newLive(true)
	l.begin([]campaign.Test{{Name: "a", N: 30}, {Name: "b", N: 30}}, 1, 0)
	for i := range 45 {
		l.work(0, "reference", "b\x1b[31m")
		l.record(&verdict.Record{Test: "a", Index: i, Verdict: &verdict.Verdict{Word: verdict.Aligned}})
		l.draw()
		if i == 40 {
			shown := screen(b.String())
			for _, want := range []string{"1 of 2 tests", "41 cases", "41 aligned", "lane 1  reference b\\x1b[31m", "left"} {
				if !strings.Contains(shown, want) {
					t.Errorf("no %q in\n%s", want, shown)
				}
			}
		}
		if i%10 == 0 {
			fmt.Fprintf(out, "found %d\n", i)
		}
		if i == 29 {
			l.ends(&verdict.End{Test: "a"})
		}
	}
	l.end()
	if got, want := screen(b.String()), "found 0\nfound 10\nfound 20\nfound 30\nfound 40\n"; got != want {
		t.Errorf("the screen shows %q, want %q", got, want)
	}
}

// TestLiveViewInALog: no codes, and nothing at all where nobody wants it.
func TestLiveViewInALog(t *testing.T) {
	l, _, b := newLive(false)
	l.begin([]campaign.Test{{Name: "a", N: 3}}, 1, time.Minute)
	l.record(&verdict.Record{Test: "a", Verdict: &verdict.Verdict{Word: verdict.Crash}})
	l.draw()
	l.end()
	if got := b.String(); strings.ContainsAny(got, "\x1b\r") || !strings.HasPrefix(got, "plumb: 0 of 1 test · 1 case, ") || !strings.Contains(got, "1 crash") || strings.Count(got, "\n") != 1 {
		t.Errorf("%q", got)
	}
	first, _, _ := newLive(false)
	first.begin([]campaign.Test{{Name: "a", N: 3}}, 1, 0)
	if got := first.head(); !strings.HasPrefix(got, "1 test: starting the subjects · ") {
		t.Errorf("before they have started: %q", got)
	}
	first.work(0, "candidate", "a")
	if got := first.head(); !strings.HasPrefix(got, "1 test: the first cases run") {
		t.Errorf("before the first case has ended: %q", got)
	}
	first.end()
	quiet, _, b := newLive(false)
	quiet.w = nil
	quiet.begin(nil, 1, 0)
	quiet.work(0, "reference", "a")
	quiet.end()
	if b.Len() > 0 {
		t.Errorf("quiet, and yet %q", b)
	}
}

// TestColours: only a terminal is painted, unless the flag says otherwise.
func TestColours(t *testing.T) {
	var b bytes.Buffer
	for c, want := range map[colours]bool{auto: false, always: true, never: false} {
		if got := c.paint(&b); got != want {
			t.Errorf("%s paints a file: %v", c, got)
		}
	}
}
