"""The benchmarks over images with Halide: strips of rows on all cores, vectors of 16, what rows share computed once for a strip."""
import halide as hl
import numpy as np

import whole_arrays

LANES = 16
x, y, c, strip, row, tile, column = (hl.Var(name) for name in ("x", "y", "c", "strip", "row", "tile", "column"))


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


def in_tiles(function, columns, rows):
    """What tiles share is computed again: that takes less time than to keep strips of all stages, which no cache of a core holds."""
    function.tile(x, y, tile, strip, column, row, columns, rows).reorder(column, row, tile, strip, c)
    function.parallel(c).parallel(strip).vectorize(column, LANES)


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


def separable(image):
    return convolution(image)


def colour(image, index):
    """A function of pixels whose places outside of the image follow a rule."""
    h, w = image.shape[-2:]
    buffer, function = hl.Buffer(image), hl.Func("edges")
    function[x, y, c] = buffer[hl.clamp(index(x, w), 0, w - 1), hl.clamp(index(y, h), 0, h - 1), c]
    return function


def as_it_is(place, _):
    return place


def mirrored(place, n):
    size = hl.i32(hl.abs(place))
    return (n - 1) - hl.i32(hl.abs((n - 1) - size))


def soft(value, threshold):
    size = hl.max(hl.abs(value) - number(threshold), number(0))
    return hl.select(value > number(0), size, -size)


def degrain(image):
    h, w = image.shape[-2:]
    source, stages, parts = colour(image, as_it_is), [], None
    low = source
    for level in range(4):
        r, held_low = 1 << level, source
        if level:
            held_low = hl.Func(f"low{level}")
            held_low[x, y, c] = low[hl.clamp(x, 0, w - 1), hl.clamp(y, 0, h - 1), c]
        high = hl.Func(f"high{level}")
        high[x, y, c] = (held_low[x, y, c] - (held_low[x + r, y, c] + held_low[x - r, y, c]) * number(0.5)) * number(0.5)

        def rest(dy, a=held_low, b=high):
            return a[x, y + dy, c] - b[x, y + dy, c]

        hh = (high[x, y, c] - (high[x, y + r, c] + high[x, y - r, c]) * number(0.5)) * number(0.5)
        lh = (rest(0) - (rest(r) + rest(-r)) * number(0.5)) * number(0.5)
        low, part = hl.Func(f"next{level}"), hl.Func(f"part{level}")
        low[x, y, c] = rest(0) - lh
        part[x, y, c] = soft(hh, 0.02 / r) + soft(lh, 0.02 / r) + soft(high[x, y, c] - hh, 0.02 / r)
        stages += [held_low, high, low]
        parts = part[x, y, c] if parts is None else parts + part[x, y, c]
    result = hl.Func("degrain")
    result[x, y, c] = parts + low[x, y, c]
    in_tiles(result, min(w, 192), min(h, 64))
    for stage in stages:
        stage.compute_at(result, tile).vectorize(x, LANES)
    return finished(result, np.empty_like(image))


def diffusion(image):
    h, w = image.shape[-2:]
    source, buffer, stages = colour(image, as_it_is), hl.Buffer(image), []
    stages.append(source)

    def doubled(function, along, name):
        def at(f, d):
            return f[x + d, y, c] if along else f[x, y + d, c]

        sums = []
        for step in (1, 2, 4, 8):
            sum = hl.Func(f"{name}{step}")
            before = sums[-1] if sums else function
            sum[x, y, c] = at(before, 0) + at(before, step)
            sums.append(sum)
        return (at(sums[-1], -8) + at(function, 8)) * number(1 / 17), sums

    for turn in range(2):
        along, down, held_down = hl.Func(f"along{turn}"), hl.Func(f"down{turn}"), hl.Func(f"held{turn}")
        mean, rows = doubled(source, True, f"rows{turn}_")
        along[x, y, c] = mean
        mean, columns = doubled(along, False, f"columns{turn}_")
        down[x, y, c] = mean
        held_down[x, y, c] = down[hl.clamp(x, 0, w - 1), hl.clamp(y, 0, h - 1), c]
        stages += [along, down, held_down] + columns
        for sum in rows:
            sum.compute_at(along, y).vectorize(x, LANES)
        source = held_down
    taps = [(4 * i, 4 * j, np.exp(-np.hypot(i, j) / 1.5)) for j in range(-3, 4) for i in range(-3, 4) if i * i + j * j <= 10]
    total = sum_of(weight for _, _, weight in taps)
    spread = None
    for dx, dy, weight in taps:
        term = source[x + dx, y + dy, c] * number(weight / total)
        spread = term if spread is None else spread + term
    result = hl.Func("diffusion")
    result[x, y, c] = buffer[x, y, c] * number(0.5) + spread * number(0.5)
    in_tiles(result, min(w, 256), min(h, 128))
    for stage in stages:
        stage.compute_at(result, tile).vectorize(x, LANES)
    return finished(result, np.empty_like(image))


