"""Scalar expressions, which mask and score functions become when they are traced.

A function is called once with values of this module instead of numbers. What it
computes with them is a graph, and `lowering` makes a mask or a score region from it.
"""

import functools
import math
import numbers
import operator
import sys
import weakref

from . import _core
from .errors import TraceError
from .values import BOOL, FLOAT, INDEX
from .widths import Widths


class Traced:
    """What functions of NumPy and PyTorch take while they are traced, instead of numbers and arrays."""

    __slots__ = ()

    def __array_ufunc__(self, ufunc, method, *inputs, **options):
        if method != "__call__":
            raise TraceError(f"numpy.{ufunc.__name__}.{method} cannot be traced")
        return call_traced("numpy", ufunc, inputs, options)

    def __array_function__(self, function, types, arguments, options):
        return call_traced("numpy", function, arguments, options)

    @classmethod
    def __torch_function__(cls, function, types, arguments=(), options=None):
        return call_traced("torch", function, arguments, options)


class Value(Traced):
    """A number or truth value that is known when the kernel runs.

    The operators of Python, `where` and the functions of this package apply, and so do
    NumPy's and PyTorch's functions and methods with the same names. Integers are
    exact up to 64 bits; mixed with numbers, they become float32. Comparisons give truth values, combined
    with `&`, `|`, `^` and `~`, which are bitwise for integers. `//` rounds down, and `%` has the sign
    of the divisor; of an integer that is divided by 0 it is as if by 1. Casts truncate towards zero.
    """

    __slots__ = ("op", "operands", "type")
    __array_priority__ = 1000

    def __init__(self, op, operands, type):
        self.op = op
        self.operands = operands
        self.type = type

    def __fx_create_arg__(self, tracer):
        """torch.fx calls it where a tensor that it traces with is indexed."""
        raise TraceError(
            "torch.fx.symbolic_trace knows no elements of the tensors that a mask or score function reads; trace the "
            "function with torch.export or torch.jit.trace, or give the tensors to a flash_mlir.Attention before"
        )

    # Arithmetic.
    def __add__(self, other):
        return _arithmetic("add", self, other)

    def __radd__(self, other):
        return _arithmetic("add", other, self)

    def __sub__(self, other):
        return _arithmetic("sub", self, other)

    def __rsub__(self, other):
        return _arithmetic("sub", other, self)

    def __mul__(self, other):
        return _arithmetic("mul", self, other)

    def __rmul__(self, other):
        return _arithmetic("mul", other, self)

    def __truediv__(self, other):
        return Value("div", (to_float(self), to_float(other)), FLOAT)

    def __rtruediv__(self, other):
        return Value("div", (to_float(other), to_float(self)), FLOAT)

    def __floordiv__(self, other):
        return _divide("floordiv", self, other)

    def __rfloordiv__(self, other):
        return _divide("floordiv", other, self)

    def __mod__(self, other):
        return _divide("mod", self, other)

    def __rmod__(self, other):
        return _divide("mod", other, self)

    def __lshift__(self, other):
        return _of_bits("shl", self, other)

    def __rlshift__(self, other):
        return _of_bits("shl", other, self)

    def __rshift__(self, other):
        return _of_bits("shr", self, other)

    def __rrshift__(self, other):
        return _of_bits("shr", other, self)

    def __pow__(self, exponent):
        return _raise(self, lift(exponent))

    def __rpow__(self, base):
        return _raise(lift(base), self)

    def __neg__(self):
        return 0 - self if self.type == INDEX else Value("negf", (to_float(self),), FLOAT)

    def __pos__(self):
        return self

    def __abs__(self):
        if self.type == INDEX:
            return where(self < 0, -self, self)
        return Value("absf", (to_float(self),), FLOAT)

    # Comparisons.
    def __lt__(self, other):
        return _compare("lt", self, other)

    def __le__(self, other):
        return _compare("le", self, other)

    def __gt__(self, other):
        return _compare("gt", self, other)

    def __ge__(self, other):
        return _compare("ge", self, other)

    def __eq__(self, other):
        return _compare("eq", self, other)

    def __ne__(self, other):
        return _compare("ne", self, other)

    __hash__ = object.__hash__

    # Truth values, and the bits of integers.
    def __and__(self, other):
        return _logical("and", self, other)

    __rand__ = __and__

    def __or__(self, other):
        return _logical("or", self, other)

    __ror__ = __or__

    def __xor__(self, other):
        return _logical("xor", self, other)

    __rxor__ = __xor__

    def __invert__(self):
        return -1 - self if self.type == INDEX else Value("not", (to_bool(self),), BOOL)

    def __bool__(self):
        raise TraceError(
            "the truth of a traced value is known only when the kernel runs: use where(condition, a, b) instead of "
            "if, &, | and ~ instead of and, or and not, and two comparisons instead of a chain such as a <= b < c"
        )

    def __float__(self):
        raise TraceError(
            "a traced value has no number before the kernel runs; compute with it as it is, with functions of "
            "flash_mlir, NumPy or PyTorch instead of functions of math, and with x.astype(float) and x.astype(int)"
        )

    __int__ = item = __float__

    def __index__(self):
        raise TraceError(
            "a traced value has no number before the kernel runs, and indexes no list, tuple or range; make an array of what it indexes"
        )

    # Methods of arrays and tensors. `__getattr__` finds methods that have names of functions.
    def __getattr__(self, name):
        function = FUNCTIONS.get(name)
        if function is None:
            raise AttributeError(f"traced values have no {name}; {_list_functions()}")
        return functools.partial(_call_by_name, name, f"the method {name}", self)

    @property
    def dtype(self):
        """As `to` and `astype` take it: PyTorch's where that was imported, else NumPy's."""
        name = {INDEX: "int32", FLOAT: "float32", BOOL: "bool"}[self.type]
        torch = sys.modules.get("torch")
        return getattr(torch, name) if torch else sys.modules["numpy"].dtype(name)

    # A number has no dimensions.
    shape = ()
    ndim = 0

    def size(self):
        return ()

    def dim(self):
        return 0

    def numel(self):
        return 1

    @property
    def device(self):
        """None: values are wherever the kernel runs."""
        return None

    def astype(self, dtype):
        """The value as float32, as an integer, as a truth value, or rounded to what float16 or bfloat16 can hold."""
        if isinstance(dtype, Value):
            dtype = dtype.dtype
        name = dtype if isinstance(dtype, str) else getattr(dtype, "__name__", None) or str(dtype)
        cast = _CASTS.get(name.rpartition(".")[2])
        if cast is None:
            raise TraceError(
                f"there are no traced values of dtype {name}; float32, int32, int64 and bool are possible, and "
                "float16 and bfloat16, to which numbers are rounded"
            )
        return cast(self)

    type_as = astype

    def to(self, *arguments, dtype=None, device=None, non_blocking=False, copy=False):
        """The value as of a dtype, or as another value; devices have no meaning here."""
        for argument in (*arguments, dtype):
            is_device = type(argument).__name__ == "device" or str(argument).partition(":")[0] in ("cpu", "cuda")
            if argument is not None and not is_device:
                return self.astype(argument)
        return self

    def float(self):
        return to_float(self)

    def int(self):
        return to_index(self)

    long = int

    def bool(self):
        return self.astype("bool")

    def half(self):
        return self.astype("float16")

    def bfloat16(self):
        return self.astype("bfloat16")

    def clone(self):
        return self

    contiguous = cpu = cuda = detach = clone

    def where(self, condition, other):
        return where(condition, self, other)

    def masked_fill(self, condition, other):
        return where(condition, other, self)

    def new_full(self, size, fill_value, dtype=None, device=None):
        if size not in ((), []):
            raise TraceError(f"a traced value is a number; one of shape {size} cannot be made")
        return lift(fill_value).astype(self if dtype is None else dtype)

    def new_zeros(self, size=(), dtype=None, device=None):
        return self.new_full(size, 0, dtype)

    def new_ones(self, size=(), dtype=None, device=None):
        return self.new_full(size, 1, dtype)


