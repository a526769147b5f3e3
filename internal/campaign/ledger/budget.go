package ledger

import (
	"math"
	"strings"
	"time"

	"plumb/internal/campaign/bandit"
	"plumb/internal/campaign/store"
	"plumb/internal/judge/verdict"
)

// Budget is what a campaign spends instead of a number of cases for each test: its
// subjects have equal shares, and of a subject's share those tests have more whose last
// cases gained most. The zero value is none.
type Budget struct {
	Time  time.Duration // of judging, start-up aside; 0 for no bound
	Cases int           // 0 for no bound
	// Clock says that Time is that of the clock, which subjects do not share: they are
	// judged at the same time, by whoever comes.
	Clock bool `json:",omitempty"`
}

// Is reports whether there is one.
func (b Budget) Is() bool { return b != Budget{} }

// Each is the share of one of so many subjects.
func (b Budget) Each(subjects int) Budget {
	each := Budget{Time: b.Time, Clock: b.Clock}
	if !b.Clock {
		each.Time /= time.Duration(subjects)
	}
	if b.Cases > 0 {
		each.Cases = max(b.Cases/subjects, 1)
	}
	return each
}

// purse is the share of a subject, and what became of it. What cases gained is not in
// the store: who goes on with a campaign begins to learn anew which tests gain.
type purse struct {
	share  Budget
	spent  time.Duration
	judged int // cases, and rejected draws
	bandit bandit.Bandit
	arms   map[int]*bandit.Arm // by part
	parts  map[*bandit.Arm]int
	failed map[string]bool // ways in which cases failed
}

// share opens the purses.
func (l *Ledger) share(b Budget) error {
	purses := map[string]*purse{}
	for _, p := range l.parts {
		if purses[p.Subject] == nil {
			purses[p.Subject] = &purse{arms: map[int]*bandit.Arm{}, parts: map[*bandit.Arm]int{}, failed: map[string]bool{}}
		}
	}
	took, err := l.store.Took(l.run)
	if err != nil {
		return err
	}
	l.purses = purses
	for i := range l.parts {
		p := &l.parts[i]
		of, arm := purses[p.Subject], &bandit.Arm{}
		of.share = b.Each(len(purses))
		of.arms[i], of.parts[arm] = arm, i
		of.bandit.Add(arm)
		of.bandit.Give(arm, p.Next)
		of.bandit.Told(arm, p.Judged+p.Rejected, nil, 0, 0)
		of.judged += p.Judged + p.Rejected
		of.spent += took[i]
		of.told(p)
	}
	return nil
}

// told closes a part that has no more cases: all of them are judged, it is in error, or
// nearly all of its draws are rejected.
func (b *purse) told(p *store.Part) {
	p.Over = p.Over || p.Fixed && p.Next >= p.Wanted || !p.Fixed && p.Rejected >= p.Most*max(p.Judged, 1)
	b.arms[p.N].Over = p.Over
}

// take counts a result.
func (b *purse) take(u *store.Unit, r *Result) {
	near, failures := 0.0, 0
	for i := range r.Cases {
		c := &r.Cases[i]
		if c.Worst > 0 {
			near += min(c.Worst, 1)
		}
		way := strings.Join(append([]string{c.Word, c.Kind}, c.Operators...), " ")
		if verdict.Word(c.Word).IsFinding() && !b.failed[way] {
			b.failed[way] = true
			failures++
		}
	}
	cases := r.Judged + r.Rejected
	b.spent, b.judged = b.spent+r.Elapsed, b.judged+cases
	b.bandit.Told(b.arms[u.Part], cases, r.Traits, near, failures)
}

// left reports whether a subject has something to spend, and to spend it on.
func (l *Ledger) left(subject string) bool {
	b := l.purses[subject]
	if b != nil && b.share.Clock {
		b.spent = l.writer.Elapsed()
	}
	return b != nil && (b.share.Time == 0 || b.spent < b.share.Time) && (b.share.Cases == 0 || b.bandit.Given() < b.share.Cases) && b.bandit.Next() != nil
}

// affords is how many more cases the share may pay for, as far as is known.
func (b *purse) affords() int {
	n := math.MaxInt
	if b.share.Cases > 0 {
		n = b.share.Cases - b.bandit.Given()
	}
	if b.share.Clock {
		return b.ahead()
	}
	if b.share.Time > 0 && b.spent > 0 {
		each := float64(b.spent) / float64(max(b.judged, 1))
		n = min(n, max(int(float64(b.share.Time-b.spent)/each), 1))
	}
	return n
}

// By the clock, a subject has so many cases waiting before the first are judged, and
// then as many as are judged in so long.
const (
	firstCases = 256
	aheadFor   = time.Minute
)

// ahead is how many more cases may wait: what waits when the time is over is left out.
func (b *purse) ahead() int {
	could := float64(firstCases)
	if b.judged > 0 {
		could = float64(b.judged) * min(b.share.Time-b.spent, aheadFor).Seconds() / b.spent.Seconds()
	}
	waiting := b.bandit.Given() - b.judged
	if waiting == 0 {
		return max(int(could), 1)
	}
	return max(int(could)-waiting, 0)
}

// Spent reports whether a time by the clock is over.
func (l *Ledger) Spent() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, b := range l.purses {
		return b.share.Clock && l.writer.Elapsed() >= b.share.Time
	}
	return false
}

// Abandon leaves out the units that are not done: they are no cases of the campaign.
func (l *Ledger) Abandon() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.writer.Drop(); err != nil {
		return err
	}
	clear(l.open)
	clear(l.waiting)
	clear(l.out)
	return nil
}

// size is how many cases the next unit of a test has, at most so many.
func (b *purse) size(p *store.Part, a *bandit.Arm, most int) int {
	if p.Fixed {
		most = min(most, p.Wanted-p.Next)
	}
	return max(1, min(most, a.Given()/unitShare))
}

// unitShare is the part of the cases that a test had which its next unit has: 1 of so
// many.
const unitShare = 8

// spend makes as many units of a subject as are asked for and not there, of the tests
// that are worth most.
func (l *Ledger) spend(subject string, most int) error {
	if !l.left(subject) {
		return nil
	}
	b := l.purses[subject]
	last, changed := l.last, map[int]store.Part{}
	affords := b.affords()
	var more []store.Unit
	for len(more)+len(l.waiting[subject]) < most && affords != 0 {
		arm := b.bandit.Next()
		if arm == nil {
			break
		}
		p := &l.parts[b.parts[arm]]
		if _, ok := changed[p.N]; !ok {
			changed[p.N] = *p
		}
		u := l.unit(p, b.size(p, arm, min(l.size, affords)))
		affords -= u.Size
		more = append(more, u)
		b.bandit.Give(arm, u.Size)
		arm.Over = p.Fixed && p.Next == p.Wanted
	}
	if len(more) == 0 {
		return nil
	}
	var parts []store.Part
	for n := range changed {
		parts = append(parts, l.parts[n])
	}
	err := l.commit(nil, parts, more)
	if err != nil { // nothing has happened
		for _, u := range more {
			l.out[u.Part] -= u.Size
			b.bandit.Give(b.arms[u.Part], -u.Size)
		}
		for n, p := range changed {
			l.parts[n] = p
			b.arms[n].Over = p.Over
		}
		l.last = last
	}
	return err
}
