import pytest
import torch
import torch.distributed as dist
from torch.distributed.tensor import Shard, distribute_tensor, init_device_mesh

import mylib

shapes = [(), (3,), (2, 3), (2, 3, 4), (2, 0)]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("shape", shapes)
@pytest.mark.parametrize("alpha", [0.01, 0.5, -1.0])
def test_against_leaky_relu(shape, alpha, dtype):
    x = torch.randn(shape, dtype=dtype)
    for v in (x, x.t() if x.ndim == 2 else x, x[..., ::2] if x.ndim else x):
        torch.testing.assert_close(mylib.leaky_relu_yzh(v, alpha), torch.nn.functional.leaky_relu(v, alpha))


@pytest.mark.parametrize("shape", shapes)
def test_opcheck(shape):
    x = torch.randn(shape, requires_grad=True)
    torch.library.opcheck(torch.ops.mylib.leaky_relu_yzh.default, (x, 0.3))


@pytest.mark.parametrize("shape", shapes)
def test_gradients(shape):
    x = torch.randn(shape, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(mylib.LeakyReLUYzh(0.3), x)
    assert torch.autograd.gradgradcheck(mylib.LeakyReLUYzh(0.3), x)


def test_refuses_integers():
    with pytest.raises(RuntimeError):
        mylib.leaky_relu_yzh(torch.arange(3))


def over_ranks(rank, world, file):
    dist.init_process_group("gloo", init_method=f"file://{file}", rank=rank, world_size=world)
    mesh, x = init_device_mesh("cpu", (world,)), torch.arange(-6.0, 6.0).reshape(3, 4)
    for axis in (0, 1):
        got = mylib.leaky_relu_yzh(distribute_tensor(x, mesh, [Shard(axis)]), 0.3)
        assert got.placements == (Shard(axis),)
        torch.testing.assert_close(got.full_tensor(), mylib.leaky_relu_yzh(x, 0.3))
    dist.destroy_process_group()


def test_sharding(tmp_path):
    torch.multiprocessing.spawn(over_ranks, (2, tmp_path / "store"), nprocs=2)
