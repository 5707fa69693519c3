"""Keys and values of 8 bits, and queries: what a call says of their scales, and what programs do (docs/language.md)."""

import numbers
import sys

import numpy

from . import _core, checking, packing
from .compiler import Kernel, get_machine
from .expressions import is_array
from .masks import is_compiling
from .operands import LARGEST_DIM, cast, check_out, get_dtype, is_tensor, swap_dense, to_lengths, to_rows, write
from .plans import Plan
from .preparation import autocast, prepare
from .programs import get_captures, get_classes, get_function, get_kernel, get_parts, with_quantization, with_signs

#: The elements of 8 bits, as programs have them, and the ones that are multiplied.
QUANTIZED = {"float8_e4m3fn": "f8E4M3FN", "int8": "i8"}
_FACTORS = {"float16": "f16", "bfloat16": "bf16"}
_OPERANDS = "key", "value"
#: Queries of this type are multiplied as they are, by keys and values that have it, too.
_MULTIPLIED = "float8_e4m3fn"
#: By the configuration, the types and the class of sizes.
_kernels = {}
_MAX_KERNELS = 512


def get_step(is_gpu):
    """What head dimensions are multiples of: tensor cores multiply 16 columns of what was 8 bits."""
    return 16 if is_gpu else 8


def _is_recorded(query):
    if not is_tensor(query):
        return False
    from .torch_state import is_recorded

    return is_recorded()


def _find_gradient(**arrays):
    torch = sys.modules.get("torch")
    if torch is None or not torch.is_grad_enabled():
        return None
    return next((name for name, array in arrays.items() if is_tensor(array) and array.requires_grad), None)


def _describe_gradient(name):
    return f"{name} requires gradients, and there are none of attention with keys and values of 8 bits; call it under torch.no_grad()"


def _refuse(query, key, value, mask, blocks, sink, scales):
    """Raises an error for what is not possible with keys and values of 8 bits."""
    if is_compiling() or _is_recorded(query):
        raise NotImplementedError(
            "key_scale and value_scale have no operator for torch.compile and tracers; call attention outside of these, as under "
            "torch.compiler.disable"
        )
    if blocks is not None or isinstance(mask, Plan):
        given = "blocks" if blocks is not None else "a plan"
        raise ValueError(f"key_scale or value_scale is given beside {given}, which is of keys of 16 bits; give a mask instead")
    found = _find_gradient(query=query, key=key, value=value, sink=sink, **{f"{name}_scale": scale for name, scale in scales.items()})
    if found:
        raise NotImplementedError(_describe_gradient(found))


def _get_result_dtype(query, out):
    """The dtype of the result: that of queries, and where they have 8 bits that of `out`, or bfloat16."""
    if get_dtype(query) != _MULTIPLIED:
        return query.dtype
    if out is not None and is_array(out) and get_dtype(out) in _FACTORS:
        return out.dtype
    if is_tensor(query):
        return sys.modules["torch"].bfloat16
    return numpy.dtype(sys.modules["ml_dtypes"].bfloat16)


def _check_multiplied(elements, scales, quantized, scale):
    """Raises an error for queries of 8 bits beside keys, values or scales that are not multiplied with them."""
    if scale is not None and not scale > 0:
        raise ValueError(f"scale is {scale}; beside queries of 8 bits it is positive")
    for name, (_, of_rows) in zip((*_OPERANDS, "query"), quantized):
        if elements[name] != _MULTIPLIED:
            raise TypeError(f"query is float8_e4m3fn, and {name} has the dtype {elements[name]}; they must agree")
        if of_rows == "row":
            shape = tuple(scales[name].shape)
            raise ValueError(f"{name}_scale has the shape {shape}, one for each row; beside queries of 8 bits a scale is a number or one for each head")


def _check_operands(query, key, value, packed, scales):
    """The elements of queries, keys and values."""
    kind = packing.get_kind_of_keys(packed or (None, None))
    elements = {}
    for name, array in (("query", query), ("key", key), ("value", value)):
        if not is_array(array):
            raise TypeError(f"{name} is a {type(array).__name__}; expected an array")
        is_packed = kind == "packed" if name in _OPERANDS else packed is not None and packed[0] is not None
        rank = 3 if is_packed else 4
        if len(array.shape) != rank:
            expected = "(rows, heads, head dimension)" if is_packed else "(batch, heads, length, head dimension), or pages"
            raise ValueError(f"{name} has {len(array.shape)} dimensions; with key_scale or value_scale it is {expected}")
        elements[name] = get_dtype(array)
    if elements["query"] == _MULTIPLIED and packed is not None:
        raise ValueError("query is float8_e4m3fn, and there are arrays of sequences; queries of 8 bits are of a batch: leave these arrays out")
    if elements["query"] == _MULTIPLIED and scales["query"] is None:
        raise ValueError("query is float8_e4m3fn, and query_scale, by which it is dequantized, is missing")
    if elements["query"] != _MULTIPLIED and scales["query"] is not None:
        raise TypeError(f"query has the dtype {elements['query']}, and query_scale is given; float8_e4m3fn (of PyTorch or ml_dtypes) has one")
    if elements["query"] not in (*_FACTORS, _MULTIPLIED):
        raise TypeError(
            f"query has the dtype {elements['query']}; with key_scale or value_scale float16 and bfloat16 are possible, and float8_e4m3fn with "
            "query_scale"
        )
    for name in _OPERANDS:
        if scales[name] is None and elements[name] in QUANTIZED:
            raise ValueError(f"{name} is {elements[name]}, and {name}_scale, by which it is dequantized, is missing")
        if scales[name] is not None and elements[name] not in QUANTIZED:
            raise TypeError(
                f"{name} has the dtype {elements[name]}, and {name}_scale is given; float8_e4m3fn (of PyTorch or ml_dtypes) and int8 are dequantized"
            )
        if scales[name] is None and elements[name] != elements["query"]:
            raise TypeError(f"{name} has the dtype {elements[name]}, query {elements['query']}; they must agree")
    return elements


