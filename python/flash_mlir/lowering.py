"""From expressions to the text of a mask and of a score region.

A mask becomes an attribute as far as it is affine in the positions, since then the
compiler leaves out the tiles that it hides; the rest of it joins the score region,
which sets what it hides to minus infinity.
"""

import struct
import weakref

from .conditions import Expander
from .errors import TraceError
from .expressions import BOOL, FLOAT, INDEX, to_float
from .values import get_operands
from .graphs import in_order
from .ranges import get_range
from .widths import Widths

# ===----------------------------------------------------------------------=== #
# Masks
# ===----------------------------------------------------------------------=== #

# An affine expression of more operations is computed for each element: a set cannot share parts of its expressions.
MAX_OPERATIONS = 64
_GREATEST_CONSTANT = 2**31 - 1


class Part:
    """A mask or a part of one. Equal ones are the same object.

    Attributes:
      kind: "any_of", "all_of", "affine", or "named" for masks that the language has a name for.
      operands: The parts of a union or an intersection; else one text, the constraint or the name.
    """

    __slots__ = ("kind", "operands", "__weakref__")

    def __new__(cls, kind, operands):
        part = _parts.get((kind, operands))
        if part is None:
            part = _parts[kind, operands] = super().__new__(cls)
            part.kind, part.operands = kind, operands
        return part

    def __reduce__(self):
        return Part, (self.kind, self.operands)


_parts = weakref.WeakValueDictionary()
_NOTHING = Part("affine", ("-1 >= 0",))


def combine(kind, parts):
    """The union or the intersection of some parts."""
    parts = tuple(dict.fromkeys(parts))
    return parts[0] if len(parts) == 1 else Part(kind, parts)


def _get_parts(part):
    return part.operands if part.kind in ("any_of", "all_of") else ()


def print_mask(mask, aliases):
    """The attribute of a mask. What it is made of gets names in `aliases`, so that shared parts are written once."""
    texts = {}
    for part in in_order([mask], _get_parts, texts):
        if part.kind == "named":
            text = part.operands[0]
        elif part.kind == "affine":
            # MLIR's parser wants a name for a set.
            affine_set = f"affine_set<(b, h, i, j)[nq, nk] : ({part.operands[0]})>"
            text = f"#flash.affine<#{aliases.setdefault(affine_set, f'set{len(aliases)}')}>"
        else:
            text = f"#flash.{part.kind}<[{', '.join(texts[id(inner)] for inner in part.operands)}]>"
            if part is not mask:
                text = "#" + aliases.setdefault(text, f"mask{len(aliases)}")
        texts[id(part)] = text
    return texts[id(mask)]


