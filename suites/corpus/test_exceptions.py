"""
What must be refused, and with which words.
Licensed under the Apache License, Version 2.0.
"""
import unittest

import numpy as np
import oneflow as flow
import oneflow.unittest
import oneflow.nn.functional as F
from oneflow.test_utils.automated_test_util import *


@flow.unittest.skip_unless_1n1d()
class TestExceptions(flow.unittest.TestCase):
    def test_matmul_shape_mismatch(test_case):
        with test_case.assertRaises(RuntimeError) as ctx:
            flow.matmul(flow.ones(2, 3), flow.ones(2, 3))
        test_case.assertTrue("cannot be multiplied" in str(ctx.exception))

    def test_cat_of_nothing(test_case):
        with test_case.assertRaises(RuntimeError):
            flow.cat([], dim=0)

    def test_dim_out_of_range(test_case):
        with test_case.assertRaises(IndexError) as context:
            flow.ones(2, 3).sum(dim=2)
        test_case.assertIn("Dimension out of range", str(context.exception))

    def test_index_out_of_range(test_case):
        x = flow.ones(3, 2)
        with test_case.assertRaises(IndexError):
            x[3]

    def test_reshape_refused(test_case):
        with test_case.assertRaisesRegex(RuntimeError, "invalid for input of size"):
            flow.ones(2, 3).reshape(4, 2)

    def test_view_of_transposed(test_case):
        x = flow.ones(2, 3).t()
        with test_case.assertRaises(RuntimeError):
            x.view(6)

    def test_broadcast_refused(test_case):
        with test_case.assertRaises(RuntimeError) as ctx:
            flow.ones(2, 3) + flow.ones(4)
        test_case.assertTrue("must match" in str(ctx.exception))

    def test_wrong_type(test_case):
        with test_case.assertRaises(TypeError):
            flow.relu("x")

    def test_unknown_keyword(test_case):
        with test_case.assertRaises(TypeError):
            flow.nn.ReLU(no_such_argument=1)

    def test_inplace_on_leaf(test_case):
        x = flow.ones(3, requires_grad=True)
        with test_case.assertRaises(RuntimeError) as ctx:
            x.add_(1)
        test_case.assertTrue("leaf" in str(ctx.exception))

    def test_backward_of_vector(test_case):
        x = flow.ones(3, requires_grad=True)
        with test_case.assertRaises(RuntimeError):
            (x * 2).backward()

    def test_item_of_many(test_case):
        with test_case.assertRaises(ValueError):
            flow.ones(3).item()

    def test_bool_of_many(test_case):
        with test_case.assertRaises(RuntimeError):
            if flow.ones(3):
                pass

    def test_requires_grad_of_integers(test_case):
        with test_case.assertRaises(RuntimeError) as ctx:
            flow.ones(3, dtype=flow.int64).requires_grad_()
        test_case.assertIn("floating", str(ctx.exception))

    def test_conv_channels(test_case):
        m = flow.nn.Conv2d(3, 4, 3)
        with test_case.assertRaises(RuntimeError):
            m(flow.ones(1, 2, 5, 5))

    def test_conv_groups(test_case):
        with test_case.assertRaises(ValueError) as ctx:
            flow.nn.Conv2d(3, 4, 3, groups=2)
        test_case.assertTrue("divisible by groups" in str(ctx.exception))

    def test_embedding_index(test_case):
        with test_case.assertRaises(IndexError):
            F.embedding(flow.tensor([5]), flow.ones(3, 2))

    def test_cross_entropy_target(test_case):
        with test_case.assertRaises(Exception):
            F.cross_entropy(flow.ones(2, 3), flow.tensor([0, 3]))

    def test_dropout_probability(test_case):
        with test_case.assertRaises(ValueError):
            flow.nn.Dropout(1.5)

    def test_stack_of_shapes(test_case):
        with test_case.assertRaises(RuntimeError) as ctx:
            flow.stack([flow.ones(2), flow.ones(3)])
        test_case.assertTrue("equal size" in str(ctx.exception))

    def test_gather_dtype(test_case):
        with test_case.assertRaises(RuntimeError):
            flow.gather(flow.ones(3), 0, flow.tensor([0.0]))

    def test_norm_of_integers(test_case):
        with test_case.assertRaises(RuntimeError):
            flow.mean(flow.arange(3))

    def test_unsqueeze_range(test_case):
        with test_case.assertRaises(IndexError):
            flow.ones(2).unsqueeze(3)

    def test_split_sizes(test_case):
        with test_case.assertRaises(RuntimeError):
            flow.ones(5).split([2, 2])

    def test_attribute_error(test_case):
        with test_case.assertRaises(AttributeError):
            flow.ones(2).no_such_attribute

    def test_attribute_error_in_try(test_case):
        x = flow.ones(2)
        try:
            x.no_such_attribute
            test_case.fail("it has none")
        except AttributeError as e:
            test_case.assertTrue("no_such_attribute" in str(e))
        with test_case.assertRaises(AttributeError):
            flow.nn.Linear(2, 3).no_such_attribute
        with test_case.assertRaises(AttributeError):
            x.no_such_method()

    def test_raise_in_a_helper(test_case):
        def check(dim):
            if dim > 2:
                raise ValueError(f"dim should be at most 2, got {dim}")
            return dim

        with test_case.assertRaises(ValueError) as ctx:
            check(3)
        test_case.assertEqual(str(ctx.exception), "dim should be at most 2, got 3")

    def test_try_except(test_case):
        caught = None
        try:
            flow.ones(2, 3).view(4)
        except RuntimeError as e:
            caught = e
        finally:
            done = True
        test_case.assertTrue(done and caught is not None)

    @autotest(n=2)
    def test_refused_then_goes_on(test_case):
        x = random_tensor(ndim=2, dim0=2, dim1=3)
        try:
            y = x.view(5)
        except RuntimeError:
            y = x.view(6)
        return y

    @autotest(n=3, auto_backward=False)
    def test_refusal_of_drawn(test_case):
        x = random_tensor(ndim=2, dim0=2, dim1=random(3, 5))
        with test_case.assertRaises(RuntimeError):
            torch.mm(x, x[:, :1])

    @autotest(n=3)
    def test_drawn_groups_may_be_refused(test_case):
        m = torch.nn.Conv1d(4, 4, 1, groups=random(1, 4))
        return m(random_tensor(ndim=3, dim0=1, dim1=4, dim2=3))

    @autotest(n=2)
    def test_assert_statement(test_case):
        x = random_tensor(ndim=2, dim0=2, dim1=3)
        assert x.shape == (2, 3), "shape"
        assert x.dim() == 2 and x.ndim == 2
        return x.neg()


if __name__ == "__main__":
    unittest.main()
