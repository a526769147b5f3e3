// Package onekernel judges one kernel: a function of a user's, in any form that the
// worker's plumb_forms.py loads, against a function that it should equal. It draws
// calls, runs each on the kernel first and then, in a process that the kernel never
// saw, on the reference, and says what is wrong, by which evidence, and the smallest
// call that shows it.
package onekernel

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"time"

	"plumb/backend"
	"plumb/backend/worker"
	"plumb/internal/judge"
	"plumb/internal/judge/verdict"
	"plumb/nn"
	"plumb/op"
	"plumb/ops"
	"plumb/program"
	"plumb/tensor"
)

// Config says what to judge by what.
type Config struct {
	Kernel Source
	// Against is a public name of PyTorch, or, where Reference is set, what its
	// function is called in reports.
	Against   string
	Reference *Source
	// Inputs are the arguments of both where they do not follow from an operator of
	// the table; nil for that, or for those of the reference's examples.
	Inputs *Signature
	Fixed  map[string]any // of the reference's parameters that the kernel lacks
	Promises
	Python  string
	Seed    uint64
	Cases   int                               // drawn at most
	Budget  time.Duration                     // after which no further case is begun
	Timeout time.Duration                     // of a case
	Memory  int64                             // bytes of address space of the kernel's process; 0 for no limit
	YAML    func(text []byte, into any) error // decodes a task.yml
	// Precision is what the kernel says of its arithmetic, "" for Full, and HalfSums
	// that it sums in its dtype where that is a half one.
	Precision Precision
	HalfSums  bool
	// Deterministic makes a finding of results whose bits differ between equal calls.
	Deterministic bool
	// NoFallback makes a finding of delegation.
	NoFallback bool
	// Time measures a kernel that is found right.
	Time bool
	// NoSandbox leaves the kernel's process what its user may do.
	NoSandbox bool
	// Own is the processor time of this process, where Budget counts it too; nil where
	// others share the process.
	Own func() time.Duration
	// Told is called after each case, where it is set, with its line.
	Told func(line string)
}

// host is a worker with a function in it.
type host struct {
	*worker.Worker
	spec map[string]any
}

// describe is what a worker tells of its function.
type described struct {
	Parameters  []parameter     `json:"parameters"`
	Takes       []*string       `json:"takes"`
	Destination bool            `json:"destination"`
	DTypes      []string        `json:"dtypes"`
	Contiguous  bool            `json:"contiguous"`
	Evidence    [][2]string     `json:"evidence"`
	Examples    []exampleInput  `json:"examples"`
	Init        json.RawMessage `json:"init"`
	State       []stateEntry    `json:"state"`
	Sizes       map[string]int  `json:"sizes"`
	Hoisted     bool            `json:"hoisted"`  // of these, which the file has no names for
	Mistake     string          `json:"mistake"`  // of who names the function
	Failed      string          `json:"failed"`   // what its import raised
	Compiles    bool            `json:"compiles"` // something that may be at work in a first call
	Marks       bool            `json:"marks"`    // it may read what tells Triton's interpreter
	Asks        bool            `json:"asks"`     // it may look for who judges it
	Ends        bool            `json:"ends"`     // it may leave something to the end of its process
	Threads     bool            `json:"threads"`  // it is native code that has threads at work
}

type parameter struct {
	Name     string `json:"name"`
	Keyword  bool   `json:"keyword"` // only
	Required bool   `json:"required"`
}

// openHost starts a process that hosts a function; folder is where a kernel builds.
func openHost(ctx context.Context, c *Config, spec map[string]any, folder string, more ...string) (*host, error) {
	text, err := json.Marshal(spec)
	if err != nil {
		return nil, err
	}
	env := append(append(environment(), c.preparing()...), "PLUMB_WORKER_KERNEL="+string(text))
	w, err := worker.Open(ctx, worker.Config{
		Python: c.Python, CaseTimeout: cmp.Or(c.Timeout, time.Minute), MemoryLimit: c.Memory, Folder: folder, Secret: true,
		Env: append(env, more...),
	})
	if err != nil {
		return nil, err
	}
	return &host{w, spec}, nil
}