def _read_scale(name, scale, like, rows, sequences, kind_of_keys):
    """Whether a scale is of a "tensor", a "head" or a "row", and it as a program takes it."""
    operand = f"{name}_scale"
    if isinstance(scale, numbers.Real) and not isinstance(scale, bool):
        if is_tensor(like):
            return "tensor", like.new_full((1,), float(scale), dtype=sys.modules["torch"].float32)
        return "tensor", numpy.full(1, scale, numpy.float32)
    if not is_array(scale):
        raise TypeError(f"{operand} is a {type(scale).__name__}; expected a number or an array")
    if get_dtype(scale) not in (*_FACTORS, "float32", "float64"):
        raise TypeError(f"{operand} has the dtype {get_dtype(scale)}; expected floating-point numbers")
    if is_tensor(scale) and is_tensor(like) and scale.device != like.device:
        raise ValueError(f"{operand} is on {scale.device}, query on {like.device}; they must be on one device")
    shape = tuple(scale.shape)
    scale = cast(scale, "float32")
    of_rows = None if kind_of_keys == "packed" else tuple(rows.shape[:-1])
    of_heads = sequences, rows.shape[2 if kind_of_keys == "pages" else 1]
    if shape == of_heads:
        return "head", scale
    if shape == of_rows:
        # Kernels read the rows of a head side by side.
        return "row", swap_dense(scale) if kind_of_keys == "pages" else scale
    if all(size == 1 for size in shape):
        return "tensor", scale.reshape(1)
    others = f", or {of_rows}, one for each row of {name}" if of_rows and name != "query" else ""
    head = "head" if name == "query" else "key head"
    raise ValueError(f"{operand} has the shape {shape}; expected a number or one element, {of_heads}, one for each sequence and {head}{others}")


def _check_call(config, query, key, value, lengths, sink, captured, dtype):
    """Raises the error that the call on keys and values of 16 bits would."""
    found = _find_gradient(**{capture[0]: array for capture, array in zip(get_captures(config), captured)})
    if found:
        raise NotImplementedError(_describe_gradient(found))
    if is_tensor(query) and query.is_cuda:
        # Nobody looks at what lies on the device, and the program at other sizes.
        if key.shape[-1] != query.shape[-1]:
            raise ValueError(f"key has head dimension {key.shape[-1]}, query has {query.shape[-1]}; they must agree")
        if value.shape[:-1] != key.shape[:-1]:
            raise ValueError(f"value has the shape {tuple(value.shape)}, key {tuple(key.shape)}; all but the last must agree")
        return
    # Of keys and values nothing but sizes is looked at: what stands for them has no memory until it is written.
    empty = sys.modules["torch"].empty if is_tensor(query) else numpy.empty
    stand_ins = [array if array.dtype == dtype else empty(tuple(array.shape), dtype=dtype) for array in (query, key, value)]
    get_function(config).check(*stand_ins, lengths, sink, captured)


