"""Runs launch.py with a fake driver of the compiler's build, which FLASH_FAKE_CUDA names."""

import os
import pathlib
import subprocess
import sys

import pytest

FAKE = os.environ.get("FLASH_FAKE_CUDA")


@pytest.mark.skipif(not FAKE, reason="FLASH_FAKE_CUDA names no fake driver")
def test_launch(tmp_path):
    (tmp_path / "libcuda.so.1").symlink_to(FAKE)
    environment = {**os.environ, "LD_LIBRARY_PATH": str(tmp_path)}
    script = pathlib.Path(__file__).with_name("launch.py")
    done = subprocess.run([sys.executable, str(script)], env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
