package worker

import (
	"bytes"
	"encoding/json"
	"strings"
)

// TableEntry returns what a framework's table says of a name of PyTorch or an
// operator's id, as the text in the table; "" where it says nothing, and false
// where the framework has no table.
func TableEntry(framework, name string) (entry string, ok bool) {
	file, _, _ := strings.Cut(framework, ":") // the engines of ONNX share one
	text, err := sources.ReadFile("py/" + file + ".json")
	if err != nil {
		return "", false
	}
	var table map[string]json.RawMessage
	if json.Unmarshal(text, &table) != nil {
		return "", false
	}
	raw, there := table[name]
	if !there {
		return "", true
	}
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return string(raw), true
	}
	return b.String(), true
}
