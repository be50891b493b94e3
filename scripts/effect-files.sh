#!/bin/bash
# Effects from file to file beside OpenCV, libvips, oiiotool and ImageMagick: installs OpenCV into a folder of its own, then
# measures. The others are used where they are installed (libvips-tools, openimageio-tools, imagemagick of Debian). Arguments
# go to `effect-files.py`; `--size 10000x10000 --effects gaussian,clahe` measures other pictures.
set -euo pipefail
cd "$(dirname "$0")/.."

folder=${BROADLOOM_PEERS:-${XDG_CACHE_HOME:-$HOME/.cache}/broadloom/venv}
if [ ! -x "$folder/bin/python" ]; then
    python3 -m venv "$folder"
fi
"$folder/bin/python" -c 'import cv2' 2>/dev/null || "$folder/bin/pip" install --quiet opencv-python-headless
exec "$folder/bin/python" scripts/effect-files.py "$@"
