package script

import (
	"fmt"
	"regexp"
	"slices"

	"go.starlark.net/starlark"
)

// warningsNames are those of the module warnings. Of warnings a test sees those
// that it gives itself: which ones a framework gives is no part of a program.
func warningsNames() starlark.StringDict {
	return starlark.StringDict{
		"filterwarnings": ignoredCall("filterwarnings"), "simplefilter": ignoredCall("simplefilter"), "resetwarnings": ignoredCall("resetwarnings"),
		"warn":           starlark.NewBuiltin("warn", warn),
		"catch_warnings": starlark.NewBuiltin("catch_warnings", catchWarnings),
	}
}

// warn tells those that record warnings.
func warn(t *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	a := arguments{"warn", []string{"message", "category", "stacklevel", "source"}, make([]starlark.Value, 4)}
	if err := a.bind(args, kwargs); err != nil {
		return nil, err
	}
	d, ok := t.Local(drawKey).(*draw)
	if !ok {
		return starlark.None, nil
	}
	told := d.recorded()
	if told == nil {
		return starlark.None, nil
	}
	message, category := a.get("message"), a.get("category")
	switch w := message.(type) {
	case *raised:
		category = exceptionTypes[w.class]
	case *object:
		category = w.class
	default:
		if category == nil {
			category = exceptionTypes["UserWarning"]
		}
		var err error
		if message, err = starlark.Call(t, category, starlark.Tuple{message}, nil); err != nil {
			return nil, err
		}
	}
	return starlark.None, told.Append(&library{name: "WarningMessage", names: starlark.StringDict{"message": message, "category": category}})
}

// recorded is what the innermost block that records warnings has of them; nil for no such block.
func (d *draw) recorded() *starlark.List {
	for _, b := range slices.Backward(d.blocks) {
		for _, c := range slices.Backward(b.contexts) {
			if c.warned != nil {
				return c.warned
			}
		}
	}
	return nil
}

// catchWarnings is warnings.catch_warnings.
func catchWarnings(_ *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	a := arguments{"catch_warnings", []string{"record"}, make([]starlark.Value, 1)}
	if err := a.bind(args, kwargs); err != nil {
		return nil, err
	}
	return recording(nil), nil
}

// recording is a context in which warnings are recorded; of what it has at its
// end, and of how many calls the block made, check decides.
func recording(check func(t *starlark.Thread, told []starlark.Value, calls int) error) *manager {
	m := &manager{warned: starlark.NewList(nil)}
	first := 0
	m.enter = func(t *starlark.Thread) (starlark.Value, error) {
		d, err := drawOf(t, "recording warnings")
		if err == nil {
			first = len(d.prog.Calls)
		}
		return m.warned, err
	}
	if check != nil {
		m.exit = func(t *starlark.Thread) (starlark.Value, error) {
			d, err := drawOf(t, "recording warnings")
			if err == nil {
				told, _ := sequence(m.warned)
				err = check(t, told, len(d.prog.Calls)-first)
			}
			return starlark.None, err
		}
	}
	return m
}

// expectWarning is pytest.warns, assertWarns and assertWarnsRegex.
func expectWarning(_ *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	a := arguments{"warns", []string{"expected_warning", "match"}, make([]starlark.Value, 2)}
	if err := a.bind(args, kwargs); err != nil {
		return nil, err
	}
	class, match := a.get("expected_warning"), a.get("match")
	if class == nil {
		class = exceptionTypes["Warning"]
	}
	var pattern *regexp.Regexp
	if s, ok := starlark.AsString(match); ok {
		var err error
		if pattern, err = regexp.Compile(s); err != nil {
			return nil, lack("the regular expression %q is not supported in test files: %v", s, err)
		}
	}
	return recording(func(t *starlark.Thread, told []starlark.Value, calls int) error {
		for _, v := range told {
			w, ok := v.(*library)
			if !ok { // which the test has put there
				continue
			}
			message := w.names["message"]
			text, err := toStr(t, starlark.Tuple{message})
			if err != nil {
				return err
			}
			s, _ := starlark.AsString(text)
			if isException(message, class) && (pattern == nil || pattern.MatchString(s)) {
				return nil
			}
		}
		if calls > 0 {
			return lack("a warning that calls of torch would give is not supported in test files")
		}
		return fmt.Errorf("DID NOT WARN: no warning of %s was given", repr(class, 0))
	}), nil
}
