"""Keys and values of 8 bits: each program beside the same one on tensors of 16 bits.

`suite.py --quantized` runs them. numpy dequantizes: a product in f32, rounded once. Both programs have the
same schedule, and their results the same bits; the one on 8 bits is compared with the fp64 reference, too.
"""

import random
import re
import subprocess

import numpy as np

from suite import MASKS, SCORES

QUANTIZED = ("f8E4M3FN", "i8")
SCALES = ("tensor", "head", "row")
PLACES = ("dense", "packed", "paged")


def decode_e4m3():
    """The 256 numbers, of f32."""
    codes = np.arange(256)
    exponent, mantissa = codes >> 3 & 15, codes & 7
    values = np.where(exponent > 0, (mantissa + 8) * 2.0 ** (exponent - 10.0), mantissa * 2.0**-9)
    values[codes & 127 == 127] = np.nan
    return np.where(codes >> 7 == 1, -values, values).astype(np.float32)


E4M3 = decode_e4m3()


def round_to(element, values):
    """Values of f32, as elements of 16 bits that flash-run reads."""
    if element == "f16":
        return values.astype(np.float16)
    bits = values.astype(np.float32).view(np.uint32)
    rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16
    return np.where(np.isnan(values), 0x7FC0, rounded).astype(np.uint16)


