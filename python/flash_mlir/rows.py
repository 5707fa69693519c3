"""Captured tensors that are not indexed by all positions yet: rows, and what is computed from them.

What a row has elements of is fixed when a function is traced, so reductions are sums of as many terms.
"""

import functools
import itertools

from .errors import TraceError
from .expressions import FUNCTIONS, INDEX, Value, lift
from .number_functions import maximum, minimum

_CASTS = "to astype float int long bool half bfloat16 clone contiguous cpu cuda detach".split()
# A reduction is written out.
_MAX_ELEMENTS = 512


class Row:
    """Elements of a captured tensor with the dimensions that are left.

    Indexed further, or reduced by `sum`, `mean`, `any`, `all`, `amax`, `amin` and `torch.dot`; the operators and functions
    of numbers are for each element.
    """

    def __init__(self, rank, get_shape, get):
        self.ndim = rank
        self._get_shape = get_shape
        self._get = get

    @property
    def shape(self):
        return self._get_shape()

    def size(self, dim=None):
        return self.shape if dim is None else self.shape[dim]

    def dim(self):
        return self.ndim

    def __len__(self):
        return self.shape[0]

    def __iter__(self):
        return (self[number] for number in range(len(self)))

    def __getitem__(self, index):
        index = index if isinstance(index, tuple) else (index,)
        if any(position is Ellipsis for position in index):
            place = next(i for i, position in enumerate(index) if position is Ellipsis)
            index = index[:place] + (slice(None),) * (self.ndim - len(index) + 1) + index[place + 1 :]
        if len(index) > self.ndim:
            raise TraceError(f"{self.ndim} dimensions are left, but {len(index)} positions are given")
        index += (slice(None),) * (self.ndim - len(index))
        kept = [place for place, position in enumerate(index) if isinstance(position, slice)]
        if any(index[place] != slice(None) for place in kept):
            raise TraceError("a captured tensor is sliced by `:` alone; add the start to the index instead")
        fixed = [position if isinstance(position, slice) else lift(position) for position in index]
        if any(isinstance(position, Value) and position.type != INDEX for position in fixed):
            raise TraceError("a captured tensor is indexed with a value that is no integer")

        def get(positions):
            at = list(fixed)
            for place, position in zip(kept, positions):
                at[place] = position
            return self._get(tuple(at))

        def get_shape():
            shape = self.shape
            return tuple([shape[place] for place in kept])

        return Row(len(kept), get_shape, get) if kept else get(())

    @property
    def T(self):
        return Row(self.ndim, lambda: self.shape[::-1], lambda positions: self._get(positions[::-1]))

    def _map(self, function, *others):
        """A function of each element, and of those of other rows and numbers beside it."""
        rows = [self, *[other for other in others if isinstance(other, Row)]]
        rank = max(row.ndim for row in rows)

        def get_shape():
            shapes = [(1,) * (rank - row.ndim) + row.shape for row in rows]
            shape = tuple([max(sizes) for sizes in zip(*shapes)])
            if any(size not in (1, greatest) for each in shapes for size, greatest in zip(each, shape)):
                raise TraceError(f"rows of shapes {', '.join(str(row.shape) for row in rows)} do not go together")
            return shape

        def get(positions):
            def take(part):
                if not isinstance(part, Row):
                    return part
                own = positions[rank - part.ndim :]
                return part._get(tuple([0 if size == 1 else at for size, at in zip(part.shape, own)]))

            return function(lift(take(self)), *map(take, others))

        return Row(rank, get_shape, get)

    def _reduce(self, combine, dim, keepdim=False):
        if keepdim:
            raise TraceError("keepdim=True is not traced; leave it out")
        shape = self.shape
        dims = range(self.ndim) if dim is None else [dim] if isinstance(dim, int) else dim
        dims = sorted({each % self.ndim for each in dims})
        left = [place for place in range(self.ndim) if place not in dims]
        places = list(itertools.product(*[range(shape[place]) for place in dims]))
        if not 0 < len(places) <= _MAX_ELEMENTS:
            raise TraceError(f"a reduction has {len(places)} elements; from 1 to {_MAX_ELEMENTS} are possible")

        def get(positions):
            at = dict(zip(left, positions))

            def take(place):
                at.update(zip(dims, place))
                return lift(self._get(tuple([at[i] for i in range(self.ndim)])))

            return combine(list(map(take, places)))

        return Row(len(left), lambda: tuple([shape[place] for place in left]), get) if left else get(())

    def sum(self, dim=None, keepdim=False):
        return self._reduce(_add_up, dim, keepdim)

    def mean(self, dim=None, keepdim=False):
        return self._reduce(lambda values: _add_up(values) / len(values), dim, keepdim)

    def any(self, dim=None, keepdim=False):
        return self._reduce(_combine_truth(lambda x, y: x | y), dim, keepdim)

    def all(self, dim=None, keepdim=False):
        return self._reduce(_combine_truth(lambda x, y: x & y), dim, keepdim)

    def amax(self, dim=None, keepdim=False):
        return self._reduce(lambda values: functools.reduce(maximum, values), dim, keepdim)

    def amin(self, dim=None, keepdim=False):
        return self._reduce(lambda values: functools.reduce(minimum, values), dim, keepdim)

    def dot(self, other):
        return (self * other).sum()

    def __getattr__(self, name):
        function = FUNCTIONS.get(name)
        if name in _CASTS:
            return functools.partial(self._map, lambda x, *options: getattr(x, name)(*options))
        if function is None:
            raise AttributeError(f"a row of a captured tensor has no {name} while functions are traced; index it")
        return functools.partial(self._map, function)

    def __bool__(self):
        raise TraceError("a row of a captured tensor has no truth value; index it further, or use any() or all()")

    @classmethod
    def __torch_function__(cls, function, types, arguments=(), options=None):
        name = function.__name__
        if name not in FUNCTIONS and name not in ("sum", "mean", "any", "all", "amax", "amin", "dot"):
            raise TraceError(f"torch.{name} of a row of a captured tensor cannot be traced; index it further")
        first, *others = arguments
        if not isinstance(first, Row):
            place = next(i for i, argument in enumerate(arguments) if isinstance(argument, Row))
            swapped = lambda row, *rest: FUNCTIONS[name](*rest[:place], row, *rest[place:], **(options or {}))
            return arguments[place]._map(swapped, *arguments[:place], *arguments[place + 1 :])
        if name in FUNCTIONS:
            return first._map(functools.partial(FUNCTIONS[name], **(options or {})), *others)
        return getattr(first, name)(*others, **(options or {}))