def _list_functions():
    return "these can be traced: " + ", ".join(sorted(FUNCTIONS))


def call_traced(library, function, arguments, options):
    """Traces a function of another library by that of the same name here."""
    if function.__name__ == "__getitem__" and is_array(arguments[0]):
        return _capture(arguments[0])[arguments[1]]
    return _call_by_name(function.__name__, f"{library}.{function.__name__}", *arguments, **(options or {}))


def _call_by_name(name, what, /, *arguments, **options):
    """`what` is for messages."""
    arguments = [as_row(argument) for argument in arguments]
    try:
        row = next((argument for argument in arguments if hasattr(argument, "get_elements")), None)
        if row is not None:
            return row.call_by_name(name, what, arguments, options)
        traced = FUNCTIONS.get(name)
        if traced is None:
            raise TraceError(f"{what} cannot be traced; {_list_functions()}")
        # Numbers of the library would call it again.
        return traced(*[x if x is None or isinstance(x, (str, tuple, list)) else lift(x) for x in arguments], **options)
    except TraceError:
        raise
    except TypeError as error:
        raise TraceError(f"{what} cannot be traced with these arguments: {error}") from error


def as_row(value):
    """A captured tensor that has dimensions as a row (`rows`); anything else as it is."""
    if is_array(value) and value.ndim > 0:
        value = _capture(value)
    return value._get_row() if isinstance(value, Tensor) and value.rank > 0 else value


