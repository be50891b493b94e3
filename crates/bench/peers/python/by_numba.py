"""The benchmarks as people write them with Numba: loops, compiled for all cores."""
import math

import numba
import numpy as np
from numba import njit, prange

import whole_arrays
from peer import THREADS

numba.set_num_threads(THREADS)
FAST = dict(parallel=True, fastmath=True)
BELL5 = np.array(whole_arrays.bell(2, 1), np.float32)
BELL9 = np.array(whole_arrays.bell(4, 2), np.float32)
ZERO, ONE, HALF = np.float32(0), np.float32(1), np.float32(0.5)


def into(function, *extra):
    """A function of inputs and a result like the first of them."""

    def make(*inputs):
        result = np.empty_like(inputs[0])

        def run():
            function(*inputs, *extra, result)
            return result

        return run

    return make


@njit(**FAST)
def sum_abs_loop(x):
    total = ZERO
    for i in prange(x.size):
        total += abs(x[i])
    return total


@njit(**FAST)
def dot_loop(x, y):
    total = ZERO
    for i in prange(x.size):
        total += x[i] * y[i]
    return total


def sum_abs(x):
    return lambda: sum_abs_loop(x)


def dot(x, y):
    return lambda: dot_loop(x, y)


@njit(**FAST)
def matrix_vector_loop(matrix, vector, result):
    for i in prange(matrix.shape[0]):
        total = ZERO
        for j in range(matrix.shape[1]):
            total += matrix[i, j] * vector[j]
        result[i] = total


def matrix_vector(matrix, vector):
    result = np.empty_like(vector)

    def run():
        matrix_vector_loop(matrix, vector, result)
        return result

    return run


@njit(**FAST)
def black_scholes_loop(price, strike, years, call, put):
    rate, volatility = np.float32(0.02), np.float32(0.3)
    for i in prange(price.size):
        spread = volatility * math.sqrt(years[i])
        d1 = (math.log(price[i] / strike[i]) + (rate + HALF * volatility * volatility) * years[i]) / spread
        n1, n2 = normal(d1), normal(d1 - spread)
        present = strike[i] * math.exp(-rate * years[i])
        call[i] = price[i] * n1 - present * n2
        put[i] = present * (ONE - n2) - price[i] * (ONE - n1)


@njit(fastmath=True, inline="always")
def normal(d):
    k = ONE / (ONE + np.float32(0.2316419) * abs(d))
    terms = np.float32(1.781477937) + k * (np.float32(-1.821255978) + k * np.float32(1.330274429))
    terms = np.float32(0.31938153) + k * (np.float32(-0.356563782) + k * terms)
    below = np.float32(0.3989423) * math.exp(-HALF * d * d) * (k * terms)
    return ONE - below if d > 0 else below


def black_scholes(price, strike, years):
    call, put = np.empty_like(price), np.empty_like(price)

    def run():
        black_scholes_loop(price, strike, years, call, put)
        return call, put

    return run


