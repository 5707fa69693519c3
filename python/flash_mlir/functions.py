"""Calls functions of the user with expressions instead of numbers.

Arrays in a function's closure and globals are replaced by `Tensor`s for the call. What
a function becomes is remembered by its code and by all it refers to; of arrays, only
the kind counts, since a kernel gets them as arguments. A function that refers to what
may change without a sign of it, such as an object's attribute, is called each time, and
what it becomes is found again by the expression.
"""

import builtins
import dis
import functools
import sys
import types
import weakref

from . import rows  # noqa: F401: functions that are traced read rows of tensors.
from .errors import TraceError
from .expressions import Tensor, Value, is_array, is_traced, lift
from .values import get_operands
from .graphs import in_order

_MAX_TRACES = 256
_traces = {}
_shared = {}
#: The traces of functions that `keep_trace` was called for, by what they are.
_kept = weakref.WeakKeyDictionary()


class Trace:
    """What a function computes, the tensors in it, and the array that each of them stands for.

    Attributes:
      is_fixed: Whether the function computes the same from these arrays at any time.
      is_open: Whether it is not fixed, and has numbers as constants that it has, or may have, computed of arrays.
    """

    __slots__ = ("value", "tensors", "arrays", "is_fixed", "is_open")

    def __init__(self, value, tensors, arrays, is_fixed=True, is_open=False):
        self.value = value
        self.tensors = tensors
        self.arrays = arrays
        self.is_fixed = is_fixed
        self.is_open = is_open


# ===----------------------------------------------------------------------=== #
# What a function depends on
# ===----------------------------------------------------------------------=== #

# A function that reaches more others is sooner called than described.
_MAX_FUNCTIONS = 32
_HEAP_TYPE = 1 << 9  # Of a type's flags: its attributes can be set.
_PACKAGE = __name__.split(".")[0]
_LIBRARIES = ("numpy", "torch")
_PURE_BUILTINS = frozenset(
    "abs all any divmod isinstance iter len max min next pow print round sorted sum".split()
)
_PURE_MODULES = ("math", "_operator")


class _Changing(Exception):
    """A function refers to what may be another at the next call without a sign of it."""


class _Kept:
    """Keeps an object; all such objects are equal."""

    def __init__(self, value):
        self.value = value

    def __eq__(self, other):
        return isinstance(other, _Kept)

    def __hash__(self):
        return 0


def _freeze_number(value):
    # 1, 1.0 and True are equal, and so are 0.0 and -0.0, but not NaN and NaN.
    return type(value), repr(value)


def _get_itself(value):
    return value


_FREEZERS = {kind: _freeze_number for kind in (bool, int, float, complex)}
_FREEZERS.update({kind: _get_itself for kind in (str, bytes, type(None), type(Ellipsis))})


def _get_root(value):
    """The package that a function or a type says it is of."""
    return (getattr(value, "__module__", None) or "").partition(".")[0]


@functools.lru_cache(maxsize=1024)
def _is_pure(function):
    """Whether a function that is not the user's does no more than to compute with its arguments."""
    if isinstance(function, types.BuiltinFunctionType):
        owner = function.__self__
        if owner is builtins:
            return function.__name__ in _PURE_BUILTINS
        if isinstance(owner, types.ModuleType) and owner.__name__ in _PURE_MODULES:
            return True
        # Methods of objects may have any name.
        return is_traced(function.__name__) and isinstance(owner, (type, types.ModuleType, type(None)))
    if type(function).__name__ == "ufunc":
        return True
    root = _get_root(function)
    return root == _PACKAGE or (root in _LIBRARIES and is_traced(getattr(function, "__name__", "")))


class _Names:
    """The names that code and the functions in it look up: as globals, and as attributes; and whether there is no
    other way by which it can reach what is not in its globals, its closure and its arguments."""

    def __init__(self, code):
        instructions = list(dis.get_instructions(code))
        lookups = [instruction for instruction in instructions if instruction.opcode in dis.hasname]
        are_global, are_attributes = [], []
        for lookup in lookups:
            is_global = "GLOBAL" in lookup.opname or "NAME" in lookup.opname
            (are_global if is_global else are_attributes).append(lookup.argval)
        # Classes in a match name attributes, too.
        self.are_all = not any(i.opname in ("IMPORT_NAME", "MATCH_CLASS") for i in instructions)
        # Such as __globals__.
        self.are_all &= not any(lookup.argval.startswith("__") for lookup in lookups)
        for constant in code.co_consts:
            if isinstance(constant, types.CodeType):
                inner = get_names(constant)
                are_global += inner.globals
                are_attributes += inner.attributes
                self.are_all &= inner.are_all
        self.globals = tuple(dict.fromkeys(are_global))
        self.attributes = tuple(dict.fromkeys(are_attributes))


