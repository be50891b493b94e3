"""The programs of this folder in NumPy and SciPy: reads the input file, writes `peer.raw`, prints the seconds.

    python programs.py NAME
"""

import sys
import time
import zlib

import numpy as np
import scipy.fft
import scipy.signal

f32 = np.float32


def floats():
    return np.fromfile("in.f32", f32)


def numbers():
    return np.fromfile("in.c64", np.complex64)


def hamming(n):
    return 0.54 - 0.46 * np.cos(2 * np.pi * np.arange(n) / (n - 1))


def copy():
    return floats() * f32(2)


def fir():
    return scipy.signal.oaconvolve(floats(), (hamming(64) / 64).astype(f32)[::-1], "valid")


def iir():
    i = np.arange(6)
    one = np.ones(6)
    sections = np.stack([0.4 * one, 0.1 + 0.02 * i, 0.05 * one, one, -0.5 + 0.05 * i, 0.2 + 0.05 * i], 1)
    return scipy.signal.sosfilt(sections.astype(f32), floats())


def goertzel():
    x = floats()
    x = x[: len(x) // 200 * 200].reshape(-1, 200)
    turns = np.exp(-2j * np.pi * np.outer(np.arange(200), 0.05 + 0.01 * np.arange(12))).astype(np.complex64)
    z = x @ turns
    return z.real**2 + z.imag**2


def resampler():
    i = np.arange(48)
    m = (i - 47 / 2) / 3
    h = np.sin(np.pi * m) / (np.pi * m) * (0.5 - 0.5 * np.cos(2 * np.pi * (i + 0.5) / 48))
    return scipy.signal.upfirdn(h.astype(f32), floats(), 3, 2)[45:-45]


def bank():
    x, i, b = floats(), np.arange(32), np.arange(8)
    turns = np.cos(np.pi * (b[:, None] + 0.5) / 8 * (i - 31 / 2))
    h = ((0.5 - 0.5 * np.cos(2 * np.pi * (i + 0.5) / 32)) * turns / 8).astype(f32)
    return np.lib.stride_tricks.sliding_window_view(x, 32)[::8] @ h.T


def fm():
    x = numbers()
    d = np.angle(x[1:] * np.conj(x[:-1]))
    m = np.arange(80) - 79 / 2
    h = (np.sin(np.pi * m / 8) / (np.pi * m) * hamming(80)).astype(f32)
    y = scipy.signal.upfirdn(h[::-1], d, 1, 8)[10 : (len(d) - 80) // 8 + 11]
    return scipy.signal.lfilter(np.array([0.25], f32), np.array([1, -0.75], f32), y)


def crc():
    return np.array([zlib.crc32(block) for block in np.fromfile("in.i32", np.int32).reshape(-1, 64)], np.uint32)


def channelizer():
    x = numbers()
    t = np.arange(256) - 255 / 2
    h = (np.sin(np.pi * t / 32) / (np.pi * t) * hamming(256)).astype(f32).reshape(8, 32)
    rows = x[: len(x) // 32 * 32].reshape(-1, 32)
    count = len(rows) - 7
    return scipy.fft.fft(sum(h[k] * rows[k : k + count] for k in range(8)), axis=1, workers=2)


def ofdm():
    y = scipy.fft.fft(numbers().reshape(-1, 64), axis=1, workers=2) * f32(0.125)
    return np.concatenate([y[:, -16:], y], 1)


def spectrum():
    rows = np.lib.stride_tricks.sliding_window_view(numbers(), 256)[::128]
    w = (0.5 - 0.5 * np.cos(2 * np.pi * np.arange(256) / 256)).astype(f32)
    z = scipy.fft.fft(rows * w, axis=1, workers=2)
    return z.real**2 + z.imag**2


# A loop of Python over each item is no peer.
programs = [copy, fir, iir, goertzel, resampler, bank, fm, crc, channelizer, ofdm, spectrum]
if __name__ == "__main__":
    found = {program.__name__: program for program in programs}.get(sys.argv[1])
    if found is None:
        sys.exit(2)
    begun = time.perf_counter()
    found().tofile("peer.raw")
    print(time.perf_counter() - begun)
