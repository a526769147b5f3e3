package command

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// keyword is an expression of -k: names, and, or, not and parentheses, as in
// pytest. A name stands for the tests whose full name contains it, in letters
// of either case.
type keyword func(name string) bool

// parseKeyword reads an expression; the empty one matches every test. The
// error says where it goes wrong.
func parseKeyword(text string) (keyword, error) {
	p := keywordParser{text: text}
	p.next()
	if p.token == "" && p.err == nil {
		return func(string) bool { return true }, nil
	}
	k := p.or()
	if p.err == nil && p.token != "" {
		p.fail("and, or, or the end")
	}
	if p.err != nil {
		return nil, p.err
	}
	return func(name string) bool { return k(strings.ToLower(name)) }, nil
}

type keywordParser struct {
	text  string
	at    int // of the token
	end   int // behind it
	token string
	depth int
	err   error
}

// maxKeywordDepth bounds the nesting of an expression.
const maxKeywordDepth = 100

func (p *keywordParser) fail(want string) {
	if p.err == nil {
		found := fmt.Sprintf("%q", p.token)
		if p.token == "" {
			found = "the end"
		}
		p.err = fmt.Errorf("-k %q: at column %d: want %s, not %s", p.text, utf8.RuneCountInString(p.text[:p.at])+1, want, found)
	}
}

// next reads a token: a parenthesis or a word; "" at the end.
func (p *keywordParser) next() {
	rest := strings.TrimLeftFunc(p.text[p.end:], unicode.IsSpace)
	p.at = len(p.text) - len(rest)
	n := strings.IndexFunc(rest, func(r rune) bool { return !isKeywordRune(r) })
	switch {
	case n < 0:
		n = len(rest)
	case n == 0:
		_, n = utf8.DecodeRuneInString(rest)
	}
	p.token, p.end = rest[:n], p.at+n
}

func isKeywordRune(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("_:+-.[]/\\", r)
}

func (p *keywordParser) or() keyword {
	k := p.and()
	for p.err == nil && p.token == "or" {
		p.next()
		a, b := k, p.and()
		k = func(name string) bool { return a(name) || b(name) }
	}
	return k
}

func (p *keywordParser) and() keyword {
	k := p.not()
	for p.err == nil && p.token == "and" {
		p.next()
		a, b := k, p.not()
		k = func(name string) bool { return a(name) && b(name) }
	}
	return k
}

func (p *keywordParser) not() keyword {
	if p.depth++; p.depth > maxKeywordDepth {
		p.fail("at most 100 levels")
		return nil
	}
	defer func() { p.depth-- }()
	switch p.token {
	case "not":
		p.next()
		k := p.not()
		return func(name string) bool { return !k(name) }
	case "(":
		p.next()
		k := p.or()
		if p.token != ")" {
			p.fail(`")"`)
		}
		p.next()
		return k
	case "", "and", "or":
		p.fail("a name, not, or (")
		return nil
	}
	word := strings.ToLower(p.token)
	if r, _ := utf8.DecodeRuneInString(word); !isKeywordRune(r) {
		p.fail("a name, not, or (")
		return nil
	}
	p.next()
	return func(name string) bool { return strings.Contains(name, word) }
}
