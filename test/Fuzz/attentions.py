"""Draws random attention programs, each with its inputs and its meaning.

`draw(rng)` gives a Program: MLIR text, arrays, and the counts and score function
that the definition in `oracle.py` needs. Nothing here calls the compiler.
"""
import math
import re

import numpy as np

# Lengths around the sizes of tiles and of matrix instructions.
LENGTHS = [1, 1, 2, 3, 7, 8, 15, 16, 17, 31, 33, 47, 48, 63, 64, 65, 79, 80, 100, 127, 128, 129, 150, 193]
HEAD_DIMS = [8, 8, 16, 16, 16, 24, 32, 40, 64]
WIDE_DIMS = [72, 80, 96, 128, 192, 208, 256, 264, 320, 392, 512, 576]
FLOATS = ["f32", "f16", "bf16"]
NUMPY_TYPES = {"f32": np.float32, "f16": np.float16, "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64}
DIMS = ("b", "h", "i", "j")


def round_to(array, element):
    """The values that an array has once it is of the element type."""
    if element != "bf16":
        return array.astype(NUMPY_TYPES[element])
    bits = np.ascontiguousarray(array, np.float32).view(np.uint32).astype(np.uint64)
    rounded = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16 << 16).astype(np.uint32).view(np.float32)
    return np.where(np.isnan(array), np.float32(np.nan), rounded)


def to_file(array, element):
    """What the array's .npy file holds; numpy has no bf16, so its bits."""
    if element != "bf16":
        return array
    return (np.ascontiguousarray(array).view(np.uint32) >> 16).astype(np.uint16)


def from_file(array, element):
    if element != "bf16":
        return array.astype(np.float64)
    return (array.astype(np.uint32) << 16).view(np.float32).astype(np.float64)


def erf(x):
    """Also of numbers with a small imaginary part, by which derivatives are taken."""
    real = np.vectorize(math.erf, [float])(np.real(x))
    return real + 2j / math.sqrt(math.pi) * np.exp(-np.real(x) ** 2) * np.imag(x) if np.iscomplexobj(x) else real


# --- Masks ---------------------------------------------------------------------


class Mask:
    """The attribute, the sets that it names, and the same as an expression of numpy."""

    def __init__(self, text, holds):
        self.text, self.holds = text, holds

    def keep(self, **positions):
        """Which elements take part, from arrays b, h, i, j and lengths nq, nk that broadcast."""
        return eval(self.holds, {"np": np}, positions)


def to_python(expression):
    # In both languages these bind as products do, from left to right, and round down.
    return expression.replace("floordiv", "//").replace("mod", "%")


