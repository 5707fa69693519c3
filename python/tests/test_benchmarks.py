"""Benchmarks run, on sizes that take seconds; what they measure is looked at where there is a GPU."""

import json
import pathlib
import subprocess
import sys

import pytest

pytest.importorskip("torch")
BENCHMARKS = pathlib.Path(__file__).parents[1] / "benchmarks"


def test_packed_rows():
    command = [sys.executable, BENCHMARKS / "packed_rows.py", "--device=cpu", "--dtype=float32", "--tokens=64", "--runs=1"]
    lines = subprocess.run([*command, "--only", "bits"], check=True, capture_output=True, text=True).stdout.splitlines()
    found = [json.loads(line) for line in lines]
    assert [each.get("what") for each in found] == [None] + 3 * ["bits"]
    assert all(all(each["same"].values()) for each in found[1:])
