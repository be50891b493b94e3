#!/bin/bash
# Writes crates/cudart/functions/versions.txt: which exported function a name of the driver means from a version of CUDA on. The typedefs of NVIDIA's headers
# (PFN_name_vVERSION, with _ptsz or _ptds for a default stream per thread) have the names and versions; the exported functions of a name, in the order of their
# own versions, belong to them one by one. CUDA_INCLUDE names the folder of the headers; otherwise it is the one beside nvcc.
# `scripts/cuda-versions.sh --check` writes nothing and fails when the file is not what the headers say.

set -euo pipefail
cd "$(dirname "$0")/.."
include=${CUDA_INCLUDE:-$(dirname "$(dirname "$(command -v nvcc)")")/include}
functions=crates/cudart/functions
table=$(python3 - "$include" "$functions/driver.txt" <<'END'
import glob, re, sys

include, functions = sys.argv[1:]
listed = {line.split()[0] for line in open(functions) if line.strip() and line[0] not in "#["}
versions = {}
for path in sorted(glob.glob(include + "/cuda*Typedefs.h")):
    for name, version, stream in re.findall(r"\*\s*PFN_(cu\w+?)_v(\d+)(_ptsz|_ptds|)\)", open(path).read()):
        versions.setdefault((name, stream), set()).add(int(version))
rows = []
for (name, stream), known in versions.items():
    symbols = [name + number + stream for number in ["", "_v2", "_v3", "_v4", "_v5", "_v6"]]
    symbols = [symbol for symbol in symbols if symbol in listed]
    # Functions for Windows are not exported here.
    if not symbols and name.startswith("cuWGL"):
        continue
    if len(symbols) != len(known):
        sys.exit(f"{name}{stream}: versions {sorted(known)}, but functions {symbols} in {functions}")
    rows += [(name, version, symbol) for version, symbol in zip(sorted(known), symbols)]
for name, version, symbol in sorted(rows):
    print(name, version, symbol)
END
)
text="# Functions of the driver by name: the version of CUDA from which on the name means the exported function. scripts/cuda-versions.sh writes this.
$table"
if [ "${1:-}" = --check ]; then
    diff <(echo "$text") "$functions/versions.txt"
else
    echo "$text" > "$functions/versions.txt"
fi