def list_elements(values):
    """The elements of a row, a list or a tuple, or what is one itself."""
    values = as_row(values)
    if hasattr(values, "get_elements"):
        return values.get_elements()
    return list(values) if isinstance(values, (list, tuple)) else [values]


def _symbol(name):
    return Value("symbol", (name,), INDEX)


BATCH, HEAD, QUERY, KEY = (_symbol(name) for name in "bhij")
SCORE = Value("score", (), FLOAT)

#: The number of queries and of keys, for mask and score functions.
query_length = _symbol("nq")
key_length = _symbol("nk")


def constant(value, type):
    return Value("constant", (value,), type)


def lift(value):
    """A Python, NumPy or zero-dimensional number as a value."""
    if isinstance(value, Value):
        return value
    if isinstance(value, Tensor):
        if value.rank == 0:
            return value[()]
        raise TraceError(f"{value.name} has {value.rank} dimensions; index it with {value.rank} positions")
    if is_array(value) and value.ndim == 0:
        captured = _capture(value)
        captured.is_number = not needs_gradient(value)
        return captured[()]
    if isinstance(value, bool) or type(value).__name__ in ("bool", "bool_"):
        return constant(bool(value), BOOL)
    if isinstance(value, numbers.Integral):
        if not -(2**63) <= int(value) < 2**63:
            text = f"the integer {value}" if abs(value) < 2**80 else "an integer"
            raise TraceError(f"{text} does not fit in 64 bits")
        return constant(int(value), INDEX)
    if isinstance(value, numbers.Real):
        return constant(to_float32(value, "a number"), FLOAT)
    row = as_row(value)
    if hasattr(row, "get_elements"):
        raise TraceError(f"a row of a captured tensor stands where a number is expected; index the {row.ndim} dimensions left")
    raise TraceError(
        f"a {type(value).__name__} cannot be traced; numbers, traced values and elements of captured tensors can"
    )


# Half a step above the greatest float32, from which numbers are rounded to infinity.
_FLOAT32_LIMIT = 2.0**128 - 2.0**103


