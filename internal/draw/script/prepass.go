package script

import (
	"fmt"
	"strings"
)

// The names by which rewritten source calls the engine.
const (
	fnImport   = "__import__"
	fnFrom     = "__from__"
	fnDecorate = "__decorate__"
	fnClass    = "__class__"
	fnEndClass = "__endclass__"
	fnDef      = "__def__"
	fnRaise    = "__raise__"
	fnAssert   = "__assert__"
	fnTruth    = "__truth__"
	fnAnd      = "__both__"
	fnOr       = "__either__"
	fnSlice    = "__slice__"
	fnItem     = "__item__"
	fnIndex    = "__index__"
	fnParts    = "__parts__"
	fnIs       = "__is__"
	fnIsNot    = "__isnot__"

	fnUnsupported = "__unsupported__"
	fnDropped     = "__dropped__"
	fnUndefined   = "__undefined__"
	fnChain       = "__chain__"
	fnConcat      = "__concat__"
	fnMany        = "__many__"
	fnMerge       = "__merge__"
	fnUnpack      = "__unpack__"
	fnUnpackEach  = "__unpackeach__"
	fnFormat      = "__format__"
	fnDelete      = "__delete__"
	fnAttr        = "__attr__"
	fnIn          = "__in__"
	fnNotIn       = "__notin__"
	fnMember      = "__member__"
	fnAnnotated   = "__annotated__"
	fnWith        = "__with__"
	fnEntered     = "__entered__"
	fnLeave       = "__leave__"
	fnDepth       = "__depth__"
	fnLook        = "__look__"
	nameUnbroken  = "__unbroken__"

	fnTry       = "__try__"
	fnExcept    = "__except__"
	fnNoError   = "__noerror__"
	fnFinally   = "__finally__"
	fnGlobal    = "__global__"
	fnNonlocal  = "__nonlocal__"
	fnYield     = "__yield__"
	fnYieldFrom = "__yieldfrom__"
	fnLet       = "__let__"

	fnMatch   = "__match__"
	fnCase    = "__case__"
	fnPattern = "__pattern__"
	fnMatches = "__matches__"
)

// prepass turns what Starlark's grammar lacks into what it has: imports,
// decorators and classes become calls; is, ** and @ become marked operators;
// f-strings, adjacent strings, annotations, x[a:b, c], "..." and imaginary
// numbers become expressions. Line numbers stay.
func prepass(src string) (*rewritten, *scanError) {
	toks, err := scan(src)
	if err != nil {
		return nil, err
	}
	p := &prepasser{src: src, toks: toks}
	if strings.HasPrefix(src, "\ufeff") {
		p.replace(0, len("\ufeff"), "")
		toks[0].start, toks[0].text = len("\ufeff"), strings.TrimPrefix(toks[0].text, "\ufeff")
		if toks[0].text == "" {
			p.toks = toks[1:]
		}
	}
	p.done = map[int]bool{}
	p.split()
	for i := 0; i < len(p.lines); {
		p.line = i
		err := p.logicalLine(p.lines[i].toks)
		switch {
		case err == nil:
			i++
		case err.lacks:
			i = p.poison(i, err)
		default:
			return nil, err
		}
	}
	out := apply(src, p.edits)
	out.opaque, out.stars, out.imports, out.accelerators = p.opaque, p.stars, p.imports, p.namesAccelerators()
	return out, nil
}

// namesAccelerators returns the lines that name an accelerator.
func (p *prepasser) namesAccelerators() []int {
	var lines []int
	for i, t := range p.toks {
		named := t.kind == tokString && kindOfDevice(strings.Trim(t.text, `"'`)) != ""
		moves := isAccelerator(t.text) && i > 0 && p.toks[i-1].is(".") && p.toks[i+1].is("(")
		if !named && !moves {
			continue
		}
		if line := int(pointAt(p.src, t.start).line); len(lines) == 0 || lines[len(lines)-1] != line {
			lines = append(lines, line)
		}
	}
	return lines
}