get_names = functools.lru_cache(maxsize=1024)(_Names)


def _references(function):
    """All that a function refers to, by name, in a fixed order."""
    code, scope = function.__code__, function.__globals__
    for name, cell in zip(code.co_freevars, function.__closure__ or ()):
        try:
            yield name, cell.cell_contents
        except ValueError:  # Not assigned yet.
            pass
    known = vars(builtins)
    for name in get_names(code).globals:
        if name in scope:
            yield name, scope[name]
        elif name in known:
            yield name, known[name]
    for index, value in enumerate(function.__defaults__ or ()):
        yield f"default {index}", value
    yield from (function.__kwdefaults__ or {}).items()


class _Description:
    """What a function depends on.

    Attributes:
      key: By which its trace can be found again; None if it may depend on more than is known.
      functions: It and the others whose arrays are replaced, each with its number.
      arrays: (name, array or `Tensor`) for each array in these.
    """

    def __init__(self, function):
        self.functions = {function: 0}
        self.arrays = []
        self._is_fixed = True
        self._modules = []
        self._parts = parts = []
        self._pending = pending = [function]
        while pending:
            self._describe(pending.pop())
        if self._modules:
            self._describe_modules()
        self.key = tuple(parts) if self._is_fixed else None

    def _describe(self, function, is_replaced=True):
        self._parts.append(function.__code__)
        # What helpers carry as attributes, functions that decorators return name as __wrapped__ at most.
        if not get_names(function.__code__).are_all or function.__dict__.keys() - {"__wrapped__"}:
            self._is_fixed = False
        for name, value in _references(function):
            self._parts.append(name)
            if type(value) in _FREEZERS:
                self._parts.append(_FREEZERS[type(value)](value))
            elif is_array(value) or isinstance(value, Tensor):
                # One that is not replaced may become a constant.
                self._is_fixed &= is_replaced
                if is_replaced:
                    self.arrays.append((name, value))
                    self._parts.append(_describe_array(value))
            else:
                self._add(value)

    def _describe_modules(self):
        """Any of the functions may read a module's attributes, whatever name the module goes by."""
        functions, described = dict(self.functions), len(self.functions)
        while self._is_fixed:
            codes = [function.__code__ for function in self.functions]
            names = dict.fromkeys([name for code in codes for name in get_names(code).attributes])
            for module in self._modules:  # The list grows.
                scope = vars(module)
                self._parts.append(module)
                if "__getattr__" in scope and module.__name__.partition(".")[0] not in _LIBRARIES:
                    self._is_fixed = False
                for name in names:
                    if name in scope:
                        self._parts.append(name)
                        self._add(scope[name])
            if len(self.functions) == described:
                break
            described = len(self.functions)
            while self._pending:
                self._describe(self._pending.pop(), is_replaced=False)
        # Those that are attributes of modules stay what they are.
        self.functions = functions

    def _add(self, value):
        try:
            self._parts.append(self._freeze(value))
        except _Changing:
            self._is_fixed = False

    def _freeze(self, value):
        """What distinguishes a value from others."""
        kind = type(value)
        if kind in _FREEZERS:
            return _FREEZERS[kind](value)
        if kind is tuple:
            return (tuple, *map(self._freeze, value))
        if kind is types.ModuleType:
            if value not in self._modules:
                self._modules.append(value)
            return value
        if kind is types.FunctionType and _get_root(value) not in (_PACKAGE, *_LIBRARIES):
            number = self.functions.get(value)
            if number is None:
                if len(self.functions) == _MAX_FUNCTIONS:
                    raise _Changing
                number = self.functions[value] = len(self.functions)
                self._pending.append(value)
            return kind, number
        if kind is Value:
            return id(value), _Kept(value)
        if isinstance(value, type):
            if not value.__flags__ & _HEAP_TYPE and _get_root(value) in ("builtins", *_LIBRARIES):
                return value
        elif callable(value):
            if kind is not types.MethodType and not kind.__flags__ & _HEAP_TYPE and _is_pure(value):
                return value
        elif _get_root(kind) in _LIBRARIES and not kind.__flags__ & _HEAP_TYPE:
            if kind.__name__ == "dtype":  # Of PyTorch.
                return value
            if isinstance(value, sys.modules["numpy"].generic) and kind.__name__ != "void":
                return kind, value.tobytes()
        raise _Changing


def _describe_array(array):
    if isinstance(array, Tensor):
        return Tensor, array.dtype, array.is_bool, array.is_unsigned, array.rank
    return type(array), array.dtype, array.ndim


