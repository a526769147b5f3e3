package gen

import (
	"fmt"
	"slices"
	"strings"
)

// The ranks of a global tensor, as far as placements describe them.
const (
	Nodes        = 2
	RanksPerNode = 2
)

// Placement says on which devices a global tensor lies. Ranks are numbered row
// by row of the hierarchy, such as [4] or [2 2].
type Placement struct {
	Device    string // "cpu" or "cuda"
	Hierarchy []int
	Ranks     []int // row by row; nil for 0, 1, …
}

// String returns OneFlow's notation.
func (p Placement) String() string {
	return fmt.Sprintf("oneflow.placement(type=%q, ranks=%s)", p.Device, p.Nested())
}

// Nested returns the ranks as nested lists, such as "[[0, 1], [2, 3]]".
func (p Placement) Nested() string {
	next := 0
	return p.nested(p.Hierarchy, &next)
}

func (p Placement) nested(shape []int, next *int) string {
	if len(shape) == 0 {
		*next++
		if p.Ranks != nil {
			return fmt.Sprint(p.Ranks[*next-1])
		}
		return fmt.Sprint(*next - 1)
	}
	var parts []string
	for range shape[0] {
		parts = append(parts, p.nested(shape[1:], next))
	}
	return "[" + strings.Join(parts, ", ") + "]"
}

// AllPlacements returns every placement on the devices: all ranks in a row,
// and nodes by ranks of a node.
func AllPlacements(devices ...string) []Placement {
	var out []Placement
	for _, d := range devices {
		out = append(out, Placement{Device: d, Hierarchy: []int{Nodes * RanksPerNode}}, Placement{Device: d, Hierarchy: []int{Nodes, RanksPerNode}})
	}
	return out
}

// SBP says how the ranks along one dimension of the hierarchy share a tensor:
// a split axis, "B" or "P".
type SBP struct {
	Kind byte // 'S', 'B' or 'P'
	Axis int  // of a split
}

// String returns OneFlow's notation.
func (s SBP) String() string {
	switch s.Kind {
	case 'S':
		return fmt.Sprintf("oneflow.sbp.split(dim=%d)", s.Axis)
	case 'B':
		return "oneflow.sbp.broadcast"
	}
	return "oneflow.sbp.partial_sum"
}

// SBPSpec limits AllSBP. ValidSplitAxis, where not nil, lists the axes that
// may be split.
type SBPSpec struct {
	Dim                                            int // of the hierarchy
	MaxDim                                         int // axes below it may be split
	ExceptSplit, ExceptBroadcast, ExceptPartialSum bool
	ValidSplitAxis                                 []int
}

// maxSBP bounds how many signatures AllSBP returns.
const maxSBP = 10000

// AllSBP returns every signature: one of the kinds for each dimension of the
// hierarchy, the last varying fastest. MaxDim 0 leaves broadcast only.
func AllSBP(s SBPSpec) ([][]SBP, error) {
	var one []SBP
	if !s.ExceptSplit {
		for i := range s.MaxDim {
			if s.ValidSplitAxis == nil || slices.Contains(s.ValidSplitAxis, i) {
				one = append(one, SBP{'S', i})
			}
		}
	}
	if !s.ExceptBroadcast {
		one = append(one, SBP{Kind: 'B'})
	}
	if !s.ExceptPartialSum && s.MaxDim > 0 {
		one = append(one, SBP{Kind: 'P'})
	}
	all := [][]SBP{nil}
	for range s.Dim {
		var next [][]SBP
		for _, head := range all {
			for _, tail := range one {
				next = append(next, append(slices.Clone(head), tail))
			}
		}
		if len(next) > maxSBP {
			return nil, fmt.Errorf("all_sbp: more than %d signatures", maxSBP)
		}
		all = next
	}
	return all, nil
}
