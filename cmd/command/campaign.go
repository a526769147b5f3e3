package command

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"plumb/internal/campaign/fleet"
	"plumb/internal/campaign/ledger"
	"plumb/internal/campaign/store"
	"plumb/internal/scratch"
)

func newCampaign() *cobra.Command {
	return parent(&cobra.Command{
		Use:   "campaign",
		Short: "Runs that survive their processes: stopped, killed, gone on with, on one machine or many",
		Long: `A campaign is a run whose cases are kept in the results store as they are judged, in
units of many cases. A unit is written whole or not at all, and counts once: a
campaign whose processes are killed at any moment goes on where it was, and ends
with the counts that it would have had.

Its cases are those of plumb.toml (sources, subjects and all flags: plumb config
campaign run), or of the arguments: test files and folders, ops:PATTERN,
opinfo:PATTERN, graphs, suites, conform or conform:CONFIG (the cases of a conformance
config on the reference that is there, judged by Plumb's limits).`,
	}, newCampaignRun(), newCampaignResume(), newCampaignStatus(), newCampaignStop(), newCampaignFindings(), newCampaignServe(), newCampaignJudge(), newCampaignNative())
}

// campaignRun is plumb campaign run.
type campaignRun struct {
	*plan
	keep        campaignStore
	unit        int
	name        string
	incremental bool
	budget      ledger.Budget
	json, quiet bool
	files       storedFiles
}

// campaignStore is where campaigns are kept.
type campaignStore struct{ path string }

func (c *campaignStore) flag(fl *pflag.FlagSet) {
	fl.Var(outFile(&c.path), "store", "the results store (default: $"+storeVariable+", else plumb.db in the user's state folder)")
}

// of adds the flag to a command about a store that there is.
func (c *campaignStore) of(fl *pflag.FlagSet) {
	fl.Var(inFile(&c.path), "store", "the results store (default: $"+storeVariable+", else plumb.db in the user's state folder)")
}

// named is the path of the store; its folder is made.
func (c *campaignStore) named() (string, error) {
	path, err := storeNamed(c.path)
	switch {
	case err != nil:
		return "", usage(fmt.Errorf("--store FILE is needed: %w", err))
	case path == "":
		return "", usage(errors.New("--store none: a campaign is kept in a store"))
	}
	return path, os.MkdirAll(filepath.Dir(path), 0o755)
}

func (c *campaignStore) open() (*store.Store, string, error) {
	path, err := c.named()
	if err != nil {
		return nil, "", err
	}
	s, err := store.Open(path)
	if err != nil {
		return nil, "", usage(err)
	}
	return s, path, nil
}

// newCampaignPlan is the command with its plan, from which a spec is restored too.
func newCampaignPlan() (*cobra.Command, *plan) {
	r := &campaignRun{plan: newPlan(), unit: unitCases}
	return r.command(), r.plan
}

// unitCases is how many cases a unit has at most: an exchange with a subject.
const unitCases = 32

func newCampaignRun() *cobra.Command {
	cmd, _ := newCampaignPlan()
	return cmd
}

func (r *campaignRun) command() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "run [SOURCE…]",
		Short: "Begin a campaign and run it on this machine",
		Long: `Run begins a campaign and judges it here. It may be stopped (Ctrl-C, plumb campaign
stop) or killed: plumb campaign resume goes on.`,
		Example: `  plumb campaign run                              what plumb.toml says
  plumb campaign run tests/ ops:'conv*' -n 500
  plumb campaign run suites --candidate native,torch:fx --name nightly
  plumb campaign run --for 8h --name nightly      more cases where they find more
  plumb campaign run --incremental                what has not changed is taken from the store`,
		RunE: func(cmd *cobra.Command, sources []string) error {
			r.attach(cmd)
			return r.begin(cmd.Context(), sources)
		},
	}
	r.plan.flags(cmd)
	r.spends(cmd, "candidates have equal shares of it, start-up aside")
	bars(cmd, "for", "number", "incremental")
	group(cmd, whatPrinted, func(fl *pflag.FlagSet) {
		r.keep.flag(fl)
		fl.StringVar(&r.name, "name", "", "what plumb campaign status, stop and resume call it, beside its number")
		fl.Var(wholeNumber(&r.unit, 1), "unit", "cases that are judged and written together at most; what is under way when a process is killed is judged again")
		fl.BoolVar(&r.incremental, "incremental", false, "take units from the store that were judged before, where the subjects, the test's file, the flags and Plumb are the same")
		fl.BoolVarP(&r.quiet, "quiet", "q", false, "print the counts and findings only")
		jsonFlag(fl, &r.json, "print one object at the end")
		r.files.flags(fl)
	})
	return cmd
}

