package worker

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"time"
)

// valid returns errGarbage for a payload that is not one JSON value.
func valid(payload []byte) error {
	if !json.Valid(payload) {
		return fmt.Errorf("%w: a frame of %d bytes that is not JSON", errGarbage, len(payload))
	}
	return nil
}

// reader walks over valid JSON. After the first value that is not of the kind
// asked for, err is set and every loop ends.
type reader struct {
	b   []byte
	i   int
	err error
}

func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("reply: "+format, args...)
	}
	r.i = len(r.b)
}

// peek returns the first byte of the next token; 0 at the end.
func (r *reader) peek() byte {
	for r.i < len(r.b) {
		switch c := r.b[r.i]; c {
		case ' ', '\t', '\n', '\r':
			r.i++
		default:
			return c
		}
	}
	return 0
}

func (r *reader) open(c byte) bool {
	if got := r.peek(); got != c {
		r.fail("expected %q at byte %d, got %q", c, r.i, got)
		return false
	}
	r.i++
	return true
}

// array enters an array; false when it is empty.
func (r *reader) array() bool {
	if !r.open('[') {
		return false
	}
	if r.peek() == ']' {
		r.i++
		return false
	}
	return true
}

// more steps over a comma to the next element; false at the end of the array.
func (r *reader) more() bool {
	switch r.peek() {
	case ',':
		r.i++
		return true
	case ']':
		r.i++
		return false
	}
	r.fail("expected an element at byte %d", r.i)
	return false
}

// rest leaves an array, over elements that this version does not know.
func (r *reader) rest() {
	for r.more() {
		r.skip()
	}
}

// object enters an object and returns its first key; false when it is empty.
func (r *reader) object() (string, bool) {
	if !r.open('{') {
		return "", false
	}
	if r.peek() == '}' {
		r.i++
		return "", false
	}
	return r.key()
}

func (r *reader) nextKey() (string, bool) {
	switch r.peek() {
	case ',':
		r.i++
		return r.key()
	case '}':
		r.i++
		return "", false
	}
	r.fail("expected a key at byte %d", r.i)
	return "", false
}

func (r *reader) key() (string, bool) {
	key := r.string()
	return key, r.open(':')
}

// token returns the bytes of the next string, number or word.
func (r *reader) token() []byte {
	if r.peek() == '"' {
		return r.quoted()
	}
	start := r.i
	for r.i < len(r.b) {
		switch r.b[r.i] {
		case ',', ']', '}', ':', ' ', '\t', '\n', '\r', '[', '{', '"':
			return r.b[start:r.i]
		}
		r.i++
	}
	return r.b[start:]
}

func (r *reader) quoted() []byte {
	start := r.i
	for r.i++; r.i < len(r.b); r.i++ {
		switch r.b[r.i] {
		case '\\':
			r.i++
		case '"':
			r.i++
			return r.b[start:r.i]
		}
	}
	r.fail("unfinished string")
	return nil
}

func (r *reader) string() string {
	if c := r.peek(); c != '"' {
		r.fail("expected a string at byte %d", r.i)
		return ""
	}
	return unquote(r.quoted())
}

func unquote(token []byte) string {
	if len(token) < 2 {
		return ""
	}
	for _, c := range token[1 : len(token)-1] {
		if c == '\\' || c >= 0x80 {
			var s string
			json.Unmarshal(token, &s)
			return s
		}
	}
	return string(token[1 : len(token)-1])
}

func (r *reader) int() int {
	token := r.token()
	n, err := strconv.ParseInt(string(token), 10, 64)
	if err != nil {
		r.fail("expected an integer, got %q", clipBytes(token))
	}
	return int(n)
}

func (r *reader) number() float64 {
	token := r.token()
	f, err := strconv.ParseFloat(string(token), 64)
	if err != nil {
		r.fail("expected a number, got %q", clipBytes(token))
	}
	return f
}

// namedFloat reads "nan", "inf" or "-inf".
func (r *reader) namedFloat() float64 {
	switch s := r.string(); s {
	case "nan":
		return math.NaN()
	case "inf":
		return math.Inf(1)
	case "-inf":
		return math.Inf(-1)
	default:
		r.fail("float %q", s)
		return 0
	}
}

// plain reads null, a bool, a string, or a number: an int64 when it is written
// without a fraction and fits, else a float64.
func (r *reader) plain() any {
	switch r.peek() {
	case '"':
		return r.string()
	case 'n', 't', 'f':
		return map[string]any{"true": true, "false": false}[string(r.token())]
	}
	token := r.token()
	if n, err := strconv.ParseInt(string(token), 10, 64); err == nil {
		return n
	}
	f, err := strconv.ParseFloat(string(token), 64)
	if err != nil {
		r.fail("unexpected %q", clipBytes(token))
	}
	return f
}

// skip steps over the next value.
func (r *reader) skip() {
	depth := 0
	for {
		switch r.peek() {
		case 0:
			return
		case '[', '{':
			depth++
			r.i++
		case ']', '}':
			depth--
			r.i++
		case ',', ':':
			r.i++
		default:
			r.token()
		}
		if depth <= 0 {
			return
		}
	}
}

func clipBytes(b []byte) string { return string(b[:min(len(b), 40)]) }

// seconds converts a time in seconds; nonsense is 0.
func seconds(s float64) time.Duration {
	if !(s >= 0 && s < 1e9) {
		return 0
	}
	return time.Duration(s * float64(time.Second))
}
