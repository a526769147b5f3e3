package command

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math"
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

// campaignServe is plumb campaign serve.
type campaignServe struct {
	*campaignRun
	listen string
	nats   string
	again  string // the campaign to go on with
	mixed  bool
	needs  []string
	lease  time.Duration
	access access
	// bundles is how many findings of each candidate workers make bundles of.
	bundles int
}

// access are the flags of who may connect.
type access struct{ token, cert, key, ca string }

func (a *access) read() (fleet.Access, error) {
	token, err := fleet.ReadToken(a.token)
	return fleet.Access{Token: token, Cert: a.cert, Key: a.key, CA: a.ca}, err
}

func newCampaignServe() *cobra.Command {
	s := &campaignServe{campaignRun: &campaignRun{plan: newPlan(), unit: unitCases}, listen: "127.0.0.1:4222", lease: fleet.DefaultLease, bundles: maxMinimised}
	cmd := &cobra.Command{
		Use:   "serve [SOURCE…]",
		Short: "Coordinate a campaign that workers judge, on this machine and others",
		Long: `Serve begins a campaign, as plumb campaign run does, and hands its units out to
workers (plumb worker --join URL). It judges nothing itself and needs no PyTorch.
It may be killed and started again with --resume, and workers may come, vanish and
be slow: each case counts once. A server of NATS JetStream is part of the program;
its state is beside the results store.

Without more it listens on loopback. Any other address needs --token-file and
--tls-cert with --tls-key. Nothing that workers are sent is run as code: test files
are Plumb's own language, and a worker starts the subjects alone that it names.`,
		Example: `  plumb campaign serve suites --candidate native,torch:fx -n 1000
  plumb campaign serve --resume nightly
  plumb campaign serve tests/ --for 8h                         more cases where they find more
  plumb campaign serve --candidate native,torch:fx --mixed     workers need not be of this build
  plumb campaign serve --listen 0.0.0.0:4222 --token-file token --tls-cert c.pem --tls-key k.pem`,
		RunE: func(cmd *cobra.Command, sources []string) error {
			s.attach(cmd)
			return s.run(cmd.Context(), sources)
		},
	}
	s.plan.flags(cmd)
	s.spends(cmd, "candidates have equal shares of the cases; the time is that of the clock")
	bars(cmd, "for", "number")
	cmd.Flags().Lookup("jobs").Hidden = true // a worker's own
	cmd.Flags().Lookup("python").Hidden = true
	group(cmd, "Workers", func(fl *pflag.FlagSet) {
		fl.StringVar(&s.listen, "listen", s.listen, "where workers connect")
		fl.StringVar(&s.nats, "nats", "", "use the NATS server at this URL, with JetStream, instead of the one that is part of the program")
		fl.StringSliceVar(&s.needs, "needs", nil, "SUBJECT=TAG: the subject is for workers with the tag alone; may be repeated")
		fl.BoolVar(&s.mixed, "mixed", false, "take workers of other builds of Plumb: each subject is judged by one build, the first that serves it, for two may draw and judge differently")
		fl.Var(wholeNumber(&s.bundles, 0), "bundles", "of so many findings of each candidate workers make the smallest program and a bundle, which are kept here for plumb repro")
		fl.Var(timeSpan(&s.lease), "lease", "a worker that is silent for so long loses its units to others")
		fl.Var(inFile(&s.access.token), "token-file", "a file with the token that workers have to give")
		fl.Var(inFile(&s.access.cert), "tls-cert", "the server's certificate")
		fl.Var(inFile(&s.access.key), "tls-key", "the key of the certificate")
		fl.Var(inFile(&s.access.ca), "ca", "the certificates that are trusted of --nats")
	})
	group(cmd, whatPrinted, func(fl *pflag.FlagSet) {
		s.keep.flag(fl)
		fl.StringVar(&s.name, "name", "", "what plumb campaign status, stop and resume call it, beside its number")
		fl.StringVar(&s.again, "resume", "", "go on with this campaign, by number, name or \"last\"")
		fl.Var(wholeNumber(&s.unit, 1), "unit", "cases that are judged and written together at most")
		fl.BoolVarP(&s.quiet, "quiet", "q", false, "print the counts and findings only")
		jsonFlag(fl, &s.json, "print one object at the end")
		s.files.flags(fl)
	})
	bars(cmd, "nats", "listen", "tls-cert")
	needs(cmd, "tls-key", "tls-cert")
	needs(cmd, "tls-cert", "tls-key")
	needs(cmd, "ca", "nats")
	return cmd
}