// environment is that of every process which hosts a kernel: new memory is poisoned, and
// Triton interprets.
func environment() []string { return []string{"MALLOC_PERTURB_=129", "TRITON_INTERPRET=1"} }

func (h *host) ask(ctx context.Context, request, answer any) error {
	return h.Ask(ctx, "kernel", request, answer)
}

// observed is what a worker saw of a call.
type observed struct {
	Evidence  [][2]string `json:"evidence"`
	Operators []string    `json:"operators"`    // that compute, sorted
	Shares    []int       `json:"shares"`       // the arguments in whose memory a result is
	Copied    bool        `json:"copied"`       // its results have the gradient of a copy
	Foreign   bool        `json:"foreign"`      // something beside PyTorch has computed, so far
	Formulas  bool        `json:"formulas"`     // it states gradients itself
	Launches  int         `json:"launches"`     // of kernels in Triton, so far
	Builds    string      `json:"builds"`       // what tried to build in the call, if anything
	Programs  int         `json:"programs"`     // of those of the last call, or that it had room for
	Work      int         `json:"work"`         // of Triton's interpreter in the last call
	All       int         `json:"all_programs"` // of those that its last launch has
	Threads   bool        `json:"threads"`      // whether the call had several
	Elements  int         `json:"elements"`     // that its operators gave
}

// Session judges one kernel.
type Session struct {
	cfg       *Config
	kernel    *host
	reference *host
	info      string // the reference's name and version
	judge     *judge.Judge
	table     *op.Table
	maker     *maker
	params    []string // of the reference, by which the kernel's are known; nil where their order tells
	traced    *traced
	pointwise bool      // the reference is a function of each element
	contracts bool      // it is a product of matrices, or a convolution
	rounds    bool      // it does more than move elements
	told      described // by the kernel's process
	refTold   described // by the reference's
	outcomes  []*result
	detached  bool // the kernel has no gradients, and says none
	findings  []finding
	start     time.Time
	startup   time.Duration // of the reference's process
	untraced  map[string]int
	work      int    // of Triton's interpreter so far
	task      *task  // nil where there is none
	folder    string // of the task's copies
	refuses   string // what the reference said last to a call that it does not take
	sandbox   sandbox
	notes     []string
	timing    *Timing  // nil where nobody asks
	hung      bool     // it has given no answer once
	thawed    bool     // it computes by gradients itself: no call is made under no_grad
	changed   []string // the arguments that the reference changes
	thaws     int      // calls that were refused and made again without no_grad
	aligned   bool     // the kernel dies where its arguments are less aligned than PyTorch's
	// remembered says whether a repeated wrong result is one that the kernel kept; nil until
	// it is known.
	remembered *bool
	earlier    map[string]uint64 // by the hash of a result that is not one number, the key of the case that gave it
}

// result is a case that was judged.
type result struct {
	*Case
	verdict  *verdict.Verdict
	seen     observed
	refSeen  observed
	kernel   *backend.Outcome
	ref      *backend.Outcome
	problems []finding
	slack    float64 // times a limit that a difference may be
	// misaligned says that the results differ by more than a kernel may be off.
	misaligned bool
	viewed     string // what is said of its results' memory, if anything
	chosen     bool   // by a reference that takes other elements than it did
	undecided  bool   // and has the other side of near decisions in its bounds
	outgrown   bool   // what differs are sums of products without error bounds
}

// errNothing says that a kernel cannot be judged at all.
type errNothing struct{ reason string }

func (e *errNothing) Error() string { return e.reason }

// target is the name by which programs call the function.
func (c *Config) target() string {
	if c.Reference != nil {
		return program.OwnPrefix + "kernel"
	}
	return c.Against
}

