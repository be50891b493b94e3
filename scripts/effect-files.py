#!/usr/bin/env python3
"""Effects from file to file beside OpenCV, libvips, oiiotool and ImageMagick.

Makes pictures of 24 and 100 megapixels and HD frames, runs every program on them by turns, and prints a table in
Markdown: wall time, processor time, peak memory. Each run is a process of its own, so it counts the start as well.
Programs that are not installed are left out. `scripts/effect-files.sh` installs OpenCV and calls this.
"""

import argparse
import multiprocessing
import os
import shutil
import statistics
import subprocess
import sys
import time

EFFECTS = {
    "gaussian": "gaussian --set sigma=2",
    "median": "median --set radius=2",
    "resize": "resize --set percent=50",
    "clahe": "clahe",
    "unsharp": "unsharp --set sigma=2",
    "chain": "median,gaussian,unsharp,levels,resize --set median.radius=1 --set gaussian.sigma=1 --set unsharp.sigma=2"
    " --set black=0.02 --set white=0.98 --set percent=50",
}

# `i` is the image of 8 bits and three channels.
OPENCV = {
    "gaussian": "cv2.GaussianBlur(i, (0, 0), 2)",
    "median": "cv2.medianBlur(i, 5)",
    "resize": "cv2.resize(i, None, fx=0.5, fy=0.5, interpolation=cv2.INTER_AREA)",
    "clahe": "clahe(i)",
    "unsharp": "sharp(i)",
    "chain": "cv2.resize(cv2.LUT(sharp(cv2.GaussianBlur(cv2.medianBlur(i, 3), (0, 0), 1)), levels), None, fx=0.5, fy=0.5,"
    " interpolation=cv2.INTER_AREA)",
}

OPENCV_PROGRAM = """
import sys
import cv2
import numpy

levels = numpy.clip((numpy.arange(256) / 255 - 0.02) / 0.96 * 255 + 0.5, 0, 255).astype(numpy.uint8)

def sharp(i):
    return cv2.addWeighted(i, 2, cv2.GaussianBlur(i, (0, 0), 2), -1, 0)

def clahe(i):
    equaliser = cv2.createCLAHE(4, (8, 8))
    return cv2.merge([equaliser.apply(plane) for plane in cv2.split(i)])

i = cv2.imread(sys.argv[1])
options = {
    "jpg": [cv2.IMWRITE_JPEG_QUALITY, 90, cv2.IMWRITE_JPEG_SAMPLING_FACTOR, cv2.IMWRITE_JPEG_SAMPLING_FACTOR_444],
    "tif": [cv2.IMWRITE_TIFF_COMPRESSION, 1],
    "png": [],
}
cv2.imwrite(sys.argv[2], EXPRESSION, options[sys.argv[2][-3:]])
"""

# Operations of libvips; `{}` stands for both files. One without a Gaussian or a chain of its own takes several calls.
VIPS = {
    "gaussian": "gaussblur {} 2",
    "median": "rank {} 5 5 12",
    "resize": "resize {} 0.5",
    "clahe": "hist_local {} 750 500 --max-slope 4",
    "unsharp": "sharpen {} --sigma 2 --x1 0 --m2 1",
}

# Options of writers: quality 90 for JPEG, no compression for TIFF, as the others have.
VIPS_WRITER = {"png": "", "jpg": "[Q=90]", "tif": ""}

OIIOTOOL = {
    "gaussian": "--blur:kernel=gaussian 11x11",
    "median": "--median 5x5",
    "resize": "--resize 50%",
    "unsharp": "--unsharp:kernel=gaussian:width=11",
    "chain": "--median 3x3 --blur:kernel=gaussian 7x7 --unsharp:kernel=gaussian:width=11 --subc 0.02 --mulc 1.0417"
    " --resize 50%",
}

IMAGEMAGICK = {
    "gaussian": "-gaussian-blur 0x2",
    "median": "-statistic median 5x5",
    "resize": "-resize 50%",
    "clahe": "-clahe 750x500+256+4",
    "unsharp": "-unsharp 0x2+1+0",
    "chain": "-statistic median 3x3 -gaussian-blur 0x1 -unsharp 0x2+1+0 -level 2%,98% -resize 50%",
}


