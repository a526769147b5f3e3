#include "oneflow/core/framework/framework.h"

namespace oneflow {

template<typename T>
class CpuLeakyReluYzhKernel final : public user_op::OpKernel {
 public:
  CpuLeakyReluYzhKernel() = default;
  ~CpuLeakyReluYzhKernel() = default;

 private:
  void Compute(user_op::KernelComputeContext* ctx) const override {
    const user_op::Tensor* x = ctx->Tensor4ArgNameAndIndex("x", 0);
    user_op::Tensor* y = ctx->Tensor4ArgNameAndIndex("y", 0);
    const T alpha = static_cast<T>(ctx->Attr<float>("alpha"));
    const T* x_ptr = x->dptr<T>();
    T* y_ptr = y->mut_dptr<T>();
    FOR_RANGE(int64_t, i, 0, x->shape_view().elem_cnt()) {
      y_ptr[i] = x_ptr[i] > 0 ? x_ptr[i] : alpha * x_ptr[i];
    }
  }
  bool AlwaysComputeWhenAllOutputsEmpty() const override { return false; }
};

template<typename T>
class CpuLeakyReluYzhGradKernel final : public user_op::OpKernel {
 public:
  CpuLeakyReluYzhGradKernel() = default;
  ~CpuLeakyReluYzhGradKernel() = default;

 private:
  void Compute(user_op::KernelComputeContext* ctx) const override {
    const user_op::Tensor* x = ctx->Tensor4ArgNameAndIndex("x", 0);
    const user_op::Tensor* dy = ctx->Tensor4ArgNameAndIndex("dy", 0);
    user_op::Tensor* dx = ctx->Tensor4ArgNameAndIndex("dx", 0);
    const T alpha = static_cast<T>(ctx->Attr<float>("alpha"));
    const T* x_ptr = x->dptr<T>();
    const T* dy_ptr = dy->dptr<T>();
    T* dx_ptr = dx->mut_dptr<T>();
    FOR_RANGE(int64_t, i, 0, x->shape_view().elem_cnt()) {
      dx_ptr[i] = x_ptr[i] > 0 ? dy_ptr[i] : dy_ptr[i] * alpha;
    }
  }
  bool AlwaysComputeWhenAllOutputsEmpty() const override { return false; }
};

#define REGISTER_CPU_LEAKY_RELU_YZH_KERNEL(dtype)                                        \
  REGISTER_USER_KERNEL("leaky_relu_yzh")                                                 \
      .SetCreateFn<CpuLeakyReluYzhKernel<dtype>>()                                       \
      .SetIsMatchedHob((user_op::HobDeviceType() == DeviceType::kCPU)                    \
                       && (user_op::HobDataType("y", 0) == GetDataType<dtype>::value));

#define REGISTER_CPU_LEAKY_RELU_YZH_GRAD_KERNEL(dtype)                                   \
  REGISTER_USER_KERNEL("leaky_relu_yzh_grad")                                            \
      .SetCreateFn<CpuLeakyReluYzhGradKernel<dtype>>()                                   \
      .SetIsMatchedHob((user_op::HobDeviceType() == DeviceType::kCPU)                    \
                       && (user_op::HobDataType("dx", 0) == GetDataType<dtype>::value));

REGISTER_CPU_LEAKY_RELU_YZH_KERNEL(float)
REGISTER_CPU_LEAKY_RELU_YZH_KERNEL(double)
REGISTER_CPU_LEAKY_RELU_YZH_GRAD_KERNEL(float)
REGISTER_CPU_LEAKY_RELU_YZH_GRAD_KERNEL(double)

}  // namespace oneflow
