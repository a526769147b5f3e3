"""Lists, tuples and strings that are indexed by tensors, and slices that are assigned to."""

import torch


def test_tensors_as_indices():
    i = torch.tensor(2)
    l = [10, 20, 30, 40]
    assert l[i] == 30
    assert l[:i] == [10, 20]
    assert (1, 2, 3)[i:] == (3,)
    assert "abcdef"[i : torch.tensor(4)] == "cd"
    l[i] = 7
    assert l[2] == 7
    a = torch.arange(4)
    assert [l[j] for j in a.argsort(descending=True)] == [40, 7, 20, 10]
    for k in range(torch.tensor(3)):
        l[k] += k
    assert l == [10, 21, 9, 40]
    l[1:i] = [5, 5]
    assert l == [10, 5, 5, 9, 40]
    l[::2] = [1, 2, 3]
    assert l == [1, 5, 2, 9, 3]
    l[3:] = ()
    l[len(l) :] = (x for x in range(2))
    assert l == [1, 5, 2, 0, 1]
    l[1:3] += [4]
    assert l == [1, 5, 2, 4, 0, 1]
    assert [0] * torch.tensor(2).item() == [0, 0]
    assert round(torch.tensor(2.6).item()) == 3
    assert f"{i.item():03d}" == "002"
    assert max(torch.tensor(3), 2) == 3
    assert i in (1, 2)
    x = torch.randn(5, 3)
    assert x[i:].shape == (3, 3) and x[:, :i].shape[1] == 2
    assert divmod(7, 2) == (3, 1)
    m = {int(k): v for k, v in zip(torch.tensor([1, 2]), "ab")}
    assert m[i.item()] == "b"
