#!/bin/sh
# Sets Tessera up and upscales a picture four times with the built-in model.
#
#   scripts/demo.sh [IN OUT]          default: a picture of samples/, into build/demo.png
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)

case $# in
  0)
    in=$root/samples/mountain.png
    out=$root/build/demo.png
    ;;
  2)
    in=$1
    out=$2
    ;;
  *)
    echo "usage: scripts/demo.sh [IN OUT]" >&2
    exit 2
    ;;
esac

"$root/scripts/setup.sh" upscale
"$root/build/bin/upscale" --overwrite "$in" "$out"
