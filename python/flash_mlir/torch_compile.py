"""What `flash_mlir.attention` is while torch.compile traces it.

Masks and score functions may be made in the function that is compiled: then they refer to tensors of the graph,
and no more than their types is known. So a function is described: by its code, and by what it refers to, as
constants and the numbers of tensors. The tensors become operands of the operator; from the description the function
is made again, outside of the graph, and traced as others are.

The methods of `_Description` are traced by Dynamo, and so keep to what that knows of Python. They do not call the
function itself: Dynamo traces no element of a tensor at several positions of ours.
"""

import ctypes
import operator
import sys
import types

import torch

from . import blocks as given_blocks
from . import jagged
from .errors import TraceError
from .expressions import Tensor, Value
from .functions import get_names
from .masks import Mask, NotedMask, make_noted
from .packing import refuse_gradients, split_arrays
from .preparation import autocast, get_kind, needs_table, prepare
from .programs import get_training_config, with_packing, without_names
from .torch_breaks import call_eagerly, call_object_eagerly
from .torch_operator import call
from .torch_state import needs_gradients

_PACKAGE = __name__.partition(".")[0]
# Dynamo of PyTorch 2.11 takes no other objects for constants, but their addresses, which it looks at in each call.
_REFUSES_OBJECTS = torch.__version__ < (2, 12)
_FINE_OBJECTS = (types.ModuleType, types.FunctionType, types.BuiltinFunctionType, type)
_CONSTANTS = (bool, str, bytes, torch.dtype)


@torch.compiler.assume_constant_result
def _get_names(code):
    """The globals and the attributes that code names."""
    names = get_names(code)
    return names.globals, names.attributes


def _get_closure(function):
    """The cells of a function; None where they, or defaults by keyword, cannot be described.

    Before PyTorch 2.14 that is so of functions that Dynamo made. For 2.11 each of their attributes is something that
    is not None, and nothing else is known of it.
    """
    if function.__kwdefaults__ is not None:
        return None
    try:
        return function.__closure__ or ()
    except AttributeError:
        return None


class _Description:
    """Notes what masks and score functions refer to.

    Attributes:
      tensors: The tensors of the graph.
      objects: What a constant cannot hold.
      is_complete: Whether all of it could be noted.
    """

    def __init__(self):
        self.tensors = []
        self.objects = []
        self.is_complete = True

    def _add_tensor(self, name, tensor):
        self.tensors.append(tensor)
        return "tensor", len(self.tensors) - 1, name, tensor.dtype, tensor.dim()

    def _add_object(self, value):
        if _REFUSES_OBJECTS and not isinstance(value, _FINE_OBJECTS):
            return "address", id(value)
        self.objects.append(value)
        return "object", len(self.objects) - 1

    def add(self, name, value, attributes=(), room=16):
        """A constant from which `_Maker` makes the value again.

        `attributes` are those that may be read of it. `room` is for functions that refer to functions: one that calls
        itself has no end. What is usual comes first: Dynamo looks in each call at every global that is named here.
        """
        if room == 0:
            self.is_complete = False
            return None
        room -= 1
        if value is None:
            return "constant", None
        if isinstance(value, torch.Tensor):
            return self._add_tensor(name, value)
        if isinstance(value, NotedMask):
            arguments = self._add_all(value.arguments, room)
            options = self._add_all(tuple(value.options.values()), room)
            return "noted", value.operation, arguments, tuple(value.options.keys()), options
        if isinstance(value, Mask):
            mask = self._add_object(value)
            if not _reads_arrays(mask, *self.objects):
                return mask
            arrays = self._add_all(value.arrays, room)
            lengths = None if value.lengths is None else self._add_tensor("lengths", value.lengths)
            return "mask", mask, arrays, lengths
        # What a graph would keep open, sizes and numbers that have changed, becomes known.
        if isinstance(value, float):
            return "constant", value.__float__()
        if isinstance(value, int) and not isinstance(value, bool):
            return "constant", operator.index(value)
        if isinstance(value, _CONSTANTS):
            return "constant", value
        if isinstance(value, (tuple, list)):
            return "tuple", self._add_all(value, room, attributes)
        if isinstance(value, dict):
            return "dict", tuple(value.keys()), self._add_all(tuple(value.values()), room, attributes)
        if isinstance(value, types.MethodType):
            function = self._add_function(value.__func__, room)
            names = _get_names(value.__func__.__code__)[1]
            return "method", function, self._add_parts(value.__self__, names, room)
        if isinstance(value, types.FunctionType) and not self._is_of_library(value):
            return self._add_function(value, room)
        if isinstance(value, Value):
            # It may have been made inside: an object that Dynamo knows, and nobody else.
            return "value", value.op, self._add_all(value.operands, room), value.type
        is_module = isinstance(value, torch.nn.Module)
        if isinstance(value, types.ModuleType) or (callable(value) and not is_module):
            return self._add_object(value)
        return self._add_parts(value, attributes, room)

    def _is_of_library(self, function):
        """Functions of libraries are what they are, unless they hold others."""
        if function.__code__.co_freevars or not hasattr(function, "__module__"):
            return False
        return (function.__module__ or "").partition(".")[0] in (_PACKAGE, "torch")

    def _add_all(self, values, room, attributes=()):
        return tuple([self.add(f"argument {i}", value, attributes, room) for i, value in enumerate(values)])

    def _add_parts(self, owner, names, room):
        """An object, by the attributes that are read."""
        parts = [(name, self.add(name, getattr(owner, name), names, room)) for name in names if hasattr(owner, name)]
        if not parts:
            self.is_complete = False
        return "parts", tuple(parts)

    def _add_function(self, function, room):
        code = function.__code__
        names, attributes = _get_names(code)
        closure = _get_closure(function)
        if closure is None:
            self.is_complete = False
            return None
        # Dynamo knows the globals of a function that it makes by this name alone; what wraps another has its name.
        scope = sys.modules.get(function.__module__)
        if scope is None or hasattr(function, "__wrapped__"):
            self.is_complete = False
        cells = []
        for name, cell in zip(code.co_freevars, closure):
            cells.append(self.add(name, cell.cell_contents, attributes, room))
        globals = [(n, self.add(n, getattr(scope, n), attributes, room)) for n in names if hasattr(scope, n)]
        defaults = self._add_all(function.__defaults__ or (), room, attributes)
        return "function", code, tuple(cells), tuple(globals), defaults


