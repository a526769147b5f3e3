def OneFlow_LeakyReluYzhOp : OneFlow_BaseOp<"leaky_relu_yzh", [NoMemoryEffect, DeclareOpInterfaceMethods<UserOpCompatibleInterface>]> {
  let input = (ins OneFlow_Tensor:$x);
  let output = (outs OneFlow_Tensor:$y);
  let attrs = (ins DefaultValuedAttr<F32Attr, "0.">:$alpha);
  let has_logical_tensor_desc_infer_fn = 1;
  let has_physical_tensor_desc_infer_fn = 1;
  let has_get_sbp_fn = 1;
  let has_data_type_infer_fn = 1;
}

def OneFlow_LeakyReluYzhGradOp : OneFlow_BaseOp<"leaky_relu_yzh_grad", [NoMemoryEffect, DeclareOpInterfaceMethods<UserOpCompatibleInterface>]> {
  let input = (ins OneFlow_Tensor:$x, OneFlow_Tensor:$dy);
  let output = (outs OneFlow_Tensor:$dx);
  let attrs = (ins DefaultValuedAttr<F32Attr, "0.">:$alpha);
  let has_logical_tensor_desc_infer_fn = 1;
  let has_physical_tensor_desc_infer_fn = 1;
  let has_get_sbp_fn = 1;
  let has_data_type_infer_fn = 1;
}
