"""Random calls of serving, each beside a reference in fp64, and sequences in other company, whose bits must stay.

    soak_serving.py --device cuda --batches 10000 --companies 10000

A batch is a call of `flash_attn_varlen_func`, `flash_attn_with_kvcache` or `attention` with keys in pages: prompts, parts of prompts,
single tokens, drafts and empty sequences, with NaN in all that no sequence has, and entries of the table that are of no page behind a
sequence's last one. A company is a sequence of such a call with num_splits=1 once more, in another batch or alone, at another place
and in other pages. Programs are those of `CONFIGS`, so that most of the time is spent in calls. Arrays are PyTorch's where it is
installed, else NumPy's. The exit status is 0 if all were right.
"""

import argparse
import contextlib
import os
import sys
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np

import flash_mlir as flash

try:
    import torch
except ImportError:
    torch = None

#: Largest difference to the reference, by 1 + its magnitude, for standard normal inputs; of log-sum-exps it is that of float32.
TOLERANCE = {"float32": 2e-5, "float16": 3e-3, "bfloat16": 2e-2}
NUM_SEQUENCES = 8
#: Rows of packed queries, of which sequences have a part.
ROWS = 40, 160
ROOM = 256
#: Masks by the query's and the key's place and the lengths of both; x is an array of the call.
KEEPS = {
    "stripe": lambda b, h, q, k, n, m, x: k % 4 == 1,
    "chunks": lambda b, h, q, k, n, m, x: (q + m - n) // 64 == k // 64,
    "prefix": lambda b, h, q, k, n, m, x: (k < 20) | (k <= q + m - n),
    "tree": lambda b, h, q, k, n, m, x: x[b, q, k] != 0,
    "flags": lambda b, h, q, k, n, m, x: (x[b] == 0) | (k <= q + m - n),
}


class Config(NamedTuple):
    """What programs depend on."""

    call: str  # "varlen", "kvcache" or "attention"
    page: int
    order: str = "heads_inside"
    heads: int = 4
    key_heads: int = 2
    dim: int = 64
    value_dim: int = 64
    tokens: int = 0  # of each sequence; 0 where queries are packed
    causal: bool = True
    window: tuple = (-1, -1)
    softcap: float = 0.0
    sink: bool = False
    alibi: bool = False
    keep: str = None
    appends: bool = False
    num_splits: int = 0
    most: int = 100  # queries of a sequence among packed ones


CONFIGS = [
    Config("varlen", 16),
    Config("varlen", 16, "side_by_side", heads=8, window=(30, 0), sink=True),
    Config("varlen", 32, softcap=15.0, window=(70, 0), num_splits=1),
    Config("varlen", 64, "heads_outside", dim=128, value_dim=128),
    Config("varlen", 48, causal=False),
    Config("varlen", 128, keep="chunks", num_splits=1),
    Config("varlen", 16, keep="stripe", heads=6, key_heads=3),
    Config("varlen", 24, "rows_outside", keep="tree", causal=False, most=16),
    Config("varlen", 16, alibi=True, num_splits=1),
    Config("varlen", 256, heads=5, key_heads=1, window=(40, 10), causal=False),
    Config("kvcache", 16, tokens=1, heads=8, key_heads=1, num_splits=1),
    Config("kvcache", 16, "side_by_side", tokens=1, heads=8, window=(63, 0), sink=True, appends=True),
    Config("kvcache", 32, tokens=4, appends=True),
    Config("kvcache", 64, "heads_outside", tokens=1, dim=128, value_dim=128, softcap=20.0, num_splits=1),
    Config("kvcache", 128, tokens=8, keep="tree", causal=False, num_splits=1),
    Config("kvcache", 16, "rows_outside", tokens=1, dim=128, value_dim=64, alibi=True),
    Config("kvcache", 40, tokens=16, heads=3, key_heads=1, window=(20, 0), num_splits=1),
    Config("kvcache", 16, tokens=2, sink=True, heads=16, key_heads=2, appends=True, num_splits=1),
    Config("attention", 16, keep="prefix", causal=False),
    Config("attention", 16, "side_by_side", keep="flags", causal=False, sink=True),
    Config("attention", 32, "heads_outside", softcap=30.0, dim=80, value_dim=96),
    Config("attention", 64, tokens=1, heads=8, keep="flags", causal=False),
    Config("attention", 16, tokens=5, keep="tree", causal=False, order="rows_outside"),
    Config("attention", 112, tokens=1, dim=192, value_dim=128, window=(90, 0)),
]
COMPANIES = [config for config in CONFIGS if config.num_splits == 1]


