package command

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/klauspost/compress/zstd"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"plumb/backend/open"
	"plumb/internal/campaign"
	"plumb/internal/campaign/ledger"
	"plumb/internal/campaign/store"
	"plumb/internal/conform/config"
	"plumb/internal/conform/diopi"
	"plumb/internal/judge"
	"plumb/program"
	"plumb/suites"
)

// spec is all that says what a campaign judges, and how: who has it judges the
// same, on another machine too. It holds texts alone.
type spec struct {
	Plumb      string              `json:"plumb"` // build
	Sources    []string            `json:"sources"`
	Files      []specFile          `json:"files"`
	Modules    []specFile          `json:"modules,omitempty"` // that the files import, and conftest.py
	Configs    []specFile          `json:"configs,omitempty"` // of conformance
	Seed       uint64              `json:"seed"`
	Reference  string              `json:"reference"`
	Candidates []string            `json:"candidates"`
	Flags      map[string][]string `json:"flags"`
	Settings   map[string]string   `json:"settings"`
	Known      string              `json:"known,omitempty"` // the list of accepted failures
	Tags       map[string][]string `json:"tags,omitempty"`  // that a machine needs, by subject
	Budget     ledger.Budget       `json:"budget,omitzero"` // instead of a number of cases for each test
	// Baselines are the files of recorded results that the coordinator sends: the SHA-256
	// of each, by its path there.
	Baselines map[string]string `json:"baselines,omitempty"`

	// Places are where tests of files stand.
	Places map[string]testPlace `json:"places,omitempty"`

	planned bool                // here and now: modules are read
	uses    map[string][]string // paths of modules, by the file that imports them
	notes   []string            // on the files
}

// specFile is a test file or a saved program.
type specFile struct {
	Name string `json:"name"`
	Text string `json:"text"`
}

// specFlags are the flags that a spec keeps as they are.
var specFlags = []string{"import", "device", "device-strict", "number", "shapes", "dtype", "tolerance", "check-graph", "memory", "sandbox"}

// maxSpecText bounds a spec that is read.
const maxSpecText = 1 << 30

func (s *spec) encode() ([]byte, error) {
	text, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	w, err := zstd.NewWriter(nil)
	if err != nil {
		return nil, err
	}
	defer w.Close()
	return w.EncodeAll(text, nil), nil
}

func decodeSpec(data []byte) (*spec, error) {
	r, err := zstd.NewReader(nil, zstd.WithDecoderMaxMemory(maxSpecText), zstd.WithDecoderConcurrency(1))
	if err != nil {
		return nil, err
	}
	defer r.Close()
	text, err := r.DecodeAll(data, nil)
	if err != nil {
		return nil, fmt.Errorf("what the campaign judges cannot be read: %w", err)
	}
	s := &spec{}
	return s, json.Unmarshal(text, s)
}

// thisPlumb is the build of this program, or its version where it has no file.
func thisPlumb() string {
	if text, err := build(); err == nil {
		return text
	}
	return plumbVersion()
}

// plan is a campaign as its flags say it.
type plan struct {
	*session
	cmd    *cobra.Command
	strict *judge.Judge // once its subjects are open
}

// planFlags adds the flags that say what a campaign judges.
func (p *plan) flags(cmd *cobra.Command) {
	p.cmd = cmd
	group(cmd, whichCases, func(fl *pflag.FlagSet) {
		p.cases.register(fl)
		p.cases.registerDTypes(fl)
	})
	p.subjects.register(cmd)
	group(cmd, whichSubjects, func(fl *pflag.FlagSet) {
		fl.StringVar(&p.subjects.device, "device", p.subjects.device, "the device that random_device() gives")
		fl.BoolVar(&p.cases.strict, "device-strict", false, "tests that name an accelerator, such as \"cuda\", are unsupported in a run without it; without the flag they run on the CPU, with a note")
	})
	p.judging.register(cmd)
}

// campaignKeys are the settings of campaigns.
var campaignKeys = []string{"oracle", "exceptions", "timeout", "growth", "tensor.max"}

func newPlan() *plan {
	s := &session{subjects: newSubjects(), judging: judging{settings: newSettings(campaignKeys), memory: 1 << 30}}
	s.judging.power, s.judging.shrink.Runs = 0, 0
	return &plan{session: s}
}

