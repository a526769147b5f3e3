"""
Losses.
Licensed under the Apache License, Version 2.0.
"""
import unittest
from collections import OrderedDict

import numpy as np
import oneflow as flow
import oneflow.unittest
from oneflow.test_utils.automated_test_util import *
from oneflow.test_utils.test_util import GenArgList


def generate_necessity_for_cross_entropy_or_nll_loss(dim: int, prob: bool = False):
    if dim > 5 or dim < 2:
        raise ValueError("dim should be less than 5 or greater than 1. ")
    device = random_device()
    num_classes = random(low=2, high=6).to(int)
    batch_size = random(low=10, high=20).to(int)
    ignore_index = random(0, num_classes).to(int) | nothing() if num_classes.value() > 2 and not prob else nothing()
    extra_dim = [random().to(int) for _ in range(dim - 2)]
    if prob:
        target_tensor = random_tensor(dim, batch_size, num_classes, *extra_dim, low=0, high=1, requires_grad=False)
    else:
        target_tensor = random_tensor(
            dim - 1, batch_size, *extra_dim, low=0, high=num_classes, dtype=int, requires_grad=False
        )
    return (
        random_tensor(dim, batch_size, num_classes, *extra_dim).to(device),
        target_tensor.to(device),
        random_tensor(1, num_classes, low=0, high=3, requires_grad=False).to(device),
        ignore_index,
        device,
    )


def test_cross_entropy_loss(dim=int, prob: bool = False):
    (x, target, weight, ignore_index, device) = generate_necessity_for_cross_entropy_or_nll_loss(dim, prob)
    m = torch.nn.CrossEntropyLoss(
        reduction=oneof("none", "sum", "mean", nothing()),
        ignore_index=ignore_index,
        weight=weight if random_bool().value() else None,
        label_smoothing=random(low=0, high=1),
    )
    m.train(random())
    m.to(device)
    y = m(x, target)
    return y


def test_nll_loss(dim=int):
    (x, target, weight, ignore_index, device) = generate_necessity_for_cross_entropy_or_nll_loss(dim)
    m = torch.nn.NLLLoss(
        weight=oneof(weight, nothing()),
        reduction=oneof("none", "sum", "mean", nothing()),
        ignore_index=ignore_index,
    )
    m.train(random())
    m.to(device)
    return m(x, target)


def generate_necessity_for_bce_loss(dim: int):
    if dim > 5 or dim < 2:
        raise ValueError("dim should be less than 5 or greater than 1. ")
    device = random_device()
    num_classes = random(low=1, high=6).to(int)
    batch_size = random(low=10, high=20).to(int)
    extra_dim = [random().to(int) for _ in range(dim - 2)]
    return (
        random_tensor(dim, batch_size, num_classes, low=0, high=1, *extra_dim).to(device),
        random_tensor(dim, batch_size, num_classes, low=0, high=num_classes, *extra_dim, requires_grad=False).to(device),
        random_tensor(dim, batch_size, num_classes, low=0, high=3, *extra_dim, requires_grad=False).to(device),
        random_tensor(1, 1, low=1, high=3, *extra_dim, requires_grad=False).to(device),
        device,
    )


def _test_smooth_l1_of_numpy(test_case, shape, beta, reduction):
    x = np.random.uniform(-3, 3, shape).astype(np.float32)
    t = np.random.uniform(-3, 3, shape).astype(np.float32)
    d = np.abs(x - t)
    loss = np.where(d < beta, 0.5 * d * d / beta, d - 0.5 * beta)
    expected = {"none": loss, "sum": loss.sum(), "mean": loss.mean()}[reduction]
    m = flow.nn.SmoothL1Loss(beta=beta, reduction=reduction)
    out = m(flow.tensor(x), flow.tensor(t))
    test_case.assertTrue(np.allclose(out.numpy(), expected, 1e-4, 1e-4))


