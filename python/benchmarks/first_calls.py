"""What a first call takes, from nothing: no kernel of it in a file, in memory, or in the driver's cache.

    python first_calls.py [--masks causal window] [--dims 64 128] [--runs 3]
    python first_calls.py --assemble

Each case is a process of its own, with an empty cache of the package and none of the driver. Printed is a line of JSON for each, in
seconds: the call, and of it what compiles (from the mask to PTX) and what loads (the driver's assembly); and then the same for the
gradients. With --assemble there need be no GPU: kernels are compiled for
sm_90a, and the ptxas in the PATH assembles each; seconds are of the processor then, as the machine may have other work.
"""

import argparse
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import threading
import time

MASKS = "full", "causal", "window", "prefix", "quadratic", "documents"


def make_mask(flash, name, documents):
    return {
        "full": None,
        "causal": flash.causal(),
        "window": flash.window(1000, 0),
        "prefix": flash.causal() | flash.prefix(512),
        "quadratic": lambda b, h, q, k: (q - k) * (q - k) <= 100000,
        "documents": lambda b, h, q, k: documents[q] == documents[k],
    }[name]


def time_stages(flash, stages):
    """Adds up what the compiler and loads take, in whichever thread that the call waits for."""
    from flash_mlir import programs

    def wrap(stage, function):
        def timed(*arguments, **options):
            # What is compiled ahead takes no time of the call.
            if threading.current_thread().name == programs.THREAD_OF_GRADIENTS:
                return function(*arguments, **options)
            start = time.perf_counter()
            try:
                return function(*arguments, **options)
            finally:
                stages[stage] = stages.get(stage, 0.0) + time.perf_counter() - start

        return timed

    for stage, name in (("compile", "get_kernel"), ("compile", "get_gradient_kernel"), ("load", "_load")):
        setattr(programs, name, wrap(stage, getattr(programs, name)))


def measure(name, dim, rows):
    """The first call and its gradients, in this process."""
    import torch

    import flash_mlir as flash

    stages = {}
    time_stages(flash, stages)
    documents = (torch.arange(rows, device="cuda") // 500).to(torch.int32)
    query, key, value = torch.randn(3, 2, 16, rows, dim, device="cuda", dtype=torch.bfloat16).unbind()
    # What PyTorch and the driver do once: the first backward of a given gradient imports SymPy, which takes seconds.
    torch.zeros(8, device="cuda", requires_grad=True).exp().backward(torch.ones(8, device="cuda"))
    flash.get_device_target()
    found = {}

    def time_call(what, function):
        stages.clear()
        torch.cuda.synchronize()
        start = time.perf_counter()
        result = function()
        torch.cuda.synchronize()
        found[what] = {"call": time.perf_counter() - start, **stages}
        return result

    mask = make_mask(flash, name, documents)
    time_call("forward", lambda: flash.attention(query, key, value, mask=mask))
    query = query.requires_grad_()
    output = time_call("training", lambda: flash.attention(query, key, value, mask=mask))
    time_call("gradients", lambda: output.backward(torch.ones_like(output)))
    return found


def get_seconds(who):
    used = resource.getrusage(who)
    return used.ru_utime + used.ru_stime


def assemble(name, dim, rows):
    """Seconds of the processor to compile each program for sm_90a, and to assemble it."""
    import flash_mlir as flash
    import numpy
    from flash_mlir import _core, preparation, programs
    from flash_mlir.compiler import Machine

    machine = Machine("sm_90a", "NVIDIA H200", 132)
    mask = make_mask(flash, name, numpy.zeros(rows, numpy.int32))
    found = {}
    for what, has_lse in (("forward", False), ("training", True), ("gradients", True)):
        config = preparation.prepare(mask, None, None, None, False, has_lse)[0].config
        if what == "gradients":
            text = programs.print_gradient_program(config, "bf16", 4, dim, dim, False, ())
        else:
            text = programs.print_program(config, "bf16", 4, dim, dim)
        sizes = programs.choose_sizes(json.loads(config), machine, [[2, 16, rows, dim]] * 3)
        start = get_seconds(resource.RUSAGE_SELF)
        ptx = _core.Kernel.compile(_core.Kernel.specialize(text, machine, "", "", sizes), machine, "", "", "").text("ptx")
        compiled = get_seconds(resource.RUSAGE_SELF) - start
        with tempfile.NamedTemporaryFile("w", suffix=".ptx") as file:
            file.write(ptx)
            file.flush()
            start = get_seconds(resource.RUSAGE_CHILDREN)
            subprocess.run(["ptxas", "-arch=sm_90a", "-o", os.devnull, file.name], check=True)
        assembled = get_seconds(resource.RUSAGE_CHILDREN) - start
        found[what] = {"kernels": len(re.findall(r"\.entry ", ptx)), "lines": ptx.count("\n"), "compile": compiled, "ptxas": assembled}
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--masks", nargs="+", default=MASKS, choices=MASKS)
    parser.add_argument("--dims", nargs="+", type=int, default=[64, 128])
    parser.add_argument("--rows", type=int, default=4096)
    parser.add_argument("--runs", type=int, default=3, help="of which the least time of each stage is printed")
    parser.add_argument("--assemble", action="store_true")
    parser.add_argument("--case", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.case:
        name, dim = options.case
        print(json.dumps((assemble if options.assemble else measure)(name, int(dim), options.rows)))
        return
    for name in options.masks:
        for dim in options.dims:
            runs = []
            for _ in range(options.runs):
                with tempfile.TemporaryDirectory() as cache:
                    command = [sys.executable, __file__, "--case", name, str(dim), "--rows", str(options.rows)]
                    command += ["--assemble"] * options.assemble
                    environment = {**os.environ, "FLASH_MLIR_CACHE_DIR": cache, "CUDA_CACHE_DISABLE": "1"}
                    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
                runs.append(json.loads(done.stdout))
            least = {what: {stage: round(min(run[what][stage] for run in runs), 3) for stage in of} for what, of in runs[0].items()}
            print(json.dumps({"mask": name, "dim": dim, **least}), flush=True)


if __name__ == "__main__":
    main()
