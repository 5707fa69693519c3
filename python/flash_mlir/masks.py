"""Masks: which keys each query sees.

A mask composes with others by `&` (both), `|` (either) and `~` (not). Masks that are
affine in the positions let the compiler leave out all tiles that they hide.
"""

import copy
import functools
import sys
from collections.abc import Hashable

from . import lowering
from .errors import TraceError
from .expressions import BATCH, BOOL, HEAD, KEY, QUERY, Tensor, constant, is_array, key_length, query_length
from .functions import Trace, describe_tensor, find_tensors, of_value, trace, with_tensors
from .graphs import in_order
from .operands import as_integer, get_dtype

_SYMBOLS = (BATCH, HEAD, QUERY, KEY)
_MAX_STRUCTURES = 2048
_structures = {}


def is_compiling():
    """Whether torch.compile traces the caller, which does not run then."""
    torch = sys.modules.get("torch")
    return torch is not None and torch.compiler.is_dynamo_compiling()


def _noted(function):
    """While torch.compile traces, calls are noted: expressions would only confuse it."""
    name = function.__name__

    @functools.wraps(function)
    def make(*arguments, **options):
        if is_compiling():
            return NotedMask(name, arguments, options)
        return function(*arguments, **options)

    return make


def _cached(factory):
    """Makes a mask for given parameters once."""
    cached = functools.lru_cache(maxsize=1024)(factory)

    @functools.wraps(factory)
    def make(*arguments, **options):
        # An array is itself the next time, too, whatever it holds then; what has no hash is an error of the factory.
        if any(_is_array(each) or not isinstance(each, Hashable) for each in (*arguments, *options.values())):
            return factory(*arguments, **options)
        return cached(*arguments, **options)

    return _noted(make)


def _is_array(value):
    return is_array(value) or isinstance(value, Tensor)


class _Structure:
    """What masks have in common that are made in the same way of arrays of the same kinds.

    What takes long is computed once for them: `key`, by which masks are compared, and of a function `places`, which
    number the tensors that it reads among all that it refers to.
    """

    __slots__ = ("key", "places", "_kept")

    def __init__(self, kept):
        self.key = self.places = None
        self._kept = kept


def _get_structure(recipe, kept=None):
    """The structure of a recipe, which distinguishes it from others; `kept` is what that names by its identity."""
    known = _structures.get(recipe)
    if known is None:
        if len(_structures) >= _MAX_STRUCTURES:
            _structures.clear()
        known = _structures[recipe] = _Structure(kept)
    return known


def _are_same(tensors):
    """Which of the tensors are the same: of each, the number of the first of these."""
    places = {}
    return tuple([places.setdefault(id(tensor), place) for place, tensor in enumerate(tensors)])


