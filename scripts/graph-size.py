#!/usr/bin/env python3
"""Time from start to first output against the size of the graph, with an empty cache: a table, and a picture for the guide.

    scripts/graph-size.py [--command target/release/broadloom] [--svg docs/pictures/graph_size.svg] [SIZE ...]

Sizes are filters. The shapes: a pipeline of equal filters, a pipeline of filters that all differ, a splitjoin of pipelines,
and the recursive Fourier transform, whose points are the largest power of two that the size allows.
"""

import argparse
import math
import os
import subprocess
import tempfile
import time

SOURCE = "void->float filter Source { int n; work push 1 { push(n++ & 255); } }\n"
SINK = "add float->void filter { work pop 1 { println(pop()); } };"
SCALE = "float->float filter Scale(float s) { work push 1 pop 1 { push(pop() * s + 1); } }\n"
FFT = """
float->complex filter Pair { work push 1 pop 1 { complex z = 0; z.real = pop(); push(z); } }
complex->float filter Real { work push 1 pop 1 { complex z = pop(); push(z.real); } }
complex->complex pipeline Fft(int n) {
    if (n > 2) { add splitjoin { split roundrobin(1); add Fft(n / 2); add Fft(n / 2); join roundrobin(n / 2); } }
    add Butterfly(n);
}
complex->complex filter Butterfly(int n) {
    complex[n / 2] w;
    init { for (int i = 0; i < n / 2; i++) { w[i].real = cos(2 * pi * i / n); w[i].imag = -sin(2 * pi * i / n); } }
    work push n pop n {
        complex[n] r;
        for (int i = 0; i < n / 2; i++) { complex b = w[i] * peek(n / 2 + i); r[i] = peek(i) + b; r[n / 2 + i] = peek(i) - b; }
        for (int i = 0; i < n; i++) { pop(); push(r[i]); }
    }
}
"""


def top(inner):
    return f"void->void pipeline Main {{ add Source; {inner} {SINK} }}\n{SOURCE}"


def equal(n):
    return top(f"for (int i = 0; i < {n}; i++) add Scale(0.5);") + SCALE


def different(n):
    return top(f"for (int i = 0; i < {n}; i++) add Scale(i * 0.0001);") + SCALE


def branches(n):
    inner = f"for (int j = 0; j < {max(1, n // 100)}; j++) add Scale(0.5 + 0.001 * i);"
    return top(f"add splitjoin {{ split roundrobin; for (int i = 0; i < 100; i++) add pipeline {{ {inner} }}; join roundrobin; }};") + SCALE


def transform(n):
    # A transform of p points has p - 1 butterflies.
    return top(f"add Pair; add Fft({2 ** int(math.log2(n + 1))}); add Real;") + FFT


SHAPES = {"equal filters": equal, "different filters": different, "100 branches": branches, "recursive transform": transform}
COLOURS = ["#1b6ca8", "#c0392b", "#2e8b57", "#8e44ad"]


def measure(command, text):
    """Returns the seconds until the first byte of output."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "graph.str")
        with open(path, "w") as file:
            file.write(text)
        environment = dict(os.environ, BROADLOOM_CACHE=os.path.join(folder, "cache"))
        begun = time.perf_counter()
        with subprocess.Popen([command, "run", path, "--device", "cpu", "-i", "1"], stdout=subprocess.PIPE, env=environment) as run:
            run.stdout.read(1)
            seconds = time.perf_counter() - begun
            run.stdout.read()
        if run.returncode:
            raise SystemExit(f"{path} ended with {run.returncode}")
        return seconds


def picture(sizes, results):
    """Returns the results as an SVG with logarithmic axes."""
    left, right, high, low = 60, 560, 20, 300
    times = [seconds for line in results.values() for seconds in line]
    first, last = math.floor(math.log10(min(times))), math.ceil(math.log10(max(times)))

    def x(size):
        return left + (right - left) * math.log(size / sizes[0]) / max(math.log(sizes[-1] / sizes[0]), 1e-9)

    def y(seconds):
        return low - (low - high) * (math.log10(seconds) - first) / (last - first)

    parts = ['<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 720 350" font-family="sans-serif" font-size="13">']
    parts.append('<rect width="720" height="350" fill="white"/>')
    for decade in range(first, last + 1):
        for step in [1, 2, 5] if decade < last else [1]:
            at = y(step * 10.0**decade)
            parts.append(f'<path d="M{left} {at:.1f}H{right}" stroke="#ddd"/>')
            parts.append(f'<text x="{left - 6}" y="{at + 4:.1f}" text-anchor="end">{step * 10.0**decade:g}</text>')
    for size in sizes:
        parts.append(f'<path d="M{x(size):.1f} {high}V{low}" stroke="#ddd"/>')
        parts.append(f'<text x="{x(size):.1f}" y="{low + 18}" text-anchor="middle">{size}</text>')
    for (name, line), colour in zip(results.items(), COLOURS):
        points = " ".join(f"{x(size):.1f},{y(seconds):.1f}" for size, seconds in zip(sizes, line))
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts.append(f'<text x="{right + 8}" y="{y(line[-1]) + 4:.1f}" fill="{colour}">{name}</text>')
    parts.append(f'<text x="{(left + right) / 2}" y="{low + 40}" text-anchor="middle">filters</text>')
    parts.append(f'<text x="14" y="{(low + high) / 2}" text-anchor="middle" transform="rotate(-90 14 {(low + high) / 2})">seconds to the first output</text>')
    return "\n".join(parts + ["</svg>"]) + "\n"


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--command", default="target/release/broadloom")
    arguments.add_argument("--svg")
    arguments.add_argument("sizes", nargs="*", type=int, default=[100, 300, 1000, 3000, 10000, 20000])
    given = arguments.parse_args()
    results = {name: [] for name in SHAPES}
    print("| filters | " + " | ".join(SHAPES) + " |\n|" + " ---: |" * (len(SHAPES) + 1))
    for size in given.sizes:
        for name, shape in SHAPES.items():
            results[name].append(min(measure(given.command, shape(size)) for _ in range(2 if size < 10000 else 1)))
        print(f"| {size} | " + " | ".join(f"{results[name][-1]:.2f}" for name in SHAPES) + " |", flush=True)
    if given.svg:
        with open(given.svg, "w") as file:
            file.write(picture(given.sizes, results))


main()
