"""Pages: programs whose keys and values lie in pages, and each sequence alone in numpy.

`suite.py --paged` runs them. Rows are drawn as those of batches that `packed.py` has, and put into
pages of a random order behind that: the formulas know nothing of tables. Rows of no sequence are NaN,
entries of the table behind a sequence's last page are of no page.
"""

import random

import numpy as np

from packed import DTYPES, HEAD_DIMS, MASKS, Packed, agree, draw_inputs, execute, tell


class Paged(Packed):
    """A case whose keys and values lie in pages; its queries are packed, or a batch."""

    def __init__(self, name, **options):
        self.page = 16
        self.spare = 0  # pages of no sequence, where negative as many are in common
        self.tiles = None  # keys of its schedule
        self.in_order = False  # whether rows lie as those of a batch, to be drawn
        super().__init__(name, **options)
        self.padded = "k"
        self.columns = self.Nk // self.page

    def tensors(self):
        arguments = super().tensors()
        if self.in_order:
            return arguments
        pages = self.B * self.columns + max(self.spare, 0)
        arguments = [(name, [pages, shape[1], self.page, shape[3]] if name in ("k", "v") else shape, element)
                     for name, shape, element in arguments]
        return arguments[:3] + [("table", [self.B, self.columns], "i32")] + arguments[3:]

    def types(self):
        types = super().types()
        for name, shape, element in self.tensors():
            if name in ("k", "v") and self.dynamic:
                types[name] = f"tensor<?x{'x'.join(map(str, shape[1:]))}x{element}>"
        if self.dynamic and not self.in_order:
            types["table"] = "tensor<?x?xi32>"
        return types

    def view(self, side, name, types):
        if side != "k":
            return super().view(side, name, types)
        batches, rows = ("?", "?") if self.dynamic else (self.B, self.Nk)
        view = f"tensor<{batches}x{self.Hkv}x{rows}x{self.D if name == 'k' else self.Dv}x{self.dtype}>"
        line = (f"  %{name}_view = flash.unpage %{name} by %table lengths(%nk : {types['nk']})"
                f" : {types[name]}, {types['table']} -> {view}\n")
        return line, f"%{name}_view", view

    def clauses(self, types):
        sets, parts = super().clauses(types)
        at = len(parts) - any(part.startswith("score") for part in parts)
        return sets, parts[:at] + ([f"schedule(<{self.tiles}>)"] if self.tiles else []) + parts[at:]


def paged_cases():
    """50 attentions. Sizes from a fixed seed; lengths and tables are inputs, and fresh."""
    result = []
    rng = random.Random(20261128)

    def add(name, **options):
        hkv = rng.randint(1, 2)
        page = options.get("page", rng.choice([16, 16, 32, 64, 128]))
        defaults = dict(
            dtype=DTYPES[len(result) % 3], B=rng.choice([1, 2, 3, 5, 9]), Hkv=hkv, Hq=hkv * rng.choice([1, 2, 4]), page=page,
            packed=rng.choice(["", "q"]), mask=rng.choice([None, "causal", "causal", "window"]), dynamic=rng.random() < 0.7,
            offsets={"q": rng.choice(["i32", "i64"]), "k": "i32"}, lse=rng.random() < 0.5, sink=rng.random() < 0.2, spare=rng.choice([-1, 0, 7]),
            Nk=page * rng.randint(1, max(2, 400 // page)), Nq=rng.choice([1, 4, 33, 70, 130]))
        case = Paged(f"{len(result):03d}-paged-{name}", **defaults | options)
        if case.packed:
            case.rows["q"] = case.Nq + rng.choice([5, 60])
        result.append(case)

    for d in HEAD_DIMS:
        add(f"dims-{d}", D=d, Dv=d)
    for page in (8, 16, 32, 48, 64, 128, 256):
        add(f"page-{page}", page=page, D=64, Dv=rng.choice([64, 48]), Nk=page * max(2, 300 // page))
    for page, tile in ((16, 16), (16, 64), (32, 16), (64, 128), (128, 32)):
        add(f"tile-{page}-{tile}", page=page, tiles=f"query_tile = 64, key_tile = {tile}", D=64, Dv=64, mask="causal")
    for splits in ("num_splits = 3", "split_ctas = 64", "split_keys = 64"):
        add(f"split-{splits.split(' ')[0]}", tiles=f"query_tile = 16, key_tile = 32, {splits}", dtype="f16", D=128, Dv=128, Nq=1, packed="",
            page=16, Nk=480, Hq=8, Hkv=2)
    for mask in MASKS:
        add(f"mask-{mask}", mask=mask, D=64, Dv=64)
    for score in ("alibi", "per_key", "softcap"):
        if score in Paged.scores:
            add(f"score-{score}", score=score, D=40, Dv=64, scale=0.3)
    while len(result) < 50:
        add("mixed", D=rng.choice(HEAD_DIMS), Dv=rng.choice(HEAD_DIMS), mask=rng.choice(list(MASKS)))
    return result


def put_into_pages(case, values, rng):
    """The arguments with keys and values in pages, and the table of these. Sequences may have whole pages in common."""
    shared = case.spare < 0 and case.B > 1
    pages = {name: shape[0] for name, shape, _ in case.tensors()}["k"]
    order = rng.permutation(pages)
    table = rng.choice([-1, pages, 2**31 - 1], (case.B, case.columns)).astype(np.int32)
    laid = {name: np.full(shape, np.nan, values[name].dtype) for name, shape, _ in case.tensors() if name in ("k", "v")}
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
