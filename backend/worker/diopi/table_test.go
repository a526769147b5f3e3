package diopi

import (
	"flag"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"plumb/op"
	"plumb/ops"
)

// TestTableNamesWhatThereIs holds the table to the operators and their parameters.
func TestTableNamesWhatThereIs(t *testing.T) {
	literal := regexp.MustCompile(`^(out[12]?|outs|#outs|new[12]?|grad|result1?|saved[01]|\+(indices|channels|rows|groups|info|losses|paths|mask|planemask)|-?[0-9.]+|true|false|None|'[a-z]*')$`)
	defs := ops.Table()
	for _, id := range table.host {
		if defs.Def(id) == nil {
			t.Errorf("the host's %s is no operator", id)
		}
	}
	for _, part := range []map[string][]entry{table.forward, table.inPlace, table.backward} {
		for _, id := range slices.Sorted(maps.Keys(part)) {
			d := defs.Def(id)
			if d == nil {
				t.Errorf("%s is no operator", id)
				continue
			}
			for _, e := range part[id] {
				for _, a := range named(e, literal) {
					if !slices.ContainsFunc(d.Sigs()[0].Params, func(p op.Param) bool { return p.Name == a }) {
						t.Errorf("%s: %s has no parameter %s", id, d.Sigs()[0], a)
					}
				}
			}
		}
	}
	if n := len(table.forward); n < 100 {
		t.Errorf("the table has %d operators", n)
	}
}

// TestWholesHaveTheirResults: each output of a case is written by the function.
func TestWholesHaveTheirResults(t *testing.T) {
	for name, w := range wholes {
		for _, r := range w.results {
			if !slices.Contains(w.forward.args, r) {
				t.Errorf("%s writes no %s", name, r)
			}
		}
		if len(w.results) == 0 {
			t.Errorf("%s has no results", name)
		}
	}
	if len(wholes) < 20 {
		t.Errorf("%d functions", len(wholes))
	}
}

// word is what the table asks of an argument.
var word = regexp.MustCompile(`^(?:sizes|spatial|rows?|fitted|parts|extent|tensor|like|positions|implicit|placed|places|kept)\((\w+)\)$`)

// named are the parameters that an entry names.
func named(e entry, literal *regexp.Regexp) []string {
	names := slices.Clone(e.told)
	for k := range e.when {
		if !slices.Contains([]string{"tape", "alike", "batched"}, k) {
			names = append(names, k)
		}
	}
	args := e.args
	if e.before != nil {
		args = slices.Concat(args, e.before.args)
	}
	for _, a := range args {
		for part := range strings.SplitSeq(a, " or ") {
			part = strings.TrimPrefix(word.ReplaceAllString(part, "$1"), "grad.")
			if !literal.MatchString(part) {
				names = append(names, strings.TrimPrefix(part, "#"))
			}
		}
	}
	return names
}

// TestTableRefusesWhatTheInterfaceLacks reads lines that are wrong.
func TestTableRefusesWhatTheInterfaceLacks(t *testing.T) {
	for _, line := range []string{"relu: diopiRelu(out)", "relu: diopiRelux(out, input)", "relu", "relu: diopiRelu"} {
		if _, err := parseTable(line); err == nil {
			t.Errorf("%q is accepted", line)
		}
	}
}

var headers = flag.String("headers", "../../../../shared/data/diopi-include", "the folder of DIOPI's headers")
var update = flag.Bool("update", false, "write functions.txt anew from the headers")

// TestHeadersDeclareTheFunctions holds functions.txt to the headers it is made from.
func TestHeadersDeclareTheFunctions(t *testing.T) {
	names := []string{"functions.h", "functions_ext.h", "functions_sparse.h", "functions_mmcv.h", "functions_lmdeploy.h"}
	var lines []string
	declared := map[string]bool{}
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join(*headers, name))
		if err != nil {
			t.Skip("DIOPI's headers are not here: " + err.Error())
		}
		for _, line := range declarations(string(text)) {
			if name, _, _ := strings.Cut(line, " "); !declared[name] {
				declared[name] = true
				lines = append(lines, line)
			}
		}
	}
	notice, list, _ := strings.Cut(functionsText, "\ndiopi")
	if want := strings.Join(lines, "\n") + "\n"; "diopi"+list != want {
		if !*update {
			t.Fatal("functions.txt is not what the headers declare: run with -update")
		}
		if err := os.WriteFile("functions.txt", []byte(notice+"\n"+want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

var (
	comment     = regexp.MustCompile(`(?s)/\*.*?\*/|//[^\n]*`)
	declaration = regexp.MustCompile(`DIOPI_API\s+diopiError_t\s+(\w+)\s*\(\s*diopiContextHandle_t\s+\w+\s*,?([^)]*)\)\s*;`)
	parameter   = regexp.MustCompile(`^(\w+)\s*(\**)\s*\w*$`)
)

// headerKinds are the header's types, without const, by kind.
var headerKinds = map[string]string{
	"diopiTensorHandle_t": "t", "diopiConstTensorHandle_t": "c", "diopiTensorHandle_t*": "T", "diopiConstTensorHandle_t*": "C",
	"diopiSize_t": "z", "diopiSize_t*": "Z", "diopiScalar_t*": "s", "int64_t": "i", "int64_t*": "I", "int32_t": "w", "int": "w", "double": "d", "double*": "D",
	"float": "f", "bool": "b", "bool*": "B", "char*": "n", "diopiReduction_t": "r", "diopiRoundMode_t": "m", "diopiMemoryFormat_t": "o", "diopiGeneratorHandle_t": "g",
}

// declarations are the functions of a header as functions.txt has them; those with
// parameters of other types are left out.
func declarations(header string) []string {
	var lines []string
	for _, m := range declaration.FindAllStringSubmatch(comment.ReplaceAllString(header, ""), -1) {
		ks := ""
		for p := range strings.SplitSeq(m[2], ",") {
			if p = strings.Join(strings.Fields(strings.ReplaceAll(p, "const ", " ")), " "); p == "" {
				continue
			}
			kind := "?"
			if of := parameter.FindStringSubmatch(p); of != nil && headerKinds[of[1]+of[2]] != "" {
				kind = headerKinds[of[1]+of[2]]
			}
			ks += kind
		}
		if !strings.Contains(ks, "?") && ks != "" {
			lines = append(lines, m[1]+" "+ks)
		}
	}
	return lines
}
