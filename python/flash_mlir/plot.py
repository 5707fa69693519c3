"""Pictures of masks: which tiles a kernel leaves out, and in which it looks at each element."""

import functools
import math

import numpy as np

from .values import get_operands
from .graphs import in_order
from .masks import Mask, as_mask
from .operands import as_integer

_COLORS = {"left out": "#f2f2f2", "whole": "#2f6f9f", "part": "#8fbfdf"}
_MOST_CELLS = 512 * 512


class Picture:
    """Which tiles of queries and keys a mask leaves.

    Shows itself in notebooks; `save` writes it as SVG.

    Attributes:
      kinds: An array of a number for each tile, (tiles of queries, tiles of keys): 0 where it is left out, 1 where
        it is whole, 2 where it is kept in part.
      query_length, key_length, query_tile, key_tile: The sizes.
    """

    def __init__(self, kinds, query_length, key_length, query_tile, key_tile, title):
        self.kinds = kinds
        self.query_length, self.key_length = query_length, key_length
        self.query_tile, self.key_tile = query_tile, key_tile
        self._title = title

    def count(self):
        """How many tiles are of each kind: (left out, whole, part)."""
        return tuple(int(n) for n in np.bincount(self.kinds.ravel(), minlength=3))

    def _repr_svg_(self):
        cell = max(2, min(16, 320 // max(self.kinds.shape)))
        rows, columns = self.kinds.shape
        width, height = max(columns * cell, 240), rows * cell
        names = list(_COLORS)
        parts = [
            f'<text x="1" y="12">{escape(self._title)}</text>',
            f'<rect x="1" y="18" width="{columns * cell}" height="{height}" fill="{_COLORS["left out"]}"/>',
        ]
        for row, kinds in enumerate(self.kinds):
            # Neighbours of a kind are one rectangle.
            starts = [0, *(np.flatnonzero(np.diff(kinds)) + 1), columns]
            for start, end in zip(starts, starts[1:]):
                if start < end and kinds[start]:
                    parts.append(
                        f'<rect x="{1 + start * cell}" y="{18 + row * cell}" width="{(end - start) * cell}" '
                        f'height="{cell}" fill="{_COLORS[names[kinds[start]]]}"/>'
                    )
        x = 1
        for name, count in zip(names, self.count()):
            place = f'x="{x}" y="{height + 24}" width="10" height="10"'
            parts.append(f'<rect {place} fill="{_COLORS[name]}" stroke="#888"/>')
            parts.append(f'<text x="{x + 14}" y="{height + 33}">{count} {name}</text>')
            x += 84
        return make_svg(width + 2, height + 40, parts)

    def save(self, path):
        """Writes the picture to a file, as SVG."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(self._repr_svg_())


def escape(text):
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def make_svg(width, height, parts):
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif" font-size="11">'
    return "\n".join([head, *parts, "</svg>"]) + "\n"


_TWO = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "floordiv": lambda x, y: np.floor_divide(x, np.where(np.equal(y, 0), 1, y)),
    "mod": lambda x, y: np.mod(x, np.where(np.equal(y, 0), 1, y)),
    "powf": np.power,
    "ipow": np.power,
    "minimumf": np.minimum,
    "maximumf": np.maximum,
    "lt": np.less,
    "le": np.less_equal,
    "eq": np.equal,
    "ne": np.not_equal,
    "remf": np.fmod,
    "atan2": np.arctan2,
    # Of truth values they are the logical ones.
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "shl": np.left_shift,
    "shr": np.right_shift,
    "select": np.where,
}
_ONE = {name: getattr(np, name) for name in "exp exp2 expm1 log log1p log2 sqrt tanh sin cos tan floor ceil trunc".split()}
_ONE.update(negf=np.negative, absf=np.abs, roundeven=np.round, rsqrt=lambda x: 1 / np.sqrt(x))
_ONE.update(erf=np.vectorize(math.erf, otypes=[np.float32]))
_ONE.update(to_float=np.float32, to_index=lambda x: np.trunc(x).astype(int))
_ONE["not"] = np.logical_not
_ONE["round_f16"] = lambda x: np.float32(np.float16(x))


def _evaluate(root, symbols):
    """An expression for arrays of positions."""
    done, reads = {}, []
    for value in in_order([root], get_operands, done):
        found = [done[id(operand)] for operand in get_operands(value)]
        operands = [result for result, _, _ in found]
        # Whether an element depends on what was read out of range.
        is_bad = functools.reduce(np.logical_or, (bad for _, bad, _ in found), np.False_)
        if value.op == "symbol":
            result = symbols[value.operands[0]]
        elif value.op == "constant":
            result = value.operands[0]
        elif value.op == "load":
            result, outside = _read(value.operands[0], operands, reads)
            is_bad = is_bad | outside
        elif value.op in _TWO:
            result = _TWO[value.op](*operands)
            if value.op == "and":
                # What one side leaves out is left out, whatever the other one reads.
                for side, bad, _ in found:
                    is_bad = is_bad & (bad | np.not_equal(side, 0))
        elif value.op in _ONE:
            result = _ONE[value.op](*operands)
        else:
            raise NotImplementedError(f"masks with {value.op} cannot be drawn")
        done[id(value)] = (result, is_bad, value)
    result, is_bad, _ = done[id(root)]
    for name, dimension, size, index, outside in reads:
        if np.any(outside & is_bad):
            *arrays, outside = np.broadcast_arrays(symbols["i"], symbols["j"], index, outside & is_bad)
            query, key, index = (array[outside][0] for array in arrays)
            fault = "negative," if index < 0 else f"not below its size, {size},"
            raise ValueError(
                f"{name} is read out of range: the index of dimension {dimension} is {index}, {fault} for query {query} and key {key}, "
                "which the rest of the mask does not leave out"
            )
    return result


def _read(tensor, indices, reads):
    """The elements, and which indices are out of range; adds each index to `reads`."""
    array, inside, outside = np.asarray(_to_host(tensor.array)), [], np.False_
    for dimension, (size, index) in enumerate(zip(array.shape, indices)):
        if isinstance(index, int) and index < 0:  # A constant, which counts from the end.
            index += size
        is_outside = np.less(index, 0) | np.greater_equal(index, size)
        reads.append((tensor.name, dimension, size, index, is_outside))
        inside.append(np.where(is_outside, 0, index))
        outside = outside | is_outside
    shape = np.broadcast_shapes(*(np.shape(index) for index in inside))
    return (array[tuple(inside)] if array.size else np.zeros(shape, array.dtype)), outside


def _to_host(array):
    return array if isinstance(array, np.ndarray) else array.detach().cpu().numpy()


def plot(mask, query_length, key_length=None, batch=0, head=0, query_tile=64, key_tile=64):
    """A picture of the tiles that a mask leaves out, keeps as a whole, and keeps in part.

    A kernel does not visit the first, and looks at each element in the last alone. Every element of the mask is
    computed, with NumPy.

    Args:
      mask: A `Mask` or a function of b, h, q and k.
      query_length, key_length: The lengths; as many keys as queries if left out.
      batch, head: The batch and head of the picture, where the mask depends on them.
      query_tile, key_tile: How many queries and keys a tile has.

    Returns:
      `Picture`, which has an SVG.

    Raises:
      TypeError, TraceError: As `attention`, about the mask; TypeError, too, where a size is no integer.
      ValueError: A size is less than 1, there are too many tiles to be seen, or the mask reads an array out of range.
    """
    key_length = query_length if key_length is None else key_length
    sizes = dict(query_length=query_length, key_length=key_length, query_tile=query_tile, key_tile=key_tile, batch=batch, head=head)
    for name, size in sizes.items():
        least = int(name not in ("batch", "head"))
        if as_integer(name, size) < least:
            raise ValueError(f"{name} is {size}; it must be at least {least}")
    rows, columns = -(-query_length // query_tile), -(-key_length // key_tile)
    if rows * columns > _MOST_CELLS:
        raise ValueError(f"{rows} by {columns} tiles are too many for a picture; make the tiles larger")
    mask = as_mask(mask)
    condition = mask.condition
    kinds = np.zeros((rows, columns), dtype=np.int64)
    keys = np.arange(key_length)[None]
    starts = np.arange(0, key_length, key_tile)
    for row in range(rows):
        queries = np.arange(row * query_tile, min((row + 1) * query_tile, query_length))[:, None]
        symbols = {"b": batch, "h": head, "i": queries, "j": keys, "nq": query_length, "nk": key_length}
        kept = np.broadcast_to(_evaluate(condition, symbols), (len(queries), key_length))
        some = np.logical_or.reduceat(kept.any(axis=0), starts)
        every = np.logical_and.reduceat(kept.all(axis=0), starts)
        kinds[row] = np.where(every, 1, np.where(some, 2, 0))
    return Picture(kinds, query_length, key_length, query_tile, key_tile, repr(mask))


def _draw_for_notebooks(mask):
    """256 queries and keys; nothing where the mask cannot be drawn or its arrays are smaller."""
    try:
        return plot(mask, 256, query_tile=8, key_tile=8)._repr_svg_()
    except (NotImplementedError, ValueError):
        return None


# Not in the class, which knows nothing of pictures.
Mask._repr_svg_ = _draw_for_notebooks
