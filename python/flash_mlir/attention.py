"""Attention with masks and score functions."""

import collections
import copy
import functools

from . import blocks as given_blocks
from . import _core, checking, packing, programs, quantized
from .compiler import Kernel, choose_target
from .expressions import SCORE
from .functions import trace
from .masks import Mask, is_compiling
from .operands import round_dim, write
from .places import Places, Unknown, copy_function
from .plans import Plan
from .preparation import SYMBOLS, autocast, get_kind, needs_table, prepare
from .programs import (
    check_schedule,
    get_function,
    get_kernel,
    get_training_config,
    print_program,
    with_packing,
    with_schedules,
)


def _make_dispatch(config, returns_lse):
    # Only calls with tensors of PyTorch come here, so that it is imported by now.
    from .torch_operator import make_dispatch

    return make_dispatch(config, returns_lse)


programs.set_make_dispatch(_make_dispatch)


def attention(
    query,
    key,
    value=None,
    mask=None,
    score=None,
    scale=None,
    lengths=None,
    sink=None,
    return_lse=False,
    blocks=None,
    query_offsets=None,
    key_offsets=None,
    page_table=None,
    key_lengths=None,
    schedule=None,
    out=None,
    key_scale=None,
    value_scale=None,
    value_dim=None,
    query_scale=None,
):
    """softmax(score(scale * query key^T), over the keys that the mask keeps) value.

    Arrays are all NumPy arrays or PyTorch tensors on the CPU, or all CUDA tensors of one device. On
    CUDA nothing is copied, and the kernel is queued on the current stream; the call does not wait for it.
    The first call with new dtypes, head dimensions, masks or functions compiles a kernel. Calls of
    similar sizes use the same kernel (docs/python.md).

    Args:
      query: (batch, heads, query length, D), or (heads, query length, D); float16, bfloat16 or float32. On the CPU
        also float64, for checks such as torch.autograd.gradcheck: that stores all scores and is slow.
        Strides may be any; on CUDA the last dimension must be contiguous. An array x of shape (batch, length, heads, D)
        is passed as x.transpose(1, 2).
        Under torch.autocast, query, key and value are cast to its dtype.
      key: (batch, key heads, key length, D). heads must be a multiple of key heads: query head h sees
        key head h // (heads // key heads).
      value: (batch, key heads, key length, Dv). D and Dv are from 1 to 576; arrays with other dimensions than multiples
        of 8 are copied and padded. Without value, value_dim must be given.
      mask: Which keys a query sees: a `Mask`, a function of b, h, q and k that returns a truth value, or a `Plan`.
      score: A function of s, b, h, q and k that returns the score instead of s, which is scaled already.
      scale: A number; 1 / sqrt(D) if left out. A new value is a new kernel.
      lengths: Integers of shape (batch,): the number of keys of each batch that exist. Numbers below 0 count as 0, and
        numbers above the key length as the key length; within `checks` both are errors.
      sink: Floating-point numbers of shape (heads,): a logit of each head that takes part in the softmax without a value.
      return_lse: Whether to return the log-sum-exp of each row's scores, too.
      blocks: `Blocks`, lists of the blocks of keys that each block of queries sees. The mask is computed only in the
        blocks that are listed as partial.
      query_offsets, key_offsets: int32 or int64 of shape (sequences + 1,), for packed rows: query is (rows, heads, D), and key
        and value are (rows, key heads, D). Offset i is the row at which sequence i starts, and the last offset is the row at
        which the last sequence ends (docs/ragged-rows.md). Jagged tensors (torch.jagged) of the shapes above have offsets of
        their own, and are computed as packed rows.
      page_table: int32 of shape (sequences, pages of a sequence), for keys and values in pages: key and value are (pages, rows
        of a page, key heads, D), and a row of the table has the numbers of the pages of a sequence (docs/python.md, Pages).
        There are no gradients then.
      key_lengths: int32 of shape (sequences,): the number of keys of each sequence, in pages or in a batch. Unlike with
        `lengths`, the key length that masks and functions see is this number.
      schedule: Keys of a schedule (docs/language.md), as for `Attention`.
      out: An array for the result, of its shape and dtype, and on the device of query. It must not share memory with an
        argument. On CUDA the kernel writes into it if it is dense in any order of its dimensions, starts at a multiple of
        256 bytes, has a last dimension that is a multiple of 8, and no gradients are needed; otherwise the result is copied.
      key_scale, value_scale: Scales for key and value of float8_e4m3fn or int8, which are dequantized as they are read. A
        scale is a number, or an array of one of these shapes: one element; (batch, key heads); for packed rows and pages
        (sequences, key heads); or with a scale for each key, (batch, key heads, key length) or (pages, rows of a page, key
        heads). Elements times scale are rounded to query's dtype, which is float16 or bfloat16. There are no gradients then
        (docs/python.md, Keys and values of 8 bits).
      query_scale: A scale for query of float8_e4m3fn; key and value are float8_e4m3fn, too. No scale has a value for each row then:
        it is a number, or has one element, or is (batch, heads) for query and (batch, key heads) for key and value. Products may then be of 8 bits (docs/python.md, Queries of 8 bits). The result is bfloat16, or has
        the dtype of out.
      value_dim: Instead of value: the values are the first value_dim columns of key, and a kernel reads them only once
        (docs/mla-decode.md).

    Returns:
      An array like query of shape (batch, heads, query length, Dv), row-major, or on CUDA in the order in which query's
      dimensions lie in memory; with return_lse a tuple of it and a float32 array (float64 for float64) of shape (batch,
      heads, query length). For a query that sees no key the output is 0, and the log-sum-exp -inf. With packed rows the shapes
      are (rows, heads, Dv) and (heads, rows).

    Raises:
      TypeError, ValueError: An argument breaks one of these rules; the message names it.
      TraceError: A function does what cannot be traced.
      CompileError: The compiler refuses the program; the text has its diagnostics.
      DeviceError: The GPU is too old (compute capability 7.5 is needed).
      NotImplementedError: scale is a tensor that requires gradients, or a function reads such a tensor in a call with offsets.
    """
    of_keys = value is None
    if of_keys:
        value = _take_columns(key, value_dim, key_scale, value_scale)
    elif value_dim is not None:
        raise ValueError("value_dim is given beside value; it says how many columns of key are the values where there is no value")
    if key_scale is not None or value_scale is not None or query_scale is not None:
        given = mask, score, scale, lengths, sink, return_lse, blocks, schedule, out
        arrays = query_offsets, key_offsets, page_table, key_lengths
        return quantized.attend(query, key, value, *given, arrays, key_scale, value_scale, query_scale=query_scale)
    if query_offsets is not None or key_offsets is not None or page_table is not None or key_lengths is not None:
        if not (of_keys or is_compiling() or checking.is_on):
            # In the order of `keep` below.
            results = _call_again(
                query, key, value, lengths, sink, query_offsets, key_offsets, page_table, key_lengths, out,
                mask, score, scale, return_lse, schedule, blocks,
            )  # fmt: skip
            if results is not None:
                return results
        given = mask, score, scale, lengths, sink, return_lse, blocks
        return _attend_sequences(query, key, value, *given, schedule, out, of_keys, query_offsets, key_offsets, page_table, key_lengths)
    if isinstance(mask, Plan):
        mask.check(query, key)
    if is_compiling():
        from .torch_compile import attention as compiled

        results = compiled(attention, query, key, value, mask, score, scale, lengths, sink, return_lse, blocks, None, (), schedule)
        return _write(out, results, return_lse)
    query, key, value = autocast(query, key, value)
    if blocks is None:
        prepared, captured, lengths = prepare(mask, score, scale, lengths, sink is not None, return_lse, None, None, schedule, of_keys)
    else:
        given_blocks.check(blocks, query, key)
        given = score, scale, lengths, sink is not None, return_lse
        prepared, captured, lengths = prepare(mask, *given, given_blocks.get_key(blocks), None, schedule)
        if needs_table(blocks, (query, key, value, sink), captured):
            mask = given_blocks.read_table(blocks, mask, key.shape[-2])
            prepared, captured, lengths = prepare(mask, *given, None, None, schedule)
        else:
            captured += given_blocks.get_arrays(blocks)
    if checking.is_on:
        checking.check_call(prepared.config, query, key, value, lengths, sink, captured)
    if out is not None:
        return prepared.function.call_into(query, key, value, lengths, sink, captured, out)
    return prepared.function(query, key, value, lengths, sink, captured)


