"""The program that appends new keys and values to caches, on the CPU; test_launch.py and the calls of caches have the rest."""

import numpy as np
import pytest

import flash_mlir as flash
from flash_mlir.appending import print_program


@pytest.mark.parametrize("has_table", [False, True])
@pytest.mark.parametrize("dims", [(64, 48), (8, 8)])
def test_program(has_table, dims):
    rng = np.random.default_rng(0)
    kernel = flash.compile(print_program("f32", *dims, has_table), "cpu")
    batch, heads, rows, page, columns = 3, 9, 5, 4, 3
    pages = 11 if has_table else batch
    page = page if has_table else page * columns
    new = [rng.standard_normal((batch, heads, rows, dim), np.float32) for dim in dims]
    caches = [np.zeros((pages, heads, page, dim), np.float32) for dim in dims]
    table = np.array([[7, -1, 3], [10, 0, 2], [5, 11, 1]], np.int32)
    for lengths in ([0, 7, 3], [9, 12, -2], [2**31 - 9, -(2**31), 4]):
        lengths = np.array(lengths, np.int32)
        *results, sums = kernel(*new, *caches, *([table] if has_table else []), lengths)
        np.testing.assert_array_equal(sums, lengths + rows)
        for b in range(batch):
            for i in range(rows):
                at = int(lengths[b]) + i
                place = (int(table[b, at // page]), at % page) if has_table and 0 <= at < page * columns else (b, at)
                # There is no room, or no page.
                if not (0 <= at < page * (columns if has_table else 1) and 0 <= place[0] < pages):
                    continue
                for result, array in zip(results, new):
                    np.testing.assert_array_equal(result[place[0], :, place[1]], array[b, :, i])


def make_call(torch, **others):
    zeros = lambda *shape: torch.zeros(shape, dtype=torch.float16)
    new = dict(k=torch.ones(2, 1, 1, 64).half(), v=torch.ones(2, 1, 1, 64).half())
    return {**dict(q=zeros(2, 1, 2, 64), k_cache=zeros(2, 8, 1, 64), v_cache=zeros(2, 8, 1, 64), cache_seqlens=3), **new, **others}


def test_wrong_calls():
    """What is wrong is an error before something is written."""
    torch = pytest.importorskip("torch")
    cache, sink = torch.zeros(2, 8, 1, 64).half(), torch.zeros(2, requires_grad=True)
    new = torch.ones(2, 1, 1, 64).half()
    for error, message, wrong in (
        (ValueError, "v is on meta, v_cache on cpu", dict(v=new.to("meta"))),
        (ValueError, "k_cache is on meta, v_cache on cpu, q on cpu", dict(k_cache=cache.to("meta"), k=new.to("meta"))),
        (TypeError, "k is a ndarray, k_cache a Tensor; they must be of one library", dict(k=new.numpy())),
        (ValueError, "from 8 to 8 of their sequences, and there is room for 8", dict(cache_seqlens=8)),
        (NotImplementedError, "flash_attn_with_kvcache has no gradients", dict(learnable_sink=sink)),
        (NotImplementedError, "flash_attn_with_kvcache has no gradients", dict(score=lambda s, b, h, q, k: s + sink[h])),
    ):
        arguments = make_call(torch, **wrong)
        with pytest.raises(error, match=message):
            flash.flash_attn_with_kvcache(**arguments)
        for name in ("k_cache", "v_cache"):
            assert arguments[name].is_meta or not arguments[name].any(), message


def test_values_of_keys():
    """Values may be columns of the keys, in the caches and new."""
    torch = pytest.importorskip("torch")
    arguments = make_call(torch, v_cache=None, v=None)
    arguments["k"] = torch.randn(2, 1, 1, 64).half()
    arguments.update(v_cache=arguments["k_cache"][..., :32], v=arguments["k"][..., :32])
    apart = {**arguments, "k_cache": arguments["k_cache"].clone(), "v_cache": arguments["v_cache"].clone()}
    assert torch.equal(flash.flash_attn_with_kvcache(**arguments), flash.flash_attn_with_kvcache(**apart))
    assert torch.equal(arguments["k_cache"], apart["k_cache"]) and torch.equal(arguments["v_cache"], apart["v_cache"])


@pytest.mark.parametrize("wide", [("k_cache", "k"), ("v_cache", "v"), ("k_cache", "k", "v_cache", "v")])
def test_autocast(wide):
    """Attention reads new keys and values where autocast copies caches."""
    torch = pytest.importorskip("torch")
    arguments = make_call(torch, cache_seqlens=0)
    arguments.update({name: arguments[name].float() for name in wide})
    with torch.autocast("cpu", dtype=torch.float16):
        output = flash.flash_attn_with_kvcache(**arguments)
    assert (output == 1).all() and (arguments["v_cache"][:, 0] == 1).all()
