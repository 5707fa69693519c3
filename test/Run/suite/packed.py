"""Packed rows: programs of sequences that lie behind each other, and each sequence alone in numpy.

`suite.py --packed` runs them. Inputs are files, since what is compared are the formulas of
`grad_oracle.py` for one sequence after the other, which know nothing of offsets. Rows of no
sequence are NaN. `suite.py --packed --places` compares bits instead: those of sequences in a
batch, in another order of it, and alone.
"""

import copy
import random
import subprocess

import numpy as np

import grad_oracle
from suite import DTYPES, GRADIENT_SCORES, MASKS, Case

HEAD_DIMS = [40, 64, 80, 96, 128, 192, 256]
# Of the root mean square; relative to scores' size for f32, as that of --check.
TOLERANCES = {"f32": 2e-6, "f16": 1e-3, "bf16": 8e-3}
NUM_SAMPLES = 8  # of the signs of an output's gradient
PACKED_SCORES = GRADIENT_SCORES | {
    # As long as the longest sequences, as programs from Python have it.
    "short_bias": ("tensor<{Hq}x{Lq}x{Lk}xf32>", """
    %lq = arith.constant {Lq} : index
    %lk = arith.constant {Lk} : index
    %one = arith.constant 1 : index
    %mq = arith.subi %lq, %one : index
    %mk = arith.subi %lk, %one : index
    %iq = arith.minsi %i, %mq : index
    %jk = arith.minsi %j, %mk : index
    %e = tensor.extract %captured[%h, %iq, %jk] : tensor<{Hq}x{Lq}x{Lk}xf32>
    %r = arith.addf %s, %e : f32"""),
    "documents": ("tensor<{B}x{Nd}xf32>", """
    %x = tensor.extract %captured[%b, %i] : tensor<{B}x{Nd}xf32>
    %y = tensor.extract %captured[%b, %j] : tensor<{B}x{Nd}xf32>
    %xy = arith.mulf %x, %y : f32
    %zero = arith.constant 0.0 : f32
    %same = arith.cmpf ogt, %xy, %zero : f32
    %inf = arith.constant 0xFF800000 : f32
    %r = arith.select %same, %s, %inf : f32"""),
}
# The part of a captured tensor that sequence b has, of n queries and m keys.
PARTS = {
    "short_bias": lambda b, n, m, last: np.s_[:, :n, :m],
    "bias": lambda b, n, m, last: np.s_[:, :n, :m],
    "per_key": lambda b, n, m, last: np.s_[b : b + 1, :m],
    "per_query": lambda b, n, m, last: np.s_[:n],
    "by_distance": lambda b, n, m, last: np.s_[:, last + 1 - max(m, 1) : last + max(n, 1)],
    "documents": lambda b, n, m, last: np.s_[b : b + 1],
}


def documents(s, c, b, h, i, j):
    same = np.broadcast_to(c[b, i] * c[b, j] > 0, s.shape)
    return np.where(same, s, -np.inf), same.astype(float), lambda ds: None


grad_oracle.SCORES |= {"documents": documents, "short_bias": grad_oracle.bias}


