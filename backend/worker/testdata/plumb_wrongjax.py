"""A fault planted in jax.vmap: lanes confused."""

import plumb_jax


class WrongJAX(plumb_jax.JAX):
    def lanes(self, t, dim):
        return plumb_jax.jnp.roll(super().lanes(t, dim), 1, dim)


adapter = WrongJAX