class Mask:
    """A set of (batch, head, query, key) that take part in attention.

    Made by the functions of this module and by `&`, `|` and `~`. Masks are values: equal
    ones are interchangeable, and an array that one refers to is read at each call.
    """

    # What made it of functions or of masks that are made of functions, by its name here or as a method, and these.
    _made_by = None
    # For a mask whose expression is made when it is needed: what makes it, from what masks, and its tensors.
    _make = None
    _parts = ()
    _own = None

    def __init__(self, trace, attribute=None, lengths=None, name=None):
        self._trace = trace
        self._attribute = attribute
        self._lengths = lengths
        self._name = name

    @staticmethod
    def _of(value, attribute=None, lengths=None, name=None):
        """A mask that its name and the kinds of its tensors distinguish from others."""
        made = Mask(of_value(value), attribute, lengths, name)
        made._structure = _get_structure((name, *map(describe_tensor, made._tensors_of_condition)))
        return made

    @staticmethod
    def _later(make, tensors, structure, attribute=None, lengths=None, name=None, parts=()):
        """The mask of the expression that `make` makes, of tensors in the order in which it reads them."""
        made = Mask.__new__(Mask)
        made._make, made._own, made._parts = make, tuple({id(tensor): tensor for tensor in tensors}.values()), parts
        made._attribute, made._lengths, made._name = attribute, lengths, name
        made._structure = structure
        return made

    @staticmethod
    def _compose(operation, parts, make, tensors, attribute=None, lengths=None, name=None):
        structure = _get_structure((operation, *[part._structure for part in parts], _are_same(tensors)))
        made = Mask._later(make, tensors, structure, attribute, lengths, name, parts)
        if any(part._made_by for part in parts):
            made._made_by = operation, *parts
        return made

    @functools.cached_property
    def _trace(self):
        done = set()
        # However deep masks are made of masks.
        for mask in in_order([self], lambda mask: mask._parts, done):
            done.add(id(mask))
            make = mask._make
            if make is not None:
                mask._trace = Trace(make(), mask._own, mask.arrays)
                mask._make, mask._parts = None, ()
        return vars(self)["_trace"]

    @functools.cached_property
    def _structure(self):
        key = self._make_key()
        lengths = None if self._lengths is None else describe_tensor(self._lengths)
        found = _get_structure((key, len(self.tensors), lengths))
        found.key = key
        return found

    @property
    def functions(self):
        """(function, its trace) for each that it is made of and that may be another mask when it is called again."""
        if self._made_by is None:
            return []
        operation, *parts = self._made_by
        return [tuple(parts)] if operation == "mask" else [each for part in parts for each in part.functions]

    def remake(self):
        """The mask as its functions make it now."""
        if self._made_by is None:
            return self
        operation, *parts = self._made_by
        return make_noted(operation, parts[:1] if operation == "mask" else [part.remake() for part in parts], {})

    def note(self, change=lambda function: function):
        """The mask that `change` makes of its functions, noted as while torch.compile traces, if there are any."""
        if self._made_by is None:
            return self
        operation, *parts = self._made_by
        noted = [change(parts[0])] if operation == "mask" else [part.note(change) for part in parts]
        return NotedMask(operation, tuple(noted), {})

    @property
    def condition(self):
        """The expression of all that is kept, the lengths included."""
        value = self._trace.value
        return value if self._lengths is None else value & (KEY < self._lengths[BATCH])

    @property
    def _tensors_of_condition(self):
        return self.tensors if self._lengths is None else (*self.tensors, self._lengths)

    @_noted
    def __and__(self, other):
        other = as_mask(other)
        attribute, lengths, read = None, self._lengths, other.tensors
        if self._attribute and other._attribute:
            parts = [mask._attribute for mask in (self, other) if mask._attribute is not _FULL]
            attribute = lowering.combine("all_of", parts) if parts else _FULL
        has_both = self._lengths is not None and other._lengths is not None
        if has_both:
            attribute, read = None, other._tensors_of_condition
        elif lengths is None:
            lengths = other._lengths

        def make():
            return self._trace.value & (other.condition if has_both else other._trace.value)

        tensors = self.tensors + read
        return Mask._compose("__and__", (self, other), make, tensors, attribute, lengths, _join(self, "&", other))

    @_noted
    def __or__(self, other):
        other = as_mask(other)
        attribute = None
        if self._attribute and other._attribute and self._lengths is None and other._lengths is None:
            attribute = lowering.combine("any_of", [self._attribute, other._attribute])
        tensors = self._tensors_of_condition + other._tensors_of_condition
        make = lambda: self.condition | other.condition  # noqa: E731
        return Mask._compose("__or__", (self, other), make, tensors, attribute, name=_join(self, "|", other))

    def __rand__(self, other):
        return as_mask(other) & self

    def __ror__(self, other):
        return as_mask(other) | self

    @_noted
    def __invert__(self):
        return Mask._compose("__invert__", (self,), lambda: ~self.condition, self._tensors_of_condition, name=f"~{self}")

    def __getstate__(self):
        """All but what is computed when it is needed: hashes of strings are others in another process."""
        return {name: getattr(self, name) for name in ("_trace", "_attribute", "_lengths", "_name")}

    def __deepcopy__(self, memo):
        if self.lengths is None and not self.tensors:
            return self
        return Mask(copy.deepcopy(self._trace, memo), self._attribute, copy.deepcopy(self._lengths, memo), self._name)

    def __bool__(self):
        raise TypeError("masks compose with &, | and ~, not with and, or and not")

    @functools.cached_property
    def lowered(self):
        """A mask that holds all that is kept, or None, and the condition that is left, or None."""
        if self._attribute:
            return (None if self._attribute is _FULL else self._attribute), None
        return lowering.MaskBuilder().split(self._trace.value)

    @functools.cached_property
    def _key(self):
        structure = self._structure
        if structure.key is None:
            structure.key = self._make_key()
        return structure.key

    def _make_key(self):
        attribute, rest = self.lowered
        region = lowering.Region()
        result = region.emit(rest) if rest is not None else None
        # Messages about a call name its arrays, so that masks of the same formula with other names are others.
        kinds = tuple((tensor.name, tensor.dtype, tensor.is_bool, tensor.rank) for tensor in region.captures)
        # Equal masks read their arrays in the same order.
        order = tuple(map(id, self.tensors))
        places = tuple(order.index(id(tensor)) for tensor in region.captures)
        return attribute, tuple(region.lines), result, kinds, places, self._lengths is None

    def with_tensors(self, tensors, lengths):
        """The mask that reads these instead of `tensors` and `lengths`."""
        given = (*tensors, *([] if lengths is None else [lengths]))
        structure = _get_structure(("with", self._structure, *map(describe_tensor, given), _are_same(tensors)))
        make = lambda: with_tensors(self._trace, tensors).value  # noqa: E731
        return Mask._later(make, tensors, structure, self._attribute, lengths, self._name, (self,))

    @property
    def tensors(self):
        return self._trace.tensors if self._own is None else self._own

    @property
    def arrays(self):
        return self._trace.arrays if self._own is None else tuple([tensor.array for tensor in self._own])

    @property
    def lengths(self):
        """The array of `key_lengths`, which goes to the kernel as such."""
        return None if self._lengths is None else self._lengths.array

    def __hash__(self):
        return self._hash

    @functools.cached_property
    def _hash(self):
        return hash(self._key)

    def __eq__(self, other):
        return self is other or (isinstance(other, Mask) and self._key == other._key)

    def __repr__(self):
        return self._name or "mask"


