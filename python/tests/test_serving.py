"""Kernels that are prepared before the first request, and calls that may not compile any other."""

import threading
import warnings

import numpy as np
import pytest

import flash_mlir as flash
from flash_mlir import cache, serving

HEADS, KEY_HEADS, DIM, PAGE = 4, 2, 32, 16
SLOPES = np.float32([0.5, 0.25, 0.125, 0.0625])
SINK = np.float32([0.1, 0.2, 0.3, 0.4])

pytestmark = pytest.mark.usefixtures("forget")


def prepare(calls, layers, sequences=6, keys=100, page_size=PAGE, device="cpu"):
    return serving.prepare(
        HEADS, KEY_HEADS, DIM, "float32", calls, layers=layers, sequences=sequences, keys=keys, page_size=page_size, device=device
    )


def keep_even(b, h, q, k):
    return k % 2 == 0


# Of each layer, what prepare is told, and what calls have.
LAYERS = {
    "causal": (serving.Layer(causal=True), dict(causal=True)),
    "window": (serving.Layer(causal=True, window_size=(20, 0), sink=True), dict(causal=True, window_size=(20, 0), learnable_sink=SINK)),
    "capped": (
        serving.Layer(softcap=15.0, alibi_slopes=SLOPES, scale=0.3, num_splits=1),
        dict(softcap=15.0, alibi_slopes=SLOPES, softmax_scale=0.3, num_splits=1),
    ),
    "arrays": (serving.Layer(causal=True, sink=SINK, scale=0.2), dict(causal=True, learnable_sink=SINK, softmax_scale=0.2)),
    "function": (serving.Layer(mask=keep_even, return_lse=True), dict(mask=keep_even)),
}


def make_cache(rng, page_size):
    """Keys and values beside each other, in pages, or of six sequences of 96 rows."""
    shape = (int(rng.integers(1, 12)), PAGE) if page_size else (6, 96)
    both = rng.standard_normal((*shape, KEY_HEADS, 2 * DIM), np.float32)
    return both[..., :DIM], both[..., DIM:]


def make_table(rng, key, count):
    columns = int(rng.integers(1, 8))
    table = rng.integers(0, len(key), (count, columns)).astype(np.int32)
    return table, rng.integers(0, columns * PAGE - 8, count).astype(np.int32)


def make_offsets(rng, rows, count):
    return np.int32([0, *sorted(rng.integers(0, rows + 1, count - 1)), rows])


def call(rng, kind, page_size, options, returns_lse):
    count = int(rng.integers(1, 7)) if page_size else 6
    tokens = int(rng.integers(1, 9))
    key, value = make_cache(rng, page_size)
    if kind == "decode":
        query = rng.standard_normal((count, tokens, HEADS, DIM), np.float32)
        table, lengths = make_table(rng, key, count) if page_size else (None, rng.integers(0, 80, count).astype(np.int32))
        new = rng.standard_normal((2, count, tokens, KEY_HEADS, DIM), np.float32) if rng.integers(2) else (None, None)
        arguments = dict(block_table=table, cache_seqlens=lengths, return_softmax_lse=returns_lse)
        out = np.empty_like(query) if rng.integers(2) else None
        return flash.flash_attn_with_kvcache(query, key, value, *new, out=out, **arguments, **options)
    rows = int(rng.integers(1, 60))
    query = rng.standard_normal((rows, HEADS, DIM), np.float32)
    ends = make_offsets(rng, rows, count)
    out = np.empty_like(query) if rng.integers(2) else None
    if kind == "mixed":
        table, lengths = make_table(rng, key, count)
        arguments = dict(block_table=table, seqused_k=lengths, return_lse=returns_lse)
        return flash.flash_attn_varlen_func(query, key, value, ends, out=out, **arguments, **options)
    key, value = rng.standard_normal((2, rows, KEY_HEADS, DIM), np.float32)
    return flash.flash_attn_varlen_func(query, key, value, ends, ends, return_lse=returns_lse, out=out, **options)


