package baseline

import (
	"fmt"
	"slices"

	"plumb/backend"
	"plumb/internal/judge/verdict"
	"plumb/program"
	"plumb/tensor"
)

// section is a shard with the selected cases around it, and the source of the
// batches to try.
type section struct {
	*run
	shard *Shard // nil for cases that are in none
	cases []listed

	begun   bool
	reader  *shardReader // nil where there is no shard to read
	batches [][]*trial   // to be handed out
	left    int          // trials that are not judged
	records []*Record    // of all variants, less those that were collected
	ready   []*Record    // collected, and not handed on
}

// listed is a case of a section.
type listed struct {
	entry *Entry
	index int // in the manifest
	at    int // in the shard; -1 where it is in none
}

// trial is one variant of a case on its way through a lane.
type trial struct {
	record *Record
	// backward is the record of the gradients, where they are judged apart.
	backward *Record
	stored   *variantJSON
	program  *program.Program
	asOne    Asking           // by which the candidate is asked; nil for asked
	asked    *program.Program // of the candidate
	at       int              // in the section
	bytes    int64
	state    map[string]backend.State // of the program's modules, as the reference made them
	job      *backend.Job             // of program
	outcome  *backend.Outcome
}

// trialBatch is some trials of a section. The first one has none: it opens the
// shard, which tells what there is to try.
type trialBatch struct {
	of     *section
	opens  bool
	trials []*trial
}

// plan divides the selected cases into sections: cases and shards are in the
// same order.
func (r *run) plan() []*section {
	m := &r.Manifest
	var sections []*section
	now := &section{run: r}
	end := func() {
		if len(now.cases) > 0 {
			sections = append(sections, now)
		}
		now = &section{run: r}
	}
	shard, at := 0, 0
	for i := range m.Cases {
		e := &m.Cases[i]
		one := listed{e, i, -1}
		if e.Missing == "" {
			if at == m.Shards[shard].Cases {
				end()
				at = 0
				shard++
			}
			now.shard = &m.Shards[shard]
			one.at = at
			at++
		}
		if r.Select == nil || r.Select(e) {
			now.cases = append(now.cases, one)
		}
	}
	end()
	return sections
}

// Wants reports whether there is more to try.
func (s *section) Wants() bool { return !s.begun || len(s.batches) > 0 }

// Cost is how many bytes the next batch takes.
func (s *section) Cost() int64 {
	if !s.begun {
		return 0
	}
	var bytes int64
	for _, t := range s.batches[0] {
		bytes += t.bytes
	}
	return perInput * bytes
}

// Next returns the next batch.
func (s *section) Next() *trialBatch {
	if !s.begun {
		s.begun = true
		return &trialBatch{of: s, opens: true}
	}
	b := &trialBatch{of: s, trials: s.batches[0]}
	s.batches = slices.Delete(s.batches, 0, 1)
	return b
}

// collect takes the records that are next in order and judged, all of a case or
// none.
func (s *section) collect() {
	n := finished(s.records)
	s.ready = append(s.ready, s.records[:n]...)
	s.records = slices.Delete(s.records, 0, n)
}

func (s *section) handOn() {
	for _, rec := range s.ready {
		s.OnRecord(rec)
	}
	s.ready = nil
}

func (s *section) close() {
	if s.reader != nil {
		s.reader.close()
		s.reader = nil
	}
}

// finished counts the records before the first case that has one without a verdict.
func finished(records []*Record) int {
	n := slices.IndexFunc(records, func(r *Record) bool { return r.Verdict == nil })
	if n < 0 {
		return len(records)
	}
	for n > 0 && records[n-1].Entry == records[n].Entry {
		n--
	}
	return n
}

