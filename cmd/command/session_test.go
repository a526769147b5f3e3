package command

import (
	"os"
	"strings"
	"testing"

	"plumb/backend"
	"plumb/internal/campaign"
	"plumb/internal/campaign/report"
	"plumb/internal/judge/verdict"
)

// TestSubjectBuiltAgain: a run whose subject's file is another at its end than at its start
// fails, and says what it was and is.
func TestSubjectBuiltAgain(t *testing.T) {
	worker := save(t, "w", "#!/bin/sh\n")
	s := newSession()
	s.subjects.candidates = []string{worker}
	s.cfg = &campaign.Config{Candidates: []campaign.Candidate{{Name: worker}}}
	s.summary = report.NewSummary()
	s.summary.Words[verdict.Aligned] = 1
	s.onOpen(backend.Info{Name: "reference"}, []backend.Info{{Name: "mine", Version: "1"}})
	if err := s.conclude(nil); err != nil {
		t.Error(err)
	}
	if err := os.WriteFile(worker, []byte("#!/bin/sh\n# again\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	want := worker + " has changed while it was judged: it was mine 1 (code "
	if err := s.conclude(nil); exitCode(err) != exitFault || !strings.Contains(err.Error(), want) {
		t.Errorf("%v", err)
	}
}
