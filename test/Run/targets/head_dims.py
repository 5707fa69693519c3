"""Compiles an attention and its gradients, and those of a table, for GPU targets at head dimensions from 8 to 576.

    head_dims.py                          all, some minutes
    head_dims.py --sample 8               some of a fresh seed, which is printed
    head_dims.py --only sm_80-f32-256     these

A kernel may take as much shared memory as each GPU has that runs kernels for the target: of sm_80 those are also cards
of compute capability 8.6, 8.9 and 12.0.
"""
import argparse
import pathlib
import random
import re
import subprocess
import sys
import tempfile

PROGRAM = """
func.func @forward(%q: {t}, %k: {t}, %v: {t}) -> {t} {{
  %o = flash.attention %q, %k, %v : ({t}, {t}, {t}) -> {t}
  return %o : {t}
}}
func.func @backward(%q: {t}, %k: {t}, %v: {t}, %o: {t}, %l: {l}, %do: {t}, %table: {c}) -> ({t}, {t}, {t}, {c}) {{
  %dq, %dk, %dv, %dt = flash.attention_grad %q, %k, %v, %o, %l, %do wrt(%table : {c}) score {{
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %x = tensor.extract %table[%i, %j] : {c}
    %r = arith.addf %s, %x : f32
    flash.yield %r : f32
  }} : ({t}, {t}, {t}, {t}, {l}, {t}) -> ({t}, {t}, {t}, {c})
  return %dq, %dk, %dv, %dt : {t}, {t}, {t}, {c}
}}
"""
# Bytes of shared memory by target.
LIMITS = {"sm_75": 64 * 1024, "sm_80": 99 * 1024, "sm_86": 99 * 1024, "sm_89": 99 * 1024, "sm_90a": 227 * 1024, "sm_120": 99 * 1024}
# Gradients have 16 rows of two operands and 16 of two others there, in panels of 128 bytes, of which wide ones do not fit everywhere.
ROWS_OF_GRADIENTS, PANEL = 64, 128
CASES = [f"{target}-{element}-{d}" for target in LIMITS for element in (("f16",) if target == "sm_75" else ("f16", "bf16", "f32"))
         for d in range(8, 577, 8) if ROWS_OF_GRADIENTS * PANEL * -(-d * (4 if element == "f32" else 2) // PANEL) <= LIMITS[target]]


def find_fault(case, folder):
    target, element, d = case.split("-")
    text = PROGRAM.format(t=f"tensor<?x?x?x{d}x{element}>", l="tensor<?x?x?xf32>", c="tensor<?x?xf32>")
    done = subprocess.run(["flash-run", "-", f"--target={target}", "-o", folder / "kernels.ptx"],
                          input=text, capture_output=True, text=True)
    if done.returncode:
        return done.stderr[:500]
    header = (folder / "kernels.h").read_text()
    taken = max(map(int, re.findall(r"MAX_DYNAMIC_SHARED_SIZE_BYTES,\s*(\d+)\)", header)), default=0)
    return f"{taken} bytes of shared memory, more than {LIMITS[target]}" if taken > LIMITS[target] else ""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sample", type=int)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    parser.add_argument("--only", nargs="*", default=CASES)
    arguments = parser.parse_args()
    cases = arguments.only
    if arguments.sample:
        print(f"seed {arguments.seed}")
        cases = random.Random(arguments.seed).sample(cases, arguments.sample)
    bad = 0
    with tempfile.TemporaryDirectory() as folder:
        for case in cases:
            fault = find_fault(case, pathlib.Path(folder))
            bad += bool(fault)
            print(f"{case}: {fault or 'ok'}", flush=True)
    print(f"{bad} of {len(cases)} are bad")
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())
