"""FlashAttention's function for keys and values of a cache, to which new ones are appended."""

import functools
import operator
import re
import sys

import numpy

from . import _core, appending, checking
from .attention import run_call
from .errors import CompileError
from .expressions import is_array
from .flash_attn import NAMES, are_numbers, attend_rows, check_causal, get_mask, get_scales, get_schedule, get_score, put_heads_first
from .flash_attn import swap_results
from .masks import as_mask, is_compiling
from .offsets import may_look
from .operands import cast, check_out, get_dtype, is_tensor, to_lengths
from .packing import LENGTHS, check_int32, get_page, rename
from .preparation import autocast, prepare
from .quantized import attend


#: Of calls without functions, by their options.
_variants = {}
_NAMES = {**NAMES, "key": "k_cache", "value": "v_cache", "key_lengths": "cache_seqlens"}
_MAX_VARIANTS = 256
#: What calls with these options do whose arrays are of types that were there before.
_shortcut = _core.Shortcut(True)
_call_again = _shortcut.call
_appending = _core.Appending(appending.get_kernel, _shortcut)
_append_and_call_again = _appending.call_again


def get_mask_of_leftpad(cache_leftpad, mask):
    """What a mask keeps of the keys that there are."""
    if cache_leftpad is None:
        return mask
    is_there = as_mask(lambda b, h, q, k: k >= cache_leftpad[b])
    return is_there if mask is None else is_there & mask


def _make_lengths(number, like, count):
    """So many times a number, where an array is."""
    if not is_tensor(like):
        return numpy.full(count, number, numpy.int32)
    torch = sys.modules["torch"]
    return torch.full((count,), number, dtype=torch.int32, device=like.device)


def _count(like, stop):
    """The numbers from 0 up to a number, where an array is."""
    return sys.modules["torch"].arange(stop, device=like.device) if is_tensor(like) else numpy.arange(stop)


def _get_number(number, room):
    """How many keys each sequence has, which a number says."""
    try:
        if isinstance(number, bool):
            raise TypeError
        number = operator.index(number)
    except TypeError:
        kind = type(number).__name__
        raise TypeError(f"cache_seqlens is a {kind}; expected an array of int32 of shape (batch,), or an integer for all") from None
    if not 0 <= number <= room:
        raise ValueError(f"cache_seqlens is {number}; lengths are from 0 to {room}, the rows that there is room for")
    return number


def _check_integers(name, array, what):
    dtype = get_dtype(array) if is_array(array) else None
    if dtype is None or "int" not in dtype or len(array.shape) != 1:
        found = f"is a {type(array).__name__}" if dtype is None else f"is {dtype} of shape {tuple(array.shape)}"
        raise TypeError(f"{name} {found}; expected integers of shape (batch,): {what}")


def _check_batch(batch, **arrays):
    """What is of another number of sequences would be repeated for all where new keys are written."""
    for name, array in arrays.items():
        if array is not None and array.shape[0] != batch:
            raise ValueError(f"{name} is of {array.shape[0]} sequences, and q of {batch}; they must agree")


def _check_new(name, new, cache, batch):
    expected = (batch, "new keys", *cache.shape[2:])
    if not is_array(new):
        raise TypeError(f"{name} is a {type(new).__name__}; expected an array of shape {expected}")
    if len(new.shape) != 4 or new.shape[0] != batch or tuple(new.shape[2:]) != tuple(cache.shape[2:]):
        raise ValueError(f"{name} has the shape {tuple(new.shape)}; expected {expected}, as {name}_cache has")
    if is_tensor(new) != is_tensor(cache):
        raise TypeError(f"{name} is a {type(new).__name__}, {name}_cache a {type(cache).__name__}; they must be of one library")
    if is_tensor(new) and new.device != cache.device:
        raise ValueError(f"{name} is on {new.device}, {name}_cache on {cache.device}; they must be on one device")
    if new.dtype != cache.dtype:
        raise TypeError(f"{name} has the dtype {new.dtype}, {name}_cache {cache.dtype}; they must agree")
    if isinstance(cache, numpy.ndarray) and not cache.flags.writeable:
        raise ValueError(f"{name}_cache is read-only; expected an array that can be written into")


