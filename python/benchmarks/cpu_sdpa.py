"""Times flash-run beside PyTorch's CPU scaled_dot_product_attention.

    python cpu_sdpa.py [--flash-run build/bin/flash-run] [--rounds 5] [--threads 2]
    python cpu_sdpa.py --gradients [--dtype float32] [--rounds 5] [--threads 2]

Each round times both, one after the other, so that a change of the machine's
clock or load meets both; the table gives the median over all rounds. PyTorch is
the only requirement beyond flash-run; of gradients, where both are the backward
of autograd alone, flash_mlir is one, too.
"""

import argparse
import functools
import json
import pathlib
import platform
import statistics
import subprocess
import sys
import tempfile
import time

import torch
from torch.nn.functional import scaled_dot_product_attention

SHAPES = [(1, 8, 2048, 64), (1, 8, 4096, 128)]
PROGRAM = """func.func @attention(%q: {type}, %k: {type}, %v: {type}) -> {type} {{
  %o = flash.attention %q, %k, %v {mask} : ({type}, {type}, {type}) -> {type}
  return %o : {type}
}}
"""


def time_calls(function, seconds=1.0):
    """The median milliseconds of the calls that fit into `seconds`, at least 3."""
    function()
    times, end = [], time.perf_counter() + seconds
    while len(times) < 3 or time.perf_counter() < end:
        start = time.perf_counter()
        function()
        times.append((time.perf_counter() - start) * 1e3)
    return statistics.median(times)


def time_torch(shape, causal):
    query, key, value = (torch.randn(shape) for _ in range(3))
    return time_calls(lambda: scaled_dot_product_attention(query, key, value, is_causal=causal))


def time_gradients(attend, shape, dtype):
    """The milliseconds of the backward of `attend`, a function of query, key and value."""
    operands = [torch.randn(shape, dtype=dtype, requires_grad=True) for _ in range(3)]
    output, grad = attend(*operands), torch.randn(shape, dtype=dtype)
    return time_calls(lambda: torch.autograd.grad(output, operands, grad, retain_graph=True))


def compare_gradients(arguments):
    """Prints the table of backwards; whether a row is slower than PyTorch's."""
    import flash_mlir

    flash_mlir.set_thread_count(arguments.threads)
    slower = False
    for shape in [*SHAPES, (4, 8, 512, 64), (1, 1, 4096, 64)]:
        for causal in (False, True):
            sdpa = functools.partial(scaled_dot_product_attention, is_causal=causal)
            ours = functools.partial(flash_mlir.attention, mask=flash_mlir.causal() if causal else None)
            dtype = getattr(torch, arguments.dtype)
            pairs = [[time_gradients(each, shape, dtype) for each in (sdpa, ours)] for _ in range(arguments.rounds)]
            peer_ms, ours_ms = (statistics.median(times) for times in zip(*pairs))
            slower |= ours_ms > peer_ms
            print(f"| {' '.join(map(str, shape))} | {'causal' if causal else 'full'} | {peer_ms:.1f} | {ours_ms:.1f} | "
                  f"{peer_ms / ours_ms:.2f} |", flush=True)
    return slower


def time_flash(tool, shape, causal, threads):
    """The median milliseconds that flash-run reports, and its whole report."""
    tensor = "tensor<" + "x".join(map(str, shape)) + "xf32>"
    with tempfile.TemporaryDirectory() as folder:
        program = pathlib.Path(folder, "attention.mlir")
        program.write_text(PROGRAM.format(type=tensor, mask="mask(#flash.causal)" if causal else ""))
        report = pathlib.Path(folder, "report.json")
        subprocess.run([tool, program, "--target=cpu", "--bench", f"--threads={threads}", f"--json={report}"],
                       check=True, capture_output=True)
        result = json.loads(report.read_text())
    return result["bench"]["median_ms"], result


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--flash-run", default="build/bin/flash-run")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--gradients", action="store_true")
    parser.add_argument("--dtype", default="float32", help="of gradients")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    print(f"PyTorch {torch.__version__}, {platform.processor() or platform.machine()}, {arguments.threads} threads, "
          f"{arguments.rounds} rounds, {arguments.dtype}")
    if arguments.gradients:
        print("| B H N D | mask | PyTorch ms | flash ms | ratio |\n|---|---|---|---|---|")
        return int(compare_gradients(arguments))
    print("| B H N D | mask | PyTorch ms | flash ms | PyTorch GFLOP/s | flash GFLOP/s | ratio |\n|---|---|---|---|---|---|---|")
    slower = False
    for shape in SHAPES:
        for causal in (False, True):
            peer, ours = [], []
            for _ in range(arguments.rounds):
                peer.append(time_torch(shape, causal))
                ours.append(time_flash(arguments.flash_run, shape, causal, arguments.threads)[0])
            batch, heads, length, dim = shape
            pairs = length * (length + 1) // 2 if causal else length * length
            work = 4 * batch * heads * pairs * dim / 1e6
            peer_ms, ours_ms = statistics.median(peer), statistics.median(ours)
            slower |= ours_ms > peer_ms
            print(f"| {' '.join(map(str, shape))} | {'causal' if causal else 'full'} | {peer_ms:.1f} | {ours_ms:.1f} | "
                  f"{work / peer_ms:.1f} | {work / ours_ms:.1f} | {peer_ms / ours_ms:.2f} |", flush=True)
    return 1 if slower else 0


if __name__ == "__main__":
    sys.exit(main())
