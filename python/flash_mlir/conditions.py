"""Conditions with where, minimum, maximum, abs and exclusive or, as others without.

What is left is made of &, | and ~ over comparisons, which have no choice between two
integers any more. So the affine ones among them become masks.
"""

from .expressions import BOOL, INDEX, Value
from .values import get_operands
from .graphs import in_order

# Each choice in a comparison makes two comparisons of it.
MAX_CHOICES = 4


class Expander:
    """Rewrites conditions. What they share is shared afterwards, too."""

    def __init__(self):
        self._expanded = {}

    def expand(self, condition):
        """An equal condition."""
        for value in in_order([condition], get_operands, self._expanded):
            # The value is kept, so that its id stays its own.
            self._expanded[id(value)] = (self._rewrite(value), value)
        return self._get(condition)

    def _get(self, value):
        return self._expanded[id(value)][0]

    def _rewrite(self, value):
        if value.type != BOOL or value.op in ("symbol", "constant", "load"):
            return value
        if value.op in ("and", "or", "not"):
            operands = tuple(map(self._get, value.operands))
            is_same = all(new is old for new, old in zip(operands, value.operands))
            return value if is_same else Value(value.op, operands, BOOL)
        if value.op == "select":
            return _choose(*map(self._get, value.operands))
        if value.op == "xor":
            left, right = map(self._get, value.operands)
            return (left & ~right) | (~left & right)
        if value.op in ("lt", "le", "eq", "ne") and value.operands[0].type == INDEX:
            comparison = self._compare(value.op, *value.operands, MAX_CHOICES)
            return value if comparison is None else comparison
        return value

    def _compare(self, op, left, right, choices_left):
        """The condition `left op right` of integers; None where it has more choices, so that a choice would be left in one of
        the conditions that it would become."""
        choice = _find_choice(left, right)
        if choice is None:
            return Value(op, (left, right), BOOL)
        if choices_left == 0:
            return None

        def replace(operand):
            return _replace(left, choice, operand), _replace(right, choice, operand)

        def compare_with(operand):
            return self._compare(op, *replace(operand), choices_left - 1)

        condition, a, b = choice.operands
        sign = _get_sign(choice)
        terms = _linear(Value("sub", (right, left), INDEX))
        weight = terms.get(id(choice), (0,))[0]
        is_term = sign and weight and not any(
            _contains(value, choice) for _, value in terms.values() if value is not None and value is not choice
        )
        if not is_term:
            of_a = compare_with(a)
            of_b = None if of_a is None else compare_with(b)
            return None if of_b is None else _choose(self._get(condition), of_a, of_b)
        if op == "eq":
            return self._compare("le", left, right, choices_left) & self._compare("le", right, left, choices_left)
        if op == "ne":
            return self._compare("lt", left, right, choices_left) | self._compare("lt", right, left, choices_left)
        # The greatest is at most a number if both are, and at least one if either is; so for the least.
        parts = []
        for operand in (a, b):
            part = compare_with(operand)
            parts.append(Value(op, replace(operand), BOOL) if part is None else part)
        return parts[0] & parts[1] if sign * weight < 0 else parts[0] | parts[1]


def _choose(condition, a, b):
    return (condition & a) | (~condition & b)


def _find_choice(*roots):
    """A choice between integers in one of them that is in no other choice."""
    found, done = None, {}
    for value in in_order(roots, _get_index_operands, done):
        done[id(value)] = value
        if value.op == "select" and value.type == INDEX:
            found = value
    return found


def _get_index_operands(value):
    """Without the conditions of choices, and positions in arrays."""
    if value.op == "load":
        return ()
    return value.operands[1:] if value.op == "select" else get_operands(value)


def _contains(root, part):
    done = {}
    for value in in_order([root], _get_index_operands, done):
        done[id(value)] = value
    return id(part) in done


def _replace(root, part, by):
    """The expression with another one instead of a part."""
    if root is part:
        return by
    done = {id(part): (by, part)}
    for value in in_order([root], _get_index_operands, done):
        operands = _get_index_operands(value)
        replaced = tuple(done[id(operand)][0] for operand in operands)
        if any(new is not old for new, old in zip(replaced, operands)):
            kept = value.operands[:1] if value.op == "select" else ()
            done[id(value)] = (Value(value.op, kept + replaced, value.type), value)
        else:
            done[id(value)] = (value, value)
    return done[id(root)][0]


def _linear(root):
    """The sum that an integer is: a (factor, value) for each id of a value that is no sum itself, and for the
    constant, which has the id and the value None."""
    done = {}

    def merge(left, right, factor):
        terms = dict(left)
        for key, (weight, value) in right.items():
            total = terms.get(key, (0,))[0] + factor * weight
            terms[key] = (total, value)
        return {key: term for key, term in terms.items() if term[0]}

    def get_operands_of_sums(value):
        return value.operands if value.op in ("add", "sub", "mul") else ()

    for value in in_order([root], get_operands_of_sums, done):
        if value.op == "constant":
            terms = {None: (value.operands[0], None)} if value.operands[0] else {}
        elif value.op in ("add", "sub"):
            left, right = (done[id(operand)][0] for operand in value.operands)
            terms = merge(left, right, 1 if value.op == "add" else -1)
        elif value.op == "mul" and any(operand.op == "constant" for operand in value.operands):
            number, other = value.operands
            if number.op != "constant":
                number, other = other, number
            terms = merge({}, done[id(other)][0], number.operands[0])
        else:
            terms = {id(value): (1, value)}
        done[id(value)] = (terms, value)
    return done[id(root)][0]


def _get_sign(choice):
    """1 if a choice is the greatest of its values, -1 if it is the least, None if it is another.

    That is so if the condition compares x < y or x <= y, and the difference of the values is a multiple of x - y.
    """
    condition, a, b = choice.operands
    negation = 1
    while condition.op == "not":
        condition, negation = condition.operands[0], -negation
    if condition.op not in ("lt", "le") or condition.operands[0].type != INDEX:
        return None
    x, y = condition.operands
    compared = _linear(Value("sub", (x, y), INDEX))
    chosen = _linear(Value("sub", (a, b), INDEX))
    if not compared or compared.keys() != chosen.keys():
        return None
    key = next(iter(compared))
    if any(compared[key][0] * chosen[k][0] != chosen[key][0] * compared[k][0] for k in compared):
        return None
    # Where x < y, a is chosen: it is the least if a - b has the sign of x - y.
    is_least = compared[key][0] * chosen[key][0] * negation > 0
    return -1 if is_least else 1
