"""Draws random programs of flash.attention_grad, each with its inputs and its meaning in numpy.

Masks, lengths, sinks, score regions and operands that no query may see come from `attentions.py`.
The gradients are as in docs/language.md; the derivatives of score regions are taken by a complex step, which
has no error of a difference. With each element goes by how much it may be off.
"""
import numpy as np

import attentions
from attentions import MaskMaker, Score, round_to, tensor_type
from oracle import attention

# Relative to the sum of the absolute terms of an element.
TOLERANCES = {"f32": 3e-6, "f16": 2e-3, "bf16": 1.6e-2}
STEP = 1e-30


class Recorder:
    """A captured array that keeps where it was read; each array is read once for a score."""

    def __init__(self, array):
        self.array, self.index = array, None

    def __getitem__(self, index):
        self.index = index
        return self.array[index]


class Program(attentions.Program):
    def __init__(self):
        super().__init__()
        self.outputs = []  # (name, element type)
        self.expected, self.bounds = [], []
        self.planned = False  # whether a function of its own computes the block maps

    def compare(self, results):
        """What is wrong with the results, or None, and the largest error as a part of what it may be."""
        worst = 0
        for (name, _), got, want, bound in zip(self.outputs, results, self.expected, self.bounds):
            if not np.all(np.isfinite(got)):
                at = np.argwhere(~np.isfinite(got))[0]
                return f"{name}{[int(x) for x in at]} is {got[tuple(at)]}, not {want[tuple(at)]}", worst
            error = np.abs(got - want)
            if np.any(error > bound):
                at = np.unravel_index(np.argmax(error - bound), error.shape)
                return (f"{name}{[int(x) for x in at]} is {got[at]}, not {want[at]}: off by {error[at]:.2e}, "
                        f"and may be by {bound[at]:.2e}"), worst
            if error.size:
                worst = max(worst, (error / np.maximum(bound, 1e-300)).max())
        return None, worst


def with_slopes(score, scores, positions):
    """Modified scores, their slope, how uncertain that is, and for each captured array slope and position of its read."""
    if not score:
        return scores, np.ones_like(scores), np.zeros_like(scores), []
    arrays = [array.astype(np.int64 if element[0] == "i" else np.float64) for _, array, element, _ in score.captured]

    def evaluate(scores, arrays):
        with np.errstate(invalid="ignore", over="ignore"):
            for step in score.steps:
                scores = step(scores, positions, arrays)
        return scores

    def slope_at(scores):
        slope = np.imag(evaluate(scores + STEP * 1j, arrays)) / STEP
        return np.where(np.isfinite(slope), slope, 0)
    plain = evaluate(scores, arrays)
    near = 1e-5 * max(1, np.abs(scores).max(initial=0))
    around = np.abs(slope_at(scores + near) - slope_at(scores - near))
    captured = []
    for number, array in enumerate(arrays):
        if array.dtype != np.float64:
            captured.append(None)
            continue
        recorder = Recorder(array + STEP * 1j)
        moved = evaluate(scores, arrays[:number] + [recorder] + arrays[number + 1:])
        slope = np.imag(moved) / STEP
        captured.append((np.where(np.isfinite(slope), slope, 0), recorder.index))
    # Where the slope jumps, as at the ends of a clamp, either side is right.
    return plain, slope_at(scores), np.where(around > 1e-2, around, 0), captured


