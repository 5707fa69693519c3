"""A short run of soak_serving.py, on other programs in each run, and what it says of calls that are wrong."""

import re
import time

import numpy as np
import pytest
import soak_serving

import flash_mlir as flash


def soak(*arguments, seed=1):
    return soak_serving.main(["--device", "cpu", "--dtype", "float32", "--seed", str(seed), *map(str, arguments)])


def test_a_few():
    seed = time.time_ns() % 2**31
    assert soak("--first", seed % 24, "--batches", 8, "--companies", 3, seed=seed) == 0


@pytest.mark.parametrize(
    "change, message",
    [
        (lambda output, lse: (output + np.float32(0.01), lse), r"the output of query \d+ of sequence \d .* is off by 0.01; \d+ rows are wrong"),
        (lambda output, lse: (output, lse * 1.0001), "the log-sum-exp of query"),
        (lambda output, lse: (output.__imul__(0), lse), "the output of query"),
        (lambda output, lse: 1 / 0, "ZeroDivisionError"),
    ],
)
def test_wrong_batches(monkeypatch, capsys, change, message):
    call = flash.flash_attn_varlen_func
    monkeypatch.setattr(flash, "flash_attn_varlen_func", lambda *arguments, **options: change(*call(*arguments, **options)))
    assert soak("--first", 48, "--batches", 1, "--companies", 0) == 1
    said = capsys.readouterr().out
    assert re.search(message, said)
    assert "of the batches number 48, Config(call='varlen', page=16" in said and "1 batches, 1 wrong" in said
    assert "--device cpu --dtype float32 --seed 1 --first 48 --batches 1 --companies 0" in said


def test_rows_of_no_sequence(monkeypatch, capsys):
    call = flash.flash_attn_varlen_func

    def fill(query, key, value, cu_seqlens_q, **options):
        output, lse = call(query, key, value, cu_seqlens_q=cu_seqlens_q, **options)
        output[int(cu_seqlens_q[-1]) :] = 1
        output[: int(cu_seqlens_q[0])] = 1
        return output, lse

    monkeypatch.setattr(flash, "flash_attn_varlen_func", fill)
    assert soak("--first", 48, "--batches", 1, "--companies", 0, seed=8) == 1
    assert "rows of no sequence are not 0, and -inf in the log-sum-exp" in capsys.readouterr().out


def test_wrong_cache(monkeypatch, capsys):
    call = flash.flash_attn_with_kvcache

    def spill(query, key, value, **options):
        results = call(query, key, value, **options)
        value[-1] = 1
        return results

    monkeypatch.setattr(flash, "flash_attn_with_kvcache", spill)
    assert soak("--first", 12, "--batches", 1, "--companies", 0, seed=2) == 1
    assert "the value cache is not what it was with the new rows written into it" in capsys.readouterr().out


def test_other_bits(monkeypatch, capsys):
    """A sum in another order where there are fewer sequences."""
    call = flash.flash_attn_varlen_func

    def change(query, key, value, **options):
        output, lse = call(query, key, value, **options)
        return (output * np.float32(1 + 2**-22) if len(options["seqused_k"]) < 8 else output), lse

    monkeypatch.setattr(flash, "flash_attn_varlen_func", change)
    assert soak("--batches", 0, "--companies", 16) == 1
    said = capsys.readouterr().out
    assert "the output of sequences [" in said and "have other bits as sequences [" in said and "--companies 1 --batches 0" in said
