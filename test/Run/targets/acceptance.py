"""Compiles programs for the emulations and for GPUs: all accept one, or all refuse it with the same message.

Each case is a name, a program, and what the message holds; None where it is accepted.
"""

import pathlib
import subprocess
import sys
import tempfile

T = "tensor<1x2x32x16xf16>"
M = "tensor<2x32x32xf32>"
ON_CPU = "runs on the CPU only"
TARGETS = ("emulate", "emulate:sm_90a", "sm_80", "sm_90a")


def program(body, arguments=f"%q: {T}, %k: {T}", result=T, returned="%r", before=""):
    return f"{before}\nfunc.func @main({arguments}) -> {result} {{\n{body}\n  return {returned} : {result}\n}}\n"


def attention(name, query="%q", extra=""):
    return f"  {name} = flash.attention {query}, %k, %k {extra} : ({T}, {T}, {T}) -> {T}"


def score(*lines):
    body = "\n".join("    " + line for line in lines)
    return f"score {{\n  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):\n{body}\n    flash.yield %x : f32\n  }}"


MAP = "affine_map<(b, h, i, d) -> (b, h, i, d)>"
GENERIC = f"""  %g = linalg.generic {{indexing_maps = [{MAP}, {MAP}], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}}
      ins(%q : {T}) outs(%q : {T}) {{
  ^bb0(%a: f16, %c: f16):
    %n = arith.negf %a : f16
    linalg.yield %n : f16
  }} -> {T}"""
VIEW = "tensor<1x2x64x16xf16>"
EVERY_FUNCTION = pathlib.Path(__file__).parents[2] / "Ptxas" / "math.mlir"

def on_tiles(body, stored="%y", tile="32x16xf16", result="32x16xf16", width=2):
    """One tile of 32 x 16 for each of the blocks, of which `body` computes what is stored."""
    zeros = ", ".join(["0"] * width)
    sizes = ", ".join(tile.split("x")[:-1])
    return f"""func.func @main(%x: tensor<32x16xf16>, %w: tensor<32x16xf32>) -> tensor<{result}> {{
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<{result}>
  %r = scf.forall (%i) = (0) to (1) step (1) shared_outs(%out = %empty) -> tensor<{result}> {{
    %square = tensor.empty() : tensor<32x32xf32>
    %zeros = linalg.fill ins(%zero : f32) outs(%square : tensor<32x32xf32>) -> tensor<32x32xf32>
    %line = tensor.empty() : tensor<16xf32>
    %start = linalg.fill ins(%zero : f32) outs(%line : tensor<16xf32>) -> tensor<16xf32>
{body}
    scf.forall.in_parallel {{
      tensor.parallel_insert_slice {stored} into %out[{zeros}] [{sizes}] [{", ".join(["1"] * width)}] : tensor<{tile}> into tensor<{result}>
    }}
  }}
  return %r : tensor<{result}>
}}
"""


def product(name, a, b, shape, maps=("m, k", "n, k")):
    maps = ", ".join(f"affine_map<(m, n, k) -> ({dims})>" for dims in (*maps, "m, n"))
    return f"    {name} = linalg.contract indexing_maps = [{maps}] ins({a}, {b} : tensor<{shape}xf16>, tensor<{shape}xf16>) " \
        "outs(%zeros : tensor<32x32xf32>) -> tensor<32x32xf32>\n"


def of_columns(name, operation, source="%w", element="f32", returned="%c"):
    return f"""    {name} = linalg.generic {{indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>], iterator_types = ["reduction", "parallel"]}}
        ins({source} : tensor<32x16x{element}>) outs(%start : tensor<16x{element}>) {{
    ^bb0(%a: {element}, %b: {element}):
      %c = arith.{operation} %b, %a : {element}
      linalg.yield {returned} : {element}
    }} -> tensor<16x{element}>
"""