class MaskBuilder:
    """Finds the part of a condition that is a mask: one that is affine in the positions.

    Conditions are looked at as literals, (value, whether it is negated), so that negations end at comparisons.
    """

    def __init__(self):
        self._expander = Expander()
        self._expressions = {}
        self._masks = {}

    def split(self, condition):
        """A mask that keeps all elements that the condition does, or None, and the condition that is left, or None.

        An element is kept where both hold.
        """
        literal = _strip(condition, False)
        conjuncts = _flatten(literal) if _get_kind(literal) == "all_of" else [literal]
        masks, rest = [], None
        for conjunct in conjuncts:
            value, is_negated = conjunct
            mask, is_exact = self._get_mask(_strip(self._expander.expand(value), is_negated))
            if mask is not None:
                masks.append(mask)
            if not is_exact:
                value = ~value if is_negated else value
                rest = value if rest is None else rest & value
        return (combine("all_of", masks) if masks else None), rest

    def _get_mask(self, root):
        """The least known mask that contains a literal, None for that of all elements; and whether they are equal."""
        stack = [root]
        while stack:
            literal = stack[-1]
            if _key(literal) in self._masks:
                stack.pop()
                continue
            kind = _get_kind(literal)
            operands = _flatten(literal) if kind else ()
            missing = [operand for operand in operands if _key(operand) not in self._masks]
            if missing:
                stack += reversed(missing)
                continue
            # The value is kept, so that its id stays its own.
            self._masks[_key(literal)] = (literal[0], *self._combine(kind, literal, operands))
        return self._masks[_key(root)][1:]

    def _combine(self, kind, literal, operands):
        if not kind:
            return self._compare(*literal)
        known = [self._masks[_key(operand)] for operand in operands]
        is_exact = all(exact for _, _, exact in known)
        masks = [mask for _, mask, _ in known if mask is not None]
        if kind == "any_of" and len(masks) < len(known):
            return None, any(mask is None and exact for _, mask, exact in known)
        return (combine(kind, masks) if masks else None), is_exact

    def _compare(self, value, is_negated):
        """The mask of a comparison or a constant."""
        op = value.op
        if op == "constant":
            return (None if value.operands[0] != is_negated else _NOTHING), True
        if op not in ("lt", "le", "eq", "ne"):
            return None, False
        (left, _, weight), (right, _, more_weight) = (self._get_affine(operand) for operand in value.operands)
        if left is None or right is None or not _is_light(_add(weight, more_weight)):
            return None, False
        below, above = f"{right} - {left} - 1 >= 0", f"{left} - {right} - 1 >= 0"
        if op in ("eq", "ne"):
            constraints = [f"{left} - {right} == 0"] if (op == "eq") != is_negated else [below, above]
        elif op == "lt":
            constraints = [f"{left} - {right} >= 0" if is_negated else below]
        else:
            constraints = [above if is_negated else f"{right} - {left} >= 0"]
        return combine("any_of", [Part("affine", (constraint,)) for constraint in constraints]), True

    def _get_affine(self, root):
        """The text of an affine expression, of how many operations it is, and its weight: how large the factors and the
        constant in it can get at most. The text is None if the value is not affine, or too long, or too heavy."""
        for value in in_order([root], get_operands, self._expressions):
            # The value is kept, so that its id stays its own.
            self._expressions[id(value)] = (*self._print(value), value)
        return self._expressions[id(root)][:3]

    def _print(self, value):
        if value.op == "constant" and value.type == INDEX:
            number = value.operands[0]
            return (str(number) if abs(number) <= _GREATEST_CONSTANT else None), 0, (0, abs(number))
        if value.op == "symbol":
            return str(value.operands[0]), 0, (1, 0)
        if value.op not in ("add", "sub", "mul", "floordiv", "mod") or value.type != INDEX:
            return _NOT_AFFINE
        operands = value.operands
        if value.op == "mul" and operands[0].op == "constant":
            operands = operands[::-1]
        (left, left_size, weight), (right, right_size, more) = (self._expressions[id(each)][:3] for each in operands)
        size = left_size + right_size + 1
        if left is None or right is None or size > MAX_OPERATIONS:
            return _NOT_AFFINE
        if value.op not in ("add", "sub") and operands[1].op != "constant":
            return _NOT_AFFINE
        if value.op in ("floordiv", "mod") and operands[1].operands[0] <= 0:
            return _NOT_AFFINE
        if value.op == "mul":
            weight = tuple([more[1] * part for part in weight])
        else:
            weight = _add(weight, more)
        sign = {"add": "+", "sub": "-", "mul": "*"}.get(value.op, value.op)
        return (f"({left} {sign} {right})", size, weight) if _is_light(weight) else _NOT_AFFINE


_NOT_AFFINE = None, 0, (0, 0)


def _add(weight, other):
    return weight[0] + other[0], weight[1] + other[1]


def _is_light(weight):
    """Whether the language takes the constants."""
    return max(weight) <= _GREATEST_CONSTANT


def _strip(value, is_negated):
    """A literal whose value is no negation."""
    while value.op == "not":
        value, is_negated = value.operands[0], not is_negated
    return value, is_negated


def _key(literal):
    return id(literal[0]), literal[1]


