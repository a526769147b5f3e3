"""Modules, gradients and states over ranks, as OneFlow tests them."""

import unittest
from collections import OrderedDict

import numpy as np
import oneflow as flow
import oneflow.unittest
import torch as torch_original
from oneflow.test_utils.automated_test_util import *
from oneflow.test_utils.test_util import GenArgDict, type_name_to_flow_type


@autotest(n=1, check_graph=True)
def _test_lstm_cell(test_case, placement, sbp):
    batch_size = random(2, 3) * 8
    time_steps = random(2, 3) * 2
    input_size = random(2, 3) * 8
    hidden_size = random(2, 3) * 8
    has_bias = random().to(bool)
    cx_requires_grad = random().to(bool)
    hx_requires_grad = random().to(bool)
    input_requires_grad = random().to(bool)
    m = torch.nn.LSTMCell(input_size=input_size, hidden_size=hidden_size, bias=has_bias,)
    weight_sbp = random_sbp(placement, max_dim=2, except_partial_sum=True)
    m.weight_ih = torch.nn.Parameter(m.weight_ih.to_global(placement=placement, sbp=weight_sbp))
    m.weight_hh = torch.nn.Parameter(m.weight_hh.to_global(placement=placement, sbp=weight_sbp))
    if m.bias_ih is not None:
        # bias is 1-d tensor
        bias_sbp = random_sbp(placement, max_dim=1, except_partial_sum=True)
        m.bias_ih = torch.nn.Parameter(m.bias_ih.to_global(placement=placement, sbp=bias_sbp))
        m.bias_hh = torch.nn.Parameter(m.bias_hh.to_global(placement=placement, sbp=bias_sbp))
    input_sbp = random_sbp(placement, max_dim=3, valid_split_axis=1)
    input = random_tensor(ndim=3, dim0=time_steps, dim1=batch_size, dim2=input_size, requires_grad=input_requires_grad).to_global(placement=placement, sbp=input_sbp)
    hx = random_tensor(ndim=2, dim0=batch_size, dim1=hidden_size, requires_grad=hx_requires_grad).to_global(placement=placement, sbp=sbp)
    cx = random_tensor(ndim=2, dim0=batch_size, dim1=hidden_size, requires_grad=cx_requires_grad).to_global(placement=placement, sbp=sbp)
    res = []
    for i in range(time_steps.to(int).value()):
        res = m(input[i], (hx, cx))
        hx, cx = res
    return res[0]


@autotest(n=1, check_graph=True)
def _test_batchnorm1d(test_case, placement, sbp):
    channel = 8
    m = torch.nn.BatchNorm1d(num_features=channel, track_running_stats=random().to(bool), affine=random().to(bool)).to_global(placement=placement, sbp=[flow.sbp.broadcast for _ in range(len(placement.ranks.shape))])
    m.train(random())
    x = random_tensor(ndim=3, dim0=8, dim1=channel, dim2=8, requires_grad=True).to_global(placement=placement, sbp=sbp)
    y = m(x)
    return y


def _test_slice_update(test_case, placement, sbp):
    input = random_tensor(2, 8, 16, requires_grad=True).oneflow
    value = random_tensor(2, 8, 8, requires_grad=True).oneflow
    x = (input + 0).to_global(placement=placement, sbp=sbp)  # add 0 to change to non-leaf tensor
    y = value.to_global(placement, sbp=sbp)
    x[:, :8] = y

    ref_np = input.detach().cpu().numpy()
    value_np = value.detach().cpu().numpy()

    # forward
    ref_np[:, :8] = value_np
    test_case.assertTrue(x.sbp == sbp)
    test_case.assertTrue(np.array_equal(x.numpy(), ref_np))

    # backward
    x.sum().backward()
    ref_grad_np = np.ones((8, 16))
    ref_grad_np[:, :8] = 0
    test_case.assertTrue(np.array_equal(input.grad.numpy(), ref_grad_np))
    value_grad_np = np.ones((8, 8))
    test_case.assertTrue(np.array_equal(value.grad.numpy(), value_grad_np))


