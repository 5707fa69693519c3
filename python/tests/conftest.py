"""Kernels of the tests are kept apart from the user's, and an fp64 reference."""

import atexit
import importlib
import inspect
import os
import pathlib
import shutil
import tempfile

import numpy as np
import pytest

# Before the package is imported: its cache reads the variable at each use.
os.environ["XDG_CACHE_HOME"] = tempfile.mkdtemp(prefix="flash-mlir-test-")
atexit.register(shutil.rmtree, os.environ["XDG_CACHE_HOME"], ignore_errors=True)
# Tests look at warnings and at stderr, and machines may be slow.
os.environ["FLASH_MLIR_QUIET"] = "1"


def pytest_addoption(parser):
    help = "leave out the tests that `make test` runs and in which nothing of PyTorch has a part: they would do the same again"
    parser.addoption("--only-torch", action="store_true", help=help)


def pytest_collection_modifyitems(config, items):
    if not config.getoption("--only-torch"):
        return
    root = pathlib.Path(__file__).parents[2]
    commands = " ".join(test.read_text() for test in (root / "test" / "Python").glob("*.test"))

    def is_kept(item):
        text = inspect.getsource(item.module)
        # Where PyTorch has a part in some tests of a module, these say so or have a parameter "torch".
        if "    torch = pytest.importorskip(" in text:
            text = inspect.getsource(item.function) + item.name
        return "torch" in text or f"/python/tests/{item.path.name}" not in commands

    left_out = [item for item in items if not is_kept(item)]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if is_kept(item)]


def reference(query, key, value, keep=None, score=None, scale=None, lengths=None, sink=None):
    """Attention in fp64: the result and the log-sum-exp. `keep` and `score` are functions of index arrays."""
    query, key, value = (np.asarray(x, dtype=np.float64) for x in (query, key, value))
    if query.ndim == 3:
        if sink is not None:
            sink = np.asarray(sink)
        output, lse = reference(query[None], key[None], value[None], keep, score, scale, lengths, sink)
        return output[0], lse[0]
    batch, heads, queries, size = query.shape
    keys = key.shape[2]
    group = heads // key.shape[1]
    key, value = np.repeat(key, group, axis=1), np.repeat(value, group, axis=1)
    s = np.einsum("bhqd,bhkd->bhqk", query, key) * (size**-0.5 if scale is None else scale)
    b, h, q, k = np.ogrid[:batch, :heads, :queries, :keys]
    if score is not None:
        s = np.broadcast_to(score(s, b, h, q, k), s.shape)
    kept = np.ones(s.shape, dtype=bool) if keep is None else np.broadcast_to(keep(b, h, q, k), s.shape)
    if lengths is not None:
        kept = kept & (k < np.asarray(lengths)[:, None, None, None])
    s = np.where(kept, s, -np.inf)
    rows = s if sink is None else np.concatenate(
        [s, np.broadcast_to(np.asarray(sink, dtype=np.float64)[None, :, None, None], (batch, heads, queries, 1))], axis=-1
    )
    with np.errstate(invalid="ignore", divide="ignore"):
        top = rows.max(axis=-1, keepdims=True) if rows.shape[-1] else np.full(rows.shape[:-1] + (1,), -np.inf)
        top = np.where(np.isfinite(top), top, 0.0)
        total = np.exp(rows - top).sum(axis=-1, keepdims=True)
        probabilities = np.where(total > 0, np.exp(s - top) / np.where(total > 0, total, 1.0), 0.0)
        lse = (np.log(total) + top)[..., 0]
    return np.einsum("bhqk,bhkd->bhqd", probabilities, value), lse


#: Largest difference to the reference, for standard normal inputs.
TOLERANCE = {"float32": 1e-5, "float16": 3e-3, "bfloat16": 2e-2}


def assert_close(actual, expected, dtype):
    actual = np.asarray(actual, dtype=np.float64)
    assert actual.shape == expected.shape
    np.testing.assert_allclose(actual, expected, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def make(rng):
    """Makes query, key and value of the shape (batch, heads, key heads, queries, keys, D, Dv)."""

    def make(batch=2, heads=4, key_heads=2, queries=37, keys=53, size=32, value_size=32, dtype=np.float32):
        shapes = ((batch, heads, queries, size), (batch, key_heads, keys, size), (batch, key_heads, keys, value_size))
        return tuple(rng.standard_normal(shape).astype(np.float32).astype(dtype) for shape in shapes)

    return make


@pytest.fixture
def forget(monkeypatch):
    """What other tests have prepared or compiled is not there."""
    import flash_mlir as flash
    from flash_mlir import cache, compilation

    monkeypatch.setattr(compilation, "kernels", {})
    monkeypatch.setattr(compilation, "records", [])
    cache._kernels.clear()
    # The variants that were called keep their kernels.
    flash.programs.get_function.cache_clear()
    flash.preparation._prepared.clear()
    flash.kv_cache._variants.clear()
    for name in ("attention", "flash_attn", "kv_cache"):
        importlib.import_module(f"flash_mlir.{name}")._shortcut.clear()
