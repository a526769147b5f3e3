package command

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"plumb/internal/campaign"
	"plumb/internal/campaign/report"
	"plumb/internal/find/shrink"
	"plumb/internal/judge/verdict"
)

// live tells how a run gets on while it does: a few lines that are drawn again on
// a terminal, and elsewhere a line now and then.
type live struct {
	mu  *sync.Mutex // of all that the command prints
	w   io.Writer   // nil where nothing is told
	tty bool

	start      time.Time
	until      time.Duration // of a run with a budget of time; 0 for others
	tests, all int           // that have ended, and that there are
	cases, of  int
	candidates int
	words      *report.Summary
	first      time.Time // when the first case was done: subjects have started
	lanes      map[int]string
	shrinking  string
	ended      map[string]bool

	shown []int // lines, by the columns that each takes
	open  bool  // what was printed last did not end its line
	stop  chan struct{}
	done  sync.WaitGroup
}

// settled is how many cases have to be done before they tell how long the rest takes.
const settled = 20

// How often a terminal is drawn again, and how often a log has a line.
const (
	redrawn = 125 * time.Millisecond
	sparse  = 30 * time.Second
)

// begin tells from now on of a run of these tests.
func (l *live) begin(tests []campaign.Test, candidates int, until time.Duration) {
	if l == nil || l.w == nil {
		return
	}
	l.start, l.until, l.all, l.candidates = time.Now(), until, len(tests), max(candidates, 1)
	l.words, l.lanes, l.ended, l.stop = report.NewSummary(), map[int]string{}, map[string]bool{}, make(chan struct{})
	for i := range tests {
		l.of += tests[i].N
	}
	every := sparse
	if l.tty {
		every = redrawn
	}
	l.done.Go(func() {
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-l.stop:
				return
			case <-tick.C:
				l.draw()
			}
		}
	})
}

// end tells no more.
func (l *live) end() {
	if l == nil || l.stop == nil {
		return
	}
	close(l.stop)
	l.done.Wait()
	l.locked(l.erase)
	l.stop = nil
}

func (l *live) locked(f func()) {
	if l != nil && l.stop != nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		f()
	}
}

func (l *live) record(rec *verdict.Record) {
	l.locked(func() {
		if l.cases++; l.cases == 1 {
			l.first = time.Now()
		}
		l.words.Words[rec.Verdict.Word]++
	})
}

func (l *live) ends(e *verdict.End) {
	l.locked(func() {
		if !l.ended[e.Test] {
			l.ended[e.Test] = true
			l.tests++
		}
	})
}

// work is what a lane does now.
func (l *live) work(lane int, stage, test string) {
	l.locked(func() {
		if l.lanes[lane] = ""; stage != "" {
			l.lanes[lane] = stage + " " + test
		}
	})
}

// shrinks is how far the search for smaller cases is.
func (l *live) shrinks(at, of int, r *shrink.Result) {
	l.locked(func() {
		clear(l.lanes)
		l.shrinking = fmt.Sprintf("making failure %d of %d smaller: %s, %s; %s", at, of, count(r.Runs, "run"), count(len(r.Record.Program.Calls), "call"), r.Record.Program.Name)
	})
}

// draw prints the lines as they are now.
func (l *live) draw() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.tty {
		fmt.Fprintf(l.w, "plumb: %s\n", report.Plain(l.head()))
		return
	}
	if l.open {
		return
	}
	var b strings.Builder // written at once: Ctrl-C discards what a terminal has not taken yet
	l.eraseOn(&b)
	width := l.width()
	for _, line := range append([]string{l.head()}, l.body()...) {
		line = report.Clip(report.Plain(line), max(width, 20)-1)
		b.WriteString(line + "\n")
		l.shown = append(l.shown, report.Columns(line))
	}
	_, _ = io.WriteString(l.w, b.String())
}

func (l *live) width() int { return cmp.Or(widthOf(l.w), 80) }