def _test_graph_slice_update(test_case, placement, sbp):
    x = random_tensor(2, 8, 16, requires_grad=True).oneflow
    y = random_tensor(2, 8, 8, requires_grad=True).oneflow

    class SliceUpdateWithGrad(flow.nn.Module):
        def __init__(self):
            super().__init__()
            self.input_grad = flow.nn.Parameter(flow.zeros(8, 16))
            self.value_grad = flow.nn.Parameter(flow.zeros(8, 8))

        def forward(self, input, value):
            x = input + self.input_grad
            x = x.to_global(placement, sbp)
            y = value + self.value_grad
            y = y.to_global(placement, sbp)
            x[:, :8] = y
            return x

    slice_update_with_grad_m = SliceUpdateWithGrad().to_global(
        placement, [flow.sbp.broadcast,] * len(sbp)
    )

    of_sgd = flow.optim.SGD(slice_update_with_grad_m.parameters(), lr=1.0, momentum=0.0)

    class SliceUpdateTrainGraph(flow.nn.Graph):
        def __init__(self):
            super().__init__()
            self.module = slice_update_with_grad_m
            self.add_optimizer(of_sgd)

        def build(self, x, y):
            out = self.module(x, y)
            z = out.sum()
            z.backward()
            return out

    graph = SliceUpdateTrainGraph()
    input = x.to_global(placement=placement, sbp=sbp)
    value = y.to_global(placement=placement, sbp=sbp)
    x = graph(input, value)

    test_case.assertTrue(x.sbp == sbp)
    # forward
    ref_np = input.detach().cpu().numpy()
    value_np = value.detach().cpu().numpy()
    ref_np[:, :8] = value_np
    test_case.assertTrue(np.array_equal(x.numpy(), ref_np))
    # backward
    ref_grad_np = np.ones((8, 16))
    ref_grad_np[:, :8] = 0
    test_case.assertTrue(np.array_equal(-graph.module.input_grad.to(flow.Tensor).numpy(), ref_grad_np))


@autotest(n=1, check_graph=True)
def _test_scatter_random_data(test_case, placement):
    input = random_tensor(ndim=2, dim0=8, dim1=8).to_global(placement, random_sbp(placement, max_dim=2))
    src = random_tensor(ndim=2, dim0=2, dim1=2).to_global(placement, random_sbp(placement, max_dim=2))
    index = (
        torch.tensor(np.array([[0, 1], [1, 0]]), dtype=torch.int64)
        .to_global(flow.placement.all("cpu"), [flow.sbp.broadcast,])
        .to_global(placement, random_sbp(placement, max_dim=2))
    )
    dim = random(0, 2).to(int).value()
    return torch.scatter(input, dim, index, src)


def _test_global_tensor_scatter_nd_update(test_case, placement, sbp):
    origin = random_tensor(1, 16, requires_grad=False).to_global(placement, sbp)
    indices = choice_tensor(16, (8, 1), replace=False).to_global(placement, sbp)
    update = random_tensor(1, 8, requires_grad=False).to_global(placement, sbp)

    np_origin = origin.oneflow.numpy()
    np_indices = indices.oneflow.numpy().reshape(8)
    np_update = update.oneflow.numpy()

    np_origin[np_indices] = np_update

    output = flow.tensor_scatter_nd_update(origin.oneflow, indices.oneflow, update.oneflow)
    test_case.assertTrue(np.allclose(output.numpy(), np_origin, 0.0001, 0.0001))


def _check_forward_and_backward(test_case, input, of_out, torch_out):
    test_case.assertTrue(np.array_equal(of_out.numpy(), torch_out.cpu().detach().numpy()))
    of_out.sum().backward()
    torch_out.sum().backward()
    torch_grad_local = input.pytorch.grad.cpu().detach()
    test_case.assertTrue(np.array_equal(input.oneflow.grad.numpy(), torch_grad_local.numpy()))


def _test_slice_random_data(test_case, placement, sbp):
    dims = [random(1, 2) * 8 for _ in range(2)]
    input = random_tensor(2, *dims)
    x = input.to_global(placement=placement, sbp=sbp)
    slice_tup_list = [[None, None, None], [0, 5, 2]]
    of_out = flow.slice(x.oneflow, slice_tup_list=slice_tup_list)
    torch_out = x.pytorch[:, 0:5:2]
    _check_forward_and_backward(test_case, input, of_out, torch_out)


def _test_grad_sbp(test_case, placement, sbp):
    x = flow.ones((8, 16), dtype=flow.float32, requires_grad=True)
    y = x.to_global(placement=placement, sbp=flow.sbp.broadcast, grad_sbp=flow.sbp.broadcast)
    z = y.to_global(placement=placement, sbp=sbp, grad_sbp=sbp)
    (z * 2).sum().backward()
    test_case.assertTrue(np.allclose(x.grad.to_global(sbp=flow.sbp.broadcast).to_local().numpy() if x.grad.is_global else x.grad.numpy(), np.full((8, 16), 2.0)))