// Judge judges a kernel. The error is a *Mistake of who asks, or a fault of the harness.
func Judge(ctx context.Context, cfg Config) (*Report, error) {
	s := &Session{cfg: &cfg, start: time.Now(), untraced: map[string]int{}, earlier: map[string]uint64{}}
	defer s.close()
	err := s.open(ctx)
	var nothing *errNothing
	switch {
	case errors.As(err, &nothing):
		return s.nothing(nothing.reason), nil
	case err != nil:
		return nil, err
	}
	if err = s.run(ctx); err == nil {
		s.views()
		err = s.counted(ctx)
	}
	if errors.As(err, &nothing) {
		return s.nothing(nothing.reason), nil
	}
	if err != nil {
		return nil, err
	}
	for _, step := range []func(context.Context) error{s.offUnit, s.widened, s.trained, s.opcheck, s.time, s.compile, s.unmarked, s.behaving, s.seeing, s.finishes} {
		if err := step(ctx); err != nil {
			return nil, err
		}
	}
	return s.report(ctx)
}

func (s *Session) close() {
	if s.kernel != nil {
		s.kernel.Close()
	}
	if s.reference != nil {
		s.reference.Close()
	}
	if s.folder != "" {
		os.RemoveAll(s.folder)
	}
	s.sandbox.remove()
}

// open starts the kernel's process, then the reference's, and says what is drawn.
func (s *Session) open(ctx context.Context) error {
	c := s.cfg
	if err := s.layOut(); err != nil {
		return err
	}
	var literal *Literal
	spec := c.Kernel.spec("candidate", c.target())
	if c.Reference == nil {
		d, err := Choose(ops.Table(), c.Against)
		if err != nil && c.Inputs == nil {
			return &Mistake{err}
		}
		if err == nil {
			s.pointwise, s.contracts, s.rounds = d.ScalarFunction(), d.Traits.Has(op.Contraction), computing(d)
			if c.Inputs != nil {
				c.Inputs.byKeyword(d.Called(c.Against).Params)
			}
		}
		if c.Inputs == nil {
			literal = &Literal{Table: ops.Table(), Def: d, Target: c.Against, Fixed: c.Fixed}
			spec["fixed"] = slices.Collect(maps.Keys(c.Fixed))
		}
	}
	if literal != nil {
		s.params, spec["tensors"], spec["required"] = literal.Params()
	}
	if c.Inputs != nil {
		s.params, spec["tensors"], spec["required"] = c.Inputs.names()
		spec["sizes"] = c.Inputs.places()
	}
	spec["params"], spec["reference"] = s.params, digest(c.Reference, &c.Kernel)
	var err error
	if err := s.sandbox.make(c); err != nil {
		return err
	}
	if s.kernel, err = openHost(ctx, c, spec, s.sandbox.folder); err != nil {
		return err
	}
	if err := s.describe(ctx); err != nil {
		return err
	}
	if err := s.openReference(ctx); err != nil {
		return err
	}
	s.maker = &maker{seed: c.Seed, target: c.target(), promises: c.Promises, threads: s.told.Threads}
	if s.told.Destination && c.Promises.Grad == nil { // which PyTorch does not differentiate
		s.maker.promises.Grad = new(bool)
		s.note("no gradients: the kernel writes to memory that it is given")
	}
	if literal != nil {
		literal.Needs = map[string]bool{}
		own := s.told.own()
		for i, name := range s.told.Takes {
			if name != nil {
				literal.Takes = append(literal.Takes, *name)
				literal.Needs[*name] = own[i].Required
			}
		}
		s.maker.signature, s.maker.legal = literal.Draw, func(p *program.Program) bool { return Legal(ops.Table(), p) }
	}
	if c.Inputs != nil {
		s.maker.signature = c.Inputs.fixed
	}
	if s.maker.signature == nil {
		if err := s.examples(ctx); err != nil {
			return err
		}
	}
	return s.settle(literal)
}