// erase takes the lines from the terminal; the lock is held.
func (l *live) erase() { l.eraseOn(l.w) }

// eraseOn writes what takes the lines from the terminal. One that has become narrower
// since has broken what was longer.
func (l *live) eraseOn(w io.Writer) {
	if len(l.shown) == 0 {
		return
	}
	rows, width := 0, l.width()
	for _, n := range l.shown {
		rows += max(1, (n+width-1)/width)
	}
	fmt.Fprintf(w, "\x1b[%dA\r\x1b[J", rows)
	l.shown = nil
}

func (l *live) head() string {
	took := time.Since(l.start)
	done := l.cases / l.candidates
	if l.cases == 0 && l.tests == 0 {
		if len(l.lanes) > 0 {
			return fmt.Sprintf("%s: the first cases run, which for a subject that compiles takes longest · %s", count(l.all, "test"), took.Round(time.Second))
		}
		return fmt.Sprintf("%s: starting the subjects · %s", count(l.all, "test"), took.Round(time.Second))
	}
	line := fmt.Sprintf("%d of %s · %s, %.0f/s", l.tests, count(l.all, "test"), count(done, "case"), float64(done)/max(took.Seconds(), 0.001))
	if len(l.words.Words) > 0 {
		line += " · " + l.words.Counts()
	}
	line += " · " + took.Round(time.Second).String()
	switch left := l.left(took, done); {
	case l.shrinking != "":
		if !l.tty {
			line += " · " + l.shrinking
		}
	case left > 0:
		line += ", " + left.Round(time.Second).String() + " left"
	}
	return line
}

// left is how long the run will go on; 0 where that is not known.
func (l *live) left(took time.Duration, done int) time.Duration {
	switch {
	case l.until > 0:
		return l.until - took
	case done < settled || l.of <= done:
		return 0
	}
	since := time.Since(l.first)
	return time.Duration(float64(since) * float64(l.of-done) / float64(done))
}

// body is what the lanes do, or the search for smaller cases.
func (l *live) body() []string {
	if l.shrinking != "" {
		return []string{"  " + l.shrinking}
	}
	var lines []string
	for _, lane := range slices.Sorted(maps.Keys(l.lanes)) {
		if doing := l.lanes[lane]; doing != "" && len(lines) < 4 {
			lines = append(lines, fmt.Sprintf("  lane %d  %s", lane+1, doing))
		}
	}
	return lines
}

// inTurn is a writer for several goroutines, and for what is drawn beside them.
type inTurn struct {
	mu   *sync.Mutex
	w    io.Writer
	live *live
}

// Write writes when no other does.
func (t *inTurn) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.live != nil && len(p) > 0 {
		t.live.erase()
		t.live.open = isTerminal(t.w) && !bytes.HasSuffix(p, []byte("\n"))
	}
	return t.w.Write(p)
}

// descriptorOf is the file below a writer; nil where there is none.
func descriptorOf(w io.Writer) descriptor {
	if t, ok := w.(*inTurn); ok {
		w = t.w
	}
	f, _ := w.(descriptor)
	return f
}

func isTerminal(w io.Writer) bool {
	f := descriptorOf(w)
	return f != nil && term.IsTerminal(int(f.Fd()))
}

// widthOf is a terminal's number of columns; 0 where it is none.
func widthOf(w io.Writer) int {
	if f := descriptorOf(w); f != nil {
		if columns, _, err := term.GetSize(int(f.Fd())); err == nil {
			return columns
		}
	}
	return 0
}

// colours says whether output is painted.
type colours string

// The colours.
const (
	auto   colours = "auto" // on a terminal, unless NO_COLOR is set
	always colours = "always"
	never  colours = "never"
)

func (c colours) paint(w io.Writer) bool {
	switch c {
	case always:
		return true
	case never:
		return false
	}
	return isTerminal(w) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}