class MaskMaker:
    def __init__(self, rng, nq, nk):
        self.rng, self.nq, self.nk = rng, nq, nk
        self.sets = []

    def constant(self, limit=None):
        """Mostly of the order of the lengths, so that something is kept and something is not."""
        limit = limit or max(self.nq, self.nk, 4)
        return self.rng.choice([0, 1, self.rng.randint(0, 8), self.rng.randint(0, limit), self.rng.randint(0, limit)])

    def diagonal(self):
        return self.rng.choice(["i - j", "i - j", "i - j + nk - nq", "i + nk - nq - j"])

    def term(self):
        rng = self.rng
        dim = rng.choice(DIMS[2:] * 4 + DIMS)
        term = rng.choice([dim, dim, f"({dim} + {self.constant()})", f"({self.diagonal()})"])
        divisor = rng.choice([2, 3, 5, 7, 16, 24, 32, 50, 64])
        term = rng.choice([term, term, f"{term} floordiv {divisor}", f"{term} mod {divisor}"])
        factor = rng.choice([1, 1, 1, 2, 3, -1, -1, -2, -3, 16, -16])
        return term if factor == 1 else f"({term}) * {factor}"

    def constraint(self):
        """One affine expression, and whether it is 0 or at least 0."""
        rng = self.rng
        kind = rng.randrange(9)
        c, r = rng.choice([2, 3, 4, 5, 7, 8, 16, 17, 24, 32, 48, 64, 100]), self.constant()
        if kind == 0:
            return f"{self.diagonal()} + {r}", ">="
        if kind == 1:
            return f"j - i + {r}" + rng.choice(["", " + nq - nk"]), ">="
        if kind == 2:
            return f"i floordiv {c} - j floordiv {c}" + (f" - {rng.randrange(3)}" if rng.random() < 0.3 else ""), \
                rng.choice(["==", "==", ">="])
        if kind == 3:
            return f"({self.diagonal()}) mod {c} - {rng.randrange(c)}", rng.choice(["==", ">=", "=="])
        if kind == 4:
            w = rng.choice([4, 5, 8, 10, 16, 20])
            x = f"{rng.choice(['i', 'j'])}"
            y = "j" if x == "i" else "i"
            return rng.choice([f"{x} floordiv {w} - {y} floordiv {w} + {rng.randrange(4)}",
                               f"{x} mod {w} - {y} mod {w} + {rng.randrange(4)}"]), ">="
        if kind == 5:
            return rng.choice([f"{r} - j", f"j - {r}", f"j - nk + {r}", f"{r} - i", f"i - {r}", f"nk floordiv 2 - j",
                               f"j - nq floordiv {c}", f"i + j - {r}"]), ">="
        if kind == 6:
            return rng.choice([f"i - j + h * {rng.randint(-9, 40)} + {r}", f"j - h * {rng.randint(1, 40)}",
                               f"b * {rng.randint(1, 60)} + {r} - j", f"(i + h) mod 2 - b mod 2",
                               f"j - i + {r} - b * {rng.randint(-30, 30)}", "h - 1", "b - 1"]), ">="
        terms = [self.term() for _ in range(rng.randint(1, 3))]
        if rng.random() < 0.2:
            terms.append(rng.choice(["nq", "nk", "nk - nq", "nk * -1", f"nk floordiv {c}", f"nq mod {c}"]))
        return " + ".join(terms) + f" + {r * rng.choice([1, -1])}", ">=" if rng.random() < 0.85 else "=="

    def affine(self):
        constraints = [self.constraint() for _ in range(self.rng.choice([1, 1, 2, 2, 3]))]
        body = ", ".join(f"{left} {relation} 0" for left, relation in constraints)
        self.sets.append(f"affine_set<(b, h, i, j)[nq, nk] : ({body})>")
        holds = " & ".join(f"({to_python(left)} {relation} 0)" for left, relation in constraints)
        return Mask(f"#flash.affine<#set{len(self.sets) - 1}>", holds)

    def leaf(self):
        rng = self.rng
        kind = rng.randrange(10)
        if kind == 0:
            return Mask("#flash.full", "j >= 0")
        if kind == 1:
            return Mask("#flash.causal", "j <= i + nk - nq")
        if kind == 2:
            return Mask("#flash.causal<top_left>", "j <= i")
        if kind == 3:
            n = rng.choice([0, self.constant(), self.nk])
            return Mask(f"#flash.prefix<{n}>", f"j < {n}")
        if kind <= 6:
            left = rng.choice([None, self.constant(), self.constant(60)])
            right = rng.choice([None, 0, self.constant(60)])
            if left is None and right is None:
                left = self.constant(30)
            sides = ([f"left = {left}"] if left is not None else []) + ([f"right = {right}"] if right is not None else [])
            holds = ([f"(j >= i + nk - nq - {left})"] if left is not None else []) + \
                ([f"(j <= i + nk - nq + {right})"] if right is not None else [])
            return Mask(f"#flash.window<{', '.join(sides)}>", " & ".join(holds))
        return self.affine()

    def mask(self, depth=2):
        if depth == 0 or self.rng.random() < 0.55:
            return self.leaf()
        parts = [self.mask(depth - 1) for _ in range(self.rng.choice([1, 2, 2, 3]))]
        name, operator = self.rng.choice([("any_of", " | "), ("all_of", " & ")])
        return Mask(f"#flash.{name}<[{', '.join(part.text for part in parts)}]>",
                    operator.join(f"({part.holds})" for part in parts))

    def definitions(self):
        return "".join(f"#set{n} = {text}\n" for n, text in enumerate(self.sets))


# --- Score regions -------------------------------------------------------------


