#!/usr/bin/env bash
# Builds the wheel of the Python package with maturin, which it installs into a folder of its own, and tries it in a
# new environment.
set -euo pipefail
cd "$(dirname "$0")/.."

tools=target/wheel-tools
if ! "$tools/bin/maturin" --version >/dev/null 2>&1; then
    rm -rf "$tools"
    python3 -m venv "$tools"
    "$tools/bin/pip" install --quiet 'maturin>=1.9,<2'
fi
"$tools/bin/maturin" build --release --locked --manifest-path crates/python/Cargo.toml --compatibility linux --out target/wheels "$@"

fresh=$(mktemp -d)
trap 'rm -rf "$fresh"' EXIT
python3 -m venv "$fresh"
"$fresh/bin/pip" install --quiet target/wheels/broadloom-*.whl
(cd "$fresh" && bin/python -c 'import broadloom as bl; x = bl.asarray([1.0, 2.0, 3.0]); assert float((x * 2 + 1).sum()) == 15')
ls -sh target/wheels/broadloom-*.whl
