"""What serving needs before its first request: the kernels of all calls that will come, and what calls take of memory.

    prepared = flash.serving.prepare(
        32, 8, 128, "bfloat16", [flash.serving.decode(8), flash.serving.mixed(8192)],
        layers=[flash.serving.Layer(causal=True)], page_size=16, sequences=256, keys=[131072],
    )
    print(prepared)
    flash.serving.on_compilation("raise")

See docs/serving.md.
"""

import json
import operator
from typing import NamedTuple, Optional

import numpy

from . import _core, appending, cache, compilation, packing, preparation, programs
from .compilation import UnpreparedWarning
from .compiler import Machine, get_machine
from .errors import DeviceError, UnpreparedError
from .expressions import is_array
from .flash_attn import check_causal, choose_schedule, get_mask, get_score
from .kv_cache import get_mask_of_leftpad
from .operands import LARGEST_DIM
from .quantized import QUANTIZED, get_step

__all__ = [
    "Call",
    "Layer",
    "PreparedKernel",
    "Prepared",
    "UnpreparedError",
    "UnpreparedWarning",
    "Workspace",
    "decode",
    "mixed",
    "no_compilation",
    "on_compilation",
    "prefill",
    "prepare",
]

_ELEMENTS = {"float16": "f16", "bfloat16": "bf16", "float32": "f32"}
_INTEGERS = {"int32": "i32", "int64": "i64"}
_SCALES = "tensor", "head", "row"


class Layer(NamedTuple):
    """What the calls of a layer have beside arrays: arguments of `flash_attn_with_kvcache` and `attention`.

    Of `sink` and `lengths` (of `attention`, which hide keys) it counts whether calls have them: True, or an array.
    `alibi_slopes`, `cache_leftpad`, a `causal` that is an array, and the arrays that `mask` and `score` read stand for the
    calls' arrays: dtype and number of dimensions count.
    """

    causal: object = False
    window_size: tuple = (-1, -1)
    softcap: float = 0.0
    alibi_slopes: object = None
    cache_leftpad: object = None
    mask: object = None
    score: object = None
    scale: object = None
    sink: bool = False
    lengths: bool = False
    return_lse: bool = False
    num_splits: int = 0


class Call(NamedTuple):
    """A kind of calls, which `decode`, `mixed` and `prefill` make."""

    kind: str
    #: Of each sequence, or of packed rows, of all together.
    tokens: object
    #: Rows of packed keys, of all sequences together; None for as many as tokens.
    keys: object = None
    offsets: str = "int32"


def _freeze(sizes):
    """Sizes as what can be compared: a number, a range, a tuple, or what `_list` refuses."""
    return tuple(sizes) if isinstance(sizes, (list, set)) else sizes


def decode(tokens=1):
    """Calls with as many new tokens of each sequence, one or some drafts: queries (sequences, heads, tokens, D), keys of a cache."""
    return Call("decode", _freeze(tokens))


def mixed(tokens, offsets="int32"):
    """Calls of packed rows, which are prompts, parts of prompts, drafts and single tokens in any mixture: queries (rows, heads, D)
    with `query_offsets`, keys of a cache. `tokens` are the rows of all sequences."""
    return Call("mixed", _freeze(tokens), None, offsets)


def prefill(tokens, keys=None, offsets="int32"):
    """Calls of packed rows without a cache: queries, keys and values (rows, heads, D) with `query_offsets` and `key_offsets`.
    `keys` are rows of keys, where keys have other offsets than queries."""
    return Call("prefill", _freeze(tokens), _freeze(keys), offsets)


class PreparedKernel(NamedTuple):
    """A kernel that calls have."""

    #: The program of a layer and a kind of calls, and the version of it that the kernel is of.
    program: str
    version: str
    target: str
    #: Where it was: in "memory", in a "file" of the cache, or nowhere, so that it was "compiled".
    found: str
    #: The number of the layer, and the kind of calls; None and "append" of the kernel that writes new keys into a cache.
    layer: Optional[int]
    kind: str
    #: How many classes of sizes have it.
    classes: int


