"""What OneFlow has beside PyTorch, over ranks, as OneFlow tests it."""

import math
import unittest

import numpy as np
import oneflow as flow
import oneflow.unittest
from oneflow.test_utils.automated_test_util import *


def whole(sbp):
    return [flow.sbp.broadcast] * len(sbp)


@autotest(n=1, check_graph=True)
def _test_broadcast_like(test_case, placement, sbp):
    like = random_tensor(3, 4, 8, 8).to_global(placement, sbp)
    x = random_tensor(2, 8, 8).to_global(placement, random_sbp(placement, max_dim=2))
    return torch.broadcast_like(x, like), x.broadcast_like(like)


def _test_reshape_like(test_case, placement, sbp):
    x = flow.tensor(np.random.randn(8, 8).astype(np.float32), placement=placement, sbp=sbp, requires_grad=True)
    y = flow._C.reshape_like(x, flow.ones(64, placement=placement, sbp=whole(sbp)))
    test_case.assertTrue(np.array_equal(y.numpy(), x.numpy().reshape(64)))
    flow._C.square_relu(y).sum().backward()
    test_case.assertTrue(np.allclose(x.grad.numpy(), 2 * np.maximum(x.numpy(), 0), 1e-5, 1e-5))


def _nms(boxes, scores, iou_threshold):
    areas = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
    order = scores.argsort()[::-1]
    keep = []
    while order.size > 0:
        i = order[0]
        keep.append(i)
        w = np.maximum(0.0, np.minimum(boxes[i, 2], boxes[order[1:], 2]) - np.maximum(boxes[i, 0], boxes[order[1:], 0]))
        h = np.maximum(0.0, np.minimum(boxes[i, 3], boxes[order[1:], 3]) - np.maximum(boxes[i, 1], boxes[order[1:], 1]))
        over = w * h / (areas[i] + areas[order[1:]] - w * h)
        order = order[np.where(over <= iou_threshold)[0] + 1]
    return np.array(keep)


def _test_nms(test_case, placement, sbp):
    np_boxes = (np.random.rand(16, 4) * 8).astype(np.float32)
    np_boxes[:, 2:] = np_boxes[:, :2] + np.random.rand(16, 2).astype(np.float32) * 8
    np_scores = np.random.rand(16).astype(np.float32)
    boxes = flow.tensor(np_boxes, placement=placement, sbp=sbp)
    scores = flow.tensor(np_scores, placement=placement, sbp=sbp)
    keep = flow.nms(boxes, scores, 0.3)
    test_case.assertTrue(np.array_equal(keep.numpy(), _nms(np_boxes, np_scores, 0.3)))


def _scale(weight, bits, formula, scheme):
    weight_max = np.max(np.abs(weight))
    if formula == "cambricon":
        return math.floor(math.log2(weight_max)) - (bits - 2), 0
    if scheme == "symmetric":
        return weight_max / (2.0 ** (bits - 1) - 1), 0
    scale = (np.max(weight) - np.min(weight)) / (2.0 ** bits - 1)
    return scale, -np.round(np.min(weight) / scale)


def _test_observers(test_case, placement, sbp):
    np_weight = (np.random.random((8, 3, 4)) - 0.5).astype(np.float32)
    weight = flow.tensor(np_weight, placement=placement, sbp=sbp, requires_grad=True)
    for formula, scheme in [("google", "symmetric"), ("google", "affine"), ("cambricon", "symmetric")]:
        for bits in [8, 4]:
            how = {"quantization_formula": formula, "quantization_bit": bits, "quantization_scheme": scheme}
            scale, zero_point = flow.nn.MinMaxObserver(per_layer_quantization=True, **how)(weight)
            np_scale, np_zero = _scale(np_weight, bits, formula, scheme)
            test_case.assertTrue(np.allclose(scale.numpy(), np_scale, 1e-3))
            test_case.assertTrue(np.allclose(zero_point.numpy(), np_zero, 1e-3))
            weight.grad = None
            fake = flow.nn.FakeQuantization(**how)(weight, scale, zero_point)
            fake.sum().backward()
            step = 2.0 ** np_scale if formula == "cambricon" else np_scale
            test_case.assertTrue(np.max(np.abs(fake.detach().numpy() - np_weight)) < 1.01 * step)
            test_case.assertTrue(np.array_equal(weight.grad.numpy(), np.ones((8, 3, 4))))
            levels = flow.nn.Quantization(**how)(weight.detach(), scale, zero_point).numpy()
            test_case.assertTrue(np.array_equal(levels, np.round(levels)))
    scale, _ = flow.nn.MinMaxObserver(per_layer_quantization=False)(weight)
    test_case.assertTrue(np.allclose(scale.numpy(), np.max(np.abs(np_weight.reshape(8, -1)), 1) / 127, 1e-3))