type prepasser struct {
	src   string
	toks  []token
	edits []edit
	elifs int
	lines []logical
	line  int
	done  map[int]bool // tokens, by start, that need no further edit
	// opaque says that something outside of every function was dropped.
	opaque  bool
	stars   []string // modules of which everything is imported
	imports []string // modules, and what may be one
}

// maxElifs bounds a chain that later passes follow by recursion.
const maxElifs = 1000

func (p *prepasser) replace(start, end int, text string) {
	p.edits = append(p.edits, edit{start: start, end: end, text: text, rank: 100})
}

// put inserts text; see edit.rank.
func (p *prepasser) put(at, rank int, text string) {
	p.edits = append(p.edits, edit{start: at, end: at, text: text, rank: rank})
}

func fail(t token, format string, args ...any) *scanError {
	return &scanError{t.start, fmt.Sprintf(format, args...), false}
}

// logicalLine splits a line into its statements: the header of a compound
// statement, and what ";" separates.
func (p *prepasser) logicalLine(toks []token) *scanError {
	if len(toks) == 0 {
		return nil
	}
	if isCompound(toks[0]) || isMatch(toks) || p.isCase(toks) {
		colon := headerColon(toks)
		if colon < 0 {
			return p.statement(toks)
		}
		if err := p.statement(toks[:colon+1]); err != nil {
			return err
		}
		toks = toks[colon+1:]
	}
	for len(toks) > 0 {
		end := topLevel(toks, ";")
		if end < 0 {
			end = len(toks)
		}
		if err := p.statement(toks[:end]); err != nil {
			return err
		}
		toks = toks[min(end+1, len(toks)):]
	}
	return nil
}

func isCompound(t token) bool {
	switch t.text {
	case "if", "elif", "else", "for", "while", "def", "class", "with", "try", "except", "finally", "async":
		return t.kind == tokName
	}
	return false
}

// headerColon finds the colon that ends a compound statement's header.
func headerColon(toks []token) int {
	depth, lambdas := 0, 0
	for i, t := range toks {
		switch {
		case t.is("(") || t.is("[") || t.is("{"):
			depth++
		case t.is(")") || t.is("]") || t.is("}"):
			depth--
		case t.is("lambda") && depth == 0:
			lambdas++
		case t.is(":") && depth == 0:
			if lambdas == 0 {
				return i
			}
			lambdas--
		}
	}
	return -1
}

// topLevel finds a token outside brackets.
func topLevel(toks []token, text string) int {
	depth := 0
	for i, t := range toks {
		switch {
		case t.is("(") || t.is("[") || t.is("{"):
			depth++
		case t.is(")") || t.is("]") || t.is("}"):
			depth--
		case depth == 0 && t.is(text):
			return i
		}
	}
	return -1
}

// absent are the statements that test files lack; outside of functions, so are
// those that only a function can have.
var (
	absent         = map[string]bool{"async": true, "await": true}
	absentAtTheTop = map[string]bool{"try": true, "except": true, "finally": true, "nonlocal": true, "yield": true}
)

// becomesCall says whether what a statement has becomes the arguments of a call.
func (p *prepasser) becomesCall(toks []token) bool {
	switch toks[0].text {
	case "@", "assert", "del", "except", "raise", "with":
		return true
	}
	return isMatch(toks) || p.isCase(toks)
}