// describe asks the kernel's process what the kernel is.
func (s *Session) describe(ctx context.Context) error {
	err := s.load(ctx, &s.told)
	var lost *worker.Lost
	switch {
	case errors.Is(err, worker.ErrOrphaned):
		return err
	case errors.As(err, &lost):
		return &errNothing{"the process ended while the kernel was loaded: " + lost.Message}
	case err != nil:
		return &errNothing{"the kernel could not be loaded: " + err.Error()}
	case s.told.Mistake != "":
		return &Mistake{errors.New(s.told.Mistake)}
	}
	for _, e := range s.told.Evidence {
		s.add(finding{Kind: e[0], Text: e[1]})
	}
	if s.told.Failed != "" {
		return &errNothing{"the kernel could not be loaded: " + withFix(s.told.Failed)}
	}
	return nil
}

func (s *Session) openReference(ctx context.Context) error {
	c := s.cfg
	of := Source{Form: "operator", Name: c.Against}
	if c.Reference != nil {
		of = *c.Reference
	}
	spec := of.spec("reference", c.target())
	if c.Reference != nil && c.Inputs != nil {
		spec["params"], spec["tensors"], spec["required"] = c.Inputs.names()
	}
	began := time.Now()
	h, err := openHost(ctx, c, spec, "")
	if err != nil {
		return err
	}
	s.reference, s.info, s.startup = h, "torch "+h.Info().Version, time.Since(began)
	if err := h.ask(ctx, map[string]any{"describe": nil}, &s.refTold); err != nil {
		return &Mistake{fmt.Errorf("the reference %s: %w", cmp.Or(of.File, of.Name), err)}
	}
	if s.refTold.Mistake != "" {
		return &Mistake{errors.New("--against: " + s.refTold.Mistake)}
	}
	if s.refTold.Failed != "" {
		return &Mistake{fmt.Errorf("the reference %s: %s", cmp.Or(of.File, of.Name), withFix(s.refTold.Failed))}
	}
	return nil
}

// settle says in which dtypes cases are drawn, and makes the judge.
func (s *Session) settle(literal *Literal) error {
	c := s.cfg
	p := &s.maker.promises
	if p.DTypes == nil {
		p.DTypes = []tensor.DType{tensor.F32, tensor.F16, tensor.F64, tensor.BF16}
	}
	if s.told.DTypes != nil {
		var own []tensor.DType
		for _, name := range s.told.DTypes {
			if dt, err := tensor.ParseDType(name); err == nil && dt.IsFloat() {
				own = append(own, dt)
			}
		}
		if p.DTypes = own; len(own) == 0 { // it is of integers
			p.DTypes = []tensor.DType{tensor.F32}
		}
	}
	if s.told.Contiguous && p.Layouts == nil {
		p.Layouts = []Layout{Contiguous}
	}
	if s.cfg.Kernel.Form == "library" && p.Grad == nil {
		no := false
		p.Grad = &no
	}
	var err error
	if s.table, err = op.NewTable(lenient()...); err != nil {
		return err
	}
	if c.Reference != nil {
		s.traced = &traced{id: "kernel", known: map[string]*recording{}}
	}
	s.judge = s.newJudge()
	return nil
}

func (s *Session) newJudge() *judge.Judge {
	return judge.New(judge.Config{
		Table: s.table, Modules: nn.Modules(), Reference: s.info, CanAskReference: true, Oracle: judge.OnMismatch, Memory: 1 << 30,
	})
}

// names are the parameters of a declared signature.
func (sig *Signature) names() (all, tensors []string, required int) {
	for _, a := range sig.Args {
		all = append(all, a.Name)
		if len(a.Inputs) > 0 {
			tensors = append(tensors, a.Name)
		}
	}
	return all, tensors, len(all)
}

// places says of which argument and axis a symbol is the size.
func (sig *Signature) places() map[string][2]any {
	found := map[string][2]any{}
	for _, in := range sig.Inputs {
		for axis, d := range in.Dims {
			if name, ok := d.alone(); ok {
				found[name] = [2]any{in.Name, axis}
			}
		}
	}
	return found
}

