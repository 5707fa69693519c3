"""Times attention over caches as serving calls it: pages, drafts, ragged lengths, mixed batches, chunks, and the host.

    python serving.py [--tokens 4096] [--sequences 64] [--only pages single] [--rounds 20]

All are called from PyTorch, and each figure is the median of rounds, of one call of each behind a flush of the L2
cache, and a pause in which the host queues it. Sizes grow with `--tokens`, a sequence's, and `--sequences`, a batch's.

`pages` has a token for each of half of the sequences: a contiguous cache beside pages in random order, and what a sum
and a copy move. `single` has a token of one sequence, of a quarter to 16 times the tokens. `drafts` has some tokens
for each sequence. `ragged` has log-uniform lengths beside equal ones, by schedules. `mixed` has prompts and single
tokens in one call and apart, `chunks` a long prompt in parts behind each other and at once. `host` has microseconds of
queueing a call of 8 sequences, and of replaying it in a CUDA graph, which takes other lengths, too.

Results are compared with a softmax in f32. What fails is said, with its error, and the rest goes on. Lines of JSON;
the status is 1 if a call of ours fails or is off.
"""

import argparse
import functools
import importlib.util
import math
import statistics
import sys
import time

import torch
from packed_rows import Timer, offsets_of, say
from torch.nn.functional import scaled_dot_product_attention

import flash_mlir as flash

CAUSAL = flash.causal()
# Keys are written for rows of all heads, as most engines do, for heads of all rows, and beside their values.
ROWS, HEADS, BESIDE = "rows", "heads outside", "side by side"


