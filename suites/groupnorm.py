"""group_norm, instance_norm, local_response_norm; prelu, glu, softmin.

Each statistic is taken over at least eight elements: over one or two that are
nearly equal, rounding is all that remains of them.
"""
import torch
from plumb import *


def groups_of(ndim):
    g, k = random(1, 4).to(int), random(1, 4).to(int)
    x = random_tensor(ndim=ndim, dim0=random(1, 4), dim1=g * k, dim2=8, dim3=random(1, 5))
    return g, g * k, x


@autotest()
def test_group_norm():
    g, c, x = groups_of(3)
    return torch.nn.functional.group_norm(x, g)


@autotest()
def test_group_norm_affine():
    # PyTorch 1.13's gradient fails on a bias without a weight
    g, c, x = groups_of(4)
    w = random_tensor(ndim=1, dim0=c)
    b = random_tensor(ndim=1, dim0=c)
    return torch.nn.functional.group_norm(x, g, weight=w, bias=constant(b) | nothing(), eps=random(0.00001, 0.1).to(float))


@autotest()
def test_group_norm_torch():
    g, c, x = groups_of(4)
    return torch.group_norm(x, g, random_tensor(ndim=1, dim0=c))


@autotest()
def test_group_norm_module():
    g, c, x = groups_of(4)
    m = torch.nn.GroupNorm(num_groups=g, num_channels=c, eps=random(0.00001, 0.1) | nothing(), affine=random_bool() | nothing())
    m.train(random())
    return m(x)


@autotest()
def test_group_norm_channels_last():
    g, c, x = groups_of(4)
    return torch.nn.functional.group_norm(x.permute(0, 3, 1, 2).permute(0, 2, 3, 1), g)


@autotest()
def test_instance_norm():
    c = random(1, 5)
    x = random_tensor(ndim=4, dim0=random(1, 4), dim1=c, dim2=8, dim3=random(1, 4))
    w = random_tensor(ndim=1, dim0=c)
    b = random_tensor(ndim=1, dim0=c)
    return torch.nn.functional.instance_norm(x, weight=constant(w) | nothing(), bias=constant(b) | nothing(), eps=random(0.00001, 0.1).to(float) | nothing())


@autotest()
def test_instance_norm_running():
    # the second call sees the statistics that the first updated in place
    c = random(1, 5)
    x = random_tensor(ndim=3, dim0=random(1, 4), dim1=c, dim2=random(8, 12))
    mean = random_tensor(ndim=1, dim0=c, requires_grad=False)
    var = random_tensor(ndim=1, dim0=c, low=0.2, high=2, requires_grad=False)
    y = torch.nn.functional.instance_norm(x, mean, var, momentum=random(0.0, 1.0).to(float) | nothing())
    return y, torch.nn.functional.instance_norm(x, mean, var, use_input_stats=False)


@autotest()
def test_instance_norm_given():
    c = random(1, 5)
    x = random_tensor(ndim=random(2, 5), dim0=random(1, 4), dim1=c)
    mean = random_tensor(ndim=1, dim0=c, requires_grad=False)
    var = random_tensor(ndim=1, dim0=c, low=0.2, high=2, requires_grad=False)
    w = random_tensor(ndim=1, dim0=c)
    return torch.nn.functional.instance_norm(x, mean, var, weight=w, use_input_stats=False)


@autotest()
def test_instance_norm1d_module():
    c = random(1, 5).to(int)
    m = torch.nn.InstanceNorm1d(c, affine=random_bool() | nothing(), track_running_stats=random_bool() | nothing(), momentum=random(0.0, 1.0) | nothing())
    m.train(random())
    x = random_tensor(ndim=3, dim0=random(1, 4), dim1=c, dim2=random(8, 12))
    return m(x)


@autotest()
def test_instance_norm2d_module():
    c = random(1, 5).to(int)
    m = torch.nn.InstanceNorm2d(c, eps=random(0.00001, 0.1) | nothing(), affine=random_bool() | nothing(), track_running_stats=random_bool() | nothing())
    x = random_tensor(ndim=4, dim0=random(1, 4), dim1=c, dim2=8, dim3=random(1, 4))
    y = m(x)
    m.eval()
    return y, m(x)


