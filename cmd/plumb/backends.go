package main

import (
	"sync"

	"plumb/backend"
	"plumb/campaign"
	"plumb/nn"
	"plumb/op"
	"plumb/ops"
)

// signatures tells a target's parameters: the table's, the modules', then the
// reference's own.
type signatures struct {
	open campaign.Opener // nil when the reference cannot be asked

	mu     sync.Mutex
	source backend.Signatures
	err    error
	known  map[string][]*op.Sig
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
	if d := nn.Modules().Lookup(name); sigs == nil && d != nil {
		return d.Sigs()
	}
	return sigs
}

// ask returns the reference's overloads; it remembers its answers itself.
func (s *signatures) ask(name string) ([]*op.Sig, error) {
	if s.open == nil || s.err != nil {
		return nil, s.err
	}
	if s.source == nil {
		b, err := s.open()
		if err != nil {
			s.err = err
			return nil, err
		}
		source, ok := b.(backend.Signatures)
		if !ok {
			s.open = nil
			return nil, b.Close()
		}
		s.source = source
	}
	return s.source.Signatures(name)
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
