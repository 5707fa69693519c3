"""Serves sequences with a small model of random weights, with flash_mlir's attention over pages and with PyTorch's.

    python serve.py                              on the GPU if there is one
    python serve.py --device cpu --sequences 12 --length 40 --tokens 6 --chunk 64 --heads 4 --key-heads 2 --dim 16

Prompts of different lengths are prefilled in chunks of as many rows as a step has, parts of several prompts behind
each other (flash_attn_varlen_func); then all sequences are decoded, a token at each step, which is appended to the
cache in the call (flash_attn_with_kvcache); then the same tokens are generated again from drafts, of which some are
wrong, and each step verifies a draft of each sequence. All kernels are prepared before, and a call that needed
another one would be an error. PyTorch's scaled_dot_product_attention takes the same steps with a cache and queries
that are padded, and a mask. The script fails if logits of the two do not agree.
"""

import argparse
import sys
import time
from typing import NamedTuple

import torch
from torch import nn
from torch.nn import functional

import flash_mlir as flash

TOKENS = 256  # That there are.
PHASES = "prefill", "decode", "verify"


class Step(NamedTuple):
    """New tokens of some sequences, one sequence behind the other."""

    phase: str
    sequences: list
    #: How many new tokens each has, and how many of its tokens are in the cache.
    counts: list
    before: list
    tokens: torch.Tensor

    def find_rows(self, device):
        """Of each row the number of its sequence in this step and among the new tokens, and its position in the sequence."""
        counts = torch.tensor(self.counts)
        numbers = torch.arange(len(counts)).repeat_interleave(counts)
        places = torch.cat([torch.arange(count) for count in self.counts])
        return [rows.to(device) for rows in (numbers, places, torch.tensor(self.before)[numbers] + places)]


class Model(nn.Module):
    def __init__(self, options):
        super().__init__()
        self.heads = [options.heads, options.key_heads, options.key_heads]
        self.dim, width = options.dim, options.heads * options.dim
        self.embedding = nn.Embedding(TOKENS, width)
        layers = range(options.layers)
        self.inputs = nn.ModuleList([nn.Linear(width, sum(self.heads) * self.dim, bias=False) for _ in layers])
        self.outputs = nn.ModuleList([nn.Linear(width, width, bias=False) for _ in layers])
        self.head = nn.Linear(width, TOKENS, bias=False)

    def forward(self, tokens, attend, ends):
        """The logits of the rows `ends`; `attend` takes the number of a layer, and queries, keys and values (rows, heads, D)."""
        x = self.embedding(tokens)
        for number, (project, output) in enumerate(zip(self.inputs, self.outputs)):
            parts = project(functional.layer_norm(x, x.shape[-1:])).unflatten(-1, (-1, self.dim)).split(self.heads, 1)
            x = x + output(attend(number, *parts).flatten(1))
        return self.head(functional.layer_norm(x[ends], x.shape[-1:])).float()


class Client:
    """Runs steps of a model on a cache of its own."""

    def __init__(self, model, options):
        self.model, self.options = model, options

    def run(self, step):
        """The logits behind the last new token of each sequence, or in `verify` behind each."""
        ends = slice(None) if step.phase == "verify" else torch.tensor(step.counts).cumsum(0).to(self.options.device) - 1
        return self.model(step.tokens, self.make_attention(step), ends)


