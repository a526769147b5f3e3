package script

import (
	"strings"

	"go.starlark.net/starlark"
)

// maxPrinted bounds what one draw prints, in bytes.
const maxPrinted = 64 << 10

// printCall is Python's print. A tensor is printed by its name in the program:
// nothing is computed for it.
func printCall(t *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	sep, end := " ", "\n"
	for _, kw := range kwargs {
		if text, ok := kw[1].(starlark.String); ok {
			switch kw[0] {
			case starlark.String("sep"):
				sep = string(text)
			case starlark.String("end"):
				end = string(text)
			}
		}
	}
	texts := make([]string, len(args))
	for i, a := range args {
		texts[i] = str(a)
	}
	if d, ok := t.Local(drawKey).(*draw); ok {
		d.print(strings.Join(texts, sep) + end)
	}
	return starlark.None, nil
}

// print adds to what the draw prints.
func (d *draw) print(text string) {
	if d.env.Print == nil {
		return
	}
	if room := maxPrinted - d.printed.Len(); len(text) > room {
		text = text[:room]
	}
	d.printed.WriteString(text)
}

// handPrinted hands on what the draw has printed.
func (d *draw) handPrinted() {
	if d.printed.Len() > 0 {
		d.env.Print(d.printed.String())
	}
}
