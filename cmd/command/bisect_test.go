package command

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestBisectHalves: the change is found wherever it is, in as few tries as halving
// takes, past steps that cannot be run.
func TestBisectHalves(t *testing.T) {
	const n = 33
	for at := 1; at < n; at++ {
		for _, broken := range []int{-1, at, at - 1, 16} {
			tries := 0
			var steps []step
			for i := range n {
				steps = append(steps, step{fmt.Sprint(i), func(context.Context) (bool, error) {
					if tries++; i == broken && i > 0 && i < n-1 {
						return false, unableError{errors.New("it does not build")}
					}
					return i >= at, nil
				}})
			}
			c, err := (&bisect{log: testLog{t}}).search(t.Context(), steps)
			if err != nil {
				t.Fatal(err)
			}
			wants := []string{fmt.Sprint(at)}
			if broken == at && at < n-1 {
				wants = append(wants, fmt.Sprint(at+1)) // the first that can be run
			}
			if c.After != wants[len(wants)-1] || !c.Shows || tries > 9 {
				t.Errorf("a change at %d, %d broken: %+v in %d tries", at, broken, c, tries)
			}
		}
	}
}

// TestBisectCommits: commits are built in folders of their own, and the one that
// changed the verdict is named; the repository is left as it was.
func TestBisectCommits(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip(err)
	}
	repo := t.TempDir()
	git := func(args ...string) string {
		cmd := exec.Command("git", append([]string{"-C", repo, "-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false"}, args...)...)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v: %s", args, err, out)
		}
		return string(out)
	}
	git("init", "-q")
	for i, value := range []string{"good", "good", "unbuilt", "bad", "bad"} {
		if err := shell(t.Context(), repo, "", "echo "+value+fmt.Sprint(i)+" > value").Run(); err != nil {
			t.Fatal(err)
		}
		git("add", "value")
		git("commit", "-q", "-m", fmt.Sprint("commit ", i))
	}
	b := bisect{repo: repo, good: "HEAD~4", bad: "HEAD", build: "! grep -q unbuilt value && mv value built", check: `test -n "$PLUMB_BUNDLE" && ! grep -q bad built`, log: testLog{t}}
	steps, done, err := b.commits(t.Context(), nil, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer done()
	c, err := b.search(t.Context(), steps)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasSuffix(c.Before, "commit 1") || !strings.HasSuffix(c.After, "commit 3") || !c.Shows || len(c.Skipped) != 1 || !strings.HasSuffix(c.Skipped[0], "commit 2") {
		t.Errorf("%+v", c)
	}
	if left := git("worktree", "list"); strings.Count(left, "\n") != 1 || git("status", "--porcelain") != "" {
		t.Errorf("the repository has %s", left)
	}
	b.good = "HEAD~1"
	if steps, done, err = b.commits(t.Context(), nil, filepath.Join(repo, "b")); err != nil {
		t.Fatal(err)
	}
	defer done()
	if _, err := b.search(t.Context(), steps); err == nil || !strings.Contains(err.Error(), "the finding shows") {
		t.Errorf("between two that are wrong: %v", err)
	}
}
