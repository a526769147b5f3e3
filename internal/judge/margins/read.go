package margins

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
)

// What a line may hold; a file within these bounds cannot make a Table grow
// beyond them.
const (
	maxLine   = 16 << 10 // bytes
	maxText   = 256      // bytes of the name of an operator, dtype or part
	maxGroups = 20_000   // rows of a Table
	maxCount  = 1 << 53  // comparisons of a Table
)

// Read merges the rows of a file into t, and stops at the first that is wrong.
// Empty lines and unknown fields are passed over. The error names the file and
// the line, such as "last.jsonl:3: …".
func (t *Table) Read(name string, r io.Reader) error {
	lines := bufio.NewReaderSize(r, maxLine)
	for n := 1; ; n++ {
		line, err := lines.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			return fmt.Errorf("%s:%d: the line is longer than %d bytes", name, n, maxLine)
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("%s:%d: %w", name, n, err)
		}
		if bad := t.readLine(line); bad != nil {
			return fmt.Errorf("%s:%d: %w", name, n, bad)
		}
		if err != nil {
			return nil
		}
	}
}

func (t *Table) readLine(line []byte) error {
	if isBlank(line) {
		return nil
	}
	var r row
	if err := json.Unmarshal(line, &r); err != nil {
		return err
	}
	o, err := r.tally()
	if err != nil {
		return err
	}
	if o.count > maxCount-t.count {
		return fmt.Errorf("more than %d comparisons", maxCount)
	}
	h, err := t.group(group{r.Op, r.DType, r.Part})
	if err != nil {
		return err
	}
	h.merge(o)
	t.count += o.count
	return nil
}

func isBlank(line []byte) bool {
	for _, c := range line {
		if c != ' ' && c != '\t' && c != '\r' && c != '\n' {
			return false
		}
	}
	return true
}

// tally checks a row and returns what it says.
func (r *row) tally() (*tally, error) {
	ratio := float64(r.Max)
	switch {
	case r.Part == "":
		return nil, errors.New(`"part" is missing`)
	case r.Count < 1 || r.Count > maxCount:
		return nil, fmt.Errorf(`"count" is missing or %d: a row has a comparison or more`, r.Count)
	case math.IsNaN(ratio) || ratio < 0:
		return nil, fmt.Errorf(`"max" is %v; an error divided by its limit is not below 0`, r.Max)
	case r.Over < 0 || r.Over > r.Count || (r.Over > 0) != (ratio > 1):
		return nil, fmt.Errorf(`"over" is %d of %d with a maximum of %v`, r.Over, r.Count, r.Max)
	case len(r.Erring)+len(r.Clean) == 0:
		return nil, errors.New(`"erring" and "clean" are missing: a comparison has a class`)
	}
	t := &tally{hist: hist{count: r.Count, over: r.Over, max: ratio}}
	if r.At != nil {
		t.at = *r.At
	}
	for _, c := range r.Erring {
		t.erring.add(c)
	}
	for _, c := range r.Clean {
		t.clean.add(c)
	}
	return t, r.readBins(&t.hist)
}

// readBins fills the bins of h, which knows the count and the maximum.
func (r *row) readBins(h *hist) error {
	for 1<<h.joins < r.Join && h.joins < maxJoins {
		h.joins++
	}
	if 1<<h.joins != r.Join {
		return fmt.Errorf(`"join" is %d: want 1, 2, 4 or 8`, r.Join)
	}
	h.bins = map[int]int{}
	next, last, rest := 0, 0, r.Count
	for _, n := range r.Bins {
		switch {
		case n == 0 || n > rest:
			return fmt.Errorf(`"bins": %d comparisons in a bin, with %d of %d left`, n, rest, r.Count)
		case next > lastBin>>h.joins || n < next-lastBin>>h.joins:
			return fmt.Errorf(`"bins" has more than %d bins`, lastBin>>h.joins+1)
		case n < 0:
			next -= n
			continue
		}
		h.bins[next] = n
		last, next, rest = next, next+1, rest-n
	}
	if rest != 0 || last != binOf(h.max)>>h.joins {
		return errors.New(`"bins" do not sum up to "count" or do not end with "max"`)
	}
	h.fit()
	return nil
}
