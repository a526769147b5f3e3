package script

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// This file rewrites the expressions that Starlark's grammar lacks: chained
// comparisons, sets, generator expressions, and stars in lists and dicts.

// frame is a bracket whose tokens are being read; the outermost is a statement.
type frame struct {
	open    int // index of the opening bracket; -1 for the statement
	call    bool
	start   int   // of the segment between two delimiters of comparisons
	compare []int // comparison operators of the segment
	item    int   // start of the item between two commas
	items   []span
	colons  int // outside of lambdas
	lambdas int
	loop    int // index of the first for; 0 for none
	target  bool
	stars   bool
}

// span is tokens [from, to).
type span struct{ from, to int }

// delimiters end what a comparison can reach.
func delimits(t token) bool {
	switch t.kind {
	case tokName:
		switch t.text {
		case "and", "or", "if", "else", "elif", "while", "return", "assert", "for", "lambda", "raise", "yield", "as", "from", "async", "import":
			return true
		}
	case tokOp:
		switch t.text {
		case ",", ":", ";", "=", ":=", "->":
			return true
		}
		return strings.HasSuffix(t.text, "=") && len(t.text) > 1 && !compares(t)
	}
	return false
}

func compares(t token) bool {
	switch t.text {
	case "<", "<=", ">", ">=", "==", "!=":
		return t.kind == tokOp
	}
	return false
}

// trailing gives tuples that end in a comma, such as "x, = pair", the parentheses that
// Starlark wants.
func (p *prepasser) trailing(toks []token) {
	start, depth := 0, 0
	for i, t := range toks {
		switch {
		case t.is("(") || t.is("[") || t.is("{"):
			depth++
		case t.is(")") || t.is("]") || t.is("}"):
			depth--
		case depth > 0:
		case t.is("=") || t.is("return") || t.is("for") || t.is("in"):
			start = i + 1
		case t.is(",") && i > start && (i+1 == len(toks) || toks[i+1].is("=") || toks[i+1].is("in") || toks[i+1].is(":")):
			p.put(toks[start].start, 0, "(")
			p.put(t.end, -1, ")")
		}
	}
}

// nest rewrites a statement's tokens bracket by bracket.
func (p *prepasser) nest(toks []token) *scanError {
	stack := []*frame{{open: -1}}
	for i := 0; i < len(toks); i++ {
		f, t := stack[len(stack)-1], toks[i]
		switch {
		case t.is("(") || t.is("[") || t.is("{"):
			stack = append(stack, &frame{open: i, call: i > 0 && endsOperand(toks[i-1]), start: i + 1, item: i + 1})
		case t.is(")") || t.is("]") || t.is("}"):
			if len(stack) > 1 {
				f.endSegment(p, toks, i)
				f.items = append(f.items, span{f.item, i})
				if err := p.bracket(toks, f, i); err != nil {
					return err
				}
				stack = stack[:len(stack)-1]
			}
		default:
			i += f.token(p, toks, i)
		}
	}
	if len(stack) == 1 {
		stack[0].endSegment(p, toks, len(toks))
	}
	return nil
}

// token takes one token that is no bracket and returns how many more were used.
func (f *frame) token(p *prepasser, toks []token, i int) int {
	t := toks[i]
	next := func(text string) bool { return i+1 < len(toks) && toks[i+1].is(text) }
	switch {
	case compares(t):
		f.compare = append(f.compare, i)
	case t.is("in") && f.target:
		f.target = false
		f.endSegment(p, toks, i)
	case t.is("in"):
		f.compare = append(f.compare, i)
	case t.is("is"):
		f.compare = append(f.compare, i)
		if next("not") {
			return 1
		}
	case t.is("not") && next("in"):
		f.compare = append(f.compare, i)
		return 1
	case t.is("not"):
		f.endSegment(p, toks, i)
	case delimits(t):
		f.delimiter(p, toks, i)
	case (t.is("*") || t.is("**")) && i == f.item && f.open >= 0 && !f.call && !p.done[t.start]:
		f.stars = true
	}
	return 0
}

func (f *frame) delimiter(p *prepasser, toks []token, i int) {
	f.endSegment(p, toks, i)
	switch toks[i].text {
	case ",":
		f.items = append(f.items, span{f.item, i})
		f.item = i + 1
	case ":":
		if f.lambdas > 0 {
			f.lambdas--
		} else {
			f.colons++
		}
	case "lambda":
		f.lambdas++
	case "for":
		f.target = true
		if f.loop == 0 {
			f.loop = i
		}
	}
}

