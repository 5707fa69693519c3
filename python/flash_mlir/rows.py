"""Captured tensors that are not indexed by all positions yet: rows, and what is computed from them.

What a row has elements of is fixed when a function is traced, so reductions are sums of as many terms.
"""

import difflib
import functools
import itertools
import math

from .errors import TraceError
from .expressions import FUNCTIONS, INDEX, Tensor, Traced, Value, as_row, lift, list_elements
from .number_functions import maximum, minimum

_CASTS = "to astype float int long bool half bfloat16 clone contiguous cpu cuda detach".split()
# A reduction is written out.
_MAX_ELEMENTS = 512


class Row(Traced):
    """Elements of a captured tensor with the dimensions that are left.

    Indexed further, laid out anew (`view`, `transpose` and the like), read by `gather`, `take` and `index_select`, or reduced
    by `sum`, `mean`, `any`, `all`, `amax`, `amin` and `torch.dot`; the operators and functions of numbers are for each
    element.
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

    def numel(self):
        return math.prod(self.shape)

    def __len__(self):
        return self.shape[0]

    def __iter__(self):
        return (self[number] for number in range(len(self)))

    def __getitem__(self, index):
        index = index if isinstance(index, tuple) else (index,)
        count = sum(position is not None and position is not Ellipsis for position in index)
        if count > self.ndim:
            raise TraceError(f"{self.ndim} dimensions are left, but {count} positions are given")
        place = next((i for i, position in enumerate(index) if position is Ellipsis), len(index))
        index = index[:place] + (slice(None),) * (self.ndim - count) + index[place + 1 :]
        parts, dimension = [], 0
        for position in index:
            parts.append(self._make_part(position, dimension))
            dimension += position is not None
        if sum(part.is_row for part in parts) > 1:
            raise TraceError("a captured tensor is indexed by several rows; index it by one after the other")

        def get(positions):
            at, first = (), 0
            for part in parts:
                at += part.get(positions[first : first + part.rank])
                first += part.rank
            return self._get(at)

        rank = sum(part.rank for part in parts)
        return Row(rank, lambda: sum([part.get_shape() for part in parts], ()), get) if rank else get(())

    def _make_part(self, position, dimension):
        """What one position of an index leaves of a dimension."""
        if position is None:
            return _Part(1, lambda at: (_place(at[0], 1),)[:0], lambda: (1,))
        if isinstance(position, slice):
            return self._make_slice(position, dimension)
        position = as_row(position)
        is_row = isinstance(position, Row)
        fixed = position if is_row else _as_index(position)
        if is_row:
            return _Part(position.ndim, lambda at: (_as_index(position._get(at)),), lambda: position.shape, True)
        return _Part(0, lambda at: (fixed,), lambda: ())

    def _make_slice(self, part, dimension):
        if not all(number is None or isinstance(number, int) for number in (part.start, part.stop, part.step)):
            raise TraceError("a captured tensor is sliced by numbers; add a start that is traced to the index instead")
        if part == slice(None):
            return _Part(1, lambda at: at, lambda: (self.shape[dimension],))
        if part.step is not None and part.step < 1:
            raise TraceError(f"a captured tensor is sliced with the step {part.step}; steps from 1 on are possible")
        get_left = lambda: range(self.shape[dimension])[part]
        start, step = part.start or 0, part.step or 1

        def get(at):
            # Sizes are read only where need be: functions that read them are called at each call.
            if part.stop is None and start >= 0 and _is_forwards(at[0]):
                return (start + at[0] * step if step > 1 else start + at[0],)
            left = get_left()
            if _get_number(at[0]) is None and left != range(left.start, self.shape[dimension], step):
                raise TraceError(
                    f"a slice of a captured tensor that ends before the tensor does, at {part.stop}, is indexed by numbers, or "
                    "reduced; leave out the end where positions index it"
                )
            return (left.start + _place(at[0], len(left)) * step,)

        return _Part(1, get, lambda: (len(get_left()),))

    # Layouts.
    @property
    def T(self):
        return self.permute(range(self.ndim)[::-1])

    @property
    def mT(self):
        return self.transpose(-1, -2)

    def permute(self, *dims):
        dims = self._get_dims(_flatten(dims))
        if sorted(dims) != list(range(self.ndim)):
            raise TraceError(f"dimensions {dims} are no order of the {self.ndim} of a captured tensor")
        order = [dims.index(dim) for dim in range(self.ndim)]
        get_shape = lambda: tuple([self.shape[dim] for dim in dims])
        return Row(self.ndim, get_shape, lambda positions: self._get(tuple([positions[place] for place in order])))

    def transpose(self, *dims):
        """PyTorch's with two dimensions, which are swapped; NumPy's with all or none."""
        dims = _flatten(dims) or list(range(self.ndim))[::-1]
        if len(dims) != 2 or self.ndim == 2:
            return self.permute(dims)
        first, second = self._get_dims(dims)
        order = list(range(self.ndim))
        order[first], order[second] = second, first
        return self.permute(order)

    swapaxes = transpose

    def unsqueeze(self, dim):
        return self[(slice(None),) * (dim % (self.ndim + 1)) + (None,)]

    def squeeze(self, dim=None):
        shape = self.shape
        dims = range(self.ndim) if dim is None else self._get_dims(_flatten([dim]))
        return self[tuple([0 if place in dims and size == 1 else slice(None) for place, size in enumerate(shape)])]

    def flatten(self, start_dim=0, end_dim=-1):
        start, end = self._get_dims([start_dim, end_dim])
        if start == end:
            return self
        shape = self.shape
        return self.reshape(*shape[:start], math.prod(shape[start : end + 1]), *shape[end + 1 :])

    def ravel(self):
        return self.flatten()

    def reshape(self, *shape):
        shape = _flatten(shape)
        if not all(isinstance(size, int) for size in shape):
            raise TraceError("a captured tensor has sizes that are numbers; view(dtype) is not traced, to(dtype) is")
        if shape == [-1] and self.ndim == 1:
            return self
        old = self.shape
        known = math.prod([size for size in shape if size != -1])
        if shape.count(-1) == 1 and known:
            shape[shape.index(-1)] = math.prod(old) // known
        if math.prod(shape) != math.prod(old) or min(shape, default=1) < 1:
            raise TraceError(f"elements of shape {old} have no view of shape {tuple(shape)}")
        groups = list(_find_groups(old, shape))

        def get(positions):
            positions = [_place(at, size) for at, size in zip(positions, shape)]
            found = [0] * len(old)
            for olds, news in groups:
                flat, *more = [positions[place] for place in news]
                for at, place in zip(more, news[1:]):
                    flat = flat * shape[place] + at
                for place in olds[:0:-1]:
                    found[place] = flat % old[place]
                    flat = flat // old[place]
                found[olds[0]] = flat
            return self._get(tuple(found))

        return Row(len(shape), lambda: tuple(shape), get) if shape else get(())

    view = reshape

    # What reads elements of given numbers.
    def index_select(self, dim, index):
        (dim,) = self._get_dims([dim])
        index = as_row(index)
        # One number leaves a dimension, too.
        return self[(slice(None),) * dim + ((index,) if isinstance(index, Row) else (index, None))]

    def take(self, index, axis=None):
        """By numbers of all elements, or, as NumPy's with an axis, of the elements of one dimension."""
        if axis is None:
            return self.flatten()[index]
        (dim,) = self._get_dims([axis])
        return self[(slice(None),) * dim + (index,)]

    def gather(self, dim, index):
        (dim,) = self._get_dims([dim])
        index = as_row(index)
        if not isinstance(index, Row):
            if self.ndim > 1:
                raise TraceError(f"gather of {self.ndim} dimensions takes an index of as many; index the tensor instead")
            return self[index]
        if index.ndim != self.ndim:
            raise TraceError(f"gather of {self.ndim} dimensions takes an index of as many, not of {index.ndim}")

        def get(positions):
            return self._get((*positions[:dim], _as_index(index._get(positions)), *positions[dim + 1 :]))

        return Row(index.ndim, lambda: index.shape, get)

    def isin(self, test_elements, **options):
        tests = list_elements(test_elements)
        return self._map(lambda element: FUNCTIONS["isin"](element, tests, **options))

    def _get_dims(self, dims):
        for dim in dims:
            if not isinstance(dim, int) or not -self.ndim <= dim < self.ndim:
                raise TraceError(f"there is no dimension {dim} of the {self.ndim} of a captured tensor")
        return [dim % self.ndim for dim in dims]

    def _map(self, function, *others):
        """A function of each element, and of the elements of other rows and numbers beside it."""
        others = [as_row(other) for other in others]
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

        if len(rows) == 1:  # Whose sizes need not be read.
            return Row(rank, self._get_shape, lambda positions: function(lift(self._get(positions)), *others))
        return Row(rank, get_shape, get)

    @staticmethod
    def call_by_name(name, what, arguments, options):
        """Calls a function of another library, some of whose arguments are rows."""
        first = arguments[0]
        if name in ("__getitem__", "getitem"):
            return first[arguments[1]]
        if isinstance(first, Row) and name in _METHODS:
            return getattr(first, name)(*arguments[1:], **options)
        function = FUNCTIONS.get(name)
        if function is None:
            raise TraceError(f"{what} of a row of a captured tensor cannot be traced; {_suggest(name)}")
        if name == "isin":
            return function(*arguments, **options)
        place = next(i for i, argument in enumerate(arguments) if isinstance(argument, Row))
        swapped = lambda row, *rest: function(*rest[:place], row, *rest[place:], **options)
        return arguments[place]._map(swapped, *arguments[:place], *arguments[place + 1 :])

    def get_elements(self):
        """All of them."""
        shape = self.shape
        _check_count(math.prod(shape))
        return [lift(self._get(at)) for at in itertools.product(*map(range, shape))]

    def _reduce(self, combine, dim, keepdim):
        shape = self.shape
        dims = range(self.ndim) if dim is None else sorted(set(self._get_dims(_flatten([dim]))))
        places = list(itertools.product(*[range(shape[place]) for place in dims]))
        _check_count(len(places))
        left = [place for place in range(self.ndim) if keepdim or place not in dims]
        sizes = tuple([1 if place in dims else shape[place] for place in left])

        def get(positions):
            at = dict(zip(left, [_place(*each) for each in zip(positions, sizes)]))

            def take(place):
                at.update(zip(dims, place))
                return lift(self._get(tuple([at[i] for i in range(self.ndim)])))

            return combine(list(map(take, places)))

        return Row(len(left), lambda: sizes, get) if left else get(())

    def dot(self, other):
        return (self * other).sum()

    def max(self, other=None):
        return self._choose_extremum("max", self.amax, maximum, other)

    def min(self, other=None):
        return self._choose_extremum("min", self.amin, minimum, other)

    def _choose_extremum(self, name, reduce, combine, other):
        if isinstance(other, int):
            raise TraceError(f"{name} over a dimension has indices, too, which are not traced; a{name} has none")
        return reduce() if other is None else self._map(combine, other)

    def __getattr__(self, name):
        function = FUNCTIONS.get(name)
        if name in _CASTS:
            return functools.partial(self._map, lambda x, *options: getattr(x, name)(*options))
        if function is None:
            raise AttributeError(f"a row of a captured tensor has no {name} while functions are traced; {_suggest(name)}")
        return functools.partial(self._map, function)

    def __bool__(self):
        raise TraceError("a row of a captured tensor has no truth value; index it further, or use any() or all()")


