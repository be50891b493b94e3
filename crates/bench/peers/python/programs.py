"""The inputs of the group `programs`, the same as those of the benchmarks."""
import os

import numpy as np

ON_GPU = os.environ.get("BROADLOOM_PEER_DEVICE") == "gpu"
MEANS, KEYS, BINS, LENGTH, WINDOW, FILTERED, DAYS = 16, 10_000, 1_000_000, 1024, 64, 12, 250


def inputs(numbers, units):
    """The inputs of each program, from the functions that make random numbers."""

    def below(count, seed, most):
        return (numbers(count, seed) % np.uint32(most)).astype(np.int32)

    def logistic(n):
        x = units(n * 32, 3, -0.5, 0.5).reshape(n, 32)
        return x, (x[:, 0] + x[:, 1] * 2 - x[:, 5] > 0.1).astype(np.float32)

    def page_rank(n):
        h = numbers(n, 5)
        lengths = (h >> np.uint32(8)) % np.uint32(14)
        lengths = np.where((h & np.uint32(255)) == 0, lengths * np.uint32(138), lengths).astype(np.int64)
        sources = below(int(lengths.sum()), 6, n)
        degrees = np.bincount(sources, minlength=n).astype(np.float32)
        inverse = np.where(degrees > 0, 1 / np.maximum(degrees, 1), 0).astype(np.float32)
        rows = np.repeat(np.arange(n, dtype=np.int32), lengths)
        return rows, sources, inverse, (degrees == 0).astype(np.float32)

    def search(n):
        degrees = (numbers(n, 17) % np.uint32(17)).astype(np.int64)
        degrees[0] = 8
        starts = np.repeat(np.arange(n, dtype=np.int32), degrees)
        return starts, below(len(starts), 18, n), n

    def cholesky(n):
        i, j = np.mgrid[0:8, 0:8]
        lower = np.maximum(i, j) * 8 + np.minimum(i, j)
        values = units(n * 64, 13, -0.5, 0.5).reshape(n, 64)[:, lower.ravel()].reshape(n, 8, 8)
        return (values + 4 * np.eye(8, dtype=np.float32),)

    image = lambda n: (np.arange(n)[:, None] // 7 * 13 + np.arange(n)[None, :] // 11 * 29).astype(np.uint32)
    heat = lambda n: (units(n * n, 1).reshape(n, n),)
    kmeans = lambda n: (units(n * 8, 2).reshape(n, 8),)
    batched = lambda n: tuple(units(n * 256, seed, -0.5, 0.5).reshape(n, 16, 16) for seed in (10, 11))
    selected = lambda n: (units(n, 16),)
    return {
        "heat": heat,
        "heat_by4": heat,
        "heat_large": heat,
        "kmeans": kmeans,
        "kmeans_mat": kmeans,
        "kmeans_hot": kmeans,
        "kmeans_hot_mat": kmeans,
        "logistic": logistic,
        "logistic_sum": logistic,
        "edges": lambda n: ((image(n) + numbers(n * n, 4).reshape(n, n) % np.uint32(20)).astype(np.uint8),),
        "page_rank": page_rank,
        "gradients": lambda n: (units(n * n, 7, -0.5, 0.5).reshape(n, n),),
        "run_lengths": lambda n: (np.repeat(below((n + 4) // 5, 8, 5), 5)[:n].astype(np.uint8),),
        "compact": lambda n: (units(n, 9),),
        "bodies": lambda n: tuple(units(n, seed) for seed in (20, 21, 22, 23)),
        "batched": batched,
        "batched_mid": batched,
        "search_dense": search,
        "softmax": lambda n: (units(n * n, 12, 0, 8).reshape(n, n),),
        "layer_norm": lambda n: (units(n * n, 13).reshape(n, n), units(n, 14), units(n, 15)),
        "top_k": selected,
        "sort_floats": selected,
        "argsort": selected,
        "column_moments": lambda n: (units(n * 31, 19).reshape(n, 31),),
        "covariance": lambda n: (units(n * 16, 20).reshape(n, 16),),
        "group_by": lambda n: (below(n, 21, KEYS), units(n, 22)),
        "bin_sums": lambda n: (below(n, 23, 16), below(n, 23, max(n // 10, 1)), units(n, 24), max(n // 10, 1)),
        "many_bins": lambda n: (below(n, 25, BINS),),
        "short_rows": lambda n: (units(n * 16, 17),),
        "power": lambda n: (units(n * n, 12).reshape(n, n),),
        "cholesky": cholesky,
        "fourier": lambda n: (units(n * LENGTH, 26, -1, 1).reshape(n, LENGTH),),
        "rolling": lambda n: (units(n, 27, -1, 1).astype(np.float64),),
        "kalman": lambda n: (units(n * FILTERED, 28, -1, 1).reshape(FILTERED, n),),
        "drawdown": lambda n: (units(n * DAYS, 29, -0.02, 0.021).reshape(n, DAYS),),
        "components": lambda n: (below(n, 3, n), below(n, 4, n)),
    }


def laplacian(pad, x):
    p = pad(x)
    return x * 4 - p[:-2, 1:-1] - p[2:, 1:-1] - p[1:-1, :-2] - p[1:-1, 2:]


def heat_step(pad, u):
    p = pad(u)
    return u + ((p[:-2, 1:-1] + p[2:, 1:-1] + p[1:-1, :-2] + p[1:-1, 2:]) - u * 4) * 0.1


def gradients(xp_zeros, pad, right):
    x, r, p = xp_zeros(right), right, right
    square = (r * r).sum()
    for _ in range(10):
        along = laplacian(pad, p)
        alpha = square / (p * along).sum()
        x, r = x + p * alpha, r - along * alpha
        after = (r * r).sum()
        p, square = r + p * (after / square), after
    return x


def kalman(seen):
    at = speed = p01 = seen[0] * 0
    p00 = p11 = at + 1
    for z in seen:
        at = at + speed * 0.1
        p00, p01, p11 = p00 + p01 * 0.2 + p11 * 0.01 + 0.01, p01 + p11 * 0.1, p11 + 0.01
        off, whole = z - at, p00 + 0.5
        k0, k1 = p00 / whole, p01 / whole
        at, speed = at + k0 * off, speed + k1 * off
        p11, p01, p00 = p11 - k1 * p01, p01 - k0 * p01, p00 - k0 * p00
    return at, speed


def bodies(sqrt, px, py, pz, m):
    p, v = [px, py, pz], [px * 0, py * 0, pz * 0]
    for _ in range(2):
        d = [q[None, :] - q[:, None] for q in p]
        r2 = d[0] * d[0] + d[1] * d[1] + d[2] * d[2] + 1e-3
        w = m[None, :] / (r2 * sqrt(r2))
        v = [v[k] + (d[k] * w).sum(1) * 0.001 for k in range(3)]
        p = [p[k] + v[k] * 0.001 for k in range(3)]
    return v[0]


def sobel(sqrt, p):
    h, w = p.shape[0] - 2, p.shape[1] - 2
    at = lambda i, j: p[1 + i : 1 + i + h, 1 + j : 1 + j + w]
    gx = at(-1, 1) - at(-1, -1) + (at(0, 1) - at(0, -1)) * 2 + at(1, 1) - at(1, -1)
    gy = at(1, -1) - at(-1, -1) + (at(1, 0) - at(-1, 0)) * 2 + at(1, 1) - at(-1, 1)
    return sqrt(gx * gx + gy * gy)
