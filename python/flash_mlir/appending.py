"""The kernel that writes new keys and values into caches, behind the rows that each sequence has."""

from . import cache, compilation
from .compiler import get_machine

#: Heads whose rows a block copies: as many as its threads read at once, if a row is 256 bytes.
_HEADS = 8

_PROGRAM = """!key = tensor<?x?x?x{dim}x{element}>
!value = tensor<?x?x?x{value_dim}x{element}>
!lengths = tensor<?xi32>
func.func @append(%key: !key, %value: !value, %key_cache: !key, %value_cache: !value, {argument}%lengths: !lengths) -> (!key, !value, !lengths) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %block = arith.constant {heads} : index
  %pages = tensor.dim %key_cache, %c0 : !key
  %page_rows = tensor.dim %key_cache, %c2 : !key
  %batches = tensor.dim %key, %c0 : !key
  %heads = tensor.dim %key, %c1 : !key
  %rows = tensor.dim %key, %c2 : !key
  %keys = tensor.empty(%pages, %heads, %page_rows) : !key
  %values = tensor.empty(%pages, %heads, %page_rows) : !value
  %sums = tensor.empty(%batches) : !lengths
  %results:3 = flash.kernel over(%batches, %heads, %rows) by [1, {heads}, 1] outs(%keys, %values, %sums : !key, !value, !lengths) {{
  ^bb0(%b: index, %h: index, %i: index, %to_key: !key, %to_value: !value, %to_lengths: !lengths):
    %written = tensor.extract %lengths[%b] : !lengths
    %length = arith.index_cast %written : i32 to index
    %at = arith.addi %length, %i : index{find}
    %left = arith.subi %heads, %h : index
    %count = arith.minsi %left, %block : index
    %missing = arith.subi %block, %count : index
    %stored = arith.select %is_there, %count, %c0 : index{copies}
    // One block of each sequence stores its length.
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
    flash.store {{{stores}
      tensor.parallel_insert_slice %now into %to_lengths[%b] [1] [1] : tensor<1xi32> into !lengths
    }}
  }}
  return %results#0, %results#1, %results#2 : !key, !value, !lengths
}}
"""

# Where the row `at` of a sequence is, and whether there is room for it.
_IN_PAGES = """
    %columns = tensor.dim %table, %c1 : tensor<?x?xi32>
    %room = arith.muli %columns, %page_rows : index
    %has_room = arith.cmpi ult, %at, %room : index
    %position = arith.select %has_room, %at, %c0 : index
    %column = arith.divui %position, %page_rows : index
    %row = arith.remui %position, %page_rows : index
    %entry = tensor.extract %table[%b, %column] : tensor<?x?xi32>
    %number = arith.index_cast %entry : i32 to index
    %is_page = arith.cmpi ult, %number, %pages : index
    %is_there = arith.andi %has_room, %is_page : i1
    %page = arith.select %is_page, %number, %c0 : index"""
_IN_BATCH = """
    %is_there = arith.cmpi ult, %at, %page_rows : index
    %row = arith.select %is_there, %at, %c0 : index"""

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

_STORE = """
      tensor.parallel_insert_slice %{name}_part into %to_{name}[%{page}, %h, %row, 0] [1, %stored, 1, {dim}] [1, 1, 1, 1] : tensor<?x{dim}x{element}> into !{name}"""


def print_program(element, head_dim, value_dim, has_table):
    """The program, at level 1 (docs/levels.md), whose first two results a call has in the memory of the caches.

    Its arguments are keys and values (batch, heads, rows, D); the caches (pages, heads, rows of a page, D), whose sizes alone are
    read; with `has_table` the pages of each sequence, else page b is sequence b's; and how many rows sequences have.
    The third result is how many they have then. Rows that there is no room for, and rows of pages that there are not, are written
    nowhere.
    """
    common = dict(element=element, heads=_HEADS, page="page" if has_table else "b")
    both = [dict(common, name="key", dim=head_dim), dict(common, name="value", dim=value_dim)]
    return _PROGRAM.format(
        **common,
        dim=head_dim,
        value_dim=value_dim,
        argument="%table: tensor<?x?xi32>, " if has_table else "",
        find=_IN_PAGES if has_table else _IN_BATCH,
        copies="".join([_COPY.format(**each) for each in both]),
        stores="".join([_STORE.format(**each) for each in both]),
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
        lambda: f"compiling {what}, for a first call; FLASH_MLIR_QUIET=1 silences this"
    ):
        kernel = cache.get_kernel(text, target)
        kernel.load(device)
        return kernel
