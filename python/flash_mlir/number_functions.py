"""Functions of numbers: this package's, and functions of NumPy and PyTorch that are traced."""

import functools
import math
import operator

from .errors import TraceError
from .expressions import BOOL, FLOAT, FUNCTIONS, INDEX, Value, fmod, lift, list_elements, to_float, unify, where


def _extremum(op, a, b):
    a, b = unify(a, b)
    if a.type == BOOL:
        return a & b if op == "minimumf" else a | b
    if a.type == INDEX:
        return where(a < b, a, b) if op == "minimumf" else where(a < b, b, a)
    return Value(op, (a, b), FLOAT)


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
tan = _unary("tan", "tan", "The tangent")
erf = _unary("erf", "erf", "The error function")
floor = _unary("floor", "floor", "The greatest integer that is not greater")
ceil = _unary("ceil", "ceil", "The least integer that is not less")


log1p = _unary("log1p", "log1p", "The natural logarithm of 1 + a number")
expm1 = _unary("expm1", "expm1", "e to the power of a number, less 1")
round = _unary("round", "roundeven", "The nearest integer, of two the even one")
trunc = _unary("trunc", "trunc", "The nearest integer towards zero")


def sigmoid(x):
    """1 / (1 + exp(-x)), in float32."""
    return 1.0 / (1.0 + exp(-to_float(x)))


def absolute(x):
    """The magnitude of a number."""
    return abs(lift(x))


def clip(x, min=None, max=None):
    """A number, or the bound that it is beyond. None is no bound; NaN if one is NaN."""
    x = lift(x)
    if min is not None:
        x = maximum(x, min)
    return x if max is None else minimum(x, max)


def sign(x):
    """-1, 0 or 1; NaN of NaN."""
    x = lift(x)
    if x.type == INDEX:
        return where(x > 0, 1, where(x < 0, -1, 0))
    x = to_float(x)
    return where(x > 0, 1.0, where(x < 0, -1.0, x))


# ===----------------------------------------------------------------------=== #
# Functions of NumPy and PyTorch
# ===----------------------------------------------------------------------=== #


def _clip(x, a_min=None, a_max=None, min=None, max=None):
    return clip(x, a_min if min is None else min, a_max if max is None else max)


def _div(a, b, rounding_mode=None):
    a, b = lift(a), lift(b)
    if rounding_mode is None:
        return a / b
    if rounding_mode == "floor":
        return a // b
    if rounding_mode != "trunc":
        raise TraceError(f"there is no rounding mode {rounding_mode!r}; 'floor' and 'trunc' are possible")
    return (a - fmod(a, b)) // b if FLOAT not in (a.type, b.type) else trunc(a / b)


def _full_like(x, fill_value, dtype=None, device=None):
    return x.new_full((), fill_value, dtype)


def _gelu(x, approximate="none"):
    x = to_float(x)
    if approximate == "none":
        return 0.5 * x * (1.0 + erf(x * math.sqrt(0.5)))
    if approximate != "tanh":
        raise TraceError(f"there is no approximation {approximate!r} of gelu; 'none' and 'tanh' are possible")
    return 0.5 * x * (1.0 + tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * x * x * x)))


def _softplus(x, beta=1, threshold=20):
    x = to_float(x)
    return where(x * beta > threshold, x, log1p(exp(x * beta)) / beta)


def _leaky_relu(x, negative_slope=0.01, inplace=False):
    return where(to_float(x) > 0, x, to_float(x) * negative_slope)


def _elu(x, alpha=1.0, inplace=False):
    return where(to_float(x) > 0, x, expm1(x) * alpha)


def _logaddexp(a, b):
    a, b = to_float(a), to_float(b)
    # The difference of infinite ones is not a number.
    return where((a == b) & (abs(a) == math.inf), a, maximum(a, b) + log1p(exp(-abs(a - b))))


def _lerp(start, end, weight):
    start, end = to_float(start), to_float(end)
    return where(to_float(weight) < 0.5, start + weight * (end - start), end - (end - start) * (1 - to_float(weight)))


def _isin(element, test_elements, assume_unique=False, invert=False):
    found = functools.reduce(operator.or_, [lift(element) == test for test in list_elements(test_elements)], lift(False))
    return ~found if invert else found


def _hypot(a, b):
    a, b = to_float(a), to_float(b)
    return sqrt(a * a + b * b)


def _atan2(a, b):
    return Value("atan2", (to_float(a), to_float(b)), FLOAT)


FUNCTIONS.update({f.__name__: f for f in (exp, exp2, expm1, log, log1p, log2, sqrt, rsqrt, tanh, sin, cos, tan, erf)})
FUNCTIONS.update({f.__name__: f for f in (floor, ceil, round, trunc, sigmoid, minimum, maximum, where, sign)})
FUNCTIONS.update(
    abs=absolute,
    absolute=absolute,
    fabs=absolute,
    around=round,
    rint=round,
    round_=round,
    fix=trunc,
    clip=_clip,
    clamp=_clip,
    clamp_min=maximum,
    clamp_max=minimum,
    # With two arguments; with one they reduce arrays.
    max=lambda a, b: maximum(a, b),
    min=lambda a, b: minimum(a, b),
    relu=lambda x, inplace=False: maximum(x, 0),
    silu=lambda x, inplace=False: to_float(x) * sigmoid(x),
    gelu=_gelu,
    softplus=_softplus,
    leaky_relu=_leaky_relu,
    elu=_elu,
    logaddexp=_logaddexp,
    lerp=_lerp,
    hypot=_hypot,
    isin=_isin,
    atan2=_atan2,
    arctan2=_atan2,
    fmod=fmod,
    square=lambda x: lift(x) * x,
    reciprocal=lambda x: 1.0 / to_float(x),
    isnan=lambda x: to_float(x) != to_float(x),
    isinf=lambda x: abs(to_float(x)) == float("inf"),
    isfinite=lambda x: abs(to_float(x)) < float("inf"),
    full_like=_full_like,
    zeros_like=lambda x, dtype=None, device=None: x.new_full((), 0, dtype),
    ones_like=lambda x, dtype=None, device=None: x.new_full((), 1, dtype),
    add=operator.add,
    subtract=operator.sub,
    sub=operator.sub,
    rsub=lambda a, b: b - a,
    multiply=operator.mul,
    mul=operator.mul,
    true_divide=operator.truediv,
    divide=_div,
    div=_div,
    floor_divide=operator.floordiv,
    remainder=operator.mod,
    pow=operator.pow,
    power=operator.pow,
    less=operator.lt,
    lt=operator.lt,
    less_equal=operator.le,
    le=operator.le,
    greater=operator.gt,
    gt=operator.gt,
    greater_equal=operator.ge,
    ge=operator.ge,
    equal=operator.eq,
    eq=operator.eq,
    not_equal=operator.ne,
    ne=operator.ne,
    logical_and=lambda a, b: a.bool() & b.bool(),
    logical_or=lambda a, b: a.bool() | b.bool(),
    logical_xor=lambda a, b: a.bool() ^ b.bool(),
    logical_not=lambda a: ~a.bool(),
    bitwise_and=operator.and_,
    bitwise_or=operator.or_,
    bitwise_xor=operator.xor,
    bitwise_not=operator.invert,
    bitwise_left_shift=operator.lshift,
    bitwise_right_shift=operator.rshift,
    left_shift=operator.lshift,
    right_shift=operator.rshift,
    invert=operator.invert,
    negative=operator.neg,
    neg=operator.neg,
    positive=operator.pos,
)