func (s *campaignServe) run(ctx context.Context, sources []string) error {
	by, err := s.access.read()
	if err != nil {
		return usage(err)
	}
	db, path, err := s.keep.open()
	if err != nil {
		return err
	}
	defer db.Close()
	if s.nats == "" {
		if err := fleet.May(s.listen, by); err != nil {
			return usage(err)
		}
	}
	c, sp, err := s.campaign(ctx, db, sources)
	if err != nil {
		return err
	}
	books, dir, release, err := takeUp(db, path, c, s.unit, sp.Budget)
	if err != nil {
		return err
	}
	defer release()
	served := s.coordinate(ctx, db, books, c, sp, dir, by)
	if c, err = db.Campaign(fmt.Sprint(c.ID)); err != nil { // with the versions that workers have
		return &exitError{exitFault, err}
	}
	switch changed := (*fleet.ChangedError)(nil); {
	case errors.As(served, &changed):
		return s.endMixed(books, c, changed)
	case served != nil:
		return s.broken(served, books, c)
	}
	return s.conclude(db, books, c)
}

// campaign is a new one, or that of --resume.
func (s *campaignServe) campaign(ctx context.Context, db *store.Store, sources []string) (*store.Campaign, *spec, error) {
	if s.again != "" {
		c, err := db.Campaign(s.again)
		if err != nil {
			return nil, nil, usage(err)
		}
		sp, err := decodeSpec(c.Spec)
		if err != nil {
			return nil, nil, &exitError{exitFault, err}
		}
		if sp.Plumb != thisPlumb() && !s.mixed {
			return nil, nil, usage(anotherPlumb(c, sp))
		}
		return c, sp, nil
	}
	s.budget.Clock = s.budget.Time > 0
	sp, err := s.planned(sources)
	if err != nil {
		return nil, nil, err
	}
	if sp.Tags, err = s.tags(sp); err != nil {
		return nil, nil, usage(err)
	}
	if err := sp.addBaselines(); err != nil {
		return nil, nil, usage(err)
	}
	tests, err := sp.tests(ctx, s.plan)
	if err != nil {
		return nil, nil, mistake(err)
	}
	var subjects []store.Subject
	for _, name := range append([]string{sp.Reference}, sp.Candidates...) {
		subjects = append(subjects, store.Subject{Name: name})
	}
	// Which versions of the subjects workers have is not known: no later campaign
	// takes these verdicts for its own.
	unlike := fmt.Sprint(time.Now().UnixNano())
	c, err := s.record(db, sp, sp.parts(tests, func(string) string { return unlike }), subjects)
	return c, sp, err
}

func (s *campaignServe) tags(sp *spec) (map[string][]string, error) {
	out := map[string][]string{}
	for _, n := range s.needs {
		subject, tag, ok := strings.Cut(n, "=")
		if !ok || tag == "" || !slices.Contains(sp.Candidates, subject) {
			return nil, fmt.Errorf("--needs %s: want SUBJECT=TAG with one of the candidates, such as %s=cuda", n, sp.Candidates[0])
		}
		out[subject] = append(out[subject], tag)
	}
	return out, nil
}

// coordinate serves the campaign until it is over.
func (s *campaignServe) coordinate(ctx context.Context, db *store.Store, books *ledger.Ledger, c *store.Campaign, sp *spec, dir string, by fleet.Access) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	go watchStop(ctx, books, stop)
	url := s.nats
	if url == "" {
		server, err := fleet.Listen(s.listen, dir, by)
		if err != nil {
			return usage(err)
		}
		defer server.Close()
		url = server.URL
	}
	var pins *fleet.Pins
	if s.mixed {
		var err error
		if pins, err = fleet.OpenPins(filepath.Join(dir, "pins.json")); err != nil {
			return &exitError{exitFault, err}
		}
	}
	versions, err := fleet.OpenPins(filepath.Join(dir, "versions.json"))
	if err != nil {
		return &exitError{exitFault, err}
	}
	co := &fleet.Coordinator{
		Books: books, Key: fleetKey(c), Plumb: thisPlumb(), Pins: pins, Spec: c.Spec, Subjects: sp.Candidates, Needs: sp.Tags,
		Lease: s.lease, Log: s.say, Counted: s.progress(books), Files: map[string]string{}, Versions: versions, Reference: sp.Reference, Fixed: fixing(books, c, s.say), Again: s.again != "",
	}
	if s.bundles > 0 {
		b := &bundler{campaignServe: s, db: db, books: books, run: c.ID, names: map[int64]string{}}
		co.Findings, co.Bundled = b.findings, b.keep
	}
	for path, digest := range sp.Baselines {
		co.Files[digest] = path
	}
	s.say("campaign %d%s: %s are judged, seed %d; plumb worker --join %s --subjects %s", c.ID, named(c.Name), books.Standing(), sp.Seed, url,
		strings.Join(sp.brought(), ","))
	return co.Run(ctx, url, by)
}