class Workspace(NamedTuple):
    """Bytes of device memory that a call allocates."""

    #: The output and the log-sum-exp.
    results: int
    #: What is free again when the call's kernels are done.
    scratch: int


def no_compilation(action="raise"):
    """A context in which calls that need the compiler raise `UnpreparedError`, or with "warn" say so (`UnpreparedWarning`)
    and compile.

        with flash.serving.no_compilation():
            output = flash.attention(...)

    It is of this thread (or task of asyncio) alone. A kernel that has to be read from a file, or loaded on a device, counts
    as one to be compiled, since the call waits, too. A call like one before needs nothing, whether it was prepared or not.
    `prepare` may be called inside.
    """
    return compilation.act(compilation.check_action(action))


def on_compilation(action):
    """What calls of all threads do from now on that need the compiler: "raise", "warn", or "allow" as at the start.

    A `no_compilation` goes before it. Returns what it was.
    """
    return compilation.set_default(action)


def _list(name, sizes):
    """The sizes that an argument says: those up to a number, or several."""
    try:
        last = operator.index(sizes)
    except TypeError:
        try:
            sizes = sorted({operator.index(size) for size in sizes})
        except TypeError:
            raise TypeError(f"{name} is a {type(sizes).__name__}; expected a number, for all up to it, or a list or range of numbers") from None
    else:
        sizes = range(1, last + 1) if last > 0 else [last]
    if not sizes or sizes[0] < 1:
        raise ValueError(f"{name} has {sizes[0] if sizes else 'no sizes'}; expected numbers from 1 on")
    return sizes


def _is_given(name, given):
    """Whether calls of a layer have an array, for which True and False stand, too."""
    if given is None or isinstance(given, (bool, numpy.bool_)):
        return bool(given)
    if not is_array(given):
        raise TypeError(f"{name} is a {type(given).__name__}; expected whether calls have it, True or False, or an array such as they have")
    return True