def _get_room(k_cache, table):
    """How many keys of a sequence there is room for."""
    return k_cache.shape[1] * (1 if table is None else table.shape[1])


def _describe_lack(first, last, room):
    return f"new keys are the ones from {first} to {last} of their sequences, and there is room for {room}"


def _check_range(numbers, end, describe):
    """Raises an error for numbers that are none of those from 0 up to an end, where the host may look."""
    if may_look(numbers) and ((numbers < 0) | (numbers >= end)).any():
        raise ValueError(describe(int(numbers.min()), int(numbers.max())))


def _find_places(k_cache, count, batch, lengths, table, chosen):
    """Where `count` new rows of each sequence belong, behind the rows that a cache has: (pages, rows) by a table, or (rows `chosen` of
    a batch, positions in them)."""
    at = cast(lengths, "int64")[:, None] if count == 1 else lengths[:, None] + _count(lengths, count)
    caches, page = k_cache.shape[:2]
    room = _get_room(k_cache, table)
    _check_range(at, room, lambda *ends: _describe_lack(*ends, room))
    if table is None:
        rows = (_count(lengths, batch) if chosen is None else cast(chosen, "int64"))[:, None]
    else:
        columns, at = at // page, at % page
        rows = numpy.take_along_axis(table, columns, 1) if isinstance(table, numpy.ndarray) else table.gather(1, columns)
    what, of_cache = ("cache_batch_idx", "rows") if table is None else ("block_table", "pages")
    _check_range(
        rows, caches, lambda *ends: f"{what} has {ends[0]} to {ends[1]} for new keys; {of_cache} of k_cache are from 0 to {caches - 1}"
    )
    if table is not None:
        # Numbers below 0 would count from the end, where another sequence may be; so they are of no page.
        rows = cast(rows.view("uint32" if isinstance(rows, numpy.ndarray) else sys.modules["torch"].uint32), "int64")
    return rows, at


def _explain(error, k_cache, chosen, table):
    """An error of `attention` for the caller, whose rows of the caches are its pages where they are `chosen`."""
    if chosen is not None:
        if entry := re.match(r"page_table\[(\d+), 0\] is ", str(error)):
            sequence = int(entry[1])
            return ValueError(f"cache_batch_idx[{sequence}] is {int(chosen[sequence])}; rows of k_cache are from 0 to {k_cache.shape[0] - 1}")
        if length := re.search(r"no key_tile for pages of \d+ rows.*; the nearest is (\d+)", str(error)):
            return CompileError(
                f"k_cache has rows of {k_cache.shape[1]} keys, and with cache_batch_idx kernels read rows as pages, of which none may be of "
                f"{k_cache.shape[1]} keys; the nearest length is {length[1]}. Allocate caches of this length, or of smaller pages with "
                "block_table"
            )
    if isinstance(error, CompileError):
        return error
    # Pages have the order that the caller's have.
    swapped = ["q"] if table is not None else ["q", "k_cache", "v_cache"]
    return rename(error, swapped, page_table="block_table" if chosen is None else "cache_batch_idx", **_NAMES)


def _write(cache, places, new):
    if isinstance(cache, numpy.ndarray):
        cache[places] = new
    else:
        if cache.element_size() == 1:  # Bytes can be written on all devices, f8 may not.
            cache, new = (x.view(sys.modules["torch"].uint8) for x in (cache, new))
        cache.index_put_(places, new)