// learn has the reference traced for a case; the first trace gives the judge an
// operator to go by.
func (s *Session) learn(ctx context.Context, c *Case) error {
	if s.traced == nil {
		return nil
	}
	if s.traced.context = ""; s.maker.form != nil {
		s.traced.context = c.context()
	}
	n, err := s.traced.learn(ctx, s.reference.ask, c.program)
	if err != nil {
		s.untraced[err.Error()]++
		return nil
	}
	if s.table.Def(s.traced.id) != nil {
		return nil
	}
	def, err := s.traced.def(c.sig, n)
	if err != nil {
		s.untraced[err.Error()]++
		return nil
	}
	table, err := op.NewTable(append(lenient(), def)...)
	if err != nil {
		return err
	}
	s.table = table
	s.judge = s.newJudge()
	return nil
}

// lenient are the operators as a kernel is judged by them: a zero may have either
// sign, which is told nowhere but by what is computed from it.
func lenient() []*op.Def {
	var all []*op.Def
	for _, d := range ops.Table().Defs() {
		own := *d
		own.Tol.AnyZero = true
		all = append(all, &own)
	}
	return all
}

// run judges cases until there are enough, or the time is spent.
func (s *Session) run(ctx context.Context) error {
	for i, warm := 0, false; i < s.cfg.Cases && !s.late(i); i++ {
		if s.worked(1) && i >= always || s.worked(overdrawn) {
			s.note(fmt.Sprintf("%d of %d calls were made: Triton's interpreter takes long for one", i, s.cfg.Cases))
			break
		}
		c, err := s.trial(ctx, i)
		if err != nil {
			return err
		}
		if c == nil {
			continue
		}
		if s.enough() {
			break
		}
		next := after(i, c)
		if !warm {
			next, warm = s.warming(c)
		}
		for _, n := range next {
			if s.enough() || s.late(i) || n > fewTwins && s.worked(twinned) {
				break
			}
			t, err := s.maker.twin(c, n)
			if err == nil {
				_, err = s.keep(ctx, t)
			}
			if err != nil {
				return err
			}
		}
		if s.enough() {
			break
		}
	}
	return nil
}

// late reports whether the time for further calls is over at case i: half of it where many have
// failed, or some of a model's.
func (s *Session) late(i int) bool {
	budget := s.cfg.Budget
	if s.launches() {
		budget -= compiling
	}
	model := s.maker.form != nil && s.failing() >= deadly
	if model || s.failing() >= plenty {
		budget /= 2
	}
	return s.cfg.Budget > 0 && s.spent() > budget && (i >= always || model)
}

// trial draws case i and runs it; nil where it is not judged. One of the first draws that the reference refuses in
// another dtype is made in the first instead.
func (s *Session) trial(ctx context.Context, i int) (*Case, error) {
	dtypes := []tensor.DType{s.maker.dtype(i)}
	if plain := s.maker.promises.DTypes[0]; i < len(first) && plain != dtypes[0] {
		dtypes = append(dtypes, plain)
	}
	if i < len(first) && first[i].size == single {
		dtypes = append(dtypes, dtypes[0])
	}
	for _, dt := range dtypes {
		c, err := s.maker.draw(i, dt)
		if err != nil {
			s.untraced["not drawn: "+err.Error()]++
			continue
		}
		kept, err := s.keep(ctx, c)
		if kept || err != nil {
			return c, err
		}
		s.maker.several = s.maker.several || i < len(first) && first[i].size == single
	}
	return nil, nil
}

// keep runs a case and keeps what came of it, if the reference takes it.
func (s *Session) keep(ctx context.Context, c *Case) (bool, error) {
	if s.detached {
		s.withoutGradients(c)
	}
	r, err := s.one(ctx, c)
	if r != nil {
		s.outcomes = append(s.outcomes, r)
		if s.cfg.Told != nil {
			s.cfg.Told(r.line())
		}
		if err == nil && c.Grad && r.kernel.Status == backend.Raised && r.kernel.Call == len(c.program.Calls) {
			plain := *c // what its result was is not known
			plain.program = c.program.Clone()
			s.withoutGradients(&plain)
			return s.keep(ctx, &plain)
		}
	}
	return r != nil, err
}

