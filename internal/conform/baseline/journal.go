package baseline

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"plumb/backend"
)

// journalJSON is a line of the journal: the first says what is recorded, each
// other one that a shard is finished.
type journalJSON struct {
	Format    int                           `json:"format,omitempty"`
	Plumb     string                        `json:"plumb,omitempty"`
	Self      bool                          `json:"self_contained,omitempty"`
	Truth     TruthMode                     `json:"truth,omitempty"`
	Seeded    bool                          `json:"seeded,omitempty"`
	StandIns  StandIns                      `json:"stand_ins,omitempty"`
	Reference *backend.Info                 `json:"reference,omitempty"`
	Shard     *Shard                        `json:"shard,omitempty"`
	IDs       string                        `json:"ids,omitempty"` // of the programs
	Refused   map[string]map[string]Refusal `json:"refused,omitempty"`
}

func (s *shardPlan) ids() string {
	var b bytes.Buffer
	for _, c := range s.cases {
		b.WriteString(c.id)
	}
	var all checksum
	all.add(b.Bytes())
	return fmt.Sprintf("%d-%s", len(s.cases), &all)
}

// resume takes over the finished shards of an earlier run, and begins a journal
// with them.
func (g *generator) resume() error {
	path := filepath.Join(g.Dir, journalName)
	old, err := g.files().readAtMost(journalName, maxManifest)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	g.takeOver(old)
	_, err = writeFile(path, func(w io.Writer) error {
		for _, line := range g.journalLines() {
			if err := json.NewEncoder(w).Encode(line); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	g.journal, err = os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0o644)
	return err
}

func (g *generator) files() folder { return folder{os.DirFS(g.Dir), g.Dir} }

func (g *generator) header() journalJSON {
	return journalJSON{Format: Version, Plumb: g.Plumb, Self: g.Predict == nil, Truth: g.Truth.Mode, StandIns: g.StandIns, Seeded: g.Seeded}
}

func (g *generator) takeOver(old []byte) {
	lines := bufio.NewScanner(bytes.NewReader(old))
	lines.Buffer(nil, 64<<20)
	byName := map[string]*shardPlan{}
	for _, s := range g.shards {
		byName[s.name] = s
	}
	for first := true; lines.Scan(); first = false {
		var line journalJSON
		if json.Unmarshal(lines.Bytes(), &line) != nil {
			return
		}
		if first {
			if h := g.header(); line.Format != h.Format || line.Plumb != h.Plumb || line.Self != h.Self || line.Truth != h.Truth || line.StandIns != h.StandIns || line.Seeded != h.Seeded {
				return
			}
			continue
		}
		if line.Reference != nil {
			g.info = line.Reference
		}
		if line.Shard == nil {
			continue
		}
		s := byName[line.Shard.Name]
		if s == nil || s.ids() != line.IDs || line.Shard.Cases != len(s.cases) || !g.Seeded && line.Shard.verify(g.files()) != nil {
			continue
		}
		s.made, s.batches, s.refused = line.Shard, nil, map[int]map[string]Refusal{}
		for _, c := range s.cases {
			if r := line.Refused[g.Cases[c.index].Name]; r != nil {
				s.refused[c.index] = r
			}
		}
		g.done += len(s.cases)
	}
}

func (g *generator) journalLines() []journalJSON {
	lines := []journalJSON{g.header()}
	if g.info != nil {
		lines = append(lines, journalJSON{Reference: g.info})
	}
	for _, s := range g.shards {
		if s.made != nil {
			lines = append(lines, g.line(s))
		}
	}
	return lines
}

func (g *generator) line(s *shardPlan) journalJSON {
	refused := map[string]map[string]Refusal{}
	for i, r := range s.refused {
		refused[g.Cases[i].Name] = r
	}
	return journalJSON{Shard: s.made, IDs: s.ids(), Refused: refused}
}

// describe notes what the reference is, and holds all its instances to it.
func (g *generator) describe(info backend.Info) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.info != nil {
		if g.info.Name != info.Name || g.info.Version != info.Version {
			return fmt.Errorf("%s: the recording was begun with %s %s, the reference is %s %s now; record into another directory", g.Dir, g.info.Name, g.info.Version, info.Name, info.Version)
		}
		return nil
	}
	g.info = &info
	return json.NewEncoder(g.journal).Encode(journalJSON{Reference: g.info})
}

func (g *generator) finished(s *shardPlan, made *Shard) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	s.made = made
	g.done += len(s.cases)
	g.tell()
	return json.NewEncoder(g.journal).Encode(g.line(s))
}

func (g *generator) tell() {
	if g.Progress != nil {
		g.Progress(g.done, len(g.Cases)-g.missing())
	}
}

func (g *generator) missing() int {
	n := 0
	for i := range g.entries {
		if g.entries[i].Missing != "" {
			n++
		}
	}
	return n
}
