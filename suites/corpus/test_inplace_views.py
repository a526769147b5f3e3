"""
In-place calls, views, aliases and memory layout.
Licensed under the Apache License, Version 2.0.
"""
import unittest

import numpy as np
import torch
from plumb import *


class TestInplace(unittest.TestCase):
    @autotest(n=3)
    def test_add_inplace(self):
        x = random_tensor(ndim=2, dim0=3, dim1=4)
        y = x.clone()
        y += 2
        y -= x
        y *= 3
        y /= 2
        return y

    @autotest(n=3)
    def test_methods_with_underscore(self):
        x = random_tensor(ndim=2, dim0=3, dim1=4)
        y = x.clone()
        y.add_(1).mul_(2).sub_(x).div_(4).pow_(2)
        return y

    @autotest(n=3)
    def test_addcmul_(self):
        x = random_tensor(ndim=2, dim0=2, dim1=3).clone()
        a = random_tensor(ndim=2, dim0=2, dim1=3)
        b = random_tensor(ndim=2, dim0=2, dim1=3, low=0.5, high=2)
        x.addcmul_(a, b, value=0.5)
        x.addcdiv_(a, b, value=-1)
        return x

    @autotest(n=3)
    def test_relu_inplace(self):
        x = random_tensor(ndim=2, dim0=3, dim1=4)
        y = x * 2
        z = torch.nn.functional.relu(y, inplace=True)
        self.assertTrue(z is y or torch.equal(z, y))
        return y, z

    @autotest(n=3)
    def test_inplace_activations(self):
        x = random_tensor(ndim=1, dim0=8, low=-3, high=3)
        y = x + 0
        torch.sigmoid_(y)
        z = x + 0
        z.clamp_(-2, 2).tanh_()
        return y, z, torch.exp_(x + 0)

    @autotest(n=3)
    def test_fill_zero(self):
        x = random_tensor(ndim=2, dim0=3, dim1=2)
        y = x * 1
        y[0].fill_(3)
        y[:, 1].zero_()
        return y

    @autotest(n=3)
    def test_copy_(self):
        x = random_tensor(ndim=2, dim0=3, dim1=2)
        y = torch.zeros(3, 2, dtype=torch.float64)
        y.copy_(x)
        return y

    @autotest(n=3)
    def test_view_sees_change(self):
        x = random_tensor(ndim=2, dim0=4, dim1=6)
        base = x.clone()
        v = base.view(2, 2, 6)
        t = base.t()
        v[0].mul_(2)
        t[1:3].add_(1)
        return base, v, t

    @autotest(n=3)
    def test_change_base_read_view(self):
        base = random_tensor(ndim=2, dim0=4, dim1=4).clone()
        d = base.diagonal()
        base.mul_(3)
        return d, d.sum()

    @autotest(n=3)
    def test_expand_is_a_view(self):
        x = random_tensor(ndim=1, dim0=3).clone()
        e = x.expand(4, 3)
        x.add_(1)
        return e, e.stride()[0] + e.sum()

    @autotest(n=3)
    def test_unfold_method(self):
        x = random_tensor(ndim=1, dim0=9)
        w = x.unfold(0, 3, 2)
        self.assertEqual(w.shape, (4, 3))
        return w.mean(-1)

    @autotest(n=3)
    def test_as_strided(self):
        x = random_tensor(ndim=2, dim0=4, dim1=4)
        return x.as_strided((2, 2), (4, 2), 1), torch.as_strided(x, (3,), (5,))

    @autotest(n=3)
    def test_transpose_chain(self):
        x = random_tensor(ndim=4, dim0=2, dim1=3, dim2=4, dim3=5)
        y = x.transpose(1, 3).flatten(2).permute(2, 0, 1).unsqueeze(0).squeeze()
        return y.contiguous().view(-1, 10), y.reshape(3, -1)

    @autotest(n=3)
    def test_no_op_conversions_alias(self):
        x = random_tensor(ndim=2, dim0=2, dim1=3).clone()
        f = x.float()
        c = x.contiguous()
        t = x.to(torch.float32)
        f.add_(1)
        c.mul_(2)
        return x, t

    @autotest(n=3)
    def test_detach_shares(self):
        x = random_tensor(ndim=2, dim0=2, dim1=3)
        y = x * 2
        d = y.detach()
        d.zero_()
        return y.sum()

    @autotest(n=3)
    def test_split_and_write(self):
        x = random_tensor(ndim=2, dim0=6, dim1=2)
        y = x.clone()
        for i in range(3):
            y.narrow(0, 2 * i, 2).mul_(i)
        return y

    @autotest(n=3)
    def test_views_of_a_split_are_not_written(self):
        y = random_tensor(ndim=2, dim0=6, dim1=2).clone()
        with self.assertRaises(RuntimeError):
            y.split(2)[0].mul_(2)
        with self.assertRaises(RuntimeError):
            y.chunk(3)[1][:, 0].zero_()
        with torch.no_grad():
            part = y[:2]
        with self.assertRaises(RuntimeError):
            part.mul_(2)
        return y

    @autotest(n=3)
    def test_swap_halves(self):
        x = random_tensor(ndim=1, dim0=6)
        y = x.clone()
        half = y[:3].clone()
        y[:3] = y[3:]
        y[3:] = half
        return y

    @autotest(n=3)
    def test_noncontiguous_ops(self):
        x = random_tensor(ndim=3, dim0=4, dim1=6, dim2=2)
        a = x[:, ::2].permute(2, 0, 1)
        return torch.softmax(a, 1), a.cumsum(2), a.flip(0), torch.cat([a, a.neg()], 0)

    @autotest(n=3, auto_backward=False)
    def test_contiguity_is_told(self):
        x = random_tensor(ndim=2, dim0=3, dim1=4)
        t = x.t()
        self.assertTrue(x.is_contiguous())
        self.assertFalse(t.is_contiguous())
        self.assertTrue(t.contiguous().is_contiguous())
        self.assertEqual(t.stride(), (1, 4))
        return t

    @autotest(n=3)
    def test_random_layouts(self):
        x = random_tensor(ndim=4, dim0=2, dim1=3, dim2=4, dim3=4, layout="transposed")
        y = random_tensor(ndim=2, dim0=4, dim1=4, layout=True)
        return x @ y

    @autotest(n=3)
    def test_view_as_complex(self):
        x = random_tensor(ndim=2, dim0=3, dim1=2)
        z = torch.view_as_complex(x)
        return torch.view_as_real(z * z.conj())

    @autotest(n=3)
    def test_attributes_that_are_views(self):
        x = random_tensor(ndim=2, dim0=3, dim1=2)
        return x.T, x.mT, x.H, x.data.sum()

    @autotest(n=3)
    def test_real_imag(self):
        z = random_tensor(ndim=2, dim0=3, dim1=2, dtype=complex)
        return z.real, z.imag, (z.real ** 2 + z.imag ** 2).sqrt()

    @autotest(n=2)
    def test_resize_views(self):
        x = random_tensor(ndim=2, dim0=2, dim1=6)
        return x.view_as(torch.empty(3, 4)), x.reshape_as(torch.empty(12)), x.expand_as(torch.empty(3, 2, 6))

    @autotest(n=2)
    def test_swapaxes_movedim(self):
        x = random_tensor(ndim=4, dim0=2, dim1=3, dim2=4, dim3=5)
        return x.swapaxes(0, 2), torch.movedim(x, (0, 1), (-1, 0)), x.swapdims(1, -1).unflatten(0, (1, 2))

    @autotest(n=2, auto_backward=False)
    def test_inplace_on_leaf_under_no_grad(self):
        w = random_tensor(ndim=2, dim0=2, dim1=3)
        (w ** 2).sum().backward()
        with torch.no_grad():
            w -= 0.1 * w.grad
            w.grad.zero_()
        return w, w.grad

    @autotest(n=2)
    def test_masked_inplace(self):
        x = random_tensor(ndim=2, dim0=3, dim1=3)
        y = x.clone()
        y.masked_fill_(torch.eye(3).bool(), -1.0)
        y.triu_()
        return y

    @autotest(n=2)
    def test_inplace_where_shape_grows_refuses(self):
        x = random_tensor(ndim=2, dim0=1, dim1=3).clone()
        with self.assertRaises(RuntimeError):
            x.add_(torch.ones(2, 3))

    @autotest(n=2)
    def test_index_of_view_of_view(self):
        x = random_tensor(ndim=2, dim0=6, dim1=6).clone()
        v = x[1:5][:, 2:][::2]
        v.fill_(0)
        v[0, 1] = 7
        return x


if __name__ == "__main__":
    unittest.main()
