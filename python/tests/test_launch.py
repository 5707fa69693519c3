"""Runs launch.py with a fake driver of the compiler's build, which FLASH_FAKE_CUDA names."""

import os
import pathlib
import subprocess
import sys

import pytest

FAKE = os.environ.get("FLASH_FAKE_CUDA")


@pytest.mark.skipif(not FAKE, reason="FLASH_FAKE_CUDA names no fake driver")
@pytest.mark.parametrize("device", ["", "Ada"])
def test_launch(tmp_path, device):
    """On a card as ours, and on one that nobody has tried, which is said once."""
    fake = pathlib.Path(FAKE)
    (tmp_path / "libcuda.so.1").symlink_to(fake.with_name(fake.name.replace("FakeCuda", "FakeCuda" + device)))
    environment = {**os.environ, "LD_LIBRARY_PATH": str(tmp_path)}
    script = pathlib.Path(__file__).with_name("launch.py")
    done = subprocess.run(
        [sys.executable, "-W", "always", str(script)], env=environment, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr.count("compute capability 8.9, on which flash-mlir was not tried") == bool(device), done.stderr
