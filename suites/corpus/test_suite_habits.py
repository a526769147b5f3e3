"""
Habits of a framework's own suite: calls made by eval, classes imported from
where they are defined, options of its optimizers, cotangents of numpy.
Licensed under the Apache License, Version 2.0.
"""
import unittest
from collections import OrderedDict

import numpy as np
from oneflow.test_utils.test_util import GenArgDict, GenArgList

import oneflow as flow
import oneflow.unittest
from oneflow.nn.parameter import Parameter
from oneflow.test_utils.automated_test_util import *
from oneflow.test_utils.automated_test_util.torch_flow_dual_object import autotest


def _assert_close(test_case, x):
    test_case.assertTrue(
        np.allclose(x.pytorch.detach().cpu().numpy(), x.oneflow.detach().numpy(), rtol=1e-4, atol=1e-5, equal_nan=True)
    )


def _test_method_grad_grad(test_case, op_name):
    x = random_tensor(ndim=2, low=0.5, high=2, dim0=random(3, 8), dim1=random(3, 8)).requires_grad_(True)
    y = eval(f"x.{op_name}()")
    init_grad = torch.tensor(np.random.rand(*x.oneflow.shape)).requires_grad_()
    dx = torch.autograd.grad(y, x, init_grad, True, True)[0]
    _assert_close(test_case, dx)
    ddx, ddy = torch.autograd.grad(dx, [x, init_grad], init_grad, True, True)
    _assert_close(test_case, ddx)


def _test_module_grad_grad(test_case, op_name, *args, **kwargs):
    x = random_tensor(ndim=2, dim0=random(3, 8), dim1=random(3, 8)).requires_grad_(True)
    m = eval(f"torch.nn.{op_name}(*args, **kwargs)")
    y = m(x)
    dx = torch.autograd.grad(y, x, random_tensor(2, *y.oneflow.shape), True, True)[0]
    _assert_close(test_case, dx)


def _test_conv_grad_grad(test_case, ndim):
    x = random_tensor(ndim + 2, 2, 3, *[np.random.randint(5, 8) for _ in range(ndim)])
    w = random_tensor(ndim + 2, 4, 3, *[2 for _ in range(ndim)])
    y = eval(f"torch.nn.functional.conv{ndim}d")(x, w, padding=1)
    dw = torch.autograd.grad(y, w, random_tensor(len(y.oneflow.shape), *y.oneflow.shape), create_graph=True)[0]
    _assert_close(test_case, torch.autograd.grad(dw.sum(), x)[0])


class TestHigherDerivatives(flow.unittest.TestCase):
    def test_rsqrt(test_case):
        _test_method_grad_grad(test_case, "rsqrt")

    def test_log(test_case):
        _test_method_grad_grad(test_case, "log")

    def test_softplus(test_case):
        _test_module_grad_grad(test_case, "Softplus", 1.0, 20.0)

    def test_elu(test_case):
        _test_module_grad_grad(test_case, "ELU", alpha=random(1.0, 2.0))

    def test_conv1d(test_case):
        _test_conv_grad_grad(test_case, 1)

    def test_conv2d(test_case):
        _test_conv_grad_grad(test_case, 2)

    def test_mse_loss_of_equal_tensors(test_case):
        x = flow.tensor([0.0, 1.0], requires_grad=True)
        target = flow.tensor([0.0, 1.0], requires_grad=True)
        loss = flow.nn.MSELoss(reduction="sum")(x, target)
        return flow.autograd.grad(loss, [x, target])


def _train_with_numpy(test_case, optimizer, init_value, grads, expected):
    x = Parameter(flow.Tensor(init_value, device=flow.device("cpu")))
    opt = optimizer(x)
    for grad in grads:
        loss = flow.sum(x * flow.tensor(grad, dtype=flow.float32, requires_grad=False))
        loss.backward()
        opt.step()
        opt.zero_grad()
    test_case.assertTrue(np.allclose(x.numpy().flatten(), expected.flatten(), rtol=1e-4, atol=1e-4))


