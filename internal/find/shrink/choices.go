package shrink

import (
	"math"
	"slices"

	"plumb/internal/draw/choice"
)

// draws makes the draw simpler: runs of decisions at once, in halves, then
// each by itself.
func (s *search) draws() {
	if s.subject.Redraw == nil {
		return
	}
	_, record, err := s.subject.Redraw(nil)
	if err != nil {
		return
	}
	s.result.Choices = record
	for n := len(record); n > 0; n /= 2 {
		for at := 0; at < len(s.result.Choices) && !s.over(); at += n {
			s.simplifyRun(at, n)
		}
	}
	for at := 0; at < len(s.result.Choices) && !s.over(); at++ {
		s.approach(at)
	}
}

// simplifyRun gives n decisions their simplest values.
func (s *search) simplifyRun(at, n int) bool {
	record := slices.Clone(s.result.Choices)
	changed := false
	for i := at; i < min(at+n, len(record)); i++ {
		if v := simplest(record[i]); v != record[i].Value {
			record[i].Value, changed = v, true
		}
	}
	return changed && s.redraw(record)
}

// approach halves the distance of an integer to its simplest value.
func (s *search) approach(at int) {
	for c := s.result.Choices[at]; c.Kind == choice.Int; {
		goal := simplest(c)
		step := math.Trunc((c.Value - goal) / 2)
		for ; step != 0; step = math.Trunc(step / 2) {
			record := slices.Clone(s.result.Choices)
			record[at].Value -= step
			if s.redraw(record) {
				break
			}
		}
		if step == 0 || at >= len(s.result.Choices) {
			return
		}
		c = s.result.Choices[at]
	}
}

func (s *search) redraw(record []choice.Choice) bool {
	p, took, err := s.subject.Redraw(record)
	if err != nil || !s.try(p) {
		return false
	}
	s.result.Choices = took
	return true
}

// simplest returns the simplest value that a decision could have had. Keys of
// streams are all alike.
func simplest(c choice.Choice) float64 {
	switch c.Kind {
	case choice.Int:
		return min(max(1, c.Lo), c.Hi-1)
	case choice.Float:
		return min(max(0, c.Lo), math.Nextafter(c.Hi, c.Lo))
	case choice.Index:
		return 0
	}
	return c.Value
}
