"""The benchmarks as people write them with JAX, compiled by `jit` where the size of the result is known."""
import jax
import jax.numpy as jnp
import numpy as np

import whole_arrays
from programs_jax import *


class xp:
    abs, exp, log, sqrt, where, floor, clip = jnp.abs, jnp.exp, jnp.log, jnp.sqrt, jnp.where, jnp.floor, jnp.clip
    zero = np.float32(0)
    pad = staticmethod(lambda x, by, how: jnp.pad(x, by, mode={"mirror": "reflect"}.get(how, how)))
    as_float = staticmethod(lambda x: x.astype(jnp.float32))
    as_int = staticmethod(lambda x: x.astype(jnp.int32))
    int_range = staticmethod(lambda n: jnp.arange(n, dtype=jnp.int32))
    float_range = staticmethod(lambda n: jnp.arange(n, dtype=jnp.float32))


wait = jax.block_until_ready


def compiled(function):
    def make(*inputs):
        inputs = [jnp.asarray(x) for x in inputs]
        jitted = jax.jit(function)
        return lambda: jitted(*inputs)

    return make


def whole(name):
    return compiled(lambda *inputs: getattr(whole_arrays, name)(xp, *inputs))


for name in ["black_scholes", "life", "convolution", "rotation", "demosaic", "corner", "stereo"]:
    globals()[name] = whole(name)

sum_abs = compiled(lambda x: jnp.abs(x).sum())
dot = matrix_vector = matrix_product = compiled(lambda x, y: x @ y)
scan = compiled(lambda x: jnp.cumsum(x, dtype=jnp.uint32))
sort = sort_rows = compiled(jnp.sort)
histogram = compiled(lambda x: jnp.bincount(x, length=256))


def segmented_sum(x, offsets):
    count = len(offsets) - 1
    ids = jnp.asarray(np.repeat(np.arange(count, dtype=np.int32), np.diff(offsets)))
    summed = compiled(lambda x, ids: jax.ops.segment_sum(x, ids, num_segments=count, indices_are_sorted=True))
    return summed(x, ids)


def pack(x):
    x = jnp.asarray(x)
    return lambda: x[x > 0.5]
