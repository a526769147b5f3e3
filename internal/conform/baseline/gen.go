package baseline

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"sync"
	"time"

	"plumb/backend"
	"plumb/internal/campaign/drive"
	"plumb/internal/scratch"
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
	// Costly tells of results that are not to be predicted, as that takes more
	// time than it saves bytes; nil tells of none.
	Costly func(job *backend.Job, o *backend.Outcome) bool
	Truth  Truth
	// StandIns says which cases the reference computes in wider types; empty for
	// those that it has no kernel for.
	StandIns StandIns
	// Seeded writes no shards, only what they have to be.
	Seeded bool
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
	release, taken := scratch.Lock(cfg.Dir)
	if taken {
		return nil, fmt.Errorf("%s: another process is recording into this directory", cfg.Dir)
	}
	defer release()
	g := &generator{GenConfig: cfg, growth: map[string]int64{}}
	if err := g.plan(); err != nil {
		return nil, err
	}
	if err := g.sweep(); err != nil {
		return nil, err
	}
	if err := g.resume(); err != nil {
		return nil, err
	}
	err := g.run(ctx)
	m, writeErr := g.finish()
	return m, errors.Join(err, writeErr)
}

// sweep removes what a recording that was killed has left half written.
func (g *generator) sweep() error {
	left, err := fs.Glob(g.files(), unfinishedName)
	for _, name := range left {
		err = errors.Join(err, os.Remove(filepath.Join(g.Dir, name)))
	}
	return err
}

type generator struct {
	GenConfig
	entries []Entry
	shards  []*shardPlan

	mu      sync.Mutex
	journal *os.File
	info    *backend.Info
	done    int
	took    time.Duration    // what the reference's own calls took
	growth  map[string]int64 // by function: the most bytes of results that a byte of inputs led to
}

