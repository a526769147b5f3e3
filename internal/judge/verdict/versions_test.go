package verdict_test

import (
	"testing"

	"plumb/internal/judge/verdict"
)

func TestVersions(t *testing.T) {
	for _, c := range []struct {
		claim, subject string
		want           bool
	}{
		{"torch", "torch 1.13.0a0", true},
		{"torch", "torch", true},
		{"torch", "torchvision 0.15", false},
		{"torch >=2", "torch", false},
		{"torch <2", "torch", false},
		{"torch <2", "torch unknown", false},
		{"torch <2", "torch 1.13.0a0", true},
		{"torch <2", "torch 2.0.0", false},
		{"torch <2.0", "torch 2", false},
		{"torch >=1.13", "torch 1.13.0a0+gitunknown", true},
		{"torch >=1.13", "torch 1.12.1", false},
		{"torch >=1.13 <2.9", "torch 2.8.0+cpu", true},
		{"torch >=1.13 <2.9", "torch 2.9.0", false},
		{"torch >=1.13 <2.9", "torch 2.15.0+cu132", false},
		{"torch >=2.9", "torch 2.15.0+cu132", true},
		{"torch >=2.15", "torch 2.9.1", false},
		{"torch >=2.15", "torch 2.15", true},
		{"torch >=2.15", "torch 2.16.0.dev20261124", true},
		{"torch <2.9.1", "torch 2.9.0", true},
		{"torch <2.9.1", "torch 2.9.1+cu128", false},
		{"jax <0.5", "jax 0.4.38", true},
		{"oneflow >=0.9", "oneflow 0.9.1.dev20240203+cpu", true},
		{"numpy >=2.0.1", "numpy 2.0.0rc1", false},
		{"onnx:ort", "onnx:ort 1.20", true},
		{"a", "b 1", false},
	} {
		v, err := verdict.ParseVersions(c.claim)
		if err != nil {
			t.Errorf("%s: %v", c.claim, err)
		} else if got := v.Has(c.subject); got != c.want {
			t.Errorf("%q has %q: %v", c.claim, c.subject, got)
		}
	}
	for _, bad := range []string{"", " >=2", ">=2", "torch 1.13", "torch >=2 >=3", "torch >=2 <2", "torch >=2 <1.13", "torch ==2", "torch >2", "torch <=2", "torch <", "torch >=x", "torch <2.x", "torch >=2a", "torch <2..1", "torch>=2"} {
		if _, err := verdict.ParseVersions(bad); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}
