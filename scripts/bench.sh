#!/bin/sh
# Times the networks that Tessera is measured on, beside ONNX Runtime if npm is there to install it
# (into the build folder), and writes the table to build/bench.md; below it another one says what
# 8-bit integers bring (--only int8: that alone).
#
#   scripts/bench.sh [--rounds N] [--threads N]... [--only NAME]
#   scripts/bench.sh --quick          one short run each, of what is built, without ONNX Runtime:
#                                     a test of this script
#
# Published networks are taken from ../shared (or $TESSERA_SHARED) where they are; in place of
# others stand equal ones with random weights. The machine should have nothing else to do.
# Environment: TESSERA_BUILD_DIR, where --quick finds what is built (default: build).
# Exit codes: 0 done, 77 no python3 here (ctest shows that as skipped), others: failed.
set -eu
cd "$(dirname "$0")/.."

say() { echo "bench: $*" >&2; }

if ! command -v python3 >/dev/null; then
  say "python3 is needed and not here"
  exit 77
fi

quick=
for argument in "$@"; do
  if [ "$argument" = --quick ]; then quick=1; fi
done
if [ -n "$quick" ]; then
  exec python3 tests/bench/speed_table.py --build "${TESSERA_BUILD_DIR:-build}" "$@"
fi

scripts/setup.sh onnx-bench build-model quantize track upscale

build=$(pwd)/build
modules=$build/onnxruntime/node_modules
install_onnxruntime() {
  npm install --ignore-scripts --no-audit --no-fund --loglevel=error \
    --prefix "$build/onnxruntime" onnxruntime-node >&2
}
if ! command -v node >/dev/null; then
  say "no Node.js here: Tessera alone is measured"
elif [ -d "$modules/onnxruntime-node" ] || install_onnxruntime; then
  set -- --onnxruntime "$modules" "$@"
else
  say "npm cannot install onnxruntime-node: Tessera alone is measured"
fi
exec python3 tests/bench/speed_table.py --build "$build" "$@"
