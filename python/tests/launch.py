"""Calls on CUDA, with a driver and a PyTorch that only look like it. Run by test_launch.py."""

import contextlib
import ctypes
import os
import sys
import threading
import time

import fake_torch
import numpy as np

fake_torch.install(has_exchange="FAKE_EXCHANGE" in os.environ)

import flash_mlir as flash  # noqa: E402

make, events = fake_torch.make, fake_torch.events


def expect_error(kind, text, *arguments, call=flash.attention, **options):
    try:
        call(*arguments, **options)
    except kind as error:
        assert text in str(error), error
    else:
        raise AssertionError(f"no error: {text}")


@contextlib.contextmanager
def no_other_kernel():
    """What is called here takes kernels that are in memory."""
    before = set(flash.cache._kernels)
    yield
    assert set(flash.cache._kernels) == before, "another kernel"


def test_calls():
    query, key = make((2, 8, 100, 64), "float32"), make((2, 2, 130, 64), "float32")
    output, lse = flash.attention(query, key, key, mask=flash.causal(), return_lse=True)
    assert output.shape == (2, 8, 100, 64) and output.dtype.name == "float32"
    assert lse.shape == (2, 8, 100) and lse.get_device() == 0
    expected = [("empty", (2, 8, 100, 64), "float32"), ("empty", (2, 8, 100), "float32"), ("stream", 0)]
    assert [event for event in events if event[-1] != "int8"] == expected, events
    # Of the shape of an operand.
    assert fake_torch.likes == [(2, 8, 100, 64)]


def test_threads_go_on():
    """While the driver assembles a kernel, as gradients are compiled then."""
    driver = ctypes.CDLL("libcuda.so.1")

    def open_gate():
        while driver.fakeGetGate() != 2:
            time.sleep(0.01)
        driver.fakeSetGate(0)

    opening = threading.Thread(target=open_gate, daemon=True)
    driver.fakeSetGate(1)
    opening.start()
    query = make((1, 1, 64, 40), "float16")
    flash.attention(query, query, query, mask=flash.window(11, 3))
    opening.join()


def test_machine():
    """Schedules count on the multiprocessors of the device, and take what was measured on it."""
    machine = flash.compiler.get_machine(0)
    assert machine[1:3] == ((("Fake GPU", 132) if machine.target == "sm_90a" else ("NVIDIA L40S", 142))), machine
    text = (
        "func.func @f(%q: tensor<1x1x16384x64xf16>) -> tensor<1x1x16384x64xf16> {\n  %o = flash.attention %q, %q, %q : "
        "(tensor<1x1x16384x64xf16>, tensor<1x1x16384x64xf16>, tensor<1x1x16384x64xf16>) -> tensor<1x1x16384x64xf16>\n"
        "  return %o : tensor<1x1x16384x64xf16>\n}"
    )
    described = f"flash.target = #flash.target<{machine.target}>"
    # An H200 has as many as its description, an L40S more than an RTX 4090.
    expected = described if machine.target == "sm_90a" else described.replace(">", f", multiprocessors = {machine.multiprocessors}>")
    assert expected in flash.compile(text).ir(1) and expected in flash.compile(text, device=0).ir(1)
    assert described in flash.compile(text, target=machine.target).ir(1)
    expect_error(ValueError, "CUDA devices are counted from 0", text, call=flash.compile, device=-1)


def test_other_device():
    """The device is the current one only during the call."""
    query = make((1, 2, 64, 64), "float32", device=1)
    output = flash.attention(query, query, query)
    assert output.get_device() == 1 and fake_torch.current_device == 0
    assert events[0] == ("enter", 1) and events[-1] == ("exit", 1)
    events.clear()
    query.array = query.array.reshape(-1)[1 : 1 + 2 * 32 * 64].reshape(1, 2, 32, 64)
    query.shape = query.array.shape
    expect_error(ValueError, "query starts at an address that is not a multiple of 16 bytes", query, query, query)
    assert fake_torch.current_device == 0


def test_scratch():
    """Split-KV needs memory for what the splits give."""
    query, key = make((1, 8, 1, 64), "float32"), make((1, 8, 16384, 64), "float32")
    flash.attention(query, key, key)
    assert "int8" in [event[2] for event in events if event[0] == "empty"]