// open opens the shard. It makes a record for every variant, those that are
// judged already among them, and lists what there is to try.
func (s *section) open() {
	var broken error
	if s.shard != nil {
		s.reader, broken = openShard(s.files, s.shard)
	}
	var trials []*trial
	for _, c := range s.cases {
		if v := s.unrun(c, broken); v != nil {
			rec := s.record(c, "", &program.Program{Name: c.entry.Name}, v)
			rec.Skipped = v.Word == ""
			s.records = append(s.records, rec)
			continue
		}
		stored := &s.reader.text.Cases[c.at]
		if stored.Name != c.entry.Name || len(stored.Variants) == 0 {
			s.records = append(s.records, s.faulty(c, "", fmt.Errorf("%s: holds %q in the place of this case", s.shard.Name, stored.Name)))
			continue
		}
		for i := range stored.Variants {
			v := &stored.Variants[i]
			t, err := s.trial(c, v)
			if err != nil {
				s.records = append(s.records, s.faulty(c, v.Name, fmt.Errorf("%s: %s: %w", s.shard.Name, c.entry.Name, err)))
				continue
			}
			t.at = len(trials)
			s.reader.needs(t.at, v, len(t.program.Calls))
			if s.records, trials = append(s.records, t.record), append(trials, t); s.Apart && v.Name == "" && len(t.asked.Backward) > 0 {
				t.backward = s.record(c, Backward, t.asked, nil)
				s.records = append(s.records, t.backward)
			}
		}
	}
	trials = s.initial(trials)
	s.left = len(trials)
	s.batches = runsOf(trials, batchCases, batchBytes, func(t **trial) int64 { return (*t).bytes })
}

// initial reads the initial states of modules, and returns the trials but those
// whose states cannot be read.
func (s *section) initial(trials []*trial) []*trial {
	return slices.DeleteFunc(trials, func(t *trial) bool {
		if len(t.stored.Outcome.Initial) == 0 {
			return false
		}
		var err error
		if t.state, err = t.stored.Outcome.State(newDecoder(backend.NewJob(t.program), s.reader, unpredicted).tensor); err != nil {
			t.record.Verdict = fault(fmt.Errorf("%s: %s: %w", s.shard.Name, t.record.Entry.Name, err))
		}
		return err != nil
	})
}

// unpredicted is the predictor of states, which are never told apart from predictions.
func unpredicted() (map[string]*tensor.Tensor, error) { return nil, errPredictor }

// trial reads a stored variant of a case.
func (s *section) trial(c listed, v *variantJSON) (*trial, error) {
	p, err := v.parse()
	if err == nil && s.Expect != nil {
		err = s.Expect(c.entry, v.Name, p)
	}
	asked := p
	if err == nil && s.Change != nil {
		asked, err = s.Change(c.entry, v.Name, p)
	}
	if err != nil {
		return nil, err
	}
	t := &trial{record: s.record(c, v.Name, asked, nil), stored: v, program: p, asked: asked, bytes: inputBytes(p)}
	if s.AsOne != nil {
		t.asOne = s.AsOne(c.entry, v.Name)
	}
	return t, nil
}

func (r *run) record(c listed, variant string, p *program.Program, v *verdict.Verdict) *Record {
	return &Record{
		Record: verdict.Record{Test: c.entry.Function, Index: c.index, Candidate: r.Candidate, Program: p, Verdict: v},
		Entry:  c.entry, Variant: variant,
	}
}

// unrun returns the verdict on a case that cannot be run, one without a word on
// a case that is not to be; nil for others.
func (r *run) unrun(c listed, broken error) *verdict.Verdict {
	if r.Skip != nil {
		if why := r.Skip(c.entry); why != "" {
			return &verdict.Verdict{Reason: why}
		}
	}
	switch {
	case c.entry.Missing != "":
		return &verdict.Verdict{Word: verdict.Unsupported, Reason: "the case was not recorded: " + c.entry.Missing}
	case broken != nil:
		return fault(broken)
	}
	return nil
}

// faulty is the record of a case that cannot be read.
func (r *run) faulty(c listed, variant string, err error) *Record {
	return r.record(c, variant, &program.Program{Name: c.entry.Name}, fault(err))
}

func fault(err error) *verdict.Verdict {
	return &verdict.Verdict{Word: verdict.Fault, Reason: err.Error()}
}
