"""Pages: programs whose keys and values lie in pages, and each sequence alone in numpy.

`suite.py --paged` runs them. Rows are drawn as those of batches that `packed.py` has, and put into
pages of a random order behind that: the formulas know nothing of tables. Rows of no sequence are NaN,
entries of the table behind a sequence's last page are of no page.
"""

import random
from typing import Callable, NamedTuple

import numpy as np

import grad_oracle
import oracle
from packed import DTYPES, HEAD_DIMS, MASKS, PACKED_SCORES, PARTS, Packed, agree, draw_inputs, draw_offsets, execute, tell

# Masks of serving beside those of the suite, with what they keep (`oracle.PREDICATES`); d is the query's position among the keys.
SERVING_MASKS = {
    "chunked": ("(i + nk - nq - j >= 0, (i + nk - nq) floordiv 64 - j floordiv 64 == 0)", lambda d, j: (j <= d) & (d // 64 == j // 64)),
    "diffusion": ("((i + nk - nq) floordiv 32 - j floordiv 32 >= 0)", lambda d, j: j // 32 <= d // 32),
    "stripe": ("((j - 1) mod 4 == 0)", lambda d, j: j % 4 == 1),
    "causal_stripe": ("((j - 2) mod 3 == 0, i + nk - nq - j >= 0)", lambda d, j: (j % 3 == 2) & (j <= d)),
    "striped_window": ("(j mod 2 == 0, i + nk - nq - j >= 0, j - i - nk + nq + 70 >= 0)", lambda d, j: (j % 2 == 0) & (j <= d) & (j >= d - 70)),
}
PREFIX_LM = "#flash.any_of<[#flash.prefix<50>, #flash.causal]>"
oracle.PREDICATES |= {
    name: lambda b, h, i, j, d, nk, keep=keep: keep(d, j) for name, (_, keep) in SERVING_MASKS.items()
} | {"prefix_lm": lambda b, h, i, j, d, nk: (j < 50) | (j <= d)}
grad_oracle.SCORES["biased_or_not"] = lambda s, c, b, h, i, j: (s + c[b] * (j - i), np.ones_like(s), lambda ds: None)
PARTS["biased_or_not"] = lambda b, n, m, last: np.s_[b : b + 1]


class Keep(NamedTuple):
    """A mask that reads an array: its type, the region's %is_kept by the position %place of the query, draws of the array, and what it leaves
    of sequence b with n queries and m keys."""

    type: str
    body: str
    draw: Callable
    see: Callable


def draw_trees(case, rng):
    """Of each sequence which drafts are ancestors of which, themselves among them."""
    queries = case.sizes()["Nq"]
    trees = np.zeros((case.B, queries, queries), int)
    for tree in trees:
        for node in range(case.Nq):
            if node and rng.random() < 0.9:
                tree[node] = tree[rng.integers(node)]
            tree[node, node] = 1
    return trees


def see_tree(tree, n, m):
    i, j = np.ogrid[:n, :m]
    return (j < m - n) | (tree[i, np.maximum(j - (m - n), 0)] != 0)


def read_bits(bits, count):
    return bits[:, None] >> np.arange(count) & 1


def at_diagonal(n, m):
    i, j = np.ogrid[:n, :m]
    return i + m - n, j


DRAFT = """
    %origin = arith.constant 0 : index
    %cached = arith.subi %m, %n : index
    %new = arith.subi %j, %cached : index
    %is_cached = arith.cmpi slt, %new, %origin : index
    %draft = arith.maxsi %new, %origin : index"""
KEEPS = {
    "tree": Keep("{B}x{Nq}x{Nq}xi8", DRAFT + """
    %entry = tensor.extract %kept[%b, %i, %draft] : {type}
    %none = arith.constant 0 : i8
    %is_ancestor = arith.cmpi ne, %entry, %none : i8
    %is_kept = arith.ori %is_cached, %is_ancestor : i1""", draw_trees, lambda x, b, n, m: see_tree(x[b], n, m)),
    "tree_bits": Keep("{B}x{Nq}xi32", DRAFT + """
    %word = tensor.extract %kept[%b, %i] : {type}
    %last_bit = arith.constant 31 : index
    %bit_at = arith.minsi %draft, %last_bit : index
    %shift = arith.index_cast %bit_at : index to i32
    %shifted = arith.shrsi %word, %shift : i32
    %lowest = arith.constant 1 : i32
    %bit = arith.andi %shifted, %lowest : i32
    %is_ancestor = arith.cmpi eq, %bit, %lowest : i32
    %is_kept = arith.ori %is_cached, %is_ancestor : i1""", lambda case, rng: draw_trees(case, rng)[..., : case.Nq] @ (1 << np.arange(case.Nq)),
                      lambda x, b, n, m: see_tree(read_bits(x[b], max(n, 1)), n, m)),
    "causal_or_not": Keep("{B}xi32", """
    %entry = tensor.extract %kept[%b] : {type}
    %none = arith.constant 0 : i32
    %sees_all = arith.cmpi eq, %entry, %none : i32
    %is_before = arith.cmpi sle, %j, %place : index
    %is_kept = arith.ori %sees_all, %is_before : i1""", lambda case, rng: rng.integers(0, 2, case.B),
                          lambda x, b, n, m: (x[b] == 0) | np.less_equal(*at_diagonal(n, m)[::-1])),
    "own_window": Keep("{B}xi32", """
    %width = tensor.extract %kept[%b] : {type}
    %left = arith.index_cast %width : i32 to index
    %first = arith.subi %place, %left : index
    %is_kept = arith.cmpi sge, %j, %first : index""", lambda case, rng: rng.integers(0, 200, case.B),
                       lambda x, b, n, m: at_diagonal(n, m)[1] >= at_diagonal(n, m)[0] - x[b]),
    "padding": Keep("{B}x{Nk}xi8", """
    %entry = tensor.extract %kept[%b, %j] : {type}
    %none = arith.constant 0 : i8
    %is_kept = arith.cmpi ne, %entry, %none : i8""", lambda case, rng: rng.random((case.B, case.Nk)) < 0.7,
                    lambda x, b, n, m: np.broadcast_to(x[b, None, :m] != 0, (n, m))),
}
# Where keys and values are parts of one tensor: the dimension in which they lie side by side.
ORDERS = {"pages": 0, "heads": 1, "rows": 2, "columns": 3}


class Paged(Packed):
    """A case whose keys and values lie in pages; its queries are packed, or a batch."""

    masks = MASKS | {name: f"#flash.affine<affine_set<(b, h, i, j)[nq, nk] : {text}>>" for name, (text, _) in SERVING_MASKS.items()}
    masks["prefix_lm"] = PREFIX_LM
    scores = {name: score for name, score in PACKED_SCORES.items() if name != "documents"} | {
        # A bias by the distance in some of the sequences.
        "biased_or_not": ("tensor<{B}xi32>", """
    %flag = tensor.extract %captured[%b] : tensor<{B}xi32>
    %slope = arith.sitofp %flag : i32 to f32
    %d = arith.subi %j, %i : index
    %di = arith.index_cast %d : index to i32
    %df = arith.sitofp %di : i32 to f32
    %bias = arith.mulf %slope, %df : f32
    %r = arith.addf %s, %bias : f32"""),
    }

    def __init__(self, name, **options):
        self.page = 16
        self.spare = 0  # pages of no sequence, where negative as many are in common
        self.tiles = None  # keys of its schedule
        self.keep = None  # of KEEPS
        self.order = None  # of ORDERS
        self.rows_first = False  # in device memory, the second and third dimension exchanged
        self.traffic = None  # how many queries and keys a sequence has: "chunks", "tokens", "drafts", "mixture"
        self.in_order = False  # whether rows lie as those of a batch, to be drawn
        super().__init__(name, padded="k", **options)
        self.columns = self.Nk // self.page

    @property
    def pages(self):
        return self.B * self.columns + max(self.spare, 0)

    def tensors(self):
        arguments = super().tensors()
        if self.keep:
            *shape, element = KEEPS[self.keep].type.format(**self.sizes()).split("x")
            arguments.append(("kept", [int(n) for n in shape], element))
        if self.in_order:
            return arguments
        shapes = [[self.pages, self.Hkv, self.page, d] for d in (self.D, self.Dv)]
        memory = [(name, shape, self.dtype) for name, shape in zip("kv", shapes)]
        if self.order:
            at = ORDERS[self.order]
            shapes[0][at] += shapes[1][at]
            memory = [("kv", shapes[0], self.dtype)]
        return arguments[:1] + memory + [("table", [self.B, self.columns], "i32")] + arguments[3:]

    def types(self):
        types = super().types()
        for name, shape, element in self.tensors():
            if not self.dynamic or self.in_order:
                continue
            if name in ("k", "v", "kv"):
                types[name] = f"tensor<?x{'x'.join(map(str, shape[1:]))}x{element}>"
            elif name in ("kept", "table"):
                types[name] = f"tensor<{'?x' * len(shape)}{element}>"
        return types

    def take_part(self, name, types):
        """Of keys and values side by side the ones or the others: the lines, the value and its type."""
        at, of = ORDERS[self.order], types["kv"]
        sizes = of[len("tensor<") :].split("x")[:4]
        sizes[3] = str(self.D if name == "k" else self.Dv)
        lines, part = "", f"%{name}"
        if self.order in ("heads", "rows"):
            sizes[at] = str((self.Hkv, self.page)[at - 1])
        first = [0] * 4
        first[at] = {"pages": f"{part}_pages", "columns": self.D}.get(self.order, sizes[at]) if name == "v" else 0
        type = f"tensor<{'x'.join(sizes)}x{self.dtype}>"
        if self.dynamic or self.order == "pages":
            lines = f"  {part}_0 = arith.constant 0 : index\n  {part}_all = tensor.dim %kv, {part}_0 : {of}\n"
            sizes[0] = f"{part}_all"
        if self.order == "pages":
            lines += f"  {part}_2 = arith.constant 2 : index\n  {part}_pages = arith.divui {part}_all, {part}_2 : index\n"
            sizes[0], type = f"{part}_pages", f"tensor<?x{type.split('x', 1)[1]}"
        place, extent = (", ".join(map(str, x)) for x in (first, sizes))
        return lines + f"  {part} = tensor.extract_slice %kv[{place}] [{extent}] [1, 1, 1, 1] : {of} to {type}\n", type

    def view(self, side, name, types):
        if side != "k":
            return super().view(side, name, types)
        line, memory = self.take_part(name, types) if self.order else ("", types[name])
        batches, rows = ("?", "?") if self.dynamic else (self.B, self.Nk)
        view = f"tensor<{batches}x{self.Hkv}x{rows}x{self.D if name == 'k' else self.Dv}x{self.dtype}>"
        line += (f"  %{name}_view = flash.unpage %{name} by %table lengths(%nk : {types['nk']})"
                 f" : {memory}, {types['table']} -> {view}\n")
        return line, f"%{name}_view", view

    def keep_text(self, types):
        """The lines of the score region that say whether an element is kept."""
        queries = f"    %n = arith.constant {self.Nq} : index\n"
        if self.packed or "q" in self.padded:
            name, type = ("%nq", types["nq"]) if not self.packed else ("%q_rows", f"tensor<{'?' if self.dynamic else self.B}xi32>")
            queries = f"    %n32 = tensor.extract {name}[%b] : {type}\n    %n = arith.index_cast %n32 : i32 to index\n"
        return (f"    %m32 = tensor.extract %nk[%b] : {types['nk']}\n    %m = arith.index_cast %m32 : i32 to index\n{queries}"
                "    %until = arith.addi %i, %m : index\n    %place = arith.subi %until, %n : index"
                + KEEPS[self.keep].body.replace("{type}", types["kept"]))

    def clauses(self, types):
        sets, parts = super().clauses(types)
        if self.keep:
            if not self.score:
                parts.append("score {\n  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):\n    flash.yield %s : f32\n  }")
            body, value = parts[-1].split("    flash.yield ")
            parts[-1] = f"{body}{self.keep_text(types)}\n    flash.yield {value.split(' :')[0]} keep %is_kept : f32\n  }}"
        at = len(parts) - any(part.startswith("score") for part in parts)
        return sets, parts[:at] + ([f"schedule(<{self.tiles}>)"] if self.tiles else []) + parts[at:]

    def device_flags(self):
        return ["--layout=bnhd"] if self.rows_first else []

    def draw(self, rng):
        drawn = draw_offsets(self, rng)
        if self.traffic:
            queries, drawn["nk"] = draw_traffic(self, rng)
            if self.packed:
                first = rng.integers(0, self.rows["q"] - queries.sum() + 1)
                drawn["offsets_q"] = first + np.concatenate([[0], np.cumsum(queries)])
            elif "q" in self.padded:
                drawn["nq"] = queries
        if self.keep:
            drawn["kept"] = KEEPS[self.keep].draw(self, rng)
        if self.score == "biased_or_not":
            drawn["captured"] = rng.integers(0, 2, self.B)
        return drawn

    def alone(self, b, n, m, values):
        of = super().alone(b, n, m, values)
        if self.keep:
            of.seen = KEEPS[self.keep].see(values["kept"], b, n, m)
        return of


def draw_traffic(case, rng):
    """How many queries and keys each sequence has. The queries are the last of the keys, but for sequences without keys."""
    kinds = {"tokens": ["token"], "drafts": ["drafts"], "chunks": ["chunk", "prompt"], "mixture": ["token", "drafts", "chunk", "prompt", "none"]}
    counts, left = np.zeros((2, case.B), int), case.rows["q"]
    for b in rng.permutation(case.B):
        kind = rng.choice(kinds[case.traffic])
        most = min(case.Nq, case.Nk, left) if case.packed else min(case.Nq, case.Nk)
        n = {"token": 1, "drafts": rng.integers(2, 17), "none": 0}.get(kind, rng.integers(0, most + 1))
        n = min(n, most) if case.packed or "q" in case.padded else case.Nq
        cached = 0 if kind in ("prompt", "none") else rng.integers(0, max(case.Nk - n, 0) + 1)
        if rng.random() < 0.3:
            cached = cached // case.page * case.page
        counts[:, b] = n, 0 if kind == "none" or rng.random() < 0.1 else min(n + cached, case.Nk)
        left -= n
    return counts


def paged_cases():
    """200 attentions. Sizes from a fixed seed; lengths and tables are inputs, and fresh."""
    result = []
    rng = random.Random(20261128)

    def add(name, **options):
        hkv = rng.randint(1, 2)
        page = options.get("page", rng.choice([16, 16, 32, 64, 128]))
        defaults = dict(
            dtype=DTYPES[len(result) % 3], B=rng.choice([1, 2, 3, 5, 9]), Hkv=hkv, Hq=hkv * rng.choice([1, 2, 4]), page=page,
            packed=rng.choice(["", "q"]), mask=rng.choice([None, "causal", "causal", "window"]), dynamic=rng.random() < 0.7,
            offsets={"q": rng.choice(["i32", "i64"]), "k": "i32"}, lse=rng.random() < 0.5, sink=rng.random() < 0.2, spare=rng.choice([-1, 0, 7]),
            order=rng.choice([None, None, None, *ORDERS]), rows_first=rng.random() < 0.3, traffic=rng.choice([None, "chunks", "mixture"]),
            Nk=page * rng.randint(1, max(2, 400 // page)), Nq=rng.choice([1, 4, 33, 70, 130]), D=64, Dv=64)
        case = Paged(f"{len(result):03d}-paged-{name}", **defaults | options)
        if case.order in ("heads", "rows", "pages") and case.D != case.Dv:
            case.order = "columns"
        if case.packed:
            case.rows["q"] = max(case.rows["q"], case.Nq + rng.choice([5, 60]))
        elif rng.random() < 0.3:
            case.padded = "qk"
        if case.keep and "tree" in case.keep:
            case.Nq = min(case.Nq, 16)
        result.append(case)

    for d in HEAD_DIMS:
        add(f"dims-{d}", D=d, Dv=d)
    for page in (8, 16, 24, 32, 40, 48, 64, 72, 80, 96, 112, 128, 144, 160, 176, 192, 208, 224, 240, 256):
        add(f"page-{page}", page=page, Dv=rng.choice([64, 48]), Nk=page * max(2, 300 // page))
    for page, tile in ((16, 16), (16, 64), (32, 16), (64, 128), (128, 32)):
        add(f"tile-{page}-{tile}", page=page, tiles=f"query_tile = 64, key_tile = {tile}", mask="causal")
    decode = dict(dtype="f16", D=128, Dv=128, Nq=1, packed="", page=16, Nk=480, Hq=8, Hkv=2)
    for splits in ("num_splits = 3", "split_ctas = 64", "split_keys = 64", "split_keys = 1048576"):
        add(f"split-{splits.split(' ')[0]}", tiles=f"query_tile = 16, key_tile = 32, {splits}", **decode)
        add(f"split-drafts-{splits.split(' ')[0]}", tiles=f"query_tile = 16, key_tile = 32, {splits}", **decode | {"Nq": 7}, keep="tree")
    for mask in Paged.masks:
        add(f"mask-{mask}", mask=mask)
    for score in Paged.scores:
        add(f"score-{score}", score=score, D=40, scale=0.3)
    for keep in KEEPS:
        for packed in ("", "q"):
            drafts = dict(Nq=rng.randint(2, 16), traffic="drafts") if "tree" in keep else dict(Nq=70, traffic="mixture")
            add(f"keep-{keep}-{packed or 'batch'}", keep=keep, packed=packed, B=5, mask=None, score=rng.choice([None, "softcap", "alibi"]), **drafts)
            add(f"keep-{keep}-{packed or 'batch'}-window", keep=keep, packed=packed, mask=rng.choice(["window", "sink_and_window"]), **drafts)
    for order in (None, *ORDERS):
        for packed in ("", "q"):
            add(f"order-{order or 'apart'}-{packed or 'batch'}", order=order, packed=packed, rows_first=order is None, Hkv=3, Hq=6)
    for traffic in ("chunks", "tokens", "drafts", "mixture"):
        for packed in ("", "q"):
            for mask in ("causal", rng.choice(["window", "sink_and_window", "chunked", "diffusion"])):
                rows = {"chunks": 200, "tokens": 1, "drafts": 16, "mixture": 130}[traffic]
                add(f"{traffic}-{packed or 'batch'}-{mask}", traffic=traffic, packed=packed, mask=mask, Nq=rows, B=6, rows={"q": rows * 3 + 10})
    for hq, hkv in ((8, 1), (6, 3), (5, 1), (16, 2), (12, 4), (24, 2), (7, 7)):
        add(f"heads-{hq}-{hkv}", Hq=hq, Hkv=hkv, mask="causal", **rng.choice([dict(traffic="tokens", Nq=1), dict(traffic="drafts", Nq=9)]))
    for b in (33, 100, 300):
        add(f"many-{b}", B=b, packed=rng.choice(["", "q"]), traffic="tokens", Nq=1, rows={"q": b + 3}, D=40, Dv=40, page=16, Nk=64)
    # Layers of models: window and sinks, window and cap, chunks, prefixes, slopes, ranks of a stripe.
    for name, layer in (
        ("gpt-oss", dict(mask="window", sink=True, Hq=16, Hkv=2)), ("gemma", dict(mask="window", score="softcap", D=256, Dv=256)),
        ("llama4", dict(mask="chunked", D=128, Dv=128)), ("mpt", dict(mask="causal", score="alibi")), ("prefix", dict(mask="prefix_lm")),
        ("diffusion", dict(mask="diffusion", D=128, Dv=128)), ("rank", dict(mask="causal_stripe", lse=True)),
        ("streaming", dict(mask="sink_and_window")), ("mla", dict(mask="causal", D=192, Dv=128)),
    ):
        add(f"{name}-decode", traffic="tokens", packed="", Nq=1, **layer)
        one = f"split_keys = 1048576, key_tile = {32 if DTYPES[len(result) % 3] == 'f32' else 64}" if rng.random() < 0.5 else None
        add(f"{name}-mixture", traffic="mixture", packed="q", Nq=130, rows={"q": 300}, B=6, page=16, tiles=one, **layer)
    for d in (64, 128):
        add(f"ill-{d}", ill=True, B=6, D=d, Dv=d, sink=False, mask="causal")
    for d, dv in ((320, 320), (512, 512), (576, 512)):
        for traffic in ("tokens", "drafts", "mixture"):
            rows = {"tokens": 1, "drafts": 7, "mixture": 70}[traffic]
            add(f"wide-{d}-{dv}-{traffic}", traffic=traffic, D=d, Dv=dv, Nq=rows, B=3, Hkv=1, Hq=rng.choice([2, 16]), rows={"q": 3 * rows + 10}, mask="causal")
    while len(result) < 200:
        add("mixed", D=rng.choice(HEAD_DIMS), Dv=rng.choice(HEAD_DIMS), mask=rng.choice(list(Paged.masks)), keep=rng.choice([None, None, None, *KEEPS]),
            score=rng.choice([None, None, *Paged.scores]), **rng.choice([{}, dict(Nq=16, traffic="drafts"), dict(Nq=1, traffic="tokens")]))
    return result


def put_into_pages(case, values, rng):
    """The arguments with keys and values in pages, and the table of these. Sequences may have whole pages in common."""
    shared = case.spare < 0 and case.B > 1
    pages = case.pages
    order = rng.permutation(pages)
    table = rng.choice([-1, pages, 2**31 - 1], (case.B, case.columns)).astype(np.int32)
    laid = {name: np.full((pages, case.Hkv, case.page, d), np.nan, values[name].dtype) for name, d in (("k", case.D), ("v", case.Dv))}
    used = 0
    for b, length in enumerate(values["nk"]):
        for column in range(-(-min(length, case.Nk) // case.page)):
            rows = slice(column * case.page, min((column + 1) * case.page, length))
            if shared and b > 0 and all(np.array_equal(values[n][b, :, rows], values[n][0, :, rows]) for n in "kv"):
                table[b, column] = table[0, column]
                continue
            table[b, column] = order[used]
            used += 1
            for name in "kv":
                laid[name][table[b, column], :, : rows.stop - rows.start] = values[name][b, :, rows]
    if case.order:
        laid["kv"] = np.concatenate([laid["k"], laid["v"]], axis=ORDERS[case.order])
    return {name: laid.get(name, table if name == "table" else values.get(name)) for name, _, _ in case.tensors()}


def run(case, seed, folder, target, echo, tool):
    """Whether its results are those of each sequence alone."""
    rng = np.random.default_rng(seed)
    case.in_order = True
    values = draw_inputs(case, rng)
    case.in_order = False
    if case.spare < 0 and values["nk"].min(initial=0) >= 0:
        # A first part that sequences have in common.
        for name in "kv":
            for b, length in enumerate(values["nk"]):
                common = min(length, values["nk"][0], case.Nk // 2)
                values[name][b, :, :common] = values[name][0, :, :common]
    got = execute([(case, put_into_pages(case, values, rng))], folder, tool, target)
    return tell(isinstance(got, list) and agree(case, values, got[0]), case, seed, got, echo)
