"""Times the variants of examples/gallery beside PyTorch's FlexAttention, at sizes of models.

    python gallery.py [--part 1/2] [--check] [--length 8192] [NAME...]

Each variant is the same functions for both: `flash_mlir.flex_attention` and FlexAttention compiled, with its
BlockMask made beforehand. Sinks, which FlexAttention lacks, are ours as an argument, and there a factor from the
log-sum-exp. First each is compared with fp64 at an odd length, output and gradients; then both results at the length
that is timed. Processes compile at the same time; they are timed one after the other: the median of 20 calls, each
behind a clear of the L2 cache and a pause in which the host queues it. Results are lines of JSON. With --check nothing
is timed, and no GPU is needed.
"""

import argparse
import json
import multiprocessing
import os
import statistics
import time

import torch
from peers import CYCLES_OF_HOST
from torch.nn.attention import flex_attention as flex

import flash_mlir as flash

# Errors relative to fp64, in the norm.
TOLERANCE = {torch.bfloat16: 2e-2, torch.float32: 2e-5}


class Variant:
    """A mask, a score function, a sink, and the tensors whose gradients are computed, at n positions and some heads."""

    def __init__(self, name, n, heads, device):
        generator = torch.Generator().manual_seed(7)
        self.mask = self.score = self.sink = None
        self.leaves = []
        self.n, self.heads, self.device, self.generator = n, heads, device, generator
        getattr(self, name)()

    def slopes(self):
        return 2.0 ** -torch.linspace(1, 8, self.heads, device=self.device)

    def normal(self, *shape):
        values = torch.randn(*shape, generator=self.generator).to(self.device)
        self.leaves.append(values.requires_grad_())
        return values

    def ids(self, count):
        """Documents of random lengths."""
        ends = torch.randperm(self.n - 1, generator=self.generator)[: count - 1] + 1
        marks = torch.zeros(self.n, dtype=torch.int32)
        marks[ends] = 1
        return marks.cumsum(0).to(torch.int32).to(self.device)

    def alibi(self):
        slopes = self.slopes()
        self.score = lambda s, b, h, q, k: s - slopes[h] * (q - k).abs()

    def block_diffusion(self):
        half, block = self.n // 2, 64

        def mask(b, h, q, k):
            same = (q < half) & (k < half) & (q // block == k // block)
            before = (q < half) & (k >= half) & (q // block > (k - half) // block)
            clean = (q >= half) & (k >= half) & ((q - half) // block >= (k - half) // block)
            return same | before | clean

        self.mask = mask

    def causal(self):
        self.mask = lambda b, h, q, k: k <= q

    def dilated(self):
        self.mask = lambda b, h, q, k: (k <= q) & (q - k <= 1536) & ((q - k) % 3 == 0)

    def distance_decay(self):
        gammas = 1 - 2.0 ** -torch.linspace(5, 12, self.heads, device=self.device)
        self.mask = lambda b, h, q, k: k <= q
        self.score = lambda s, b, h, q, k: s + torch.log(gammas[h]) * (q - k)

    def documents(self):
        ids = self.ids(8)
        self.mask = lambda b, h, q, k: (ids[q] == ids[k]) & (k <= q)

    def documents_and_alibi(self):
        ids, slopes = self.ids(8), self.slopes()
        self.mask = lambda b, h, q, k: (ids[q] == ids[k]) & (k <= q) & (q - k <= 1024)
        self.score = lambda s, b, h, q, k: s - slopes[h] * (q - k)

    def global_and_sliding(self):
        self.mask = lambda b, h, q, k: (q < 64) | (k < 64) | ((q - k).abs() <= 512)

    def learned_bias(self):
        table, n = self.normal(self.heads, 2 * self.n - 1), self.n
        self.score = lambda s, b, h, q, k: s + table[h, q - k + (n - 1)]

    def neighbourhood(self):
        self.mask = lambda b, h, q, k: ((q // 128 - k // 128).abs() <= 6) & ((q % 128 - k % 128).abs() <= 6)

    def per_head(self):
        windows = torch.linspace(64, 2048, self.heads, device=self.device).to(torch.int32)
        self.mask = lambda b, h, q, k: (k <= q) & (q - k <= windows[h])

    def prefix(self):
        self.mask = lambda b, h, q, k: (k < 1024) | (k <= q)

    def prefix_soft_cap_and_sinks(self):
        self.sink = self.normal(self.heads)
        self.mask = lambda b, h, q, k: (k < 512) | ((k <= q) & (q - k <= 1024))
        self.score = lambda s, b, h, q, k: 30.0 * torch.tanh(s / 30.0)

    def sinks(self):
        self.sink = self.normal(self.heads)
        self.mask = lambda b, h, q, k: (k <= q) & ((q - k <= 1023) | (k < 4))

    def sliding_tiles(self):
        def mask(b, h, q, k):
            return ((q // 1024 - k // 1024).abs() <= 1) & ((q % 128 // 8 - k % 128 // 8).abs() <= 1)

        self.mask = mask

    def sliding_window(self):
        self.mask = lambda b, h, q, k: (k <= q) & (q - k <= 1023)

    def soft_cap(self):
        self.score = lambda s, b, h, q, k: 30.0 * torch.tanh(s / 30.0)

    def stripes(self):
        self.mask = lambda b, h, q, k: (k <= q) & ((q - k <= 511) | (k % 64 == 0))

    def t5_buckets(self):
        table = self.normal(32, self.heads)
        self.mask = lambda b, h, q, k: k <= q

        def score(s, b, h, q, k):
            distance = (q - k).clamp(min=0)
            # 16 buckets from a distance of 16 to one of 128.
            far = 16 + (torch.log(distance.clamp(min=1) / 16.0) * (16 / 2.0794415)).to(torch.int32)
            bucket = torch.where(distance < 16, distance, far.clamp(max=31))
            return s + table[bucket, h]

        self.score = score

    def tree(self):
        parents = (torch.arange(self.n) - 1) // 2
        ancestors = torch.eye(self.n, dtype=torch.bool)
        for token in range(1, self.n):
            ancestors[token] |= ancestors[parents[token]]
        ancestors = ancestors.to(self.device)
        self.mask = lambda b, h, q, k: ancestors[q, k]

    def ours(self, query, key, value):
        if self.sink is not None:
            return flash.attention(query, key, value, mask=self.mask, score=self.score, sink=self.sink)
        return flash.flex_attention(query, key, value, score_mod=self.score, block_mask=self.block_mask)

    def make_block_mask(self):
        heads = self.heads if self.mask is not None and "windows" in self.mask.__code__.co_freevars else None
        n = self.n
        self.block_mask = self.mask and flex.create_block_mask(self.mask, None, heads, n, n, device=self.device)

    def theirs(self, function, query, key, value):
        arguments = dict(score_mod=self.score, block_mask=self.block_mask)
        if self.leaves and self.sink is None:
            # With a gradient of what score_mod reads, the stages chosen at D = 128 do not fit on an H200.
            arguments["kernel_options"] = {"bwd_num_stages": 1}
        if self.sink is None:
            return function(query, key, value, **arguments)
        output, lse = function(query, key, value, **arguments, return_lse=True)
        return output * torch.sigmoid(lse - self.sink[:, None])[..., None].to(output.dtype)

    def reference(self, query, key, value):
        """In fp64, with the functions applied to all positions."""
        n, device = self.n, self.device
        s = query @ key.transpose(-1, -2) * query.shape[-1] ** -0.5
        h = torch.arange(self.heads, device=device)[None, :, None, None]
        q, k = torch.arange(n, device=device)[:, None], torch.arange(n, device=device)[None, :]
        if self.score is not None:
            s = self.score(s, torch.zeros_like(h), h, q, k)
        if self.mask is not None:
            s = s.masked_fill(~self.mask(torch.zeros_like(h), h, q, k), float("-inf"))
        if self.sink is not None:
            s = torch.cat([s, self.sink.double()[None, :, None, None].expand(1, -1, n, 1)], dim=-1)
        return torch.softmax(s, dim=-1)[..., :n] @ value


NAMES = [
    "alibi", "block_diffusion", "causal", "dilated", "distance_decay", "documents", "documents_and_alibi",
    "global_and_sliding", "learned_bias", "neighbourhood", "per_head", "prefix", "prefix_soft_cap_and_sinks", "sinks",
    "sliding_tiles", "sliding_window", "soft_cap", "stripes", "t5_buckets", "tree",
]


def make(variant, dim, dtype):
    """query, key, value and the output's gradient."""
    shape = (1, variant.heads, variant.n, dim)
    made = [torch.randn(shape, generator=variant.generator).to(variant.device, dtype) for _ in range(4)]
    return [x.requires_grad_() for x in made[:3]], made[3]


def distance(actual, expected):
    actual, expected = actual.detach(), expected.detach()
    return float((actual.double() - expected.double()).norm() / expected.double().norm().clamp(min=1e-30))


def check(name, n, heads, dim, dtype, device):
    """The greatest distances from fp64, of the output and of the gradients."""
    variant = Variant(name, n, heads, device)
    variant.make_block_mask()
    operands, output_grad = make(variant, dim, dtype)
    output = variant.ours(*operands)
    leaves = operands + variant.leaves
    grads = torch.autograd.grad(output, leaves, output_grad)
    exact = [x.detach().double().requires_grad_() for x in operands]
    expected = variant.reference(*exact)
    expected_grads = torch.autograd.grad(expected, exact + variant.leaves, output_grad.double())
    of_output = distance(output, expected)
    of_grads = max(distance(*pair) for pair in zip(grads, expected_grads))
    return of_output, of_grads


def measure(function, flush):
    times = []
    for _ in range(23):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        flush.zero_()
        torch.cuda._sleep(CYCLES_OF_HOST)
        start.record()
        function()
        end.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(end))
    return statistics.median(times[3:])


def run(name, options, connection):
    """In a process of its own: compiles, says so, waits until it may run, and sends what it found."""
    found = {"name": name}
    try:
        dtype = torch.bfloat16 if options.device == "cuda" else torch.float32
        found["output error"], found["gradient error"] = check(name, 1001, 4, options.dim, dtype, options.device)
        found["right"] = max(found["output error"], found["gradient error"]) < TOLERANCE[dtype]
        if not options.check:
            variant = Variant(name, options.length, options.heads, options.device)
            operands, output_grad = make(variant, options.dim, dtype)
            leaves = operands + variant.leaves
            variant.make_block_mask()
            compiled = torch.compile(flex.flex_attention, dynamic=False)
            both = {"ours": variant.ours, "theirs": lambda *x: variant.theirs(compiled, *x)}
            results = {}
            for who, function in both.items():
                start = time.perf_counter()
                results[who] = output = function(*operands)
                torch.autograd.grad(output, leaves, output_grad, retain_graph=True)
                torch.cuda.synchronize()
                found[f"{who} first"] = time.perf_counter() - start
            found["between"] = distance(results["ours"], results["theirs"])
            connection.send("ready")
            connection.recv()
            flush = torch.empty(256 << 20, dtype=torch.int8, device="cuda")
            detached = [x.detach() for x in operands]
            with torch.no_grad():
                for who, function in both.items():
                    found[f"{who} forward"] = measure(lambda: function(*detached), flush)
                # Made once, as a BlockMask is.
                plan = variant.mask and flash.plan(variant.mask, *detached)
                if plan and plan.nbytes:
                    parts = dict(mask=plan, score=variant.score, sink=variant.sink)
                    found["planned forward"] = measure(lambda: flash.attention(*detached, **parts), flush)
            for who, output in results.items():
                backward = lambda: torch.autograd.grad(output, leaves, output_grad, retain_graph=True)
                found[f"{who} backward"] = measure(backward, flush)
    except Exception as error:
        found["failed"] = f"{type(error).__name__}: {str(error).strip()[:300]}"
    connection.send(found)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=NAMES)
    parser.add_argument("--part", default="1/1")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--length", type=int, default=8192)
    parser.add_argument("--heads", type=int, default=16)
    parser.add_argument("--dim", type=int, default=128)
    parser.add_argument("--seconds", type=float, default=600, help="how long to wait for those that compile")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    options = parser.parse_args()
    number, count = map(int, options.part.split("/"))
    names = options.names[number - 1 :: count]
    unknown = set(names) - set(NAMES)
    if unknown:
        parser.error(f"there is no variant {', '.join(sorted(unknown))}; there are {', '.join(NAMES)}")
    end = time.monotonic() + options.seconds
    context = multiprocessing.get_context("spawn")
    waiting = {}
    # Each compiles with few threads; together they fill the machine.
    os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")
    for name in names:
        ours, its = context.Pipe()
        process = context.Process(target=run, args=(name, options, its), daemon=True)
        process.start()
        waiting[name] = process, ours
    is_right = True
    ready = []
    for name, (process, connection) in waiting.items():
        message = None
        try:
            if connection.poll(max(0, end - time.monotonic())):
                message = connection.recv()
        except EOFError:
            message = {"name": name, "failed": "the process ended"}
        if message == "ready":
            ready.append(name)
            continue
        message = message or {"name": name, "failed": "no time was left"}
        is_right &= message.get("right", False) and "failed" not in message
        print(json.dumps(message), flush=True)
        process.kill()
    for name in ready:
        process, connection = waiting[name]
        try:
            connection.send("go")
            found = connection.recv()
        except (EOFError, BrokenPipeError):
            found = {"name": name, "failed": "the process ended"}
        is_right &= found.get("right", False) and "failed" not in found
        print(json.dumps({k: round(v, 5) if isinstance(v, float) else v for k, v in found.items()}), flush=True)
    raise SystemExit(0 if is_right else 1)


if __name__ == "__main__":
    main()
