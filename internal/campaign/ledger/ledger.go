// Package ledger says which units of a campaign are to be judged, and counts each
// of them once. One process has the ledger of a campaign; who judges takes units
// from it and brings back what became of them, as late and as often as it likes.
package ledger

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"plumb/internal/campaign/report"
	"plumb/internal/campaign/store"
)

// Unit is a unit to be judged: some cases of a test on a subject.
type Unit struct {
	N       int64  `json:"n"`
	Test    string `json:"test"`
	Subject string `json:"subject"`
	First   int    `json:"first"`
	Size    int    `json:"size"`
}

// Result is what became of a unit.
type Result struct {
	Unit     int64         `json:"unit"`
	Judged   int           `json:"judged"`
	Rejected int           `json:"rejected"`
	Elapsed  time.Duration `json:"elapsed"`
	Worker   string        `json:"worker"`
	Error    string        `json:"error,omitempty"`  // a mistake in the test, which ends it
	Lacks    bool          `json:"lacks,omitempty"`  // the test needs what tests do not have, which ends it
	Traits   []uint64      `json:"traits,omitempty"` // that its worker has met first in it, of a campaign with a budget
	Cases    []store.Case  `json:"cases"`
}

// Ledger is that of one campaign.
type Ledger struct {
	mu      sync.Mutex
	store   *store.Store
	writer  *store.Writer
	run     int64
	size    int // of a unit
	parts   []store.Part
	out     []int                 // of each part, cases of units that are not done
	open    map[int64]*store.Unit // not done
	waiting map[string][]int64    // of these, those that nobody has, by subject
	last    int64                 // unit
	late    int                   // results that came a second time
	purses  map[string]*purse     // by subject, of a campaign with a budget
	changed chan struct{}         // closed when something has changed
}

// Open opens the ledger of a campaign, whose units have so many cases at most.
func Open(s *store.Store, c *store.Campaign, size int, budget Budget) (*Ledger, error) {
	l := &Ledger{store: s, writer: s.Join(c), run: c.ID, size: max(size, 1), open: map[int64]*store.Unit{}, waiting: map[string][]int64{}, changed: make(chan struct{})}
	var err error
	if l.parts, err = s.Parts(c.ID); err != nil {
		return nil, err
	}
	if l.last, err = s.LastUnit(c.ID); err != nil {
		return nil, err
	}
	units, err := s.Waiting(c.ID)
	if err != nil {
		return nil, err
	}
	l.out = make([]int, len(l.parts))
	for i := range units {
		if units[i].Part < 0 || units[i].Part >= len(l.parts) {
			return nil, fmt.Errorf("unit %d of run %d is of part %d: there are %d", units[i].N, c.ID, units[i].Part, len(l.parts))
		}
		l.add(units[i])
	}
	if budget.Is() {
		return l, l.share(budget)
	}
	var more []store.Unit
	for i := range l.parts {
		more = append(more, l.plan(&l.parts[i])...)
	}
	return l, l.commit(nil, l.parts, more)
}

// plan makes the units that a part wants now: as many cases as are missing, since
// each of them may be the last.
func (l *Ledger) plan(p *store.Part) []store.Unit {
	if l.purses != nil {
		l.purses[p.Subject].told(p)
		return nil
	}
	var units []store.Unit
	for want := l.want(p); want > 0; {
		u := l.unit(p, min(want, l.size))
		want -= u.Size
		units = append(units, u)
	}
	if l.out[p.N] == 0 {
		p.Over = true
	}
	return units
}

// unit makes a unit of a part's next cases.
func (l *Ledger) unit(p *store.Part, size int) store.Unit {
	l.last++
	u := store.Unit{N: l.last, Part: p.N, First: p.Next, Size: size}
	p.Next += size
	l.out[p.N] += size
	return u
}

// want is how many more cases are to be in units.
func (l *Ledger) want(p *store.Part) int {
	switch out := l.out[p.N]; {
	case p.Over:
		return 0
	case p.Fixed:
		return p.Wanted - p.Next
	default:
		return min(p.Wanted-p.Judged-out, p.Most-p.Rejected-out)
	}
}

// add takes a unit into the books.
func (l *Ledger) add(u store.Unit) {
	subject := l.parts[u.Part].Subject
	l.open[u.N] = &u
	l.waiting[subject] = append(l.waiting[subject], u.N)
	l.out[u.Part] += u.Size
}

// commit writes a change; the units of more are counted already.
func (l *Ledger) commit(done []store.Done, parts []store.Part, more []store.Unit) error {
	if err := l.writer.Commit(done, parts, more); err != nil {
		return err
	}
	for _, u := range more {
		l.out[u.Part] -= u.Size
		l.add(u)
	}
	l.tell()
	return nil
}

func (l *Ledger) tell() {
	close(l.changed)
	l.changed = make(chan struct{})
}

// Changed is closed when units are done or come back.
func (l *Ledger) Changed() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.changed
}

