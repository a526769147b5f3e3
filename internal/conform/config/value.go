package config

import (
	"bytes"
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Value is a value of a config: [None], [Bool], [Int], [Float], [String],
// [List], [Tuple], [*Dict], [DType], [Slice] or [Skip]. Values are not changed
// once they are made.
type Value interface {
	// AppendJSON appends the value in the encoding of [Case.AppendJSON].
	AppendJSON(b []byte) []byte
}

type (
	// None is Python's None.
	None struct{}
	// Bool is Python's bool.
	Bool bool
	// Int is Python's int, of 64 bits.
	Int int64
	// Float is Python's float.
	Float float64
	// String is Python's str.
	String string
	// List is Python's list.
	List []Value
	// Tuple is Python's tuple.
	Tuple []Value
	// DType is a scalar type by numpy's name for its class, such as float32 or bool_.
	DType string
	// Slice is Python's slice: start, stop and step.
	Slice [3]Value
	// Skip holds the values of a device rule's Skip.
	Skip []Value
)

// Dict is Python's dict with string keys, in the order of their insertion. The
// zero Dict is empty.
type Dict struct {
	keys []string
	at   map[string]Value
}

// Get returns the value of a key, or nil.
func (d *Dict) Get(key string) Value { return d.at[key] }

// Keys returns the keys in order; the caller does not change them.
func (d *Dict) Keys() []string { return d.keys }

// Set keeps the place of a key that is there.
func (d *Dict) Set(key string, v Value) {
	if d.at == nil {
		d.at = map[string]Value{}
	}
	if _, ok := d.at[key]; !ok {
		d.keys = append(d.keys, key)
	}
	d.at[key] = v
}

// clone copies the dict without the keys named.
func (d *Dict) clone(without ...string) *Dict {
	out := &Dict{keys: make([]string, 0, len(d.keys)+4), at: make(map[string]Value, len(d.keys)+4)}
	for _, k := range d.keys {
		if !slices.Contains(without, k) {
			out.Set(k, d.at[k])
		}
	}
	return out
}

// AppendJSON appends null.
func (None) AppendJSON(b []byte) []byte { return append(b, "null"...) }

// AppendJSON appends true or false.
func (v Bool) AppendJSON(b []byte) []byte { return strconv.AppendBool(b, bool(v)) }

// AppendJSON appends a number without a point.
func (v Int) AppendJSON(b []byte) []byte { return strconv.AppendInt(b, int64(v), 10) }

// AppendJSON appends a number with a point or an exponent, as Python's repr
// writes it, or {"$float": "inf"}, "-inf" or "nan".
func (v Float) AppendJSON(b []byte) []byte {
	switch f := float64(v); {
	case math.IsNaN(f):
		return append(b, `{"$float": "nan"}`...)
	case math.IsInf(f, 1):
		return append(b, `{"$float": "inf"}`...)
	case math.IsInf(f, -1):
		return append(b, `{"$float": "-inf"}`...)
	default:
		return appendFloat(b, f)
	}
}

func appendFloat(b []byte, f float64) []byte {
	if a := math.Abs(f); a != 0 && (a < 1e-4 || a >= 1e16) {
		return strconv.AppendFloat(b, f, 'e', -1, 64)
	}
	s := strconv.FormatFloat(f, 'f', -1, 64)
	b = append(b, s...)
	if !strings.Contains(s, ".") {
		b = append(b, ".0"...)
	}
	return b
}

// AppendJSON appends a quoted string.
func (v String) AppendJSON(b []byte) []byte {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(string(v)); err != nil {
		panic(err) // a string has an encoding
	}
	return append(b, bytes.TrimSuffix(out.Bytes(), []byte("\n"))...)
}

// AppendJSON appends an array.
func (v List) AppendJSON(b []byte) []byte {
	b = append(b, '[')
	for i, x := range v {
		if i > 0 {
			b = append(b, ", "...)
		}
		b = x.AppendJSON(b)
	}
	return append(b, ']')
}

// AppendJSON appends {"$tuple": [...]}.
func (v Tuple) AppendJSON(b []byte) []byte {
	return append(List(v).AppendJSON(append(b, `{"$tuple": `...)), '}')
}

// AppendJSON appends {"$np": "float32"}.
func (v DType) AppendJSON(b []byte) []byte {
	return append(String(v).AppendJSON(append(b, `{"$np": `...)), '}')
}

// AppendJSON appends {"$slice": [start, stop, step]}.
func (v Slice) AppendJSON(b []byte) []byte {
	return append(List(v[:]).AppendJSON(append(b, `{"$slice": `...)), '}')
}

// AppendJSON appends {"$skip": [...]}.
func (v Skip) AppendJSON(b []byte) []byte {
	return append(List(v).AppendJSON(append(b, `{"$skip": `...)), '}')
}

// AppendJSON appends an object.
func (d *Dict) AppendJSON(b []byte) []byte {
	b = append(b, '{')
	for i, k := range d.keys {
		if i > 0 {
			b = append(b, ", "...)
		}
		b = append(String(k).AppendJSON(b), ": "...)
		b = d.at[k].AppendJSON(b)
	}
	return append(b, '}')
}

// Items returns the elements of a list or tuple.
func Items(v Value) ([]Value, bool) {
	switch v := v.(type) {
	case List:
		return v, true
	case Tuple:
		return v, true
	}
	return nil, false
}