class Score:
    """Steps of a score region, one after the other: lines of MLIR and functions on arrays. With `by_document` the last
    one masks."""

    def __init__(self, rng, sizes, dynamic, by_document=False):
        self.rng, self.sizes, self.dynamic, self.by_document = rng, sizes, dynamic, by_document
        self.lines, self.steps, self.captured = [], [], []  # captured: (name, array, element type, type)
        self.count = 0
        self.masks = False  # whether the last step makes scores -inf
        self.kept = ""  # what it yields as `keep` instead
        self.value = "%s"
        steps = rng.choice([1, 1, 2, 3])
        for number in range(steps):
            self.is_last = number == steps - 1
            step = self.same_document if by_document and self.is_last else rng.choice([
                self.softcap, self.add, self.add, self.multiply, self.distance, self.select, self.same_document, self.clamp,
                self.function, self.relative])
            step()

    def emit(self, operation, kind=None):
        """A line with a name of its own; `kind` is the type behind the colon."""
        self.count += 1
        name = f"%x{self.count}"
        self.lines.append(f"{name} = {operation}" + (f" : {kind}" if kind else ""))
        return name

    def constant(self, value, kind="f32"):
        text = f"{value:e}" if kind == "f32" else str(value)
        return self.emit(f"arith.constant {text}", kind)

    def capture(self, dims, element, values):
        """An array over some of the dimensions; returns how to read it in MLIR and in numpy."""
        shape = [self.sizes[d] if isinstance(d, str) else d for d in dims]
        array = round_to(np.asarray(values(shape)), element)
        name = f"c{len(self.captured)}"
        text = "x".join("?" if self.dynamic and self.rng.random() < 0.7 else str(n) for n in shape)
        kind = f"tensor<{text}x{element}>"
        self.captured.append((name, array, element, kind))

        def extract(*indices):
            value = self.emit(f"tensor.extract %{name}[{', '.join(indices)}]", kind)
            if element in ("f16", "bf16"):
                value = self.emit(f"arith.extf {value} : {element} to f32")
            elif element != "f32" and element != "i64":
                value = self.emit(f"arith.extsi {value} : {element} to i64")
            return value
        return extract, len(self.captured) - 1

    def read(self, element, values):
        """An array over a random subset of the dimensions, and its value at the score."""
        dims = self.rng.choice([("h",), ("b",), ("i",), ("j",), ("b", "h"), ("b", "j"), ("b", "i"), ("h", "j"), ("i", "j"),
                                ("j", "i"), ("h", "i", "j"), ("b", "i", "j"), ("b", "h", "i", "j")])
        extract, number = self.capture(dims, element, values)
        return extract(*(f"%{d}" for d in dims)), lambda p, c: c[number][tuple(p[d] for d in dims)]

    def normal(self, factor=1.0):
        generator = np.random.default_rng(self.rng.getrandbits(64))
        return lambda shape: generator.standard_normal(shape) * factor

    def to_float(self, value):
        return self.emit(f"arith.sitofp {self.emit(f'arith.index_cast {value} : index to i32')} : i32 to f32")

    def softcap(self):
        cap = self.rng.choice([2.0, 5.0, 30.0])
        constant = self.constant(cap)
        value = self.emit(f"arith.divf {self.value}, {constant}", "f32")
        value = self.emit(f"math.tanh {value}", "f32")
        self.value = self.emit(f"arith.mulf {value}, {constant}", "f32")
        self.steps.append(lambda s, p, c: cap * np.tanh(s / cap))

    def add(self):
        value, at = self.read(self.rng.choice(FLOATS), self.normal())
        self.value = self.emit(f"arith.addf {self.value}, {value}", "f32")
        self.steps.append(lambda s, p, c: s + at(p, c))

    def multiply(self):
        value, at = self.read("f32", self.normal())
        self.value = self.emit(f"arith.mulf {self.value}, {value}", "f32")
        self.steps.append(lambda s, p, c: s * at(p, c))

    def distance(self):
        extract, number = self.capture(("h",), "f32", self.normal(0.02))
        slope = extract("%h")
        distance = self.to_float(self.emit("arith.subi %j, %i", "index"))
        if self.rng.random() < 0.5:
            distance = self.emit(f"math.absf {distance}", "f32")
            self.steps.append(lambda s, p, c: s + c[number][p["h"]] * abs(p["j"] - p["i"]))
        else:
            self.steps.append(lambda s, p, c: s + c[number][p["h"]] * (p["j"] - p["i"]))
        self.value = self.emit(f"arith.addf {self.value}, {self.emit(f'arith.mulf {slope}, {distance}', 'f32')}", "f32")

    def select(self):
        left, right = self.rng.sample(["i", "j", "h", "b"], 2)
        bound = self.rng.randint(-20, 60)
        predicate, compare = self.rng.choice([("slt", np.less), ("sge", np.greater_equal), ("ne", np.not_equal)])
        difference = self.emit(f"arith.subi %{left}, %{right}", "index")
        holds = self.emit(f"arith.cmpi {predicate}, {difference}, {self.constant(bound, 'index')}", "index")
        other = self.emit(f"arith.mulf {self.value}, {self.constant(-0.5)}", "f32")
        self.value = self.emit(f"arith.select {holds}, {self.value}, {other}", "f32")
        self.steps.append(lambda s, p, c: np.where(compare(p[left] - p[right], bound), s, s * -0.5))

    def same_document(self):
        """Scores of queries and keys of different documents are another number, or -inf."""
        last = max(self.sizes["i"], self.sizes["j"])
        generator = np.random.default_rng(self.rng.getrandbits(64))
        element = self.rng.choice(["i8", "i16", "i32", "i64"])
        batch = self.rng.random() < 0.5
        extract, number = self.capture(("b", last) if batch else (last,), element,
                                       lambda shape: np.sort(generator.integers(-2, 3, shape), axis=-1))
        lead = ["%b"] if batch else []
        query, key = extract(*lead, "%i"), extract(*lead, "%j")
        holds = self.emit(f"arith.cmpi eq, {query}, {key}", "i64")
        # Other steps would make infinity or NaN of it.
        self.masks = self.is_last and (self.by_document or self.rng.random() < 0.5)
        number_of_other = -np.inf if self.masks else -3.0

        def step(s, p, c):
            lead = (p["b"],) if batch else ()
            return np.where(c[number][lead + (p["i"],)] == c[number][lead + (p["j"],)], s, number_of_other)
        self.steps.append(step)
        if self.by_document and self.masks and self.rng.random() < 0.5:
            self.kept = f" keep {holds}"
            return
        other = self.constant(-3.0) if not self.masks else self.emit("arith.constant 0xFF800000", "f32")
        self.value = self.emit(f"arith.select {holds}, {self.value}, {other}", "f32")

    def relative(self):
        """A table of distances, beyond which the last entry holds."""
        reach = self.rng.choice([1, 5, 40])
        extract, number = self.capture((2 * reach + 1,), self.rng.choice(FLOATS), self.normal())
        distance = self.emit("arith.subi %j, %i", "index")
        distance = self.emit(f"arith.maxsi {distance}, {self.constant(-reach, 'index')}", "index")
        distance = self.emit(f"arith.minsi {distance}, {self.constant(reach, 'index')}", "index")
        index = self.emit(f"arith.addi {distance}, {self.constant(reach, 'index')}", "index")
        self.value = self.emit(f"arith.addf {self.value}, {extract(index)}", "f32")
        self.steps.append(lambda s, p, c: s + c[number][np.clip(p["j"] - p["i"], -reach, reach) + reach])

    def clamp(self):
        low, high = self.rng.uniform(-3, 0), self.rng.uniform(0, 3)
        low, high = float(np.float32(low)), float(np.float32(high))
        value = self.emit(f"arith.maximumf {self.value}, {self.constant(low)}", "f32")
        self.value = self.emit(f"arith.minimumf {value}, {self.constant(high)}", "f32")
        self.steps.append(lambda s, p, c: np.minimum(np.maximum(s, float(f"{low:e}")), float(f"{high:e}")))

    def function(self):
        name, function = self.rng.choice([("sin", np.sin), ("cos", np.cos), ("erf", erf), ("atan", np.arctan)])
        self.value = self.emit(f"math.{name} {self.value}", "f32")
        self.steps.append(lambda s, p, c: function(s))

    def text(self):
        body = "".join(f"    {line}\n" for line in self.lines)
        return (f"score {{\n  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):\n{body}"
                f"    flash.yield {self.value}{self.kept} : f32\n  }}")

    def modify(self, scores, b, h, i, j):
        positions = dict(zip(DIMS, (b, h, i, j)))
        arrays = [array.astype(np.int64 if element[0] == "i" else np.float64) for _, array, element, _ in self.captured]
        for step in self.steps:
            scores = step(scores, positions, arrays)
        return scores


