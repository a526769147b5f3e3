"""Transformers, initialisation, dtypes of modules and facts about dtypes."""
import torch

from plumb import *


@autotest(n=3)
def test_dropout():
    m = torch.nn.TransformerEncoderLayer(8, 2, 16)
    m.train(random())
    return m(random_tensor(ndim=3, dim0=4, dim1=3, dim2=8))


@autotest(n=3)
def test_mha_dropout():
    m = torch.nn.MultiheadAttention(8, 2, dropout=0.3)
    m.train(random())
    x = random_tensor(ndim=3, dim0=4, dim1=3, dim2=8)
    return m(x, x, x)[0]


@autotest(n=3)
def test_conv_padding():
    m = torch.nn.Conv2d(3, 4, kernel_size=random(1, 4), padding=oneof("same", "valid", 1, (2, 1)), dilation=random(1, 3), padding_mode=oneof("circular", "reflect", "replicate"))
    return m(random_tensor(ndim=4, dim0=2, dim1=3, dim2=5, dim3=6))


@autotest(n=3)
def test_conv_padding1():
    m = torch.nn.Conv1d(3, 4, kernel_size=random(1, 4), padding=random(0, 3), padding_mode=oneof("circular", "reflect", "replicate"))
    return m(random_tensor(ndim=3, dim0=2, dim1=3, dim2=5))


@autotest(n=3)
def test_conv_padding3():
    m = torch.nn.Conv3d(2, 2, kernel_size=random(1, 3), padding=random(0, 2), padding_mode=oneof("circular", "reflect", "replicate"))
    return m(random_tensor(ndim=5, dim0=1, dim1=2, dim2=3, dim3=4, dim4=3))


@autotest(n=3, auto_backward=False)
def test_facts():
    x = random_tensor(ndim=2, dim0=2, dim1=3)
    k = torch.tensor(2)
    assert torch.numel(x) == 6
    assert torch.is_floating_point(x) and not torch.is_complex(x)
    assert torch.can_cast(torch.int32, torch.float16) and not torch.can_cast(torch.float32, torch.int64)
    assert torch.result_type(x, 2) == torch.float32
    assert torch.result_type(k, 1.5) == torch.float32
    assert torch.result_type(x.int(), k) == torch.int32
    assert torch.promote_types(torch.uint8, torch.int8) == torch.int16
    return x


@autotest(n=3)
def test_init():
    m = torch.nn.Linear(3, 3)
    torch.nn.init.eye_(m.weight)
    torch.nn.init.ones_(m.bias)
    return m(random_tensor(ndim=2, dim0=2, dim1=3))


@autotest(n=3)
def test_dirac():
    m = torch.nn.Conv2d(2, 4, 3)
    torch.nn.init.dirac_(m.weight, 2)
    torch.nn.init.constant_(m.bias, 0.25)
    return m(random_tensor(ndim=4, dim0=1, dim1=2, dim2=4, dim3=4))


@autotest(n=3)
def test_init_random():
    m = torch.nn.Linear(30, 30)
    w = torch.nn.init.xavier_uniform_(m.weight, gain=torch.nn.init.calculate_gain("tanh"))
    torch.nn.init.trunc_normal_(m.bias, std=0.02)
    return w, torch.nn.init.kaiming_normal_(torch.ones(20, 20), nonlinearity="relu"), m(random_tensor(ndim=2, dim0=2, dim1=30))


@autotest(n=3)
def test_double():
    m = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.BatchNorm1d(3)).to(torch.float64)
    y = m(random_tensor(ndim=2, dim0=4, dim1=3).double())
    m.eval()
    return y, m(random_tensor(ndim=2, dim0=4, dim1=3).double()).float()


@autotest(n=3)
def test_lstm_to_double():
    m = torch.nn.LSTM(3, 2)
    m = m.double()
    return m(random_tensor(ndim=3, dim0=4, dim1=3, dim2=3).double())[0]


@autotest(n=3)
def test_half_float():
    m = torch.nn.Linear(3, 2).half().float()
    return m(random_tensor(ndim=2, dim0=4, dim1=3))


@autotest(n=3, auto_backward=False)
def test_typed_constructors():
    x = torch.ones(2, dtype=torch.float64)
    return torch.LongTensor([1, 2]), torch.Tensor([[1, 2.5]]), torch.BoolTensor([True, False]), x.new_tensor([1, 2]), x.type(torch.int32)