def _divide(sizes, count):
    """The mean lengths of so many sequences that have these numbers of rows."""
    if isinstance(sizes, range) and sizes[0] == sizes.step == 1:
        return range(1, -(-sizes[-1] // count) + 1)
    return sorted({-(-rows // count) for rows in sizes})


def _choose(sizes, get_class):
    """The first of the sizes in each class."""
    found = {}
    for size in sizes:
        found.setdefault(get_class(size), size)
    return list(found.values())


def _find_device(device):
    """(number, or -1 for the CPU; what programs are compiled for)"""
    if device is None:
        try:
            return 0, get_machine(0)
        except DeviceError:
            device = "cpu"
    if isinstance(device, Machine):
        return None, device
    text = str(device)
    number = -1 if text == "cpu" else 0 if text == "cuda" else int(text[5:]) if text[:5] == "cuda:" and text[5:].isdigit() else device
    try:
        number = operator.index(number)
    except TypeError:
        raise ValueError(f"device is {device!r}; expected 'cpu', 'cuda', 'cuda:0' and so on, or the number of a CUDA device") from None
    return number, get_machine(number)


class _Variant:
    """The programs of a layer's calls of one kind."""

    def __init__(self, config, arrays):
        self.config, self.arrays = config, arrays
        self.parts = json.loads(config)


class Prepared:
    """What `prepare` has made or found: `kernels`, a list of `PreparedKernel`."""

    def __init__(self, heads, key_heads, head_dim, dtype, value_dim, page_size, sequences, keys, device, quantized):
        self._heads, self._key_heads, self._dims, self._page = heads, key_heads, (head_dim, value_dim), page_size
        self._element = _ELEMENTS[dtype]
        self._dtype = dtype
        self._sequences, self._keys = sequences, keys
        # Of the keys and the values of a cache, as `programs.with_quantization` has it; None for a cache of `dtype`.
        self._quantized = quantized
        self._device, self._target = _find_device(device)
        self._variants = {}
        self.kernels = []

    def __str__(self):
        origins = {}
        for kernel in self.kernels:
            origins.setdefault(kernel.found, []).append(kernel)
        counts = ", ".join(f"{len(kernels)} {name if name == 'compiled' else f'in {name}'}" for name, kernels in origins.items())
        lines = [f"{len(self.kernels)} kernels for {self._name_target()}: {counts}"]
        for kernel in self.kernels:
            if kernel.layer is None:
                lines.append(f"all layers, {kernel.kind}, {kernel.found}")
                continue
            schedule = kernel.version.partition("schedule(<")[2].partition(">)")[0] or "a schedule for all sizes"
            of = f"{kernel.classes} {'class' if kernel.classes == 1 else 'classes'} of sizes"
            lines.append(f"layer {kernel.layer}, {kernel.kind}, {of}, {kernel.found}: {schedule}")
        return "\n".join(lines)

    def _name_target(self):
        return self._target if isinstance(self._target, str) else self._target.target

    def _make_variant(self, number, layer, call):
        check_causal(layer.causal, None)
        mask = get_mask(layer.causal, layer.window_size, get_mask_of_leftpad(layer.cache_leftpad, layer.mask))
        score = get_score(layer.softcap, layer.alibi_slopes, layer.score)
        offsets = _INTEGERS.get(call.offsets)
        if offsets is None:
            raise ValueError(f"offsets are {call.offsets!r}; expected 'int32' or 'int64'")
        queries = None if call.kind == "decode" else offsets
        keys = offsets if call.kind == "prefill" else self._page or packing.LENGTHS
        schedule = choose_schedule(layer.num_splits, self._dtype, keys if isinstance(keys, int) else None)
        given = layer.scale, True if _is_given("lengths", layer.lengths) else None, _is_given("sink", layer.sink), bool(layer.return_lse)
        prepared, arrays, _ = preparation.prepare(mask, score, *given, None, (queries, keys), schedule)
        config = prepared.config
        if self._quantized and call.kind != "prefill":
            config = programs.with_quantization(config, self._quantized)
        return self._variants.setdefault((number, call), _Variant(config, arrays))

    def _make_sizes(self, sequences, tokens, keys, pages=None):
        """The sizes of query, key, value and table of a call, as the choice of a version has them; sizes of packed rows are means."""
        of_keys = [sequences, self._key_heads, keys]
        table = []
        if self._page is not None and pages is not None:
            of_keys, table = [sequences, self._key_heads, self._page], [[sequences, pages]]
        dim, value_dim = self._dims
        return [[sequences, self._heads, tokens, dim], [*of_keys, dim], [*of_keys, value_dim], *table]

    def _list_rooms(self):
        """(rows, pages) that caches have room for, one of each class."""
        get_class = _core.get_cpu_length if self._target == "cpu" else _core.get_size_class
        if self._page is None:
            return [(length, None) for length in _choose(self._keys, get_class)]
        pages = sorted({-(-length // self._page) for length in self._keys})
        return [(count * self._page, count) for count in _choose(pages, lambda count: get_class(count * self._page))]

    def _list_calls(self, call):
        """The sizes (`_make_sizes`) of calls of each class that there is."""
        tokens, is_cpu, open_size = _list("tokens", call.tokens), self._target == "cpu", _core.open_size
        rooms = None if call.kind == "prefill" else self._list_rooms()
        if call.kind == "decode":
            sequences = [1] if is_cpu else _choose(self._sequences, _core.get_size_class)
            lengths = _choose(tokens, _core.get_cpu_length if is_cpu else _core.get_size_class)
            return [self._make_sizes(count, length, *room) for count in sequences for length in lengths for room in rooms]
        is_cached = call.kind == "mixed"
        whole = self._make_sizes(open_size, open_size, open_size, open_size if is_cached and self._page else None)
        if is_cpu:
            return [whole]
        found, has_long = {}, False
        of_keys = None if call.keys is None else _list("keys", call.keys)
        for count in self._sequences:
            lengths = _divide(tokens, count)
            has_long |= lengths[-1] > _core.most_short_rows
            for length in lengths:
                if length > _core.most_short_rows:
                    break
                if is_cached:
                    means = rooms
                elif of_keys is None:
                    means = [(length, None)]
                else:
                    means = [(rows, None) for rows in _divide(of_keys, count)]
                for mean in means:
                    key = tuple(map(_core.get_size_class, (count, length, mean[0])))
                    if key not in found:
                        found[key] = self._make_sizes(count, length, *mean)
        return [*found.values(), *([whole] if has_long else [])]

    def _prepare(self, layers, calls):
        for number, layer in enumerate(layers):
            for call in calls:
                self._prepare_kind(number, layer, call)
        # Two elements of 8 bits are copied as one.
        copied = (_ELEMENTS["float16"], *[dim // 2 for dim in self._dims]) if self._quantized else (self._element, *self._dims)
        # On the host NumPy and PyTorch append, and kernels copy rows of multiples of 16 bytes.
        if self._target != "cpu" and any([call.kind == "decode" for call in calls]) and not any([dim % 8 for dim in copied[1:]]):
            text = appending.print_program(*copied, self._page is not None)
            kernel, found = self._find_kernel(text)
            self.kernels.append(PreparedKernel(text, text, self._name_target(), found, None, "append", 1))
            compilation.kernels[text, self._target, self._device, ()] = kernel

    def _find_kernel(self, text):
        """A kernel, which is loaded on the device if there is one, and where it was found."""
        kernel, found = cache.find_kernel(text, self._target)
        if self._device is not None and self._device >= 0:
            kernel.load(self._device)
        return kernel, found

    def _prepare_kind(self, number, layer, call):
        variant = self._make_variant(number, layer, call)
        config, parts, target = variant.config, variant.parts, self._target
        text = programs.print_program(config, self._element, 4, *self._dims)
        all_sizes = self._list_calls(call)
        chosen = [programs.choose_sizes(parts, target, sizes) for sizes in all_sizes]
        if chosen and chosen[0]:
            versions, numbers = _core.Kernel.specialize_each(text, target, chosen)
        else:
            versions, numbers = [text], [0] * len(chosen)
        kernels = []
        for i, version in enumerate(versions):
            kernel, found = self._find_kernel(version)
            kernels.append(kernel)
            self.kernels.append(PreparedKernel(text, version, self._name_target(), found, number, call.kind, numbers.count(i)))
        for sizes, i in zip(all_sizes, numbers):
            compilation.kernels[text, target, self._device, programs.get_classes(parts, target, sizes)] = kernels[i]
        properties = programs.describe(config, self._element, *self._dims, target, self._device)
        compilation.records.append({"properties": properties, "sizes": self._describe_bounds(call)})

    def _describe_bounds(self, call):
        if self._target == "cpu" and call.kind != "decode":
            return {}
        bounds = {}
        if call.kind != "prefill":
            page, is_range = self._page or 1, isinstance(self._keys, range)
            rooms = [-(-rows // page) * page for rows in ((self._keys[0], self._keys[-1]) if is_range else self._keys)]
            bounds["keys of a sequence"] = range(rooms[0], rooms[1] + 1) if is_range else rooms
        if call.kind == "decode":
            bounds["tokens of a sequence"] = _list("tokens", call.tokens)
        if self._target != "cpu":
            bounds.update(heads=[self._heads], key_heads=[self._key_heads], sequences=self._sequences)
        return bounds

    def workspace_bytes(self, call, sequences, tokens, keys, layer=0):
        """The `Workspace` of a call on a device; nothing but the call's sizes is known.

        Args:
          call: One of those that were prepared.
          layer: The number of one of the layers.
          sequences: How many there are.
          tokens: New tokens of each sequence in `decode`, rows of all together in others.
          keys: Rows that the table or the cache has room for; packed keys of all sequences in `prefill`.

        Raises:
          UnpreparedError: It is none of the calls that were prepared.
          ValueError: Kernels are of the CPU, where memory is no device's.
        """
        if not isinstance(self._device, int) or self._device < 0:
            raise ValueError(f"kernels are for {self._name_target()} without a device; workspace_bytes is of calls on a CUDA device")
        variant = self._variants.get((layer, call))
        if variant is None:
            raise UnpreparedError(f"{call} of layer {layer} was not prepared; give one of the calls and the number of a layer that prepare was given")
        heads, key_heads, (dim, value_dim) = self._heads, self._key_heads, self._dims
        is_packed, is_prefill = call.kind != "decode", call.kind == "prefill"
        pages = None if self._page is None or is_prefill else -(-keys // self._page)
        mean = -(-tokens // sequences) if is_packed else tokens
        if is_packed and mean > _core.most_short_rows:
            mean_sizes = self._make_sizes(*[_core.open_size] * 3, None if pages is None else _core.open_size)
        elif is_prefill:
            mean_sizes = self._make_sizes(sequences, mean, -(-keys // sequences))
        else:
            mean_sizes = self._make_sizes(sequences, mean, keys, pages)
        text = programs.print_program(variant.config, self._element, 4, dim, value_dim)
        classes = programs.get_classes(variant.parts, self._target, mean_sizes)
        kernel = compilation.kernels.get((text, self._target, self._device, classes))
        if kernel is None:
            properties = programs.describe(variant.config, self._element, dim, value_dim, self._target, self._device)
            raise UnpreparedError(compilation.explain(properties, programs.describe_sizes(variant.parts, mean_sizes)))
        query = [1, heads, tokens, dim] if is_packed else [sequences, heads, tokens, dim]
        of_keys = [1, key_heads, keys] if is_prefill else [sequences, key_heads, keys]
        if pages is not None:
            of_keys = [sequences * pages, key_heads, self._page]
        sizes = [query, [*of_keys, programs.round_dim(dim)], [*of_keys, programs.round_dim(value_dim)]]
        query[-1] = programs.round_dim(dim)
        sizes += [[sequences]] * variant.parts.get("lengths", False) + [[heads]] * variant.parts.get("sink", False)
        # The layer's arrays stand for larger ones; a call's have an element for each index.
        most = max(sequences, heads, tokens, keys)
        sizes += [[max(size, most) for size in array.shape] for array in variant.arrays]
        arrays = {"query_offsets": [sequences + 1], "key_offsets": [sequences + 1], "page_table": [sequences, pages], "key_lengths": [sequences]}
        sizes += [arrays[name] for name, _, _ in packing.list_captures(variant.parts["packed"])]
        of_scales = {"tensor": [1], "head": [sequences, key_heads], "row": of_keys}
        sizes += [of_scales[of] for element, of in variant.parts.get("quantized", ()) if element]
        return Workspace(*kernel.count_bytes(self._device, sizes))


def prepare(
    heads,
    key_heads,
    head_dim,
    dtype,
    calls,
    *,
    sequences,
    keys=None,
    layers=(Layer(),),
    page_size=None,
    value_dim=None,
    device=None,
    cache_dtype=None,
    cache_scales="tensor",
):
    """Makes all kernels that calls in these bounds can have, and loads them: no later call compiles, or waits for a file or a
    driver.

    Kernels depend on nothing else: any number of pages, entries of tables, lengths and strides will do. Of sizes a number stands
    for all up to it, from 1 on, and a list or range for its own: a cache whose tables always have the same width says keys=[131072].

    Args:
      heads, key_heads, head_dim, value_dim: Of the queries and of the cache on this device; value_dim is head_dim if left out.
      dtype: That of query, key and value: "float16", "bfloat16", "float32", or the object of NumPy or PyTorch.
      calls: A list of what `decode`, `mixed` and `prefill` return.
      sequences: How many there are in a call.
      keys: Rows that the table, or the cache, of a sequence has room for. Calls of `prefill` have no cache.
      layers: A list of `Layer`, one for each kind that the model has.
      page_size: Rows of a page; None for caches (sequences, heads, rows, D) with `key_lengths`.
      device: "cpu", a CUDA device, or a `compiler.Machine`, for which kernels are made into the cache's files alone; the first CUDA device
        if left out, or else the CPU.
      cache_dtype: That of the cache of `decode` and `mixed`, if it has 8 bits: "float8_e4m3fn", "int8", or the object of PyTorch or
        NumPy.
      cache_scales: What `k_descale` and `v_descale` have a number for then: "tensor", all of the cache; "head", each sequence and key
        head; or "row". A pair says it for each of them.

    Returns:
      A `Prepared`, whose `kernels` lists what there is, and which prints as a table.

    Raises:
      TypeError, ValueError: An argument breaks one of these rules.
      TraceError, CompileError, DeviceError: As `attention`.
    """
    heads, key_heads, head_dim = (_read(*each) for each in (("heads", heads), ("key_heads", key_heads), ("head_dim", head_dim)))
    value_dim = head_dim if value_dim is None else _read("value_dim", value_dim)
    page_size = None if page_size is None else _read("page_size", page_size)
    if heads % key_heads:
        raise ValueError(f"heads is {heads} and key_heads {key_heads}; heads must be a multiple of key_heads")
    for name, dim in (("head_dim", head_dim), ("value_dim", value_dim)):
        if dim > LARGEST_DIM or (page_size is not None and dim % 8):
            raise ValueError(f"{name} is {dim}; 1 to {LARGEST_DIM} are possible, and in pages multiples of 8")
    name = _get_name(dtype)
    if name not in _ELEMENTS:
        raise ValueError(f"dtype is {dtype!r}; expected one of {', '.join(_ELEMENTS)}")
    for what, each, kind in (("calls", calls, Call), ("layers", layers, Layer)):
        if not each or not all(isinstance(one, kind) for one in each):
            raise TypeError(f"{what} is {each!r}; expected a list of {kind.__name__}")
    if keys is None and any([call.kind != "prefill" for call in calls]):
        raise ValueError("keys is left out, and calls of decode and mixed have a cache; give the rows that it has room for")
    if cache_dtype is None and cache_scales != "tensor":
        raise ValueError(f"cache_scales is {cache_scales!r} without cache_dtype, of which it says what has scales; give both or none")
    quantized = None if cache_dtype is None else _read_quantization(cache_dtype, cache_scales, name, (head_dim, value_dim), calls, device)
    bounds = _list("sequences", sequences), None if keys is None else _list("keys", keys)
    prepared = Prepared(heads, key_heads, head_dim, name, value_dim, page_size, *bounds, device, quantized)
    with compilation.act("allow"):
        prepared._prepare(layers, calls)
    return prepared


def _read(name, number):
    try:
        number = operator.index(number)
    except TypeError:
        raise TypeError(f"{name} is a {type(number).__name__}; expected a number") from None
    if number < 1:
        raise ValueError(f"{name} is {number}; expected a number from 1 on")
    return number


def _get_name(dtype):
    return str(getattr(dtype, "__name__", dtype)).rpartition(".")[2]


def _read_quantization(cache_dtype, scales, dtype, dims, calls, device):
    """What programs have of the keys and of the values of a cache of 8 bits: the element, and what has a scale."""
    element = QUANTIZED.get(_get_name(cache_dtype))
    if element is None:
        raise ValueError(f"cache_dtype is {cache_dtype!r}; expected one of {', '.join(QUANTIZED)}, or None for a cache of dtype")
    if dtype == "float32":
        raise ValueError("dtype is float32, and a cache of 8 bits is of queries of float16 or bfloat16")
    step = get_step(getattr(_find_device(device)[1], "target", "cpu") != "cpu")
    if any([dim % step for dim in dims]):
        raise ValueError(f"head_dim and value_dim are {dims[0]} and {dims[1]}; with cache_dtype multiples of {step} are possible here")
    if all([call.kind == "prefill" for call in calls]):
        raise ValueError("cache_dtype is given, and calls of prefill have no cache; leave it out, or prepare decode or mixed")
    pair = tuple(scales) if isinstance(scales, (tuple, list)) else (scales, scales)
    if len(pair) != 2 or any([each not in _SCALES for each in pair]):
        raise ValueError(f"cache_scales is {scales!r}; expected one of {', '.join(_SCALES)}, or a pair of them for keys and values")
    return tuple([(element, each) for each in pair])
