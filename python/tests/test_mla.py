"""Values that are the first columns of keys, as multi-head latent attention has them; and docs/mla-decode.md."""

import importlib.util
import pathlib

import numpy as np
import pytest
from conftest import assert_close, reference

import flash_mlir as flash
from flash_mlir import programs
from flash_mlir.preparation import prepare

EXAMPLE = pathlib.Path(__file__).parents[2] / "examples" / "mla_decode.py"


@pytest.fixture
def draw(rng):
    return lambda *shape, dtype="float32": rng.standard_normal(shape).astype(np.float32).astype(dtype)


def load_example():
    spec = importlib.util.spec_from_file_location("mla_decode", EXAMPLE)
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    return example


@pytest.mark.parametrize("dtype, dim, value_dim, heads, key_heads", [
    ("float32", 576, 512, 4, 1), ("float16", 576, 512, 3, 1), ("float16", 40, 24, 4, 2), ("float32", 30, 13, 2, 1),
    ("float16", 320, 320, 2, 1)])
def test_columns_of_keys(draw, dtype, dim, value_dim, heads, key_heads):
    query, key = draw(2, heads, 5, dim, dtype=dtype), draw(2, key_heads, 70, dim, dtype=dtype)
    output, lse = flash.attention(query, key, value_dim=value_dim, mask=flash.causal(), return_lse=True)
    expected = reference(query, key, key[..., :value_dim], lambda b, h, q, k: k <= q + 65)
    assert_close(output, expected[0], dtype)
    assert_close(lse, expected[1], "float32")
    same = flash.attention(query, key, np.ascontiguousarray(key[..., :value_dim]), mask=flash.causal())
    assert_close(output, same.astype(np.float64), dtype)


def test_rows_without_batch(draw):
    query, key = draw(4, 3, 48), draw(2, 20, 48)
    assert_close(flash.attention(query, key, value_dim=32), reference(query, key, key[..., :32])[0], "float32")


def test_packed_rows(draw):
    query, key = draw(12, 4, 72), draw(30, 1, 72)
    query_offsets, key_offsets = np.array([0, 5, 12], np.int32), np.array([0, 17, 30], np.int32)
    output = flash.attention(query, key, value_dim=64, query_offsets=query_offsets, key_offsets=key_offsets)
    for first, last, start, end in ((0, 5, 0, 17), (5, 12, 17, 30)):
        rows, keys = query[first:last].swapaxes(0, 1), key[start:end].swapaxes(0, 1)
        assert_close(output[first:last].swapaxes(0, 1), reference(rows, keys, keys[..., :64])[0], "float32")


def test_pages(draw):
    query, cache = draw(2, 16, 1, 576), draw(6, 16, 1, 576)
    table, lengths = np.array([[4, 0, 2], [1, -1, -1]], np.int32), np.array([40, 7], np.int32)
    output = flash.attention(query, cache, value_dim=512, page_table=table, key_lengths=lengths)
    for b, length in enumerate(lengths):
        rows = cache[table[b][: -(-length // 16)], :, 0].reshape(-1, 576)[None, :length]
        assert_close(output[b], reference(query[b], rows, rows[..., :512])[0], "float32")


def test_program_says_it():
    prepared, _, _ = prepare(None, None, None, None, False, False, None, (None, 64), None, True)
    text = programs.print_program(prepared.config, "bf16", 4, 576, 512)
    assert "%key_columns = tensor.extract_slice %key_rows[0, 0, 0, 0] [%key_size0, %key_size1, %key_size2, 512]" in text
    assert "flash.attention %query, %key_rows, %key_columns" in text


@pytest.mark.parametrize("arguments, error, message", [
    ({}, TypeError, "value is left out; give it, or value_dim where the values are the first columns of key"),
    ({"value_dim": 65}, ValueError, "value_dim is 65; it must be from 1 to 64, the columns of key"),
    ({"value_dim": 0}, ValueError, "value_dim is 0; it must be from 1 to 64"),
    ({"value_dim": 8.0}, TypeError, "value_dim is 8.0; expected an integer"),
    ({"value_dim": 8, "key_scale": 1.0}, ValueError, "value_dim is given beside key_scale or value_scale"),
    ({"value": np.zeros((1, 1, 4, 8), np.float32), "value_dim": 8}, ValueError, "value_dim is given beside value")])
def test_refusals(arguments, error, message):
    query, key = np.zeros((1, 2, 3, 64), np.float32), np.zeros((1, 1, 4, 64), np.float32)
    with pytest.raises(error, match=message):
        flash.attention(query, key, **arguments)


def test_gradients():
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    query, key = (torch.randn(1, 2, n, 328, requires_grad=True) for n in (9, 33))
    gradients = []
    for arguments in ({"value_dim": 264}, {"value": key[..., :264]}):
        output = flash.attention(query, key, mask=flash.causal(), **arguments)
        gradients.append(torch.autograd.grad(output.square().sum(), (query, key)))
    for one, other in zip(*gradients):
        torch.testing.assert_close(one, other)
    scores = query.double() @ key.double().transpose(2, 3) / 328**0.5
    keep = torch.arange(33) <= torch.arange(9)[:, None] + 24
    output = scores.masked_fill(~keep, -torch.inf).softmax(-1) @ key.double()[..., :264]
    for one, other in zip(gradients[0], torch.autograd.grad(output.square().sum(), (query, key))):
        torch.testing.assert_close(one.double(), other.double(), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("heads, dim, latent, rope, lengths", [
    (16, 128, 512, 64, [130, 1, 64]), (128, 16, 512, 64, [65]), (3, 24, 64, 16, [200, 77])])
def test_recipe(heads, dim, latent, rope, lengths):
    torch = pytest.importorskip("torch")
    example = load_example()
    torch.manual_seed(0)
    projections = example.Projections(heads, dim, latent, rope, "cpu", torch.float32)
    inputs = example.make_inputs(projections, lengths, "cpu", torch.float32)
    expected = example.decode_expanded(projections, *inputs)
    torch.testing.assert_close(example.decode(projections, *inputs).double(), expected, rtol=1e-4, atol=1e-5)


def test_example_runs(capsys, monkeypatch):
    pytest.importorskip("torch")
    sizes = ["--heads=4", "--latent=64", "--rope=16", "--dim=32", "--sequences=3", "--length=70"]
    monkeypatch.setattr("sys.argv", ["mla_decode.py", "--device=cpu", *sizes])
    assert not load_example().main()
    assert "4 heads, lengths [70, 35, 23]: the largest difference from fp64 is " in capsys.readouterr().out