class Packed(Case):
    """A case whose queries, keys or both are packed. No sequence has more than `Nq` and `Nk` rows."""

    scores = PACKED_SCORES

    def __init__(self, name, **options):
        self.packed = "qk"
        self.one_offsets = False  # for queries and keys
        self.offsets = {"q": "i32", "k": "i32"}
        self.rows = {"q": 0, "k": 0}  # of the packed memory
        self.padded = ""  # which operands have lengths of their own, of those that are not packed
        self.ill = False  # whether a sequence is NaN
        self.unpacks = False  # whether gradients take what was packed from where it lies
        super().__init__(name, **options)

    def sizes(self):
        """Captured tensors have an element for each row of the views, where no index is computed."""
        views = {f"N{side}": self.rows[side] for side in self.packed}
        queries, keys = views.get("Nq", self.Nq), views.get("Nk", self.Nk)
        return super().sizes() | {"Nq": queries, "Nk": keys, "Nd": queries + keys, "last": keys, "Lq": self.Nq, "Lk": self.Nk}

    def offsets_of(self, side):
        return "offsets_k" if side == "k" and not self.one_offsets else "offsets_q"

    def tensors(self):
        """Names, shapes and element types of the arguments, in order."""
        arguments = []
        for name, shape, element in super().tensors():
            side = "k" if name in "kv" else "q"
            if name in ("q", "k", "v", "do", "dlse") and side in self.packed:
                shape = [1, shape[1], self.rows[side]] + shape[3:]
            arguments.append((name, shape, element))
        extra = [(f"offsets_{side}", [self.B + 1], self.offsets[side]) for side in self.packed
                 if self.offsets_of(side) == f"offsets_{side}"]
        extra += [(f"n{side}", [self.B], "i32") for side in self.padded]
        return arguments[:3] + extra + arguments[3:]

    def types(self):
        types = {}
        for name, shape, element in self.tensors():
            types[name] = f"tensor<{'x'.join(map(str, shape))}x{element}>"
            if not self.dynamic or name in ("captured", "sinks"):
                continue
            is_vector = name in ("lengths", "nq", "nk") or name.startswith("offsets")
            sizes = [str(n) if d in (1, 3) else "?" for d, n in enumerate(shape)]
            if not is_vector and ("k" if name in "kv" else "q") in self.packed:
                sizes[0] = "1"
            types[name] = f"tensor<{'x'.join(['?'] if is_vector else sizes)}x{element}>"
        return types

    def view(self, side, name, types):
        """The operand, with its type, after what unpacks it."""
        memory = types[name]
        if side not in self.packed:
            return "", f"%{name}", memory
        batches = "?" if self.dynamic else self.B
        view, offsets = memory.replace("tensor<1x", f"tensor<{batches}x", 1), self.offsets_of(side)
        line = (f"  %{name}_view, %{name}_rows = flash.unpack %{name} by %{offsets} : {memory}, {types[offsets]}"
                f" -> {view}, tensor<{batches}xi32>\n")
        return line, f"%{name}_view", view

    def pack(self, value, type, side, name):
        """What packs a result whose rows are those of an operand, the packed value and its type."""
        if side not in self.packed:
            return "", value, type
        offsets, types = self.offsets_of(side), self.types()
        memory, empty = "tensor<1x" + type.split("x", 1)[1], f"%{name}_empty"
        size, lines = "", ""
        if self.dynamic:
            lines = f"  %{name}_2 = arith.constant 2 : index\n  %{name}_size = tensor.dim %{side}, %{name}_2 : {types[side]}\n"
            size = f"%{name}_size"
        lines += (f"  {empty} = tensor.empty({size}) : {memory}\n"
                  f"  %{name}_packed = flash.pack {value} by %{offsets} into {empty} : {type}, {types[offsets]} into {memory}\n")
        return lines, f"%{name}_packed", memory

    def clauses(self, types):
        batches = "?" if self.dynamic else self.B
        sets, parts = super().clauses(types)
        before = [part for part in parts if part.split("(")[0] in ("scale", "mask", "lengths")]
        lengths = [f"{clause}(%{operand}_rows : tensor<{batches}xi32>)" if side in self.packed else f"{clause}(%n{side} : {types[f'n{side}']})"
                   for side, clause, operand in (("q", "query_lengths", "q"), ("k", "key_lengths", "k"))
                   if side in self.packed or side in self.padded]
        rest = [part for part in parts if part not in before and not part.startswith(("query_lengths", "key_lengths"))]
        return sets, before + lengths + rest

    def text(self):
        types = self.types()
        sets, parts = self.clauses(types)
        signature = ", ".join(f"%{n}: {types[n]}" for n, _, _ in self.tensors())
        operands = {name: self.view(side, name, types) for name, side in (("q", "q"), ("k", "k"), ("v", "k"))}
        of_query = operands["q"][2]
        output = of_query.rsplit("x", 2)[0] + f"x{self.Dv}x{self.dtype}>"
        lse = of_query.rsplit("x", 2)[0] + "xf32>"
        lines = "".join(line for line, _, _ in operands.values())
        names, views = (", ".join(x[at] for x in operands.values()) for at in (1, 2))
        has_lse = self.lse or self.grad
        lines += (f"  %o{', %lse' if has_lse else ''} = flash.attention {names} {' '.join(parts)}\n"
                  f"      : ({views}) -> ({output}{f', {lse}' if has_lse else ''})\n")
        results = []

        def put(value, type, side, name):
            nonlocal lines
            more, value, type = self.pack(value, type, side, name)
            lines += more
            results.append((value, type))

        if not self.grad or self.unpacks:
            put("%o", output, "q", "o")
            if has_lse:
                put("%lse", lse, "q", "lse")
        if self.grad:
            taken = ["%o", "%lse"]
            if self.unpacks:
                for number, name in enumerate(("o", "lse")):
                    value, type = results[number]
                    line, taken[number], _ = self.view("q", name, types | {name: type})
                    lines += line.replace(f"unpack %{name} ", f"unpack {value} ")
            given = [self.view("q", name, types) for name in ("do", "dlse") if name in types]
            lines += "".join(line for line, _, _ in given)
            clauses = [part for part in parts if not part.startswith("score")]
            if self.products:
                clauses.append(f"schedule(<products = {self.products}>)")
            if self.lse_grad:
                clauses.append(f"lse_grad({given[1][1]} : {given[1][2]})")
            if "captured" in types and self.score != "documents":
                clauses.append(f"wrt(%captured : {types['captured']})")
            clauses += [part for part in parts if part.startswith("score")]
            of = [operands[n][2] if n in operands else types[n] for n in self.differentiated()]
            lines += (f"  {self.gradients()} = flash.attention_grad {names}, {taken[0]}, {taken[1]}, {given[0][1]} {' '.join(clauses)}\n"
                      f"      : ({views}, {output}, {lse}, {given[0][2]}) -> ({', '.join(of)})\n")
            for name, type in zip(self.differentiated(), of):
                if name in operands:
                    put(f"%grad_{name}", type, "k" if name in "kv" else "q", f"grad_{name}")
                else:
                    results.append((f"%grad_{name}", type))
        values, of = (", ".join(x[at] for x in results) for at in (0, 1))
        return f"{sets}func.func @attention({signature}) -> ({of}) {{\n{lines}  return {values} : {of}\n}}\n"

    def differentiated(self):
        return [n for n in super().differentiated() if n != "captured" or self.score != "documents"]

    def results(self):
        """Their names, in order."""
        return ((["o"] + ["lse"] * (self.lse or self.grad) if not self.grad or self.unpacks else [])
                + (["grad_" + n for n in self.differentiated()] if self.grad else []))

    def device_flags(self):
        return []

    def draw(self, rng):
        """The integers among the arguments, by name."""
        return draw_offsets(self, rng)

    def alone(self, b, n, m, values):
        """The case that sequence b is by itself."""
        names = ("Hq", "Hkv", "D", "Dv", "dtype", "mask", "score", "scale")
        return Case(f"sequence {b}", Nq=n, Nk=m, first_batch=b, **{name: getattr(self, name) for name in names})


