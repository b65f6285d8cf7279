#!/bin/sh
# Writes the table of operators in README.md anew, from what onnx-bench knows.
#
#   scripts/readme_operators.sh [--check]
#
# --check changes nothing; it shows what differs and fails if something does. Environment:
# TESSERA_BUILD_DIR (default: build).
set -eu
cd "$(dirname "$0")/.."

# Ranges are named only where they are not those of the whole program.
table() {
  echo "$ops" | awk '
    { split($2, range, "-")
      note = ""
      if (range[1] > 7 && range[2] < 21) note = " (" range[1] " to " range[2] ")"
      else if (range[1] > 7) note = " (from " range[1] ")"
      else if (range[2] < 21) note = " (to " range[2] ")"
      letter = substr($1, 1, 1)
      if (letter != last) printf "%s| %s | ", (NR == 1 ? "" : " |\n"), letter
      else printf ", "
      printf "%s%s", $1, note
      last = letter }
    END { print " |" }'
}

ops=$("${TESSERA_BUILD_DIR:-build}/bin/onnx-bench" --ops)
rows=$(table)
new=$(mktemp)
trap 'rm -f "$new"' EXIT
rows=$rows awk '
  /^<!-- operators/ { print; print "| | |\n|---|---|\n" ENVIRON["rows"]; skipping = 1 }
  /^<!-- end of operators/ { skipping = 0 }
  !skipping { print }' README.md >"$new"

if [ "${1:-}" = --check ]; then
  if ! diff -u README.md "$new"; then
    echo "README.md: its operators are not those of the program; run scripts/readme_operators.sh" >&2
    exit 1
  fi
else
  cat "$new" >README.md
fi
