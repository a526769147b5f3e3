"""What tests save and load again, in buffers and under the names of files, and what they print."""
import io
import os
import tempfile

import pytest
import torch
from torch import nn


def net():
    return nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))


def test_buffer():
    m, other = net(), net()
    buffer = io.BytesIO()
    torch.save(m.state_dict(), buffer)
    with torch.no_grad():
        m[0].weight.zero_()
    buffer.seek(0)
    other.load_state_dict(torch.load(buffer))
    x = torch.randn(2, 3)
    assert not torch.equal(other(x), m(x))


def test_checkpoint(tmp_path):
    m = net()
    opt = torch.optim.Adam(m.parameters(), lr=0.1)
    torch.save({"model": m.state_dict(), "step": 3}, tmp_path / "last.pt")
    before = m(torch.ones(1, 3))
    m(torch.ones(1, 3)).sum().backward()
    opt.step()
    state = torch.load(tmp_path / "last.pt", map_location="cpu")
    assert state["step"] == 3 and (tmp_path / "last.pt").exists()
    m.load_state_dict(state["model"])
    torch.testing.assert_close(m(torch.ones(1, 3)), before)


def test_whole_module():
    m = net()
    with tempfile.NamedTemporaryFile(suffix=".pt") as f:
        torch.save(m, f.name)
        twin = torch.load(f.name)
    x = torch.randn(2, 3)
    torch.testing.assert_close(twin(x), m(x))
    with pytest.raises(FileNotFoundError):
        torch.load("nowhere.pt")


def test_folder():
    x = torch.randn(3)
    with tempfile.TemporaryDirectory() as folder:
        name = os.path.join(folder, "x.pt")
        assert not os.path.exists(name)
        torch.save(x, name)
        assert os.path.exists(name)
        a, b = torch.load(name), torch.load(name)
    a.add_(1)
    torch.testing.assert_close(b, x)


def test_two_files():
    x = torch.randn(3)
    with tempfile.NamedTemporaryFile(suffix=".pt") as f, tempfile.NamedTemporaryFile(suffix=".pt") as g:
        torch.save(x, f.name)
        torch.save(x + 1, g.name)
        torch.testing.assert_close(torch.load(f.name) + 1, torch.load(g.name))


def test_printed(capsys):
    print("step", 1)
    assert capsys.readouterr().out == "step 1\n"
    print("step", 2)
    assert "step 1" not in capsys.readouterr().out
