"""Repeats the experiments: times, memory, pictures, and a report.

    python3 python/benchmarks/bench.py --flash-run build/bin/flash-run --out build/bench
    python3 python/benchmarks/bench.py --out build/bench --only ladder forward

Needs numpy and matplotlib. Columns of PyTorch appear where it is installed, and beside it columns of the
package flash_mlir, FlashAttention-3 (flash_attn_interface) and FlashAttention-4 (flash_attn.cute). On a
machine without an NVIDIA GPU the CPU runs smaller problems. Each experiment is saved
when it ends, and the report is made of all that are in the folder.
"""
import argparse
import datetime
import json
import os
import pathlib
import platform
import sys
import tempfile
import time
import traceback

from experiments import forward, gradients, heads, ladder, roofline, serving, small, softmax, sustained, variants
from flash import Flash, probe
from peers import Peers
from results import FAULT, Result

# What matters most comes first, in case that time runs out.
EXPERIMENTS = {
    "forward": forward.run,
    "gradients": gradients.run,
    "sustained": sustained.run,
    "ladder": ladder.run,
    "gradient-ladder": ladder.run_gradients,
    "variants": variants.run,
    "single-head": heads.single,
    "few-heads": heads.few,
    "one-query": heads.one_query,
    "serving": serving.run,
    "many-heads": heads.many,
    "three-kernels": heads.kernels,
    "small": small.run,
    "tiles": small.tiles,
    "roofline": roofline.run,
    "softmax": softmax.run,
    "trace": softmax.trace,
}


def say(text):
    print(text, flush=True)


class Bench:
    """What experiments share."""

    def __init__(self, arguments, report, folder):
        gpu = report.get("gpu")
        self.gpu = gpu is not None
        self.hopper = self.gpu and gpu["architecture"] == "sm_90"
        self.device, self.report = report["device"], report
        self.folder, self.say = arguments.out, say
        # Of TFLOP/s.
        self.unit, self.scale = ("TFLOP/s", 1) if self.gpu else ("GFLOP/s", 1e3)
        target = arguments.target or report["target"]
        seconds = arguments.seconds if arguments.seconds is not None else (0.15 if self.gpu else 0.2)
        self.flash = Flash(arguments.flash_run, target, folder, seconds, say)
        self.peers = Peers(self.gpu, seconds, say)
        self.target = target
        # Until a GPU has its temperature and clocks of long runs.
        self.sustained_seconds = 4 if arguments.seconds is None else arguments.seconds

    def rate(self, report):
        return None if "error" in report else report["bench"]["tflops"] * self.scale

    def describe(self):
        gpu = self.report.get("gpu", {})
        machine = f"{self.device} ({gpu['architecture']}), driver {gpu['driver']}" if self.gpu else (
            f"{self.device}, {self.report['threads']} threads")
        return f"{machine}, target {self.target}; {self.peers.describe()}; Python {platform.python_version()}"


def run_one(bench, name):
    """Nothing that one experiment does ends the others."""
    say(f"== {name}")
    start = time.perf_counter()
    try:
        result = EXPERIMENTS[name](bench)
        has_faults = any(note.startswith(FAULT) for note in result.notes)
        if not any(table.rows for table in result.tables) and (has_faults or not result.notes):
            result.error = "nothing was measured"
    except Exception as error:
        traceback.print_exc()
        result = Result(name, "", error=f"{type(error).__name__}: {error}")
    result.seconds = time.perf_counter() - start
    say(f"== {name}: {result.seconds:.1f} s{', FAILED' if result.error else ''}")
    return result


def write_report(folder, about):
    """Of all experiments that are in the folder."""
    results = {name: Result.load(folder / f"{name}.json") for name in EXPERIMENTS if (folder / f"{name}.json").exists()}
    parts = ["# Benchmarks", about, "\n".join(f"- [{result.title}](#{name}): {result.seconds:.0f} s"
                                              for name, result in results.items())]
    parts += [f'<a id="{name}"></a>\n\n' + result.markdown() for name, result in results.items()]
    (folder / "report.md").write_text("\n\n".join(parts) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--flash-run", default="build/bin/flash-run")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("build/bench"))
    parser.add_argument("--only", nargs="+", choices=EXPERIMENTS, metavar="NAME", help=", ".join(EXPERIMENTS))
    parser.add_argument("--target", help="of flash-run, in place of what fits the machine")
    parser.add_argument("--seconds", type=float, help="of each measurement (0.15 on a GPU, 0.2 on a CPU)")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    arguments.flash_run = os.path.abspath(arguments.flash_run)
    start, failed = time.perf_counter(), []
    with tempfile.TemporaryDirectory(prefix="flash-bench-") as folder:
        bench = Bench(arguments, probe(arguments.flash_run, arguments.target, folder), folder)
        now = datetime.datetime.now(datetime.timezone.utc)
        about = f"{now:%Y-%m-%d}: {bench.describe()}."
        say(about)
        (arguments.out / "machine.json").write_text(json.dumps(bench.report, indent=1) + "\n")
        names = arguments.only or list(EXPERIMENTS)
        for done, name in enumerate(names, 1):
            result = run_one(bench, name)
            result.save(arguments.out / f"{name}.json")
            write_report(arguments.out, about)
            if result.error or any(note.startswith(FAULT) for note in result.notes):
                failed.append(name)
            print(f"bench: {done} of {len(names)} experiments done, {len(failed)} failed, {time.perf_counter() - start:.0f} s",
                  file=sys.stderr)
    say(f"bench: {arguments.out / 'report.md'}, {time.perf_counter() - start:.0f} s"
        + (f"; FAILED: {', '.join(failed)}" if failed else ""))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
