package suites_test

import (
	"errors"
	"testing"

	"plumb/backend/native"
	"plumb/internal/draw/choice"
	"plumb/internal/draw/script"
	"plumb/nn"
	"plumb/ops"
)

// BenchmarkDraw draws one case of every shipped test in turn. A test that looks
// at a value has it from native; one that needs what a run on the CPU lacks, or
// whose draw native refuses, ends there.
func BenchmarkDraw(b *testing.B) {
	tests := load(b)
	env := script.Env{Signatures: table{}, Observer: observer{native.New(ops.Table(), nn.Modules())}}
	for i := 0; b.Loop(); i++ {
		_, err := tests[i%len(tests)].Draw(choice.New(uint64(i)), env)
		var lacks *script.Error
		if err != nil && !errors.Is(err, errRefused) && !(errors.As(err, &lacks) && lacks.Unsupported) {
			b.Fatal(err)
		}
	}
}
