package baseline

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"sync"

	"plumb/backend"
	"plumb/op"
	"plumb/program"
	"plumb/tensor"
)

// ShardBytes is how many bytes of inputs the cases of a shard have, unless it
// is of one case.
const ShardBytes = 64 << 20

// A shard has at most shardCases cases, an exchange with a backend batchCases
// or batchBytes of inputs.
const (
	shardCases = 512
	batchBytes = 4 << 20
	batchCases = 32
)

// perInput is how many bytes a case takes for each byte of its inputs: the
// inputs, the reference's and the predictor's results, and what gradients take.
const perInput = 6

// GenConfig says what to record.
type GenConfig struct {
	Dir    string
	Plumb  string // the version
	Config string // the name of the config
	Source []byte // its text
	Seed   uint64
	Cases  []Case
	// Open starts one more instance of the reference.
	Open func() (backend.Backend, error)
	// Predict returns a backend from whose results large ones are told apart;
	// nil stores them whole.
	Predict func() backend.Backend
	// Costly tells of programs that are not to be predicted, as that takes more
	// time and memory than it saves bytes; nil tells of none.
	Costly func(p *program.Program) bool
	Truth  Truth
	Jobs   int
	Memory int64 // of the cases under way, in bytes
	Shard  int64 // bytes of inputs in a shard; 0 is ShardBytes
	// Progress, which may be nil, is told how many cases are done, those of an
	// earlier run included; it is called from one goroutine at a time.
	Progress func(done, all int)
}

// Gen records the cases. It keeps the shards that an interrupted run has
// finished, where they are what that run wrote and it recorded the same. On an
// error, and when the context ends, what is finished is a baseline that is not
// complete.
func Gen(ctx context.Context, cfg GenConfig) (*Manifest, error) {
	if err := os.MkdirAll(cfg.Dir, 0o755); err != nil {
		return nil, err
	}
	g := &generator{GenConfig: cfg, budget: newBudget(cfg.Memory), growth: map[string]int64{}}
	if err := g.plan(); err != nil {
		return nil, err
	}
	if err := g.resume(); err != nil {
		return nil, err
	}
	err := g.run(ctx)
	m, writeErr := g.finish()
	return m, errors.Join(err, writeErr)
}

type generator struct {
	GenConfig
	budget  *budget
	entries []Entry
	shards  []*shardPlan

	mu      sync.Mutex
	journal *os.File
	info    *backend.Info
	done    int
	next    int
	growth  map[string]int64 // by function: the most bytes of results that a byte of inputs led to
}

// shardPlan is a shard to write: the cases with these indices.
type shardPlan struct {
	name  string
	cases []planned
	made  *Shard // once it is written
	// refused is what the reference refused, by the index of the case.
	refused map[int]map[string]Refusal
}

type planned struct {
	index int
	bytes int64
	id    string
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
				if err := v.Program.Check(); err != nil {
					return fmt.Errorf("%s: not a valid program: %w", c.Name, err)
				}
				one.bytes += inputBytes(v.Program)
				one.id += v.Program.ID()
			}
			all = append(all, one)
		}
		g.entries = append(g.entries, e)
	}
	for i, run := range runsOf(all, shardCases, cmp.Or(g.Shard, ShardBytes), func(p *planned) int64 { return p.bytes }) {
		g.shards = append(g.shards, &shardPlan{name: fmt.Sprintf("cases-%05d.safetensors.zst", i), cases: run})
	}
	return nil
}