def differentiate(program, q, k, v, do, o, lse, dlse, score, sinks, wrt):
    """By name the gradients, and by how much they may be off."""
    group = q.shape[1] // max(k.shape[1], 1)
    scale = program.scale if program.scale is not None else q.shape[-1] ** -0.5
    seen = program.count.reshape(program.count.shape[0], k.shape[1], group, *program.count.shape[2:]).any(axis=(2, 3))
    keys, values = (np.repeat(np.where(seen[..., None], x, 0).astype(np.float64), group, 1) for x in (k, v))
    q, do, o, lse = (x.astype(np.float64) for x in (q, do, o, lse))
    positions = dict(zip(attentions.DIMS, np.ogrid[tuple(slice(n) for n in program.count.shape)]))
    scores = np.einsum("bhid,bhjd->bhij", q, keys) * scale
    magnitude = np.abs(np.einsum("bhid,bhjd->bhij", np.abs(q), np.abs(keys)) * scale).max(initial=0)
    modified, slope, uncertain, captured = with_slopes(score, scores, positions)
    # A slope of a captured value may be the score itself, which is a sum in f32.
    others = with_slopes(score, scores + 4e-7 * np.einsum("bhid,bhjd->bhij", np.abs(q), np.abs(keys)) * abs(scale), positions)[3]
    magnitude = max(10, 4 * magnitude) if score else max(1, magnitude)
    tolerance = max(TOLERANCES[program.element], 4e-7 * magnitude)
    with np.errstate(invalid="ignore", over="ignore"):
        p = np.where((program.count > 0) & np.isfinite(lse)[..., None], np.exp(modified - lse[..., None]), 0)
    shift = 0 if dlse is None else dlse.astype(np.float64)
    delta = (do * o).sum(-1) - shift
    deltas = np.abs(do * o).sum(-1) + np.abs(shift)
    dp = np.einsum("bhid,bhjd->bhij", do, values)
    dps = np.einsum("bhid,bhjd->bhij", np.abs(do), np.abs(values))
    ds, off = p * (dp - delta[..., None]), tolerance * p * (dps + deltas[..., None])
    # Products take them in the element type, whose steps near 0 are half of these.
    rounding = {"f16": 2.0**-25}.get(program.element, 0) * (p > 0)
    dx, off_x = ds * slope, off * np.abs(slope) + np.abs(ds) * uncertain + rounding

    def of_heads(x):
        return x.reshape(x.shape[0], k.shape[1], group, *x.shape[2:]).sum(2)
    sums = {
        "q": [scale * np.einsum("bhij,bhjd->bhid", dx, keys), abs(scale) * np.einsum("bhij,bhjd->bhid", off_x, np.abs(keys))],
        "k": [scale * np.einsum("bhij,bhid->bhjd", dx, q), abs(scale) * np.einsum("bhij,bhid->bhjd", off_x, np.abs(q))],
        "v": [np.einsum("bhij,bhid->bhjd", p, do), np.einsum("bhij,bhid->bhjd", tolerance * p + rounding, np.abs(do))],
    }
    for name in ("k", "v"):
        sums[name] = [of_heads(x) for x in sums[name]]
    if sinks is not None:
        share = np.exp(sinks.astype(np.float64).reshape(1, -1, 1) - np.where(np.isfinite(lse), lse, np.inf))
        sums["sink"] = [-(share * delta).sum((0, 2)), tolerance * (share * deltas).sum((0, 2))]
    for number in wrt:
        name, array, _, _ = score.captured[number]
        slope, index = captured[number]
        index = tuple(np.broadcast_to(x, ds.shape) for x in (index if isinstance(index, tuple) else (index,)))
        sums[name] = []
        for terms in (ds * slope, off * np.abs(slope) + np.abs(ds * (others[number][0] - slope))):
            total = np.zeros(array.shape)
            np.add.at(total, index, terms)
            sums[name].append(total)
    return sums