@pytest.mark.parametrize("page_size", [PAGE, None], ids=["pages", "rows"])
@pytest.mark.parametrize("layer", LAYERS)
def test_no_call_in_bounds_compiles(rng, layer, page_size):
    given, options = LAYERS[layer]
    calls = [serving.decode(8), serving.prefill(60), *([serving.mixed(60)] if page_size else [])]
    prepared = prepare(calls, [given], page_size=page_size)
    assert {kernel.kind for kernel in prepared.kernels} == {call.kind for call in calls}
    with serving.no_compilation():
        for step in range(30):
            call(rng, calls[step % len(calls)].kind, page_size, options, given.return_lse)


@pytest.mark.parametrize("page_size", [PAGE, None], ids=["pages", "rows"])
@pytest.mark.parametrize("dtype, scales", [("float8_e4m3fn", "tensor"), (np.int8, ("head", "tensor"))], ids=["f8", "i8"])
def test_caches_of_8_bits(rng, page_size, dtype, scales):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    element = ml_dtypes.float8_e4m3fn if dtype == "float8_e4m3fn" else np.int8
    calls = [serving.decode(8), *([serving.mixed(60)] if page_size else [])]
    given = dict(sequences=6, keys=100, layers=[serving.Layer(causal=True)], page_size=page_size, cache_dtype=dtype, cache_scales=scales)
    serving.prepare(HEADS, KEY_HEADS, DIM, "float16", [*calls, serving.prefill(9)], **given, device="cpu")
    machine = flash.compiler.Machine("sm_90a", "NVIDIA H200", 132)
    chosen = set()
    with pytest.MonkeyPatch.context() as patch:  # Of a GPU that is not here, only which versions there are.
        patch.setattr(serving.Prepared, "_find_kernel", lambda self, text: (None, "file"))
        of_gpu = serving.prepare(HEADS, KEY_HEADS, DIM, "float16", calls, **given, device=machine)
    assert [kernel.kind for kernel in of_gpu.kernels if kernel.layer is None] == ["append"]
    get_sizes = flash.quantized._get_sizes

    def choose(rows, arrays, on_device):
        sizes = get_sizes(rows, arrays, True)
        variant = of_gpu._variants[0, calls[0] if arrays[0] is None else calls[1]]
        text = flash.programs.print_program(variant.config, "f16", 4, DIM, DIM)
        chosen.add((text, machine, None, flash.programs.get_classes(variant.parts, machine, sizes)))
        return get_sizes(rows, arrays, on_device)

    with pytest.MonkeyPatch.context() as patch, serving.no_compilation():
        patch.setattr(flash.quantized, "_get_sizes", choose)
        for step in range(20):
            count = int(rng.integers(1, 7)) if page_size else 6
            key, value = (x.astype(element) for x in make_cache(rng, page_size))
            scale = {"tensor": np.float32(0.5).reshape(1), "head": np.full((count, KEY_HEADS), 0.5, np.float32)}
            k_descale, v_descale = (scale[each] for each in ((scales, scales) if isinstance(scales, str) else scales))
            options = dict(causal=True, k_descale=k_descale, v_descale=v_descale)
            table, lengths = make_table(rng, key, count) if page_size else (None, rng.integers(0, 80, count).astype(np.int32))
            if calls[step % len(calls)].kind == "decode":
                query = rng.standard_normal((count, int(rng.integers(1, 9)), HEADS, DIM), np.float32).astype(np.float16)
                flash.flash_attn_with_kvcache(query, key, value, cache_seqlens=lengths, block_table=table, **options)
            else:
                rows = int(rng.integers(1, 61))
                query = rng.standard_normal((rows, HEADS, DIM), np.float32).astype(np.float16)
                ends = make_offsets(rng, rows, count)
                flash.flash_attn_varlen_func(query, key, value, ends, seqused_k=lengths, block_table=table, **options)
    assert chosen and chosen <= flash.compilation.kernels.keys()


