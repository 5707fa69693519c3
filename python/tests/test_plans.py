"""Plans: what a mask leaves, computed once for many calls."""

import copy
import pickle
import re

import numpy as np
import pytest

import flash_mlir as flash
from flash_mlir import cache, lowering, plans, programs
from flash_mlir.functions import find_tensors

rng = np.random.default_rng(3)
FEW = rng.integers(0, 3, 300).astype(np.int32)


def make(*shape):
    return rng.standard_normal(shape).astype(np.float32)


def reference(query, key, value, keep):
    """In float64; a row without keys is 0."""
    key, value = (np.repeat(x, query.shape[-3] // x.shape[-3], axis=-3) for x in (key, value))
    score = np.einsum("...id,...jd->...ij", query.astype(np.float64), key.astype(np.float64)) / query.shape[-1] ** 0.5
    score = np.where(keep, score, -np.inf)
    with np.errstate(invalid="ignore"):
        weight = np.nan_to_num(np.exp(score - np.max(score, axis=-1, keepdims=True)))
    total = weight.sum(axis=-1, keepdims=True)
    return np.einsum("...ij,...jd->...id", weight / np.where(total == 0, 1, total), value.astype(np.float64))


@pytest.mark.parametrize("ids", [np.sort(FEW), FEW, np.zeros(300, np.int32), np.arange(300, dtype=np.int32)])
def test_documents(ids):
    mask = flash.documents(ids) & flash.causal()
    query, key = make(2, 4, 300, 32), make(2, 2, 300, 32)
    plan = flash.plan(mask, query, key)
    assert plan.nbytes == sum(array.nbytes for array in plan.arrays) > 0
    keep = (ids[:, None] == ids[None]) & np.tri(300, dtype=bool)
    for _ in range(2):  # Layers.
        query, value = make(2, 4, 300, 32), make(2, 2, 300, 48)
        output, lse = flash.attention(query, key, value, mask=plan, return_lse=True)
        np.testing.assert_allclose(output, reference(query, key, value, keep), rtol=1e-4, atol=1e-5)
        # The same bits as with the map made in the call.
        expected, expected_lse = flash.attention(query, key, value, mask=mask, return_lse=True)
        assert np.array_equal(output, expected) and np.array_equal(lse, expected_lse)


def test_it_is_the_plan_that_counts():
    """No tile is visited that was not there when the plan was made."""
    ids, keys = np.zeros(300, np.int32), np.ones(300, np.int32)
    query = make(1, 1, 300, 16)
    mask = flash.documents(ids, keys)
    plan = flash.plan(mask, query, query)
    keys[:] = 0
    assert not flash.attention(query, query, query, mask=plan).any()
    assert flash.attention(query, query, query, mask=mask).any()


@pytest.mark.parametrize("target", ["emulate", "emulate:sm_90a", "sm_80", "sm_90a"])
@pytest.mark.parametrize("sizes", [(2, 8, 2, 300), (2, 8, 2, 3)])
def test_programs_of_gpus(target, sizes):
    """Both functions compile for GPUs, and run where that is emulated; heads share tiles where queries are few."""
    batch, heads, key_heads, length = sizes
    ids, key_ids = FEW[:length], FEW.reshape(300)
    mask = flash.documents(ids, key_ids)
    config, _ = plans._prepare(mask, False)
    shapes = [(batch, heads, length, 64), (batch, key_heads, 300, 64), (batch, key_heads, 300, 64)]
    text, schedule = programs.get_plan(config, "f16", 4, 64, 64, target, [list(shape) for shape in shapes])
    assert ("packed_heads=4" if length == 3 else "packed_heads=1") in schedule
    kernels = [flash.compile(text, target=target, function=name) for name in ("attention_plan", "attention")]
    if not target.startswith("emulate"):
        assert all(".entry" in kernel.ptx for kernel in kernels)
        return
    query, key, value = (make(*shape).astype(np.float16) for shape in shapes)
    made = kernels[0](query, key, value, ids, key_ids)
    output = kernels[1](query, key, value, ids, key_ids, *made)
    expected = reference(query, key, value, ids[:, None] == key_ids[None])
    np.testing.assert_allclose(output.astype(np.float64), expected, rtol=2e-3, atol=2e-3)


def test_scores_sinks_and_objects():
    query, sink = make(1, 2, 200, 16), np.array([0.5, -1], np.float32)
    ids = FEW[:200]
    plan = flash.plan(lambda b, h, q, k: (ids[q] == ids[k]) | (h == 1), query, query)
    score = lambda s, b, h, q, k: 3 * flash.tanh(s / 3)
    expected = flash.attention(query, query, query, mask=plan.mask, score=score, scale=0.3, sink=sink)
    assert np.array_equal(flash.attention(query, query, query, mask=plan, score=score, scale=0.3, sink=sink), expected)
    attend = flash.Attention(mask=plan, score=score, scale=0.3)
    for each in (attend, copy.deepcopy(attend), pickle.loads(pickle.dumps(attend))):
        assert np.array_equal(each(query, query, query, sink=sink), expected)


def test_other_head_dimensions():
    query = make(1, 2, 200, 16)
    plan = flash.plan(flash.documents(FEW[:200]), query, query)
    wide = make(1, 2, 200, 64)
    assert np.array_equal(
        flash.attention(wide, wide, wide, mask=plan), flash.attention(wide, wide, wide, mask=flash.documents(FEW[:200]))
    )


def test_lengths():
    ids = FEW.reshape(2, 150)
    query, lengths = make(2, 2, 150, 16), np.array([0, 70], np.int32)
    keep = (ids[:, :, None] == ids[:, None, :]) & (np.arange(150) < lengths[:, None, None])
    expected = reference(query, query, query, keep[:, None])
    plan = flash.plan(flash.documents(ids), query, query, lengths=lengths)
    np.testing.assert_allclose(flash.attention(query, query, query, mask=plan), expected, rtol=1e-4, atol=1e-5)
    composed = flash.plan(flash.documents(ids) & flash.key_lengths(lengths), query, query)
    np.testing.assert_allclose(flash.attention(query, query, query, mask=composed), expected, rtol=1e-4, atol=1e-5)
    attend = flash.Attention(mask=plan)
    np.testing.assert_allclose(attend(query, query, query), expected, rtol=1e-4, atol=1e-5)
    for call in (attend, lambda *args, **options: flash.attention(*args, mask=plan, **options)):
        with pytest.raises(ValueError, match="a plan has its own lengths"):
            call(query, query, query, lengths=lengths)
    with pytest.raises(ValueError, match="lengths are given twice"):
        flash.plan(flash.key_lengths(lengths), query, query, lengths=lengths)


def test_rank_3():
    query, ids = make(2, 200, 16), FEW[:200] != 0
    plan = flash.plan(lambda b, h, q, k: ids[k], query, query)
    np.testing.assert_allclose(
        flash.attention(query, query, query, mask=plan), reference(query, query, query, ids[None]), rtol=1e-4, atol=1e-5
    )


def test_masks_that_need_none():
    query = make(1, 2, 200, 16)
    plan = flash.plan(flash.causal(), query, query)
    assert plan.nbytes == 0
    assert np.array_equal(
        flash.attention(query, query, query, mask=plan), flash.attention(query, query, query, mask=flash.causal())
    )


def test_no_rows_and_no_keys():
    for nq, nk in ((0, 100), (100, 0), (0, 0), (1, 1)):
        query, key = make(1, 2, nq, 16), make(1, 2, nk, 16)
        ids = FEW[:200]
        plan = flash.plan(lambda b, h, q, k: ids[q] == ids[k], query, key)
        keep = ids[:nq, None] == ids[None, :nk]
        if nk:
            np.testing.assert_allclose(
                flash.attention(query, key, key, mask=plan), reference(query, key, key, keep), rtol=1e-4, atol=1e-5
            )
        else:
            assert not flash.attention(query, key, key, mask=plan).any()


@pytest.mark.parametrize("sizes", [(0, 2, 1, 20, 20), (2, 0, 0, 20, 20), (2, 0, 2, 20, 20), (2, 2, 1, 0, 20), (2, 2, 1, 20, 0)])
def test_no_elements(sizes):
    """No batch, no heads, no queries and no keys: results are empty, or 0."""
    batch, heads, key_heads, queries, keys = sizes
    query, key = make(batch, heads, queries, 16), make(batch, key_heads, keys, 16)
    for mask in (flash.causal(), flash.documents(FEW[:20])):
        plan = flash.plan(mask, query, key, gradients=True)
        assert plan.nbytes == 0 or heads
        output, lse = flash.attention(query, key, key, mask=plan, return_lse=True)
        assert output.shape == query.shape and lse.shape == query.shape[:3]
        grads = flash.attention_grad(query, key, key, output, lse, output, mask=plan)
        assert [grad.shape for grad in grads] == [query.shape, key.shape, key.shape]
        assert np.isneginf(lse).all() or keys
        assert not any(array.any() for array in (*grads, output))


@pytest.mark.parametrize("target", ["emulate", "emulate:sm_90a"])
@pytest.mark.parametrize("sizes", [(0, 2, 1, 20, 20), (1, 2, 1, 0, 20), (1, 2, 1, 20, 0)])
def test_no_elements_on_gpus(target, sizes):
    """Versions for such sizes, with and without a plan."""
    batch, heads, key_heads, queries, keys = sizes
    query, key = (make(*shape).astype(np.float16) for shape in ((batch, heads, queries, 64), (batch, key_heads, keys, 64)))
    ids, lse = FEW[:20], np.zeros((batch, heads, queries), np.float32)
    config, _ = plans._prepare(flash.documents(ids), False)
    kind = "f16", 4, 64, 64, target, [list(array.shape) for array in (query, key, key)]
    text, _ = programs.get_plan(config, *kind)
    tiles = cache.get_kernel(text, target, "attention_plan").call([query, key, key, ids])
    output = cache.get_kernel(text, target, "attention").call([query, key, key, ids, *tiles])[0]
    kernel = programs.get_kernel(config, *kind)
    assert kernel.call([query, key, key, ids])[0].shape == output.shape == query.shape and not output.any()
    arguments = query, key, key, output, lse, output, ids
    text, _ = programs.get_gradient_plan(config, *kind)
    tiles = cache.get_kernel(text, target, "attention_grad_plan").call([*arguments])
    with_plan = cache.get_kernel(text, target, "attention_grad").call([*arguments, *tiles])
    without = programs.get_gradient_kernel(config, *kind, False, ()).call([*arguments])
    for grads in (with_plan, without):
        assert [grad.shape for grad in grads] == [query.shape, key.shape, key.shape] and not any(map(np.any, grads))


def test_wrong_plans():
    query = make(1, 2, 200, 16)
    plan = flash.plan(flash.documents(FEW[:200]), query, query)
    for other in (make(1, 2, 199, 16), make(2, 2, 200, 16), make(1, 4, 200, 16)):
        with pytest.raises(ValueError, match="make another plan"):
            flash.attention(other, query, query, mask=plan)
        with pytest.raises(ValueError, match="make another plan"):
            flash.Attention(mask=plan)(other, query, query)
    with pytest.raises(ValueError, match="make another plan"):
        flash.attention(query, make(1, 2, 100, 16), make(1, 2, 100, 16), mask=plan)
    with pytest.raises(TypeError, match="Plan is no mask"):
        flash.causal() & plan
    with pytest.raises(TypeError):
        flash.plan(plan, query, query)
    with pytest.raises(ValueError, match="ids has size 100"):
        flash.plan(flash.documents(FEW[:100]), query, query)
    with pytest.raises(TypeError):
        flash.attention([1], query, query, mask=plan)


@pytest.mark.parametrize("gradients", [False, True])
@pytest.mark.parametrize("sizes", [(2, 4, 2, 300, 32, 48), (1, 2, 1, 100, 16, 16), (1, 2, 2, 1, 16, 8)])
def test_gradients(gradients, sizes):
    batch, heads, key_heads, length, dim, value_dim = sizes
    query, key, value = make(batch, heads, length, dim), make(batch, key_heads, 300, dim), make(batch, key_heads, 300, value_dim)
    lengths = np.array([250, 7][:batch], np.int32)
    mask = flash.documents(FEW[:length], FEW) & (lambda b, h, q, k: k != 5 * h)
    plan = flash.plan(mask, query, key, value, lengths=lengths, gradients=gradients)
    forward = flash.plan(mask, query, key, value, lengths=lengths)
    assert plan.nbytes > forward.nbytes if gradients and length > 1 else plan.nbytes >= forward.nbytes
    output, lse = flash.attention(query, key, value, mask=plan, return_lse=True)
    arguments = query, key, value, output, lse, make(batch, heads, length, value_dim)
    lse_grad = make(batch, heads, length).astype(np.float32)
    for options in ({}, {"lse_grad": lse_grad}):
        found = flash.attention_grad(*arguments, mask=plan, **options)
        expected = flash.attention_grad(*arguments, mask=mask, lengths=lengths, **options)
        assert all(np.array_equal(*pair) for pair in zip(found, expected))


def test_it_is_the_plan_that_counts_for_gradients():
    ids, keys = np.zeros(300, np.int32), np.ones(300, np.int32)
    query = make(1, 1, 300, 16)
    mask = flash.documents(ids, keys)
    planned, not_planned = (flash.plan(mask, query, query, gradients=each) for each in (True, False))
    keys[:] = 0
    output, lse = flash.attention(query, query, query, mask=mask, return_lse=True)
    assert not any(x.any() for x in flash.attention_grad(query, query, query, output, lse, query, mask=planned))
    assert all(x.any() for x in flash.attention_grad(query, query, query, output, lse, query, mask=not_planned))


@pytest.mark.parametrize("knows_score", [False, True])
def test_gradients_of_what_is_captured(knows_score):
    query, bias = make(1, 2, 300, 16), make(2, 300).astype(np.float32)
    mask = flash.documents(FEW)
    score = lambda s, b, h, q, k: s + bias[h, k]  # noqa: E731
    plan = flash.plan(mask, query, query, gradients=True, score=score if knows_score else None)
    output, lse = flash.attention(query, query, query, mask=plan, score=score, return_lse=True)
    found, expected = (
        flash.attention_grad(query, query, query, output, lse, query, mask=each, score=score, wrt=[bias])
        for each in (plan, mask)
    )
    assert len(found) == 4 and all(np.array_equal(*pair) for pair in zip(found, expected))


@pytest.mark.parametrize("dim, key_heads, products", [(64, 16, 5), (128, 16, 5), (128, 4, 7)])
def test_scores_take_the_arrays_of_a_plan(dim, key_heads, products):
    """What pays with a score may have other arrays; those of the plan count, whether it knows the score or not."""
    ids, slopes = np.sort(FEW), make(16)
    window = flash.documents(ids) & (lambda b, h, q, k: (k <= q) & (q - k <= 1024))
    alibi = lambda s, b, h, q, k: s - slopes[h] * (q - k)  # noqa: E731
    kind = "bf16", 4, dim, dim, "sm_90a", [[1, heads, 8192, dim] for heads in (16, key_heads, key_heads)]
    config, _ = plans._prepare(window, False)
    _, without = programs.get_gradient_plan(config, *kind)
    chosen = plans._choose_tiles(window, alibi, False, (*kind[:-1], tuple(map(tuple, kind[-1]))))
    _, with_score = programs.get_gradient_plan(config, *kind, chosen)
    assert with_score == chosen and f"products={products}" in with_score
    for schedule in (without, with_score):
        arrays = set()
        for score in (None, alibi):
            planned, same = programs.get_gradient_plan(
                flash.Attention(mask=window, score=score)._configs[0], *kind, schedule
            )
            assert same == schedule
            head = planned.split("func.func @attention_grad(")[1].split("{")[0]
            arrays.add(tuple(re.findall(r"%(?:key_tiles|tile_counts|tile_ranks)\w*: (\S+)", head)))
        assert len(arrays) == 1 and len(*arrays) == (3 if products == 5 else 4)


class Keeps:
    """What an object reads."""

    def __init__(self, ids):
        self.ids = ids

    def __call__(self, b, h, q, k):
        return self.ids[q] == self.ids[k]


def of_ids(ids):
    return lambda b, h, q, k: (ids[q] == ids[k]) & (k <= q)


def same(ids, q, k):
    return ids[q] == ids[k]


# Masks of ids, and what they keep.
MAKERS = {
    "a named mask": (flash.documents, same),
    "a function": (of_ids, lambda ids, q, k: same(ids, q, k) & (k <= q)),
    "a method": (lambda ids: Keeps(flash.tensor(ids)).__call__, same),
    "an object": (lambda ids: Keeps(flash.tensor(ids)), same),
    "named masks": (
        lambda ids: flash.documents(ids, ids[::-1].copy()) & flash.causal() & (flash.window(left=30) | flash.prefix(4)),
        lambda ids, q, k: (ids[q] == ids[99 - k]) & (k <= q) & ((q - k <= 30) | (k < 4)),
    ),
    "functions": (
        lambda ids: ~(flash.mask(of_ids(ids)) & flash.window(left=9)) & Keeps(flash.tensor(ids)),
        lambda ids, q, k: ~((k <= q) & (q - k <= 9)) & same(ids, q, k),
    ),
    "lengths": (
        lambda ids: flash.causal() & flash.mask(of_ids(ids)) & flash.key_lengths(40 * ids[:1] + 50),
        lambda ids, q, k: (k <= q) & same(ids, q, k) & (k < 40 * ids[0] + 50),
    ),
    "two lengths": (
        lambda ids: flash.key_lengths(90 - ids[:1]) & ~flash.key_lengths(20 * ids[:1]) & of_ids(ids),
        lambda ids, q, k: (20 * ids[0] <= k) & (k < 90 - ids[0]) & (k <= q) & same(ids, q, k),
    ),
    "one twice": (
        lambda ids: (lambda mask: (mask & flash.causal()) | (mask & flash.prefix(np.array(ids[0] + 3))))(flash.documents(ids)),
        lambda ids, q, k: same(ids, q, k) & ((k <= q) | (k < ids[0] + 3)),
    ),
}


@pytest.mark.parametrize("name", MAKERS)
def test_programs_are_chosen_once(name, monkeypatch):
    """A plan that was made before is computed, and no more: no program is chosen, none is printed, and no mask lowered."""
    maker, keep = MAKERS[name]
    query, slopes = make(1, 2, 100, 16), make(2)

    def make_plans(ids):
        alibi = lambda s, b, h, q, k: s + slopes[h] * k  # noqa: E731
        return [flash.plan(maker(ids), query, query, gradients=True, score=score) for score in (None, alibi)]

    first, second = np.sort(FEW)[::3].copy(), FEW[:100] % 2
    made = make_plans(first)
    with monkeypatch.context() as patch:
        for module, function in ((programs, "_plan"), (programs, "_print"), (lowering, "Region"), (lowering, "MaskBuilder")):
            patch.setattr(module, function, None)
        again = make_plans(second)
    for ids, found in ((first, made), (second, again)):
        expected = reference(query, query, query, keep(ids, np.arange(100)[:, None], np.arange(100)))
        for plan, before in zip(found, made):
            assert plan.schedules == before.schedules
            np.testing.assert_allclose(flash.attention(query, query, query, mask=plan), expected, rtol=1e-4, atol=1e-5)


def test_sizes_that_are_alike_share_programs(monkeypatch):
    mask = lambda: flash.documents(FEW) & flash.causal()  # noqa: E731
    flash.plan(mask(), make(1, 4, 300, 16), make(1, 2, 250, 16), gradients=True)
    query, key = make(3, 6, 290, 16), make(3, 2, 129, 16)
    with monkeypatch.context() as patch:
        patch.setattr(programs, "_plan", None)
        plan = flash.plan(mask(), query, key, gradients=True)
    keep = (FEW[:290, None] == FEW[None, :129]) & (np.arange(129) <= np.arange(290)[:, None] - 161)
    expected = reference(query, key, key, keep)
    np.testing.assert_allclose(flash.attention(query, key, key, mask=plan), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
@pytest.mark.parametrize("dim", [64, 128])
def test_programs_of_a_class_of_sizes(target, dim):
    """Sizes that plans take for alike have one program, on GPUs, too."""
    config, _ = plans._prepare(flash.documents(FEW) & flash.causal(), False)
    for sizes in (((1, 16, 65), (1, 16, 79)), ((1, 16, 1001), (1, 16, 1020)), ((65, 8, 8200), (79, 8, 10239)), ((2, 4, 8192), (2, 4, 9216))):
        found = [[[batch, heads, length, dim], *[[batch, heads // 4, length, dim]] * 2] for batch, heads, length in sizes]
        assert plans._get_classes(target, *found[0][:2]) == plans._get_classes(target, *found[1][:2])
        for get in (programs.get_plan, programs.get_gradient_plan):
            first, second = (get(config, "bf16", 4, dim, dim, target, each) for each in found)
            assert first == second


def test_what_changes_between_plans():
    """Contents of arrays, variables of closures, default arguments, lists and dictionaries, after a plan was made before."""
    query, positions = make(1, 2, 100, 16), np.arange(100)
    ids, distance, steps, table = FEW[:100].copy(), 9, [3, 5], {"divisor": 2}

    def in_closure(b, h, q, k):
        return (ids[q] == ids[k]) & (abs(q - k) < distance)

    def with_default(b, h, q, k, step=2):
        return (ids[q] == ids[k]) & ((q + k) % step == 0)

    def of_a_list(b, h, q, k):
        return (ids[q] == ids[k]) & ((q // steps[0] + k // steps[1]) % table["divisor"] == 0)

    for _ in range(2):
        for function in (in_closure, with_default, of_a_list):
            keep = np.broadcast_to(function(0, 0, positions[:, None], positions), (100, 100))
            expected = reference(query, query, query, keep)
            for mask in (function, flash.mask(function) & flash.full()):
                plan = flash.plan(mask, query, query)
                np.testing.assert_allclose(flash.attention(query, query, query, mask=plan), expected, rtol=1e-4, atol=1e-5)
        ids[::2], distance, steps[1], table["divisor"] = 1, 70, 2, 3
        with_default.__defaults__ = (3,)


def test_tensors_of_composed_masks():
    """They are known before expressions are made, in the order in which these read them; and masks may be deep."""
    ids = FEW[:100]
    lengths = flash.key_lengths(ids[:1])
    function = flash.mask(of_ids(ids))
    deep = flash.documents(ids)
    for n in range(3000):
        deep = deep & flash.prefix(n)
    for mask in (
        function,
        deep,
        function & flash.documents(ids, ids[::-1].copy()),
        (function & lengths) | function,
        ~(lengths & function) & function & flash.key_lengths(ids[1:2]),
        ~lengths & lengths & (lambda b, h, q, k: ids[q] > 0) & lengths,
    ):
        before = mask.tensors
        read = find_tensors(mask._trace.value)
        assert list(map(id, read)) == list(map(id, before)) == list(map(id, mask.tensors))
        # Of others, too, and that is an equal mask.
        others = [flash.tensor(tensor.array + 1, tensor.name) for tensor in before]
        moved = mask.with_tensors(others, mask._lengths)
        assert moved.tensors == tuple(others) and moved == mask
        assert list(map(id, find_tensors(moved._trace.value))) == list(map(id, others))


def test_tensors():
    torch = pytest.importorskip("torch")
    ids = torch.from_numpy(FEW[:100])
    query = torch.randn(1, 2, 100, 16, requires_grad=True)
    mask = flash.documents(ids)
    plan = flash.plan(mask, query, query)
    assert all(isinstance(array, torch.Tensor) for array in plan.arrays)
    outputs = [flash.attention(query, query, query, mask=each) for each in (plan, mask)]
    assert plan.nbytes > flash.plan(mask, query.detach(), query.detach()).nbytes
    grads = [torch.autograd.grad(output.sum(), query)[0] for output in outputs]
    assert torch.equal(*outputs) and torch.equal(*grads)
    attend = flash.Attention(mask=plan)
    compiled = torch.compile(lambda x: attend(x, x, x) + 1, fullgraph=True, backend="eager")
    with torch.no_grad():
        assert torch.equal(compiled(query), outputs[0] + 1)
    broken = torch.compile(lambda x: flash.attention(x, x, x, mask=flash.plan(mask, x, x)) + 1, backend="eager")
    with torch.no_grad():
        assert torch.equal(broken(query), outputs[0] + 1)
    with pytest.raises(Exception, match="make another plan"):  # Dynamo's own, with the text.
        compiled(query[:, :, 1:])