class NotedMask(Mask):
    """A mask that was made while torch.compile traced: the call by which it is made, of a function of this module or
    a method of `Mask`. Outside, it is that mask."""

    def __init__(self, operation, arguments, options):
        self.operation = operation
        self.arguments = arguments
        self.options = options

    @functools.cached_property
    def _mask(self):
        return make_noted(self.operation, self.arguments, self.options)

    _made_by = property(lambda self: self._mask._made_by)
    _structure = property(lambda self: self._mask._structure)
    _trace = property(lambda self: self._mask._trace)
    _attribute = property(lambda self: self._mask._attribute)
    _lengths = property(lambda self: self._mask._lengths)
    _name = property(lambda self: self._mask._name)

    def __reduce__(self):
        return make_noted, (self.operation, self.arguments, self.options)


def make_noted(operation, arguments, options):
    """The mask of a call that was noted."""
    return (getattr(Mask, operation, None) or globals()[operation])(*arguments, **options)


def _named(text):
    return lowering.Part("named", (text,))


_FULL = _named("#flash.full")
_MAX_NAME = 200


def _join(left, operation, right):
    name = f"({left} {operation} {right})"
    return name if len(name) <= _MAX_NAME else f"(... {operation} ...)"


def as_mask(object):
    """A mask, or the mask of a function."""
    if isinstance(object, Mask):
        return object
    if callable(object):
        return mask(object)
    raise TypeError(f"{type(object).__name__} is no mask; expected a Mask or a function of b, h, q and k")


@_noted
def mask(function):
    """The mask of a function of the batch, head, query and key indices that says which keys are seen.

        upper = mask(lambda b, h, q, k: k >= q)

    See `flash_mlir.expressions` for what the function may compute.
    """
    shared = trace(function, _SYMBOLS, "mask")
    check_condition(shared.value)
    structure = _get_structure(("mask", id(shared.value)), shared.value)
    if structure.places is None:
        order = [id(tensor) for tensor in shared.tensors]
        structure.places = [order.index(id(tensor)) for tensor in find_tensors(shared.value)]
    # Masks compose, and each has tensors of its own.
    of_all = [shared.tensors[place] for place in structure.places]
    tensors = [tensor.with_array(shared.arrays[place]) for tensor, place in zip(of_all, structure.places)]
    make = lambda: with_tensors(Trace(shared.value, of_all, ()), tensors).value  # noqa: E731
    made = Mask._later(make, tensors, structure, name=getattr(function, "__name__", "mask"))
    if tensors or shared.is_open:
        traced = Trace(shared.value, made.tensors, made.arrays, shared.is_fixed, shared.is_open)
        made._made_by = "mask", function, traced
    return made


def check_condition(value):
    """What a mask function returned must be a truth value."""
    if value.type != BOOL:
        raise TraceError("the mask function returns a number; it must return a truth value, such as a comparison")


def _natural(name, value):
    """A size of a mask: from 0 to what fits in 31 bits, or what an array without dimensions holds at each call."""
    if _is_array(value):
        return _captured(value, name, (0,))[()]
    number = as_integer(name, value)
    if not 0 <= number < 2**31:
        raise ValueError(f"{name} is {number}; it must be from 0 to {2**31 - 1}")
    return number


@_cached
def full():
    """Every query sees every key."""
    return Mask._of(constant(True, BOOL), _FULL, name="full()")


