#!/usr/bin/env bash
# Installs the Python package with the libflash of BUILD into a virtual
# environment, BUILD/python, and what its tests need. Does nothing where that is
# done already.
set -euo pipefail

build=$(realpath "$1") python=$2
venv=$build/python
stamp=$venv/installed

if [[ -f $stamp && $stamp -nt $build/lib/libflash.so ]] &&
  [[ -z $(find pyproject.toml CMakeLists.txt python include/flash-c \
    -newer "$stamp" -type f -not -path '*/__pycache__/*') ]]; then
  exit 0
fi
echo "setup-python: installing the package into $venv"
# NumPy is the system's.
[[ -x $venv/bin/python ]] || "$python" -m venv --system-site-packages "$venv"
pip=("$venv/bin/python" -m pip --disable-pip-version-check -q)
if ! "$venv/bin/python" -c 'import nanobind, scikit_build_core, pytest' 2>/dev/null; then
  "${pip[@]}" install 'nanobind>=2.2' 'scikit-build-core>=0.10' 'pytest>=7'
fi
# A build directory of before may be of another compiler.
rm -rf "$build/python-build"
CC=${CC:-clang-22} CXX=${CXX:-clang++-22} "${pip[@]}" install \
  --no-build-isolation --no-deps --force-reinstall . \
  --config-settings=build-dir="$build/python-build" \
  --config-settings=cmake.define.FLASH_LIBRARY="$build/lib/libflash.so"
touch "$stamp"
