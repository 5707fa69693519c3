"""Calls like ones before, with a driver and a PyTorch that only look like it. Run by test_launch.py.

What kernels are launched with is what they were launched with in the first call, but for addresses; and what is
another call is seen as one.
"""

import os

import fake_torch
import numpy as np

fake_torch.install(has_exchange=True)

import flash_mlir as flash  # noqa: E402
from flash_mlir import flash_attn, kv_cache, packing  # noqa: E402

half = fake_torch.DTYPES["float16"]
seen = 0
# There is room around arrays: tensor maps may start before what they are of.
ROOM = 1 << 18


def make(shape, name, device=0):
    count = int(np.prod(shape)) * fake_torch.DTYPES[name].numpy.itemsize
    memory = fake_torch.make((count + 2 * ROOM,), "int8", device).array[ROOM : ROOM + count]
    return fake_torch.Tensor(memory.view(fake_torch.DTYPES[name].numpy).reshape(shape), fake_torch.DTYPES[name], device)


def get_launches():
    """Those since the last time, as lists of words."""
    global seen
    if not os.path.exists(os.environ["FAKE_LAUNCHES"]):
        return []
    with open(os.environ["FAKE_LAUNCHES"]) as file:
        lines = file.read().splitlines()
    new, seen = lines[seen:], len(lines)
    return [line.split() for line in new]


def launch(call, arrays):
    """What a call is launched with; addresses are the names of arrays, and numbers of tensors that were made."""
    fake_torch.allocated.clear()
    get_launches()
    results = call(**arrays)
    places = [(name, array.data_ptr(), array.array.nbytes, ROOM) for name, array in arrays.items() if array is not None]
    places += [(number, array.data_ptr(), array.array.nbytes, 0) for number, array in enumerate(fake_torch.allocated)]

    def replace(word):
        value = int.from_bytes(bytes.fromhex(word), "little")
        for name, start, count, room in places:
            if start - room <= value < start + count + room:
                return f"{name} + {value - start}"
        return word

    launches = get_launches()
    assert launches, "nothing was launched"
    # Of each line the first 9 words are sizes, the name and the hash of the program.
    parts = lambda line: [replace(text[at : at + 16]) for text in line[9:] for at in range(0, len(text), 16)]
    found = [line[:9] + parts(line) for line in launches]
    for name in arrays:
        is_there = any(word.startswith(f"{name} + ") for line in found for word in line)
        assert is_there or arrays[name] is None, f"{name} is not there"
    return found, results


def describe(results):
    results = results if isinstance(results, tuple) else (results,)
    return [(each.shape, each.stride(), each.dtype) for each in results]


class no_python:
    """A context in which only calls like ones before can be made."""

    def __enter__(self):
        self.before = packing.check_int32

        def refuse(*_):
            raise AssertionError("not known as a call like one before")

        for module in (packing, kv_cache, flash_attn):
            module.check_int32 = refuse
        packing._get_element, self.get_element = refuse, packing._get_element

    def __exit__(self, *_):
        for module in (packing, kv_cache, flash_attn):
            module.check_int32 = self.before
        packing._get_element = self.get_element


def expect_error(kind, text, function):
    """The same each time: what is wrong with a call has not become known as right."""
    for _ in range(3):
        try:
            function()
        except kind as error:
            assert text in str(error), error
        else:
            raise AssertionError(f"no error: {text}")


def make_paged(sequences=3, columns=5, page=16, heads=8, name="float16", device=0):
    rows = lambda *shape: make(shape, name, device)
    cache = lambda: rows(20, page, 2, 128)
    numbers = lambda *shape: make(shape, "int32", device)
    of_sequences = dict(table=numbers(sequences, columns), lengths=numbers(sequences))
    return dict(query=rows(sequences, 1, heads, 128), key=cache(), value=cache(), **of_sequences)


def call_kv_cache(query, key, value, table, lengths, causal=True, **options):
    options.update(cache_seqlens=lengths, block_table=table, causal=causal)
    return flash.flash_attn_with_kvcache(query, key, value, **options)


def make_packed(rows=40, **sizes):
    made = make_paged(**sizes)
    return {**made, "query": make((rows, 8, 128), "float16"), "ends": make((len(made["lengths"].array) + 1,), "int32")}


def call_packed(query, key, value, table, lengths, ends, **options):
    options.update(block_table=table, seqused_k=lengths, causal=True)
    return flash.flash_attn_varlen_func(query, key, value, ends, **options)


