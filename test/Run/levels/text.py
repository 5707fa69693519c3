"""Runs what flash-decompose and flash-tile-softmax write, in each variant, on the CPU.

The CPU takes one variant, GPUs another; here all of them run as programs of linalg on tiles
and are compared with attention in numpy fp64. Every kind of operation is there: masks, keys
that do not exist, score regions, sinks, splits that are combined, lazy rescaling, and values
that are not finite at keys that take no part.
"""
import itertools
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "suite"))
from oracle import expect, write_inputs
from suite import Case

SHAPE = dict(B=2, Hq=4, Hkv=2, Nq=70, Nk=90, D=16, Dv=24, lse=True)
STEPS = {
    "rows": "flash-decompose",
    "rows, guarded": "flash-decompose{guard-values},flash-decompose-is-finite",
    "transposed": "flash-decompose{transpose-scores}",
    "transposed, guarded": "flash-decompose{transpose-scores guard-values},flash-decompose-is-finite",
}
# Name, options of the case, of the schedule, and a value that is not finite at the last key, which
# causal masks show to the last query alone.
ATTENTIONS = [
    ("whole", dict(Nq=64, Nk=96), "", None),
    ("ragged", dict(), "", None),
    ("causal", dict(mask="causal"), "", None),
    ("causal-nan", dict(mask="causal"), "", np.nan),
    ("causal-infinite", dict(mask="causal"), "", np.inf),
    ("nothing-nan", dict(mask="nothing"), "", np.nan),
    ("negative", dict(scale=-0.3, mask="window"), "", None),
    ("score", dict(score="bias", lengths=True), "", None),
    ("softcap", dict(score="softcap", mask="nested", sink=True), "", None),
    # Maxima grow by less than 8 and by more.
    ("lazy", dict(scale=1.0), "features=lazy_rescale", None),
    ("lazy-causal", dict(scale=1.0, mask="causal", lengths=True), "features=lazy_rescale", np.nan),
    ("lazy-sink", dict(scale=1.0, sink=True, score="alibi", mask="nested"), "features=lazy_rescale", None),
    # Parts in one step, in equal steps, in steps the last of which is short, and of any number.
    ("splits", dict(mask="causal", Nk=150), "num_splits=3", None),
    ("splits-12", dict(Nk=300, lengths=True, sink=True), "num_splits=12", None),
    ("splits-11", dict(mask="window", Nk=300), "num_splits=11", None),
    ("split-ctas", dict(dynamic=True, Nk=300), "split_ctas=400", None),
]
BASELINES = [("ragged", dict(), None), ("sink", dict(mask="nothing", sink=True), None),
             ("mask", dict(mask="two_sided", lengths=True, sink=True, dynamic=True), None)]
ROWS = ["row-tile=8 reduction-bytes=64", "row-tile=8 reduction-bytes=64 whole-rows=600", "row-tile=8 reduction-tile=16",
        "row-tile=8 reduction-bytes=64 transpose-tiles", "reduction-tile=1000"]
SOFTMAXES = [((37, 203), 1), ((37, 203), 0), ((3, 5, 77), 2), ((200,), 0), ((3, 9, 40), 1)]


def execute(command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}\n{done.stderr}")
    return done.stdout


def run(program, passes, inputs, outputs):
    """The results of a program after passes on its function."""
    text = program.with_suffix(".text.mlir")
    text.write_text(execute(["flash-opt", str(program), f"--pass-pipeline=builtin.module(flash-attach-target{{target=emulate}},func.func({passes}))"]))
    left = [op for op in ("flash.online", "flash.finalize", "flash.combine", "flash.softmax", "linalg.softmax")
            if op in text.read_text()]
    if left:
        raise RuntimeError(f"the text still has {left}")
    execute(["flash-run", str(text), "--target=cpu", "--threads=1", f"--inputs={','.join(map(str, inputs))}",
             f"--outputs={','.join(map(str, outputs))}"])
    return [np.load(output) for output in outputs]


def differs(got, want, tolerance):
    finite = np.isfinite(want)
    error = np.sqrt(((got[finite] - want[finite]) ** 2).sum() / max((want[finite] ** 2).sum(), 1e-300))
    if not error <= tolerance:
        return f"off by {error:.2e}"
    return "" if np.array_equal(got[~finite], want[~finite], equal_nan=True) else "finite where it should not be"


