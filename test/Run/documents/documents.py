"""Masks of documents, which the device computes as packed rows or by lists of tiles, against the fp64 reference.

    documents.py [--target=emulate|emulate:sm_90a|sm_80|sm_90a] [--seed S]

Where ids do not decrease along a row, results also have the bits of packed rows.
"""

import argparse
import pathlib
import secrets
import subprocess
import tempfile

import numpy as np

HEADER = """#causal = affine_set<(b, h, i, j)[nq, nk] : (i + nk - nq - j >= 0)>
!q = tensor<?x4x?x{d}x{t}>
!k = tensor<?x2x?x{d}x{t}>
!v = tensor<?x2x?x{dv}x{t}>
!o = tensor<?x4x?x{dv}x{t}>
!l = tensor<?x4x?xf32>
!ids = tensor<{batch}?x{ids}>
"""
# The region: a score that depends on the head and the distance, and the mask.
SCORE = """score {{
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %distance = arith.subi %i, %j : index
    %n = arith.index_cast %distance : index to i32
    %f = arith.sitofp %n : i32 to f32
    %slope = tensor.extract %slopes[%h] : tensor<4xf32>
    %bias = arith.mulf %f, %slope : f32
    %y = arith.subf %s, %bias : f32{same}
    flash.yield %y{keep} : f32
  }}"""
SAME = """
    %x = tensor.extract %ids[{b}%i] : !ids
    %z = tensor.extract %ids[{b}%j] : !ids
    %same = arith.cmpi eq, %x, %z : {ids}"""
ATTENTION = """func.func @main(%q: !q, %k: !k, %v: !v, %ids: !ids, %slopes: tensor<4xf32>) -> (!o, !l) {{
  %o, %l = flash.attention %q, %k, %v {mask} {score} : (!q, !k, !v) -> (!o, !l)
  return %o, %l : !o, !l
}}"""
GRADIENTS = """func.func @main(%q: !q, %k: !k, %v: !v, %ids: !ids, %slopes: tensor<4xf32>) -> (!q, !k, !v) {{
  %o, %l = flash.attention %q, %k, %v {mask} {score} : (!q, !k, !v) -> (!o, !l)
  %dq, %dk, %dv = flash.attention_grad %q, %k, %v, %o, %l, %o {mask} {score} : (!q, !k, !v, !o, !l, !o) -> (!q, !k, !v)
  return %dq, %dk, %dv : !q, !k, !v
}}"""
# What is computed where ids do not decrease.
PACKED = """func.func @main(%q: !q, %k: !k, %v: !v, %ids: !ids, %slopes: tensor<4xf32>) -> (!o, !l) {{
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %most = arith.constant 40 : index
  %m = tensor.dim %q, %c0 : !q
  %t = tensor.dim %q, %c2 : !q
  %offsets, %count = flash.document_offsets %ids of[%m, %t] most(%most) : !ids -> tensor<?xi32>, tensor<1xi32>
  %qs, %nq = flash.unpack %q by %offsets : !q, tensor<?xi32> -> !q, tensor<?xi32>
  %ks, %nk = flash.unpack %k by %offsets : !k, tensor<?xi32> -> !k, tensor<?xi32>
  %vs, %nv = flash.unpack %v by %offsets : !v, tensor<?xi32> -> !v, tensor<?xi32>
  %os, %ls = flash.attention %qs, %ks, %vs {mask} query_lengths(%nq : tensor<?xi32>) key_lengths(%nq : tensor<?xi32>) {score} : (!q, !k, !v) -> (!o, !l)
  %e = tensor.empty(%m, %t) : !o
  %f = tensor.empty(%m, %t) : !l
  %o = flash.pack %os by %offsets into %e : !o, tensor<?xi32> into !o
  %l = flash.pack %ls by %offsets into %f : !l, tensor<?xi32> into !l
  return %o, %l : !o, !l
}}"""

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--target", default="emulate")
parser.add_argument("--seed", type=int, default=secrets.randbelow(1 << 30))
arguments = parser.parse_args()
rng = np.random.default_rng(arguments.seed)
folder = pathlib.Path(tempfile.mkdtemp())


def make_ids(kind, shape, dtype):
    most = {"falls": 5, "shuffled": 3, "sorted": 1, "many": shape[-1], "one": 1}[kind]
    ids = rng.integers(-most, most, shape).astype(dtype)
    if kind in ("sorted", "many"):
        ids.sort(axis=-1)
    if kind == "falls":
        ids[...] = -np.sort(ids, axis=-1)
    return ids * dtype(kind != "one")


def run(name, text, inputs, outputs):
    (folder / f"{name}.mlir").write_text(text)
    files = []
    for number, array in enumerate(inputs):
        files.append(str(folder / f"{number}.npy"))
        np.save(files[-1], array)
    results = [str(folder / f"{name}{number}.npy") for number in range(outputs)]
    command = ["flash-run", str(folder / f"{name}.mlir"), "--check", f"--target={arguments.target}"]
    command += ["--inputs=" + ",".join(files), "--outputs=" + ",".join(results)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, f"seed {arguments.seed}: {case}\n{text}\n{done.stdout}{done.stderr}"
    return [np.load(result) for result in results]


numbers = 0
for case in [
    # Element, D, Dv, batches, rows, ids, their type, ids of batches, causal, gradients.
    ("f16", 64, 64, 2, 301, "sorted", "i32", True, True, False),
    ("f16", 64, 48, 3, 300, "sorted", "i64", False, False, True),
    ("f16", 128, 128, 1, 700, "sorted", "i16", True, True, True),
    ("f32", 32, 32, 2, 257, "sorted", "i8", True, False, False),
    ("f16", 64, 64, 2, 200, "falls", "i32", True, True, True),
    ("f16", 64, 64, 2, 333, "shuffled", "i64", True, False, False),
    ("f16", 64, 64, 1, 260, "many", "i16", False, True, False),
    ("f16", 96, 96, 2, 150, "one", "i32", True, True, False),
]:
    element, d, dv, batches, rows, kind, integer, of_batches, causal, gradients = case
    # Some ids lie behind the rows.
    shape = (batches, rows + 3) if of_batches else (rows + 3,)
    ids = make_ids(kind, shape, getattr(np, integer.replace("i", "int")))
    dtype = np.float32 if element == "f32" else np.float16
    inputs = [rng.standard_normal((batches, h, rows, n)).astype(dtype) for h, n in ((4, d), (2, d), (2, dv))]
    inputs += [ids, rng.uniform(0, 0.1, 4).astype(np.float32)]
    header = HEADER.format(d=d, dv=dv, t=element, batch="?x" * of_batches, ids=integer)
    mask = "mask(#flash.affine<#causal>)" if causal else ""
    same = SAME.format(b="%b, " if of_batches else "", ids=integer)
    program = GRADIENTS if gradients else ATTENTION
    score = SCORE.format(same=same, keep=" keep %same")
    results = run("choice", header + program.format(mask=mask, score=score), inputs, 3 if gradients else 2)
    numbers += 1
    if kind != "sorted" or gradients:
        continue
    score = SCORE.format(same="", keep="")
    for x, y in zip(results, run("packed", header + PACKED.format(mask=mask, score=score), inputs, 2)):
        assert np.array_equal(x, y), f"seed {arguments.seed}: {case} has other bits than packed rows"
print(f"{numbers} masks of documents: ok")
