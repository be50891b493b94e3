#!/usr/bin/env bash
# `RUSTC_WORKSPACE_WRAPPER` of `make test`: compiles a crate of the workspace. If `CLIPPY_ARGS` is set,
# `clippy-driver` compiles and lints it in one pass.
#
# Test programs run once and are not optimised: that would take longer than it saves. Cargo has one level for
# all targets of a package, and tests need the libraries of some packages at level 2.
#
# The library `broadloom` is also compiled without its feature `cpu`. Cargo would compile its dependencies again.
set -euo pipefail

compiler=(${CLIPPY_ARGS:+clippy-driver} "$1")
shift

level=()
name=
before=
for argument in "$@"; do
    # Cargo gives `--cfg test` to test programs with a harness of their own.
    case "$before $argument" in
        *" --test" | "--cfg test") level=(-C opt-level=0) ;;
        "--crate-name "*) name=$argument ;;
    esac
    before=$argument
done

if [ "$name" = broadloom ] && [[ " $* " = *" --crate-type lib "* ]]; then
    folder=$(mktemp -d)
    trap 'rm -rf "$folder"' EXIT
    without=()
    before=
    for argument in "$@"; do
        case "$before $argument" in
            "--cfg feature="*) unset 'without[-1]' ;;
            "--extern broadloom_cpu="*) unset 'without[-1]' ;;
            *" --emit="*) without+=(--emit=metadata) ;;
            # Cargo would take its file for that of the library.
            *" --json="*) without+=("${argument/,artifacts/}") ;;
            "--out-dir "*) without+=("$folder") ;;
            *) without+=("$argument") ;;
        esac
        before=$argument
    done
    "${compiler[@]}" "${without[@]}"
fi

"${compiler[@]}" "$@" "${level[@]}"
