package baseline

import (
	"cmp"
	"fmt"
)

// shardPlan is a shard to write: the cases with these indices. It is the source
// of their batches.
type shardPlan struct {
	*generator
	name    string
	cases   []planned
	batches [][]planned  // to be handed out
	writer  *shardWriter // while it is recorded
	made    *Shard       // once it is written
	// refused is what the reference refused, by the index of the case.
	refused map[int]map[string]Refusal
}

type planned struct {
	index int
	bytes int64
	id    string
}

// caseBatch is some cases of a shard.
type caseBatch struct {
	of    *shardPlan
	cases []planned
	last  bool
}

// plan decides which case goes into which shard.
func (g *generator) plan() error {
	var all []planned
	for i := range g.Cases {
		c := &g.Cases[i]
		e := Entry{Name: c.Name, Function: c.Function, ATol: c.ATol, RTol: c.RTol}
		variants, err := c.Programs()
		if err != nil {
			e.Missing = err.Error()
		} else {
			one := planned{index: i}
			for _, v := range variants {
				if err := v.Program.Validate(); err != nil {
					return fmt.Errorf("%s: not a valid program: %w", c.Name, err)
				}
				one.bytes += inputBytes(v.Program)
				one.id += v.Program.ID()
			}
			all = append(all, one)
		}
		g.entries = append(g.entries, e)
	}
	bytes := func(p *planned) int64 { return p.bytes }
	for i, run := range runsOf(all, shardCases, cmp.Or(g.Shard, ShardBytes), bytes) {
		g.shards = append(g.shards, &shardPlan{
			generator: g, name: fmt.Sprintf("cases-%05d.safetensors.zst", i),
			cases: run, batches: runsOf(run, batchCases, batchBytes, bytes),
		})
	}
	return nil
}

// Wants reports whether there is more to record.
func (s *shardPlan) Wants() bool { return len(s.batches) > 0 }

// Cost is how many bytes the next batch takes.
func (s *shardPlan) Cost() int64 { return s.needs(s.batches[0]) }

// Next returns the next batch.
func (s *shardPlan) Next() *caseBatch {
	b := &caseBatch{of: s, cases: s.batches[0]}
	s.batches = s.batches[1:]
	b.last = len(s.batches) == 0
	return b
}

// open returns the writer of the shard.
func (s *shardPlan) open() (_ *shardWriter, err error) {
	if s.writer == nil {
		s.refused = map[int]map[string]Refusal{}
		s.writer, err = newShardWriter(s.Dir)
	}
	return s.writer, err
}

func (s *shardPlan) close() {
	if s.writer != nil {
		s.writer.close()
		s.writer = nil
	}
}

func (s *shardPlan) refuse(index int, variant string, r Refusal) {
	if s.refused[index] == nil {
		s.refused[index] = map[string]Refusal{}
	}
	s.refused[index][variant] = r
}

// needs is how many bytes cases take while they are recorded, as far as earlier
// ones of their functions tell: results are held twice.
func (g *generator) needs(cases []planned) int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	var n int64
	for _, c := range cases {
		n += c.bytes * max(perInput, 1+2*g.growth[g.Cases[c.index].Function])
	}
	return n
}

// grew notes how many bytes the results of a case have that is not small.
func (g *generator) grew(c planned, results int64) {
	if c.bytes < batchBytes {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	f := g.Cases[c.index].Function
	g.growth[f] = max(g.growth[f], results/c.bytes)
}
