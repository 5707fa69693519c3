"""Compares the tiled programs of the gradients with numpy fp64, from the formulas in the reference
page of flash.attention_grad.

The output and the log-sum-exp that the program reads are computed in numpy, too. The derivatives of
score regions are differences, so that this knows nothing of the compiler's.
"""
import argparse
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "suite"))
from oracle import MODIFIED, PREDICATES, expect, write_inputs
from suite import MASKS, SCORES, Case

SHAPE = dict(B=2, Hq=4, Hkv=2, Nq=70, Nk=90, D=16, Dv=24, lse=True)
# Options of cases, what the program has in addition, and an element that is not finite: an operand, the
# row, which causal masks leave to few, and its value.
CASES = {
    "whole": (dict(Nq=64, Nk=96), {}, None),
    "ragged": ({}, {}, None),
    "f16": (dict(dtype="f16", mask="causal"), {}, None),
    "bf16": (dict(dtype="bf16", mask="window"), {}, None),
    "one-head": (dict(Hq=3, Hkv=3), {}, None),
    "many-heads": (dict(Hq=6, Hkv=1, B=1), dict(lse_grad=True), None),
    "heads-batch": (dict(B=5, D=40, Dv=8, Hkv=4), {}, None),
    "open": (dict(dynamic=True, mask="causal", sink=True, lengths=True), dict(lse_grad=True), None),
    "lengths": (dict(lengths=True), {}, None),
    "lengths-mask": (dict(lengths=True, mask="nested"), dict(lse_grad=True), None),
    "sink": (dict(sink=True), {}, None),
    "sink-alone": (dict(sink=True, mask="nothing"), dict(lse_grad=True), None),
    "sink-heads": (dict(sink=True, Hq=12, Hkv=4, Nq=300, mask="causal"), dict(lse_grad=True), None),
    "negative": (dict(scale=-0.3, mask="two_sided"), {}, None),
    "no-keys": (dict(Nk=0, dynamic=True), {}, None),
    "no-queries": (dict(Nq=0, dynamic=True, sink=True), {}, None),
    "score-lengths": (dict(score="bias", lengths=True, mask="from_end"), {}, None),
    "value-nan": (dict(mask="causal"), {}, ("v", -1, np.nan)),
    "key-nan": (dict(mask="causal"), {}, ("k", -1, np.nan)),
    "key-infinite-masked": (dict(mask="nothing"), {}, ("k", -1, np.inf)),
    "query-nan": (dict(mask="causal", Nq=90), {}, ("q", 0, np.nan)),
    "gradient-nan": (dict(mask="causal", Nq=90), {}, ("do", 0, np.nan)),
    **{f"mask {m}": (dict(mask=m, Nq=150, Nk=190), {}, None) for m in MASKS},
    **{f"score {s}": (dict(score=s, mask="causal"), {}, None) for s in SCORES},
}
# The gradients of what score regions capture, of the gradients of their results and their scores.
CAPTURED = {
    "alibi": lambda ds, s, j_less_i: (ds * j_less_i).sum((0, 2, 3)),
    "bias": lambda ds, s, j_less_i: ds.sum(0),
    "per_key": lambda ds, s, j_less_i: (ds * s).sum((1, 2)),
    "per_query": lambda ds, s, j_less_i: ds.sum((0, 1, 3)),
}
CASES.update({f"captured {s}": (dict(score=s, mask="nested", lengths=True, Nq=70, Nk=90), dict(wrt=True), None)
              for s in CAPTURED})
CASES["captured window"] = (dict(score="alibi", mask="window", Nq=300, Nk=190, Hq=2), dict(wrt=True), None)
CASES["captured open"] = (dict(score="alibi", mask="causal", dynamic=True, dtype="f16"), dict(wrt=True, lse_grad=True), None)


def weighted(equation, weights, rows, takes_part):
    """A sum of rows with weights, in which what takes no part counts for nothing, whatever it is."""
    finite = np.isfinite(rows)
    with np.errstate(invalid="ignore"):
        total = np.einsum(equation, weights, np.where(finite, rows, 0))
    reached = np.einsum(equation, takes_part.astype(float), (~finite).astype(float)) > 0
    return np.where(reached, np.nan, total)


