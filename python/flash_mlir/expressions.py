"""Scalar expressions, which mask and score functions become when they are traced.

A function is called once with values of this module in place of numbers. What it
computes with them is a graph, from which `lowering` makes a mask or a score region.
"""

import math
import numbers
import operator
import sys

from .errors import TraceError

INDEX, FLOAT, BOOL = "index", "f32", "i1"


class Value:
    """A number or truth value that is known when the kernel runs.

    The operators of Python, `where` and the functions of this package apply, and so do
    those of NumPy and PyTorch of the same name. Integers are exact; mixed with numbers,
    they become float32. Comparisons give truth values, combined with `&`, `|` and `~`.
    """

    __slots__ = ("op", "operands", "type")
    __array_priority__ = 1000

    def __init__(self, op, operands, type):
        self.op = op
        self.operands = operands
        self.type = type

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

    def __mod__(self, other):
        return _divide("mod", self, other)

    def __pow__(self, exponent):
        if isinstance(exponent, numbers.Integral) and 0 < exponent <= 8:
            result = self
            for _ in range(exponent - 1):
                result = result * self
            return result
        return Value("powf", (to_float(self), to_float(exponent)), FLOAT)

    def __rpow__(self, base):
        return Value("powf", (to_float(base), to_float(self)), FLOAT)

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

    # Truth values.
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
        return Value("not", (to_bool(self),), BOOL)

    def __bool__(self):
        raise TraceError(
            "the truth of a traced value is known only when the kernel runs: use where(condition, a, b) in place of "
            "if, &, | and ~ in place of and, or and not, and two comparisons in place of a chain such as a <= b < c"
        )

    def __float__(self):
        raise TraceError("a traced value has no number before the kernel runs; compute with it as it is")

    __int__ = __index__ = __float__

    def __array_ufunc__(self, ufunc, method, *inputs, **options):
        if method != "__call__":
            raise TraceError(f"numpy.{ufunc.__name__}.{method} cannot be traced")
        return _call("numpy", ufunc, inputs, options)

    def __array_function__(self, function, types, arguments, options):
        return _call("numpy", function, arguments, options)

    @classmethod
    def __torch_function__(cls, function, types, arguments=(), options=None):
        return _call("torch", function, arguments, options)


def _call(library, function, arguments, options):
    """Traces a function of another library by that of the same name here."""
    traced = _FUNCTIONS.get(function.__name__)
    if traced is None or options:
        names = ", ".join(sorted(_FUNCTIONS))
        raise TraceError(f"{library}.{function.__name__} cannot be traced; these can: {names}")
    # Numbers of the library would call it again.
    return traced(*(lift(argument) for argument in arguments))


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
        refuse_gradient(value, "a number that a function reads")
        value = value.item()
    if isinstance(value, bool) or type(value).__name__ in ("bool", "bool_"):
        return constant(bool(value), BOOL)
    if isinstance(value, numbers.Integral):
        if not -(2**31) <= int(value) < 2**31:
            text = f"the integer {value}" if abs(value) < 2**64 else "an integer"
            raise TraceError(f"{text} does not fit in 32 bits")
        return constant(int(value), INDEX)
    if isinstance(value, numbers.Real):
        return constant(to_float32(value, "a number"), FLOAT)
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