class Library:
    """Arrays of PyTorch on a device, or of NumPy."""

    def __init__(self, device, dtype):
        self.device, self.dtype = device, dtype
        self.functions = np if torch is None else torch

    def put(self, array):
        array = np.ascontiguousarray(array)
        return array if torch is None else torch.from_numpy(array).to(self.device)

    def draw(self, rng, *shape):
        seed = int(rng.integers(2**62))  # Of one number, so that sizes are the same with any library.
        if torch is None:
            return np.random.default_rng(seed).standard_normal(shape, np.float32).astype(self.dtype)
        generator = torch.Generator(self.device).manual_seed(seed)
        return torch.randn(shape, generator=generator, device=self.device).to(getattr(torch, self.dtype))

    def poison(self, array, is_used):
        """Makes NaN of the rows of pages that are not used."""
        if torch is None:
            array[~is_used] = np.nan
        else:
            array.masked_fill_(~self.put(is_used)[:, :, None, None], float("nan"))

    def to_double(self, array):
        return array.astype(np.float64) if torch is None else array.double()

    def get_bits(self, array):
        kind = f"int{array.dtype.itemsize * 8}"
        return array.view(kind) if torch is None else array.contiguous().view(getattr(torch, kind))


class Batch(NamedTuple):
    """The sequences of a call; what the host knows, and arrays."""

    queries: np.ndarray  # how many each sequence has
    keys: np.ndarray
    starts: np.ndarray  # of the queries among the rows
    table: np.ndarray
    query: object
    key: object
    value: object
    sink: object
    slopes: object
    array: object


def draw_lengths(config, rng, count, rows):
    """Of queries and keys; the queries are the last of the keys, but for sequences without keys."""
    queries, keys = np.full((2, count), config.tokens)
    room = get_room(config)
    for b in rng.permutation(count):
        if not config.tokens:
            kind = rng.choice(["token", "token", "drafts", "chunk", "prompt", "none"])
            drawn = {"token": 1, "drafts": rng.integers(2, 17), "none": 0}.get(kind, rng.integers(1, config.most + 1))
            queries[b] = min(drawn, rows, room)
            rows -= queries[b]
        cached = rng.choice([0, rng.integers(0, room - queries[b] + 1), room - queries[b], config.page])
        keys[b] = 0 if rng.random() < 0.08 else min(queries[b] + cached, room)
    return queries, keys