class _Maker:
    """Makes values from their descriptions. Values of tensors have the tensor's number as their array."""

    def __init__(self, objects):
        self._objects = objects

    def make(self, description):
        kind, *parts = description
        return getattr(self, f"_make_{kind}")(*parts)

    def _make_tensor(self, number, name, dtype, rank):
        tensor = Tensor(torch.empty((0,) * rank, dtype=dtype), name)
        tensor.array = number
        return tensor

    def _make_constant(self, value):
        return value

    def _make_object(self, number):
        return self._objects[number]

    def _make_address(self, number):
        # The caller has it.
        return ctypes.cast(number, ctypes.py_object).value

    def _make_noted(self, operation, arguments, names, options):
        return make_noted(operation, self._make_tuple(arguments), dict(zip(names, self._make_tuple(options))))

    def _make_mask(self, mask, arrays, lengths):
        return self.make(mask).with_tensors(self._make_tuple(arrays), lengths and self.make(lengths))

    def _make_value(self, op, operands, type):
        return Value(op, self._make_tuple(operands), type)

    def _make_tuple(self, parts):
        return tuple(map(self.make, parts))

    def _make_dict(self, keys, values):
        return dict(zip(keys, self._make_tuple(values)))

    def _make_method(self, function, owner):
        return types.MethodType(self.make(function), self.make(owner))

    def _make_parts(self, parts):
        return types.SimpleNamespace(**{name: self.make(part) for name, part in parts})

    def _make_function(self, code, cells, globals, defaults):
        scope = {name: self.make(part) for name, part in globals}
        cells = tuple([types.CellType(self.make(cell)) for cell in cells])
        return types.FunctionType(code, scope, None, self._make_tuple(defaults), cells)


@torch.compiler.assume_constant_result
def _reads_arrays(mask, *objects):
    made = _Maker(objects).make(mask)
    return bool(made.arrays) or made.lengths is not None


@torch.compiler.assume_constant_result
def _resolve(mask, score, scale, has_lengths, has_sink, return_lse, blocks_key, packed, schedule, *objects):
    """The configuration, that of training, the numbers of the captured tensors, and that of lengths which the mask knows."""
    maker = _Maker(objects)
    lengths = True if has_lengths else None
    functions = maker.make(mask), maker.make(score)
    prepared, captured, lengths = prepare(*functions, scale, lengths, has_sink, return_lse, blocks_key, packed, schedule)
    return prepared.config, get_training_config(prepared.config), captured, lengths


@torch.compiler.assume_constant_result
def _match(config, mask, score, scale, has_lengths, has_sink, return_lse, *objects):
    """The numbers of the captured tensors, None if functions cannot be traced from their description, and whether these
    are what they were when this configuration was made."""
    try:
        found, _, numbers, _ = _resolve(mask, score, scale, has_lengths, has_sink, return_lse, None, None, None, *objects)
    except TraceError:
        return None, False
    return numbers, without_names(found) == without_names(config)


def _note(mask):
    """A mask of functions, as it is made of these now; as it is, any other."""
    return mask.note() if isinstance(mask, Mask) and not isinstance(mask, NotedMask) else mask


