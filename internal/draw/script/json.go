package script

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"go.starlark.net/starlark"
)

// jsonText is json.dumps, whose text is that of Python.
func jsonText(t *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	if len(args) != 1 {
		return nil, fmt.Errorf("%s takes one value", b.Name())
	}
	w := jsonWriter{comma: ", ", colon: ": "}
	for _, v := range keyword(kwargs, "indent") {
		if n, err := starlark.AsInt32(v); err == nil && n >= 0 && n <= maxWidth {
			w.indent, w.comma = strings.Repeat(" ", n), ","
		}
	}
	for _, v := range keyword(kwargs, "sort_keys") {
		w.sorted = bool(v.Truth())
	}
	for _, v := range keyword(kwargs, "separators") {
		if pair, ok := sequence(v); ok && len(pair) == 2 {
			w.comma, w.colon = str(pair[0]), str(pair[1])
		}
	}
	for _, v := range keyword(kwargs, "default") {
		w.other, _ = v.(starlark.Callable)
	}
	if err := w.value(t, args[0], 0); err != nil {
		return nil, err
	}
	out := starlark.String(w.b.String())
	return out, spend(t, out)
}

type jsonWriter struct {
	b                    strings.Builder
	indent, comma, colon string
	sorted               bool
	other                starlark.Callable // what it cannot write; nil for none
}

func (w *jsonWriter) value(t *starlark.Thread, v starlark.Value, depth int) error {
	if depth > maxDepth || w.b.Len() > maxString {
		return fmt.Errorf("a value that is nested too deep, or too long, for JSON")
	}
	if d, ok := v.(*starlark.Dict); ok {
		return w.dict(t, d, depth)
	}
	if s, ok := v.(starlark.String); ok {
		w.text(string(s))
		return nil
	}
	if list, ok := sequence(v); ok {
		w.b.WriteByte('[')
		for i, e := range list {
			w.next(i, depth+1)
			if err := w.value(t, e, depth+1); err != nil {
				return err
			}
		}
		w.end(len(list), depth, ']')
		return nil
	}
	switch v := v.(type) {
	case starlark.NoneType:
		w.b.WriteString("null")
	case starlark.Bool:
		w.b.WriteString(strings.ToLower(v.String()))
	case starlark.Int, starlark.Float:
		w.b.WriteString(strings.NewReplacer("nan", "NaN", "inf", "Infinity").Replace(str(v)))
	default:
		if w.other == nil {
			return &refusedError{"TypeError", fmt.Sprintf("Object of type %s is not JSON serializable", v.Type())}
		}
		out, err := starlark.Call(t, w.other, starlark.Tuple{v}, nil)
		if err != nil {
			return err
		}
		return w.value(t, out, depth+1)
	}
	return nil
}

func (w *jsonWriter) dict(t *starlark.Thread, d *starlark.Dict, depth int) error {
	items := d.Items()
	if w.sorted {
		slices.SortStableFunc(items, func(a, b starlark.Tuple) int { return strings.Compare(str(a[0]), str(b[0])) })
	}
	w.b.WriteByte('{')
	for i, item := range items {
		w.next(i, depth+1)
		key := starlark.String(str(item[0]))
		if _, text := item[0].(starlark.String); !text {
			switch item[0].(type) {
			case starlark.NoneType:
				key = "null"
			case starlark.Bool:
				key = starlark.String(strings.ToLower(str(item[0])))
			}
		}
		if err := w.value(t, key, depth+1); err != nil {
			return err
		}
		w.b.WriteString(w.colon)
		if err := w.value(t, item[1], depth+1); err != nil {
			return err
		}
	}
	w.end(len(items), depth, '}')
	return nil
}

// text writes a string in ASCII, as Python does.
func (w *jsonWriter) text(s string) {
	w.b.WriteByte('"')
	for _, r := range s {
		if short := jsonShort[r]; short != "" {
			w.b.WriteString(short)
		} else if r >= ' ' && r < utf8.RuneSelf-1 {
			w.b.WriteRune(r)
		} else if high, low := utf16.EncodeRune(r); high != utf8.RuneError {
			fmt.Fprintf(&w.b, `\u%04x\u%04x`, high, low)
		} else {
			fmt.Fprintf(&w.b, `\u%04x`, r)
		}
	}
	w.b.WriteByte('"')
}

var jsonShort = map[rune]string{'"': `\"`, '\\': `\\`, '\n': `\n`, '\r': `\r`, '\t': `\t`, '\b': `\b`, '\f': `\f`}

// next goes on to the i-th part.
func (w *jsonWriter) next(i, depth int) {
	if i > 0 {
		w.b.WriteString(w.comma)
	}
	w.line(depth)
}

func (w *jsonWriter) end(n, depth int, bracket byte) {
	if n > 0 {
		w.line(depth)
	}
	w.b.WriteByte(bracket)
}

func (w *jsonWriter) line(depth int) {
	if w.indent != "" {
		w.b.WriteString("\n" + strings.Repeat(w.indent, depth))
	}
}
