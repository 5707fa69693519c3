"""Compares the gradients that flash-run computes with formulas written in numpy fp64.

The formulas are those of docs/language.md. They are checked themselves: along a random
direction of all operands, the gradients must give the slope of the forward in `oracle.py`.
"""

import pathlib
import subprocess
import sys
import tempfile

import numpy as np

import oracle
from suite import Case

# Of a score region: the modified scores, their derivative by the score, and the
# gradient of the captured tensor from that of the modified scores.
def identity(s, c, b, h, i, j):
    return s, np.ones_like(s), lambda ds: None


def softcap(s, c, b, h, i, j):
    t = np.tanh(s / 20)
    return 20 * t, 1 - t * t, lambda ds: None


def alibi(s, c, b, h, i, j):
    return s + c[h] * (j - i), np.ones_like(s), lambda ds: (ds * (j - i)).sum((0, 2, 3))


def bias(s, c, b, h, i, j):
    return s + c[h, i, j], np.ones_like(s), lambda ds: ds.sum(0)


def per_key(s, c, b, h, i, j):
    return s * c[b, j], np.broadcast_to(c[b, j], s.shape), lambda ds: (ds * s).sum((1, 2))


def per_query(s, c, b, h, i, j):
    return s + c[i], np.ones_like(s), lambda ds: ds.sum((0, 1, 3))


def gain(s, c, b, h, i, j):
    return s * c[0], np.full_like(s, c[0]), lambda ds: (ds * s).sum(keepdims=True).reshape(1)


def far_penalty(s, c, b, h, i, j):
    slope = np.where(i - j > 64, 0.5, 1.0) * np.ones_like(s)
    return s * slope, slope, lambda ds: None


def by_distance(s, c, b, h, i, j):
    at = i - j + s.shape[3] - 1

    def scatter(ds):
        total = np.zeros_like(c)
        np.add.at(total, tuple(np.broadcast_to(x, s.shape)[0] for x in (h, at)), ds.sum(0))
        return total

    return s + c[h, at], np.ones_like(s), scatter


def by_bucket(s, c, b, h, i, j):
    at = np.broadcast_to((i + j) % 4, s.shape)
    t = np.tanh(c)

    def scatter(ds):
        return np.array([(ds * s)[at == n].sum() * (1 - t[n] ** 2) for n in range(4)])

    return s * t[at], t[at], scatter


SCORES = {f.__name__: f for f in (softcap, alibi, bias, per_key, per_query, far_penalty, by_distance, by_bucket, gain)}


def problem(case, lengths):
    """How often each key takes part, and the score region."""
    b, h, i, j = np.ogrid[: case.B, : case.Hq, : case.Nq, : case.Nk]
    keep = oracle.PREDICATES[case.mask or "full"](b + case.first_batch, h, i, j, i + case.Nk - case.Nq, case.Nk)
    if lengths is not None:
        keep = keep & (j < lengths.reshape(-1, 1, 1, 1))
    if case.seen is not None:
        keep = keep & case.seen
    return np.broadcast_to(keep, (case.B, case.Hq, case.Nq, case.Nk)), SCORES.get(case.score, identity)


def forward(case, q, k, v, lengths=None, sinks=None, captured=None):
    keep, score = problem(case, lengths)
    return oracle.attention(q, k, v, case.scale or case.D**-0.5, keep.astype(int), lambda s, *at: score(s, captured, *at)[0], sinks)


def gradients(case, q, k, v, do, dlse=None, lengths=None, sinks=None, captured=None, centred=True):
    """By the name of the operand, from the definition of flash.attention_grad.

    With `centred` false those of p * dp instead of p * (dp - delta), which cancel in the others.
    """
    scale = case.scale or case.D**-0.5
    keep, score = problem(case, lengths)
    o, lse = forward(case, q, k, v, lengths, sinks, captured)
    group = case.Hq // case.Hkv
    keys, values = np.repeat(k, group, 1), np.repeat(v, group, 1)
    x = np.einsum("bhid,bhjd->bhij", q, keys) * scale
    s, slope, of_captured = score(x, captured, *np.ogrid[: case.B, : case.Hq, : case.Nq, : case.Nk])
    seen = np.isfinite(lse)
    with np.errstate(invalid="ignore", over="ignore"):
        p = np.where(keep & seen[..., None], np.exp(s - lse[..., None]), 0)
    delta = (do * o).sum(-1) - (0 if dlse is None else dlse)
    ds = p * (np.einsum("bhid,bhjd->bhij", do, values) - delta[..., None] * centred)
    dx = ds * slope

    def of_heads(x):
        return x.reshape(case.B, case.Hkv, group, *x.shape[2:]).sum(2)

    result = {
        "q": scale * np.einsum("bhij,bhjd->bhid", dx, keys),
        "k": of_heads(scale * np.einsum("bhij,bhid->bhjd", dx, q)),
        "v": of_heads(np.einsum("bhij,bhid->bhjd", p, do)),
    }
    if sinks is not None:
        share = np.exp(sinks.reshape(1, -1, 1) - np.where(seen, lse, np.inf))
        result["sinks"] = -(share * delta).sum((0, 2))
    if captured is not None:
        result["captured"] = of_captured(ds)
    return result