func (p *prepasser) statement(toks []token) *scanError {
	if len(toks) == 0 {
		return nil
	}
	first := toks[0]
	inside := len(p.lines) > 0 && p.lines[p.line].def >= 0
	if first.kind == tokName && (absent[first.text] || !inside && absentAtTheTop[first.text]) {
		if !p.attempt(toks) {
			return lacks(first, "%s is not supported in test files", first.text)
		}
		return nil
	}
	if p.becomesCall(toks) {
		if i := topLevel(toks, "="); i > 0 { // there it would name an argument
			return fail(toks[i], "unexpected '=' after %s", first.text)
		}
	}
	switch {
	case first.is("try") || first.is("finally"):
		p.replace(first.start, first.end, fmt.Sprintf("if __%s__()", first.text))
		return nil
	case first.is("except"):
		return p.exceptClause(toks)
	case first.is("global") || first.is("nonlocal"):
		p.declaration(toks)
		return nil
	case isMatch(toks):
		return p.matchStmt(toks)
	case p.isCase(toks):
		return p.caseClause(toks)
	case first.is("import"):
		return p.importStmt(toks)
	case first.is("from"):
		return p.fromStmt(toks)
	case first.is("@"):
		p.wrap(toks, fnDecorate+"(")
		return p.expressions(toks[1:])
	case first.is("class"):
		return p.classStmt(toks)
	case first.is("with"):
		if !inside {
			return lacks(first, "with outside of a function is not supported in test files")
		}
		return p.withStmt(toks)
	case first.is("raise"):
		return p.raiseStmt(toks)
	case first.is("assert"):
		p.wrap(toks, fnAssert+"(")
		if comma := topLevel(toks, ","); comma > 0 && comma < len(toks)-1 { // the message is asked for where the test fails
			p.put(toks[comma].end, 100, " lambda: ")
		}
		return p.expressions(toks[1:])
	case first.is("del"):
		p.wrap(toks, fnDelete+"(")
		return p.expressions(toks[1:])
	case first.is("elif"):
		if p.elifs++; p.elifs > maxElifs {
			return fail(first, "the file has more than %d elifs", maxElifs)
		}
	case first.is("else"):
		p.loopElse(toks)
	case first.is("def"):
		p.blankAnnotations(toks)
	case first.kind == tokName && !isCompound(first) && !keywords[first.text] && targetEnd(toks) < len(toks)-1 && toks[targetEnd(toks)].is(":"):
		if toks = p.blankVariable(toks, targetEnd(toks)); toks == nil {
			return nil
		}
	case !isCompound(first):
		if err := p.unpack(toks); err != nil {
			return err
		}
	}
	return p.expressions(toks)
}

// loopElse makes the else of a loop an if that the rewriter gives its condition.
func (p *prepasser) loopElse(toks []token) {
	indent := p.lines[p.line].indent
	for i := p.line - 1; i >= 0; i-- {
		switch l := p.lines[i]; {
		case l.indent < indent:
			return
		case l.indent == indent && (l.toks[0].is("for") || l.toks[0].is("while")):
			p.replace(toks[0].start, toks[0].end, "if "+nameUnbroken)
			return
		case l.indent == indent && (l.toks[0].is("try") || l.toks[0].is("except")):
			text := "if True"
			if l.def >= 0 {
				text = "if " + fnNoError + "()"
			}
			p.replace(toks[0].start, toks[0].end, text)
			return
		case l.indent == indent:
			return
		}
	}
}

// withStmt turns "with A as a, B:" into "if __with__("a", A, "", B):".
func (p *prepasser) withStmt(toks []token) *scanError {
	last := toks[len(toks)-1]
	if len(toks) < 3 || !last.is(":") {
		return fail(toks[0], "want with EXPRESSION:")
	}
	p.replace(toks[0].start, toks[0].end, "if "+fnWith+"(")
	for rest := toks[1 : len(toks)-1]; len(rest) > 0; {
		item := rest
		if n := topLevel(rest, ","); n >= 0 {
			item, rest = rest[:n], rest[n+1:]
		} else {
			rest = nil
		}
		if len(item) == 0 {
			return fail(toks[0], "want with EXPRESSION:")
		}
		name := ""
		if as := topLevel(item, "as"); as > 0 {
			if as != len(item)-2 || item[as+1].kind != tokName {
				return lacks(item[as], "with … as anything but a name is not supported in test files")
			}
			name = item[as+1].text
			p.replace(item[as].start, item[as+1].end, "")
			if err := p.expressions(item[:as]); err != nil {
				return err
			}
		} else if err := p.expressions(item); err != nil {
			return err
		}
		p.put(item[0].start, 0, quote(name)+", ")
	}
	p.put(last.start, -1, ")")
	return nil
}

