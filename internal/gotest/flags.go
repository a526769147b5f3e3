package gotest

import (
	"flag"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"

	"plumb/backend/open"
	"plumb/internal/find/shrink"
)

var (
	seedFlag      = flag.Uint64("plumb.seed", 0, "the seed of all cases (default: a new one each time, printed with each failure)")
	numberFlag    = flag.Int("plumb.n", 0, "cases per test (default: the test's own)")
	referenceFlag = flag.String("plumb.reference", "torch", `the backend that is taken to be right: `+help+`, or "none" to compare the candidate with itself`)
	candidateFlag = flag.String("plumb.candidate", "native", "the backends that are judged, separated by commas: "+help)
	pythonFlag    = flag.String("plumb.python", "", "the Python that has torch")
	shrinkFlag    = flag.Int("plumb.shrink", shrink.DefaultBudget.Runs, "candidate runs allowed for making one failing case smaller; 0 leaves it as drawn")
	recordFlag    = flag.String("plumb.record", "", "save the cases and the reference's results in this file, for -plumb.reference=recorded:FILE")
)

// checkGraph is -plumb.check-graph: yes or no, or as the test says.
type checkGraph struct{ says *bool }

var graphFlag checkGraph

func init() {
	flag.Var(&graphFlag, "plumb.check-graph", "run every case as a static graph too, with =false none, and compare values, gradients, in-place changes, buffers, and a module's parameters after a step of SGD (default: as the test says)")
}

// String is empty where the flag is not given.
func (c *checkGraph) String() string {
	if c.says == nil {
		return ""
	}
	return strconv.FormatBool(*c.says)
}

// Set takes true, false, or what String gives without the flag.
func (c *checkGraph) Set(text string) error {
	if text == "" {
		c.says = nil
		return nil
	}
	yes, err := strconv.ParseBool(text)
	c.says = &yes
	return err
}

// IsBoolFlag lets the flag stand alone for true.
func (c *checkGraph) IsBoolFlag() bool { return true }

// ChecksGraph says whether a test is judged in graph modes too, which it says
// of itself unless -plumb.check-graph does.
func ChecksGraph(test bool) bool {
	if graphFlag.says != nil {
		return *graphFlag.says
	}
	return test
}

var help = strings.ReplaceAll(open.Help, "--python", "-plumb.python")

// given reports whether a flag is on the command line.
func given(name string) (found bool) {
	flag.Visit(func(f *flag.Flag) { found = found || f.Name == name })
	return found
}

var fresh = sync.OnceValue(func() uint64 { return rand.Uint64() >> 32 })

// Seed returns -plumb.seed, else one drawn for this process.
func Seed() uint64 {
	if given("plumb.seed") {
		return *seedFlag
	}
	return fresh()
}

// SeedOr returns -plumb.seed, else the default.
func SeedOr(def uint64) uint64 {
	if given("plumb.seed") {
		return *seedFlag
	}
	return def
}

// Number returns -plumb.n, else the default.
func Number(def int) int {
	if *numberFlag > 0 {
		return *numberFlag
	}
	return def
}