@flow.unittest.skip_unless_1n1d()
class TestCrossEntropyLossModule(flow.unittest.TestCase):
    @autotest(n=4)
    def test_cross_entropy_loss_with_random_data_dim_2(test_case):
        return test_cross_entropy_loss(2, prob=oneof(True, False).value())

    @autotest(n=4)
    def test_cross_entropy_loss_with_random_data_dim_4(test_case):
        return test_cross_entropy_loss(4)

    @autotest(n=4)
    def test_nll_loss_with_random_data_dim_2(test_case):
        return test_nll_loss(2)

    @autotest(n=4)
    def test_nll_loss_with_random_data_dim_3(test_case):
        return test_nll_loss(3)

    @autotest(n=4)
    def test_bce_loss(test_case):
        x, target, weight, _, device = generate_necessity_for_bce_loss(3)
        m = torch.nn.BCELoss(weight=oneof(weight, nothing()), reduction=oneof("none", "sum", "mean", nothing()))
        m.train(random())
        m.to(device)
        return m(x, target)

    @autotest(n=4)
    def test_bce_with_logits(test_case):
        x, target, weight, pos_weight, device = generate_necessity_for_bce_loss(2)
        m = torch.nn.BCEWithLogitsLoss(
            weight=oneof(weight, nothing()),
            pos_weight=oneof(pos_weight, nothing()),
            reduction=oneof("none", "sum", "mean", nothing()),
        )
        m.train(random())
        m.to(device)
        y = m(x, target)
        return y

    @autotest(n=3)
    def test_bce_with_logits_mixed_dtypes(test_case):
        x = random_tensor(ndim=2, dim0=3, dim1=4)
        target = random_tensor(ndim=2, dim0=3, dim1=4, low=0, high=1, requires_grad=False).to(torch.float64)
        return torch.nn.functional.binary_cross_entropy_with_logits(x, target)

    @autotest(n=4)
    def test_kl_div_loss(test_case):
        batch_size = random(low=10, high=20)
        num_classes = random(low=2, high=6)
        x = random_tensor(2, batch_size, num_classes, low=0.01, high=1)
        target = random_tensor(2, batch_size, num_classes, low=0.01, high=1, requires_grad=False)
        m = torch.nn.KLDivLoss(
            reduction=oneof("none", "sum", "mean", "batchmean", nothing()),
            log_target=oneof(True, False, nothing()),
        )
        m.train(random())
        return m(x.log(), target)

    @autotest(n=4)
    def test_l1_loss(test_case):
        device = random_device()
        shape = random_tensor().oneflow.shape
        m = torch.nn.L1Loss(reduction=oneof("none", "sum", "mean", nothing()))
        m.to(device)
        x = random_tensor(len(shape), *shape).to(device)
        target = random_tensor(len(shape), *shape, requires_grad=False).to(device)
        return m(x, target)

    @autotest(n=4)
    def test_mse_loss(test_case):
        x = random_tensor(ndim=2, dim0=4, dim1=3)
        m = torch.nn.MSELoss(reduction=oneof("none", "sum", "mean", nothing()))
        return m(x, torch.randn(4, 3).detach() * 0 + 0.5)

    @autotest(n=4)
    def test_margin_ranking_loss(test_case):
        x1 = random_tensor(ndim=2, dim0=3, dim1=2)
        x2 = random_tensor(ndim=2, dim0=3, dim1=2)
        target = torch.tensor([[1.0, -1.0], [1.0, 1.0], [-1.0, -1.0]])
        m = torch.nn.MarginRankingLoss(margin=random(-2, 2).to(float) | nothing(), reduction=oneof("none", "sum", "mean"))
        return m(x1, x2, target)

    @autotest(n=3)
    def test_triplet_margin_loss(test_case):
        anchor = random_tensor(ndim=2, dim0=4, dim1=6)
        positive = random_tensor(ndim=2, dim0=4, dim1=6)
        negative = random_tensor(ndim=2, dim0=4, dim1=6)
        m = torch.nn.TripletMarginLoss(margin=1.5, p=2.0, swap=random_bool())
        return m(anchor, positive, negative)

    @autotest(n=3)
    def test_cosine_embedding_loss(test_case):
        a, b = [random_tensor(ndim=2, dim0=3, dim1=5) for _ in range(2)]
        y = torch.tensor([1, -1, 1])
        return torch.nn.CosineEmbeddingLoss(margin=0.2)(a, b, y)

    @autotest(n=3)
    def test_huber_and_smooth_l1(test_case):
        x = random_tensor(ndim=2, dim0=4, dim1=5, low=-3, high=3)
        y = random_tensor(ndim=2, dim0=4, dim1=5, requires_grad=False)
        F = torch.nn.functional
        return F.huber_loss(x, y, delta=0.7), F.smooth_l1_loss(x, y, beta=0.5, reduction="sum")

    @autotest(n=3)
    def test_ctc_loss(test_case):
        log_probs = random_tensor(ndim=3, dim0=8, dim1=2, dim2=4).log_softmax(2)
        targets = torch.tensor([[1, 2, 3], [2, 1, 1]])
        lengths = torch.tensor([8, 7])
        target_lengths = torch.tensor([3, 2])
        m = torch.nn.CTCLoss(blank=0, reduction=oneof("mean", "sum", "none"))
        return m(log_probs, targets, lengths, target_lengths)

    @autotest(n=3)
    def test_poisson_and_gaussian_nll(test_case):
        x = random_tensor(ndim=2, dim0=3, dim1=4)
        target = random_tensor(ndim=2, dim0=3, dim1=4, low=0, high=4, requires_grad=False)
        var = random_tensor(ndim=2, dim0=3, dim1=4, low=0.5, high=2)
        return (
            torch.nn.functional.poisson_nll_loss(x, target),
            torch.nn.functional.gaussian_nll_loss(x, target, var),
        )

    @autotest(n=3)
    def test_multi_margin_losses(test_case):
        x = random_tensor(ndim=2, dim0=3, dim1=4)
        y = torch.tensor([3, 0, 1])
        loss = torch.nn.MultiMarginLoss(p=1)(x, y)
        soft = torch.nn.MultiLabelSoftMarginLoss()(x, (x > 0).float().detach())
        return loss + soft

    @autotest(n=3)
    def test_hinge_embedding(test_case):
        x = random_tensor(ndim=1, dim0=6)
        y = torch.tensor([1.0, -1.0, -1.0, 1.0, 1.0, -1.0])
        return torch.nn.functional.hinge_embedding_loss(x, y, margin=0.5, reduction="none")

    def test_smooth_l1_of_numpy(test_case):
        arg_dict = OrderedDict()
        arg_dict["test_fun"] = [_test_smooth_l1_of_numpy]
        arg_dict["shape"] = [(100,), (5, 4), (2, 3, 4)]
        arg_dict["beta"] = [0.5, 1.0]
        arg_dict["reduction"] = ["none", "sum", "mean"]
        for arg in GenArgList(arg_dict):
            arg[0](test_case, *arg[1:])

    def test_cross_entropy_of_known_values(test_case):
        logits = flow.tensor([[2.0, 0.0, 0.0], [0.0, 1.0, 0.0]], requires_grad=True)
        target = flow.tensor([0, 1])
        loss = flow.nn.functional.cross_entropy(logits, target)
        loss.backward()
        p = np.exp(logits.detach().numpy())
        p = p / p.sum(axis=1, keepdims=True)
        p[[0, 1], [0, 1]] -= 1
        test_case.assertTrue(np.allclose(logits.grad.numpy(), p / 2, 1e-5, 1e-6))


@autotest(n=2)
def test_ctc_loss_of_listed_lengths(test_case):
    log_probs = random_tensor(ndim=3, dim0=12, dim1=2, dim2=5).log_softmax(2)
    targets = random_tensor(ndim=2, dim0=2, dim1=4, low=1, high=5, dtype=int)
    m = torch.nn.CTCLoss(reduction=oneof("mean", "sum", "none"), zero_infinity=random_bool())
    return m(log_probs, targets, (12, 10), [4, 3])


@autotest(n=2)
def test_ctc_loss_by_number(test_case):
    log_probs = random_tensor(ndim=3, dim0=12, dim1=2, dim2=5).log_softmax(2)
    targets = random_tensor(ndim=2, dim0=2, dim1=4, low=1, high=5, dtype=int)
    lengths = torch.tensor([12, 10]), torch.tensor([4, 3])
    return torch.ctc_loss(log_probs, targets, *lengths), torch.ctc_loss(log_probs, targets, *lengths, 0, 2, True)


if __name__ == "__main__":
    unittest.main()
