package command

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"plumb/backend"
	"plumb/internal/campaign/report"
	"plumb/internal/campaign/report/page"
	"plumb/internal/campaign/store"
	"plumb/internal/judge/compare"
	"plumb/internal/judge/verdict"
	"plumb/program"
)

// storedFiles are what is written of a run of the store, without the tensors that only a
// run under way has.
type storedFiles struct {
	filed
	junit string
}

func (f *storedFiles) flags(fl *pflag.FlagSet) {
	fl.Var(outFile(&f.junit), "junit", "write JUnit XML for CI systems to this file: a testsuite per test")
	f.filed.flags(fl, "its failures with their programs, tests, every case")
}

// asked reports whether the command line asks for any of them.
func (f *storedFiles) asked() bool { return f.html != "" || f.junit != "" || len(f.files.all) > 0 }

// write writes the files of a run; of one that has just been judged also those that CI
// systems are given unasked.
func (f *storedFiles) write(s *store.Store, r *store.Run, judged bool, log io.Writer) error {
	if f.files.given = !judged; !f.asked() && !f.files.wanted() {
		return nil
	}
	junit, err := openJUnit(f.junit, r.Command)
	if err != nil {
		return err
	}
	f.begin(cmp.Or(r.Command, "plumb"), r.Started, placesOf(s, r))
	if f.page != nil {
		f.page.Environment = [][2]string{
			{"command", strings.TrimSpace("plumb " + strings.Join(r.Args, " "))}, {"run", fmt.Sprintf("%d of the store, %s", r.ID, r.End())}, {"plumb", r.Plumb}, {"reference", r.Reference().String()},
		}
	}
	if junit != nil {
		junit.Started = r.Started
		junit.Properties = [][2]string{{"reference", r.Reference().String()}, {"seed", fmt.Sprint(r.Seed)}, {"plumb", r.Plumb}}
	}
	err = f.fill(s, r, junit)
	return f.end(closeJUnit(junit, err, log), log)
}

// fill hands the cases and findings of the run to the files.
func (f *storedFiles) fill(s *store.Store, r *store.Run, junit *report.JUnit) error {
	sum := report.NewSummary()
	sum.Reference, sum.Seed, sum.Elapsed = r.Reference().String(), r.Seed, time.Duration(r.Elapsed*float64(time.Second))
	for _, c := range r.Candidates() {
		sum.Candidates = append(sum.Candidates, c.Name)
		f.about("candidate", c.String())
	}
	tests := map[string]bool{}
	err := s.Cases(r.ID, func(c *store.Case) error {
		if tests[c.Test] = true; c.Word == "" {
			return nil
		}
		word := verdict.Word(c.Word)
		if f.page != nil {
			ofStore(f.page, sum, c)
		}
		if f.outline != nil {
			f.outline.Case(report.OutlineCase{Test: c.Test, Index: c.Number, ID: c.Program, Candidate: c.Subject, Word: word, Reason: c.Reason, Worst: worstStored(c), Elapsed: c.Elapsed})
		}
		if junit != nil {
			junit.Add(report.JUnitCase{Suite: c.Test, Name: fmt.Sprintf("case %d, %s", c.Number, c.Subject), Word: word, Reason: c.Reason, Output: c.Text, Elapsed: c.Elapsed})
		}
		return nil
	})
	sum.Tests = len(tests)
	for _, m := range r.Mistakes {
		end := &verdict.End{Test: m.Test, Err: errors.New(m.Text)}
		sum.Errors = append(sum.Errors, end.Err)
		if junit != nil {
			junit.End(end)
		}
		if f.outline != nil {
			f.outline.End(end)
		}
	}
	if f.page != nil {
		f.page.Summary(sum)
	}
	if f.outline != nil {
		f.outline.Summarise(sum)
	}
	if err != nil {
		return err
	}
	served := runsCampaign(s, r)
	return s.Sightings(r.ID, func(g *store.Sighting) error {
		id := sha256.Sum256([]byte(g.Subject + "\x00" + g.Operator + "\x00" + g.What))
		word, _, _ := strings.Cut(strings.Replace(g.What, ":", "", 1), " ")
		again := ""
		switch {
		case g.Bundle != "":
			again = "plumb repro " + filepath.Base(g.Bundle)
		case served != nil:
			again = fmt.Sprintf("plumb campaign findings %d", r.ID)
		}
		if f.outline != nil {
			f.outline.Finding(&report.OutlineFinding{
				ID: hex.EncodeToString(id[:8]), Candidate: g.Subject, Signature: g.What, Kind: word, Operator: g.Operator, Tests: []string{g.Test}, Cases: g.Cases,
				Reason: g.Reason, Program: g.Program, Proof: g.Proof, Bundle: g.Bundle,
			}, again)
		}
		if f.page != nil {
			f.page.Block(sighted(g, hex.EncodeToString(id[:8]), verdict.Word(word), again))
		}
		return nil
	})
}

