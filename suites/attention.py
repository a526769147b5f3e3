"""Attention: the module, the function of PyTorch 2, and rotary embeddings."""
import torch
from plumb import *


@autotest()
def test_multihead_attention():
    heads, size = random(1, 4), random(1, 5)
    m = torch.nn.MultiheadAttention(heads * size, heads, bias=random_bool() | nothing(), batch_first=random_bool() | nothing())
    m.train(random())
    x = random_tensor(ndim=3, dim0=random(1, 5), dim1=random(1, 4), dim2=heads * size)
    r = m(x, x, x)
    return r[0], r[1]


@autotest()
def test_multihead_attention_cross():
    n, s, e = random(1, 4), random(1, 6), random(1, 4)
    m = torch.nn.MultiheadAttention(e * 2, 2)
    q = random_tensor(ndim=3, dim0=random(1, 5), dim1=n, dim2=e * 2)
    k = random_tensor(ndim=3, dim0=s, dim1=n, dim2=e * 2)
    v = random_tensor(ndim=3, dim0=s, dim1=n, dim2=e * 2)
    r = m(q, k, v, need_weights=random_bool() | nothing())
    return r[0]


@autotest()
def test_multihead_attention_sizes():
    n, s, kdim, vdim = random(1, 4), random(1, 6), random(1, 6), random(1, 6)
    m = torch.nn.MultiheadAttention(6, 3, kdim=kdim, vdim=vdim)
    q = random_tensor(ndim=3, dim0=random(1, 5), dim1=n, dim2=6)
    r = m(q, random_tensor(ndim=3, dim0=s, dim1=n, dim2=kdim), random_tensor(ndim=3, dim0=s, dim1=n, dim2=vdim), average_attn_weights=random_bool())
    return r[0], r[1]


@autotest()
def test_multihead_attention_mask():
    l, n = random(1, 6), random(1, 4)
    m = torch.nn.MultiheadAttention(4, 2)
    x = random_tensor(ndim=3, dim0=l, dim1=n, dim2=4)
    mask = random_tensor(ndim=2, dim0=l, dim1=l)
    hidden = random_tensor(ndim=2, dim0=l, dim1=l, low=-1, high=1, requires_grad=False) > 0.9
    padding = random_tensor(ndim=2, dim0=n, dim1=l, low=-1, high=1, requires_grad=False) > 0.9
    return m(x, x, x, attn_mask=mask)[0], m(x, x, x, attn_mask=hidden)[0], m(x, x, x, key_padding_mask=padding, attn_mask=hidden)[0]


@autotest()
def test_multihead_attention_unbatched():
    e = random(1, 4)
    m = torch.nn.MultiheadAttention(e * 2, 2, batch_first=random_bool())
    x = random_tensor(ndim=2, dim0=random(1, 5), dim1=e * 2)
    r = m(x, x, x)
    return r[0], r[1]


@autotest()
def test_rotary_embedding():
    # rotate half of the features by an angle per position
    l, d = random(1, 8), random(1, 6)
    x = random_tensor(ndim=3, dim0=random(1, 4), dim1=l, dim2=d * 2)
    angle = random_tensor(ndim=2, dim0=l, dim1=d)
    cos = torch.cat([torch.cos(angle), torch.cos(angle)], dim=-1)
    sin = torch.cat([torch.sin(angle), torch.sin(angle)], dim=-1)
    half = torch.chunk(x, 2, dim=-1)
    return x * cos + torch.cat([-half[1], half[0]], dim=-1) * sin


@autotest(n=2)
def test_transformer_encoder():
    layer = torch.nn.TransformerEncoderLayer(4, 2, 6, 0.0, batch_first=random_bool(), norm_first=random_bool(), activation=oneof("relu", "gelu"))
    m = torch.nn.TransformerEncoder(layer, random(1, 3), norm=torch.nn.LayerNorm(4))
    m.train(random())
    return m(random_tensor(ndim=3, dim0=2, dim1=3, dim2=4))


@autotest(n=2)
def test_transformer_decoder():
    m = torch.nn.TransformerDecoder(torch.nn.TransformerDecoderLayer(4, 2, 6, 0.0), 1)
    tgt = random_tensor(ndim=3, dim0=3, dim1=2, dim2=4)
    memory = random_tensor(ndim=3, dim0=5, dim1=2, dim2=4)
    mask = torch.triu(torch.ones(3, 3), diagonal=1).bool()
    padding = torch.tensor([[False, False, False, False, True], [False, False, False, True, True]])
    return m(tgt, memory, tgt_mask=mask, memory_key_padding_mask=padding)


@autotest(n=2)
def test_transformer():
    m = torch.nn.Transformer(4, 2, 1, 1, 6, dropout=0.0, batch_first=random_bool())
    return m(random_tensor(ndim=3, dim0=2, dim1=2, dim2=4), random_tensor(ndim=3, dim0=2, dim1=2, dim2=4))
