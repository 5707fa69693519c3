"""Plans: which tiles a mask leaves, computed once for many calls."""

import sys

import numpy

from . import _core, cache, checking, packing
from .compiler import get_machine
from .expressions import BATCH, HEAD, KEY, QUERY, SCORE
from .values import get_operands
from .functions import trace
from .graphs import in_order
from .masks import as_mask
from .operands import pad, to_lengths, without_gradients
from .programs import Variant, get_captures, get_function, get_gradient_plan, get_plan, print_block_map, with_signs

_MAX_PREPARED = 512
_prepared = {}
_with_scores = {}
_programs = {}


class Plan:
    """Which tiles a mask leaves of attention of certain sizes. Made by `plan`; stands in for the mask in calls.

    Attributes:
      mask: The mask.
      lengths: The lengths that `plan` was given, which hold for calls, too; or None.
      nbytes: The bytes of memory that the plan takes, where its arrays are. 0 where the compiler knows what the
        mask leaves without computing it.
    """

    def __init__(self, mask, lengths, query_sizes, key_sizes, schedules, arrays):
        self.mask = mask
        self.lengths = lengths
        self._sizes = (tuple(query_sizes), tuple(key_sizes))
        # What `with_plan` takes of them.
        self.schedules = schedules
        self.arrays = tuple(arrays)

    @property
    def nbytes(self):
        return sum(array.nbytes for array in self.arrays)

    def check(self, query, key):
        """Raises ValueError unless the plan is for such arguments of attention."""
        # What is no array has another error.
        sizes = tuple([tuple(getattr(array, "shape", ())[:-1]) for array in (query, key)])
        if sizes != self._sizes and all(sizes):
            if getattr(query, "is_nested", False) or getattr(key, "is_nested", False):
                packing.refuse_plan("jagged tensors")
            raise ValueError(
                f"the plan is for a query of {self._sizes[0]} and a key of {self._sizes[1]}, without the last dimension, "
                f"and these are of {sizes[0]} and {sizes[1]}; make another plan"
            )

    def __repr__(self):
        return f"<flash_mlir.Plan of {self.mask!r}, query {self._sizes[0]}, key {self._sizes[1]}: {self.nbytes} bytes>"


def _prepare(mask, has_lengths):
    """The configuration of attention with a mask, and of each captured tensor its number among the mask's."""
    key = (mask, has_lengths)
    known = _prepared.get(key)
    if known is None:
        if len(_prepared) >= _MAX_PREPARED:
            _prepared.clear()
        attribute, condition = mask.lowered
        variant = Variant(attribute, condition, None, None, has_lengths, False, False)
        order = [id(tensor) for tensor in mask.tensors]
        places = tuple([order.index(id(tensor)) for tensor in variant.captures])
        known = _prepared[key] = (variant.config, places)
    return known


def _make_empty(query, size, dtype=None):
    """An array on the device of query, with its rows; its values count for nothing."""
    shape = tuple(query.shape[:-1]) + size
    if hasattr(query, "new_empty"):
        return query.new_empty(shape, dtype=sys.modules["torch"].float32 if dtype else None)
    return numpy.empty(shape, dtype or query.dtype)


def _choose_tiles(mask, score, has_lengths, kind):
    """The schedule of gradients with a score function; "" where their programs have no map."""
    value = trace(score, (SCORE, BATCH, HEAD, QUERY, KEY), "score").value
    key = (mask, id(value), has_lengths)
    known = _with_scores.get(key)
    if known is None:
        if len(_with_scores) >= _MAX_PREPARED:
            _with_scores.clear()
        attribute, condition = mask.lowered
        config = Variant(attribute, condition, value, None, has_lengths, False, False).config
        # The value is kept, so that its id stays its own.
        known = _with_scores[key] = config, value
    found = _get_program(get_gradient_plan, known[0], kind, "")
    return "" if found is None else found[1]


def _get_classes(target, query, key):
    """What programs depend on of the sizes of query and key, as calls of a variant do (`python/src/Attention.cpp`)."""
    if target == "cpu":
        return _core.get_cpu_length(query[-2]), _core.get_cpu_length(key[-2])
    counts = query[-2], key[-2], query[0] if len(query) == 4 else 1
    return query[-3], key[-3], *map(_core.get_size_class, counts)


def _get_program(get, config, kind, schedule):
    """What `get_plan` or `get_gradient_plan` gives, which takes milliseconds to choose and print."""
    *types, target, shapes = kind
    key = get, config, *types, target, _get_classes(target, *shapes[:2]), schedule
    if key not in _programs:
        if len(_programs) >= _MAX_PREPARED:
            _programs.clear()
        _programs[key] = get(config, *types, target, list(shapes), schedule)
    return _programs[key]