class TestOptimizers(flow.unittest.TestCase):
    def test_sgd(test_case):
        arg_dict = OrderedDict()
        arg_dict["learning_rate"] = [1, 0.1]
        arg_dict["contiguous_params"] = [False, True]
        arg_dict["fused"] = [False, True]
        for arg in GenArgDict(arg_dict):
            init = np.random.uniform(size=(10,)).astype(np.float32)
            grads = [np.random.uniform(size=(10,)).astype(np.float32) for _ in range(3)]
            _train_with_numpy(
                test_case,
                lambda x: flow.optim.SGD(
                    [{"params": [x], "lr": arg["learning_rate"]}],
                    contiguous_params=arg["contiguous_params"],
                    fused=arg["fused"],
                ),
                init,
                grads,
                init - arg["learning_rate"] * sum(grads),
            )

    def test_rmsprop(test_case):
        x = Parameter(flow.Tensor(np.random.uniform(size=(10,)).astype(np.float32)))
        opt = flow.optim.RMSprop([{"params": [x]}], lr=0.1, alpha=0.9, eps=1e-8, centered=True)
        for i in range(3):
            flow.sum(x * x).backward()
            opt.step()
            opt.zero_grad(set_to_none=True)


def _np_nonzero(input, as_tuple):
    return np.nonzero(input) if as_tuple else np.transpose(np.nonzero(input))


def _test_nonzero(test_case, shape, as_tuple, device):
    np_input = np.random.randn(*shape)
    input = flow.tensor(np_input, dtype=flow.float32, device=flow.device(device))
    of_out = flow.nonzero(input, as_tuple=as_tuple)
    np_out = _np_nonzero(np_input, as_tuple)
    if as_tuple:
        test_case.assertTrue(np.allclose(tuple(x.numpy() for x in of_out), np_out, 0.0001, 0.0001))
    else:
        test_case.assertTrue(np.allclose(of_out.numpy(), np_out, 0.0001, 0.0001))


class TestNonzero(flow.unittest.TestCase):
    def test_nonzero(test_case):
        arg_dict = OrderedDict()
        arg_dict["test_fun"] = [_test_nonzero]
        arg_dict["shape"] = [(2, 3), (2, 3, 4)]
        arg_dict["as_tuple"] = [True, False]
        arg_dict["device"] = ["cpu", "cuda"]
        for arg in GenArgList(arg_dict):
            arg[0](test_case, *arg[1:])

    def test_index_by_arrays(test_case):
        numpy_x = np.arange(0, 60, 1).reshape([3, 4, 5]).astype(np.float32)
        x = flow.tensor(numpy_x)
        rows, columns = np.array([0, 1]), np.array([1, 0])
        test_case.assertTrue(np.allclose(numpy_x[rows], x[rows].numpy()))
        test_case.assertTrue(np.allclose(numpy_x[rows, columns], x[rows, columns].numpy()))
        x[rows, 1:3] = 0.5
        numpy_x[rows, 1:3] = 0.5
        test_case.assertTrue(np.allclose(numpy_x, x.numpy()))


class TestSchedules(flow.unittest.TestCase):
    base_lr = 1.0

    def test_lambda_lr(test_case):
        optimizer = flow.optim.SGD(
            [{"params": [Parameter(flow.ones(3, 4))]}, {"params": [Parameter(flow.ones(2))]}], lr=TestSchedules.base_lr
        )
        lambdas = [lambda step: step // 3, lambda step: 0.95 * step]
        lambda_lr = flow.optim.lr_scheduler.LambdaLR(optimizer, lr_lambda=lambdas)
        for i in range(1, 7):
            lambda_lr.step()
            lrs = lambda_lr.get_last_lr()
            test_case.assertAlmostEqual(lrs[0], TestSchedules.base_lr * (i // 3), places=5)
            test_case.assertAlmostEqual(lrs[1], TestSchedules.base_lr * 0.95 * i, places=5)


if __name__ == "__main__":
    unittest.main()
