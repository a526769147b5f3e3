"""A language model and its tests in the way of transformers: configurations, caches, masks, tied weights."""

import copy
import math
import random
import unittest
from collections import OrderedDict

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

global_rng = random.Random()


def ids_tensor(shape, vocab_size, rng=None, name=None):
    if rng is None:
        rng = global_rng
    total_dims = 1
    for dim in shape:
        total_dims *= dim
    values = []
    for _ in range(total_dims):
        values.append(rng.randint(0, vocab_size - 1))
    return torch.tensor(data=values, dtype=torch.long, device="cpu").view(shape).contiguous()


def random_attention_mask(shape, rng=None, name=None):
    attn_mask = ids_tensor(shape, vocab_size=2, rng=None, name=None)
    attn_mask[:, -1] = 1
    return attn_mask


def floats_tensor(shape, scale=1.0, rng=None):
    rng = rng or global_rng
    return torch.tensor([rng.random() * scale for _ in range(int(np.prod(shape)))], dtype=torch.float).view(shape).contiguous()


class ModelOutput(OrderedDict):
    def __getattr__(self, k):
        if k in self:
            return self[k]
        raise AttributeError(k)

    def to_tuple(self):
        return tuple(self[k] for k in self.keys())


class Config:
    model_type = "tiny"
    attribute_map = {"num_hidden_layers": "n_layer"}

    def __init__(
        self, vocab_size=31, hidden_size=16, n_layer=2, n_head=4, intermediate_size=24, max_position=32, eps=1e-5, act="gelu_new", pad_token_id=0, **kwargs
    ):
        self.vocab_size, self.hidden_size, self.n_layer, self.n_head = vocab_size, hidden_size, n_layer, n_head
        self.intermediate_size, self.max_position, self.eps, self.act, self.pad_token_id = intermediate_size, max_position, eps, act, pad_token_id
        for k, v in kwargs.items():
            setattr(self, k, v)

    def to_dict(self):
        return copy.deepcopy(self.__dict__)

    @classmethod
    def from_dict(cls, d, **kwargs):
        c = cls(**d)
        for k, v in kwargs.items():
            setattr(c, k, v)
        return c


class NewGELU(nn.Module):
    def forward(self, x):
        return 0.5 * x * (1.0 + torch.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * torch.pow(x, 3.0))))


ACT2FN = {"gelu": F.gelu, "relu": F.relu, "gelu_new": NewGELU(), "silu": nn.SiLU()}


class Conv1D(nn.Module):
    def __init__(self, nf, nx):
        super().__init__()
        self.nf = nf
        w = torch.empty(nx, nf)
        nn.init.normal_(w, std=0.02)
        self.weight = nn.Parameter(w)
        self.bias = nn.Parameter(torch.zeros(nf))

    def forward(self, x):
        size_out = x.size()[:-1] + (self.nf,)
        x = torch.addmm(self.bias, x.view(-1, x.size(-1)), self.weight)
        return x.view(size_out)


class Attention(nn.Module):
    def __init__(self, config, layer_idx=None):
        super().__init__()
        n = config.max_position
        self.register_buffer("bias", torch.tril(torch.ones((n, n), dtype=torch.bool)).view(1, 1, n, n), persistent=False)
        self.register_buffer("masked_bias", torch.tensor(-1e4), persistent=False)
        self.embed_dim, self.num_heads = config.hidden_size, config.n_head
        self.head_dim = self.embed_dim // self.num_heads
        if self.head_dim * self.num_heads != self.embed_dim:
            raise ValueError(f"`embed_dim` must be divisible by num_heads (got `embed_dim`: {self.embed_dim} and `num_heads`: {self.num_heads}).")
        self.c_attn = Conv1D(3 * self.embed_dim, self.embed_dim)
        self.c_proj = Conv1D(self.embed_dim, self.embed_dim)
        self.layer_idx = layer_idx
        self.pruned_heads = set()

    def _attn(self, q, k, v, mask=None, head_mask=None):
        w = torch.matmul(q, k.transpose(-1, -2))
        w = w / torch.full([], v.size(-1) ** 0.5, dtype=w.dtype, device=w.device)
        ql, kl = q.size(-2), k.size(-2)
        causal = self.bias[:, :, kl - ql : kl, :kl]
        mask_value = torch.finfo(w.dtype).min
        mask_value = torch.full([], mask_value, dtype=w.dtype, device=w.device)
        w = torch.where(causal, w.to(w.dtype), mask_value)
        if mask is not None:
            w = w + mask
        w = nn.functional.softmax(w, dim=-1)
        w = w.type(v.dtype)
        if head_mask is not None:
            w = w * head_mask
        return torch.matmul(w, v), w

    def _split_heads(self, t):
        return t.view(t.size()[:-1] + (self.num_heads, self.head_dim)).permute(0, 2, 1, 3)

    def _merge_heads(self, t):
        t = t.permute(0, 2, 1, 3).contiguous()
        return t.view(t.size()[:-2] + (self.num_heads * self.head_dim,))

    def forward(self, x, layer_past=None, attention_mask=None, head_mask=None, use_cache=False, output_attentions=False):
        q, k, v = self.c_attn(x).split(self.embed_dim, dim=2)
        q, k, v = (self._split_heads(t) for t in (q, k, v))
        if layer_past is not None:
            pk, pv = layer_past
            k = torch.cat((pk, k), dim=-2)
            v = torch.cat((pv, v), dim=-2)
        present = (k, v) if use_cache is True else None
        out, w = self._attn(q, k, v, attention_mask, head_mask)
        out = self.c_proj(self._merge_heads(out))
        outputs = (out, present)
        if output_attentions:
            outputs += (w,)
        return outputs