def list_tiles(mask, query, shape, tile):
    """What a mask function leaves of tiles, as `flash.block_map` has it.

    Args:
      mask: As of `attention`.
      query: An array on the device where it is computed.
      shape: (batches, heads, queries, keys).
      tile: How many queries and keys a tile has.

    Returns:
      (which tiles of keys are left to each tile of queries, how many in part, and how many in part or whole): int32 of
      shape (batches, heads, tiles of queries, tiles of keys) and (batches, heads, tiles of queries, 2). There is one
      batch, or head, where the mask does not depend on it.
    """
    mask = as_mask(mask)
    config, places = _prepare(mask, False)
    captured = [mask.arrays[place] for place in places]
    target = get_machine(query.get_device())
    batches, heads, queries, keys = shape
    asked, seen = set(), set()
    for node in in_order([mask.condition], get_operands, seen):
        seen.add(id(node))
        if node.op == "symbol":
            asked.add(node.operands[0])
    batches, heads = (size if symbol.operands[0] in asked else 1 for size, symbol in ((batches, BATCH), (heads, HEAD)))
    with without_gradients():
        # Only their sizes are read.
        float32 = sys.modules["torch"].float32
        sizes = [query.new_empty((batches, heads, length, 0), dtype=float32) for length in (queries, keys)]
        if checking.is_on:
            rows = [query.new_zeros((batches, heads, length, 8), dtype=float32) for length in (queries, keys)]
            checking.check_call(config, *rows, rows[1], None, None, tuple(captured))
        more = [with_signs(*each) for each in zip(captured, get_captures(config))]
        kernel = cache.get_kernel(print_block_map(config, tile), target)
        return kernel.call([*sizes, *more])


def plan(mask, query, key, value=None, lengths=None, gradients=None, score=None):
    """Computes which tiles a mask leaves, once for many calls of `attention` and for many layers.

    For a mask that reads arrays, or whose formula the compiler cannot take apart, each call computes which tiles of
    queries and keys it leaves. A plan has computed that before, and calls take it instead of the mask:

        plan = flash.plan(flash.documents(ids) & flash.causal(), query, key)
        for layer in layers:
            output = flash.attention(*layer(output), mask=plan)

    It is computed where the arrays are; on CUDA on the current stream, nothing waits for it, and a CUDA graph may
    capture it. Calls must have the sizes that it was made for, apart from D, and the arrays that the mask reads and
    `lengths` must hold what they held then: nobody checks that. Calls with another D or dtype take the plan's tiles,
    which is an error where they do not fit.

    Args:
      mask: As of `attention`.
      query, key: Arrays like the calls'; only their sizes, dtypes and devices count.
      value: The same; like `key` if left out.
      lengths: As of `attention`; calls with the plan are given none.
      gradients: Whether gradients will be computed with the plan, whose programs have tiles of their own. If left out,
        whether query, key or value requires them. Without, they look for the tiles in each call.
      score: As of `attention`, where most calls have one: gradients may be faster with other tiles than without it.
        Calls with another one, or none, are as right.

    Returns:
      A `Plan`.

    Raises:
      TypeError, ValueError, TraceError, CompileError, DeviceError: As `attention`.
    """
    torch = sys.modules.get("torch")
    if torch is not None and torch.compiler.is_compiling():
        from .torch_breaks import plan_eagerly

        return plan_eagerly(plan, mask, query, key, value, lengths, gradients, score)
    mask = as_mask(mask)
    value = key if value is None else value
    if gradients is None and torch is not None and isinstance(query, torch.Tensor):
        from .torch_state import needs_gradients

        gradients = needs_gradients(query, key, value)
    given = lengths
    if mask.lengths is not None:
        if lengths is not None:
            raise ValueError("lengths are given twice: as an argument and by key_lengths in the mask")
        given = mask.lengths
    config, places = _prepare(mask, given is not None)
    captured = tuple([mask.arrays[place] for place in places])
    with without_gradients():
        element, rank, head_dim, value_dim, device = get_function(config).check(
            query, key, value, given, None, captured
        )
        if checking.is_on:
            checking.check_call(config, query, key, value, given, None, captured)
        query, key, value = pad(query), pad(key), pad(value)
        target = get_machine(device)
        shapes = tuple([tuple(array.shape) for array in (query, key, value)])
        kind = element, rank, head_dim, value_dim, target, shapes
        more = [] if given is None else [to_lengths(given)]
        more += [with_signs(*each) for each in zip(captured, get_captures(config))]
        arrays, schedule, gradient_schedule, of_gradients = [], None, None, []
        # Without a head no kernel is called.
        has_heads = shapes[0][-3] > 0
        found = _get_program(get_plan, config, kind, "") if has_heads else None
        if found is not None:
            text, schedule = found
            arrays = cache.get_kernel(text, target, "attention_plan").call([query, key, value, *more])
        found = None
        if gradients and has_heads:
            chosen = "" if score is None else _choose_tiles(mask, score, given is not None, kind)
            found = _get_program(get_gradient_plan, config, kind, chosen)
        if found is not None:
            text, gradient_schedule = found
            output, lse = _make_empty(query, (value.shape[-1],)), _make_empty(query, (), "float32")
            arguments = [query, key, value, output, lse, output, *more]
            of_gradients = cache.get_kernel(text, target, "attention_grad_plan").call(arguments)
    schedules = schedule, gradient_schedule, len(of_gradients)
    return Plan(mask, given, shapes[0][:-1], shapes[1][:-1], schedules, [*arrays, *of_gradients])
