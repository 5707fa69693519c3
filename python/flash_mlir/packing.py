"""Sequences of lengths of their own: rows that lie behind each other, keys in pages, and batches with fewer keys than rows.

That is what a call says of them, and what programs do (docs/language.md).
"""

import operator
import re

from .expressions import is_array
from .operands import get_dtype

#: For each operand and result by its name, which offsets say where its rows are: the queries' (0) or the keys' (1).
_SIDES = {
    "query": 0, "output": 0, "lse": 0, "output_grad": 0, "lse_grad": 0, "query_grad": 0,
    "key": 1, "value": 1, "key_grad": 1, "value_grad": 1,
}  # fmt: skip
_NAMES = "query", "key"
LENGTHS = "lengths"
_ELEMENTS = {"int32": "i32", "int64": "i64"}
_MINUS_INFINITY = {"f32": "0xFF800000", "f64": "0xFFF0000000000000"}
_elements = {}

_DIM = re.compile(r"(%\w+) = tensor\.dim %(query|key), %\w+ : \$Q$")


def _look_up(name, array, expected="int32 or int64"):
    """The element type of integers of a call; None for any other."""
    if not is_array(array):
        raise TypeError(f"{name} is a {type(array).__name__}; expected an array of {expected}")
    dtype = array.dtype
    if dtype not in _elements:
        _elements[dtype] = _ELEMENTS.get(get_dtype(array))
    return _elements[dtype]


def _get_element(name, offsets):
    element = _look_up(name, offsets)
    if element is None:
        raise TypeError(f"{name} has the dtype {get_dtype(offsets)}; expected int32 or int64")
    _check_rank(name, offsets, 1, "1: where each sequence starts, and the last one ends")
    return element


def _check_rank(name, array, rank, what):
    if len(array.shape) != rank:
        raise ValueError(f"{name} has {len(array.shape)} dimensions; expected {what}")


def check_int32(name, array, rank, what):
    """Raises an error for what is no array of int32 of this rank."""
    if is_array(array) and _elements.get(array.dtype) == "i32" and len(array.shape) == rank:
        return
    if _look_up(name, array, "int32") != "i32":
        raise TypeError(f"{name} has the dtype {get_dtype(array)}; expected int32, to which it may be cast once")
    _check_rank(name, array, rank, what)


def _get_kind_of_keys(key, key_offsets, page_table, key_lengths):
    if key_lengths is not None:
        check_int32("key_lengths", key_lengths, 1, "1: how many keys each sequence has")
        if key_offsets is not None:
            raise ValueError("key_lengths and key_offsets are given, and packed keys have the lengths of their offsets; leave one out")
        if page_table is None:
            return LENGTHS
    if page_table is None:
        return None if key_offsets is None else _get_element("key_offsets", key_offsets)
    check_int32("page_table", page_table, 2, "2: the pages of each sequence, in their order")
    if key_lengths is None:
        raise ValueError("page_table is given without key_lengths, which say how many keys each sequence has")
    if not is_array(key) or len(key.shape) != 4:
        found = f"has {len(key.shape)} dimensions" if is_array(key) else f"is a {type(key).__name__}"
        raise ValueError(f"key {found}; with page_table it is (pages, rows of a page, heads, head dimension)")
    return get_page(key)


def get_page(key):
    """How many rows a page has."""
    page = operator.index(key.shape[1])
    if page == 0:
        raise ValueError("key has pages of no rows")
    return page


def get_key(query_offsets, key_offsets, page_table=None, key_lengths=None, key=None):
    """What programs depend on, of queries and of keys: None for a batch as usual, or the element type of their offsets; of keys,
    too, how many rows a page has, or "lengths" for a batch that has key_lengths.
    """
    return (
        None if query_offsets is None else _get_element("query_offsets", query_offsets),
        _get_kind_of_keys(key, key_offsets, page_table, key_lengths),
    )


def get_arrays(query_offsets, key_offsets, page_table=None, key_lengths=None):
    """The arrays that a call has behind the captured tensors."""
    return tuple([array for array in (query_offsets, key_offsets, page_table, key_lengths) if array is not None])


#: Of the exceptions that take a message alone.
_MODULES = "builtins", "flash_mlir.errors"


#: Names of `attention` that are words, too: what stands before and behind them where they are names.
_WORDS = "query", "key", "value", "sink", "scale"
_BEFORE = re.compile(r"(^|, |\(|\b(of|that|as|and|cast) )\Z")
_BEHIND = re.compile(r" (is|has|on|by|requires) | has\Z|\.dtype| \w+( of shape |;)|[;,.]|\Z")
#: What is said of an array that a function reads, which may have any name.
_OF_READ = re.compile(r" has size | is read ")


def _is_name(match):
    before, behind = match.string[: match.start()], match.string[match.end() :]
    if _OF_READ.match(behind):
        return False
    if match[0] == "lengths":  # Arrays of lengths are the subject.
        return not before
    return match[0] not in _WORDS or bool(_BEFORE.search(before) and _BEHIND.match(behind))


def rename(error, swapped=(), **names):
    """An error of `attention` for the caller of another function, which has other names of these arrays. The arrays that are called
    one of `swapped` have heads behind the rows there."""
    words = re.compile(rf"\b({'|'.join(names)})\b")
    message = words.sub(lambda match: names[match[0]] if _is_name(match) else match[0], str(error))
    if swapped:
        array = rf"\b({'|'.join(swapped)})"
        message = re.sub(rf"{array}( is)? (\w+ of shape|has the shape) \((\d+), (\d+), (\d+), (\d+)\)", r"\1\2 \3 (\4, \6, \5, \7)", message)
        message = re.sub(rf"({array} has stride -?\d+ in dimension )([12])\b", lambda match: f"{match[1]}{3 - int(match[3])}", message)
    # Exceptions of the caller's functions may take other arguments.
    return error if message == str(error) or type(error).__module__ not in _MODULES else type(error)(message)