def check_attention(case, passes, last_value, folder, tolerance):
    files = write_inputs(case, folder, seed=3)
    names = [name for name, _, _ in case.tensors()]
    if last_value is not None:
        v = np.load(files[2])
        v[..., -1, 3] = last_value
        np.save(files[2], v)
    program = folder / "case.mlir"
    program.write_text(case.text())
    results = run(program, passes, files, [folder / "o.npy", folder / "lse.npy"])
    values = {n: np.load(f).astype(np.int64 if n == "lengths" else np.float64) for n, f in zip(names, files)}
    wanted = expect(case, **values)
    if last_value is not None and np.isinf(last_value):
        # What the infinite value reaches is infinite, in the one column.
        seen = expect(case, **{**values, "v": np.where(np.isinf(values["v"]), np.nan, values["v"])})[0]
        wanted = (np.where(np.isnan(seen), last_value, seen), wanted[1])
    return "; ".join(filter(None, (differs(got, want, tolerance) for got, want in zip(results, wanted))))


def check_softmax(shape, dim, dtype, passes, folder):
    x = np.random.default_rng(5).standard_normal(shape).astype(np.float16 if dtype == "f16" else np.float32) * 4
    x.reshape(-1)[7] = -np.inf
    np.save(folder / "x.npy", x)
    kind = f"tensor<{'x'.join(map(str, shape))}x{dtype}>"
    program = folder / "softmax.mlir"
    program.write_text(f"""func.func @softmax(%x: {kind}) -> {kind} {{
  %e = tensor.empty() : {kind}
  %p = linalg.softmax dimension({dim}) ins(%x : {kind}) outs(%e : {kind}) -> {kind}
  return %p : {kind}
}}
""")
    (got,) = run(program, passes, [folder / "x.npy"], [folder / "p.npy"])
    e = np.exp(x.astype(np.float64) - x.astype(np.float64).max(dim, keepdims=True))
    return differs(got, e / e.sum(dim, keepdims=True), 1e-3 if dtype == "f16" else 2e-6)


def checks():
    """Names, and what to call with a folder; gives what is wrong."""
    before = "flash-expand-rank,flash-assert-shapes,flash-guard-reads"
    # Each variant meets each case; the element types follow each other.
    for number, ((name, options, schedule, value), (variant, steps)) in enumerate(itertools.product(ATTENTIONS, STEPS.items())):
        if "guarded" in variant and "mask" not in options:
            continue
        dtype = "f16" if number % 3 == 0 else "f32"
        passes = (f"{before},flash-select-schedule{{schedule=query_tile=16,key_tile=16{schedule and ',' + schedule}}},"
                  f"flash-online-softmax,flash-tile,flash-refine-visits,convert-flash-to-scf,{steps}")
        case = Case(name, dtype=dtype, **{**SHAPE, **options})
        tolerance = 1e-3 if dtype == "f16" else 2e-6
        yield (f"{name} ({dtype}, {variant})",
               lambda folder, c=case, p=passes, v=value, t=tolerance: check_attention(c, p, v, folder, t))
    for (name, options, value), rows in itertools.product(BASELINES, ROWS):
        passes = f"{before},flash-tile-naive,flash-tile-softmax{{{rows}}}"
        case = Case(name, **{**SHAPE, **options})
        yield (f"baseline {name} ({rows})",
               lambda folder, c=case, p=passes, v=value: check_attention(c, p, v, folder, 2e-6))
    for number, ((shape, dim), rows) in enumerate(itertools.product(SOFTMAXES, ROWS)):
        # Bytes are those of rows along the last dimension alone.
        if "bytes" in rows and dim != len(shape) - 1:
            continue
        dtype = "f16" if number % 2 == 0 else "f32"
        yield (f"softmax {shape} over {dim} ({dtype}, {rows})",
               lambda folder, s=shape, d=dim, t=dtype, r=rows: check_softmax(s, d, t, f"flash-tile-softmax{{{r}}}", folder))


def main():
    failures = count = 0
    for name, check in checks():
        if len(sys.argv) > 1 and sys.argv[1] not in name:
            continue
        count += 1
        with tempfile.TemporaryDirectory() as folder:
            try:
                wrong = check(pathlib.Path(folder))
            except RuntimeError as error:
                wrong = str(error)
        if wrong:
            failures += 1
            print(f"{name}: {wrong}", flush=True)
    print(f"all of {count} agree with numpy" if not failures else f"{failures} of {count} do not agree with numpy")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