def test_plan():
    """A plan that was made before: its arrays and scratch memory come from PyTorch, and no program is chosen."""
    query, key = make((1, 4, 300, 64), "float16"), make((1, 2, 300, 64), "float16")
    ids = [make((300,), "int32") for _ in range(2)]
    made = [flash.plan(flash.documents(each) & flash.causal(), query, key, gradients=True) for each in ids[:1]]
    choose = flash.programs._plan
    flash.programs._plan = None
    events.clear()
    made.append(flash.plan(flash.documents(ids[1]) & flash.causal(), query, key, gradients=True))
    flash.programs._plan = choose
    assert {event[0] for event in events} == {"empty", "stream"}
    arrays = [event[1] for event in events if event[0] == "empty" and event[2] == "int32"]
    assert arrays == [array.shape for array in made[1].arrays] == [array.shape for array in made[0].arrays]
    events.clear()
    flash.attention(query, key, key, mask=made[1])


def test_strides():
    packed = make((2, 100, 3, 4, 64), "float32")
    parts = []
    for i in range(3):
        view = packed.array[:, :, i].transpose(0, 2, 1, 3)
        parts.append(fake_torch.Tensor(view, packed.dtype, 0))
    assert flash.attention(*parts).shape == (2, 4, 100, 64)
    turned = fake_torch.Tensor(parts[0].array[..., ::2], packed.dtype, 0)
    expect_error(ValueError, "has stride 2 in its last dimension, which must be contiguous", turned, turned, turned)


def turn(batches, heads, length, dim, dtype="float16"):
    """Memory in the order (batch, length, heads, D)."""
    array = make((batches, length, heads, dim), dtype).array.transpose(0, 2, 1, 3)
    return fake_torch.Tensor(array, fake_torch.DTYPES[dtype], 0)


def test_order_of_results():
    """Results lie in memory in the order of query, and gradients in that of what they are of."""
    for heads, length, dim, value_dim in ((8, 100, 64, 64), (8, 100, 64, 128), (32, 5, 128, 128)):
        query, key, value = turn(2, heads, length, dim), turn(2, 2, 130, dim), make((2, 2, 130, value_dim), "float16")
        events.clear()
        output, lse = flash.attention(query, key, value, mask=flash.causal(), return_lse=True)
        assert output.shape == (2, heads, length, value_dim)
        assert output.stride() == (length * heads * value_dim, value_dim, heads * value_dim, 1)
        assert lse.stride() == (heads * length, length, 1)
        grads = flash.attention_grad(query, key, value, output, lse, output, mask=flash.causal())
        assert [grad.stride() for grad in grads] == [each.stride() for each in (query, key, value)]
        assert not [event for event in events if event[0] in ("contiguous", "clone")]
    query = fake_torch.Tensor(make((100, 8, 64), "float16").array.transpose(1, 0, 2), query.dtype, 0)
    assert flash.attention(query, query, query).stride() == query.stride()
    packed = fake_torch.Tensor(make((2, 100, 3, 8, 64), "float16").array[:, :, 1].transpose(0, 2, 1, 3), query.dtype, 0)
    assert flash.attention(packed, packed, packed).stride() == (100 * 8 * 64, 64, 8 * 64, 1)
    # A split over keys is put together by another kernel.
    query, key = turn(2, 16, 3, 64), turn(2, 16, 8192, 64)
    assert flash.attention(query, key, key).stride() == query.stride()


def test_padding():
    """Rows may be apart by multiples of 16 bytes. Strides of single elements do not matter."""
    padded = make((1, 2, 64, 68), "float32").array[..., :64]
    query = fake_torch.Tensor(padded, fake_torch.DTYPES["float32"], 0)
    assert flash.attention(query, query, query).shape == (1, 2, 64, 64)
    padded = make((2, 1, 1, 65), "float32").array[:1, ..., :64]
    query = fake_torch.Tensor(padded, fake_torch.DTYPES["float32"], 0)
    assert query.stride()[0] == 65
    assert flash.attention(query, query, query).shape == (1, 1, 1, 64)
    padded = make((1, 2, 64, 65), "float32").array[..., :64]
    key = fake_torch.Tensor(padded, fake_torch.DTYPES["float32"], 0)
    query = make((1, 2, 64, 64), "float32")
    message = "key has stride 65 in dimension 2; on a GPU it must be a multiple of 4 elements (16 bytes)"
    expect_error(ValueError, message, query, key, query)


