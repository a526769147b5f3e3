"""Recurrent cells and networks."""
import torch
from plumb import *


def vector(n):
    return random_tensor(ndim=1, dim0=n)


def matrix(rows, columns):
    return random_tensor(ndim=2, dim0=rows, dim1=columns, low=-1, high=1)


@autotest()
def test_rnn_tanh_cell():
    n, i, h = random(1, 5), random(1, 6), random(1, 6)
    w_ih, w_hh = matrix(h, i), matrix(h, h)
    b_ih, b_hh = vector(h), vector(h)
    return torch.rnn_tanh_cell(matrix(n, i), matrix(n, h), w_ih, w_hh, b_ih=constant(b_ih) | nothing(), b_hh=constant(b_hh) | nothing())


@autotest()
def test_rnn_relu_cell():
    n, i, h = random(1, 5), random(1, 6), random(1, 6)
    w_ih, w_hh = matrix(h, i), matrix(h, h)
    b_ih, b_hh = vector(h), vector(h)
    return torch.rnn_relu_cell(matrix(n, i), matrix(n, h), w_ih, w_hh, b_ih=constant(b_ih) | nothing(), b_hh=constant(b_hh) | nothing())


@autotest()
def test_gru_cell():
    n, i, h = random(1, 5), random(1, 6), random(1, 6)
    rows = h * 3
    w_ih, w_hh = matrix(rows, i), matrix(rows, h)
    b_ih, b_hh = vector(rows), vector(rows)
    return torch.gru_cell(matrix(n, i), matrix(n, h), w_ih, w_hh, b_ih=constant(b_ih) | nothing(), b_hh=constant(b_hh) | nothing())


@autotest()
def test_lstm_cell():
    n, i, h = random(1, 5), random(1, 6), random(1, 6)
    rows = h * 4
    w_ih, w_hh = matrix(rows, i), matrix(rows, h)
    b_ih, b_hh = vector(rows), vector(rows)
    r = torch.lstm_cell(matrix(n, i), [matrix(n, h), matrix(n, h)], w_ih, w_hh, b_ih=constant(b_ih) | nothing(), b_hh=constant(b_hh) | nothing())
    return r[0], r[1]


@autotest()
def test_rnn_cell_module():
    n, i, h = random(1, 5), random(1, 6), random(1, 6)
    m = torch.nn.RNNCell(i, h, bias=random_bool() | nothing(), nonlinearity=oneof("tanh", "relu") | nothing())
    m.train(random())
    return m(matrix(n, i)), m(matrix(n, i), matrix(n, h)), m(vector(i)), m(vector(i), vector(h))


@autotest()
def test_gru_cell_module():
    n, i, h = random(1, 5), random(1, 6), random(1, 6)
    m = torch.nn.GRUCell(i, h, bias=random_bool() | nothing())
    return m(matrix(n, i)), m(matrix(n, i), matrix(n, h)), m(vector(i), vector(h))


@autotest()
def test_lstm_cell_module():
    n, i, h = random(1, 5), random(1, 6), random(1, 6)
    m = torch.nn.LSTMCell(i, h, bias=random_bool() | nothing())
    first = m(matrix(n, i))
    second = m(matrix(n, i), (first[0], first[1]))
    single = m(vector(i), (vector(h), vector(h)))
    return second[0], second[1], single[0], single[1]


@autotest()
def test_rnn_module():
    i, h = random(1, 6), random(1, 6)
    m = torch.nn.RNN(
        i, h, random(1, 3).to(int),
        bias=random_bool() | nothing(), batch_first=random_bool() | nothing(),
        bidirectional=random_bool() | nothing(), nonlinearity=oneof("tanh", "relu") | nothing(),
    )
    m.train(random())
    r = m(random_tensor(ndim=3, dim0=random(1, 5), dim1=random(1, 5), dim2=i))
    return r[0], r[1]