@autotest(n=1, check_graph=False)
def _test_local_round_trip(test_case, placement, sbp):
    x = random_tensor(2, 8, 8).to_global(placement=placement, sbp=sbp)
    y = torch.nn.functional.gelu(x)
    return y.to_global(placement=placement, sbp=[flow.sbp.broadcast] * len(sbp)).to_local()


def _test_with_generator(test_case, placement, sbp):
    gen = flow.Generator()
    gen.manual_seed(0)
    y1 = flow.randn(8, 16, generator=gen, placement=placement, sbp=sbp)
    gen.manual_seed(0)
    y2 = flow.randn(8, 16, generator=gen, placement=placement, sbp=sbp)
    test_case.assertTrue(np.allclose(y1.numpy(), y2.numpy(), 1e-4, 1e-4))


def _global_grad_grad_impl(test_case, op_name, placement, sbp):
    x = random_tensor(ndim=2, dim0=8, dim1=8).to_global(placement=placement, sbp=sbp)
    y = eval(f"torch.{op_name}")(x)
    x_shape = x.oneflow.shape
    init_grad = random_tensor(len(x_shape), *x_shape).to_global(placement=placement, sbp=sbp)
    init_grad_grad = random_tensor(len(x_shape), *x_shape).to_global(placement=placement, sbp=sbp)
    dx = torch.autograd.grad(y, x, init_grad, True, True)[0]
    test_case.assertTrue(np.allclose(dx.pytorch.detach().cpu().numpy(), dx.oneflow.detach().numpy(), atol=1e-4, rtol=1e-3))
    ddx_ddgrad = torch.autograd.grad(dx, [x, init_grad], init_grad_grad, True, True)
    ddx, ddgrad = ddx_ddgrad[0], ddx_ddgrad[1]
    test_case.assertTrue(np.allclose(ddx.pytorch.detach().cpu().numpy(), ddx.oneflow.detach().numpy(), atol=1e-4, rtol=1e-3))


def _test_sgd(test_case, placement, sbp, x_shape, momentum, weight_decay, learning_rate, train_iters):
    random_grad_seq = []
    for _ in range(train_iters):
        random_grad_seq.append(np.random.uniform(size=x_shape).astype(np.float32))
    init_value = np.random.uniform(size=x_shape).astype(np.float32)

    def train_by_oneflow():
        x = flow.nn.Parameter(flow.tensor(init_value).to_global(flow.placement.all("cpu"), flow.sbp.broadcast).to_global(placement=placement, sbp=sbp))
        sgd = flow.optim.SGD([{"params": [x], "lr": learning_rate, "momentum": momentum, "weight_decay": weight_decay}])

        def train_one_iter(grad):
            grad_tensor = flow.tensor(grad, dtype=flow.float32, requires_grad=False, placement=placement, sbp=sbp)
            loss = flow.sum(x * grad_tensor)
            loss.backward()
            sgd.step()
            sgd.zero_grad()

        for i in range(train_iters):
            train_one_iter(random_grad_seq[i])
        return x

    def train_by_numpy():
        x = init_value
        vt = np.zeros_like(x)

        def train_one_iter(grad):
            grad = grad + weight_decay * x
            v = momentum * vt + grad
            param = x - learning_rate * v
            return (param, v)

        for i in range(train_iters):
            (x, vt) = train_one_iter(random_grad_seq[i])
        return x

    oneflow_res = train_by_oneflow().numpy()
    numpy_res = train_by_numpy()
    test_case.assertTrue(np.allclose(oneflow_res.flatten(), numpy_res.flatten(), rtol=1e-4, atol=1e-4))


def _test_normal(test_case, placement, sbp, mean, std, shape, dtype, requires_grad):
    dtype = type_name_to_flow_type[dtype]
    x = flow.normal(mean, std, shape, placement=placement, sbp=sbp, dtype=dtype, requires_grad=requires_grad)
    test_case.assertEqual(x.shape, shape)
    test_case.assertEqual(x.dtype, dtype)
    test_case.assertEqual(x.requires_grad, requires_grad)
    test_case.assertEqual(x.sbp, sbp)
    test_case.assertEqual(x.placement, placement)