def test_packed_rows():
    """Nothing is copied or waited for; results are row-major, and kernels store all of their rows."""
    packed = make((300, 3, 4, 96), "float16")
    query, key, value = (fake_torch.Tensor(packed.array[:, i], packed.dtype, 0) for i in range(3))
    offsets, others = make((6,), "int32"), make((6,), "int64")
    # Nobody looks at what they hold.
    offsets.array[...] = 1000
    options = dict(mask=flash.causal(), query_offsets=offsets, key_offsets=others)
    output, lse = flash.attention(query, key, value, return_lse=True, **options)
    results = [("empty", (300, 4, 96), "float16"), ("empty", (4, 300), "float32")]
    assert [event for event in events if event[-1] != "int8"] == [*results, ("stream", 0)], events
    assert output.shape == (300, 4, 96) and output.is_contiguous() and lse.shape == (4, 300)
    events.clear()
    grads = flash.attention_grad(query, key, value, output, lse, output, lse_grad=lse, **options)
    assert [grad.shape for grad in grads] == [(300, 4, 96)] * 3 and all(grad.is_contiguous() for grad in grads)
    assert [event[0] for event in events if event[-1] != "int8"] == ["empty"] * 3 + ["stream"], events
    events.clear()
    # Other numbers of rows and sequences need no other kernel, but where there are few rows for each.
    rows, fewer = make((777, 4, 96), "float16"), [make((3,), name) for name in ("int32", "int64")]
    options = dict(mask=flash.causal(), query_offsets=fewer[0], key_offsets=fewer[1])
    with no_other_kernel():
        flash.attention(rows, rows, rows, return_lse=True, **options)
    dense = make((5, 4, 30, 96), "float16")
    assert flash.attention(dense, key, value, key_offsets=offsets).shape == dense.shape
    assert flash.attention(query, dense, dense, query_offsets=offsets).shape == query.shape
    turned = fake_torch.Tensor(make((300, 96, 4), "float16").array.transpose(0, 2, 1), packed.dtype, 0)
    message = "query has stride 4 in its last dimension, which must be contiguous (1)"
    expect_error(ValueError, message, turned, key, value, query_offsets=offsets, key_offsets=offsets)
    message = "queries are of 5 sequences and keys of 2"
    expect_error(ValueError, message, query, key, value, query_offsets=offsets, key_offsets=fewer[0])
    message = "key_offsets is on the CPU, query on cuda:0"
    expect_error(ValueError, message, query, key, value, query_offsets=offsets, key_offsets=offsets.array)


def test_pages():
    """Caches are taken as they lie, and nobody looks at tables and lengths; the version is that of the room of the table."""
    cache = make((50, 4, 16, 256), "float16").array.transpose(0, 2, 1, 3)
    key, value = (fake_torch.Tensor(part, fake_torch.DTYPES["float16"], 0) for part in (cache[..., :128], cache[..., 128:]))
    query, table, lengths = make((9, 16, 1, 128), "float16"), make((9, 100), "int32"), make((9,), "int32")
    table.array[...], lengths.array[...] = -7, 10**9
    options = dict(mask=flash.causal(), page_table=table, key_lengths=lengths)
    attend = lambda: flash.attention(query, key, value, return_lse=True, **options)
    output, lse = attend()
    results = [("empty", (9, 16, 1, 128), "float16"), ("empty", (9, 16, 1), "float32")]
    assert [event for event in events if event[-1] != "int8"] == [*results, ("stream", 0)], events
    assert any(event[-1] == "int8" for event in events), "keys are not split"
    events.clear()
    options["page_table"] = fake_torch.Tensor(make((9, 104), "int32").array[:, :101], table.dtype, 0)
    key = fake_torch.Tensor(cache[:40, ..., :128], key.dtype, 0)
    value = fake_torch.Tensor(cache[:40, ..., 128:], key.dtype, 0)
    with no_other_kernel():
        attend()
    packed, offsets = make((700, 16, 128), "float16"), make((10,), "int32")
    for rows in (700, 20):
        part = fake_torch.Tensor(packed.array[:rows], packed.dtype, 0)
        assert flash.attention(part, key, value, query_offsets=offsets, **options).shape == (rows, 16, 128)
    dense = turn(9, 4, 1600, 128)
    assert flash.attention(query, dense, dense, flash.causal(), key_lengths=lengths).shape == query.shape
    odd = fake_torch.Tensor(make((50, 4, 16, 132), "float16").array.transpose(0, 2, 1, 3)[..., :128], key.dtype, 0)
    message = "key has stride 132 in dimension 1; on a GPU it must be a multiple of 8 elements (16 bytes)"
    expect_error(ValueError, message, query, odd, odd, **options)


