"""Times what a cached call of flash_mlir.attention costs on the host.

    python call_overhead.py [--device cuda] [--calls 200] [--rounds 50]

On CUDA, calls are queued without waiting, so that the time of a call is that of the
host, as long as the queue does not fill: rounds are short, and start on an idle device.
The least round counts. Beside it: PyTorch's scaled_dot_product_attention, and an
elementwise operation, which is about what PyTorch needs for one launch.
"""

import argparse
import functools
import time

import torch
from torch.nn.functional import scaled_dot_product_attention

import flash_mlir as flash


def measure(function, device, calls, rounds):
    """Microseconds of a call."""
    best = float("inf")
    for _ in range(rounds):
        if device == "cuda":
            torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(calls):
            function()
        best = min(best, (time.perf_counter() - start) / calls)
    return 1e6 * best


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
    mask = flash.causal()

    def score(s, b, h, q, k):
        return s + slopes[h] * (k - q)

    prepared = flash.Attention(mask=mask, score=score)
    cases = {
        "attention": lambda: flash.attention(query, query, query),
        "attention with a mask": lambda: flash.attention(query, query, query, mask=mask),
        "attention with a mask and a score function": lambda: flash.attention(query, query, query, mask, score),
        "the same as an Attention object": lambda: prepared(query, query, query),
        "scaled_dot_product_attention": lambda: scaled_dot_product_attention(query, query, query, is_causal=True),
        "query + query": lambda: query + query,
    }
    leaf, slopes_leaf = query.clone().requires_grad_(), slopes.clone().requires_grad_()
    learned = flash.Attention(mask, lambda s, b, h, q, k: s + slopes_leaf[h] * (k - q))

    def with_gradients(attend, *leaves):
        return lambda: torch.autograd.grad(attend(leaf, leaf, leaf), leaves, query)

    causal = functools.partial(scaled_dot_product_attention, is_causal=True)
    cases |= {
        "attention, forward and backward": with_gradients(functools.partial(flash.attention, mask=mask), leaf),
        "the same of the slopes, too": with_gradients(learned, leaf, slopes_leaf),
        "scaled_dot_product_attention, forward and backward": with_gradients(causal, leaf),
    }
    compiled = {
        "attention with a mask": lambda x: flash.attention(x, x, x, mask=mask),
        "scaled_dot_product_attention": lambda x: scaled_dot_product_attention(x, x, x, is_causal=True),
        "query + query": lambda x: x + x,
    }
    for name, function in compiled.items():
        graph = torch.compile(function, backend="aot_eager", fullgraph=True)
        cases[f"{name}, compiled"] = functools.partial(graph, query)
        cases[f"{name}, with gradients"] = functools.partial(function, leaf)
        cases[f"{name}, with gradients, compiled"] = functools.partial(graph, leaf)
    print(f"device {torch.cuda.get_device_name() if device == 'cuda' else 'cpu'}, PyTorch {torch.__version__}")
    for name, function in cases.items():
        function()
        print(f"{measure(function, device, options.calls, options.rounds):8.2f} us  {name}")


if __name__ == "__main__":
    main()