class _Part:
    """What one position of an index leaves of a dimension.

    Attributes:
      rank: How many dimensions of the result are of it.
      get: The positions in the indexed row, of those in these dimensions.
      get_shape: The sizes of these dimensions.
    """

    def __init__(self, rank, get, get_shape, is_row=False):
        self.rank = rank
        self.get = get
        self.get_shape = get_shape
        self.is_row = is_row


def _as_index(position):
    position = lift(position)
    if position.type != INDEX:
        raise TraceError("a captured tensor is indexed with a value that is no integer")
    return position


def _get_number(position):
    """The number that a position is, or None where that is known when the kernel runs."""
    if isinstance(position, Value):
        return position.operands[0] if position.op == "constant" else None
    return position


def _is_forwards(position):
    return (_get_number(position) or 0) >= 0


def _place(position, size):
    """A position in a dimension; a negative number counts from its end."""
    number = _get_number(position)
    if number is None:
        return position
    if not -size <= number < size:
        raise TraceError(f"a row of a captured tensor has size {size}, where it is indexed with {number}")
    return number % size


def _flatten(arguments):
    """Numbers that are given one by one, or as one sequence."""
    first = arguments[0] if len(arguments) == 1 else None
    return list(first if isinstance(first, (tuple, list, range)) else arguments)


