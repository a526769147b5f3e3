"""
Embeddings, attention and the parts of a transformer.
Licensed under the Apache License, Version 2.0.
"""
import math
import unittest

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

from plumb import *


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len=16):
        super().__init__()
        position = torch.arange(max_len).unsqueeze(1)
        div_term = torch.exp(torch.arange(0, d_model, 2) * (-math.log(10000.0) / d_model))
        pe = torch.zeros(max_len, 1, d_model)
        pe[:, 0, 0::2] = torch.sin(position * div_term)
        pe[:, 0, 1::2] = torch.cos(position * div_term)
        self.register_buffer("pe", pe)

    def forward(self, x):
        return x + self.pe[: x.size(0)]


class FeedForward(nn.Module):
    def __init__(self, dim, hidden, activation=F.gelu):
        super(FeedForward, self).__init__()
        self.up = nn.Linear(dim, hidden)
        self.down = nn.Linear(hidden, dim)
        self.activation = activation

    def forward(self, x):
        return self.down(self.activation(self.up(x)))


class Block(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.norm1 = nn.LayerNorm(dim)
        self.attn = nn.MultiheadAttention(dim, heads, batch_first=True)
        self.norm2 = nn.LayerNorm(dim)
        self.mlp = FeedForward(dim, dim * 2)

    def forward(self, x, mask=None):
        h = self.norm1(x)
        x = x + self.attn(h, h, h, attn_mask=mask, need_weights=False)[0]
        return x + self.mlp(self.norm2(x))


def scaled_dot_product(q, k, v, mask=None):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
    if mask is not None:
        scores = scores.masked_fill(mask == 0, float("-inf"))
    weights = F.softmax(scores, dim=-1)
    return weights @ v, weights


class TestTransformerParts(unittest.TestCase):
    @autotest(n=4)
    def test_embedding(test_case):
        capacity = random(2, 9).to(int).value()
        m = torch.nn.Embedding(capacity, random(1, 6))
        idx = random_tensor(ndim=2, dim0=2, dim1=3, low=0, high=capacity, dtype=int)
        return m(idx)

    @autotest(n=3)
    def test_embedding_max_norm(test_case):
        m = torch.nn.Embedding(5, 3, max_norm=1.0)
        return m(torch.tensor([0, 2, 2, 4]))

    @autotest(n=3)
    def test_embedding_functional(test_case):
        weight = random_tensor(ndim=2, dim0=6, dim1=4)
        indices = torch.tensor([[1, 2], [5, 1]])
        return F.embedding(indices, weight, padding_idx=1)

    @autotest(n=3)
    def test_embedding_bag(test_case):
        m = torch.nn.EmbeddingBag(10, 3, mode=oneof("sum", "mean", "max"))
        input = torch.tensor([1, 2, 4, 5, 4, 3, 2, 9])
        offsets = torch.tensor([0, 4])
        return m(input, offsets)

    @autotest(n=3)
    def test_positional_encoding(test_case):
        m = PositionalEncoding(6)
        return m(random_tensor(ndim=3, dim0=5, dim1=2, dim2=6))

    @autotest(n=3)
    def test_feed_forward(test_case):
        m = FeedForward(4, 8, activation=F.relu if random_bool().value() else F.gelu)
        return m(random_tensor(ndim=3, dim0=2, dim1=3, dim2=4))

    @autotest(n=3)
    def test_scaled_dot_product(test_case):
        q = random_tensor(ndim=4, dim0=2, dim1=2, dim2=3, dim3=4)
        k = random_tensor(ndim=4, dim0=2, dim1=2, dim2=5, dim3=4)
        v = random_tensor(ndim=4, dim0=2, dim1=2, dim2=5, dim3=6)
        out, weights = scaled_dot_product(q, k, v)
        return {"out": out, "weights": weights}

    @autotest(n=3)
    def test_causal_attention(test_case):
        x = random_tensor(ndim=3, dim0=2, dim1=4, dim2=3)
        mask = torch.tril(torch.ones(4, 4))
        out, _ = scaled_dot_product(x, x, x, mask)
        return out

    @autotest(n=3)
    def test_multihead_attention(test_case):
        m = torch.nn.MultiheadAttention(embed_dim=8, num_heads=oneof(1, 2, 4), bias=random_bool())
        q = random_tensor(ndim=3, dim0=3, dim1=2, dim2=8)
        kv = random_tensor(ndim=3, dim0=5, dim1=2, dim2=8)
        out, weights = m(q, kv, kv)
        return out, weights

    @autotest(n=2)
    def test_block(test_case):
        m = Block(8, 2)
        m.eval()
        return m(random_tensor(ndim=3, dim0=2, dim1=3, dim2=8))

    @autotest(n=2)
    def test_block_with_mask(test_case):
        m = Block(4, 1)
        m.train()
        x = random_tensor(ndim=3, dim0=1, dim1=4, dim2=4)
        mask = torch.triu(torch.full((4, 4), float("-inf")), diagonal=1)
        return m(x, mask)

    @autotest(n=2)
    def test_stack_of_blocks(test_case):
        layers = nn.ModuleList([Block(4, 2) for _ in range(2)])
        x = random_tensor(ndim=3, dim0=1, dim1=3, dim2=4)
        for layer in layers:
            x = layer(x)
        return x

    @autotest(n=2)
    def test_encoder_layer(test_case):
        layer = nn.TransformerEncoderLayer(d_model=8, nhead=2, dim_feedforward=16, dropout=0.0, batch_first=True)
        layer.train()
        return layer(random_tensor(ndim=3, dim0=2, dim1=3, dim2=8))

    @autotest(n=2)
    def test_decoder_layer(test_case):
        layer = nn.TransformerDecoderLayer(d_model=4, nhead=2, dim_feedforward=6, dropout=0.0)
        layer.train()
        tgt = random_tensor(ndim=3, dim0=3, dim1=2, dim2=4)
        memory = random_tensor(ndim=3, dim0=5, dim1=2, dim2=4)
        return layer(tgt, memory)

    @autotest(n=3)
    def test_rotary(test_case):
        x = random_tensor(ndim=3, dim0=2, dim1=5, dim2=4)
        x1, x2 = x.chunk(2, dim=-1)
        angle = torch.arange(5, dtype=torch.float32)[:, None] * torch.tensor([1.0, 0.01])
        cos, sin = angle.cos(), angle.sin()
        return torch.cat([x1 * cos - x2 * sin, x1 * sin + x2 * cos], dim=-1)

    @autotest(n=3)
    def test_rms_norm(test_case):
        x = random_tensor(ndim=3, dim0=2, dim1=3, dim2=8)
        w = random_tensor(ndim=1, dim0=8, low=0.5, high=1.5)
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * w

    @autotest(n=3)
    def test_glu_variants(test_case):
        x = random_tensor(ndim=2, dim0=3, dim1=8)
        a, b = x.split(4, dim=1)
        return F.glu(x, dim=1), F.silu(a) * b

    @autotest(n=3)
    def test_einsum_heads(test_case):
        x = random_tensor(ndim=3, dim0=2, dim1=3, dim2=8)
        q = x.view(2, 3, 2, 4).permute(0, 2, 1, 3)
        attn = torch.einsum("bhid,bhjd->bhij", q, q)
        return attn.softmax(-1)

    @autotest(n=2)
    def test_tied_weights(test_case):
        emb = nn.Embedding(7, 4)
        head = nn.Linear(4, 7, bias=False)
        head.weight = emb.weight
        return head(emb(torch.tensor([1, 5, 6])))

    @autotest(n=2, auto_backward=False)
    def test_dropout_is_off_in_eval(test_case):
        m = nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.5)).eval()
        x = random_tensor(ndim=2, dim0=2, dim1=3)
        test_case.assertTrue(torch.equal(m(x), m(x)))
        return m(x)


if __name__ == "__main__":
    unittest.main()
