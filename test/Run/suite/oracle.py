"""Compares flash-run's results with attention written directly in numpy fp64.

The suite trusts the reference that flash-run compiles from the same program;
this does not. It covers every mask, score region, and optional operand once.
"""

import pathlib
import subprocess
import sys
import tempfile

import numpy as np

from suite import MASKS, SCORES, Case

# Which (b, h, i, j) take part, by name of the mask; d is the diagonal's key.
PREDICATES = {
    "full": lambda b, h, i, j, d, nk: j >= 0,
    "causal": lambda b, h, i, j, d, nk: j <= d,
    "top_left": lambda b, h, i, j, d, nk: j <= i,
    "window": lambda b, h, i, j, d, nk: (j >= d - 100) & (j <= d),
    "two_sided": lambda b, h, i, j, d, nk: (j >= d - 37) & (j <= d + 65),
    "left_only": lambda b, h, i, j, d, nk: j >= d - 200,
    "right_only": lambda b, h, i, j, d, nk: j <= d + 30,
    "narrow": lambda b, h, i, j, d, nk: j == d,
    "prefix": lambda b, h, i, j, d, nk: j < 77,
    "nothing": lambda b, h, i, j, d, nk: j < 0,
    "band": lambda b, h, i, j, d, nk: (j <= i) & (j >= i - 255),
    "blocks": lambda b, h, i, j, d, nk: i // 96 == j // 96,
    "dilated": lambda b, h, i, j, d, nk: ((i - j) % 4 == 0) & (j <= i),
    "slanted": lambda b, h, i, j, d, nk: 2 * i - 3 * j + 40 >= 0,
    "by_head": lambda b, h, i, j, d, nk: (j <= i) & (h * 50 + 20 - i + j >= 0),
    "by_batch": lambda b, h, i, j, d, nk: j <= b * 60 + 10,
    "from_end": lambda b, h, i, j, d, nk: j >= nk - 90,
    "prefix_or_band": lambda b, h, i, j, d, nk: (j < 48) | ((j >= d - 60) & (j <= d)),
    "sink_and_window": lambda b, h, i, j, d, nk: (j < 4) | ((j >= d - 128) & (j <= d)),
    "causal_and_prefix": lambda b, h, i, j, d, nk: (j <= i) & (j < 300),
    "nested": lambda b, h, i, j, d, nk: ((j < 20) | (abs(j - d) <= 30)) & (j <= d),
    "unions": lambda b, h, i, j, d, nk: (
        ((j < 30) | (j <= i - 5)) & (((j >= d - 90) & (j <= d)) | (i + j >= 200)) & ((j < 150) | (j >= i - 70))
    ),
}
MODIFIED = {
    "softcap": lambda s, c, b, h, i, j: 20 * np.tanh(s / 20),
    "alibi": lambda s, c, b, h, i, j: s + c[h] * (j - i),
    "bias": lambda s, c, b, h, i, j: s + c[h, i, j],
    "per_key": lambda s, c, b, h, i, j: s * c[b, j],
    "per_query": lambda s, c, b, h, i, j: s + c[i],
    "far_penalty": lambda s, c, b, h, i, j: np.where(i - j > 64, s / 2, s),
}


def attention(q, k, v, scale, count, score=None, sinks=None):
    """Output and log-sum-exp in fp64, from the definition in docs/language.md.

    All operands have rank 4. `count[b, h, i, j]` says how often a key takes part: 0 or 1
    but in programs on tiles, which may visit keys more than once.
    `score(s, b, h, i, j)` changes the scaled scores.
    """
    batches, heads, queries, keys = count.shape
    of_head = np.arange(heads) // max(heads // max(k.shape[1], 1), 1)
    with np.errstate(invalid="ignore", over="ignore"):
        scores = np.einsum("bhid,bhjd->bhij", q, k[:, of_head]) * scale
        if score:
            scores = score(scores, *np.ogrid[:batches, :heads, :queries, :keys])
    scores = np.where(count > 0, scores, -np.inf)
    peak = scores.max(-1, keepdims=True, initial=-np.inf)
    if sinks is not None:
        peak = np.maximum(peak, sinks.reshape(1, -1, 1, 1))
    peak = np.where(peak == -np.inf, 0, peak)
    probabilities = np.where(count > 0, np.exp(scores - peak), 0) * count
    total = probabilities.sum(-1, keepdims=True)
    if sinks is not None:
        total = total + np.exp(sinks.reshape(1, -1, 1, 1) - peak)
    with np.errstate(divide="ignore"):
        lse = (peak + np.log(total))[..., 0]
    # 0 times NaN would be NaN where the key takes no part.
    values = v[:, of_head]
    output = np.einsum("bhij,bhjd->bhid", probabilities, np.where(np.isfinite(values), values, 0))
    takes_nan = np.einsum("bhij,bhjd->bhid", (count > 0).astype(float), np.isnan(values).astype(float)) > 0
    output = np.where(takes_nan, np.nan, output / np.where(total == 0, 1, total))
    return output, lse


