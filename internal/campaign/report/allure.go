package report

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"plumb/backend"
	"plumb/internal/judge/verdict"
)

// Folders are what --report writes as the files of a folder, by name.
var Folders = map[string]func(*Outline, string) error{"allure": (*Outline).Allure}

// allureResult is a file of an Allure report (allurereport.org, allure-results).
type allureResult struct {
	UUID       string         `json:"uuid"`
	HistoryID  string         `json:"historyId"`
	TestCaseID string         `json:"testCaseId"`
	FullName   string         `json:"fullName"`
	Name       string         `json:"name"`
	Status     string         `json:"status"` // passed, failed, broken, skipped
	Details    allureDetails  `json:"statusDetails"`
	Stage      string         `json:"stage"`
	Start      int64          `json:"start"` // milliseconds since 1970
	Stop       int64          `json:"stop"`
	Labels     []allurePair   `json:"labels"`
	Parameters []allurePair   `json:"parameters"`
	Files      []allureSource `json:"attachments"`
}

type allureDetails struct {
	Message string `json:"message"`
	Trace   string `json:"trace"`
}

type allurePair struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

type allureSource struct {
	Name   string `json:"name"`
	Type   string `json:"type"`
	Source string `json:"source"`
}

// Allure writes a result for each test and candidate into a folder, with the smallest
// program of each finding as an attachment. A test and candidate have the same history
// in every run.
func (o *Outline) Allure(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	now := time.Now()
	for _, t := range o.Tests {
		r := o.allure(t, now)
		for n, f := range o.Findings {
			if f.Candidate != t.Candidate || !slices.Contains(f.Tests, t.Test) {
				continue
			}
			source := fmt.Sprintf("%s-%d-attachment.py", r.UUID, n)
			r.Files = append(r.Files, allureSource{"finding " + f.ID, "text/x-python", source})
			if err := os.WriteFile(filepath.Join(dir, source), []byte(f.Program), 0o644); err != nil {
				return err
			}
			r.Details.Message = cmp.Or(r.Details.Message, backend.Printable(firstLine(f.Reason), junitMessage))
			r.Details.Trace = cmp.Or(r.Details.Trace, backend.Printable(f.Reason, junitReason))
		}
		if err := writeAllure(filepath.Join(dir, r.UUID+"-result.json"), r); err != nil {
			return err
		}
	}
	return nil
}

func writeAllure(path string, r *allureResult) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(indentedJSON(file, r), file.Close())
}

func (o *Outline) allure(t *OutlineTest, now time.Time) *allureResult {
	suite, name, ok := strings.Cut(t.Test, "::")
	if !ok {
		name = t.Test
	}
	history := sha256.Sum256([]byte(t.Test + "\x00" + t.Candidate + "\x00" + o.Reference))
	run := sha256.Sum256(fmt.Appendf(history[:], "%d %d", o.Seed, now.UnixNano()))
	return &allureResult{
		UUID: fmt.Sprintf("%x-%x-%x-%x-%x", run[:4], run[4:6], run[6:8], run[8:10], run[10:16]), HistoryID: fmt.Sprintf("%x", history[:16]), TestCaseID: fmt.Sprintf("%x", history[:16]),
		FullName: backend.Printable(t.Test, longestInline), Name: backend.Printable(name, longestInline), Status: t.allureStatus(), Stage: "finished",
		Start: now.Add(-time.Duration(t.Seconds * float64(time.Second))).UnixMilli(), Stop: now.UnixMilli(),
		Labels:     []allurePair{{"framework", "plumb"}, {"language", "python"}, {"parentSuite", backend.Printable(t.Candidate, longestInline)}, {"suite", backend.Printable(suite, longestInline)}},
		Parameters: []allurePair{{"candidate", backend.Printable(t.Candidate, longestInline)}, {"reference", backend.Printable(o.Reference, longestInline)}},
		Files:      []allureSource{},
	}
}

// allureStatus: what is misaligned has failed, what ended otherwise is broken, and where
// nothing was judged the test is skipped.
func (t *OutlineTest) allureStatus() string {
	judged := false
	status := "passed"
	for _, word := range slices.Sorted(maps.Keys(t.Verdicts)) {
		switch w := verdict.Word(word); {
		case w == verdict.Misaligned:
			return "failed"
		case w.IsFinding():
			status = "broken"
		case w == verdict.Aligned || w == verdict.Known || w == verdict.Fixed || w == verdict.Unstable:
			judged = true
		}
	}
	if !judged && status == "passed" {
		return "skipped"
	}
	return status
}