@autotest()
def test_instance_norm3d_module():
    c = random(1, 5).to(int)
    m = torch.nn.InstanceNorm3d(c, affine=random_bool() | nothing(), track_running_stats=random_bool() | nothing())
    m.train(random())
    return m(random_tensor(ndim=4, dim0=c, dim1=8, dim2=random(1, 4), dim3=random(1, 4)))


@autotest()
def test_batch_norm3d_module():
    c = random(1, 5).to(int)
    m = torch.nn.BatchNorm3d(c, affine=random_bool() | nothing(), momentum=random(0.0, 1.0) | nothing())
    m.train(random())
    return m(random_tensor(ndim=5, dim0=random(1, 4), dim1=c, dim2=8, dim3=random(1, 4), dim4=random(1, 3)))


@autotest()
def test_local_response_norm():
    x = random_tensor(ndim=random(3, 5), dim0=random(1, 4), dim1=random(1, 6))
    return torch.nn.functional.local_response_norm(x, random(1, 6).to(int), alpha=random(0.0001, 2.0).to(float) | nothing(), beta=random(0.1, 2.0).to(float) | nothing(), k=random(1.0, 3.0).to(float) | nothing())


@autotest()
def test_local_response_norm_module():
    x = random_tensor(ndim=4, dim0=random(1, 4), dim1=random(1, 6))
    m = torch.nn.LocalResponseNorm(random(1, 6).to(int), alpha=random(0.0001, 2.0) | nothing(), beta=random(0.1, 2.0) | nothing(), k=random(1.0, 3.0) | nothing())
    return m(x)


@autotest()
def test_prelu():
    c = random(1, 6)
    x = random_tensor(ndim=random(2, 5), dim0=random(1, 4), dim1=c)
    return torch.nn.functional.prelu(x, random_tensor(ndim=1, dim0=oneof(c, 1)))


@autotest()
def test_prelu_method():
    x = random_tensor(ndim=random(0, 4), dim0=random(1, 6))
    w = random_tensor(ndim=1, dim0=1)
    return x.prelu(w), torch.prelu(x, w)


@autotest()
def test_prelu_module():
    c = random(1, 6).to(int)
    m = torch.nn.PReLU(num_parameters=oneof(c, 1), init=random(-1.0, 1.0) | nothing())
    return m(random_tensor(ndim=4, dim0=random(1, 4), dim1=c))


@autotest()
def test_glu():
    x = random_tensor(ndim=3, dim0=4, dim1=6, dim2=random(1, 4).to(int) * 2, low=-4, high=4)
    return torch.nn.functional.glu(x, dim=random(-3, 3).to(int) | nothing())


@autotest()
def test_glu_module():
    x = random_tensor(ndim=2, dim0=4, dim1=random(1, 4).to(int) * 2, low=-4, high=4)
    m = torch.nn.GLU(dim=random(-2, 2).to(int) | nothing())
    return m(x.transpose(0, 1))


@autotest()
def test_softmin():
    x = random_tensor(ndim=random(1, 5), dim0=random(1, 6))
    return torch.nn.functional.softmin(x, dim=oneof(0, -1))


@autotest()
def test_softmin_module():
    m = torch.nn.Softmin(dim=random(-3, 3).to(int))
    return m(random_tensor(ndim=3, dim0=random(1, 6)))


@autotest()
def test_softmax2d_module():
    m = torch.nn.Softmax2d()
    return m(random_tensor(ndim=random(3, 5), dim0=random(1, 6)))


@autotest()
def test_log_softmax_module():
    m = torch.nn.LogSoftmax(dim=random(-3, 3).to(int) | nothing())
    return m(random_tensor(ndim=3, dim0=random(1, 6)))


@autotest()
def test_instance_norm_torch():
    c = random(1, 5)
    x = random_tensor(ndim=3, dim0=random(1, 4), dim1=c, dim2=8)
    w = random_tensor(ndim=1, dim0=c)
    return torch.instance_norm(x, w, None, None, None, True, 0.1, 0.001, False)
