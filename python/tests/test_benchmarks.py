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


def test_serving():
    sizes = "--tokens=64 --sequences=2 --heads=4 --key-heads=2 --dim=16 --rounds=1".split()
    command = [sys.executable, BENCHMARKS / "serving.py", "--device=cpu", "--dtype=float32", *sizes]
    run = subprocess.run(command, capture_output=True, text=True)
    found = [json.loads(line) for line in run.stdout.splitlines()]
    assert not [each for each in found if "failed" in each] and run.returncode == 0, run.stderr
    names = {"card", "pages", "single", "drafts", "ragged", "mixed", "chunks", "host"}
    assert {each["what"] for each in found[1:]} == names
    results = [each for each in found if "differ" in each]
    assert {each["what"] for each in results} == names - {"card"}
    assert all(each["differ"].keys() == each["us"].keys() and max(each["differ"].values()) < 1e-4 for each in results)
