"""From expressions to the text of a mask and of a score region.

A mask becomes an attribute as far as it is affine in the positions, since then the
compiler leaves out the tiles that it hides; the rest of it joins the score region,
which sets what it hides to minus infinity.
"""

import struct

from .errors import TraceError
from .expressions import BOOL, FLOAT, INDEX, to_float
from .ranges import get_range

# More sets than this are no faster than a look at each element.
MAX_SETS = 8

# ===----------------------------------------------------------------------=== #
# Affine sets
# ===----------------------------------------------------------------------=== #


def _affine(value):
    """The text of an affine expression; None if the value is not one."""
    if value.op == "symbol":
        return value.operands[0]
    if value.op == "constant":
        return str(value.operands[0]) if value.type == INDEX else None
    if value.op not in ("add", "sub", "mul", "floordiv", "mod") or value.type != INDEX:
        return None
    left, right = (_affine(operand) for operand in value.operands)
    if left is None or right is None:
        return None
    if value.op == "mul" and not any(operand.op == "constant" for operand in value.operands):
        return None
    if value.op == "mul" and value.operands[0].op == "constant":
        left, right = right, left
    sign = {"add": "+", "sub": "-", "mul": "*"}.get(value.op, value.op)
    return f"({left} {sign} {right})"


def _affine_sets(value, negated=False):
    """A union of sets, each a tuple of constraints; None if the value has no such form."""
    if value.type != BOOL:
        return None
    if value.op == "constant":
        return [()] if value.operands[0] != negated else []
    if value.op == "not":
        return _affine_sets(value.operands[0], not negated)
    if value.op in ("and", "or"):
        left, right = (_affine_sets(operand, negated) for operand in value.operands)
        if left is None or right is None:
            return None
        if (value.op == "or") != negated:
            sets = left + right
        else:
            sets = [a + b for a in left for b in right]
        return sets if len(sets) <= MAX_SETS else None
    if value.op not in ("lt", "le", "eq", "ne"):
        return None
    left, right = (_affine(operand) for operand in value.operands)
    if left is None or right is None:
        return None
    below, above = (f"{right} - {left} - 1 >= 0",), (f"{left} - {right} - 1 >= 0",)
    if value.op in ("eq", "ne"):
        return [(f"{left} - {right} == 0",)] if (value.op == "eq") != negated else [below, above]
    if value.op == "lt":
        return [(f"{left} - {right} >= 0",)] if negated else [below]
    return [above] if negated else [(f"{right} - {left} >= 0",)]


def affine_attributes(value):
    """The attributes of a mask's sets, in the form that `Program` takes; None if it is not affine."""
    sets = _affine_sets(value)
    if sets is None:
        return None
    texts = [", ".join(constraints) or "0 >= 0" for constraints in sets] or ["-1 >= 0"]
    return tuple(f"affine_set<(b, h, i, j)[nq, nk] : ({text})>" for text in texts)


def combine(kind, attributes):
    """A nest of "any_of" and "all_of" over attributes."""
    return attributes[0] if len(attributes) == 1 else (kind, *attributes)


def print_mask(mask, aliases):
    """The attribute of a mask; its sets get names, which MLIR's parser needs, in `aliases`."""
    if isinstance(mask, tuple):
        return f"#flash.{mask[0]}<[{', '.join(print_mask(part, aliases) for part in mask[1:])}]>"
    if mask.startswith("affine_set"):
        return f"#flash.affine<#{aliases.setdefault(mask, f'set{len(aliases)}')}>"
    return mask


def conjuncts(value):
    """The parts of a condition that must all hold."""
    if value.op == "and":
        return conjuncts(value.operands[0]) + conjuncts(value.operands[1])
    return [value]


# ===----------------------------------------------------------------------=== #
# The score region
# ===----------------------------------------------------------------------=== #

