"""Compares two builds: which programs have another kernel, and how long those take in both.

    python3 python/benchmarks/compare_builds.py BEFORE/flash-run AFTER/flash-run --target=sm_90a
    python3 python/benchmarks/compare_builds.py BEFORE/flash-run AFTER/flash-run --only variants mine.mlir

Both compile each program, and whatever has the same code is not timed. The others run once, several at a time, so that
the driver's cache has their kernels. Then both builds time each of them `--rounds` times, one after the other, and the
least of their medians is printed at once. The last line has the geometric mean of the times before divided by the times
after, and the least of them: a change loses nothing where they are 0.99 and 0.97 or more, else the exit status is 1.
Without a device that runs the target, `--no-times` only compares the code.
"""
import argparse
import concurrent.futures
import os
import pathlib
import subprocess
import sys
import tempfile

import programs
from experiments.variants import variants
from flash import Case, Flash, milliseconds
from results import geometric_mean

TOKENS, HIDDEN = 16384, 2048
LEAST_MEAN, LEAST = 0.99, 0.97


def list_shapes(dims=(64, 128, 256), lengths=(512, 1024, 2048, 4096, 8192, 16384)):
    return [(TOKENS // length, HIDDEN // dim, length, dim) for dim in dims for length in lengths]


def make_forward():
    for shape in list_shapes():
        for mask, text in programs.MASKS.items():
            yield f"forward {mask} {shape}", programs.attention(shape, "f16", text)


def make_gradients():
    for shape in list_shapes():
        for mask, text in programs.MASKS.items():
            yield f"gradients {mask} {shape}", programs.gradients(shape, "bf16", text)


def make_variants():
    for shape in list_shapes((64, 128), (2048, 8192)):
        for name, (mask, _, score) in variants(shape[2] // 8, shape[2] // 4, shape[2] // 4).items():
            yield f"{name} {shape}", programs.attention(shape, "f16", mask, score=score)


def make_decode():
    for batch, keys in ((1, 16384), (32, 4096), (128, 2048)):
        shape = (batch, 32, keys, 128)
        yield f"one query {shape}", programs.attention(shape, "bf16", kv_heads=8, queries=1)
        for page in (16, 128):
            yield f"one query, pages of {page} {shape}", programs.paged(shape, "bf16", 8, [1], page, mask=programs.CAUSAL)


GROUPS = {"forward": make_forward, "gradients": make_gradients, "variants": make_variants, "decode": make_decode}


def compile_case(tool, target, file):
    """The code for the target, or what the tool says where there is none."""
    stage = "llvm" if target == "cpu" else "ptx"
    done = subprocess.run([tool, file, f"--target={target}", f"--dump={stage}"], capture_output=True, text=True)
    return done.stdout or done.stderr


def find_changed(tools, target, folder, cases):
    """The cases whose code differs."""
    for case in cases:
        (folder / f"{case.name}.mlir").write_text(case.text)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        made = [pool.map(lambda case, tool=tool: compile_case(tool, target, folder / f"{case.name}.mlir"), cases) for tool in tools]
        return [case for case, before, after in zip(cases, *made) if before != after]


def fill_cache(tools, target, folder, cases):
    """Lets the driver assemble the kernels of several programs at a time."""
    arguments = [f"--target={target}", "--bench", "--bench-seconds=0.001"]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for tool in tools:
            for case in cases:
                pool.submit(subprocess.run, [tool, folder / f"{case.name}.mlir", *arguments], capture_output=True)


def time_case(builds, rounds, case):
    """Its least milliseconds with both builds, None where one of them has none."""
    times = ([], [])
    for _ in range(rounds):
        for number, build in enumerate(builds):
            report = build.run([case])[case.name]
            if "error" in report:
                print(f"compare_builds: {build.tool}: {report['error'].splitlines()[0]}", file=sys.stderr)
            else:
                times[number].append(milliseconds(report))
    return [min(of_tool, default=None) for of_tool in times]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=pathlib.Path, help="flash-run of the build before")
    parser.add_argument("after", type=pathlib.Path, help="flash-run of the build after")
    parser.add_argument("files", type=pathlib.Path, nargs="*", help="programs to compare, too")
    parser.add_argument("--only", nargs="*", default=list(GROUPS), choices=GROUPS, help="which of its own programs")
    parser.add_argument("--target", default="sm_90a")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.2, help="how long each program runs in a round")
    parser.add_argument("--no-times", action="store_true")
    arguments = parser.parse_args()
    tools = [tool.resolve() for tool in (arguments.before, arguments.after)]
    labels, texts = [], []
    for label, text in [row for group in arguments.only for row in GROUPS[group]()] + [(str(f), f.read_text()) for f in arguments.files]:
        labels.append(label)
        texts.append(text)
    cases = [Case(f"case{number}", text) for number, text in enumerate(texts)]
    label_of = {case.name: label for case, label in zip(cases, labels)}
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        changed = find_changed(tools, arguments.target, folder, cases)
        print(f"{len(cases)} programs, {len(cases) - len(changed)} with the same code")
        if arguments.no_times or not changed:
            for case in changed:
                print(f"other code: {label_of[case.name]}")
            return 0
        if arguments.target != "cpu":
            fill_cache(tools, arguments.target, folder, changed)
        builds = [Flash(tool, arguments.target, folder, arguments.seconds, lambda line: None) for tool in tools]
        ratios, failed = [], 0
        for case in changed:
            before, after = time_case(builds, arguments.rounds, case)
            if before is None or after is None:
                failed += 1
                continue
            ratios.append(before / after)
            print(f"{before:10.4f} ms {after:10.4f} ms {ratios[-1]:7.3f}  {label_of[case.name]}", flush=True)
    if ratios:
        print(f"geometric mean {geometric_mean(ratios):.3f}, least {min(ratios):.3f}, of {len(ratios)}; {failed} did not run")
    return 1 if failed or geometric_mean(ratios) < LEAST_MEAN or min(ratios) < LEAST else 0


if __name__ == "__main__":
    sys.exit(main())
