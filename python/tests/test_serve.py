"""examples/serve.py, with sizes that take seconds."""

import os
import pathlib
import re
import subprocess
import sys

import pytest

pytest.importorskip("torch")

SCRIPT = pathlib.Path(__file__).parents[2] / "examples" / "serve.py"


@pytest.mark.parametrize("more", ["", "--draft 2 --page 32 --key-heads 4 --chunk 1000"])
def test_serve(more):
    """Chunks, appended tokens and drafts have PyTorch's logits and tokens, and no call needs what was not prepared."""
    sizes = f"--device cpu --sequences 12 --length 40 --tokens 6 --chunk 64 --layers 2 --heads 4 --key-heads 2 --dim 16 {more}"
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, SCRIPT, *sizes.split()], capture_output=True, text=True, timeout=600, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "drafts gave 72 of 72 tokens" in done.stdout
    same, rows = re.search(r"(\d+) of (\d+) rows have the same token", done.stdout).groups()
    assert same == rows
    assert len(re.findall(r"flash_mlir +[\d,]+ tokens/s, PyTorch +[\d,]+ tokens/s", done.stdout)) == 3