def causal(top_left=False, sequences=None):
    """A query sees the keys that are not behind it.

    The last query sees the last key, as when the queries are the end of a longer
    sequence; with `top_left`, the first query sees the first key. `sequences`, bool or int32
    of shape (batch,), says which sequences are causal: queries of those with 0 see every key.
    """
    if _is_array(top_left):
        raise TypeError("top_left is an array; expected True or False, as which sequences are causal says sequences=")
    if sequences is None:
        return _causal_everywhere(top_left)
    check_sequences("sequences", sequences)
    return causal_where(sequences, "sequences", top_left)


@_cached
def _causal_everywhere(top_left):
    if top_left:
        return Mask._of(KEY <= QUERY, _named("#flash.causal<top_left>"), name="causal(top_left=True)")
    return Mask._of(KEY <= QUERY + key_length - query_length, _named("#flash.causal"), name="causal()")


def check_sequences(name, array):
    """Raises an error for what does not say which sequences are causal."""
    if not is_array(array):
        kind = type(array).__name__
        raise TypeError(f"{name} is a {kind}; expected an array of bool or int32 of shape (batch,): which sequences are causal")
    if get_dtype(array) not in ("bool", "int32"):
        raise TypeError(f"{name} has the dtype {get_dtype(array)}; expected bool or int32, to which it may be cast once")
    if len(array.shape) != 1:
        raise ValueError(f"{name} has {len(array.shape)} dimensions; expected 1: which sequences are causal")


@_noted
def causal_where(sequences, name, top_left=False):
    """`causal(top_left, sequences)`, where messages call `sequences` by a name."""
    tensor = sequences if isinstance(sequences, Tensor) else Tensor(sequences, name)
    shown = f"causal(top_left={bool(top_left)}, sequences=...)"
    return Mask._of((tensor[BATCH] == 0) | _causal_everywhere(bool(top_left)).condition, name=shown)


@_cached
def window(left=None, right=None):
    """A query sees the `left` keys before the diagonal, that on it, and the `right` keys after it.

    The diagonal is that of `causal()`; None is unbounded. Arrays without dimensions are read at each call.
    """
    sides, value = [], None
    # Differences of positions are compared, which do not wrap whatever number an array holds.
    diagonal = QUERY + key_length - query_length
    if left is not None:
        number = _natural("left", left)
        sides.append(f"left = {_show(left)}")
        value = diagonal - KEY <= number
    if right is not None:
        number = _natural("right", right)
        sides.append(f"right = {_show(right)}")
        below = KEY - diagonal <= number
        value = below if value is None else value & below
    if value is None:
        return full()
    attribute = None if _is_array(left) or _is_array(right) else _named(f"#flash.window<{', '.join(sides)}>")
    return Mask._of(value, attribute, name=f"window(left={_show(left)}, right={_show(right)})")


@_cached
def prefix(length):
    """Every query sees the first `length` keys; an array without dimensions is read at each call."""
    number = _natural("length", length)
    attribute = None if _is_array(length) else _named(f"#flash.prefix<{number}>")
    return Mask._of(KEY < number, attribute, name=f"prefix({_show(length)})")


def _show(size):
    return "..." if _is_array(size) else size


@_noted
def documents(query_ids, key_ids=None):
    """A query sees the keys of its own document.

    `query_ids` gives the document of each query, as integers of shape (length,) or
    (batch, length); `key_ids` that of each key, and is the same if left out.
    """
    query_ids = _captured(query_ids, "query_ids", (1, 2))
    key_ids = query_ids if key_ids is None else _captured(key_ids, "key_ids", (1, 2))

    def document(ids, position):
        return ids[BATCH, position] if ids.rank == 2 else ids[position]

    return Mask._of(document(query_ids, QUERY) == document(key_ids, KEY), name="documents(...)")


@_noted
def key_lengths(lengths):
    """Every query of a batch sees as many of the first keys as `lengths` says, integers of shape (batch,)."""
    return Mask._of(
        constant(True, BOOL), _FULL, _captured(lengths, "lengths", (1,)), name="key_lengths(...)"
    )


def _captured(array, name, ranks):
    if not is_array(array) and not isinstance(array, Tensor):
        raise TypeError(
            f"{name} is a {type(array).__name__}; a NumPy array, a PyTorch tensor, or an array that has __dlpack__ is needed"
        )
    captured = array if isinstance(array, Tensor) else Tensor(array, name)
    if captured.rank not in ranks:
        expected = " or ".join(str(rank) for rank in ranks)
        raise ValueError(f"{name} has {captured.rank} dimensions; expected {expected}")
    if captured.dtype < 4 or captured.is_bool:
        raise TypeError(f"{name} has no integer dtype")
    return captured