def _test_moving_average(test_case, placement, sbp):
    m = flow.nn.MovingAverageMinMaxObserver(stop_update_after_iters=1, momentum=0.9).to_global(placement, whole(sbp))
    most = 0.0
    for i in range(3):
        x = (np.random.random((8, 4)) - 0.5).astype(np.float32)
        step = flow.tensor(np.zeros((1,)) + i, dtype=flow.int64, placement=placement, sbp=whole(sbp))
        scale, _ = m(flow.tensor(x, placement=placement, sbp=sbp), step)
        if i <= 1:
            now = np.max(np.abs(x))
            most = now if i == 0 else most * 0.9 + now * (1 - 0.9)
    test_case.assertTrue(np.allclose(scale.numpy(), most / 127, 1e-3))


def _test_combined_margin_loss(test_case, placement, sbp):
    np_x = np.random.rand(8, 16).astype(np.float32)
    np_label = np.random.randint(0, 16, (8,)).astype(np.int32)
    label = flow.tensor(np_label, placement=placement, sbp=whole(sbp))
    out = flow.nn.CombinedMarginLoss(0.3, 0.5, 0.4)(flow.tensor(np_x, placement=placement, sbp=sbp), label)
    for i in range(8):
        np_x[i, np_label[i]] = np.cos(np.arccos(np_x[i, np_label[i]]) * 0.3 + 0.5) - 0.4
    test_case.assertTrue(np.allclose(out.numpy(), np_x, 1e-4, 1e-4))


def _test_random_like(test_case, placement, sbp):
    x = random_tensor(2, 8, 16).oneflow.to_global(placement, sbp)
    y = flow.rand_like(x) + 1
    test_case.assertEqual(y.placement, placement)
    test_case.assertEqual(y.sbp, sbp)
    z = x.new_tensor(np.ones((8, 8)))
    test_case.assertEqual(z.dtype, x.dtype)
    test_case.assertEqual(z.sbp, sbp)
    z.check_meta_consistency()
    w = x.new_tensor([[1.0, 2.0]], placement=placement, sbp=whole(sbp))
    test_case.assertEqual(w.sbp, tuple(whole(sbp)))


# The numbers are those of OneFlow 0.9.
def _test_lamb(test_case, placement, sbp):
    g = flow.tensor([[0.1, -0.2, 0.3], [0.4, -0.5, 0.6]]).to_global(placement, whole(sbp))
    for options, want in [
        ({"weight_decay": 0.1, "do_bias_correction": False}, [[0.15315358, -0.64874560, 1.63993025], [-0.09464309, 1.82921648, -1.08582783]]),
        ({"weight_decay": 0.3, "adam_w_mode": False}, [[0.14632863, -0.64695096, 1.64662015], [-0.09759397, 1.81333566, -1.08882260]]),
        ({"betas": (0.5, 0.8), "eps": 1e-2}, [[0.16840556, -0.65751427, 1.65370476], [-0.09823552, 1.84941137, -1.10020030]]),
    ]:
        x = flow.nn.Parameter(flow.tensor([[0.5, -1.0, 2.0], [0.25, 1.5, -0.75]]).to_global(placement, whole(sbp)))
        lamb = flow.optim.LAMB([{"params": [x], "lr": 0.1, **options}])
        for i in range(3):
            (x * g * (i + 1)).sum().backward()
            lamb.step()
            lamb.zero_grad()
        test_case.assertTrue(np.allclose(x.numpy(), want, 1e-5, 1e-5))
    with test_case.assertRaises(RuntimeError):
        flow.optim.LAMB([x], amsgrad=True)


