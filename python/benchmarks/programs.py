"""Texts of the programs that are timed."""

ELEMENTS = {"f16": "f16", "bf16": "bf16", "f32": "f32"}

# As NumPy and PyTorch call them.
DTYPES = {"f16": "float16", "bf16": "bfloat16", "f32": "float32"}

CAUSAL = "#flash.causal"
MASKS = {"full": None, "causal": CAUSAL}

# How many products gradients have for each product of the forward.
GRADIENT_PRODUCTS = 2.5


def count_flops(shape, mask):
    """Of the two products of the forward, over the pairs that one of MASKS leaves."""
    batch, heads, length, dim = shape
    pairs = length * (length + 1) / 2 if mask == "causal" else length**2
    return 4 * batch * heads * pairs * dim


def window(left):
    return f"#flash.window<left = {left}, right = 0>"


def prefix(length):
    """The first keys take part for all queries, the others up to the diagonal."""
    return f"#flash.any_of<[#flash.prefix<{length}>, #flash.causal]>"


# FlexAttention's examples: the set has a name, since MLIR looks for the end of
# the attribute before it reads the inside.
def documents(length):
    return (f"#same = affine_set<(b, h, i, j)[nq, nk] : (i floordiv {length} - j floordiv {length} == 0)>\n",
            "#flash.all_of<[#flash.causal, #flash.affine<#same>]>")


SOFTCAP = """
    %x = arith.divf %s, %cap : f32
    %t = math.tanh %x : f32
    %r = arith.mulf %t, %cap : f32
"""

ALIBI = """
    %slope = tensor.extract %slopes[%h] : tensor<{heads}xf32>
    %d = arith.subi %j, %i : index
    %di = arith.index_cast %d : index to i32
    %df = arith.sitofp %di : i32 to f32
    %bias = arith.mulf %slope, %df : f32
    %r = arith.addf %s, %bias : f32
"""


def attention(shape, dtype, mask=None, kv_heads=None, score=None, queries=None):
    """`shape` is (batch, heads, length, head dimension), where the length is that of
    the keys if there are other numbers of `queries`; `mask` an attribute, or what
    stands before the function and an attribute."""
    batch, heads, length, dim = shape
    before = ""
    if isinstance(mask, tuple):
        before, mask = mask
    element = ELEMENTS[dtype]
    query = f"tensor<{batch}x{heads}x{queries or length}x{dim}x{element}>"
    key = f"tensor<{batch}x{kv_heads or heads}x{length}x{dim}x{element}>"
    arguments, constants, region = "", "", ""
    if score == "softcap":
        constants, region = "  %cap = arith.constant 20.0 : f32\n", SOFTCAP
    elif score == "alibi":
        arguments, region = f", %slopes: tensor<{heads}xf32>", ALIBI.format(heads=heads)
    if region:
        region = f" score {{\n  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):{region}    flash.yield %r : f32\n  }}"
    return (f"{before}func.func @attention(%q: {query}, %k: {key}, %v: {key}{arguments}) -> {query} {{\n{constants}"
            f"  %o = flash.attention %q, %k, %v{f' mask({mask})' if mask else ''}{region} : ({query}, {key}, {key}) -> {query}\n"
            f"  return %o : {query}\n}}\n")


def paged(shape, dtype, kv_heads, queries, page, is_packed=False, mask=None):
    """Keys in pages of `page` rows, a page table (argument 3) and lengths (4); of `shape` the length is the room for keys.

    `queries` has the number of each sequence's; they are one behind the other with offsets (5), or all the same.
    """
    batch, heads, keys, dim = shape
    element, room = ELEMENTS[dtype], keys // page
    rows = sum(queries) if is_packed else queries[0]
    query = f"tensor<{1 if is_packed else batch}x{heads}x{rows}x{dim}x{element}>"
    view = f"tensor<{batch}x{heads}x{rows}x{dim}x{element}>"
    cache, table, lengths = f"tensor<{batch * room}x{kv_heads}x{page}x{dim}x{element}>", f"tensor<{batch}x{room}xi32>", f"tensor<{batch}xi32>"
    key, offsets = f"tensor<{batch}x{kv_heads}x{keys}x{dim}x{element}>", f"tensor<{batch + 1}xi32>"
    lines = [f"%{name}_view = flash.unpage %{name} by %table lengths(%n : {lengths}) : {cache}, {table} -> {key}" for name in "kv"]
    clauses, of, result = f"{f'mask({mask}) ' if mask else ''}", "%q", "%o"
    if is_packed:
        lines.append(f"%q_view, %q_rows = flash.unpack %q by %offsets : {query}, {offsets} -> {view}, {lengths}")
        clauses, of, result = clauses + f"query_lengths(%q_rows : {lengths}) ", "%q_view", "%packed"
    lines.append(f"%o = flash.attention {of}, %k_view, %v_view {clauses}key_lengths(%n : {lengths}) : ({view}, {key}, {key}) -> {view}")
    if is_packed:
        lines += [f"%empty = tensor.empty() : {query}",
                  f"%packed = flash.pack %o by %offsets into %empty : {view}, {offsets} into {query}"]
    arguments = f"%q: {query}, %k: {cache}, %v: {cache}, %table: {table}, %n: {lengths}" + (f", %offsets: {offsets}" if is_packed else "")
    body = "".join(f"  {line}\n" for line in lines)
    return f"func.func @attention({arguments}) -> {query} {{\n{body}  return {result} : {query}\n}}\n"


def gradients(shape, dtype, mask=None):
    """Of queries, keys and values; the output, its log-sum-exp and its gradient are arguments."""
    batch, heads, length, dim = shape
    tensor = f"tensor<{batch}x{heads}x{length}x{dim}x{ELEMENTS[dtype]}>"
    rows = f"tensor<{batch}x{heads}x{length}xf32>"
    types, results = f"{tensor}, {tensor}, {tensor}, {tensor}, {rows}, {tensor}", f"{tensor}, {tensor}, {tensor}"
    return (f"func.func @gradients(%q: {tensor}, %k: {tensor}, %v: {tensor}, %o: {tensor}, %lse: {rows}, %do: {tensor})"
            f" -> ({results}) {{\n"
            f"  %dq, %dk, %dv = flash.attention_grad %q, %k, %v, %o, %lse, %do{f' mask({mask})' if mask else ''} : ({types}) -> ({results})\n"
            f"  return %dq, %dk, %dv : {results}\n}}\n")


def softmax(rows, columns, dtype):
    tensor = f"tensor<{rows}x{columns}x{ELEMENTS[dtype]}>"
    return (f"func.func @softmax(%x: {tensor}) -> {tensor} {{\n  %e = tensor.empty() : {tensor}\n"
            f"  %p = linalg.softmax dimension(1) ins(%x : {tensor}) outs(%e : {tensor}) -> {tensor}\n"
            f"  return %p : {tensor}\n}}\n")