class Block(nn.Module):
    def __init__(self, config, layer_idx=None):
        super().__init__()
        h = config.hidden_size
        self.ln_1 = nn.LayerNorm(h, eps=config.eps)
        self.attn = Attention(config, layer_idx=layer_idx)
        self.ln_2 = nn.LayerNorm(h, eps=config.eps)
        self.mlp = nn.ModuleDict(dict(c_fc=Conv1D(config.intermediate_size, h), c_proj=Conv1D(h, config.intermediate_size)))
        self.act = ACT2FN[config.act]

    def forward(self, x, **kw):
        a, *rest = self.attn(self.ln_1(x), **kw)
        x = a + x
        m = self.mlp.c_proj(self.act(self.mlp.c_fc(self.ln_2(x))))
        return (x + m, *rest)


class PreTrained(nn.Module):
    config_class = Config
    base_model_prefix = ""

    def __init__(self, config, *inputs, **kwargs):
        super().__init__()
        if not isinstance(config, Config):
            raise ValueError(f"Parameter config in `{self.__class__.__name__}(config)` should be an instance of class `Config`.")
        self.config = config

    def post_init(self):
        self.apply(self._init_weights)

    def _init_weights(self, module):
        if isinstance(module, (nn.Linear, Conv1D)):
            module.weight.data.normal_(mean=0.0, std=0.02)
            if module.bias is not None:
                module.bias.data.zero_()
        elif isinstance(module, nn.Embedding):
            module.weight.data.normal_(mean=0.0, std=0.02)
            if module.padding_idx is not None:
                module.weight.data[module.padding_idx].zero_()
        elif isinstance(module, nn.LayerNorm):
            module.bias.data.zero_()
            module.weight.data.fill_(1.0)

    def num_parameters(self, only_trainable=False):
        return sum(p.numel() for p in self.parameters() if p.requires_grad or not only_trainable)

    @property
    def dtype(self):
        return next(self.parameters()).dtype

    def get_extended_attention_mask(self, mask):
        m = mask[:, None, None, :].to(dtype=self.dtype)
        return (1.0 - m) * torch.finfo(self.dtype).min


class TinyModel(PreTrained):
    def __init__(self, config):
        super().__init__(config)
        self.wte = nn.Embedding(config.vocab_size, config.hidden_size, padding_idx=config.pad_token_id)
        self.wpe = nn.Embedding(config.max_position, config.hidden_size)
        self.h = nn.ModuleList([Block(config, layer_idx=i) for i in range(config.n_layer)])
        self.ln_f = nn.LayerNorm(config.hidden_size, eps=config.eps)
        self.post_init()

    def forward(
        self,
        input_ids=None,
        past=None,
        attention_mask=None,
        position_ids=None,
        inputs_embeds=None,
        use_cache=None,
        output_attentions=None,
        output_hidden_states=None,
    ):
        if input_ids is not None and inputs_embeds is not None:
            raise ValueError("You cannot specify both input_ids and inputs_embeds at the same time")
        if inputs_embeds is None:
            inputs_embeds = self.wte(input_ids)
        past_length = 0 if past is None else past[0][0].size(-2)
        past = tuple([None] * len(self.h)) if past is None else past
        n = inputs_embeds.size(1)
        if position_ids is None:
            position_ids = torch.arange(past_length, n + past_length, dtype=torch.long).unsqueeze(0).view(-1, n)
        if attention_mask is not None:
            attention_mask = self.get_extended_attention_mask(attention_mask)
        x = inputs_embeds + self.wpe(position_ids)
        presents = () if use_cache else None
        attentions = () if output_attentions else None
        hidden = () if output_hidden_states else None
        for i, (block, layer_past) in enumerate(zip(self.h, past)):
            if output_hidden_states:
                hidden = hidden + (x,)
            outs = block(x, layer_past=layer_past, attention_mask=attention_mask, use_cache=use_cache, output_attentions=output_attentions)
            x = outs[0]
            if use_cache is True:
                presents = presents + (outs[1],)
            if output_attentions:
                attentions = attentions + (outs[2],)
        x = self.ln_f(x)
        if output_hidden_states:
            hidden = hidden + (x,)
        return ModelOutput(
            [(k, v) for k, v in [("last_hidden_state", x), ("past", presents), ("hidden_states", hidden), ("attentions", attentions)] if v is not None]
        )


