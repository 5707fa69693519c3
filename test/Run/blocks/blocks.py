"""Masks that are known at run time, through block maps, against numpy and the fp64 reference.

    blocks.py [--target=cpu|emulate|emulate:sm_90a|sm_80|sm_90a] [--only NAME] [--shard K/N] [--seed S]

On the CPU, the tiles that a program visits are compared with those of which the mask leaves something.
"""

import argparse
import itertools
import pathlib
import subprocess
import sys
import tempfile
from dataclasses import dataclass

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "suite"))
from oracle import attention  # noqa: E402
from suite import add_choice, choose  # noqa: E402

# Masks by name that the compiler knows, whose tiles are no ranges.
MASKS = {
    "sinks": (
        ["i - j >= 0, 70 - i + j >= 0", "i - j >= 0, 3 - j >= 0"],
        lambda b, h, i, j: (j <= i) & ((i - j <= 70) | (j < 4)),
    ),
    "stripes": (["99 - (i + j) mod 200 - h * 3 >= 0"], lambda b, h, i, j: (i + j) % 200 + h * 3 <= 99),
}
# Regions by name: the operations that give %keep, with the types of what they read, and the same in numpy.
SAME = """
    %x = tensor.extract %a[%i] : {a}
    %y = tensor.extract %c[%j] : {c}
    %keep = arith.cmpi eq, %x, %y : i32"""
ABOVE = SAME.replace("cmpi eq", "cmpi sgt")
SAME_OF_BATCH = SAME.replace("%a[%i]", "%a[%b, %i]").replace("%c[%j]", "%c[%b, %j]")
WINDOW_OF_HEAD = """
    %x = tensor.extract %a[%h] : {a}
    %w = arith.index_cast %x : i32 to index
    %d = arith.subi %i, %j : index
    %near = arith.cmpi sle, %d, %w : index
    %z = tensor.extract %c[%j] : {c}
    %zero = arith.constant 0 : i32
    %takes = arith.cmpi ne, %z, %zero : i32
    %keep = arith.andi %near, %takes : i1"""
# The distance is an index that is out of range for keys behind the query, which the causal mask leaves out.
BY_DISTANCE = """
    %d = arith.subi %i, %j : index
    %x = tensor.extract %a[%d] : {a}
    %y = tensor.extract %c[%j] : {c}
    %keep = arith.cmpi sle, %x, %y : i32"""
# No array, but no affine set either.
SQUARES = """
    %p = arith.muli %i, %j : index
    %n = arith.constant 977 : index
    %rest = arith.remui %p, %n : index
    %m = arith.constant 400 : index
    %keep = arith.cmpi ult, %rest, %m : index"""

# What is the same for a head decides most tiles without their elements.
NEAR_OF_HEAD = """
    %x = tensor.extract %a[%h] : {a}
    %w = arith.index_cast %x : i32 to index
    %d = arith.subi %i, %j : index
    %e = arith.subi %j, %i : index
    %far = arith.maxsi %d, %e : index
    %near = arith.cmpi sle, %far, %w : index
    %few = arith.constant 3 : index
    %first = arith.cmpi slt, %j, %few : index
    %one = arith.constant true
    %last = arith.cmpi slt, %j, %i : index
    %behind = arith.xori %last, %one : i1
    %some = arith.ori %near, %first : i1
    %other = arith.cmpi ne, %d, %w : index
    %any = arith.ori %behind, %other : i1
    %keep = arith.andi %some, %any : i1"""

REGIONS = {
    "near_of_head": (NEAR_OF_HEAD, lambda a, c, b, h, i, j: ((abs(i - j) <= a[h]) | (j < 3)) & ((j >= i) | (i - j != a[h]))),
    "same": (SAME, lambda a, c, b, h, i, j: a[i] == c[j]),
    "above": (ABOVE, lambda a, c, b, h, i, j: a[i] > c[j]),
    "same_of_batch": (SAME_OF_BATCH, lambda a, c, b, h, i, j: a[b, i] == c[b, j]),
    "window_of_head": (WINDOW_OF_HEAD, lambda a, c, b, h, i, j: (i - j <= a[h]) & (c[j] != 0)),
    "by_distance": (BY_DISTANCE, lambda a, c, b, h, i, j: (j <= i) & (a[np.maximum(i - j, 0)] <= c[j])),
    "squares": (SQUARES, lambda a, c, b, h, i, j: i * j % 977 < 400),
}


