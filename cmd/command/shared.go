package command

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"

	"plumb/global"
)

// gathered counts the calls that ranks did not share, for plumb explain.
type gathered struct {
	mu    sync.Mutex
	calls map[[2]string]int // by operator and reason
	all   map[string]int    // by operator
}

// told is called with each call over ranks, by several goroutines.
func (g *gathered) told(s global.Step) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.calls == nil {
		g.calls, g.all = map[[2]string]int{}, map[string]int{}
	}
	id := s.Call.Def.ID()
	g.all[id]++
	if s.Gathered != "" {
		g.calls[[2]string{id, s.Gathered}]++
	}
}

// print lists the operators, those that were gathered most often first.
func (g *gathered) print(w io.Writer) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.all) == 0 {
		return
	}
	keys := slices.SortedFunc(maps.Keys(g.calls), func(a, b [2]string) int {
		return cmp.Or(cmp.Compare(g.calls[b], g.calls[a]), slices.Compare(a[:], b[:]))
	})
	fmt.Fprintf(w, "ranks computed the whole, each of them, in calls of %d operators:\n", len(keys))
	for _, k := range keys {
		fmt.Fprintf(w, "  %d of %d %s: %s\n", g.calls[k], g.all[k[0]], k[0], k[1])
	}
}