def _take_columns(key, value_dim, key_scale, value_scale):
    """The values that are the first columns of keys."""
    if value_dim is None:
        raise TypeError("value is left out; give it, or value_dim where the values are the first columns of key")
    if key_scale is not None or value_scale is not None:
        raise ValueError("value_dim is given beside key_scale or value_scale; give value=key[..., :value_dim] and both scales")
    dim = key.shape[-1]
    if isinstance(value_dim, bool) or not hasattr(value_dim, "__index__"):
        raise TypeError(f"value_dim is {value_dim!r}; expected an integer")
    if not 1 <= value_dim <= dim:
        raise ValueError(f"value_dim is {value_dim}; it must be from 1 to {dim}, the columns of key")
    return key[..., :value_dim]


def _write(out, results, return_lse):
    """The results of a graph, in which `out` is written by an operator of PyTorch."""
    if out is None:
        return results
    write(out, results[0] if return_lse else results)
    return (out, results[1]) if return_lse else out


def _attend_sequences(query, key, value, mask, score, scale, lengths, sink, return_lse, blocks, schedule, out, of_keys, *arrays):
    """`attention` of sequences that have lengths of their own, which `arrays` say: offsets, page_table and key_lengths."""
    if blocks is not None:
        packing.refuse_blocks()
    packed = packing.get_key(*arrays, key)
    offsets = packing.get_arrays(*arrays)
    if is_compiling():
        from .torch_compile import attention as compiled

        given = mask, score, scale, lengths, sink, return_lse
        results = compiled(attention, query, key, value, *given, None, packed, offsets, schedule)
        return _write(out, results, return_lse)
    call = read_call(query, key, value, packed, offsets, mask, score, scale, lengths, sink, return_lse, schedule, of_keys)
    results = run_call(*call, out)
    is_text = schedule is None or type(schedule) is str
    if score is None and not of_keys and _is_fixed(mask) and is_text and type(scale) in (int, float, type(None)):
        given = query, key, value, lengths, sink, *arrays, out
        _shortcut.keep(call[0].function, *given, mask, score, scale, return_lse, schedule, blocks)
    return results