def test_torch(rng):
    """Tensors, objects and compiled graphs have the same kernels."""
    torch = pytest.importorskip("torch")
    prepare([serving.decode(), serving.mixed(9)], [serving.Layer(causal=True)])
    key, value = torch.zeros(2, 9, PAGE, KEY_HEADS, DIM)
    query, rows = torch.ones(2, HEADS, 1, DIM), torch.ones(9, HEADS, DIM)
    arrays = dict(page_table=torch.zeros(2, 3, dtype=torch.int32), key_lengths=torch.tensor([7, 20], dtype=torch.int32))
    ends = torch.tensor([0, 4, 9], dtype=torch.int32)
    attend = flash.Attention(flash.causal())

    def run(query, rows, ends, key, value, arrays):
        return attend(query, key, value, **arrays), flash.attention(rows, key, value, flash.causal(), query_offsets=ends, **arrays)

    compiled = torch.compile(run, backend="aot_eager", fullgraph=True)
    with torch.no_grad(), serving.no_compilation():
        for function in (run, compiled):
            assert [result.shape for result in function(query, rows, ends, key, value, arrays)] == [query.shape, rows.shape]
        with pytest.raises(serving.UnpreparedError):
            flash.attention(query, key, value, **arrays)


def test_append_is_refused_before_it_is_written(rng):
    key, value = rng.standard_normal((2, 9, PAGE, KEY_HEADS, DIM), np.float32)
    before = key.copy()
    query, new = rng.standard_normal((2, 1, HEADS, DIM), np.float32), rng.standard_normal((2, 1, KEY_HEADS, DIM), np.float32)
    options = dict(cache_seqlens=np.int32([3, 5]), block_table=np.zeros((2, 3), np.int32))
    with serving.no_compilation(), pytest.raises(serving.UnpreparedError):
        flash.flash_attn_with_kvcache(query, key, value, new, new, **options)
    np.testing.assert_array_equal(key, before)


def test_append_with_wrong_out(rng):
    """It is an error before something is written, and names the shape that the caller has."""
    key, value = rng.standard_normal((2, 9, PAGE, KEY_HEADS, DIM), np.float32)
    before = key.copy()
    query, new = rng.standard_normal((2, 1, HEADS, DIM), np.float32), rng.standard_normal((2, 1, KEY_HEADS, DIM), np.float32)
    options = dict(cache_seqlens=np.int32([3, 5]), block_table=np.zeros((2, 3), np.int32))
    with pytest.raises(ValueError, match=r"out has the shape \(2, 4, 1, 32\); expected \(2, 1, 4, 32\)"):
        flash.flash_attn_with_kvcache(query, key, value, new, new, out=np.empty((2, HEADS, 1, DIM), np.float32), **options)
    np.testing.assert_array_equal(key, before)
    out = np.broadcast_to(np.float32(0), (2, 1, HEADS, DIM))
    with pytest.raises(ValueError, match="out is read-only; expected an array that can be written into"):
        flash.flash_attn_with_kvcache(query, key, value, new, new, out=out, **options)
    value.flags.writeable = False
    with pytest.raises(ValueError, match="v_cache is read-only; expected an array that can be written into"):
        flash.flash_attn_with_kvcache(query, key, value, new, new, **options)
    np.testing.assert_array_equal(key, before)


def test_left_padding(rng):
    starts = np.int32([3, 0])
    prepare([serving.decode()], [serving.Layer(causal=True, cache_leftpad=starts)], page_size=None)
    key, value = rng.standard_normal((2, 2, 96, KEY_HEADS, DIM), np.float32)
    query = rng.standard_normal((2, 1, HEADS, DIM), np.float32)
    with serving.no_compilation():
        flash.flash_attn_with_kvcache(query, key, value, cache_seqlens=90, cache_leftpad=np.int32([9, 1]), causal=True)


def decode(rng, tokens=1, page=PAGE, mask=flash.causal(), columns=3):
    key, value = rng.standard_normal((2, 9, page, KEY_HEADS, DIM), np.float32)
    query = rng.standard_normal((2, HEADS, tokens, DIM), np.float32)
    table, lengths = np.zeros((2, columns), np.int32), np.int32([7, 20])
    return flash.attention(query, key, value, mask, page_table=table, key_lengths=lengths)