def test_kv_cache():
    """Rows come before heads, as in the cache, and nothing is copied to turn them."""
    half = fake_torch.DTYPES["float16"]
    lengths, table = make((3,), "int32"), make((3, 4), "int32")
    cases = [(make((9, 16, 2, 128), "float16"), table), (make((3, 64, 2, 128), "float16"), None)]
    cases.append((fake_torch.Tensor(make((9, 2, 16, 128), "float16").array.transpose(0, 2, 1, 3), half, 0), table))
    for cache, blocks in cases:
        for tokens in (1, 5):
            by_heads = fake_torch.Tensor(make((3, 8, tokens, 128), "float16").array.transpose(0, 2, 1, 3), half, 0)
            for query in (make((3, tokens, 8, 128), "float16"), by_heads):
                events.clear()
                fake_torch.likes.clear()
                options = dict(cache_seqlens=lengths, block_table=blocks, causal=True, return_softmax_lse=True)
                output, lse = flash.flash_attn_with_kvcache(query, cache, cache, **options)
                assert output.shape == (3, tokens, 8, 128) and output.is_contiguous() and lse.shape == (3, 8, tokens)
                assert lse.is_contiguous() and lse.dtype.name == "float32"
                assert fake_torch.likes == ([] if query is by_heads else [query.shape])
                made = [event for event in events if event[-1] != "int8"]
                assert made == [("empty", output.shape, "float16"), ("empty", lse.shape, "float32"), ("stream", 0)], made
    few = make((3, 1, 7, 128), "float16")
    kv_cache = dict(call=flash.flash_attn_with_kvcache, cache_seqlens=lengths, block_table=table)
    expect_error(ValueError, "q has 7 heads, k_cache has 2", few, cases[0][0], cases[0][0], **kv_cache)
    odd = fake_torch.Tensor(make((9, 16, 2, 132), "float16").array[..., :128], half, 0)
    expect_error(ValueError, "k_cache has stride 132 in dimension 2; on a GPU", make((3, 1, 8, 128), "float16"), odd, odd, **kv_cache)


