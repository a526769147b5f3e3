// Package choice is the one source of random decisions. Every decision is
// recorded with its kind and bounds; a record can be printed, parsed and
// replayed, and a replay that is edited stays legal, because each value is
// brought back into the bounds of the decision that asks for it.
package choice

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Kind says what a decision is about.
type Kind string

// The kinds of decision.
const (
	Int   Kind = "int"   // an integer in [Lo, Hi)
	Float Kind = "float" // a float64 in [Lo, Hi)
	Index Kind = "index" // an alternative in [0, Hi)
	Key   Kind = "key"   // the key of a tensor's stream
)

// Choice is one recorded decision.
type Choice struct {
	Kind   Kind
	Lo, Hi float64
	Value  float64 // for Key: the low 53 bits of the key
}

// Source draws decisions from a seeded stream, or from a record first.
type Source struct {
	rng    Philox
	shared *Philox // of the decisions that make the program; nil where they are the source's own
	drawn  uint64
	record []Choice
	replay []Choice
}

// New returns a source of fresh decisions.
func New(key uint64) *Source { return &Source{rng: NewPhilox(key)} }

// Replay returns a source that repeats the record, position by position, and
// goes on with decisions of the key's stream where the record ends.
func Replay(key uint64, record []Choice) *Source {
	return &Source{rng: NewPhilox(key), replay: record}
}

// Sharing has the source take the decisions that make a program from the stream
// of another key: sources that share it draw the same program on other elements.
// What is about elements stays the source's own: keys, and what Own draws.
func (s *Source) Sharing(key uint64) *Source {
	shared := NewPhilox(key)
	s.shared = &shared
	return s
}

// Own has draw take its decisions from the source's own stream.
func (s *Source) Own(draw func()) {
	shared := s.shared
	s.shared = nil
	draw()
	s.shared = shared
}

// Record returns the decisions drawn so far.
func (s *Source) Record() []Choice { return s.record }

// bits returns the next 53 random bits. A position of the stream is used up
// by every decision, replayed or not, so that edits do not shift later ones.
func (s *Source) bits(kind Kind) uint64 {
	rng := &s.rng
	if s.shared != nil && kind != Key {
		rng = s.shared
	}
	w, _ := rng.Pair(s.drawn)
	s.drawn++
	return w >> 11
}

func (s *Source) take(kind Kind, lo, hi, fresh float64) float64 {
	v := fresh
	if n := len(s.record); n < len(s.replay) && s.replay[n].Kind == kind {
		v = s.replay[n].Value
		if !(v >= lo) {
			v = lo
		}
		if hi > lo && v >= hi {
			v = math.Nextafter(hi, lo)
			if kind != Float {
				v = hi - 1
			}
		}
	}
	s.record = append(s.record, Choice{kind, lo, hi, v})
	return v
}

// Int draws an integer in [lo, hi); lo when the range is empty.
func (s *Source) Int(lo, hi int64) int64 {
	b := s.bits(Int)
	fresh := lo
	if hi > lo {
		fresh += int64(scale(b, uint64(hi-lo)))
	}
	return int64(s.take(Int, float64(lo), float64(hi), float64(fresh)))
}

// Float draws a float64 in [lo, hi); lo when the range is empty.
func (s *Source) Float(lo, hi float64) float64 {
	u := float64(s.bits(Float)) * 0x1p-53
	fresh := lo + float64(u*(hi-lo))
	if fresh >= hi {
		fresh = lo
	}
	return s.take(Float, lo, hi, fresh)
}

// Index draws one of n alternatives, uniformly. The first is the simplest.
func (s *Source) Index(n int) int {
	return int(s.take(Index, 0, float64(n), float64(scale(s.bits(Index), uint64(n)))))
}

// Weighted draws one of len(weights) alternatives with the given weights.
func (s *Source) Weighted(weights []float64) int {
	total := 0.0
	for _, w := range weights {
		total += w
	}
	u := float64(float64(s.bits(Index)) * 0x1p-53 * total)
	pick := 0
	for pick < len(weights)-1 && u >= weights[pick] {
		u -= weights[pick]
		pick++
	}
	return int(s.take(Index, 0, float64(len(weights)), float64(pick)))
}

// Bool draws a fair coin.
func (s *Source) Bool() bool { return s.Index(2) == 1 }

// Key draws the key of a tensor's stream.
func (s *Source) Key() uint64 { return uint64(s.take(Key, 0, 1<<53, float64(s.bits(Key)))) }

// scale maps 53 random bits to [0, n).
func scale(b, n uint64) uint64 {
	return uint64(float64(b) * 0x1p-53 * float64(n))
}

// Format prints a record, one decision a line: "int [1, 6) 3".
func Format(record []Choice) string {
	var b strings.Builder
	for _, c := range record {
		fmt.Fprintf(&b, "%s [%s, %s) %s\n", c.Kind, number(c.Lo), number(c.Hi), number(c.Value))
	}
	return b.String()
}

func number(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

// Parse reads what Format prints.
func Parse(text string) ([]Choice, error) {
	var record []Choice
	for i, line := range strings.Split(strings.TrimSpace(text), "\n") {
		if line == "" {
			continue
		}
		fields := strings.Fields(strings.NewReplacer("[", " ", ",", " ", ")", " ").Replace(line))
		if len(fields) != 4 {
			return nil, fmt.Errorf("line %d: want \"kind [lo, hi) value\", have %q", i+1, line)
		}
		c := Choice{Kind: Kind(fields[0])}
		switch c.Kind {
		case Int, Float, Index, Key:
		default:
			return nil, fmt.Errorf("line %d: unknown kind of choice %q", i+1, fields[0])
		}
		for j, p := range []*float64{&c.Lo, &c.Hi, &c.Value} {
			v, err := strconv.ParseFloat(fields[j+1], 64)
			if err != nil {
				return nil, fmt.Errorf("line %d: %w", i+1, err)
			}
			*p = v
		}
		record = append(record, c)
	}
	return record, nil
}