def flash_attn_with_kvcache(
    q,
    k_cache,
    v_cache,
    k=None,
    v=None,
    rotary_cos=None,
    rotary_sin=None,
    cache_seqlens=None,
    cache_batch_idx=None,
    cache_leftpad=None,
    block_table=None,
    softmax_scale=None,
    causal=False,
    window_size=(-1, -1),
    softcap=0.0,
    rotary_interleaved=True,
    alibi_slopes=None,
    num_splits=0,
    return_softmax_lse=False,
    *,
    learnable_sink=None,
    mask=None,
    score=None,
    out=None,
    q_descale=None,
    k_descale=None,
    v_descale=None,
):
    """FlashAttention's function of this name: attention of new tokens over a cache, to which theirs are appended before.

    Nothing waits for the device, so that a CUDA graph may capture it: lengths and tables are read at each replay.

    Args:
      q: (batch, new tokens, heads, D).
      k_cache, v_cache: (batch of the cache, length, key heads, D); with block_table (pages, rows of a page, key heads, D).
      k, v: (batch, new keys, key heads, D): written into the caches behind the keys that are there, in place. If left out, they
        are there already.
      rotary_cos, rotary_sin: None: rotate q, and k, before the call.
      cache_seqlens: How many keys each sequence has without the new ones: int32 of shape (batch,), or a number for all; all that
        there is room for if left out, where nothing is appended.
      cache_batch_idx: Integers of shape (batch,): which row of the caches each sequence has, without a table; if left out,
        in their order. Rows are as pages of this length then, which must be one that kernels have (docs/language.md, Pages).
      cache_leftpad: Integers of shape (batch,): the first key of each sequence that there is; 0 if left out.
      block_table: int32 of shape (batch, pages of a sequence): `page_table` of `attention`.
      softmax_scale, causal, window_size, softcap, alibi_slopes, learnable_sink, mask, score, out: As for `flash_attn_func`; the
        last of the new tokens sees the last key.
      rotary_interleaved: Not looked at.
      num_splits: As that of `flash_attn_varlen_func`.
      return_softmax_lse: Returns (output, log-sum-exp).
      q_descale, k_descale, v_descale: As for `flash_attn_func`, of caches of float8_e4m3fn or int8. New keys and values have the elements
        of the caches then, divided by these scales before.

    Returns:
      An array like q, (batch, new tokens, heads, Dv); log-sum-exps are (batch, heads, new tokens). Of a sequence without keys 0, and
      -inf.

    Raises:
      What `attention` does; ValueError, too, for arguments that are not possible here, and for rows that there is no room for; on
        CUDA nobody looks at these without `checks`, and such rows are written nowhere. (PyTorch's kernels, which append under
        torch.compile and where docs/serving.md says so, stop at them.)
      NotImplementedError: rotary_cos or rotary_sin is given, or an argument requires gradients, and there are none.
    """
    has_scales = any([scale is not None for scale in (q_descale, k_descale, v_descale)])
    if not (has_scales or is_compiling() or checking.is_on):
        # In the order of `keep` below; new keys come first.
        call_again, new = (_call_again, ()) if k is v is None else (_append_and_call_again, (k, v))
        results = call_again(
            *new, q, k_cache, v_cache, None, learnable_sink, None, None, block_table, cache_seqlens, out,
            causal, window_size, softcap, num_splits, softmax_scale, return_softmax_lse,
            cache_batch_idx, cache_leftpad, alibi_slopes, mask, score, rotary_cos, rotary_sin,
        )  # fmt: skip
        if results is not None:
            return results
    scales = get_scales(q_descale, k_descale, v_descale, k_cache, v_cache, names=("k_cache", "v_cache"))
    if rotary_cos is not None or rotary_sin is not None:
        raise NotImplementedError(
            "rotary_cos or rotary_sin is given, and q and k are taken as they are; rotate q, and k, by their positions, which start at "
            "cache_seqlens, before the call"
        )
    for name, array in (("q", q), ("k_cache", k_cache), ("v_cache", v_cache)):
        if not is_array(array) or len(array.shape) != 4:
            found = f"has {len(array.shape)} dimensions" if is_array(array) else f"is a {type(array).__name__}"
            raise ValueError(f"{name} {found}; expected 4: (batch, length, heads, head dimension), or with block_table pages")
    _refuse_gradients(q, k_cache, v_cache, k, v, learnable_sink, alibi_slopes, out)
    batch = q.shape[0]
    if block_table is not None:
        check_int32("block_table", block_table, 2, "2: the pages of each sequence, in their order")
        if cache_batch_idx is not None:
            raise ValueError("cache_batch_idx is given beside block_table, which has a row for each sequence; choose rows of block_table instead")
    elif cache_batch_idx is not None:
        _check_integers("cache_batch_idx", cache_batch_idx, "which row of the caches each sequence has")
        if batch and 0 in k_cache.shape[:2]:
            raise ValueError(f"k_cache has the shape {tuple(k_cache.shape)}; cache_batch_idx chooses from at least one row of at least one key")
    elif k_cache.shape[0] != batch:
        raise ValueError(f"k_cache has {k_cache.shape[0]} rows and q {batch}; cache_batch_idx, or block_table, says which are whose")
    if cache_leftpad is not None:
        _check_integers("cache_leftpad", cache_leftpad, "the first key of each sequence")
    lengths, room = cache_seqlens, _get_room(k_cache, block_table)
    if is_array(lengths) and len(lengths.shape):
        check_int32("cache_seqlens", lengths, 1, "1: how many keys each sequence has, or a number for all")
    elif lengths is not None:
        lengths = _make_lengths(_get_number(lengths, room), q, batch)
    _check_batch(
        batch, cache_seqlens=lengths, cache_batch_idx=cache_batch_idx, cache_leftpad=cache_leftpad, block_table=block_table
    )
    check_causal(causal, q)
    # A number that int32 does not hold is of no row.
    table = block_table if cache_batch_idx is None else to_lengths(cache_batch_idx)[:, None]
    packed = None, LENGTHS if table is None else get_page(k_cache)
    is_eager = not (scales or is_compiling()) and (lengths is not None or table is not None)
    variant, key = None, ()
    if is_eager and mask is None and score is None and alibi_slopes is None and cache_leftpad is None and not is_array(causal):
        of_softmax = softmax_scale, learnable_sink is None, return_softmax_lse
        key = causal, window_size, softcap, num_splits, *of_softmax, packed, k_cache.dtype
        variant = _find_variant(key)
    if variant is None:
        mask = get_mask(causal, window_size, get_mask_of_leftpad(cache_leftpad, mask))
        score = get_score(softcap, alibi_slopes, score)
        schedule = get_schedule(num_splits, k_cache, table is not None)
    if (k is None) != (v is None):
        raise ValueError("k and v belong together; give both or none")
    # There nobody looks at lengths and tables, and kernels do all.
    on_device = getattr(q, "is_cuda", False) and not (is_compiling() or checking.is_on)
    # Dynamo reads what a function may read later.
    count, find_places, places = 0, None, None
    if k is not None:
        if lengths is None:
            raise ValueError("k is given without cache_seqlens, behind which it is appended")
        if k_cache.shape[:3] != v_cache.shape[:3]:
            raise ValueError(f"k_cache has the shape {tuple(k_cache.shape)}, v_cache {tuple(v_cache.shape)}; all but the last must agree")
        _check_new("k", k, k_cache, batch)
        _check_new("v", v, v_cache, batch)
        count = k.shape[1]
        if count != v.shape[1]:
            raise ValueError(f"k has {count} new keys and v {v.shape[1]}; they must agree")
        if is_tensor(q) and any([cache.device != q.device for cache in (k_cache, v_cache)]):
            raise ValueError(f"k_cache is on {k_cache.device}, v_cache on {v_cache.device}, q on {q.device}; they must be on one device")
        # As far as sizes and a number say it.
        first = 0 if lengths is cache_seqlens else cache_seqlens
        if k_cache.shape[0] and first + count > room:
            raise ValueError(_describe_lack(first, first + count - 1, room))
        find_places = functools.partial(_find_places, k_cache, count, batch, lengths, block_table, cache_batch_idx)
        if not on_device:
            places = find_places()
    elif table is not None and lengths is None:
        lengths = _make_lengths(table.shape[1] * k_cache.shape[1], q, batch)

    def append():
        """Writes the new keys and values, and returns how many keys there are then."""
        if k is None:
            return lengths
        sums = _appending.append(k, v, k_cache, v_cache, table, lengths) if on_device else None
        if sums is not None:
            return sums
        found = places or find_places()
        _write(k_cache, found, k)
        _write(v_cache, found, v)
        return lengths + count

    if scales:
        place = None if out is None else put_heads_first(out, (*q.shape[:3], v_cache.shape[-1]))
        given = mask, score, softmax_scale, None, learnable_sink, return_softmax_lse, None, schedule, place
        operands = _put_heads_first((q, k_cache, v_cache), table)
        try:
            results = attend(*operands, *given, (None, None, table, lengths), *scales.values(), append)
        except (TypeError, ValueError, NotImplementedError, CompileError) as error:
            raise _explain(error, k_cache, cache_batch_idx, table) from None
        return swap_results(results, return_softmax_lse, out)
    if not is_eager:
        lengths = append()
        options = dict(mask=mask, score=score, scale=softmax_scale, sink=learnable_sink, schedule=schedule)
        return attend_rows(q, k_cache, v_cache, (None, None), options, False, return_softmax_lse, table, lengths, out, names=_NAMES)
    try:
        captured, of_mask = (), None
        if variant is None:
            given = mask, score, softmax_scale, None, learnable_sink is not None, return_softmax_lse, None, packed, schedule
            variant, captured, of_mask = prepare(*given)
            _keep_variant(key, variant)
        captured += (lengths,) if table is None else (table, lengths)
        operands = autocast(q, k_cache, v_cache)
        if out is not None:
            check_out(out, operands[0], (*q.shape[:3], v_cache.shape[-1]))
        if k is not None:
            _refuse_gradients(*captured)
            # What is wrong with other arguments, or cannot be compiled, is an error before something is written.
            variant.function.prepare(*_put_heads_first(operands, table), of_mask, learnable_sink, captured)
            captured = *captured[:-1], append()
            if operands[1] is not k_cache or operands[2] is not v_cache:  # A copy of another dtype.
                operands = autocast(q, k_cache, v_cache)
        if on_device:
            results = variant.function.call_rows(*operands, of_mask, learnable_sink, captured, out)
            if results is not None:
                are_given = lengths is cache_seqlens and table is block_table
                if are_given and key and are_numbers(*key[:5]):
                    arrays = q, k_cache, v_cache, None, learnable_sink, None, None, table, lengths, out
                    options = causal, window_size, softcap, num_splits, softmax_scale, return_softmax_lse
                    _shortcut.keep(variant.function, *arrays, *options, *[None] * 7)
                return results
        place = None if out is None else out.swapaxes(1, 2)
        results = run_call(variant, (*_put_heads_first(operands, table), of_mask, learnable_sink, captured), place)
    except (TypeError, ValueError, CompileError) as error:
        raise _explain(error, k_cache, cache_batch_idx, table) from None
    return swap_results(results, return_softmax_lse, out)


def _put_heads_first(operands, table):
    query, key, value = operands
    if table is None:
        key, value = key.swapaxes(1, 2), value.swapaxes(1, 2)
    return query.swapaxes(1, 2), key, value


def _find_variant(key):
    try:
        return _variants.get(key)
    except TypeError:  # A list.
        return None


def _keep_variant(key, variant):
    """Keeps the variant of a key of numbers."""
    if key and are_numbers(*key[:5]):
        if len(_variants) >= _MAX_VARIANTS:
            _variants.clear()
        _variants[key] = variant


def _refuse_gradients(*arrays):
    torch = sys.modules.get("torch")
    if torch is not None and torch.is_grad_enabled() and any([is_tensor(array) and array.requires_grad for array in arrays]):
        raise NotImplementedError(
            "flash_attn_with_kvcache has no gradients, and an argument requires them; call it under torch.no_grad()"
        )
