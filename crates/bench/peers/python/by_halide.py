"""The benchmarks over images with Halide: strips of rows on all cores, vectors of 16, what rows share computed once for a strip."""
import halide as hl
import numpy as np

import whole_arrays

LANES = 16
x, y, c, strip, row = (hl.Var(name) for name in ("x", "y", "c", "strip", "row"))


def number(value):
    return hl.f32(float(value))


def finished(function, result):
    buffer = hl.Buffer(result)
    function.compile_jit()

    def run():
        function.realize(buffer)
        return result

    return run


def in_strips(function, rows):
    function.split(y, strip, row, rows).parallel(strip).vectorize(x, LANES)


def held(image):
    h, w = image.shape
    buffer, function = hl.Buffer(image), hl.Func("held")
    function[x, y] = buffer[hl.clamp(x, 0, w - 1), hl.clamp(y, 0, h - 1)]
    return function


def taps(function, weights, dx, dy):
    radius = len(weights) // 2
    sum = function[x, y] * number(weights[radius])
    for d in range(1, radius + 1):
        sum += (function[x - d * dx, y - d * dy] + function[x + d * dx, y + d * dy]) * number(weights[radius + d])
    return sum


def life(cells):
    h, w = cells.shape
    buffer, around, rows, result = hl.Buffer(cells), hl.Func("around"), hl.Func("rows"), hl.Func("life")
    around[x, y] = buffer[(x + w) % w, (y + h) % h]
    rows[x, y] = around[x, y - 1] + around[x, y] + around[x, y + 1]
    sum = rows[x - 1, y] + rows[x, y] + rows[x + 1, y]
    result[x, y] = hl.select(sum == number(3), number(1), hl.select(sum == number(4), around[x, y], number(0)))
    in_strips(result, 32)
    around.compute_at(result, strip).vectorize(x, LANES)
    rows.compute_at(result, row).vectorize(x, LANES)
    return finished(result, np.empty_like(cells))


def convolution(image):
    source, down, result = held(image), hl.Func("down"), hl.Func("convolution")
    weights = whole_arrays.bell(2, 1)
    down[x, y] = taps(source, weights, 0, 1)
    result[x, y] = taps(down, weights, 1, 0)
    in_strips(result, 32)
    down.compute_at(result, row).vectorize(x, LANES)
    source.compute_at(result, strip).vectorize(x, LANES)
    return finished(result, np.empty_like(image))


def rotation(image):
    n = image.shape[-1]
    buffer, result = hl.Buffer(image), hl.Func("rotation")
    sin, cos = number(np.sin(whole_arrays.ANGLE)), number(np.cos(whole_arrays.ANGLE))
    centre, most = number((n - 1) * 0.5), number(n - 1)
    along, down = hl.f32(x) - centre, hl.f32(y) - centre
    from_x, from_y = along * cos + down * sin + centre, down * cos - along * sin + centre
    inside = (from_x >= number(0)) & (from_x <= most) & (from_y >= number(0)) & (from_y <= most)
    x0, y0 = (hl.clamp(hl.i32(hl.floor(at)), 0, n - 2) for at in (from_x, from_y))
    ax, ay = from_x - hl.f32(x0), from_y - hl.f32(y0)
    upper = buffer[x0, y0, c] * (number(1) - ax) + buffer[x0 + 1, y0, c] * ax
    lower = buffer[x0, y0 + 1, c] * (number(1) - ax) + buffer[x0 + 1, y0 + 1, c] * ax
    result[x, y, c] = hl.select(inside, upper * (number(1) - ay) + lower * ay, number(0))
    result.bound(c, 0, 3).reorder(c, x, y).unroll(c)
    in_strips(result, 16)
    return finished(result, np.empty_like(image))


def corner(image):
    h, w = image.shape
    source, down, smooth = held(image), hl.Func("down"), hl.Func("smooth")
    down[x, y] = taps(source, whole_arrays.bell(2, 1), 0, 1)
    smooth[x, y] = taps(down, whole_arrays.bell(2, 1), 1, 0)

    def clamped(function):
        result = hl.Func("clamped")
        result[x, y] = function[hl.clamp(x, 0, w - 1), hl.clamp(y, 0, h - 1)]
        return result

    edge = clamped(smooth)
    dx, dy = (edge[x + 1, y] - edge[x - 1, y]) * number(0.5), (edge[x, y + 1] - edge[x, y - 1]) * number(0.5)
    stages, sums = [], []
    for product in (dx * dx, dx * dy, dy * dy):
        function, columns = hl.Func("product"), hl.Func("columns")
        function[x, y] = product
        border = clamped(function)
        columns[x, y] = taps(border, whole_arrays.bell(4, 2), 0, 1)
        sums.append(taps(columns, whole_arrays.bell(4, 2), 1, 0))
        stages.append((function, border, columns))
    a, m, b = sums
    mean, root = (a + b) * number(0.5), hl.sqrt((a - b) * (a - b) * number(0.25) + m * m)
    result = hl.Func("corner")
    result[x, y] = number(0.5) * (mean + root) + (mean - root)
    in_strips(result, 50)
    for function, border, columns in stages:
        columns.compute_at(result, row).vectorize(x, LANES)
        function.compute_at(result, strip).vectorize(x, LANES)
        border.compute_at(result, strip).vectorize(x, LANES)
    for function in (edge, smooth, source):
        function.compute_at(result, strip).vectorize(x, LANES)
    down.compute_at(smooth, y).vectorize(x, LANES)
    return finished(result, np.empty_like(image))
