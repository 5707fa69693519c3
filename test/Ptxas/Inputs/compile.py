"""Compiles attention for many head dimensions and looks for spills.

Usage: compile.py [--gradients [--packed | --products N] | --bias] [--target TARGET] [--options OPTIONS] [--mask MASK] [--documents] [--spills N] [--dynamic | [--few] [--group N] --queries N --keys N] ELEMENT_TYPE D...

Each D is a head dimension, or D:DV with that of the values. Without --shard the seed chooses a third of them (any/3). Prints what ptxas
says about each kernel; the status is 1 if one has more spills than it may, does not compile, or has
products of warpgroups that ptxas says it runs one after the other.
"""
import argparse
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "Run" / "suite"))
from suite import add_choice, choose  # noqa: E402

PROGRAM = """func.func @attention(%q: tensor<{query}>, %k: tensor<{key}>, %v: tensor<{value}>, %ids: tensor<{keys}xi32>) -> tensor<{result}> {{
  %o = flash.attention %q, %k, %v{mask}{score} : (tensor<{query}>, tensor<{key}>, tensor<{value}>) -> tensor<{result}>
  return %o : tensor<{result}>
}}
"""
GRADIENTS = """func.func @gradients(%q: tensor<{query}>, %k: tensor<{key}>, %v: tensor<{value}>, %o: tensor<{result}>, %lse: tensor<{lse}>, %do: tensor<{result}>, %ids: tensor<{keys}xi32>) -> (tensor<{query}>, tensor<{key}>, tensor<{value}>) {{
  %dq, %dk, %dv = flash.attention_grad %q, %k, %v, %o, %lse, %do{mask}{products}{score} : (tensor<{query}>, tensor<{key}>, tensor<{value}>, tensor<{result}>, tensor<{lse}>, tensor<{result}>) -> (tensor<{query}>, tensor<{key}>, tensor<{value}>)
  return %dq, %dk, %dv : tensor<{query}>, tensor<{key}>, tensor<{value}>
}}
"""
# The same of sequences that lie behind each other, of which heads are known.
PACKED = """!m = tensor<1x{heads}x?x{d}xELEMENT>
!n = tensor<1x{groups}x?x{d}xELEMENT>
!q = tensor<?x{heads}x?x{d}xELEMENT>
!k = tensor<?x{groups}x?x{d}xELEMENT>
!i = tensor<?xi32>
func.func @gradients(%q: !m, %k: !n, %v: !n, %o: !m, %lse: tensor<1x{heads}x?xf32>, %do: !m, %offsets: !i) -> (!m, !n, !n) {{
  %two = arith.constant 2 : index
  %t = tensor.dim %q, %two : !m
  %qs, %n = flash.unpack %q by %offsets : !m, !i -> !q, !i
  %ks, %nk = flash.unpack %k by %offsets : !n, !i -> !k, !i
  %vs, %nv = flash.unpack %v by %offsets : !n, !i -> !k, !i
  %os, %no = flash.unpack %o by %offsets : !m, !i -> !q, !i
  %ls, %nl = flash.unpack %lse by %offsets : tensor<1x{heads}x?xf32>, !i -> tensor<?x{heads}x?xf32>, !i
  %dos, %nd = flash.unpack %do by %offsets : !m, !i -> !q, !i
  %dqs, %dks, %dvs = flash.attention_grad %qs, %ks, %vs, %os, %ls, %dos{mask} query_lengths(%n : !i) key_lengths(%nk : !i)
      : (!q, !k, !k, !q, tensor<?x{heads}x?xf32>, !q) -> (!q, !k, !k)
  %eq = tensor.empty(%t) : !m
  %ek = tensor.empty(%t) : !n
  %ev = tensor.empty(%t) : !n
  %dq = flash.pack %dqs by %offsets into %eq : !q, !i into !m
  %dk = flash.pack %dks by %offsets into %ek : !k, !i into !n
  %dv = flash.pack %dvs by %offsets into %ev : !k, !i into !n
  return %dq, %dk, %dv : !m, !n, !n
}}
"""
# What is masked is known at run time.
DOCUMENTS = """ score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %x = tensor.extract %ids[%i] : tensor<KEYSxi32>
    %y = tensor.extract %ids[%j] : tensor<KEYSxi32>
    %same = arith.cmpi eq, %x, %y : i32
    flash.yield %s keep %same : f32
  }"""
