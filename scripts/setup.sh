#!/bin/sh
# Installs the Debian packages that are missing, configures build/ and builds it.
#
#   scripts/setup.sh [TARGET...]      default: everything
#   scripts/setup.sh --packages       only installs the packages
#
# Environment: TESSERA_CMAKE_ARGS (more arguments for cmake, separated by spaces), TESSERA_JOBS
# (parallel compilers, default: the number of CPUs). Messages go to stderr.
set -eu
cd "$(dirname "$0")/.."

say() { echo "setup: $*" >&2; }

scripts/install_packages.sh g++ cmake ninja-build libopencv-dev libprotobuf-dev libonnx-dev \
  libonnx-testdata libhwy-dev libcli11-dev libpng-dev zlib1g-dev libjpeg62-turbo-dev libwebp-dev \
  libtiff-dev libgif-dev libavformat-dev libavcodec-dev libswscale-dev libavutil-dev pkg-config \
  libgtest-dev libgmock-dev libbenchmark-dev
if [ "${1:-}" = --packages ]; then exit; fi

# A second run only has to ask the build tool, which configures again by itself when a
# CMakeLists.txt has changed. (A CMakeCache.txt alone may be what a failed configuration left.)
if [ ! -f build/build.ninja ] && [ ! -f build/Makefile ] || [ -n "${TESSERA_CMAKE_ARGS:-}" ]; then
  generator=
  if [ ! -f build/CMakeCache.txt ] && command -v ninja >/dev/null; then generator="-G Ninja"; fi
  say "configuring build/"
  cmake -S . -B build $generator -DCMAKE_BUILD_TYPE=Release ${TESSERA_CMAKE_ARGS:-} >&2
fi

if [ $# -gt 0 ]; then
  set -- --target "$@"
fi
cmake --build build --parallel "${TESSERA_JOBS:-$(nproc)}" "$@" >&2
