package bundle

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"strings"

	"plumb/internal/draw/choice"
	"plumb/internal/judge/verdict"
)

// Format is the version of bundles with a function that computes a part of their program;
// all others are written as version 1. It reads those up to it.
const Format = 3

// manifest is finding.json.
type manifest struct {
	Format    int               `json:"format"`
	ID        string            `json:"id"` // of the program
	Test      string            `json:"test,omitempty"`
	Index     int               `json:"index"`
	Seed      uint64            `json:"seed"`
	Count     int               `json:"count"`
	Signature string            `json:"signature,omitempty"`
	Modes     []string          `json:"modes,omitempty"` // of the candidate that fail alike
	Verdict   *verdict.Verdict  `json:"verdict"`
	Place     *place            `json:"place"`
	Reference Side              `json:"reference"`
	Candidate Side              `json:"candidate"`
	Returns   []string          `json:"gradients,omitempty"` // what function.py returns: see backend.Function
	Expected  Ending            `json:"expected"`
	Got       Ending            `json:"got"`
	Shrink    Shrink            `json:"shrink"`
	Timeout   float64           `json:"timeout_seconds"`
	Growth    int64             `json:"growth_bytes,omitempty"`
	Choices   string            `json:"choices,omitempty"`
	Original  string            `json:"original,omitempty"`
	Proof     *Proof            `json:"proof,omitempty"`
	Sides     map[string]script `json:"sides"` // by --as
	Run       []string          `json:"run"`   // commands, for people
	Files     map[string]string `json:"files"` // SHA-256 by name; "" for those that are there to be edited
	Checksum  string            `json:"checksum"`
}

// script is the file of a side.
type script struct {
	File   string `json:"file"`
	Python string `json:"python,omitempty"` // that ran the side
	// Role is "reference" or "candidate": whose result the file computes.
	Role string `json:"role"`
}

const (
	manifestFile = "finding.json"
	blank        = "0000000000000000000000000000000000000000000000000000000000000000"
)

func sum(data []byte) string {
	s := sha256.Sum256(data)
	return hex.EncodeToString(s[:])
}

// encode returns finding.json. Its checksum is that of the text with a blank one.
func (m *manifest) encode() ([]byte, error) {
	m.Checksum = blank
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(m); err != nil {
		return nil, fmt.Errorf("%s: %w", manifestFile, err)
	}
	text := b.Bytes()
	at := bytes.LastIndex(text, []byte(blank))
	m.Checksum = sum(text)
	copy(text[at:], m.Checksum)
	return text, nil
}

// decode reads finding.json. A file of a newer format is refused before
// anything else in it is looked at.
func decode(text []byte) (*manifest, error) {
	var version struct {
		Format any `json:"format"`
	}
	if err := json.Unmarshal(text, &version); err != nil {
		return nil, fmt.Errorf("%s is damaged: %w", manifestFile, err)
	}
	n, ok := version.Format.(float64)
	switch {
	case !ok || n < 1 || n != math.Trunc(n):
		return nil, fmt.Errorf("%s is damaged: its format is %v, not a number from 1 on", manifestFile, version.Format)
	case n > Format:
		return nil, fmt.Errorf("the bundle has format %.0f, written by a newer Plumb; this one reads up to %d: update Plumb, or run the bundle's own files, which need none", n, Format)
	}
	var m manifest
	if err := json.Unmarshal(text, &m); err != nil {
		return nil, fmt.Errorf("%s is damaged: %w", manifestFile, err)
	}
	at := bytes.LastIndex(text, []byte(m.Checksum))
	if len(m.Checksum) != len(blank) || at < 0 || sum(bytes.Join([][]byte{text[:at], text[at+len(blank):]}, []byte(blank))) != m.Checksum {
		return nil, fmt.Errorf("%s is damaged: its checksum does not fit", manifestFile)
	}
	return &m, m.check()
}

// check says what a manifest lacks that reads well.
func (m *manifest) check() error {
	lacks := func(what string) error { return fmt.Errorf("%s has no %s", manifestFile, what) }
	switch {
	case m.Verdict == nil:
		return lacks("verdict")
	case m.Place == nil:
		return lacks("place")
	case m.Place.Where == nil && m.Place.Mode != byEnding:
		return lacks("place of the difference")
	case m.Place.Where != nil && m.Place.Where.Call < 0:
		return fmt.Errorf("%s: call %d at the place of the difference", manifestFile, m.Place.Where.Call)
	case m.Files == nil:
		return lacks("list of files")
	}
	for name := range m.Files {
		if name == "" || strings.ContainsAny(name, `/\:`) || strings.HasPrefix(name, ".") {
			return fmt.Errorf("%s lists the file %q, which is not in a bundle", manifestFile, name)
		}
	}
	for name, sum := range m.Files {
		if sum == "" && name != goModFile && name != goSumFile {
			return fmt.Errorf("%s: %s has no checksum", manifestFile, name)
		}
	}
	for as, s := range m.Sides {
		if _, ok := m.Files[s.File]; !ok {
			return fmt.Errorf("%s: the file %q of %s is not listed", manifestFile, s.File, as)
		}
	}
	if _, err := choice.Parse(m.Choices); err != nil {
		return fmt.Errorf("%s: choices: %w", manifestFile, err)
	}
	return nil
}
