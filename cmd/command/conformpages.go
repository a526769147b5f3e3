package command

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"plumb/internal/campaign/report"
	"plumb/internal/conform/baseline"
	"plumb/internal/judge/verdict"
	"plumb/tensor"
)

// vendorPages are the files of a device maker's report.
type vendorPages struct {
	html, markdown, summary, before, dropped string

	left []string // lines of what is left out
}

func (v *vendorPages) add(fl *pflag.FlagSet) {
	fl.Var(outFile(&v.html), "html", "write the report as one page to this file: functions, dtypes and modes, failures, networks; --markdown FILE writes it in Markdown")
	fl.Var(outFile(&v.markdown), "markdown", "write the report in Markdown to this file")
	fl.Lookup("markdown").Hidden = true
	fl.Var(outFile(&v.summary), "summary", "write the contents of the report as JSON to this file")
	fl.Var(inFile(&v.before), "before", "a --summary of an earlier run that the report compares with (default: with --store the one before, of the same baseline and candidate)")
	fl.Var(outFile(&v.dropped), "dropped", "write the cases that were not judged to this file, a line each: what became of it, its name, the reason")
}

// leftOut notes a case that was not judged.
func (v *vendorPages) leftOut(rec *baseline.Record) {
	if v.dropped == "" {
		return
	}
	word := string(rec.Verdict.Word)
	switch {
	case rec.Skipped:
		word = string(report.Skipped)
	case rec.Verdict.Word != verdict.Unsupported && rec.Verdict.Word != verdict.Skipped:
		return
	}
	v.left = append(v.left, fmt.Sprintf("%s\t%s\t%s\n", word, testName(rec), firstLineOf(rec.Verdict.Reason)))
}

// write writes the files that were asked for.
func (v *vendorPages) write(c *report.Conformance) error {
	var errs []error
	for _, page := range []struct {
		path  string
		write func(io.Writer) error
	}{
		{v.html, c.HTML}, {v.markdown, c.Markdown},
		{v.summary, func(w io.Writer) error {
			enc := json.NewEncoder(w)
			enc.SetIndent("", "  ")
			return enc.Encode(c)
		}},
		{v.dropped, func(w io.Writer) error {
			_, err := io.WriteString(w, strings.Join(v.left, ""))
			return err
		}},
	} {
		if page.path != "" {
			errs = append(errs, writeReport(page.path, page.write))
		}
	}
	return errors.Join(errs...)
}

// vendorDetails are what a record tells beside its verdict.
func (r *conformRun) vendorDetails(rec *baseline.Record) report.CaseDetails {
	d := report.CaseDetails{Mode: report.ModeForward, Kind: string(rec.Verdict.Kind), Elapsed: rec.Elapsed}
	switch {
	case rec.Variant == "inplace":
		d.Mode = report.ModeInPlace
	case rec.Variant != "":
		d.Mode = rec.Variant
	case r.backward(rec):
		d.Mode = report.ModeBackward
	}
	for i := range rec.Program.Inputs {
		in := &rec.Program.Inputs[i]
		d.Bytes += int64(tensor.NumElements(in.Shape) * in.DType.Size())
	}
	return d
}

// backward says that gradients are judged. Of a record out of the store, which
// has no program, the config says whether they are asked for.
func (r *conformRun) backward(rec *baseline.Record) bool {
	if len(rec.Program.Calls) > 0 {
		return len(rec.Program.Backward) > 0 && !rec.Verdict.ForwardOnly
	}
	c := r.modes.kit.Case(rec.Entry)
	return c != nil && c.Differentiates() && !r.modes.forward && !r.kept.forwardOnly()
}

// about says what was run.
func (r *conformRun) about() [][2]string {
	m := &r.base.Manifest
	flags, err := r.storedFlags(nil)
	if err != nil {
		flags = err.Error()
	}
	return [][2]string{
		{"date", r.started.Format(time.DateTime)},
		{"time", r.spent()},
		{"config", fmt.Sprintf("%s, SHA-256 %s", m.Config.Name, m.Config.SHA256)},
		{"baseline", fmt.Sprintf("recorded by plumb %s, SHA-256 %s", m.Plumb, r.base.SHA256)},
		{"flags", flags},
		{"plumb", plumbVersion()},
	}
}

// spent says what the run took, and how much of it the candidate's own calls:
// the rest is Plumb's, of the candidate's process what is no call.
func (r *conformRun) spent() string {
	text := fmt.Sprintf("%.1f s; %.1f CPU-s without start-up", r.summary.Elapsed.Seconds(), r.cost.Seconds())
	if r.calls == 0 {
		return text
	}
	return text + fmt.Sprintf(": %.1f in the candidate's own calls, %.1f of Plumb's", r.calls.Seconds(), (r.cost-r.calls).Seconds())
}

// compare compares with the run before, if there is one.
func (r *conformRun) compare() error {
	if path := r.pages.before; path != "" {
		text, err := readRegular(path)
		if err != nil {
			return err
		}
		r.before, r.earlier = &report.Conformance{}, path
		if err := json.Unmarshal(text, r.before); err != nil {
			return fmt.Errorf("--before %s is no --summary of a run: %w", path, err)
		}
	}
	if r.before != nil {
		r.vendor.Compare(r.earlier, r.before)
	}
	return nil
}

// writeReport writes a file beside its path and renames it, so that one that was
// there stays where this one cannot be written. What is no regular file is
// written to.
func writeReport(path string, write func(io.Writer) error) error {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		return errors.Join(write(f), f.Close())
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".plumb-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	if err := errors.Join(write(f), f.Chmod(0o644), f.Close()); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return os.Rename(f.Name(), path)
}