def split_arrays(key, arrays):
    """(query_offsets, key_offsets, page_table, key_lengths) of these arrays, None for what is not among them."""
    of_queries, of_keys = key or (None, None)
    arrays = list(arrays)
    query_offsets = arrays.pop(0) if of_queries is not None else None
    if of_keys is None:
        return query_offsets, None, None, None
    if of_keys in _ELEMENTS.values():
        return query_offsets, arrays[0], None, None
    return query_offsets, None, None if of_keys == LENGTHS else arrays[0], arrays[-1]


def list_captures(key):
    """(name, element type, rank) of these arrays, in their order."""
    of_queries, of_keys = key
    found = []
    for name, element in (("query_offsets", of_queries), ("key_offsets", of_keys)):
        if element in _ELEMENTS.values():
            found.append((name, element, 1))
    if is_paged(key):
        found.append(("page_table", "i32", 2))
    if of_keys == LENGTHS or is_paged(key):
        found.append(("key_lengths", "i32", 1))
    return found


def get_kind_of_keys(key):
    """What the native function calls them."""
    if key[1] is None or key[1] == LENGTHS:
        return key[1] or "batch"
    return "pages" if is_paged(key) else "packed"


def is_paged(key):
    """Whether keys and values lie in pages."""
    return key is not None and isinstance(key[1], int)


_GIVEN = "page_table, key_lengths or offsets"


def refuse_plan(what=_GIVEN):
    raise ValueError(f"{what} are given beside a plan, and no plan is of sequences of their own lengths; give the mask instead of the plan")


def refuse_blocks(what=_GIVEN):
    raise ValueError(f"{what} are given beside blocks, and no blocks are of sequences of their own lengths; give a mask instead of the blocks")


def refuse_gradients(key):
    """Raises an error for keys in pages."""
    if is_paged(key):
        raise NotImplementedError(
            "there are no gradients of keys in pages (page_table), and an argument requires gradients; call it under torch.no_grad()"
        )


class Packing:
    """The lines of a program of sequences; `key` is of `get_key`, or None for a batch as usual."""

    def __init__(self, key):
        self._kinds = key or (None, None)

    def _is_paged(self, name):
        return name in ("key", "value") and is_paged(self._kinds)

    def is_packed(self, name):
        """Whether rows of an operand or a result are packed."""
        return name in _SIDES and self._kinds[_SIDES[name]] in _ELEMENTS.values()

    def get_type(self, name, type):
        """The type of an operand or a result in memory, of the one that attention sees."""
        if self._is_paged(name):
            return type.replace("<?x?x?x", f"<?x?x{self._kinds[1]}x", 1)
        return type.replace("<?x", "<1x", 1) if self.is_packed(name) else type

    def get_rows_type(self, name, type):
        """The type in memory of one number for each row of an operand, from the type that a batch has."""
        return f"tensor<?x?x{self._kinds[1]}xf32>" if self._is_paged(name) else type

    def view_rows(self, name, type):
        """The lines that make a view of one number for each row of keys or values, which are not packed, and its name."""
        if not self._is_paged(name):
            return [], f"%{name}_scale"
        by = f"by %page_table lengths(%key_lengths : tensor<?xi32>) : {self.get_rows_type(name, type)}, tensor<?x?xi32> -> {type}"
        return [f"%{name}_scale_rows = flash.unpage %{name}_scale {by}"], f"%{name}_scale_rows"

    def name(self, name):
        """What attention takes for an operand, or gives for a result."""
        return f"%{name}_rows" if self.is_packed(name) or self._is_paged(name) else f"%{name}"

    def get_arguments(self):
        """(name, type) of the arguments that the arrays of a call are."""
        return [(name, f"tensor<{'?x' * rank}{element}>") for name, element, rank in list_captures(self._kinds)]

    def _get_count(self, name):
        """How many rows each sequence has, of queries or keys; None where they are a batch as usual."""
        if self.is_packed(name):
            return f"%{name}_count"
        return "%key_lengths" if name == "key" and self._kinds[1] is not None else None

    def get_clauses(self):
        """What says how many rows each sequence has."""
        counts = [(name, self._get_count(name)) for name in _NAMES]
        return [f"{name}_lengths({count} : tensor<?xi32>)" for name, count in counts if count is not None]

    def _describe(self, name):
        side = _SIDES[name]
        return f"%{_NAMES[side]}_offsets", f"tensor<?x{self._kinds[side]}>"

    def unpack(self, operands):
        """The views of operands, each given by its name and the type that attention sees."""
        lines = []
        for name, type in operands:
            memory = self.get_type(name, type)
            if self._is_paged(name):
                by = f"by %page_table lengths(%key_lengths : tensor<?xi32>) : {memory}, tensor<?x?xi32> -> {type}"
                lines.append(f"{self.name(name)} = flash.unpage %{name} {by}")
            elif self.is_packed(name):
                offsets, of_offsets = self._describe(name)
                types = f"{memory}, {of_offsets} -> {type}, tensor<?xi32>"
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
        """The lines of a score region, in which lengths are a sequence's."""
        counts, result = set(), []
        for line in lines:
            dim = _DIM.match(line)
            count = self._get_count(dim[2]) if dim else None
            if count is None:
                result.append(line)
                continue
            name, of = dim.groups()
            if of not in counts:
                counts.add(of)
                result.append(f"%of_{of} = tensor.extract {count}[%b] : tensor<?xi32>")
            result.append(f"{name} = arith.index_cast %of_{of} : i32 to index")
        return result