class TinyLM(PreTrained):
    _tied_weights_keys = ["lm_head.weight"]

    def __init__(self, config):
        super().__init__(config)
        self.transformer = TinyModel(config)
        self.lm_head = nn.Linear(config.hidden_size, config.vocab_size, bias=False)
        self.lm_head.weight = self.transformer.wte.weight

    def forward(self, input_ids, labels=None, **kw):
        out = self.transformer(input_ids, **kw)
        logits = self.lm_head(out.last_hidden_state)
        loss = None
        if labels is not None:
            shift_logits = logits[..., :-1, :].contiguous()
            shift_labels = labels[..., 1:].contiguous()
            loss = nn.CrossEntropyLoss()(shift_logits.view(-1, shift_logits.size(-1)), shift_labels.view(-1))
        return (loss, logits) if loss is not None else (logits, out.get("past"))

    @torch.no_grad()
    def generate(self, ids, steps, do_sample=False, eos=None):
        past = None
        cur = ids
        unfinished = torch.ones(ids.shape[0], dtype=torch.long)
        for _ in range(steps):
            logits, past = self(cur, past=past, use_cache=True)
            nxt = torch.argmax(logits[:, -1, :], dim=-1)
            if eos is not None:
                nxt = nxt * unfinished + self.config.pad_token_id * (1 - unfinished)
                unfinished = unfinished.mul((nxt != eos).long())
            ids = torch.cat([ids, nxt[:, None]], dim=-1)
            cur = nxt[:, None]
            if unfinished.max() == 0:
                break
        return ids


class ModelTester:
    def __init__(self, parent, batch_size=2, seq_length=5):
        self.parent, self.batch_size, self.seq_length = parent, batch_size, seq_length

    def prepare(self):
        config = Config()
        ids = ids_tensor([self.batch_size, self.seq_length], config.vocab_size)
        return config, ids, random_attention_mask([self.batch_size, self.seq_length])

    def create_and_check_model(self, config, ids, mask):
        model = TinyModel(config=config)
        model.eval()
        result = model(ids, attention_mask=mask, output_hidden_states=True, output_attentions=True)
        self.parent.assertEqual(result.last_hidden_state.shape, (self.batch_size, self.seq_length, config.hidden_size))
        self.parent.assertEqual(len(result.hidden_states), config.n_layer + 1)
        self.parent.assertListEqual(list(result.attentions[0].shape[-3:]), [config.n_head, self.seq_length, self.seq_length])
        self.parent.assertTrue(torch.allclose(result["attentions"][0].sum(-1), torch.ones(2, 4, 5), atol=1e-5))