_FLOAT_OPS = {"add": "arith.addf", "sub": "arith.subf", "mul": "arith.mulf", "div": "arith.divf", "powf": "math.powf"}
_FLOAT_OPS.update(maximumf="arith.maximumf", minimumf="arith.minimumf", negf="arith.negf", absf="math.absf")
_FLOAT_OPS.update({name: f"math.{name}" for name in "exp exp2 log log2 sqrt rsqrt tanh sin cos erf floor ceil".split()})
_INDEX_OPS = {"add": "arith.addi", "sub": "arith.subi", "mul": "arith.muli"}
_LOGIC_OPS = {"and": "arith.andi", "or": "arith.ori", "xor": "arith.xori"}
_INDEX_PREDICATES = {"lt": "slt", "le": "sle", "eq": "eq", "ne": "ne"}
_FLOAT_PREDICATES = {"lt": "olt", "le": "ole", "eq": "oeq", "ne": "une"}
_INTEGERS = {4: "i8", 5: "i16", 6: "i32", 7: "i64"}
_ELEMENTS = {0: "f16", 1: "bf16", 2: "f32", 3: "f64", **_INTEGERS}


def float_constant(value):
    """A float32 constant, exact in text."""
    return f"0x{struct.unpack('<I', struct.pack('<f', value))[0]:08X} : f32"