// endSegment rewrites the comparisons up to token i if they are a chain.
func (f *frame) endSegment(p *prepasser, toks []token, i int) {
	ops := f.compare
	start := f.start
	f.start, f.compare = i+1, nil
	if len(ops) < 2 || ops[len(ops)-1]+1 >= i {
		return
	}
	p.put(toks[start].start, 3, fnChain+"(lambda: (")
	for _, at := range ops {
		text, end := toks[at].text, toks[at].end
		if toks[at].is("is") && toks[at+1].is("not") || toks[at].is("not") {
			text, end = text+" "+toks[at+1].text, toks[at+1].end
		}
		p.replace(toks[at].start, end, "), "+strconv.Quote(text)+", lambda: (")
		p.done[toks[at].start] = true
	}
	p.put(toks[i-1].end, -8, "))")
}

// bracket rewrites what the bracket that ends at token i holds.
func (p *prepasser) bracket(toks []token, f *frame, i int) *scanError {
	open := toks[f.open]
	if n := len(f.items); f.items[n-1].from == f.items[n-1].to {
		f.items = f.items[:n-1]
	}
	switch {
	case open.is("("):
		if f.loop > 0 && f.loop > f.open+1 {
			p.put(open.end, 1, "[")
			p.put(toks[i-1].end, -6, "]")
		} else if f.stars {
			p.replace(open.start, open.end, "tuple("+fnConcat+"(")
			p.starItems(toks, f.items)
			p.put(toks[i].start, -1, ")")
		}
	case open.is("[") && f.stars:
		p.replace(open.start, open.end, fnConcat+"(")
		p.starItems(toks, f.items)
		p.replace(toks[i].start, toks[i].end, ")")
	case open.is("{") && f.stars && f.colons == 0 && !starred(toks, f.items, "**"):
		p.replace(open.start, open.end, "set("+fnConcat+"(")
		p.starItems(toks, f.items)
		p.replace(toks[i].start, toks[i].end, "))")
	case open.is("{") && f.stars:
		p.replace(open.start, open.end, fnMerge+"(")
		p.mergeItems(toks, f.items)
		p.replace(toks[i].start, toks[i].end, ")")
	case open.is("{") && f.colons == 0 && len(f.items) > 0:
		p.replace(open.start, open.end, "set([")
		p.replace(toks[i].start, toks[i].end, "])")
	}
	return nil
}

func starred(toks []token, items []span, star string) bool {
	for _, s := range items {
		if toks[s.from].is(star) {
			return true
		}
	}
	return false
}

// starItems makes every item a list: what *x holds, or the item alone.
func (p *prepasser) starItems(toks []token, items []span) {
	for _, s := range items {
		first, last := toks[s.from], toks[s.to-1]
		if first.is("*") {
			p.replace(first.start, first.end, fnMany+"(")
			p.done[first.start] = true
			p.put(last.end, -7, ")")
			continue
		}
		p.put(first.start, 2, "[")
		p.put(last.end, -7, "]")
	}
}

// mergeItems makes every item of a dict a dict.
func (p *prepasser) mergeItems(toks []token, items []span) {
	for _, s := range items {
		first, last := toks[s.from], toks[s.to-1]
		if first.is("**") {
			p.replace(first.start, first.end, "")
			p.done[first.start] = true
			continue
		}
		p.put(first.start, 2, "{")
		p.put(last.end, -7, "}")
	}
}

// unpack turns "a, *b, c = v" into "a, b, c = __unpack__(v, 1, 1)", and
// "a = b = v" into "__0 = v; a = __0; b = __0".
func (p *prepasser) unpack(toks []token) *scanError {
	eq := topLevel(toks, "=")
	if eq <= 0 {
		return nil
	}
	last := eq
	var targets []span
	for at := 0; ; {
		targets = append(targets, span{at, last})
		at = last + 1
		n := topLevel(toks[at:], "=")
		if l := topLevel(toks[at:], "lambda"); n < 0 || l >= 0 && l < n {
			break
		}
		last = at + n
	}
	if slices.ContainsFunc(targets, func(s span) bool { return s.from >= s.to }) || last == len(toks)-1 {
		return nil
	}
	if len(targets) > 1 {
		return p.chainedAssignment(toks, targets, last)
	}
	return p.starTarget(toks, targets[0], toks[eq], toks[len(toks)-1])
}

