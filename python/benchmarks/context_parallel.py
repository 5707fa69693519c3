"""Times attention of a sequence that several GPUs share, beside one GPU and beside PyTorch's context_parallel.

    python context_parallel.py --world 2 [--tokens 32768 131072] [--heads 64/64 64/8] [--masks causal window]

It starts the processes itself. Each line of JSON is of one shape: milliseconds of a forward and a backward pass,
medians of rounds in which all are called in alternation, several calls of each, and how many times as fast as one GPU
that is. `--ours` are the calls of flash_mlir.distributed that are compared, as a name and options:
"gather4=head_groups:4,ahead:1", "mixed=head_groups:8+24+24+8", "heads=way:heads", "same=same_bits:1". For each of
these there is, too, what it takes without exchanges (`alone`, whose results are wrong), what a rank receives, and what
memory it takes beyond operands, results and what ranks share. `split` is what no exchange can beat: each GPU computes
its part of the heads, with all rows. `--check` compares results and gradients with one GPU's first. `link`
lines have the rate of the exchange by itself.
"""

import argparse
import contextlib
import datetime
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

import torch
import torch.distributed as dist

import flash_mlir as flash
from flash_mlir import distributed
from flash_mlir.distributed import exchange, gather, heads, shared

MASKS = {
    "full": (lambda: None, lambda n, w: n * n),
    "causal": (flash.causal, lambda n, w: n * (n + 1) // 2),
    "window": (lambda: flash.causal() & flash.window(left=4095), lambda n, w: sum(min(q + 1, w) for q in range(n))),
}


class _NoExchange(exchange.Exchange):
    """An exchange that sends nothing."""

    def start(self):
        return self


@contextlib.contextmanager
def without_exchanges():
    modules, copies = (gather, heads), {kind: kind.copy for kind in shared.Shared.__subclasses__()}
    for module in modules:
        module.Exchange = _NoExchange
    for kind in copies:
        kind.copy = lambda self, pairs: lambda: None
    try:
        yield
    finally:
        for module in modules:
            module.Exchange = exchange.Exchange
        for kind, copy in copies.items():
            kind.copy = copy


class Ranks:
    def __init__(self, options):
        self.options, self.rank, self.world = options, options.rank, options.world
        self.is_cuda = options.device == "cuda"
        self.device = torch.device("cuda", self.rank) if self.is_cuda else torch.device("cpu")
        more = {}
        if self.is_cuda:
            torch.cuda.set_device(self.device)
            more = {"device_id": self.device}
            if options.priority:
                more["pg_options"] = dist.ProcessGroupNCCL.Options(is_high_priority_stream=True)
        dist.init_process_group(
            "nccl" if self.is_cuda else "gloo",
            f"file://{options.address}",
            rank=self.rank,
            world_size=self.world,
            timeout=datetime.timedelta(seconds=300),
            **more,
        )

    def say(self, **found):
        if self.rank == 0:
            print(json.dumps(found), flush=True)

    def wait(self):
        if self.is_cuda:
            torch.cuda.synchronize()
        dist.barrier()
        if self.is_cuda:
            torch.cuda.synchronize()

    def measure(self, function, alone=False):
        """Milliseconds of a call on all ranks, or on the first one while others wait: one of several without pauses,
        as in training, where the host is ahead.
        """
        self.wait()
        start = time.perf_counter()
        if not alone or self.rank == 0:
            for _ in range(self.options.calls):
                function()
        self.wait()
        return (time.perf_counter() - start) * 1e3 / self.options.calls

    def compare(self, functions):
        """Medians of milliseconds of (function, whether it is of one rank) by name; a name that fails has an error."""
        times, errors = {}, {}
        for name, (function, alone) in functions.items():
            error = None
            try:
                for _ in range(2):
                    if not alone or self.rank == 0:
                        function()
                if self.is_cuda:
                    torch.cuda.synchronize()
            except Exception as caught:  # PyTorch's may fail in any way.
                error = f"{type(caught).__name__}: {str(caught)[:200]}"
            found = [None] * self.world
            dist.all_gather_object(found, error)
            if any(found):
                errors[name] = next(each for each in found if each)
            else:
                times[name] = []
        for _ in range(self.options.rounds):
            for name, taken in times.items():
                taken.append(self.measure(*functions[name]))
        return {name: round(statistics.median(taken), 3) for name, taken in times.items()}, errors

    def measure_memory(self, function):
        """How many bytes a call takes at most beyond what there is, of the rank that takes most."""
        if not self.is_cuda:
            return None
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        function()
        torch.cuda.synchronize()
        most = torch.tensor(torch.cuda.max_memory_allocated() - before, device=self.device)
        dist.all_reduce(most, dist.ReduceOp.MAX)
        return int(most)


def read_options(text):
    """("gather4", {"head_groups": 4}) of "gather4=head_groups:4"."""
    name, _, rest = text.partition("=")
    options = {}
    for pair in filter(None, rest.split(",")):
        key, _, value = pair.partition(":")
        if "+" in value:
            options[key] = tuple(map(int, value.split("+")))
        else:
            options[key] = int(value) if value.isdigit() else value
    return name, options


def step(attend, tensors, grad, is_forward):
    """A function that calls attention and, unless `is_forward`, its backward."""

    def run():
        if is_forward:
            with torch.no_grad():
                return attend(*tensors)
        output = attend(*tensors)
        return torch.autograd.grad(output, tensors, grad)

    return run


def make_torch(ranks, tensors, grad, is_causal, heads, key_heads, is_forward):
    """PyTorch's context_parallel on shards of the same sizes, with cuDNN on CUDA; and what closes it."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor.experimental import context_parallel
    from torch.nn import functional
    from torch.nn.attention import SDPBackend, sdpa_kernel

    backend = SDPBackend.CUDNN_ATTENTION if ranks.is_cuda else SDPBackend.FLASH_ATTENTION
    mesh = init_device_mesh(ranks.options.device, (ranks.world,))
    stack = contextlib.ExitStack()
    stack.enter_context(sdpa_kernel(backend))
    buffers = tuple([torch.cat([each.detach()] * ranks.world, 2) for each in tensors])
    stack.enter_context(context_parallel(mesh, buffers=buffers, buffer_seq_dims=(2,) * len(buffers)))
    parts = [each.detach().requires_grad_() for each in buffers]
    more = {} if heads == key_heads else {"enable_gqa": True}
    return step(
        # The context replaces the function of the module.
        lambda *x: functional.scaled_dot_product_attention(*x, is_causal=is_causal, **more),
        parts,
        grad,
        is_forward,
    ), stack


def make_shards(ranks, tokens, mask):
    if ranks.options.layout == "even":
        return distributed.Shards.even(tokens, ranks.world, mask)
    return distributed.Shards(tokens, ranks.world, ranks.options.layout)


def measure_shape(ranks, tokens, heads, key_heads, dim, name, is_forward):
    options, make = ranks.options, MASKS[name][0]
    mask, dtype = make(), getattr(torch, options.dtype)
    shards = make_shards(ranks, tokens, mask)

    def draw(count, rows):
        return torch.randn(1, count, rows, dim, dtype=dtype, device=ranks.device)

    here = shards.count(ranks.rank)
    tensors = [draw(count, here).requires_grad_() for count in (heads, key_heads, key_heads)]
    grad = draw(heads, here)
    functions, given = {}, {}
    if ranks.rank == 0 and not options.no_one:
        whole = [draw(count, tokens).requires_grad_() for count in (heads, key_heads, key_heads)]
        functions["one"] = step(lambda *x: flash.attention(*x, mask=mask), whole, draw(heads, tokens), is_forward), True
    elif not options.no_one:
        functions["one"] = None, True
    if not options.no_one and heads % ranks.world == key_heads % ranks.world == 0:
        split = [draw(count // ranks.world, tokens).requires_grad_() for count in (heads, key_heads, key_heads)]
        of_split = draw(heads // ranks.world, tokens)
        functions["split"] = step(lambda *x: flash.attention(*x, mask=mask), split, of_split, is_forward), False
    for text in options.ours:
        ours, more = read_options(text)
        given[ours] = more

        def attend(*x, more=more):
            return distributed.attention(*x, mask=mask, shards=shards, **more)

        run = step(attend, tensors, grad, is_forward)
        functions[ours] = run, False

        def run_alone(run=run):
            with without_exchanges():
                return run()

        functions[f"{ours} alone"] = run_alone, False
    times, errors = ranks.compare(functions)
    if not options.no_torch and name in ("causal", "full"):
        try:
            run, stack = make_torch(ranks, tensors, grad, name == "causal", heads, key_heads, is_forward)
        except Exception as error:
            errors["torch"] = f"{type(error).__name__}: {str(error)[:200]}"
        else:
            # By itself, as its context changes what calls in it do.
            with stack:
                more, failed = ranks.compare({"torch": (run, False)})
            times.update(more)
            errors.update(failed)
    flops = (2 if is_forward else 7) * 2 * heads * dim * MASKS[name][1](tokens, 4096)
    found = dict(tokens=tokens, heads=heads, key_heads=key_heads, dim=dim, mask=name, world=ranks.world)
    found.update(passes="forward" if is_forward else "both", ms=times)
    found["tflops_per_gpu"] = {
        each: round(flops / ms * 1e-9 / (1 if each == "one" else ranks.world), 1) for each, ms in times.items()
    }
    if "one" in times:
        found["times_one"] = {each: round(times["one"] / ms, 3) for each, ms in times.items() if each != "one"}
    for ours, more in given.items():
        if ours in errors:
            continue
        explained = distributed.attention(*tensors, mask=mask, shards=shards, explain=True, **more)
        found.setdefault("way", {})[ours] = [
            explained.way,
            list(explained.head_groups),
            explained.ahead,
            explained.exchange,
        ]
        moved = explained.forward_bytes + (0 if is_forward else explained.backward_bytes)
        found.setdefault("received_mib", {})[ours] = round(moved / 2**20, 1)
        found.setdefault("memory_mib", {})[ours] = (ranks.measure_memory(functions[ours][0]) or 0) >> 20
    ranks.say(what="attention", **found, **({"failed": errors} if errors else {}))


def check(ranks, tokens, heads, key_heads, dim, name):
    """Compares results and gradients with one GPU's; returns whether they agree."""
    options, mask = ranks.options, MASKS[name][0]()
    generator = torch.Generator(ranks.device).manual_seed(0)
    dtype = getattr(torch, options.dtype)
    inputs = [
        torch.randn(1, count, tokens, dim, dtype=dtype, device=ranks.device, generator=generator)
        for count in (heads, key_heads, key_heads, heads)
    ]
    whole = [each.requires_grad_() for each in inputs[:3]]
    output = flash.attention(*whole, mask=mask)
    expected = [output.detach(), *torch.autograd.grad(output, whole, inputs[3])]
    shards = make_shards(ranks, tokens, mask)
    here = shards.positions(ranks.rank, ranks.device)
    fine = True
    for text in options.ours:
        ours, more = read_options(text)
        parts = [distributed.shard(each.detach(), shards=shards) for each in inputs]
        query, key, value = (each.requires_grad_() for each in parts[:3])
        try:
            distributed.attention(query, key, value, mask=mask, shards=shards, explain=True, **more)
        except ValueError as error:
            ranks.say(what="check", tokens=tokens, mask=name, call=ours, failed=str(error))
            continue
        results = []
        for _ in range(2):
            output = distributed.attention(query, key, value, mask=mask, shards=shards, **more)
            results.append([output.detach(), *torch.autograd.grad(output, (query, key, value), parts[3])])
        differ = [float((x.float() - y[:, :, here].float()).abs().max()) for x, y in zip(results[0], expected)]
        least = [float(y.float().abs().max()) for y in expected]
        worst = torch.tensor([x / max(y, 1e-30) for x, y in zip(differ, least)], device=ranks.device)
        same = torch.tensor(float(not all(map(torch.equal, *results))), device=ranks.device)
        dist.all_reduce(worst, dist.ReduceOp.MAX)
        dist.all_reduce(same, dist.ReduceOp.MAX)
        agree = bool(worst.max() < (1e-4 if dtype == torch.float32 else 2e-2))
        ranks.say(
            what="check",
            tokens=tokens,
            mask=name,
            call=ours,
            agree=agree,
            same_bits_again=not bool(same),
            differ=worst.tolist(),
        )
        fine = fine and agree and not bool(same)
    return fine


def measure_link(ranks, mib):
    """The rate of an exchange in which each rank sends each other one as much."""
    count = mib << 20
    mine = torch.zeros(count, dtype=torch.uint8, device=ranks.device)
    others = [torch.empty_like(mine) for _ in range(ranks.world)]

    def run():
        made = exchange.Exchange(dist.group.WORLD)
        for peer in range(ranks.world):
            made.send(peer, mine)
            made.receive(peer, others[peer])
        made.start().wait()

    gathered = torch.empty(count * ranks.world, dtype=torch.uint8, device=ranks.device)
    functions = {"exchange": (run, False), "all_gather": (lambda: dist.all_gather_into_tensor(gathered, mine), False)}
    times, errors = ranks.compare(functions)
    rates = {name: round(count * (ranks.world - 1) / ms * 1e-6, 1) for name, ms in times.items()}
    ranks.say(what="link", mib=mib, world=ranks.world, gb_per_s=rates, **({"failed": errors} if errors else {}))


def work(options):
    ranks = Ranks(options)
    card = torch.cuda.get_device_name() if ranks.is_cuda else "cpu"
    ranks.say(what="card", card=card, torch=torch.__version__, world=ranks.world, flash_mlir=flash.__version__)
    for mib in options.link:
        measure_link(ranks, mib)
    fine = True
    for shape in options.heads:
        heads, key_heads = map(int, shape.split("/"))
        for name in options.masks:
            if options.check:
                fine = check(ranks, options.check, heads, key_heads, options.dim, name) and fine
            for tokens in options.tokens:
                for is_forward in (True, False):
                    measure_shape(ranks, tokens, heads, key_heads, options.dim, name, is_forward)
                    if ranks.is_cuda:
                        torch.cuda.empty_cache()
    dist.destroy_process_group()
    return 0 if fine else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--world", type=int, default=2)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu", choices=["cpu", "cuda"])
    parser.add_argument("--dtype", default="bfloat16")
    parser.add_argument("--tokens", type=int, nargs="*", default=[32768, 131072])
    parser.add_argument("--heads", nargs="+", default=["64/64", "64/8"], help="heads of queries and of keys")
    parser.add_argument("--dim", type=int, default=128)
    parser.add_argument("--masks", nargs="+", default=["causal", "window"], choices=[*MASKS])
    parser.add_argument("--layout", default="balanced", choices=["balanced", "contiguous", "even"])
    parser.add_argument("--ours", nargs="+", default=["ours"], help="names and options of calls")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--calls", type=int, default=3, help="calls of a round")
    parser.add_argument("--check", type=int, default=0, metavar="TOKENS", help="compare results of so many tokens")
    parser.add_argument("--link", type=int, nargs="*", default=[512], metavar="MIB")
    parser.add_argument("--priority", action="store_true", help="a stream of high priority for NCCL")
    parser.add_argument("--no-torch", action="store_true")
    parser.add_argument("--no-one", action="store_true", help="without one GPU")
    parser.add_argument("--rank", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--address", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.rank is not None:
        return work(options)
    with tempfile.TemporaryDirectory() as folder:
        command = [
            sys.executable,
            os.path.abspath(__file__),
            *sys.argv[1:],
            "--address",
            os.path.join(folder, "address"),
        ]
        processes = [subprocess.Popen([*command, "--rank", str(rank)]) for rank in range(options.world)]
        return max(abs(process.wait()) for process in processes)


if __name__ == "__main__":
    sys.exit(main())
