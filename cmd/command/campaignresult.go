package command

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"strings"
	"time"

	"plumb/internal/campaign/ledger"
	"plumb/internal/campaign/report"
	"plumb/internal/campaign/store"
	"plumb/internal/judge/verdict"
)

// campaignResult is what is known of a campaign.
type campaignResult struct {
	ID       int64                     `json:"campaign"`
	Name     string                    `json:"name,omitempty"`
	State    string                    `json:"state"` // running, stopped, ended
	Cases    int                       `json:"cases"` // rejected draws among them
	Wanted   int                       `json:"wanted"`
	Budget   float64                   `json:"budget_seconds,omitempty"` // of judging, instead of a number of cases, while there is some left
	Spent    float64                   `json:"spent_seconds,omitempty"`
	Seconds  float64                   `json:"seconds"`
	Seed     uint64                    `json:"seed"`
	Plumb    string                    `json:"plumb"`
	Subjects []store.Subject           `json:"subjects"`
	Words    map[string]map[string]int `json:"verdicts"`              // records, by subject
	Lacking  map[string]map[string]int `json:"unsupported,omitempty"` // cases by reason, by subject
	Errors   []string                  `json:"errors,omitempty"`
	Started  time.Time                 `json:"started"`
}

// readCampaign reads what the store knows of a campaign.
func readCampaign(db *store.Store, c *store.Campaign) (*campaignResult, error) {
	res := &campaignResult{ID: c.ID, Name: c.Name, State: "stopped", Seconds: c.Elapsed, Seed: c.Seed, Plumb: c.Plumb, Subjects: c.Subjects, Words: map[string]map[string]int{}, Started: c.Started}
	if c.Complete {
		res.State = "ended"
	}
	for _, m := range c.Mistakes {
		res.Errors = append(res.Errors, m.Text)
	}
	parts, err := db.Parts(c.ID)
	if err != nil {
		return nil, err
	}
	s, err := decodeSpec(c.Spec)
	if err != nil {
		return nil, err
	}
	for _, p := range parts {
		did := p.Judged + p.Rejected
		res.Cases += did
		switch {
		case p.Over, s.Budget.Is() && c.Complete:
			res.Wanted += did
		case s.Budget.Is():
			res.Wanted += p.Next
		case p.Fixed:
			res.Wanted += p.Wanted
		default:
			res.Wanted += p.Wanted + p.Rejected
		}
	}
	if s.Budget.Is() && !c.Complete {
		res.Wanted = max(res.Wanted, len(s.Candidates)*s.Budget.Each(len(s.Candidates)).Cases)
		res.Budget = s.Budget.Time.Seconds()
		took, err := db.Took(c.ID)
		if err != nil {
			return nil, err
		}
		for _, t := range took {
			res.Spent += t.Seconds()
		}
		if s.Budget.Clock {
			res.Spent = c.Elapsed
		}
	}
	err = db.Words(c.ID, func(subject, word string, cases int) error {
		if res.Words[subject] == nil {
			res.Words[subject] = map[string]int{}
		}
		res.Words[subject][word] = cases
		return nil
	})
	return res, err
}

// summary counts the verdicts of a subject.
func (c *campaignResult) summary(subject string) *report.Summary {
	s := report.NewSummary()
	for word, n := range c.Words[subject] {
		s.Words[verdict.Word(word)] = n
	}
	maps.Copy(s.Lacking, c.Lacking[subject])
	return s
}

// lacks reads why cases are unsupported.
func (c *campaignResult) lacks(db *store.Store) error {
	c.Lacking = map[string]map[string]int{}
	return db.Lacks(c.ID, func(subject, reason string, cases int) error {
		if c.Lacking[subject] == nil {
			c.Lacking[subject] = map[string]int{}
		}
		c.Lacking[subject][report.Lack(reason)] += cases
		return nil
	})
}

// exit is the exit code that the verdicts are.
func (c *campaignResult) exit() int {
	findings, judged := 0, 0
	for subject := range c.Words {
		s := c.summary(subject)
		findings += s.Findings()
		judged += s.Judged()
	}
	switch {
	case len(c.Errors) > 0:
		return exitUsage
	case findings > 0:
		return exitFindings
	case judged == 0, c.absent() != nil:
		return exitNothing
	}
	return exitAligned
}

// absent are the candidates that nobody has judged in a time by the clock.
func (c *campaignResult) absent() []string {
	var names []string
	for _, s := range c.Subjects[min(1, len(c.Subjects)):] {
		if c.Words[s.Name] == nil {
			names = append(names, s.Name)
		}
	}
	return names
}

// mostPrinted is how many failing cases are printed.
const mostPrinted = 20

// mistaken prints the mistakes in tests.
func (c *campaignResult) mistaken(out io.Writer) {
	for _, e := range c.Errors {
		fmt.Fprintf(out, "ERROR %s\n", e)
	}
}

func (c *campaignResult) print(out io.Writer, db *store.Store) error {
	c.mistaken(out)
	n := 0
	err := db.Failures(c.ID, mostPrinted, func(f *store.Case) error {
		n++
		why, _, _ := strings.Cut(f.Reason, "\n")
		fmt.Fprintf(out, "%s  %s case %d on %s: %s\n", strings.ToUpper(f.Word), f.Test, f.Number, f.Subject, cmp.Or(why, f.Kind))
		return nil
	})
	if err != nil {
		return &exitError{exitFault, err}
	}
	if n == mostPrinted {
		fmt.Fprintf(out, "… and more: plumb history %d\n", c.ID)
	}
	c.head(out)
	return nil
}

func (c *campaignResult) standing() ledger.Standing {
	seconds := func(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
	return ledger.Standing{Cases: c.Cases, Wanted: c.Wanted, Spent: seconds(c.Spent), Budget: seconds(c.Budget)}
}

// head prints the counts.
func (c *campaignResult) head(out io.Writer) {
	fmt.Fprintf(out, "campaign %d%s is %s: %s, seed %d, %s\n", c.ID, named(c.Name), c.State, c.standing(), c.Seed, time.Duration(c.Seconds*float64(time.Second)).Round(time.Millisecond))
	width := 0
	var names []string
	for _, s := range c.Subjects[min(1, len(c.Subjects)):] {
		width, names = max(width, len(s.Name)), append(names, s.Name)
	}
	for _, name := range names {
		s := c.summary(name)
		fmt.Fprintf(out, "  %-*s  %s\n", width, name, s.Counts())
		for _, line := range s.LackLines("--json counts") {
			fmt.Fprintf(out, "    %s\n", plain(line))
		}
	}
}
