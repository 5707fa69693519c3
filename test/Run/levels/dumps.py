"""Runs what flash-run dumps: a program's level must give the same bits as the program.

Some programs of the suite, chosen so that each kind of mask, lengths, ragged keys, splits
and sinks is there, run on each target, and so do their dumps, on the same inputs.
"""
import argparse
import pathlib
import re
import subprocess
import sys
import tempfile

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "suite"))
from oracle import write_inputs
from suite import Case

SHAPE = dict(B=2, Hq=4, Hkv=2, Nq=70, Nk=90, D=16, Dv=24, lse=True)
SMALL = "query_tile=16,key_tile=16"
# Of sm_90a; where warps have roles, tiles have at least 64 queries.
ROLES = "query_tile=64,key_tile=16,features=specialize_warps|overlap|lazy_rescale|persistent"
CASES = [
    # Name, options of the case, keys of the schedule. The keys end within a tile but in the first.
    ("whole", dict(Nq=64, Nk=96), {}),
    ("ragged", dict(), {}),
    ("causal", dict(mask="causal"), {}),
    ("window", dict(mask="two_sided", Nq=90, Nk=130), {}),
    ("union", dict(mask="prefix_or_band", Nk=130), {}),
    ("every-tile", dict(mask="dilated"), {}),
    ("by-head", dict(mask="by_head"), {}),
    ("nothing", dict(mask="nothing"), {}),
    ("lengths", dict(lengths=True), {}),
    ("lengths-causal", dict(lengths=True, mask="causal"), {}),
    ("lengths-window", dict(lengths=True, mask="two_sided"), {}),
    ("sink", dict(sink=True, mask="causal"), {}),
    ("score", dict(score="alibi", mask="causal"), {}),
    ("bias", dict(score="bias"), {}),
    ("dynamic", dict(dynamic=True, mask="window"), {}),
    ("everything", dict(dynamic=True, mask="nested", lengths=True, sink=True, score="alibi"), {}),
    ("splits", dict(mask="causal", Nk=150), dict(num_splits=3)),
    ("splits-lengths", dict(lengths=True, sink=True, Nk=150), dict(num_splits=2)),
    ("split-ctas", dict(dynamic=True, Nk=300), dict(split_ctas=40)),
    ("split-keys", dict(dynamic=True, mask="causal", sink=True, Nk=300), dict(split_keys=64)),
    ("one-query", dict(Nq=1, Hq=6, mask="causal", lengths=True), {}),
    ("rank-3", dict(rank=3, B=1), {}),
]
# Programs whose warps have roles take some seconds each.
OF_ROLES = ("ragged", "causal", "window", "lengths", "sink", "splits-lengths")
# Level 3 is of threads, which only a GPU has.
LEVELS = ["l0", "l1", "l2"]


def execute(command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}\n{done.stderr}")
    return done.stdout


def check(name, options, keys, dtype, target, folder):
    """The levels whose dump gives other bits or does not run, with what was said."""
    case = Case(name, dtype=dtype, **{**SHAPE, **options})
    files = write_inputs(case, folder, seed=7)
    program = folder / "case.mlir"
    program.write_text(case.text())
    schedule = ROLES if target == "emulate:sm_90a" and dtype != "f32" else SMALL
    if target != "cpu":
        schedule = ",".join([schedule] + [f"{key}={value}" for key, value in keys.items()])
    tail = [f"--target={target}", "--threads=1"]
    flag = f"--schedule={schedule}"

    def run(path, *flags):
        """The results, and what was printed."""
        outputs = [folder / f"{path.stem}-{result}.npy" for result in "ol"]
        printed = execute(["flash-run", str(path), f"--inputs={','.join(files)}", f"--outputs={','.join(map(str, outputs))}",
                           *tail, *flags])
        return [output.read_bytes() for output in outputs], printed
    levels = LEVELS if target != "cpu" else LEVELS[:2]
    expected, printed = run(program, flag, f"--dump={','.join(levels)}")
    dumps = re.split(r"^// flash-run: (\w+)\n", printed, flags=re.M)[1:]
    if dumps[::2] != levels:
        return [("dumps", f"are {dumps[::2]}")]
    bad = []
    for level, text in zip(levels, dumps[1::2]):
        dump = folder / f"{level}.mlir"
        dump.write_text(text)
        try:
            # Level 0 is the program before it has a schedule.
            if run(dump, *([flag] if level == "l0" else []))[0] != expected:
                bad.append((level, "other bits"))
        except RuntimeError as error:
            bad.append((level, str(error)))
    return bad


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", choices=["cpu", "emulate", "emulate:sm_90a"], required=True)
    parser.add_argument("--only", default="", help="cases whose name contains this")
    arguments = parser.parse_args()
    failures = 0
    for number, (name, options, keys) in enumerate(CASES):
        roles = arguments.target == "emulate:sm_90a"
        if arguments.only not in name or (roles and not arguments.only and name not in OF_ROLES):
            continue
        dtype = "f16" if arguments.target == "emulate:sm_90a" or number % 3 else "f32"
        with tempfile.TemporaryDirectory() as folder:
            for level, message in check(name, options, keys, dtype, arguments.target, pathlib.Path(folder)):
                failures += 1
                print(f"{name} ({dtype}) on {arguments.target}, {level}: {message}", flush=True)
    print(f"{failures} dumps differ")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
