"""Gradients of attention, given those of its results."""

from . import _core
from .attention import _prepare
from .programs import get_captures, get_function, get_gradient_arrays, get_gradient_kernel, with_signs, without_plan

_DTYPES = {"f16": 0, "bf16": 1, "f32": 2}
_NAMES = {0: "float16", 1: "bfloat16", 2: "float32"}


def _check(name, array, element, shape):
    """Whether an argument has this type and this shape."""
    dtype, _, _, rank = _core.inspect(array, name)
    expected = _DTYPES[element]
    if dtype != expected:
        raise TypeError(f"{name} is {array.dtype}; expected {_NAMES[expected]}")
    if rank != len(shape) or tuple(array.shape) != tuple(shape):
        raise ValueError(f"{name} has the shape {tuple(array.shape)}; expected {tuple(shape)}")


def _fit(array):
    """An array as kernels for GPUs read it: autograd gives gradients with any strides, of expanded ones 0."""
    *strides, last = array.stride()
    bytes = array.element_size()
    aligned = last == 1 and array.data_ptr() % 16 == 0
    if aligned and all(stride > 0 and stride * bytes % 16 == 0 for stride in strides):
        return array
    return array.contiguous()


def compute(config, query, key, value, output, lse, output_grad, lengths, sink, captured, lse_grad, wrt):
    """The gradients of query, key, value, sink if there is one, and of the captured tensors of the numbers in `wrt`.

    Raises what `attention_grad` does for arguments that do not fit.
    """
    kind = get_function(config).check(query, key, value, lengths, sink, captured)
    element, value_dim = kind[0], kind[3]
    rows = tuple(query.shape[:-1])
    _check("output", output, element, (*rows, value_dim))
    _check("lse", lse, "f32", rows)
    _check("output_grad", output_grad, element, (*rows, value_dim))
    if lse_grad is not None:
        _check("lse_grad", lse_grad, "f32", rows)
    return launch(config, kind, query, key, value, output, lse, output_grad, lengths, sink, captured, lse_grad, wrt)


def launch(config, kind, query, key, value, output, lse, output_grad, lengths, sink, captured, lse_grad, wrt):
    """As `compute`, of arguments that fit; `kind` is what the variant's native function (`check`) says of them."""
    captures = get_captures(config)
    for number in wrt:
        name, dtype = captures[number][:2]
        if dtype not in _NAMES:
            raise TypeError(f"{name} is {captured[number].dtype}; there are gradients of float16, bfloat16 and float32")
    if kind[4] >= 0:
        output, output_grad = _fit(output), _fit(output_grad)
        if lse_grad is not None and not lse_grad.is_contiguous():
            lse_grad = lse_grad.contiguous()
    arguments = [query, key, value, output, lse, output_grad]
    arguments += [array for array in (lengths, sink) if array is not None]
    if captured:
        arguments += map(with_signs, captured, without_plan(captures))
    if lse_grad is not None:
        arguments.append(lse_grad)
    of_plan = get_gradient_arrays(config)
    if of_plan:
        arguments += captured[-of_plan:]
    return get_gradient_kernel(config, kind, query, key, value, lse_grad is not None, wrt).call(arguments)


def _find(wrt, captured):
    """For each array of `wrt`, which captured tensors it is: a mask and a score function may both read it."""
    found = []
    for place, array in enumerate(wrt):
        numbers = [number for number, each in enumerate(captured) if each is array]
        if not numbers:
            raise ValueError(f"array {place} of wrt is none that the mask or the score function reads")
        if any(array is other for other in wrt[:place]):
            raise ValueError(f"array {place} of wrt is given twice")
        found.append(numbers)
    return found


def attention_grad(
    query,
    key,
    value,
    output,
    lse,
    output_grad,
    mask=None,
    score=None,
    scale=None,
    lengths=None,
    sink=None,
    lse_grad=None,
    wrt=(),
):
    """The gradients of a loss with respect to the operands of `attention`.

    Arrays are where those of `attention` may be. On CUDA the kernels are queued on the current stream;
    `output_grad` and `lse_grad` are copied where their strides are not such as `attention` takes.

    Args:
      query, key, value, mask, score, scale, lengths, sink: As `attention` was called with.
      output, lse: What it returned with return_lse.
      output_grad: The gradient of the loss with respect to `output`, of the same shape and dtype.
      lse_grad: That with respect to `lse`; 0 if left out.
      wrt: Arrays that the mask or the score function reads (the same objects), whose gradients are
        asked for too: float16, bfloat16 or float32.

    Returns:
      A tuple: the gradients of query, key and value; of sink, if there is one; and of each array of wrt.
      Each has the shape and dtype of that of which it is the gradient. A row without keys has gradients of
      0, and what the mask hides has no effect. Results have the same bits in each call.

    Raises:
      TypeError, ValueError, TraceError, CompileError: As `attention`; CompileError, too, where the score
        function has no derivative, which the text says with the operation.
      NotImplementedError: A tensor requires gradients: this has no derivative itself.
    """
    prepared, captured, lengths = _prepare(mask, score, scale, lengths, sink is not None, True)
    found = _find(tuple(wrt), captured)
    numbers = tuple(number for each in found for number in each)
    results = compute(
        prepared.config, query, key, value, output, lse, output_grad, lengths, sink, captured, lse_grad, numbers
    )
    grads, parts = results[: len(results) - len(numbers)], iter(results[len(results) - len(numbers) :])
    for each in found:
        grads.append(sum([next(parts) for _ in each[1:]], next(parts)))
    return tuple(grads)
