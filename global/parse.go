package global

import (
	"fmt"
	"strconv"
	"strings"

	"plumb/op"
)

// ParseHierarchy reads the sizes of a hierarchy: "4", "2x2".
func ParseHierarchy(text string) ([]int, error) {
	var sizes []int
	size := 1
	for part := range strings.SplitSeq(text, "x") {
		n, err := strconv.Atoi(part)
		if err != nil || n < 1 || n > maxRanks/size {
			return nil, fmt.Errorf("%q is neither a number of ranks up to %d nor a hierarchy such as 2x2", text, maxRanks)
		}
		sizes, size = append(sizes, n), size*n
	}
	return sizes, nil
}

// ParseSBP reads what SBP.String writes: "S(0)", "B", "P", "[S(0), B]".
func ParseSBP(text string) (SBP, error) {
	inner, nested := strings.CutPrefix(text, "[")
	if nested {
		var closed bool
		if inner, closed = strings.CutSuffix(inner, "]"); !closed {
			return nil, fmt.Errorf("sbp %q: a bracket is open", text)
		}
	}
	var s SBP
	for _, part := range strings.Split(inner, ",") {
		e, err := parseEntry(strings.TrimSpace(part))
		if err != nil {
			return nil, fmt.Errorf("sbp %q: %w", text, err)
		}
		s = append(s, e)
	}
	return s, nil
}

func parseEntry(text string) (op.SBP, error) {
	switch text {
	case "B":
		return op.B, nil
	case "P":
		return op.P, nil
	}
	axis, ok := strings.CutPrefix(text, "S(")
	axis, closed := strings.CutSuffix(axis, ")")
	n, err := strconv.ParseUint(axis, 10, 16)
	if !ok || !closed || err != nil {
		return op.B, fmt.Errorf("%q is none of S(axis), B and P", text)
	}
	return op.S(int(n)), nil
}

// ParsePlacement reads what Placement.String writes: "cpu[[0, 1], [2, 3]]".
func ParsePlacement(text string) (Placement, error) {
	at := strings.IndexByte(text, '[')
	if at <= 0 {
		return Placement{}, fmt.Errorf("placement %q: want a device and its ranks, such as cpu[0, 1]", text)
	}
	r := rankReader{rest: text[at:]}
	if !r.list(0) || r.rest != "" {
		return Placement{}, fmt.Errorf("placement %q: its ranks are no lists of equal lengths", text)
	}
	return NewPlacement(text[:at], r.sizes[:r.dims], r.ranks...)
}

// maxDims bounds the dimensions of a hierarchy that is read.
const maxDims = 8

// rankReader reads nested lists of ranks.
type rankReader struct {
	rest  string
	sizes [maxDims]int // of the lists at a depth; 0 before the first ended
	dims  int          // the depth of the ranks; 0 before the first
	ranks []int
}

// list reads a list at a depth.
func (r *rankReader) list(depth int) bool {
	if depth == maxDims || !r.take("[") || !r.entry(depth) {
		return false
	}
	n := 1
	for ; r.take(","); n++ {
		if !r.entry(depth) {
			return false
		}
	}
	if r.sizes[depth] == 0 {
		r.sizes[depth] = n
	}
	return r.sizes[depth] == n && r.take("]")
}

// entry reads a rank, or a list of the next dimension.
func (r *rankReader) entry(depth int) bool {
	r.rest = strings.TrimLeft(r.rest, " ")
	if strings.HasPrefix(r.rest, "[") {
		return r.list(depth + 1)
	}
	digits := r.rest[:len(r.rest)-len(strings.TrimLeft(r.rest, "0123456789"))]
	rank, err := strconv.Atoi(digits)
	if r.dims == 0 {
		r.dims = depth + 1
	}
	if err != nil || r.dims != depth+1 || len(r.ranks) == maxRanks {
		return false
	}
	r.ranks, r.rest = append(r.ranks, rank), r.rest[len(digits):]
	return true
}

func (r *rankReader) take(token string) bool {
	rest, ok := strings.CutPrefix(strings.TrimLeft(r.rest, " "), token)
	if ok {
		r.rest = rest
	}
	return ok
}
