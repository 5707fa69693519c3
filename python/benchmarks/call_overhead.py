"""Times what a cached call of flash_mlir.attention costs on the host, beside PyTorch's own functions.

    python call_overhead.py [--device cuda] [--calls 200] [--rounds 50]

On CUDA, calls are queued without waiting, so that the time of a call is that of the
host, as long as the queue does not fill: rounds are short, and start on an idle device.
All functions run in alternation, a round each, so that a machine that is slow for a while is so
for all. Printed are the least round and, in parentheses, the median.
"""

import argparse
import functools
import statistics
import time

import torch
from torch.nn.functional import scaled_dot_product_attention

import flash_mlir as flash

SDPA = functools.partial(scaled_dot_product_attention, is_causal=True)


class Nothing(torch.autograd.Function):
    """What autograd takes for a function in Python with three operands."""

    @staticmethod
    def forward(ctx, query, key, value):
        ctx.save_for_backward(query, key, value)
        return query.detach()

    @staticmethod
    def backward(ctx, grad):
        ctx.saved_tensors
        return grad, grad, grad


def measure(cases, device, calls, rounds):
    """Microseconds of a call of each function, in each round."""
    times = [[] for _ in cases]
    for _ in range(rounds):
        for function, of_function in zip(cases, times):
            if device == "cuda":
                torch.cuda.synchronize()
            start = time.perf_counter()
            for _ in range(calls):
                function()
            of_function.append(1e6 * (time.perf_counter() - start) / calls)
    return times


def make_rows(attend, leaf, query):
    """The calls that are compared, by name; `attend` is a function of query, key and value."""
    eager = lambda x: attend(x, x, x)
    compiled = torch.compile(eager, backend="aot_eager", fullgraph=True)

    def backward(function):
        return lambda: torch.autograd.grad(function(leaf), leaf, query)

    return {
        "forward": lambda: eager(query),
        "forward, with gradients to come": lambda: eager(leaf),
        "forward and backward": backward(eager),
        "compiled": lambda: compiled(query),
        "compiled, with gradients to come": lambda: compiled(leaf),
        "compiled, forward and backward": backward(compiled),
    }


def make_decodes(device, dtype):
    """Calls of a token of each of 8 sequences, whose keys, which are few, lie in pages."""
    sequences, heads, key_heads, dim = 8, 2, 1, 64
    make = functools.partial(torch.zeros, device=device, dtype=dtype)
    query, rows = make(sequences, heads, 1, dim), make(sequences, heads, dim)
    cache, new = [make(2, 16, 16, key_heads, dim)[i] for i in range(2)], make(sequences, 1, key_heads, dim)
    table = torch.arange(16, device=device, dtype=torch.int32).view(sequences, 2)
    lengths = torch.full((sequences,), 20, device=device, dtype=torch.int32)
    ends = torch.arange(sequences + 1, device=device, dtype=torch.int32)
    causal, token = flash.causal(), rows[:, None]
    of_cache = dict(cache_seqlens=lengths, block_table=table, causal=True)
    packed = dict(cu_seqlens_q=ends, block_table=table, seqused_k=lengths, causal=True)
    cases = {
        "a token in pages: attention": lambda: flash.attention(query, *cache, causal, page_table=table, key_lengths=lengths),
        "a token in pages: flash_attn_with_kvcache": lambda: flash.flash_attn_with_kvcache(token, *cache, **of_cache),
        "the same, and its key appended": lambda: flash.flash_attn_with_kvcache(token, *cache, new, new, **of_cache),
        "a token in pages: flash_attn_varlen_func": lambda: flash.flash_attn_varlen_func(rows, *cache, **packed),
    }

    def without_gradients(function):
        def call():
            with torch.no_grad():
                function()

        return call

    return {name: without_gradients(function) for name, function in cases.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--calls", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--length", type=int, default=64)
    parser.add_argument("--dim", type=int, default=64)
    parser.add_argument("--threads", type=int, default=0, help="on the CPU; by default all")
    options = parser.parse_args()
    device = options.device
    dtype = torch.float16 if device == "cuda" else torch.float32
    if options.threads:
        torch.set_num_threads(options.threads)
        flash.set_thread_count(options.threads)
    query = torch.randn(1, 1, options.length, options.dim, device=device, dtype=dtype)
    slopes = torch.ones(1, device=device)
    leaf, slopes_leaf = query.clone().requires_grad_(), slopes.clone().requires_grad_()
    mask = flash.causal()

    def score(s, b, h, q, k):
        return s + slopes[h] * (k - q)

    prepared = flash.Attention(mask, score)
    learned = flash.Attention(mask, lambda s, b, h, q, k: s + slopes_leaf[h] * (k - q))
    columns = {
        "attention": functools.partial(flash.attention, mask=mask),
        "SDPA": SDPA,
        "query + query": lambda query, key, value: query + key,
    }
    rows = [make_rows(attend, leaf, query) for attend in columns.values()]
    single = {
        "attention without a mask": lambda: flash.attention(query, query, query),
        "attention with a mask and a score function": lambda: flash.attention(query, query, query, mask, score),
        "the same as an Attention object": lambda: prepared(query, query, query),
        "forward and backward of an Attention object, of slopes, too": lambda: torch.autograd.grad(
            learned(leaf, leaf, leaf), (leaf, slopes_leaf), query
        ),
        "forward and backward of an autograd.Function that computes nothing": lambda: torch.autograd.grad(
            Nothing.apply(leaf, leaf, leaf), leaf, query
        ),
    }
    single.update(make_decodes(device, dtype))
    cases = [function for row in rows for function in row.values()] + list(single.values())
    for function in cases:
        function()
    times = measure(cases, device, options.calls, options.rounds)
    texts = [f"{min(each):.1f} ({statistics.median(each):.1f})" for each in times]
    print(f"device {torch.cuda.get_device_name() if device == 'cuda' else 'cpu'}, PyTorch {torch.__version__}, us a call")
    print(" " * 34 + "".join(f"{name:>20}" for name in columns))
    count = len(rows[0])
    for number, name in enumerate(rows[0]):
        print(f"{name:34}" + "".join(f"{text:>20}" for text in texts[number : count * len(rows) : count]))
    for name, text in zip(single, texts[count * len(rows) :]):
        print(f"{text:>20}  {name}")


if __name__ == "__main__":
    main()