// fleetKey tells a campaign from any other that a server has or had: it stays as it is when
// the coordinator is started again.
func fleetKey(c *store.Campaign) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %s", c.Started.UnixMilli(), c.Spec))
	return fmt.Sprintf("%d-%x", c.ID, sum[:6])
}

// fixing keeps the versions that workers have of a campaign's subjects.
func fixing(books *ledger.Ledger, c *store.Campaign, say func(string, ...any)) func(subject, version string) {
	subjects := slices.Clone(c.Subjects)
	return func(subject, version string) {
		for i := range subjects {
			if subjects[i].Name == subject {
				subjects[i].Version = version
			}
		}
		if err := books.Fix(subjects); err != nil {
			say("%v", err)
		}
	}
}

func anotherPlumb(c *store.Campaign, s *spec) error {
	return fmt.Errorf("campaign %d was begun by Plumb %s, this is %s: two versions may judge differently; begin a new one", c.ID, s.Plumb, thisPlumb())
}

// workerCommand is plumb worker.
type workerCommand struct {
	join     string
	subjects []string
	imports  []string
	tags     []string
	on       local
	giveUp   time.Duration
	access   access
}

func newWorker() *cobra.Command {
	w := &workerCommand{subjects: []string{"native", "torch"}, giveUp: 10 * time.Minute, on: local{jobs: newSubjects().jobs}}
	cmd := &cobra.Command{
		Use:   "worker",
		Short: "Judge units of a campaign that plumb campaign serve coordinates",
		Long: `Worker takes units of a campaign, judges them with the subjects of this machine, and
sends the verdicts. It starts the subjects alone that --subjects names, whatever the
campaign asks for, and ends when the campaign does.`,
		Example: `  plumb worker --join nats://127.0.0.1:4222
  plumb worker --join tls://ci-host:4222 --token-file token --ca ca.pem --subjects torch,torch@cuda --tags cuda`,
		Args: noArguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			w.on.log = cmd.ErrOrStderr()
			return w.run(cmd.Context())
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&w.join, "join", "", "the coordinator's URL")
	fl.StringSliceVar(&w.subjects, "subjects", w.subjects, "the references and candidates that this machine has")
	fl.StringSliceVar(&w.tags, "tags", nil, "what this machine is, for subjects that need it")
	fl.StringSliceVar(&w.imports, "import", nil, "Python modules that a campaign may have torch subjects import")
	pythonFlag(fl, &w.on.python)
	fl.BoolVar(&w.on.sandbox, "sandbox", false, "keep subjects in a sandbox whether or not the campaign asks for it (plumb run --help)")
	jobsFlag(fl, &w.on.jobs, "cases that are judged at the same time")
	fl.Var(timeSpan(&w.giveUp), "give-up", "end when no coordinator has answered for so long")
	fl.Var(inFile(&w.access.token), "token-file", "a file with the coordinator's token")
	fl.Var(inFile(&w.access.ca), "ca", "the certificates that are trusted")
	return cmd
}

func (w *workerCommand) run(ctx context.Context) error {
	if w.join == "" {
		return usage(errors.New("--join is needed: the URL that plumb campaign serve prints"))
	}
	by, err := w.access.read()
	if err != nil {
		return usage(err)
	}
	say := func(format string, args ...any) { fmt.Fprintf(w.on.log, "plumb: "+format+"\n", args...) }
	of := &fleet.Worker{Name: workerName(), Plumb: thisPlumb(), Subjects: w.subjects, Tags: w.tags, GiveUp: w.giveUp, Log: say}
	defer of.Leave()
	text, err := of.Join(ctx, w.join, by)
	if err != nil {
		return workerError(err)
	}
	s, err := decodeSpec(text)
	if err != nil {
		return &exitError{exitFault, err}
	}
	if err := w.allows(s); err != nil {
		return usage(err)
	}
	dir, err := w.takeBaselines(ctx, of, s)
	if err != nil {
		return workerError(err)
	}
	defer scratch.Remove(dir) //nolint:errcheck // the next start removes it
	if of.Versions, err = w.versions(ctx, of, s); err != nil {
		return err
	}
	ended, err := of.Ended(ctx) // which may refuse them
	if err != nil {
		return workerError(err)
	}
	if ended {
		say("the campaign has ended")
		return nil
	}
	did, err := w.labour(ctx, of, s)
	if err != nil {
		return workerError(err)
	}
	say("the campaign has ended; %s judged here", count(did, "case"))
	return nil
}

