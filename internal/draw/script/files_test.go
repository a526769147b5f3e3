package script

import (
	"context"
	"os"
	"testing"

	"plumb/backend"
	"plumb/backend/native"
	"plumb/internal/draw/choice"
	"plumb/nn"
	"plumb/ops"
)

// TestFilesHoldWhatTheyAssert draws files that assert what their calls give,
// and runs what was drawn: derivatives in closed form, modules, functions with
// a gradient of their own, optimizers and graphs, tensors over ranks.
func TestFilesHoldWhatTheyAssert(t *testing.T) {
	for name, tests := range map[string]int{"derivatives.py": 2, "modules.py": 11, "functions.py": 4, "training.py": 6, "global.py": 4} {
		src, err := os.ReadFile("testdata/" + name)
		if err != nil {
			t.Fatal(err)
		}
		f, err := Load(name, src)
		if err != nil {
			t.Fatal(err)
		}
		if len(f.Tests()) != tests {
			t.Errorf("%s has %d tests, want %d", name, len(f.Tests()), tests)
		}
		for _, test := range f.Tests() {
			own := native.New(ops.Table(), nn.Modules())
			p, err := test.Draw(choice.New(3), Env{Signatures: tableSigs{}, Observer: nativeObserver{own}})
			if err != nil {
				t.Errorf("%s: %v", test.Name, err)
				continue
			}
			out, err := own.Run(context.Background(), backend.NewJob(p))
			if err != nil || out.Status != backend.OK {
				t.Errorf("%s: %v %v\n%s", test.Name, err, out, p)
			}
		}
	}
}
