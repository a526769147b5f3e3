package repro

import (
	"bytes"
	"fmt"
	"text/template"

	_ "embed"
)

//go:embed native.tmpl
var nativeText string

var nativeTemplate = template.Must(template.New("native").Parse(nativeText))

// goMod is the module file of a bundle's Go test: the packages that the test
// needs of Plumb import one module besides.
const goMod = `module repro

go 1.26.0

require plumb v0.0.0

require golang.org/x/sys v0.49.0 // indirect

// Say where Plumb's source is, and run: go test .
// replace plumb => /path/to/plumb
`

const goSum = `golang.org/x/sys v0.49.0 h1:XbzkgYJHdqh/8m2Uu0W/dQv8nktxx4BFHp1M0gROTXA=
golang.org/x/sys v0.49.0/go.mod h1:hNLxWAXmnKAxqDtdwIYC4bM9oQPEecfsnNMuSxOs3og=
`

// nativeScript is what the template of a Go test is filled with.
type nativeScript struct {
	Title, Reason, Origin string
}

// addNative writes the Go test of a side that Plumb's own operators run.
func (b *Bundle) addNative(f *Finding, p *place, role string) error {
	w := &pythonFile{f: f, p: p}
	s := nativeScript{Title: w.title(), Reason: clean(f.Verdict.Reason), Origin: w.origin()}
	var text bytes.Buffer
	if err := nativeTemplate.Execute(&text, s); err != nil {
		return fmt.Errorf("repro_test.go: %w", err)
	}
	b.files["repro_test.go"], b.files[goModFile], b.files[goSumFile] = text.Bytes(), []byte(goMod), []byte(goSum)
	b.m.Sides["native"] = script{File: "repro_test.go", Role: role}
	b.m.Run = append(b.m.Run, "go mod edit -replace plumb=/path/to/plumb && go test .")
	return nil
}
