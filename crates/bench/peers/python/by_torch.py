"""The benchmarks as people write them with PyTorch, by `torch.compile` where it makes whole expressions one."""
import numpy as np
import torch
import torch.nn.functional as functional

import whole_arrays
from programs import ON_GPU
from programs_torch import *
from peer import THREADS

torch.set_num_threads(THREADS)
torch.set_grad_enabled(False)
MODES = {"edge": "replicate", "wrap": "circular", "mirror": "reflect"}


class xp:
    abs, exp, log, sqrt, where, floor, clip = torch.abs, torch.exp, torch.log, torch.sqrt, torch.where, torch.floor, torch.clamp
    zero = torch.zeros(())
    pad = staticmethod(lambda x, by, how: functional.pad(x[None, None], (by, by, by, by), mode=MODES[how])[0, 0])
    as_float = staticmethod(lambda x: x.to(torch.float32))
    as_int = staticmethod(lambda x: x.to(torch.int64))
    int_range = staticmethod(torch.arange)
    float_range = staticmethod(lambda n: torch.arange(n, dtype=torch.float32))


def wait(_):
    if ON_GPU and torch.cuda.is_available():
        torch.cuda.synchronize()


def tensor(x):
    return torch.from_numpy(np.ascontiguousarray(x))


def plain(function):
    def make(*inputs):
        inputs = [tensor(x) for x in inputs]
        return lambda: function(*inputs)

    return make


def compiled(function):
    return lambda *inputs: plain(torch.compile(function, dynamic=False))(*inputs)


def whole(name):
    return compiled(lambda *inputs: getattr(whole_arrays, name)(xp, *inputs))


for name in ["black_scholes", "life", "convolution", "rotation", "demosaic", "corner"]:
    globals()[name] = whole(name)

stereo = plain(lambda left, right: whole_arrays.stereo(xp, left, right))
sum_abs = compiled(lambda x: x.abs().sum())
dot = matrix_vector = matrix_product = plain(lambda x, y: x @ y)
sort = sort_rows = plain(lambda x: torch.sort(x).values)
histogram = plain(lambda x: torch.bincount(x, minlength=256))
pack = plain(lambda x: x[x > 0.5])


def scan(x):
    return plain(lambda x: torch.cumsum(x, 0, dtype=torch.int32).view(torch.uint32))(x.view(np.int32))


def segmented_sum(x, offsets):
    return plain(lambda x, offsets: torch.segment_reduce(x, "sum", offsets=offsets, unsafe=True, initial=0))(x, offsets)