def slope_agrees(case, values, grads, rng):
    """Whether the gradients say how fast a loss of the forward changes."""
    direction = {n: rng.standard_normal(values[n].shape) for n in grads}

    def loss(step):
        moved = {n: x + step * direction[n] if n in direction else x for n, x in values.items() if n not in ("do", "dlse")}
        o, lse = forward(case, **moved)
        of_lse = np.where(np.isfinite(lse), lse, 0) * values["dlse"] if "dlse" in values else 0
        return (o * values["do"]).sum() + np.sum(of_lse)

    step = 1e-5
    measured = (loss(step) - loss(-step)) / (2 * step)
    expected = sum((direction[n] * grads[n]).sum() for n in grads)
    size = np.sqrt(sum((grads[n] ** 2).sum() for n in grads))
    if abs(measured - expected) <= 1e-6 * max(size, 1e-3):
        return True
    print(f"{case.name}: the slope is {measured}, by the formulas {expected}")
    return False


def check(case, folder, seed):
    files = oracle.write_inputs(case, folder, seed)
    names = [name for name, _, _ in case.tensors()]
    values = {n: np.load(f).astype(np.float64 if n != "lengths" else np.int64) for n, f in zip(names, files)}
    expected = gradients(case, **values)
    if not slope_agrees(case, values, expected, np.random.default_rng(seed)):
        return False
    terms = gradients(case, **values, centred=False)
    outputs = [folder / f"grad_{n}.npy" for n in case.differentiated()]
    command = case.command(folder, seed) + [f"--inputs={','.join(files)}", f"--outputs={','.join(map(str, outputs))}"]
    process = subprocess.run(command, capture_output=True, text=True, timeout=120)
    if process.returncode:
        print(case.name, process.stdout, process.stderr)
        return False
    for name, file in zip(case.differentiated(), outputs):
        got, want = np.load(file), expected[name]
        size = max(np.linalg.norm(want), np.linalg.norm(terms[name]), 1e-300)
        error = np.linalg.norm(got - want) / size
        if not error <= 3e-6:
            print(f"{case.name}: the gradient of {name} is off by {error:.2e}")
            return False
    return True


def main():
    shape = dict(grad=True, B=2, Hq=4, Hkv=2, Nq=70, Nk=90, D=16, Dv=24)
    cases = [
        Case("plain", **shape | {"Hkv": 4, "Dv": 16}),
        Case("causal", mask="causal", **shape),
        Case("window", mask="window", **shape | {"Nk": 190}),
        Case("one key head", **shape | {"Hkv": 1}),
        Case("sink", sink=True, mask="prefix", **shape),
        Case("sink alone", sink=True, mask="nothing", lse_grad=True, **shape),
        Case("lengths", lengths=True, **shape),
        Case("gradient of the log-sum-exp", lse_grad=True, mask="causal", **shape),
        Case("rows without keys", mask="causal", lse_grad=True, **shape | {"Nq": 110}),
        Case("no element", mask="nothing", lse_grad=True, **shape),
        Case("everything", lengths=True, sink=True, lse_grad=True, score="alibi", mask="nested", scale=0.2, **shape),
    ]
    cases += [Case(f"score {s}", score=s, mask="causal", **shape) for s in SCORES]
    failures = 0
    for seed, case in enumerate(cases):
        with tempfile.TemporaryDirectory() as folder:
            failures += not check(case, pathlib.Path(folder), seed)
    print(f"{len(cases) - failures} of {len(cases)} agree with numpy")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
