"""Masks and score functions for a piece of the queries and a range of the keys.

They see positions of the whole sequence. Kernels number queries and keys from 0, so that their expressions are
rewritten:

- Where the last key of the range is the last that the last query of the piece may see under a causal mask, a query's
  position is q + key_length - query_length, counted from the range's first key. Causal masks and windows are the same
  there as in the whole sequence, and no kernel depends on where a piece lies.
- Elsewhere a position is the local one and a number. Numbers that cancel out, as of distances, vanish. Others become
  constants in a mask that reads no arrays, so that the compiler still leaves out what it hides; in what reads arrays,
  and in score functions, they are read from arrays without dimensions, and no kernel depends on them.
"""

import copy
import functools
import math

from .. import lowering
from ..expressions import (
    BATCH,
    BOOL,
    HEAD,
    INDEX,
    KEY,
    QUERY,
    SCORE,
    Tensor,
    Value,
    constant,
    key_length,
    lift,
    query_length,
)
from ..functions import find_tensors, trace
from ..graphs import in_order
from ..masks import Mask
from ..preparation import SYMBOLS, get_mask
from ..programs import Variant, get_function, with_packing, with_schedules
from ..values import get_operands
from .visible import Bounds, count_pairs, find_keys, get_bounds

_MAX_KNOWN = 1024
_known = {}
_CONSTANT = None


class Functions:
    """The mask and the score function of a call, and the arrays that they read now."""

    def __init__(self, mask, score):
        self.mask = self.condition = self.lengths = self.score = None
        self.arrays = ()
        tensors = ()
        if isinstance(mask, Mask):
            self.mask, key = mask, mask
            tensors, self.arrays, self.lengths = mask.tensors, mask.arrays, mask.lengths
        elif mask is not None:
            if not callable(mask):
                raise TypeError(f"mask is a {type(mask).__name__}; expected a Mask or a function of b, h, q and k")
            self.mask, key, self.arrays = get_mask(mask)
            tensors = self.mask.tensors
        else:
            key = None
        if self.mask is not None:
            self.condition = self.mask._trace.value
        score_key = None
        if score is not None:
            traced = trace(score, (SCORE, *SYMBOLS), "score")
            lowering.check_score(traced.value)
            self.score, score_key = traced.value, id(traced.value)
            tensors += traced.tensors
            self.arrays += traced.arrays
        self.tensors = tensors
        # By which what is made of them is found again, and what that names by its identity.
        self._key, self._owners = (key, score_key), (self.mask, self.score)

    def remember(self, what, make):
        """What `make` makes of the functions, once for all that are alike."""
        key = self._key, what
        found = _known.get(key)
        if found is None:
            if len(_known) >= _MAX_KNOWN:
                _known.clear()
            found = _known[key] = make(), self._owners
        return found[0]

    def without_arrays(self):
        """The same functions, which keep no arrays alive."""
        bare = copy.copy(self)
        bare.arrays = ()
        return bare

    def find_keys(self, piece, sizes):
        """The ranges of keys that the queries of a piece are computed with (`visible.find_keys`).

        The last one ends where causal masks are the same as in the whole sequence, if nothing behind that is seen.
        """
        if self.condition is None:
            return ((0, sizes[3]),) if sizes[3] and piece[0] < piece[1] else ()
        return self.remember(("keys", piece, sizes), lambda: self._find_keys(piece, sizes))

    def _find_keys(self, piece, sizes):
        ranges = find_keys(self.condition, piece, sizes)
        end = piece[1] + sizes[3] - sizes[2]
        if not ranges or not ranges[-1][0] < end < sizes[3]:
            return ranges
        behind = get_bounds((piece[0] + 0.0, piece[1] - 1.0), (end + 0.0, sizes[3] - 1.0), sizes).get(self.condition)[0]
        return ranges if behind else (*ranges[:-1], (ranges[-1][0], end))

    def count_pairs(self, piece, sizes):
        """How many pairs of a query of a piece and a key are computed, to some hundredths."""
        if self.condition is None:
            return (piece[1] - piece[0]) * sizes[3]
        return self.remember(("pairs", piece, sizes), lambda: count_pairs(self.condition, piece, sizes))

    def sees_later(self):
        """Whether a query may see keys behind it, in any sequence of as many queries as keys."""
        if self.condition is None:
            return True
        return self.remember("later", lambda: _sees_later(self.condition))

    def get_program(self, part, *options):
        """The `Program` of a part."""
        return self.remember((part.key, *options), lambda: Program(self, part, *options))

    def get_captured(self, program, part, arrays, device, of_sequences=None):
        """The arrays that a program reads, of `arrays` instead of the arrays that functions read; `of_sequences` are
        numbers by name.
        """
        numbers = part.get_numbers()
        captured = []
        for source in program.sources:
            if isinstance(source, int):
                captured.append(arrays[source])
            elif of_sequences is not None and source in of_sequences:
                captured.append(of_sequences[source])
            else:
                captured.append(_make_number(numbers[source], device))
        return tuple(captured)