def test_serving():
    """What is prepared serves all calls in its bounds, and says what it takes; others are errors that name what lacks."""
    serving = flash.serving
    layers = [serving.Layer(causal=True), serving.Layer(causal=True, window_size=(20, -1), softcap=15.0, sink=True, return_lse=True)]
    calls = [serving.decode(3), serving.mixed(70), serving.prefill([1, 2, 5, 70])]
    bounds = dict(sequences=[1, 2, 5], keys=64, page_size=16, device="cuda:0")
    prepared = serving.prepare(8, 2, 128, "float16", calls, layers=layers, **bounds)
    target = flash.get_device_target()
    kinds = {(i, call.kind) for i in range(2) for call in calls}
    assert {(kernel.layer, kernel.kind) for kernel in prepared.kernels} == kinds | {(None, "append")}
    assert "\nall layers, append, " in str(prepared), prepared
    assert {kernel.target for kernel in prepared.kernels} == {target}
    assert all("query_tile" in kernel.version for kernel in prepared.kernels if kernel.kind == "decode"), prepared
    again = serving.prepare(8, 2, 128, "float16", calls, layers=layers, **bounds)
    assert [kernel._replace(found=None) for kernel in again.kernels] == [kernel._replace(found=None) for kernel in prepared.kernels]
    assert {kernel.found for kernel in again.kernels} == {"memory"}
    rng = np.random.default_rng(0)
    kinds = [(call, number) for call in calls for number in range(2)]
    with serving.no_compilation():
        for step in range(120):
            call, number = kinds[step % len(kinds)]
            count, columns = int(rng.choice([1, 2, 5])), int(rng.integers(1, 5))
            options = [dict(causal=True), dict(causal=True, window_size=(20, -1), softcap=15.0, learnable_sink=make((8,), "float32"))][number]
            ends = make((count + 1,), "int32")
            # Any pages in any order in memory, of which keys and values are parts.
            cache = make((int(rng.integers(1, 9)), 2, 16, 256), "float16").array.transpose(0, 2, 1, 3)
            cache = [fake_torch.Tensor(part, fake_torch.DTYPES["float16"], 0) for part in (cache[..., :128], cache[..., 128:])]
            table, lengths = make((count, columns), "int32"), make((count,), "int32")
            events.clear()
            if call.kind == "decode":
                tokens, keys = int(rng.integers(1, 4)), 16 * columns
                new = [make((count, tokens, 2, 128), "float16") for _ in cache] if step % 4 == 0 else []
                flash.flash_attn_with_kvcache(make((count, tokens, 8, 128), "float16"), *cache, *new, cache_seqlens=lengths, block_table=table,
                                              return_softmax_lse=number == 1, **options)
                if new:  # How many keys there are then.
                    assert events[0] == ("empty", (count,), "int32"), events
                    events[:] = [event for event in events[1:] if event[0] == "empty"]
            elif call.kind == "mixed":
                tokens, keys = int(rng.integers(1, 71)), 16 * columns
                flash.flash_attn_varlen_func(make((tokens, 8, 128), "float16"), *cache, ends, block_table=table, seqused_k=lengths,
                                             return_lse=number == 1, **options)
            else:
                tokens = keys = int(rng.choice([1, 2, 5, 70]))
                rows = make((tokens, 2, 128), "float16")
                flash.flash_attn_varlen_func(make((tokens, 8, 128), "float16"), rows, rows, ends, ends, return_lse=number == 1, **options)
            made = [np.prod(event[1]) * fake_torch.DTYPES[event[2]].numpy.itemsize for event in events if event[0] == "empty"]
            scratch = sum(size for size, event in zip(made, events) if event[2] == "int8")
            assert prepared.workspace_bytes(call, count, tokens, keys, layer=number) == (sum(made) - scratch, scratch)
        caches, table = make((9, 16, 2, 128), "float16"), make((3, 4), "int32")
        paged = dict(page_table=table, key_lengths=make((3,), "int32"))
        message = "prepare was called for sequences 1, 2, 5"
        query = make((3, 8, 1, 128), "float16")
        expect_error(serving.UnpreparedError, message, query, caches, caches, flash.causal(), **paged)
        expect_error(serving.UnpreparedError, "has program mask(#flash.causal)", query, caches, caches, **paged)
        expect_error(serving.UnpreparedError, "without a mask", query, caches, caches, **paged)
        dense = make((3, 2, 64, 128), "float16")
        expect_error(serving.UnpreparedError, "keys in pages of 16 rows", query, dense, dense, flash.causal(), key_lengths=paged["key_lengths"])
    # Of another device the driver would have to make machine code.
    elsewhere = lambda *shape, name="float16": make(shape, name, device=1)
    arrays = dict(page_table=elsewhere(1, 4, name="int32"), key_lengths=elsewhere(1, name="int32"))
    with serving.no_compilation():
        rows = elsewhere(9, 16, 2, 128)
        message = f"has target {target} on cuda:0"
        expect_error(serving.UnpreparedError, message, elsewhere(1, 8, 1, 128), rows, rows, flash.causal(), **arrays)
    # The kernel of the call is there, and the other is not.
    token, dense = make((3, 1, 8, 128), "float16"), [make((3, 64, 2, 128), "float16") for _ in range(2)]
    new, batch = [make((3, 1, 2, 128), "float16") for _ in range(2)], dict(cache_seqlens=paged["key_lengths"], causal=True)
    flash.flash_attn_with_kvcache(token, *dense, **batch)
    with serving.no_compilation():
        message = "the call needs the kernel that appends f16 keys and values to rows of a batch, D = 128 and 128, and it was not prepared"
        expect_error(serving.UnpreparedError, message, token, *dense, *new, **batch, call=flash.flash_attn_with_kvcache)
    expect_error(serving.UnpreparedError, "sequences 1, 2, 5", serving.decode(3), 9, 1, 64, call=prepared.workspace_bytes)
    expect_error(serving.UnpreparedError, "layer 7 was not prepared", serving.decode(3), 1, 1, 64, 7, call=prepared.workspace_bytes)


