package suites_test

import (
	"regexp"
	"strings"
	"testing"

	"plumb/internal/draw/script"
	"plumb/program"
	"plumb/suites"
)

// mostUsed are the callables that occur most in the AutoTest functions of
// OneFlow's own tests, from /python/oneflow/test of 2025-08-20: below torch,
// torch.nn and torch.nn.functional.
var mostUsed = map[string]string{
	"torch.": `einsum where tensor cat ones pow sum transpose linalg.norm equal fmod exp nansum tensordot var eq split
		ones_like squeeze div median prod max arange full mean meshgrid nonzero unbind all min as_strided bincount chunk gt narrow sort
		stack triu unsqueeze reshape abs add addmm baddbmm ceil clamp linalg.det expm1 eye flatten flip linalg.inv floor_divide atan2
		matmul maximum minimum movedim round scatter sign sub tile tril any logsumexp mode repeat_interleave special.zeta tanh sigmoid
		allclose amax amin argsort atleast_1d atleast_2d atleast_3d clip zeros zeros_like cumprod diag erf erfc floor lerp ne negative
		reciprocal searchsorted`,
	"torch.nn.": `Upsample Parameter Softmax LogSoftmax CrossEntropyLoss BCEWithLogitsLoss BCELoss CELU ReLU ReLU6 Tanh ELU LeakyReLU
		Hardshrink Softshrink Threshold Dropout GELU Sigmoid Hardsigmoid LogSigmoid Hardswish Hardtanh Mish SiLU SELU ConvTranspose2d Fold
		Linear NLLLoss Softplus Conv2d MaxPool2d RNNCell LayerNorm AdaptiveAvgPool1d AdaptiveAvgPool2d AdaptiveAvgPool3d AvgPool2d
		Dropout1d Dropout2d Dropout3d MaxPool1d MaxPool3d Embedding`,
	"torch.nn.functional.": `affine_grid pad grid_sample fold gelu adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d`,
	"Tensor.": `permute sum masked_fill mean requires_grad_ detach matmul backward half bool reshape contiguous clone expand clamp
		repeat clamp_ float int double long unfold view logsumexp mul_ fmod repeat_interleave`,
	"Module.": `train eval __call__`,
}

func TestTheNamesThatTestsUseMostAreTested(t *testing.T) {
	called := map[string]bool{}
	draws(t, 6, func(_ *script.Test, p *program.Program) {
		for _, c := range p.Calls {
			called[c.Target] = true
		}
	})
	for prefix, names := range mostUsed {
		for name := range strings.FieldsSeq(names) {
			if !called[prefix+name] {
				t.Errorf("no shipped test calls %s%s", prefix, name)
			}
		}
	}
}

// habits are the ways in which these tests use generators, values and files,
// as the text of a test shows them.
var habits = []string{
	`random_tensor\(\d`, `random_tensor\(ndim=`, `dim0=`, `dim4=`, `low=`, `high=`, `dtype=int`, `dtype=complex`, `requires_grad=False`,
	`random\(1, 6\)`, `random\(\)`, `\.to\(int\)`, `\.to\(float\)`, `\.to\(bool\)`, `_size_2_t`, `_size_2_opt_t_not_none`, `_size_3_opt_t_not_none`,
	`\| nothing\(\)`, `constant\([^)]*\) \| nothing\(\)`, `oneof\(`, `random_bool\(\)`, `random_device\(\)`, `cpu_device\(\)`, `gpu_device\(\)`,
	`random_or_nothing\(`, `random_dtype\(`, `choice_tensor\(`, `random_sbp\(`, `all_placement\(\)`, `all_sbp\(`, `max_dim=2`, `@globaltest`,
	`k \* 2`, `k \+ 1`, `train\(random\(\)\)`, `torch\.Size\(`, `\.numpy\(\)`, `\.cpu\(\)`, `\.value\(\)`, `check_graph=`, `auto_backward="auto"`,
	`include_complex=True`, `check_allclose=False`, `check_dtype=True`, `check_grad_use_random_data=`, `rtol=`, `atol=`,
}

func TestTheHabitsOfTestsAreThere(t *testing.T) {
	var all strings.Builder
	for _, f := range suites.Files() {
		all.Write(f.Source)
	}
	for _, h := range habits {
		if !regexp.MustCompile(h).MatchString(all.String()) {
			t.Errorf("no shipped test has %s", h)
		}
	}
}