def make_picture(path, width, height):
    """Writes a picture that compresses like a photograph: slopes, edges of many sizes, texture, grain."""
    import cv2
    import numpy

    chance = numpy.random.default_rng(1)
    picture = numpy.zeros((height, width, 3), numpy.float32)
    for size, weight in ((6, 60), (25, 40), (110, 24), (450, 10)):
        cells = chance.normal(size=(size * height // width + 2, size + 2, 3)).astype(numpy.float32)
        picture += weight * cv2.resize(cells, (width, height), interpolation=cv2.INTER_CUBIC)
    for _ in range(300):
        x, y = (int(chance.integers(side)) for side in (width, height))
        wide, high = (int(chance.integers(20, side // 8)) for side in (width, height))
        picture[y : y + high, x : x + wide] += chance.normal(0, 30, 3)
    picture += 128
    picture += chance.normal(0, 2.5, size=picture.shape).astype(numpy.float32)
    options = {"jpg": [cv2.IMWRITE_JPEG_QUALITY, 92], "tif": [cv2.IMWRITE_TIFF_COMPRESSION, 1], "png": []}
    cv2.imwrite(path, numpy.clip(picture, 0, 255).astype(numpy.uint8), options[path[-3:]])


def commands(name, kind, source, folder, broadloom):
    """Returns the command of every program for an effect, and the file that it writes."""
    out = {program: f"{folder}/{program}.{kind}" for program in ("ours", "opencv", "vips", "oiiotool", "imagemagick")}
    rows = {"ours": [broadloom, "effect", *EFFECTS[name].split()[:1], source, out["ours"], *EFFECTS[name].split()[1:], "--device", "cpu"]}
    program = OPENCV_PROGRAM.replace("EXPRESSION", OPENCV[name])
    rows["opencv"] = [sys.executable, "-c", program, source, out["opencv"]]
    if name in VIPS:
        words = VIPS[name].split()
        place = words.index("{}")
        rows["vips"] = ["vips", *words[:place], source, out["vips"] + VIPS_WRITER[kind], *words[place + 1 :]]
    if name in OIIOTOOL:
        writer = {"png": [], "jpg": ["--compression", "jpeg:90"], "tif": ["--compression", "none"]}[kind]
        rows["oiiotool"] = ["oiiotool", source, *OIIOTOOL[name].split(), *writer, "-o", out["oiiotool"]]
    if name in IMAGEMAGICK:
        writer = {"png": [], "jpg": ["-quality", "90"], "tif": ["-compress", "none"]}[kind]
        rows["imagemagick"] = ["convert", source, *IMAGEMAGICK[name].split(), *writer, out["imagemagick"]]
    return rows


def make_frames(folder, count, broadloom):
    """Writes HD frames of halves with a little grain, each shifted against the one before."""
    import cv2
    import numpy

    make_picture(f"{folder}/frames.png", 2048, 1200)
    picture = (cv2.imread(f"{folder}/frames.png") / 255.0).astype(numpy.float32) ** 2.2
    for number in range(count):
        part = picture[number : number + 1080, 2 * number : 2 * number + 1920]
        cv2.imwrite(f"{folder}/frame.pfm", part)
        convert = ["effect", "channels", f"{folder}/frame.pfm", f"{folder}/in.{number + 1:04}.exr", "--set", "planes=R,G,B"]
        subprocess.run([broadloom, *convert, "--depth", "half", "--compression", "balanced"], check=True)


def frame_commands(folder, count, broadloom):
    """Returns the command of every program that blurs frames."""
    ours = ["effect", "gaussian", f"{folder}/in.####.exr", f"{folder}/ours.####.exr", "--set", "sigma=2", "--device", "cpu"]
    files = ["oiiotool", f"{folder}/in.#.exr", "--blur:kernel=gaussian", "11x11", "--frames", f"1-{count}"]
    return {
        "ours": [broadloom, *ours],
        "oiiotool": [*files, "-o", f"{folder}/oiiotool.#.exr"],
    }


def in_own_process(function, *arguments):
    """Calls a function in a process of its own, because the memory of this one counts as that of its children."""
    maker = multiprocessing.get_context("spawn").Process(target=function, args=arguments)
    maker.start()
    maker.join()


def run(command):
    """Runs a command. Returns wall time and processor time in seconds, and peak memory in megabytes."""
    started = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env={**os.environ, "BROADLOOM_QUIET": "1"})
    said = process.stderr.read()
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise SystemExit(f"{' '.join(command[:3])} failed: {said.decode(errors='replace')[-400:]}")
    return time.monotonic() - started, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024 / 1e6


def measure(rows, rounds, once):
    """Runs programs by turns. Returns the medians of each; those of `once` have one turn."""
    turns = {program: [] for program in rows}
    for number in range(rounds):
        for program, command in rows.items():
            if number == 0 or program not in once:
                turns[program].append(run(command))
    return {program: [statistics.median(values) for values in zip(*taken)] for program, taken in turns.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--broadloom", default="target/release/broadloom")
    parser.add_argument("--folder", default="/tmp/broadloom-effect-files")
    parser.add_argument("--effects", default=",".join(EFFECTS))
    parser.add_argument("--kinds", default="png,jpg,tif")
    parser.add_argument("--size", default="6000x4000")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--programs", default="ours,opencv,vips,oiiotool,imagemagick")
    parser.add_argument("--once", default="oiiotool,imagemagick", help="programs that have one turn, because they are slow")
    parser.add_argument("--frames", type=int, default=0, help="number of HD frames of a sequence of EXR, as another row")
    parser.add_argument("--prepare", action="store_true", help="make the pictures and fill the cache of kernels, and measure nothing")
    arguments = parser.parse_args()
    os.makedirs(arguments.folder, exist_ok=True)
    width, height = map(int, arguments.size.split("x"))
    tools = {"vips": "vips", "oiiotool": "oiiotool", "imagemagick": "convert"}
    programs = [name for name in arguments.programs.split(",") if name not in tools or shutil.which(tools[name])]
    print("| effect | file | program | wall, s | processor, s | peak, MB | ratio of wall | ratio of processor |")
    print("| --- | --- | --- | ---: | ---: | ---: | ---: | ---: |")
    for kind in filter(None, arguments.kinds.split(",")):
        source = f"{arguments.folder}/in-{arguments.size}.{kind}"
        if not os.path.exists(source):
            in_own_process(make_picture, source, width, height)
        for name in arguments.effects.split(","):
            rows = commands(name, kind, source, arguments.folder, arguments.broadloom)
            show(name, kind, {program: rows[program] for program in programs if program in rows}, arguments)
    if arguments.frames:
        if not os.path.exists(f"{arguments.folder}/in.{arguments.frames:04}.exr"):
            in_own_process(make_frames, arguments.folder, arguments.frames, arguments.broadloom)
        rows = frame_commands(arguments.folder, arguments.frames, arguments.broadloom)
        name = f"gaussian, {arguments.frames} HD frames"
        show(name, "exr", {program: rows[program] for program in programs if program in rows}, arguments)


def show(name, kind, rows, arguments):
    """Measures programs and prints a row for each."""
    if "ours" in rows:
        # Fills the cache of kernels.
        run(rows["ours"])
    if arguments.prepare:
        return
    taken = measure(rows, arguments.rounds, arguments.once.split(","))
    ours = taken.get("ours")
    for program, (wall, processor, memory) in taken.items():
        ratio = f"{ours[0] / wall:.2f} | {ours[1] / processor:.2f}" if ours and program != "ours" else "– | –"
        print(f"| {name} | {kind} | {program} | {wall:.2f} | {processor:.2f} | {memory:.0f} | {ratio} |", flush=True)


if __name__ == "__main__":
    main()
