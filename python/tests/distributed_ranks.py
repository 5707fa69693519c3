"""What each rank of test_distributed.py computes: cases by name, each beside a softmax of the whole sequence in
float64.
"""

import datetime
import functools
import itertools
import json
import os
import sys
import threading
import time
import traceback

import torch
import torch.distributed as dist

import flash_mlir as flash
from flash_mlir import distributed
from flash_mlir.distributed.shared import _OfHost

CASES = {}
HEADS, KEY_HEADS, DIM = 4, 2, 16


def case(*options):
    """Makes a function a case, or one of each of the options."""

    def add(function):
        if not options:
            CASES[function.__name__] = function
        for option in options:
            CASES[f"{function.__name__}[{option}]"] = functools.partial(function, option)
        return function

    return add


def make(length, keys=None, batch=1, seed=0, heads=HEADS, key_heads=KEY_HEADS):
    generator = torch.Generator().manual_seed(seed)
    keys = length if keys is None else keys
    shapes = (
        (batch, heads, length, DIM),
        (batch, key_heads, keys, DIM),
        (batch, key_heads, keys, DIM),
        (batch, heads, length, DIM),
    )
    return [torch.randn(shape, generator=generator) for shape in shapes]


def reference(query, key, value, keep=None, score=None, sink=None):
    """(output, log-sum-exp) of the whole, of tensors in float64."""
    batch, heads, queries, dim = query.shape
    keys = key.shape[2]
    key, value = (each.repeat_interleave(heads // key.shape[1], 1) for each in (key, value))
    s = query @ key.transpose(-1, -2) * dim**-0.5
    b, h = torch.arange(batch)[:, None, None, None], torch.arange(heads)[:, None, None]
    q, k = torch.arange(queries)[:, None], torch.arange(keys)
    if score is not None:
        s = score(s, b, h, q, k)
    if keep is not None:
        s = s.masked_fill(~keep(b, h, q, k).expand_as(s), -torch.inf)
    rows = (
        s if sink is None else torch.cat([s, sink.double()[None, :, None, None].expand(batch, heads, queries, 1)], -1)
    )
    lse = rows.logsumexp(-1)
    p = (s - lse.masked_fill(lse == -torch.inf, 0.0)[..., None]).exp()
    return p @ value, lse


def check(name, actual, expected):
    torch.testing.assert_close(actual.double(), expected, rtol=2e-4, atol=2e-5, msg=lambda text: f"{name}: {text}")


def compare(
    mask=None,
    keep=None,
    score=None,
    sink=None,
    length=96,
    keys=None,
    batch=1,
    shards=None,
    key_shards=None,
    read=(),
    heads=HEADS,
    key_heads=KEY_HEADS,
    prepare=torch.clone,
    **options,
):
    """One call, forward and backward, beside the whole; `read` are tensors that functions read, of which gradients
    are wanted, and `prepare` makes what is given of what `shard` makes.
    """
    rank, ranks = dist.get_rank(), dist.get_world_size()
    inputs = make(length, keys, batch, heads=heads, key_heads=key_heads)
    whole = [each.double().requires_grad_() for each in inputs[:3]]
    shards = distributed.Shards(length, ranks) if shards is None else shards
    of_keys = key_shards or (shards if keys is None else distributed.Shards(keys, ranks))
    parts = [
        prepare(distributed.shard(each, shards=each_shards))
        for each, each_shards in zip(inputs, (shards, of_keys, of_keys, shards))
    ]
    query, key, value = (each.requires_grad_() for each in parts[:3])
    weight = torch.linspace(-1, 1, heads)[None, :, None]
    for each in (sink, *read):
        if each is not None:
            each.requires_grad_().grad = None
    expected, expected_lse = reference(*whole, keep, score, sink)
    here = shards.positions(rank)
    rows = torch.where(expected_lse.isfinite(), expected_lse, 0.0)
    ((expected * inputs[3].double()).sum() + (rows * weight).sum()).backward()
    grads = [None if each is None else each.grad.double() for each in (sink, *read)]
    for each in (sink, *read):
        if each is not None:
            each.grad = None
    results = []
    for exchange in ("messages",) if options.get("way") == "ring" else ("messages", "copies"):
        for each in (query, key, value, sink, *read):
            if each is not None:
                each.grad = None
        output, lse = distributed.attention(
            query,
            key,
            value,
            mask=mask,
            score=score,
            sink=sink,
            return_lse=True,
            shards=shards,
            key_shards=of_keys,
            exchange=exchange,
            **options,
        )
        check("output", output, expected.detach()[:, :, here])
        check("lse", lse, expected_lse.detach()[:, :, here])
        loss = (output * parts[3]).sum() + (torch.where(lse.isfinite(), lse, 0.0) * weight).sum()
        # A backward pass may run again, and its gradients are added.
        loss.backward(retain_graph=True)
        loss.backward()
        for each in (query, key, value, sink, *read):
            if each is not None:
                each.grad /= 2
        for name, part, all_of_it, positions in zip(
            ("query", "key", "value"),
            (query, key, value),
            whole,
            (here, of_keys.positions(rank), of_keys.positions(rank)),
        ):
            check(f"gradient of {name}", part.grad, all_of_it.grad[:, :, positions])
        for each, grad in zip((sink, *read), grads):
            if each is not None:
                # Every rank has the part of its own rows.
                total = each.grad.clone()
                dist.all_reduce(total)
                check("gradient of what each rank has", total, grad)
        results.append([output.detach(), lse.detach(), query.grad, key.grad, value.grad])
    for one, other in zip(results, results[1:]):
        assert all(map(torch.equal, one, other)), "messages and copies differ"
    return output


IDS = torch.tensor([0] * 20 + [1] * 37 + [2] * 39)
SLOPES = torch.tensor([0.1, 0.2, 0.3, 0.4])
ALLOWED = torch.rand(96, 96, generator=torch.Generator().manual_seed(1)) > 0.5

#: Masks, and what they keep.
MASKS = {
    "none": (lambda: None, None),
    "causal": (flash.causal, lambda b, h, q, k: k <= q),
    "window": (lambda: flash.causal() & flash.window(left=17), lambda b, h, q, k: (k <= q) & (k >= q - 17)),
    "both_sides": (lambda: flash.window(left=9, right=14), lambda b, h, q, k: (k >= q - 9) & (k <= q + 14)),
    "prefix": (lambda: flash.causal() | flash.prefix(40), lambda b, h, q, k: (k <= q) | (k < 40)),
    "sinks": (
        lambda: flash.causal() & (flash.window(left=10) | flash.prefix(3)),
        lambda b, h, q, k: (k <= q) & ((k >= q - 10) | (k < 3)),
    ),
    "documents": (lambda: flash.documents(IDS), lambda b, h, q, k: IDS[q] == IDS[k]),
    "causal_documents": (
        lambda: flash.documents(IDS) & flash.causal(),
        lambda b, h, q, k: (IDS[q] == IDS[k]) & (k <= q),
    ),
    "dilated": (lambda: lambda b, h, q, k: (q - k) % 3 == 0, lambda b, h, q, k: (q - k) % 3 == 0),
    "heads": (
        lambda: lambda b, h, q, k: (k <= q) & ((h % 2 == 0) | (q - k < 20)),
        lambda b, h, q, k: (k <= q) & ((h % 2 == 0) | (q - k < 20)),
    ),
    "few": (lambda: lambda b, h, q, k: q + k < 12, lambda b, h, q, k: q + k < 12),
    "upper": (lambda: ~flash.causal(), lambda b, h, q, k: k > q),
    "array": (lambda: lambda b, h, q, k: ALLOWED[q, k], lambda b, h, q, k: ALLOWED[q, k]),
    "lengths": (lambda: lambda b, h, q, k: k < flash.key_length // 2 + q // 4, lambda b, h, q, k: k < 48 + q // 4),
}


@case(*MASKS)
def masks(name):
    mask, keep = MASKS[name]
    compare(mask(), keep, sink=torch.randn(HEADS) if name in ("few", "none") else None)


@case("causal", "heads", "sinks")
def uneven(name):
    """Lengths that ranks share unevenly, and pieces that a list says."""
    mask, keep = MASKS[name]
    ranks = dist.get_world_size()
    compare(mask(), keep, length=91, shards=distributed.Shards(91, ranks))
    ends = [0, 5, 5, 60, 91] if ranks == 4 else [0, 70, 91]
    layout = [[piece] for piece in zip(ends, ends[1:])][::-1]
    compare(mask(), keep, length=91, shards=distributed.Shards(91, ranks, layout), head_groups=2)
    compare(mask(), keep, length=91, shards=distributed.Shards.even(91, ranks, mask(), HEADS))


@case("causal", "sinks", "few")
def ring(name):
    mask, keep = MASKS[name]
    compare(mask(), keep, way="ring", sink=torch.randn(HEADS))


def by_rows(x):
    """A tensor whose rows have all heads behind each other."""
    return x.transpose(1, 2).contiguous().transpose(1, 2)


@case("causal", "array", "heads", "sinks")
def heads(name):
    ranks, (mask, keep) = dist.get_world_size(), MASKS[name]
    if ranks > KEY_HEADS:
        expect(ValueError, f"{KEY_HEADS} heads of keys are no multiple", lambda: compare(mask(), keep, way="heads"))
    given = dict(way="heads", heads=8, key_heads=4)
    compare(mask(), keep, sink=torch.randn(8), length=95, shards=distributed.Shards(95, ranks), **given)
    if name in ("array", "sinks"):
        return
    ends = [0, 5, 5, 60, 91] if ranks == 4 else [0, 70, 91]
    layout = [[piece] for piece in zip(ends, ends[1:])][::-1]
    compare(mask(), keep, length=91, shards=distributed.Shards(91, ranks, layout), batch=2, **given)
    shards = distributed.Shards.even(91, ranks, mask(), 8)
    given.update(heads=16, key_heads=8, head_groups=(1, 2, 1) if ranks == 2 else (1, 1), prepare=by_rows)
    compare(mask(), keep, length=91, shards=shards, **given)
    compare(mask(), keep, length=91, shards=shards, batch=2, ahead=0, **given)


@case()
def heads_of_others():
    """Other keys than queries, lengths, gradients of what functions read, and no keys or no queries."""
    given = dict(way="heads", heads=4, key_heads=4, head_groups=2)
    slopes, bias, counts = SLOPES.clone(), torch.randn(104), torch.tensor([80, 13])
    causal, keep = flash.causal(), lambda b, h, q, k: k <= q + 40
    alibi = lambda s, b, h, q, k: s - slopes[h] * abs(q - k) + bias[k]
    compare(causal, keep, alibi, torch.randn(4), length=64, keys=104, read=(slopes, bias), **given)
    hidden = lambda b, h, q, k: (k <= q) & (k < counts[:, None, None, None])
    compare(causal, hidden, batch=2, lengths=counts, **given)
    for length, keys in ((64, 0), (0, 64)):
        parts = [distributed.shard(each).requires_grad_() for each in make(length, keys, heads=4, key_heads=4)[:3]]
        for exchange in ("messages", "copies"):
            output = distributed.attention(*parts, way="heads", exchange=exchange)
            assert output.shape == parts[0].shape and not output.any()
            assert not any(each.any() for each in torch.autograd.grad(output.sum(), parts))


@case()
def heads_again():
    """Layers that follow each other and share memory, in both ways, where each rank is late in turn."""
    parts = [distributed.shard(each) for each in make(64, heads=4, key_heads=4)]
    copy, late = _OfHost.copy, itertools.cycle(range(dist.get_world_size()))

    def copy_late(self, pairs):
        if next(late) == dist.get_rank():
            time.sleep(0.02)
        return copy(self, pairs)

    found = []
    for exchange, _OfHost.copy in (("messages", copy), ("copies", copy), ("copies", copy_late)):
        x = query = parts[0].clone().requires_grad_()
        for way in ("heads", "gather", "heads"):
            given = dict(mask=flash.causal(), way=way, exchange=exchange, head_groups=2)
            x = distributed.attention(x, parts[1] + x, parts[2] * x, **given)
        found.append((x.detach(), *torch.autograd.grad(x, query, parts[3])))
    _OfHost.copy = copy
    for each in found[1:]:
        assert all(map(torch.equal, found[0], each))


@case()
def scores():
    slopes, bias = SLOPES.clone(), torch.randn(96)

    def alibi(s, b, h, q, k):
        return s - slopes[h] * abs(q - k) + bias[k]

    causal = flash.causal(), lambda b, h, q, k: k <= q
    compare(*causal, alibi, torch.randn(HEADS), read=(slopes, bias), head_groups=(1, 1), ahead=0)
    compare(None, None, alibi, read=(slopes, bias), way="ring")


@case()
def cross():
    """Other keys than queries; causal masks are aligned to the ends."""
    compare(flash.causal(), lambda b, h, q, k: k <= q + 40, length=64, keys=104)
    compare(flash.window(left=20, right=3), lambda b, h, q, k: (k <= q + 43) & (k >= q + 20), length=64, keys=104)
    compare(flash.causal(top_left=True), lambda b, h, q, k: k <= q, length=64, keys=104)


@case()
def lengths():
    counts = torch.tensor([80, 13])
    for options in ({}, {"way": "ring"}):
        compare(
            flash.causal(),
            lambda b, h, q, k: (k <= q) & (k < counts[:, None, None, None]),
            batch=2,
            lengths=counts,
            **options,
        )
        compare(
            flash.causal() & flash.key_lengths(counts),
            lambda b, h, q, k: (k <= q) & (k < counts[:, None, None, None]),
            batch=2,
            **options,
        )


@case()
def dtypes():
    """Half precision, three dimensions, other strides, no gradients, and torch.compile."""
    ranks = dist.get_world_size()
    query, key, value, _ = make(96)
    expected, _ = reference(*(each.double() for each in (query, key, value)), MASKS["causal"][1])
    here = distributed.Shards(96, ranks).positions(dist.get_rank())
    parts = [distributed.shard(each) for each in (query, key, value)]
    for dtype, tolerance in ((torch.float16, 4e-3), (torch.bfloat16, 3e-2), (torch.float64, 1e-5)):
        output = distributed.attention(*(each.to(dtype) for each in parts), mask=flash.causal())
        assert output.dtype == dtype
        torch.testing.assert_close(output.double(), expected[:, :, here], rtol=tolerance, atol=tolerance)
    output = distributed.attention(*(each[0] for each in parts), mask=flash.causal())
    check("three dimensions", output, expected[0][:, here])
    strided = [each.transpose(1, 2).contiguous().transpose(1, 2) for each in parts]
    check("strides", distributed.attention(*strided, mask=flash.causal()), expected[:, :, here])
    torch.testing.assert_close(distributed.unshard(output), expected[0].float(), rtol=1e-4, atol=1e-5)


@case()
def compiled():
    parts = [distributed.shard(each) for each in make(96)[:3]]
    function = torch.compile(
        lambda q, k, v: distributed.attention(q * 2, k, v, mask=flash.causal()) + 1, backend="eager"
    )
    torch.testing.assert_close(
        function(*parts), distributed.attention(parts[0] * 2, *parts[1:], mask=flash.causal()) + 1
    )


def run_packed(offsets, mask, keep, score=None):
    rank, ranks = dist.get_rank(), dist.get_world_size()
    ids = torch.zeros(96, dtype=torch.long)
    for end in offsets[1:-1]:
        ids[int(end) :] += 1
    ids[int(offsets[-1]) :] = 100
    starts = torch.tensor([int(offsets[min(int(i), len(offsets) - 2)]) for i in ids])
    inputs = make(96)
    whole = [each.double().requires_grad_() for each in inputs[:3]]

    def kept(b, h, q, k):
        return (ids[q] == ids[k]) & (ids[q] < 100) & keep(b, h, q - starts[q], k - starts[k])

    def scored(s, b, h, q, k):
        return score(s, b, h, q - starts[q], k - starts[k])

    expected, lse = reference(*whole, kept, score and scored)
    torch.where(lse.isfinite()[..., None], expected * inputs[3].double(), 0.0).sum().backward()
    here = distributed.Shards(96, ranks).positions(rank)
    parts = [distributed.shard(each)[0].transpose(0, 1).contiguous() for each in inputs]
    query, key, value = (each.requires_grad_() for each in parts[:3])
    for exchange in ("messages", "copies"):
        query.grad = key.grad = value.grad = None
        output, found = distributed.attention(
            query, key, value, mask=mask, score=score, offsets=offsets, return_lse=True, exchange=exchange
        )
        check("output", output.transpose(0, 1)[None], expected.detach()[:, :, here])
        check("lse", found[None], lse.detach()[:, :, here])
        (output * parts[3]).sum().backward()
        for name, part, all_of_it in zip(("query", "key", "value"), (query, key, value), whole):
            check(f"gradient of {name}", part.grad.transpose(0, 1)[None], all_of_it.grad[:, :, here])


@case("causal", "window", "none", "function")
def packed(name):
    offsets = torch.tensor([0, 10, 10, 53, 60, 90], dtype=torch.int32)
    keep = {
        "causal": lambda b, h, q, k: k <= q,
        "window": lambda b, h, q, k: (k <= q) & (k >= q - 7),
        "none": lambda b, h, q, k: (q == q) & (k == k),
        "function": lambda b, h, q, k: (q - k) % 3 < 2,
    }[name]
    mask = {"causal": flash.causal(), "window": flash.causal() & flash.window(left=7), "none": None, "function": keep}[
        name
    ]
    score = None if name == "causal" else lambda s, b, h, q, k: s - SLOPES[h] * abs(q - k) + 0.01 * (q % 5)
    run_packed(offsets, mask, keep, score)


@case()
def dtensors():
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor

    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    inputs = make(90)
    whole = [each.double().requires_grad_() for each in inputs[:3]]
    expected, expected_lse = reference(*whole, MASKS["causal"][1])
    (expected * inputs[3].double()).sum().backward()
    parts = [distribute_tensor(each, mesh, [Shard(2)]).requires_grad_() for each in inputs[:3]]
    output, lse = distributed.attention(*parts, mask=flash.causal(), return_lse=True)
    assert isinstance(output, DTensor) and output.shape == (1, HEADS, 90, DIM) and lse.shape == (1, HEADS, 90)
    check("output", output.full_tensor().detach(), expected.detach())
    check("lse", lse.full_tensor().detach(), expected_lse.detach())
    (output * distribute_tensor(inputs[3], mesh, [Shard(2)])).to_local().sum().backward()
    for part, all_of_it in zip(parts, whole):
        check("gradient", part.grad.full_tensor(), all_of_it.grad)
    replicated = [distribute_tensor(each, mesh, [Replicate()]) for each in inputs[:3]]
    for given, message in (
        (replicated, "expected Shard(2), that of its rows"),
        ([parts[0], parts[1].to_local(), parts[2]], "key is a Tensor, and others are DTensors"),
    ):
        expect(ValueError if given is replicated else TypeError, message, lambda: distributed.attention(*given))
    expect(
        ValueError,
        "DTensors have their own shards, key_shards and group",
        lambda: distributed.attention(*parts, group=dist.group.WORLD),
    )


def expect(kind, message, function):
    try:
        function()
    except kind as error:
        assert message in str(error), str(error)
        return
    raise AssertionError(f"no error: {message}")


@case()
def bits():
    """The same bits in each call, and for any number of ranks: those of one process, as a group of its own."""
    ranks, rank = dist.get_world_size(), dist.get_rank()
    alone = [dist.new_group([each]) for each in range(ranks)][rank]
    inputs = [each.half() for each in make(256, heads=2, key_heads=1)]
    for mask in (flash.causal(), flash.window(left=40, right=9)):
        found = []
        for group, shards in ((None, distributed.Shards(256, ranks)), (alone, distributed.Shards(256, 1))):
            parts = [distributed.shard(each, group, shards=shards) for each in inputs]
            query, key, value = (each.requires_grad_() for each in parts[:3])
            output, lse = distributed.attention(
                query, key, value, group, mask, return_lse=True, shards=shards, same_bits=True
            )
            output.backward(parts[3])
            with torch.no_grad():
                results = output, query.grad, key.grad, value.grad
                found.append([distributed.unshard(each, group, shards=shards) for each in results])
                found[-1].append(distributed.unshard(lse, group, -1, shards))
        for here, there in zip(*found):
            assert torch.equal(here, there)
    parts = [distributed.shard(each) for each in inputs]
    results = []
    for _ in range(2):
        query, key, value = (each.detach().requires_grad_() for each in parts[:3])
        distributed.attention(query, key, value, mask=flash.causal()).backward(parts[3])
        results.append((query.grad, key.grad, value.grad))
    assert all(map(torch.equal, *results))


@case()
def decodes():
    """A cache that is split over ranks, in stripes of one key and of several, contiguous and in pages."""
    counts = torch.tensor([50, 3, 64], dtype=torch.int32)
    bias = torch.randn(64)
    query, key, value, _ = make(2, 64, batch=3)
    masks = (
        (None, None, None),
        (flash.causal(), lambda b, h, q, k: k <= q + counts[b] - 2, None),
        (
            flash.causal() & flash.window(left=6),
            lambda b, h, q, k: (k <= q + counts[b] - 2) & (k >= q + counts[b] - 8),
            None,
        ),
        (None, None, lambda s, b, h, q, k: s + bias[k] * SLOPES[h]),
    )
    sink = torch.randn(HEADS)
    for interleave in (1, 4):
        parts = [distributed.stripe(each, interleave=interleave) for each in (key, value)]
        for mask, keep, score in masks:
            kept = (
                (lambda b, h, q, k: k < counts[b])
                if keep is None
                else (lambda b, h, q, k: (k < counts[b]) & keep(b, h, q, k))
            )
            expected = reference(*(each.double() for each in (query, key, value)), kept, score, sink)
            options = dict(mask=mask, score=score, sink=sink, return_lse=True, interleave=interleave)
            for name, actual, wanted in zip(
                ("output", "lse"), distributed.decode(query, *parts, counts, **options), expected
            ):
                check(name, actual, wanted)
            if score is not None or interleave == 1:
                continue
            pages = [each.unflatten(2, (-1, 8)).permute(0, 2, 3, 1, 4).flatten(0, 1).contiguous() for each in parts]
            table = torch.arange(len(pages[0]), dtype=torch.int32).view(3, -1)
            found = distributed.decode(query, *pages, counts, page_table=table, **options)
            for name, actual, wanted in zip(("output", "lse"), found, expected):
                check(f"{name} of pages", actual, wanted)
    one = query[:, :, :1]
    check(
        "one",
        distributed.decode(one, *parts, counts, mask=flash.causal(), interleave=4),
        reference(*(each.double() for each in (one, key, value)), lambda b, h, q, k: k < counts[b])[0],
    )
    expect(
        NotImplementedError,
        "decode has no gradients",
        lambda: distributed.decode(query.clone().requires_grad_(), *parts, counts),
    )


@case()
def not_sent():
    """What a mask never visits is not sent."""
    ranks, rank = dist.get_world_size(), dist.get_rank()
    shards = distributed.Shards(512, ranks, "contiguous")
    found = distributed.explain(shards, HEADS, mask=flash.causal() & flash.window(left=31))
    size = 512 // ranks
    assert found.keys[1:] == tuple([((each * size - 31, (each + 1) * size),) for each in range(1, ranks)])
    assert found.forward_bytes == 31 * HEADS * 2 * 128 * 2
    parts = [distributed.shard(each, shards=shards) for each in make(512)[:3]]
    if rank == 0:
        # Nobody but the next rank needs the last keys, and nobody the first ones.
        parts[1][:, :, : size - 31] += torch.nan
        parts[2][:, :, : size - 31] += torch.nan
    output = distributed.attention(*parts, mask=flash.causal() & flash.window(left=31), shards=shards)
    assert rank == 0 or not output.isnan().any()


@case()
def shares():
    """Memory that ranks share grows, is given back, and is refused where there is no room for it."""
    for length in (96, 1 << 13, 96):
        parts = [distributed.shard(each) for each in make(length)[:3]]
        results = [
            distributed.attention(*parts, mask=flash.causal(), exchange=exchange) for exchange in ("messages", "copies")
        ]
        assert torch.equal(*results)
        if length == 96:
            distributed.free_memory()

    def refuse(descriptor, offset, size):
        raise OSError("No space left on device")

    allocate, os.posix_fallocate = os.posix_fallocate, refuse
    try:
        expect(
            OSError,
            "No space left on device",
            lambda: distributed.attention(*parts, mask=flash.causal(), exchange="copies"),
        )
    finally:
        os.posix_fallocate = allocate


@case()
def ranks_disagree():
    parts = [distributed.shard(each) for each in make(96)[:3]]
    with flash.checks():
        mask = flash.causal() if dist.get_rank() == 0 else flash.full()
        expect(ValueError, "rank 1 calls attention with", lambda: distributed.attention(*parts, mask=mask))


def end_with_parent():
    """Waits for the end of the input, a pipe into which the parent writes nothing: it is closed when the parent ends."""
    os.read(0, 1)
    os._exit(1)


def main():
    threading.Thread(target=end_with_parent, daemon=True).start()
    rank, ranks, address, results, names = sys.argv[1:]
    torch.set_num_threads(1)
    flash.set_thread_count(1)
    dist.init_process_group(
        "gloo", f"file://{address}", timeout=datetime.timedelta(seconds=30), rank=int(rank), world_size=int(ranks)
    )
    found = {}
    for name in names.split(","):
        torch.manual_seed(0)
        start = time.time()
        try:
            CASES[name]()
            found[name] = None
        except Exception:
            found[name] = traceback.format_exc()
            print(name, found[name], file=sys.stderr, flush=True)
        print(f"{name}: {time.time() - start:.1f} s", flush=True)
        # A rank that has failed would leave the others behind in the next case.
        failures = [None] * int(ranks)
        dist.all_gather_object(failures, found[name])
        if any(failures):
            found[name] = next(each for each in failures if each)
    with open(os.path.join(results, rank), "w") as file:
        json.dump(found, file)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
