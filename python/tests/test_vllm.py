"""vLLM's backend on the CPU, with the parts of vLLM that it uses as stubs, and batches as vLLM's model runner makes them."""

import abc
import dataclasses
import enum
import importlib
import json
import math
import subprocess
import sys
import types
import typing

import pytest

torch = pytest.importorskip("torch")

import flash_mlir as flash  # noqa: E402
from flash_mlir import _core, programs  # noqa: E402

HEADS, KEY_HEADS, DIM, PAGE = 4, 2, 16, 16
# (new tokens, keys with them) of each sequence.
DECODE = [(1, 40), (1, 1), (1, 17), (1, 32)]
CHUNKS = [(20, 20), (7, 50), (16, 33)]
MIXED = [(1, 40), (30, 30), (5, 47), (1, 16), (0, 0), (12, 12)]
BATCHES = {"decode": DECODE, "chunks": CHUNKS, "mixed": MIXED}


class AttentionType(str, enum.Enum):
    DECODER = "decoder"
    ENCODER = "encoder"
    ENCODER_ONLY = "encoder_only"
    ENCODER_DECODER = "encoder_decoder"


class Builder(abc.ABC):
    @abc.abstractmethod
    def __init__(self, kv_cache_spec, layer_names, vllm_config, device):
        self.kv_cache_spec, self.layer_names, self.vllm_config, self.device = kv_cache_spec, layer_names, vllm_config, device

    @abc.abstractmethod
    def build(self, common_prefix_len, common_attn_metadata, fast_build=False): ...


class Implementation(abc.ABC):
    @abc.abstractmethod
    def __init__(self, num_heads, head_size, scale, num_kv_heads=None): ...

    @abc.abstractmethod
    def forward(self, layer, query, key, value, kv_cache, attn_metadata, output): ...


class OldBackend(abc.ABC):
    """What is abstract in vLLM 0.26; later two of the names are gone."""

    get_name = abc.abstractmethod(lambda: None)
    get_impl_cls = abc.abstractmethod(lambda: None)
    get_builder_cls = abc.abstractmethod(lambda: None)
    get_kv_cache_shape = abc.abstractmethod(lambda: None)