class Paged(Client):
    """Keys and values in pages, in any order."""

    def __init__(self, model, options):
        super().__init__(model, options)
        columns = count_pages(options)
        pages = torch.randperm(options.sequences * columns, generator=torch.Generator().manual_seed(1))
        self.table = pages.int().view(options.sequences, columns).to(options.device)
        # In memory the heads of a page come before its rows, which the CPU takes as it is.
        shape = len(pages), options.key_heads, options.page, options.dim
        make = lambda: torch.zeros(shape, dtype=options.dtype, device=options.device).transpose(1, 2)
        self.caches = [[make(), make()] for _ in range(options.layers)]

    def make_attention(self, step):
        device, page = self.options.device, self.options.page
        table = self.table
        if len(step.sequences) < len(table):
            table = table[torch.tensor(step.sequences).to(device)]
        before = torch.tensor(step.before, dtype=torch.int32).to(device)
        if step.phase != "prefill":
            arguments = dict(cache_seqlens=before, block_table=table, causal=True)

            def append(number, *parts):
                query, key, value = (rows.unflatten(0, (len(before), -1)) for rows in parts)
                return flash.flash_attn_with_kvcache(query, *self.caches[number], key, value, **arguments).flatten(0, 1)

            return append
        counts = torch.tensor(step.counts, dtype=torch.int32).to(device)
        offsets = functional.pad(counts.cumsum(0), (1, 0)).int()
        arguments = dict(block_table=table, seqused_k=before + counts, causal=True)
        numbers, _, positions = step.find_rows(device)
        where = table[numbers, positions // page].long(), positions % page

        def attend(number, query, key, value):
            keys, values = self.caches[number]
            keys[where], values[where] = key, value
            return flash.flash_attn_varlen_func(query, keys, values, offsets, **arguments)

        return attend


class Padded(Client):
    """Keys and values in rows of the longest sequence's length, and PyTorch's attention with a mask."""

    def __init__(self, model, options):
        super().__init__(model, options)
        shape = options.sequences, options.key_heads, count_pages(options) * options.page, options.dim
        make = lambda: torch.zeros(shape, dtype=options.dtype, device=options.device)
        self.caches = [[make(), make()] for _ in range(options.layers)]

    def make_attention(self, step):
        device = self.options.device
        numbers, places, positions = step.find_rows(device)
        chosen = torch.tensor(step.sequences).to(device)
        count, length = max(step.counts), max([sum(ends) for ends in zip(step.before, step.counts)])
        last = torch.tensor(step.before).to(device)[:, None] + torch.arange(count, device=device)
        mask = torch.arange(length, device=device) <= last[:, None, :, None]
        is_all = len(chosen) == self.options.sequences

        def attend(number, query, *new):
            for cache, rows in zip(self.caches[number], new):
                cache[chosen[numbers], :, positions] = rows
            cached = [cache[:, :, :length] if is_all else cache[chosen, :, :length] for cache in self.caches[number]]
            padded = query.new_zeros(len(chosen), query.shape[1], count, query.shape[2])
            padded[numbers, :, places] = query
            results = functional.scaled_dot_product_attention(padded, *cached, mask, enable_gqa=True)
            return results[numbers, :, places]

        return attend


def count_pages(options):
    """Those of the longest sequence: its prompt, the tokens that are generated, and a draft behind these."""
    return -(-(options.length + options.tokens + options.draft + 1) // options.page)


def generate(client, options):
    """Serves the sequences: the steps, the logits of each, how many tokens drafts gave as decoding did, and of how many."""
    random = torch.Generator().manual_seed(2)
    draw = lambda end, *shape: torch.randint(end, shape, generator=random)
    steps, found = [], []

    def run(*step):
        steps.append(Step(*step))
        found.append(client.run(steps[-1]))
        return found[-1]

    shortest = max(options.length // 4, 1)
    prompts = [draw(TOKENS, shortest + int(draw(options.length - shortest + 1))) for _ in range(options.sequences)]
    last = torch.zeros(options.sequences, dtype=torch.int64, device=options.device)
    done = [0] * options.sequences
    while sum(done) < sum(map(len, prompts)):
        sequences, counts, rows = [], [], options.chunk
        for b, prompt in enumerate(prompts):
            if rows and done[b] < len(prompt):
                sequences.append(b)
                counts.append(min(rows, len(prompt) - done[b]))
                rows -= counts[-1]
        before = [done[b] for b in sequences]
        tokens = torch.cat([prompts[b][start : start + count] for b, start, count in zip(sequences, before, counts)])
        logits = run("prefill", sequences, counts, before, tokens.to(options.device))
        # Where a prompt goes on, its next chunk writes another one.
        last[torch.tensor(sequences).to(options.device)] = logits.argmax(-1)
        for b, count in zip(sequences, counts):
            done[b] += count

    everyone, lengths = list(range(options.sequences)), list(map(len, prompts))
    decoded, ones = [last], [1] * options.sequences
    for step in range(options.tokens):
        before = [length + step for length in lengths]
        decoded.append(run("decode", everyone, ones, before, decoded[-1]).argmax(-1))
    decoded = torch.stack(decoded, 1).cpu()

    # A draft is the last token that there is and what was decoded behind it, of which one in four is another token.
    right, counts = functional.pad(decoded, (0, options.draft)), [options.draft + 1] * options.sequences
    results = decoded[:, :1].tolist()
    while min(map(len, results)) <= options.tokens:
        done = [len(tokens) - 1 for tokens in results]
        drafts = torch.stack([right[b, start : start + options.draft + 1] for b, start in enumerate(done)])
        drafts = torch.where(draw(4, *drafts.shape) == 0, draw(TOKENS, *drafts.shape), drafts)
        drafts[:, 0] = torch.tensor([tokens[-1] for tokens in results])
        before = [length + start for length, start in zip(lengths, done)]
        logits = run("verify", everyone, counts, before, drafts.flatten().to(options.device))
        for result, draft, tokens in zip(results, drafts, logits.argmax(-1).cpu().view(drafts.shape)):
            accepted = int((draft[1:] == tokens[:-1]).int().cumprod(0).sum())
            result += tokens[: min(accepted + 1, options.tokens + 1 - len(result))].tolist()
    same = int((torch.tensor(results) == decoded)[:, 1:].sum())
    return steps, found, same, options.tokens * options.sequences


def measure(client, steps, options):
    """Repeats steps: the logits of each, and the tokens of a second in each phase, all of a draft in `verify`."""
    found, rates = [], {}
    for phase in PHASES:
        rows, start = 0, time.perf_counter()
        for step in steps:
            if step.phase == phase:
                found.append(client.run(step))
                rows += len(step.tokens)
        if options.device == "cuda":
            torch.cuda.synchronize()
        rates[phase] = rows / (time.perf_counter() - start)
    return found, rates


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu", choices=["cpu", "cuda"])
    parser.add_argument("--sequences", type=int, default=256)
    parser.add_argument("--length", type=int, default=2048, help="of the longest prompts; they have from 1/4 of it")
    parser.add_argument("--tokens", type=int, default=32, help="that are generated for each sequence")
    parser.add_argument("--draft", type=int, default=4, help="tokens of a draft")
    parser.add_argument("--chunk", type=int, default=8192, help="rows of a step that prefills")
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--heads", type=int, default=32)
    parser.add_argument("--key-heads", type=int, default=8)
    parser.add_argument("--dim", type=int, default=128, help="of a head")
    parser.add_argument("--page", type=int, default=16, help="rows of a page")
    options = parser.parse_args()
    options.dtype = torch.bfloat16 if options.device == "cuda" else torch.float32
    torch.manual_seed(0)
    model = Model(options).to(options.device, options.dtype)

    serving = flash.serving
    prepared = serving.prepare(
        *(options.heads, options.key_heads, options.dim, options.dtype),
        [serving.decode([1, options.draft + 1]), serving.mixed(options.chunk)],
        layers=[serving.Layer(causal=True)],
        sequences=options.sequences,
        keys=[count_pages(options) * options.page],
        page_size=options.page,
        device=options.device,
    )
    with torch.inference_mode():
        with serving.no_compilation("raise"):
            steps, found, right, count = generate(Paged(model, options), options)
            again, rates = measure(Paged(model, options), steps, options)
        # Twice, as PyTorch chooses its own kernels at first.
        for _ in range(2):
            theirs, their_rates = measure(Padded(model, options), steps, options)

    print(f"{len(prepared.kernels)} kernels were prepared, and {len(steps)} steps needed no other")
    for phase in PHASES:
        print(f"{phase:8} flash_mlir {rates[phase]:12,.0f} tokens/s, PyTorch {their_rates[phase]:12,.0f} tokens/s")
    print(f"drafts gave {right:,} of {count:,} tokens that decoding gave")
    difference = max([float((ours - their).abs().max()) for runs in (found, again) for ours, their in zip(runs, theirs)])
    same = sum([int((ours.argmax(-1) == their.argmax(-1)).sum()) for ours, their in zip(found, theirs)])
    agree = difference <= (0.1 if options.dtype == torch.bfloat16 else 1e-4)
    print(f"{same:,} of {sum(map(len, found)):,} rows have the same token as with PyTorch")
    print(f"logits differ by at most {difference:.1e}", "" if agree else ": TOO MUCH")
    return 0 if agree else 1


if __name__ == "__main__":
    sys.exit(main())