# --- Programs ------------------------------------------------------------------


class Program:
    """Text and arguments of a program, and what the definition needs beside them."""

    def __init__(self):
        self.text = None
        self.element = None
        self.arguments = []  # (name, array, element type)
        self.q = self.k = self.v = None  # of rank 4
        self.scale = None
        self.count = None  # how often each (b, h, i, j) takes part
        self.score = None
        self.sinks = None
        self.tf32 = False
        self.lse = False
        self.shapes = []  # of the results
        self.targets = None  # where it runs, if its schedule is written in it


def tensor_type(rng, shape, element, dynamic, fixed=0):
    """Each size static or `?`; the last `fixed` are always static."""
    sizes = [str(n) if k >= len(shape) - fixed or not dynamic or rng.random() < 0.3 else "?" for k, n in enumerate(shape)]
    return f"tensor<{''.join(n + 'x' for n in sizes)}{element}>"


def draw_lengths(rng, batches, nk):
    kind = rng.choice(["random", "random", "zeros", "full", "beyond", "edges"])
    if kind == "random":
        return np.array([rng.randint(0, nk) for _ in range(batches)], np.int32)
    if kind == "edges":
        return np.array([rng.choice([-1, -2**31, 0, 1, nk - 1, nk, nk + 1, 2**31 - 1]) for _ in range(batches)], np.int32)
    return np.full([batches], {"zeros": 0, "full": nk, "beyond": nk + 100}[kind], np.int32)