class TinyModelTest(unittest.TestCase):
    all_model_classes = (TinyModel, TinyLM)

    def setUp(self):
        self.model_tester = ModelTester(self)
        global_rng.seed(11)
        torch.manual_seed(11)

    def test_config(self):
        c = Config(hidden_size=8, n_head=2, foo="bar")
        d = c.to_dict()
        self.assertEqual(d["foo"], "bar")
        self.assertEqual(Config.from_dict(d, n_layer=7).n_layer, 7)
        self.assertEqual(Config.from_dict(d).to_dict(), d)
        with self.assertRaises(ValueError):
            TinyModel({"hidden_size": 3})

    def test_model(self):
        self.model_tester.create_and_check_model(*self.model_tester.prepare())

    def test_past(self):
        config, ids, _ = self.model_tester.prepare()
        model = TinyModel(config).eval()
        out = model(ids, use_cache=True)
        past = out.past
        nxt = ids_tensor((2, 1), config.vocab_size)
        full = model(torch.cat([ids, nxt], dim=-1))["last_hidden_state"]
        inc = model(nxt, past=past)["last_hidden_state"]
        idx = ids_tensor((1,), full.shape[-1]).item()
        self.assertTrue(torch.allclose(full[:, -1, idx].detach(), inc[:, 0, idx].detach(), atol=1e-3))

    def test_mask_past(self):
        config, ids, _ = self.model_tester.prepare()
        model = TinyModel(config).eval()
        half = 2
        mask = torch.ones(ids.shape, dtype=torch.long)
        mask[:, half:] = 0
        changed = ids.clone()
        changed[:, half:] = (changed[:, half:] + 1) % config.vocab_size
        a, b = (model(i, attention_mask=mask).last_hidden_state[:, :half] for i in (ids, changed))
        self.assertLess((a - b).abs().max().item(), 1e-5)

    def test_lm_loss_and_tied(self):
        config, ids, mask = self.model_tester.prepare()
        model = TinyLM(config)
        self.assertEqual(model.num_parameters(), sum(p.numel() for n, p in model.named_parameters()))
        loss, logits = model(ids, labels=ids)
        loss.backward()
        self.assertTrue(model.lm_head.weight.grad is model.transformer.wte.weight.grad)
        self.assertAlmostEqual(loss.item(), math.log(config.vocab_size), delta=0.5)
        for name, p in model.named_parameters():
            if "wpe" in name:
                self.assertTrue((p.grad[5:] == 0).all(), name)

    def test_generate(self):
        config, ids, _ = self.model_tester.prepare()
        model = TinyLM(config).eval()
        out = model.generate(ids, 3)
        self.assertEqual(out.shape, (2, 8))
        slow = ids
        with torch.no_grad():
            for _ in range(3):
                logits = model(slow)[0]
                slow = torch.cat([slow, logits[:, -1].argmax(-1, keepdim=True)], -1)
        self.assertListEqual(out.tolist(), slow.tolist())

    def test_forward_signature_and_errors(self):
        config, ids, _ = self.model_tester.prepare()
        model = TinyModel(config)
        with self.assertRaises(ValueError) as cm:
            model(ids, inputs_embeds=model.wte(ids))
        self.assertIn("both input_ids", str(cm.exception))
        e = model.wte(ids)
        torch.testing.assert_close(model(inputs_embeds=e).last_hidden_state, model(ids).last_hidden_state)

    def test_save_load(self):
        config, ids, _ = self.model_tester.prepare()
        for cls in self.all_model_classes:
            with self.subTest(cls.__name__):
                m = cls(config).eval()
                other = cls(config).eval()
                missing, unexpected = other.load_state_dict(m.state_dict(), strict=False)
                self.assertEqual((list(missing), list(unexpected)), ([], []))
                for (k, a), (k2, b) in zip(m.state_dict().items(), other.state_dict().items()):
                    self.assertEqual(k, k2)
                    self.assertTrue(torch.equal(a, b))

    def test_initialization(self):
        config, _, _ = self.model_tester.prepare()
        m = TinyModel(config)
        self.assertTrue((m.wte.weight[0] == 0).all())
        self.assertEqual(m.ln_f.weight.mean().item(), 1.0)
        for k in [n for n, _ in m.named_parameters() if n.endswith("bias")]:
            self.assertEqual(m.get_parameter(k).abs().sum(), 0.0)

    def test_head_masking_and_prune(self):
        config, ids, _ = self.model_tester.prepare()
        att = Attention(config)
        x = floats_tensor([2, 5, 16])
        hm = torch.ones(4)
        hm[1] = 0
        y, _, w = att(x, head_mask=hm.view(1, -1, 1, 1), output_attentions=True)
        self.assertAlmostEqual(w[..., 1, :, :].abs().sum().item(), 0.0)
        self.assertNotEqual(w[..., 0, :, :].sum().item(), 0.0)


def test_keys():
    m = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    sd = m.state_dict()
    assert list(m.load_state_dict(sd).missing_keys) == []
    del sd["0.bias"]
    sd["extra"] = torch.ones(1)
    with pytest.raises(RuntimeError) as e:
        m.load_state_dict(sd)
    assert 'Missing key(s) in state_dict: "0.bias"' in str(e.value) and 'Unexpected key(s) in state_dict: "extra"' in str(e.value)
    missing, unexpected = m.load_state_dict(sd, strict=False)
    assert missing == ["0.bias"] and unexpected == ["extra"]


def test_tied():
    a, b = nn.Embedding(5, 3, padding_idx=0), nn.Linear(3, 5, bias=False)
    b.weight = a.weight
    assert a.padding_idx == 0 and nn.Embedding(2, 2).padding_idx is None
    b(a(torch.tensor([1, 2]))).sum().backward()
    assert b.weight.grad is a.weight.grad
    assert b.weight is a.weight
    g = a.weight.grad
    assert g is b.weight.grad


def test_gradients_by_two_names():
    y = torch.ones(2) * 4
    y.requires_grad_(True)
    x = torch.ones(2, requires_grad=True)
    z = x * y + y
    o = torch.ones(2)
    z.backward(o, retain_graph=True)
    z.backward(o, retain_graph=True)
    z.backward(o, retain_graph=True)
    g = y.grad
    with torch.no_grad():
        y.grad.zero_()
    z.backward(o)
    assert g.sum() == 4
