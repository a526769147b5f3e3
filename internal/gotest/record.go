package gotest

import (
	"flag"
	"regexp"
	"strings"
	"sync"

	"plumb/backend/recorded"
	"plumb/internal/campaign"
)

// recording are the cases of all tests of this process so far.
var recording struct {
	sync.Mutex
	cases []recorded.Case
}

// record adds the run's cases to the file of -plumb.record.
func (r *run) record(reference campaign.Opener) error {
	ref, err := reference()
	if err != nil {
		return err
	}
	defer ref.Close()
	recording.Lock()
	defer recording.Unlock()
	recording.cases = append(recording.cases, r.cases...)
	return recorded.WriteFile(*recordFlag, ref.Info(), recording.cases)
}

// pattern is the argument of -run that selects one test by its name.
func pattern(name string) string {
	parts := strings.Split(name, "/")
	for i, p := range parts {
		parts[i] = "^" + regexp.QuoteMeta(p) + "$"
	}
	return strings.Join(parts, "/")
}

func value(name string) string { return flag.Lookup(name).Value.String() }
