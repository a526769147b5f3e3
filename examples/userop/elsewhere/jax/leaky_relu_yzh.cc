#include <cstdint>

#include "xla/ffi/api/ffi.h"

namespace ffi = xla::ffi;

template <ffi::DataType T>
ffi::Error LeakyReluYzh(double alpha, ffi::Buffer<T> x, ffi::ResultBuffer<T> y) {
  for (size_t i = 0; i < x.element_count(); i++) {
    auto v = x.typed_data()[i];
    y->typed_data()[i] = v > 0 ? v : v * alpha;
  }
  return ffi::Error::Success();
}

#define DEFINE(name, T)                                                   \
  XLA_FFI_DEFINE_HANDLER_SYMBOL(name, (LeakyReluYzh<T>),                  \
                                ffi::Ffi::Bind()                          \
                                    .Attr<double>("alpha")                \
                                    .Arg<ffi::Buffer<T>>()                \
                                    .Ret<ffi::Buffer<T>>())
DEFINE(LeakyReluYzhF32, ffi::F32);
DEFINE(LeakyReluYzhF64, ffi::F64);
