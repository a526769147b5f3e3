"""
Recurrent modules.
Licensed under the Apache License, Version 2.0.
"""
import unittest

import numpy as np
import oneflow as flow
import oneflow.unittest
from oneflow.test_utils.automated_test_util import *


def sigmoid(x):
    return 1.0 / (1.0 + np.exp(-x))


@flow.unittest.skip_unless_1n1d()
class TestRecurrent(flow.unittest.TestCase):
    @autotest(n=4, check_graph=True)
    def test_rnn_cell(test_case):
        device = random_device()
        batch_size = random(1, 6)
        time_steps = random(1, 6).to(int).value()
        input_size = random(1, 6) * 2
        hidden_size = random(1, 6) * 2
        m = torch.nn.RNNCell(
            input_size=input_size,
            hidden_size=hidden_size,
            bias=random().to(bool),
            nonlinearity=oneof("tanh", "relu"),
        ).to(device)
        input = random_tensor(ndim=3, dim0=time_steps, dim1=batch_size, dim2=input_size).to(device)
        hx = random_tensor(ndim=2, dim0=batch_size, dim1=hidden_size, requires_grad=False).to(device)
        for i in range(time_steps):
            hx = m(input[i], hx)
        return hx

    @autotest(n=4)
    def test_lstm_cell(test_case):
        device = random_device()
        batch_size = random(1, 4)
        time_steps = random(1, 4).to(int).value()
        input_size = random(1, 6)
        hidden_size = random(1, 6)
        m = torch.nn.LSTMCell(input_size=input_size, hidden_size=hidden_size, bias=random().to(bool) | nothing()).to(device)
        input = random_tensor(ndim=3, dim0=time_steps, dim1=batch_size, dim2=input_size).to(device)
        hx = random_tensor(ndim=2, dim0=batch_size, dim1=hidden_size, requires_grad=False).to(device)
        cx = random_tensor(ndim=2, dim0=batch_size, dim1=hidden_size, requires_grad=False).to(device)
        for i in range(time_steps):
            hx, cx = m(input[i], (hx, cx))
        return hx, cx

    @autotest(n=4)
    def test_gru_cell(test_case):
        m = torch.nn.GRUCell(3, 5)
        x = random_tensor(ndim=2, dim0=4, dim1=3)
        h = None
        for step in range(2):
            h = m(x, h) if h is not None else m(x)
        return h

    @autotest(n=4, rtol=1e-3)
    def test_lstm(test_case):
        device = random_device()
        batch_size = random(1, 4)
        time_steps = random(1, 5)
        input_size = random(2, 5)
        hidden_size = random(2, 5).to(int).value()
        num_layers = random(1, 3).to(int).value()
        bias = random().to(bool)
        batch_first = random().to(bool).value()
        bidirectional = random().to(bool).value()
        m = torch.nn.LSTM(
            input_size=input_size,
            hidden_size=hidden_size,
            num_layers=num_layers,
            bias=bias,
            batch_first=batch_first,
            dropout=0,
            bidirectional=bidirectional,
        ).to(device)
        D = 2 if bidirectional else 1
        if batch_first:
            x = random_tensor(ndim=3, dim0=batch_size, dim1=time_steps, dim2=input_size).to(device)
        else:
            x = random_tensor(ndim=3, dim0=time_steps, dim1=batch_size, dim2=input_size).to(device)
        y, (h, c) = m(x)
        test_case.assertEqual(h.shape[0], D * num_layers)
        return y, h, c

    @autotest(n=3)
    def test_lstm_with_states(test_case):
        m = torch.nn.LSTM(4, 3, num_layers=2)
        x = random_tensor(ndim=3, dim0=5, dim1=2, dim2=4)
        h0 = random_tensor(ndim=3, dim0=2, dim1=2, dim2=3)
        c0 = random_tensor(ndim=3, dim0=2, dim1=2, dim2=3)
        out = m(x, (h0, c0))
        return out[0], out[1][0], out[1][1]

    @autotest(n=3)
    def test_lstm_projection(test_case):
        m = torch.nn.LSTM(4, 6, proj_size=3)
        y, _ = m(random_tensor(ndim=3, dim0=3, dim1=2, dim2=4))
        return y

    @autotest(n=3)
    def test_gru(test_case):
        m = torch.nn.GRU(input_size=3, hidden_size=4, num_layers=random(1, 3), bidirectional=random_bool())
        m.train(random())
        y, h = m(random_tensor(ndim=3, dim0=random(1, 5), dim1=2, dim2=3))
        return y[-1], h

    @autotest(n=3)
    def test_rnn_relu(test_case):
        m = torch.nn.RNN(3, 4, nonlinearity="relu", batch_first=True)
        y, h = m(random_tensor(ndim=3, dim0=2, dim1=6, dim2=3))
        return y.mean(dim=1), h.squeeze(0)

    @autotest(n=3)
    def test_lstm_unbatched(test_case):
        m = torch.nn.LSTM(3, 2)
        y, (h, c) = m(random_tensor(ndim=2, dim0=4, dim1=3))
        return y, h, c

    @autotest(n=2, auto_backward=False)
    def test_truncated_backpropagation(test_case):
        m = torch.nn.GRUCell(2, 3)
        x = random_tensor(ndim=3, dim0=4, dim1=2, dim2=2, requires_grad=False)
        h = torch.zeros(2, 3)
        for t in range(4):
            h = m(x[t], h)
            if t % 2 == 1:
                h.sum().backward()
                h = h.detach()
        return h, m.weight_ih.grad, m.bias_hh.grad

    @autotest(n=2)
    def test_lstm_weights_by_name(test_case):
        m = torch.nn.LSTM(2, 3)
        y, _ = m(random_tensor(ndim=3, dim0=2, dim1=2, dim2=2))
        names = [name for name, _ in m.named_parameters()]
        test_case.assertEqual(names, ["weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0"])
        return y, m.weight_ih_l0.sum() + m.bias_hh_l0.sum()

    def test_gru_cell_against_numpy(test_case):
        m = flow.nn.GRUCell(2, 3)
        x = np.random.randn(4, 2).astype(np.float32)
        h = np.random.randn(4, 3).astype(np.float32)
        gi = x @ m.weight_ih.detach().numpy().T + m.bias_ih.detach().numpy()
        gh = h @ m.weight_hh.detach().numpy().T + m.bias_hh.detach().numpy()
        ir, iz, inn = np.split(gi, 3, axis=1)
        hr, hz, hn = np.split(gh, 3, axis=1)
        r = sigmoid(ir + hr)
        z = sigmoid(iz + hz)
        n = np.tanh(inn + r * hn)
        expected = (1 - z) * n + z * h
        out = m(flow.tensor(x), flow.tensor(h))
        test_case.assertTrue(np.allclose(out.detach().numpy(), expected, 1e-4, 1e-4))

    @autotest(n=2)
    def test_sequence_of_embedding_and_lstm(test_case):
        words = torch.tensor([[1, 2, 0], [3, 3, 4]])
        emb = torch.nn.Embedding(5, 4, padding_idx=0)
        lstm = torch.nn.LSTM(4, 3, batch_first=True)
        head = torch.nn.Linear(3, 2)
        y, _ = lstm(emb(words))
        return head(y[:, -1, :])


if __name__ == "__main__":
    unittest.main()