class _Moved:
    """An integer of local positions, and what is added: how often each number of `Rewriter`, and a constant."""

    __slots__ = ("value", "terms")

    def __init__(self, value, terms):
        self.value, self.terms = value, {name: factor for name, factor in terms.items() if factor}


_ZERO = lift(0)


def moved(value, terms=None):
    """A value and what is added to it, for `Rewriter`."""
    return _Moved(_ZERO if isinstance(value, int) else value, terms or {})


class Rewriter:
    """Writes expressions of positions in the sequence as such of local ones.

    Args:
      symbols: By their names the `_Moved` that they are.
      read: Gives what a name in the terms stands for: a number, which becomes a constant, or a value.
      bounds: `visible.Bounds` of the piece and the range, by which truth values are known, or None.
    """

    def __init__(self, symbols, read, bounds=None):
        self._symbols, self._read, self._bounds = symbols, read, bounds
        self._done = {}

    def rewrite(self, root):
        for value in in_order([root], get_operands, self._done):
            # The value is kept, so that its id stays its own.
            self._done[id(value)] = (self._rewrite(value), value)
        return self._get(root)

    def _get(self, value):
        found = self._done[id(value)][0]
        return self._settle(found) if isinstance(found, _Moved) else found

    def _settle(self, moved):
        return self._add(moved.value, moved.terms)

    def _add(self, value, terms):
        """A value and what is added to it."""
        number = 0
        for name, factor in terms.items():
            read = 1 if name is _CONSTANT else self._read(name)
            if isinstance(read, int):
                number += factor * read
            elif value is _ZERO and factor == 1:
                value = read
            else:
                value = value + read if factor == 1 else value - read if factor == -1 else value + read * factor
        return value + number if number else value

    def _rewrite(self, value):
        op, operands = value.op, value.operands
        if op == "symbol":
            return self._symbols[operands[0]]
        if op == "constant":
            return _Moved(_ZERO, {_CONSTANT: operands[0]}) if value.type == INDEX else value
        if op == "score":
            return value
        if op == "load":
            return Value(op, (operands[0], tuple([self._get(each) for each in operands[1]])), value.type)
        if value.type == INDEX and op in ("add", "sub", "mul"):
            return self._compute(op, *[self._done[id(each)][0] for each in operands])
        if value.type == BOOL:
            return self._decide(value)
        return self._remake(value)

    def _compute(self, op, left, right):
        left, right = (each if isinstance(each, _Moved) else _Moved(each, {}) for each in (left, right))
        if op == "mul":
            if left.value is _ZERO and left.terms.keys() <= {_CONSTANT}:
                left, right = right, left
            if right.value is _ZERO and right.terms.keys() <= {_CONSTANT}:
                factor = right.terms.get(_CONSTANT, 0)
                return _Moved(_multiply(left.value, factor), {name: factor * each for name, each in left.terms.items()})
            return _Moved(self._settle(left) * self._settle(right), {})
        sign = 1 if op == "add" else -1
        terms = dict(left.terms)
        for name, factor in right.terms.items():
            terms[name] = terms.get(name, 0) + sign * factor
        if right.value is _ZERO:
            return _Moved(left.value, terms)
        if left.value is _ZERO and sign == 1:
            return _Moved(right.value, terms)
        return _Moved(left.value + right.value if sign == 1 else left.value - right.value, terms)

    def _decide(self, value):
        """A truth value, which is a constant where it is the same for all positions."""
        if self._bounds is not None:
            may_be_true, may_be_false = self._bounds.get(value)
            if not (may_be_true and may_be_false):
                return constant(bool(may_be_true), BOOL)
        op, operands = value.op, value.operands
        if op in ("lt", "le", "eq", "ne") and operands[0].type == INDEX:
            return self._compare(value, *[self._done[id(each)][0] for each in operands])
        if op == "not" and self._get(operands[0]).op == "constant":
            return constant(not self._get(operands[0]).operands[0], BOOL)
        if op in ("and", "or") and operands[0].type == BOOL:
            left, right = map(self._get, operands)
            for one, other in ((left, right), (right, left)):
                if one.op == "constant":
                    return other if one.operands[0] == (op == "and") else one
        return self._remake(value)

    def _compare(self, value, left, right):
        left, right = (each if isinstance(each, _Moved) else _Moved(each, {}) for each in (left, right))
        terms = dict(right.terms)
        for name, factor in left.terms.items():
            terms[name] = terms.get(name, 0) - factor
        terms = {name: factor for name, factor in terms.items() if factor}
        return Value(value.op, (left.value, self._add(right.value, terms)), BOOL)

    def _remake(self, value):
        operands = tuple(map(self._get, value.operands))
        if (
            value.op in ("floordiv", "mod")
            and operands[0].op == operands[1].op == "constant"
            and operands[1].operands[0]
        ):
            left, right = (each.operands[0] for each in operands)
            return lift(left // right if value.op == "floordiv" else left % right)
        if value.op == "select" and operands[0].op == "constant":
            return operands[1] if operands[0].operands[0] else operands[2]
        return Value(value.op, operands, value.type)


def _multiply(value, factor):
    return _ZERO if factor == 0 or value is _ZERO else value * factor


def _sees_later(condition):
    """Whether a mask may show a query a key that is behind it, in any sequence of as many queries as keys."""
    symbols = {"b": _Moved(BATCH, {}), "h": _Moved(HEAD, {}), "i": _Moved(_ZERO, {"i": 1})}
    symbols["j"] = _Moved(_ZERO, {"i": 1, "distance": 1, _CONSTANT: 1})
    symbols["nq"] = symbols["nk"] = _Moved(_ZERO, {"n": 1})
    values = {"i": QUERY, "distance": KEY, "n": key_length}
    rewritten = Rewriter(symbols, values.__getitem__).rewrite(condition)
    may_be_true, _ = Bounds({name: (0.0, math.inf) for name in ("b", "h", "i", "j", "nq", "nk")}).get(rewritten)
    return bool(may_be_true)


class Part:
    """A piece of the queries and a range of the keys, both as positions of the sequence, for heads from a first one on.

    `sizes` are the whole sequence's (batch, heads, query length, key length). Of packed rows, sequences end where the
    piece does (`aligned`), or with all their keys.
    """

    def __init__(self, queries, keys, sizes, first_head=0, heads=None, packed_as=None):
        self.queries, self.keys, self.sizes, self.first_head = queries, keys, sizes, first_head
        self.heads = sizes[1] if heads is None else heads
        self.packed_as = packed_as
        #: What distinguishes a part from others.
        self.key = queries, keys, sizes, first_head, self.heads, packed_as

    @property
    def is_aligned(self):
        """Whether the last query is as far from the last key as in the whole sequence."""
        if self.packed_as is not None:
            return self.packed_as == "aligned"
        return self.keys[1] - self.queries[1] == self.sizes[3] - self.sizes[2]

    def get_numbers(self):
        """What is added to local positions and heads, by name, and the lengths."""
        numbers = {
            "q": self.queries[0],
            "k": self.keys[0],
            "h": self.first_head,
            "nq": self.sizes[2],
            "nk": self.sizes[3],
        }
        if self.packed_as is not None:
            numbers.update(k=0)
        return numbers

    def get_bounds(self):
        if self.packed_as is not None:
            return None
        batch, _, *lengths = self.sizes
        queries, keys = ((start + 0.0, stop - 1.0) for start, stop in (self.queries, self.keys))
        bounds = get_bounds(queries, keys, (batch, 1, *lengths))
        bounds.symbols["h"] = (self.first_head + 0.0, self.first_head + self.heads - 1.0)
        return bounds


class Program:
    """What computes a part.

    Attributes:
      config: That of the variant, with the log-sum-exp.
      function: Its native function.
      sources: Of each captured tensor its number among the arrays of `Functions`, or the name of a number of
        `Part.get_numbers`.
    """

    def __init__(self, functions, part, scale, has_lengths, has_sink, schedules, packed):
        self._part, self._numbers = part, part.get_numbers()
        self._read_numbers = {}
        attribute, condition = self._move_mask(functions)
        score = functions.score
        if score is not None:
            score = self._make_rewriter(True).rewrite(score)
        variant = Variant(attribute, condition, score, scale, has_lengths, has_sink, True)
        self.config = variant.config if packed is None else with_packing(variant.config, packed)
        if schedules != (None, None):
            self.config = with_schedules(self.config, *schedules)
        self.function = get_function(self.config)
        numbers = {id(tensor): number for number, tensor in enumerate(functions.tensors)}
        numbers.update({id(tensor): name for name, tensor in self._read_numbers.items()})
        self.sources = tuple([numbers[id(tensor)] for tensor in variant.captures])

    def _move_mask(self, functions):
        """The attribute of the mask and the condition that is left."""
        part, condition = self._part, functions.condition
        if condition is None:
            return None, None
        bounds = part.get_bounds()
        if bounds is not None and not bounds.get(condition)[1]:
            return None, None
        attribute = functions.mask._attribute
        if (
            attribute is not None
            and part.is_aligned
            and _is_local(attribute, part.keys[0] == 0 or part.packed_as is not None)
        ):
            return functions.mask.lowered
        moved = None
        for conjunct in _split(condition):
            rewritten = self._make_rewriter(bool(find_tensors(conjunct)), bounds).rewrite(conjunct)
            moved = rewritten if moved is None else moved & rewritten
        return lowering.MaskBuilder().split(moved)

    def _make_rewriter(self, reads, bounds=None):
        """`reads` says whether numbers are read from arrays."""
        part, of_sequence = self._part, self._part.packed_as is not None
        same_lengths = of_sequence or part.sizes[2] == part.sizes[3]
        symbols = {"b": _Moved(BATCH, {}), "h": _Moved(HEAD, {"h": 1}), "j": _Moved(KEY, {"k": 1})}
        if part.is_aligned:
            to_length = {} if same_lengths else {"nq": 1, "nk": -1}
            symbols["i"] = _Moved(QUERY + key_length - query_length, {"k": 1, **to_length})
        else:
            # Numbers that are the same cancel out.
            symbols["i"] = _Moved(QUERY, {"k" if part.queries[0] == part.keys[0] and not of_sequence else "q": 1})
        symbols["nk"] = _Moved(_ZERO, {"nk": 1})
        symbols["nq"] = symbols["nk"] if same_lengths else _Moved(_ZERO, {"nq": 1})

        def read(name):
            is_of_sequences = of_sequence and name in ("q", "nk")
            if not is_of_sequences and (self._numbers[name] == 0 or not reads):
                return self._numbers[name]
            tensor = self._read_numbers.get(name)
            if tensor is None:
                tensor = self._read_numbers[name] = _make_tensor(1 if is_of_sequences else 0, name)
            return tensor[BATCH] if is_of_sequences else tensor[()]

        return Rewriter(symbols, read, bounds)


_NAMES = {
    "q": "the first query of a piece",
    "k": "its first key",
    "h": "its first head",
    "nq": "the number of queries",
    "nk": "the number of keys",
}


def _make_tensor(rank, name):
    """A tensor that stands for a number of this name, or for one of each sequence."""
    import numpy

    return Tensor(numpy.zeros((1,) * rank, numpy.int32), _NAMES[name])


def _is_local(attribute, sees_first):
    """Whether a named mask is the same for positions that are counted from a later key, and from the last one."""
    for part in in_order([attribute], lambda part: part.operands if part.kind != "named" else (), set()):
        if part.kind == "named":
            name = part.operands[0]
            if not name.startswith(("#flash.full", "#flash.window", "#flash.causal")) or "top_left" in name:
                if not (name.startswith("#flash.prefix") and sees_first):
                    return False
        elif part.kind not in ("any_of", "all_of"):
            return False
    return True


def _split(condition):
    """What a condition is the intersection of."""
    found, pending = [], [condition]
    while pending:
        value = pending.pop()
        if value.op == "and" and value.type == BOOL:
            pending += reversed(value.operands)
        else:
            found.append(value)
    return found


@functools.lru_cache(maxsize=1024)
def _make_number(number, device):
    import torch

    return torch.tensor(number, dtype=torch.int32, device=device)
