package script

import (
	"testing"

	"plumb/backend/native"
	"plumb/internal/draw/choice"
	"plumb/nn"
	"plumb/ops"
)

// TestHookOfALeaf: the gradient of a leaf is what its hook makes of it.
func TestHookOfALeaf(t *testing.T) {
	for _, leaf := range []string{"torch.randn(3, requires_grad=True)", "torch.ones(3, requires_grad=True)"} {
		f := load(t, "import torch\n"+body("x = "+leaf+"\nh = x.register_hook(lambda g: g * 2)\n(x * 3).sum().backward()\nassert torch.equal(x.grad, torch.full((3,), 6.0)) and x.is_leaf\nreturn x.grad"))
		if _, err := f.Tests()[0].Draw(choice.New(3), Env{Signatures: tableSigs{}, Observer: nativeObserver{native.New(ops.Table(), nn.Modules())}}); err != nil {
			t.Errorf("%s: %v", leaf, err)
		}
	}
}
