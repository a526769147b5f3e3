package beside

import (
	"bytes"
	"io"
	"sync"

	"plumb/backend"
)

// mostSaid is how much is told of what a process said last, in bytes.
const mostSaid = 4 << 10

// LastText hands on what a process prints until it dies, and keeps the last of it.
type LastText struct {
	Log io.Writer // nil for none

	mu   sync.Mutex
	text []byte
	died bool
}

// lastSize is how much is kept.
const lastSize = 64 << 10

// Write never fails.
func (l *LastText) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.text = append(l.text, b...); !l.died {
		if l.died = l.death() >= 0; !l.died && l.Log != nil {
			_, _ = l.Log.Write(b)
		}
	}
	if extra := len(l.text) - lastSize; extra > 0 && !l.died {
		l.text = append(l.text[:0], l.text[extra:]...)
	}
	l.text = l.text[:min(len(l.text), lastSize)]
	return len(b), nil
}

// death is where the line begins with which a Go program says what ends it; -1 where
// there is none.
func (l *LastText) death() int {
	for _, sign := range []string{"fatal error: ", "panic: ", "SIGSEGV: "} {
		if bytes.HasPrefix(l.text, []byte(sign)) {
			return 0
		}
		if at := bytes.Index(l.text, []byte("\n"+sign)); at >= 0 {
			return at + 1
		}
	}
	return -1
}

// Of adds what a process has printed.
func (l *LastText) Of(text []byte) *LastText {
	_, _ = l.Write(text) // never fails
	return l
}

// How says how a process ended that has the state.
func (l *LastText) How(state string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if at := l.death(); at >= 0 {
		return backend.Printable(string(l.text[at:]), mostSaid)
	}
	return state
}
