"""Runs launch.py and repeated_calls.py with a fake driver of the compiler's build, which FLASH_FAKE_CUDA names."""

import os
import pathlib
import subprocess
import sys

import pytest

FAKE = os.environ.get("FLASH_FAKE_CUDA")


@pytest.mark.skipif(not FAKE, reason="FLASH_FAKE_CUDA names no fake driver")
@pytest.mark.parametrize("has_exchange", [False, True])
@pytest.mark.parametrize("device", ["", "Ada"])
def test_launch(tmp_path, device, has_exchange):
    """On a card as ours, and on one that nobody has tried, which is said once; with DLPack in C and without."""
    done = run(tmp_path, "launch.py", device, **({"FAKE_EXCHANGE": "1"} if has_exchange else {}))
    assert done.stderr.count("compute capability 8.9, on which flash-mlir was not tried") == bool(device), done.stderr


@pytest.mark.skipif(not FAKE, reason="FLASH_FAKE_CUDA names no fake driver")
@pytest.mark.parametrize("device", ["", "Ada"])
def test_repeated_calls(tmp_path, device):
    """With tensor maps and without."""
    run(tmp_path, "repeated_calls.py", device, FAKE_LAUNCHES=str(tmp_path / "launches"))


def run(folder, script, device, **variables):
    fake = pathlib.Path(FAKE)
    (folder / "libcuda.so.1").symlink_to(fake.with_name(fake.name.replace("FakeCuda", "FakeCuda" + device)))
    environment = {**os.environ, "LD_LIBRARY_PATH": str(folder), **variables}
    script = pathlib.Path(__file__).with_name(script)
    done = subprocess.run(
        [sys.executable, "-W", "always", str(script)], env=environment, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done