def draw(rng):
    program = Program()
    generator = np.random.default_rng(rng.getrandbits(64))
    program.element = element = rng.choice(["f32", "f16", "f16", "bf16"])
    batches, kv_heads = rng.choice([1, 1, 2]), rng.choice([1, 1, 2])
    heads = kv_heads * rng.choice([1, 1, 2, 3])
    nq, nk = rng.choice(attentions.LENGTHS), rng.choice(attentions.LENGTHS)
    if rng.random() < 0.4:
        nk = nq
    if rng.random() < 0.05:
        nq, nk = rng.choice([(0, nk), (nq, 0), (0, 0)])
    d = rng.choice(attentions.HEAD_DIMS) if rng.random() < 0.9 else rng.choice(attentions.WIDE_DIMS)
    dv = d if rng.random() < 0.7 else rng.choice(attentions.HEAD_DIMS)
    dynamic = rng.random() < 0.4

    def make(*shape):
        return round_to(generator.standard_normal(shape) * rng.choice([0.3, 1, 1, 1]), element)
    q, k, v = make(batches, heads, nq, d), make(batches, kv_heads, nk, d), make(batches, kv_heads, nk, dv)
    do = make(batches, heads, nq, dv)
    masks = MaskMaker(rng, nq, nk)
    mask = masks.mask(rng.choice([0, 1, 2])) if rng.random() < 0.75 else None
    b, h, i, j = np.ogrid[:batches, :heads, :nq, :nk]
    count = np.ones((batches, heads, nq, nk), np.int64)
    if mask:
        count = count * mask.keep(b=b, h=h, i=i, j=j, nq=nq, nk=nk)
    lengths = attentions.draw_lengths(rng, batches, nk) if rng.random() < 0.3 else None
    if lengths is not None:
        count = count * (j < lengths.astype(np.int64).reshape(-1, 1, 1, 1))
    program.count = count
    program.planned = rng.random() < 0.4
    by_document = program.planned and rng.random() < 0.7
    score = None
    if by_document or rng.random() < 0.6:
        score = Score(rng, {"b": batches, "h": heads, "i": nq, "j": nk}, dynamic, by_document)
    sinks = round_to(generator.standard_normal(heads) * 2, "f32") if rng.random() < 0.25 else None
    program.scale = rng.choice([None, None, 0.2, 1.0, -0.4, 0.05])
    scale = program.scale if program.scale is not None else d ** -0.5
    with np.errstate(invalid="ignore"):
        o, lse = attention(*(x.astype(np.float64) for x in (q, k, v)), scale, count, score.modify if score else None,
                           None if sinks is None else sinks.astype(np.float64))
    o, lse = round_to(o, element), round_to(lse, "f32")
    if not (score and score.masks) and rng.random() < 0.3 and count.size:
        seen = count.reshape(batches, kv_heads, heads // kv_heads, nq, nk).any(axis=(2, 3))
        for x in (k, v):
            x[~seen] = round_to(np.array(rng.choice([np.nan, np.inf, 3e4]), np.float32), element)
    dlse = round_to(generator.standard_normal((batches, heads, nq)), "f32") if rng.random() < 0.3 else None
    wrt = [n for n, (_, _, kind, _) in enumerate(score.captured if score else []) if kind[0] != "i" and rng.random() < 0.7]
    sums = differentiate(program, q, k, v, do, o, lse, dlse, score, sinks, wrt)

    arguments = [("q", q, element), ("k", k, element), ("v", v, element), ("o", o, element), ("lse", lse, "f32"),
                 ("do", do, element)]
    operands = [name for name, _, _ in arguments]
    types = {name: tensor_type(rng, array.shape, kind, dynamic, fixed=name != "lse") for name, array, kind in arguments}
    parts = [] if program.scale is None else [f"scale({program.scale})"]
    if mask:
        parts.append(f"mask({mask.text})")
    for name, array, kind in [("n", lengths, "i32"), ("sink", sinks, "f32"), ("dlse", dlse, "f32")]:
        if array is not None:
            arguments.append((name, array, kind))
            types[name] = tensor_type(rng, array.shape, kind, dynamic)
            parts.append(f"{dict(n='lengths', sink='sink', dlse='lse_grad')[name]}(%{name} : {types[name]})")
    names = ["q", "k", "v"] + ["sink"] * (sinks is not None)
    if score:
        for name, array, kind, text in score.captured:
            arguments.append((name, array, kind))
            types[name] = text
        captured = [score.captured[n][0] for n in wrt]
        names += captured
        if captured:
            parts.append(f"wrt({', '.join('%' + n for n in captured)} : {', '.join(types[n] for n in captured)})")
        parts.append(score.text())
    kinds = {name: kind for name, _, kind in arguments}
    for name in names:
        want, bound = sums[name]
        # What is added up and rounded once more to the element type of the result.
        rounding = {"f32": 1e-6, "f16": 1e-3, "bf16": 8e-3}[kinds[name]]
        program.expected.append(want)
        program.bounds.append(bound + rounding * np.abs(want) + 1e-7)
        program.outputs.append((f"grad_{name}", kinds[name]))
        program.shapes.append(list(want.shape))
    program.arguments = arguments
    results = [types[name] for name in names]
    grads = ", ".join(f"%grad_{name}" for name in names)
    body = "".join(f"      {part}\n" for part in parts)
    signature = ", ".join(f"%{name}: {types[name]}" for name, _, _ in arguments)
    program.text = (f"{masks.definitions()}func.func @gradients({signature}) -> ({', '.join(results)}) {{\n"
                    f"  {grads} = flash.attention_grad {', '.join('%' + name for name in operands)}\n{body}"
                    f"      : ({', '.join(types[name] for name in operands)}) -> ({', '.join(results)})\n"
                    f"  return {grads} : {', '.join(results)}\n}}\n")
    return program


def draw_schedule(rng, target, element):
    """Keys of --schedule, or None for the model's choice."""
    if rng.random() < 0.3:
        return None
    keys = {}
    if target == "emulate:sm_90a" and element != "f32" and rng.random() < 0.85:
        keys["query_tile"], keys["key_tile"] = rng.choice([64, 64, 128]), rng.choice([64, 64, 128])
        chances = {"overlap": 0.5, "persistent": 0.5, "bulk_store": 0.5, "defer_products": 0.3, "ping_pong": 0.2,
                   "sum_diagonals": 0.05}
        features = ["specialize_warps"] + [feature for feature, chance in chances.items() if rng.random() < chance]
        keys["features"] = "|".join(features)
        steps = [64, 64, 128]
        if rng.random() < 0.3:
            keys["key_program_stages"] = rng.choice([1, 2])
        if rng.random() < 0.5:
            keys["stages"] = rng.randint(1, 3)
    elif target == "cpu":
        tiles = f"query_tile={rng.choice([8, 16, 32, 64])},key_tile={rng.choice([8, 16, 32, 64])}"
        return tiles + rng.choice(["", ",products=5", ",products=7"])
    else:
        keys["query_tile"], keys["key_tile"] = rng.choice([16, 32, 64]), rng.choice([16, 32, 64])
        if target == "emulate:sm_90a" and element != "f32":
            keys["features"] = "none"
        steps = [16, 32, 64]
    for key in ("key_step", "query_step"):
        if rng.random() < 0.5:
            keys[key] = rng.choice(steps)
    choice = rng.random()
    if choice < 0.4 and "specialize_warps" in keys.get("features", ""):
        keys["products"], keys["query_step"] = 5, keys["key_tile"]
    elif choice > 0.8:
        keys["key_programs"] = 2
    # Some programs alone have them, and others refuse them.
    others = [name for name, key in (("overlap", "key_programs"), ("defer_products", "products")) if key not in keys]
    if "features" in keys:
        keys["features"] = "|".join(name for name in keys["features"].split("|") if name not in others)
    # A plan of the mask in any case, or in none.
    if rng.random() < 0.5:
        keys["block_map"] = rng.choice([0, 1, 1])
    return ",".join(f"{key}={value}" for key, value in keys.items())
