#!/bin/bash
# Builds one stripped program that tests and measures a GPU on a machine with nothing installed but the driver:
# LLVM, the C++ library and libffi are linked into it, the test files and the corpus are inside of it.
set -euo pipefail
cd "$(dirname "$0")/.."

folder=target/gpu-bundle
static=$folder/static
mkdir -p "$static"
# A folder that holds only the static libraries, searched first.
for library in libstdc++.a libffi.a libz.a libzstd.a libxml2.a; do
    path=$(cc -print-file-name=$library)
    if [ -e "$path" ]; then ln -sf "$(realpath "$path")" "$static/$library"; fi
done

CARGO_PROFILE_RELEASE_DEBUG=0 CARGO_PROFILE_RELEASE_STRIP=symbols \
    RUSTFLAGS="-L native=$PWD/$static" \
    cargo build --release --locked --package broadloom-gpubundle --target-dir "$folder/build"

cp "$folder/build/release/broadloom-gpubundle" "$folder/broadloom-gpubundle"
echo "$folder/broadloom-gpubundle: $(du -h "$folder/broadloom-gpubundle" | cut -f1)"
echo "needs:"
ldd "$folder/broadloom-gpubundle" | awk '{ print "    " $1 }'