@dataclass
class Case:
    name: str
    region: str
    a: np.ndarray
    c: np.ndarray
    sizes: tuple = (2, 4, 2, 300, 500, 64, 64)  # B, Hq, Hkv, Nq, Nk, D, Dv
    element: str = "f16"
    causal: bool = False
    mask: str = ""
    lengths: tuple = ()
    softcap: bool = False
    dynamic: bool = False
    has_nan: bool = False  # In values of keys that no query sees.
    schedule: str = ""

    def print(self):
        B, Hq, Hkv, Nq, Nk, D, Dv = self.sizes

        def tensor(*shape, element):
            known = [*shape[:-1]]
            if self.dynamic:
                known = ["?"] * len(known)
            return f"tensor<{'x'.join(map(str, [*known, shape[-1]]))}x{element}>"

        def array(x):
            return f"tensor<{'x'.join('?' if self.dynamic else str(n) for n in x.shape)}xi32>"

        q, k, v = (tensor(*s, element=self.element) for s in self.shapes())
        o = tensor(B, Hq, Nq, Dv, element=self.element)
        lse = f"tensor<{'?x?x?' if self.dynamic else f'{B}x{Hq}x{Nq}'}xf32>"
        a, c = array(self.a), array(self.c)
        mask = "mask(#flash.causal<top_left>)" if self.causal else ""
        sets = MASKS[self.mask][0] if self.mask else []
        aliases = [f"#set{n} = affine_set<(b, h, i, j)[nq, nk] : ({text})>" for n, text in enumerate(sets)]
        if sets:
            mask = f"mask(#flash.any_of<[{', '.join(f'#flash.affine<#set{n}>' for n in range(len(sets)))}]>)"
        n = "tensor<?xi32>" if self.dynamic else f"tensor<{B}xi32>"
        lengths = f"lengths(%n : {n})" if self.lengths else ""
        cap = "%t = math.tanh %s : f32" if self.softcap else "%t = arith.addf %s, %zerof : f32"
        score = "%t" if self.softcap else "%s"
        region = REGIONS[self.region][0].format(a=a, c=c) if self.region else ""
        choice = f"%r = arith.select %keep, {score}, %inf : f32" if self.region else ""
        return "\n".join(aliases) + f"""
func.func @f(%q: {q}, %k: {k}, %v: {v}, %a: {a}, %c: {c}{f', %n: {n}' if self.lengths else ''}) -> ({o}, {lse}) {{
  %inf = arith.constant 0xFF800000 : f32
  %zerof = arith.constant 0.0 : f32
  %o, %lse = flash.attention %q, %k, %v {mask} {lengths} score {{
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):{region}
    {cap}
    {choice}
    flash.yield {"%r" if self.region else score} : f32
  }} : ({q}, {k}, {v}) -> ({o}, {lse})
  return %o, %lse : {o}, {lse}
}}
"""

    def shapes(self):
        B, Hq, Hkv, Nq, Nk, D, Dv = self.sizes
        return [(B, Hq, Nq, D), (B, Hkv, Nk, D), (B, Hkv, Nk, Dv)]

    def keep(self):
        B, Hq, _, Nq, Nk, _, _ = self.sizes
        b, h, i, j = np.ogrid[:B, :Hq, :Nq, :Nk]
        keep = REGIONS[self.region][1](self.a, self.c, b, h, i, j) if self.region else np.ones((1, 1, Nq, Nk), bool)
        if self.mask:
            keep = keep & MASKS[self.mask][1](b, h, i, j)
        if self.causal:
            keep = keep & (j <= i)
        if self.lengths:
            keep = keep & (j < np.array(self.lengths).reshape(-1, 1, 1, 1))
        return np.broadcast_to(keep, (B, Hq, Nq, Nk))


def documents(lengths):
    return np.repeat(np.arange(len(lengths)), lengths).astype(np.int32)


