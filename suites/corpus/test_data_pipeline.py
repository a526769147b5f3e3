"""From text to batches to metrics, as data pipelines have it."""

import json
import random
import re
import string
from collections import Counter, OrderedDict, defaultdict, deque
from functools import partial
from itertools import chain, groupby, islice, product, zip_longest
from typing import Iterator, List

import numpy as np
import pytest
import torch
import torch.nn as nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import (
    BatchSampler,
    ConcatDataset,
    DataLoader,
    Dataset,
    IterableDataset,
    RandomSampler,
    Sampler,
    SequentialSampler,
    Subset,
    TensorDataset,
    default_collate,
    random_split,
)

CONFIG = json.loads('{"model": {"dim": 4, "layers": [8, 6]}, "lr": 0.1, "tags": ["a", null, true]}')
TEXT = """the cat sat on the mat
the dog sat on the log
cats and dogs, dogs and cats!"""


class Vocab:
    specials = ("<pad>", "<unk>", "<bos>", "<eos>")

    def __init__(self, tokens, min_freq=1):
        counts = Counter(tokens)
        words = sorted((w for w, c in counts.items() if c >= min_freq), key=lambda w: (-counts[w], w))
        self.itos = list(self.specials) + words
        self.stoi = {w: i for i, w in enumerate(self.itos)}

    def __len__(self):
        return len(self.itos)

    def __getitem__(self, token):
        return self.stoi.get(token, self.stoi["<unk>"])

    def encode(self, text: str, bos=True, eos=True) -> List[int]:
        ids = [self[t] for t in tokenize(text)]
        return [self["<bos>"]] * bos + ids + [self["<eos>"]] * eos

    def decode(self, ids):
        return " ".join(self.itos[i] for i in ids if self.itos[i] not in self.specials)


def tokenize(text):
    return re.findall(r"\w+|[^\w\s]", text.lower())


def ngrams(seq, n):
    return zip(*(islice(seq, i, None) for i in range(n)))


class Lines(Dataset):
    def __init__(self, text, vocab, transform=None):
        self.lines = text.splitlines()
        self.vocab, self.transform = vocab, transform

    def __len__(self):
        return len(self.lines)

    def __getitem__(self, i):
        ids = torch.tensor(self.vocab.encode(self.lines[i]))
        label = int("dog" in self.lines[i])
        if self.transform is not None:
            ids = self.transform(ids)
        return ids, label


class Compose:
    def __init__(self, *fns):
        self.fns = fns

    def __call__(self, x):
        for f in self.fns:
            x = f(x)
        return x

    def __repr__(self):
        return f"{self.__class__.__name__}({', '.join(type(f).__name__ for f in self.fns)})"


class Counting(IterableDataset):
    def __init__(self, n):
        super().__init__()
        self.n = n

    def __iter__(self) -> Iterator[torch.Tensor]:
        for i in range(self.n):
            yield torch.tensor([float(i), float(i) ** 2])