def packed_cases():
    """60 attentions and 60 of their gradients. Sizes from a fixed seed; offsets are inputs, and fresh."""
    result = []
    for grad in (False, True):
        rng = random.Random(20261127 + grad)

        def add(name, **options):
            number = len(result)
            hkv = rng.randint(1, 2)
            defaults = dict(
                grad=grad, dtype=DTYPES[number % 3], B=rng.choice([1, 2, 3, 4, 7, 9, 17]), Hkv=hkv, Hq=hkv * rng.choice([1, 1, 2, 3]),
                packed=rng.choice(["qk"] * 6 + ["q", "k"]), mask=rng.choice([None, "causal", "causal", "window", "two_sided", "prefix_or_band"]),
                offsets={"q": rng.choice(["i32", "i64"]), "k": rng.choice(["i32", "i64"])}, dynamic=rng.random() < 0.5,
                lse=rng.random() < 0.5, lse_grad=grad and rng.random() < 0.3, sink=rng.random() < 0.2,
                unpacks=grad and rng.random() < 0.3)
            case = Packed(f"{number:03d}-{'grad' if grad else 'packed'}-{name}", **defaults | options)
            rows = {"q": rng.choice([60, 130, 200, 257]), "k": rng.choice([60, 130, 200, 300])}
            case.one_offsets = case.packed == "qk" and rng.random() < 0.5
            if case.one_offsets:
                rows["k"] = rows["q"]
            for side in "qk":
                if side in case.packed:
                    case.rows[side] = rows[side] if "rows" not in options else options["rows"][side]
                    longest = min(case.rows[side], rng.choice([65, 130, 200]) if name != "long" else 800)
                else:
                    longest = rng.choice([33, 64, 90, 150])
                setattr(case, f"N{side}", longest)
                if side not in case.packed and rng.random() < 0.6:
                    case.padded += side
            if case.one_offsets:
                case.Nk = case.Nq
            result.append(case)

        for d in HEAD_DIMS:
            add(f"dims-{d}", D=d, Dv=d)
        for d, dv in ((64, 128), (128, 40), (192, 128)):
            add(f"dv-{d}-{dv}", D=d, Dv=dv, Hq=4, Hkv=2)
        for mask in MASKS:
            add(f"mask-{mask}", mask=mask, D=64, Dv=rng.choice([64, 48]))
        for score in Packed.scores:
            add(f"score-{score}", score=score, D=40, Dv=64, scale=0.3)
        for b in (33, 100, 300):
            add(f"many-{b}", B=b, packed="qk", rows={"q": 2 * b + 40, "k": 2 * b + 40}, D=40, Dv=40)
        for hq, hkv in ((8, 2), (6, 1)):
            add(f"heads-{hq}-{hkv}", Hq=hq, Hkv=hkv, D=64, Dv=64)
        for packed in ("q", "k"):
            add(f"only-{packed}", packed=packed, B=5, D=64, Dv=64)
            add(f"only-{packed}-causal", packed=packed, B=3, D=128, Dv=128, mask="causal", dynamic=True)
        for d in (64, 128):
            add(f"ill-{d}", ill=True, packed="qk", B=6, D=d, Dv=d, sink=False, mask="causal")
        add("long", dtype="bf16" if grad else "f16", B=3, packed="qk", rows={"q": 1100, "k": 1400}, D=64, Dv=64, Hkv=1, Hq=2, mask="causal")
        add("everything", B=5, packed="qk", D=80, Dv=40, Hq=4, Hkv=2, mask="nested", sink=True, score="alibi", lse=True, lse_grad=grad,
            scale=0.11, lengths=True)
        for d, dv in ((320, 320), (512, 512), (576, 512)):
            add(f"wide-{d}-{dv}", B=2, Hkv=1, Hq=2, D=d, Dv=dv)
        while len(result) % 60:
            add("mixed", D=rng.choice(HEAD_DIMS), Dv=rng.choice(HEAD_DIMS), mask=rng.choice(list(MASKS)),
                score=rng.choice([None] + list(Packed.scores)), lengths=rng.random() < 0.3)
    return result


