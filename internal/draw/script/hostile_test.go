package script

import (
	"strings"
	"testing"

	"go.starlark.net/starlark"

	"plumb/internal/draw/choice"
)

// TestHostileSourceIsRefusedOrLoaded: sources that are deep or long in one way
// each neither exhaust the stack nor take long.
func TestHostileSourceIsRefusedOrLoaded(t *testing.T) {
	const n = 1 << 20
	for name, src := range map[string]string{
		"brackets":       strings.Repeat("(", n),
		"minus":          "x = " + strings.Repeat("-", n) + "1",
		"not":            "x = " + strings.Repeat("not ", n/4) + "1",
		"lambda":         "x = " + strings.Repeat("lambda:", n/8) + "1",
		"plus":           "x = 1" + strings.Repeat("+1", n/3),
		"power":          "x = 1" + strings.Repeat("**1", n/4),
		"conditional":    "x = " + strings.Repeat("1 if 1 else ", n/13) + "1",
		"dots":           "x = torch" + strings.Repeat(".a", n/3),
		"calls":          "def f(): pass\nx = f" + strings.Repeat("()", n/3),
		"indices":        "x = 1" + strings.Repeat("[0]", n/4),
		"unmatched":      "x = a" + strings.Repeat("[a)", n/4),
		"elif":           "if 0: pass\n" + strings.Repeat("elif 0: pass\n", n/14),
		"statements":     strings.Repeat("x=1\n", n/5),
		"semicolons":     strings.Repeat("x=1;", n/5),
		"decorators":     strings.Repeat("@autotest()\n", n/13),
		"strings":        "x = " + strings.Repeat("'' ", n/4),
		"f-string":       "x = f'" + strings.Repeat("{1}", n/4) + "'",
		"import":         "import a" + strings.Repeat(", a", n/4),
		"list":           "x = [" + strings.Repeat("[], ", n/5) + "]",
		"zeros":          strings.Repeat("\x00", n),
		"open string":    "x = '''" + strings.Repeat("a\n", n/3),
		"nested blocks":  nestedBlocks(90),
		"deep recursion": "def f(n): return f(n + 1)\nf(0)",
		"too large":      strings.Repeat("#", n+1),
		"join":           "s = 'a' * 1000000\nx = ','.join([s] * 1000000)",
		"replace":        "s = 'a' * 1000000\nx = s.replace('a', s)",
		"extend":         "a = [1]\nfor i in range(100): a.extend(a)",
		"many strings":   "a = [('a' * 1000000 + str(i)) for i in range(1000000)]",
		"arrays":         "import numpy as np\na = [np.ones(1000000) for i in range(1000000)]",
		"array copies":   "import numpy as np\nb = np.ones(1000000)\na = [b.copy() for i in range(1000000)]",
		"own part":       "import torch\nclass M(torch.nn.Module): pass\nm = M()\nm.m = m\nm.eval()",
		"no fields":      "import dataclasses\ndataclasses.fields()",
		"no dataclass":   "import dataclasses\ndataclasses.is_dataclass()",
		"no view":        "import numpy as np\nnp.ones(2).view(None)",
		"named argument": "def f(): return 1\n@f=()\ndef g(): pass",
		"named subject":  "match a=1:\n case 1: pass",
		"named guard":    "match 1:\n case 1 if b=c: pass",
		"lists":          "a = [[0] * 1000000 for i in range(1000000)]",
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Load("t.py", []byte(src)); err != nil && (len(err.Error()) > 300 || strings.Contains(err.Error(), ourMistake)) {
				t.Errorf("the message has %d bytes: %.200s", len(err.Error()), err)
			}
		})
	}
}

func nestedBlocks(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(strings.Repeat(" ", i) + "if 1:\n")
	}
	return b.String() + strings.Repeat(" ", n) + "pass\n"
}

// TestFunctionsTakeAnyArguments: what a file calls with nothing, or with what it should
// not, is an error of the file.
func TestFunctionsTakeAnyArguments(t *testing.T) {
	seen := map[starlark.Value]bool{}
	var walk func(name string, v starlark.Value)
	walk = func(name string, v starlark.Value) {
		switch v := v.(type) {
		case *library:
			if seen[v] {
				return
			}
			seen[v] = true
			for n, x := range v.names {
				walk(name+"."+n, x)
			}
		case starlark.Callable:
			for _, args := range []starlark.Tuple{nil, {starlark.None}, {starlark.MakeInt(-1), starlark.String("")}, {starlark.NewList(nil), starlark.NewDict(0), starlark.Float(1e300)}} {
				d := newDraw(&Test{Name: "t", file: &File{Name: "t.py", out: &rewritten{}}}, choice.New(0), Env{})
				func() {
					defer func() {
						if r := recover(); r != nil {
							t.Errorf("%s(%v): %v", name, args, r)
						}
					}()
					_, _ = starlark.Call(d.thread, v, args, nil)
				}()
				d.close()
			}
		}
	}
	for n, v := range predeclared {
		if !strings.HasPrefix(n, "__") { // others are the engine's, and guarded
			walk(n, v)
		}
	}
	for n, v := range standard {
		walk(n, v)
	}
}

// TestPanicsCostTheirFile: what the engine calls itself fails where a file calls it.
func TestPanicsCostTheirFile(t *testing.T) {
	if _, err := Load("t.py", []byte("x = 1\n__add__()")); err == nil || !strings.HasPrefix(err.Error(), "t.py: ") || !strings.Contains(err.Error(), ourMistake) {
		t.Errorf("%v", err)
	}
}