func (r *campaignRun) spends(cmd *cobra.Command, shares string) {
	cmd.Flags().SetNormalizeFunc(asBudget)
	group(cmd, whichCases, func(fl *pflag.FlagSet) {
		budgetFlag(fl, &r.budget, shares+", and those tests")
	})
}

func (r *campaignRun) begin(ctx context.Context, sources []string) error {
	s, err := r.planned(sources)
	if err != nil {
		return err
	}
	tests, err := s.tests(ctx, r.plan)
	if err != nil {
		return mistake(err)
	}
	about, subjects, err := r.abouts(ctx, append([]string{s.Reference}, s.Candidates...))
	if err != nil {
		return err
	}
	db, path, err := r.keep.open()
	if err != nil {
		return err
	}
	defer db.Close()
	c, err := r.record(db, s, s.parts(tests, about), subjects)
	if err != nil {
		return err
	}
	return r.goOn(ctx, db, path, c, s)
}

// planned is the spec of what the command line and plumb.toml say.
func (r *campaignRun) planned(sources []string) (*spec, error) {
	if len(sources) == 0 {
		var err error
		if sources, err = projectSources(); err != nil {
			return nil, usage(err)
		}
	}
	if len(sources) == 0 {
		sources = []string{string(suitesSource)}
	}
	s, err := r.spec(sources)
	if err == nil {
		s.Budget = r.budget
	}
	return s, err
}

// record makes the rows of the campaign.
func (r *campaignRun) record(db *store.Store, s *spec, parts []store.Part, subjects []store.Subject) (*store.Campaign, error) {
	for _, n := range s.notes {
		r.say("%s", n)
	}
	text, err := s.encode()
	if err != nil {
		return nil, err
	}
	c := &store.Campaign{Name: r.name, Spec: text, Run: store.Run{
		Command: r.cmd.CommandPath(), Args: append(strings.Fields(commandPath(r.cmd)), s.Sources...), Started: time.Now(), Seed: s.Seed, Plumb: s.Plumb, Subjects: subjects,
	}}
	if err := db.NewCampaign(c, parts); err != nil {
		return nil, &exitError{exitFault, err}
	}
	return c, nil
}

// goOn judges what a campaign has left.
func (r *campaignRun) goOn(ctx context.Context, db *store.Store, path string, c *store.Campaign, s *spec) error {
	books, _, release, err := takeUp(db, path, c, r.unit, s.Budget)
	if err != nil {
		return err
	}
	defer release()
	if r.incremental {
		cases, err := books.Reuse()
		if err != nil {
			return &exitError{exitFault, err}
		}
		r.say("%s taken from the store, where nothing has changed", count(cases, "case"))
	}
	r.say("campaign %d%s: %s are judged, seed %d", c.ID, named(c.Name), books.Standing(), s.Seed)
	if err := r.labour(ctx, books, s); err != nil {
		return r.broken(err, books, c)
	}
	if !c.Complete {
		was := map[string]string{}
		for _, s := range c.Subjects {
			was[s.Name] = s.Version
		}
		switch changed, err := r.changed(ctx, was); {
		case err != nil:
			return &exitError{exitFault, err}
		case changed != nil:
			return r.endMixed(books, c, changed)
		}
	}
	return r.conclude(db, books, c)
}

// endMixed ends a campaign of which a subject has become another while it was judged.
func (r *campaignRun) endMixed(books *ledger.Ledger, c *store.Campaign, of *fleet.ChangedError) error {
	subjects := slices.Clone(c.Subjects)
	for i := range subjects {
		if subjects[i].Name == of.Subject {
			subjects[i].Version = of.Was + ", then " + of.Is // which nobody goes on with
		}
	}
	return &exitError{exitFault, errors.Join(
		fmt.Errorf("campaign %d: %w: begin a new one", c.ID, of),
		books.Fix(subjects), books.Disown(), books.End(false, exitFault),
	)}
}

