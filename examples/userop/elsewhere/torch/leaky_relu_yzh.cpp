#include <torch/extension.h>

at::Tensor leaky_relu_yzh(const at::Tensor& x_, double alpha) {
  TORCH_CHECK(x_.is_floating_point(), "leaky_relu_yzh: expected a floating-point tensor");
  at::Tensor x = x_.contiguous();
  at::Tensor y = at::empty_like(x);
  AT_DISPATCH_FLOATING_TYPES_AND(at::kBFloat16, x.scalar_type(), "leaky_relu_yzh", [&] {
    const scalar_t* in = x.const_data_ptr<scalar_t>();
    scalar_t* out = y.mutable_data_ptr<scalar_t>();
    at::parallel_for(0, x.numel(), 2048, [&](int64_t lo, int64_t hi) {
      for (int64_t i = lo; i < hi; i++) {
        double v = static_cast<double>(in[i]);
        out[i] = static_cast<scalar_t>(v > 0 ? v : v * alpha);
      }
    });
  });
  return y;
}

TORCH_LIBRARY(mylib, m) { m.def("leaky_relu_yzh(Tensor x, float alpha=0.01) -> Tensor"); }

TORCH_LIBRARY_IMPL(mylib, CPU, m) { m.impl("leaky_relu_yzh", &leaky_relu_yzh); }

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {}