@autotest(n=1, auto_backward=False)
def _test_scalar_logic(test_case, placement, sbp):
    x = random_tensor(2, 8, 16, low=-2, high=2, dtype=int).to_global(placement, sbp)
    y = flow.logical_or(x.oneflow, 0)
    test_case.assertTrue(np.array_equal(y.numpy(), x.pytorch.numpy() != 0))
    test_case.assertTrue(np.array_equal(x.oneflow.logical_xor(1).numpy(), x.pytorch.numpy() == 0))
    test_case.assertTrue(np.array_equal(flow.logical_and(x.oneflow, x.oneflow).numpy(), x.pytorch.numpy() != 0))
    return x.logical_not()


def _test_out_of_range(test_case, placement):
    with test_case.assertRaises(RuntimeError) as ctx:
        flow.nn.InstanceNorm2d(8, track_running_stats=True).to_global(placement, [flow.sbp.split(0)] * placement.ranks.ndim)
    test_case.assertTrue("expected to be in range of [0, 0)" in str(ctx.exception))
    with test_case.assertRaises(RuntimeError) as ctx:
        flow.ones(8).check_meta_consistency()


def _test_eye(test_case, placement, sbp):
    n = random(1, 5).to(int).value() * 8
    m = random(1, 5).to(int).value() * 8
    x = torch.eye(n, m)
    x.oneflow = flow.tensor(
        x.pytorch.cpu().detach().numpy(),
        requires_grad=x.pytorch.requires_grad,
        placement=placement,
        sbp=sbp,
    )
    return x


class TestGlobalOneFlow(flow.unittest.TestCase):
    @globaltest
    def test_broadcast_like(test_case):
        for placement in all_placement():
            for sbp in all_sbp(placement, max_dim=2):
                _test_broadcast_like(test_case, placement, sbp)

    @globaltest
    def test_eye(test_case):
        for placement in all_placement():
            for sbp in all_sbp(placement, max_dim=2, except_partial_sum=True):
                autotest(n=1, auto_backward=False)(_test_eye)(test_case, placement, sbp)

    @globaltest
    def test_reshape_like(test_case):
        for placement in all_placement():
            for sbp in all_sbp(placement, max_dim=2):
                _test_reshape_like(test_case, placement, sbp)

    @globaltest
    def test_nms(test_case):
        for placement in all_placement():
            _test_nms(test_case, placement, random_sbp(placement, max_dim=1).value())

    @globaltest
    def test_observers(test_case):
        for placement in all_placement():
            _test_observers(test_case, placement, random_sbp(placement, max_dim=2, except_partial_sum=True).value())

    @globaltest
    def test_moving_average(test_case):
        for placement in all_placement():
            _test_moving_average(test_case, placement, random_sbp(placement, max_dim=2).value())

    @globaltest
    def test_combined_margin_loss(test_case):
        for placement in all_placement():
            for sbp in all_sbp(placement, max_dim=2):
                _test_combined_margin_loss(test_case, placement, sbp)

    @globaltest
    def test_random_like(test_case):
        for placement in all_placement():
            for sbp in all_sbp(placement, max_dim=2, except_partial_sum=True):
                _test_random_like(test_case, placement, sbp)

    @globaltest
    def test_lamb(test_case):
        for placement in all_placement():
            for sbp in all_sbp(placement, max_dim=1):
                _test_lamb(test_case, placement, sbp)

    @globaltest
    def test_scalar_logic(test_case):
        for placement in all_placement():
            for sbp in all_sbp(placement, max_dim=2, except_partial_sum=True):
                _test_scalar_logic(test_case, placement, sbp)

    @globaltest
    def test_out_of_range(test_case):
        for placement in all_placement():
            _test_out_of_range(test_case, placement)


if __name__ == "__main__":
    unittest.main()