def test_what_lacks_is_named(rng):
    with serving.no_compilation(), pytest.raises(serving.UnpreparedError, match="nothing was prepared, which flash_mlir.serving.prepare does"):
        decode(rng)
    prepare([serving.decode(8)], [serving.Layer(causal=True)])
    with serving.no_compilation():
        decode(rng)
        with pytest.raises(serving.UnpreparedError, match="tokens of a sequence 20.*was called for tokens of a sequence from 1 to 8$"):
            decode(rng, tokens=20)
        with pytest.raises(serving.UnpreparedError, match="keys in pages of 32 rows.*has keys in pages of 16 rows$"):
            decode(rng, page=32)
        with pytest.raises(serving.UnpreparedError, match=r"has program mask\(#flash.causal\)$"):
            decode(rng, mask=flash.window(left=5))
        with pytest.raises(serving.UnpreparedError, match="gradients"):
            rows = rng.standard_normal((1, HEADS, 20, DIM), np.float32)
            lse = np.zeros((1, HEADS, 20), np.float32)
            flash.attention_grad(rows, rows, rows, rows, lse, rows)
        with pytest.raises(serving.UnpreparedError, match="a program is not in memory"):
            flash.compile("func.func @f(%x: tensor<3xf32>) -> tensor<3xf32> { return %x : tensor<3xf32> }", target="cpu")
    # A call like one before needs nothing, prepared or not.
    decode(rng, tokens=20)
    with serving.no_compilation():
        decode(rng, tokens=20)


def test_warnings(rng):
    with serving.no_compilation("warn"):
        with pytest.warns(serving.UnpreparedWarning, match="nothing was prepared") as said:
            decode(rng)
        assert len(said) == 1
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            decode(rng)


def test_threads(rng):
    """A context is of its thread, and the default of all; what is prepared in one of them is for all."""
    results = []

    def run(function):
        def work():
            try:
                results.append(function())
            except Exception as error:
                results.append(error)

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        return results.pop()

    with serving.no_compilation():
        assert not isinstance(run(lambda: decode(rng, tokens=40)), Exception)
    assert serving.on_compilation("raise") == "allow"
    try:
        assert isinstance(run(lambda: decode(rng)), serving.UnpreparedError)
        with serving.no_compilation("allow"):
            decode(rng, tokens=20)
        run(lambda: prepare([serving.decode(3)], [serving.Layer(causal=True)]))
        decode(rng, tokens=3)
    finally:
        assert serving.on_compilation("allow") == "raise"


def test_report():
    arguments = [serving.decode([1, 4]), serving.mixed(50)], [serving.Layer(causal=True)]
    cache.clear()
    first = prepare(*arguments)
    assert {kernel.found for kernel in first.kernels} == {"compiled"}
    assert {kernel.target for kernel in first.kernels} == {"cpu"}
    assert all("flash.attention" in kernel.program and "flash.attention" in kernel.version for kernel in first.kernels)
    assert {kernel.found for kernel in prepare(*arguments).kernels} == {"memory"}
    cache._kernels.clear()
    again = prepare(*arguments)
    assert [kernel.found for kernel in again.kernels] == ["file"] * len(first.kernels)
    text = str(again)
    assert text.startswith(f"{len(again.kernels)} kernels for cpu: {len(again.kernels)} in file\nlayer 0, decode, ")
    assert "query_tile" in text and "a schedule for all sizes" in text


def test_kernels_stay(rng, monkeypatch):
    """Other programs do not drive out what was prepared."""
    prepare([serving.decode(3)], [serving.Layer(causal=True)])
    monkeypatch.setattr(cache, "_MAX_KERNELS", 1)
    for length in (3, 4):
        flash.compile(f"func.func @f(%x: tensor<{length}xf32>) -> tensor<{length}xf32> {{ return %x : tensor<{length}xf32> }}", target="cpu")
    with serving.no_compilation():
        decode(rng)


