"""Generates attention programs and checks each against the fp64 reference.

    suite.py --list                      the cases and why they are there
    suite.py [--shard K/N] [--seed S]    run them with flash-run --check
    suite.py --target=emulate            as block programs, on the CPU
    suite.py --target=emulate:sm_90a     as those whose warps have roles; with
        --features 'specialize_warps|overlap' as schedules with these features
    suite.py --split-kv="num_splits = 3" ...    with split-KV, see #flash.schedule
    suite.py --only NAME --keep DIR      write one case's files and run it
    suite.py --write DIR                 write programs for flash-run --suite
    suite.py --matrix ...                another suite: 192 plain attentions
    suite.py --gradients ...             another suite: attentions and their gradients
    suite.py --packed ...                another suite: both, of packed rows, beside numpy (packed.py)

The programs are the same on every run; the inputs are fresh, from a seed that
is printed so that a failure can be repeated.
"""

import argparse
import concurrent.futures
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time

DTYPES = ["f32", "f16", "bf16"]
HEAD_DIMS = [8, 16, 40, 64, 80, 96, 128, 192, 256]
# Those of keys and values of which one is wider, so that blocks of a GPU share the columns of values, or are smaller.
WIDE_DIMS = [(264, 264), (320, 320), (328, 200), (512, 512), (576, 512), (576, 576), (64, 544)]
MASKS = {
    "full": "#flash.full",
    "causal": "#flash.causal",
    "top_left": "#flash.causal<top_left>",
    "window": "#flash.window<left = 100, right = 0>",
    "two_sided": "#flash.window<left = 37, right = 65>",
    "left_only": "#flash.window<left = 200>",
    "right_only": "#flash.window<right = 30>",
    "narrow": "#flash.window<left = 0, right = 0>",
    "prefix": "#flash.prefix<77>",
    "nothing": "#flash.prefix<0>",
    "band": "#flash.affine<affine_set<(b, h, i, j)[nq, nk] : (i - j >= 0, j - i + 255 >= 0)>>",
    "blocks": "#flash.affine<affine_set<(b, h, i, j)[nq, nk] : (i floordiv 96 - j floordiv 96 == 0)>>",
    "dilated": "#flash.affine<affine_set<(b, h, i, j)[nq, nk] : ((i - j) mod 4 == 0, i - j >= 0)>>",
    "slanted": "#flash.affine<affine_set<(b, h, i, j)[nq, nk] : (2 * i - 3 * j + 40 >= 0)>>",
    "by_head": "#flash.affine<affine_set<(b, h, i, j)[nq, nk] : (i - j >= 0, h * 50 + 20 - i + j >= 0)>>",
    "by_batch": "#flash.affine<affine_set<(b, h, i, j)[nq, nk] : (b * 60 + 10 - j >= 0)>>",
    "from_end": "#flash.affine<affine_set<(b, h, i, j)[nq, nk] : (j - nk + 90 >= 0)>>",
    "prefix_or_band": "#flash.any_of<[#flash.prefix<48>, #flash.window<left = 60, right = 0>]>",
    "sink_and_window": "#flash.any_of<[#flash.prefix<4>, #flash.window<left = 128, right = 0>]>",
    "causal_and_prefix": "#flash.all_of<[#flash.causal<top_left>, #flash.prefix<300>]>",
    "nested": "#flash.all_of<[#flash.any_of<[#flash.prefix<20>, #flash.window<left = 30, right = 30>]>, #flash.causal]>",
    "unions": "#flash.all_of<["
    "#flash.any_of<[#flash.prefix<30>, #flash.affine<affine_set<(b, h, i, j)[nq, nk] : (i - j - 5 >= 0)>>]>, "
    "#flash.any_of<[#flash.window<left = 90, right = 0>, #flash.affine<affine_set<(b, h, i, j)[nq, nk] : (i + j - 200 >= 0)>>]>, "
    "#flash.any_of<[#flash.prefix<150>, #flash.affine<affine_set<(b, h, i, j)[nq, nk] : (j - i + 70 >= 0)>>]>]>",
}
# Body of the score region and the type of the value it captures, by name.
SCORES = {
    "softcap": (None, """
    %cap = arith.constant 2.000000e+01 : f32
    %x = arith.divf %s, %cap : f32
    %t = math.tanh %x : f32
    %r = arith.mulf %t, %cap : f32"""),
    "alibi": ("tensor<{Hq}xf32>", """
    %slope = tensor.extract %captured[%h] : tensor<{Hq}xf32>
    %d = arith.subi %j, %i : index
    %di = arith.index_cast %d : index to i32
    %df = arith.sitofp %di : i32 to f32
    %bias = arith.mulf %slope, %df : f32
    %r = arith.addf %s, %bias : f32"""),
    "bias": ("tensor<{Hq}x{Nq}x{Nk}xf32>", """
    %e = tensor.extract %captured[%h, %i, %j] : tensor<{Hq}x{Nq}x{Nk}xf32>
    %r = arith.addf %s, %e : f32"""),
    "per_key": ("tensor<{B}x{Nk}xf32>", """
    %e = tensor.extract %captured[%b, %j] : tensor<{B}x{Nk}xf32>
    %r = arith.mulf %s, %e : f32"""),
    "per_query": ("tensor<{Nq}xf32>", """
    %e = tensor.extract %captured[%i] : tensor<{Nq}xf32>
    %r = arith.addf %s, %e : f32"""),
    "far_penalty": (None, """
    %d = arith.subi %i, %j : index
    %c64 = arith.constant 64 : index
    %far = arith.cmpi sgt, %d, %c64 : index
    %half = arith.constant 5.000000e-01 : f32
    %scaled = arith.mulf %s, %half : f32
    %r = arith.select %far, %scaled, %s : f32"""),
}
# Those of gradients, in which captured tensors are learned.
GRADIENT_SCORES = SCORES | {
    "by_distance": ("tensor<{Hq}x{Nd}xf32>", """
    %last = arith.constant {last} : index
    %d = arith.subi %i, %j : index
    %at = arith.addi %d, %last : index
    %e = tensor.extract %captured[%h, %at] : tensor<{Hq}x{Nd}xf32>
    %r = arith.addf %s, %e : f32"""),
    "by_bucket": ("tensor<4xf32>", """
    %four = arith.constant 4 : index
    %d = arith.addi %i, %j : index
    %at = arith.remui %d, %four : index
    %e = tensor.extract %captured[%at] : tensor<4xf32>
    %t = math.tanh %e : f32
    %r = arith.mulf %s, %t : f32"""),
    "gain": ("tensor<1xf32>", """
    %zero = arith.constant 0 : index
    %g = tensor.extract %captured[%zero] : tensor<1xf32>
    %r = arith.mulf %s, %g : f32"""),
}