def get_room(config):
    return max(ROOM // config.page, 2) * config.page


def draw_array(config, rng, queries, keys):
    """The array that the mask reads, or None."""
    if config.keep == "flags":
        return rng.integers(0, 2, len(queries)).astype(np.int32)
    if config.keep != "tree":
        return None
    trees = np.zeros((len(queries), 16, get_room(config)), np.int8)
    for tree, n, m in zip(trees, queries, keys):
        cached = max(m - n, 0)
        tree[:, :cached] = 1
        for node in range(min(n, m)):
            if node and rng.random() < 0.9:
                tree[node] = tree[rng.integers(node)]
            tree[node, cached + node] = 1
    return trees


def draw_cache(config, rng, library, keys, may_share):
    """Keys and values in pages of a random order, and the table of these; a first page may be shared."""
    columns = get_room(config) // config.page
    count = len(keys) * columns + 3
    table = rng.choice([-1, count, 2**31 - 1], (len(keys), columns)).astype(np.int32)
    order = rng.permutation(count)
    is_used = np.zeros((count, config.page), bool)
    is_shared = may_share and rng.random() < 0.2
    for b, length in enumerate(keys):
        for column in range(-(-length // config.page)):
            rows = min(config.page, length - column * config.page)
            if is_shared and column == 0 and b and rows == config.page <= keys[0]:
                table[b, 0] = table[0, 0]
            else:
                table[b, column], order = order[0], order[1:]
            is_used[table[b, column], :rows] = True
    rows_of = {"heads_inside": ("pages", "rows", "heads"), "side_by_side": ("pages", "rows", "heads"), "heads_outside": ("pages", "heads", "rows"),
               "rows_outside": ("rows", "heads", "pages")}[config.order]
    sizes = {"pages": count, "rows": config.page, "heads": config.key_heads}

    def make(dim):
        made = library.draw(rng, *[sizes[name] for name in rows_of], dim)
        places = [*[rows_of.index(name) for name in ("pages", "rows", "heads")], 3]
        made = made.transpose(places) if torch is None else made.permute(places)
        library.poison(made, is_used)
        return made

    if config.order == "side_by_side":
        both = make(config.dim + config.value_dim)
        return both[..., : config.dim], both[..., config.dim :], table
    return make(config.dim), make(config.value_dim), table


def draw_batch(config, rng, library, count=NUM_SEQUENCES, rows=None, lengths=None):
    rows = rows or int(rng.choice(ROWS))
    queries, keys = draw_lengths(config, rng, count, rows - rng.choice([0, 7])) if lengths is None else lengths
    key, value, table = draw_cache(config, rng, library, keys, lengths is None)
    if config.tokens:
        starts = np.arange(count) * config.tokens
        query = library.draw(rng, count, config.tokens, config.heads, config.dim)
    else:
        starts = rng.integers(0, rows - queries.sum() + 1) + np.cumsum(queries) - queries
        query = library.draw(rng, rows, config.heads, config.dim)
    array = draw_array(config, rng, queries, keys)
    # Slopes are small: a score of some hundreds has few digits left.
    sink, slopes = (library.put(rng.normal(0, deviation, config.heads).astype(np.float32)) for deviation in (1, 0.05))
    return Batch(queries, keys, starts, table, query, key, value, sink, slopes, None if array is None else library.put(array))


def run(config, batch, library, rng=None):
    """The output and the log-sum-exp as rows: (rows, heads, Dv) and (rows, heads). With a generator new keys may be appended."""
    keep = config.keep and KEEPS[config.keep]
    array = batch.array
    mask = keep and (lambda b, h, q, k: keep(b, h, q, k, flash.query_length, flash.key_length, array))
    table, lengths = library.put(batch.table), library.put(batch.keys.astype(np.int32))
    ends = np.append(batch.starts, batch.starts[-1] + batch.queries[-1]).astype(np.int32)
    options = dict(mask=mask)
    if config.call == "attention":
        slopes, cap = batch.slopes, config.softcap
        if config.causal or config.window != (-1, -1):
            left = None if config.window[0] < 0 else config.window[0]
            options["mask"] = flash.window(left=left, right=0 if config.causal else config.window[1])
        if cap:
            options["score"] = lambda s, b, h, q, k: cap * np.tanh(s / cap)
        options.update(page_table=table, key_lengths=lengths, sink=batch.sink if config.sink else None, return_lse=True)
        if config.tokens:
            output, lse = flash.attention(batch.query.swapaxes(1, 2), batch.key, batch.value, **options)
            return output.swapaxes(1, 2).reshape(-1, *output.shape[1::2]), lse.swapaxes(1, 2).reshape(-1, config.heads)
        output, lse = flash.attention(batch.query, batch.key, batch.value, query_offsets=library.put(ends), **options)
        return output, lse.swapaxes(0, 1)
    options.update(causal=config.causal, window_size=config.window, softcap=config.softcap, num_splits=config.num_splits, block_table=table)
    options.update(alibi_slopes=batch.slopes if config.alibi else None, learnable_sink=batch.sink if config.sink else None)
    if config.call == "varlen":
        arguments = dict(cu_seqlens_q=library.put(ends), seqused_k=lengths, return_lse=True)
        output, lse = flash.flash_attn_varlen_func(batch.query, batch.key, batch.value, **arguments, **options)
        return output, lse.swapaxes(0, 1)
    new = None, None
    if rng is not None and config.appends and (batch.keys >= config.tokens).all():
        new, before = take_new_keys(config, batch, library)
        lengths = library.put((batch.keys - config.tokens).astype(np.int32))
    arguments = dict(k=new[0], v=new[1], cache_seqlens=lengths, return_softmax_lse=True)
    output, lse = flash.flash_attn_with_kvcache(batch.query, batch.key, batch.value, **arguments, **options)
    if new[0] is not None:
        for name, cache, wanted in zip(("key", "value"), (batch.key, batch.value), before):
            if not bool((library.get_bits(cache) == library.get_bits(wanted)).all()):
                raise AssertionError(f"the {name} cache is not what it was with the new rows written into it")
    return output.reshape(-1, *output.shape[2:]), lse.swapaxes(1, 2).reshape(-1, config.heads)


def take_new_keys(config, batch, library):
    """The last rows of each sequence, which are NaN in the caches after that, and what the caches were."""
    at = batch.keys[:, None] - config.tokens + np.arange(config.tokens)
    places = library.put(np.take_along_axis(batch.table, at // config.page, 1).astype(np.int64)), library.put(at % config.page)
    before = [cache.copy() if torch is None else cache.clone() for cache in (batch.key, batch.value)]
    new = [cache[places] for cache in before]
    for cache in (batch.key, batch.value):
        cache[places] = np.nan if torch is None else float("nan")
    return new, before


def expect(config, batch, library):
    """(which rows there are, the output and the log-sum-exp in fp64), as (sequences, queries, heads, ...)."""
    x, put = library.functions, library.put
    count, most, room = len(batch.queries), max(int(batch.queries.max()), 1), get_room(config)
    group = config.heads // config.key_heads
    rows = put(np.minimum(batch.starts[:, None] + np.arange(most), batch.query.shape[0] * max(config.tokens, 1) - 1))
    query = library.to_double(batch.query.reshape(-1, config.heads, config.dim)[rows])
    n, m = (put(lengths.reshape(-1, 1, 1, 1)) for lengths in (batch.queries, batch.keys))
    b, h, q, k = (put(index) for index in np.ogrid[:count, : config.heads, :most, :room])
    pages = put(batch.table.clip(0, batch.key.shape[0] - 1).astype(np.int64))
    key, value = (library.to_double(cache[pages]).reshape(count, room, config.key_heads, cache.shape[3]) for cache in (batch.key, batch.value))
    is_there = put(np.arange(room) < batch.keys[:, None])[:, :, None, None]
    key, value = x.where(is_there, key, 0.0), x.where(is_there, value, 0.0)
    query = query.reshape(count, most, config.key_heads, group, config.dim)
    scores = x.einsum("bqngd,bknd->bngqk", query, key).reshape(count, config.heads, most, room) * config.dim**-0.5
    if config.softcap:
        scores = config.softcap * x.tanh(scores / config.softcap)
    if config.alibi:
        scores = scores - library.to_double(batch.slopes)[h] * abs(q + m - n - k)
    kept = (k < m) & (q < n) & (h >= 0)
    left, right = config.window[0], 0 if config.causal else config.window[1]
    if left >= 0:
        kept = kept & (k >= q + m - n - left)
    if right >= 0:
        kept = kept & (k <= q + m - n + right)
    if config.keep:
        kept = kept & KEEPS[config.keep](b, h, q, k, n, m, batch.array)
    scores = x.where(kept, scores, -np.inf)
    sink = library.to_double(batch.sink).reshape(1, -1, 1, 1) if config.sink else put(np.full((1, 1, 1, 1), -np.inf))
    top = x.maximum(x.amax(scores, -1)[..., None], sink)
    top = x.where(x.isinf(top), 0.0, top)
    weights = x.exp(scores - top)
    total = weights.sum(-1) + x.exp(sink - top)[..., 0]
    weights = weights / x.where(total > 0, total, 1.0)[..., None]
    output = x.einsum("bngqk,bknd->bqngd", weights.reshape(count, config.key_heads, group, most, room), value)
    with np.errstate(divide="ignore"):
        lse = x.log(total) + top[..., 0]
    return rows, output.reshape(count, most, config.heads, config.value_dim), lse.swapaxes(1, 2)


def check_batch(config, rng, library):
    """What is wrong with a call, or None."""
    x, batch = library.functions, draw_batch(config, rng, library)
    rows, output, lse = expect(config, batch, library)
    results = run(config, batch, library, rng)
    is_row = library.put(np.arange(rows.shape[1]) < batch.queries[:, None])
    wrong = []
    for found, wanted, tolerance in zip(results, (output, lse), (TOLERANCE[library.dtype], TOLERANCE["float32"])):
        found = library.to_double(found[rows])
        with np.errstate(invalid="ignore"):
            is_right = (found == wanted) | (abs(found - wanted) <= tolerance * (1 + abs(wanted)))
        wrong.append((~is_right.reshape(*is_row.shape, -1).all(-1)) & is_row)
    is_covered = np.zeros(len(results[0]), bool)
    for start, count in zip(batch.starts, batch.queries):
        is_covered[start : start + count] = True
    rest = ~library.put(is_covered)[:, None]
    filled = [((results[0] != 0).any(-1) & rest).any(), ((results[1] != -np.inf) & rest).any()]
    if not bool(x.stack([wrong[0].any(), wrong[1].any(), *filled]).any()):
        return None
    for name, where, found, wanted in zip(("output", "log-sum-exp"), wrong, results, (output, lse)):
        if bool(where.any()):
            b, i = (int(place[0]) for place in (where.nonzero() if torch is None else where.nonzero(as_tuple=True)))
            difference = float(abs(library.to_double(found[rows[b, i]]) - wanted[b, i]).max())
            return (f"the {name} of query {i} of sequence {b} ({batch.queries[b]} queries, {batch.keys[b]} keys) is off by {difference:.3g}; "
                    f"{int(where.sum())} rows are wrong")
    return "rows of no sequence are not 0, and -inf in the log-sum-exp"


def check_company(config, rng, library):
    """What is wrong with sequences in another call, or None."""
    first = draw_batch(config, rng, library)
    count = int(rng.choice([1, 3, NUM_SEQUENCES]))
    moved = rng.permutation(NUM_SEQUENCES)[: rng.integers(1, count + 1)]
    places = rng.permutation(count)[: len(moved)]
    left = max(ROWS) - int(first.queries[moved].sum())
    queries, keys = draw_lengths(config, rng, count - len(moved), left)
    lengths = np.zeros((2, count), int)
    lengths[:, np.setdiff1d(np.arange(count), places)] = queries, keys
    lengths[:, places] = first.queries[moved], first.keys[moved]
    rows = next(size for size in ROWS if size >= lengths[0].sum())
    second = draw_batch(config, rng, library, count, rows, lengths)
    columns = [(i, c) for i, b in enumerate(moved) for c in range(-(-first.keys[b] // config.page))]
    old, new = (np.array([table[of[i], c] for i, c in columns], int) for table, of in ((first.table, moved), (second.table, places)))
    for there, here in ((second.key, first.key), (second.value, first.value)):
        there[library.put(new)] = here[library.put(old)]
    old, new = (
        library.put(np.concatenate([[], *[batch.starts[b] + np.arange(batch.queries[b]) for b in of]]).astype(np.int64))
        for batch, of in ((first, moved), (second, places))
    )
    flat = (-1, config.heads, config.dim)
    second.query.reshape(flat)[new] = first.query.reshape(flat)[old]
    second = second._replace(sink=first.sink, slopes=first.slopes)
    if first.array is not None:
        second.array[library.put(places)] = first.array[library.put(moved)]
    pairs = zip(run(config, first, library), run(config, second, library))
    same = [(library.get_bits(x[old]) == library.get_bits(y[new])).all() for x, y in pairs]
    if bool(library.functions.stack(same).all()):
        return None
    name = " and the ".join(what for what, is_same in zip(("output", "log-sum-exp"), same) if not bool(is_same))
    return f"the {name} of sequences {moved.tolist()} of {NUM_SEQUENCES} have other bits as sequences {places.tolist()} of {count}"


def check_all(kind, check, configs, count, library, arguments):
    """How many of the cases are wrong; of the first one it prints what is, and how to repeat it."""
    start, failures = time.monotonic(), 0
    for number in range(arguments.first, arguments.first + count):
        config = configs[number % len(configs)]
        try:
            message = check(config, np.random.default_rng([arguments.seed, number]), library)
        except Exception:
            message = traceback.format_exc()
        if message and not failures:
            others = "companies" if kind == "batches" else "batches"
            command = f"{sys.argv[0]} --device {arguments.device} --dtype {library.dtype} --seed {arguments.seed} --first {number} --{kind} 1 --{others} 0"
            print(f"of the {kind} number {number}, {config}: {message}\n    repeat it: {command}", flush=True)
        failures += message is not None
    print(f"{count} {kind}, {failures} wrong, {time.monotonic() - start:.1f} s", flush=True)
    return failures


def compile_all(library):
    """Makes the kernels of all programs in threads, so that no call has to wait."""

    def call(config, count, rows):
        rng = np.random.default_rng(0)
        lengths = np.zeros((2, count), int) + config.tokens
        with contextlib.suppress(Exception):  # Which a call will have, too.
            run(config, draw_batch(config, rng, library, count, rows, lengths), library)

    start = time.monotonic()
    sizes = [(config, NUM_SEQUENCES, rows) for config in CONFIGS for rows in ROWS]
    sizes += [(config, count, rows) for config in COMPANIES for count in (1, 3) for rows in ROWS]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(lambda size: call(*size), sizes))
    print(f"compiled in {time.monotonic() - start:.1f} s", flush=True)


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda" if torch is not None and torch.cuda.is_available() else "cpu")
    parser.add_argument("--batches", type=int, default=1000)
    parser.add_argument("--companies", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=time.time_ns() % 2**31)
    parser.add_argument("--dtype", choices=list(TOLERANCE), help="bfloat16 on CUDA if left out, else float32")
    parser.add_argument("--first", type=int, default=0, metavar="N", help="the number of the first batch and company")
    arguments = parser.parse_args(argv)
    dtype = arguments.dtype or ("float32" if arguments.device == "cpu" else "bfloat16")
    if torch is None and (arguments.device != "cpu" or dtype == "bfloat16"):
        parser.error("without PyTorch there are --device cpu and the dtypes float32 and float16")
    library = Library(arguments.device, dtype)
    print(f"{arguments.device}, {dtype}, seed {arguments.seed}", flush=True)
    if arguments.device != "cpu" and arguments.batches + arguments.companies > len(CONFIGS):
        compile_all(library)
    failures = check_all("batches", check_batch, CONFIGS, arguments.batches, library, arguments)
    failures += check_all("companies", check_company, COMPANIES, arguments.companies, library, arguments)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
