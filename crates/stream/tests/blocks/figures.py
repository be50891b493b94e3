"""Writes the expected figures of the tests in this folder, computed with NumPy and SciPy.

    python figures.py        in this folder, with SciPy from PyPI
"""

import binascii
import zlib

import numpy as np
import scipy.signal as signal

N = 20000
n = np.arange(N)
x = (n * 37 % 101 - 50) / 50
z = x + 1j * (n * 53 % 97 - 48) / 48


def show(name, values, count):
    values = np.asarray(values).ravel()
    if np.iscomplexobj(values):
        values = np.column_stack([values.real, values.imag]).ravel()
        count *= 2
    with open(name + ".out", "w") as file:
        for value in values[:count]:
            file.write(f"{value}\n" if values.dtype.kind in "iu" else f"{value:.9f}\n")


def valid(h, x=x):
    return np.convolve(x[:2000], h, "valid")


show("fir_low_pass", valid(signal.firwin(31, 6000, fs=48000)), 40)
show("fir_high_pass", valid(signal.firwin(31, 9000, fs=48000, pass_zero=False)), 40)
show("fir_band_pass", valid(signal.firwin(41, [5000, 9000], fs=48000, pass_zero=False)), 40)
show("fir_equiripple", valid(signal.remez(41, [0, 5000, 8000, 24000], [1, 0], weight=[1, 2], fs=48000, grid_density=64)), 40)
show("fir_complex", valid(signal.firwin(31, 6000, fs=48000), z), 20)
show("iir_low_pass", signal.sosfilt(signal.butter(5, 6000, fs=48000, output="sos"), x), 60)
show("iir_high_pass", signal.sosfilt(signal.butter(4, 6000, "high", fs=48000, output="sos"), x), 60)
show("iir_peak", signal.lfilter(*signal.iirpeak(4000, 5, fs=48000), x), 60)
show("iir_notch", signal.lfilter(*signal.iirnotch(4000, 5, fs=48000), x), 60)
show("iir_dc_block", signal.lfilter([1, -1], [1, -0.95], x), 60)
show("iir_smooth", signal.lfilter([0.2], [1, -0.8], x), 60)
for size in [2, 12, 15, 30, 37, 64, 202]:
    show(f"fft_{size}", np.fft.fft(z[: 2 * size].reshape(2, size)), 2 * size)
for size in [41, 60]:
    show(f"fft_inverse_{size}", np.fft.ifft(z[: 2 * size].reshape(2, size)), 2 * size)


def resample(up, down, count):
    # The filter that signal.resample_poly makes.
    most = max(up, down)
    h = signal.firwin(20 * most + 1, 1 / most, window=("kaiser", 5.0)) * up
    whole = np.zeros(len(x) * up)
    whole[::up] = x
    return np.convolve(whole[: len(h) + count * down * 2], h, "valid")[::down][:count]


show("resample_3_2", resample(3, 2, 60), 60)
show("resample_160_441", resample(160, 441, 160), 160)
show("resample_decimate", valid(signal.firwin(41, 0.25))[::4], 20)


def rotation(frequency):
    return np.exp(2j * np.pi * frequency / 48000 * n)


show("radio_mixer", z * rotation(1234.5), 60)
show("radio_mixer_of_real", x * rotation(-7000), 60)
show("radio_oscillator", rotation(15000), 60)
show("radio_fm", 0.5 * np.angle(z[1:] * z[:-1].conj()), 60)


def agc(x, part, level):
    gain, out = 1.0, []
    for value in x:
        out.append(value * gain)
        gain += part * (level - abs(out[-1]))
    return out


def carrier(x, bandwidth, damping):
    whole = 1 + 2 * damping * bandwidth + bandwidth**2
    alpha, beta = 4 * damping * bandwidth / whole, 4 * bandwidth**2 / whole
    phase = frequency = 0.0
    out = []
    for value in x:
        out.append(value * np.exp(-1j * phase))
        error = np.angle(out[-1])
        frequency += beta * error
        phase += frequency + alpha * error
    assert abs(frequency - 2 * np.pi * 500 / 48000) < 1e-3
    return out


show("radio_agc", agc(x[:100], 0.05, 0.5), 60)
show("radio_carrier", carrier(rotation(500)[:300], 0.05, 0.7071), 300)
h = signal.firwin(48, 1 / 8)
blocks = [np.fft.fft((z[8 * k : 8 * k + 48] * h).reshape(6, 8).sum(0)) for k in range(5)]
show("radio_channelizer", np.array(blocks), 40)

octets = ((n * n + 7 * n) & 255).astype(np.uint8)
crc32 = [zlib.crc32(octets[100 * k : 100 * k + 100].tobytes()) for k in range(4)]
show("coding_crc32", np.array(crc32, np.uint32).astype(np.int32), 4)
show("coding_crc16", np.array([binascii.crc_hqx(octets[100 * k : 100 * k + 100].tobytes(), 0xFFFF) for k in range(4)]), 4)
bits = (n * n * 5 + n // 3) & 1


def encode(bits):
    bits = np.append(bits, np.zeros(6, int))
    codes = [np.convolve(bits, [int(c) for c in f"{int(g, 8):07b}"])[: len(bits)] % 2 for g in ("171", "133")]
    return np.column_stack(codes).ravel()


show("coding_encode", np.concatenate([encode(bits[20 * k : 20 * k + 20]) for k in range(3)]), 156)
show("coding_viterbi", bits, 160)


def mix(x):
    x = np.asarray(x, np.uint32)
    x = x ^ (x >> np.uint32(16))
    x = x * np.uint32(0x7FEB352D)
    x = x ^ (x >> np.uint32(15))
    x = x * np.uint32(0x846CA68B)
    return x ^ (x >> np.uint32(16))


def part(count):
    return ((mix(mix([7]) + np.arange(count, dtype=np.uint32)) >> np.uint32(8)) + 0.5) / 2**24


show("noise_uniform", 2 * part(40) - 1, 40)
u = part(100000)
normal = 0.5 * np.sqrt(-2 * np.log(u[::2])) * np.cos(2 * np.pi * u[1::2])
assert abs(normal.std() - 0.5) < 0.01 and abs(normal.mean()) < 0.01
show("noise_normal", normal, 40)
