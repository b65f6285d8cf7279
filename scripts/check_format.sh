#!/bin/sh
# Checks that every C++ file is formatted by .clang-format; --fix formats instead.
# Exit codes: 0 formatted, 1 not, 77 no clang-format here (ctest shows that as skipped).
set -eu
cd "$(dirname "$0")/.."

if ! command -v clang-format >/dev/null; then
  echo "skipped: clang-format is not installed"
  exit 77
fi
mode="--dry-run -Werror"
if [ "${1:-}" = --fix ]; then mode=-i; fi
find simd ops engine models pipeline apps samples tests \( -name '*.h' -o -name '*.cc' \) -print0 |
  xargs -0 clang-format $mode || exit 1