// chainedAssignment keeps the order of Python: the value, then the targets
// from left to right. The first target, where it is a name, is the one that calls are given.
func (p *prepasser) chainedAssignment(toks []token, targets []span, last int) *scanError {
	first := p.src[toks[targets[0].from].start:toks[targets[0].to-1].end]
	rest, others, head := "", targets[1:], targets[0].to // head: where the text of one assignment begins
	equals := "="
	if targets[0].to-targets[0].from != 1 || toks[0].kind != tokName {
		first, others, head = fmt.Sprintf("__chained_%d", toks[0].start), targets, targets[0].from
		equals = first + " ="
	}
	for _, t := range others {
		text := p.src[toks[t.from].start:toks[t.to-1].end]
		if strings.ContainsAny(text, "*\n@") || strings.Contains(text, "...") || hasFString(toks[t.from:t.to]) || strings.Contains(text, ":") && strings.Contains(text, ",") {
			return lacks(toks[t.from], "this target in a = b = c is not supported in test files")
		}
		rest += "; " + text + " = " + first
	}
	p.replace(toks[head].start, toks[last].end, equals)
	for i := head; i < last; i++ {
		p.done[toks[i].start] = true
	}
	p.put(toks[len(toks)-1].end, -1, rest)
	return nil
}

func hasFString(toks []token) bool {
	return slices.ContainsFunc(toks, func(t token) bool {
		return t.kind == tokString && strings.ContainsAny(t.text[:strings.IndexAny(t.text, `"'`)], "fF")
	})
}

func (p *prepasser) starTarget(toks []token, target span, eq, end token) *scanError {
	star, before, after, depth, within := -1, 0, 0, 0, 0
	for i := target.from; i < target.to; i++ {
		switch t := toks[i]; {
		case (t.is("(") || t.is("[")) && (within > 0 || i > target.from && (toks[i-1].kind == tokName || toks[i-1].is(")") || toks[i-1].is("]"))):
			within++ // f(*a), x[…]: no targets
		case within > 0 && (t.is(")") || t.is("]")):
			within--
		case within > 0:
		case t.is("(") || t.is("["):
			depth++
		case t.is(")") || t.is("]"):
			depth--
		case t.is("*") && (i == target.from || toks[i-1].is(",") || toks[i-1].is("(") || toks[i-1].is("[")):
			if star >= 0 || depth > 1 {
				return fail(t, "two starred expressions in assignment")
			}
			star = i
		case t.is(",") && star < 0:
			before++
		case t.is(",") && i < target.to-1 && !(i == target.to-2 && (toks[i+1].is(")") || toks[i+1].is("]"))):
			after++
		}
	}
	if star < 0 {
		return nil
	}
	p.replace(toks[star].start, toks[star].end, "")
	p.done[toks[star].start] = true
	p.put(eq.end, 1, " "+fnUnpack+"((")
	p.put(end.end, -2, "), "+strconv.Itoa(before)+", "+strconv.Itoa(after)+")")
	return nil
}

// starLoop turns "for a, *b in xs" into "for a, b in __unpackeach__(xs, 1, 0)".
func (p *prepasser) starLoop(toks []token, at int) {
	star, in, before, after, depth := -1, -1, 0, 0, 0
	for i := at + 1; i < len(toks) && in < 0 && depth >= 0; i++ {
		switch t := toks[i]; {
		case t.is("(") || t.is("[") || t.is("{"):
			depth++
		case t.is(")") || t.is("]") || t.is("}"):
			depth--
		case depth > 0:
		case t.is("in"):
			in = i
		case t.is("*") && (i == at+1 || toks[i-1].is(",")):
			star = i
		case t.is(",") && star < 0:
			before++
		case t.is(",") && i+1 < len(toks) && !toks[i+1].is("in"):
			after++
		}
	}
	if star < 0 || in < 0 {
		return
	}
	end := in + 1
	for depth = 0; end < len(toks); end++ {
		t := toks[end]
		if depth == 0 && (t.is(":") || t.is("for") || t.is("if") || t.is(")") || t.is("]") || t.is("}")) {
			break
		}
		if t.is("(") || t.is("[") || t.is("{") {
			depth++
		} else if t.is(")") || t.is("]") || t.is("}") {
			depth--
		}
	}
	p.replace(toks[star].start, toks[star].end, "")
	p.done[toks[star].start] = true
	p.put(toks[in].end, 1, " "+fnUnpackEach+"(")
	p.put(toks[end-1].end, -2, ", "+strconv.Itoa(before)+", "+strconv.Itoa(after)+")")
}
