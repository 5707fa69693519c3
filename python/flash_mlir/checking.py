"""A mode in which calls look whether they read in range, and raise where they do not."""

import json
import re
import sys

import numpy

from .operands import cast, without_gradients
from .packing import get_kind_of_keys, is_paged, list_captures
from .programs import count_arrays_of_blocks, get_captures, get_function, get_packing, print_program

#: Whether calls are checked.
is_on = False

_MISTAKE = re.compile(r"tensor\.extract at program:(\d+):\d+: the index of dimension (\d+) is (negative|not below the size)")
_MISTAKE_OF_BLOCKS = re.compile(r"a list of blocks at \S+ has ([^;]*)")


class checks:
    """Has every call of attention check what it reads, until it is left: `with checks():`, or, as a switch, until `checks(False)`.

    What a mask or score function reads out of range of a captured tensor, for an element that takes part, is a ValueError that
    names the tensor and the dimension, and so are lengths that are negative or beyond the keys, and lists of blocks with
    numbers of no block, with one twice or with counts that are not possible. Without it nobody looks at
    indices that are only known when a kernel runs, and such a read is undefined.

    Each call is computed twice, the first time by the reference on the CPU, in float64: it is slow and waits for the
    device. Compiled graphs are checked when they run; a CUDA graph cannot be captured meanwhile.
    """

    def __init__(self, enabled=True):
        global is_on
        self._before, is_on = is_on, bool(enabled)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        global is_on
        is_on = self._before


def _to_host(array):
    return array.detach().cpu() if hasattr(array, "detach") else numpy.asarray(array)


def _has_no_elements_yet(arrays):
    """Whether operators are traced, which are checked when they run, or tensors are jagged, whose rows are then."""
    torch = sys.modules.get("torch")
    if torch is None or not any(isinstance(array, torch.Tensor) for array in arrays):
        return False
    from .torch_state import is_watched

    if is_watched() or any(getattr(array, "is_meta", False) or getattr(array, "is_nested", False) for array in arrays):
        return True
    if getattr(arrays[0], "is_cuda", False) and torch.cuda.is_current_stream_capturing():
        raise RuntimeError("flash_mlir.checks waits for the device, which is an error while a CUDA graph is captured; leave it before")
    return False


def check_call(config, query, key, value, lengths, sink, captured):
    """Raises ValueError where a call of a variant reads out of range."""
    if _has_no_elements_yet((query, key, value)):
        return
    parts = {name: part for name, part in json.loads(config).items() if name not in ("plan", "gradient_plan")}
    config = json.dumps(parts)
    captures = get_captures(config)
    # Others are of a plan.
    packed = get_packing(config)
    captured = captured[: len(captures) + sum(count_arrays_of_blocks(config)) + len(list_captures(packed))]
    with without_gradients():
        _, rank, dim, _, _ = get_function(config).check(query, key, value, lengths, sink, captured)
        if lengths is not None:
            lengths = _to_host(lengths)
            count = key.shape[-2]
            if packed[1] is not None:
                # Of what says how many keys each sequence has.
                count = numpy.asarray(_to_host(captured[-1]))
                count = numpy.diff(count) if get_kind_of_keys(packed) == "packed" else count
            _check_lengths(numpy.asarray(lengths), count)
        # Of value, nothing is looked at; pages are not padded.
        value = value[..., : 8 if is_paged(packed) else 1]
        query, key, value = (cast(_to_host(array), "float64") for array in (query, key, value))
        captured = tuple(map(_to_host, captured))
        sink = None if sink is None else _to_host(sink)
        try:
            get_function(config).run(query, key, value, lengths, sink, captured)
        except ValueError as error:
            raise ValueError(_explain(str(error), print_program(config, "f64", rank, dim, 1), captures, captured)) from None


def _check_lengths(lengths, counts):
    for batch, (length, count) in enumerate(zip(lengths.tolist(), numpy.broadcast_to(counts, lengths.shape).tolist())):
        if not 0 <= length <= count:
            raise ValueError(f"lengths has {length} for batch {batch}, and there are {count} keys; from 0 to {count} are possible")


def _explain(error, text, captures, captured):
    of_blocks = _MISTAKE_OF_BLOCKS.match(error)
    if of_blocks:
        return f"a list of blocks has {of_blocks[1]}"
    found = _MISTAKE.match(error)
    if not found:
        return error
    line, dimension, fault = int(found[1]), int(found[2]), found[3]
    number = int(re.search(r"%capture(\d+)\[", text.splitlines()[line - 1])[1])
    name, size = captures[number][0], captured[number].shape[dimension]
    fault = fault if fault == "negative" else f"not below its size, {size},"
    return f"{name} is read out of range: the index of dimension {dimension} is {fault} for an element that takes part"