def draw(rng):
    """An attention on whole tensors."""
    program = Program()
    generator = np.random.default_rng(rng.getrandbits(64))
    program.element = element = rng.choice(["f32", "f16", "f16", "bf16"])
    form = rng.choice(["rank 4"] * 5 + ["heads", "batch"])  # what rank 3 leads with
    batches = 1 if form == "heads" else rng.choice([1, 1, 2, 3])
    kv_heads = 1 if form == "batch" else rng.choice([1, 1, 2, 3])
    heads = kv_heads * (1 if form == "batch" else rng.choice([1, 1, 2, 3]))
    nq, nk = rng.choice(LENGTHS), rng.choice(LENGTHS)
    if rng.random() < 0.3:
        nk = nq
    if rng.random() < 0.05:
        nq, nk = rng.choice([(0, nk), (nq, 0), (0, 0)])
    elif rng.random() < 0.02 and form != "heads":
        batches = 0
    d = rng.choice(HEAD_DIMS) if rng.random() < 0.95 else rng.choice(WIDE_DIMS)
    dv = d if rng.random() < 0.6 else rng.choice(HEAD_DIMS)
    dynamic = rng.random() < 0.4

    # Some programs give one tensor to several operands.
    shared = "qk v" if nq == nk and heads == kv_heads and rng.random() < 0.1 else "q kv" if d == dv and rng.random() < 0.15 else ""
    if "qk" in shared and d == dv and rng.random() < 0.5:
        shared = "qkv"

    def make(*shape):
        return round_to(generator.standard_normal(shape) * rng.choice([0.3, 1, 1, 1, 1, 2]), element)
    q = make(batches, heads, nq, d)
    k = q if "qk" in shared else make(batches, kv_heads, nk, d)
    v = k if "kv" in shared else make(batches, kv_heads, nk, dv)

    masks = MaskMaker(rng, nq, nk)
    mask = masks.mask(rng.choice([0, 1, 2])) if rng.random() < 0.85 else None
    b, h, i, j = np.ogrid[:batches, :heads, :nq, :nk]
    count = np.ones((batches, heads, nq, nk), np.int64)
    if mask:
        count = count * mask.keep(b=b, h=h, i=i, j=j, nq=nq, nk=nk)
    lengths = draw_lengths(rng, batches, nk) if rng.random() < 0.4 else None
    if lengths is not None:
        count = count * (j < lengths.astype(np.int64).reshape(-1, 1, 1, 1))
    program.count = count
    score = Score(rng, {"b": batches, "h": heads, "i": nq, "j": nk}, dynamic) if rng.random() < 0.35 else None
    program.score = score.modify if score else None
    program.sinks = round_to(generator.standard_normal(heads) * 2, "f32") if rng.random() < 0.25 else None

    # What no query may see must not matter, and what some may see only to these. Where the
    # score region masks, a weight of 0 meets NaN, and the definition has no number for it.
    kind = rng.random()
    if count.size and not (score and score.masks):
        if kind < 0.5:
            spoil(rng, program, q, k, v, count, shared)
        elif kind < 0.55:
            x = rng.choice([q, k, v])
            x[tuple(rng.randrange(n) for n in x.shape)] = np.nan

    program.q, program.k, program.v = q, k, v
    program.scale = rng.choice([None, None, 0.2, 1.0, -0.4, 0.05])
    program.tf32 = element == "f32" and rng.random() < 0.15
    program.lse = rng.random() < 0.8

    squeeze = {"rank 4": lambda x: x, "heads": lambda x: x[0], "batch": lambda x: x[:, 0]}[form]
    arguments = [("q", squeeze(q), element)]
    operands = ["q", "q" if "qk" in shared else "k", ""]
    operands[2] = operands[1] if "kv" in shared else "v"
    if operands[1] == "k":
        arguments.append(("k", squeeze(k), element))
    if operands[2] == "v":
        arguments.append(("v", squeeze(v), element))
    types = {name: tensor_type(rng, array.shape, element, dynamic, fixed=1) for name, array, element in arguments}
    parts = ["leading(batch)"] if form == "batch" else []
    if program.scale is not None:
        parts.append(f"scale({program.scale})")
    if mask:
        parts.append(f"mask({mask.text})")
    if lengths is not None:
        arguments.append(("n", lengths, "i32"))
        types["n"] = tensor_type(rng, [batches], "i32", dynamic)
        parts.append(f"lengths(%n : {types['n']})")
    if program.sinks is not None:
        arguments.append(("sink", program.sinks, "f32"))
        types["sink"] = tensor_type(rng, [heads], "f32", dynamic)
        parts.append(f"sink(%sink : {types['sink']})")
    if program.tf32:
        parts.append("precision(tf32)")
    if score:
        parts.append(score.text())
        for name, array, kind, text in score.captured:
            arguments.append((name, array, kind))
            types[name] = text
    out = list(squeeze(q).shape[:-1])
    results = [tensor_type(rng, out + [dv], element, dynamic, fixed=1)]
    program.shapes = [out + [dv]]
    if program.lse:
        results.append(tensor_type(rng, out, "f32", dynamic))
        program.shapes.append(out)
    finish(program, masks, arguments, types, results,
           f"  {'%o, %l' if program.lse else '%o'} = flash.attention {', '.join('%' + name for name in operands)}\n"
           + "".join(f"      {part}\n" for part in parts)
           + f"      : ({', '.join(types[name] for name in operands)}) -> ({', '.join(results)})\n")
    return program


