#!/bin/sh
# Installs the Debian packages that are missing, configures build/ and builds it.
#
#   scripts/setup.sh [TARGET...]      default: everything
#
# Environment: TESSERA_CMAKE_ARGS (more arguments for cmake, separated by spaces), TESSERA_JOBS
# (parallel compilers, default: the number of CPUs). Messages go to stderr.
set -eu
cd "$(dirname "$0")/.."

packages="g++ cmake ninja-build libopencv-dev libprotobuf-dev libonnx-dev libonnx-testdata libhwy-dev
  libcli11-dev libpng-dev zlib1g-dev libjpeg62-turbo-dev libwebp-dev libtiff-dev libgif-dev
  libavformat-dev libavcodec-dev libswscale-dev libavutil-dev
  pkg-config libgtest-dev libgmock-dev libbenchmark-dev"

say() { echo "setup: $*" >&2; }

as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

install_missing() {
  if ! command -v dpkg-query >/dev/null; then
    say "not a Debian system; expecting these to be installed:" $packages
    return
  fi
  missing=
  for package in $packages; do
    status=$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null || true)
    case $status in installed*) ;; *) missing="$missing $package" ;; esac
  done
  if [ -z "$missing" ]; then return; fi
  if [ "$(id -u)" != 0 ] && ! command -v sudo >/dev/null; then
    say "missing packages, and neither root nor sudo to install them:$missing"
    exit 1
  fi
  say "installing with apt-get:$missing"
  # The list of unpacked packages is long and says nothing; errors still come on stderr.
  as_root apt-get -qq -o DPkg::Lock::Timeout=300 update </dev/null >&2
  as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -y --no-install-recommends \
    -o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0 install $missing </dev/null >/dev/null
}

install_missing

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
