package command

import (
	"bytes"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"plumb/internal/campaign/store"
	"plumb/op"
	"plumb/program"
)

// checkGradients is plumb ops gradcheck of a table whose cosine has a
// gradient of the wrong sign.
func checkGradients(t *testing.T, asJSON bool) (string, error) {
	t.Helper()
	return checkGradientsTo(t, asJSON, filed{}, noStore)
}

func checkGradientsTo(t *testing.T, asJSON bool, files filed, kept string) (string, error) {
	t.Helper()
	table := planted(t, func(defs map[string]*op.Def) {
		defs["cos"].Grad = func(g *op.Grad) {
			g.To("input", func() op.Value { return g.Mul(g.G(), g.Op("sin", g.Value("input"))) })
		}
	})
	var out bytes.Buffer
	seed := uint64(1)
	g := &gradientCheck{given: &seed, jobs: 2, log: gradientLog{out: &out, json: asJSON}, filed: files, kept: keeping{path: kept}}
	err := g.run(t.Context(), table, []string{"cos*"}, &out)
	return out.String(), err
}

func wantFindings(t *testing.T, err error) {
	t.Helper()
	var e *exitError
	if !errors.As(err, &e) || e.code != exitFindings {
		t.Errorf("ended with %v, want findings", err)
	}
}

// TestWrongGradientIsPrinted: with the program that shows it, ready to run.
func TestWrongGradientIsPrinted(t *testing.T) {
	text, err := checkGradients(t, false)
	wantFindings(t, err)
	if !strings.Contains(text, "\ncos  ") || !strings.Contains(text, "MISALIGNED") || strings.Count(text, "MISALIGNED") != 1 {
		t.Errorf("no line of its own says that cos alone is misaligned:\n%s", text)
	}
	i := strings.Index(text, "# plumb program")
	if i < 0 {
		t.Fatalf("no program is printed:\n%s", text)
	}
	end := strings.Index(text[i:], "\n\n\n")
	lines, _, _ := strings.Cut(text[i:], "\ncosh ")
	if end > 0 {
		lines = text[i : i+end]
	}
	p, err := program.Parse("finding", strings.TrimSpace(lines)+"\n")
	if err != nil || len(p.Backward) != 1 || p.Calls[0].Target != "torch.cos" {
		t.Errorf("the program is none of torch.cos: %v\n%s", err, lines)
	}
}

// TestWrongGradientOnPage: the page has the finding, its program and what is right beside
// it; the store has them too.
func TestWrongGradientOnPage(t *testing.T) {
	files, _, _ := filedTo(t, "plumb ops gradcheck")
	kept := filepath.Join(t.TempDir(), "plumb.db")
	_, err := checkGradientsTo(t, false, *files, kept)
	wantFindings(t, err)
	has(t, "the page", readFile(t, files.html), `<header class="bad">`, "difference quotients", "gradcheck::cos", "gradcheck::cosh", "torch.cos", "the gradient is")
	has(t, "the Markdown", readFile(t, files.files.all[0].path), "failed case", "gradcheck&#58;&#58;cos")
	s, err := store.Read(kept)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	r, err := s.Run("last")
	if err != nil || r.Failed == 0 || r.Passed == 0 || r.Seed != 1 || *r.Exit != exitFindings {
		t.Fatalf("the store has %+v, %v", r, err)
	}
	err = s.Sightings(r.ID, func(f *store.Sighting) error {
		if f.What != "misaligned gradient of cos" || f.Operator != "cos" || f.Cases != r.Failed || !strings.Contains(f.Program, "torch.cos") {
			t.Errorf("%+v", f)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func TestWrongGradientInJSON(t *testing.T) {
	text, err := checkGradients(t, true)
	wantFindings(t, err)
	found := false
	for line := range strings.Lines(text) {
		var o gradientJSON
		if err := json.Unmarshal([]byte(line), &o); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		if (o.Op == "cos") != (len(o.Findings) > 0) {
			t.Errorf("%s has %d findings", o.Op, len(o.Findings))
		}
		for _, f := range o.Findings {
			found = true
			if _, err := program.Parse("finding", f.Program); err != nil || f.Order != 1 && f.Order != 2 || f.Gradient == f.Quotient {
				t.Errorf("%+v: %v", f, err)
			}
		}
	}
	if !found {
		t.Error("no finding")
	}
}