class Region:
    """Collects the operations of a score region. Equal ones are written once."""

    def __init__(self, query_type, key_type, rank):
        self.lines = []
        self.captures = []
        self._ranges = []
        self._known = {}
        self._values = {}
        self._lengths = {"nq": ("%query", query_type), "nk": ("%key", key_type)}
        self._rank = rank

    def _emit(self, text):
        name = self._known.get(text)
        if name is None:
            name = self._known[text] = f"%{len(self._known)}"
            self.lines.append(f"{name} = {text}")
        return name

    def capture(self, tensor, positions):
        """The number of a captured tensor, the ranges of whose indices are noted."""
        for number, known in enumerate(self.captures):
            if known is tensor:
                break
        else:
            number = len(self.captures)
            self.captures.append(tensor)
            self._ranges.append({})
        for dimension, position in enumerate(positions):
            found = get_range(position)
            if found is not None:
                steps, text = found
                self._ranges[number][dimension, tuple(steps)] = text
        return number

    def get_ranges(self):
        """For each captured tensor (dimension, steps, text) of the indices whose range is known (`ranges`)."""
        return [[(*key, text) for key, text in ranges.items()] for ranges in self._ranges]

    def emit(self, value):
        """Writes what computes a value and returns its name."""
        known = self._values.get(id(value))
        if known is None:
            # The value is kept, so that its id stays its own.
            known = self._values[id(value)] = (self._emit_new(value), value)
        return known[0]

    def _emit_new(self, value):
        op, operands = value.op, value.operands
        if op == "score":
            return "%score"
        if op == "symbol":
            if operands[0] not in self._lengths:
                return f"%{operands[0]}"
            tensor, type = self._lengths[operands[0]]
            dimension = self._emit(f"arith.constant {self._rank - 2} : index")
            return self._emit(f"tensor.dim {tensor}, {dimension} : {type}")
        if op == "constant":
            return self._emit_constant(value)
        if op == "load":
            return self._emit_load(*operands)
        if op in ("floordiv", "mod"):
            return self._emit_division(value)
        names = [self.emit(operand) for operand in operands]
        if op == "to_float":
            integer = "i64" if _is_wide(operands[0]) else "i32"
            cast = self._emit(f"arith.index_cast {names[0]} : index to {integer}")
            return self._emit(f"arith.sitofp {cast} : {integer} to f32")
        if op == "not":
            return self._emit(f"arith.xori {names[0]}, {self._emit('arith.constant true')} : i1")
        if op == "select":
            return self._emit(f"arith.select {', '.join(names)} : {value.type}")
        if op in _INDEX_PREDICATES:
            kind = operands[0].type
            compare, predicates = ("cmpf", _FLOAT_PREDICATES) if kind == FLOAT else ("cmpi", _INDEX_PREDICATES)
            return self._emit(f"arith.{compare} {predicates[op]}, {', '.join(names)} : {kind}")
        ops = {FLOAT: _FLOAT_OPS, INDEX: _INDEX_OPS, BOOL: _LOGIC_OPS}[value.type]
        return self._emit(f"{ops[op]} {', '.join(names)} : {value.type}")

    def _emit_constant(self, value):
        number = value.operands[0]
        if value.type == FLOAT:
            return self._emit(f"arith.constant {float_constant(number)}")
        if value.type == BOOL:
            return self._emit(f"arith.constant {'true' if number else 'false'}")
        return self._emit(f"arith.constant {number} : index")

    def _emit_load(self, tensor, positions):
        number = self.capture(tensor, positions)
        names = ", ".join(self._emit_index(*place, number, tensor) for place in enumerate(positions))
        element = _ELEMENTS[tensor.dtype]
        loaded = self._emit(f"tensor.extract %capture{number}[{names}] : {capture_type(tensor)}")
        if tensor.is_bool:
            zero = self._emit("arith.constant 0 : i8")
            return self._emit(f"arith.cmpi ne, {loaded}, {zero} : i8")
        if tensor.dtype in _INTEGERS:
            cast = "index_castui" if tensor.is_unsigned else "index_cast"
            return self._emit(f"arith.{cast} {loaded} : {element} to index")
        if element == "f32":
            return loaded
        return self._emit(f"arith.{'truncf' if element == 'f64' else 'extf'} {loaded} : {element} to f32")

    def _emit_index(self, dimension, position, number, tensor):
        """An index; a negative constant counts from the end, as in NumPy."""
        name = self.emit(position)
        if position.op != "constant" or position.operands[0] >= 0:
            return name
        which = self._emit(f"arith.constant {dimension} : index")
        size = self._emit(f"tensor.dim %capture{number}, {which} : {capture_type(tensor)}")
        return self._emit(f"arith.addi {size}, {name} : index")

    def _emit_division(self, value):
        """Division that rounds down, by a positive constant. Positions are not negative, but differences can be."""
        left, right = (self.emit(operand) for operand in value.operands)
        zero = self._emit("arith.constant 0 : index")
        remainder = self._emit(f"arith.remsi {left}, {right} : index")
        negative = self._emit(f"arith.cmpi slt, {remainder}, {zero} : index")
        if value.op == "mod":
            wrapped = self._emit(f"arith.addi {remainder}, {right} : index")
            return self._emit(f"arith.select {negative}, {wrapped}, {remainder} : index")
        quotient = self._emit(f"arith.divsi {left}, {right} : index")
        one = self._emit("arith.constant 1 : index")
        lower = self._emit(f"arith.subi {quotient}, {one} : index")
        return self._emit(f"arith.select {negative}, {lower}, {quotient} : index")


def _is_wide(value):
    """Whether an integer is computed from elements of 32 bits without a sign, or of 64; positions need no more than 31."""
    pending, seen = [value], set()
    while pending:
        node = pending.pop()
        if node.op == "load":
            tensor = node.operands[0]
            if _ELEMENTS[tensor.dtype] == "i64" or (tensor.is_unsigned and _ELEMENTS[tensor.dtype] == "i32"):
                return True
        elif node.op not in ("symbol", "constant") and id(node) not in seen:
            seen.add(id(node))
            pending += node.operands
    return False


def capture_type(tensor):
    return f"tensor<{'?x' * tensor.rank}{_ELEMENTS[tensor.dtype]}>"


def check_score(value):
    """What a score function returned, as a score."""
    if value.type == BOOL:
        raise TraceError("the score function returns a truth value; a mask function does that, a score is a number")
    return to_float(value)
