"""Attention over parts of the keys, put together."""

import math
import numbers
import sys

import numpy

from .expressions import is_array
from .operands import cast, check_out, get_dtype, is_tensor, write


def _name_library(array):
    return "a tensor of PyTorch" if is_tensor(array) else "an array of NumPy"


def _check_library(**arrays):
    """Raises an error for arrays of two libraries."""
    (first, one), *others = arrays.items()
    for name, other in others:
        if is_array(one) and is_array(other) and is_tensor(one) != is_tensor(other):
            raise TypeError(f"{first} is {_name_library(one)} and {name} {_name_library(other)}; they must be of one library")


def _check(outputs, lses, rows_first):
    """The library of the arrays, and the dtype that is computed in."""
    if len(outputs) != len(lses) or not outputs:
        raise ValueError(f"outputs has {len(outputs)} arrays and lses {len(lses)}; expected as many, at least one")
    _check_library(**{f"{name}[{place}]": array for name, arrays in (("outputs", outputs), ("lses", lses)) for place, array in enumerate(arrays)})
    for name, arrays in (("outputs", outputs), ("lses", lses)):
        for place, array in enumerate(arrays):
            if not is_array(array):
                raise TypeError(f"{name}[{place}] is a {type(array).__name__}; expected an array")
            if "float" not in get_dtype(array):
                raise TypeError(f"{name}[{place}] has the dtype {get_dtype(array)}; expected a floating-point one")
            if array.dtype != arrays[0].dtype:
                raise TypeError(f"{name}[{place}] has the dtype {array.dtype}, {name}[0] {arrays[0].dtype}; they must agree")
            if tuple(array.shape) != tuple(arrays[0].shape):
                raise ValueError(f"{name}[{place}] has the shape {tuple(array.shape)}, {name}[0] {tuple(arrays[0].shape)}; they must agree")
    shape = tuple(outputs[0].shape)
    if len(shape) < (3 if rows_first else 2):
        raise ValueError(f"outputs have {len(shape)} dimensions; expected (..., heads, length, head dimension)")
    rows = (*shape[:-3], shape[-2], shape[-3]) if rows_first else shape[:-1]
    if tuple(lses[0].shape) != rows:
        hint = "" if rows_first else "; rows_first=True is for outputs (..., length, heads, head dimension)"
        raise ValueError(f"lses have the shape {tuple(lses[0].shape)}, outputs {shape}; expected {rows}{hint}")
    return (sys.modules["torch"] if is_tensor(outputs[0]) else numpy), ("float64" if get_dtype(outputs[0]) == "float64" else "float32")


def merge(outputs, lses, *, base="e", rows_first=False):
    """The attention over all keys, from results of `attention` with return_lse over parts of them.

        parts = [flash.attention(query, key[:, :, keys], value[:, :, keys], return_lse=True) for keys in (slice(0, 500), slice(500, None))]
        output, lse = flash.merge(*zip(*parts))

    Masks that count from the last key, as `causal` does, see the part's; say them of a part by `mask` or `window`. A `sink`
    belongs to one part alone. Parts are added in their order, in float32, or float64 for float64. Nothing waits for the device.

    Args:
      outputs: Arrays of one dtype and shape, (..., heads, length, Dv).
      lses: For each the log-sum-exp of the scores, (..., heads, length). -inf is a row without keys, and so is inf, which
        FlashAttention has for it: its output does not count, and may be NaN.
      base: Of the logarithms: "e", as `attention` and FlashAttention have them, or 2, as FlashInfer has them. The base
        cannot be checked, and with the wrong one the result is wrong.
      rows_first: Whether outputs are (..., length, heads, Dv), as outputs for packed rows and outputs of FlashAttention's functions are;
        log-sum-exps have their heads first in any case.

    Returns:
      (output, lse): an array like an element of outputs, and the log-sum-exp of all, to the same base and in the dtype of lses. A row
      without keys is 0, and -inf.

    Raises:
      TypeError, ValueError: Arrays do not fit each other, or base is another number.
    """
    if base not in (2, math.e) if isinstance(base, numbers.Real) else not isinstance(base, str) or base != "e":
        raise ValueError(f"base is {base!r}; expected 'e' for natural logarithms, or 2")
    outputs, lses = tuple(outputs), tuple(lses)
    library, dtype = _check(outputs, lses, rows_first)
    exp, log = (library.exp2, library.log2) if base == 2 else (library.exp, library.log)
    rows = [cast(lse, dtype) for lse in lses]
    rows = [library.where(abs(lse) == math.inf, -math.inf, lse) for lse in rows]
    top = rows[0]
    for lse in rows[1:]:
        top = library.maximum(top, lse)
    # Any number will do; it has no gradient.
    top = library.where(top == -math.inf, 0.0, top.detach() if hasattr(top, "detach") else top)
    weights = [exp(lse - top) for lse in rows]
    total = sum(weights[1:], weights[0])
    has_keys = total > 0
    total = library.where(has_keys, total, 1.0)
    merged = None
    for output, weight in zip(outputs, weights):
        share = (weight / total)[..., None]
        share = share.swapaxes(-2, -3) if rows_first else share
        part = library.where(share > 0, cast(output, dtype), 0.0) * share
        merged = part if merged is None else merged + part
    lse = library.where(has_keys, log(total) + top, -math.inf)
    return cast(merged, get_dtype(outputs[0])), cast(lse, get_dtype(lses[0]))


