package report

import (
	"cmp"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"plumb/backend"
)

// Formats are what --report writes, by name.
var Formats = map[string]func(*Outline, io.Writer) error{
	"json": (*Outline).JSON, "markdown": (*Outline).Markdown, "sarif": (*Outline).SARIF, "gitlab": (*Outline).CodeQuality, "badge": (*Outline).Badge,
}

// JSON writes the outline, of the schema docs/schema/report.json.
func (o *Outline) JSON(w io.Writer) error { return indentedJSON(w, o) }

func indentedJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// maxMarkdown bounds a comment, in bytes: GitHub takes 65,536 characters.
const maxMarkdown = 60_000

// Markdown writes a comment for a pull request: findings first.
func (o *Outline) Markdown(w io.Writer) error {
	var b strings.Builder
	state := "aligned"
	if !o.Aligned() {
		state = fmt.Sprintf("%s in %s", plural(o.Failed, "failed case"), plural(o.Cases, "case"))
		if len(o.Findings) > 0 {
			state = plural(len(o.Findings), "finding") + ", " + state
		}
	}
	fmt.Fprintf(&b, "### Plumb: %s\n\n%s against %s: %s, seed %d, %.1f s\n", state, code(strings.Join(o.Candidates, ", ")), code(o.Reference), inline(o.counts()), o.Seed, o.Seconds)
	const end = "\n… and more, which the run's other reports have.\n"
	room := func(text string) bool {
		if b.Len()+len(text)+len(end) > maxMarkdown {
			return false
		}
		b.WriteString(text)
		return true
	}
	for _, section := range [][]string{o.findingTexts(), o.failureTexts(), o.errorTexts()} {
		for _, text := range section {
			if !room(text) {
				b.WriteString(end)
				_, err := io.WriteString(w, b.String())
				return err
			}
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (o *Outline) counts() string {
	var parts []string
	for _, word := range slices.Sorted(maps.Keys(o.Verdicts)) {
		parts = append(parts, fmt.Sprintf("%d %s", o.Verdicts[word], word))
	}
	return cmp.Or(strings.Join(parts, ", "), "no cases")
}

func (o *Outline) findingTexts() []string {
	var all []string
	for _, f := range o.Findings {
		text := fmt.Sprintf("\n#### %s\n\n%s of %s, %s, in %s\n\n%s\n", inline(f.Signature), code(f.Candidate), code(f.Operator), plural(f.Cases, "case"), code(strings.Join(f.Tests, ", ")), inline(firstLine(f.Reason)))
		if f.Common != "" {
			text += "\nAll of them, and no other: " + inline(f.Common) + "\n"
		}
		text += fenced(clip(f.Program, 4<<10))
		if f.Bundle != "" || f.again != "" {
			text += "\n" + strings.TrimPrefix(inline(f.Proof)+": ", ": ") + code(cmp.Or(f.again, "plumb repro "+f.Bundle)) + "\n"
		}
		all = append(all, text)
	}
	return all
}

func (o *Outline) failureTexts() []string {
	if len(o.Findings) > 0 || len(o.Failures) == 0 {
		return nil
	}
	all := []string{"\n| test | case | candidate | verdict | reason |\n|---|---|---|---|---|\n"}
	for _, f := range o.Failures {
		all = append(all, fmt.Sprintf("| %s | %d | %s | %s | %s |\n", code(f.Test), f.Case, code(f.Candidate), inline(f.Verdict), inline(firstLine(f.Reason))))
	}
	return all
}

func (o *Outline) errorTexts() []string {
	var all []string
	for _, e := range o.Errors {
		all = append(all, "\nMistake in a test:\n"+fenced(e))
	}
	return all
}

// longestInline bounds a name or a sentence of a comment.
const longestInline = 500

// inline is a text without what Markdown or HTML would obey.
func inline(text string) string {
	text = backend.Printable(strings.Join(strings.Fields(text), " "), longestInline)
	var b strings.Builder
	for _, r := range text {
		switch {
		case r == '<' || r == '>' || r == '&':
			b.WriteString(html.EscapeString(string(r)))
		case strings.ContainsRune("\\`*_{}[]()#+!|~@:$", r):
			fmt.Fprintf(&b, "&#%d;", r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// code is a text in monospace, which holds nothing that is obeyed.
func code(text string) string { return "<code>" + inline(text) + "</code>" }

// fenced is a block of code, of whatever it holds.
func fenced(text string) string {
	text = backend.Printable(text, outlineText)
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	return "\n" + fence + "python\n" + strings.TrimSuffix(text, "\n") + "\n" + fence + "\n"
}

type object = map[string]any

// SARIF writes the findings, or the failures where none were made smaller, as
// SARIF 2.1.0: each at its test's line.
func (o *Outline) SARIF(w io.Writer) error {
	rules, results := []object{}, []object{}
	seen := map[string]bool{}
	add := func(kind, message, test, file string, line int, id string) {
		if !seen[kind] {
			seen[kind] = true
			rules = append(rules, object{"id": kind, "shortDescription": object{"text": "A candidate's result is " + kind}})
		}
		place := object{"logicalLocations": []object{{"fullyQualifiedName": plainText(test)}}}
		if file != "" {
			place["physicalLocation"] = object{"artifactLocation": object{"uri": uriOf(file)}, "region": object{"startLine": max(line, 1)}}
		}
		results = append(results, object{"ruleId": kind, "level": "error", "message": object{"text": plainText(message)}, "locations": []object{place}, "partialFingerprints": object{"plumb/v1": id}})
	}
	for _, f := range o.Findings {
		add(f.Kind, f.Signature+", "+f.Candidate+": "+f.Reason, f.Tests[0], f.File, f.Line, f.ID)
	}
	if len(o.Findings) == 0 {
		for _, f := range o.Failures {
			add(f.Verdict, f.Candidate+": "+f.Reason, f.Test, f.File, f.Line, f.ID)
		}
	}
	return indentedJSON(w, object{
		"$schema": "https://json.schemastore.org/sarif-2.1.0.json", "version": "2.1.0",
		"runs": []object{{"tool": object{"driver": object{"name": "plumb", "version": cmp.Or(o.Plumb, "unknown"), "rules": rules}}, "results": results, "columnKind": "unicodeCodePoints"}},
	})
}

func plainText(text string) string { return backend.Printable(text, outlineText) }

func uriOf(file string) string { return strings.ReplaceAll(filepath.ToSlash(file), " ", "%20") }

// CodeQuality writes the findings as GitLab's code quality report.
func (o *Outline) CodeQuality(w io.Writer) error {
	issues := []object{}
	for _, f := range o.Findings {
		issues = append(issues, issue(f.Signature+", "+f.Candidate, f.Kind, f.ID, cmp.Or(f.File, f.Tests[0]), f.Line))
	}
	if len(o.Findings) == 0 {
		for _, f := range o.Failures {
			issues = append(issues, issue(f.Candidate+": "+firstLine(f.Reason), f.Verdict, f.ID, cmp.Or(f.File, f.Test), f.Line))
		}
	}
	return indentedJSON(w, issues)
}

func issue(text, kind, id, path string, line int) object {
	return object{"description": plainText(text), "check_name": "plumb " + kind, "fingerprint": id, "severity": "major", "location": object{"path": plainText(path), "lines": object{"begin": max(line, 1)}}}
}

// Badge writes a small picture of the result.
func (o *Outline) Badge(w io.Writer) error {
	findings := 0
	if !o.Aligned() {
		findings = max(len(o.Findings), 1)
	}
	return WriteBadge(w, o.Cases, o.Verdicts["aligned"], findings)
}

// WriteBadge writes a small picture of a run of so many cases.
func WriteBadge(w io.Writer, cases, aligned, findings int) error {
	text, colour := fmt.Sprintf("%d aligned", aligned), "#1a7f37"
	switch {
	case findings > 0:
		text, colour = plural(findings, "finding"), "#b3261e"
	case cases == 0:
		text, colour = "nothing judged", "#57606a"
	}
	width := 50 + 7*len(text) + 12
	_, err := fmt.Fprintf(w, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="20" role="img" aria-label="plumb: %s"><title>plumb: %s</title><rect width="50" height="20" fill="#24292f"/><rect x="50" width="%d" height="20" fill="%s"/><g fill="#ffffff" font-family="Verdana,sans-serif" font-size="11"><text x="8" y="14">plumb</text><text x="56" y="14">%s</text></g></svg>
`, width, text, text, width-50, colour, text)
	return err
}

// mostAnnotations bounds those of GitHub, which shows ten of a step.
const mostAnnotations = 10

// Annotations writes the findings as commands of GitHub Actions.
func (o *Outline) Annotations(w io.Writer) error {
	escape := strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A").Replace
	property := func(text string) string {
		return strings.NewReplacer(":", "%3A", ",", "%2C").Replace(escape(plainText(text)))
	}
	say := func(file string, line int, title, text string) error {
		at := ""
		if file != "" {
			at = fmt.Sprintf("file=%s,line=%d,", property(file), max(line, 1))
		}
		_, err := fmt.Fprintf(w, "::error %stitle=%s::%s\n", at, property(title), escape(plainText(text)))
		return err
	}
	for i, f := range o.Findings {
		if i == mostAnnotations {
			return nil
		}
		if err := say(f.File, f.Line, "plumb: "+f.Signature, f.Candidate+": "+f.Reason); err != nil {
			return err
		}
	}
	for i, f := range o.Failures {
		if len(o.Findings) > 0 || i == mostAnnotations {
			return nil
		}
		if err := say(f.File, f.Line, "plumb: "+f.Verdict, f.Candidate+", "+f.Test+": "+f.Reason); err != nil {
			return err
		}
	}
	return nil
}