// Take hands out units of a subject, at most so many.
func (l *Ledger) Take(subject string, most int) ([]Unit, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.spend(subject, most); err != nil {
		return nil, err
	}
	all := l.waiting[subject]
	most = min(most, len(all))
	var units []Unit
	for _, n := range all[:most] {
		if u := l.open[n]; u != nil {
			units = append(units, Unit{n, l.parts[u.Part].Test, subject, u.First, u.Size})
		}
	}
	l.waiting[subject] = slices.Clone(all[most:])
	return units, nil
}

// Return takes units back that were not judged.
func (l *Ledger) Return(units []Unit) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, u := range units {
		if l.open[u.N] != nil && !slices.Contains(l.waiting[u.Subject], u.N) {
			l.waiting[u.Subject] = append([]int64{u.N}, l.waiting[u.Subject]...)
		}
	}
	l.tell()
}

// Finish counts results, each unit once: what comes again is dropped.
func (l *Ledger) Finish(results []Result) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range results {
		if u := l.open[results[i].Unit]; u != nil {
			if err := results[i].check(u, &l.parts[u.Part]); err != nil {
				return err
			}
		}
	}
	var done []store.Done
	changed := map[int]bool{}
	before := slices.Clone(l.parts)
	for i := range results {
		r := &results[i]
		u := l.open[r.Unit]
		if u == nil || slices.ContainsFunc(done, func(d store.Done) bool { return d.Unit.N == r.Unit }) {
			l.late++
			continue
		}
		done = append(done, store.Done{Unit: *u, Judged: r.Judged, Rejected: r.Rejected, Elapsed: r.Elapsed, Worker: r.Worker, Cases: r.Cases})
		l.count(u, r, changed)
	}
	if len(done) == 0 {
		return nil
	}
	return l.finish(done, changed, before)
}

// check refuses a result that cannot be one of the unit.
func (r *Result) check(u *store.Unit, p *store.Part) error {
	for i := range r.Cases {
		c := &r.Cases[i]
		if c.Test != p.Test || c.Subject != p.Subject || c.Number < u.First || c.Number >= u.First+u.Size {
			return &WrongError{r.Unit, r.Worker, fmt.Sprintf("case %d of %s on %s is none of it", c.Number, c.Test, c.Subject)}
		}
	}
	if whole := r.Error == "" && !r.Lacks; r.Judged < 0 || r.Rejected < 0 || r.Judged+r.Rejected > u.Size || whole && r.Judged+r.Rejected != u.Size {
		return &WrongError{r.Unit, r.Worker, fmt.Sprintf("%d judged and %d rejected of %d", r.Judged, r.Rejected, u.Size)}
	}
	return nil
}

// WrongError is that of a result that cannot be one of its unit.
type WrongError struct {
	Unit         int64
	Worker, What string
}

// Error says whose it is.
func (e *WrongError) Error() string {
	return fmt.Sprintf("worker %s: the result of unit %d is not taken: %s", e.Worker, e.Unit, e.What)
}

func (l *Ledger) count(u *store.Unit, r *Result, changed map[int]bool) {
	p := &l.parts[u.Part]
	p.Judged += r.Judged
	p.Rejected += r.Rejected
	p.Error = cmp.Or(p.Error, r.Error)
	p.Over = p.Over || r.Error != "" || r.Lacks
	l.out[u.Part] -= u.Size
	changed[u.Part] = true
	if l.purses != nil {
		l.purses[p.Subject].take(u, r)
	}
}

// finish writes units that are counted, and what follows from them.
func (l *Ledger) finish(done []store.Done, changed map[int]bool, before []store.Part) error {
	var parts []store.Part
	var more []store.Unit
	last := l.last
	for n := range l.parts {
		if changed[n] {
			more = append(more, l.plan(&l.parts[n])...)
			parts = append(parts, l.parts[n])
		}
	}
	if err := l.commit(done, parts, more); err != nil {
		l.parts, l.last = before, last // nothing has happened
		for _, d := range done {
			l.out[d.Unit.Part] += d.Unit.Size
		}
		for _, u := range more {
			l.out[u.Part] -= u.Size
		}
		return err
	}
	for _, d := range done {
		delete(l.open, d.Unit.N)
	}
	return nil
}

// Reuse takes units from earlier runs, where nothing has changed that they depend
// on. It returns how many cases.
func (l *Ledger) Reuse() (cases int, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for n := range l.parts {
		got, err := l.reuse(&l.parts[n])
		if cases += got; err != nil {
			return cases, err
		}
	}
	return cases, nil
}

// reuse takes units of an earlier part in the place of those that are planned.
func (l *Ledger) reuse(p *store.Part) (cases int, err error) {
	from, earlier, err := l.store.Earlier(l.run, p.Depends)
	if err != nil || len(earlier) == 0 {
		return 0, err
	}
	byPlace := map[[2]int]store.Done{}
	for _, d := range earlier {
		byPlace[[2]int{d.Unit.First, d.Unit.Size}] = d
	}
	for again := true; again; {
		again = false
		for _, u := range l.openOf(p.N) {
			d, ok := byPlace[[2]int{u.First, u.Size}]
			if !ok || d.Judged+d.Rejected != u.Size {
				continue
			}
			old := d.Unit.N
			d.Unit = *u
			if d.Cases, err = l.store.UnitCases(from, old); err != nil {
				return cases, err
			}
			before, changed := slices.Clone(l.parts), map[int]bool{}
			l.count(u, &Result{Judged: d.Judged, Rejected: d.Rejected}, changed)
			if err := l.finish([]store.Done{d}, changed, before); err != nil {
				return cases, err
			}
			cases += u.Size
			again = true // it may have led to others
		}
	}
	return cases, nil
}

