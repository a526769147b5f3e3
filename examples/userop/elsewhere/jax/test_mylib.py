import os

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=2"

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jax.test_util import check_grads

import mylib

jax.config.update("jax_enable_x64", True)
shapes = [(), (3,), (2, 3), (2, 3, 4), (2, 0)]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", shapes)
@pytest.mark.parametrize("alpha", [0.01, 0.5, -1.0])
def test_against_leaky_relu(shape, alpha, dtype):
    x = jnp.asarray(np.random.default_rng(0).normal(size=shape), dtype)
    want = jax.nn.leaky_relu(x, alpha)
    for f in (mylib.LeakyReLUYzh(alpha), jax.jit(mylib.LeakyReLUYzh(alpha))):
        np.testing.assert_allclose(f(x), want, rtol=1e-6)


@pytest.mark.parametrize("shape", shapes)
def test_gradients(shape):
    x = jnp.asarray(np.random.default_rng(1).normal(size=shape))
    check_grads(mylib.LeakyReLUYzh(0.3), (x,), order=2)


def test_vmap():
    x = jnp.arange(-6.0, 6.0).reshape(3, 4)
    np.testing.assert_array_equal(jax.vmap(mylib.leaky_relu_yzh)(x), mylib.leaky_relu_yzh(x))


def test_refuses_integers():
    with pytest.raises(TypeError):
        mylib.leaky_relu_yzh(jnp.arange(3))


def test_sharding():
    mesh = Mesh(np.array(jax.devices()), ("ranks",))
    x = jnp.arange(-6.0, 6.0).reshape(2, 6)
    for spec in (PartitionSpec("ranks", None), PartitionSpec(None, "ranks")):
        held = jax.device_put(x, NamedSharding(mesh, spec))
        got = jax.jit(mylib.leaky_relu_yzh, static_argnums=1)(held, 0.3)
        assert got.sharding.is_equivalent_to(held.sharding, 2)
        np.testing.assert_allclose(got, mylib.leaky_relu_yzh(x, 0.3))