// wrap puts a call around a statement, in the place of its first token.
func (p *prepasser) wrap(toks []token, open string) {
	p.replace(toks[0].start, toks[0].end, open)
	p.put(toks[len(toks)-1].end, -1, ")")
}

func (p *prepasser) raiseStmt(toks []token) *scanError {
	p.wrap(toks, fnRaise+"(")
	if i := topLevel(toks, "from"); i > 0 {
		p.replace(toks[i].start, toks[i].end, ",")
	}
	return p.expressions(toks[1:])
}

// classStmt turns "class T(Base):" into "if __class__("T", Base):".
func (p *prepasser) classStmt(toks []token) *scanError {
	last := toks[len(toks)-1]
	if len(toks) < 3 || toks[1].kind != tokName || !last.is(":") {
		return fail(toks[0], "want class NAME(BASE):")
	}
	open := fmt.Sprintf("if %s(%q", fnClass, toks[1].text)
	if toks[2].is("(") {
		if !toks[3].is(")") {
			open += ", "
		}
		p.replace(toks[0].start, toks[2].end, open)
		return p.expressions(toks[3:])
	}
	p.replace(toks[0].start, toks[1].end, open+")")
	return nil
}

// expressions rewrites the tokens of a statement.
func (p *prepasser) expressions(toks []token) *scanError {
	for i, t := range toks {
		if t.is("for") {
			p.starLoop(toks, i)
		}
	}
	if err := p.nest(toks); err != nil {
		return err
	}
	p.trailing(toks)
	for i := 0; i < len(toks); i++ {
		t := toks[i]
		if p.done[t.start] {
			continue
		}
		switch t.kind {
		case tokString:
			n, err := p.strings(toks[i:])
			if err != nil {
				return err
			}
			i += n - 1
		case tokNumber:
			p.number(t)
		case tokName:
			switch t.text {
			case "is":
				i += p.identity(toks[i:])
			case "yield":
				i += p.yields(toks[i:])
			case "load": // a keyword of Starlark's
				p.replace(t.start, t.end, loadName)
			case "await":
				return lacks(t, "%s is not supported in test files", t.text)
			default:
				if i+1 < len(toks) && toks[i+1].is(":=") {
					p.let(toks[i:])
				}
				if isReserved(t.text) && !(i > 0 && (toks[i-1].is(".") || toks[i-1].is("def") && p.lines[p.line].indent > 0)) {
					return fail(t, "the name %s is reserved", t.text)
				}
			}
		case tokOp:
			if err := p.operator(toks, i); err != nil {
				return err
			}
		}
	}
	return nil
}

// loadName stands for the name load.
const loadName = "load_"

// isReserved reports whether a name may be one by which the engine is called.
func isReserved(name string) bool {
	return len(name) > 4 && strings.HasPrefix(name, "__") && strings.HasSuffix(name, "__") && !dunder[name]
}

// dunder are names of Python that a test file may use or define.
var dunder = func() map[string]bool {
	all := map[string]bool{}
	for name := range strings.FieldsSeq(`name file doc all version author main package path module qualname annotations class dict slots
		constants match_args test init new call len getitem setitem delitem contains iter next reversed missing bool hash repr str
		int float index enter exit getattr setattr copy deepcopy eq ne lt le gt ge neg pos abs invert
		add sub mul truediv floordiv mod pow matmul and or xor lshift rshift
		radd rsub rmul rtruediv rfloordiv rmod rpow rmatmul rand ror rxor
		iadd isub imul itruediv ifloordiv imod ipow imatmul iand ior ixor`) {
		all["__"+name+"__"] = true
	}
	return all
}()

// identity replaces "is" by "==" and "is not" by "!=", marked. It returns the
// number of further tokens used.
func (p *prepasser) identity(toks []token) int {
	t, text, used := toks[0], "==", 0
	if len(toks) > 1 && toks[1].is("not") {
		t.end, text, used = toks[1].end, "!=", 1
	}
	p.edits = append(p.edits, edit{t.start, t.end, text, markIs, 100})
	return used
}

