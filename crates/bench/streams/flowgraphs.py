"""The programs of this folder as flow graphs of GNU Radio: reads the input file, writes `peer.raw`, prints the
seconds.

    python flowgraphs.py NAME

Blocks that a graph needs are those of GNU Radio; its windows and delays are its own, so the first items differ.
"""

import sys
import time

import numpy as np
from gnuradio import analog, blocks, digital, fft, filter, gr


def hamming(n):
    return 0.54 - 0.46 * np.cos(2 * np.pi * np.arange(n) / (n - 1))


F, C = gr.sizeof_float, gr.sizeof_gr_complex


def copy():
    return F, [blocks.multiply_const_ff(2)], F


def fir():
    return F, [filter.fir_filter_fff(1, (hamming(64) / 64)[::-1].tolist())], F


def iir():
    sections = [([0.4, 0.1 + 0.02 * i, 0.05], [1, -0.5 + 0.05 * i, 0.2 + 0.05 * i]) for i in range(6)]
    return F, [filter.iir_filter_ffd(b, a, False) for b, a in sections], F


def resampler():
    i = np.arange(48)
    m = (i - 47 / 2) / 3
    h = np.sin(np.pi * m) / (np.pi * m) * (0.5 - 0.5 * np.cos(2 * np.pi * (i + 0.5) / 48))
    return F, [filter.rational_resampler_fff(3, 2, h.tolist())], F


def fm():
    m = np.arange(80) - 79 / 2
    h = np.sin(np.pi * m / 8) / (np.pi * m) * hamming(80)
    last = filter.single_pole_iir_filter_ff(0.25)
    return C, [analog.quadrature_demod_cf(1), filter.fir_filter_fff(8, h.tolist()), last], F


def agc():
    return F, [analog.agc_ff(0.001, 0.5, 1.0)], F


def channelizer():
    t = np.arange(256) - 255 / 2
    h = np.sin(np.pi * t / 32) / (np.pi * t) * hamming(256)
    channels = filter.pfb_channelizer_ccf(32, h.tolist(), 1.0)
    return C, [blocks.stream_to_streams(C, 32), channels, blocks.streams_to_stream(C, 32)], C


def ofdm():
    scale = blocks.multiply_const_cc(0.125)
    prefix = digital.ofdm_cyclic_prefixer(64, 80)
    symbols = blocks.stream_to_vector(C, 64)
    return C, [scale, symbols, fft.fft_vcc(64, True, [], False, 1), prefix], C


def spectrum():
    w = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(256) / 256)
    rows = blocks.stream_to_vector(C, 256)
    transform = fft.fft_vcc(256, True, w.tolist(), False, 1)
    overlap = blocks.stream_to_vector(C, 128)
    # Each window is made of a block of 128 items and the one before it.
    return C, [overlap, "overlap", rows, transform, blocks.complex_to_mag_squared(256)], 256 * F


def run(name):
    size, chain, out = programs[name]()
    top = gr.top_block()
    source = blocks.file_source(size, {F: "in.f32", C: "in.c64"}[size])
    sink = blocks.file_sink(out, "peer.raw")
    last = source
    for block in chain:
        if block == "overlap":
            delay, pair = blocks.delay(128 * C, 1), blocks.interleave(128 * C)
            parts = blocks.vector_to_stream(C, 128)
            top.connect(last, delay, (pair, 0))
            top.connect(last, (pair, 1))
            top.connect(pair, parts)
            last = parts
            continue
        several = block.input_signature().max_streams() > 1 or isinstance(block, filter.pfb_channelizer_ccf)
        many = isinstance(last, (blocks.stream_to_streams, filter.pfb_channelizer_ccf))
        for port in range(32 if several and many else 1):
            top.connect((last, port), (block, port))
        last = block
    top.connect(last, sink)
    top.run()


programs = {f.__name__: f for f in [copy, fir, iir, resampler, fm, agc, channelizer, ofdm, spectrum]}
if __name__ == "__main__":
    if sys.argv[1] not in programs:
        sys.exit(2)
    begun = time.perf_counter()
    run(sys.argv[1])
    print(time.perf_counter() - begun)