def _get_kind(literal):
    """Whether a literal is a union or an intersection, or else None."""
    value, is_negated = literal
    if value.op not in ("and", "or"):
        return None
    return "all_of" if (value.op == "and") != is_negated else "any_of"


def _flatten(literal):
    """What a union or an intersection is of, each once, with unions in a union and intersections in an intersection taken apart."""
    kind, operands, seen, pending = _get_kind(literal), [], set(), [literal]
    while pending:
        current = pending.pop()
        if _key(current) in seen:
            continue
        seen.add(_key(current))
        if _get_kind(current) == kind:
            value, is_negated = current
            pending += [_strip(operand, is_negated) for operand in reversed(value.operands)]
        else:
            operands.append(current)
    return operands


# ===----------------------------------------------------------------------=== #
# The score region
# ===----------------------------------------------------------------------=== #

_FUNCTIONS = "exp exp2 expm1 log log1p log2 sqrt rsqrt tanh sin cos tan atan2 erf floor ceil roundeven trunc".split()
_FLOAT_OPS = {"add": "arith.addf", "sub": "arith.subf", "mul": "arith.mulf", "div": "arith.divf", "powf": "math.powf"}
_FLOAT_OPS["remf"] = "arith.remf"
_FLOAT_OPS.update(maximumf="arith.maximumf", minimumf="arith.minimumf", negf="arith.negf", absf="math.absf")
_FLOAT_OPS.update({name: f"math.{name}" for name in _FUNCTIONS})
_INDEX_OPS = {"add": "arith.addi", "sub": "arith.subi", "mul": "arith.muli", "select": "arith.select"}
_INDEX_OPS.update({"and": "arith.andi", "or": "arith.ori", "xor": "arith.xori", "shl": "arith.shli", "shr": "arith.shrsi"})
_INDEX_OPS["ipow"] = "math.ipowi"
_LOGIC_OPS = {"and": "arith.andi", "or": "arith.ori", "xor": "arith.xori"}
_INDEX_PREDICATES = {"lt": "slt", "le": "sle", "eq": "eq", "ne": "ne"}
_FLOAT_PREDICATES = {"lt": "olt", "le": "ole", "eq": "oeq", "ne": "une"}
_INTEGERS = {4: "i8", 5: "i16", 6: "i32", 7: "i64"}
_ELEMENTS = {0: "f16", 1: "bf16", 2: "f32", 3: "f64", **_INTEGERS}


def float_constant(value):
    """A float32 constant, exact in text."""
    return f"0x{struct.unpack('<I', struct.pack('<f', value))[0]:08X} : f32"


_LENGTHS = {"nq": "%query", "nk": "%key"}