def to_float32(value, what):
    """A number as a float that float32 has no infinity for, unless it is infinite."""
    try:
        number = float(value)
    except OverflowError:
        number, value = _FLOAT32_LIMIT, "a number of so many digits"
    if _FLOAT32_LIMIT <= abs(number) < math.inf:
        raise TraceError(f"{what} is {value}, which does not fit in float32")
    return number


def needs_gradient(value):
    """Whether it is a tensor that would lose its gradient by becoming a number."""
    return getattr(value, "requires_grad", False) and sys.modules["torch"].is_grad_enabled()


def refuse_gradient(value, what):
    """Raises NotImplementedError for a tensor that would lose its gradient by becoming a number."""
    if needs_gradient(value):
        raise NotImplementedError(
            f"{what} requires gradients, and attention has none of numbers; "
            "call it under torch.no_grad(), or detach() what it is given"
        )


def to_float(value):
    value = lift(value)
    if value.type == FLOAT:
        return value
    if value.op == "constant":
        return constant(float(value.operands[0]), FLOAT)
    if value.type == BOOL:
        return where(value, 1.0, 0.0)
    return Value("to_float", (value,), FLOAT)


def to_index(value):
    """Truncates a number towards zero. What 32 bits do not hold becomes the nearest that they do; NaN is no number."""
    value = lift(value)
    if value.type == INDEX:
        return value
    if value.type == BOOL:
        return constant(int(value.operands[0]), INDEX) if value.op == "constant" else where(value, 1, 0)
    if value.op == "constant" and -(2**31) <= value.operands[0] < 2**31:
        return lift(int(value.operands[0]))
    # The conversion itself is undefined beyond 32 bits.
    value = where(value > -(2.0**31), value, -(2.0**31))
    return Value("to_index", (where(value < _GREATEST, value, _GREATEST),), INDEX)


_GREATEST = 2.0**31 - 128  # Of the float32 numbers that 32 bits hold.


def _round_to(element):
    return lambda value: Value(f"round_{element}", (to_float(value),), FLOAT)


_CASTS = {name: to_float for name in ("float", "float32")}
_CASTS.update({name: to_index for name in ("int", "int32", "int64")})
_CASTS.update({name: lambda value: value if value.type == BOOL else value != 0 for name in ("bool", "bool_")})
_CASTS.update(float16=_round_to("f16"), bfloat16=_round_to("bf16"))


def to_bool(value):
    value = lift(value)
    if value.type != BOOL:
        raise TraceError("a condition is a truth value; compare numbers first")
    return value


def unify(left, right):
    """Two values of one type: integers if one is an integer and the other a truth value, numbers if one is a number."""
    left, right = lift(left), lift(right)
    if left.type == right.type:
        return left, right
    convert = to_float if FLOAT in (left.type, right.type) else to_index
    return convert(left), convert(right)


def _arithmetic(op, left, right):
    left, right = unify(left, right)
    if left.type == INDEX and left.op == right.op == "constant":
        return lift(getattr(operator, op)(left.operands[0], right.operands[0]))
    if left.type == BOOL:
        if op == "sub":
            raise TraceError("truth values have no difference; use ^, or x.int() - y.int()")
        return left | right if op == "add" else left & right
    return Value(op, (left, right), left.type)


def _raise(base, exponent):
    """A power; of an integer one, too, where the exponent is no number below 0: PyTorch makes an error or 0 of that."""
    is_short = exponent.op == "constant" and 0 < exponent.operands[0] <= 8
    if exponent.type == FLOAT or base.type == FLOAT and not is_short:
        return Value("powf", (to_float(base), to_float(exponent)), FLOAT)
    if base.type != FLOAT:
        base, exponent = to_index(base), to_index(exponent)
        if Widths().get_bounds(exponent)[0] < 0:
            return Value("powf", (to_float(base), to_float(exponent)), FLOAT)
        if exponent.op != "constant":
            return Value("ipow", (base, exponent), INDEX)
    # By squares: masks know products.
    result, rest = None, exponent.operands[0]
    while rest:
        if rest % 2:
            result = base if result is None else result * base
        rest //= 2
        base = base * base if rest else base
    return lift(1) if result is None else result


