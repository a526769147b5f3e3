// Package spell tells how far words are apart, for messages that guess what was meant.
package spell

import "strings"

// maxWord bounds the words that are compared letter by letter.
const maxWord = 200

// Nearest is the word that is written nearly like name, whatever its case; "" where none is.
func Nearest(name string, among []string) string {
	best, exact, at := max(1, len(name)/3), maxWord, ""
	for _, n := range among {
		d, e := Distance(strings.ToLower(name), strings.ToLower(n)), Distance(name, n)
		if d < best || d == best && e < exact {
			best, exact, at = d, e, n
		}
	}
	return at
}

// Guess asks whether the nearest is meant: " (is it relu?)", or "".
func Guess(name string, among []string) string {
	if at := Nearest(name, among); at != "" {
		return " (is it " + at + "?)"
	}
	return ""
}

// Distance is the number of bytes to insert, delete, replace or exchange with the next to
// turn a into b (optimal string alignment). Words of more than 200 bytes are as far apart
// as the longer is long.
func Distance(a, b string) int {
	if len(a) > maxWord || len(b) > maxWord {
		return max(len(a), len(b))
	}
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		row[0] = i + 1
		for j := range len(b) {
			cost := last[j]
			if a[i] != b[j] {
				cost++
			}
			row[j+1] = min(cost, row[j]+1, last[j+1]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