def refuse_gradient(value, what):
    """Raises NotImplementedError for a tensor that would lose its gradient by becoming a number."""
    if getattr(value, "requires_grad", False) and sys.modules["torch"].is_grad_enabled():
        raise NotImplementedError(
            f"{what} requires gradients, and attention has no backward pass yet; "
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


def to_bool(value):
    value = lift(value)
    if value.type != BOOL:
        raise TraceError("&, | and ~ combine truth values; compare numbers first")
    return value


def _arithmetic(op, left, right):
    left, right = lift(left), lift(right)
    if left.type == INDEX and right.type == INDEX:
        if left.op == right.op == "constant":
            return lift(getattr(operator, op)(left.operands[0], right.operands[0]))
        return Value(op, (left, right), INDEX)
    return Value(op, (to_float(left), to_float(right)), FLOAT)


def _divide(op, left, right):
    left = lift(left)
    positive = isinstance(right, numbers.Integral) and right > 0
    if left.type != INDEX or not positive:
        raise TraceError("// and % divide integers by a positive constant; use / for other numbers")
    return Value(op, (left, lift(right)), INDEX)


_MIRRORED = {"gt": "lt", "ge": "le"}


def _compare(op, left, right):
    left, right = lift(left), lift(right)
    if op in _MIRRORED:
        op, left, right = _MIRRORED[op], right, left
    if left.type == BOOL and right.type == BOOL and op in ("eq", "ne"):
        different = Value("xor", (left, right), BOOL)
        return different if op == "ne" else ~different
    if left.type != INDEX or right.type != INDEX:
        left, right = to_float(left), to_float(right)
    return Value(op, (left, right), BOOL)


def _logical(op, left, right):
    return Value(op, (to_bool(left), to_bool(right)), BOOL)


def where(condition, a, b):
    """`a` where the condition holds, `b` elsewhere."""
    condition, a, b = to_bool(condition), lift(a), lift(b)
    if a.type != b.type:
        a, b = to_float(a), to_float(b)
    return Value("select", (condition, a, b), a.type)


def _extremum(op, a, b):
    a, b = lift(a), lift(b)
    if a.type == INDEX and b.type == INDEX:
        return where(a < b, a, b) if op == "minimumf" else where(a < b, b, a)
    return Value(op, (to_float(a), to_float(b)), FLOAT)


def minimum(a, b):
    """The lesser of two numbers; NaN if one is NaN."""
    return _extremum("minimumf", a, b)


def maximum(a, b):
    """The greater of two numbers; NaN if one is NaN."""
    return _extremum("maximumf", a, b)


def _unary(name, op, what):
    def function(x):
        return Value(op, (to_float(x),), FLOAT)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{what}, in float32."
    return function


exp = _unary("exp", "exp", "e to the power of a number")
exp2 = _unary("exp2", "exp2", "2 to the power of a number")
log = _unary("log", "log", "The natural logarithm")
log2 = _unary("log2", "log2", "The logarithm to base 2")
sqrt = _unary("sqrt", "sqrt", "The square root")
rsqrt = _unary("rsqrt", "rsqrt", "The reciprocal of the square root")
tanh = _unary("tanh", "tanh", "The hyperbolic tangent")
sin = _unary("sin", "sin", "The sine")
cos = _unary("cos", "cos", "The cosine")
erf = _unary("erf", "erf", "The error function")
floor = _unary("floor", "floor", "The greatest integer that is not greater")
ceil = _unary("ceil", "ceil", "The least integer that is not less")


def sigmoid(x):
    """1 / (1 + exp(-x)), in float32."""
    return 1.0 / (1.0 + exp(-to_float(x)))


def absolute(x):
    """The magnitude of a number."""
    return abs(lift(x))


_FUNCTIONS = {f.__name__: f for f in (exp, exp2, log, log2, sqrt, rsqrt, tanh, sin, cos, erf, floor, ceil)}
_FUNCTIONS.update(sigmoid=sigmoid, minimum=minimum, maximum=maximum, where=where, abs=absolute, absolute=absolute)
_FUNCTIONS.update(
    add=operator.add,
    subtract=operator.sub,
    sub=operator.sub,
    rsub=lambda a, b: b - a,
    multiply=operator.mul,
    mul=operator.mul,
    true_divide=operator.truediv,
    divide=operator.truediv,
    div=operator.truediv,
    less=operator.lt,
    less_equal=operator.le,
    greater=operator.gt,
    greater_equal=operator.ge,
    equal=operator.eq,
    not_equal=operator.ne,
    logical_and=operator.and_,
    logical_or=operator.or_,
    logical_not=operator.invert,
    bitwise_and=operator.and_,
    bitwise_or=operator.or_,
    bitwise_not=operator.invert,
    negative=operator.neg,
    neg=operator.neg,
)


def is_traced(name):
    """Whether functions of other libraries that have this name are traced."""
    return name in _FUNCTIONS


class Tensor:
    """A NumPy array or PyTorch tensor whose elements a mask or score function reads.

    Functions see the arrays of their closure and globals as such; elsewhere write
    `tensor(array)`. Indexed by as many integers as it has dimensions: floating-point
    elements are float32 numbers then, integers integers, and booleans truth values.
    A constant index that is negative counts from the end. All others must be in range
    for each position, also where a mask hides it; `ranges` says when that is checked.
    """

    __slots__ = ("array", "name", "dtype", "is_bool", "is_unsigned", "rank")

    def __init__(self, array, name="a captured tensor"):
        from . import _core

        self.array = array
        self.name = name
        self.dtype, self.is_bool, self.is_unsigned, self.rank = _core.inspect(array, name)

    def without_array(self):
        """A tensor of the same kind, which keeps no array."""
        copy = Tensor.__new__(Tensor)
        for name in Tensor.__slots__:
            setattr(copy, name, getattr(self, name))
        copy.array = None
        return copy

    def __getitem__(self, index):
        index = index if isinstance(index, tuple) else (index,)
        if len(index) != self.rank:
            raise TraceError(f"{self.name} has {self.rank} dimensions, but is indexed with {len(index)} positions")
        positions = tuple(lift(position) for position in index)
        for position in positions:
            if position.type != INDEX:
                raise TraceError(f"{self.name} is indexed with a value that is no integer")
        kind = BOOL if self.is_bool else FLOAT if self.dtype <= 3 else INDEX
        return Value("load", (self, positions), kind)

    def _number(self):
        return lift(self)

    def __array__(self, *arguments, **options):
        raise TraceError(f"{self.name} is a captured tensor; index it before computing with it")

    __array_ufunc__ = None


def _forward(name):
    def method(self, *others):
        return getattr(self._number(), name)(*others)

    method.__name__ = name
    return method


# A captured tensor without dimensions is a number.
for _name in (
    "add radd sub rsub mul rmul truediv rtruediv floordiv mod neg abs pow lt le gt ge and rand or ror invert".split()
):
    setattr(Tensor, f"__{_name}__", _forward(f"__{_name}__"))


def tensor(array, name="a captured tensor"):
    """An array for a mask or score function to read, where it is in neither the closure nor the globals."""
    return Tensor(array, name)


def is_array(object):
    """Whether it is a NumPy array or a PyTorch tensor."""
    numpy, torch = sys.modules.get("numpy"), sys.modules.get("torch")
    return (numpy is not None and isinstance(object, numpy.ndarray)) or (
        torch is not None and isinstance(object, torch.Tensor)
    )