def sum_of(values):
    total = 0.0
    for value in values:
        total += value
    return total


def blurred_colour(image, sigma):
    radius = int(np.ceil(4.3 * sigma))
    bell = np.exp(-0.5 * (np.arange(-radius, radius + 1) / sigma) ** 2)
    bell /= bell.sum()
    source, down, along = colour(image, mirrored), hl.Func("down"), hl.Func("along")

    def taps_of(function, dx, dy):
        sum = function[x, y, c] * number(bell[radius])
        for d in range(1, radius + 1):
            sum += (function[x - d * dx, y - d * dy, c] + function[x + d * dx, y + d * dy, c]) * number(bell[radius + d])
        return sum

    down[x, y, c] = taps_of(source, 0, 1)
    along[x, y, c] = taps_of(down, 1, 0)
    return source, down, along


def gaussian(image):
    source, down, result = blurred_colour(image, 2.0)
    result.split(y, strip, row, 32).parallel(c).parallel(strip).vectorize(x, LANES)
    down.compute_at(result, row).vectorize(x, LANES)
    source.compute_at(result, strip).vectorize(x, LANES)
    return finished(result, np.empty_like(image))


def unsharp(image):
    source, down, along = blurred_colour(image, 1.5)
    result = hl.Func("unsharp")
    result[x, y, c] = source[x, y, c] * number(2) - along[x, y, c]
    result.split(y, strip, row, 32).parallel(c).parallel(strip).vectorize(x, LANES)
    down.compute_at(result, row).vectorize(x, LANES)
    source.compute_at(result, strip).vectorize(x, LANES)
    return finished(result, np.empty_like(image))


def nlmeans(image):
    """As in Halide's own application: differences, sums along both axes of a patch, weighed sums over the search."""
    dx, dy = hl.Var("dx"), hl.Var("dy")
    source, squares, rows, weights = colour(image, mirrored), hl.Func("squares"), hl.Func("rows"), hl.Func("weights")
    difference = source[x, y, c] - source[x + dx, y + dy, c]
    squares[x, y, c, dx, dy] = difference * difference
    rows[x, y, c, dx, dy] = squares[x, y - 1, c, dx, dy] + squares[x, y, c, dx, dy] + squares[x, y + 1, c, dx, dy]
    sum = rows[x - 1, y, c, dx, dy] + rows[x, y, c, dx, dy] + rows[x + 1, y, c, dx, dy]
    weights[x, y, c, dx, dy] = hl.fast_exp(-sum * number(1 / (0.1 * 0.1) / 9))
    near = hl.RDom([(-3, 7), (-3, 7)])
    total, all, result = hl.Func("total"), hl.Func("all"), hl.Func("nlmeans")
    total[x, y, c] += weights[x, y, c, near.x, near.y] * source[x + near.x, y + near.y, c]
    all[x, y, c] += weights[x, y, c, near.x, near.y]
    result[x, y, c] = total[x, y, c] / all[x, y, c]
    result.split(y, strip, row, 32).parallel(c).parallel(strip).vectorize(x, LANES)
    for function in (total, all):
        function.compute_at(result, row).vectorize(x, LANES)
        function.update(0).reorder(x, near.x, near.y).vectorize(x, LANES)
    weights.compute_at(result, row).vectorize(x, LANES)
    rows.compute_at(weights, dy).vectorize(x, LANES)
    source.compute_at(result, strip).vectorize(x, LANES)
    return finished(result, np.empty_like(image))