class Case:
    """One program, its command line, and how its inputs are made."""

    masks = MASKS
    scores = GRADIENT_SCORES
    seen = None  # what else masks leave, for oracles

    def __init__(self, name, **options):
        self.name = name
        self.B, self.Hq, self.Hkv = 1, 2, 2
        self.Nq, self.Nk, self.D, self.Dv = 64, 64, 64, 64
        self.dtype, self.mask, self.score = "f32", None, None
        self.scale = None
        self.rank = 4
        self.dynamic = self.lengths = self.sink = self.lse = False
        self.static_heads = False  # where the other sizes are dynamic
        self.grad = self.lse_grad = False  # the gradients of the attention, not its results
        self.inputs = "random"  # or "large", "nan_row", "nan_masked"
        self.lengths_of = None  # lengths of the first batches, instead of 0
        self.schedule = None
        self.features = None
        self.products = None  # of gradients' schedules
        self.first_batch = 0  # the b of the first batch, where an oracle looks at some of them
        self.split_kv = None  # what a schedule in the program says beside its tiles
        self.of_keys = False  # values are the first columns of keys
        for key, value in options.items():
            if not hasattr(self, key):
                raise KeyError(key)
            setattr(self, key, value)

    def sizes(self):
        sizes = {k: getattr(self, k) for k in ("B", "Hq", "Hkv", "Nq", "Nk", "D", "Dv")}
        return sizes | {"Nd": max(self.Nq + self.Nk - 1, 1), "last": max(self.Nk - 1, 0)}

    def tensors(self):
        """Names, shapes and element types of the arguments, in order."""
        lead_q, lead_k = [self.B, self.Hq], [self.B, self.Hkv]
        if self.rank == 3:
            lead_q, lead_k = lead_q[1:], lead_k[1:]
        arguments = [
            ("q", lead_q + [self.Nq, self.D], self.dtype),
            ("k", lead_k + [self.Nk, self.D], self.dtype),
            ("v", lead_k + [self.Nk, self.Dv], self.dtype),
        ]
        if self.of_keys:
            arguments.pop()
        if self.lengths:
            arguments.append(("lengths", [self.B], "i32"))
        if self.sink:
            arguments.append(("sinks", [self.Hq], "f32"))
        if self.score and self.scores[self.score][0]:
            text = self.scores[self.score][0].format(**self.sizes())
            *shape, element = text[len("tensor<"):-1].split("x")
            arguments.append(("captured", [int(n) for n in shape], element))
        if self.grad:
            arguments.append(("do", lead_q + [self.Nq, self.Dv], self.dtype))
        if self.lse_grad:
            arguments.append(("dlse", lead_q + [self.Nq], "f32"))
        return arguments

    def type_of(self, shape, element, keep_last):
        sizes = [str(n) for n in shape]
        if self.dynamic:
            for dim in range(len(sizes) - keep_last):
                if dim != 1 or not self.static_heads:
                    sizes[dim] = "?"
        return f"tensor<{'x'.join(sizes)}x{element}>"

    def types(self):
        """Those of the arguments, by name."""
        types = {}
        for name, shape, element in self.tensors():
            keep_last = 1 if name in ("q", "k", "v", "do") else 0
            dynamic = self.dynamic and name != "captured"
            types[name] = (self.type_of(shape, element, keep_last) if dynamic
                           else f"tensor<{'x'.join(map(str, shape))}x{element}>")
        if self.of_keys:
            types["v"] = types["k"].replace(f"{self.D}x{self.dtype}>", f"{self.Dv}x{self.dtype}>")
        return types

    def slice_text(self, types):
        """What makes values of keys."""
        lines, sizes = [], types["v"][len("tensor<"):-1].split("x")[:-1]
        for dim, size in enumerate(sizes):
            if size == "?":
                lines += [f"  %c{dim} = arith.constant {dim} : index", f"  %n{dim} = tensor.dim %k, %c{dim} : {types['k']}"]
                sizes[dim] = f"%n{dim}"
        zeros, ones = (", ".join([text] * len(sizes)) for text in "01")
        return "\n".join([*lines, f"  %v = tensor.extract_slice %k[{zeros}] [{', '.join(sizes)}] [{ones}] : {types['k']} to {types['v']}", ""])

    def clauses(self, types):
        """What stands before them in the file, and those of the attention."""
        parts = []
        if self.scale is not None:
            parts.append(f"scale({self.scale})")
        # Inside an attribute MLIR takes the > of >= for a bracket, so sets are
        # defined outside.
        sets = []
        if self.mask:
            def define(match):
                sets.append(f"#set{len(sets)} = {match.group(0)}\n")
                return f"#set{len(sets) - 1}"
            mask = re.sub(r"affine_set<.*?\)>", define, self.masks[self.mask])
            parts.append(f"mask({mask})")
        for clause, name in (("lengths", "lengths"), ("query_lengths", "nq"), ("key_lengths", "nk"), ("sink", "sinks")):
            if name in types:
                parts.append(f"{clause}(%{name} : {types[name]})")
        if self.features:
            tiles = "query_tile = 128, key_tile = 32" if max(self.D, self.Dv) <= 256 else "query_tile = 128, key_tile = 16"
            parts.append(f"schedule(<{tiles}, features = {self.features}>)")
        if self.split_kv:
            parts.append(f"schedule(<query_tile = 32, key_tile = 16, {self.split_kv}>)")
        if self.score:
            body = self.scores[self.score][1].format(**self.sizes())
            parts.append("score {\n  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):"
                         f"{body}\n    flash.yield %r : f32\n  }}")
        return "".join(sets), parts

    def text(self):
        types = self.types()
        arguments = self.tensors()
        out_shape = arguments[0][1][:-1] + [self.Dv]
        results = [self.type_of(out_shape, self.dtype, 1)]
        if self.lse or self.grad:
            results.append(self.type_of(out_shape[:-1], "f32", 0))
        result_text = results[0] if len(results) == 1 else f"({', '.join(results)})"
        sets, parts = self.clauses(types)
        signature = ", ".join(f"%{n}: {types[n]}" for n, _, _ in arguments)
        names = "%o, %lse" if len(results) == 2 else "%o"
        operands = f"{types['q']}, {types['k']}, {types['v']}"
        attention = f"  {names} = flash.attention %q, %k, %v {' '.join(parts)}\n      : ({operands}) -> {result_text}\n"
        if self.of_keys:
            attention = self.slice_text(types) + attention
        if self.grad:
            attention += self.gradient_text(parts, types, f"{operands}, {', '.join(results)}, {types['do']}")
            names, results = self.gradients(), [types[n] for n in self.differentiated()]
            result_text = f"({', '.join(results)})"
        return (f"{sets}func.func @attention({signature}) -> {result_text} {{\n{attention}"
                f"  return {names} : {', '.join(results)}\n}}\n")

    def differentiated(self):
        """The arguments of whose gradients there are results, in order."""
        # A gradient is of an operand: one of values is none of keys.
        return ["q", "k", "v"] + [n for n, _, _ in self.tensors() if n in ("sinks", "captured")]

    def gradients(self):
        return ", ".join(f"%grad_{n}" for n in self.differentiated())

    def gradient_text(self, parts, types, operands):
        clauses = [part for part in parts if not part.startswith("score")]
        if self.products:
            clauses.append(f"schedule(<products = {self.products}>)")
        if self.lse_grad:
            clauses.append(f"lse_grad(%dlse : {types['dlse']})")
        if "captured" in types:
            clauses.append(f"wrt(%captured : {types['captured']})")
        clauses += [part for part in parts if part.startswith("score")]
        results = ", ".join(types[n] for n in self.differentiated())
        return (f"  {self.gradients()} = flash.attention_grad %q, %k, %v, %o, %lse, %do {' '.join(clauses)}\n"
                f"      : ({operands}) -> ({results})\n")

    def fills(self):
        """What is special about the inputs."""
        names = [name for name, _, _ in self.tensors()]
        fills = []
        if self.lengths:
            # Of further batches the lengths are random.
            for batch, length in enumerate(self.lengths_of or [0]):
                fills.append(f"{names.index('lengths')}={length}@{batch}")
        if self.inputs == "large":
            # |q.k| * scale reaches about 1e4.
            fills += [f"{i}=x{1e2 / self.D**0.25:.4g}" for i in (0, 1)]
        if self.inputs == "nan_row":
            fills.append(f"0=nan@{self.Nq // 2}")
        if self.inputs == "nan_masked":
            # The last key: causal masks leave it to the last query only.
            fills += ["1=inf@-1"] if self.of_keys else ["1=inf@-1", "2=nan@-1"]
        return fills

    def flags(self, seed):
        flags = ["--check", f"--seed={seed}"]
        if self.schedule:
            flags.append(f"--schedule={self.schedule}")
        if self.dynamic:
            for index, (name, shape, _) in enumerate(self.tensors()):
                if name != "captured":
                    flags.append(f"--shape={index}={'x'.join(map(str, shape))}")
        return flags + [f"--fill={fill}" for fill in self.fills()]

    def command(self, folder, seed, target="cpu"):
        program = folder / "case.mlir"
        program.write_text(self.text())
        return ["flash-run", str(program), f"--target={target}", "--threads=2"] + self.flags(seed)


