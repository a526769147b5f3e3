package command

import (
	"errors"
	"fmt"
	"os"
)

// descriptor is what a terminal can be asked by.
type descriptor interface{ Fd() uintptr }

// stdout is the standard output of a command. A report that was not written
// whole is no report, so that the first error counts, whoever passed over it.
type stdout struct {
	file *os.File
	err  error
}

// Fd is the file's descriptor.
func (o *stdout) Fd() uintptr { return o.file.Fd() }

// Write writes to the file, until that has failed.
func (o *stdout) Write(b []byte) (int, error) {
	if o.err != nil {
		return 0, o.err
	}
	left := thisProcess.fresh(b)
	n, err := o.file.Write(left)
	o.err = err
	thisProcess.printed()
	return n + len(b) - len(left), err
}

// WriteString is Write of a text.
func (o *stdout) WriteString(s string) (int, error) { return o.Write([]byte(s)) }

// lost is how a command ends that ends with err: with a fault where its output
// was not written, unless it has findings or a mistake to tell.
func (o *stdout) lost(err error) error {
	if o.err == nil {
		return err
	}
	told := fmt.Errorf("standard output: %w", o.err)
	var e *exitError
	if errors.As(err, &e) && (e.code == exitFindings || e.code == exitUsage) && !errors.Is(err, o.err) {
		return &exitError{e.code, errors.Join(e.err, told)}
	}
	return &exitError{exitFault, told}
}