# ===----------------------------------------------------------------------=== #
# Traces
# ===----------------------------------------------------------------------=== #


def _rebuild(function, tensors, functions, rebuilt):
    """A copy of a function that sees tensors instead of arrays, and so do the given functions that it calls."""
    if function in rebuilt:
        return rebuilt[function]

    def replace(value):
        if id(value) in tensors:
            return tensors[id(value)]
        if type(value) is types.FunctionType and value in functions:
            return _rebuild(value, tensors, functions, rebuilt)
        if type(value) is tuple:
            return tuple([replace(item) for item in value])
        return value

    scope = dict(function.__globals__)
    copy = types.FunctionType(function.__code__, scope, function.__name__, None, _empty_cells(function))
    rebuilt[function] = copy
    for name in get_names(function.__code__).globals:
        if name in scope:
            scope[name] = replace(scope[name])
    for cell, original in zip(copy.__closure__ or (), function.__closure__ or ()):
        try:
            cell.cell_contents = replace(original.cell_contents)
        except ValueError:
            pass
    copy.__defaults__ = tuple(replace(value) for value in function.__defaults__ or ()) or None
    copy.__kwdefaults__ = {name: replace(value) for name, value in (function.__kwdefaults__ or {}).items()} or None
    copy.__dict__.update(function.__dict__)
    return copy


def _empty_cells(function):
    return tuple(types.CellType() for _ in function.__closure__ or ())


def _call(function, symbols, what):
    """What a function returns, and whether numbers of arrays that it made are constants in it."""
    name = getattr(function, "__name__", type(function).__name__)
    try:
        result = function(*symbols)
    except TraceError:
        raise
    except RecursionError as error:
        raise TraceError(f"the {what} function {name} cannot be traced: it calls itself too often") from error
    except (TypeError, IndexError, AttributeError) as error:
        names = "b, h, q and k" if what == "mask" else "s, b, h, q and k"
        is_maker = isinstance(function, types.FunctionType) and _get_root(function) == _PACKAGE
        hint = f"; flash_mlir.{name}() is a mask" if is_maker else ""
        raise TraceError(
            f"the {what} function {name} cannot be traced: {error}; it is called with {names}, and arrays that it "
            f"reads must be in its closure or globals, or wrapped by flash_mlir.tensor{hint}"
        ) from error
    if result is None:
        raise TraceError(f"the {what} function returns nothing")
    result = lift(result)
    return _settle_numbers(result)


def _count_owners(tensor):
    """How many have an array, what it is a view of, and the memory of both; and first whether it is no view."""
    is_torch = hasattr(tensor.array, "untyped_storage")
    base = tensor.array._base if is_torch else getattr(tensor.array, "base", None)
    memory = sys.modules["torch"]._C._storage_Use_Count(tensor.array.untyped_storage()._cdata) if is_torch else 0
    return base is None, sys.getrefcount(tensor.array), base is None or sys.getrefcount(base), memory


@functools.lru_cache(maxsize=None)
def _count_owners_of_temporary(kind, is_view):
    """Of arrays that only the `Tensor` has."""
    make = sys.modules["torch"].tensor if hasattr(kind, "untyped_storage") else sys.modules["numpy"].array
    return _count_owners(Tensor(make([0])[0:1].reshape(()) if is_view else make(0)))


def _is_temporary(tensor):
    """Whether nobody else has the array of a number."""
    try:
        owners = _count_owners(tensor)
    except NotImplementedError:  # What torch.func maps has no memory of its own.
        return False
    return all(x <= y for x, y in zip(owners, _count_owners_of_temporary(type(tensor.array), not owners[0])))


def _settle_numbers(value):
    """The expression with constants instead of numbers that the function made, such as torch.tensor(0.5), and whether
    there were any.

    Others, which belong to somebody, may hold another number at the next call.
    """
    order = _in_order(value)
    tensors = _get_tensors(order)
    if not any(tensor.is_number for tensor in tensors):
        return value, False
    settled = [lift(t.array.item()) if t.is_number and _is_temporary(t) else t for t in tensors]
    return _copy(order, tensors, settled).value, any(new is not old for new, old in zip(settled, tensors))


def _stand_for(value, name):
    """A tensor of its own for an array or for what is a tensor already."""
    if not isinstance(value, Tensor):
        return Tensor(value, name)
    tensor = value.with_array(value.array)
    tensor.name = name
    return tensor


def keep_trace(function):
    """Says of a function that all it refers to stays as it is, so that nobody has to look before its trace serves again."""
    _kept[function] = {}
    return function


