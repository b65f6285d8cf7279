#!/bin/sh
# Sets Tessera up and runs the test suite.
#
#   scripts/test.sh [CTEST ARGUMENTS]   such as: scripts/test.sh -R Conv
#   scripts/test.sh --sanitizers        instead, built by Clang: a part of it under the address,
#                                       undefined behaviour and thread sanitizers
#   scripts/test.sh --aarch64 [--all]   instead: a part of it on 64-bit Arm, in emulation
#
# Environment: TESSERA_JOBS (parallel compilers, default: the number of CPUs).
set -eu
cd "$(dirname "$0")/.."

case ${1:-} in
  --sanitizers)
    scripts/install_packages.sh clang libclang-rt-dev
    scripts/setup.sh --packages
    for preset in asan-ubsan tsan; do
      cmake --preset "$preset" ${TESSERA_CMAKE_ARGS:-} >&2
      cmake --build --preset "$preset" --parallel "${TESSERA_JOBS:-$(nproc)}" >&2
      ctest --preset "$preset" -j2
    done
    ;;
  --aarch64)
    shift
    scripts/test_aarch64.sh "$@"
    ;;
  *)
    scripts/setup.sh
    ctest --test-dir build -j2 --output-on-failure "$@"
    ;;
esac