def reshape_and_cache_flash(key, value, key_cache, value_cache, slot_mapping, kv_cache_dtype, k_scale, v_scale):
    for token, slot in enumerate(slot_mapping.tolist()):
        for new, cache, scale in ((key, key_cache, k_scale), (value, value_cache, v_scale)):
            row = new[token]
            if kv_cache_dtype.startswith("fp8"):
                row = (row.float() / scale).to(torch.float8_e4m3fn).view(torch.uint8)
            if slot >= 0:
                cache[slot // PAGE, slot % PAGE] = row


@pytest.fixture
def vllm(monkeypatch):
    """The stubs; `registered` has what `register` told them."""
    registered = {}
    support = enum.Enum("AttentionCGSupport", "NEVER UNIFORM_SINGLE_TOKEN_DECODE UNIFORM_BATCH ALWAYS")
    parts = {
        "vllm": {},
        "vllm.envs": dict(VLLM_BATCH_INVARIANT=False),
        "vllm._custom_ops": dict(reshape_and_cache_flash=reshape_and_cache_flash),
        "vllm.v1": {},
        "vllm.v1.attention": {},
        "vllm.v1.attention.backend": dict(
            AttentionBackend=OldBackend, AttentionCGSupport=support, AttentionImpl=Implementation, AttentionMetadata=object,
            AttentionMetadataBuilder=Builder, AttentionType=AttentionType,
        ),
        "vllm.v1.attention.backends": {},
        "vllm.v1.attention.backends.utils": dict(get_kv_cache_layout=lambda: "NHD"),
        "vllm.v1.attention.backends.registry": dict(
            AttentionBackendEnum=types.SimpleNamespace(CUSTOM="custom"), register_backend=registered.__setitem__
        ),
    }
    for name, contents in parts.items():
        module = types.ModuleType(name)
        vars(module).update(contents)
        monkeypatch.setitem(sys.modules, name, module)
        parent, _, last = name.rpartition(".")
        if parent:
            setattr(sys.modules[parent], last, module)
    monkeypatch.delitem(sys.modules, "flash_mlir.vllm.backend", raising=False)
    sys.modules["vllm"].registered = registered
    yield sys.modules["vllm"]
    sys.modules.pop("flash_mlir.vllm.backend", None)


@pytest.fixture
def backend(vllm):
    return importlib.import_module("flash_mlir.vllm.backend")


@dataclasses.dataclass
class Common:
    """The part of vLLM's CommonAttentionMetadata that there is in both versions."""

    query_start_loc: torch.Tensor
    query_start_loc_cpu: torch.Tensor
    seq_lens: torch.Tensor
    num_reqs: int
    num_actual_tokens: int
    max_query_len: int
    max_seq_len: int
    block_table_tensor: torch.Tensor
    slot_mapping: torch.Tensor
    causal: typing.Any = True
    seq_lens_cpu_upper_bound: typing.Optional[torch.Tensor] = None
    mm_req_doc_ranges: typing.Optional[dict] = None
    rswa_prefix_lens: typing.Optional[torch.Tensor] = None


# The order in memory of (layers, blocks, heads, rows of a block, keys and values), as vLLM 0.33 names them.
ORDERS = {"LBHNC": (0, 1, 2, 3, 4), "LBNHC": (0, 1, 3, 2, 4), "LHBNC": (0, 2, 1, 3, 4), "BLHNC": (1, 0, 2, 3, 4),
          "BLNHC": (1, 0, 3, 2, 4), "BHLNC": (1, 2, 0, 3, 4)}  # fmt: skip


class Batch:
    """Tokens of sequences, whose earlier keys are in the cache; all else there is NaN. Tokens behind the last are padding."""

    def __init__(self, sequences, padding=0, order="LBNHC", key_heads=KEY_HEADS, dtype=torch.float32, **more):
        random = torch.Generator().manual_seed(0)
        self.sequences = sequences
        counts, lengths = zip(*sequences)
        blocks = [-(-length // PAGE) for length in lengths]
        numbers = (torch.randperm(sum(blocks), generator=random) + 1).int().split(blocks)
        table = torch.full((len(sequences), max(blocks) + 1), -7, dtype=torch.int32)
        slots = []
        shape = 2, sum(blocks) + 1, key_heads, PAGE, 2 * DIM
        places = ORDERS[order]
        memory = torch.full([shape[place] for place in places], math.nan, dtype=dtype)
        self.cache = memory.permute([places.index(dim) for dim in range(5)])[1]
        draw = lambda *shape: torch.randn(shape, generator=random).to(dtype)
        total = sum(counts) + padding
        self.query, self.key, self.value = (draw(total, heads, DIM) for heads in (HEADS, key_heads, key_heads))
        self.keys, self.values, start = [], [], 0
        for b, (count, length) in enumerate(sequences):
            table[b, : blocks[b]] = numbers[b]
            at = torch.arange(length)
            of_sequence = numbers[b].long()[at // PAGE] * PAGE + at % PAGE
            before = length - count
            past = draw(2, before, key_heads, DIM)
            rows = self.cache.transpose(1, 2)
            rows[of_sequence[:before] // PAGE, of_sequence[:before] % PAGE] = torch.cat(past.unbind(), -1)
            slots.append(of_sequence[before:])
            new = slice(start, start + count)
            self.keys.append(torch.cat([past[0], self.key[new]]))
            self.values.append(torch.cat([past[1], self.value[new]]))
            start += count
        starts = torch.tensor([0, *counts]).cumsum(0).int()
        lengths = torch.tensor(lengths, dtype=torch.int32)
        slots = torch.cat([*slots, torch.full((padding,), -1)])
        self.common = Common(starts, starts, lengths, len(sequences), total, max(counts), max(lengths), table, slots, **more)
        self.common.seq_lens_cpu_upper_bound = lengths

    def quantize(self, *scales):
        """Makes the cache one of e4m3, in bytes, and keys and values what it has of them: their scales divide them."""
        halves = [half.float() / scale for half, scale in zip(self.cache.split(DIM, dim=-1), scales)]
        self.cache = torch.cat([half.to(torch.float8_e4m3fn).view(torch.uint8) for half in halves], -1)
        for arrays, scale in zip((self.keys, self.values), scales):
            arrays[:] = [(x.float() / scale).to(torch.float8_e4m3fn).float() * scale for x in arrays]

    def run(self, backend, layer=None, build=None, writes=True, scales=(1.0, 1.0), **options):
        """The output of a layer that is made with these options."""
        key_heads = self.key.shape[1]
        impl = backend.Impl(HEADS, DIM, 0.3, key_heads, **options)
        impl.process_weights_after_loading(torch.float32)
        layer = layer or types.SimpleNamespace()
        layer._k_scale, layer._v_scale = map(torch.tensor, scales)
        build = build or make_builder(backend).build
        metadata = build(0, self.common)
        if writes:
            impl.do_kv_cache_update(layer, self.key, self.value, self.cache, metadata.slot_mapping)
        output = torch.full_like(self.query, math.nan)
        with torch.inference_mode():
            assert impl.forward(layer, self.query, self.key, self.value, self.cache, metadata, output) is output
        return output

    def check(self, output, keep=None, score=None, sinks=None):
        """Compares with a loop in fp64: `keep(b, q, k)` of positions in the sequence, `score(s, h, q, k)`."""
        start = 0
        for b, (count, length) in enumerate(self.sequences):
            q = torch.arange(length - count, length)[:, None]
            k = torch.arange(len(self.keys[b]))[None]
            keys, values = (x[b].double().repeat_interleave(HEADS // self.key.shape[1], 1) for x in (self.keys, self.values))
            scores = torch.einsum("qhd,khd->hqk", self.query[start : start + count].double(), keys) * 0.3
            if score is not None:
                scores = score(scores, torch.arange(HEADS)[:, None, None], q, k)
            kept = (k <= q) if keep is None else keep(b, q, k)
            scores = scores.masked_fill(~kept, -math.inf)
            if sinks is not None:
                scores = torch.cat([scores, sinks.double()[:, None, None].expand(-1, count, 1)], -1)
            weights = scores.softmax(-1)[..., : k.shape[1]]
            expected = torch.einsum("hqk,khd->qhd", weights, values)
            tolerance = 1e-5 if output.dtype == torch.float32 else 1e-2
            torch.testing.assert_close(output[start : start + count].double(), expected, rtol=tolerance, atol=tolerance)
            start += count
        assert (output[start:] == 0).all()


def make_builder(backend, is_mm_prefix_lm=False, rswa_window=None):
    config = types.SimpleNamespace(
        model_config=types.SimpleNamespace(is_mm_prefix_lm=is_mm_prefix_lm, rswa_window=rswa_window),
        scheduler_config=types.SimpleNamespace(max_num_seqs=10),
    )
    return backend.MetadataBuilder(None, ["layer"], config, torch.device("cpu"))


def test_register(vllm):
    import flash_mlir.vllm

    flash_mlir.vllm.register()
    flash_mlir.vllm.register()
    (path,) = vllm.registered.values()
    module, _, name = path.rpartition(".")
    made = getattr(importlib.import_module(module), name)
    assert made.get_name() == "CUSTOM" and made.get_impl_cls().__module__ == module
    assert made.get_kv_cache_shape(5, 16, 2, 64) == (5, 2, 16, 128)
    assert made.get_kv_cache_stride_order() == (0, 2, 1, 3) and made.get_kv_cache_stride_order(True) == (1, 0, 3, 2, 4)
    vars(sys.modules["vllm.v1.attention.backends.utils"])["get_kv_cache_layout"] = lambda: "HND"
    assert made.get_kv_cache_stride_order() == (0, 1, 2, 3) and made.get_kv_cache_stride_order(True) == (1, 2, 0, 3, 4)
    assert made.supports_head_size(512) and not made.supports_head_size(260) and not made.supports_head_size(640)
    assert made.supports_compute_capability(types.SimpleNamespace(major=8, minor=0))
    assert not made.supports_compute_capability(types.SimpleNamespace(major=7, minor=5))


def test_entry_point():
    """What is installed names a function, and neither the package nor the plug-in imports vLLM."""
    metadata = pytest.importorskip("importlib.metadata")
    points = [point for point in metadata.distribution("flash-mlir").entry_points if point.group == "vllm.general_plugins"]
    assert [point.name for point in points] == ["flash_mlir"]
    code = "import sys, flash_mlir\nassert 'flash_mlir.vllm' not in sys.modules\nimport flash_mlir.vllm\nassert 'vllm' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
    assert points[0].load().__name__ == "register"


@pytest.mark.parametrize("name", BATCHES)
@pytest.mark.parametrize("order", ORDERS)
def test_causal(backend, name, order):
    batch = Batch(BATCHES[name], padding=3, order=order)
    batch.check(batch.run(backend))


def test_prepared(backend, forget):
    """What `serving.prepare` makes for the bounds of a model is all that its batches need."""
    serving = flash.serving
    layers = [serving.Layer(causal=True, scale=0.3), serving.Layer(causal=True, window_size=(8, 0), softcap=1.5, scale=0.3, sink=True)]
    calls = [serving.mixed(60)]
    serving.prepare(HEADS, KEY_HEADS, DIM, "float32", calls, layers=layers, sequences=6, keys=70, page_size=PAGE, device="cpu")
    with serving.no_compilation("raise"):
        for sequences in BATCHES.values():
            batch = Batch(sequences, padding=2)
            batch.check(batch.run(backend))
            batch.run(backend, sliding_window=9, logits_soft_cap=1.5, sinks=torch.zeros(HEADS))
        with pytest.raises(serving.UnpreparedError):
            batch.run(backend, sliding_window=10)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("key_heads", [1, 4])
def test_types(backend, dtype, key_heads):
    batch = Batch(MIXED, key_heads=key_heads, dtype=dtype)
    batch.check(batch.run(backend))


@pytest.mark.parametrize("name", BATCHES)
@pytest.mark.parametrize("cache_dtype", ["fp8", "fp8_e4m3"])
def test_quantized(backend, name, cache_dtype):
    scales = 0.5, 0.125
    batch = Batch(BATCHES[name], padding=2, dtype=torch.float16)
    batch.quantize(*scales)
    batch.check(batch.run(backend, scales=scales, kv_cache_dtype=cache_dtype))
    batch.check(batch.run(backend, scales=scales, kv_cache_dtype=cache_dtype, sliding_window=5), lambda b, q, k: (k <= q) & (k > q - 5))


@pytest.mark.parametrize("name", BATCHES)
def test_layers(backend, name):
    """Windows, which count a query's own key, caps, slopes and sinks."""
    sinks, slopes = torch.linspace(-1, 1, HEADS), [0.5, 0.25, 0.125, 0.0625]
    batch = Batch(BATCHES[name], padding=2)
    batch.check(batch.run(backend, sliding_window=5), lambda b, q, k: (k <= q) & (k > q - 5))
    batch.check(batch.run(backend, sliding_window=1), lambda b, q, k: k == q)
    batch.check(batch.run(backend, logits_soft_cap=1.5), score=lambda s, h, q, k: 1.5 * (s / 1.5).tanh())
    batch.check(batch.run(backend, sinks=sinks.bfloat16()), sinks=sinks.bfloat16())
    of_slopes = torch.tensor(slopes)
    batch.check(batch.run(backend, alibi_slopes=slopes), score=lambda s, h, q, k: s - of_slopes[h] * (q - k).abs())
    options = dict(sliding_window=9, logits_soft_cap=1.5, sinks=sinks)
    keep = lambda b, q, k: (k <= q) & (k > q - 9)
    batch.check(batch.run(backend, **options), keep, lambda s, h, q, k: 1.5 * (s / 1.5).tanh(), sinks)


@pytest.mark.parametrize("window", [None, 6])
def test_not_causal(backend, window):
    """For all sequences or for some; then a window has two sides, and layers of one batch may have several."""
    near = lambda q, k: (k - q).abs() < (window or 1000)
    batch = Batch(MIXED, padding=1, causal=False)
    batch.check(batch.run(backend, sliding_window=window), lambda b, q, k: near(q, k))
    is_causal = torch.tensor([1, 0, 0, 1, 1, 1], dtype=torch.int32)
    batch = Batch(MIXED, padding=1, causal=is_causal)
    keep = lambda b, q, k: near(q, k) & ((k <= q) | (is_causal[b] == 0))
    metadata = make_builder(backend).build(0, batch.common)
    batch.check(batch.run(backend, sliding_window=window, build=lambda *_: metadata), keep)
    batch.check(batch.run(backend, build=lambda *_: metadata), lambda b, q, k: (k <= q) | (is_causal[b] == 0))
    # What the array holds is read at each call, as when a graph is replayed.
    is_causal.fill_(1)
    batch.check(batch.run(backend, sliding_window=window, build=lambda *_: metadata), lambda b, q, k: near(q, k) & (k <= q))


@pytest.mark.parametrize("window", [None, 6])
@pytest.mark.parametrize("is_clamped", [False, True])
def test_ranges(backend, window, is_clamped):
    """Images, in which tokens see each other: also those of which this chunk has a part, and those of earlier chunks."""
    ranges = {1: [(3, 11), (12, 25)], 2: [(2, 10), (40, 44)], 3: [], 5: [(4, 4), (5, 30)]}

    def keep(b, q, k):
        seen = (k <= q) & (k > q - (window or 1000))
        for first, last in ranges.get(b, ()):
            in_range = (first <= q) & (q <= last) & (first <= k) & (k <= last) & (first < last)
            seen = seen | (in_range & (k > q - window) if is_clamped and window else in_range)
        return seen

    layer = types.SimpleNamespace(mm_prefix_clamp_sliding_window=is_clamped)
    batch = Batch(MIXED, padding=2, mm_req_doc_ranges=ranges)
    batch.check(batch.run(backend, layer, sliding_window=window), keep)
    # No query is in a range, and models take ranges from some of their layers.
    causal = lambda b, q, k: (k <= q) & (k > q - (window or 1000))
    batch = Batch(MIXED, mm_req_doc_ranges={0: [(3, 9)], 4: [(0, 5)]})
    assert make_builder(backend).build(0, batch.common).mm_prefix_range_tensor is None
    batch.check(batch.run(backend, layer, sliding_window=window), causal)
    batch = Batch(MIXED, mm_req_doc_ranges=ranges)
    metadata = make_builder(backend).build(0, batch.common)
    metadata.mm_prefix_range_tensor = None
    batch.check(batch.run(backend, layer, build=lambda *_: metadata, sliding_window=window), causal)


def test_reference_window(backend):
    """All see the prompt, and what is generated has a window. A replayed graph reads the prompts of its own batch."""
    builder = make_builder(backend, rswa_window=4)
    for prompts in ([33, 30, 40, 2, 0, 12], [39, 30, 41, 9, 0, 12]):
        lengths = torch.tensor(prompts, dtype=torch.int32)
        batch = Batch(MIXED, padding=1, rswa_prefix_lens=lengths)
        metadata = builder.build(0, batch.common)
        batch.check(batch.run(backend, build=lambda *_: metadata), lambda b, q, k: (k <= q) & ((k < lengths[b]) | (k > q - 4)))
    first = builder.build(0, Batch(MIXED, rswa_prefix_lens=torch.zeros(6, dtype=torch.int32)).common)
    assert first.rswa_prefix_lens.data_ptr() == metadata.rswa_prefix_lens.data_ptr()


def test_without_cache(backend):
    """Encoders have no cache; a decoder's attention to an encoder has one that is not causal, and no new keys after its first step."""
    batch = Batch([(5, 5), (1, 1), (20, 20)], padding=2)
    batch.cache = None
    everything = lambda b, q, k: k >= 0
    batch.check(batch.run(backend, attn_type=AttentionType.ENCODER_ONLY), everything)
    keep = lambda b, q, k: (k - q).abs() < 4
    batch.check(batch.run(backend, attn_type=AttentionType.ENCODER_ONLY, sliding_window=4), keep)
    batch = Batch([(1, 40), (3, 50)], causal=False)
    batch.run(backend)
    batch.key = batch.value = batch.query[:, :KEY_HEADS] * math.nan
    batch.check(batch.run(backend, attn_type=AttentionType.ENCODER_DECODER, writes=False), everything)


def test_bits(backend, vllm):
    """With VLLM_BATCH_INVARIANT a token has the same bits alone and in company."""
    vllm.envs.VLLM_BATCH_INVARIANT = True
    batch = Batch(MIXED)
    output, start = batch.run(backend), 0
    for b, (count, length) in enumerate(MIXED):
        metadata = make_builder(backend).build(0, batch.common)
        metadata.query_start_loc, metadata.seq_lens = torch.tensor([0, count]).int(), metadata.seq_lens[b : b + 1]
        metadata.block_table = metadata.block_table[b : b + 1]
        alone = Batch(MIXED)
        alone.cache = batch.cache
        alone.query = batch.query[start : start + count]
        assert torch.equal(alone.run(backend, build=lambda *_: metadata, writes=False), output[start : start + count])
        start += count


@pytest.mark.parametrize("target", ["sm_90a", "sm_80"])
@pytest.mark.parametrize("kind", ["by_sequence", "ranges"])
@pytest.mark.parametrize("is_short", [False, True])
def test_emulated(backend, target, kind, is_short):
    """The masks that read arrays, in programs for GPUs: one for any lengths, and the version for short ones."""
    is_causal, ranges = torch.tensor([1, 0, 0, 1, 1, 1], dtype=torch.int32), {1: [(3, 11), (12, 25)], 2: [(2, 10), (40, 44)]}
    batch = Batch(MIXED, dtype=torch.float16, mm_req_doc_ranges=ranges)
    metadata = make_builder(backend).build(0, batch.common)
    is_same = lambda q, k, first, last: (first <= q) & (q <= last) & (first <= k) & (k <= last)
    in_range = lambda b, q, k: sum([is_same(q, k, *ends) for ends in ranges.get(b, ())], torch.zeros((), dtype=torch.bool)) > 0
    if kind == "by_sequence":
        mask = backend._make_mask(is_causal, 9)
        keep = lambda b, q, k: ((k - q).abs() <= 9) & ((k <= q) | (is_causal[b] == 0))
    else:
        mask = backend._add_ranges(backend._make_mask(True, 9), metadata.mm_prefix_range_tensor, metadata.query_start_loc, None)
        keep = lambda b, q, k: ((k <= q) & (k >= q - 9)) | in_range(b, q, k)
    attend = flash.Attention(mask, scale=0.3)
    config = programs.with_packing(attend._configs[0], ("i32", PAGE))
    text = programs.print_program(config, "f16", 4, DIM, DIM)
    if is_short:
        caches = [[len(MIXED), KEY_HEADS, PAGE, DIM]] * 2
        sizes = [[len(MIXED), HEADS, 8, DIM], *caches, list(metadata.block_table.shape)]
        sizes = programs.choose_sizes(json.loads(config), target, sizes)
        text = _core.Kernel.specialize(text, target, "", "", sizes)
    heads_first = lambda x: x.transpose(-2, -3).contiguous()
    batch.run(backend)
    keys, values = (heads_first(x) for x in batch.cache.transpose(1, 2).split(DIM, -1))
    arrays = heads_first(batch.query)[None], keys, values, *attend.captured, metadata.query_start_loc, metadata.block_table, metadata.seq_lens
    output = flash.compile(text, target="emulate:sm_90a" if target == "sm_90a" else "emulate")(*arrays)
    batch.check(output[0].transpose(0, 1), keep)


def test_builder(backend):
    batch = Batch(MIXED)
    builder = make_builder(backend)
    metadata = builder.build(0, batch.common)
    other = builder.update_block_table(metadata, metadata.block_table + 1, metadata.slot_mapping + PAGE)
    assert torch.equal(other.block_table, batch.common.block_table_tensor + 1) and other.seq_lens is metadata.seq_lens
    support = lambda *arguments: make_builder(backend, *arguments).get_cudagraph_support(
        make_builder(backend, *arguments).vllm_config, None
    )
    assert support().name == "ALWAYS" and support(True).name == "UNIFORM_SINGLE_TOKEN_DECODE"


def test_nothing_waits(backend):
    """No operator moves what a tensor holds to the host, but where ranges are built, which the host has."""
    from torch.utils._python_dispatch import TorchDispatchMode

    seen = []

    class Watch(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, arguments=(), options=None):
            seen.append(str(function))
            return function(*arguments, **(options or {}))

    batch = Batch(MIXED, causal=torch.ones(len(MIXED), dtype=torch.int32))
    with Watch():
        metadata = make_builder(backend).build(0, batch.common)
        batch.run(backend, build=lambda *_: metadata, writes=False)
    assert "flash_mlir.attention.default" in seen
    assert not {"aten._local_scalar_dense.default", "aten.nonzero.default", "aten.is_nonzero.default"} & set(seen)


def test_profiling(backend):
    batch = Batch(DECODE)
    output = torch.full_like(batch.query, math.nan)
    impl = backend.Impl(HEADS, DIM, 0.3, KEY_HEADS)
    assert impl.forward(None, batch.query, batch.key, batch.value, torch.empty(0), None, output) is output
    assert (output == 0).all()


def test_refusals(backend):
    with pytest.raises(NotImplementedError, match="kv_cache_dtype is fp8_e5m2; the backend of flash-mlir has auto, float16, bfloat16, fp8, fp8_e4m3"):
        backend.Impl(HEADS, DIM, 0.3, kv_cache_dtype="fp8_e5m2")
    with pytest.raises(NotImplementedError, match="the model has float32; with kv_cache_dtype fp8 it has float16 or bfloat16"):
        Batch(DECODE).run(backend, writes=False, kv_cache_dtype="fp8")
    with pytest.raises(NotImplementedError, match="head_size is 40; with kv_cache_dtype fp8 it is a multiple of 16"):
        backend.Impl(HEADS, 40, 0.3, kv_cache_dtype="fp8")
    impl = backend.Impl(HEADS, DIM, 0.3)
    with pytest.raises(NotImplementedError, match="does not quantize its output"):
        impl.forward(None, None, None, None, None, None, None, output_scale=torch.ones(()))
