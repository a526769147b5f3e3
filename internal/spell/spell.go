// Package spell tells how far words are apart, for messages that guess what was meant.
package spell

// maxWord bounds the words that are compared letter by letter.
const maxWord = 200

// Distance is the number of bytes to insert, delete or replace to turn a into b
// (Levenshtein). Words of more than 200 bytes are as far apart as the longer is long.
func Distance(a, b string) int {
	if len(a) > maxWord || len(b) > maxWord {
		return max(len(a), len(b))
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
