package report

import (
	"testing"

	"plumb/internal/judge/verdict"
)

// TestVotesAreShown: of two candidates or more a finding says what each holds, and who is alone.
func TestVotesAreShown(t *testing.T) {
	row := func(subject, holds string) verdict.Ballot { return verdict.Ballot{Subject: subject, Holds: holds} }
	for _, c := range []struct {
		vote        *verdict.Vote
		says, alone string
	}{
		{&verdict.Vote{Rows: []verdict.Ballot{row("torch", "2"), row("a", "1"), row("b", "2"), row("truth", "2")}, Alone: []string{"a"}}, "torch 2; a 1; b 2; truth 2", "a"},
		{&verdict.Vote{Rows: []verdict.Ballot{row("torch", "2"), row("a", "1"), row("b", "2")}, Alone: []string{"a"}}, "torch 2; a 1; b 2", "a"},
		{vote: &verdict.Vote{Rows: []verdict.Ballot{row("torch", "2"), row("a", "1"), row("truth", "2")}, Alone: []string{"a"}}},
		{},
	} {
		if says, who := ballots(c.vote), alone(c.vote); says != c.says || who != c.alone {
			t.Errorf("%+v: %q, %q alone", c.vote, says, who)
		}
	}
}