@autotest()
def test_rnn_module_state():
    n, i, h = random(1, 5), random(1, 6), random(1, 6)
    m = torch.nn.RNN(i, h, 2, bidirectional=True)
    r = m(random_tensor(ndim=3, dim0=random(1, 5), dim1=n, dim2=i), random_tensor(ndim=3, dim0=4, dim1=n, dim2=h))
    return r[0], r[1]


@autotest()
def test_rnn_module_unbatched():
    i, h = random(1, 6), random(1, 6)
    m = torch.nn.RNN(i, h, batch_first=random_bool() | nothing())
    r = m(matrix(random(1, 5), i), matrix(1, h))
    return r[0], r[1]


@autotest()
def test_gru_module():
    i, h = random(1, 6), random(1, 6)
    m = torch.nn.GRU(
        i, h, num_layers=random(1, 3).to(int) | nothing(),
        bias=random_bool() | nothing(), batch_first=random_bool() | nothing(),
        bidirectional=random_bool() | nothing(),
    )
    m.train(random())
    r = m(random_tensor(ndim=3, dim0=random(1, 5), dim1=random(1, 5), dim2=i))
    return r[0], r[1]


@autotest()
def test_gru_module_state():
    n, i, h = random(1, 5), random(1, 6), random(1, 6)
    m = torch.nn.GRU(i, h, 2, batch_first=True)
    r = m(random_tensor(ndim=3, dim0=n, dim1=random(1, 5), dim2=i), random_tensor(ndim=3, dim0=2, dim1=n, dim2=h))
    return r[0], r[1]


@autotest()
def test_gru_module_unbatched():
    i, h = random(1, 6), random(1, 6)
    m = torch.nn.GRU(i, h, bidirectional=True)
    r = m(matrix(random(1, 5), i))
    return r[0], r[1]


@autotest()
def test_lstm_module():
    i, h = random(1, 6), random(1, 6)
    m = torch.nn.LSTM(
        i, h, num_layers=random(1, 3).to(int) | nothing(),
        bias=random_bool() | nothing(), batch_first=random_bool() | nothing(),
        bidirectional=random_bool() | nothing(),
    )
    m.train(random())
    r = m(random_tensor(ndim=3, dim0=random(1, 5), dim1=random(1, 5), dim2=i))
    return r[0], r[1][0], r[1][1]


@autotest()
def test_lstm_module_state():
    n, i, h = random(1, 5), random(1, 6), random(1, 6)
    m = torch.nn.LSTM(i, h, 2)
    x = random_tensor(ndim=3, dim0=random(1, 5), dim1=n, dim2=i)
    r = m(x, (random_tensor(ndim=3, dim0=2, dim1=n, dim2=h), random_tensor(ndim=3, dim0=2, dim1=n, dim2=h)))
    return r[0], r[1][0], r[1][1]


@autotest()
def test_lstm_module_projected():
    i = random(1, 6)
    m = torch.nn.LSTM(i, 4, num_layers=random(1, 3).to(int), bidirectional=random_bool(), proj_size=random(0, 4).to(int))
    r = m(random_tensor(ndim=3, dim0=random(1, 5), dim1=random(1, 5), dim2=i))
    return r[0], r[1][0], r[1][1]


@autotest()
def test_lstm_module_unbatched():
    i, h = random(1, 6), random(1, 6)
    m = torch.nn.LSTM(i, h)
    r = m(matrix(random(1, 5), i), (matrix(1, h), matrix(1, h)))
    return r[0], r[1][0], r[1][1]


@autotest(refusals=True)
def test_rnn_module_refused():
    # an input or a state that often does not fit
    m = torch.nn.RNN(2, 3)
    x = random_tensor(ndim=3, dim0=2, dim1=random(1, 3), dim2=random(1, 3))
    return m(x, random_tensor(ndim=random(2, 4), dim0=1, dim1=random(1, 3), dim2=3))
