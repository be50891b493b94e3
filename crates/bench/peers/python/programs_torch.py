"""The group `programs` with PyTorch, by `torch.compile` where it makes whole expressions one."""
import numpy as np
import torch
import torch.nn.functional as functional

import programs
from programs import BINS, KEYS, MEANS, ON_GPU, WINDOW

DEVICE = "cuda" if ON_GPU and torch.cuda.is_available() else "cpu"
padded = lambda mode: lambda x: functional.pad(x[None, None], (1, 1, 1, 1), mode=mode)[0, 0]
edge, zeros = padded("replicate"), padded("constant")


def plain(function):
    def make(*inputs):
        tensors = [x if isinstance(x, int) else torch.from_numpy(np.ascontiguousarray(x)).to(DEVICE) for x in inputs]
        return lambda: function(*tensors)

    return make


def compiled(function):
    return plain(torch.compile(function, dynamic=False))


def repeated(times, step):
    step = torch.compile(step, dynamic=False)

    def function(x):
        for _ in range(times):
            x = step(x)
        return x

    return plain(function)


heat = heat_by4 = heat_large = repeated(20, lambda u: programs.heat_step(edge, u))
near = lambda p, c: ((p[:, None, :] - c[None]) ** 2).sum(-1).argmin(1)
near_mat = lambda p, c: ((c * c).sum(1)[None] - 2 * (p @ c.T)).argmin(1)


def means_sum(p, a):
    counts = torch.zeros(MEANS, device=p.device).index_add_(0, a, torch.ones_like(p[:, 0]))
    return torch.zeros(MEANS, p.shape[1], device=p.device).index_add_(0, a, p) / counts.clamp(min=1)[:, None]


def means_hot(p, a):
    hot = (a[None] == torch.arange(MEANS, device=p.device)[:, None]).float()
    return (hot @ p) / hot.sum(1).clamp(min=1)[:, None]


def clusters(near, means):
    step = torch.compile(lambda p, c: means(p, near(p, c)), dynamic=False)

    def function(p):
        c = p[:MEANS].clone()
        for _ in range(2):
            c = step(p, c)
        return c

    return plain(function)


kmeans, kmeans_mat = clusters(near, means_sum), clusters(near_mat, means_sum)
kmeans_hot, kmeans_hot_mat = clusters(near, means_hot), clusters(near_mat, means_hot)


def descent(gradient):
    step = torch.compile(lambda x, y, w: w - gradient(x, y, w) / x.shape[0] * 0.5, dynamic=False)

    def function(x, y):
        w = torch.zeros(32, device=x.device)
        for _ in range(5):
            w = step(x, y, w)
        return w

    return plain(function)


logistic = descent(lambda x, y, w: (torch.sigmoid(x @ w) - y) @ x)
logistic_sum = descent(lambda x, y, w: (x * (torch.sigmoid((x * w).sum(1)) - y)[:, None]).sum(0))
gradients = compiled(lambda right: programs.gradients(torch.zeros_like, zeros, right))
compact = plain(lambda x: x[x > 0.5])
run_lengths = plain(lambda a: torch.unique_consecutive(a, return_counts=True)[1])
bodies = compiled(lambda *inputs: programs.bodies(torch.sqrt, *inputs))
batched = batched_mid = compiled(lambda a, b: ((a @ b) * 0.6) @ b * 0.6)
softmax = plain(lambda x: torch.softmax(x, 1))
layer_norm = plain(lambda x, gain, shift: functional.layer_norm(x, x.shape[1:], gain, shift, 1e-5))
top_k = plain(lambda x: torch.topk(x, 100).values)
sort_floats = plain(lambda x: torch.sort(x).values)
argsort = plain(lambda x: torch.argsort(x))
column_moments = compiled(lambda x: (x.var(0, correction=0), x.mean(0), x.amax(0)))


@plain
def covariance(x):
    off = x - x.mean(0)
    return off.T @ off / x.shape[0]


@plain
def group_by(keys, x):
    keys, most = keys.long(), torch.zeros(KEYS, device=x.device)
    sums = torch.zeros(KEYS, device=x.device).index_add_(0, keys, x)
    return sums, torch.bincount(keys, minlength=KEYS), most.scatter_reduce_(0, keys, x, "amax")


def sums_of(keys, x, count):
    return torch.zeros(count, device=x.device).index_add_(0, keys, x)


bin_sums = plain(lambda few, many, x, n: (sums_of(few, x, 16), sums_of(many, x, n)))
many_bins = plain(lambda keys: torch.bincount(keys, minlength=BINS))
short_rows = compiled(lambda x: tuple(x.reshape(-1, width).sum(1) for width in (4, 8, 16)))


@plain
def power(a):
    x = torch.ones(a.shape[0], device=a.device)
    for _ in range(3):
        y = (a @ x) @ a
        x = y / y.norm()
    return x


cholesky = plain(torch.linalg.cholesky)


@plain
def fourier(x):
    y = torch.fft.fft(x)
    return y.real, y.imag


@plain
def rolling(x):
    over = lambda s: (s - functional.pad(s[:-WINDOW], (WINDOW, 0))) / WINDOW
    mean = over(torch.cumsum(x, 0))
    return (over(torch.cumsum(x * x, 0)) - mean * mean).float()


kalman = compiled(lambda seen: programs.kalman(list(seen)))


@compiled
def drawdown(x):
    level = torch.cumsum(x, 1)
    return (torch.cummax(level, 1).values - level).amax(1), level[:, -1]


@plain
def components(starts, ends):
    starts, ends = starts.long(), ends.long()
    label = torch.arange(len(starts), device=starts.device)
    for _ in range(8):
        a, b = label[starts], label[ends]
        low = torch.minimum(a, b)
        met = label.scatter_reduce(0, a, low, "amin").scatter_reduce(0, b, low, "amin")
        label = met[met]
    return label