def test_out():
    """The kernel writes into the tensor where it can, in any order of the dimensions; nothing is allocated for the result or copied."""
    copies = []
    fake_torch.Tensor.copy_ = lambda self, other: copies.append(self)
    query, key = turn(2, 8, 100, 64), turn(2, 2, 130, 64)
    strided = fake_torch.Tensor(make((2, 8, 100, 128), "float16").array[..., :64], query.dtype, 0)
    shifted = fake_torch.Tensor(make((2 * 8 * 100 * 64 + 8,), "float16").array[8:].reshape(2, 8, 100, 64), query.dtype, 0)
    for out, is_direct in ((turn(2, 8, 100, 64), True), (make((2, 8, 100, 64), "float16"), True), (strided, False), (shifted, False)):
        events.clear(), copies.clear()
        output, lse = flash.attention(query, key, key, mask=flash.causal(), return_lse=True, out=out)
        assert output is out and lse.shape == (2, 8, 100)
        made = [event for event in events if event[0] == "empty" and event[2] == "float16"]
        assert len(made) == len(copies) == (not is_direct)
    expect_error(ValueError, "out is on cuda:1, and what is written into it on cuda:0", query, key, key, out=make((2, 8, 100, 64), "float16", device=1))
    query, offsets = make((20, 16, 128), "float16"), make((10,), "int32")
    key, table, lengths = make((50, 16, 4, 128), "float16"), make((9, 100), "int32"), make((9,), "int32")
    out = fake_torch.Tensor(make((40, 16, 128), "float16").array[4:24], query.dtype, 0)
    events.clear(), copies.clear()
    options = dict(mask=flash.causal(), query_offsets=offsets, page_table=table, key_lengths=lengths)
    assert flash.attention(query, key, key, out=out, **options) is out and not copies
    assert not [event for event in events if event[0] == "empty" and event[2] != "int8"], events
    query = make((9, 2, 16, 128), "float16")
    options = dict(cache_seqlens=lengths, block_table=table, causal=True)
    strided = fake_torch.Tensor(make((9, 2, 16, 256), "float16").array[..., :128], query.dtype, 0)
    for out, is_direct in ((make((9, 2, 16, 128), "float16"), True), (strided, False)):
        events.clear(), copies.clear()
        output, lse = flash.flash_attn_with_kvcache(query, key, key, return_softmax_lse=True, out=out, **options)
        assert output is out and lse.shape == (9, 16, 2)
        made = [event for event in events if event[0] == "empty" and event[2] == "float16"]
        assert len(made) == len(copies) == (not is_direct), events
    wrong = make((9, 16, 2, 128), "float16")
    message = "out has the shape (9, 16, 2, 128); expected (9, 2, 16, 128)"
    expect_error(ValueError, message, query, key, key, call=flash.flash_attn_with_kvcache, out=wrong, **options)