// takeUp opens the books of a campaign for this process alone, until released, with
// the folder of its state.
func takeUp(db *store.Store, path string, c *store.Campaign, unit int, budget ledger.Budget) (books *ledger.Ledger, dir string, release func(), err error) {
	if dir, err = stateDir(path, c.ID); err != nil {
		return nil, "", nil, &exitError{exitFault, err}
	}
	release, taken := scratch.Lock(dir)
	if taken {
		return nil, "", nil, usage(fmt.Errorf("campaign %d is run by another process; plumb campaign status %d", c.ID, c.ID))
	}
	if err = db.AskToStop(c.ID, false); err == nil {
		books, err = ledger.Open(db, c, unit, budget)
	}
	if err != nil {
		release()
		return nil, "", nil, &exitError{exitFault, err}
	}
	return books, dir, release, nil
}

func named(name string) string {
	if name == "" {
		return ""
	}
	return fmt.Sprintf(" %q", name)
}

func (r *campaignRun) say(format string, args ...any) {
	if !r.quiet {
		fmt.Fprintf(r.err, "plumb: "+format+"\n", args...)
	}
}

// errStopped ends a campaign that somebody asked to.
var errStopped = errors.New("stopped")

// labour judges units on one candidate after the other, until none are left.
func (r *campaignRun) labour(ctx context.Context, books *ledger.Ledger, s *spec) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	go watchStop(ctx, books, stop)
	for subjects := books.Subjects(); len(subjects) > 0; subjects = books.Subjects() {
		batch := &batcher{books: books, tell: r.progress(books)}
		l, err := newApart(s, subjects[0], local{r.subjects.python, r.subjects.jobs, r.subjects.sandbox, nil, r.err})
		if err != nil {
			return err
		}
		l.next = func() []ledger.Unit {
			if err := batch.flush(); err != nil {
				stop(err)
				return nil
			}
			units, err := books.Take(subjects[0], roundUnits*r.subjects.jobs)
			if err != nil {
				stop(err)
			}
			return units
		}
		l.done = batch.add
		if err := cmp.Or(l.work(ctx), batch.flush()); err != nil {
			return err
		}
	}
	return nil
}

// roundUnits is how many units a round has for each lane.
const roundUnits = 16

// watchStop ends the context when somebody asks the campaign to stop.
func watchStop(ctx context.Context, books *ledger.Ledger, stop context.CancelCauseFunc) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Second / 2):
		}
		if asked, err := books.Stopping(); asked && err == nil {
			stop(errStopped)
		}
	}
}

// A batch of results is written when it has so many cases, or is so old.
const (
	batchCases = 100
	batchAge   = time.Second
)

// batcher writes results together.
type batcher struct {
	books   *ledger.Ledger
	results []ledger.Result
	cases   int
	since   time.Time
	tell    func()
}

func (b *batcher) add(r ledger.Result) error {
	if len(b.results) == 0 {
		b.since = time.Now()
	}
	b.results, b.cases = append(b.results, r), b.cases+len(r.Cases)
	if b.cases < batchCases && time.Since(b.since) < batchAge {
		return nil
	}
	return b.flush()
}

func (b *batcher) flush() error {
	if len(b.results) == 0 {
		return nil
	}
	if err := b.books.Finish(b.results); err != nil {
		return err
	}
	b.results, b.cases = nil, 0
	b.tell()
	return nil
}

// progress tells how far the campaign is, now and then.
func (r *campaignRun) progress(books *ledger.Ledger) func() {
	every, began := 30*time.Second, time.Now()
	last, first := began, books.Standing().Cases
	return func() {
		if time.Since(last) < every {
			return
		}
		last = time.Now()
		s := books.Standing()
		rate := float64(s.Cases-first) / time.Since(began).Seconds()
		r.say("%s, %.0f a second", s, rate)
	}
}

// broken ends a campaign that is not at its end: what is judged is kept.
func (r *campaignRun) broken(err error, books *ledger.Ledger, c *store.Campaign) error {
	stopped := errors.Is(err, errStopped) || errors.Is(err, context.Canceled)
	s := books.Standing()
	ended := books.End(false, exitFault)
	if stopped && ended == nil {
		return &exitError{exitFault, fmt.Errorf("campaign %d is stopped with %s; plumb campaign resume %d goes on", c.ID, s, c.ID)}
	}
	fmt.Fprintf(r.err, "plumb: campaign %d has %s; plumb campaign resume %d goes on\n", c.ID, s, c.ID)
	return harness(errors.Join(err, ended))
}

