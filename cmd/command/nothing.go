package command

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
)

// noneSelected is a selection that names nothing.
type noneSelected struct{ error }

// nothing ends a command that judged no case, which is no pass.
func nothing(why error) error {
	return &exitError{exitNothing, fmt.Errorf("no case was judged: %w", why)}
}

// mistake is a mistake of the caller's, unless it is a selection that names
// nothing: then no case was judged.
func mistake(err error) error {
	var none noneSelected
	if errors.As(err, &none) {
		return nothing(err)
	}
	return usage(err)
}

// quota is how much has to be judged: a share of what was asked, or a number of
// cases; zero asks for nothing.
type quota struct {
	share float64
	count int
	text  string
}

// quotaFlag is the value of a flag.
func quotaFlag(to *quota) pflag.Value {
	return &limited[quota]{to: to, kind: "share|count", want: "a share such as 40% or 0.4, or a number of cases, at least 1", parse: parseQuota}
}

func parseQuota(text string) (quota, bool) {
	if n, err := strconv.Atoi(text); err == nil {
		return quota{count: n, text: text}, n >= 1
	}
	number, percent := strings.CutSuffix(text, "%")
	share, err := strconv.ParseFloat(number, 64)
	if percent {
		share /= 100
	}
	return quota{share: share, text: text}, err == nil && share > 0 && share <= 1
}

// missed says that fewer cases were judged than have to be; nil where enough were.
func (q quota) missed(judged, asked int) error {
	if judged >= q.count && float64(judged) >= q.share*float64(asked) {
		return nil
	}
	return &exitError{exitNothing, fmt.Errorf("%d of %d cases were judged, fewer than --min-implemented %s", judged, asked, q.text)}
}
