package script

import (
	"strings"
	"testing"

	"plumb/backend/native"
	"plumb/internal/draw/choice"
	"plumb/nn"
	"plumb/ops"
)

// TestAcceleratorsOfAnyKind: a device that a run has not is the run's; what torch.npu and the
// like are asked has an answer.
func TestAcceleratorsOfAnyKind(t *testing.T) {
	env := func(devices ...string) Env {
		return Env{Signatures: tableSigs{}, Observer: nativeObserver{native.New(ops.Table(), nn.Modules())}, Devices: devices}
	}
	src := "import torch\nimport torch_npu\nimport numpy as np\nfrom torch_npu.testing.common_utils import create_common_tensor\nfrom torch_npu.testing.testcase import TestCase\n\nclass TestIt(TestCase):\n    def test_it(self):\n" +
		"        a, b = create_common_tensor([np.float32, 0, (2, 3)], -1, 1)\n        torch.npu.synchronize()\n        assert not torch.npu.is_available() and not torch.backends.mps.is_available() and torch.xpu.device_count() == 0\n" +
		"        self.assertRtolEqual(torch.exp(a).numpy(), torch.exp(b.npu()).cpu().numpy())\n        assert torch.equal(a, b) is True and (torch.equal(a, b + 1) is True) is False and not b.is_npu\n"
	f := load(t, src)
	p, err := f.Tests()[0].Draw(choice.New(1), env("cpu"))
	if err != nil {
		t.Fatal(err)
	}
	if text := p.String(); strings.Contains(text, "npu") || strings.Count(text, "torch.exp") != 2 {
		t.Errorf("%s", text)
	}
	f = load(t, strings.ReplaceAll(src, "torch.exp(a)", "torch.sin(a)"))
	if _, err := f.Tests()[0].Draw(choice.New(1), env("cpu")); err == nil || !strings.Contains(err.Error(), "assertion failed: assert_allclose") {
		t.Errorf("%v", err)
	}
	f = load(t, "import torch\n"+body("x = torch.ones(3, device='xpu')\nassert torch.xpu.is_available() and torch.xpu.device_count() == 1 and not torch.cuda.is_available() and torch.accelerator.is_available()\nreturn x.xpu().to('cuda:0') * 2"))
	if p, err = f.Tests()[0].Draw(choice.New(1), env("xpu")); err != nil || strings.Count(p.String(), "xpu") != 1 || strings.Contains(p.String(), "cuda") {
		t.Errorf("%v\n%s", err, p)
	}
	strict := env("cpu")
	strict.DeviceStrict = true
	if _, err = f.Tests()[0].Draw(choice.New(1), strict); err == nil || !strings.Contains(err.Error(), `the device "xpu" needs a run with --device xpu`) {
		t.Errorf("%v", err)
	}
}
