#!/bin/bash
# strip.sh FILE…: moves line tables and symbols of each file to FILE.debug beside it. Backtraces find them there, as debuggers do.
#
# The time of a file stays what it is: compiled kernels are kept for a build, which is known by length and time of its file.
set -euo pipefail
if ! command -v objcopy >/dev/null; then
    echo "SKIPPED: line tables stay in the files, because there is no \`objcopy\` (package binutils)." >&2
    exit 0
fi
for file in "$@"; do
    # A file that has been stripped names the one with its line tables.
    if readelf --sections --wide "$file" | grep -q gnu_debuglink; then continue; fi
    folder=$(dirname "$file") name=$(basename "$file")
    (
        cd "$folder"
        objcopy --only-keep-debug "$name" "$name.debug"
        # Into another file, since cargo keeps this one under a second name.
        objcopy --preserve-dates --strip-unneeded --add-gnu-debuglink="$name.debug" "$name" "$name.stripped"
        mv -f "$name.stripped" "$name"
    )
done