def matrix():
    """Masks, lengths, head dimensions, batches and dtypes, each with each."""
    result = []
    for dtype in ("f16", "bf16", "f32"):
        for mask in ("full", "causal"):
            for d in (32, 64, 96, 128):
                # Two of them are no multiples of any tile.
                for n in (64, 257, 1000, 4096):
                    for b in (1, 2):
                        result.append(Case(f"{dtype}-{mask}-d{d}-n{n}-b{b}", dtype=dtype, mask=mask,
                                           B=b, Hq=8, Hkv=8, Nq=n, Nk=n, D=d, Dv=d))
    return result


def gradient_cases():
    """Attentions and their gradients; sizes from a fixed seed, as below."""
    rng = random.Random(20261123)
    lengths = [1, 2, 7, 16, 31, 64, 65, 100, 129, 200, 257]
    result = []

    def add(name, **options):
        result.append(Case(f"{len(result):03d}-grad-{name}", **{"grad": True, "Nq": rng.choice(lengths), "Nk": rng.choice(lengths)} | options))

    for dtype in DTYPES:
        for d in HEAD_DIMS:
            add(f"dims-{dtype}-{d}", dtype=dtype, D=d, Dv=d, mask=rng.choice([None, "causal"]))
        for d, dv in ((16, 64), (64, 16), (40, 96), (192, 128)):
            add(f"dv-{dtype}-{d}-{dv}", dtype=dtype, D=d, Dv=dv, mask="causal", Hq=4, Hkv=2)
        for mask in MASKS:
            add(f"mask-{dtype}-{mask}", dtype=dtype, mask=mask, B=2, Hq=2, Hkv=1, D=32, Dv=32, Nq=rng.randint(100, 300),
                Nk=rng.randint(100, 300), lse_grad=rng.random() < 0.3)
        for hq, hkv in ((8, 8), (8, 2), (6, 3), (5, 1)):
            add(f"gqa-{dtype}-{hq}-{hkv}", dtype=dtype, Hq=hq, Hkv=hkv, B=2, D=16, Dv=16, mask="causal")
        for mask in (None, "causal", "window", "nested"):
            add(f"dynamic-{dtype}-{mask}", dtype=dtype, mask=mask, dynamic=True, B=2, Hq=6, Hkv=2, D=40, Dv=24, lse_grad=True)
            add(f"lengths-{dtype}-{mask}", dtype=dtype, mask=mask, lengths=True, B=4, Hq=2, Hkv=1, D=24, Dv=24, Nk=rng.randint(65, 300),
                lengths_of=[0, 7, -3])
            add(f"sink-{dtype}-{mask}", dtype=dtype, mask=mask, sink=True, Hq=3, Hkv=1, lse_grad=rng.random() < 0.5)
        for score in GRADIENT_SCORES:
            add(f"score-{dtype}-{score}", dtype=dtype, score=score, B=2, Hq=4, Hkv=2, mask=rng.choice([None, "causal", "two_sided"]), D=16,
                Dv=24, scale=0.3, dynamic=score not in ("bias", "per_key", "per_query", "by_distance") and rng.random() < 0.5)
        for mask in ("causal", "window", None):
            add(f"fully-masked-{dtype}-{mask}", dtype=dtype, mask=mask or "nothing", Nq=200, Nk=90, lse_grad=True)
        add(f"large-{dtype}", dtype=dtype, mask="causal", inputs="large", Nq=130, Nk=170)
        add(f"nan-row-{dtype}", dtype=dtype, mask="causal", inputs="nan_row", Nq=77, Nk=190)
        add(f"nan-masked-{dtype}", dtype=dtype, mask="causal", inputs="nan_masked", Nq=100, Nk=100)
        add(f"nan-masked-lengths-{dtype}", dtype=dtype, mask="causal", lengths=True, B=3, inputs="nan_masked", Nq=100, Nk=150)
        add(f"rank3-{dtype}", dtype=dtype, rank=3, Hq=6, Hkv=3, mask="causal", sink=True, lse_grad=True)
        add(f"everything-{dtype}", dtype=dtype, B=3, Hq=4, Hkv=2, D=80, Dv=40, Nq=111, Nk=189, mask="nested", lengths=True, sink=True,
            score="alibi", lse_grad=True, scale=0.11)
    for _ in range(30):
        hkv = rng.randint(1, 3)
        add("mixed", dtype=rng.choice(DTYPES), B=rng.randint(1, 3), Hkv=hkv, Hq=hkv * rng.randint(1, 3), D=rng.choice(HEAD_DIMS),
            Dv=rng.choice(HEAD_DIMS), mask=rng.choice(list(MASKS)), dynamic=rng.random() < 0.4, sink=rng.random() < 0.3,
            lengths=rng.random() < 0.3, lse_grad=rng.random() < 0.4, score=rng.choice([None, None] + list(GRADIENT_SCORES)))
    # Diagonals of at least sixteen tiles, in parts.
    for dtype, mask in zip(DTYPES, ("window", "two_sided", None)):
        add(f"parts-{dtype}", dtype=dtype, score="by_distance", schedule="query_tile=16,key_tile=16", mask=mask, B=2, Hkv=1, D=16, Dv=24,
            Nq=rng.randint(257, 300), Nk=rng.randint(257, 300))
    # Learned tensors where tiles fill shared memory, and where they do not.
    for number, (d, dv) in enumerate(((64, 64), (72, 72), (96, 96), (128, 128), (192, 192), (256, 256), (64, 128))):
        for score in ("by_distance", "alibi", "per_key", "per_query"):
            dtype, mask = ("f16", "bf16")[number % 2], (None, "causal", "two_sided")[len(result) % 3]
            add(f"learned-{score}-{dtype}-{d}-{dv}", dtype=dtype, score=score, mask=mask, lengths=number % 3 == 0, B=2, Hq=2, Hkv=1 + number % 2,
                D=d, Dv=dv, Nq=rng.randint(129, 300), Nk=rng.randint(129, 300), scale=0.3)
    rng = random.Random(20261128)
    for i, (d, dv) in enumerate(WIDE_DIMS):
        for j, dtype in enumerate(DTYPES):
            add(f"wide-{dtype}-{d}-{dv}", dtype=dtype, D=d, Dv=dv, mask=[None, "causal", "window"][(i + j) % 3], dynamic=i % 2 == 1, B=1, Hq=2,
                Hkv=1, Nq=rng.randint(1, 70), Nk=rng.randint(1, 70), of_keys=d > dv and j < 2, lse_grad=j == 0)
    add("wide-learned", dtype="f16", D=320, Dv=320, score="by_distance", Nq=70, Nk=66, scale=0.3)
    return result