def trace(function, symbols, what):
    """Calls a function with the symbols; `what` is "mask" or "score".

    A trace is shared by all functions with the same key, and each function has arrays of its own.
    """
    if not isinstance(function, types.FunctionType):
        if not callable(function):
            raise TypeError(f"{what} is a {type(function).__name__}; expected a function")
        return _finish(*_call(function, symbols, what), False)
    kept = _kept.get(function)
    if kept is None:
        return _trace(function, symbols, what)
    if what not in kept:
        kept[what] = _trace(function, symbols, what)
    return kept[what]


def _trace(function, symbols, what):
    description = _Description(function)
    found = description.arrays
    arrays = tuple([value.array if isinstance(value, Tensor) else value for _, value in found])
    key = (what, description.key) if description.key is not None else None
    known = _traces.get(key) if key is not None else None
    if known is not None:
        return Trace(known.value, known.tensors, arrays)
    tensors = {id(value): _stand_for(value, name) for name, value in found}
    value, has_settled = _call(_rebuild(function, tensors, description.functions, {}), symbols, what)
    is_sized = any(tensor.is_sized for tensor in tensors.values())
    if key is not None and len(tensors) == len(arrays) and not is_sized:
        result = Trace(value, tuple(tensors.values()), ())
        for tensor in result.tensors:
            tensor.array = None  # Other calls have others.
        if len(_traces) >= _MAX_TRACES:
            _traces.clear()
        _traces[key] = result
        return Trace(value, result.tensors, arrays)
    return _finish(value, has_settled, description.key is not None)


def _finish(value, has_settled, is_fixed):
    """The trace of what a function has returned."""
    result = _share(value)
    result.is_fixed, result.is_open = is_fixed, has_settled and not is_fixed
    return result


def of_value(value):
    """The trace of an expression whose tensors know their arrays."""
    tensors = find_tensors(value)
    return Trace(value, tensors, tuple([tensor.array for tensor in tensors]))


def find_tensors(value):
    """The tensors that an expression reads, in the order in which it does."""
    return _get_tensors(_in_order(value))


def describe_tensor(tensor):
    """What a kernel and its messages depend on of a tensor."""
    return tensor.name, tensor.dtype, tensor.is_bool, tensor.is_unsigned, tensor.rank


def _get_tensors(order):
    """The tensors that values are loaded from."""
    return tuple({id(node.operands[0]): node.operands[0] for node in order if node.op == "load"}.values())


def _in_order(value):
    """The values in an expression, each once, after those that it is computed from."""
    order, seen = [], set()
    for node in in_order([value], get_operands, seen):
        seen.add(id(node))
        order.append(node)
    return order


def _share(value):
    """The trace of an expression, with the values of an equal one before it, by which its kernel is found again."""
    order = _in_order(value)
    tensors = _get_tensors(order)
    places = {id(node): place for place, node in enumerate(order)}
    numbers = {id(tensor): number for number, tensor in enumerate(tensors)}
    parts = [describe_tensor(tensor) for tensor in tensors]
    for node in order:
        op, operands = node.op, node.operands
        if op == "load":
            parts.append((op, numbers[id(operands[0])], *[places[id(position)] for position in operands[1]]))
        elif op == "constant":
            parts.append((op, node.type, repr(operands[0])))
        elif op == "symbol":
            parts.append(operands)
        else:
            parts.append((op, node.type, *[places[id(operand)] for operand in operands]))
    key = tuple(parts)
    known = _shared.get(key)
    if known is None:
        if len(_shared) >= _MAX_TRACES:
            _shared.clear()
        known = _shared[key] = _copy(order, tensors, [tensor.with_array(None) for tensor in tensors])
    return Trace(known.value, known.tensors, tuple([tensor.array for tensor in tensors]))


def with_tensors(trace, tensors):
    """The trace of the same expression of other tensors of the same kinds."""
    return of_value(_copy(_in_order(trace.value), trace.tensors, tensors).value)


def _copy(order, tensors, others):
    """The trace of an expression of other tensors, without arrays."""
    copies = {id(tensor): other for tensor, other in zip(tensors, others)}
    for node in order:
        op, operands = node.op, node.operands
        if op == "load":
            tensor = copies[id(operands[0])]
            if isinstance(tensor, Value):  # A number that is known.
                copies[id(node)] = tensor
                continue
            operands = tensor, tuple([copies[id(position)] for position in operands[1]])
        elif op not in ("score", "symbol", "constant"):
            operands = tuple([copies[id(operand)] for operand in operands])
        # Attention knows the score itself.
        copies[id(node)] = node if op == "score" else Value(op, operands, node.type)
    return Trace(copies[id(order[-1])], tuple(others), ())
