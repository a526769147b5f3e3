"""C++ extensions, built by load_inline."""
import torch
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <torch/extension.h>
#include <ATen/Parallel.h>
at::Tensor rms(at::Tensor x, at::Tensor w, double eps) {
  auto a = x.contiguous(), v = w.contiguous();
  auto y = at::empty_like(a);
  int64_t n = a.size(-1), rows = n ? a.numel() / n : 0;
  AT_DISPATCH_FLOATING_TYPES(a.scalar_type(), "rms", [&] {
    const scalar_t *p = a.data_ptr<scalar_t>(), *q = v.data_ptr<scalar_t>();
    scalar_t *o = y.data_ptr<scalar_t>();
    at::parallel_for(0, rows, 1, [&](int64_t lo, int64_t hi) {
      for (int64_t r = lo; r < hi; r++) {
        double s = 0;
        for (int64_t i = 0; i < n; i++) s += (double)p[r * n + i] * p[r * n + i];
        double k = 1 / std::sqrt(s / n + eps);
        for (int64_t i = 0; i < n; i++) o[r * n + i] = p[r * n + i] * k * q[i];
      }
    });
  });
  return y;
}
at::Tensor rms_float(at::Tensor x, at::Tensor w, double eps) {
  auto y = at::empty_like(x);
  int64_t n = x.size(-1), rows = n ? x.numel() / n : 0;
  const float *p = x.data_ptr<float>(), *q = w.data_ptr<float>();
  float *o = y.data_ptr<float>();
  for (int64_t r = 0; r < rows; r++) {
    float s = 0;
    for (int64_t i = 0; i < n; i++) s += p[r * n + i] * p[r * n + i];
    float k = 1 / std::sqrt(s / n + (float)eps);
    for (int64_t i = 0; i < n; i++) o[r * n + i] = p[r * n + i] * k * q[i];
  }
  return y;
}
at::Tensor rms_at(at::Tensor x, at::Tensor w, double eps) { return x * at::rsqrt((x * x).mean(-1, true) + eps) * w; }
at::Tensor softmax_at(at::Tensor x) { return at::softmax(x, -1); }
"""
ext = load_inline("plumb_inline_new", SOURCE, functions=["rms", "rms_float", "rms_at", "softmax_at"], verbose=False)


def rms_norm(x, w, eps=1e-6):
    return ext.rms(x, w, eps)


def rms_norm_strides(x, w, eps=1e-6):
    return ext.rms_float(x, w, eps)


def softmax_delegated(x):
    return ext.softmax_at(x)
