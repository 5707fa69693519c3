#!/usr/bin/env bash
# Installs the wheel of WHEELS that is for an interpreter into a fresh virtual environment and does what README.md shows for it,
# with the time of each step: try-wheel.sh WHEELS PYTHON. Nothing of the repository but README.md and examples, of LLVM or of a
# compiler is to be found.
set -euo pipefail

wheels=$(realpath "$1") python=$2 root=$(realpath "$(dirname "$0")/..")
venv=$(mktemp -d)
trap 'rm -rf "$venv"' EXIT
"$python" -m venv "$venv"
"$venv/bin/python" -m pip --disable-pip-version-check download -q --no-deps --no-index --find-links "$wheels" \
  --dest "$venv/try/build/wheels" flash-mlir
cp -r "$root/examples" "$venv/try"
cd "$venv/try"
export PATH=$venv/bin:/usr/bin:/bin XDG_CACHE_HOME=$venv/cache PIP_DISABLE_PIP_VERSION_CHECK=1
unset LD_LIBRARY_PATH PYTHONPATH
python "$root/scripts/run-doors.py" "$root/README.md"
flash-run --version
