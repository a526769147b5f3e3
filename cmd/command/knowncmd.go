package command

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"plumb/internal/find/accepted"
	"plumb/internal/find/bundle"
	"plumb/internal/judge/verdict"
	"plumb/program"
)

func newKnown() *cobra.Command {
	var file, findings string
	cmd := &cobra.Command{
		Use:   "known",
		Short: "List the failures that are accepted until a given day, or accept one",
		Long: `Known lists the entries of ` + defaultKnown + `: failures that plumb run accepts until a given
day. An entry says what it covers (operator, kind of failure, dtype, layout, mode,
candidate), why, and who answers for it. Another kind of failure of the same
operator is still a finding. An entry that no longer fails is reported as fixed;
with --set known.strict=true plumb run then fails.`,
		Example: `  plumb known
  plumb known add 3f5a9c1200b7d4e8 --reason "waits for the new kernel" --until 2027-01-31
  plumb run --set known.strict=true`,
		Args: noArguments(),
		RunE: func(cmd *cobra.Command, _ []string) error { return listKnown(cmd.OutOrStdout(), file) },
	}
	file = defaultKnown
	cmd.PersistentFlags().Var(outFile(&file), "file", "the list")
	var e accepted.Entry
	add := &cobra.Command{
		Use:     "add ID | FOLDER | ZIP",
		Short:   "Accept a finding until a given day",
		Example: `  plumb known add 3f5a9c12 --until 2027-01-31 --owner ada --reason 'one unit off, by design'`,
		Args:    takes(1, 1, "one finding: an ID, a folder or a zip file"),
		RunE: func(cmd *cobra.Command, args []string) error {
			f := reproFlags{findings: findings}
			b, err := f.open(args[0])
			if err != nil {
				return usage(err)
			}
			if err := describe(&e, b); err != nil {
				return usage(err)
			}
			return addKnown(cmd.OutOrStdout(), file, e)
		},
	}
	fl := add.Flags()
	fl.Var(folder(&findings), "findings", "the folder of findings (default: in the user's cache)")
	fl.StringVar(&e.Reason, "reason", "", "why it is accepted")
	fl.StringVar(&e.Until, "until", "", "the last day, as 2027-01-31")
	fl.StringVar(&e.Owner, "owner", os.Getenv("USER"), "who answers for it")
	fl.StringVar(&e.Link, "link", "", "where it is tracked")
	fl.StringVar(&e.DType, "dtype", "", "narrow it to a dtype")
	fl.StringVar(&e.Layout, "layout", "", "narrow it to a layout: non-contiguous, channels_last or expanded")
	cmd.AddCommand(add)
	return cmd
}

// describe fills an entry's scope from a bundle.
func describe(e *accepted.Entry, b *bundle.Bundle) error {
	f, err := b.Finding()
	if err != nil {
		return err
	}
	e.Kind, e.Signature = accepted.KindOf(f.Verdict), f.Signature
	e.Candidate, e.Mode, _ = strings.Cut(f.Candidate.Spec, ":")
	e.Operator = blamed(f.Program, f.Verdict)
	return nil
}

// blamed returns the operator of the call that differs, or of the last call
// where none is blamed.
func blamed(p *program.Program, v *verdict.Verdict) string {
	target := ""
	if v.Where != nil {
		target = v.Where.Target
	}
	for i := len(p.Calls) - 1; i >= 0 && target == ""; i-- {
		if p.Calls[i].Target != "Module.__call__" {
			target = p.Calls[i].Target
		}
	}
	return target[strings.LastIndexByte(target, '.')+1:]
}

func addKnown(out io.Writer, path string, e accepted.Entry) error {
	if err := e.Validate(); err != nil {
		return usage(fmt.Errorf("%w (--reason, --until and --owner say what has to be known of an accepted failure)", err))
	}
	l, err := readKnown(path)
	if errors.Is(err, fs.ErrNotExist) {
		l, err = &accepted.List{Version: accepted.Version}, nil
	}
	if err != nil {
		return usage(err)
	}
	l.Known = append(l.Known, e)
	text, err := l.Bytes()
	if err == nil {
		err = whole(path, func(w io.Writer) error { _, err := w.Write(text); return err })
	}
	if err != nil {
		return usage(err)
	}
	fmt.Fprintf(out, "%s: %s is accepted until %s\n", path, &e, e.Until)
	return nil
}

func listKnown(out io.Writer, path string) error {
	l, err := readKnown(path)
	if errors.Is(err, fs.ErrNotExist) {
		fmt.Fprintf(out, "there is no %s: nothing is accepted\n", path)
		return nil
	}
	if err != nil {
		return usage(err)
	}
	for i := range l.Known {
		e := &l.Known[i]
		until := "until " + e.Until
		if e.Expired(time.Now()) {
			until = "expired on " + e.Until
		}
		fmt.Fprintf(out, "%s  %s  %s  %s\n", e, until, e.Owner, strings.TrimSpace(e.Reason+" "+e.Link))
	}
	return nil
}
