"""Times packed rows beside a batch of equal rows, a mask of documents and FlashAttention's varlen functions.

    python packed_rows.py [--tokens 32768] [--only lengths equal bits kernels] [--runs 1000]

All are called from PyTorch, and each figure is the median of rounds, of one call of each, behind a pause in which the
host queues it. `lengths` has documents of several lengths, causal: TFLOP/s of the pairs that are there, forward and in
gradients (5 products for 2). `equal` has packed rows that are a batch of equal ones, and what each allocates beyond its
operands. `kernels` has the gradients of `lengths`, milliseconds of a call and microseconds of each kernel by PyTorch's
profiler, beside a batch where there is one; a kernel that starts before the one before it ends waits, and its time has
the wait. `bits` compares results: of many runs, of each document alone, and of a CUDA graph with other offsets. Lines of
JSON; the status is 1 if bits differ or results are off.
"""

import argparse
import json
import math
import re
import statistics
import sys

import peers
import torch

import flash_mlir as flash

# D, heads, key heads.
SIZES = [(128, 16, 16), (128, 32, 8), (64, 32, 32)]
# The shortest and the longest document.
LENGTHS = {"2048": (2048, 2048), "64 to 8192": (64, 8192), "16 to 1024": (16, 1024)}


def draw_lengths(shortest, longest, tokens, generator):
    """Log-uniform lengths of so many tokens; the last one is cut off."""
    lengths = []
    while sum(lengths) < tokens:
        drawn = torch.empty(1).uniform_(math.log(shortest), math.log(longest + 1e-3), generator=generator)
        lengths.append(min(int(math.exp(drawn.item())), tokens - sum(lengths)))
    return lengths


class Timer(peers.Peers):
    """Medians of milliseconds of functions that are called in alternation."""

    def __init__(self, options):
        super().__init__(options.device == "cuda", seconds=0, say=print)
        self.rounds = options.rounds

    def compare(self, functions):
        """By their names; None where a function fails."""
        times = {}
        for name, function in functions.items():
            try:
                function()
                times[name] = []
            except Exception as error:  # Of another CUDA or PyTorch it may fail in any way.
                say(failed=name, error=peers.describe(error))
        for _ in range(self.rounds):
            for name, taken in times.items():
                taken.append(self.once(functions[name]))
        return {name: statistics.median(times[name]) if name in times else None for name in functions}

    def find_varlen(self):
        """FlashAttention-4's function, or -3's; None where neither is there."""
        found = [self.modules[name] for name in ("FA4", "FA3") if name in self.modules]
        return found[0].flash_attn_varlen_func if found else None


def say(**found):
    print(json.dumps(found), flush=True)


def make(shape, options, generator):
    return torch.randn(shape, generator=generator).to(options.device, getattr(torch, options.dtype)).requires_grad_()


def backward_of(forward, tensors):
    """A function that computes the gradients of `tensors`."""
    output = forward()
    grad = torch.ones_like(output)
    return lambda: torch.autograd.grad(output, tensors, grad, retain_graph=True)


def differ(x, y):
    return float((x.float() - y.float()).norm() / y.float().norm().clamp_min(1e-30))


def offsets_of(lengths, options):
    return torch.tensor([0, *torch.tensor(lengths).cumsum(0).tolist()], dtype=torch.int32, device=options.device)


def packed_call(tensors, offsets, mask):
    return flash.attention(*tensors, mask=mask, query_offsets=offsets, key_offsets=offsets)


def compare_lengths(options, generator):
    timer = Timer(options)
    varlen = timer.find_varlen()
    right = True
    for head_dim, heads, key_heads in SIZES:
        for name, (shortest, longest) in LENGTHS.items():
            lengths = draw_lengths(shortest, longest, options.tokens, generator)
            offsets = offsets_of(lengths, options)
            tensors = [make((options.tokens, n, head_dim), options, generator) for n in (heads, key_heads, key_heads)]
            numbers = torch.arange(len(lengths), device=options.device, dtype=torch.int32)
            ids = numbers.repeat_interleave(torch.tensor(lengths, device=options.device))
            documents = flash.documents(ids) & flash.causal()

            def masked():
                rows = [x.transpose(0, 1)[None] for x in tensors]
                return flash.attention(*rows, mask=documents).squeeze(0).transpose(0, 1)

            forwards = {"packed": lambda: packed_call(tensors, offsets, flash.causal()), "mask": masked}

            def theirs(**more):
                result = varlen(*tensors, cu_seqlens_q=offsets, cu_seqlens_k=offsets, max_seqlen_q=max(lengths),
                                max_seqlen_k=max(lengths), causal=True, **more)
                return result[0] if isinstance(result, tuple) else result

            if varlen:
                forwards["varlen"] = theirs
            with torch.no_grad():
                expected = forwards["packed"]()
                off = {other: round(differ(expected, forwards[other]()), 5) for other in forwards if other != "packed"}
                times = timer.compare(forwards)
            if varlen:
                forwards["varlen, deterministic"] = lambda: theirs(deterministic=True)
            backward = timer.compare({other: backward_of(each, tensors) for other, each in forwards.items()})
            flops = sum(2 * heads * n * (n + 1) * head_dim for n in lengths)
            rates = lambda ms, factor: {other: each and round(factor * flops / each * 1e-9, 1) for other, each in ms.items()}
            say(what="lengths", D=head_dim, heads=heads, key_heads=key_heads, documents=name, count=len(lengths),
                forward=rates(times, 1), gradients=rates(backward, 2.5), differ=off)
            right &= all(each < 0.02 for each in off.values())
    return right


