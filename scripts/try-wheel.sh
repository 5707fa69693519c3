#!/usr/bin/env bash
# Installs a wheel into a fresh virtual environment of an interpreter and does what README.md shows for it, with the time
# of each step. Nothing of the repository but README.md and examples, of LLVM or of a compiler is to be found.
set -euo pipefail

wheel=$(realpath "$1") python=$2 root=$(realpath "$(dirname "$0")/..")
venv=$(mktemp -d)
trap 'rm -rf "$venv"' EXIT
"$python" -m venv "$venv"
mkdir -p "$venv/try/build/wheels"
cp "$wheel" "$venv/try/build/wheels"
cp -r "$root/examples" "$venv/try"
cd "$venv/try"
export PATH=$venv/bin:/usr/bin:/bin XDG_CACHE_HOME=$venv/cache PIP_DISABLE_PIP_VERSION_CHECK=1
unset LD_LIBRARY_PATH PYTHONPATH
python "$root/scripts/run-doors.py" "$root/README.md"
flash-run --version