// finish writes the manifest and ends the journal of a complete recording.
func (g *generator) finish() (*Manifest, error) {
	defer g.journal.Close()
	m := &Manifest{Format: Version, Plumb: g.Plumb, Seed: g.Seed, SelfContained: g.Predict == nil, Truth: g.Truth.Mode, Seeded: g.Seeded, Complete: true, Took: g.took, Shards: []Shard{}, Cases: []Entry{}}
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

// run records the shards that are missing.
func (g *generator) run(ctx context.Context) error {
	g.tell()
	defer func() {
		for _, s := range g.shards {
			s.close()
		}
	}()
	return drive.Run(ctx, drive.Config[*shardPlan, *caseBatch]{
		Sources:   g.shards,
		Jobs:      g.Jobs,
		Open:      g.openLane,
		Exclusive: true, // the bytes of a shard are those of its cases in order
		Limit:     g.Memory,
	})
}

// genLane records batches of cases with one instance of the reference: tensors
// lie in memory that the reference shares until they are coded.
type genLane struct {
	*generator
	ref    backend.Backend
	like   backend.Backend
	judged backend.Backend // whose verdict is asked for the truth
	wanted []*question     // of the batch, whose truth is to be asked for
	// refusals are what the reference said of dtypes that it has no kernel for.
	refusals map[string]refused
}

func (g *generator) openLane() (drive.Lane[*caseBatch], error) {
	ref, err := g.Open()
	if err != nil {
		return nil, err
	}
	if err := g.describe(ref.Info()); err != nil {
		return nil, errors.Join(err, ref.Close())
	}
	l := &genLane{generator: g, ref: ref}
	if g.Predict != nil {
		l.like = g.Predict()
	}
	if g.Truth.Predict != nil {
		l.judged = g.Truth.Predict()
	}
	return l, nil
}

func (l *genLane) Close() error { return l.ref.Close() }

// unit is a case on its way through a lane.
type unit struct {
	planned
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
	// standIn is what was asked in place of the variant, and refusal why; nil where
	// it was asked itself.
	standIn *standIn
	refusal Refusal
}

// Run records a batch: the first variant of each case and what follows from it,
// then the other variants.
func (l *genLane) Run(ctx context.Context, b *caseBatch) error {
	units, err := l.units(b.cases)
	if err != nil {
		return err
	}
	s, err := b.of.open()
	if err != nil {
		return err
	}
	defer l.release()
	var firsts, others []*way
	for i := range units {
		firsts = append(firsts, &units[i].ways[0])
	}
	if err := l.ask(ctx, firsts); err != nil {
		return err
	}
	for i := range units {
		u := &units[i]
		if err := l.code(ctx, s, b.of, u); err != nil {
			return err
		}
		for k := range u.ways {
			if w := &u.ways[k]; w.outcome == nil {
				others = append(others, w)
			}
		}
	}
	if err := l.ask(ctx, others); err != nil {
		return err
	}
	for i := range units {
		u := &units[i]
		for k := range u.ways {
			if w := &u.ways[k]; slices.Contains(others, w) {
				if _, err := l.add(ctx, s, b.of, u, w); err != nil {
					return err
				}
			}
		}
	}
	return l.settle(ctx, s)
}

// Finish writes the shard of which this was the last batch.
func (l *genLane) Finish(_ context.Context, b *caseBatch) error {
	if !b.last {
		return nil
	}
	by := writeFile
	if l.Seeded {
		by = measureFile
	}
	made, err := b.of.writer.write(filepath.Join(l.Dir, b.of.name), by)
	if err != nil {
		return err
	}
	b.of.close()
	return l.finished(b.of, &made)
}

func (g *generator) units(cases []planned) ([]unit, error) {
	units := make([]unit, len(cases))
	for i, c := range cases {
		variants, err := g.Cases[c.index].Programs()
		if err != nil {
			return nil, err
		}
		units[i].planned = c
		for _, v := range variants {
			units[i].ways = append(units[i].ways, way{Variant: v})
		}
	}
	return units, nil
}

// ask draws the inputs of variants and runs them on the reference.
func (l *genLane) ask(ctx context.Context, ways []*way) error {
	drawn, err := l.probe(ctx, ways)
	if err != nil {
		return err
	}
	if len(drawn) > 0 {
		if err := l.askDrawn(ctx, drawn); err != nil {
			return err
		}
		l.learn(drawn)
	}
	return l.substitute(ctx, ways)
}

func (l *genLane) askDrawn(ctx context.Context, ways []*way) error {
	jobs := make([]*backend.Job, len(ways))
	for i, w := range ways {
		w.job = &backend.Job{Program: w.Program}
		l.reach(ctx, w.job)
		jobs[i] = w.job
	}
	outcomes, err := l.runShared(ctx, jobs)
	if err = cmp.Or(err, ctx.Err()); err != nil {
		return err
	}
	for i, w := range ways {
		w.outcome = outcomes[i]
	}
	return nil
}

// reach sets how long the cotangents of a job are, and of which dtype, as far as
// Plumb's own operators tell without computing it, and small inputs do not as well.
func (l *genLane) reach(ctx context.Context, asked *backend.Job) {
	p := asked.Program
	if len(p.Backward) == 0 || inputBytes(p) < plannedBytes {
		return
	}
	forward := *p
	forward.Backward = nil
	job := &backend.Job{Program: &forward}
	for i := range p.Inputs {
		in := &p.Inputs[i]
		job.Inputs = append(job.Inputs, tensor.Layout(in.DType, in.Shape, in.Strides))
	}
	known, err := l.layouts(ctx, job)
	if err == nil && known.Status == backend.OK {
		asked.Reach, asked.Cotangents = backend.Reach(p, known), backend.CotangentType(p, known)
	}
}

// plannedBytes is from how many bytes of inputs on it is asked beforehand how long
// the cotangents of a program are.
const plannedBytes = 64 << 10

func (l *genLane) runShared(ctx context.Context, jobs []*backend.Job) ([]*backend.Outcome, error) {
	if s, ok := l.ref.(backend.Sharer); ok {
		return l.timed(s.RunShared(ctx, jobs))
	}
	for _, job := range jobs {
		*job = *backend.NewJob(job.Program)
	}
	return l.runBatch(ctx, jobs)
}

func (l *genLane) runBatch(ctx context.Context, jobs []*backend.Job) ([]*backend.Outcome, error) {
	return l.timed(backend.RunBatch(ctx, l.ref, jobs))
}

// runHeld runs a job, whose outcome is to be read before the next one is run.
func (l *genLane) runHeld(ctx context.Context, job *backend.Job) (*backend.Outcome, error) {
	run := l.ref.Run
	if s, ok := l.ref.(backend.Sharer); ok {
		run = s.RunHeld
	}
	o, err := run(ctx, job)
	_, err = l.timed([]*backend.Outcome{o}, err)
	return o, err
}

// timed adds up what the reference says that its calls took.
func (l *genLane) timed(outcomes []*backend.Outcome, err error) ([]*backend.Outcome, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, o := range outcomes {
		if o != nil {
			l.took += o.CPU
		}
	}
	return outcomes, err
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
		if w.refusal = first.refusal; first.standIn != nil {
			w.standIn = newStandIn(first.standIn.wider, w.outcome)
		}
		var like *backend.Outcome
		if predicted != nil {
			like = inPlaceOf(w.Program, first.Program, predicted)
		}
		if err := l.put(ctx, s, plan, u, w, like); err != nil {
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
	l.grew(u.planned, ResultBytes(w.outcome))
	if o := w.outcome; o.Status != backend.OK {
		plan.refuse(u.index, w.Name, Refusal{Status: o.Status, Class: o.Class, Message: o.Message})
	}
	return like, l.put(ctx, s, plan, u, w, like)
}

// put writes a variant's outcome, and notes where its truth is wanted.
func (l *genLane) put(ctx context.Context, s *shardWriter, plan *shardPlan, u *unit, w *way, like *backend.Outcome) error {
	if w.standIn != nil {
		plan.refuse(u.index, w.Name, w.refusal)
	}
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

// predict returns what the predictor does with a variant whose results are
// large; nil for others.
func (l *genLane) predict(ctx context.Context, w *way) (*backend.Outcome, error) {
	if l.like == nil || ResultBytes(w.outcome) < Predict || l.Costly != nil && l.Costly(w.job, w.outcome) {
		return nil, nil
	}
	o, err := l.like.Run(ctx, &backend.Job{Program: w.job.Program, Inputs: w.job.Inputs, State: w.outcome.Initial})
	if err != nil || o.Status != backend.OK {
		return nil, err
	}
	return o, nil
}

// sharedJob is backend.NewJob, with the inputs of another job where they are the same.
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
		Watched: true, Slots: []backend.Slot{{Place: backend.Place{Part: backend.PartChange, Owner: string(ref)}, Tensor: y}},
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