// journalJSON is a line of the journal: the first says what is recorded, each
// other one that a shard is finished.
type journalJSON struct {
	Format    int                           `json:"format,omitempty"`
	Plumb     string                        `json:"plumb,omitempty"`
	Self      bool                          `json:"self_contained,omitempty"`
	Truth     TruthMode                     `json:"truth,omitempty"`
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
	return journalJSON{Format: Version, Plumb: g.Plumb, Self: g.Predict == nil, Truth: g.Truth.Mode}
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
			if h := g.header(); line.Format != h.Format || line.Plumb != h.Plumb || line.Self != h.Self || line.Truth != h.Truth {
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
		if s == nil || s.ids() != line.IDs || line.Shard.Cases != len(s.cases) || line.Shard.verify(g.files()) != nil {
			continue
		}
		s.made, s.refused = line.Shard, map[int]map[string]Refusal{}
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

// run records the shards that are missing, in lanes.
func (g *generator) run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	g.tell()
	var lanes sync.WaitGroup
	for range max(g.Jobs, 1) {
		lanes.Go(func() {
			if err := g.lane(ctx); err != nil {
				cancel(err)
			}
		})
	}
	lanes.Wait()
	return context.Cause(ctx)
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

// take returns the next shard to record; nil at the end.
func (g *generator) take() *shardPlan {
	g.mu.Lock()
	defer g.mu.Unlock()
	for g.next < len(g.shards) {
		s := g.shards[g.next]
		g.next++
		if s.made == nil {
			return s
		}
	}
	return nil
}

func (g *generator) lane(ctx context.Context) (err error) {
	s := g.take()
	if s == nil {
		return nil
	}
	ref, err := g.Open()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ref.Close()) }()
	if err := g.describe(ref.Info()); err != nil {
		return err
	}
	l := &genLane{generator: g, ref: ref}
	if g.Predict != nil {
		l.like = g.Predict()
	}
	if g.Truth.Predict != nil {
		l.judged = g.Truth.Predict()
	}
	for ; s != nil && ctx.Err() == nil; s = g.take() {
		made, err := l.record(ctx, s)
		if err != nil || ctx.Err() != nil {
			return err
		}
		if err := g.finished(s, made); err != nil {
			return err
		}
	}
	return nil
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

// finish writes the manifest and ends the journal of a complete recording.
func (g *generator) finish() (*Manifest, error) {
	defer g.journal.Close()
	m := &Manifest{Format: Version, Plumb: g.Plumb, Seed: g.Seed, SelfContained: g.Predict == nil, Truth: g.Truth.Mode, Complete: true, Shards: []Shard{}, Cases: []Entry{}}
	if g.info != nil {
		m.Reference = *g.info
	}
	config, err := writeFile(filepath.Join(g.Dir, "config"+filepath.Ext(g.Config)), func(w io.Writer) error {
		_, err := w.Write(g.Source)
		return err
	})
	if err != nil {
		return nil, err
	}
	m.Config = config
	left := map[int]bool{}
	for _, s := range g.shards {
		if s.made == nil {
			m.Complete = false
		} else {
			m.Shards = append(m.Shards, *s.made)
		}
		for _, c := range s.cases {
			g.entries[c.index].Refused = s.refused[c.index]
			left[c.index] = s.made == nil
		}
	}
	for i := range g.entries {
		if !left[i] {
			m.Cases = append(m.Cases, g.entries[i])
		}
	}
	text, err := m.encode()
	if err != nil {
		return nil, err
	}
	if _, err := writeFile(filepath.Join(g.Dir, manifestName), func(w io.Writer) error {
		_, err := w.Write(text)
		return err
	}); err != nil {
		return nil, err
	}
	if m.Complete {
		err = os.Remove(filepath.Join(g.Dir, journalName))
	}
	return m, err
}

// genLane records shards with one instance of the reference, batch by batch:
// tensors lie in memory that the reference shares until they are coded.
type genLane struct {
	*generator
	ref    backend.Backend
	like   backend.Backend
	judged backend.Backend // whose verdict is asked for the truth
	wanted []*question     // of the batch, whose truth is to be asked for
	// refusals are what the reference said of dtypes that it has no kernel for.
	refusals map[string]refusal
}

// unit is a case on its way through a lane.
type unit struct {
	index int
	bytes int64
	ways  []way
	asked *question // about the first variant; nil for none
}

// way is one variant of a case. One that follows has the outcome of the first
// variant, as inPlaceOf tells it.
type way struct {
	Variant
	job     *backend.Job
	outcome *backend.Outcome
	follows bool
}

func (l *genLane) record(ctx context.Context, s *shardPlan) (*Shard, error) {
	var units []unit
	for _, c := range s.cases {
		variants, err := l.Cases[c.index].Programs()
		if err != nil {
			return nil, err
		}
		u := unit{index: c.index, bytes: c.bytes}
		for _, v := range variants {
			u.ways = append(u.ways, way{Variant: v})
		}
		units = append(units, u)
	}
	w, err := newShardWriter(l.Dir)
	if err != nil {
		return nil, err
	}
	defer w.close()
	s.refused = map[int]map[string]Refusal{}
	for _, b := range runsOf(units, batchCases, batchBytes, func(u *unit) int64 { return u.bytes }) {
		if err := l.batch(ctx, w, s, b); err != nil || ctx.Err() != nil {
			return nil, err
		}
		clear(b)
	}
	made, err := w.write(filepath.Join(l.Dir, s.name))
	return &made, err
}

// batch records some cases: the first variant of each and what follows from it,
// then the other variants.
func (l *genLane) batch(ctx context.Context, s *shardWriter, plan *shardPlan, units []unit) error {
	defer l.budget.give(l.budget.take(l.needs(units)))
	defer l.release()
	var firsts, others []*way
	for i := range units {
		firsts = append(firsts, &units[i].ways[0])
	}
	if err := l.ask(ctx, firsts); err != nil || ctx.Err() != nil {
		return err
	}
	for i := range units {
		u := &units[i]
		if err := l.code(ctx, s, plan, u); err != nil {
			return err
		}
		for k := range u.ways {
			if w := &u.ways[k]; w.outcome == nil {
				others = append(others, w)
			}
		}
	}
	if err := l.ask(ctx, others); err != nil || ctx.Err() != nil {
		return err
	}
	for i := range units {
		u := &units[i]
		for k := range u.ways {
			if w := &u.ways[k]; slices.Contains(others, w) {
				if _, err := l.add(ctx, s, plan, u, w); err != nil {
					return err
				}
			}
		}
	}
	return l.settle(ctx, s)
}

// needs is how many bytes cases take while they are recorded, as far as earlier
// ones of their functions tell: results are held twice.
func (g *generator) needs(units []unit) int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	var n int64
	for i := range units {
		u := &units[i]
		n += u.bytes * max(perInput, 1+2*g.growth[g.Cases[u.index].Function])
	}
	return n
}

