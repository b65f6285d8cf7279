#!/bin/sh
# Builds for 64-bit Arm and runs the tests of simd/, ops/, engine/ and pipeline/ in emulation, with
# the instructions for dot products of bytes and without them.
#
#   scripts/test_aarch64.sh [--all]
#
# Without --all what takes long in emulation is left out: see LABELS in tests/CMakeLists.txt.
# Environment: TESSERA_JOBS (parallel compilers and tests, default: the number of CPUs).
set -eu
cd "$(dirname "$0")/.."
build=$(pwd)/build-aarch64
jobs=${TESSERA_JOBS:-$(nproc)}

say() { echo "test_aarch64: $*" >&2; }

# Debian's libraries for Arm cannot be installed beside this machine's (libopencv-dev is there for
# one architecture at a time): apt-get, with a state of its own in which nothing is installed, gets
# them and all that they need, and they are unpacked into a folder.
make_sysroot() {
  apt=$build/apt
  sysroot=$build/sysroot
  rm -rf "$sysroot"
  mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial" "$sysroot"
  : >"$apt/status"
  get() {
    apt-get -qq -o APT::Architecture=arm64 -o APT::Architectures=arm64 \
      -o APT::Install-Recommends=false -o APT::Sandbox::User= -o Debug::NoLocking=1 \
      -o Dir::State="$apt" -o Dir::State::status="$apt/status" -o Dir::Cache="$apt/cache" \
      "$@" </dev/null >&2
  }
  get update
  get -y --download-only install libopencv-dev libprotobuf-dev libonnx-dev libhwy-dev libcli11-dev \
    libpng-dev zlib1g-dev libjpeg62-turbo-dev libwebp-dev libtiff-dev libgif-dev libavformat-dev \
    libavcodec-dev libswscale-dev libavutil-dev libgtest-dev libgmock-dev
  find "$apt/cache/archives" -name '*.deb' -print0 |
    xargs -0 -P "$jobs" -I DEB dpkg-deb -x DEB "$sysroot"
  # Links to /lib would lead out of it. Those of Debian's alternatives are missing.
  libraries=$sysroot/usr/lib/aarch64-linux-gnu
  find "$libraries" -type l -lname '/lib/*' | while read -r link; do
    ln -sfn "$sysroot$(readlink "$link")" "$link"
  done
  ln -s blas/libblas.so.3 lapack/liblapack.so.3 "$libraries"
  rm -rf "$apt"
  touch "$sysroot/complete"
}

scripts/install_packages.sh g++-aarch64-linux-gnu qemu-user-static cmake ninja-build pkg-config
if [ ! -e "$build/sysroot/complete" ]; then
  say "getting the libraries for Arm (240 MB)"
  make_sysroot
fi
if [ ! -f "$build/build.ninja" ]; then
  cmake --preset aarch64 ${TESSERA_CMAKE_ARGS:-} >&2
fi
cmake --build --preset aarch64 --parallel "$jobs" >&2

preset=aarch64
if [ "${1:-}" = --all ]; then preset=aarch64-all; fi
for cpu in neoverse-n1 cortex-a72; do
  say "on a $cpu"
  QEMU_CPU=$cpu ctest --preset "$preset" -j "$jobs"
done