@torch.compiler.assume_constant_result
def _pack(config, training_config, packed):
    """The configurations for packed rows."""
    return with_packing(config, packed), with_packing(training_config, packed)


def call_object(eager, attend, index, query, key, value, lengths, sink, packed=None, offsets=()):
    """A call of an `Attention`, as Dynamo traces it; `eager` is `flash_mlir.attention`."""
    if jagged.are_jagged(query, key, value):
        call_rows = lambda *x: call_object(eager, attend, index, *x[:3], lengths, sink, *x[3:])
        return jagged.attend(call_rows, query, key, value, packed is not None)
    given = query, key, value, lengths if attend._mask_lengths is None else None, sink
    is_anew, captured = (False, attend.captured) if attend._places is None else _get_captured(attend, index)
    if is_anew and attend._schedules == (None, None):
        mask, score, scale = attend._given
        return attention(eager, *given[:3], _note(mask), score, scale, *given[3:], attend.return_lse, None, packed, offsets)
    if captured is None:
        return call_object_eagerly(attend, *given, *split_arrays(packed, offsets))
    configs = attend._configs[index], attend._training_configs[index]
    if packed is not None:
        configs = _pack(*configs, packed)
        captured = [*captured, *offsets]
        if needs_gradients(query, key, value, sink, *captured):
            refuse_gradients(packed)
    return call(query, key, value, lengths, sink, captured, *configs, attend.return_lse)


def _get_captured(attend, index):
    """Whether the functions are to be traced anew, and what they read, as Dynamo finds it in variables and attributes.

    What stood there when the object was made is only returned where Dynamo does not know what functions refer to. None
    where a number in them is another one since: only a call outside of the graph keeps that and reads what is there.
    """
    if not attend._places.are_all:
        return True, None
    mask, score, scale = attend._given
    mask = _note(mask) if attend._plan is None else attend._plan.mask
    found = _Description()
    noted_mask, noted_score = found.add("mask", mask), found.add("score", score)
    if isinstance(scale, torch.Tensor) or not found.is_complete:
        return False, attend.captured
    has_lengths = index >= 2 and attend._mask_lengths is None
    config, has_sink = attend._configs[index], index % 2 == 1
    options = scale, has_lengths, has_sink, attend.return_lse
    numbers, is_same = _match(config, noted_mask, noted_score, *options, *found.objects)
    if numbers is None:
        return False, attend.captured
    tensors = [found.tensors[number] for number in numbers]
    if is_same:
        return False, tensors + list(attend.captured[len(numbers) :])
    return [get_kind(tensor) for tensor in tensors] != attend._kinds[: len(tensors)], None


def attention(
    eager, query, key, value, mask, score, scale, lengths, sink, return_lse, blocks=None, packed=None, offsets=(), schedule=None
):
    """`flash_mlir.attention`, as Dynamo traces it; `eager` is what it calls where it cannot be. `packed` is of
    `packing.get_key`, and `offsets` are the arrays."""
    query, key, value = autocast(query, key, value)
    if blocks is not None:
        given_blocks.check(blocks, query, key)
    if jagged.are_jagged(query, key, value):
        given = mask, score, scale, lengths, sink, return_lse, None
        return jagged.attend(lambda *x: attention(eager, *x[:3], *given, *x[3:], schedule), query, key, value, packed is not None)
    found = _Description()
    noted_mask, noted_score = found.add("mask", mask), found.add("score", score)
    if isinstance(scale, torch.Tensor) or not found.is_complete:
        of_packing = split_arrays(packed, offsets)
        return call_eagerly(eager, query, key, value, mask, score, scale, lengths, sink, return_lse, blocks, *of_packing, schedule)
    if isinstance(scale, float):
        scale = scale.__float__()
    has_lengths, has_sink = lengths is not None, sink is not None
    config, training_config, numbers, of_mask = _resolve(
        noted_mask, noted_score, scale, has_lengths, has_sink, return_lse, given_blocks.get_key(blocks), packed, schedule, *found.objects
    )
    captured = [found.tensors[number] for number in numbers]
    if packed is not None:
        captured += offsets
        if needs_gradients(query, key, value, sink, *captured):
            refuse_gradients(packed)
    if blocks is not None:
        if needs_table(blocks, (query, key, value, sink), captured):
            mask = given_blocks.read_table(blocks, mask, key.shape[-2])
            return attention(eager, query, key, value, mask, score, scale, lengths, sink, return_lse, None, None, (), schedule)
        captured += given_blocks.get_arrays(blocks)
    if not has_lengths and of_mask is not None:
        lengths = found.tensors[of_mask]
    return call(query, key, value, lengths, sink, captured, config, training_config, return_lse)
