"""Masks and score functions in the programs of GPUs: emulated, and compiled to PTX."""

import numpy as np
import pytest
from conftest import assert_close, reference

import flash_mlir as flash
from flash_mlir.preparation import prepare
from flash_mlir.programs import print_program

ids = (np.arange(53) // 9).astype(np.int64)
small = np.arange(4, dtype=np.int8)
bias = np.linspace(-1, 1, 4 * 37 * 53).reshape(4, 37, 53)
seen = (np.arange(37)[:, None] * 7 + np.arange(53)) % 5 != 0
factor = np.array(0.75, dtype=np.float32)


def keep(b, h, q, k):
    return ((ids[q] == ids[k]) | seen[q, k]) & (k <= q + 16)


def score(s, b, h, q, k):
    near = np.where((q - k) // 4 % 3 == 1, s * factor, 20 * np.tanh(s / 20))
    return near + bias[h, q, k] - small[h] * 0.125


@pytest.mark.parametrize("target", ["emulate:sm_90a", "sm_80", "sm_90a"])
def test_captures(make, target):
    query, key, value = make(size=64, value_size=64, dtype=np.float16)
    prepared, captured, _ = prepare(keep, score, None, None, False, True)
    text = print_program(prepared.config, "f16", 4, 64, 64)
    kernel = flash.compile(text, target=target)
    if target.startswith("sm_"):
        assert f".target {target}" in kernel.ptx
        return
    # The language has no booleans in memory.
    arrays = [array.view(np.int8) if array.dtype == bool else array for array in captured]
    output, lse = kernel(query, key, value, *arrays)
    expected, expected_lse = reference(query, key, value, keep, score)
    assert_close(output, expected, "float16")
    assert_close(lse, expected_lse, "float16")


def test_names():
    assert flash.compiler.TARGETS[:2] == ("cpu", "emulate") and flash.compiler.TARGETS[-1] == "reference"
    assert {"sm_75", "sm_90a", "emulate:sm_120"} <= set(flash.compiler.TARGETS)
    text = "func.func @f(%x: tensor<2xf32>) -> tensor<2xf32> { return %x : tensor<2xf32> }"
    with pytest.raises(ValueError, match="unknown target 'sm_70'; the targets are auto, cpu, emulate, sm_75, "):
        flash.compile(text, target="sm_70")


MASKS = [~flash.causal() | flash.prefix(4), flash.mask(lambda b, h, q, k: q * k % 3 > 0)]


@pytest.mark.parametrize("mask", MASKS, ids=str)
def test_masks(make, mask):
    query, key, value = make(size=64, value_size=64, dtype=np.float16)
    prepared, _, _ = prepare(mask, None, None, None, False, False)
    text = print_program(prepared.config, "f16", 4, 64, 64)
    output = flash.compile(text, target="emulate:sm_90a")(query, key, value)
    np.testing.assert_allclose(
        output.astype(float), flash.attention(query, key, value, mask=mask).astype(float), rtol=3e-3, atol=3e-3
    )
