package bundle

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"plumb/program"
)

// JoinPrograms returns one text of several programs, which SplitPrograms takes
// apart.
func JoinPrograms(ps []*program.Program) string {
	var b strings.Builder
	for _, p := range ps {
		b.WriteString(p.String())
	}
	return b.String()
}

// SplitPrograms reads the programs of a text, each of which begins with its
// header. The error has the position in the file.
func SplitPrograms(file, text string) ([]*program.Program, error) {
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	parts := strings.Split("\n"+text, "\n"+program.Header+"\n")
	if strings.TrimSpace(parts[0]) != "" {
		return nil, fmt.Errorf("%s does not begin with %q", file, program.Header)
	}
	var ps []*program.Program
	for i, part := range parts[1:] {
		p, err := program.Parse(fmt.Sprintf("%s, program %d", file, i+1), program.Header+"\n"+part)
		if err != nil {
			return nil, err
		}
		ps = append(ps, p)
	}
	return ps, nil
}

// Needs looks for the fewest of the cases after which the bundle fails in a
// fresh process although it does not fail alone: what left behind the state that
// it depends on. The command of the options, Plumb where it is nil, gets "--after" and a file of the
// cases in addition; see JoinPrograms. The result is that of Prefix: nil where
// the cases do not make it fail. The error is a fault of the harness, or says
// that a run could not tell.
func (b *Bundle) Needs(ctx context.Context, cases []*program.Program, o ProveOptions) ([]*program.Program, error) {
	dir, err := os.MkdirTemp("", "plumb-after-*")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "after.py")
	command := o.Command
	if command == nil {
		command = Plumb
	}
	o.Runs = 1
	o.Command = func(b *Bundle, dir string) []string { return append(command(b, dir), "--after", file) }
	return Prefix(cases, func(prefix []*program.Program) (bool, error) {
		if err := os.WriteFile(file, []byte(JoinPrograms(prefix)), 0o644); err != nil {
			return false, err
		}
		p, err := b.Prove(ctx, o)
		if err == nil && p.State == Unproved {
			err = fmt.Errorf("bundle %s after %d cases: %s", b.ID(), len(prefix), p.Reason)
		}
		return p.State == Reproduced, err
	})
}
