// Package parquet writes tables as Apache Parquet files that pyarrow, DuckDB and
// Spark read: flat columns of plain values, in pages that Zstandard compresses. It
// holds one group of rows in memory, whose size is bounded.
package parquet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"
)

// Type is what the values of a column are.
type Type int

// The types of columns, and of Go's values in them.
const (
	Int64   Type = iota // int64
	Uint64              // uint64
	Float64             // float64
	String              // string; what is no UTF-8 in it is replaced
	Time                // time.Time, kept in milliseconds since 1970
)

// Column is a column of a table.
type Column struct {
	Name     string
	Type     Type
	Optional bool // a row may have nil there
}

// A group of rows ends when it has so many rows, or bytes of values.
const (
	groupRows  = 1 << 16
	groupBytes = 16 << 20
)

const magic = "PAR1"

// Writer writes the rows of a table.
type Writer struct {
	out     io.Writer
	at      int64 // bytes written
	columns []Column
	parts   []part // of the group that is not written yet
	rows    int64  // of it
	groups  []group
	codec   int32
	encoder *zstd.Encoder
	err     error
}

// part are the values of a column in a group of rows.
type part struct {
	values []byte
	there  []byte // a bit a row: whether it has a value
}

// group is a group of rows in the file.
type group struct {
	rows   int64
	chunks []chunk
}

// chunk is a column of a group: one page.
type chunk struct{ at, plain, packed int64 }

// NewWriter returns a writer of a table with these columns.
func NewWriter(out io.Writer, columns []Column) (*Writer, error) {
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	if err != nil {
		return nil, err
	}
	w := &Writer{out: out, columns: columns, parts: make([]part, len(columns)), codec: codecZstandard, encoder: encoder}
	w.put([]byte(magic))
	return w, w.err
}

// Write adds a row: a value of each column's type, or nil where it is optional.
func (w *Writer) Write(row []any) error {
	if len(row) != len(w.columns) {
		return fmt.Errorf("parquet: %d values in a row of %d columns", len(row), len(w.columns))
	}
	for i := range w.columns {
		if err := w.parts[i].add(&w.columns[i], row[i], w.rows); err != nil && w.err == nil {
			w.err = err
		}
	}
	if w.err != nil {
		return w.err
	}
	w.rows++
	size := 0
	for i := range w.parts {
		size += len(w.parts[i].values)
	}
	if w.rows >= groupRows || size >= groupBytes {
		w.flush()
	}
	return w.err
}

// add adds the value of a row.
func (p *part) add(c *Column, value any, row int64) error {
	if c.Optional {
		if row%8 == 0 {
			p.there = append(p.there, 0)
		}
		if value == nil {
			return nil
		}
		p.there[row/8] |= 1 << (row % 8)
	}
	ok := false
	switch c.Type {
	case Int64:
		var v int64
		v, ok = value.(int64)
		p.values = binary.LittleEndian.AppendUint64(p.values, uint64(v))
	case Uint64:
		var v uint64
		v, ok = value.(uint64)
		p.values = binary.LittleEndian.AppendUint64(p.values, v)
	case Float64:
		var v float64
		v, ok = value.(float64)
		p.values = binary.LittleEndian.AppendUint64(p.values, math.Float64bits(v))
	case Time:
		var v time.Time
		v, ok = value.(time.Time)
		p.values = binary.LittleEndian.AppendUint64(p.values, uint64(v.UnixMilli()))
	case String:
		var v string
		v, ok = value.(string)
		v = strings.ToValidUTF8(v, "\uFFFD")
		p.values = binary.LittleEndian.AppendUint32(p.values, uint32(len(v)))
		p.values = append(p.values, v...)
	}
	if !ok {
		return fmt.Errorf("parquet: column %s has a value of type %T", c.Name, value)
	}
	return nil
}

// page is what a page holds: in which rows there are values, and these.
func (p *part) page(c *Column) []byte {
	if !c.Optional {
		return p.values
	}
	run := binary.AppendUvarint(nil, uint64(len(p.there))<<1|1) // bits, packed by eights
	run = append(run, p.there...)
	return append(append(binary.LittleEndian.AppendUint32(nil, uint32(len(run))), run...), p.values...)
}

// flush writes the group of rows.
func (w *Writer) flush() {
	if w.rows == 0 {
		return
	}
	g := group{rows: w.rows}
	for i := range w.parts {
		plain := w.parts[i].page(&w.columns[i])
		packed := plain
		if w.codec == codecZstandard {
			packed = w.encoder.EncodeAll(plain, nil)
		}
		head := pageHeader(w.rows, len(plain), len(packed))
		g.chunks = append(g.chunks, chunk{w.at, int64(len(head) + len(plain)), int64(len(head) + len(packed))})
		w.put(head)
		w.put(packed)
		w.parts[i] = part{w.parts[i].values[:0], w.parts[i].there[:0]}
	}
	w.groups = append(w.groups, g)
	w.rows = 0
}

func (w *Writer) put(b []byte) {
	if w.err == nil {
		_, w.err = w.out.Write(b)
		w.at += int64(len(b))
	}
}

// Close writes the rest of the table. It does not close what it writes to.
func (w *Writer) Close() error {
	w.flush()
	foot := w.footer()
	w.put(foot)
	w.put(binary.LittleEndian.AppendUint32(nil, uint32(len(foot))))
	w.put([]byte(magic))
	err := errors.Join(w.err, w.encoder.Close())
	w.err = errors.New("parquet: the table is closed")
	return err
}