def make_packed_keys():
    rows = lambda heads: make((40, heads, 128), "float16")
    ends = dict(ends=make((4,), "int32"), key_ends=make((4,), "int64"))
    return dict(query=rows(8), key=rows(2), value=rows(2), **ends, out=rows(8))


def call_packed_keys(query, key, value, ends, key_ends, out):
    result = flash.flash_attn_varlen_func(query, key, value, ends, key_ends, softcap=10.0, window_size=(9, 0), out=out)
    assert result is out
    return result


def make_batch():
    rows = lambda heads, length: make((3, heads, length, 128), "float16")
    others = dict(lengths=make((3,), "int32"), sink=make((8,), "float32"))
    return dict(query=rows(8, 2), key=rows(2, 90), value=rows(2, 90), **others)


def call_batch(query, key, value, lengths, sink):
    return flash.attention(query, key, value, flash.causal(), key_lengths=lengths, sink=sink, return_lse=True)


def call_attention(query, key, value, table, lengths):
    query = fake_torch.Tensor(query.array.transpose(0, 2, 1, 3), query.dtype, query.device_index)
    mask = flash.causal() & flash.window(30, 0)
    return flash.attention(query, key, value, mask, page_table=table, key_lengths=lengths, scale=0.1)


OBJECT = flash.Attention(flash.causal(), return_lse=True)


def call_object(query, key, value, table, lengths):
    query = fake_torch.Tensor(query.array.transpose(0, 2, 1, 3), query.dtype, query.device_index)
    return OBJECT(query, key, value, page_table=table, key_lengths=lengths)


def test_parameters():
    """Of all addresses other ones, of caches alone, and of nothing."""
    batch = lambda: make((3, 80, 2, 128), "float16")
    cases = [
        (make_paged, call_kv_cache),
        (make_paged, lambda **arrays: call_kv_cache(return_softmax_lse=True, **arrays)),
        (lambda: {**make_paged(), "out": make((3, 1, 8, 128), "float16")}, call_kv_cache),
        (lambda: {**make_paged(), "key": batch(), "value": batch(), "table": None}, call_kv_cache),
        (make_packed, call_packed),
        (make_packed_keys, call_packed_keys),
        (make_batch, call_batch),
        (make_paged, call_attention),
        (make_paged, call_object),
    ]
    for make_arrays, call in cases:
        arrays = make_arrays()
        first, results = launch(call, arrays)
        launch(call, arrays)
        with no_python():
            assert launch(call, arrays)[0] == first
            others = make_arrays()
            found, again = launch(call, others)
            assert found == first and describe(again) == describe(results)
            found, _ = launch(call, {**arrays, "value": others["value"]})
            assert found == first
            assert launch(call, others)[0] == first


def make_appending(table=True, tokens=1):
    """A cache in pages or not, and new keys and values."""
    arrays = make_paged()
    if not table:
        arrays.update(key=make((3, 80, 2, 128), "float16"), value=make((3, 80, 2, 128), "float16"), table=None)
    new = lambda: make((3, tokens, 2, 128), "float16")
    return {**arrays, "query": make((3, tokens, 8, 128), "float16"), "new_key": new(), "new_value": new()}


def call_appending(new_key, new_value, **arrays):
    return call_kv_cache(k=new_key, v=new_value, **arrays)


