#!/bin/sh
# Sets Tessera up and runs the test suite.
#
#   scripts/test.sh [CTEST ARGUMENTS]   such as: scripts/test.sh -R Conv
set -eu
cd "$(dirname "$0")/.."

scripts/setup.sh
ctest --test-dir build -j2 --output-on-failure "$@"