func (l *Ledger) openOf(part int) []*store.Unit {
	var units []*store.Unit
	for _, u := range l.open {
		if u.Part == part {
			units = append(units, u)
		}
	}
	slices.SortFunc(units, func(a, b *store.Unit) int { return cmp.Compare(a.N, b.N) })
	return units
}

// Subjects are those that have units which nobody has.
func (l *Ledger) Subjects() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var names []string
	for _, p := range l.parts {
		if (len(l.waiting[p.Subject]) > 0 || l.left(p.Subject)) && !slices.Contains(names, p.Subject) {
			names = append(names, p.Subject)
		}
	}
	return names
}

// Standing is how far a campaign is.
type Standing struct {
	Cases  int           // judged and rejected
	Wanted int           // as far as is known
	Open   int           // units
	Late   int           // results that came a second time
	Spent  time.Duration // of judging
	Budget time.Duration // of that; 0 for none
}

// String says how far the campaign is.
func (s Standing) String() string {
	if s.Budget > 0 {
		return fmt.Sprintf("%d cases in %s of %s", s.Cases, s.Spent.Round(time.Second), s.Budget)
	}
	return fmt.Sprintf("%d of %d cases", s.Cases, s.Wanted)
}

// Standing counts.
func (l *Ledger) Standing() Standing {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := Standing{Open: len(l.open), Late: l.late}
	for n, p := range l.parts {
		s.Cases += p.Judged + p.Rejected
		s.Wanted += p.Judged + p.Rejected + l.out[n]
	}
	shares := 0
	for _, b := range l.purses {
		s.Spent, s.Budget, shares = s.Spent+b.spent, s.Budget+b.share.Time, shares+b.share.Cases
		if b.share.Clock {
			s.Spent, s.Budget = l.writer.Elapsed(), b.share.Time
		}
	}
	s.Wanted = max(s.Wanted, shares)
	return s
}

// Over says whether every unit is done, and a budget is spent.
func (l *Ledger) Over() bool { return l.Standing().Open == 0 && len(l.Subjects()) == 0 }

// Stuck are the parts in error, and those that were given up since nearly all draws were
// rejected.
func (l *Ledger) Stuck() (inError, givenUp []store.Mistake) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, p := range l.parts {
		switch {
		case p.Error != "":
			inError = append(inError, store.Mistake{Test: p.Test, Text: fmt.Sprintf("%s on %s: %s", p.Test, p.Subject, report.ErrorText(errors.New(p.Error)))})
		case !p.Fixed && p.Rejected >= p.Most && p.Judged < max(p.Wanted, 1):
			givenUp = append(givenUp, store.Mistake{Test: p.Test, Text: fmt.Sprintf("%s on %s: the reference rejected %d draws and accepted %d", p.Test, p.Subject, p.Rejected, p.Judged)})
		}
	}
	return inError, givenUp
}

// Sight writes findings of the campaign: all of them or none.
func (l *Ledger) Sight(findings []*store.Sighting) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.writer.Sight(findings...)
}

// Bundle keeps where the bundle of a finding lies, and what proves it.
func (l *Ledger) Bundle(finding int64, dir, proof string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.writer.Bundle(finding, dir, proof)
}

// End writes that the campaign has ended, or that it was stopped, with the mistakes in its
// tests.
func (l *Ledger) End(complete bool, exit int, wrong ...store.Mistake) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.writer.End(complete, exit, wrong...)
}

// Disown keeps later campaigns from taking the units of this one for theirs.
func (l *Ledger) Disown() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.writer.Disown()
}

// Fix keeps what the subjects are.
func (l *Ledger) Fix(subjects []store.Subject) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.writer.Subjects(subjects)
}

// Stopping says whether somebody asked the campaign to end.
func (l *Ledger) Stopping() (bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.store.Stopping(l.run)
}

// Recall takes back every unit of a subject that is not done.
func (l *Ledger) Recall(subject string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var all []int64
	for n, u := range l.open {
		if l.parts[u.Part].Subject == subject {
			all = append(all, n)
		}
	}
	slices.Sort(all)
	l.waiting[subject] = all
	l.tell()
}

// Again lets a unit be judged again whose result was not taken.
func (l *Ledger) Again(unit int64) {
	l.mu.Lock()
	u := l.open[unit]
	l.mu.Unlock()
	if u != nil {
		l.Return([]Unit{{N: u.N, Test: l.parts[u.Part].Test, Subject: l.parts[u.Part].Subject, First: u.First, Size: u.Size}})
	}
}