#: What calls of sequences with these options do whose arrays are of types that were there before.
_shortcut = _core.Shortcut(False)
_call_again = _shortcut.call


def _is_fixed(mask):
    """Whether a mask is the same at each call: it is none of a function, which is traced then, and reads no arrays."""
    return mask is None or (type(mask) is Mask and not mask.arrays and mask.lengths is None)


def read_call(query, key, value, packed, offsets, mask, score, scale, lengths=None, sink=None, return_lse=False, schedule=None, of_keys=False):
    """What `run_call` takes, of sequences (`packing.get_key`, `packing.get_arrays`): the variant, and the arguments of its function."""
    query, key, value = autocast(query, key, value)
    prepared, captured, lengths = prepare(mask, score, scale, lengths, sink is not None, return_lse, None, packed, schedule, of_keys)
    return prepared, (query, key, value, lengths, sink, captured + offsets)


def run_call(prepared, arguments, out=None):
    if checking.is_on:
        checking.check_call(prepared.config, *arguments)
    if out is not None:
        return prepared.function.call_into(*arguments, out)
    return prepared.function(*arguments)


def _get_element(dtype):
    elements = {"float16": "f16", "bfloat16": "bf16", "float32": "f32"}
    if dtype not in elements:
        raise ValueError(f"the dtype is {dtype!r}; expected one of {', '.join(elements)}")
    return elements[dtype]