def bilateral_grid(image):
    """The schedule is that of Halide's own application."""
    h, w = image.shape[-2:]
    z = hl.Var("z")
    buffer, source = hl.Buffer(image[0]), hl.Func("source")
    source[x, y] = buffer[hl.clamp(x, 0, w - 1), hl.clamp(y, 0, h - 1)]
    cell = hl.RDom([(0, 8), (0, 8)])
    value = hl.clamp(source[x * 8 + cell.x - 4, y * 8 + cell.y - 4], number(0), number(1))
    grid = hl.Func("grid")
    grid[x, y, z, c] = number(0)
    grid[x, y, hl.i32(value * number(10) + number(0.5)), c] += hl.mux(c, [value, number(1)])

    def blurred(function, name, dx, dy, dz):
        def at(d):
            return function[x + d * dx, y + d * dy, z + d * dz, c]

        result = hl.Func(name)
        result[x, y, z, c] = (at(-2) + at(2)) + (at(-1) + at(1)) * number(4) + at(0) * number(6)
        return result

    by_value = blurred(grid, "by_value", 0, 0, 1)
    along = blurred(by_value, "along", 1, 0, 0)
    down = blurred(along, "down", 0, 1, 0)
    level = hl.clamp(source[x, y], number(0), number(1)) * number(10)
    plane = hl.i32(level)
    fz = level - hl.f32(plane)
    fx, fy = hl.f32(x % 8) * number(0.125), hl.f32(y % 8) * number(0.125)

    def between(a, b, share):
        return a + (b - a) * share

    def at(i, j, k):
        return down[x / 8 + i, y / 8 + j, plane + k, c]

    def layer(k):
        return between(between(at(0, 0, k), at(1, 0, k), fx), between(at(0, 1, k), at(1, 1, k), fx), fy)

    sliced, result = hl.Func("sliced"), hl.Func("bilateral_grid")
    sliced[x, y, c] = between(layer(0), layer(1), fz)
    result[x, y] = sliced[x, y, 0] / sliced[x, y, 1]
    grid.compute_at(by_value, y)
    grid.update(0).reorder(c, cell.x, cell.y, x, y).unroll(c)
    for function in (by_value, along, down):
        function.compute_root().bound(c, 0, 2).reorder_storage(c, x, y, z).unroll(c).vectorize(x, 8)
    by_value.reorder(c, z, x, y).parallel(y)
    along.reorder(c, x, y, z).parallel(z)
    down.reorder(c, x, y, z).parallel(z)
    result.compute_root().parallel(y).vectorize(x, 8)
    return finished(result, np.empty_like(image[0]))


def local_laplacian(image):
    """The schedule is that of Halide's own application; edges are those of the image at the first level only."""
    levels, copies = 8, 8
    k = hl.Var("k")
    source, grey, first = colour(image, as_it_is), hl.Func("grey"), hl.Func("first")
    grey[x, y] = source[x, y, 0] * number(0.299) + source[x, y, 1] * number(0.587) + source[x, y, 2] * number(0.114)
    level = hl.f32(k) * number(1 / (copies - 1))
    distance = (grey[x, y] - level) * number(copies - 1)
    first[x, y, k] = grey[x, y] + distance * hl.fast_exp(-distance * distance * number(0.5)) * number(1 / (copies - 1))

    def halved(function, name, *rest):
        down, along = hl.Func(name + "_down"), hl.Func(name)

        def taps_of(at):
            return (at(-1) + at(2)) * number(0.125) + (at(0) + at(1)) * number(0.375)

        down[(x, y) + rest] = taps_of(lambda d: function[(2 * x + d, y) + rest])
        along[(x, y) + rest] = taps_of(lambda d: down[(x, 2 * y + d) + rest])
        return along

    def doubled(function, name, *rest):
        along, down = hl.Func(name + "_along"), hl.Func(name)
        along[(x, y) + rest] = number(0.75) * function[(x / 2, y) + rest] + number(0.25) * function[(x / 2 - 1 + 2 * (x % 2), y) + rest]
        down[(x, y) + rest] = number(0.75) * along[(x, y / 2) + rest] + number(0.25) * along[(x, y / 2 - 1 + 2 * (y % 2)) + rest]
        return down

    guides, remapped = [grey], [first]
    for j in range(1, levels):
        guides.append(halved(guides[-1], f"guide{j}"))
        remapped.append(halved(remapped[-1], f"copy{j}", k))
    outs = [None] * levels
    for j in reversed(range(levels)):
        band = remapped[j]
        if j + 1 < levels:
            coarse, band = doubled(remapped[j + 1], f"coarse{j}", k), hl.Func(f"band{j}")
            band[x, y, k] = remapped[j][x, y, k] - coarse[x, y, k]
        place = guides[j][x, y] * number(copies - 1)
        lower = hl.clamp(hl.i32(place), 0, copies - 2)
        share = place - hl.f32(lower)
        chosen = (number(1) - share) * band[x, y, lower] + share * band[x, y, lower + 1]
        outs[j] = hl.Func(f"out{j}")
        outs[j][x, y] = chosen if j + 1 == levels else doubled(outs[j + 1], f"up{j}")[x, y] + chosen
    result = hl.Func("local_laplacian")
    result[x, y, c] = outs[0][x, y] / (grey[x, y] + number(0.01)) * (source[x, y, c] + number(0.01))
    result.bound(c, 0, 3).reorder(c, x, y).unroll(c).split(y, strip, row, 64).parallel(strip).vectorize(x, 8)
    grey.compute_root().parallel(y, 32).vectorize(x, 8)
    for j in range(1, 5):
        guides[j].compute_root().parallel(y, 32).vectorize(x, 8)
        remapped[j].compute_root().reorder_storage(x, k, y).reorder(k, y).parallel(y, 8).vectorize(x, 8)
        outs[j].store_at(result, strip).compute_at(result, row).fold_storage(y, 8).vectorize(x, 8)
    outs[0].compute_at(result, row).vectorize(x, 8)
    for j in range(5, levels):
        guides[j].compute_root()
        remapped[j].compute_root().parallel(k)
        outs[j].compute_root()
    return finished(result, np.empty_like(image))


