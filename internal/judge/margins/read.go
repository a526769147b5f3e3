package margins

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
)

// What a line may hold; a file within these bounds cannot make a reader or a
// Table grow beyond them.
const (
	maxLine   = 64 << 10 // bytes
	maxText   = 256      // bytes of a name that a Table keeps
	maxGroups = 10_000   // rows of a Table
)

// Read calls add for every margin of a file, in order, and stops at its first
// error. Empty lines and unknown fields are passed over. The error names the
// file and the line, such as "last.jsonl:3: …".
func Read(name string, r io.Reader, add func(*Margin) error) error {
	lines := bufio.NewReaderSize(r, maxLine)
	for n := 1; ; n++ {
		line, err := lines.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			return fmt.Errorf("%s:%d: the line is longer than %d bytes", name, n, maxLine)
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("%s:%d: %w", name, n, err)
		}
		if bad := readLine(line, add); bad != nil {
			return fmt.Errorf("%s:%d: %w", name, n, bad)
		}
		if err != nil {
			return nil
		}
	}
}

func readLine(line []byte, add func(*Margin) error) error {
	if isBlank(line) {
		return nil
	}
	m := Margin{Ratio: missing}
	if err := json.Unmarshal(line, &m); err != nil {
		return err
	}
	if err := m.check(); err != nil {
		return err
	}
	return add(&m)
}

func isBlank(line []byte) bool {
	for _, c := range line {
		if c != ' ' && c != '\t' && c != '\r' && c != '\n' {
			return false
		}
	}
	return true
}

// missing is no ratio that a file can hold.
const missing = -1

func (m *Margin) check() error {
	switch ratio := float64(m.Ratio); {
	case ratio == missing:
		return errors.New(`"ratio" is missing`)
	case math.IsNaN(ratio) || ratio < 0:
		return fmt.Errorf(`"ratio" is %v; an error divided by its limit is not below 0`, m.Ratio)
	case m.Part == "":
		return errors.New(`"part" is missing`)
	case max(len(m.Op), len(m.Part), len(m.DType), len(m.Class)) > maxText:
		return fmt.Errorf("a name is longer than %d bytes", maxText)
	}
	return nil
}
