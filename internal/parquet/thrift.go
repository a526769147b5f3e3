package parquet

import "encoding/binary"

// Numbers of the format's enumerations: github.com/apache/parquet-format,
// src/main/thrift/parquet.thrift.
const (
	physicalInt64  = 2
	physicalDouble = 5
	physicalBytes  = 6

	convertedUTF8   = 0
	convertedMillis = 9
	convertedUint64 = 14

	logicalString    = 1
	logicalTimestamp = 8
	logicalInteger   = 10

	encodingPlain = 0
	encodingRLE   = 3

	codecNone      = 0
	codecZstandard = 6
)

// Types of fields in Thrift's compact protocol.
const (
	thriftTrue   = 1
	thriftFalse  = 2
	thriftByte   = 3
	thriftInt32  = 5
	thriftInt64  = 6
	thriftBinary = 8
	thriftList   = 9
	thriftStruct = 12
)

// message is a struct in Thrift's compact protocol, whose fields come in order.
type message struct {
	bytes []byte
	last  int
}

func (m *message) field(id, kind int) {
	m.bytes = append(m.bytes, byte((id-m.last)<<4|kind))
	m.last = id
}

func (m *message) i32(id int, v int32) {
	m.field(id, thriftInt32)
	m.bytes = binary.AppendVarint(m.bytes, int64(v))
}

func (m *message) i64(id int, v int64) {
	m.field(id, thriftInt64)
	m.bytes = binary.AppendVarint(m.bytes, v)
}

func (m *message) boolean(id int, v bool) {
	if v {
		m.field(id, thriftTrue)
	} else {
		m.field(id, thriftFalse)
	}
}

func (m *message) text(id int, v string) {
	m.field(id, thriftBinary)
	m.bytes = appendText(m.bytes, v)
}

func appendText(b []byte, v string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(v))), v...)
}

// inner adds a struct, which fill fills; nil for one without fields.
func (m *message) inner(id int, fill func(*message)) {
	m.field(id, thriftStruct)
	m.element(fill)
}

// list begins a list; its elements follow.
func (m *message) list(id, kind, n int) {
	m.field(id, thriftList)
	if n < 15 {
		m.bytes = append(m.bytes, byte(n<<4|kind))
		return
	}
	m.bytes = binary.AppendUvarint(append(m.bytes, byte(0xf0|kind)), uint64(n))
}

// element adds a struct of a list.
func (m *message) element(fill func(*message)) {
	one := message{bytes: m.bytes}
	if fill != nil {
		fill(&one)
	}
	m.bytes = append(one.bytes, 0)
}

func pageHeader(rows int64, plain, packed int) []byte {
	var m message
	m.i32(1, 0) // a page of data
	m.i32(2, int32(plain))
	m.i32(3, int32(packed))
	m.inner(5, func(m *message) {
		m.i32(1, int32(rows))
		m.i32(2, encodingPlain)
		m.i32(3, encodingRLE)
		m.i32(4, encodingRLE)
	})
	return append(m.bytes, 0)
}

func (t Type) physical() int32 {
	switch t {
	case Float64:
		return physicalDouble
	case String:
		return physicalBytes
	}
	return physicalInt64
}

// schema describes a column, in the words of earlier and of later readers.
func (c *Column) schema(m *message) {
	m.i32(1, c.Type.physical())
	optional := int32(0)
	if c.Optional {
		optional = 1
	}
	m.i32(3, optional)
	m.text(4, c.Name)
	switch c.Type {
	case String:
		m.i32(6, convertedUTF8)
		m.inner(10, func(m *message) { m.inner(logicalString, nil) })
	case Time:
		m.i32(6, convertedMillis)
		m.inner(10, func(m *message) {
			m.inner(logicalTimestamp, func(m *message) {
				m.boolean(1, true)                               // of UTC
				m.inner(2, func(m *message) { m.inner(1, nil) }) // milliseconds
			})
		})
	case Uint64:
		m.i32(6, convertedUint64)
		m.inner(10, func(m *message) {
			m.inner(logicalInteger, func(m *message) {
				m.field(1, thriftByte)
				m.bytes = append(m.bytes, 64)
				m.boolean(2, false) // signed
			})
		})
	}
}

// footer tells where in the file what is.
func (w *Writer) footer() []byte {
	var m message
	m.i32(1, 1) // the format's version
	m.list(2, thriftStruct, 1+len(w.columns))
	m.element(func(m *message) {
		m.text(4, "schema")
		m.i32(5, int32(len(w.columns)))
	})
	rows := int64(0)
	for i := range w.columns {
		m.element(w.columns[i].schema)
	}
	for _, g := range w.groups {
		rows += g.rows
	}
	m.i64(3, rows)
	m.list(4, thriftStruct, len(w.groups))
	for _, g := range w.groups {
		m.element(func(m *message) { w.group(m, g) })
	}
	m.text(6, "plumb")
	return append(m.bytes, 0)
}

func (w *Writer) group(m *message, g group) {
	size := int64(0)
	m.list(1, thriftStruct, len(g.chunks))
	for i, c := range g.chunks {
		size += c.plain
		m.element(func(m *message) {
			m.i64(2, c.at)
			m.inner(3, func(m *message) {
				m.i32(1, w.columns[i].Type.physical())
				m.list(2, thriftInt32, 2)
				m.bytes = binary.AppendVarint(binary.AppendVarint(m.bytes, encodingPlain), encodingRLE)
				m.list(3, thriftBinary, 1)
				m.bytes = appendText(m.bytes, w.columns[i].Name)
				m.i32(4, w.codec)
				m.i64(5, g.rows)
				m.i64(6, c.plain)
				m.i64(7, c.packed)
				m.i64(9, c.at)
			})
		})
	}
	m.i64(2, size)
	m.i64(3, g.rows)
}
