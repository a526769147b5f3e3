package command

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"plumb/internal/judge/verdict"
)

const root = "../.."

func document(t *testing.T, name string) string {
	text, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

var pythonBlock = regexp.MustCompile("(?s)```python\n(.*?)```")

// TestReadmeExampleRuns saves the README's test and runs it.
func TestReadmeExampleRuns(t *testing.T) {
	slow(t)
	blocks := pythonBlock.FindAllStringSubmatch(document(t, "README.md"), -1)
	if len(blocks) == 0 {
		t.Fatal("the README shows no test")
	}
	refs := []string{"native"}
	if _, err := findTorch(); err == nil {
		refs = append(refs, "torch")
	}
	for _, ref := range refs {
		w, log := play(t, nil, []string{save(t, "my_test.py", blocks[0][1])}, "--reference", ref, "--seed", "7")
		if len(w.records) != 50 || len(w.findings()) > 0 || w.ends[0].Err != nil {
			t.Errorf("against %s: %d cases, want 50 aligned\n%s", ref, len(w.records), log)
		}
	}
}

// TestTestFilesPageRuns runs every test that the page shows.
func TestTestFilesPageRuns(t *testing.T) {
	slow(t)
	for _, b := range pythonBlock.FindAllStringSubmatch(document(t, "docs/test-files.md"), -1) {
		lacks := strings.HasPrefix(b[1], "# unsupported")
		w, log := play(t, nil, []string{save(t, "page.py", b[1])}, "--reference", "torch", "--seed", "7")
		if len(w.records) == 0 {
			t.Errorf("%s\n%s", b[1], log)
		}
		for _, e := range w.ends {
			if e.Err != nil {
				t.Errorf("%s: %v", e.Test, e.Err)
			}
		}
		for _, r := range w.records {
			if want := map[bool]verdict.Word{true: verdict.Unsupported, false: verdict.Aligned}[lacks]; r.Verdict.Word != want {
				t.Errorf("%s is %s, want %s: %s", r.Test, r.Verdict.Word, want, r.Verdict.Reason)
			}
		}
	}
}

var shellBlock = regexp.MustCompile("(?s)```sh\n(.*?)```")

// TestOperatorChecksRun runs the commands of the page in its order; without
// PyTorch, those that need no reference.
func TestOperatorChecksRun(t *testing.T) {
	slow(t)
	blocks := shellBlock.FindAllStringSubmatch(document(t, "docs/operator-checks.md"), -1)
	t.Chdir(t.TempDir())
	seen := 0
	for _, b := range blocks {
		for line := range strings.Lines(b[1]) {
			line = strings.TrimSpace(line)
			if _, err := findTorch(); err != nil && !strings.Contains(line, "gradcheck") {
				continue
			}
			args, ok := strings.CutPrefix(strings.ReplaceAll(line, "'", ""), "plumb ")
			if !ok {
				t.Errorf("%q is no command of plumb", line)
				continue
			}
			cmd := newRoot()
			cmd.SetArgs(strings.Fields(args))
			var out strings.Builder
			cmd.SetOut(&out)
			cmd.SetErr(&out)
			if err := cmd.ExecuteContext(t.Context()); err != nil || out.Len() == 0 {
				t.Errorf("%s: %v\n%s", line, err, out.String())
			}
			seen++
		}
	}
	if seen < 2 {
		t.Errorf("the page shows %d commands", seen)
	}
}

var mention = regexp.MustCompile("(?m)(?:^|`)(?:go run \\./cmd/plumb|plumb)((?: +[^`#\n ]+)*)")

// shellWord is a word of a command line, quoted in part or not.
var shellWord = regexp.MustCompile(`(?:'[^']*'|\S)+`)

// TestDocumentedCommandsExist parses every command line of the documents.
func TestDocumentedCommandsExist(t *testing.T) {
	seen := 0
	for _, name := range []string{"README.md", "ARCHITECTURE.md", "docs/operator-checks.md"} {
		for _, m := range mention.FindAllStringSubmatch(document(t, name), -1) {
			var args []string
			for _, word := range shellWord.FindAllString(m[1], -1) {
				args = append(args, strings.ReplaceAll(word, "'", ""))
			}
			cmd, rest, err := newRoot().Find(args)
			if err == nil && len(args) > 0 && cmd.Name() == "plumb" {
				err = pflag.ErrHelp
			}
			if err == nil {
				err = cmd.ParseFlags(rest)
			}
			if err != nil {
				t.Errorf("%s: plumb%s: %v", name, m[1], err)
			}
			seen++
		}
	}
	if seen < 5 {
		t.Errorf("the documents show %d commands", seen)
	}
}

var (
	link = regexp.MustCompile(`\]\(([^)#:]+)\)`)
	code = regexp.MustCompile("`([a-z_/]+(?:/|\\.go|\\.md|\\.py))`")
)

// TestDocumentedFilesExist follows the documents' links and file names.
func TestDocumentedFilesExist(t *testing.T) {
	for _, name := range []string{"README.md", "ARCHITECTURE.md"} {
		text := document(t, name)
		found := append(link.FindAllStringSubmatch(text, -1), code.FindAllStringSubmatch(text, -1)...)
		for _, m := range found {
			if slices.Contains([]string{"my_test.py", "saved.py", "softmax.py", "py/"}, m[1]) { // the reader's own
				continue
			}
			if _, err := os.Stat(filepath.Join(root, m[1])); err != nil {
				t.Errorf("%s mentions %s: %v", name, m[1], err)
			}
		}
		if len(found) == 0 {
			t.Errorf("%s mentions no file", name)
		}
	}
}

// TestReadmeFirstCommands: two commands do all set-up.
func TestReadmeFirstCommands(t *testing.T) {
	text := document(t, "README.md")
	_, block, _ := strings.Cut(text, "```\n")
	block, _, _ = strings.Cut(block, "```")
	var commands []string
	for line := range strings.Lines(block) {
		command, _, _ := strings.Cut(line, "#")
		commands = append(commands, strings.TrimSpace(command))
	}
	if strings.Join(commands, "; ") != "go run ./cmd/plumb run; go test ./..." {
		t.Errorf("the README's first commands are %q", commands)
	}
}