def measure_memory(function, options):
    """The bytes that a call allocates at most, its results among them; None on the CPU."""
    if options.device != "cuda":
        return None
    function()
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    function()
    torch.cuda.synchronize()
    return torch.cuda.max_memory_allocated() - before


def compare_equal(options, generator):
    timer, count = Timer(options), 8
    length = options.tokens // count
    offsets = offsets_of([length] * count, options)
    for head_dim in (64, 128):
        for mask in (None, flash.causal()):
            rows = [make((count * length, 16, head_dim), options, generator) for _ in range(3)]
            batch = [x.detach().unflatten(0, (count, length)).transpose(1, 2).requires_grad_() for x in rows]
            calls = {"packed": (lambda: packed_call(rows, offsets, mask), rows),
                     "batch": (lambda: flash.attention(*batch, mask=mask), batch)}
            found = {}
            for what in ("forward", "gradients"):
                with torch.set_grad_enabled(what == "gradients"):
                    functions = {name: forward if what == "forward" else backward_of(forward, tensors)
                                 for name, (forward, tensors) in calls.items()}
                    found[f"{what}, ms"] = {name: round(ms, 4) for name, ms in timer.compare(functions).items()}
                    found[f"{what}, bytes"] = {name: measure_memory(each, options) for name, each in functions.items()}
            say(what="equal", D=head_dim, mask="none" if mask is None else "causal", count=count, length=length, **found)
    return True


def time_kernels(function, timer):
    """Microseconds of a call's kernels, by their names; empty on the CPU."""
    if timer.flush is None:
        return {}
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        for _ in range(timer.rounds):
            timer.once(function)
    times = {}
    for event in profile.events():
        if re.match("attention|zero_claims", event.name):
            times[event.name] = times.get(event.name, 0) + event.device_time_total / timer.rounds
    return {name: round(us, 1) for name, us in sorted(times.items())}


def compare_kernels(options, generator):
    timer = Timer(options)
    for head_dim, heads, key_heads in SIZES:
        for name, (shortest, longest) in LENGTHS.items():
            equal = shortest == longest and options.tokens % shortest == 0
            lengths = [shortest] * (options.tokens // shortest)
            if not equal:
                lengths = draw_lengths(shortest, longest, options.tokens, generator)
            offsets = offsets_of(lengths, options)
            rows = [make((options.tokens, n, head_dim), options, generator) for n in (heads, key_heads, key_heads)]
            calls = {"packed": (lambda: packed_call(rows, offsets, flash.causal()), rows)}
            if equal:
                batch = [x.detach().unflatten(0, (-1, shortest)).transpose(1, 2).requires_grad_() for x in rows]
                calls["batch"] = (lambda: flash.attention(*batch, mask=flash.causal()), batch)
            functions = {each: backward_of(*call) for each, call in calls.items()}
            ms = {each: round(time, 4) for each, time in timer.compare(functions).items()}
            for each, function in functions.items():
                say(what="kernels", D=head_dim, heads=heads, key_heads=key_heads, documents=name, rows=each,
                    ms=ms[each], us=time_kernels(function, timer))
    return True


def compare_bits(options, generator):
    right = True
    for head_dim, heads, key_heads in SIZES:
        lengths = draw_lengths(1, 2048, min(options.tokens, 8192), generator)
        rows = sum(lengths)
        offsets = offsets_of(lengths, options)
        tensors = [make((rows + 100, n, head_dim), options, generator) for n in (heads, key_heads, key_heads)]
        with torch.no_grad():
            for x in tensors:
                x[rows:] = torch.nan  # Which nobody reads.

        def run(tensors, offsets):
            output = packed_call(tensors, offsets, flash.causal())
            return [output, *torch.autograd.grad(output, tensors, torch.ones_like(output))]

        first = run(tensors, offsets)
        found = {"runs": all(all(map(torch.equal, run(tensors, offsets), first)) for _ in range(options.runs))}
        ends = [0, *torch.tensor(lengths).cumsum(0).tolist()]
        found["alone"] = all(
            all(torch.equal(part, whole[start:end]) for part, whole in zip(
                run([x.detach()[start:end].requires_grad_() for x in tensors], offsets_of([end - start], options)), first))
            # Sequences of few rows alone are a kernel of their own.
            for start, end in zip(ends, ends[1:]) if end - start > 32)
        if options.device == "cuda":
            given = offsets.clone()
            with torch.no_grad():
                graph = torch.cuda.CUDAGraph()
                packed_call(tensors, given, flash.causal())
                with torch.cuda.graph(graph):
                    output = packed_call(tensors, given, flash.causal())
                given.copy_(offsets.flip(0).neg() + rows)
                graph.replay()
                found["graph"] = torch.equal(output, packed_call(tensors, given, flash.causal()))
        say(what="bits", D=head_dim, heads=heads, key_heads=key_heads, count=len(lengths), runs=options.runs, same=found)
        right &= all(found.values())
    return right


EXPERIMENTS = {"lengths": compare_lengths, "equal": compare_equal, "kernels": compare_kernels, "bits": compare_bits}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=EXPERIMENTS, default=list(EXPERIMENTS))
    parser.add_argument("--tokens", type=int, default=32768)
    parser.add_argument("--dtype", default="bfloat16")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    options = parser.parse_args()
    on_gpu = options.device == "cuda"
    say(device=torch.cuda.get_device_name() if on_gpu else "cpu", packages=Timer(options).describe(), seed=options.seed)
    right = [EXPERIMENTS[name](options, torch.Generator().manual_seed(options.seed)) for name in options.only]
    return 0 if all(right) else 1


if __name__ == "__main__":
    sys.exit(main())