def finish(program, masks, arguments, types, results, body):
    program.arguments = arguments
    signature = ", ".join(f"%{name}: {types[name]}" for name, _, _ in arguments)
    names = "%o, %l" if program.lse else "%o"
    program.text = (f"{masks.definitions()}func.func @attention({signature}) -> ({', '.join(results)}) {{\n{body}"
                    f"  return {names} : {', '.join(results)}\n}}\n")


def spoil(rng, program, q, k, v, count, shared):
    """NaN and infinities in rows of keys and values that no query sees, at times in some that are seen, too."""
    if shared:
        return
    group = count.shape[1] // k.shape[1]
    seen = count.reshape(count.shape[0], k.shape[1], group, *count.shape[2:]).any(axis=(2, 3))
    for x in (k, v):
        if rng.random() < 0.8:
            x[~seen] = round_to(np.array(rng.choice([np.nan, np.inf, -np.inf, 3e4]), np.float32), program.element)
    if rng.random() < 0.5:
        q[~count.any(axis=3)] = np.nan
    if rng.random() < 0.15:
        where = np.argwhere(seen)
        if len(where):
            row = tuple(where[rng.randrange(len(where))])
            rng.choice([k, v])[row + (rng.randrange(min(k.shape[-1], v.shape[-1])),)] = np.nan
