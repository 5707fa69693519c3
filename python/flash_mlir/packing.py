"""Rows of sequences that lie behind each other: the offsets of a call, and what programs say of them (docs/language.md)."""

import re

from .expressions import is_array

#: Of each operand and result by its name, whose offsets say where its rows are: those of queries (0) or of keys (1).
_SIDES = {
    "query": 0, "output": 0, "lse": 0, "output_grad": 0, "lse_grad": 0, "query_grad": 0,
    "key": 1, "value": 1, "key_grad": 1, "value_grad": 1,
}  # fmt: skip
_NAMES = "query", "key"
_ELEMENTS = {"int32": "i32", "int64": "i64"}
_MINUS_INFINITY = {"f32": "0xFF800000", "f64": "0xFFF0000000000000"}
_elements = {}

_DIM = re.compile(r"(%\w+) = tensor\.dim %(query|key), %\w+ : \$Q$")


def _get_element(name, offsets):
    if not is_array(offsets):
        raise TypeError(f"{name} is a {type(offsets).__name__}; expected an array of int32 or int64")
    element = _elements.get(offsets.dtype)
    if element is None:
        dtype = str(offsets.dtype).rpartition(".")[2]
        if dtype not in _ELEMENTS:
            raise TypeError(f"{name} has the dtype {dtype}; expected int32 or int64")
        element = _elements[offsets.dtype] = _ELEMENTS[dtype]
    if len(offsets.shape) != 1:
        dimensions = len(offsets.shape)
        raise ValueError(f"{name} has {dimensions} dimensions; expected 1: where each sequence starts, and the last one ends")
    return element


def get_key(query_offsets, key_offsets):
    """What programs depend on: the element types of the offsets of queries and of keys, or None for either."""
    return (
        None if query_offsets is None else _get_element("query_offsets", query_offsets),
        None if key_offsets is None else _get_element("key_offsets", key_offsets),
    )


def get_arrays(query_offsets, key_offsets):
    """The arrays that a call has behind the captured tensors."""
    return tuple([offsets for offsets in (query_offsets, key_offsets) if offsets is not None])


def refuse_plan(what="offsets"):
    raise ValueError(f"{what} are given beside a plan, and no plan is of packed rows; give the mask in place of the plan")


def refuse_blocks(what="offsets"):
    raise ValueError(f"{what} are given beside blocks, and no blocks are of packed rows; give a mask in place of the blocks")


class Packing:
    """The lines of a program of packed rows; `key` is None for one of a batch as usual."""

    def __init__(self, key):
        self._elements = key or (None, None)

    def is_packed(self, name):
        """Whether rows of an operand or a result are packed."""
        return name in _SIDES and self._elements[_SIDES[name]] is not None

    def get_type(self, name, type):
        """The type of an operand or a result in memory, of the one that attention sees."""
        return type.replace("<?x", "<1x", 1) if self.is_packed(name) else type

    def name(self, name):
        """What attention takes for an operand, or gives for a result."""
        return f"%{name}_rows" if self.is_packed(name) else f"%{name}"

    def get_arguments(self):
        """(name, type) of the arguments that offsets are."""
        found = zip(_NAMES, self._elements)
        return [(f"{name}_offsets", f"tensor<?x{element}>") for name, element in found if element is not None]

    def get_clauses(self):
        """What says how many rows each sequence has."""
        packed = [name for name in _NAMES if self.is_packed(name)]
        return [f"{name}_lengths(%{name}_count : tensor<?xi32>)" for name in packed]

    def _describe(self, name):
        side = _SIDES[name]
        return f"%{_NAMES[side]}_offsets", f"tensor<?x{self._elements[side]}>"

    def unpack(self, operands):
        """The views of operands, each given by its name and the type that attention sees."""
        lines = []
        for name, type in operands:
            if self.is_packed(name):
                offsets, of_offsets = self._describe(name)
                types = f"{self.get_type(name, type)}, {of_offsets} -> {type}, tensor<?xi32>"
                lines.append(f"{self.name(name)}, %{name}_count = flash.unpack %{name} by {offsets} : {types}")
        return lines

    def pack(self, results, operands):
        """The results of attention, given as operands are, in memory of their own: 0 in rows of no sequence, and -inf of a
        log-sum-exp."""
        types, sizes, lines = dict(operands), {}, []
        for name, type in results:
            if not self.is_packed(name):
                continue
            of, memory = _NAMES[_SIDES[name]], self.get_type(name, type)
            if of not in sizes:
                sizes[of] = f"%heads_of_{of}, %rows_of_{of}"
                for dim, size in enumerate(("heads", "rows"), 1):
                    lines.append(f"%{size}_dim_of_{of} = arith.constant {dim} : index")
                    of_memory = self.get_type(of, types[of])
                    lines.append(f"%{size}_of_{of} = tensor.dim %{of}, %{size}_dim_of_{of} : {of_memory}")
            offsets, of_offsets = self._describe(name)
            element = memory[:-1].rpartition("x")[2]
            nothing = _MINUS_INFINITY[element] if name == "lse" else "0.0"
            lines.append(f"%{name}_nothing = arith.constant {nothing} : {element}")
            lines.append(f"%{name}_empty = tensor.empty({sizes[of]}) : {memory}")
            fill = f"ins(%{name}_nothing : {element}) outs(%{name}_empty : {memory}) -> {memory}"
            lines.append(f"%{name}_memory = linalg.fill {fill}")
            by = f"by {offsets} into %{name}_memory : {type}, {of_offsets} into {memory}"
            lines.append(f"%{name} = flash.pack {self.name(name)} {by}")
        return lines

    def fill_region(self, lines):
        """The lines of a score region, in which lengths are those of a sequence."""
        counts, result = set(), []
        for line in lines:
            dim = _DIM.match(line)
            if not dim or not self.is_packed(dim[2]):
                result.append(line)
                continue
            name, of = dim.groups()
            if of not in counts:
                counts.add(of)
                result.append(f"%of_{of} = tensor.extract %{of}_count[%b] : tensor<?xi32>")
            result.append(f"{name} = arith.index_cast %of_{of} : i32 to index")
        return result