def _test_rnn_impl(test_case, placement, sbp):
    rnn = torch_original.nn.RNN(8, 16, 1)
    weights_torch = []
    for w in rnn.parameters():
        weights_torch.append(w.detach().cpu().numpy())
    rnn_flow = flow.nn.RNN(8, 16, 1).to_global(placement=flow.placement.all("cpu"), sbp=flow.sbp.broadcast)
    for i, w in enumerate(rnn_flow.parameters()):
        w.data.copy_(flow.tensor(weights_torch[i]).to_global(placement=w.placement, sbp=w.sbp))
    x = np.random.rand(4, 8, 8).astype(np.float32)
    x_flow = flow.tensor(x, dtype=flow.float32).to_global(placement=flow.placement.all("cpu"), sbp=flow.sbp.broadcast)
    out_flow, hid_flow = rnn_flow(x_flow)
    x_torch = torch_original.tensor(x, dtype=torch_original.float32)
    out_torch, hid_torch = rnn(x_torch)
    test_case.assertTrue(np.allclose(out_flow.numpy(), out_torch.detach().numpy(), 1e-4, 1e-4))


class TestGlobalState(flow.unittest.TestCase):
    @globaltest
    def test_lstm_cell(test_case):
        for placement in all_placement():
            sbp = random_sbp(placement, max_dim=2).value()
            _test_lstm_cell(test_case, placement, sbp)

    @globaltest
    def test_batchnorm(test_case):
        for placement in all_placement():
            sbp = random_sbp(placement, max_dim=3, except_partial_sum=True, valid_split_axis=[0]).value()
            _test_batchnorm1d(test_case, placement, sbp)

    @globaltest
    def test_slice_update(test_case):
        for placement in all_placement():
            sbp = random_sbp(placement, max_dim=2).value()
            _test_slice_update(test_case, placement, sbp)

    @globaltest
    def test_graph_slice_update(test_case):
        for placement in all_placement():
            sbp = random_sbp(placement, max_dim=2, except_partial_sum=True).value()
            _test_graph_slice_update(test_case, placement, sbp)

    @globaltest
    def test_scatter(test_case):
        for placement in all_placement():
            sbp = random_sbp(placement, max_dim=2).value()
            _test_scatter_random_data(test_case, placement)

    @globaltest
    def test_scatter_nd_update(test_case):
        for placement in all_placement():
            sbp = random_sbp(placement, max_dim=1, except_partial_sum=True).value()
            _test_global_tensor_scatter_nd_update(test_case, placement, sbp)

    @globaltest
    def test_slice(test_case):
        for placement in all_placement():
            sbp = random_sbp(placement, max_dim=2).value()
            _test_slice_random_data(test_case, placement, sbp)

    @globaltest
    def test_grad_sbp(test_case):
        for placement in all_placement():
            sbp = random_sbp(placement, max_dim=2, except_partial_sum=True).value()
            if len(sbp) == 1:
                _test_grad_sbp(test_case, placement, sbp)

    @globaltest
    def test_local_round_trip(test_case):
        for placement in all_placement():
            sbp = random_sbp(placement, max_dim=2).value()
            _test_local_round_trip(test_case, placement, sbp)

    @globaltest
    def test_generator(test_case):
        for placement in all_placement():
            sbp = random_sbp(placement, max_dim=2, except_partial_sum=True).value()
            _test_with_generator(test_case, placement, sbp)

    @globaltest
    def test_sin_grad_grad(test_case):
        for placement in all_placement():
            sbp = random_sbp(placement, max_dim=2).value()
            _global_grad_grad_impl(test_case, "sin", placement, sbp)

    @globaltest
    def test_sgd(test_case):
        arg_dict = OrderedDict()
        arg_dict["x_shape"] = [(8,), (8, 8)]
        arg_dict["momentum"] = [0.0, 0.9]
        arg_dict["weight_decay"] = [0.005]
        arg_dict["learning_rate"] = [0.1]
        arg_dict["train_iters"] = [3]
        for args in GenArgDict(arg_dict):
            for placement in all_placement():
                _test_sgd(test_case, placement, random_sbp(placement, max_dim=1, except_partial_sum=True).value(), **args)

    @globaltest
    def test_normal(test_case):
        for placement in all_placement():
            for sbp in all_sbp(placement, max_dim=2, except_partial_sum=True):
                for requires_grad in [True, False]:
                    _test_normal(test_case, placement, sbp, 0, 2, (8, 8), "float32", requires_grad)

    @globaltest
    def test_rnn(test_case):
        for placement in all_placement():
            sbp = random_sbp(placement, max_dim=1, except_partial_sum=True).value()
            _test_rnn_impl(test_case, placement, sbp)


if __name__ == "__main__":
    unittest.main()