def expect(case, q, k, v, lengths=None, sinks=None, captured=None):
    """What a case of the suite gives."""
    b, h, i, j = np.ogrid[: case.B, : case.Hq, : case.Nq, : case.Nk]
    keep = PREDICATES[case.mask or "full"](b, h, i, j, i + case.Nk - case.Nq, case.Nk)
    if lengths is not None:
        keep = keep & (j < lengths.reshape(-1, 1, 1, 1))
    count = np.broadcast_to(keep, (case.B, case.Hq, case.Nq, case.Nk)).astype(int)
    score = (lambda s, *position: MODIFIED[case.score](s, captured, *position)) if case.score else None
    return attention(q, k, v, case.scale or case.D**-0.5, count, score, sinks)


def write_inputs(case, folder, seed):
    rng = np.random.default_rng(seed)
    files = []
    for name, shape, element in case.tensors():
        if element == "i32":
            array = rng.integers(0, case.Nk + 1, shape).astype(np.int32)
            array[0] = 0  # as case.fills() says
        else:
            # numpy has no bf16: flash-run rounds f32 to it.
            array = rng.standard_normal(shape).astype(np.float16 if element == "f16" else np.float32)
        np.save(folder / f"{name}.npy", array)
        files.append(str(folder / f"{name}.npy"))
    return files


def check(case, folder, seed):
    files = write_inputs(case, folder, seed)
    command = case.command(folder, seed) + [f"--inputs={','.join(files)}", f"--outputs={folder / 'o.npy'},{folder / 'lse.npy'}"]
    process = subprocess.run(command, capture_output=True, text=True, timeout=120)
    if process.returncode:
        print(case.name, process.stdout, process.stderr)
        return False
    names = [name for name, _, _ in case.tensors()]
    values = {n: np.load(f).astype(np.float64 if n != "lengths" else np.int64) for n, f in zip(names, files)}
    expected = expect(case, **values)
    for what, want in zip(("o", "lse"), expected):
        got = np.load(folder / f"{what}.npy")
        finite = np.isfinite(want)
        error = np.sqrt(((got[finite] - want[finite]) ** 2).sum() / max((want[finite] ** 2).sum(), 1e-300))
        if error > 2e-6 or not np.array_equal(got[~finite], want[~finite]):
            print(f"{case.name}: {what} is off by {error:.2e}")
            return False
    return True


def main():
    shape = dict(B=2, Hq=4, Hkv=2, Nq=150, Nk=190, D=16, Dv=24, lse=True)
    cases = [Case(f"mask {m}", mask=m, **shape) for m in MASKS]
    cases += [Case(f"score {s}", score=s, mask="causal", **shape) for s in SCORES]
    cases += [Case("lengths", lengths=True, **shape), Case("sink", sink=True, mask="prefix", **shape),
              Case("everything", lengths=True, sink=True, score="alibi", mask="nested", scale=0.2, **shape),
              Case("sink alone", sink=True, mask="nothing", **shape)]
    failures = 0
    for seed, case in enumerate(cases):
        with tempfile.TemporaryDirectory() as folder:
            failures += not check(case, pathlib.Path(folder), seed)
    print(f"{len(cases) - failures} of {len(cases)} agree with numpy")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
