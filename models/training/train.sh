#!/bin/sh
# Trains the built-in weights: train.sh x2|x4|x4-restore [option of train.py]...
#
# Uses two cores for MINUTES (default 90) at the lowest priority. Interrupted, the same command
# goes on from the last checkpoint; with --new-cycle a finished training starts a further cycle
# from its weights. x2 and x4-restore start from the weights of default-x4.
# The best weights are TESSERA_TRAINING_DIR/NAME/best.f32 (see export.py for the format).
set -eu

here=$(cd "$(dirname "$0")" && pwd)
directory=${TESSERA_TRAINING_DIR:-$HOME/.cache/tessera-training}
python=${PYTHON:-/usr/bin/python3}
name=${1:-}
start=$here/../weights/default-x4.onnx

case $name in
  x2) recipe="--scale 2 --start $start" ;;
  x4) recipe="--scale 4" ;;
  x4-restore) recipe="--scale 4 --damaged --start $start" ;;
  *)
    echo "usage: train.sh x2|x4|x4-restore [option of train.py]..." >&2
    exit 2
    ;;
esac
shift

if ! "$python" -c 'import numpy, onnx, PIL, torch' 2>/dev/null; then
  echo "train.sh: install the Debian packages:" \
    "python3-torch python3-numpy python3-onnx python3-pil" >&2
  exit 2
fi

mkdir -p "$directory"
# Passive waiting: a thread that waits must not burn the core that others compile on.
export OMP_WAIT_POLICY=passive
# Kept memory: otherwise every step takes its tensors from the system anew, a fifth of its time.
export MALLOC_MMAP_THRESHOLD_=1000000000 MALLOC_TRIM_THRESHOLD_=4000000000
# shellcheck disable=SC2086
exec nice -n 19 "$python" -u "$here/train.py" --directory "$directory/$name" \
  $recipe --features 48 --blocks 12 --steps 1000000 --minutes "${MINUTES:-90}" "$@"