class Attention:
    """`attention` with a mask, a score function and a scale that were chosen before.

    The functions are traced once, when the object is made. Each call looks up again the arrays that they read, in the
    variables, attributes, lists and dictionaries where tracing found them. Numbers that are not in arrays keep the values
    that they had. Functions that compute arrays, or take numbers from arrays, are traced at each call. Calls are a little
    cheaper than calls of `attention`, and torch.compile takes the object with every mask and score function without a
    break in the graph. Objects can be copied and pickled, with the arrays that they read.

    `schedule` has keys of the schedule (docs/language.md) of the programs, as `compile` takes them, such as
    "key_tile=64,split_keys=1024", and `gradient_schedule` has keys for the programs of gradients. The compiler chooses the
    other keys. float64 has no tiles, and ignores both. A call raises CompileError if its sizes or its target do not fit
    the keys.

    Raises:
      TypeError, ValueError, TraceError: As `attention`; ValueError, too, for keys that a schedule does not have, and for
        a schedule beside a `Plan`.
    """

    def __init__(self, mask=None, score=None, scale=None, return_lse=False, schedule=None, gradient_schedule=None):
        self.return_lse = bool(return_lse)
        self._plan = mask if isinstance(mask, Plan) else None
        self._schedules = schedule, gradient_schedule
        for name, keys in (("schedule", schedule), ("gradient_schedule", gradient_schedule)):
            if keys is None:
                continue
            if self._plan is not None:
                raise ValueError(f"{name} is given beside a plan, whose tiles are a schedule; give the mask instead of the plan")
            check_schedule(name, keys)
        self._mask_lengths = mask.lengths if isinstance(mask, (Mask, Plan)) else None
        self._given = mask, score, scale
        self._places = None
        self._shortcut = _core.Shortcut(False)
        self._prepare()

    def _prepare(self):
        mask, score, scale = self._given
        self._functions = []
        self._configs = []
        self._training_configs = []
        self.captured = ()
        for has_lengths in (False, True):
            for has_sink in (False, True):
                given = True if has_lengths and self._mask_lengths is None and self._plan is None else None
                prepared, self.captured, _ = prepare(mask, score, scale, given, has_sink, self.return_lse)
                config, function = prepared.config, prepared.function
                if self._schedules != (None, None):
                    config = with_schedules(config, *self._schedules)
                    function = get_function(config)
                self._functions.append(function)
                self._configs.append(config)
                self._training_configs.append(get_training_config(config))
        self._kinds = [get_kind(array) for array in self.captured]
        # Where arrays are computed, there is nothing to look for the next time either.
        if self._places is None or self._places.are_all:
            self._places = self._find_places()

    def _find_places(self):
        mask, score, _ = self._given
        found = mask.functions if isinstance(mask, Mask) else []
        for function, symbols, what in ((mask, SYMBOLS, "mask"), (score, (SCORE, *SYMBOLS), "score")):
            if function is not None and not isinstance(function, (Mask, Plan)):
                found.append((function, trace(function, symbols, what)))
        found = [(function, traced) for function, traced in found if traced.arrays or traced.is_open]
        return Places(found) if found else None

    def _renew(self):
        """Traces the functions again, which other arrays have come to."""
        mask, *others = self._given
        self._given = mask.remake() if isinstance(mask, Mask) else mask, *others
        self._prepare()

    def _have_kinds_changed(self):
        """Whether arrays have another dtype or rank, such as parameters after `Module.half`."""
        return self._places is not None and self._kinds != [get_kind(array) for array in self.captured]

    def __deepcopy__(self, memo):
        copied = Attention.__new__(Attention)
        memo[id(self)] = copied
        state = self.__getstate__()
        are_all = self._places is None or self._places.are_all
        if not are_all:
            state["captured"] = ()
        copied.__setstate__(copy.deepcopy(state, memo))
        if self._places is not None and (not are_all or self._places.are_in(memo)):
            mask, score, scale = self._given
            change = functools.partial(copy_function, memo=collections.ChainMap({}, memo))
            mask = mask.note(change) if isinstance(mask, Mask) else change(mask)
            copied._given = mask, change(score), scale
            # What the functions refer to may not be there yet.
            copied._places = Unknown()
        return copied

    def __getstate__(self):
        """All but the native functions, which are made from the configurations, and what they were made of."""
        others = "_functions", "_given", "_places", "_shortcut"
        return {name: value for name, value in vars(self).items() if name not in others}

    def __setstate__(self, state):
        vars(self).update(state)
        self._functions = [get_function(config) for config in self._configs]
        self._shortcut = _core.Shortcut(False)
        # The functions stayed behind, and the arrays are those that came along.
        self._places = None

    def __call__(
        self,
        query,
        key,
        value,
        lengths=None,
        sink=None,
        query_offsets=None,
        key_offsets=None,
        page_table=None,
        key_lengths=None,
        out=None,
    ):
        """Computes what `attention` computes with these arguments, and raises the same errors."""
        arrays = query, key, value, lengths, sink, query_offsets, key_offsets, page_table, key_lengths, out
        if not (is_compiling() or checking.is_on):
            results = self._shortcut.call(*arrays)
            if results is not None:
                return results
        packed, offsets = None, ()
        if query_offsets is not None or key_offsets is not None or page_table is not None or key_lengths is not None:
            if self._plan is not None:
                packing.refuse_plan()
            packed = packing.get_key(query_offsets, key_offsets, page_table, key_lengths, key)
            offsets = packing.get_arrays(query_offsets, key_offsets, page_table, key_lengths)
        if self._plan is not None:
            self._plan.check(query, key)
            if lengths is not None:
                raise ValueError("a plan has its own lengths; give them to flash_mlir.plan instead")
        elif self._mask_lengths is not None and lengths is not None:
            raise ValueError("lengths are given twice: as an argument and by key_lengths in the mask")
        if self._mask_lengths is not None:
            lengths = self._mask_lengths
        index = 2 * (lengths is not None) + (sink is not None)
        query, key, value = autocast(query, key, value)
        if is_compiling():
            from .torch_compile import call_object

            results = call_object(attention, self, index, query, key, value, lengths, sink, packed, offsets)
            return _write(out, results, self.return_lse)
        if self._places is not None and self._places.have_changed():
            self._renew()
        try:
            if packed is None and out is None and not checking.is_on:
                return self._functions[index](query, key, value, lengths, sink, self.captured)
            results = self._run(index, query, key, value, lengths, sink, packed, offsets, out)
            if not self.captured and self._places is None and self._plan is None and self._mask_lengths is None:
                config = self._configs[index]
                self._shortcut.keep(get_function(config if packed is None else with_packing(config, packed)), *arrays)
            return results
        except ValueError:
            if not self._have_kinds_changed():
                raise
        self._renew()
        return self._run(index, query, key, value, lengths, sink, packed, offsets, out)

    def _run(self, index, query, key, value, lengths, sink, packed, offsets, out):
        config, function = self._configs[index], self._functions[index]
        if packed is not None:
            config = with_packing(config, packed)
            function = get_function(config)
        captured = self.captured + offsets
        if checking.is_on:
            checking.check_call(config, query, key, value, lengths, sink, captured)
        if out is not None:
            return function.call_into(query, key, value, lengths, sink, captured, out)
        return function(query, key, value, lengths, sink, captured)

    def mlir(
        self,
        query,
        key,
        value,
        lengths=None,
        sink=None,
        query_offsets=None,
        key_offsets=None,
        page_table=None,
        key_lengths=None,
    ):
        """The program of a call with these arguments, as text that `compile` takes.

        The program depends only on the types of the arguments, and on whether lengths and sink are given. The head
        dimensions are rounded up to multiples of 8, as a call pads them; all other sizes are open. The program's arguments
        are query, key and value, then lengths (int32) and sink (float32), if they are given, then the arrays of `captured`,
        the offsets, page_table and key_lengths. In the program packed rows are (1, heads, rows, D), and pages (pages, heads,
        rows, D). A `Plan` has the program of its mask.

        Raises:
          ValueError: The dtype is none of float16, bfloat16 and float32, or the arguments do not fit each other.
        """
        if any([getattr(array, "is_nested", False) for array in (query, key, value)]):
            from .jagged import unpack

            (query, key, value), (query_offsets, key_offsets) = unpack(query, key, value)
        arrays = {"query": query, "key": key, "value": value}
        shapes = {name: tuple(array.shape) for name, array in arrays.items()}
        rank = len(shapes["query"])
        packed = packing.get_key(query_offsets, key_offsets, page_table, key_lengths, key)
        is_packed = packed != (None, None)
        if is_packed:
            rank = 4
            for name, shape in shapes.items():
                if len(shape) != (3 if packing.Packing(packed).is_packed(name) else 4):
                    raise ValueError(
                        f"{name} has the shape {shape}; with offsets (rows, heads, D) is expected, with page_table (pages, rows of a "
                        "page, heads, D) of key and value, and else (batch, heads, length, D)"
                    )
        elif rank not in (3, 4) or any(len(shape) != rank for shape in shapes.values()):
            raise ValueError(f"query, key and value must all have rank 3, or all rank 4, got shapes {shapes}")
        dim, value_dim = shapes["query"][-1], shapes["value"][-1]
        if shapes["key"][-1] != dim:
            raise ValueError(f"key has the head dimension {shapes['key'][-1]}; expected {dim}, as query has")
        dtypes = {name: str(array.dtype).rsplit(".", 1)[-1] for name, array in arrays.items()}
        if len(set(dtypes.values())) > 1:
            raise ValueError(f"query, key and value must have one dtype, got {dtypes}")
        has_lengths = lengths is not None or self._mask_lengths is not None
        if has_lengths and rank == 3:
            raise ValueError(f"lengths are per batch, and query has the shape {shapes['query']}, without one")
        config = self._configs[2 * has_lengths + (sink is not None)]
        if is_packed:
            config = with_packing(config, packed)
        return print_program(config, _get_element(dtypes["query"]), rank, dim, value_dim)

    def tiles(
        self,
        query_length,
        key_length,
        batch=1,
        heads=1,
        key_heads=None,
        dim=64,
        value_dim=None,
        dtype="float16",
        target=None,
    ):
        """How many tiles of queries and keys a call would skip, and in how many tiles it would compute the mask.

        A call computes less if more tiles are skipped, and in unmasked tiles the mask costs nothing. Parts of a mask that
        are not affine, for example because they read an array, skip no tile here, and are computed in each tile that is
        visited. Lengths skip no tile either. Compiles the kernel if there is none yet.

        Args:
          query_length, key_length, batch, heads, key_heads, dim, value_dim: Sizes of a call. By default key_heads is
            heads, and value_dim is dim.
          dtype: "float16", "bfloat16" or "float32".
          target: One of `compiler.TARGETS`, on which the sizes of tiles depend. By default it is the target of the first
            CUDA device, or "cpu" if there is none.

        Returns:
          `Tiles`: skipped, unmasked, masked, query_tile, key_tile.
        """
        for name, size in [("query_length", query_length), ("key_length", key_length), ("batch", batch), ("heads", heads)]:
            if size < 0:
                raise ValueError(f"{name} must not be negative, got {size}")
        element = _get_element(dtype)
        key_heads, value_dim = heads if key_heads is None else key_heads, dim if value_dim is None else value_dim
        config = self._configs[0 if self._mask_lengths is None else 2]
        sizes = [
            (batch, heads, query_length, dim),
            (batch, key_heads, key_length, dim),
            (batch, key_heads, key_length, value_dim),
        ]
        kernel = Kernel(get_kernel(config, element, 4, dim, value_dim, target or choose_target(), sizes))
        sizes = [(*others, round_dim(last)) for *others, last in sizes]
        # Lengths and captured arrays have no say, whatever their sizes.
        sizes += [(1,) * len(shape) for _, shape in kernel.arguments[len(sizes) :]]
        return kernel.tiles(*sizes)
