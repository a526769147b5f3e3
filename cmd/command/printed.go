package command

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"plumb/backend"
	"plumb/backend/native"
	"plumb/graph"
	"plumb/internal/judge/verdict"
	"plumb/nn"
	"plumb/ops"
	"plumb/program"
)

// printed is what tests print while their cases are drawn: shown at once, or
// with what fails, as pytest does.
type printed struct {
	atOnce bool

	mu    sync.Mutex
	out   io.Writer // nil for nothing
	texts map[printedCase]string
	held  int // bytes in texts
}

type printedCase struct {
	test  string
	index int
}

// maxHeld bounds what is kept for cases that may fail, in bytes.
const maxHeld = 4 << 20

// of returns where a case prints.
func (p *printed) of(test string, index int) func(string) {
	return func(text string) {
		p.mu.Lock()
		defer p.mu.Unlock()
		c := printedCase{test, index}
		switch {
		case p.out == nil:
		case p.atOnce:
			p.show(c, text)
		case p.held+len(text) <= maxHeld:
			if p.texts == nil {
				p.texts = map[printedCase]string{}
			}
			p.held += len(text)
			p.texts[c] = text
		}
	}
}

func (p *printed) show(c printedCase, text string) {
	fmt.Fprintf(p.out, "printed by %s, case %d:\n  %s\n", c.test, c.index, strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n  "))
}

// record shows what a failing case printed.
func (p *printed) record(rec *verdict.Record) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := printedCase{rec.Test, rec.Index}
	if text, ok := p.texts[c]; ok && rec.Verdict.Word.IsFinding() {
		p.show(c, text)
		p.drop(c)
	}
}

func (p *printed) drop(c printedCase) {
	p.held -= len(p.texts[c])
	delete(p.texts, c)
}

// end lets a test's texts go. Of a test that is wrong it shows them.
func (p *printed) end(e *verdict.End) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c, text := range p.texts {
		if c.test != e.Test {
			continue
		}
		if e.Err != nil {
			p.show(c, text)
		}
		p.drop(c)
	}
}

// stop ends printing: cases that are drawn from now on were drawn before.
func (p *printed) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.out = nil
}

// debugGraph tells how Plumb's own graph of a program is built, on a level of
// graph.debug.
func debugGraph(p *program.Program, o *program.Outline, level int) string {
	var text strings.Builder
	began := time.Now()
	code, err := native.New(ops.Table(), nn.Modules()).Graph(graph.Options{}).Outlined(context.Background(), backend.NewJob(p), o)
	if err == nil {
		_, err = graph.Debug{Level: graph.Level(level), W: &text}.Compile(code, graph.Options{}, began)
	}
	if err != nil {
		fmt.Fprintf(&text, "(GRAPH:%s) is not built: %v\n", p.Name, err)
	}
	return text.String()
}