def draw_lengths(rng, count, longest, rows):
    """Of every kind: none, one, around the sizes of tiles, and the longest; together at most `rows`."""
    lengths = np.zeros(count, int)
    for b in rng.permutation(count):
        kinds = [0, 1, longest, rng.integers(0, longest + 1), rng.choice([15, 16, 17, 63, 64, 65, 127, 128, 129]),
                 rng.integers(0, 2 * rows // count + 2)]
        few = count > 20 and rng.random() < 0.9  # or the first ones would have all rows
        lengths[b] = min(rng.integers(0, 4) if few else rng.choice(kinds), longest, rows)
        rows -= lengths[b]
    return lengths, rows


def draw_offsets(case, rng):
    """By the names of the arguments: offsets with rows of no sequence at both ends, and lengths of what is not packed."""
    drawn = {}
    for side in case.packed:
        if case.offsets_of(side) == f"offsets_{side}":
            lengths, left = draw_lengths(rng, case.B, getattr(case, f"N{side}"), case.rows[side])
            first = rng.choice([0, left, rng.integers(0, left + 1)])
            drawn[f"offsets_{side}"] = first + np.concatenate([[0], np.cumsum(lengths)])
    for side in case.padded:
        drawn[f"n{side}"] = draw_lengths(rng, case.B, getattr(case, f"N{side}"), case.B * getattr(case, f"N{side}"))[0]
    if case.lengths:
        drawn["lengths"] = rng.integers(-3, case.Nk + 4, case.B)
    return drawn


def spans(case, drawn, side):
    """Of each sequence its batch in memory and which rows it has."""
    if side in case.packed:
        offsets = drawn[case.offsets_of(side)]
        return [(0, slice(offsets[b], offsets[b + 1])) for b in range(case.B)]
    lengths = drawn.get(f"n{side}", [getattr(case, f"N{side}")] * case.B)
    return [(b, slice(0, length)) for b, length in enumerate(lengths)]


def round_to(dtype, array):
    """As numbers of the type, in fp32 where numpy has it not."""
    if dtype != "bf16":
        return array.astype({"f32": np.float32, "f16": np.float16}[dtype])
    bits = array.astype(np.float32).view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16 << 16).view(np.float32)


def draw_inputs(case, rng):
    """The arguments by name; rows of no sequence are NaN, and so is one sequence of cases that are ill."""
    drawn = case.draw(rng)
    values = {}
    for name, shape, element in case.tensors():
        if name in drawn:
            values[name] = drawn[name].astype(f"int{element[1:]}")
            continue
        values[name] = round_to(element, rng.standard_normal(shape))
        if name in ("q", "k", "v", "do", "dlse"):
            poisoned = np.full_like(values[name], np.nan)
            for b, (batch, rows) in enumerate(spans(case, drawn, "k" if name in "kv" else "q")):
                if not (case.ill and b == case.B // 2):
                    poisoned[batch, :, rows] = values[name][batch, :, rows]
            values[name] = poisoned
    return values


def load(file, element):
    array = np.load(file)
    if element == "bf16":
        array = (array.astype(np.uint32) << 16).view(np.float32)
    return array


def execute(calls, folder, tool, target):
    """The results by name of each call, a case with its arguments, or what was printed. Equal programs are compiled once."""
    lines = []
    for number, (case, values) in enumerate(calls):
        place = folder / str(number)
        place.mkdir(exist_ok=True)
        for name, value in values.items():
            np.save(place / f"{name}.npy", value)
        (folder / "case.mlir").write_text(case.text())
        shapes = [flag for flag in case.flags(0) if flag.startswith(("--shape", "--schedule"))]
        # On a GPU only checks see what is read outside of tensors.
        check = ["--check"] + case.device_flags() if target.startswith("sm_") else []
        lines.append(" ".join(["case.mlir"] + check + shapes + [f"--inputs={','.join(f'{number}/{name}.npy' for name in values)}",
                                                                f"--outputs={','.join(f'{number}/{name}.npy' for name in case.results())}"]))
    (folder / "calls.txt").write_text("\n".join(lines) + "\n")
    command = [str(tool), "--suite=calls.txt", f"--target={target}", "--threads=2"]
    process = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=600)
    if process.returncode:
        return f"{folder}: {' '.join(command)}\n{process.stdout}{process.stderr}"
    elements = {"lse": "f32", "grad_sinks": "f32", "grad_captured": "f32"}
    return [{name: load(folder / str(number) / f"{name}.npy", elements.get(name, case.dtype)) for name in case.results()}
            for number, (case, _) in enumerate(calls)]


def sample_squares(case, operands, names):
    """By name the mean squares of uncentred gradients whose `do` has other signs.

    Few numbers that are sums of many terms may all be small by chance, which other signs hardly are as well
    (`lib/Compile/Reference.cpp` has the same): a gain's gradient, or all of a sequence of one query and one key.
    """
    rng = np.random.default_rng(0)
    squares = {name: [] for name in names}
    for _ in range(NUM_SAMPLES if names else 0):
        signs = rng.choice([-1.0, 1.0], operands["do"].shape)
        grads = grad_oracle.gradients(case, **operands | {"do": operands["do"] * signs}, centred=False)
        for name in names:
            squares[name].append((grads[name][np.isfinite(grads[name])] ** 2).sum())
    return {name: np.mean(squares[name]) for name in names}


def expect(case, values):
    """Of each sequence the results that it has alone, of all of them the sums, and the sizes to which errors relate."""
    whole = {n: x.astype(np.float64) for n, x in values.items() if n in ("q", "k", "v", "do", "dlse", "sinks", "captured")}
    where = {side: spans(case, values, side) for side in "qk"}
    sides = {"q": "q", "do": "q", "dlse": "q", "k": "k", "v": "k"}
    alone, sums = [], {}
    for b in range(case.B):
        rows = {side: where[side][b] for side in "qk"}
        n, m = (rows[side][1].stop - rows[side][1].start for side in "qk")
        operands = {}
        for name, x in whole.items():
            if name in sides:
                batch, span = rows[sides[name]]
                operands[name] = x[batch : batch + 1, :, span]
            else:
                operands[name] = x
        part = np.s_[...]
        if "captured" in operands and case.score in PARTS:
            part = PARTS[case.score](b, n, m, case.sizes()["last"])
            operands["captured"] = operands["captured"][part]
        if case.lengths:
            operands["lengths"] = values["lengths"][b : b + 1]
        of = case.alone(b, n, m, values)
        inputs = {x: y for x, y in operands.items() if x not in ("do", "dlse")}
        wanted = dict(zip(("o", "lse"), grad_oracle.forward(of, **inputs)))
        sizes = {name: np.linalg.norm(x[np.isfinite(x)]) for name, x in wanted.items()}
        if case.grad:
            wanted |= {"grad_" + name: x for name, x in grad_oracle.gradients(of, **operands).items()}
            terms = grad_oracle.gradients(of, **operands, centred=False)
            sampled = sample_squares(of, operands, case.differentiated())
            for name in case.differentiated():
                sizes["grad_" + name] = np.sqrt(max((terms[name][np.isfinite(terms[name])] ** 2).sum(), sampled[name]))
            for name in ("sinks", "captured"):
                if "grad_" + name in case.results():
                    total = sums.setdefault("grad_" + name, [np.zeros_like(whole[name]), 0])
                    where_to = part if name == "captured" else ...
                    total[0][where_to] += wanted["grad_" + name]
                    total[1] += sizes["grad_" + name] ** 2
        alone.append((rows, wanted, sizes))
    return alone, sums


def agree(case, values, got):
    """Whether the results are right; prints what is not."""
    alone, sums = expect(case, values)
    finite = [abs(wanted["lse"][np.isfinite(wanted["lse"])]).max(initial=0) for _, wanted, _ in alone]
    largest = max((x for b, x in enumerate(finite) if not (case.ill and b == case.B // 2)), default=0)
    for name, result in got.items():
        tolerance = 2e-6 if name == "lse" else max(TOLERANCES[case.dtype], 1e-7 * largest if case.dtype == "f32" else 0)
        tolerance *= 2 if name.startswith("grad") else 1
        if name in sums:
            pieces = [(None, result, sums[name][0], np.sqrt(sums[name][1]))]
        else:
            side = "k" if name in ("grad_k", "grad_v") else "q"
            pieces = []
            for b, (rows, wanted, sizes) in enumerate(alone):
                batch, span = rows[side]
                piece = result[batch : batch + 1, :, span]
                if not (case.ill and b == case.B // 2):
                    pieces.append((b, piece, wanted[name], sizes[name]))
                if side not in case.packed and not np.all(result[batch, :, span.stop :] == (-np.inf if name == "lse" else 0)):
                    print(f"{case.name}: {name} of sequence {b} is not {-np.inf if name == 'lse' else 0} behind its last row")
                    return False
        errors, all_sizes = 0, 0
        for b, piece, want, size in pieces:
            finite = np.isfinite(want)
            if not np.array_equal(piece[~finite], want[~finite]):
                print(f"{case.name}: {name} of sequence {b} has other infinities or NaN")
                return False
            error = np.linalg.norm(piece[finite] - want[finite])
            # A logarithm's errors are absolute where it is small, and those of f16 below its smallest normal number.
            least = 1 if name == "lse" else 2**-14 if case.dtype == "f16" else 2**-126
            size = max(np.linalg.norm(want[finite]), size, least * np.sqrt(want.size))
            if not error <= 8 * tolerance * size + 1e-30:
                print(f"{case.name}: {name} of sequence {b} is off by {error / size if size else error:.2e}")
                return False
            errors, all_sizes = errors + error**2, all_sizes + size**2
        if not np.sqrt(errors) <= tolerance * np.sqrt(all_sizes) + 1e-30:
            print(f"{case.name}: {name} is off by {np.sqrt(errors / all_sizes):.2e}")
            return False
    return True


def rearrange(case, values, order, rng):
    """The case and the arguments with these of its sequences, in this order."""
    other = copy.copy(case)
    other.B, other.rows, moved = len(order), dict(case.rows), dict(values)
    for name in ("nq", "nk", "lengths"):
        if name in values:
            moved[name] = values[name][order]
    for side in case.packed:
        name = case.offsets_of(side)
        if moved[name] is values[name]:
            lengths = np.diff(values[name])[order]
            offsets = rng.integers(0, 40) + np.concatenate([[0], np.cumsum(lengths)])
            moved[name] = offsets.astype(values[name].dtype)
        other.rows[side] = int(moved[name][-1]) + int(rng.integers(0, 40))
    before, after = ({side: spans(of, x, side) for side in "qk"} for of, x in ((case, values), (other, moved)))
    for name, shape, _ in other.tensors():
        if name in ("q", "k", "v", "do", "dlse"):
            side = "k" if name in "kv" else "q"
            moved[name] = np.full(shape, np.nan, values[name].dtype)
            for (batch, rows), b in zip(after[side], order):
                moved[name][batch, :, rows] = values[name][before[side][b][0], :, before[side][b][1]]
    return other, moved


def may_move(case):
    """Whether nothing of a sequence depends on which one it is."""
    return case.score not in PARTS and case.mask != "by_batch" and not case.ill


def run_places(case, seed, folder, target, echo, tool):
    """Whether sequences have the same bits in another order, at another position, and alone."""
    case.dynamic = True
    rng = np.random.default_rng(seed)
    values = draw_inputs(case, rng)
    orders = [list(range(case.B)), [int(b) for b in rng.permutation(case.B)], [int(rng.integers(case.B))]]
    longest = [rows.stop - rows.start for _, rows in spans(case, values, "q")]
    orders.append([int(np.argmax(longest))])
    calls = [(case, values)] + [rearrange(case, values, order, rng) for order in orders[1:]]
    got = execute(calls, folder, tool, target)
    ok = isinstance(got, list)
    for (of, moved), order, results in zip(calls, orders, got if ok else []):
        for name in ("o", "lse", "grad_q", "grad_k", "grad_v"):
            side = "k" if name in ("grad_k", "grad_v") else "q"
            here, there = spans(of, moved, side), spans(case, values, side)
            for (batch, rows), b in zip(here, order):
                if name in results and not np.array_equal(results[name][batch, :, rows], got[0][name][there[b][0], :, there[b][1]]):
                    print(f"{case.name}: {name} of sequence {b} has other bits as number {order.index(b)} of {len(order)}")
                    ok = False
    return tell(ok, case, seed, got, echo)


def tell(ok, case, seed, got, echo):
    """Prints the outcome and returns it: None where the program has other products than were wanted."""
    if case.products and f"cannot be scheduled: products = {case.products} " in got:
        return None
    if not ok or echo:
        print(f"{'ok' if ok else 'FAILED'} {case.name}, seed {seed}\n{case.text()}{got if isinstance(got, str) else ''}", flush=True)
    return ok


def run(case, seed, folder, target, echo, tool):
    """Whether its results are those of each sequence alone."""
    values = draw_inputs(case, np.random.default_rng(seed))
    got = execute([(case, values)], folder, tool, target)
    return tell(isinstance(got, list) and agree(case, values, got[0]), case, seed, got, echo)
