package command

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"plumb/internal/campaign/report"
)

// reportFiles are the files of --report and of its short forms, by format.
type reportFiles struct {
	all   []reportFile
	given bool // these alone, and nothing that CI systems are given unasked
}

type reportFile struct{ format, path string }

// String is empty: there are no files by default.
func (f *reportFiles) String() string { return "" }

// Type names the kind of value for help.
func (f *reportFiles) Type() string { return "FORMAT=FILE" }

// Set takes one more file.
func (f *reportFiles) Set(text string) error {
	format, path, _ := strings.Cut(text, "=")
	if report.Formats[format] == nil && report.Folders[format] == nil || path == "" {
		return fmt.Errorf("want FORMAT=FILE, the format %s", strings.Join(append(slices.Sorted(maps.Keys(report.Formats)), slices.Sorted(maps.Keys(report.Folders))...), ", "))
	}
	if report.Folders[format] != nil {
		f.all = append(f.all, reportFile{format, path})
		return checkFolderToWrite(path)
	}
	if err := checkWritable(path); err != nil {
		return err
	}
	f.all = append(f.all, reportFile{format, path})
	return nil
}

// markdownFile is --markdown FILE.
type markdownFile struct{ *reportFiles }

// Set takes the file.
func (m markdownFile) Set(path string) error {
	if path == "" {
		return errors.New("want a file")
	}
	return m.reportFiles.Set("markdown=" + path)
}

// Type names the kind of value for help.
func (m markdownFile) Type() string { return "file" }

// flag adds --report.
func (f *reportFiles) flag(fl *pflag.FlagSet) {
	fl.Var(f, "report", "write the run in brief to this file, for other programs; may be repeated: json, markdown (a comment for a pull request), sarif, gitlab (code quality), badge (SVG), allure (a folder of results)")
}

// flags adds --report and what is short for it.
func (f *reportFiles) flags(fl *pflag.FlagSet) {
	f.flag(fl)
	fl.Var(markdownFile{f}, "markdown", "as --report markdown=FILE")
	fl.Lookup("markdown").Hidden = true
}

// wanted reports whether there is an outline to make: for files, or for annotations.
func (f *reportFiles) wanted() bool {
	if f.given {
		return len(f.all) > 0
	}
	f.forGitLab()
	return len(f.all) > 0 || annotates()
}

// forGitLab adds the report of code quality where GitLab runs the command: what a merge
// request shows at its lines, once .gitlab-ci.yml names the file as an artifact.
func (f *reportFiles) forGitLab() {
	const usual = "gl-code-quality-report.json"
	dir := os.Getenv("CI_PROJECT_DIR")
	if os.Getenv("GITLAB_CI") != "true" || dir == "" || slices.ContainsFunc(f.all, func(r reportFile) bool { return r.format == "gitlab" }) {
		return
	}
	if path := filepath.Join(dir, usual); checkWritable(path) == nil {
		f.all = append(f.all, reportFile{"gitlab", path})
	}
}

// annotates reports whether GitHub Actions runs the command, and shows findings at their lines.
func annotates() bool { return os.Getenv("GITHUB_ACTIONS") == "true" }

// close writes all of it. It returns the run's own error where there is one.
func (f *reportFiles) close(o *report.Outline, err error, log io.Writer) error {
	werr := f.write(o, log)
	if err == nil && werr != nil {
		return &exitError{exitFault, werr}
	}
	if werr != nil {
		fmt.Fprintln(log, "plumb:", werr)
	}
	return err
}

// write writes the files, and the annotations to log.
func (f *reportFiles) write(o *report.Outline, log io.Writer) error {
	var errs []error
	for _, one := range f.all {
		if err := one.write(o); err != nil {
			errs = append(errs, fmt.Errorf("--report %s=%s: %w", one.format, one.path, err))
		}
	}
	if annotates() && !f.given {
		errs = append(errs, o.Annotations(log))
	}
	return errors.Join(errs...)
}

// checkFolderToWrite refuses a path that is something else than a folder.
func checkFolderToWrite(path string) error {
	if info, err := os.Stat(path); err == nil && !info.IsDir() {
		return fmt.Errorf("%s is no folder", path)
	}
	return nil
}

func (f reportFile) write(o *report.Outline) error {
	if folder := report.Folders[f.format]; folder != nil {
		return folder(o, f.path)
	}
	file, err := os.Create(f.path)
	if err != nil {
		return err
	}
	w := bufio.NewWriter(file)
	return errors.Join(report.Formats[f.format](o, w), w.Flush(), file.Close())
}
