package script

import (
	"os"
	"testing"

	"plumb/backend/native"
	"plumb/internal/draw/choice"
	"plumb/nn"
	"plumb/ops"
)

// TestFunctionalDerivatives holds torch.autograd.functional to closed forms,
// which the file asserts.
func TestFunctionalDerivatives(t *testing.T) {
	src, err := os.ReadFile("testdata/derivatives.py")
	if err != nil {
		t.Fatal(err)
	}
	f, err := Load("derivatives.py", src)
	if err != nil {
		t.Fatal(err)
	}
	if len(f.Tests()) != 2 {
		t.Fatalf("%d tests", len(f.Tests()))
	}
	for _, test := range f.Tests() {
		observer := nativeObserver{native.New(ops.Table(), nn.Modules())}
		if _, err := test.Draw(choice.New(3), Env{Signatures: tableSigs{}, Observer: observer}); err != nil {
			t.Errorf("%s: %v", test.Name, err)
		}
	}
}
