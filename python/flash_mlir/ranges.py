"""Between which numbers an index lies, from its expression.

A range is a list of steps that a stack machine takes when a kernel is called and the sizes
are known: numbers, names of positions and of lengths, and operations on the ranges before
them. It is exact: both ends are reached by some position. Only expressions for which that
is so have one, which are those that look at each position once.
"""

from .values import INDEX

_POSITIONS = {"b": "b", "h": "h", "i": "q", "j": "k"}
_LENGTHS = {"nq": "query_length", "nk": "key_length"}
_SIGNS = {"add": "+", "sub": "-", "mul": "*", "floordiv": "//", "mod": "%"}
_MAX_STEPS = 64


class Inexact(Exception):
    """The ends of a range do not follow from the ends of its operands' ranges."""


class _Range:
    """
    Attributes:
      steps: What the stack machine does.
      positions: Those that the expression looks at.
      has_gaps: Whether there may be numbers between the ends that the expression is never equal to.
      text: The expression, as it was written.
    """

    def __init__(self, steps, positions, has_gaps, text):
        self.steps = steps
        self.positions = positions
        self.has_gaps = has_gaps
        self.text = text


def get_range(value):
    """(steps, text) of an index; None if its range does not follow from its expression."""
    try:
        found = _find(value, _MAX_STEPS)
    except Inexact:
        return None
    text = found.text
    return found.steps, text[1:-1] if text.startswith("(") else text


def _find(value, budget):
    op, operands = value.op, value.operands
    if value.type != INDEX or budget == 0:
        raise Inexact
    if op == "constant":
        return _Range([operands[0]], "", False, str(operands[0]))
    if op == "symbol":
        name = operands[0]
        if name in _LENGTHS:
            return _Range([name], "", False, _LENGTHS[name])
        return _Range([_POSITIONS[name]], _POSITIONS[name], False, _POSITIONS[name])
    if op == "select":
        op, operands = match_select(*operands)
    elif op not in _SIGNS:
        raise Inexact
    if op in ("floordiv", "mod") and (operands[1].op != "constant" or operands[1].operands[0] <= 0):
        raise Inexact
    parts = [_find(operand, budget - 1) for operand in operands]
    positions = "".join(part.positions for part in parts)
    steps = [step for part in parts for step in part.steps] + [op]
    if len(set(positions)) < len(positions) or len(steps) > _MAX_STEPS:
        raise Inexact
    has_gaps = any(part.has_gaps for part in parts)
    if op == "mul":
        has_gaps = True
    elif op == "mod":
        # From a number with gaps, neither 0 nor the greatest remainder need be reached.
        if has_gaps:
            raise Inexact
        has_gaps = operands[0].op != "symbol"
    elif op == "abs" and has_gaps:
        raise Inexact
    texts = [part.text for part in parts]
    text = f"({texts[0]} {_SIGNS[op]} {texts[1]})" if op in _SIGNS else f"{op}({', '.join(texts)})"
    return _Range(steps, positions, has_gaps, text)


def match_select(condition, a, b):
    """What `minimum`, `maximum` and `abs` make of integers."""
    if condition.op == "lt":
        left, right = condition.operands
        if _is_same(left, a) and _is_same(right, b):
            return "minimum", (a, b)
        if _is_same(left, b) and _is_same(right, a):
            return "maximum", (a, b)
        if left is b and _is_zero(right) and a.op == "sub" and _is_zero(a.operands[0]) and a.operands[1] is b:
            return "abs", (b,)
    raise Inexact


def _is_same(left, right):
    return left is right or (left.op == right.op == "constant" and left.operands == right.operands)


def _is_zero(value):
    return value.op == "constant" and value.operands[0] == 0