def test_appending():
    """One kernel writes keys, values and new lengths, and the other reads these; what there was is read nowhere."""
    for options in (dict(), dict(table=False), dict(tokens=3)):
        arrays = make_appending(**options)
        first, results = launch(call_appending, arrays)
        assert [line[7] for line in first] == ["append", "attention"], options
        assert "lengths + 0" in first[0] and not any("lengths" in word or "new" in word for word in first[1])
        for _ in range(2):
            assert launch(call_appending, arrays)[0] == first
        with no_python():
            others = make_appending(**options)
            found, again = launch(call_appending, others)
            assert found == first and describe(again) == describe(results)
            assert launch(call_appending, {**arrays, "new_value": others["new_value"]})[0] == first
    # Keys and values beside each other, as the halves of rows.
    halves = lambda x: [fake_torch.Tensor(part, half, 0) for part in (x.array[..., :128], x.array[..., 128:])]
    call_halves = lambda key, **others: call_appending(**dict(zip(("key", "value"), halves(key))), **others)
    arrays = {name: array for name, array in make_appending().items() if name != "value"}
    arrays["key"] = make((20, 16, 2, 256), "float16")
    first, _ = launch(call_halves, arrays)
    assert "key + 0" in first[0] and "key + 256" in first[0]
    assert launch(call_halves, arrays)[0] == launch(call_halves, arrays)[0] == first
    arrays = make_appending()
    expect_error(ValueError, "k and v belong together", lambda: call_appending(**{**arrays, "new_value": None}))
    expect_error(ValueError, "k has the shape (3, 1, 1, 128)", lambda: call_appending(**{**arrays, "new_key": make((3, 1, 1, 128), "float16")}))
    others = make_appending()
    for wrong, message in (
        (dict(new_value=make((3, 1, 2, 128), "float16", 1)), "v is on cuda:1, v_cache on cuda:0"),
        (dict(table=make((3, 0), "int32")), "from 0 to 0 of their sequences, and there is room for 0"),
        (dict(table=None, key=others["key"], value=others["value"]), "k_cache has 20 rows and q 3"),
        (dict(lengths=make((4,), "int32")), "cache_seqlens is of 4 sequences"),
    ):
        get_launches()
        expect_error(ValueError, message, lambda: call_appending(**{**arrays, **wrong}))
        assert not get_launches(), message
    # Where values are columns of keys PyTorch appends, which this one cannot.
    get_launches()
    expect_error(TypeError, "not subscriptable", lambda: call_appending(**{**arrays, "value": arrays["key"]}))
    assert not get_launches()
    # Of the new arrays or of the call's alone one is unlike any before.
    with no_python():
        for other in (dict(new_key=make((3, 2, 2, 128), "float16")), dict(query=make((3, 2, 8, 128), "float16"))):
            get_launches()
            expect_error(AssertionError, "not known", lambda: call_appending(**{**arrays, **other}))
            assert not get_launches()


def test_captured_arrays():
    """Arrays of functions may be others; they are read where they are now."""

    def attend(query, key, value, slopes):
        return flash.attention(query, key, value, score=lambda s, b, h, q, k: s * slopes[h])

    def make_arrays(count=8, name="float32"):
        arrays = make_batch()
        return {**{name: arrays[name] for name in ("query", "key", "value")}, "slopes": make((count,), name)}

    arrays = make_arrays()
    first, _ = launch(attend, arrays)
    for _ in range(3):
        assert launch(attend, arrays)[0] == first
    assert launch(attend, {**arrays, "slopes": make((8,), "float32")})[0] == first
    # More of them are another call.
    larger, _ = launch(attend, make_arrays(9))
    assert launch(attend, make_arrays(9))[0] == launch(attend, make_arrays(9))[0] == larger
    expect_error(ValueError, "slopes has size 7 in dimension 0", lambda: attend(**make_arrays(7)))
    assert launch(attend, make_arrays(name="float16"))[0] != first
    elsewhere = {**arrays, "slopes": make((8,), "float32", 1)}
    expect_error(ValueError, "slopes is on cuda:1, query on cuda:0", lambda: attend(**elsewhere))


def know(call=call_kv_cache, **sizes):
    """The arrays of a call that is known, and what it is launched with."""
    arrays = make_paged(**sizes)
    first, _ = launch(call, arrays)
    for _ in range(2):
        assert launch(call, arrays)[0] == first
    with no_python():
        call(**arrays)
    return arrays, first


def test_other_calls():
    """What is new in a call has its own check and its own parameters."""
    arrays, first = know()
    half_width = lambda: fake_torch.Tensor(make((20, 16, 2, 256), "float16").array[..., :128], half, 0)
    shifted = fake_torch.Tensor(make((2 * 20 * 16 * 128 + 8,), "float16").array[8:].reshape(20, 16, 2, 128), half, 0)
    others = {
        "strides": dict(key=half_width()),
        "room": dict(table=make((3, 9), "int32")),
        "pages": dict(key=make((21, 16, 2, 128), "float16"), value=make((21, 16, 2, 128), "float16")),
        "sequences": make_paged(sequences=4),
        "rows of a page": make_paged(page=32),
        "heads": make_paged(heads=16),
        "tokens": dict(query=make((3, 2, 8, 128), "float16")),
    }
    for name, other in others.items():
        other = {**arrays, **other}
        found, _ = launch(call_kv_cache, other)
        assert found != first, name
        for _ in range(2):
            assert launch(call_kv_cache, other)[0] == found, name
        with no_python():
            assert launch(call_kv_cache, other)[0] == found, name
            assert launch(call_kv_cache, arrays)[0] == first, name
    # At a multiple of 16 bytes and none of 256.
    assert [launch(call_kv_cache, {**arrays, "key": shifted})[0] for _ in range(3)] == [first] * 3


