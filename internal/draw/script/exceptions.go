package script

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.starlark.net/starlark"
)

// exceptions are Python's built-in exceptions, each with the one that it is a
// kind of (The Python Library Reference, "Exception hierarchy"), and those of torch.
var exceptions = map[string]string{
	"BaseException": "", "Exception": "BaseException", "KeyboardInterrupt": "BaseException", "SystemExit": "BaseException",
	"ArithmeticError": "Exception", "ZeroDivisionError": "ArithmeticError", "OverflowError": "ArithmeticError", "FloatingPointError": "ArithmeticError",
	"LookupError": "Exception", "IndexError": "LookupError", "KeyError": "LookupError",
	"AssertionError": "Exception", "AttributeError": "Exception", "FrozenInstanceError": "AttributeError", "ImportError": "Exception", "ModuleNotFoundError": "ImportError",
	"NameError": "Exception", "UnboundLocalError": "NameError", "OSError": "Exception", "FileNotFoundError": "OSError", "TimeoutError": "OSError",
	"RuntimeError": "Exception", "NotImplementedError": "RuntimeError", "RecursionError": "RuntimeError", "LinAlgError": "RuntimeError", "OutOfMemoryError": "RuntimeError",
	"StopIteration": "Exception", "TypeError": "Exception", "ValueError": "Exception", "UnicodeError": "ValueError", "MemoryError": "Exception",
	"Warning": "Exception", "UserWarning": "Warning", "DeprecationWarning": "Warning", "FutureWarning": "Warning", "RuntimeWarning": "Warning",
}

// exceptionTypes are their classes.
var exceptionTypes = func() starlark.StringDict {
	out := starlark.StringDict{}
	for name := range exceptions {
		out[name] = builtin(name, func(_ *starlark.Thread, a starlark.Tuple) (starlark.Value, error) { return &raised{name, a}, nil })
	}
	return out
}()

func init() {
	maps.Copy(predeclared, exceptionTypes)
	for name, f := range map[string]func(*starlark.Thread, starlark.Tuple) (starlark.Value, error){fnRaise: raise, fnAssert: assert} {
		predeclared[name] = builtin(name, f)
	}
}

// raised is a built-in exception.
type raised struct {
	class string
	args  starlark.Tuple
}

func (r *raised) String() string {
	return strings.TrimSuffix(r.class+": "+r.message(), ": ")
}
func (*raised) Type() string          { return "exception" }
func (r *raised) Freeze()             { r.args.Freeze() }
func (*raised) Truth() starlark.Bool  { return true }
func (*raised) Hash() (uint32, error) { return 0, fmt.Errorf("unhashable type: exception") }
func (*raised) AttrNames() []string   { return []string{"args"} }

// Attr returns the arguments of the exception.
func (r *raised) Attr(name string) (starlark.Value, error) {
	if name == "args" {
		return r.args, nil
	}
	return nil, nil
}

// message is what str tells.
func (r *raised) message() string { return messageOf(r.args) }

func messageOf(args starlark.Tuple) string {
	var parts []string
	for _, a := range args {
		parts = append(parts, str(a))
	}
	return strings.Join(parts, ", ")
}

// exceptionClass are the classes of a file that are exceptions: their objects
// keep the arguments that made them.
type exceptionClass struct{ plainClass }

func (exceptionClass) init(_ *starlark.Thread, o *object, args starlark.Tuple, _ []starlark.Tuple) error {
	o.state = args
	return nil
}

func (exceptionClass) attr(o *object, name string) (starlark.Value, error) {
	if args, ok := o.state.(starlark.Tuple); ok && name == "args" {
		return args, nil
	}
	return nil, nil
}

// pythonError is an exception that a test file raised.
type pythonError struct{ value starlark.Value }

func (e *pythonError) Error() string {
	text := e.value.String()
	if o, ok := e.value.(*object); ok {
		args, _ := o.state.(starlark.Tuple)
		text = strings.TrimSuffix(o.class.name+": "+messageOf(args), ": ")
	}
	return "the test raises " + text
}

// refusedError is a call that the reference refused in a block that may go on
// without it.
type refusedError struct{ class, message string }

func (e *refusedError) Error() string { return e.class + ": " + e.message }

// refusal is an observer's error that says which exception the reference raised.
type refusal interface {
	error
	Raised() (class, message string, ok bool)
}

func raise(_ *starlark.Thread, args starlark.Tuple) (starlark.Value, error) {
	if len(args) == 0 {
		return nil, fmt.Errorf("raise without an exception")
	}
	switch v := args[0].(type) {
	case *starlark.Builtin:
		return nil, &pythonError{&raised{class: v.Name()}}
	case *raised, *object:
		return nil, &pythonError{v}
	case *class:
		return nil, &pythonError{&object{class: v, state: starlark.Tuple{}}}
	}
	return nil, &pythonError{&raised{class: str(args[0])}}
}

