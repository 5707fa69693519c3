"""Attention with precision(fp8): queries, keys and values of f8E4M3FN, beside the fp64 reference.

`suite.py --fp8` runs them. Inputs and scales are fresh in each run; flash-run's tolerance says what roundings may do.
"""

import random
import re
import subprocess

from suite import MASKS, SCORES


class Fp8:
    def __init__(self, name, rng, **options):
        self.name = name
        self.dtype = rng.choice(["f16", "bf16"])
        self.scales = [rng.choice(["tensor", "head"]) for _ in range(3)]
        self.B, self.Hkv = rng.choice([1, 2, 3]), rng.choice([1, 2])
        self.Hq = self.Hkv * rng.choice([1, 2, 3])
        self.D, self.Dv = rng.choice([16, 32, 48, 64, 80, 96, 128]), rng.choice([16, 32, 64, 80, 128])
        self.Nq, self.Nk = rng.choice([1, 7, 33, 64, 65, 130, 200]), rng.choice([1, 5, 17, 100, 128, 129, 300, 385])
        self.mask = rng.choice([None, "causal", "causal", "window"])
        self.score, self.sink, self.lengths = None, rng.random() < 0.2, rng.choice([None, None, "lengths", "key_lengths"])
        self.lse, self.dynamic = rng.random() < 0.4, rng.random() < 0.5
        # Of warps with roles; other targets have none of these tiles.
        self.tiles = rng.choice(["", "", "key_tile = 32", "key_tile = 64", "query_tile = 64", "query_tile = 128, key_tile = 96",
                                 "num_splits = 2", "num_splits = 3, query_tile = 64", "features = specialize_warps",
                                 "features = specialize_warps|overlap", "features = specialize_warps|persistent|bulk_store"])
        # What suite.py sets and reads.
        self.schedule = self.features = self.products = self.split_kv = None
        for key, value in options.items():
            if not hasattr(self, key):
                raise KeyError(key)
            setattr(self, key, value)

    def text(self, has_tiles):
        batches, queries, keys = ("?", "?", "?") if self.dynamic else (self.B, self.Nq, self.Nk)
        tensors = {"q": (self.Hq, queries, self.D), "k": (self.Hkv, keys, self.D), "v": (self.Hkv, keys, self.Dv)}
        arguments, lines, types = [], "", []
        for (name, (heads, rows, columns)), scale in zip(tensors.items(), self.scales):
            shape = f"{batches}x{heads}x{rows}x{columns}"
            scales = "tensor<1xf32>" if scale == "tensor" else f"tensor<{batches}x{heads}xf32>"
            arguments += [f"%{name}: tensor<{shape}xf8E4M3FN>", f"%{name}_scale: {scales}"]
            types.append(f"tensor<{shape}x{self.dtype}>")
            lines += f"  %{name}_16 = flash.dequantize %{name} scale(%{name}_scale : {scales}) : tensor<{shape}xf8E4M3FN> -> {types[-1]}\n"
        # Sets are defined outside, where > is no bracket.
        sets = re.findall(r"affine_set<.*?\)>", MASKS[self.mask]) if self.mask else []
        clauses = f" mask({MASKS[self.mask]})" if self.mask else ""
        for number, text in enumerate(sets):
            clauses = clauses.replace(text, f"#set{number}", 1)
        aliases = "".join(f"#set{number} = {text}\n" for number, text in enumerate(sets))
        if self.lengths:
            arguments.append(f"%n: tensor<{batches}xi32>")
            clauses += f" {self.lengths}(%n : tensor<{batches}xi32>)"
        if self.sink:
            arguments.append(f"%s: tensor<{self.Hq}xf32>")
            clauses += f" sink(%s : tensor<{self.Hq}xf32>)"
        clauses += " precision(fp8)"
        if has_tiles and self.tiles:
            clauses += f" schedule(<{self.tiles}>)"
        if self.score:
            clauses += f" score {{\n  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):{SCORES[self.score][1]}\n    flash.yield %r : f32\n  }}"
        results = [f"tensor<{batches}x{self.Hq}x{queries}x{self.Dv}x{self.dtype}>"] + [f"tensor<{batches}x{self.Hq}x{queries}xf32>"] * self.lse
        names = ["%o", "%lse"][: len(results)]
        of_op = results[0] if not self.lse else f"({', '.join(results)})"
        return (f"{aliases}func.func @f({', '.join(arguments)}) -> ({', '.join(results)}) {{\n{lines}  {', '.join(names)} = flash.attention %q_16, "
                f"%k_16, %v_16{clauses} : ({', '.join(types)}) -> {of_op}\n  return {', '.join(names)} : {', '.join(results)}\n}}\n")

    def shapes(self):
        """The options that say the sizes of arguments that are open."""
        sizes = []
        for heads, rows, columns, scale in ((self.Hq, self.Nq, self.D, self.scales[0]), (self.Hkv, self.Nk, self.D, self.scales[1]),
                                            (self.Hkv, self.Nk, self.Dv, self.scales[2])):
            sizes += [f"{self.B}x{heads}x{rows}x{columns}", "1" if scale == "tensor" else f"{self.B}x{heads}"]
        sizes += [str(self.B)] * bool(self.lengths)
        return [f"--shape={number}={shape}" for number, shape in enumerate(sizes)] if self.dynamic else []


def fp8_cases():
    """120 attentions. Sizes from a fixed seed."""
    rng = random.Random(20261130)
    result = []

    def add(name, **options):
        result.append(Fp8(f"{len(result):03d}-fp8-{name}", rng, **options))

    for d in (16, 32, 48, 64, 80, 96, 112, 128, 144, 160, 176, 192, 256, 320, 576):
        add(f"dims-{d}", D=d, Dv=d, tiles="")
    for mask in MASKS:
        add(f"mask-{mask}", mask=mask, Nq=130)
    for mask in (None, "causal"):
        add(f"softcap-{mask}", score="softcap", mask=mask)
    while len(result) < 120:
        add("mixed")
    return result


def run(case, seed, folder, target, echo, tool):
    """Whether the result is right."""
    text = case.text(target.endswith("sm_90a"))
    (folder / "f.mlir").write_text(text)
    command = [str(tool), "f.mlir", f"--target={target}", "--check", f"--seed={seed}", *case.shapes()]
    process = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=600)
    if process.returncode or echo:
        outcome = "FAILED" if process.returncode else "ok"
        print(f"{outcome} {case.name} (seed {seed})\n{' '.join(command)}\n{text}{process.stdout}{process.stderr}", flush=True)
    return not process.returncode