def _find_groups(old, new):
    """The dimensions of two layouts, of as many elements, that hold the same elements; dimensions of one element are in none."""
    olds = [place for place, size in enumerate(old) if size != 1]
    news = [place for place, size in enumerate(new) if size != 1]
    while olds:
        group = [olds.pop(0)], [news.pop(0)]
        while (counts := [math.prod([shape[i] for i in each]) for shape, each in zip((old, new), group)])[0] != counts[1]:
            group[counts[0] > counts[1]].append((news if counts[0] > counts[1] else olds).pop(0))
        yield group


def _check_count(count):
    if not 0 < count <= _MAX_ELEMENTS:
        raise TraceError(f"a reduction has {count} elements; from 1 to {_MAX_ELEMENTS} are possible")


def _suggest(name):
    nearest = difflib.get_close_matches(name, (*_METHODS, *FUNCTIONS), n=1)
    return f"index it, or use {nearest[0]}" if nearest else "index it"


# Functions of PyTorch and NumPy that are methods here.
_METHODS = "sum mean any all amax amin max min dot gather take index_select isin reshape ravel flatten permute".split()
_METHODS += "transpose swapaxes squeeze unsqueeze".split()


def _reduction(name, combine):
    def method(self, dim=None, keepdim=False, *, axis=None, keepdims=False):
        return self._reduce(combine, dim if axis is None else axis, keepdim or keepdims)

    method.__name__ = name
    return method


def _add_up(values):
    """As PyTorch, which counts truth values."""
    return functools.reduce(lambda x, y: x + y, [value.int() if value.type == "i1" else value for value in values])


def _combine_truth(combine):
    return lambda values: functools.reduce(combine, [value.bool() for value in values])


for _name, _combine in (
    ("sum", _add_up),
    ("mean", lambda values: _add_up(values) / len(values)),
    ("any", _combine_truth(lambda x, y: x | y)),
    ("all", _combine_truth(lambda x, y: x & y)),
    ("amax", lambda values: functools.reduce(maximum, values)),
    ("amin", lambda values: functools.reduce(minimum, values)),
):
    setattr(Row, _name, _reduction(_name, _combine))


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

Tensor.row_type = Row