def test_causal_sequences():
    """Nobody looks at which sequences are causal, and no other array needs another kernel."""
    query, offsets = make((20, 16, 128), "float16"), make((10,), "int32")
    key, table, lengths = make((50, 16, 4, 128), "float16"), make((9, 100), "int32"), make((9,), "int32")
    tokens = make((9, 1, 16, 128), "float16")

    def attend(causal):
        flash.flash_attn_varlen_func(query, key, key, offsets, block_table=table, seqused_k=lengths, causal=causal, window_size=(50, 3))
        flash.flash_attn_with_kvcache(tokens, key, key, cache_seqlens=lengths, block_table=table, causal=causal)

    prepared = flash.serving.prepare(
        16, 4, 128, "float16", [flash.serving.mixed(20), flash.serving.decode()], device="cuda:0", sequences=[9], keys=[1600], page_size=16,
        layers=[flash.serving.Layer(causal=np.zeros(1, np.int32), window_size=(50, 3)), flash.serving.Layer(causal=np.zeros(1, np.int32))])
    events.clear()
    with flash.serving.no_compilation():
        attend(make((9,), "int32"))
    found = [prepared.workspace_bytes(call, 9, tokens, 1600, layer) for call, tokens, layer in
             ((flash.serving.mixed(20), 20, 0), (flash.serving.decode(), 1, 1))]
    made = [(int(np.prod(event[1])) * fake_torch.DTYPES[event[2]].numpy.itemsize, event[2]) for event in events if event[0] == "empty"]
    for is_scratch in (False, True):
        expected = sum(size for size, name in made if (name == "int8") == is_scratch)
        assert sum(workspace[is_scratch] for workspace in found) == expected, (found, made)
    events.clear()
    with no_other_kernel():
        attend(make((9,), "int32"))
    assert {event[0] for event in events} == {"empty", "stream"}, events
    for causal in (make((9,), "int32").array, np.ones(9, bool)):
        expect_error(ValueError, "causal is on the CPU, q on cuda:0", tokens, key, key, call=flash.flash_attn_with_kvcache,
                     cache_seqlens=lengths, block_table=table, causal=causal)


def test_places():
    query = make((1, 2, 64, 64), "float32")
    elsewhere = make((1, 2, 64, 64), "float32", device=1)
    expect_error(ValueError, "key is on cuda:1, query on cuda:0; they must be on one device", query, elsewhere, query)
    expect_error(ValueError, "value is on the CPU, query on cuda:0", query, query, query.array)
    slopes = elsewhere.array[0, 0, 0]
    score = lambda s, b, h, q, k: s * slopes[h]
    expect_error(ValueError, "slopes is on the CPU, query on cuda:0", query, query, query, score=score)


def test_gradients():
    """Each call takes the version for its sizes, once it is compiled; gradients of any strides serve."""
    query, key = make((2, 8, 128, 64), "float16"), make((2, 2, 136, 64), "float16")
    output, lse = flash.attention(query, key, key, mask=flash.causal(), return_lse=True)
    sink = make((8,), "float32")
    events.clear()
    arguments = (query, key, key, output, lse)
    grads = flash.attention_grad(*arguments, output, mask=flash.causal(), sink=sink, lse_grad=lse)
    assert [grad.shape for grad in grads] == [query.shape, key.shape, key.shape, (8,)]
    assert [grad.dtype.name for grad in grads] == ["float16"] * 3 + ["float32"]
    made = [event[1:] for event in events if event[0] == "empty" and event[2] != "int8"]
    assert made == [(grad.shape, grad.dtype.name) for grad in grads] and events[-1] == ("stream", 0)

    with no_other_kernel():
        flash.attention_grad(*arguments, output, mask=flash.causal(), sink=sink, lse_grad=lse)
    slopes, table = make((8,), "float32"), make((300,), "bfloat16")
    score = lambda s, b, h, q, k: s + slopes[h] * (q - k) + table[q - k + 150]
    grads = flash.attention_grad(*arguments, output, mask=flash.causal(), score=score, wrt=[table, slopes])
    assert [(grad.shape, grad.dtype.name) for grad in grads[3:]] == [((300,), "bfloat16"), ((8,), "float32")]
    turned = fake_torch.Tensor(make((2, 128, 8, 64), "float16").array.transpose(0, 2, 1, 3), query.dtype, 0)
    expanded = fake_torch.Tensor(np.broadcast_to(output.array[:1], query.shape), query.dtype, 0)
    shifted = make((query.array.size + 1,), "float16").array[1:].reshape(query.shape)
    shifted = fake_torch.Tensor(shifted, query.dtype, 0)
    for output_grad, copies in ((turned, []), (expanded, ["contiguous"]), (shifted, ["clone"])):
        events.clear()
        flash.attention_grad(*arguments, output_grad, mask=flash.causal())
        assert [event[0] for event in events if event[0] in ("contiguous", "clone")] == copies
    message = "output_grad has the shape (2, 2, 136, 64); expected (2, 8, 128, 64)"
    expect_error(ValueError, message, *arguments, key, call=flash.attention_grad)
    message = "output_grad is on the CPU, query on cuda:0; they must be on one device"
    expect_error(ValueError, message, *arguments, output.array, call=flash.attention_grad)


