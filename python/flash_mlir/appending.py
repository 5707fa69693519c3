"""The kernel that writes new keys and values into caches, behind the rows that each sequence has."""

from . import cache, compilation
from .compiler import get_machine

#: Heads that a block takes of a token: as many rows as a block of one kernel reads at once where a row has 16 lanes.
_HEADS = 8

_CHECKS = """
    %left = arith.subi %heads, %h : index
    %count = arith.minsi %left, %block : index
    %missing = arith.subi %block, %count : index
    %written = tensor.extract %lengths[%b] : tensor<?xi32>
    %length = arith.index_cast %written : i32 to index
    %at = arith.addi %length, %i : index
    %is_behind_start = arith.cmpi sge, %at, %c0 : index
    %is_before_end = arith.cmpi slt, %at, %room : index
    %has_room = arith.andi %is_behind_start, %is_before_end : i1
    %position = arith.select %has_room, %at, %c0 : index
    {position}
    %is_not_below = arith.cmpi sge, %number, %c0 : index
    %is_below = arith.cmpi slt, %number, %pages : index
    %is_page = arith.andi %is_not_below, %is_below : i1
    %is_there = arith.andi %has_room, %is_page : i1
    %page = arith.select %is_there, %number, %c0 : index
    %stored = arith.select %is_there, %count, %c0 : index"""

_BY_TABLE = """%column = arith.divui %position, %page_rows : index
    %row = arith.remui %position, %page_rows : index
    %entry = tensor.extract %table[%b, %column] : tensor<?x?xi32>
    %number = arith.index_cast %entry : i32 to index"""
_BY_BATCH = """%row = arith.addi %position, %c0 : index
    %number = arith.addi %b, %c0 : index"""

_COPY = """
    %{name}_zero = arith.constant 0.0 : {element}
    %{name}_rows = tensor.extract_slice %{name}[%b, %h, %i, 0] [1, %count, 1, {dim}] [1, 1, 1, 1] : !{name} to tensor<?x{dim}x{element}>
    %{name}_tile = tensor.pad %{name}_rows low[0, 0] high[%missing, 0] {{
    ^bb0(%x: index, %y: index):
      tensor.yield %{name}_zero : {element}
    }} : tensor<?x{dim}x{element}> to tensor<{heads}x{dim}x{element}>
    %{name}_empty = tensor.empty() : tensor<{heads}x{dim}x{element}>
    %{name}_copy = linalg.copy ins(%{name}_tile : tensor<{heads}x{dim}x{element}>) outs(%{name}_empty : tensor<{heads}x{dim}x{element}>) -> tensor<{heads}x{dim}x{element}>
    %{name}_part = tensor.extract_slice %{name}_copy[0, 0] [%stored, {dim}] [1, 1] : tensor<{heads}x{dim}x{element}> to tensor<?x{dim}x{element}>"""

_STORE = "tensor.parallel_insert_slice %{name}_part into %to_{name}[%page, %h, %row, 0] [1, %stored, 1, {dim}] [1, 1, 1, 1] : tensor<?x{dim}x{element}> into !{name}"

_PROGRAM = """!key = tensor<?x?x?x{dim}x{element}>
!value = tensor<?x?x?x{value_dim}x{element}>
!lengths = tensor<?xi32>
func.func @append(%key: !key, %value: !value, %key_cache: !key, %value_cache: !value, {table}%lengths: !lengths) -> (!key, !value, !lengths) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %block = arith.constant {heads} : index
  %pages = tensor.dim %key_cache, %c0 : !key
  %page_rows = tensor.dim %key_cache, %c2 : !key
  %batches = tensor.dim %key, %c0 : !key
  %heads = tensor.dim %key, %c1 : !key
  %rows = tensor.dim %key, %c2 : !key
  {room}
  %keys = tensor.empty(%pages, %heads, %page_rows) : !key
  %values = tensor.empty(%pages, %heads, %page_rows) : !value
  %sums = tensor.empty(%batches) : !lengths
  %results:3 = flash.kernel over(%batches, %heads, %rows) by [1, {heads}, 1] outs(%keys, %values, %sums : !key, !value, !lengths) {{
  ^bb0(%b: index, %h: index, %i: index, %to_key: !key, %to_value: !value, %to_lengths: !lengths):{checks}{copies}
    %others = arith.addi %h, %i : index
    %is_first = arith.cmpi eq, %others, %c0 : index
    %times = arith.select %is_first, %c1, %c0 : index
    %sum = arith.addi %length, %rows : index
    %new = arith.index_cast %sum : index to i32
    %old = tensor.extract_slice %to_lengths[%b] [1] [1] : !lengths to tensor<1xi32>
    %now = scf.for %x = %c0 to %times step %c1 iter_args(%state = %old) -> tensor<1xi32> {{
      %next = tensor.insert %new into %state[%c0] : tensor<1xi32>
      scf.yield %next : tensor<1xi32>
    }}
    flash.store {{
      {stores}
      tensor.parallel_insert_slice %now into %to_lengths[%b] [1] [1] : tensor<1xi32> into !lengths
    }}
  }}
  return %results#0, %results#1, %results#2 : !key, !value, !lengths
}}
"""


def print_program(element, head_dim, value_dim, has_table):
    """The program, at level 1 (docs/levels.md), whose first two results a call has in the memory of the caches.

    Its arguments are keys and values (batch, heads, rows, D); the caches (pages, heads, rows of a page, D), whose sizes alone are
    read; with `has_table` the pages of each sequence, else page b is sequence b's; and how many rows sequences have.
    The third result is how many they have then. Rows that there is no room for, and rows of pages that there are not, are written
    nowhere.
    """
    both = [dict(name="key", dim=head_dim), dict(name="value", dim=value_dim)]
    fill = lambda text: [text.format(element=element, heads=_HEADS, **each) for each in both]
    room = "%columns = tensor.dim %table, %c1 : tensor<?x?xi32>\n  %room = arith.muli %columns, %page_rows : index"
    return _PROGRAM.format(
        element=element,
        dim=head_dim,
        value_dim=value_dim,
        heads=_HEADS,
        table="%table: tensor<?x?xi32>, " if has_table else "",
        room=room if has_table else "%room = arith.muli %c1, %page_rows : index",
        checks=_CHECKS.format(position=_BY_TABLE if has_table else _BY_BATCH),
        copies="".join(fill(_COPY)),
        stores="\n      ".join(fill(_STORE)),
    )


def get_kernel(element, head_dim, value_dim, has_table, device):
    """The kernel of a device, which a call has."""
    target = get_machine(device)
    text = print_program(element, head_dim, value_dim, has_table)
    prepared = compilation.kernels.get((text, target, device, ()))
    if prepared is not None:
        return prepared
    page = "pages" if has_table else "rows of a batch"
    what = f"the kernel that appends {element} keys and values to {page}, D = {head_dim} and {value_dim}"
    with compilation.announced(lambda: f"the call needs {what}, and it was not prepared"), compilation.said_if_slow(
        lambda: f"compiling and loading {what}"
    ):
        kernel = cache.get_kernel(text, target)
        kernel.load(device)
        return kernel