class Quantized:
    def __init__(self, name, rng, **options):
        self.name = name
        self.dtype = rng.choice(["f16", "bf16"])
        # Of keys and of values; None has 16 bits already.
        self.elements = [rng.choice(QUANTIZED), rng.choice(QUANTIZED)]
        self.scales = [rng.choice(SCALES), rng.choice(SCALES)]
        self.place = rng.choice(PLACES)
        self.B, self.Hkv = rng.choice([1, 2, 3, 5]), rng.choice([1, 2])
        self.Hq = self.Hkv * rng.choice([1, 2, 4])
        self.D, self.Dv = rng.choice([16, 32, 48, 64, 96, 128]), rng.choice([16, 32, 64, 80, 128])
        self.Nq, self.page = rng.choice([1, 1, 4, 33, 70]), rng.choice([16, 32, 64])
        self.Nk = self.page * rng.randint(1, 6) + rng.randint(0, 15)
        self.mask = rng.choice([None, "causal", "window", "sink_and_window"])
        self.score, self.lse, self.dynamic = None, rng.random() < 0.4, rng.random() < 0.5
        self.has_nan = False
        self.key_tile, self.splits = rng.choice([16, 32, 64]), rng.choice(["", "", "num_splits = 2", "split_keys = 64"])
        # What suite.py sets and reads.
        self.schedule = self.features = self.products = self.split_kv = None
        for key, value in options.items():
            if not hasattr(self, key):
                raise KeyError(key)
            setattr(self, key, value)
        if self.place == "packed":
            self.splits = ""
        if self.place == "paged":
            self.Nk -= self.Nk % self.page

    def memory(self, columns):
        """The shape of rows as they lie, and of one number for each."""
        rows = {"dense": [self.B, self.Hkv, self.Nk], "packed": [1, self.Hkv, self.B * self.Nk + 7],
                "paged": [self.B * (self.Nk // self.page) + 3, self.Hkv, self.page]}[self.place]
        return rows + ([columns] if columns else [])

    def type(self, shape, element):
        # Heads stay known, and what pages need.
        keep = {"dense": (1, 3), "packed": (0, 1, 3), "paged": (1, 2, 3)}[self.place] if len(shape) > 2 else ()
        sizes = ["?" if self.dynamic and d not in keep else str(n) for d, n in enumerate(shape)]
        return f"tensor<{'x'.join(sizes)}x{element}>"

    def text(self, is_quantized):
        dtype, dims = self.dtype, (self.D, self.Dv)
        batches, rows = ("?", "?") if self.dynamic else (self.B, self.B * self.Nk + 7 if self.place == "packed" else self.Nk)
        q, o = (f"tensor<{batches}x{self.Hq}x{self.Nq}x{d}x{dtype}>" for d in dims)
        lengths = f"tensor<{batches}xi32>"
        arguments, lines, views = [f"%q: {q}"], "", []
        for name, element, scale, columns in zip("kv", self.elements, self.scales, dims):
            own = element if is_quantized and element else dtype
            memory, value = self.type(self.memory(columns), own), f"%{name}"
            arguments.append(f"{value}: {memory}")

            def view(value, memory, columns, element):
                of = f"tensor<{batches}x{self.Hkv}x{rows}{f'x{columns}' if columns else ''}x{element}>"
                if self.place == "packed":
                    return (f"  {value}_view, {value}_n = flash.unpack {value} by %offsets : {memory}, {self.type([self.B + 1], 'i32')}"
                            f" -> {of}, {lengths}\n", f"{value}_view", of)
                if self.place == "paged":
                    return (f"  {value}_view = flash.unpage {value} by %table lengths(%n : {lengths}) : {memory}, "
                            f"{self.type([self.B, self.Nk // self.page], 'i32')} -> {of}\n", f"{value}_view", of)
                return "", value, memory

            line, value, of = view(value, memory, columns, own)
            lines += line
            if is_quantized and element:
                shape = {"tensor": [1], "head": [self.B, self.Hkv], "row": self.memory(0)}[scale]
                scales = "tensor<1xf32>" if scale == "tensor" else self.type(shape, "f32")
                if scale == "head" and self.dynamic:
                    scales = f"tensor<?x{self.Hkv}xf32>"
                arguments.append(f"%{name}_scale: {scales}")
                scale_value = f"%{name}_scale"
                if scale == "row":
                    line, scale_value, scales = view(scale_value, scales, 0, "f32")
                    lines += line
                result = of.replace(element + ">", dtype + ">")
                lines += f"  %{name}_16 = flash.dequantize {value} scale({scale_value} : {scales}) : {of} -> {result}\n"
                value, of = f"%{name}_16", result
            views.append((value, of))
        arguments += {"dense": [], "packed": [f"%offsets: {self.type([self.B + 1], 'i32')}"],
                      "paged": [f"%table: {self.type([self.B, self.Nk // self.page], 'i32')}", f"%n: {lengths}"]}[self.place]
        # Sets are defined outside, where > is no bracket.
        sets = re.findall(r"affine_set<.*?\)>", MASKS[self.mask]) if self.mask else []
        clauses = f" mask({MASKS[self.mask]})" if self.mask else ""
        for number, text in enumerate(sets):
            clauses = clauses.replace(text, f"#set{number}", 1)
        aliases = "".join(f"#set{number} = {text}\n" for number, text in enumerate(sets))
        if self.place != "dense":
            # All lengths of one view are the same.
            n = "%n" if self.place == "paged" else "%k_n"
            if self.place == "packed":
                lines = lines.replace("%v_view, %v_n = flash.unpack", "%v_view, %v_unused = flash.unpack")
            clauses += f" key_lengths({n} : {lengths})"
        tiles = [f"query_tile = {max(16, min(64, self.Nq // 16 * 16))}", f"key_tile = {self.key_tile}", "features = none"]
        clauses += f" schedule(<{', '.join(tiles + [self.splits] * bool(self.splits))}>)"
        if self.score:
            clauses += f" score {{\n  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):{SCORES[self.score][1]}\n    flash.yield %r : f32\n  }}"
        results = [o] + [f"tensor<{batches}x{self.Hq}x{self.Nq}xf32>"] * self.lse
        of_op = results[0] if not self.lse else f"({', '.join(results)})"
        names = ["%o", "%lse"][: len(results)]
        return (f"{aliases}func.func @f({', '.join(arguments)}) -> ({', '.join(results)}) {{\n{lines}  {', '.join(names)} = flash.attention %q, "
                f"{views[0][0]}, {views[1][0]}{clauses} : ({q}, {views[0][1]}, {views[1][1]}) -> {of_op}\n"
                f"  return {', '.join(names)} : {', '.join(results)}\n}}\n")

    def draw(self, rng):
        """The arguments of both programs."""
        small, large = {}, {}
        small["q"] = large["q"] = round_to(self.dtype, rng.standard_normal((self.B, self.Hq, self.Nq, self.D), np.float32))
        rest, batch_of = {}, None
        if self.place == "packed":
            ends = np.sort(rng.integers(0, self.B * self.Nk + 8, self.B - 1)) if self.B > 1 else []
            rest["offsets"] = np.array([0, *ends, self.B * self.Nk + 7], np.int32)
            batch_of = np.searchsorted(rest["offsets"][1:-1], np.arange(self.B * self.Nk + 7), side="right")
        elif self.place == "paged":
            columns = self.Nk // self.page
            table = rng.permutation(self.B * columns + 3)[: self.B * columns].astype(np.int32)
            rest["table"], rest["n"] = table.reshape(self.B, columns), rng.integers(0, self.Nk + 1, self.B).astype(np.int32)
            batch_of = np.zeros(self.B * columns + 3, int)
            batch_of[table] = np.repeat(np.arange(self.B), columns)
        for name, element, scale, columns in zip("kv", self.elements, self.scales, (self.D, self.Dv)):
            shape = self.memory(columns)
            if not element:
                small[name] = large[name] = round_to(self.dtype, rng.standard_normal(shape, np.float32))
                continue
            codes = rng.integers(0, 256, shape).astype(np.uint8)
            if element == "i8":
                codes = codes.view(np.int8)
                values, unit = codes.astype(np.float32), 1 / 64
            else:
                # Of keys not the largest, as scores would have few digits behind the point, and few are NaN.
                codes = np.where(codes & 127 == 127, codes - 1, codes).astype(np.uint8)
                if name == "k":
                    codes &= np.uint8(0b10111111)
                if self.has_nan:
                    codes[..., self.Nk // 3 % shape[2], 0] = 0x7F
                values, unit = E4M3[codes], 1
            shape_of_scale = {"tensor": [1], "head": [self.B, self.Hkv], "row": self.memory(0)}[scale]
            factors = (unit * np.exp2(rng.uniform(-3, 2, shape_of_scale))).astype(np.float32)
            of_rows = factors
            if scale == "head" and self.place == "packed":
                of_rows = factors[batch_of].transpose(1, 0)[None]
            elif scale == "head":
                of_rows = (factors if batch_of is None else factors[batch_of])[..., None]
            elif scale == "tensor":
                of_rows = factors[0] * np.ones((1, 1, 1), np.float32)
            with np.errstate(over="ignore"):
                large[name] = round_to(self.dtype, values * of_rows[..., None])
            small[name], small[f"{name}_scale"] = codes, factors
        return small | rest, large | rest


def quantized_cases():
    """200 attentions. Sizes from a fixed seed; elements, scales, lengths and tables are inputs, and fresh."""
    rng = random.Random(20261128)
    result = []

    def add(name, **options):
        result.append(Quantized(f"{len(result):03d}-quantized-{name}", rng, **options))

    for place in PLACES:
        for element in QUANTIZED:
            for of_keys in SCALES:
                for of_values in SCALES:
                    add(f"{place}-{element}-{of_keys}-{of_values}", place=place, elements=[element] * 2, scales=[of_keys, of_values])
        for elements in (["f8E4M3FN", None], [None, "f8E4M3FN"], ["i8", None], [None, "i8"], ["f8E4M3FN", "i8"], ["i8", "f8E4M3FN"]):
            add(f"{place}-{'-'.join(element or 'as-it-is' for element in elements)}", place=place, elements=elements)
    for d in (16, 32, 48, 64, 80, 96, 112, 128, 144, 160, 192, 240, 256):
        add(f"dims-{d}", D=d, Dv=d, key_tile=16)
    for mask in MASKS:
        add(f"mask-{mask}", mask=mask, Nq=70)
    for place in PLACES:
        add(f"score-{place}", score="softcap", place=place)
    for place in PLACES:
        add(f"nan-{place}", place=place, has_nan=True, elements=["f8E4M3FN"] * 2, mask="causal", Nq=33)
    while len(result) < 200:
        add("mixed")
    return result


def run(case, seed, folder, target, echo, tool):
    """Whether both programs have the same results, and right ones."""
    rng = np.random.default_rng(seed)
    small, large = case.draw(rng)
    results = ["o"] + ["lse"] * case.lse
    outputs, problem = [], ""
    for name, values, is_quantized in (("small", small, True), ("large", large, False)):
        place = folder / name
        place.mkdir(exist_ok=True)
        (place / "f.mlir").write_text(case.text(is_quantized))
        for key, value in values.items():
            np.save(place / f"{key}.npy", value)
        command = [str(tool), "f.mlir", f"--target={target}", f"--inputs={','.join(f'{key}.npy' for key in values)}",
                   f"--outputs={','.join(f'{key}.npy' for key in results)}"] + ["--check"] * is_quantized
        process = subprocess.run(command, cwd=place, capture_output=True, text=True, timeout=600)
        if process.returncode:
            problem = f"{place}: {' '.join(command)}\n{process.stdout}{process.stderr}"
            break
        outputs.append([np.load(place / f"{key}.npy") for key in results])
    if not problem:
        for name, ours, theirs in zip(results, *outputs):
            if ours.tobytes() != theirs.tobytes():
                problem += f"{name} differs in {np.count_nonzero(ours.view(np.uint8) != theirs.view(np.uint8))} bytes\n"
    if problem or echo:
        print(f"{'FAILED' if problem else 'ok'} {case.name} (seed {seed})\n{case.text(True)}{problem}", flush=True)
    return not problem