def _turn(name, lse):
    """A log-sum-exp with the heads before the rows, or back."""
    if not is_array(lse) or len(lse.shape) < 2:
        found = f"is a {type(lse).__name__}" if not is_array(lse) else f"has the shape {tuple(lse.shape)}"
        raise ValueError(f"{name} {found}; expected (rows, heads)")
    return lse.swapaxes(-1, -2)


def merge_state(v_a, s_a, v_b, s_b):
    """FlashInfer's function of this name: `merge` of two parts, with logarithms to the base 2.

    Args:
      v_a, v_b: (rows, heads, D).
      s_a, s_b: (rows, heads): log-sum-exps to the base 2. Of results of `attention`, (heads, rows) to the base e, they are
        lse.swapaxes(0, 1) * math.log2(math.e).

    Returns:
      (v, s), like those.

    Raises:
      What `merge` does.
    """
    _check_library(v_a=v_a, s_a=s_a, v_b=v_b, s_b=s_b)
    output, lse = merge((v_a, v_b), (_turn("s_a", s_a), _turn("s_b", s_b)), base=2, rows_first=True)
    return output, lse.swapaxes(-1, -2)


def merge_states(v, s):
    """FlashInfer's function of this name: `merge_state` of any number of parts, v (rows, parts, heads, D) and s (rows, parts, heads)."""
    if not is_array(v) or not is_array(s) or len(v.shape) != 4 or tuple(s.shape) != tuple(v.shape[:3]):
        found = [tuple(x.shape) if is_array(x) else type(x).__name__ for x in (v, s)]
        raise ValueError(f"v and s are {found[0]} and {found[1]}; expected (rows, parts, heads, D) and (rows, parts, heads)")
    _check_library(v=v, s=s)
    parts = range(v.shape[1])
    output, lse = merge([v[:, part] for part in parts], [s[:, part].swapaxes(0, 1) for part in parts], base=2, rows_first=True)
    return output, lse.swapaxes(0, 1)


def merge_attn_states(output, prefix_output, prefix_lse, suffix_output, suffix_lse, output_lse=None):
    """vLLM's function of this name: `merge` of two parts, with natural logarithms, into `output`, and into `output_lse` if given.

    Outputs are (rows, heads, D), log-sum-exps (heads, rows). Raises what `merge` does.
    """
    _check_library(prefix_output=prefix_output, prefix_lse=prefix_lse, suffix_output=suffix_output, suffix_lse=suffix_lse)
    merged, lse = merge((prefix_output, suffix_output), (prefix_lse, suffix_lse), rows_first=True)
    if output_lse is not None:
        check_out(output_lse, lse, lse.shape, "output_lse")
    write(output, merged, "output")
    if output_lse is not None:
        write(output_lse, lse, "output_lse")
