#!/bin/sh
# Trains the built-in weights: train.sh x4 [option of train.py]...
#
# Uses two cores for MINUTES (default 90) at the lowest priority. Interrupted, the same command
# goes on from the last checkpoint; with --new-cycle a finished training starts a further cycle
# from its weights.
# The best weights are TESSERA_TRAINING_DIR/x4/best.f32 (see export.py for the format).
set -eu

here=$(cd "$(dirname "$0")" && pwd)
directory=${TESSERA_TRAINING_DIR:-$HOME/.cache/tessera-training}
python=${PYTHON:-/usr/bin/python3}

if [ $# -lt 1 ] || [ "$1" != x4 ]; then
  echo "usage: train.sh x4 [option of train.py]..." >&2
  exit 2
fi
shift

if ! "$python" -c 'import numpy, PIL, torch' 2>/dev/null; then
  echo "train.sh: install the Debian packages: python3-torch python3-numpy python3-pil" >&2
  exit 2
fi

mkdir -p "$directory"
# Passive waiting: a thread that waits must not burn the core that others compile on.
export OMP_WAIT_POLICY=passive
exec nice -n 19 "$python" -u "$here/train.py" --directory "$directory/x4" \
  --scale 4 --features 48 --blocks 12 --steps 1000000 --minutes "${MINUTES:-90}" "$@"