# A learned bias for each head and distance, and its gradient.
BIAS = """func.func @gradients(%q: tensor<{query}>, %k: tensor<{key}>, %v: tensor<{value}>, %o: tensor<{result}>, %lse: tensor<{lse}>, %do: tensor<{result}>, %bias: tensor<{table}>) -> (tensor<{query}>, tensor<{key}>, tensor<{value}>, tensor<{table}>) {{
  %dq, %dk, %dv, %dbias = flash.attention_grad %q, %k, %v, %o, %lse, %do{mask} wrt(%bias : tensor<{table}>) score {{
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %last = arith.constant {last} : index
    %d = arith.subi %i, %j : index
    %at = arith.addi %d, %last : index
    %e = tensor.extract %bias[%h, %at] : tensor<{table}>
    %r = arith.addf %s, %e : f32
    flash.yield %r : f32
  }} : (tensor<{query}>, tensor<{key}>, tensor<{value}>, tensor<{result}>, tensor<{lse}>, tensor<{result}>) -> (tensor<{query}>, tensor<{key}>, tensor<{value}>, tensor<{table}>)
  return %dq, %dk, %dv, %dbias : tensor<{query}>, tensor<{key}>, tensor<{value}>, tensor<{table}>
}}
"""
CHIPS = ["sm_75", "sm_80", "sm_86", "sm_89", "sm_90a", "sm_120"]


def compile_one(arguments, d, dv):
    batch, heads, groups = (1, 2, 1) if arguments.few else (32, 8, 2)
    if arguments.group:
        heads = arguments.group * groups
    queries, keys = arguments.queries, arguments.keys
    if arguments.dynamic:
        batch, heads, groups, queries, keys = "?????"
    element = arguments.element
    program = BIAS if arguments.bias else GRADIENTS if arguments.gradients else PROGRAM
    if arguments.packed:
        program = PACKED.replace("ELEMENT", element)
    table = {} if arguments.dynamic else {"table": f"{heads}x{queries + keys - 1}xf32", "last": keys - 1}
    text = program.format(**table, heads=heads, groups=groups, d=d, query=f"{batch}x{heads}x{queries}x{d}x{element}", key=f"{batch}x{groups}x{keys}x{d}x{element}",
                          value=f"{batch}x{groups}x{keys}x{dv}x{element}", result=f"{batch}x{heads}x{queries}x{dv}x{element}",
                          mask=f" mask({arguments.mask})" if arguments.mask else "",
                          products=f" schedule(<products = {arguments.products}>)" if arguments.products else "", keys=keys, lse=f"{batch}x{heads}x{queries}xf32",
                          score=DOCUMENTS.replace("KEYS", str(keys)) if arguments.documents else "")
    lowered = subprocess.run(["flash-opt", f"--flash-gpu=target={arguments.target} {arguments.options}"], input=text, capture_output=True, text=True)
    if lowered.returncode:
        return False, lowered.stderr
    command = ["flash-translate", "--ptxas", f"--chip={arguments.target}"]
    if arguments.spills:
        command.append("--allow-spills")
    done = subprocess.run(command, input=lowered.stdout, capture_output=True, text=True)
    text = done.stdout + done.stderr
    if not arguments.spills or done.returncode:
        return done.returncode == 0, text
    spilled = [re.search(r": \d+ registers, .* spill stores (\d+)", line) for line in text.strip().splitlines()]
    return all(found and int(found[1]) <= arguments.spills for found in spilled), text


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", default="sm_80", choices=CHIPS)
    parser.add_argument("--options", default="", help="of --flash-gpu")
    parser.add_argument("--gradients", action="store_true", help="its gradients instead")
    parser.add_argument("--packed", action="store_true", help="of sequences that lie behind each other")
    parser.add_argument("--bias", action="store_true", help="the gradients of a learned bias and of the operands")
    parser.add_argument("--mask")
    parser.add_argument("--documents", action="store_true", help="a mask that reads an array; as many queries as keys")
    parser.add_argument("--dynamic", action="store_true", help="sizes known at run time")
    parser.add_argument("--queries", type=int, default=8192)
    parser.add_argument("--keys", type=int, default=2048)
    parser.add_argument("--few", action="store_true", help="one batch of two heads, which gives split-KV")
    parser.add_argument("--spills", type=int, default=0, help="bytes that a kernel may spill")
    parser.add_argument("--products", type=int, help="of the schedule of --gradients")
    parser.add_argument("--group", type=int, help="query heads of a key head")
    add_choice(parser)
    parser.add_argument("element")
    parser.add_argument("dimensions", nargs="+")
    arguments = parser.parse_args()
    dimensions = choose(arguments.dimensions, arguments.shard or ["any/3"], arguments.seed)
    print(f"{len(dimensions)} of {len(arguments.dimensions)} head dimensions, seed {arguments.seed}", flush=True)
    failures = 0
    for entry in dimensions:
        d, _, dv = entry.partition(":")
        ok, text = compile_one(arguments, d, dv or d)
        failures += not ok
        print(f"{'ok' if ok else 'FAILED'} {entry}: {text.strip()}", flush=True)
    print(f"{len(dimensions) - failures} of {len(dimensions)} ok")
    return failures != 0


if __name__ == "__main__":
    sys.exit(main())
