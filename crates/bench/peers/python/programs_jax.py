"""The group `programs` with JAX, each program as one compiled function where sizes are known."""
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

import programs
from programs import BINS, KEYS, MEANS, WINDOW

jax.config.update("jax_default_matmul_precision", "highest")
edge = lambda x: jnp.pad(x, 1, mode="edge")
zeros = lambda x: jnp.pad(x, 1)


def run(function, *statics):
    def make(*inputs):
        arrays = [x if isinstance(x, int) else jnp.asarray(x) for x in inputs]
        compiled = jax.jit(function, static_argnums=[k for k, x in enumerate(inputs) if isinstance(x, int)])
        return lambda: compiled(*arrays)

    return make


def repeated(times, step):
    return run(lambda x: lax.fori_loop(0, times, lambda _, x: step(x), x))


heat = heat_by4 = heat_large = repeated(20, lambda u: programs.heat_step(edge, u).astype(jnp.float32))
near = lambda p, c: jnp.argmin(((p[:, None, :] - c[None]) ** 2).sum(-1), 1)
near_mat = lambda p, c: jnp.argmin((c * c).sum(1)[None] - 2 * (p @ c.T), 1)


def means_sum(p, a):
    counts = jnp.bincount(a, length=MEANS).astype(jnp.float32)
    return jax.ops.segment_sum(p, a, MEANS) / jnp.maximum(counts, 1)[:, None]


def means_hot(p, a):
    hot = jax.nn.one_hot(a, MEANS, dtype=jnp.float32, axis=0)
    return (hot @ p) / jnp.maximum(hot.sum(1), 1)[:, None]


def clusters(near, means):
    return run(lambda p: lax.fori_loop(0, 2, lambda _, c: means(p, near(p, c)), p[:MEANS]))


kmeans, kmeans_mat = clusters(near, means_sum), clusters(near_mat, means_sum)
kmeans_hot, kmeans_hot_mat = clusters(near, means_hot), clusters(near_mat, means_hot)
sigmoid = lambda z: 1 / (jnp.exp(-z) + 1)


def descent(gradient):
    step = lambda x, y: lambda _, w: w - gradient(x, y, w) / np.float32(x.shape[0]) * np.float32(0.5)
    return run(lambda x, y: lax.fori_loop(0, 5, step(x, y), jnp.zeros(32, jnp.float32)))


logistic = descent(lambda x, y, w: (sigmoid(x @ w) - y) @ x)
logistic_sum = descent(lambda x, y, w: (x * (sigmoid((x * w).sum(1)) - y)[:, None]).sum(0))


@run
def edges(image):
    weights = np.array([0.0625, 0.25, 0.375, 0.25, 0.0625], np.float32)
    x = image.astype(jnp.float32)
    for axis in (1, 0):
        p = jnp.pad(x, [(2, 2) if k == axis else (0, 0) for k in range(2)], mode="edge")
        x = sum(lax.slice_in_dim(p, k, k + x.shape[axis], axis=axis) * weights[k] for k in range(5))
    found = jnp.clip(programs.sobel(jnp.sqrt, edge(x)), 0, 255).astype(jnp.uint8)
    return jnp.bincount(found.ravel(), length=256)


@run
def page_rank(rows, sources, inverse, dangling):
    n = inverse.shape[0]

    def step(_, r):
        sums = jax.ops.segment_sum((r * inverse)[sources], rows, n, indices_are_sorted=True)
        return ((sums + (r * dangling).sum() / n) * 0.85 + 0.15 / n).astype(jnp.float32)

    return lax.fori_loop(0, 3, step, jnp.full(n, 1 / n, jnp.float32))


gradients = run(lambda right: programs.gradients(jnp.zeros_like, zeros, right))


def run_lengths(a):
    a = jnp.asarray(a)
    first = lambda a: jnp.concatenate([jnp.ones(1, bool), a[1:] != a[:-1]])
    count = jax.jit(lambda a: first(a).sum())
    lengths = jax.jit(lambda a, k: jnp.diff(jnp.nonzero(first(a), size=k)[0], append=a.shape[0]), static_argnums=1)
    return lambda: lengths(a, int(count(a)))


def compact(x):
    x = jnp.asarray(x)
    return lambda: x[x > 0.5]


bodies = run(lambda *inputs: programs.bodies(jnp.sqrt, *inputs).astype(jnp.float32))
batched = batched_mid = run(lambda a, b: ((a @ b) * np.float32(0.6)) @ b * np.float32(0.6))


@run
def search_dense(starts, ends, n):
    def body(state):
        level, depth, _ = state
        to = jnp.where(level[starts] == depth, ends, n)
        fresh = (level < 0) & jnp.zeros(n, bool).at[to].set(True, mode="drop")
        return jnp.where(fresh, depth + 1, level), depth + 1, fresh.any()

    first = (jnp.full(n, -1, jnp.int32).at[0].set(0), jnp.int32(0), jnp.bool_(True))
    return lax.while_loop(lambda state: state[2], body, first)[0]


softmax = run(lambda x: jax.nn.softmax(x, 1))


@run
def layer_norm(x, gain, shift):
    off = x - x.mean(1, keepdims=True)
    return off * lax.rsqrt((off * off).mean(1, keepdims=True) + np.float32(1e-5)) * gain + shift


top_k = run(lambda x: lax.top_k(x, 100)[0])
sort_floats = run(jnp.sort)
argsort = run(jnp.argsort)
column_moments = run(lambda x: (x.var(0), x.mean(0), x.max(0)))


@run
def covariance(x):
    off = x - x.mean(0)
    return off.T @ off / np.float32(x.shape[0])


@run
def group_by(keys, x):
    sums = jax.ops.segment_sum(x, keys, KEYS)
    return sums, jnp.bincount(keys, length=KEYS), jnp.maximum(jax.ops.segment_max(x, keys, KEYS), 0)


bin_sums = run(lambda few, many, x, n: (jax.ops.segment_sum(x, few, 16), jax.ops.segment_sum(x, many, n)))
many_bins = run(lambda keys: jnp.bincount(keys, length=BINS))
short_rows = run(lambda x: tuple(x.reshape(-1, width).sum(1) for width in (4, 8, 16)))


def power_step(a, x):
    y = (a @ x) @ a
    return y / jnp.sqrt((y * y).sum())


power = run(lambda a: lax.fori_loop(0, 3, lambda _, x: power_step(a, x), jnp.ones(a.shape[0], jnp.float32)))
cholesky = run(jnp.linalg.cholesky)


@run
def fourier(x):
    y = jnp.fft.fft(x)
    return y.real, y.imag


@run
def variances(x):
    over = lambda s: (s - jnp.concatenate([jnp.zeros(WINDOW), s[:-WINDOW]])) / WINDOW
    mean = over(jnp.cumsum(x))
    return (over(jnp.cumsum(x * x)) - mean * mean).astype(jnp.float32)


def rolling(x):
    # Sums of many numbers need 64 bits.
    jax.config.update("jax_enable_x64", True)
    return variances(x)


kalman = run(lambda seen: programs.kalman(list(seen)))


@run
def drawdown(x):
    level = jnp.cumsum(x, 1)
    return (lax.cummax(level, axis=1) - level).max(1), level[:, -1]


@run
def components(starts, ends):
    def step(_, label):
        a, b = label[starts], label[ends]
        low = jnp.minimum(a, b)
        met = label.at[a].min(low).at[b].min(low)
        return met[met]

    return lax.fori_loop(0, 8, step, jnp.arange(starts.shape[0], dtype=jnp.int32))