// grew notes how many bytes the results of a case have that is not small.
func (g *generator) grew(u *unit, results int64) {
	if u.bytes < batchBytes {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	f := g.Cases[u.index].Function
	g.growth[f] = max(g.growth[f], results/u.bytes)
}

// ask draws the inputs of variants and runs them on the reference.
func (l *genLane) ask(ctx context.Context, ways []*way) error {
	ways, err := l.probe(ctx, ways)
	if len(ways) == 0 || err != nil {
		return err
	}
	if err := l.askDrawn(ctx, ways); err != nil {
		return err
	}
	l.learn(ways)
	return nil
}

func (l *genLane) askDrawn(ctx context.Context, ways []*way) error {
	jobs := make([]*backend.Job, len(ways))
	for i, w := range ways {
		w.job = &backend.Job{Program: w.Program}
		jobs[i] = w.job
	}
	outcomes, err := l.runShared(ctx, jobs)
	switch {
	case errors.Is(err, context.Canceled):
		return nil
	case err != nil:
		return err
	}
	for i, w := range ways {
		w.outcome = outcomes[i]
	}
	return nil
}

func (l *genLane) runShared(ctx context.Context, jobs []*backend.Job) ([]*backend.Outcome, error) {
	if s, ok := l.ref.(backend.Sharer); ok {
		return s.RunShared(ctx, jobs)
	}
	for _, job := range jobs {
		*job = *newJob(job.Program)
	}
	return backend.RunBatch(ctx, l.ref, jobs)
}

func (l *genLane) release() {
	if s, ok := l.ref.(backend.Sharer); ok {
		s.Release()
	}
}

// code codes the first variant of a case and those that follow from it, and
// lets go of all of them.
func (l *genLane) code(ctx context.Context, s *shardWriter, plan *shardPlan, u *unit) error {
	first := &u.ways[0]
	predicted, err := l.add(ctx, s, plan, u, first)
	if err != nil {
		return err
	}
	for k := range u.ways[1:] {
		w := &u.ways[1+k]
		if w.outcome = inPlaceOf(w.Program, first.Program, first.outcome); w.outcome == nil {
			continue
		}
		w.follows, w.job = true, sharedJob(w.Program, first.job)
		var like *backend.Outcome
		if predicted != nil {
			like = inPlaceOf(w.Program, first.Program, predicted)
		}
		if err := l.put(ctx, s, u, w, like); err != nil {
			return err
		}
		w.job = nil
	}
	first.job = nil
	return nil
}

// add codes the outcome of a variant that the reference was asked about, and
// returns what was predicted of it.
func (l *genLane) add(ctx context.Context, s *shardWriter, plan *shardPlan, u *unit, w *way) (*backend.Outcome, error) {
	like, err := l.predict(ctx, w)
	if err != nil {
		return nil, err
	}
	l.grew(u, resultBytes(w.outcome))
	if o := w.outcome; o.Status != backend.OK {
		plan.refuse(u.index, w.Name, Refusal{o.Status, o.Class, o.Message})
	}
	return like, l.put(ctx, s, u, w, like)
}

// put writes a variant's outcome, and notes where its truth is wanted.
func (l *genLane) put(ctx context.Context, s *shardWriter, u *unit, w *way, like *backend.Outcome) error {
	if err := s.add(l.Cases[u.index].Name, w.Variant, w.job, w.outcome, like); err != nil {
		return err
	}
	wanted, err := l.contested(ctx, w, like)
	if !wanted || err != nil {
		return err
	}
	q := newQuestion(s, w)
	if w.follows {
		q.first = u.asked
	} else if u.asked == nil {
		u.asked = q
	}
	l.wanted = append(l.wanted, q)
	return nil
}

func (s *shardPlan) refuse(index int, variant string, r Refusal) {
	if s.refused[index] == nil {
		s.refused[index] = map[string]Refusal{}
	}
	s.refused[index][variant] = r
}

// predict returns what the predictor does with a variant whose results are
// large; nil for others.
func (l *genLane) predict(ctx context.Context, w *way) (*backend.Outcome, error) {
	if l.like == nil || resultBytes(w.outcome) < Predict || l.Costly != nil && l.Costly(w.Program) {
		return nil, nil
	}
	o, err := l.like.Run(ctx, &backend.Job{Program: w.job.Program, Inputs: w.job.Inputs, State: w.outcome.Initial})
	if err != nil || o.Status != backend.OK {
		return nil, err
	}
	return o, nil
}

// sharedJob is newJob, with the inputs of another job where they are the same.
func sharedJob(p *program.Program, other *backend.Job) *backend.Job {
	job := &backend.Job{Program: p}
	for i := range p.Inputs {
		in := p.Inputs[i]
		t := (*tensor.Tensor)(nil)
		for k := range other.Program.Inputs {
			same := other.Program.Inputs[k]
			same.RequiresGrad = in.RequiresGrad
			if reflect.DeepEqual(in, same) {
				t = other.Inputs[k]
			}
		}
		if t == nil {
			t = in.Materialize()
		}
		job.Inputs = append(job.Inputs, t)
	}
	return job
}

// inPlaceOf returns the outcome of p, which writes into its first argument what
// the program out computes, from the outcome of that: where the result has the
// argument's dtype and shape, both are the same by PyTorch's contract for
// functions whose name ends in an underscore. It returns nil in any other case.
func inPlaceOf(p, out *program.Program, o *backend.Outcome) *backend.Outcome {
	if o.Status != backend.OK || len(p.Calls) != 1 || len(out.Calls) != 1 || len(p.Backward) > 0 || !op.InPlace(p.Calls[0].Target) {
		return nil
	}
	ref, ok := firstArgument(&p.Calls[0])
	i := slices.IndexFunc(p.Inputs, func(in program.Input) bool { return in.Name == string(ref) })
	y := o.Values[0].Tensor
	if !ok || i < 0 || y == nil || y.DType() != p.Inputs[i].DType || !slices.Equal(y.Shape(), p.Inputs[i].Shape) || p.Inputs[i].Strides != nil || p.Inputs[i].RequiresGrad {
		return nil
	}
	y = y.Contiguous()
	return &backend.Outcome{
		Status: backend.OK, Values: []backend.Value{{Tensor: y}},
		Changes: [][]backend.Named{{{Name: string(ref), Tensor: y}}},
	}
}

// firstArgument is the tensor that a call in place writes into.
func firstArgument(c *program.Call) (program.Ref, bool) {
	if len(c.Args) > 0 {
		ref, ok := c.Args[0].(program.Ref)
		return ref, ok
	}
	for _, kw := range c.Kwargs {
		if kw.Name == "input" || kw.Name == "self" {
			ref, ok := kw.Value.(program.Ref)
			return ref, ok
		}
	}
	return "", false
}