// spec says what the flags and the sources say.
func (p *plan) spec(sources []string) (*spec, error) {
	if err := p.subjects.overRanks(); err != nil {
		return nil, err
	}
	for i, name := range p.subjects.candidates {
		if slices.Contains(p.subjects.candidates[:i], name) {
			return nil, usage(fmt.Errorf("--candidate %s is given twice", name))
		}
	}
	if err := p.judging.settle(p.judging.known, p.subjects.specs()...); err != nil {
		return nil, err
	}
	p.cases.settle(nil)
	s := &spec{
		Plumb: thisPlumb(), Sources: sources, Seed: p.cases.seed, Candidates: p.subjects.candidates, Reference: p.subjects.specs()[len(p.subjects.candidates)],
		Flags: map[string][]string{}, Settings: map[string]string{}, Tags: map[string][]string{}, planned: true,
	}
	for _, name := range specFlags {
		f := p.cmd.Flags().Lookup(name)
		list, isList := f.Value.(pflag.SliceValue)
		switch {
		case !f.Changed:
		case isList:
			s.Flags[name] = list.GetSlice()
		default:
			s.Flags[name] = []string{f.Value.String()}
		}
	}
	for key := range p.judging.given {
		s.Settings[key] = p.judging.row(key).value.String()
	}
	if err := p.addKnown(s); err != nil {
		return nil, err
	}
	return s, s.addFiles()
}

// addKnown takes the list of accepted failures.
func (p *plan) addKnown(s *spec) error {
	path := p.judging.known
	if path == "none" {
		return nil
	}
	given := path != ""
	if !given {
		path = defaultKnown
	}
	text, err := readRegular(path)
	if errors.Is(err, os.ErrNotExist) && !given {
		return nil
	}
	if err != nil {
		return usage(err)
	}
	if _, err := readKnown(path); err != nil {
		return usage(err)
	}
	s.Known = string(text)
	return nil
}

// addFiles reads the files of the sources.
func (s *spec) addFiles() error {
	var files []string
	for _, source := range s.Sources {
		switch kind, rest := sourceKind(source); kind {
		case fileSource:
			files = append(files, source)
		case conformSource:
			if err := s.addConfig(rest); err != nil {
				return usage(err)
			}
		case suitesSource:
			for _, f := range suites.Files() {
				s.Files = append(s.Files, specFile{f.Name, string(f.Source)})
			}
		}
	}
	names, notes, err := withinFolders(files)
	if err != nil {
		return usage(err)
	}
	s.notes = append(s.notes, notes...)
	for _, name := range names {
		text, err := readSource(name)
		if err != nil {
			return usage(err)
		}
		s.Files = append(s.Files, specFile{filepath.ToSlash(name), string(text)})
	}
	return nil
}

// addConfig reads a conformance config, or takes the shipped one for "".
func (s *spec) addConfig(path string) error {
	var args []string
	if path != "" {
		args = []string{path}
	}
	_, text, err := configSource(args)
	s.Configs = append(s.Configs, specFile{cmp.Or(filepath.ToSlash(path), string(conformSource)), string(text)})
	return err
}

// conformTests are the cases of a config as they are, a test for each function. What has
// no program is left out.
func conformTests(f specFile, seed uint64) ([]campaign.Test, error) {
	c, err := config.Load(f.Name, []byte(f.Text))
	if err != nil {
		return nil, err
	}
	var names []string
	cases := map[string][]*program.Program{}
	for one := range c.Cases() {
		p, err := diopi.Program(one, seed)
		if none := (*diopi.Untranslated)(nil); errors.As(err, &none) {
			continue
		}
		if err != nil {
			return nil, err
		}
		name := f.Name + "::" + one.Function
		if cases[name] == nil {
			names = append(names, name)
		}
		cases[name] = append(cases[name], p)
	}
	var tests []campaign.Test
	for _, name := range names {
		of := cases[name]
		tests = append(tests, campaign.Test{Name: name, N: len(of), Fixed: true, Draw: func(index int, _ campaign.Observer) (*program.Program, error) { return of[index], nil }})
	}
	return tests, nil
}

// restore gives a plan what a spec says, for one of its candidates.
func (s *spec) restore(p *plan, candidate string) error {
	for name, values := range s.Flags {
		f := p.cmd.Flags().Lookup(name)
		if f == nil || !slices.Contains(specFlags, name) {
			return fmt.Errorf("the campaign has a flag --%s, which this Plumb does not know", name)
		}
		if list, ok := f.Value.(pflag.SliceValue); ok {
			if err := list.Replace(values); err != nil {
				return err
			}
			continue
		}
		if len(values) != 1 {
			return fmt.Errorf("the campaign has %d values of --%s", len(values), name)
		}
		if err := p.cmd.Flags().Set(name, values[0]); err != nil {
			return err
		}
	}
	for key, value := range s.Settings {
		p.judging.from[key] = "the campaign" // for all of its candidates
		if err := p.judging.settings.Set(key + "=" + value); err != nil {
			return err
		}
	}
	seed := s.Seed
	p.cases.given, p.cases.seed = &seed, s.Seed
	p.subjects.reference, p.subjects.candidates, p.subjects.ranks = s.Reference, []string{candidate}, nil
	p.judging.known = "none"
	return nil
}