class Region:
    """Collects the operations of a score region, with the marks of `fill_region`. Equal ones are written once."""

    def __init__(self):
        self.lines = []
        self.captures = []
        self._ranges = []
        self._known = {}
        self._values = {}
        self._widths = Widths()

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

    def emit(self, root):
        """Writes what computes a value and returns its name. Constant integers are written where they are used."""
        for value in in_order([root], get_operands, self._values):
            # The value is kept, so that its id stays its own.
            self._values[id(value)] = (self._emit_new(value), value)
        return self._values[id(root)][0]

    def _emit_new(self, value):
        op, operands = value.op, value.operands
        if op == "score":
            return "%score"
        if op == "symbol":
            if operands[0] not in _LENGTHS:
                return f"%{operands[0]}"
            dimension = self._emit("arith.constant $L : index")
            return self._emit(f"tensor.dim {_LENGTHS[operands[0]]}, {dimension} : $Q")
        if op == "constant":
            return self._emit_constant(value)
        if op == "load":
            return self._emit_load(*operands)
        if op == "to_float":
            integer = "i64" if self._widths.is_wide(operands[0]) else "i32"
            return self._emit(f"arith.sitofp {self._emit_as(operands[0], integer)} : {integer} to f32")
        if any(operand.type == INDEX for operand in operands):
            return self._emit_of_integers(value)
        names = [self.emit(operand) for operand in operands]
        if op == "to_index":
            narrow = self._emit(f"arith.fptosi {names[0]} : f32 to i32")
            return self._emit(f"arith.index_cast {narrow} : i32 to index")
        if op in ("round_f16", "round_bf16"):
            element = op[len("round_") :]
            narrow = self._emit(f"arith.truncf {names[0]} : f32 to {element}")
            return self._emit(f"arith.extf {narrow} : {element} to f32")
        if op == "not":
            return self._emit(f"arith.xori {names[0]}, {self._emit('arith.constant true')} : i1")
        if op == "select":
            return self._emit(f"arith.select {', '.join(names)} : {value.type}")
        if op in _FLOAT_PREDICATES:
            return self._emit(f"arith.cmpf {_FLOAT_PREDICATES[op]}, {', '.join(names)} : f32")
        ops = _FLOAT_OPS if value.type == FLOAT else _LOGIC_OPS
        return self._emit(f"{ops[op]} {', '.join(names)} : {value.type}")

    def _get_type(self, value):
        """Of the name of a value."""
        return "i64" if value.type == INDEX and self._widths.is_wide(value) else value.type

    def _emit_as(self, value, type):
        """The name of an integer of this type, or of what is none."""
        if value.type != INDEX:
            return self.emit(value)
        if value.op == "constant":
            return self._emit(f"arith.constant {value.operands[0]} : {type}")
        return self._cast(self.emit(value), self._get_type(value), type)

    def _cast(self, name, type, to):
        return name if type == to else self._emit(f"arith.index_cast {name} : {type} to {to}")

    def _emit_of_integers(self, value):
        """A comparison or another operation of integers, as wide as the widest of them."""
        op, operands = value.op, value.operands
        type = "i64" if any(self._get_type(each) == "i64" for each in (value, *operands)) else INDEX
        if op in ("floordiv", "mod"):
            return self._cast(self._emit_division(op, *operands, type), type, self._get_type(value))
        if op in ("shl", "shr"):
            return self._cast(self._emit_shift(op, *operands), "i64", self._get_type(value))
        names = [self._emit_as(operand, type) for operand in operands]
        if op in _INDEX_PREDICATES:
            return self._emit(f"arith.cmpi {_INDEX_PREDICATES[op]}, {', '.join(names)} : {type}")
        result = self._emit(f"{_INDEX_OPS[op]} {', '.join(names)} : {type}")
        return self._cast(result, type, self._get_type(value))

    def _emit_constant(self, value):
        number = value.operands[0]
        if value.type == FLOAT:
            return self._emit(f"arith.constant {float_constant(number)}")
        if value.type == BOOL:
            return self._emit(f"arith.constant {'true' if number else 'false'}")
        return None

    def _emit_load(self, tensor, positions):
        number = self.capture(tensor, positions)
        names = ", ".join(self._emit_index(*place, number, tensor) for place in enumerate(positions))
        element = _ELEMENTS[tensor.dtype]
        loaded = self._emit(f"tensor.extract %capture{number}[{names}] : {capture_type(tensor)}")
        if tensor.is_bool:
            zero = self._emit("arith.constant 0 : i8")
            return self._emit(f"arith.cmpi ne, {loaded}, {zero} : i8")
        if element == "i64":
            return loaded
        if tensor.is_unsigned and element == "i32":
            return self._emit(f"arith.extui {loaded} : i32 to i64")
        if tensor.dtype in _INTEGERS:
            cast = "index_castui" if tensor.is_unsigned else "index_cast"
            return self._emit(f"arith.{cast} {loaded} : {element} to index")
        if element == "f32":
            return loaded
        return self._emit(f"arith.{'truncf' if element == 'f64' else 'extf'} {loaded} : {element} to f32")

    def _emit_index(self, dimension, position, number, tensor):
        """An index; a negative constant counts from the end, as in NumPy."""
        name = self._emit_as(position, INDEX)
        if position.op != "constant" or position.operands[0] >= 0:
            return name
        which = self._emit(f"arith.constant {dimension} : index")
        size = self._emit(f"tensor.dim %capture{number}, {which} : {capture_type(tensor)}")
        return self._emit(f"arith.addi {size}, {name} : index")

    def _emit_shift(self, op, left, right):
        """A shift as PyTorch has it: by less than 0 or more than 63 bits, nothing but the sign is left of `>>`, and 0 of `<<`."""
        number, count = self._emit_as(left, "i64"), self._emit_as(right, "i64")
        low, high = self._widths.get_bounds(right)
        fits = None
        if low < 0 or high > 63:
            limit = self._emit("arith.constant 64 : i64")
            fits = self._emit(f"arith.cmpi ult, {count}, {limit} : i64")
            most = self._emit("arith.constant 63 : i64")
            count = self._emit(f"arith.select {fits}, {count}, {most} : i64")
        shifted = self._emit(f"{_INDEX_OPS[op]} {number}, {count} : i64")
        if fits is None or op == "shr":
            return shifted
        zero = self._emit("arith.constant 0 : i64")
        return self._emit(f"arith.select {fits}, {shifted}, {zero} : i64")

    def _emit_division(self, op, dividend, divisor, type):
        """Division that rounds down. Positions are not negative, but differences can be."""
        left, right = self._emit_as(dividend, type), self._emit_as(divisor, type)
        zero, one = (self._emit(f"arith.constant {number} : {type}") for number in (0, 1))
        low, high = self._widths.get_bounds(divisor)
        by, minus_one = right, None
        if low <= 0 <= high:
            is_zero = self._emit(f"arith.cmpi eq, {right}, {zero} : {type}")
            by = right = self._emit(f"arith.select {is_zero}, {one}, {right} : {type}")
        if low <= -1 <= high:
            # The least integer has no quotient by -1, and a processor raises an error for it.
            minus_one = self._emit(f"arith.constant -1 : {type}")
            is_minus_one = self._emit(f"arith.cmpi eq, {right}, {minus_one} : {type}")
            by = self._emit(f"arith.select {is_minus_one}, {one}, {right} : {type}")
        remainder = self._emit(f"arith.remsi {left}, {by} : {type}")
        # It has the sign of the dividend.
        is_other = self._emit(f"arith.cmpi slt, {remainder}, {zero} : {type}")
        if low < 0:
            is_negative = self._emit(f"arith.cmpi slt, {right}, {zero} : {type}")
            is_some = self._emit(f"arith.cmpi ne, {remainder}, {zero} : {type}")
            is_other = self._emit(f"arith.xori {is_other}, {is_negative} : i1")
            is_other = self._emit(f"arith.andi {is_other}, {is_some} : i1")
        if op == "mod":
            wrapped = self._emit(f"arith.addi {remainder}, {right} : {type}")
            return self._emit(f"arith.select {is_other}, {wrapped}, {remainder} : {type}")
        quotient = self._emit(f"arith.divsi {left}, {by} : {type}")
        lower = self._emit(f"arith.subi {quotient}, {one} : {type}")
        quotient = self._emit(f"arith.select {is_other}, {lower}, {quotient} : {type}")
        if minus_one is None:
            return quotient
        negative = self._emit(f"arith.subi {zero}, {left} : {type}")
        return self._emit(f"arith.select {is_minus_one}, {negative}, {quotient} : {type}")


def fill_region(line, query_type, rank):
    """A line of a region for query and key of a type and a rank: $Q is the type, and $L the dimension of lengths."""
    return line.replace("$Q", query_type).replace("$L", str(rank - 2))


def get_capture_type(dtype, rank):
    return f"tensor<{'?x' * rank}{_ELEMENTS[dtype]}>"


def capture_type(tensor):
    return get_capture_type(tensor.dtype, tensor.rank)


def check_score(value):
    """What a score function returned, as a score."""
    if value.type == BOOL:
        raise TraceError("the score function returns a truth value; a mask function does that, a score is a number")
    return to_float(value)
