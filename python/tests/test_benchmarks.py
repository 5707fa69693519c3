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


def test_context_parallel():
    sizes = "--device=cpu --dtype=float32 --tokens 64 --heads 2/2 --dim 16 --masks causal --rounds 1 --link 1 --check 64".split()
    command = [sys.executable, BENCHMARKS / "context_parallel.py", *sizes, "--ours", "ours=head_groups:1+1", "heads=way:heads,head_groups:1"]
    command += ["copied=way:heads,exchange:copies"]
    run = subprocess.run(command, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr
    found = [json.loads(line) for line in run.stdout.splitlines()]
    assert [each["what"] for each in found] == ["card", "link", *["check"] * 3, "attention", "attention"]
    assert all(each["agree"] and each["same_bits_again"] for each in found[2:5])
    for each in found[5:]:
        assert {"one", "split", "ours", "ours alone", "heads", "heads alone", "copied alone"} <= each["ms"].keys() == each["tflops_per_gpu"].keys()
        assert each["way"]["ours"] == ["gather", [1, 1], 1, "messages"] and each["way"]["heads"] == ["heads", [1], 0, "messages"]
        assert each["way"]["copied"] == ["heads", [1], 0, "copies"]


def test_context_parallel_model():
    """More ranks take less time, up to what links allow."""
    rates = "--tflops 600 500 --host-gb-per-s 250 --network-gb-per-s 45 --tokens 131072 --ranks 8 64".split()
    command = [sys.executable, BENCHMARKS / "context_parallel_model.py", *rates]
    run = subprocess.run(command, check=True, capture_output=True, text=True)
    for eight, many in zip(*[iter(map(json.loads, run.stdout.splitlines()))] * 2):
        assert eight["ranks"] == 8 and 0.9 < eight["of_ranks"] <= 1 and many["of_ranks"] < eight["of_ranks"]
        assert 1 <= eight["uneven"] < 1.05 and eight["times_one"] < many["times_one"] < 64
