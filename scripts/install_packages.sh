#!/bin/sh
# Installs those of the given Debian packages that are missing, as root or with sudo.
#
#   scripts/install_packages.sh PACKAGE...
set -eu

say() { echo "setup: $*" >&2; }

as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

if ! command -v dpkg-query >/dev/null; then
  say "not a Debian system; expecting these to be installed: $*"
  exit
fi
missing=
for package in "$@"; do
  status=$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null || true)
  case $status in installed*) ;; *) missing="$missing $package" ;; esac
done
if [ -z "$missing" ]; then exit; fi
if [ "$(id -u)" != 0 ] && ! command -v sudo >/dev/null; then
  say "missing packages, and neither root nor sudo to install them:$missing"
  exit 1
fi
say "installing with apt-get:$missing"
# The list of unpacked packages is long and says nothing; errors still come on stderr.
as_root apt-get -qq -o DPkg::Lock::Timeout=300 update </dev/null >&2
as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -y --no-install-recommends \
  -o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0 install $missing </dev/null >/dev/null
