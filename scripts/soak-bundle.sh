#!/bin/bash
# Builds a folder that compares random kernels on the CPU with the interpreter on a machine with nothing installed: the test program of
# `make soak`, stripped, with LLVM, the C++ library and libffi linked into it, and a script that runs it in many processes at once.
set -euo pipefail
cd "$(dirname "$0")/.."

folder=target/soak-bundle
static=$folder/static
program=$folder/broadloom-soak/kernels
mkdir -p "$static" "$folder/broadloom-soak"
# A folder that holds only the static libraries, searched first.
for library in libstdc++.a libffi.a libz.a libzstd.a libxml2.a; do
    path=$(cc -print-file-name=$library)
    if [ -e "$path" ]; then ln -sf "$(realpath "$path")" "$static/$library"; fi
done

built=$(CARGO_PROFILE_RELEASE_DEBUG=0 CARGO_PROFILE_RELEASE_STRIP=symbols RUSTFLAGS="-L native=$PWD/$static" \
    cargo test --release --locked --package broadloom-fuzzgen --test cpu --no-run --target-dir "$folder/build" 2>&1 | tee >(cat >&2) |
    sed -n 's/.*Executable .*(\(.*\))$/\1/p')

cp "$built" "$program"
cp scripts/soak.sh "$folder/broadloom-soak/soak.sh"
tar --create --gzip --file "$folder/broadloom-soak.tar.gz" --directory "$folder" broadloom-soak
echo "$folder/broadloom-soak.tar.gz: $(du -h "$folder/broadloom-soak.tar.gz" | cut -f1)"
echo "needs:"
ldd "$program" | awk '{ print "    " $1 }'