class BucketSampler(Sampler):
    def __init__(self, lengths, batch_size):
        self.lengths, self.batch_size = lengths, batch_size

    def __iter__(self):
        order = sorted(range(len(self.lengths)), key=self.lengths.__getitem__)
        for i in range(0, len(order), self.batch_size):
            yield order[i : i + self.batch_size]

    def __len__(self):
        return -(-len(self.lengths) // self.batch_size)


def collate(batch, pad=0):
    batch.sort(key=lambda b: len(b[0]), reverse=True)
    xs, ys = zip(*batch)
    lengths = torch.as_tensor([len(x) for x in xs])
    return pad_sequence(xs, batch_first=True, padding_value=pad), lengths, torch.tensor(ys)


@pytest.fixture(scope="module")
def vocab():
    return Vocab(chain.from_iterable(map(tokenize, TEXT.split("\n"))))


def test_vocab(vocab):
    assert vocab.itos[4] == "the" and len(vocab) == 4 + 12
    ids = vocab.encode("The bird sat.", eos=False)
    assert ids[0] == 2 and ids.count(1) == 2
    assert vocab.decode(vocab.encode("the cat")) == "the cat"
    one_hot = torch.zeros(len(ids), len(vocab)).scatter_(1, torch.tensor(ids)[:, None], 1)
    assert one_hot.sum() == len(ids)


def test_ngrams():
    grams = Counter(ngrams("a b a b c".split(), 2))
    assert grams.most_common(1) == [(("a", "b"), 2)]
    p = torch.tensor([grams["a", "b"], grams["b", "a"], grams[("b", "c")]], dtype=torch.float)
    p = p / p.sum()
    perplexity = torch.exp(-(p * p.log()).sum())
    assert 2 < perplexity < 3


def test_collate(vocab):
    ds = Lines(TEXT, vocab, Compose(lambda t: t[:6], torch.Tensor.long))
    x, lengths, y = collate([ds[i] for i in range(len(ds))], pad=vocab["<pad>"])
    assert x.shape == (3, 6) and y.dtype == torch.int64 and sorted(y.tolist()) == [0, 1, 1]
    mask = torch.arange(x.size(1))[None] < lengths[:, None]
    emb = nn.Embedding(len(vocab), 3, padding_idx=0)
    pooled = (emb(x) * mask.unsqueeze(-1)).sum(1) / lengths[:, None]
    pooled.sum().backward()
    assert (emb.weight.grad[0] == 0).all()


def test_loader(vocab):
    ds = Lines(TEXT, vocab)
    dl = DataLoader(ds, batch_size=2, shuffle=False, collate_fn=partial(collate, pad=0), drop_last=False)
    shapes = [tuple(x.shape) for x, *_ in dl]
    assert len(dl) == 2 and len(shapes) == 2
    total = 0
    for step, (x, lengths, y) in enumerate(dl, start=1):
        total += x.ne(0).sum().item()
    assert total == sum(len(vocab.encode(l)) for l in TEXT.splitlines()) and step == 2


def test_bucket_sampler(vocab):
    ds = Lines(TEXT, vocab)
    s = BucketSampler([len(ds[i][0]) for i in range(3)], 2)
    dl = DataLoader(ds, batch_sampler=s, collate_fn=collate)
    assert [x.size(0) for x, _, _ in dl] == [2, 1] and len(s) == 2


def test_tensor_dataset_and_splits():
    x, y = torch.arange(10.0).view(5, 2), torch.arange(5)
    ds = TensorDataset(x, y)
    a, b = random_split(ds, [3, 2], generator=torch.Generator().manual_seed(0))
    assert len(a) == 3 and len(b) == 2
    assert sorted(int(t[1]) for t in chain(a, b)) == [0, 1, 2, 3, 4]
    sub = Subset(ds, [4, 0])
    assert sub[0][1] == 4 and len(ConcatDataset([sub, ds])) == 7
    xb, yb = next(iter(DataLoader(ds, batch_size=4)))
    assert xb.shape == (4, 2) and yb.tolist() == [0, 1, 2, 3]
    w = torch.zeros(2, requires_grad=True)
    for xb, yb in DataLoader(ds, batch_size=2, drop_last=True):
        loss = ((xb @ w - yb) ** 2).mean()
        loss.backward()
    assert w.grad.abs().sum() > 0


def test_iterable():
    dl = DataLoader(Counting(5), batch_size=2)
    out = torch.cat(list(dl))
    assert out.shape == (5, 2) and out[-1, 1] == 16


def test_samplers():
    ds = TensorDataset(torch.arange(6))
    assert list(SequentialSampler(ds)) == list(range(6))
    assert list(BatchSampler(SequentialSampler(ds), 4, False)) == [[0, 1, 2, 3], [4, 5]]
    assert sorted(RandomSampler(ds)) == list(range(6))


def test_default_collate():
    out = default_collate([{"a": 1, "b": torch.ones(2)}, {"a": 2, "b": torch.zeros(2)}])
    assert out["a"].tolist() == [1, 2] and out["b"].shape == (2, 2)


def test_config_builds_model():
    dims = [CONFIG["model"]["dim"], *CONFIG["model"]["layers"], 1]
    layers = OrderedDict()
    for i, (a, b) in enumerate(zip(dims, dims[1:])):
        layers[f"fc{i}"] = nn.Linear(a, b)
        if i < len(dims) - 2:
            layers[f"act{i}"] = nn.ReLU(inplace=True)
    net = nn.Sequential(layers)
    assert [n for n, _ in net.named_children()] == ["fc0", "act0", "fc1", "act1", "fc2"]
    assert net(torch.ones(2, 4)).shape == (2, 1)
    assert json.dumps({"lr": CONFIG["lr"], "n": None}) == '{"lr": 0.1, "n": null}'


def levenshtein(a, b):
    d = torch.zeros(len(a) + 1, len(b) + 1, dtype=torch.long)
    d[:, 0], d[0, :] = torch.arange(len(a) + 1), torch.arange(len(b) + 1)
    for i, j in product(range(1, len(a) + 1), range(1, len(b) + 1)):
        d[i, j] = min(d[i - 1, j] + 1, d[i, j - 1] + 1, d[i - 1, j - 1] + (a[i - 1] != b[j - 1]))
    return int(d[-1, -1])


def test_levenshtein():
    assert levenshtein("kitten", "sitting") == 3


def test_ctc_decode():
    logits = torch.tensor([[0.1, 2.0, 0], [0, 3.0, 0.2], [4.0, 0, 0], [0, 1, 5.0], [0, 1, 6.0]])
    best = logits.argmax(-1).tolist()
    collapsed = [k for k, _ in groupby(best) if k != 0]
    assert collapsed == [1, 2]


def beam_search(step, start, width, length):
    beams = [([start], torch.tensor(0.0))]
    for _ in range(length):
        grown = []
        for seq, score in beams:
            logp = step(seq).log_softmax(-1)
            top, idx = logp.topk(width)
            grown.extend((seq + [i.item()], score + s) for s, i in zip(top, idx))
        beams = sorted(grown, key=lambda b: b[1].item(), reverse=True)[:width]
    return beams


def test_beam_search():
    table = torch.tensor([[0.0, 1.0, 2.0], [2.0, 0.0, 1.0], [1.0, 2.5, 0.0]])
    best, score = beam_search(lambda s: table[s[-1]], 0, 2, 3)[0]
    assert best == [0, 2, 1, 0] and score < 0


def test_text_helpers():
    assert "".join(random.sample(string.ascii_lowercase, 3)).islower()
    d = defaultdict(lambda: deque(maxlen=2))
    for k, v in zip_longest("aab", [1, 2, 3, 4], fillvalue="z"):
        d[k].append(v)
    assert list(d["a"]) == [1, 2] and list(d["z"]) == [4]
    assert re.sub(r"(\d+)", lambda m: str(int(m.group(1)) * 2), "a1b22") == "a2b44"
    assert torch.tensor([ord(c) for c in "az"]).diff().item() == 25


def test_class_weights():
    labels = np.array([0, 0, 1, 2, 2, 2])
    _, counts = np.unique(labels, return_counts=True)
    w = torch.tensor(len(labels) / (len(counts) * counts), dtype=torch.float32)
    loss = nn.CrossEntropyLoss(weight=w)(torch.eye(3)[labels], torch.from_numpy(labels))
    assert torch.isfinite(loss) and w.argmin() == 2


def test_metrics():
    pred, gold = torch.tensor([1, 0, 1, 1, 0]), torch.tensor([1, 0, 0, 1, 1])
    cm = torch.zeros(2, 2, dtype=torch.int64)
    for t, p in zip(gold, pred):
        cm[t, p] += 1
    tp = cm.diag()
    precision, recall = tp / cm.sum(0), tp / cm.sum(1)
    f1 = 2 * precision * recall / (precision + recall)
    assert f1[1].item() == pytest.approx(2 / 3) and cm.tolist() == [[1, 1], [1, 2]]
    assert torch.bincount(gold * 2 + pred, minlength=4).reshape(2, 2).equal(cm)


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.int8])
def test_a_number_as_index_selects(dtype):
    x = torch.zeros(3, 4)
    row = x[torch.tensor(1, dtype=dtype)]
    row += 1
    assert x.sum() == 4
    i, j = torch.tensor(1, dtype=dtype), torch.tensor(-2, dtype=dtype)
    x[i] = torch.arange(4)
    x[:, j] = 5
    x[i, j] += 2
    x[i, [0, 1]] = torch.tensor([7.0, 8.0])
    assert x.tolist() == [[0, 0, 5, 0], [7, 8, 7, 3], [0, 0, 5, 0]]
    w = torch.ones(2, 3, 4, requires_grad=True)
    (w[i, :, j].sum() + (w[:, i, [0, 2]] * w[i, torch.tensor([0, 2])][:, :2]).sum()).backward()
    assert w.grad.sum() == 11
    with pytest.raises(IndexError):
        x[torch.tensor(9, dtype=dtype)] = 1
