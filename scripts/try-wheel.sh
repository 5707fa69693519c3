#!/usr/bin/env bash
# Installs a wheel into a fresh virtual environment of an interpreter and tries what it brings: the package, the tools.
set -euo pipefail

wheel=$(realpath "$1") python=$2 examples=$(realpath "$(dirname "$0")/../examples")
venv=$(mktemp -d)
trap 'rm -rf "$venv"' EXIT
"$python" -m venv "$venv"
"$venv/bin/python" -m pip --disable-pip-version-check -q install "$wheel"
# Nothing of the repository, of LLVM or of a compiler is to be found.
cd "$venv"
export PATH=$venv/bin:/usr/bin:/bin XDG_CACHE_HOME=$venv/cache
flash-run --version
flash-run "$examples/causal.mlir" --target=cpu --check
flash-opt "$examples/causal.mlir" --flash-select-schedule > /dev/null
python - << 'END'
import numpy as np
import flash_mlir as flash

query, key, value = np.random.default_rng(0).standard_normal((3, 1, 2, 50, 16), dtype=np.float32)
slopes = np.array([0.5, 0.25], dtype=np.float32)
score = lambda s, b, h, q, k: 30.0 * flash.tanh(s / 30.0) + slopes[h] * (k - q)
output = flash.attention(query, key, value, mask=flash.causal() | flash.prefix(16), score=score)
assert output.shape == (1, 2, 50, 16) and np.isfinite(output).all()
print("flash_mlir", flash.__version__)
END
