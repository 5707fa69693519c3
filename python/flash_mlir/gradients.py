"""Gradients of attention, given the gradients of its results."""

from . import blocks as given_blocks
from . import checking, packing
from .preparation import prepare


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
    blocks=None,
    query_offsets=None,
    key_offsets=None,
    key_lengths=None,
):
    """The gradients of a loss with respect to the operands of `attention`.

    Arrays are on devices that `attention` takes. On CUDA the kernels are queued on the current stream;
    `output_grad` and `lse_grad` are copied where their strides are not such as `attention` takes.

    Args:
      query, key, value, mask, score, scale, lengths, sink, blocks, query_offsets, key_offsets, key_lengths: As `attention`
        was called with; of pages there are no gradients. Blocks have lists of queries, and there is no array of wrt beside them.
      output, lse: What it returned with return_lse.
      output_grad: The gradient of the loss with respect to `output`, of the same shape and dtype.
      lse_grad: That with respect to `lse`; 0 if left out.
      wrt: Arrays that the mask or the score function reads (the same objects), whose gradients are
        computed, too: float16, bfloat16 or float32, and float64 where query is.

    Returns:
      A tuple: the gradients of query, key and value; of sink, if there is one; and of each array of wrt.
      Each gradient has the shape and dtype of its array. A row without keys has gradients of
      0, and what the mask hides has no effect. Results have the same bits in each call.

    Raises:
      TypeError, ValueError, TraceError, CompileError: As `attention`; CompileError, too, where the score
        function has no derivative, which the text says with the operation.
      NotImplementedError: A tensor requires gradients: this has no derivative itself.
    """
    packed = None
    if query_offsets is not None or key_offsets is not None or key_lengths is not None:
        if blocks is not None:
            packing.refuse_blocks()
        packed = packing.get_key(query_offsets, key_offsets, None, key_lengths)
    if blocks is not None:
        given_blocks.check(blocks, query, key)
        if len(wrt):
            raise ValueError("wrt and blocks are given: there is no program for the gradients of such arrays over lists of blocks")
    key_of_blocks = given_blocks.get_key(blocks)
    prepared, captured, lengths = prepare(mask, score, scale, lengths, sink is not None, True, key_of_blocks, packed)
    captured += given_blocks.get_arrays(blocks) if packed is None else packing.get_arrays(query_offsets, key_offsets, None, key_lengths)
    if checking.is_on:
        checking.check_call(prepared.config, query, key, value, lengths, sink, captured)
    found = _find(tuple(wrt), captured)
    numbers = tuple(number for each in found for number in each)
    results = prepared.function.differentiate(
        query, key, value, output, lse, output_grad, lse_grad, lengths, sink, captured, numbers
    )
    grads, parts = results[: len(results) - len(numbers)], iter(results[len(results) - len(numbers) :])
    for each in found:
        grads.append(sum([next(parts) for _ in each[1:]], next(parts)))
    return tuple(grads)
