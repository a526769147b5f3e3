package command

import (
	"sync"

	"plumb/backend"
	"plumb/internal/campaign"
	"plumb/nn"
	"plumb/op"
	"plumb/ops"
)

// signatures tells a target's parameters: the table's, the modules', then the
// reference's own.
type signatures struct {
	open campaign.Opener // nil when the reference cannot be asked
	info campaign.Opener // of a reference that only says its version; may be nil

	mu      sync.Mutex
	source  backend.Signatures
	err     error
	known   map[string][]*op.Sig
	version *string
}

// Version returns the reference's version of PyTorch; "" when it cannot tell.
func (s *signatures) Version() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.version == nil {
		v := s.askVersion()
		s.version = &v
	}
	return *s.version
}

func (s *signatures) askVersion() string {
	if err := s.start(); err != nil {
		return ""
	}
	if b, ok := s.source.(backend.Backend); ok {
		return b.Info().Version
	}
	if s.info == nil {
		return ""
	}
	b, err := s.info()
	if err != nil {
		return ""
	}
	defer b.Close()
	return b.Info().Version
}

// Signatures returns the overloads of a public name; nil when nobody knows it.
func (s *signatures) Signatures(name string) ([]*op.Sig, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if sigs, ok := s.known[name]; ok {
		return sigs, nil
	}
	sigs := ours(name)
	if sigs == nil {
		var err error
		if sigs, err = s.ask(name); err != nil {
			return nil, err
		}
	}
	if s.known == nil {
		s.known = map[string][]*op.Sig{}
	}
	s.known[name] = sigs
	return sigs, nil
}

// ours returns the overloads that the table or the modules have.
func ours(name string) []*op.Sig {
	var sigs []*op.Sig
	for _, d := range ops.Table().Lookup(name) {
		sigs = append(sigs, d.Sigs()...)
	}
	if d := nn.Modules().Lookup(name); sigs == nil && d != nil && !d.AnyArguments {
		return d.Sigs()
	}
	return sigs
}

// ask returns the reference's overloads; it remembers its answers itself.
func (s *signatures) ask(name string) ([]*op.Sig, error) {
	if err := s.start(); err != nil || s.source == nil {
		return nil, err
	}
	return s.source.Signatures(name)
}

// start opens the reference for questions, where it can be asked.
func (s *signatures) start() error {
	if s.open == nil || s.err != nil || s.source != nil {
		return s.err
	}
	b, err := s.open()
	if err != nil {
		s.err = err
		return err
	}
	source, ok := b.(backend.Signatures)
	if !ok {
		s.open = nil
		return b.Close()
	}
	s.source = source
	return nil
}

// Reference returns what tells the reference's own signatures only; nil when
// it cannot be asked.
func (s *signatures) Reference() backend.Signatures {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open == nil {
		return nil
	}
	return referenceSignatures{s}
}

type referenceSignatures struct{ *signatures }

// Signatures returns the reference's overloads of a public name.
func (r referenceSignatures) Signatures(name string) ([]*op.Sig, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ask(name)
}

// Close ends the reference that was opened for questions.
func (s *signatures) Close() {
	if b, ok := s.source.(backend.Backend); ok {
		_ = b.Close()
	}
}
