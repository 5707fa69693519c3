"""examples/train.py, with sizes that take seconds."""

import pathlib
import subprocess
import sys

import pytest

pytest.importorskip("torch")
SCRIPT = pathlib.Path(__file__).parents[2] / "examples" / "train.py"


def test_train():
    sizes = "--device cpu --steps 12 --layers 1 --dim 32 --heads 2 --batch 2 --length 100 --distances 16"
    done = subprocess.run([sys.executable, SCRIPT, *sizes.split()], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "two runs of flash_mlir have the same bits" in done.stdout
