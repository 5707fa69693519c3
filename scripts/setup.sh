#!/usr/bin/env bash
# Installs the Debian 12 packages the build needs, and those named as arguments,
# or after --only these alone, where they are missing.
set -euo pipefail

packages=(libmlir-22-dev mlir-22-tools llvm-22-dev llvm-22-tools clang-22
          lld-22 cmake ninja-build python3 python3-numpy zlib1g-dev
          libzstd-dev "$@")
[[ ${1-} != --only ]] || packages=("${@:2}")
missing=()
for package in "${packages[@]}"; do
  status=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
  [[ $status == installed ]] || missing+=("$package")
done
[[ ${#missing[@]} -gt 0 ]] || exit 0

install="apt-get install -y --no-install-recommends ${missing[*]}"
if [[ $(id -u) -ne 0 ]]; then
  echo "setup: packages are missing; run as root: apt-get update && $install" >&2
  exit 1
fi
echo "setup: installing ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
$install > /dev/null
