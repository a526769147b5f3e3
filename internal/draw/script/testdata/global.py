import unittest
import numpy as np
import oneflow as flow
import oneflow.unittest
from oneflow.test_utils.automated_test_util import *


def _test_forms(test_case):
    a = np.array([[0, 1], [2, 3]])
    p = flow.placement(type="cpu", ranks=a)
    test_case.assertEqual(p, flow.placement("cpu", [[0, 1], [2, 3]]))
    q = flow.placement("cpu", np.array(range(4)).reshape(2, 2))
    test_case.assertTrue(p == q)
    test_case.assertTrue(isinstance(p, flow.placement))
    s = flow.sbp.split(dim=1)
    test_case.assertTrue(isinstance(s, flow.sbp.sbp))
    x = flow.ones(4, 4, placement=p, sbp=[flow.sbp.split(axis=0), flow.sbp.broadcast])
    test_case.assertEqual(x.sbp[0], flow.sbp.split(0))
    y = x.to_global(placement=flow.placement.all("cpu"), sbp=flow.sbp.broadcast)
    test_case.assertEqual(y.placement.ranks.tolist(), [0, 1, 2, 3])
    test_case.assertTrue(y.placement.type in ["cpu", "cuda"])
    r = list(range(4))
    z = y.to_global(flow.placement("cpu", r), flow.sbp.split(0))
    test_case.assertEqual(z.to_local().shape, flow.Size((1, 4)))
    test_case.assertEqual(z.sbp, (flow.sbp.split(0),))
    test_case.assertTrue(np.array_equal(z.numpy(), np.ones((4, 4))))


def _test_computed_asked(test_case, placement, sbp):
    x = flow.ones(8, 8, placement=placement, sbp=sbp)
    y = flow.exp(x)
    test_case.assertEqual(y.sbp, sbp)
    w = flow.matmul(x, flow.ones(8, 8, placement=placement, sbp=[flow.sbp.broadcast] * len(sbp)))
    test_case.assertEqual(len(w.sbp), len(sbp))


def _test_kwargs(test_case, placement, sbp, **kw):
    x = flow.full((8, 8), 2.0, dtype=flow.float32, placement=placement, sbp=sbp, requires_grad=kw["rg"])
    y = (x * 3).mean()
    if kw["rg"]:
        y.backward()
        test_case.assertTrue(np.allclose(x.grad.numpy(), np.full((8, 8), 3 / 64)))
        test_case.assertEqual(x.grad.sbp, sbp)
    test_case.assertEqual(x.is_leaf, True)


def _test_errors(test_case, placement):
    with test_case.assertRaises(Exception) as ctx:
        x = flow.ones(2, 2)
        x.to_local()
    test_case.assertTrue("Expected global tensor for to_local but got local tensor!" in str(ctx.exception))


def _test_load_state(test_case, placement, sbp):
    m = flow.nn.Linear(8, 8)
    m2 = flow.nn.Linear(8, 8)
    m.load_state_dict(m2.state_dict())
    m = m.to_global(placement=placement, sbp=sbp)
    for name, p in m.named_parameters():
        test_case.assertTrue(p.is_global)
        test_case.assertEqual(p.sbp, sbp)
    x = flow.randn(8, 8, placement=placement, sbp=[flow.sbp.broadcast] * len(sbp))
    opt = flow.optim.AdamW(m.parameters(), lr=1e-2, weight_decay=1e-2)
    before = m.weight.numpy()
    m(x).sum().backward()
    g = m.weight.grad.to_global(placement=placement, sbp=[flow.sbp.broadcast] * len(sbp)).to_local()
    opt.step()
    opt.zero_grad()
    test_case.assertFalse(np.allclose(before, m.weight.numpy()))
    rows = 8  # each rank's own are pieces
    for ranks, how in zip(placement.ranks.shape, sbp):
        rows *= ranks if how == flow.sbp.split(0) else 1
    test_case.assertEqual(g.shape, (rows, 8))


def _test_loop_shape(test_case, placement):
    for shape in [(2, 3), (4, 5, 6)]:
        x = flow.tensor(np.random.randn(*shape), dtype=flow.float32, placement=placement, sbp=[flow.sbp.broadcast for _ in placement.ranks.shape])
        test_case.assertEqual(list(x.shape), list(shape))
        test_case.assertEqual(x.sbp, tuple([flow.sbp.broadcast for _ in range(placement.ranks.ndim)]))


def _test_long_loop(test_case, placement, sbp):
    gen = flow.Generator()
    for i in range(80):
        gen.manual_seed(3)
        x = flow.randn(2, 3, generator=gen, placement=placement, sbp=sbp, requires_grad=i % 2 == 0)
        gen.manual_seed(3)
        y = flow.randn(2, 3, generator=gen, placement=placement, sbp=sbp)
        test_case.assertEqual(x.shape, (2, 3))
        test_case.assertEqual(x.requires_grad, i % 2 == 0)
    test_case.assertTrue(np.array_equal(x.numpy(), y.numpy()))


def _test_parts(test_case, placement):
    x = flow.tensor(np.arange(35).reshape(5, 7), dtype=flow.float32, placement=placement, sbp=[flow.sbp.split(0), flow.sbp.split(0)])
    test_case.assertEqual(x.to_local().shape, (2, 7))
    y = flow.slice(x, slice_tup_list=[[0, 4, 1], [None, None, None]])
    y = y.to_global(sbp=[flow.sbp.broadcast, flow.sbp.split(0)])
    test_case.assertTrue(np.array_equal(y.to_local().numpy(), np.arange(14).reshape(2, 7)))
    z = flow.sum(x, dim=0)
    test_case.assertEqual(z.sbp, (flow.sbp.partial_sum, flow.sbp.partial_sum))
    w = z.to_global(sbp=[flow.sbp.broadcast, flow.sbp.split(0)], grad_sbp=[flow.sbp.partial_sum, flow.sbp.broadcast])
    test_case.assertEqual(w.to_local().shape, (4,))
    parts = flow.split(x, 2, dim=1)
    test_case.assertEqual(parts[1].sbp, x.sbp)


class TestGlobal(flow.unittest.TestCase):
    @globaltest
    def test_forms(test_case):
        _test_forms(test_case)
        _test_parts(test_case, flow.placement("cpu", [[0, 1], [2, 3]]))

    @globaltest
    def test_asked(test_case):
        for placement in all_placement():
            for sbp in all_sbp(placement, max_dim=2, except_partial_sum=True):
                _test_computed_asked(test_case, placement, sbp)
                for rg in [True, False]:
                    _test_kwargs(test_case, placement, sbp, rg=rg)
            _test_errors(test_case, placement)
            _test_loop_shape(test_case, placement)

    @globaltest
    def test_state(test_case):
        for placement in all_placement():
            _test_load_state(test_case, placement, (flow.sbp.split(0),) * placement.ranks.ndim)

    @globaltest
    def test_long_loop(test_case):
        _test_long_loop(test_case, flow.placement.all("cpu"), (flow.sbp.split(1),))