// sighted is what the store has of a finding, for a page.
func sighted(g *store.Sighting, id string, word verdict.Word, again string) *report.Block {
	b := &report.Block{
		Word: word, ID: id, Operator: g.Operator, Program: strings.Split(strings.TrimSpace(g.Program), "\n"), Reason: g.Reason,
		Notes: [][2]string{{"seen", fmt.Sprintf("%s, first in %s", count(g.Cases, "case"), g.Test)}, {"candidate", g.Subject}},
	}
	b.Reason, _, _ = strings.Cut(b.Reason, "\n")
	if p, err := program.Parse(g.Operator, g.Program); err == nil {
		b.Program = report.Body(p)
	}
	if again != "" {
		b.Next = []string{again}
	}
	if g.Proof != "" {
		b.Notes = append(b.Notes, [2]string{"proof", g.Proof})
	}
	return b
}

// placesOf tells where tests of a run stand: the file that a name begins with, and the
// line where the store has it, which it has of campaigns.
func placesOf(s *store.Store, r *store.Run) func(test string) (file string, line int) {
	places := map[string]testPlace{}
	if c := runsCampaign(s, r); c != nil {
		if sp, err := decodeSpec(c.Spec); err == nil {
			places = sp.Places
		}
	}
	return func(test string) (string, int) {
		if file := fileOf(test); file != test && strings.HasSuffix(file, ".py") {
			return file, places[test].Line
		}
		return "", 0
	}
}

// runsCampaign is the campaign that a run is; nil of others.
func runsCampaign(s *store.Store, r *store.Run) *store.Campaign {
	if c, err := s.Campaign(fmt.Sprint(r.ID)); err == nil && c.ID == r.ID {
		return c
	}
	return nil
}

func worstStored(c *store.Case) compare.Number {
	if math.IsNaN(c.Worst) {
		return 0
	}
	return compare.Number(c.Worst)
}

// ofStore counts a case and hands it to the page: one that failed with its program.
func ofStore(p *page.Page, sum *report.Summary, c *store.Case) {
	word, worst := verdict.Word(c.Word), float64(worstStored(c))
	sum.Words[word]++
	sum.Compared += c.Compared
	switch {
	case word == verdict.Aligned && worst > sum.Worst:
		sum.Worst, sum.WorstAt = worst, fmt.Sprintf("%s case %d, %s", c.Test, c.Number, c.WorstAt)
	case word == verdict.Unsupported:
		sum.Lacking[report.Lack(c.Reason)]++
	}
	if word.IsFinding() {
		if of, err := program.Parse(c.Program, c.Text); err == nil {
			p.Record(&verdict.Record{
				Test: c.Test, Index: c.Number, Candidate: c.Subject, Modes: []string{cmp.Or(c.Mode, backend.Eager)}, Program: of,
				Verdict:   &verdict.Verdict{Word: word, Kind: verdict.Kind(c.Kind), Reason: c.Reason, Worst: compare.Number(worst)},
				Reference: &backend.Outcome{Elapsed: c.Reference}, Outcome: &backend.Outcome{Elapsed: c.Elapsed},
			})
			return
		}
	}
	p.Case(&page.Case{
		Test: c.Test, Index: c.Number, ID: c.Program, Candidate: c.Subject, Word: word, Worst: worst, Took: c.Elapsed + c.Reference,
		Operators: c.Operators, DTypes: strings.Fields(c.DTypes), Reason: c.Reason,
	})
}