def _divide(op, left, right):
    """Floor division, or what is left of it."""
    left, right = unify(left, right)
    if left.type == FLOAT:
        return _divide_floats(op, left, right)
    left, right = to_index(left), to_index(right)
    if right.op == "constant":
        if right.operands[0] == 0:
            raise TraceError("an integer is divided by 0")
        if left.op == "constant":
            return lift(getattr(operator, op)(left.operands[0], right.operands[0]))
    return Value(op, (left, right), INDEX)


def _divide_floats(op, left, right):
    """As PyTorch does: a quotient that is nearly whole is so."""
    remainder = fmod(left, right)
    is_other_sign = (remainder != 0) & ((right < 0) ^ (remainder < 0))
    if op == "mod":
        return where(is_other_sign, remainder + right, remainder)
    quotient = (left - remainder) / right - where(is_other_sign, 1.0, 0.0)
    return where(right == 0, left / right, Value("roundeven", (quotient,), FLOAT))


def fmod(left, right):
    """What is left of a division that rounds towards zero."""
    left, right = unify(left, right)
    if left.type == FLOAT:
        return Value("remf", (left, right), FLOAT)
    left, right = to_index(left), to_index(right)
    remainder = left % right
    return where((remainder != 0) & ((left < 0) ^ (right < 0)), remainder - right, remainder)


def _of_bits(op, left, right):
    left, right = unify(left, right)
    if left.type == FLOAT:
        raise TraceError("integers and truth values alone have bits; x.long() makes an integer of a number")
    left, right = to_index(left), to_index(right)
    if left.op == right.op == "constant" and op not in ("shl", "shr"):
        return lift({"and": operator.and_, "or": operator.or_, "xor": operator.xor}[op](left.operands[0], right.operands[0]))
    return Value(op, (left, right), INDEX)


_MIRRORED = {"gt": "lt", "ge": "le"}


def _compare(op, left, right):
    left, right = lift(left), lift(right)
    if op in _MIRRORED:
        op, left, right = _MIRRORED[op], right, left
    if left.type == BOOL and right.type == BOOL and op in ("eq", "ne"):
        different = Value("xor", (left, right), BOOL)
        return different if op == "ne" else ~different
    left, right = unify(left, right)
    if left.type == BOOL:
        left, right = to_index(left), to_index(right)
    return Value(op, (left, right), BOOL)


def _logical(op, left, right):
    left, right = lift(left), lift(right)
    if left.type == right.type == BOOL:
        return Value(op, (left, right), BOOL)
    return _of_bits(op, left, right)


def where(condition, a, b):
    """`a` where the condition holds, `b` elsewhere."""
    condition = to_bool(condition)
    a, b = unify(a, b)
    return Value("select", (condition, a, b), a.type)


# The functions that are traced, by the names that they have in NumPy and PyTorch; `number_functions` fills it.
FUNCTIONS = {}


def is_traced(name):
    """Whether functions of other libraries that have this name are traced."""
    return name in FUNCTIONS