// closed writes what a campaign found, and that it has ended, where that is not written yet.
func (r *campaignRun) closed(db *store.Store, books *ledger.Ledger, c *store.Campaign) (res *campaignResult, code int, err error) {
	over := *c
	over.Complete = true
	if res, err = readCampaign(db, &over); err == nil {
		err = res.lacks(db)
	}
	if err != nil {
		return nil, 0, err
	}
	wrong, err := mistakes(db, books, c)
	if err != nil {
		return nil, 0, err
	}
	res.Errors = nil
	for _, m := range wrong {
		res.Errors = append(res.Errors, m.Text)
	}
	code = res.exit()
	if !c.Complete {
		err = cmp.Or(sightAll(db, books, c.ID), books.End(true, code, wrong...))
	}
	return res, code, err
}

// conclude tells what a campaign found.
func (r *campaignRun) conclude(db *store.Store, books *ledger.Ledger, c *store.Campaign) error {
	res, code, err := r.closed(db, books, c)
	if err != nil {
		return &exitError{exitFault, err}
	}
	if now, err := db.Campaign(fmt.Sprint(c.ID)); err == nil {
		res.Seconds = now.Elapsed
	}
	if r.json {
		err = json.NewEncoder(r.out).Encode(res)
	} else {
		err = res.print(r.out, db)
	}
	if run, rerr := db.Run(fmt.Sprint(c.ID)); err == nil {
		err = cmp.Or(rerr, r.files.write(db, run, true, r.err))
	}
	next := fmt.Sprintf("plumb campaign findings %d", c.ID)
	_ = db.Sightings(c.ID, func(f *store.Sighting) error { // the advice is not worth an error
		if f.Bundle != "" {
			next = "plumb repro " + filepath.Base(f.Bundle)
		}
		return nil
	})
	if code == exitFindings {
		r.say("next: %s", next)
	}
	switch {
	case err != nil:
		return err
	case code == exitNothing && res.absent() != nil:
		return nothing(fmt.Errorf("nobody has judged %s", strings.Join(res.absent(), ", ")))
	case code == exitNothing:
		return nothing(errors.New("every case is unsupported or skipped"))
	case code != exitAligned:
		return &exitError{code, nil}
	}
	return nil
}

// mostGrouped bounds the failing cases that are looked at for findings.
const mostGrouped = 100_000

// sightAll keeps what fails as findings: the cases of an operator that fail alike.
func sightAll(db *store.Store, books *ledger.Ledger, run int64) error {
	groups := map[[3]string]*store.Sighting{}
	var order []*store.Sighting
	sighted := false // by a process that was killed before it wrote the end
	err := db.FirstSightings(run, 1, func(*store.Sighting) error { sighted = true; return nil })
	if sighted || err != nil {
		return err
	}
	err = db.Failures(run, mostGrouped, func(c *store.Case) error {
		operator := append(slices.Clone(c.Operators), "")[0]
		key := [3]string{c.Subject, operator, strings.TrimSpace(c.Word + " " + c.Kind)}
		if groups[key] == nil {
			groups[key] = &store.Sighting{Subject: c.Subject, Operator: operator, What: key[2], Test: c.Test, Reason: c.Reason, Program: c.Text}
			order = append(order, groups[key])
		}
		g := groups[key]
		if g.Cases++; len(c.Text) < len(g.Program) {
			g.Program, g.Reason, g.Test = c.Text, c.Reason, c.Test
		}
		return nil
	})
	if err != nil {
		return err
	}
	return books.Sight(order)
}

// campaignOf is a command about a campaign that there is.
type campaignOf struct {
	keep campaignStore
	json bool
}

func (c *campaignOf) find(args []string) (*store.Store, string, *store.Campaign, error) {
	path, err := c.keep.named()
	if err != nil {
		return nil, "", nil, err
	}
	db, err := store.Read(path)
	if err != nil {
		return nil, "", nil, usage(err)
	}
	one, err := db.Campaign(append(slices.Clone(args), "last")[0])
	if err != nil {
		return nil, "", nil, usage(errors.Join(err, db.Close()))
	}
	return db, path, one, nil
}