@njit(parallel=True)
def scan_loop(x, threads, result):
    n = x.size
    sums = np.zeros(threads, np.uint32)
    for t in prange(threads):
        total = np.uint32(0)
        for i in range(n * t // threads, n * (t + 1) // threads):
            total += x[i]
        sums[t] = total
    for t in prange(threads):
        total = np.uint32(0)
        for before in range(t):
            total += sums[before]
        for i in range(n * t // threads, n * (t + 1) // threads):
            total += x[i]
            result[i] = total


scan = into(scan_loop, THREADS)


@njit(**FAST)
def segmented_sum_loop(x, offsets, result):
    for s in prange(result.size):
        total = ZERO
        for i in range(offsets[s], offsets[s + 1]):
            total += x[i]
        result[s] = total


def segmented_sum(x, offsets):
    result = np.empty(len(offsets) - 1, np.float32)

    def run():
        segmented_sum_loop(x, offsets, result)
        return result

    return run


@njit(parallel=True)
def sort_loop(x, other, threads, result):
    n = x.size
    counts = np.zeros((threads, 2048), np.int64)
    for digit in range(3):
        source = x if digit == 0 else (result if digit == 1 else other)
        target = other if digit == 1 else result
        shift = np.uint32(11 * digit)
        mask, flip = np.uint32(1023 if digit == 2 else 2047), np.uint32(512 if digit == 2 else 0)
        for t in prange(threads):
            counts[t, :] = 0
            for i in range(n * t // threads, n * (t + 1) // threads):
                counts[t, ((source[i] >> shift) & mask) ^ flip] += 1
        total = 0
        for k in range(2048):
            for t in range(threads):
                count = counts[t, k]
                counts[t, k] = total
                total += count
        for t in prange(threads):
            for i in range(n * t // threads, n * (t + 1) // threads):
                k = ((source[i] >> shift) & mask) ^ flip
                target[counts[t, k]] = source[i]
                counts[t, k] += 1


def sort(x):
    keys = x.view(np.uint32)
    other, result = np.empty_like(keys), np.empty_like(keys)

    def run():
        sort_loop(keys, other, THREADS, result)
        return result.view(np.int32)

    return run


@njit(parallel=True)
def histogram_loop(x, threads):
    n = x.size
    counts = np.zeros((threads, 4, 256), np.int64)
    for t in prange(threads):
        own = counts[t]
        first, last = n * t // threads, n * (t + 1) // threads
        whole = first + (last - first) // 4 * 4
        for i in range(first, whole, 4):
            own[0, x[i]] += 1
            own[1, x[i + 1]] += 1
            own[2, x[i + 2]] += 1
            own[3, x[i + 3]] += 1
        for i in range(whole, last):
            own[0, x[i]] += 1
    return counts.sum(0).sum(0)


def histogram(x):
    return lambda: histogram_loop(x, THREADS)


@njit(parallel=True)
def pack_loop(x, threads, result):
    n = x.size
    counts = np.zeros(threads, np.int64)
    for t in prange(threads):
        count = 0
        for i in range(n * t // threads, n * (t + 1) // threads):
            count += x[i] > HALF
        counts[t] = count
    for t in prange(threads):
        place = counts[:t].sum()
        for i in range(n * t // threads, n * (t + 1) // threads):
            if x[i] > HALF:
                result[place] = x[i]
                place += 1
    return counts.sum()


def pack(x):
    result = np.empty_like(x)
    return lambda: result[: pack_loop(x, THREADS, result)]


@njit(**FAST)
def life_loop(x, result):
    h, w = x.shape
    for y in prange(h):
        above, own, below = x[y - 1 if y else h - 1], x[y], x[y + 1 if y + 1 < h else 0]
        rows = np.empty(w + 2, np.float32)
        for i in range(w):
            rows[i + 1] = above[i] + own[i] + below[i]
        rows[0], rows[w + 1] = rows[w], rows[1]
        for i in range(w):
            around = rows[i] + rows[i + 1] + rows[i + 2]
            result[y, i] = ONE if around == 3 else (own[i] if around == 4 else ZERO)


life = into(life_loop)


@njit(inline="always")
def held(place, most):
    return min(max(place, 0), most)


@njit(**FAST)
def convolution_loop(x, weights, result):
    h, w = x.shape
    k0, k1, k2 = weights[0], weights[1], weights[2]
    for y in prange(h):
        a, b, c = x[held(y - 2, h - 1)], x[held(y - 1, h - 1)], x[y]
        d, e = x[held(y + 1, h - 1)], x[held(y + 2, h - 1)]
        v = np.empty(w + 4, np.float32)
        for i in range(w):
            v[i + 2] = (a[i] + e[i]) * k0 + (b[i] + d[i]) * k1 + c[i] * k2
        v[0] = v[1] = v[2]
        v[w + 2] = v[w + 3] = v[w + 1]
        for i in range(w):
            result[y, i] = (v[i] + v[i + 4]) * k0 + (v[i + 1] + v[i + 3]) * k1 + v[i + 2] * k2


convolution = into(convolution_loop, BELL5)


@njit(**FAST)
def rotation_loop(x, sin, cos, result):
    planes, n, _ = x.shape
    centre, most = np.float32((n - 1) * 0.5), np.float32(n - 1)
    for y in prange(n):
        down = np.float32(y) - centre
        for i in range(n):
            along = np.float32(i) - centre
            from_x, from_y = along * cos + down * sin + centre, down * cos - along * sin + centre
            if from_x >= 0 and from_x <= most and from_y >= 0 and from_y <= most:
                x0, y0 = min(int(from_x), n - 2), min(int(from_y), n - 2)
                ax, ay = from_x - np.float32(x0), from_y - np.float32(y0)
                for p in range(planes):
                    upper = x[p, y0, x0] * (ONE - ax) + x[p, y0, x0 + 1] * ax
                    lower = x[p, y0 + 1, x0] * (ONE - ax) + x[p, y0 + 1, x0 + 1] * ax
                    result[p, y, i] = upper * (ONE - ay) + lower * ay
            else:
                for p in range(planes):
                    result[p, y, i] = ZERO


rotation = into(rotation_loop, np.float32(math.sin(whole_arrays.ANGLE)), np.float32(math.cos(whole_arrays.ANGLE)))


@njit(**FAST)
def demosaic_loop(x, result):
    h, w = x.shape
    two, four, five, six = np.float32(2), np.float32(4), np.float32(5), np.float32(6)
    eighth, more = np.float32(0.125), np.float32(1.5)
    for y in prange(h):
        p = np.empty((5, w + 4), np.float32)
        for j in range(5):
            s = abs(y + j - 2)
            s = 2 * h - 2 - s if s >= h else s
            for i in range(w):
                p[j, i + 2] = x[s, i]
            p[j, 1], p[j, 0], p[j, w + 2], p[j, w + 3] = x[s, 1], x[s, 2], x[s, w - 2], x[s, w - 3]
        a, b, c, d, e = p[0], p[1], p[2], p[3], p[4]
        same, other = result[2 if y & 1 else 0, y], result[0 if y & 1 else 2, y]
        green = result[1, y]
        for i in range(w):
            own, above_below, beside = c[i + 2], b[i + 2] + d[i + 2], c[i + 1] + c[i + 3]
            diagonal = b[i + 1] + b[i + 3] + d[i + 1] + d[i + 3]
            far_up_down, far_beside = a[i + 2] + e[i + 2], c[i] + c[i + 4]
            is_colour = (i & 1) == (y & 1)
            g = (four * own + two * (above_below + beside) - far_up_down - far_beside) * eighth
            along = (five * own + four * beside - diagonal - far_beside + HALF * far_up_down) * eighth
            down = (five * own + four * above_below - diagonal - far_up_down + HALF * far_beside) * eighth
            opposite = (six * own + two * diagonal - more * (far_up_down + far_beside)) * eighth
            same[i] = own if is_colour else along
            green[i] = g if is_colour else own
            other[i] = opposite if is_colour else down


def demosaic(x):
    result = np.empty((3,) + x.shape, np.float32)

    def run():
        demosaic_loop(x, result)
        return result

    return run