def test_arguments():
    bounds = dict(sequences=2, keys=64)
    calls = [serving.decode()]

    def refuse(kind, message, *arguments, **options):
        with pytest.raises(kind, match=message):
            serving.prepare(*arguments, **{**bounds, "device": "cpu", **options})

    refuse(ValueError, "heads is 5 and key_heads 2", 5, 2, 64, "float16", calls)
    refuse(ValueError, "heads is 0", 0, 2, 64, "float16", calls)
    refuse(TypeError, "head_dim is a str", 4, 2, "64", "float16", calls)
    refuse(ValueError, "head_dim is 600", 4, 2, 600, "float16", calls)
    refuse(ValueError, "in pages multiples of 8", 4, 2, 60, "float16", calls, page_size=16)
    refuse(ValueError, "dtype is 'int8'", 4, 2, 64, "int8", calls)
    refuse(TypeError, "calls is 'decode'; expected a list of Call", 4, 2, 64, np.float16, "decode")
    refuse(TypeError, "layers is .*; expected a list of Layer", 4, 2, 64, np.dtype("float16"), calls, layers=[{}])
    refuse(ValueError, "sequences has 0", 4, 2, 64, "float16", calls, sequences=[0, 1])
    refuse(ValueError, "sequences has -1; expected numbers from 1 on", 4, 2, 64, "float16", calls, sequences=-1)
    refuse(ValueError, "tokens has 0; expected numbers from 1 on", 4, 2, 64, "float16", [serving.decode(0)])
    refuse(TypeError, "sink is a int; expected whether calls have it, True or False, or an array", 4, 2, 64, "float16", calls, layers=[serving.Layer(sink=1)])
    refuse(TypeError, "lengths is a str; expected whether calls have it", 4, 2, 64, "float16", calls, layers=[serving.Layer(lengths="yes")])
    refuse(ValueError, "keys has no sizes", 4, 2, 64, "float16", calls, keys=[])
    refuse(ValueError, "keys is left out, and calls of decode and mixed have a cache", 4, 2, 64, "float16", calls, keys=None)
    refuse(TypeError, "tokens is a str", 4, 2, 64, "float16", [serving.decode("1")])
    refuse(ValueError, "offsets are 'int8'", 4, 2, 64, "float16", [serving.mixed(9, offsets="int8")])
    refuse(ValueError, "device is 'tpu'", 4, 2, 64, "float16", calls, device="tpu")
    refuse(ValueError, "cache_dtype is 'float16'; expected one of float8_e4m3fn, int8", 4, 2, 64, "float16", calls, cache_dtype="float16")
    refuse(ValueError, "dtype is float32, and a cache of 8 bits", 4, 2, 64, "float32", calls, cache_dtype="int8")
    refuse(ValueError, "value_dim are 64 and 60; with cache_dtype multiples of 8", 4, 2, 64, "float16", calls, value_dim=60, cache_dtype="int8")
    on_tensor_cores = dict(cache_dtype="int8", device=flash.compiler.Machine("sm_90a"))
    refuse(ValueError, "value_dim are 24 and 24; with cache_dtype multiples of 16", 4, 2, 24, "float16", calls, **on_tensor_cores)
    refuse(ValueError, "calls of prefill have no cache", 4, 2, 64, "float16", [serving.prefill(9)], cache_dtype="int8")
    refuse(ValueError, "cache_scales is 'page'; expected one of tensor, head, row", 4, 2, 64, "float16", calls, cache_dtype="int8", cache_scales="page")
    refuse(ValueError, "cache_scales is None; expected one of", 4, 2, 64, "float16", calls, cache_dtype="int8", cache_scales=None)
    refuse(ValueError, "cache_scales is 'head' without cache_dtype", 4, 2, 64, "float16", calls, cache_scales="head")
    for function in (serving.on_compilation, serving.no_compilation):
        with pytest.raises(ValueError, match="action is 'stop'; expected one of allow, warn, raise"):
            function("stop")
    assert serving.prepare(4, 2, 64, "float16", [serving.prefill(9)], sequences=2, device="cpu").kernels
    prepared = serving.prepare(4, 2, 64, "float16", calls, **bounds, device="cpu")
    with pytest.raises(ValueError, match="kernels are for cpu without a device"):
        prepared.workspace_bytes(calls[0], 1, 1, 64)


def test_kernels_of_a_card_that_is_not_here():
    """Files of the cache can be made where there is no GPU."""
    machine = flash.compiler.Machine("sm_90a", "NVIDIA H200", 132)
    given = dict(layers=[serving.Layer(causal=True)], sequences=[1], keys=[64], page_size=16, device=machine)
    prepared = serving.prepare(4, 2, 64, "bfloat16", [serving.decode([1])], **given)
    assert [(kernel.target, kernel.kind) for kernel in prepared.kernels] == [("sm_90a", "decode"), ("sm_90a", "append")]