def cases():
    rng = np.random.default_rng(1)
    few = rng.integers(0, 3, 800).astype(np.int32)
    sorted_q, sorted_k = documents([17, 100, 3, 130, 50]), documents([60, 1, 239, 100, 100])
    one = np.zeros(1, np.int32)
    yield Case("sorted", "same", sorted_q, sorted_k)
    yield Case("sorted f32", "same", sorted_q, sorted_k, element="f32", schedule="query_tile=32,key_tile=48")
    yield Case("sorted bf16, open", "same", sorted_q, sorted_k, element="bf16", dynamic=True)
    yield Case("unsorted", "same", few[:300], few[300:], dynamic=True)
    yield Case("causal", "same", sorted_q, sorted_k, causal=True, sizes=(1, 6, 2, 300, 500, 32, 48))
    yield Case("nothing", "same", few[:300], few[300:] + 10)
    yield Case("everything", "same", few[:300] * 0, few[300:] * 0, sizes=(1, 2, 1, 300, 500, 64, 64))
    yield Case("whole tiles", "same", documents([128, 128]), documents([128, 384]), sizes=(1, 2, 2, 256, 512, 64, 64))
    yield Case("one element of a tile", "same", np.arange(300, dtype=np.int32), 7 * np.arange(500, dtype=np.int32))
    yield Case("per batch", "same_of_batch", few[:600].reshape(2, 300), np.sort(few[:600]).reshape(2, 300),
               sizes=(2, 4, 1, 300, 300, 64, 64), softcap=True)
    wide = (few.astype(np.int64) * 2**30 - 2**31).astype(np.int32)
    # The least and the greatest number of a tile decide, unless f32 has not all numbers.
    yield Case("negative", "same", sorted_q - 2, sorted_k - 2, causal=True)
    yield Case("beyond f32", "same", sorted_q + 2**24 - 2, sorted_k + 2**24 - 2, dynamic=True)
    yield Case("extremes", "above", wide[:300], wide[300:])
    yield Case("above", "above", sorted_q, sorted_k, dynamic=True)
    yield Case("above, per row", "above", np.arange(300, dtype=np.int32), np.arange(500, dtype=np.int32) - 100)
    yield Case("per head", "window_of_head", np.array([-1000, 0, 40, 1000], np.int32), few[:500] % 2)
    yield Case("lengths", "same", sorted_q, sorted_k, lengths=(0, 130), causal=True)
    yield Case("lengths, open", "same", few[:300], few[300:] * 0, lengths=(900, -3), dynamic=True)
    yield Case("guarded", "by_distance", np.sort(few[:300]), few[300:600], causal=True, sizes=(1, 2, 2, 300, 300, 64, 64))
    yield Case("no array", "squares", one, one, softcap=True)
    yield Case("no array, open", "squares", one, one, sizes=(1, 2, 1, 515, 259, 64, 64), dynamic=True)
    yield Case("NaN", "same", sorted_q % 2, sorted_k % 3, has_nan=True)
    yield Case("NaN f32", "same", sorted_q % 2, sorted_k % 3, has_nan=True, element="f32")
    yield Case("splits", "same", few[:40], few[300:], sizes=(2, 4, 2, 40, 500, 64, 64),
               schedule="query_tile=64,key_tile=32,num_splits=3")
    yield Case("one query", "same", few[:1], few[300:], sizes=(1, 2, 2, 1, 500, 64, 64))
    many = rng.integers(0, 40, 2140).astype(np.int32)
    yield Case("many tiles", "same", many[:40], many[40:], sizes=(1, 2, 2, 40, 2100, 64, 64),
               schedule="query_tile=64,key_tile=16")
    # Heads share tiles.
    yield Case("packed", "same", few[:5], few[300:], sizes=(2, 8, 2, 5, 500, 64, 64))
    yield Case("packed per head", "window_of_head", np.array([-1000, 0, 40, 1000, 3, -490, -250, 100], np.int32), few[:500] % 2,
               sizes=(2, 8, 2, 5, 500, 64, 64), softcap=True)
    yield Case("packed, several tiles", "window_of_head", np.array([-1000, 0, 40, 1000, 3, -490, -250, 100], np.int32),
               few[:500] % 2, sizes=(1, 8, 2, 90, 500, 64, 64), schedule="query_tile=64,key_tile=32,packed_heads=2")
    yield Case("packed splits", "same", few[:5], few[300:], sizes=(1, 8, 1, 5, 500, 64, 64),
               schedule="query_tile=64,key_tile=32,packed_heads=8,num_splits=3", lengths=(400,))
    yield Case("one query of a group", "same", few[:1], few[300:], sizes=(2, 8, 2, 1, 500, 64, 64))
    # What is left is known of tiles, and computed of few elements or none.
    windows = np.array([-1000, 0, 70, 1000], np.int32)
    yield Case("near", "near_of_head", windows, one)
    yield Case("near, causal, open", "near_of_head", windows, one, causal=True, dynamic=True)
    yield Case("near, lengths", "near_of_head", windows, one, lengths=(0, 130), sizes=(2, 4, 4, 130, 270, 64, 64))
    yield Case("near, packed", "near_of_head", np.array([-1000, 0, 40, 1000, 3, 70, 9, 100], np.int32), one,
               sizes=(1, 8, 2, 40, 300, 64, 64), schedule="query_tile=64,key_tile=32,packed_heads=4")
    yield Case("sinks", "", one, one, mask="sinks")
    yield Case("sinks f32, open", "", one, one, mask="sinks", element="f32", dynamic=True, softcap=True)
    yield Case("sinks, lengths", "", one, one, mask="sinks", lengths=(3, 290), dynamic=True)
    yield Case("sinks and a region", "same", sorted_q, sorted_k, mask="sinks")
    yield Case("stripes", "", one, one, mask="stripes")
    yield Case("no queries", "same", few[:0], few[300:], sizes=(1, 2, 2, 0, 500, 64, 64), dynamic=True)
    yield Case("no keys", "same", few[:300], few[:0], sizes=(1, 2, 2, 300, 0, 64, 64), dynamic=True)