func (p *prepasser) operator(toks []token, i int) *scanError {
	t := toks[i]
	switch t.text {
	case "**":
		if i > 0 && endsOperand(toks[i-1]) {
			p.edits = append(p.edits, edit{t.start, t.end, "//", markPow, 100})
		}
	case "**=":
		p.edits = append(p.edits, edit{t.start, t.end, "//=", markPow, 100})
	case "@":
		p.edits = append(p.edits, edit{t.start, t.end, "*", markMatmul, 100})
	case "@=":
		p.edits = append(p.edits, edit{t.start, t.end, "*=", markMatmul, 100})
	case "...":
		p.replace(t.start, t.end, "Ellipsis")
	case "[":
		if i > 0 && endsOperand(toks[i-1]) {
			p.subscript(toks[i:])
		}
	}
	return nil
}

// keywords are the names that do not end an operand.
var keywords = map[string]bool{
	"and": true, "or": true, "not": true, "in": true, "is": true, "if": true, "else": true, "elif": true, "for": true,
	"while": true, "lambda": true, "return": true, "def": true, "class": true, "import": true, "from": true, "as": true,
	"raise": true, "assert": true, "pass": true, "break": true, "continue": true,
}

func endsOperand(t token) bool {
	switch t.kind {
	case tokNumber, tokString:
		return true
	case tokName:
		return !keywords[t.text]
	}
	return t.is(")") || t.is("]") || t.is("}")
}

// subscript turns the slices of x[a:b, c] into slice(a, b), and x[a, b,] into
// x[(a, b,)]; the tokens start with the bracket. x[a:b] alone is left as it is.
func (p *prepasser) subscript(toks []token) {
	items, end, colons := splitSubscript(toks)
	if len(items) < 2 {
		return
	}
	if len(items[len(items)-1]) == 0 {
		p.put(toks[0].end, 0, "(")
		p.put(toks[end].start, -1, ")")
	}
	if colons == 0 {
		return
	}
	for _, item := range items {
		p.sliceItem(item)
	}
}

// splitSubscript returns the comma-separated items up to the closing bracket,
// the index of that, and the number of colons outside inner brackets.
func splitSubscript(toks []token) (items [][]token, end, colons int) {
	depth, start := 0, 1
	for i, t := range toks[1:] {
		i++
		switch {
		case depth == 0 && t.is("]"):
			return append(items, toks[start:i]), i, colons
		case t.is("(") || t.is("[") || t.is("{"):
			depth++
		case t.is(")") || t.is("]") || t.is("}"):
			depth--
		case depth == 0 && t.is("lambda"):
			return nil, 0, 0
		case depth == 0 && t.is(":"):
			colons++
		case depth == 0 && t.is(","):
			items = append(items, toks[start:i])
			start = i + 1
		}
	}
	return nil, 0, 0
}

func (p *prepasser) sliceItem(item []token) {
	if topLevel(item, ":") < 0 {
		return
	}
	p.put(item[0].start, 1, "slice(")
	empty, parts := true, 1
	depth := 0
	for _, t := range item {
		switch {
		case t.is("(") || t.is("[") || t.is("{"):
			depth++
		case t.is(")") || t.is("]") || t.is("}"):
			depth--
		}
		if depth != 0 || !t.is(":") {
			empty = false
			continue
		}
		text := ","
		if empty {
			text = "None,"
		}
		p.replace(t.start, t.end, text)
		empty = true
		parts++
	}
	closing := ")"
	if empty {
		closing = "None)"
	}
	p.put(item[len(item)-1].end, -5, closing)
}

func (p *prepasser) number(t token) {
	text := strings.ReplaceAll(t.text, "_", "")
	if strings.HasSuffix(strings.ToLower(text), "j") {
		text = "complex(0, " + text[:len(text)-1] + ")"
	}
	if text != t.text {
		p.replace(t.start, t.end, text)
	}
}