// tests are those of the spec, in its order. A plan that has not opened its
// subjects knows their names and numbers, and cannot draw.
func (s *spec) tests(ctx context.Context, p *plan) ([]campaign.Test, error) {
	if p.cases.sigs == nil {
		p.cases.sigs = &signatures{}
	}
	var out []campaign.Test
	p.cases.read, s.uses, s.Places = s.module, map[string][]string{}, map[string]testPlace{}
	for _, f := range s.Files {
		l, err := p.cases.file(f.Name, []byte(f.Text))
		if err != nil {
			return nil, err
		}
		s.uses[f.Name] = l.imports
		s.notes = append(s.notes, l.notes...)
		if n := len(l.skipped); n > 0 {
			s.notes = append(s.notes, fmt.Sprintf("%s:%d: left out: %s, %s", f.Name, l.skipped[0].Line, count(n, "test"), l.skipped[0].Skip))
		}
		for name, t := range l.defined {
			s.Places[name] = testPlace{t.Line, t.OfOneFlow()}
		}
		out = append(out, l.tests...)
	}
	for _, f := range s.Configs {
		tests, err := conformTests(f, s.Seed)
		if err != nil {
			return nil, err
		}
		out = append(out, tests...)
	}
	for _, source := range s.Sources {
		tests, err := s.drawnTests(ctx, p, source)
		if err != nil {
			return nil, err
		}
		out = append(out, tests...)
	}
	names := map[string]bool{}
	for i := range out {
		if names[out[i].Name] {
			return nil, fmt.Errorf("two of the sources have the test %s", out[i].Name)
		}
		names[out[i].Name] = true
		out[i].Graph = p.judging.checksGraph(out[i].Graph)
	}
	return out, nil
}

// module returns the text of one that a file imports. Whoever plans reads it; it is sent
// with the files, and nobody else reads any.
func (s *spec) module(path string) ([]byte, error) {
	for _, m := range s.Modules {
		if m.Name == path {
			return []byte(m.Text), nil
		}
	}
	if !s.planned {
		return nil, fs.ErrNotExist
	}
	text, err := readSource(filepath.FromSlash(path))
	if err == nil {
		s.Modules = append(s.Modules, specFile{path, string(text)})
	}
	return text, err
}

// drawnTests are those of a source that is no file.
func (s *spec) drawnTests(ctx context.Context, p *plan, source string) ([]campaign.Test, error) {
	kind, pattern := sourceKind(source)
	switch kind {
	case opsSource:
		tests, err := opTests([]string{pattern}, &p.cases)
		return p.strictly(tests), err
	case opInfoSource:
		cfg := p.cfg
		if cfg == nil { // who plans asks the reference, too
			set := open.Set{Python: p.subjects.python}
			reference, err := set.Opener(ctx, s.Reference)
			if err != nil {
				return nil, harness(err)
			}
			cfg = &campaign.Config{Reference: reference}
		}
		tests, err := opInfoTests(ctx, []string{pattern}, &p.cases, cfg, io.Discard)
		return p.strictly(tests), err
	case graphsSource:
		if p.cases.n == 0 {
			p.cases.n = graphCases
		}
		if p.cfg == nil {
			return []campaign.Test{{Name: graphsTest, N: p.cases.n}}, nil
		}
		t, err := graphTest(ctx, p.session)
		return []campaign.Test{t}, err
	}
	return nil, nil
}

// fileOf is the file of a test.
func fileOf(test string) string {
	file, _, _ := strings.Cut(test, "::")
	return file
}

// strictly has what both sides raise in tests be of the same class, as plumb ops run
// does.
func (p *plan) strictly(tests []campaign.Test) []campaign.Test {
	for i := range tests {
		tests[i].Judge = p.strict
	}
	return tests
}

// parts are the tests of a campaign on each of its candidates, whose verdicts depend
// on what these are; "" where that is not known.
func (s *spec) parts(tests []campaign.Test, about func(subject string) string) []store.Part {
	texts := map[string]string{}
	for _, f := range slices.Concat(s.Files, s.Configs, s.Modules) {
		texts[f.Name] = f.Text
	}
	for file, modules := range s.uses {
		for _, m := range modules {
			texts[file] += "\x00" + m + "\x00" + texts[m]
		}
	}
	flags := maps.Clone(s.Flags)
	delete(flags, "number") // changes how many cases there are, and none of them
	how, _ := json.Marshal([]any{s.Plumb, s.Seed, s.Reference, about(s.Reference), flags, s.Settings, s.Known})
	var parts []store.Part
	for _, candidate := range s.Candidates {
		for _, t := range tests {
			h := sha256.New()
			for _, text := range []string{string(how), candidate, about(candidate), t.Name, texts[fileOf(t.Name)]} {
				fmt.Fprintf(h, "%d %s\n", len(text), text)
			}
			part := store.Part{Test: t.Name, Subject: candidate, Depends: h.Sum(nil), Wanted: t.N, Fixed: t.Fixed, Most: campaign.RejectFactor * t.N}
			if s.Budget.Is() && !t.Fixed {
				part.Wanted, part.Most = 0, campaign.RejectFactor
			}
			parts = append(parts, part)
		}
	}
	return parts
}
