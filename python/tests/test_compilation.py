"""What a call says that takes long to compile."""

import json
import logging
import os
import pathlib
import shutil
import subprocess
import sys

import flash_mlir as flash
import numpy as np
import pytest
from flash_mlir import compilation

ROWS = np.ones((1, 1, 8, 16), np.float32)


@pytest.fixture
def messages(monkeypatch, caplog):
    """Those of calls, which all are slow."""
    monkeypatch.delenv("FLASH_MLIR_QUIET", raising=False)
    monkeypatch.setattr(compilation, "SECONDS", 0.0)
    caplog.set_level(logging.WARNING, logger="flash_mlir")
    return lambda: [record.getMessage() for record in caplog.records if record.name == "flash_mlir"]


def call(scale, size=16):
    return flash.attention(ROWS[..., :size], ROWS[..., :size], ROWS[..., :size], mask=flash.causal(), scale=scale)


def test_slow_call(messages):
    """It says so once, and calls like it say nothing."""
    call(0.1234)
    (message,) = messages()
    assert message.startswith("compiling attention for a first call: dtype f32, head_dim 16, value_dim 16"), message
    assert "mask(#flash.causal)" in message and "target cpu" in message and "FLASH_MLIR_QUIET=1" in message
    call(0.1234)
    assert len(messages()) == 1


def test_slow_gradients(messages):
    output, lse = flash.attention(ROWS, ROWS, ROWS, scale=0.2345, return_lse=True)
    flash.attention_grad(ROWS, ROWS, ROWS, output, lse, output, scale=0.2345)
    assert [message.partition(" for ")[0] for message in messages()] == ["compiling attention", "compiling gradients"]


def test_quiet(messages, monkeypatch):
    monkeypatch.setenv("FLASH_MLIR_QUIET", "1")
    call(0.3456)
    assert messages() == []


def test_fast_call(messages, monkeypatch):
    monkeypatch.setattr(compilation, "SECONDS", 3600.0)
    call(0.4567)
    assert messages() == []


def test_stderr():
    """Without any logging of the program's own it is there."""
    script = (
        "import flash_mlir as flash, numpy as np\n"
        "flash.compilation.SECONDS = 0\n"
        "rows = np.ones((1, 1, 8, 16), np.float32)\n"
        "flash.attention(rows, rows, rows, scale=0.5678)\n"
    )
    environment = {name: value for name, value in os.environ.items() if name != "FLASH_MLIR_QUIET"}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0 and done.stdout == "", done
    assert done.stderr.startswith("compiling attention for a first call: ") and done.stderr.count("\n") == 1, done.stderr


@pytest.mark.skipif(not shutil.which("ptxas"), reason="there is no ptxas in the PATH")
def test_benchmark():
    """Without a GPU; a window's tiles are in one loop, so its kernel is shorter than a causal one, which has two."""
    script = pathlib.Path(__file__).parents[1] / "benchmarks" / "first_calls.py"
    command = [sys.executable, script, "--assemble", "--masks", "causal", "window", "--dims", "64", "--runs", "1"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    causal, window = map(json.loads, done.stdout.splitlines())
    assert (causal["mask"], window["mask"], causal["dim"]) == ("causal", "window", 64)
    assert causal["forward"]["kernels"] == 1 and causal["gradients"]["kernels"] == 3 and causal["forward"]["ptxas"] > 0
    assert 0 < window["forward"]["lines"] < causal["forward"]["lines"]