class Tensor(Traced):
    """A NumPy array or PyTorch tensor whose elements a mask or score function reads.

    Functions see the arrays of their closure and globals as such; elsewhere write
    `tensor(array)`. Indexed by as many integers as it has dimensions: floating-point
    elements are float32 numbers then, integers integers, and booleans truth values.
    A constant index that is negative counts from the end. All others must be in range;
    docs/python.md says where, and when that is checked.
    """

    _FIELDS = ("array", "name", "dtype", "is_bool", "is_unsigned", "rank", "is_number", "is_sized")
    __slots__ = (*_FIELDS, "__weakref__")

    #: What stands for the elements of one that has dimensions: `rows`, which is made of this module, sets it.
    row_type = None

    def __init__(self, array, name="a captured tensor"):
        self.array = array
        self.name = name
        # Whether it is a constant if nobody else has the array: one that the function has made of a number.
        self.is_number = False
        # Whether a function has read the sizes.
        self.is_sized = False
        self.dtype, self.is_bool, self.is_unsigned, self.rank = _core.inspect(array, name)

    def with_array(self, array):
        """A tensor of the same kind for another array, or for none."""
        copy = Tensor.__new__(Tensor)
        for name in Tensor._FIELDS:
            setattr(copy, name, getattr(self, name))
        copy.array = array
        return copy

    @property
    def ndim(self):
        return self.rank

    def dim(self):
        return self.rank

    @property
    def shape(self):
        """The sizes, on which the function depends then."""
        shape = getattr(self.array, "shape", None)
        if shape is None:
            raise TraceError(f"the sizes of {self.name} are not known here, as under torch.compile")
        self.is_sized = True
        return tuple(map(int, shape))

    def size(self, dim=None):
        return self.shape if dim is None else self.shape[dim]

    def __len__(self):
        return self.shape[0]

    def get_bounds(self):
        """The least and the greatest integer that an element can be."""
        bits = 8 << (self.dtype - 4)
        return (0, 2**bits - 1) if self.is_unsigned else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)

    def __getitem__(self, index):
        index = index if isinstance(index, tuple) else (index,)
        count = sum(position is not None and position is not Ellipsis for position in index)
        if count > self.rank:
            raise TraceError(f"{self.name} has {self.rank} dimensions, but is indexed with {count} positions")
        if count < len(index) or count < self.rank or not all(map(_is_number, index)):
            return self._get_row()[index]
        positions = tuple(lift(position) for position in index)
        for position in positions:
            if position.type != INDEX:
                raise TraceError(f"{self.name} is indexed with a value that is no integer")
        kind = BOOL if self.is_bool else FLOAT if self.dtype <= 3 else INDEX
        return Value("load", (self, positions), kind)

    def _get_row(self):
        return Tensor.row_type(self.rank, lambda: self.shape, self.__getitem__)

    def __getattr__(self, name):
        if name.startswith("__") or name in Tensor._FIELDS:
            raise AttributeError(f"a captured tensor has no {name} while functions are traced")
        return getattr(self._get_operand(), name)

    def _get_operand(self):
        return self._get_row() if self.rank > 0 else lift(self)

    def __array__(self, *arguments, **options):
        raise TraceError(f"{self.name} is a captured tensor; index it before computing with it")

    __array_ufunc__ = None


def _forward(name):
    def method(self, *others):
        return getattr(self._get_operand(), name)(*others)

    method.__name__ = name
    return method


# A captured tensor without dimensions is a number, any other its elements.
for _name in (
    "add radd sub rsub mul rmul truediv rtruediv floordiv rfloordiv mod rmod neg pos abs pow rpow lshift rlshift "
    "rshift rrshift lt le gt ge eq ne and rand or ror xor rxor invert bool float int index".split()
):
    setattr(Tensor, f"__{_name}__", _forward(f"__{_name}__"))


_captured = weakref.WeakValueDictionary()


def _capture(array):
    """What stands for a tensor that a function reached by a way that is not replaced, such as an attribute."""
    known = _captured.get(id(array))
    if known is None or known.array is not array:
        known = _captured[id(array)] = Tensor(array)
    return known


def _is_number(position):
    """Whether it is one position of an index."""
    return not isinstance(position, slice) and not hasattr(as_row(position), "get_elements")


def tensor(array, name="a captured tensor"):
    """An array for a mask or score function to read, where it is in neither the closure nor the globals."""
    return Tensor(array, name)


def is_array(object):
    """Whether it is an array: of NumPy, of PyTorch, or of another library that speaks DLPack."""
    return hasattr(type(object), "__dlpack__")