func assert(t *starlark.Thread, args starlark.Tuple) (starlark.Value, error) {
	if len(args) < 1 || len(args) > 2 {
		return nil, fmt.Errorf("assert takes a condition and a message")
	}
	v, err := truth(t, args[0])
	if err != nil || bool(v.Truth()) {
		return starlark.None, err
	}
	if message, ok := args[len(args)-1].(*starlark.Function); ok && len(args) == 2 {
		if args[1], err = starlark.Call(t, message, nil, nil); err != nil {
			return nil, err
		}
	}
	if len(args) == 2 {
		return nil, &assertionError{"the test's assertion failed: " + messageOf(args[1:])}
	}
	return nil, &assertionError{"the test's assertion failed"}
}

// assertionError is a check of the test that does not hold.
type assertionError struct{ msg string }

func (e *assertionError) Error() string { return e.msg }

// messages tell the class of an error of the engine by its text.
var messages = []struct{ text, class string }{
	{"division by zero", "ZeroDivisionError"}, {"divided by zero", "ZeroDivisionError"}, {" by zero", "ZeroDivisionError"},
	{"not in dict", "KeyError"}, {"missing key", "KeyError"}, {"out of range", "IndexError"},
	{"has no attribute", "AttributeError"}, {"has no .", "AttributeError"}, {"undefined: ", "NameError"},
	{"used up", "StopIteration"}, {"maximum recursion depth", "RecursionError"}, {"empty set", "KeyError"},
	{"invalid float literal", "ValueError"}, {"invalid literal", "ValueError"}, {"value not in list", "ValueError"}, {"element not found", "ValueError"},
	{"substring not found", "ValueError"}, {"of an empty sequence", "ValueError"}, {"values to unpack", "ValueError"}, {"math domain error", "ValueError"},
	{"could not be broadcast", "ValueError"}, {"cannot reshape array", "ValueError"}, {"is not a valid ", "ValueError"},
	{"unknown binary op", "TypeError"}, {"unknown unary op", "TypeError"}, {"not supported between instances", "TypeError"}, {"has no len", "TypeError"},
	{"is not iterable", "TypeError"}, {"in sequence assignment", "TypeError"}, {"unhashable", "TypeError"}, {"not subscriptable", "TypeError"},
	{"is not callable", "TypeError"}, {"invalid call of non-function", "TypeError"}, {"positional argument", "TypeError"}, {"unexpected keyword argument", "TypeError"},
	{"needs the argument", "TypeError"}, {" argument (", "TypeError"}, {" arguments (", "TypeError"},
}

// exceptionOf is the exception that a test sees of an error; its class is
// empty where the engine's error does not tell.
func exceptionOf(err error) starlark.Value {
	var python *pythonError
	var refused *refusedError
	var wrong *argumentError
	var failed *assertionError
	class := ""
	switch {
	case errors.As(err, &python):
		return python.value
	case errors.As(err, &refused):
		return &raised{lastName(refused.class), starlark.Tuple{starlark.String(refused.message)}}
	case errors.As(err, &wrong):
		class = "TypeError"
	case errors.As(err, &failed):
		class = "AssertionError"
	default:
		for _, m := range messages {
			if strings.Contains(err.Error(), m.text) {
				class = m.class
				break
			}
		}
	}
	return &raised{class, starlark.Tuple{starlark.String(err.Error())}}
}

func lastName(dotted string) string { return dotted[strings.LastIndexByte(dotted, '.')+1:] }

// isException reports whether an exception is of a class, or of one of a tuple of them.
func isException(v, class starlark.Value) bool {
	if several, ok := class.(starlark.Tuple); ok {
		for _, c := range several {
			if isException(v, c) {
				return true
			}
		}
		return false
	}
	name := ""
	if r, ok := v.(*raised); ok {
		name = r.class
	}
	if o, ok := v.(*object); ok {
		for _, c := range o.class.order {
			if c == class {
				return true
			}
		}
		name = className(o.class.base)
	}
	wanted := exceptionName(class)
	if name == "" { // an error of the engine that does not tell
		return wanted != "AssertionError" && wanted != "StopIteration"
	}
	return slices.Contains(exceptionNames(name), wanted)
}

// exceptionNames are a class and those that it is a kind of.
func exceptionNames(name string) []string {
	names := []string{name}
	for exceptions[name] != "" {
		name = exceptions[name]
		names = append(names, name)
	}
	return names
}

// exceptionName is the name of an exception's class, wherever it comes from.
func exceptionName(class starlark.Value) string {
	switch c := asPath(class).(type) {
	case *starlark.Builtin:
		return c.Name()
	case path:
		return lastName(string(c))
	case foreign:
		return lastName(string(c))
	}
	return ""
}

// ourMistake is how the error begins that a panic of a function of ours has become.
const ourMistake = "a mistake of Plumb's own: "

// guarded runs part of a file. A panic costs its test, or the file, alone.
func guarded(run func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%s%v", ourMistake, r)
		}
	}()
	return run()
}