def test_options():
    arrays, first = know()
    others = dict(causal=False, softcap=5.0), dict(window_size=(7, -1)), dict(softcap=3.0), dict(softmax_scale=0.5)
    for options in others:
        call = lambda **arrays: call_kv_cache(**{**arrays, **options})
        found = [launch(call, arrays)[0] for _ in range(3)]
        assert found == found[:1] * 3 and found[0] != first, options
        assert launch(call_kv_cache, arrays)[0] == first, options
        # Equal numbers are the same option, and other types or signs are none.
        with no_python():
            call(**arrays)
            launch(lambda **arrays: call_kv_cache(window_size=tuple([-1, -1]), softcap=float("0"), **arrays), arrays)
    for unlike in (dict(softcap=-0.0), dict(softcap=0), dict(window_size=(-1, -1.0)), dict(causal=1)):
        with no_python():
            expect_error(AssertionError, "not known", lambda: call_kv_cache(**{**arrays, **unlike}))


def test_refused():
    arrays, _ = know()
    change = lambda **others: lambda: call_kv_cache(**{**arrays, **others})
    wide = make((20, 16, 2, 128), "float32")
    expect_error(TypeError, "the dtypes must agree", change(key=wide))
    expect_error(TypeError, "cache_seqlens has the dtype int64; expected int32", change(lengths=make((3,), "int64")))
    expect_error(ValueError, "cache_seqlens is of 4 sequences, and q of 3", change(lengths=make((4,), "int32")))
    expect_error(ValueError, "v_cache is on cuda:1, q on cuda:0", change(value=make((20, 16, 2, 128), "float16", 1)))
    misplaced = fake_torch.Tensor(make((2 * 20 * 16 * 128 + 4,), "float16").array[4:].reshape(20, 16, 2, 128), half, 0)
    expect_error(ValueError, "key starts at an address that is not a multiple of 16 bytes", change(key=misplaced))
    expect_error(ValueError, "softcap is 'x'", lambda: call_kv_cache(**arrays, softcap="x"))
    arrays["query"].requires_grad = True
    expect_error(NotImplementedError, "flash_attn_with_kvcache has no gradients", change())
    arrays["query"].requires_grad = False
    call_kv_cache(**arrays)


def test_state():
    """What PyTorch and the package are told to do counts, too."""
    arrays, first = know()
    fake_torch.is_autocast_on = True
    with no_python():
        expect_error(AssertionError, "not known", lambda: call_kv_cache(**arrays))
    assert launch(call_kv_cache, arrays)[0] == first
    fake_torch.is_autocast_on = False
    flash.checking.is_on = True
    with no_python():
        expect_error(AssertionError, "not known", lambda: call_kv_cache(**arrays))
    flash.checking.is_on = False
    with no_python():
        assert launch(call_kv_cache, arrays)[0] == first


def test_other_device():
    """A device that is not the current one has its own kernel, which is current during the call alone."""
    know()
    there = make_paged(device=1)
    for _ in range(4):
        fake_torch.events.clear()
        assert call_kv_cache(**there).get_device() == 1 and fake_torch.current_device == 0
        assert fake_torch.events[0] == ("enter", 1) and fake_torch.events[-1] == ("exit", 1)
    fake_torch.current_device = 1
    fake_torch.events.clear()
    assert [call_kv_cache(**there).get_device() for _ in range(3)] == [1] * 3
    assert {event for event in fake_torch.events if event[0] in ("enter", "stream")} == {("stream", 1)}
    fake_torch.current_device = 0


def test_calls_inside():
    """PyTorch may let another thread run while it allocates, which may make the same call."""
    arrays, first = know()
    inside = make_paged()
    allocate, inner = fake_torch._allocate, []

    def allocate_twice(*arguments):
        fake_torch._allocate = allocate
        inner.append(call_kv_cache(**inside))
        fake_torch.allocated.clear()
        return allocate(*arguments)

    fake_torch._allocate = allocate_twice
    get_launches()
    call_kv_cache(**arrays)
    launches = get_launches()
    assert len(inner) == 1 and len(launches) == 2 * len(first)
    for part, of in zip((launches[: len(first)], launches[len(first) :]), (inside, arrays)):
        address = of["value"].data_ptr().to_bytes(8, "little").hex()
        assert any(address in word for line in part for word in line)
    assert launch(call_kv_cache, arrays)[0] == first


if __name__ == "__main__":
    for name, test in list(globals().items()):
        if name.startswith("test_"):
            test()