// one runs a case on the kernel, then on the reference, and judges; nil where the
// reference refuses too.
func (s *Session) one(ctx context.Context, c *Case) (*result, error) {
	r := &result{Case: c, slack: s.cfg.slack(c)}
	job := backend.NewJob(c.program)
	refused, err := s.shape(ctx, c)
	if err != nil {
		return nil, err
	}
	if r.kernel = refused; refused == nil {
		if r.kernel, r.seen, err = s.tryKernel(ctx, c, job); err != nil {
			return nil, err
		}
		if r.kernel, r.seen, err = s.thaw(ctx, c, job, r.kernel, r.seen); err != nil {
			return nil, err
		}
	}
	if r.ref, r.refSeen, err = s.tryReference(ctx, job); err != nil {
		return nil, err
	}
	s.work += r.seen.Work
	if text, slow := r.seen.slow(); slow {
		narrowed := s.maker.narrow(c)
		if !narrowed {
			s.maker.slowed(c, r.seen.Programs, r.seen.All)
		}
		if narrowed || s.maker.lighten(c, r.seen.Programs, r.seen.All) {
			return s.one(ctx, c)
		}
		s.note("a call was not judged: " + text)
		return nil, nil
	}
	s.maker.learn(c, r.seen.Programs)
	c.work = r.seen.Work
	if s.maker.shrink(c, r) {
		return s.one(ctx, c)
	}
	if r.recorded() { // what the kernel's operators gave in others is not known
		s.maker.counts(c, r.computes())
	}
	if c.Grad && s.cfg.Promises.Grad == nil && changesLeaf(r.ref) {
		no := false
		s.maker.promises.Grad = &no
		s.withoutGradients(c)
		s.note("no gradients: the reference changes an argument in place, which PyTorch does not differentiate there")
		return s.one(ctx, c)
	}
	switch plain, err := s.gradless(ctx, c, r.ref); {
	case err != nil:
		return nil, err
	case plain:
		return s.one(ctx, c)
	}
	beyond := r.ref.Status != backend.OK || r.dividesByNothing()
	if p, ok := s.maker.form.(*problem); ok {
		if beyond {
			if inOrder, err := p.order(ctx, c); err != nil {
				return nil, err
			} else if inOrder {
				return s.one(ctx, c)
			}
		}
		none, err := p.beyond(ctx, c, r.ref)
		if err != nil {
			return nil, err
		}
		beyond = beyond || none
	}
	if beyond {
		s.refuses = r.ref.Message
		return nil, s.forget(ctx, r.seen)
	}
	s.maker.reduces(c, r.ref)
	if s.task != nil {
		r.withoutOutputs()
	}
	if err := s.learn(ctx, c); err != nil {
		return nil, err
	}
	if s.coarser(c) || s.sorts(c) {
		return nil, nil
	}
	again, err := s.gradients(ctx, c, r)
	if err != nil {
		return nil, err
	}
	if again || s.unfolds(r) || s.parted(c, r) {
		return s.one(ctx, c)
	}
	job = backend.NewJob(c.program) // without gradients by now, maybe
	r.evenSeconds()
	r.verdict, err = s.judge.Unless(ctx, r.bounded, job, r.ref, r.kernel, s.asks)
	if err != nil {
		return nil, err
	}
	if s.stretched(ctx, r) {
		return nil, nil
	}
	if err := s.sumsInHalf(ctx, r, job); err != nil {
		return nil, err
	}
	if err := s.weigh(ctx, r, job); err != nil || !s.cfg.Deterministic {
		return r, err
	}
	return r, s.repeat(ctx, r)
}
