package script

import (
	"fmt"
	"slices"
	"strings"
)

// dottedName reads a dotted name and returns the number of its tokens.
func dottedName(toks []token) (string, int) {
	var b strings.Builder
	n := 0
	for n < len(toks) && (toks[n].is(".") || toks[n].is("...") || toks[n].kind == tokName && !toks[n].is("import") && !toks[n].is("as")) {
		b.WriteString(toks[n].text)
		n++
	}
	return b.String(), n
}

// importStmt turns "import a.b as c, d.e" into "c = __import__("a.b"); d = __import__("d", "d.e")".
func (p *prepasser) importStmt(toks []token) *scanError {
	var out []string
	rest := toks[1:]
	for {
		module, n := dottedName(rest)
		if module == "" || strings.HasPrefix(module, ".") {
			return fail(toks[0], "import needs the name of a module")
		}
		rest = rest[n:]
		p.imports = append(p.imports, module)
		if len(rest) >= 2 && rest[0].is("as") && rest[1].kind == tokName {
			out = append(out, fmt.Sprintf("%s = %s(%q)", rest[1].text, fnImport, module))
			rest = rest[2:]
		} else {
			root, _, _ := strings.Cut(module, ".")
			args := fmt.Sprintf("%q", root)
			if root != module && isForeign(root) {
				args += fmt.Sprintf(", %q", module)
			}
			out = append(out, fmt.Sprintf("%s = %s(%s)", root, fnImport, args))
		}
		if len(rest) == 0 {
			break
		}
		if !rest[0].is(",") {
			return fail(rest[0], "unexpected %q in import", rest[0].text)
		}
		rest = rest[1:]
	}
	p.replace(toks[0].start, toks[len(toks)-1].end, strings.Join(out, "; "))
	return nil
}

// fromStmt turns "from m import (a as b, c)" into "b = __from__("m", "a"); …".
func (p *prepasser) fromStmt(toks []token) *scanError {
	module, n := dottedName(toks[1:])
	rest := toks[1+n:]
	if module == "" || len(rest) < 2 || !rest[0].is("import") {
		return fail(toks[0], "want from MODULE import NAME")
	}
	rest = slices.DeleteFunc(slices.Clone(rest[1:]), func(t token) bool { return t.is("(") || t.is(")") })
	var out []string
	p.imports = append(p.imports, module)
	for len(rest) > 0 {
		name := rest[0]
		if name.kind != tokName && !name.is("*") {
			return fail(name, "unexpected %q in import", name.text)
		}
		rest = rest[1:]
		bind := name.text
		if len(rest) >= 2 && rest[0].is("as") && rest[1].kind == tokName {
			bind, rest = rest[1].text, rest[2:]
		}
		if len(rest) > 0 && !rest[0].is(",") {
			return fail(rest[0], "unexpected %q in import", rest[0].text)
		}
		rest = rest[min(1, len(rest)):]
		switch {
		case name.is("*"):
			p.stars = append(p.stars, module)
			out = append(out, fmt.Sprintf("%s(%q, \"*\")", fnFrom, module))
		case module == "__future__":
			out = append(out, "pass")
		default:
			if isForeign(module) {
				p.imports = append(p.imports, strings.TrimSuffix(module, ".")+"."+name.text)
			}
			out = append(out, fmt.Sprintf("%s = %s(%q, %q)", bind, fnFrom, module, name.text))
		}
	}
	p.replace(toks[0].start, toks[len(toks)-1].end, strings.Join(out, "; "))
	return nil
}
