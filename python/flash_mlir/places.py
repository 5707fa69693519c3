"""Where functions find the arrays that they read, so that it shows when there is another one."""

import functools
import types

from .expressions import is_array
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
    """Whether nothing is looked for in an object: in those of libraries, and in numbers and texts."""
    if is_array(part):
        return True
    if isinstance(part, (type, types.FunctionType)):
        return (part.__module__ or "").partition(".")[0] in _LIBRARIES
    return isinstance(part, _LEAVES)


_LIBRARIES = ("builtins", "flash_mlir", "numpy", "torch")
_LEAVES = (type(None), bool, int, float, complex, str, bytes, types.BuiltinFunctionType)


class Places:
    """The variables, attributes and elements of lists by which functions have reached arrays."""

    def __init__(self, functions, arrays):
        wanted = {}
        for array in arrays:
            base = getattr(array, "_base" if hasattr(array, "untyped_storage") else "base", None)
            wanted[id(array)] = array
            if base is not None:
                wanted[id(base)] = array
        missing = {id(array) for array in arrays}
        owners = [(function, None, None) for function in functions]
        seen = {id(function) for function in functions}
        steps = {}
        # The list grows, by what is farther away.
        for number, (owner, _, _) in enumerate(owners):
            if not missing or len(owners) > _MAX_OBJECTS:
                break
            for get, part in _get_parts(owner):
                if id(part) in wanted:
                    missing.discard(id(wanted[id(part)]))
                    _add_steps(steps, owners, (part, get, number))
                elif id(part) not in seen and not _is_leaf(part):
                    seen.add(id(part))
                    owners.append((part, get, number))
        self._steps = tuple(steps.values())

    def have_changed(self):
        """Whether there is something else in one of them."""
        for get, part in self._steps:
            if get() is not part:
                return True
        return False


def _add_steps(steps, owners, found):
    """Adds what leads to a part."""
    part, get, number = found
    while number is not None:
        if get is not None:
            steps[number, id(part)] = get, part
        part, get, number = owners[number]