BLOCK = "has no translation to a block program: "
CASES = [
    ("attention", program(attention("%r")), None),
    ("two attentions", program(attention("%o") + "\n" + attention("%r", "%o")), None),
    ("a mask that no tile survives", program(attention("%r", extra="mask(#flash.prefix<0>)")), None),
    ("an empty batch", program(attention("%r")).replace("1x2x32x16", "0x2x32x16"), None),
    ("no keys", program(attention("%r"), f"%q: {T}, %k: KEY").replace(f", {T}, {T})", ", KEY, KEY)").replace("KEY", "tensor<1x2x0x16xf16>"), None),
    ("rank 3", program(attention("%r")).replace("1x2x32x16", "2x32x16"), None),
    ("every function in a score region", EVERY_FUNCTION.read_text().replace("@every_function", "@main"), None),
    ("integers of all widths", program(attention("%r", extra=score("%n = arith.index_cast %i : index to i8", "%m = arith.extui %n : i8 to i64", "%y = arith.uitofp %m : i64 to f64", "%t = arith.truncf %y : f64 to f32", "%x = arith.addf %s, %t : f32"))), None),
    ("a slice of a result", program(f"  %e = tensor.extract_slice %w[0, 0, 32, 0] [1, 2, 32, 16] [1, 1, 1, 1] : {VIEW} to {T}\n" + attention("%r", "%e"), f"%w: {VIEW}, %k: {T}"), None),
    ("a softmax", program(f"  %e = tensor.empty() : {M}\n  %r = linalg.softmax dimension(2) ins(%q : {M}) outs(%e : {M}) -> {M}", f"%q: {M}", M), None),
    ("an op before", program(f"  %p = arith.addf %q, %q : {T}\n" + attention("%r", "%p")), "'arith.addf' op " + ON_CPU),
    ("an op behind", program(attention("%o") + f"\n  %r = arith.mulf %o, %q : {T}"), "'arith.mulf' op " + ON_CPU),
    ("a generic before", program(GENERIC + "\n" + attention("%r", "%g")), "'linalg.generic' op " + ON_CPU),
    ("a transpose", program(f"  %e = tensor.empty() : {T}\n  %p = linalg.transpose ins(%w : tensor<1x32x2x16xf16>) outs(%e : {T}) permutation = [0, 2, 1, 3]\n" + attention("%r", "%p"), f"%w: tensor<1x32x2x16xf16>, %k: {T}"), "'linalg.transpose' op " + ON_CPU),
    ("a product alone", program("  %e = tensor.empty() : tensor<16x16xf32>\n  %r = linalg.matmul ins(%q, %q : tensor<16x16xf32>, tensor<16x16xf32>) outs(%e : tensor<16x16xf32>) -> tensor<16x16xf32>", "%q: tensor<16x16xf32>", "tensor<16x16xf32>"), "'linalg.matmul' op " + ON_CPU),
    ("a softmax along another dimension", program(f"  %e = tensor.empty() : {M}\n  %r = linalg.softmax dimension(1) ins(%q : {M}) outs(%e : {M}) -> {M}", f"%q: {M}", M), "'linalg.softmax' op " + ON_CPU),
    ("a constant tensor", program("  %n = arith.constant dense<7> : tensor<1xi32>\n" + attention("%r", extra="lengths(%n : tensor<1xi32>)")), "'arith.constant' op " + ON_CPU),
    ("an element outside of kernels", program("  %c0 = arith.constant 0 : index\n  %c = tensor.extract %t[%c0] : tensor<1xf32>\n" + attention("%r", extra=score("%x = arith.mulf %s, %c : f32")), f"%q: {T}, %k: {T}, %t: tensor<1xf32>"), None),
    ("a loop", program(f"  %c0 = arith.constant 0 : index\n  %c1 = arith.constant 1 : index\n  %c3 = arith.constant 3 : index\n  %r = scf.for %n = %c0 to %c3 step %c1 iter_args(%a = %q) -> {T} {{\n" + attention("%o", "%a") + f"\n    scf.yield %o : {T}\n  }}"), "'scf.for' op " + ON_CPU),
    ("a choice", program(f"  %c2 = arith.constant 2 : index\n  %n = tensor.dim %k, %c2 : tensor<1x2x?x16xf16>\n  %c = arith.cmpi eq, %n, %c2 : index\n  %p = tensor.cast %k : tensor<1x2x?x16xf16> to {T}\n  %r = scf.if %c -> {T} {{\n    scf.yield %q : {T}\n  }} else {{\n    scf.yield %p : {T}\n  }}", f"%q: {T}, %k: tensor<1x2x?x16xf16>"), "'arith.select' op " + ON_CPU),
    ("versions", program(f"  %c2 = arith.constant 2 : index\n  %n = tensor.dim %k, %c2 : tensor<1x2x?x16xf16>\n  %c32 = arith.constant 32 : index\n  %c = arith.cmpi eq, %n, %c32 : index\n  %r = scf.if %c -> {T} {{\n    %p = tensor.cast %k : tensor<1x2x?x16xf16> to {T}\n    %o = flash.attention %q, %p, %p : ({T}, {T}, {T}) -> {T}\n    scf.yield %o : {T}\n  }} else {{\n    %o = flash.attention %q, %k, %k : ({T}, tensor<1x2x?x16xf16>, tensor<1x2x?x16xf16>) -> {T}\n    scf.yield %o : {T}\n  }}", f"%q: {T}, %k: tensor<1x2x?x16xf16>"), None),
    ("a version that returns an argument", program(f"  %c2 = arith.constant 2 : index\n  %n = tensor.dim %k, %c2 : tensor<1x2x?x16xf16>\n  %c0 = arith.constant 0 : index\n  %c = arith.cmpi eq, %n, %c0 : index\n  %r = scf.if %c -> {T} {{\n    scf.yield %q : {T}\n  }} else {{\n    %o = flash.attention %q, %k, %k : ({T}, tensor<1x2x?x16xf16>, tensor<1x2x?x16xf16>) -> {T}\n    scf.yield %o : {T}\n  }}", f"%q: {T}, %k: tensor<1x2x?x16xf16>"), "cannot return result 0 on a GPU: it is memory of argument 0"),
    ("a choice by an element", program(f"  %c0 = arith.constant 0 : index\n  %z = arith.constant 0 : i32\n  %e = tensor.extract %n[%c0] : tensor<1xi32>\n  %c = arith.cmpi eq, %e, %z : i32\n  %r = scf.if %c -> {T} {{\n    %o = flash.attention %q, %k, %q : ({T}, {T}, {T}) -> {T}\n    scf.yield %o : {T}\n  }} else {{\n    %o = flash.attention %q, %k, %k : ({T}, {T}, {T}) -> {T}\n    scf.yield %o : {T}\n  }}", f"%q: {T}, %k: {T}, %n: tensor<1xi32>"), "'tensor.extract' op " + ON_CPU),
    ("a call", program(f"  %r = func.call @other(%q, %k) : ({T}, {T}) -> {T}", before=program(attention("%r")).replace("@main", "private @other")), "'func.call' op " + ON_CPU),
    ("an argument as a result", program("", returned="%q"), "cannot return result 0 on a GPU: it is memory of argument 0"),
    ("sums of columns", on_tiles(of_columns("%y", "addf"), tile="16xf32", result="16xf32", width=1), None),
    ("products of columns", on_tiles(of_columns("%y", "mulf"), tile="16xf32", result="16xf32", width=1), None),
    ("smallest of columns", on_tiles(of_columns("%y", "minimumf"), tile="16xf32", result="16xf32", width=1), None),
    ("differences of columns", on_tiles(of_columns("%y", "subf"), tile="16xf32", result="16xf32", width=1), BLOCK + "a reduction is of the rows or the columns"),
    ("arithmetic in 16 bits", on_tiles("    %s = arith.addf %x, %x : tensor<32x16xf16>\n    %c = arith.cmpf ogt, %s, %x : tensor<32x16xf16>\n    %y = arith.select %c, %s, %x : tensor<32x16xi1>, tensor<32x16xf16>"), None),
    ("a constant of 16 bits", on_tiles("    %h = arith.constant dense<0.5> : tensor<32x16xf16>\n    %y = arith.maxnumf %x, %h : tensor<32x16xf16>"), None),
    ("integers", on_tiles("    %c = arith.constant dense<1> : tensor<32x16xi32>\n    %s = arith.addi %c, %c : tensor<32x16xi32>\n    %y = arith.sitofp %s : tensor<32x16xi32> to tensor<32x16xf16>"), BLOCK + "arithmetic on tiles is of f16, bf16, f32 and i1"),
    ("elements of f32 from memory", on_tiles("    %y = arith.addf %w, %w : tensor<32x16xf32>", tile="32x16xf32", result="32x16xf32"), None),
    ("a computed operand the other way round", on_tiles("    %s = arith.addf %x, %x : tensor<32x16xf16>\n    %o = tensor.empty() : tensor<16x16xf32>\n    %z = linalg.fill ins(%zero : f32) outs(%o : tensor<16x16xf32>) -> tensor<16x16xf32>\n"
        "    %y = linalg.contract indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>] ins(%s, %x : tensor<32x16xf16>, tensor<32x16xf16>) outs(%z : tensor<16x16xf32>) -> tensor<16x16xf32>", tile="16x16xf32", result="16x16xf32"), None),
    ("some of the columns", on_tiles("    %s = arith.addf %x, %x : tensor<32x16xf16>\n    %y = tensor.extract_slice %s[0, 0] [32, 5] [1, 1] : tensor<32x16xf16> to tensor<32x5xf16>", tile="32x5xf16", result="32x7xf16"), None),
    ("columns from the middle", on_tiles("    %s = arith.addf %x, %x : tensor<32x16xf16>\n    %y = tensor.extract_slice %s[0, 8] [32, 8] [1, 1] : tensor<32x16xf16> to tensor<32x8xf16>", tile="32x8xf16", result="32x8xf16"), BLOCK + "of a tile only the first rows and columns"),
    ("a product of slices", on_tiles(product("%y", "%x", "%x", "32x16"), tile="32x32xf32", result="32x32xf32"), None),
    ("a view of an argument as a result", program(f"  %r = tensor.extract_slice %w[0, 0, 32, 0] [1, 2, 32, 16] [1, 1, 1, 1] : {VIEW} to {T}", f"%w: {VIEW}"), "cannot return result 0 on a GPU: it is memory of argument 0"),
]


def compile(tool, file, target):
    """Whether the target accepts the program, and the first error."""
    stage = "llvm" if target.startswith("emulate") else "ptx"
    run = subprocess.run([tool, file, "--function=main", f"--target={target}", f"--dump={stage}"], capture_output=True, text=True)
    errors = [line for line in run.stderr.splitlines() if "error: " in line]
    return run.returncode == 0, errors[0].split("error: ", 1)[1] if errors else ""


def main(tool):
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder, "program.mlir")
        for name, text, message in CASES:
            file.write_text(text)
            answers = {target: compile(tool, file, target) for target in TARGETS}
            accepted, error = answers[TARGETS[0]]
            right = accepted == (message is None) and (accepted or message in error)
            if not right or len(set(answers.values())) != 1:
                wrong += 1
                print(f"{name}: {message or 'accepted'} is expected, got {answers}")
    if wrong == 0:
        print(f"targets agree on {len(CASES)} programs")
    return wrong != 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