func workerError(err error) error {
	var no *fleet.RefusedError
	if errors.As(err, &no) || errors.Is(err, context.Canceled) {
		return cmp.Or[error](asUsage(no), errInterrupted)
	}
	return harness(err)
}

func asUsage(no *fleet.RefusedError) error {
	if no == nil {
		return nil
	}
	return usage(no)
}

// allows says whether the campaign asks for nothing but what this worker names.
func (w *workerCommand) allows(s *spec) error {
	if !slices.Contains(w.subjects, s.Reference) && !s.sent(s.Reference) {
		return fmt.Errorf("the campaign's reference is %s; this worker has --subjects %s", s.Reference, strings.Join(w.subjects, ","))
	}
	for _, module := range s.Flags["import"] {
		if !slices.Contains(w.imports, module) {
			return fmt.Errorf("the campaign has subjects import %s; this worker allows that with --import %s", module, module)
		}
	}
	return nil
}

// versions are those of the subjects that the worker is to start.
func (w *workerCommand) versions(ctx context.Context, of *fleet.Worker, s *spec) (map[string]string, error) {
	p := w.plan(s)
	out := map[string]string{}
	for _, name := range append([]string{s.Reference}, of.Serves()...) {
		if _, known := out[name]; known || s.sent(name) {
			continue
		}
		_, is, err := p.abouts(ctx, []string{name})
		if err != nil {
			return nil, err
		}
		out[name] = publicVersion(is[0].Version)
	}
	return out, nil
}

// labour judges units until the campaign has ended, and returns how many cases.
func (w *workerCommand) labour(ctx context.Context, of *fleet.Worker, s *spec) (did int, err error) {
	for {
		idle := true
		for _, candidate := range of.Serves() {
			n, err := w.candidate(ctx, of, s, candidate)
			if did += n; n > 0 && err == nil {
				err = w.same(ctx, of, s)
			}
			if err != nil {
				return did, err
			}
			idle = idle && n == 0
		}
		if !idle {
			continue
		}
		if n, err := w.findings(ctx, of, s); n > 0 || err != nil {
			if err != nil {
				return did, err
			}
			continue
		}
		if ended, err := of.Ended(ctx); ended || err != nil {
			return did, err
		}
	}
}

// same tells the coordinator where a subject is not what it was when the worker came, which
// refuses it then.
func (w *workerCommand) same(ctx context.Context, of *fleet.Worker, s *spec) error {
	changed, err := w.plan(s).changed(ctx, of.Versions)
	if changed == nil || err != nil {
		return err
	}
	of.Versions[changed.Subject] = changed.Is
	_, err = of.Ended(ctx)
	return err
}

// plan is that of the worker's subjects.
func (w *workerCommand) plan(s *spec) *plan {
	_, p := newCampaignPlan()
	p.subjects.python, p.subjects.imports, p.subjects.sandbox = w.on.python, s.Flags["import"], w.on.sandbox
	return p
}

// How long a worker waits for units, and how long it would have those it takes
// last, so that the last of a campaign are judged by many.
const (
	patience  = time.Second
	goodRound = 5 * time.Second
)

// turn is how long a worker judges one of so many candidates before it looks whether
// another has units: of a budget by the clock none of them runs out.
func (s *spec) turn(candidates int) time.Duration {
	if !s.Budget.Clock || candidates < 2 {
		return math.MaxInt64
	}
	return min(s.Budget.Time/time.Duration(4*candidates), 5*time.Minute)
}

// candidate judges units of one candidate while there are some.
func (w *workerCommand) candidate(ctx context.Context, of *fleet.Worker, s *spec, candidate string) (did int, err error) {
	most := 2 * w.on.jobs
	units, err := of.Take(ctx, candidate, most, patience)
	if err != nil || len(units) == 0 {
		return 0, err
	}
	l, err := newApart(s, candidate, w.on)
	if err != nil {
		return 0, err
	}
	turn := s.turn(len(of.Serves()))
	began, until := time.Now(), time.Now().Add(turn)
	var failed error
	l.next = func() []ledger.Unit {
		if first := units; first != nil {
			units = nil
			return first
		}
		if time.Now().After(until) {
			return nil
		}
		if took := time.Since(began); took < goodRound/2 {
			most = min(2*most, 64*w.on.jobs)
		} else if took > goodRound {
			most = max(most/2, w.on.jobs)
		}
		var next []ledger.Unit
		next, failed = of.Take(ctx, candidate, most, patience)
		began = time.Now()
		return next
	}
	l.done = func(r ledger.Result) error {
		did += r.Judged + r.Rejected
		return of.Done(ctx, r)
	}
	err = l.work(ctx)
	return did, errors.Join(err, failed)
}