def make_inputs(case):
    rng = np.random.default_rng(7)
    inputs = [rng.standard_normal(shape).astype(np.float32) for shape in case.shapes()]
    if case.has_nan:
        hidden = ~case.keep().any(axis=(0, 1, 2))
        assert hidden.any()
        inputs[1][:, :, hidden] = inputs[2][:, :, hidden] = np.nan
    if case.element == "f16":
        inputs = [x.astype(np.float16) for x in inputs]
    elif case.element == "bf16":  # So that rounding changes nothing.
        inputs = [(x.view(np.uint32) & 0xFFFF0000).view(np.float32) for x in inputs]
    return inputs


def count_tiles(case, schedule):
    keep = case.keep()
    nq, nk = keep.shape[2:]
    full = partial = 0
    for i, j in itertools.product(range(0, nq, schedule[0]), range(0, nk, schedule[1])):
        tile = keep[:, :, i : i + schedule[0], j : j + schedule[1]]
        every, some = tile.all(axis=(2, 3)) & (j + schedule[1] <= nk), tile.any(axis=(2, 3))
        full += int(every.sum())
        partial += int((some & ~every).sum())
    return f"tiles: {full + partial} visited = {full} full + {partial} partial"


def check(case, target, folder):
    program = folder / "f.mlir"
    program.write_text(case.print())
    inputs = make_inputs(case)
    arrays = [*inputs, case.a, case.c] + ([np.array(case.lengths, np.int32)] if case.lengths else [])
    files = []
    for index, array in enumerate(arrays):
        files.append(str(folder / f"{index}.npy"))
        np.save(files[-1], array)
    outputs = [str(folder / "o.npy"), str(folder / "lse.npy")]
    command = ["flash-run", str(program), f"--target={target}", "--check", f"--inputs={','.join(files)}"]
    command.append(f"--outputs={','.join(outputs)}")
    # The CPU splits no keys, and warps with roles have tiles of their own.
    entries = [entry for entry in case.schedule.split(",") if entry]
    if target == "cpu":
        entries = [entry for entry in entries if "tile" in entry] or ["query_tile=64", "key_tile=32"]
        command.append("--count-tiles")
    elif target == "emulate:sm_90a":
        entries = [entry for entry in entries if "tile" not in entry]
    # Also where two more kernels cost more than they save, or the loop could have a condition.
    command.append(f"--schedule={','.join([*entries, 'block_map=1'])}")
    process = subprocess.run(command, capture_output=True, text=True, timeout=300)
    text = process.stdout + process.stderr
    if process.returncode != 0 or "check: ok" not in text:
        return text
    if target == "cpu":
        sizes = [int(entry.split("=")[1]) for entry in entries]
        expected = count_tiles(case, sizes)
        if expected not in text:
            return f"expected {expected}, got {text}"
    q, k, v = (x.astype(np.float64) for x in inputs)
    score = (lambda s, *_: np.tanh(s)) if case.softcap else None
    wanted = attention(np.nan_to_num(q), np.nan_to_num(k), v, case.sizes[5] ** -0.5, case.keep().astype(int), score)
    for name, path, expected in zip(("output", "log-sum-exp"), outputs, wanted):
        result = np.load(path)
        if case.element == "bf16" and result.dtype == np.uint16:
            result = (result.astype(np.uint32) << 16).view(np.float32)
        tolerance = {"f16": 2e-3, "bf16": 2e-2, "f32": 1e-5}[case.element]
        if not np.allclose(result.astype(np.float64), expected, rtol=tolerance, atol=tolerance):
            return f"the {name} is not numpy's"
    return ""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", default="cpu")
    parser.add_argument("--only")
    add_choice(parser)
    arguments = parser.parse_args()
    results = []
    print(f"seed {arguments.seed}")
    for case in choose(list(cases()), arguments.shard, arguments.seed):
        if arguments.only and case.name != arguments.only:
            continue
        if arguments.target == "emulate:sm_90a" and case.element == "f32":
            continue  # It has no roles, and is what `emulate` runs.
        with tempfile.TemporaryDirectory() as folder:
            problem = check(case, arguments.target, pathlib.Path(folder))
        if problem:
            print(f"{case.name}: {problem}")
        results.append(not problem)
    print(f"{sum(results)} of {len(results)} cases agree")
    return 0 if results and all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
