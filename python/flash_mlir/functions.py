"""Calls functions of the user with expressions in place of numbers.

Arrays in a function's closure and globals are replaced by `Tensor`s for the call. What
a function becomes is remembered by its code and by all it refers to; of arrays, only
the kind counts, since a kernel gets them as arguments.
"""

import functools
import numbers
import types

from .errors import TraceError
from .expressions import Tensor, Value, is_array, lift

_MAX_TRACES = 256
_traces = {}


class Trace:
    """What a function computes, the tensors in it, and the array that each of them stands for."""

    __slots__ = ("value", "tensors", "arrays")

    def __init__(self, value, tensors, arrays):
        self.value = value
        self.tensors = tensors
        self.arrays = arrays


_FIXED = (str, bytes, type, types.ModuleType, types.FunctionType, types.BuiltinFunctionType)


class _Mutable(Exception):
    """A function refers to an object that may be another at the next call."""


def _freeze(value):
    """What tells a value that a function refers to from others."""
    if isinstance(value, tuple):
        return tuple(_freeze(item) for item in value)
    if isinstance(value, numbers.Number):
        # 1, 1.0 and True are equal, and so are 0.0 and -0.0.
        return type(value), repr(value)
    if value is None or isinstance(value, _FIXED) or type(value).__name__ == "ufunc":
        return value
    if isinstance(value, Value):
        return id(value), _Kept(value)
    raise _Mutable


class _Kept:
    """Keeps an object, all of which are equal here."""

    def __init__(self, value):
        self.value = value

    def __eq__(self, other):
        return isinstance(other, _Kept)

    def __hash__(self):
        return 0


@functools.lru_cache(maxsize=1024)
def _get_names(code):
    """The names that code and the functions in it may look up in their globals."""
    names = list(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names += _get_names(constant)
    return tuple(dict.fromkeys(names))


def _references(function):
    """All that a function refers to, by name, in a fixed order."""
    code, scope = function.__code__, function.__globals__
    for name, cell in zip(code.co_freevars, function.__closure__ or ()):
        try:
            yield name, cell.cell_contents
        except ValueError:  # Not assigned yet.
            pass
    for name in _get_names(code):
        if name in scope:
            yield name, scope[name]
    for index, value in enumerate(function.__defaults__ or ()):
        yield f"default {index}", value
    yield from (function.__kwdefaults__ or {}).items()


def _is_own(helper, function):
    """Whether a function is of the same module, so that it is traced as the user's own."""
    return isinstance(helper, types.FunctionType) and helper.__globals__ is function.__globals__


def _describe(function, arrays, visited):
    """A key by which a trace can be found again; collects the arrays."""
    parts = [function.__code__]
    for name, value in _references(function):
        if is_array(value):
            arrays.append((name, value))
            parts.append((str(value.dtype), value.ndim))
        elif isinstance(value, Tensor):
            arrays.append((name, value))
            parts.append((value.dtype, value.is_bool, value.rank))
        elif _is_own(value, function):
            if value not in visited:
                visited.add(value)
                parts.append(_describe(value, arrays, visited))
        else:
            parts.append(_freeze(value))
    return tuple(parts)


def _rebuild(function, tensors, rebuilt):
    """A copy of a function that sees tensors in place of arrays."""
    if function in rebuilt:
        return rebuilt[function]

    def replace(value):
        if id(value) in tensors:
            return tensors[id(value)]
        if _is_own(value, function):
            return _rebuild(value, tensors, rebuilt)
        return value

    scope = dict(function.__globals__)
    copy = types.FunctionType(function.__code__, scope, function.__name__, None, _empty_cells(function))
    rebuilt[function] = copy
    for name in _get_names(function.__code__):
        if name in scope:
            scope[name] = replace(scope[name])
    for cell, original in zip(copy.__closure__ or (), function.__closure__ or ()):
        try:
            cell.cell_contents = replace(original.cell_contents)
        except ValueError:
            pass
    copy.__defaults__ = tuple(replace(value) for value in function.__defaults__ or ()) or None
    copy.__kwdefaults__ = {name: replace(value) for name, value in (function.__kwdefaults__ or {}).items()} or None
    return copy


def _empty_cells(function):
    return tuple(types.CellType() for _ in function.__closure__ or ())


def _call(function, symbols, what):
    try:
        result = function(*symbols)
    except TraceError:
        raise
    except (TypeError, IndexError) as error:
        name = getattr(function, "__name__", type(function).__name__)
        raise TraceError(
            f"the {what} function {name} cannot be traced: {error}; it is called with {len(symbols)} values, and "
            "arrays that it reads must be in its closure or globals, or wrapped by flash_mlir.tensor"
        ) from error
    if result is None:
        raise TraceError(f"the {what} function returns nothing")
    return lift(result)


def trace(function, symbols, what, remember=True):
    """Calls a function with the symbols; `what` is "mask" or "score".

    A trace that is remembered is shared by all functions of the same key, each of which has arrays of its own.
    """
    if not isinstance(function, types.FunctionType):
        if not callable(function):
            raise TypeError(f"{what} is a {type(function).__name__}; expected a function")
        return of_value(_call(function, symbols, what))
    found = []
    try:
        key = (what, _describe(function, found, {function}))
    except _Mutable:
        key = None
    arrays = tuple(value.array if isinstance(value, Tensor) else value for _, value in found)
    if not remember:
        key = None
    known = _traces.get(key) if key is not None else None
    if known is not None:
        return Trace(known.value, known.tensors, arrays)
    tensors = {id(value): Tensor(array, name) for (name, value), array in zip(found, arrays)}
    result = Trace(_call(_rebuild(function, tensors, {}), symbols, what), tuple(tensors.values()), arrays)
    if key is not None and len(tensors) == len(arrays):
        for tensor in result.tensors:
            tensor.array = None  # Other calls have others.
        if len(_traces) >= _MAX_TRACES:
            _traces.clear()
        _traces[key] = result
        return Trace(result.value, result.tensors, arrays)
    return of_value(result.value)


def of_value(value):
    """The trace of an expression whose tensors know their arrays."""
    tensors = {}
    pending, seen = [value], set()
    while pending:
        current = pending.pop()
        if id(current) in seen:
            continue
        seen.add(id(current))
        for operand in current.operands:
            if isinstance(operand, Tensor):
                tensors[id(operand)] = operand
            elif isinstance(operand, tuple):
                pending.extend(operand)
            elif isinstance(operand, Value):
                pending.append(operand)
    return Trace(value, tuple(tensors.values()), tuple(tensor.array for tensor in tensors.values()))