def _add_up(values):
    """As PyTorch, which counts truth values."""
    return functools.reduce(lambda x, y: x + y, [value.int() if value.type == "i1" else value for value in values])


def _combine_truth(combine):
    return lambda values: functools.reduce(combine, [value.bool() for value in values])


def _of_elements(name):
    def method(self, *others):
        return self._map(lambda x, *y: _apply(name, x, *y), *others)

    method.__name__ = name
    return method


def _apply(name, x, *others):
    return getattr(Value, name)(x, *[lift(other) for other in others])


_OPERATORS = "add radd sub rsub mul rmul truediv rtruediv floordiv rfloordiv mod rmod pow rpow".split()
_OPERATORS += "lshift rlshift rshift rrshift and rand or ror xor rxor lt le gt ge eq ne".split()


def _gives_way(operator):
    """An operator of values that leaves rows to theirs."""

    @functools.wraps(operator)
    def method(self, other):
        return NotImplemented if isinstance(other, Row) else operator(self, other)

    return method


for _name in (f"__{name}__" for name in _OPERATORS):
    setattr(Row, _name, _of_elements(_name))
    setattr(Value, _name, _gives_way(getattr(Value, _name)))
for _name in ("__neg__", "__pos__", "__abs__", "__invert__"):
    setattr(Row, _name, _of_elements(_name))
