import ctypes
import functools
import pathlib
import subprocess

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental.custom_partitioning import custom_partitioning

here = pathlib.Path(__file__).parent
library = here / "leaky_relu_yzh.so"
if not library.exists():
    subprocess.run(["g++", "-O2", "-std=c++17", "-shared", "-fPIC", f"-I{jax.ffi.include_dir()}",
                    "-o", library, here / "leaky_relu_yzh.cc"], check=True)
handlers = ctypes.CDLL(str(library))
names = {np.dtype("float32"): "LeakyReluYzhF32", np.dtype("float64"): "LeakyReluYzhF64"}
for name in names.values():
    jax.ffi.register_ffi_target(name, jax.ffi.pycapsule(getattr(handlers, name)), platform="cpu")


def kernel(x, alpha):
    if x.dtype not in names:
        raise TypeError(f"leaky_relu_yzh: no kernel for {x.dtype}")
    result = jax.ShapeDtypeStruct(x.shape, x.dtype)
    call = jax.ffi.ffi_call(names[x.dtype], result, vmap_method="broadcast_all")
    return call(x, alpha=np.float64(alpha))


@functools.partial(custom_partitioning, static_argnums=(1,))
def sharded(x, alpha):
    return kernel(x, alpha)


def partition(alpha, mesh, args, result):
    lower = functools.partial(kernel, alpha=alpha)
    return mesh, lower, args[0].sharding, (args[0].sharding,)


def infer(alpha, mesh, args, result):
    return args[0].sharding


sharded.def_partition(partition=partition, infer_sharding_from_operands=infer,
                      sharding_rule="... -> ...")


@functools.partial(jax.custom_jvp, nondiff_argnums=(1,))
def leaky_relu_yzh(x, alpha=0.01):
    @jax.custom_batching.custom_vmap
    def batched(x):
        return sharded(x, alpha)

    @batched.def_vmap
    def _(size, mapped, x):
        return batched(x), True

    return batched(x)


@leaky_relu_yzh.defjvp
def _(alpha, primals, tangents):
    (x,), (t,) = primals, tangents
    return leaky_relu_yzh(x, alpha), jnp.where(x > 0, t, t * alpha)


class LeakyReLUYzh:
    def __init__(self, alpha=0.01):
        self.alpha = alpha

    def __call__(self, x):
        return leaky_relu_yzh(x, self.alpha)