def test_gradients_that_are_refused():
    """Functions without a derivative would lose it."""
    query, sink, slopes = make((1, 2, 64, 64), "float32"), make((2,), "float32"), make((2,), "float32")
    score = lambda s, b, h, q, k: s * slopes[h]
    output, lse = flash.attention(query, query, query, score=score, sink=sink, return_lse=True)
    for name, tensor in (("query", query), ("sink", sink), ("slopes", slopes)):
        tensor.requires_grad = True
        options = dict(call=flash.attention_grad, score=score, sink=sink)
        expect_error(NotImplementedError, f"{name} requires gradients", query, query, query, output, lse, output, **options)
        tensor.requires_grad = False
    output.requires_grad = True
    options = dict(call=flash.attention_grad, score=score, sink=sink)
    expect_error(NotImplementedError, "output requires gradients", query, query, query, output, lse, output, **options)
    scale = make((), "float32")
    scale.requires_grad = True
    expect_error(NotImplementedError, "scale requires gradients", query, query, query, scale=scale)


def test_memory():
    """A tensor whose storage was freed."""
    slopes = make((2,), "float32")
    text = """func.func @f(%q: tensor<?x8xf32>) -> tensor<?x8xf32> {\n  return %q : tensor<?x8xf32>\n}"""
    slopes.data_ptr = lambda: 0
    kernel = flash.compile(text, target="cpu")
    expect_error(ValueError, "argument 0 is a Tensor on the device cuda:0 without memory", slopes, call=kernel)


def test_unsigned():
    """Of PyTorch's unsigned integers, what the kernel reads is told by the dtype."""
    query, table = make((1, 2, 64, 64), "float32"), make((2,), "uint8")
    flash.attention(query, query, query, score=lambda s, b, h, q, k: s * table[h])
    expect_error(TypeError, "query is uint8 of shape (2,)", table, query, query)
    short = make((63,), "int32")
    mask = lambda b, h, q, k: short[k] == short[q]
    message = "short has size 63 in dimension 0, where k goes from 0 to 63; that must be in range also where it is hidden"
    expect_error(ValueError, message, query, query, query, mask=mask)


def test_programs():
    text = f"func.func @f(%q: tensor<1x?x8xf32>) -> tensor<1x?x8xf32> {{\n  %o = flash.attention %q, %q, %q : "
    text += "(tensor<1x?x8xf32>, tensor<1x?x8xf32>, tensor<1x?x8xf32>) -> tensor<1x?x8xf32>\n"
    text += "  return %o : tensor<1x?x8xf32>\n}"
    kernel = flash.compile(text)
    assert kernel.target == flash.get_device_target()
    query = make((1, 40, 8), "float32")
    assert kernel(query).shape == (1, 40, 8)
    try:
        kernel(query.array)
    except ValueError as error:
        assert f"argument 0 is on the CPU; the kernel is for {kernel.target}" in str(error)


def measure():
    """Microseconds that a cached call takes on the host, without the driver's part, one of pages, and a plan of other documents."""
    query, mask, ids = make((1, 1, 64, 64), "float32"), flash.causal(), make((64,), "int32")
    of_pages, table, lengths = make((4, 16, 1, 64), "float32"), make((1, 4), "int32"), make((1,), "int32")

    def call():
        flash.attention(query, query, query, mask=mask)

    def call_paged():
        flash.attention(query, of_pages, of_pages, mask=mask, page_table=table, key_lengths=lengths)

    def plan(gradients):
        flash.plan(flash.documents(ids) & mask, query, query, gradients=gradients)

    def time_once(function, *arguments):
        best = 1.0
        for _ in range(20):
            start = time.perf_counter()
            for _ in range(200):
                function(*arguments)
            best = min(best, (time.perf_counter() - start) / 200)
        return 1e6 * best

    return time_once(call), time_once(call_paged), time_once(plan, False), time_once(plan, True)


if __name__ == "__main__":
    if "--measure" in sys.argv:
        print("{:.1f} us a call, {:.1f} one of pages, {:.1f} a plan, {:.1f} a plan with gradients".format(*measure()))
        sys.exit()
    for name, test in list(globals().items()):
        if name.startswith("test_"):
            events.clear()
            fake_torch.likes.clear()
            fake_torch.allocated.clear()
            test()
