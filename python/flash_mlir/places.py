"""Where functions find the arrays that they read, so that it shows when there is another one."""

import functools
import types

from .expressions import Tensor, is_array
from .functions import get_names

# What a function can reach may be large, such as all the modules of a model; arrays are mostly near.
_MAX_OBJECTS = 20000


def _get_cell(cell):
    try:
        return cell.cell_contents
    except ValueError:  # Empty.
        return None


def _get_item(items, index):
    return items[index] if index < len(items) else None


def _of_dictionary(items):
    return [(functools.partial(items.get, key), value) for key, value in items.items()]


def _get_parts(owner):
    """What an object refers to: for each part what gets it, or None if it stays the same, and the part."""
    kind = type(owner)
    if kind is types.FunctionType:
        parts = [(functools.partial(_get_cell, cell), _get_cell(cell)) for cell in owner.__closure__ or ()]
        scope = owner.__globals__
        names = [name for name in get_names(owner.__code__).globals if name in scope]
        parts += [(functools.partial(scope.get, name), scope[name]) for name in names]
        return parts + [(None, part) for part in (owner.__defaults__, owner.__kwdefaults__, vars(owner))]
    if kind is types.MethodType:
        return [(None, owner.__func__), (None, owner.__self__)]
    if kind is functools.partial:
        return [(None, part) for part in (owner.func, owner.args, owner.keywords)]
    if kind is tuple:
        return [(None, part) for part in owner]
    if kind is list:
        return [(functools.partial(_get_item, owner, index), part) for index, part in enumerate(owner)]
    if isinstance(owner, dict):
        return _of_dictionary(owner)
    if kind is types.ModuleType:
        return [(get, part) for get, part in _of_dictionary(vars(owner)) if is_array(part)]
    if isinstance(owner, type):
        return _of_dictionary(vars(owner))
    # Of an object, the class has the functions.
    return [(None, kind), *_of_dictionary(getattr(owner, "__dict__", {}))]


def _is_leaf(part):
    """Whether nothing is looked for in an object: in objects of libraries, and in numbers and texts."""
    if is_array(part):
        return True
    if isinstance(part, (type, types.FunctionType)):
        return (part.__module__ or "").partition(".")[0] in _LIBRARIES
    return isinstance(part, _LEAVES)


_LIBRARIES = ("builtins", "flash_mlir", "numpy", "torch")
_LEAVES = (type(None), bool, int, float, complex, str, bytes, types.BuiltinFunctionType)


class Places:
    """The variables, attributes and elements of lists by which functions have reached arrays.

    Attributes:
      are_all: Whether each array was found. Others, which functions computed, may be others at each call, as may be
        numbers that are constants.
    """

    def __init__(self, traced):
        """`traced` has functions and their traces."""
        arrays = [array for _, trace in traced for array in trace.arrays]
        wanted = {}
        for array in arrays:
            base = getattr(array, "_base" if hasattr(array, "untyped_storage") else "base", None)
            wanted[id(array)] = array
            if base is not None:
                wanted[id(base)] = array
        missing = {id(array) for array in arrays}
        owners = [(function, None, None) for function, _ in traced]
        seen = {id(function) for function, _ in traced}
        steps = {}
        self._roots = []
        # The list grows, by what is farther away.
        for number, (owner, _, _) in enumerate(owners):
            if not missing or len(owners) > _MAX_OBJECTS:
                break
            for get, part in _get_parts(owner):
                array = part.array if isinstance(part, Tensor) else part
                if id(array) in wanted:
                    missing.discard(id(wanted[id(array)]))
                    self._roots.append(_add_steps(steps, owners, (part, get, number)))
                elif id(part) not in seen and not _is_leaf(part):
                    seen.add(id(part))
                    owners.append((part, get, number))
        self._steps = tuple(steps.values())
        self.are_all = not any(
            trace.is_open or not trace.is_fixed and any(id(array) in missing for array in trace.arrays)
            for _, trace in traced
        )

    def have_changed(self):
        """Whether there is, or may be, something else in one of them."""
        for get, part in self._steps:
            if get() is not part:
                return True
        return not self.are_all

    def are_in(self, memo):
        """Whether `copy_function` leads to copies of all arrays, after `copy.deepcopy` has copied what it knows."""
        return self.are_all and all(id(part) in memo for part in self._roots)


class Unknown:
    """Stands for `Places` that have not been looked for."""

    are_all = True

    def have_changed(self):
        return True


def _add_steps(steps, owners, found):
    """Adds what leads to a part, and returns the first one on the way that `copy_function` does not copy."""
    part, get, number = found
    first = part
    while number is not None:
        owner = owners[number][0]
        if get is not None:
            steps[number, id(part)] = get, part
        is_global = type(owner) is types.FunctionType and get is not None and get.func is not _get_cell
        if is_global or type(part) not in _COPIED:
            first = part
        part, get, number = owners[number]
    return first if type(part) in _COPIED else part


_COPIED = (types.FunctionType, types.MethodType, functools.partial, tuple)


def copy_function(function, memo):
    """A function that sees what `copy.deepcopy` has copied, by the memo, instead of the originals."""
    known = memo.get(id(function))
    if known is not None:
        return known
    kind = type(function)
    if kind is tuple:
        return tuple([copy_function(part, memo) for part in function])
    if kind is types.MethodType:
        return types.MethodType(*[copy_function(part, memo) for part in (function.__func__, function.__self__)])
    if kind is functools.partial:
        parts = [copy_function(part, memo) for part in (function.func, *function.args)]
        return functools.partial(*parts, **function.keywords)
    if kind is not types.FunctionType or not (function.__closure__ or function.__defaults__):
        return function
    cells = tuple([types.CellType() for _ in function.__closure__ or ()])
    made = types.FunctionType(function.__code__, function.__globals__, function.__name__, None, cells)
    # A function may be in a cell of its own.
    memo[id(function)] = made
    for cell, original in zip(cells, function.__closure__ or ()):
        content = _get_cell(original)
        if content is not None:
            cell.cell_contents = copy_function(content, memo)
    made.__defaults__ = copy_function(function.__defaults__, memo)
    made.__kwdefaults__ = function.__kwdefaults__
    made.__dict__.update(function.__dict__)
    return made