def cases():
    """The suite. Sizes are drawn once from a fixed seed, so names are stable."""
    rng = random.Random(20261121)

    def odd(limit):
        return rng.choice([1, 2, 3, 7, 15, 16, 17, 33, 63, 64, 65, 127, 129, 200, 255, 333, 517, 700, 1023, 1501]
                          if limit > 1000 else [1, 5, 16, 31, 64, 65, 100, 129, 257, 300])

    result = []

    def add(name, **options):
        result.append(Case(f"{len(result):03d}-{name}", **options))

    for dtype in DTYPES:
        for d in HEAD_DIMS:
            add(f"dims-{dtype}-{d}", dtype=dtype, D=d, Dv=d, Nq=odd(400), Nk=odd(400), mask=rng.choice([None, "causal"]), lse=True)
            dv = rng.choice([x for x in HEAD_DIMS if x != d])
            add(f"dv-{dtype}-{d}-{dv}", dtype=dtype, D=d, Dv=dv, Nq=odd(400), Nk=odd(400), mask="causal", Hq=4, Hkv=2)
        for mask in MASKS:
            add(f"mask-{dtype}-{mask}", dtype=dtype, mask=mask, B=2, Hq=2, Hkv=1, D=32 if mask != "full" else 64, Dv=32,
                Nq=rng.randint(150, 420), Nk=rng.randint(150, 420), lse=True)
        for mask in ("causal", "window", "prefix_or_band", "blocks"):
            add(f"dynamic-{dtype}-{mask}", dtype=dtype, mask=mask, dynamic=True, B=2, Hq=6, Hkv=2, D=40, Dv=24, Nq=odd(400), Nk=odd(400), lse=True)
            add(f"long-{dtype}-{mask}", dtype=dtype, mask=mask, D=64, Dv=64, Nq=rng.randint(900, 1500), Nk=rng.randint(900, 1500))
        for hq, hkv in ((8, 8), (8, 4), (8, 1), (6, 3), (5, 1), (9, 3)):
            add(f"gqa-{dtype}-{hq}-{hkv}", dtype=dtype, Hq=hq, Hkv=hkv, B=2, D=16, Dv=16, Nq=odd(400), Nk=odd(400), mask="causal")
        for mask in (None, "causal", "window", "nested"):
            add(f"lengths-{dtype}-{mask}", dtype=dtype, mask=mask, lengths=True, B=5, Hq=2, Hkv=1, D=24, Dv=24, Nq=odd(400), Nk=odd(1500), lse=True)
            add(f"sink-{dtype}-{mask}", dtype=dtype, mask=mask, sink=True, Hq=3, Hkv=1, Nq=odd(400), Nk=odd(400), lse=True)
        for score in SCORES:
            add(f"score-{dtype}-{score}", dtype=dtype, score=score, B=2, mask=rng.choice([None, "causal", "two_sided"]), D=16, Dv=24,
                Nq=odd(400), Nk=odd(400), scale=0.3)
        for mask in ("causal", "window", None):
            add(f"fully-masked-{dtype}-{mask}", dtype=dtype, mask=mask or "nothing", Nq=300, Nk=90, lse=True)
            add(f"large-{dtype}-{mask}", dtype=dtype, mask=mask, inputs="large", Nq=130, Nk=170)
            add(f"nan-row-{dtype}-{mask}", dtype=dtype, mask=mask, inputs="nan_row", Nq=77, Nk=190)
        add(f"nan-masked-{dtype}", dtype=dtype, mask="causal", inputs="nan_masked", Nq=200, Nk=200, lse=True)
        add(f"nan-masked-window-{dtype}", dtype=dtype, mask="two_sided", inputs="nan_masked", Nq=333, Nk=300)
        add(f"nan-masked-lengths-{dtype}", dtype=dtype, mask="causal", lengths=True, B=3, inputs="nan_masked", Nq=100, Nk=150)
        add(f"rank3-{dtype}", dtype=dtype, rank=3, Hq=6, Hkv=3, mask="causal", Nq=odd(400), Nk=odd(400), lse=True)
        add(f"everything-{dtype}", dtype=dtype, B=3, Hq=4, Hkv=2, D=80, Dv=40, Nq=211, Nk=389, mask="nested", lengths=True, sink=True,
            score="alibi", lse=True, scale=0.11)
        for schedule in ("query_tile=16,key_tile=16", "query_tile=32,key_tile=256", "query_tile=32,key_tile=48"):
            add(f"schedule-{dtype}", dtype=dtype, schedule=schedule, mask="causal", Nq=odd(400), Nk=odd(400), lse=True)
    for _ in range(30):
        d = rng.choice(HEAD_DIMS)
        hkv = rng.randint(1, 3)
        add("mixed", dtype=rng.choice(DTYPES), B=rng.randint(1, 3), Hkv=hkv, Hq=hkv * rng.randint(1, 3), D=d, Dv=rng.choice(HEAD_DIMS),
            Nq=odd(400), Nk=odd(400), mask=rng.choice(list(MASKS)), dynamic=rng.random() < 0.4, sink=rng.random() < 0.3,
            lengths=rng.random() < 0.3, lse=rng.random() < 0.6, score=rng.choice([None, None] + list(SCORES)))
    # One query, whose heads GPUs pack.
    for dtype in DTYPES:
        for mask, more in (("causal", {"lengths": True, "lse": True}), ("by_head", {"score": "alibi"}), ("nothing", {"lse": True}),
                           ("prefix_or_band", {"score": "per_query", "D": 128}), ("window", {"score": "bias", "Dv": 24})):
            add(f"one-query-{dtype}-{mask}", dtype=dtype, mask=mask, B=2, Hq=6, Hkv=2, Nq=1, Nk=rng.randint(300, 1200), **more)
    # Few queries, of groups of every size.
    few = [("causal", {"lengths": True, "lse": True}), ("by_head", {"score": "alibi"}), ("full", {"sink": True, "lse": True}),
           ("window", {"score": "bias", "Dv": 24}), ("prefix_or_band", {"score": "per_query", "D": 128, "lengths": True}),
           ("nothing", {"sink": True, "lse": True})]
    for i, (group, heads) in enumerate([(1, 2), (2, 3), (3, 2), (4, 2), (7, 1), (71, 1)]):
        for j, dtype in enumerate(DTYPES):
            mask, more = few[(i + j) % len(few)]
            add(f"few-queries-{dtype}-{group}-{mask}", dtype=dtype, mask=mask, B=2, Hq=group * heads, Hkv=heads, Nq=2 + (3 * i + j) % 8,
                Nk=150 + 131 * i + 47 * j, dynamic=(i + j) % 2 == 1, static_heads=True, **more)
    # A padded batch: lengths of every kind, those out of range too, so that a mask's bounds cross them everywhere.
    for mask in MASKS:
        nk = rng.randint(200, 500)
        add(f"padded-f16-{mask}", dtype="f16", mask=mask, lengths=True, lengths_of=[0, 1, nk // 2, nk - 1, nk, nk + 7, -3], B=8, Hq=2, Hkv=1,
            D=64, Nq=rng.randint(100, 600), Nk=nk, dynamic=rng.random() < 0.5)
    rng = random.Random(20261128)
    for i, (d, dv) in enumerate(WIDE_DIMS):
        for j, dtype in enumerate(DTYPES):
            add(f"wide-{dtype}-{d}-{dv}", dtype=dtype, D=d, Dv=dv, mask=[None, "causal", "two_sided"][(i + j) % 3], dynamic=(i + j) % 2 == 1, Hq=2,
                Hkv=1, Nq=rng.randint(1, 90), Nk=rng.randint(1, 200), of_keys=d > dv and j < 2, lse=j == 0)
    # Decoding, with values of keys and not: heads that share tiles, which are split.
    for i, (d, dv) in enumerate([(512, 512), (576, 512), (576, 512), (264, 264)]):
        for j, dtype in enumerate(DTYPES):
            add(f"wide-decode-{dtype}-{d}-{dv}", dtype=dtype, D=d, Dv=dv, B=2, Hq=[8, 16, 20][j], Hkv=1, Nq=1 + i % 2, Nk=rng.randint(200, 400), lse=i == 2,
                mask="causal" if i % 2 else None, lengths=i > 1, lengths_of=[0, 150], of_keys=d > dv, sink=i == 3, dynamic=i == 2, static_heads=True)
    add("wide-nan-masked-f16", dtype="f16", D=576, Dv=512, of_keys=True, mask="causal", inputs="nan_masked", Nq=100, Nk=100)
    add("wide-nan-masked-bf16", dtype="bf16", D=320, Dv=320, mask="causal", inputs="nan_masked", Nq=70, Nk=70)
    # A loop whose steps are branches: what warpgroups show each other is in each of them.
    for i, (d, dv) in enumerate(WIDE_DIMS):
        mask = ("prefix_or_band", "sink_and_window", "nested")[i % 3]
        add(f"wide-{mask}-{d}-{dv}", dtype=("f16", "bf16")[i % 2], D=d, Dv=dv, mask=mask, dynamic=i % 3 == 2, B=2, Hq=2, Hkv=1,
            Nq=rng.randint(130, 300), Nk=rng.randint(130, 300), of_keys=d > dv)
    return result


def run(case, seed, folder, target, echo, tool):
    """Whether its results are right; None where the program has other products than were wanted."""
    command = [str(tool)] + case.command(folder, seed, target)[1:]
    if echo:
        print(" ".join(command))
    process = subprocess.run(command, capture_output=True, text=True, timeout=300)
    if case.products and f"products = {case.products} needs " in process.stderr:
        return None
    ok = process.returncode == 0 and "check: ok" in process.stdout
    if not ok or echo:
        print(f"{'ok' if ok else 'FAILED'} {case.name} (exit {process.returncode})\n{case.text()}"
              f"{' '.join(command)}\n{process.stdout}{process.stderr}", flush=True)
    return ok


def write(selected, seed, folder):
    """Writes the programs and suite.txt, which flash-run --suite reads."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = [f"# {len(selected)} cases, seed {seed}"]
    for index, case in enumerate(selected):
        (folder / f"{case.name}.mlir").write_text(case.text())
        lines.append(" ".join([f"{case.name}.mlir"] + case.flags(seed + index)))
    (folder / "suite.txt").write_text("\n".join(lines) + "\n")
    print(f"{folder / 'suite.txt'}: {len(selected)} cases, seed {seed}")


def add_choice(parser):
    """Options of what `choose` takes."""
    parser.add_argument("--shard", action="append", default=[], metavar="K/N", help="every N-th case from the K-th on, of those that another "
                        "--shard left; any/N: from one that the seed chooses, at least one case, or all with FLASH_TEST_ALL in the environment")
    parser.add_argument("--seed", type=int, default=time.time_ns() % 2**31)


def choose(everything, shards, seed):
    """The cases that all the shards leave."""
    for first, step in (shard.split("/") for shard in shards):
        if first == "any":
            first, step = seed, 1 if os.environ.get("FLASH_TEST_ALL") else min(int(step), max(len(everything), 1))
        everything = everything[int(first) % int(step)::int(step)]
    return everything


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true")
    add_choice(parser)
    parser.add_argument("--target", default="cpu", help="as flash-run has it")
    parser.add_argument("--flash-run", default="flash-run", metavar="PATH", help="the tool, if it is not in the PATH")
    parser.add_argument("--jobs", type=int, default=1, help="how many cases run at a time")
    parser.add_argument("--features", help="of each program's schedule")
    parser.add_argument("--products", type=int, help="of each schedule of gradients, where it is possible")
    parser.add_argument("--split-kv", help="num_splits = N, split_ctas = N or split_keys = N, for programs without --schedule")
    parser.add_argument("--only", help="run the cases whose name contains this")
    parser.add_argument("--keep", type=pathlib.Path, help="leave the files of the last case here")
    parser.add_argument("--write", type=pathlib.Path, metavar="DIR", help="write the programs and suite.txt")
    parser.add_argument("--matrix", action="store_true", help="the 192 cases of matrix()")
    parser.add_argument("--gradients", action="store_true", help="those of gradient_cases()")
    parser.add_argument("--packed", action="store_true", help="those of packed_cases() in packed.py")
    parser.add_argument("--paged", action="store_true", help="those of paged_cases() in paged.py")
    parser.add_argument("--quantized", action="store_true", help="those of quantized_cases() in quantized.py")
    parser.add_argument("--fp8", action="store_true", help="those of fp8_cases() in fp8.py")
    parser.add_argument("--places", action="store_true", help="of --packed: the bits of sequences at other places and alone")
    arguments = parser.parse_args()
    check = run
    if arguments.packed:
        import packed

        everything = packed.packed_cases()
        check = packed.run_places if arguments.places else packed.run
        if arguments.places:
            everything = [case for case in everything if packed.may_move(case)]
    elif arguments.paged:
        import paged

        everything, check = paged.paged_cases(), paged.run
    elif arguments.quantized:
        import quantized

        everything, check = quantized.quantized_cases(), quantized.run
    elif arguments.fp8:
        import fp8

        everything, check = fp8.fp8_cases(), fp8.run
    else:
        everything = matrix() if arguments.matrix else gradient_cases() if arguments.gradients else cases()
    if arguments.target == "emulate:sm_90a":
        # What else it compiles, it compiles as sm_80 does.
        everything = [c for c in everything if c.dtype != "f32" and not c.schedule]
    if arguments.target.endswith("sm_75"):
        # Its tensor cores multiply nothing else.
        everything = [c for c in everything if c.dtype == "f16"]
    shared = {"emulate:sm_75": 65536, "emulate:sm_86": 101376, "emulate:sm_89": 101376, "emulate:sm_120": 101376}.get(arguments.target)
    if arguments.gradients and shared:
        # The smallest tiles of gradients have 32 rows of keys and values, and the compiler says if a block has no room for them.
        everything = [c for c in everything if 32 * (c.D + c.Dv) * (4 if c.dtype == "f32" else 2) <= shared]
    for case in everything:
        case.features = arguments.features
        case.products = arguments.products
    selected = choose(everything, arguments.shard, arguments.seed)
    selected = [c for c in selected if not arguments.only or arguments.only in c.name]
    for case in selected:
        case.split_kv = None if case.schedule else arguments.split_kv
    if arguments.list:
        print("\n".join(case.name for case in selected))
        return 0
    if arguments.write:
        write(selected, arguments.seed, arguments.write)
        return 0
    print(f"{len(selected)} cases, seed {arguments.seed}", flush=True)
    tool = shutil.which(arguments.flash_run)
    if not tool:
        parser.error(f"{arguments.flash_run} is no program; --flash-run says where it is")

    def run_case(index):
        with tempfile.TemporaryDirectory() as folder:
            folder = (arguments.keep or pathlib.Path(folder)).absolute()
            folder.mkdir(exist_ok=True)
            return check(selected[index], arguments.seed + index, folder, arguments.target, bool(arguments.keep), pathlib.Path(tool).absolute())

    with concurrent.futures.ThreadPoolExecutor(1 if arguments.keep else arguments.jobs) as pool:
        outcomes = list(pool.map(run_case, range(len(selected))))
    failures, refusals = outcomes.count(False), outcomes.count(None)
    rest = len(selected) - refusals
    print(f"{rest - failures} of {rest} cases ok" + (f", {refusals} refused" if refusals else ""))
    return 1 if failures or not rest else 0


if __name__ == "__main__":
    sys.exit(main())
