"""What operands become that no kernel takes as they are."""

import contextlib
import operator
import sys

import numpy

_INT32_MAX = 2**31 - 1
# The largest head dimension of keys and values.
LARGEST_DIM = 576


def is_tensor(array):
    """Whether an array is PyTorch's."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(array, torch.Tensor)


def as_integer(name, value):
    """The integer that an argument of this name is."""
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(f"{name} is {value!r}; expected an integer") from None


def get_dtype(array):
    """The name of the dtype of an array of any library."""
    return str(array.dtype).rpartition(".")[2]


def without_gradients():
    """A context in which PyTorch, where it has been imported, notes nothing for gradients."""
    torch = sys.modules.get("torch")
    return torch.no_grad() if torch is not None else contextlib.nullcontext()


def round_dim(dim):
    """The head dimension that kernels have for this one."""
    return (dim + 7) // 8 * 8


def cast(array, dtype):
    """An array of the dtype of this name, on the same device."""
    return array.to(getattr(sys.modules["torch"], dtype)) if is_tensor(array) else numpy.asarray(array).astype(dtype)


def to_lengths(array):
    """Lengths as int32. Those that it does not hold are larger than any key."""
    array = array if is_tensor(array) else numpy.asarray(array)
    wide = cast(array, "int64")
    return cast(wide.clip(-_INT32_MAX - 1, _INT32_MAX), "int32")


def _keep_order(function, array):
    """What a function that makes row-major arrays makes of one, with the dimensions in memory in the order that they had."""
    if not array.is_cuda or array.is_contiguous() or 0 in array.stride():
        return function(array)
    order = [*sorted(range(array.dim() - 1), key=array.stride, reverse=True), array.dim() - 1]
    return function(array.permute(order)).permute([order.index(dim) for dim in range(array.dim())])


def pad(array):
    """An array with zeros behind its last dimension, up to what kernels have."""
    dim = array.shape[-1]
    missing = round_dim(dim) - dim
    if not missing:
        return array
    if is_tensor(array):
        return _keep_order(lambda x: sys.modules["torch"].nn.functional.pad(x, (0, missing)).contiguous(), array)
    array = numpy.asarray(array)
    return numpy.concatenate([array, numpy.zeros((*array.shape[:-1], missing), array.dtype)], axis=-1)


def cut(array, dim):
    """An array without gaps of the first `dim` of its last dimension."""
    array = array[..., :dim]
    return _keep_order(lambda x: x.contiguous(), array) if is_tensor(array) else numpy.ascontiguousarray(array)


def swap_dense(array):
    """(batch, length, heads, ...) as (batch, heads, length, ...) without gaps, and back."""
    array = array.swapaxes(1, 2)
    return array.contiguous() if is_tensor(array) else numpy.ascontiguousarray(array)


def make_zeros(array, *shape, dtype=None):
    """Zeros of a shape where an array is, by default of its shape and dtype."""
    shape = shape or array.shape
    if not is_tensor(array):
        return numpy.zeros(shape, dtype or array.dtype)
    return array.new_zeros(shape, dtype=getattr(sys.modules["torch"], dtype) if dtype else array.dtype)


def attend_without_heads(query, value_dim, is_packed):
    """The result and the log-sum-exp of attention without a query head, which have no elements."""
    dtype = "float64" if str(query.dtype).endswith("float64") else "float32"
    rows = query.shape[-2::-1] if is_packed else query.shape[:-1]
    return make_zeros(query, *query.shape[:-1], value_dim), make_zeros(query, *rows, dtype=dtype)


def to_heads(array):
    """Packed rows (rows, heads, D) on the host as a batch of one, with the heads before the rows."""
    if is_tensor(array):
        return array.transpose(0, 1).unsqueeze(0).contiguous()
    return numpy.ascontiguousarray(numpy.asarray(array).swapaxes(0, 1)[None])


def gather_pages(key, value, table, lengths):
    """The pages (pages, rows of a page, heads, D) on the host that a table has for such lengths, with the heads before the rows,
    and the table of these."""
    table, lengths = numpy.asarray(table), numpy.asarray(lengths)
    are_used = numpy.arange(table.shape[1]) * key.shape[1] < lengths[:, None]
    used, places = numpy.unique(table[are_used], return_inverse=True)
    if not len(used):
        # A table that has room is of pages, whether they are read or not.
        used = numpy.arange(min(1, key.shape[0]))
    gathered = numpy.zeros(table.shape, numpy.int32)
    gathered[are_used] = places

    def gather(array):
        if is_tensor(array):
            return array.transpose(1, 2).index_select(0, sys.modules["torch"].from_numpy(used)).contiguous()
        return numpy.ascontiguousarray(numpy.asarray(array)[used].swapaxes(1, 2))

    return gather(key), gather(value), gathered


def to_rows(result):
    """What kernels made of such rows, packed. A log-sum-exp, (1, heads, rows), has its heads first."""
    rows = result[0]
    if len(rows.shape) == 2:
        return rows
    return rows.transpose(0, 1).contiguous() if is_tensor(rows) else numpy.ascontiguousarray(rows.swapaxes(0, 1))


def to_tensor(array):
    """A tensor that autograd may keep: a copy, which stays what it is until the backward.

    What stands for a tensor while a graph is made, such as a Proxy of torch.fx, is returned as it is.
    """
    import torch

    if hasattr(type(array), "__torch_function__"):
        return array
    array = numpy.asarray(array)
    if array.dtype.name == "bfloat16":
        return torch.tensor(array.view("uint16")).view(torch.bfloat16)
    return torch.tensor(array)


def check_out(out, like, shape, name="out"):
    """Raises an error unless an array can become a result of this shape that is, but for it, like an array."""
    if is_tensor(out) != is_tensor(like) or not (is_tensor(out) or isinstance(out, numpy.ndarray)):
        raise TypeError(f"{name} is a {type(out).__name__}; expected a {type(like).__name__}, as results are")
    if out.dtype != like.dtype:
        raise TypeError(f"{name} has the dtype {get_dtype(out)}; expected {get_dtype(like)}, as results have")
    if tuple(out.shape) != tuple(shape):
        raise ValueError(f"{name} has the shape {tuple(out.shape)}; expected {tuple(shape)}")
    if not is_tensor(out) and not out.flags.writeable:
        raise ValueError(f"{name} is read-only; expected an array that can be written into")
    # NumPy's strides of arrays without elements are 0.
    strides = out.stride() if is_tensor(out) else out.strides if out.size else ()
    for dim, stride in enumerate(strides):
        if stride == 0 and out.shape[dim] > 1:
            raise ValueError(f"{name} has stride 0 in dimension {dim}, of size {out.shape[dim]}; expected memory for each element")
    if is_tensor(out) and out.device != like.device:
        raise ValueError(f"{name} is on {out.device}, and what is written into it on {like.device}; they must be on one device")


def write(out, result, name="out"):
    """Copies a result into the array that a call was given for it."""
    check_out(out, result, result.shape, name)
    if is_tensor(out):
        out.copy_(result)
    else:
        out[...] = result
