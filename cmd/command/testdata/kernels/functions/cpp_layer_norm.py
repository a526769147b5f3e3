from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <torch/extension.h>
#include <cmath>

torch::Tensor layer_norm(torch::Tensor x, torch::Tensor weight, torch::Tensor bias) {
  auto in = x.contiguous(), w = weight.contiguous(), b = bias.contiguous();
  auto out = torch::empty_like(in);
  const int64_t c = in.size(-1), n = c ? in.numel() / c : 0;
  AT_DISPATCH_FLOATING_TYPES(in.scalar_type(), "layer_norm", [&] {
    const scalar_t *xp = in.data_ptr<scalar_t>(), *wp = w.data_ptr<scalar_t>(), *bp = b.data_ptr<scalar_t>();
    scalar_t* yp = out.data_ptr<scalar_t>();
    for (int64_t i = 0; i < n; i++, xp += c, yp += c) {
      double mean = 0, var = 0;
      for (int64_t j = 0; j < c; j++) mean += xp[j];
      mean /= c;
      for (int64_t j = 0; j < c; j++) var += (xp[j] - mean) * (xp[j] - mean);
      const double r = 1 / std::sqrt(var / c + 1e-5);
      for (int64_t j = 0; j < c; j++) yp[j] = (xp[j] - mean) * r * wp[j] + bp[j];
    }
  });
  return out;
}
"""

_ext = load_inline("plain_layer_norm", SOURCE, functions=["layer_norm"])


def layer_norm(x, weight, bias):
    return _ext.layer_norm(x, weight, bias)
