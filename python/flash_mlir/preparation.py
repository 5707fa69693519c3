"""What calls of attention have in common: the variant of a mask and a score function, and the arrays that it reads."""

import math
import sys

from . import packing
from .errors import TraceError
from .expressions import BATCH, HEAD, KEY, QUERY, SCORE, is_array, refuse_gradient, to_float32
from .functions import Trace, trace
from .masks import Mask, as_mask, check_condition
from .plans import Plan
from .programs import Variant, check_schedule, get_function, with_blocks, with_packing, with_plan, with_schedules, with_values_of_keys

SYMBOLS = (BATCH, HEAD, QUERY, KEY)
_MAX_PREPARED = 512
_prepared = {}
_function_masks = {}


class _Prepared:
    """A variant as a call needs it."""

    __slots__ = ("config", "function", "places", "owners")

    def __init__(self, mask, score, scale, has_lengths, has_sink, return_lse, schedules, blocks_key, packed, schedule, of_keys):
        condition = attribute = None
        tensors = ()
        if mask is not None:
            attribute, condition = mask.lowered
            tensors += mask.tensors
        if score is not None:
            tensors += score.tensors
        variant = Variant(
            attribute, condition, score.value if score else None, scale, has_lengths, has_sink, return_lse
        )
        self.config = with_plan(variant.config, *schedules) if schedules else variant.config
        if blocks_key is not None:
            self.config = with_blocks(self.config, blocks_key)
        if packed is not None:
            self.config = with_packing(self.config, packed)
        if schedule is not None:
            check_schedule("schedule", schedule)
            self.config = with_schedules(self.config, schedule, None)
        if of_keys:
            self.config = with_values_of_keys(self.config)
        self.function = get_function(self.config)
        order = [id(tensor) for tensor in tensors]
        # Of each captured tensor, its number among the tensors of the mask and then of the score.
        self.places = tuple(order.index(id(tensor)) for tensor in variant.captures)
        # What the key names by its identity.
        self.owners = (mask, score)


def get_mask(function):
    """The mask of a function, its key, and the arrays that the function reads now."""
    traced = trace(function, SYMBOLS, "mask")
    known = _function_masks.get(id(traced.value))
    if known is None:
        check_condition(traced.value)
        # Which arrays they are is another matter each time.
        shared = Trace(traced.value, traced.tensors, ())
        known = _function_masks[id(traced.value)] = Mask(shared, name=getattr(function, "__name__", "mask"))
    return known, id(traced.value), traced.arrays


def get_shared_mask(function):
    """The mask of a function; of equal ones that read no arrays, the same."""
    known, _, arrays = get_mask(function)
    return as_mask(function) if arrays else known


def get_scale(scale):
    refuse_gradient(scale, "scale")
    try:
        number = None if isinstance(scale, (str, bytes)) else to_float32(scale, "scale")
    except TraceError as error:
        raise ValueError(str(error)) from None
    except (TypeError, ValueError):
        number = None
    if number is None:
        raise TypeError(f"scale is a {type(scale).__name__}; expected a number")
    if not math.isfinite(number):
        raise ValueError(f"scale is {number}; it must be finite")
    return number


def prepare(mask, score, scale, lengths, has_sink, return_lse, blocks_key=None, packed=None, schedule=None, of_keys=False):
    """The variant, the arrays that its functions read and a plan has, and the lengths; `packed` is of `packing.get_key`, and
    `of_keys` whether values are the first columns of keys."""
    mask_key = score_key = schedules = None
    arrays = of_plan = ()
    if isinstance(mask, Plan):
        if lengths is not None:
            raise ValueError("a plan has its own lengths; give them to flash_mlir.plan instead")
        if blocks_key is not None:
            raise ValueError("blocks are given beside a plan, which says what is visited, too; give the mask instead of the plan")
        if packed is not None:
            packing.refuse_plan()
        if schedule is not None:
            raise ValueError("schedule is given beside a plan, whose tiles are a schedule; give the mask instead of the plan")
        lengths, schedules, of_plan = mask.lengths, mask.schedules, mask.arrays
        mask = mask_key = mask.mask
        arrays = mask.arrays
    elif mask is not None:
        if isinstance(mask, Mask):
            mask_key, arrays = mask, mask.arrays
            if mask.lengths is not None:
                if lengths is not None:
                    raise ValueError("lengths are given twice: as an argument and by key_lengths in the mask")
                lengths = mask.lengths
        elif callable(mask):
            mask, mask_key, arrays = get_mask(mask)
        else:
            hint = "; of an array it is lambda b, h, q, k: array[q, k]" if is_array(mask) else ""
            raise TypeError(
                f"mask is a {type(mask).__name__}; expected a Mask, a Plan or a function of b, h, q and k{hint}"
            )
    if score is not None:
        score = trace(score, (SCORE, *SYMBOLS), "score")
        score_key = id(score.value)
        arrays += score.arrays
    if scale is not None:
        scale = get_scale(scale)
    key = (mask_key, score_key, scale, lengths is not None, has_sink, return_lse, schedules, blocks_key, packed, schedule, of_keys)
    prepared = _prepared.get(key)
    if prepared is None:
        if len(_prepared) >= _MAX_PREPARED:
            _prepared.clear()
            _function_masks.clear()
        given = mask, score, scale, lengths is not None, has_sink, return_lse, schedules, blocks_key, packed, schedule, of_keys
        prepared = _prepared[key] = _Prepared(*given)
    captured = tuple([arrays[place] for place in prepared.places]) if arrays else ()
    return prepared, captured + of_plan, lengths


def autocast(query, key, value):
    """The arguments as scaled_dot_product_attention takes them under torch.autocast."""
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(query, torch.Tensor):
        return query, key, value
    # Without an argument it is about CUDA, and takes a fifth of the time.
    enabled = torch.is_autocast_enabled() if query.is_cuda else torch.is_autocast_enabled("cpu")
    if not enabled:
        return query, key, value
    dtype = torch.get_autocast_dtype("cuda" if query.is_cuda else "cpu")

    def cast(array):
        if not isinstance(array, torch.Tensor) or not array.is_floating_point() or array.dtype == torch.float64:
            return array
        return array.to(dtype)

    return cast(query), cast(key), cast(value)


def get_kind(array):
    """What must not change while a trace serves."""
    return str(array.dtype), array.ndim


def needs_table(blocks, operands, captured):
    """Whether gradients are needed that have no programs that go over the lists."""
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(operands[0], torch.Tensor):
        return False
    from .torch_state import needs_gradients

    read = [array for array in captured if isinstance(array, torch.Tensor)]
    return needs_gradients(*read) or (blocks.query_indices is None and needs_gradients(*operands))