func newCampaignStatus() *cobra.Command {
	var c campaignOf
	var all bool
	cmd := &cobra.Command{
		Use:   "status [NUMBER|NAME]",
		Short: "Tell how far a campaign is, by default the last one",
		Example: `  plumb campaign status
  plumb campaign status nightly --json
  plumb campaign status --all`,
		Args: takes(0, 1, "one campaign"),
		RunE: func(cmd *cobra.Command, args []string) error {
			db, path, one, err := c.find(args)
			if err != nil {
				return err
			}
			defer db.Close()
			names := []string{fmt.Sprint(one.ID)}
			if all {
				names = nil
				if err := db.Campaigns(func(run int64, _ string) error { names = append(names, fmt.Sprint(run)); return nil }); err != nil {
					return &exitError{exitFault, err}
				}
			}
			for _, name := range names {
				if err := c.status(cmd.OutOrStdout(), db, path, name); err != nil {
					return &exitError{exitFault, err}
				}
			}
			return nil
		},
	}
	c.keep.of(cmd.Flags())
	cmd.Flags().BoolVar(&all, "all", false, "every campaign of the store")
	jsonFlag(cmd.Flags(), &c.json, "print one object a campaign")
	return cmd
}

func (c *campaignOf) status(out io.Writer, db *store.Store, path, name string) error {
	one, err := db.Campaign(name)
	if err != nil {
		return err
	}
	res, err := readCampaign(db, one)
	if err != nil {
		return err
	}
	dir, err := stateDir(path, one.ID)
	if err != nil {
		return err
	}
	if release, taken := scratch.Lock(dir); taken {
		res.State = "running"
	} else {
		release()
	}
	if c.json {
		return json.NewEncoder(out).Encode(res)
	}
	res.mistaken(out)
	res.head(out)
	return nil
}

func newCampaignStop() *cobra.Command {
	var c campaignOf
	cmd := &cobra.Command{
		Use:     "stop [NUMBER|NAME]",
		Short:   "Let a campaign end soon; what is judged is kept, and resume goes on",
		Example: `  plumb campaign stop nightly`,
		Args:    takes(0, 1, "one campaign"),
		RunE: func(cmd *cobra.Command, args []string) error {
			db, path, one, err := c.find(args)
			if err != nil {
				return err
			}
			if err := db.Close(); err != nil {
				return &exitError{exitFault, err}
			}
			if db, err = store.Open(path); err != nil {
				return &exitError{exitFault, err}
			}
			defer db.Close()
			if err := db.AskToStop(one.ID, true); err != nil {
				return &exitError{exitFault, err}
			}
			fmt.Fprintf(cmd.OutOrStdout(), "campaign %d%s is asked to stop; plumb campaign resume %d goes on\n", one.ID, named(one.Name), one.ID)
			return nil
		},
	}
	c.keep.of(cmd.Flags())
	return cmd
}

func newCampaignResume() *cobra.Command {
	r := &campaignRun{plan: newPlan(), unit: unitCases}
	var c campaignOf
	cmd := &cobra.Command{
		Use:   "resume [NUMBER|NAME]",
		Short: "Go on with a campaign that was stopped or killed, by default the last one",
		Long: `Resume judges what a campaign has left, as it was planned: its test files and flags are
in the store.`,
		Example: `  plumb campaign resume
  plumb campaign resume nightly -j 8`,
		Args: takes(0, 1, "one campaign"),
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		r.attach(cmd)
		r.keep = c.keep
		return r.resume(cmd.Context(), &c, args)
	}
	fl := cmd.Flags()
	c.keep.of(fl)
	pythonFlag(fl, &r.subjects.python)
	jobsFlag(fl, &r.subjects.jobs, "cases that are judged at the same time")
	fl.BoolVarP(&r.quiet, "quiet", "q", false, "print the counts and findings only")
	jsonFlag(fl, &r.json, "print one object at the end")
	r.files.flags(fl)
	return cmd
}

func (r *campaignRun) resume(ctx context.Context, c *campaignOf, args []string) error {
	db, path, one, err := c.find(args)
	if err != nil {
		return err
	}
	if err := db.Close(); err != nil {
		return &exitError{exitFault, err}
	}
	s, err := decodeSpec(one.Spec)
	if err != nil {
		return &exitError{exitFault, err}
	}
	if s.Plumb != thisPlumb() {
		return usage(anotherPlumb(one, s))
	}
	if err := r.sameSubjects(ctx, one, s); err != nil {
		return err
	}
	if db, err = store.Open(path); err != nil {
		return &exitError{exitFault, err}
	}
	defer db.Close()
	return r.goOn(ctx, db, path, one, s)
}
