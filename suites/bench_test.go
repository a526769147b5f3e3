package suites_test

import (
	"testing"

	"plumb/choice"
	"plumb/script"
)

// BenchmarkDraw draws one case of every shipped test in turn.
func BenchmarkDraw(b *testing.B) {
	tests := load(b)
	for i := 0; b.Loop(); i++ {
		if _, err := tests[i%len(tests)].Draw(choice.New(uint64(i)), script.Env{Signatures: table{}}); err != nil {
			b.Fatal(err)
		}
	}
}