class Sequences:
    """Queries, keys and values of sequences, which caches have in pages, or in a row for each sequence.

    Sequences have `lengths` keys, the last ones for their `tokens`, and caches have room for so many keys.
    """

    def __init__(self, options, generator, lengths, tokens=1, room=None):
        self.generator, self.lengths, self.room = generator, lengths, room or max(lengths)
        self.tokens = [tokens] * len(lengths) if isinstance(tokens, int) else tokens
        self.kind = dict(device=options.device, dtype=getattr(torch, options.dtype))
        self.device, dim = options.device, options.dim
        draw = lambda rows, heads: torch.randn(rows, heads, dim, generator=generator, **self.kind)
        self.query = draw(sum(self.tokens), options.heads)
        self.key, self.value = (draw(sum(lengths), options.key_heads) for _ in range(2))
        self.used = torch.tensor(lengths, dtype=torch.int32, device=self.device)
        self.offsets, self.key_offsets = offsets_of(self.tokens, options), offsets_of(lengths, options)
        self.bytes = 2 * self.key.numel() * self.key.element_size()
        self.caches = {}

    @property
    def batch(self):
        """The queries as (sequences, heads, tokens, D)."""
        return self.query.unflatten(0, (len(self.lengths), -1)).transpose(1, 2)

    def make_table(self, page):
        """Pages in random order; -1 behind a sequence's pages."""
        columns = torch.arange(-(-self.room // page), device=self.device)
        there = columns < -(-self.used // page)[:, None]
        table = torch.full(there.shape, -1, dtype=torch.int32, device=self.device)
        table[there] = torch.randperm(int(there.sum()), generator=self.generator, device=self.device).int()
        return table

    def get_cache(self, page=None, order=ROWS):
        """(keys, values, table), both (pages, rows of a page, key heads, D); without pages a row is a sequence.

        Rows of no sequence are NaN, which is the result of a peer that multiplies them by 0.
        """
        if (page, order) not in self.caches:
            self.caches[page, order] = self._make_cache(page, order)
        return self.caches[page, order]

    def _make_cache(self, page, order):
        numbers = torch.arange(len(self.lengths), dtype=torch.int32, device=self.device)
        table = numbers[:, None] if page is None else self.make_table(page)
        page = page or self.room
        count, (heads, dim) = int(table.max()) + 1, self.key.shape[1:]
        make = lambda *shape: torch.full(shape, math.nan, **self.kind)
        if order == BESIDE:
            caches = make(count, page, heads, 2 * dim).split(dim, -1)
        elif order == HEADS:
            caches = [make(count, heads, page, dim).transpose(1, 2) for _ in range(2)]
        else:
            caches = [make(count, page, heads, dim) for _ in range(2)]
        sequences = numbers.repeat_interleave(self.used).long()
        positions = torch.arange(len(self.key), device=self.device) - self.key_offsets[sequences]
        pages = table[sequences, positions // page].long()
        for cache, rows in zip(caches, (self.key, self.value)):
            cache[pages, positions % page] = rows
        return *caches, table

    def compute(self):
        """The output in f32."""
        output = torch.empty(self.query.shape, device=self.device)
        starts, key_starts = self.offsets.tolist(), self.key_offsets.tolist()
        for number, keys in enumerate(self.lengths):
            key, value = (x[key_starts[number] : key_starts[number + 1]].float() for x in (self.key, self.value))
            last = torch.arange(keys - self.tokens[number], keys, device=self.device)
            # Some queries at once, whose scores there is memory for.
            rows = slice(starts[number], starts[number + 1])
            for queries, into, end in zip(*(x.split(512) for x in (self.query[rows], output[rows], last))):
                grouped = queries.float().unflatten(1, (key.shape[1], -1)) * queries.shape[-1] ** -0.5
                scores = torch.einsum("qhgd,khd->hgqk", grouped, key)
                scores.masked_fill_(torch.arange(keys, device=self.device) > end[:, None], -math.inf)
                into.copy_(torch.einsum("hgqk,khd->qhgd", scores.softmax(-1), value).flatten(1, 2))
        return output

    # Calls, whose output is (tokens, heads, D).

    def contiguous(self, order=ROWS):
        key, value = (x.transpose(1, 2) for x in self.get_cache(None, order)[:2])
        return lambda: pack(flash.attention(self.batch, key, value, CAUSAL, key_lengths=self.used))

    def paged(self, page, order=ROWS, schedule=None):
        key, value, table = self.get_cache(page, order)
        options = dict(page_table=table, key_lengths=self.used, schedule=schedule)
        return lambda: pack(flash.attention(self.batch, key, value, CAUSAL, **options))

    def with_cache(self, page, **options):
        key, value, table = self.get_cache(page)
        options.update(cache_seqlens=self.used, block_table=table, causal=True)
        query = self.query.unflatten(0, (len(self.lengths), -1))
        return lambda: flash.flash_attn_with_kvcache(query, key, value, **options).flatten(0, 1)

    def packed(self):
        offsets = dict(query_offsets=self.offsets, key_offsets=self.key_offsets)
        return lambda: flash.attention(self.query, self.key, self.value, CAUSAL, **offsets)

    def varlen(self, page, **options):
        key, value, table = self.get_cache(page)
        options.update(block_table=table, seqused_k=self.used, causal=True)
        return lambda: flash.flash_attn_varlen_func(self.query, key, value, self.offsets, **options)

    def fa4(self, timer, page=None):
        """By name, if FlashAttention-4 is there."""
        if "FA4" not in timer.modules:
            return {}
        key, value, table = self.get_cache(page)
        options = dict(cu_seqlens_q=self.offsets, seqused_k=self.used)
        options.update(max_seqlen_q=max(self.tokens), max_seqlen_k=self.room)
        if page is not None:
            options["page_table"] = table.clamp_min(0)
        call = lambda: timer.modules["FA4"].flash_attn_varlen_func(self.query, key, value, causal=True, **options)
        return {f"FA4, {page or 'contiguous'}": lambda: get_first(call())}

    def sdpa(self, timer):
        """PyTorch's backends by name, for sequences that fill their rows and have a token each."""
        tensors = [self.batch, *(x.transpose(1, 2) for x in self.get_cache()[:2])]
        if timer.device != "cuda":
            return {"SDPA": lambda: pack(scaled_dot_product_attention(*tensors, enable_gqa=True))}
        calls = {name: timer.sdpa_call(name, tensors, False, enable_gqa=True) for name in ("FA2", "cuDNN")}
        return {name: lambda call=call: pack(call()) for name, call in calls.items()}

    def flashinfer(self, page):
        """By name, if it is there; planned at its first call."""
        if not importlib.util.find_spec("flashinfer"):
            return {}
        key, value, table = self.get_cache(page)

        @functools.cache
        def plan():
            import flashinfer

            memory = torch.empty(128 << 20, dtype=torch.uint8, device=self.device)
            wrapper = flashinfer.BatchDecodeWithPagedKVCacheWrapper(memory, "NHD", use_tensor_cores=True)
            ends = torch.nn.functional.pad((-(-self.used // page)).cumsum(0, dtype=torch.int32), (1, 0))
            sizes = self.query.shape[1], *key.shape[2:], page
            dtypes = dict(q_data_type=self.query.dtype, kv_data_type=key.dtype)
            wrapper.plan(ends, table[table >= 0], (self.used - 1) % page + 1, *sizes, **dtypes)
            return wrapper

        return {f"FlashInfer, {page}": lambda: plan().run(self.query, (key, value))}


def pack(output):
    """(sequences, heads, tokens, D) as rows."""
    return output.transpose(1, 2).flatten(0, 1)


def get_first(result):
    return result[0] if isinstance(result, tuple) else result


def differ(output, wanted):
    """By how much the worst token is off: one page of others would be little of all."""
    output, wanted = output.reshape(wanted.shape).float().flatten(1), wanted.flatten(1)
    return float(((output - wanted).norm(dim=1) / wanted.norm(dim=1)).max())


def measure(what, timer, expected, ours, others=(), rates=None, **about):
    """Says what functions take; returns whether ours are right, and milliseconds of those that do not fail.

    `expected` is an output, or some by the names of functions; some functions give a list of parts. `rates` are a unit,
    and how many of it a call has that takes a millisecond.
    """
    off, there = {}, {}
    for name, function in {**ours, **dict(others)}.items():
        try:
            output, wanted = function(), expected[name] if isinstance(expected, dict) else expected
            output = torch.cat(output) if isinstance(output, list) else output
            off[name], there[name] = round(differ(output, wanted), 5), function
        except Exception as error:  # The others are measured.
            say(what=what, **about, failed=name, error=str(error)[:500] or type(error).__name__)
    times = {name: ms for name, ms in timer.compare(there).items() if ms is not None}
    found = {"us": {name: round(1e3 * ms, 2) for name, ms in times.items()}}
    if rates:
        found[rates[0]] = {name: round(rates[1] / ms, 3) for name, ms in times.items()}
    first = next(iter(ours))
    if first in times:
        found[f"of {first}"] = {name: round(ms / times[first], 3) for name, ms in times.items() if name != first}
    say(what=what, **about, **found, differ=off)
    return all(off.get(name, math.inf) < 0.01 for name in ours), times


def in_tb(sequences):
    return "TB/s", 1e-9 * sequences.bytes


def compare_pages(options, generator, timer):
    sequences = Sequences(options, generator, [options.tokens] * max(1, options.sequences // 2))
    both = torch.cat([sequences.key.flatten(), sequences.value.flatten()]).view(torch.float32)
    moved = timer.compare({"read": both.sum, "copy": both.clone})
    factors = {"read": 1e-9, "copy": 2e-9}
    rates = {name: round(factors[name] * sequences.bytes / ms, 3) for name, ms in moved.items() if ms}
    say(what="card", bytes=sequences.bytes, **{"TB/s": rates})
    ours = {"contiguous": sequences.contiguous(), f"contiguous, {HEADS}": sequences.contiguous(HEADS)}
    ours.update({str(page): sequences.paged(page) for page in (16, 32, 64, 128, 256)})
    ours.update({f"{page}, {order}": sequences.paged(page, order) for page in (16, 128) for order in (HEADS, BESIDE)})
    others = sequences.sdpa(timer)
    for page in (None, 128, 256):
        others.update(sequences.fa4(timer, page))
    for page in (16, 64):
        others.update(sequences.flashinfer(page))
    about = dict(sequences=len(sequences.lengths), keys=options.tokens)
    return measure("pages", timer, sequences.compute(), ours, others, in_tb(sequences), **about)[0]


def compare_single(options, generator, timer):
    right = True
    for keys in (options.tokens // 4, options.tokens, 4 * options.tokens, 16 * options.tokens):
        sequences = Sequences(options, generator, [keys])
        ours = {"contiguous": sequences.contiguous(), "16": sequences.paged(16), "128": sequences.paged(128)}
        key, value = (x.transpose(0, 1)[None] for x in (sequences.key, sequences.value))
        ours["without lengths"] = lambda: pack(flash.attention(sequences.batch, key, value))
        others = {**sequences.sdpa(timer), **sequences.fa4(timer), **sequences.fa4(timer, 128)}
        right &= measure("single", timer, sequences.compute(), ours, others, in_tb(sequences), keys=keys)[0]
    return right


def compare_drafts(options, generator, timer):
    right = True
    for tokens in (1, 2, 4, 8, 16):
        sequences = Sequences(options, generator, [options.tokens] * options.sequences, tokens)
        ours = {"contiguous": sequences.contiguous(), "16": sequences.paged(16), "128": sequences.paged(128),
                "128, packed queries": sequences.varlen(128)}
        about = dict(tokens=tokens, sequences=options.sequences, keys=options.tokens)
        others = sequences.fa4(timer, 128)
        right &= measure("drafts", timer, sequences.compute(), ours, others, in_tb(sequences), **about)[0]
    return right


def compare_ragged(options, generator, timer):
    most = 8 * options.tokens
    drawn = torch.empty(options.sequences, device=options.device)
    drawn.uniform_(math.log(most / 328), math.log(most), generator=generator)
    ragged = drawn.exp().long().clamp_min(1).tolist()
    equal = [sum(ragged) // len(ragged)] * len(ragged)
    right, found = True, {}
    # An engine's tables have the room of its longest sequence.
    batches = {"equal": (equal, None), "equal, room as ragged": (equal, most), "ragged": (ragged, most)}
    for name, (lengths, room) in batches.items():
        sequences = Sequences(options, generator, lengths, room=room)
        ours = {"default": sequences.paged(64), "num_splits=1": sequences.with_cache(64, num_splits=1),
                "packed queries": sequences.varlen(64), "packed": sequences.packed()}
        for tile in (64, 128):
            for split in (1024, 2048):
                schedule = f"key_tile={tile},split_keys={split}"
                ours[schedule] = sequences.paged(64, schedule=schedule)
        others = sequences.fa4(timer, 128)
        about = dict(lengths=name, longest=max(lengths), count=len(lengths), total=sum(lengths))
        is_right, found[name] = measure("ragged", timer, sequences.compute(), ours, others, in_tb(sequences), **about)
        right &= is_right
    more = sum(ragged) / sum(equal)
    both = found["equal"].keys() & found["ragged"].keys()
    rates = {call: round(more * found["equal"][call] / found["ragged"][call], 3) for call in ours if call in both}
    say(what="ragged", **{"TB/s of equal": rates})
    return right


def compare_mixed(options, generator, timer):
    keys, count = options.tokens // 2, 2 * options.sequences
    batches = {"mixed": [keys] * 2 + [1] * count, "prompts": [keys] * 2, "single tokens": [1] * count}
    cases = {name: Sequences(options, generator, [keys] * len(tokens), tokens) for name, tokens in batches.items()}
    expected = {name: case.compute() for name, case in cases.items()}
    right = True
    for page in (16, 128):
        ours = {name: case.varlen(page) for name, case in cases.items()}
        ours["single tokens, batch"] = cases["single tokens"].paged(page)
        wanted = {**expected, "single tokens, batch": expected["single tokens"]}
        others = {}
        for name, case in cases.items() if page == 128 else ():
            for call in case.fa4(timer, page).values():
                others[f"FA4, {name}"], wanted[f"FA4, {name}"] = call, expected[name]
        about = dict(page=page, prompts=2, singles=count, keys=keys)
        is_right, times = measure("mixed", timer, wanted, ours, others, **about)
        right &= is_right
        if is_right:
            larger = max(times["prompts"], min(times["single tokens"], times["single tokens, batch"]))
            say(what="mixed", **about, **{"of the larger part": round(times["mixed"] / larger, 3)})
    return right


def compare_chunks(options, generator, timer):
    length, chunk = 4 * options.tokens, options.tokens // 2
    whole = Sequences(options, generator, [length], length)
    used = [torch.tensor([end], dtype=torch.int32, device=options.device) for end in range(chunk, length + 1, chunk)]
    queries, offsets = whole.query.split(chunk), offsets_of([chunk], options)

    def in_chunks(function, key, value, **more):
        more.update(cu_seqlens_q=offsets, max_seqlen_q=chunk, max_seqlen_k=length, causal=True)
        return lambda: [get_first(function(q, key, value, seqused_k=each, **more)) for q, each in zip(queries, used)]

    varlen = flash.flash_attn_varlen_func
    ours = {"at once": whole.packed(), "chunks, contiguous": in_chunks(varlen, *whole.get_cache()[:2])}
    others = whole.fa4(timer)
    for page in (16, 128):
        key, value, table = whole.get_cache(page)
        ours[f"chunks, {page}"] = in_chunks(varlen, key, value, block_table=table)
        if page == 128 and others:
            theirs = timer.modules["FA4"].flash_attn_varlen_func
            others[f"FA4, chunks, {page}"] = in_chunks(theirs, key, value, page_table=table)
    rates = "TFLOP/s", 2e-9 * options.heads * options.dim * length * (length + 1)
    return measure("chunks", timer, whole.compute(), ours, others, rates, keys=length, chunk=chunk)[0]


def time_host(functions, options, calls=50):
    """Microseconds of queueing a call, of the least and of the median round."""
    times = {name: [] for name in functions}
    for _ in range(options.rounds):
        for name, function in functions.items():
            if options.device == "cuda":
                torch.cuda.synchronize()
            start = time.perf_counter()
            for _ in range(calls):
                function()
            times[name].append(1e6 * (time.perf_counter() - start) / calls)
    return {name: [round(min(each), 2), round(statistics.median(each), 2)] for name, each in times.items()}


def compare_host(options, generator, timer):
    count, keys, page = 8, max(2, options.tokens // 8), 16
    sequences = Sequences(options, generator, [keys] * count)
    key, value, table = sequences.get_cache(page)
    query, batch, behind = sequences.query[:, None], sequences.batch.contiguous(), sequences.used - 1
    # The last keys of all, which a call writes where they are.
    new = [x.unflatten(0, (count, keys))[:, -1:].contiguous() for x in (sequences.key, sequences.value)]
    paged = dict(page_table=table, key_lengths=sequences.used)
    with_cache = functools.partial(flash.flash_attn_with_kvcache, query, key, value, block_table=table, causal=True)
    ours = {"flash_attn_with_kvcache": lambda: with_cache(cache_seqlens=sequences.used),
            "flash_attn_with_kvcache, appending": lambda: with_cache(*new, cache_seqlens=behind),
            "flash_attn_varlen_func": sequences.varlen(page),
            "attention": lambda: flash.attention(batch, key, value, CAUSAL, **paged),
            "Attention": functools.partial(flash.Attention(CAUSAL), batch, key, value, **paged)}
    others = {**sequences.sdpa(timer), **sequences.fa4(timer, 128)}
    about = dict(sequences=count, keys=keys, page=page)
    right, times = measure("host", timer, sequences.compute(), ours, others, **about)
    functions = {name: function for name, function in {**ours, **others}.items() if name in times}
    say(what="host", **about, **{"queueing, us": time_host(functions, options)})
    if options.device != "cuda":
        return right
    graphs, outputs = {}, {}
    for name, function in functions.items():
        try:
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                outputs[name] = function()
            graphs[name] = graph
        except Exception as error:
            say(what="host", failed=f"{name}, captured", error=str(error)[:500])
            right &= name not in ours
    replays = timer.compare({name: graph.replay for name, graph in graphs.items()})
    # Shorter sequences, at each replay.
    for lengths in (sequences.used, behind):
        lengths.copy_(lengths - torch.arange(count, device=options.device, dtype=torch.int32))
    same = {}
    for name in graphs.keys() & ours.keys():
        graphs[name].replay()
        same[name] = torch.equal(outputs[name], functions[name]())
    found = {"replay, us": {name: ms and round(1e3 * ms, 2) for name, ms in replays.items()}}
    say(what="host", **about, **found, same=same)
    return right and all(same.values())


EXPERIMENTS = {"pages": compare_pages, "single": compare_single, "drafts": compare_drafts, "ragged": compare_ragged,
               "mixed": compare_mixed, "chunks": compare_chunks, "host": compare_host}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=EXPERIMENTS, default=list(EXPERIMENTS))
    parser.add_argument("--dtype", default="bfloat16")
    numbers = {"tokens": 4096, "sequences": 64, "heads": 32, "key-heads": 8, "dim": 128, "rounds": 20, "seed": 1}
    for name, default in numbers.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    options = parser.parse_args()
    on_gpu = options.device == "cuda"
    timer, right = Timer(options), True
    if on_gpu:
        # For longer than the host takes for a call.
        timer.flush = torch.empty(1 << 30, dtype=torch.int8, device="cuda")
    say(device=torch.cuda.get_device_name() if on_gpu else "cpu", packages=timer.describe(), seed=options.seed)
    for name in options.only:
        start = time.perf_counter()
        try:
            with torch.no_grad():
                right &= EXPERIMENTS[name](options, torch.Generator(options.device).manual_seed(options.seed), timer)
        except Exception as error:  # The other experiments are of their own.
            say(what=name, failed=name, error=str(error)[:500])
            right = False
        timer.release()
        say(what=name, seconds=round(time.perf_counter() - start, 1))
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
