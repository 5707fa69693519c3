"""Canonicalization and CSE between any two passes from a program to its block programs.

Each program compiles with both behind any one pass (behind every third one, from one that a seed chooses, unless
FLASH_TEST_ALL is in the environment), and with both behind each; the block programs that come of the latter,
emulated, give the results of the program.
"""
import argparse
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile

import numpy as np

# Types of the arguments and of the result, flags that say what is open in them, and what computes %r.
PROGRAMS = {
    # One tile of queries and three of keys, the last of one key: loops of one iteration, and of two.
    "one-tile": ("%q: tensor<1x2x16x256xf16>, %k: tensor<1x2x129x256xf16>", "tensor<1x2x16x256xf16>", [], """
  %r = flash.attention %q, %k, %k mask(#flash.causal)
      : (tensor<1x2x16x256xf16>, tensor<1x2x129x256xf16>, tensor<1x2x129x256xf16>) -> tensor<1x2x16x256xf16>"""),
    # A choice around all loops over keys.
    "open": ("%q: tensor<?x?x?x64xf16>", "tensor<?x?x?x64xf16>", ["--shape=0=1x2x130x64"], """
  %r = flash.attention %q, %q, %q mask(#flash.window<left = 40, right = 3>)
      : (tensor<?x?x?x64xf16>, tensor<?x?x?x64xf16>, tensor<?x?x?x64xf16>) -> tensor<?x?x?x64xf16>"""),
    # A choice at each tile, and lengths.
    "lengths": ("%q: tensor<2x2x70x32xbf16>, %k: tensor<2x2x?x32xbf16>, %n: tensor<2xi32>", "tensor<2x2x70x32xbf16>",
                ["--shape=1=2x2x201x32", "--fill=2=201", "--fill=2=77@1"], """
  %r = flash.attention %q, %k, %k
      mask(#flash.affine<affine_set<(b, h, i, j)[nq, nk] : ((i - j) mod 4 == 0)>>) lengths(%n : tensor<2xi32>)
      : (tensor<2x2x70x32xbf16>, tensor<2x2x?x32xbf16>, tensor<2x2x?x32xbf16>) -> tensor<2x2x70x32xbf16>"""),
    # Packed heads whose keys are split, and sinks.
    "splits": ("%q: tensor<1x6x1x64xf16>, %k: tensor<1x2x300x64xf16>, %s: tensor<6xf32>", "tensor<1x6x1x64xf16>", [], """
  %r = flash.attention %q, %k, %k sink(%s : tensor<6xf32>) schedule(<num_splits = 3>)
      : (tensor<1x6x1x64xf16>, tensor<1x2x300x64xf16>, tensor<1x2x300x64xf16>) -> tensor<1x6x1x64xf16>"""),
    # A list of tiles.
    "documents": ("%q: tensor<1x2x200x64xf16>, %ids: tensor<200xi32>", "tensor<1x2x200x64xf16>",
                  ["--fill=1=3", "--fill=1=4@150"], """
  %r = flash.attention %q, %q, %q mask(#flash.causal) schedule(<block_map = 1>) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %x = tensor.extract %ids[%i] : tensor<200xi32>
    %y = tensor.extract %ids[%j] : tensor<200xi32>
    %same = arith.cmpi eq, %x, %y : i32
    flash.yield %s keep %same : f32
  } : (tensor<1x2x200x64xf16>, tensor<1x2x200x64xf16>, tensor<1x2x200x64xf16>) -> tensor<1x2x200x64xf16>"""),
    # The programs of gradients.
    "gradients": ("%q: tensor<1x2x129x32xf16>", "tensor<1x2x129x32xf16>", [], """
  %o, %l = flash.attention %q, %q, %q mask(#flash.causal)
      : (tensor<1x2x129x32xf16>, tensor<1x2x129x32xf16>, tensor<1x2x129x32xf16>) -> (tensor<1x2x129x32xf16>, tensor<1x2x129xf32>)
  %r, %dk, %dv = flash.attention_grad %q, %q, %q, %o, %l, %q mask(#flash.causal)
      : (tensor<1x2x129x32xf16>, tensor<1x2x129x32xf16>, tensor<1x2x129x32xf16>, tensor<1x2x129x32xf16>, tensor<1x2x129xf32>,
         tensor<1x2x129x32xf16>) -> (tensor<1x2x129x32xf16>, tensor<1x2x129x32xf16>, tensor<1x2x129x32xf16>)"""),
}
PIPELINES = {"emulate": "--flash-gpu=target=sm_80", "emulate:sm_90a": "--flash-gpu=target=sm_90a"}
# The last pass of block programs.
LAST = "tile-verify-async"
INSERTED = "canonicalize,cse"


def execute(*command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    if done.returncode:
        raise RuntimeError(done.stderr.strip())
    return done


def get_pipeline(program, name):
    """The passes and brackets up to LAST, a line for each, which lines are passes, and what ends it."""
    text = execute("flash-opt", str(program), name, "--dump-pass-pipeline", "-o", "/dev/null").stderr
    lines = [line.strip() for line in text[text.index("builtin.module("):].splitlines()]
    end = next(i for i, line in enumerate(lines) if line.startswith(LAST))
    lines = lines[:end] + [LAST]
    passes = [i for i, line in enumerate(lines) if re.fullmatch(r"[\w-]+(\{.*\})?,?", line)]
    depth = sum(line.endswith("(") - line.startswith(")") for line in lines)
    return lines, passes, ")" * depth


def insert(pipeline, places):
    lines, _, end = pipeline
    lines = [f"{line.rstrip(',')},{INSERTED}" + "," * line.endswith(",") if i in places else line
             for i, line in enumerate(lines)]
    return "".join(lines) + end


def check(name, target, folder, first, step):
    """What fails, with what was said; both are behind single passes from the first one on, so many apart."""
    arguments, result, flags, body = PROGRAMS[name]
    program = folder / "program.mlir"
    program.write_text(f"func.func @f({arguments}) -> {result} {{{body}\n  return %r : {result}\n}}\n")
    pipeline = get_pipeline(program, PIPELINES[target])
    lines, passes, _ = pipeline

    def compile_with(places, output):
        execute("flash-opt", str(program), f"--pass-pipeline={insert(pipeline, places)}", "-o", str(output))

    def run(path):
        output = folder / f"{path.stem}.npy"
        execute("flash-run", str(path), f"--target={target}", "--seed=5", *flags, f"--outputs={output}")
        return np.load(output)

    for i in passes[first % step::step]:
        try:
            compile_with({i}, "/dev/null")
        except RuntimeError as error:
            yield f"behind {lines[i]} {error}"
    blocks = folder / "blocks.mlir"
    try:
        compile_with(set(passes), blocks)
        if not np.array_equal(run(blocks), run(program)):
            yield "other results"
    except RuntimeError as error:
        yield f"behind all passes: {error}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", choices=PIPELINES, required=True)
    parser.add_argument("--only", default="", help="programs whose name contains this")
    parser.add_argument("--seed", type=int, default=random.randrange(3))
    arguments = parser.parse_args()
    print(f"seed {arguments.seed}")
    step = 1 if os.environ.get("FLASH_TEST_ALL") else 3
    failures = 0
    for name in PROGRAMS:
        if arguments.only not in name:
            continue
        with tempfile.TemporaryDirectory() as folder:
            for message in check(name, arguments.target, pathlib.Path(folder), arguments.seed, step):
                failures += 1
                print(f"{name} on {arguments.target}: {message}", flush=True)
    print(f"{failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
