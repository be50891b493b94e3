"""What NumPy, JAX and PyTorch write alike: expressions of whole arrays, over a small namespace `xp` that each of them fills."""
import math

ANGLE = 0.5


def bell(radius, sigma):
    weights = [math.exp(-0.5 * (i / sigma) ** 2) for i in range(-radius, radius + 1)]
    return [weight / sum(weights) for weight in weights]


def black_scholes(xp, price, strike, years):
    rate, volatility = 0.02, 0.30

    def normal(d):
        k = 1.0 / (1.0 + 0.2316419 * xp.abs(d))
        terms = 0.31938153 + k * (-0.356563782 + k * (1.781477937 + k * (-1.821255978 + k * 1.330274429)))
        below = 0.3989423 * xp.exp(-0.5 * d * d) * (k * terms)
        return xp.where(d > 0, 1.0 - below, below)

    spread = volatility * xp.sqrt(years)
    d1 = (xp.log(price / strike) + (rate + 0.5 * volatility * volatility) * years) / spread
    n1, n2 = normal(d1), normal(d1 - spread)
    present = strike * xp.exp(-rate * years)
    return price * n1 - present * n2, present * (1.0 - n2) - price * (1.0 - n1)


def life(xp, x):
    p = xp.pad(x, 1, "wrap")
    rows = p[:-2] + p[1:-1] + p[2:]
    around = rows[:, :-2] + rows[:, 1:-1] + rows[:, 2:]
    return xp.as_float((around == 3) | ((around == 4) & (x == 1)))


def smooth(xp, x, weights):
    radius, (h, w) = len(weights) // 2, x.shape
    p = xp.pad(x, radius, "edge")
    down = sum(p[i : i + h, :] * weight for i, weight in enumerate(weights))
    return sum(down[:, i : i + w] * weight for i, weight in enumerate(weights))


def convolution(xp, x):
    return smooth(xp, x, bell(2, 1))


def rotation(xp, x):
    n = x.shape[-1]
    sin, cos, centre = math.sin(ANGLE), math.cos(ANGLE), (n - 1) * 0.5
    places = xp.float_range(n) - centre
    down, along = places[:, None], places[None, :]
    from_x, from_y = along * cos + down * sin + centre, down * cos - along * sin + centre
    inside = (from_x >= 0) & (from_x <= n - 1) & (from_y >= 0) & (from_y <= n - 1)
    x0, y0 = (xp.as_int(xp.clip(xp.floor(at), 0, n - 2)) for at in (from_x, from_y))
    ax, ay = from_x - x0, from_y - y0
    upper = x[:, y0, x0] * (1 - ax) + x[:, y0, x0 + 1] * ax
    lower = x[:, y0 + 1, x0] * (1 - ax) + x[:, y0 + 1, x0 + 1] * ax
    return xp.where(inside, upper * (1 - ay) + lower * ay, xp.zero)


def demosaic(xp, x):
    h, w = x.shape
    p = xp.pad(x, 2, "mirror")
    at = lambda dy, dx: p[2 + dy : 2 + dy + h, 2 + dx : 2 + dx + w]
    above_below, beside = at(-1, 0) + at(1, 0), at(0, -1) + at(0, 1)
    diagonal = at(-1, -1) + at(-1, 1) + at(1, -1) + at(1, 1)
    far_up_down, far_beside = at(-2, 0) + at(2, 0), at(0, -2) + at(0, 2)
    green = (x * 4 + (above_below + beside) * 2 - far_up_down - far_beside) * 0.125
    along = (x * 5 + beside * 4 - diagonal - far_beside + far_up_down * 0.5) * 0.125
    down = (x * 5 + above_below * 4 - diagonal - far_up_down + far_beside * 0.5) * 0.125
    opposite = (x * 6 + diagonal * 2 - (far_up_down + far_beside) * 1.5) * 0.125
    even_row, even_column = (xp.int_range(h) % 2 == 0)[:, None], (xp.int_range(w) % 2 == 0)[None, :]
    red = xp.where(even_row, xp.where(even_column, x, along), xp.where(even_column, down, opposite))
    blue = xp.where(even_row, xp.where(even_column, opposite, down), xp.where(even_column, along, x))
    return red, xp.where(even_row == even_column, green, x), blue


def corner(xp, x):
    p = xp.pad(smooth(xp, x, bell(2, 1)), 1, "edge")
    along, down = (p[1:-1, 2:] - p[1:-1, :-2]) * 0.5, (p[2:, 1:-1] - p[:-2, 1:-1]) * 0.5
    a, m, c = (smooth(xp, product, bell(4, 2)) for product in (along * along, along * down, down * down))
    mean, root = (a + c) * 0.5, xp.sqrt((a - c) * (a - c) * 0.25 + m * m)
    return 0.5 * (mean + root) + (mean - root)


def stereo(xp, left, right):
    h, w = left.shape
    p = xp.pad(right, 31, "edge")[31:-31]
    best = place = None
    for d in range(32):
        apart = left - p[:, 31 - d : 31 - d + w]
        q = xp.pad(apart * apart, 3, "edge")
        down = sum(q[i : i + h] for i in range(7))
        cost = sum(down[:, i : i + w] for i in range(7))
        if best is None:
            best, place = cost, xp.as_int(cost * 0)
        else:
            place = xp.where(cost < best, d, place)
            best = xp.where(cost < best, cost, best)
    return place