def camera(image):
    h, w = image.shape[-2:]
    buffer, raw = hl.Buffer(image[0]), hl.Func("raw")
    raw[x, y] = buffer[hl.clamp(mirrored(x, w), 0, w - 1), hl.clamp(mirrored(y, h), 0, h - 1)]
    most = hl.max(hl.max(raw[x - 2, y], raw[x + 2, y]), hl.max(raw[x, y - 2], raw[x, y + 2]))
    in_column, in_row = x % 2 == 0, y % 2 == 0
    gain = hl.select(in_column & in_row, number(1.5), hl.select(in_column | in_row, number(1), number(1.25)))
    balanced = hl.Func("balanced")
    balanced[x, y] = hl.min(raw[x, y], most) * gain

    def s(dx, dy):
        return balanced[x + dx, y + dy]

    here, hor, ver = s(0, 0), s(-1, 0) + s(1, 0), s(0, -1) + s(0, 1)
    diagonal, far_h, far_v = s(-1, -1) + s(1, -1) + s(-1, 1) + s(1, 1), s(-2, 0) + s(2, 0), s(0, -2) + s(0, 2)
    green = (here * number(4) + (hor + ver) * number(2) - far_h - far_v) * number(0.125)
    along = (here * number(5) + hor * number(4) - diagonal - far_h + far_v * number(0.5)) * number(0.125)
    down = (here * number(5) + ver * number(4) - diagonal - far_v + far_h * number(0.5)) * number(0.125)
    opposite = (here * number(6) + diagonal * number(2) - (far_h + far_v) * number(1.5)) * number(0.125)
    rgb = [
        hl.select(in_row, hl.select(in_column, here, along), hl.select(in_column, down, opposite)),
        hl.select(in_column == in_row, green, here),
        hl.select(in_row, hl.select(in_column, opposite, down), hl.select(in_column, along, here)),
    ]
    colours, developed, soft_rows, result = (hl.Func(name) for name in ("colours", "developed", "soft_rows", "camera"))
    total = number(-0.1) * (rgb[0] + rgb[1] + rgb[2])
    colours[x, y, c] = hl.clamp(total + number(1.3) * hl.mux(c, rgb), number(0), number(1))
    b = 2 - 2**0.25
    a = 2 - 2 * b
    v = hl.fast_pow(colours[x, y, c], number(1 / 2.2))
    rest = number(1) - v
    curve = hl.select(v > number(0.5), number(1) - number(a) * rest * rest - number(b) * rest, number(a) * v * v + number(b) * v)
    developed[x, y, c] = curve
    soft_rows[x, y, c] = (developed[x, y - 1, c] + developed[x, y + 1, c]) * number(0.25) + developed[x, y, c] * number(0.5)
    smooth = (soft_rows[x - 1, y, c] + soft_rows[x + 1, y, c]) * number(0.25) + soft_rows[x, y, c] * number(0.5)
    result[x, y, c] = developed[x, y, c] + number(0.5) * (developed[x, y, c] - smooth)
    result.bound(c, 0, 3).split(y, strip, row, 32).reorder(x, c, row, strip).parallel(strip).vectorize(x, LANES)
    for function in (raw, balanced):
        function.compute_at(result, strip).vectorize(x, LANES)
    colours.compute_at(developed, y).bound(c, 0, 3).reorder(c, x, y).unroll(c).vectorize(x, LANES)
    developed.compute_at(result, strip).bound(c, 0, 3).reorder(x, c, y).vectorize(x, LANES)
    soft_rows.compute_at(result, c).vectorize(x, LANES)
    return finished(result, np.empty((3, h, w), np.float32))