def of_groups(x, case):
    """Sums over the query heads that read the same key head."""
    return x.reshape(case.B, case.Hkv, case.Hq // case.Hkv, *x.shape[2:]).sum(2)


def gradients(case, o, lse, do, q, k, v, lse_grad=None, lengths=None, sinks=None, captured=None, wrt=False):
    b, h, i, j = np.ogrid[: case.B, : case.Hq, : case.Nq, : case.Nk]
    keep = PREDICATES[case.mask or "full"](b, h, i, j, i + case.Nk - case.Nq, case.Nk)
    if lengths is not None:
        keep = keep & (j < lengths.reshape(-1, 1, 1, 1))
    keep = np.broadcast_to(keep, (case.B, case.Hq, case.Nq, case.Nk))
    scale = case.scale or case.D**-0.5
    of_head = np.arange(case.Hq) // (case.Hq // case.Hkv)
    k, v = k[:, of_head], v[:, of_head]
    modify = (lambda s: MODIFIED[case.score](s, captured, b, h, i, j)) if case.score else (lambda s: s)
    with np.errstate(invalid="ignore", over="ignore"):
        x = scale * np.einsum("bhid,bhjd->bhij", q, k)
        step = 1e-5
        slope = (modify(x + step) - modify(x - step)) / (2 * step)
        p = np.where(keep, np.exp(modify(x) - lse[..., None]), 0)
        delta = (o * do).sum(-1) - (0 if lse_grad is None else lse_grad)
        dp = np.einsum("bhid,bhjd->bhij", do, v)
        ds = np.where(keep, p * (dp - delta[..., None]), 0)
        dx = np.where(keep, ds * slope, 0)
    results = [scale * weighted("bhij,bhjd->bhid", dx, k, keep),
               of_groups(scale * weighted("bhij,bhid->bhjd", dx, q, keep), case),
               of_groups(weighted("bhij,bhid->bhjd", p, do, keep), case)]
    sizes = list(results)
    if sinks is not None:
        sizes.append(sinks)
        results.append(-(np.exp(sinks[:, None] - lse) * delta).sum((0, 2)))
    if wrt:
        results.append(CAPTURED[case.score](ds, x, j - i))
        # Terms cancel: those of a row add up to 0.
        sizes.append(CAPTURED[case.score](abs(ds), abs(x), abs(j - i)))
    return results, sizes


def write_program(case, extra, schedule):
    """The gradients as a function, made from the text of the attention."""
    lines = case.text().splitlines()
    at = next(n for n, line in enumerate(lines) if line.startswith("func.func"))
    sets, rest = lines[:at], lines[at + 1:]
    arguments = lines[at].split("(", 1)[1].split(") -> ")[0]
    body = "\n".join(rest)
    clauses = body.split("%q, %k, %v", 1)[1].rsplit("\n      : (", 1)[0]
    types = dict(a.split(": ", 1) for a in arguments.split(", %"))
    types = {n.strip("%"): t for n, t in types.items()}
    out = case.type_of([case.B, case.Hq, case.Nq, case.Dv], case.dtype, 1)
    lse = case.type_of([case.B, case.Hq, case.Nq], "f32", 0)
    arguments = f"{arguments}, %o: {out}, %lse: {lse}, %do: {out}"
    clause = f"schedule(<{schedule}>)" if schedule else ""
    if extra.get("lse_grad"):
        arguments += f", %dl: {lse}"
        clause += f" lse_grad(%dl : {lse})"
    if extra.get("wrt"):
        clause += f" wrt(%captured : {types['captured']})"
    head, score, region = clauses.partition("score {")
    operands = [types["q"], types["k"], types["v"]]
    results = operands + ([types["sinks"]] if case.sink else []) + ([types["captured"]] if extra.get("wrt") else [])
    count = len(results)
    text = f"({', '.join(results)})"
    return "\n".join(sets) + f"""
func.func @grad({arguments}) -> {text} {{
  %r:{count} = flash.attention_grad %q, %k, %v, %o, %lse, %do {head} {clause} {score}{region}
      : ({', '.join(operands + [out, lse, out])}) -> {text}
  return {', '.join(f'%r#{n}' for n in range(count))} : {', '.join(results)}
}}
"""


def load(file, case):
    array = np.load(file)
    if array.dtype.kind in "uV":  # bf16
        array = (array.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
    return array.astype(np.float64)


def differs(got, want, size, tolerance):
    """What is wrong, if the sums that `want` are have terms of such a size."""
    if got.shape != want.shape:
        return f"of shape {got.shape}, not {want.shape}"
    finite = np.isfinite(want)
    # Gradients that cancel are as exact as what they are sums of.
    smallest = 1e-2 * max(want[finite].size, 1)
    scale = max((want[finite] ** 2).sum(), np.nansum(np.where(np.isfinite(size), size, 0) ** 2), smallest)
    error = np.sqrt(((got[finite] - want[finite]) ** 2).sum() / scale)
    if not error <= tolerance:
        return f"off by {error:.2e}"
    return "" if not np.isfinite(got[~finite]).any() else "finite where it should not be"


def check(name, folder, target, schedule):
    options, extra, special = CASES[name]
    case = Case(name, **{**SHAPE, **options})
    files = write_inputs(case, folder, seed=3)
    values = {}
    rng = np.random.default_rng(5)
    element = np.float16 if case.dtype == "f16" else np.float32

    def save(key, array):
        np.save(folder / f"{key}.npy", array)
        files.append(str(folder / f"{key}.npy"))

    def rounded(array):
        if case.dtype != "bf16":
            return array.astype(element)
        bits = array.astype(np.float32).view(np.uint32)
        return ((bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000).astype(np.uint32).view(np.float32)

    for key, shape, kind in case.tensors():
        array = np.load(folder / f"{key}.npy")
        if key == "captured" and case.score == "alibi":
            array = array * np.float32(0.05)  # Scores of hundreds are not exact in f32.
        if special and special[0] == key:
            array[..., special[1], 3] = special[2]
        if key in "qkv":
            array = rounded(array)
        np.save(folder / f"{key}.npy", array)
        values[key] = array.astype(np.int64 if kind == "i32" else np.float64)
    o, lse = expect(case, **values)
    o = rounded(np.nan_to_num(o, nan=1.0) if special and special[0] == "q" else o)
    do = rounded(rng.standard_normal(o.shape))
    if special and special[0] == "do":
        do[..., special[1], 3] = special[2]
    save("o", o)
    save("lse", lse.astype(np.float32))
    save("do", do)
    if extra.get("lse_grad"):
        values["lse_grad"] = rng.standard_normal(lse.shape).astype(np.float32)
        save("dl", values["lse_grad"])
    program = folder / "grad.mlir"
    program.write_text(write_program(case, extra, schedule))
    names = ["dq", "dk", "dv"] + ["dsink"] * case.sink + ["dcaptured"] * bool(extra.get("wrt"))
    outputs = [folder / f"{n}.npy" for n in names]
    done = subprocess.run(["flash-run", str(program), f"--target={target}", "--threads=2", f"--inputs={','.join(files)}",
                           f"--outputs={','.join(map(str, outputs))}"], capture_output=True, text=True, timeout=300)
    if done.returncode:
        return done.stderr
    wanted, sizes = gradients(case, o.astype(np.float64), lse, do.astype(np.float64), wrt=extra.get("wrt"), **values)
    tolerance = {"f32": 3e-6, "f16": 2e-3, "bf16": 2e-2}[case.dtype]
    texts = []
    for n, file, want, size in zip(names, outputs, wanted, sizes):
        text = differs(load(file, case), want, size, tolerance)
        if text:
            texts.append(f"{n} is {text}")
    return "; ".join(texts)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--target", default="cpu")
    parser.add_argument("--schedule", default="query_tile = 16, key_tile = 32")
    parser.add_argument("--only", default="")
    parser.add_argument("--keep")
    arguments = parser.parse_args()
    failures = count = 0
    for name in CASES:
        # Those of captured tensors have a program for CPUs alone.
        if arguments.only not in name or (arguments.target != "cpu" and CASES[name][1].get("wrt")):
            continue
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(arguments.keep or folder)
            fault = check(name, folder, arguments.target, arguments.schedule)
        count += 1
        failures += bool(fault)
        if fault:
            print(f"{name}: {fault}")
    print(f"{count - failures} of {count} gradients agree with numpy")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