def _get_sizes(rows, arrays, on_device):
    """The sizes that the choice of a version depends on, as a call on 16 bits has them (`Attention::getKernel`, python/src): sequences
    of the mean length stand for packed rows, and long ones have a version for all."""
    query_offsets, key_offsets, table = arrays[:3]
    sizes = [list(array.shape) for array in rows]
    if all([array is None for array in arrays]):
        return sizes
    for i, offsets in enumerate((query_offsets, key_offsets, key_offsets)):
        if offsets is not None:
            count = max(offsets.shape[0] - 1, 1)
            sizes[i] = [count, sizes[i][1], -(-sizes[i][2] // count), sizes[i][3]]
    of_table = [] if table is None else list(table.shape)
    if of_table:
        for of_keys in sizes[1:]:
            of_keys[0] = of_table[0]
    if query_offsets is None:
        is_open = key_offsets is not None
    else:
        is_open = not on_device or sizes[0][2] > _core.most_short_rows
    if is_open:
        for i, size in enumerate(sizes):
            size[0] = _core.open_size
            if not (i and of_table):
                size[2] = _core.open_size
        of_table = [_core.open_size] * len(of_table)
    return [*sizes, of_table] if of_table else sizes


def _get_kernel(config, element, dims, device, sizes):
    machine = get_machine(device)
    key = config, element, dims, machine, get_classes(get_parts(config), machine, sizes)
    kernel = _kernels.get(key)
    if kernel is None:
        if len(_kernels) >= _MAX_KERNELS:
            _kernels.clear()
        kernel = _kernels[key] = Kernel(get_kernel(config, element, 4, *dims, machine, sizes, device))
    return kernel


def _put_heads_first(array, kind):
    """Rows as programs have them: (1, heads, rows, D) of packed ones, and (pages, heads, rows, D) of pages."""
    if kind == "packed":
        return array.swapaxes(0, 1)[None]
    return array.swapaxes(1, 2) if kind == "pages" else array


def attend(
    query, key, value, mask, score, scale, lengths, sink, return_lse, blocks, schedule, out, arrays, key_scale, value_scale, append=None, query_scale=None
):
    """`attention` where a scale is given; `arrays` are the arrays of sequences. `append` writes into keys and values,
    when all arguments are known to be right and the kernel is there, and returns how many keys sequences have then."""
    scales = {"key": key_scale, "value": value_scale, "query": query_scale}
    _refuse(query, key, value, mask, blocks, sink, scales)
    packed = packing.get_key(*arrays, key) if any(array is not None for array in arrays) else None
    if query_scale is None:
        query = autocast(query, query, query)[0]
    given = key, value

    def cast_keys():
        return [array if scales[name] is not None else autocast(query, array, array)[1] for name, array in zip(_OPERANDS, given)]

    key, value = cast_keys()
    elements = _check_operands(query, key, value, packed, scales)
    kind = packing.get_kind_of_keys(packed or (None, None))
    quantized, of_scales = [], []
    sequences = {"packed": lambda: arrays[1].shape[0] - 1, "pages": lambda: arrays[2].shape[0]}.get(kind, lambda: key.shape[0])()
    for name, array in (("key", key), ("value", value), ("query", query)):
        of_rows = None
        if scales[name] is not None:
            of_rows, of_array = _read_scale(name, scales[name], query, array, sequences, kind)
            of_scales.append(of_array)
        quantized.append((QUANTIZED.get(elements[name]) if of_rows else None, of_rows))
    dtype = _get_result_dtype(query, out)
    if query_scale is not None:
        _check_multiplied(elements, scales, quantized, scale)
    else:
        quantized.pop()
    prepared, captured, lengths = prepare(mask, score, scale, lengths, sink is not None, return_lse, None, packed, schedule)
    dims = query.shape[-1], value.shape[-1]
    step = get_step(is_tensor(query) and query.is_cuda)
    for name, dim in zip(("query", "value"), dims):
        if not 1 <= dim <= LARGEST_DIM or dim % step:
            raise ValueError(f"{name} has head dimension {dim}; with key_scale or value_scale multiples of {step} up to {LARGEST_DIM} are possible")
    _check_call(prepared.config, query, key, value, lengths, sink, captured + packing.get_arrays(*arrays), dtype)
    if checking.is_on:
        # What is read does not depend on elements.
        stand_ins = [array.to(dtype) if is_tensor(array) else array.astype(dtype) for array in (query, key, value)]
        checking.check_call(prepared.config, *stand_ins, lengths, sink, captured + packing.get_arrays(*arrays))
    config = with_quantization(prepared.config, tuple(quantized))
    of_queries = "packed" if packed and packed[0] is not None else "batch"
    rows = [_put_heads_first(query, of_queries), _put_heads_first(key, kind), _put_heads_first(value, kind)]
    device = query.device.index if is_tensor(query) and query.is_cuda else -1
    kernel = _get_kernel(config, _FACTORS[str(dtype).rpartition(".")[2]], dims, device, _get_sizes(rows, arrays, device >= 0))
    if out is not None:
        like = query if query.dtype == dtype else query.to(dtype) if is_tensor(query) else query.astype(dtype)
        check_out(out, like, (*query.shape[:-1], value.shape[-1]))

    def list_arguments():
        others = [to_lengths(lengths)] if lengths is not None else []
        others += [cast(sink, "float32")] if sink is not None else []
        others += [with_signs(array, capture) for array, capture in zip(captured, get_captures(config))]
        return [*rows, *others, *packing.get_arrays(*arrays), *of_scales]

    if append is not None:
        kernel._kernel.check(list_arguments())
        arrays = *arrays[:-1], append()
        # What autocast has copied is older.
        rows[1:] = (_put_heads_first(array, kind) for array in cast_keys())
    results = kernel(*list_arguments())
    results = results if return_lse else (results,)
    if of_queries == "packed":
        results = tuple(map(to_rows, results))
    if out is not None:
        write(out, results[0])
        results = (out, *results[1:])
    return results if return_lse else results[0]
