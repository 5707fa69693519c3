"""Bad inputs: flash-run must say what is wrong, exit with 1 and write nothing.

Each case is a name, the arguments, and a regular expression for the message.
`{d}` in the arguments is a folder with the files that `prepare` makes.
"""

import os
import pathlib
import re
import struct
import subprocess
import sys
import tempfile

Q = "tensor<1x2x16x8xf32>"
GOOD = f"""func.func @attention(%q: {Q}, %k: {Q}, %v: {Q}) -> {Q} {{
  %o = flash.attention %q, %k, %v : ({Q}, {Q}, {Q}) -> {Q}
  return %o : {Q}
}}
"""
D = "tensor<?x?x?x8xf32>"
DYNAMIC = GOOD.replace(Q, D)
SHAPES = "--shape=0=1x2x16x8 --shape=1=1x2x16x8 "


def npy(shape, descr="<f4", order="False", size=4, data=None, version=b"\1\0", header=None):
    count = 1
    for n in shape:
        count *= n
    text = header or f"{{'descr': '{descr}', 'fortran_order': {order}, 'shape': {shape}, }}"
    text = (text + " " * (-(len(text) + 11) % 64) + "\n").encode()
    length = struct.pack("<H" if version[0] == 1 else "<I", len(text))
    return b"\x93NUMPY" + version + length + text + (bytes(count * size) if data is None else data)


SHAPE = (1, 2, 16, 8)
FILES = {
    "good.mlir": GOOD,
    "dynamic.mlir": DYNAMIC,
    "empty.mlir": "",
    "suite.txt": "# A comment.\ngood.mlir --suite=x\ngood.mlir --help\n\ngood.mlir --chek\n--seed=3\ngood.mlir --threads=0\nnone.mlir\n",
    "nul.txt": b"good.mlir\ngood.mlir \0--check\ngood.mlir\n",
    "quotes.txt": "good.mlir\ngood.mlir \"--check\n",
    "apostrophe.txt": "good.mlir '--seed=1 --check\n",
    "backslash.txt": "good.mlir --check \\\n",
    "binary.mlir": bytes(range(256)) * 16,
    "bytecode.mlir": b"ML\xefR\x0d" + bytes(range(200)),
    "inline_set.mlir": GOOD.replace(
        "%v :", "%v mask(#flash.affine<affine_set<(b, h, i, j)[nq, nk] : (i - j >= 0)>>) :", 1),
    "syntax.mlir": GOOD.replace("flash.attention", "flash.attention ,"),
    "unknown_op.mlir": GOOD.replace("flash.attention", "flash.atention"),
    "rank.mlir": GOOD.replace(Q, "tensor<16x8xf32>"),
    "head_dim.mlir": GOOD.replace("16x8xf32", "16x12xf32"),
    "no_function.mlir": "module {}",
    "private.mlir": GOOD.replace("@attention", "private @attention"),
    "two.mlir": GOOD + GOOD.replace("@attention", "@other"),
    "external.mlir": "func.func private @g()\n" + GOOD,
    "memref.mlir": "func.func @f(%a: memref<4xf32>) -> tensor<4xf32> {\n  %t = tensor.empty() : tensor<4xf32>\n  return %t : tensor<4xf32>\n}",
    "f8.mlir": "func.func @f(%a: tensor<4xf8E5M2>) -> tensor<4xf8E5M2> {\n  return %a : tensor<4xf8E5M2>\n}",
    "complex.mlir": "func.func @f(%a: tensor<4xcomplex<f32>>) -> tensor<4xcomplex<f32>> {\n  return %a : tensor<4xcomplex<f32>>\n}",
    "index.mlir": "func.func @f(%a: index) -> index {\n  return %a : index\n}",
    "unranked.mlir": "func.func @f(%a: tensor<*xf32>) -> tensor<*xf32> {\n  return %a : tensor<*xf32>\n}",
    "no_results.mlir": "func.func @f(%a: tensor<4xf32>) {\n  return\n}",
    "huge.mlir": DYNAMIC,
    "blocks.mlir": """module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @k() kernel {
      gpu.return
    }
  }
  func.func @f(%a: tensor<4xf32>) -> tensor<4xf32> {
    %c1 = arith.constant 1 : index
    gpu.launch_func @kernels::@k blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)
    return %a : tensor<4xf32>
  }
}""",
    "static_huge.mlir": GOOD.replace("1x2x16x8", "4294967296x4294967296x16x8"),
    "unlowerable.mlir": "func.func @f(%a: tensor<4xf32>) -> tensor<4xf32> {\n  %u = ub.poison : memref<4xf32, 7>\n  %t = bufferization.to_tensor %u restrict : memref<4xf32, 7> to tensor<4xf32>\n  return %t : tensor<4xf32>\n}",
    "division.mlir": "func.func @f(%a: tensor<4xi32>, %b: tensor<4xi32>) -> tensor<4xi32> {\n  %c = arith.divsi %a, %b : tensor<4xi32>\n  return %c : tensor<4xi32>\n}",
    "recursion.mlir": "func.func @f(%a: tensor<4xf32>) -> tensor<4xf32> {\n  %r = func.call @f(%a) : (tensor<4xf32>) -> tensor<4xf32>\n  %s = arith.addf %r, %a : tensor<4xf32>\n  return %s : tensor<4xf32>\n}",
    "zero_i32.npy": npy((4,), "<i4"),
    "good.npy": npy(SHAPE),
    "empty.npy": b"",
    "short.npy": b"\x93NUMPY",
    "text.npy": "hello",
    "version9.npy": npy(SHAPE, version=b"\x09\0"),
    "f8.npy": npy(SHAPE, "<f8", size=8),
    "f2.npy": npy(SHAPE, "<f2", size=2),
    "big.npy": npy(SHAPE, ">f4"),
    "fortran.npy": npy(SHAPE, order="True"),
    "wrong_shape.npy": npy((1, 2, 8, 16)),
    "wrong_rank.npy": npy((2, 16, 8)),
    "truncated.npy": npy(SHAPE)[:-1],
    "long.npy": npy(SHAPE) + b"x",
    "header_only.npy": npy(SHAPE, data=b""),
    "record.npy": npy(SHAPE, header="{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1, 2, 16, 8)}"),
    "malformed.npy": npy(SHAPE, header="{'descr': '<f4', 'shape': "),
    "negative.npy": npy(SHAPE, header="{'descr': '<f4', 'fortran_order': False, 'shape': (1, -2, 16, 8)}"),
    "overflow.npy": npy(SHAPE, header="{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}"),
    "huge_header.npy": b"\x93NUMPY\2\0\xff\xff\xff\xff{}",
    "lying_header.npy": b"\x93NUMPY\1\0\xff\xff{}",
}

REST = ",{d}/good.npy,{d}/good.npy"
CASES = [
    # The program.
    ("no file", "", "there is no program; name a file, - for stdin, or --suite"),
    ("two files", "{d}/good.mlir {d}/good.mlir", "[Tt]oo many positional"),
    ("missing file", "{d}/none.mlir", "none.mlir.*No such file"),
    ("directory", "{d}", "[Ii]s a directory|directory"),
    ("empty file", "{d}/empty.mlir", "no function to run"),
    ("binary file", "{d}/binary.mlir", "not a valid program"),
    ("garbage bytecode", "{d}/bytecode.mlir", "not a valid program"),
    ("inline set", "{d}/inline_set.mlir", r"note: if this is an affine set with '>=', give it a name"),
    ("syntax", "{d}/syntax.mlir", r"syntax.mlir:2:\d+: error"),
    ("unknown op", "{d}/unknown_op.mlir", r"unknown_op.mlir:2:\d+: error.*flash.atention"),
    ("rank 2", "{d}/rank.mlir", r"rank.mlir:2:\d+: error"),
    ("head dimension", "{d}/head_dim.mlir", r"head_dim.mlir:2:\d+: error.*multiple"),
    ("no function", "{d}/no_function.mlir", "no function to run; write a public func.func"),
    ("private only", "{d}/private.mlir", "no function to run"),
    ("two functions to run ahead of time", "{d}/two.mlir --target=sm_80 -o {d}/k.ptx --bench", "2 public functions: @attention, @other; choose one"),
    ("two functions", "{d}/two.mlir", "2 public functions: @attention, @other; choose one with --function"),
    ("unknown function", "{d}/two.mlir --function=third", "no function @third.*@attention, @other"),
    ("external function", "{d}/external.mlir", "@g is declared but has no body"),
    ("memref", "{d}/memref.mlir", "argument 0 of @f has type memref<4xf32>; flash-run passes"),
    ("f8", "{d}/f8.mlir", "argument 0 of @f has type tensor<4xf8E5M2>"),
    ("complex", "{d}/complex.mlir", "argument 0 of @f has type"),
    ("index", "{d}/index.mlir", "argument 0 of @f has type index"),
    ("unranked", "{d}/unranked.mlir", r"argument 0 of @f has type tensor<\*xf32>"),
    ("no results", "{d}/no_results.mlir", "@f has no results"),
    ("sizes overflow", "{d}/static_huge.mlir", "more bytes than a 64-bit machine can address"),
    ("cannot be lowered", "{d}/unlowerable.mlir", "cannot be compiled|unlowerable.mlir:2"),
    ("division by zero", "{d}/division.mlir --inputs={d}/zero_i32.npy,{d}/zero_i32.npy", "divided an integer by zero"),
    ("recursion", "{d}/recursion.mlir", "ran out of stack|cannot be compiled"),
    # Shapes.
    ("no shape", "{d}/dynamic.mlir", "arguments of @attention have dynamic dimensions: 0 .*, 1 .*, 2 .*--shape 0=4x4x4x8 --shape 1=4x4x4x8 --shape 2=4x4x4x8"),
    ("static size", "{d}/dynamic.mlir " + SHAPES + "--shape=2=1x2x16x9", "dimension 3 of argument 2, which is fixed to 8"),
    ("shape rank", "{d}/dynamic.mlir --shape=0=1x2x16", "3 sizes for argument 0, which has rank 4"),
    ("shape index", "{d}/dynamic.mlir --shape=7=1x2x16x8", "names argument 7, but @attention has 3"),
    ("shape twice", "{d}/dynamic.mlir --shape=0=1x2x16x8 --shape=0=1x2x16x8", "sizes of argument 0 twice"),
    ("shape negative", "{d}/dynamic.mlir --shape=0=1x-2x16x8", "size -2 is negative"),
    ("shape malformed", "{d}/dynamic.mlir --shape=0=1x2xx8", "malformed"),
    ("shape without index", "{d}/dynamic.mlir --shape=1x2x3x8", "malformed"),
    ("shape too large", "{d}/dynamic.mlir --shape=0=99999999999999999999x1x1x8", "more than any memory holds"),
    ("shape overflow", "{d}/dynamic.mlir --shape=0=4000000000x4000000000x16x8", "more bytes than"),
    ("out of memory", "{d}/dynamic.mlir --shape=0=1x1x1000000000000x8 --shape=1=1x1x16x8 --shape=2=1x1x16x8", "out of memory.*smaller sizes"),
    ("reference out of memory", "{d}/dynamic.mlir --check --shape=0=1x1x900000000000x8 --shape=1=1x1x16x8 --shape=2=1x1x16x8", "fp64 reference need.*leave out --check"),
    ("shapes disagree", "{d}/dynamic.mlir " + SHAPES + "--shape=2=1x2x17x8", "lengths of key and value differ|key and value"),
    ("head counts", "{d}/dynamic.mlir --shape=0=1x3x16x8 --shape=1=1x2x16x8 --shape=2=1x2x16x8", "head"),
    # Files of inputs.
    ("too few inputs", "{d}/good.mlir --inputs={d}/good.npy", "names 1 file, but @attention has 3 arguments"),
    ("too many inputs", "{d}/good.mlir --inputs={d}/good.npy,{d}/good.npy" + REST, "names 4 files, but @attention has 3"),
    ("empty item", "{d}/good.mlir --inputs={d}/good.npy,", "empty item"),
    ("file does not fit", "{d}/dynamic.mlir --inputs={d}/wrong_shape.npy" + REST, r"wrong_shape.npy' has shape 1x2x8x16; expected one of tensor<\?x\?x\?x8xf32>"),
    ("file of dynamic argument", "{d}/dynamic.mlir --inputs={d}/short.npy" + REST, "short.npy' ends inside its .npy header"),
    ("missing npy", "{d}/good.mlir --inputs={d}/none.npy" + REST, "none.npy': No such file"),
    ("npy directory", "{d}/good.mlir --inputs={d}" + REST, "directory"),
    # Files that never end, or have no end to wait for.
    ("endless input", "{d}/good.mlir --inputs=/dev/zero" + REST, "'/dev/zero' is a device or a pipe; expected a .npy file"),
    ("endless input of a dynamic argument", "{d}/dynamic.mlir --inputs=/dev/zero" + REST, "'/dev/zero' is a device or a pipe"),
    ("input from a pipe", "{d}/good.mlir --inputs={d}/pipe" + REST, "pipe' is a device or a pipe"),
    ("endless program", "/dev/zero", "'/dev/zero': more than 64 MiB of a device or a pipe"),
    ("endless suite", "--suite=/dev/zero", "more than 64 MiB of a device or a pipe"),
    ("endless tuning file", "{d}/good.mlir --tuning-file=/dev/zero", "more than 64 MiB of a device or a pipe"),
    ("program directory", "{d}", "Is a directory"),
    ("suite directory", "--suite={d}", "Is a directory"),
] + [
    (f"{name}.npy", f"{{d}}/good.mlir --inputs={{d}}/{name}.npy" + REST, rf"{name}.npy' .*{message}")
    for name, message in [
        ("empty", "is empty"),
        ("short", "ends inside its .npy header"),
        ("text", "is not a .npy file"),
        ("version9", "version 9"),
        ("f8", r"dtype '<f8'; expected f32 \('<f4'\)"),
        ("f2", "dtype '<f2'; expected f32"),
        ("big", "big-endian"),
        ("fortran", "Fortran order; expected C order"),
        ("wrong_shape", "shape 1x2x8x16; expected 1x2x16x8"),
        ("wrong_rank", "shape 2x16x8; expected 1x2x16x8"),
        ("truncated", "1023 bytes of data; expected 1024"),
        ("long", "1025 bytes of data; expected 1024"),
        ("header_only", "0 bytes of data"),
        ("record", "holds records"),
        ("malformed", "malformed .npy header"),
        ("negative", "malformed .npy header"),
        ("overflow", "malformed .npy header"),
        ("huge_header", "ends inside its .npy header"),
        ("lying_header", "ends inside its .npy header"),
    ]
] + [
    # Files to write.
    ("too many outputs", "{d}/good.mlir --outputs={d}/a.npy,{d}/b.npy", "names 2 files, but @attention has 1 result"),
    ("output folder", "{d}/good.mlir --outputs={d}/none/a.npy", "cannot write.*no directory"),
    ("output is a folder", "{d}/good.mlir --outputs={d}", "is a directory"),
    ("json folder", "{d}/good.mlir --json={d}/none/a.json", "cannot write.*no directory"),
    ("empty json", "{d}/good.mlir --json=", "--json needs a file name"),
    ("same output twice", "{d}/good.mlir --outputs={d}/x --json={d}/x", "named twice"),
    ("failure after outputs are known", "{d}/dynamic.mlir --outputs={d}/a.npy --json={d}/a.json " + SHAPES + "--shape=2=1x2x17x8", "key and value"),
    # Flags.
    ("unknown flag", "{d}/good.mlir --chek", "Unknown command line argument '--chek'"),
    ("flag of LLVM", "{d}/good.mlir --print-after-all", "Unknown command line argument"),
    ("flag twice", "{d}/good.mlir --seed=1 --seed=2", "--seed is given twice"),
    ("seed", "{d}/good.mlir --seed=abc", "value invalid"),
    ("threads", "{d}/good.mlir --threads=0", "--threads=0 is not from 1 to 1024"),
    ("many threads", "{d}/good.mlir --threads=100000", "is not from 1 to 1024"),
    ("target", "{d}/good.mlir --target=tpu", "unknown target 'tpu'; the targets are"),
    ("second target", "{d}/good.mlir --target=cpu,tpu --check", "unknown target 'tpu'; the targets are"),
    ("empty target", "{d}/good.mlir --target=cpu,,emulate --check", "--target=cpu,,emulate has an empty item"),
    ("options of one target", "{d}/good.mlir --target=cpu,emulate --check --count-tiles", "--count-tiles counts the tiles of the CPU target"),
    ("figures of several targets", "{d}/good.mlir --target=cpu,emulate --check --json={d}/new.json", "--json is of one target; name one with --target"),
    ("several targets without a check", "{d}/good.mlir --target=cpu,emulate", "--target names several targets, which are for --check; name one"),
    ("several targets of stdin", "- --target=cpu,emulate --check", "stdin can be read for one only; name a file"),
    ("no driver", "{d}/good.mlir --target=sm_90a --cuda-driver={d}/none.so", "no NVIDIA driver: .*none.so was not found"),
    ("no driver to bench", "{d}/good.mlir --target=sm_80 --bench --cuda-driver={d}/none.so", "no NVIDIA driver"),
    ("not a driver", "{d}/good.mlir --target=sm_80 --cuda-driver={d}/good.npy", "the NVIDIA driver cannot be loaded"),
    ("level 2 of the CPU", "{d}/good.mlir --dump=l2", "the CPU target has no level 2 to dump; use --target=emulate"),
    ("emulated tile counts", "{d}/good.mlir --target=emulate --count-tiles", "counts the tiles of the CPU target; use --target=cpu"),
    ("level 2 on the CPU", "{d}/blocks.mlir", "at level 2 .*; use --target=emulate"),
    ("check of level 2", "{d}/blocks.mlir --target=emulate --check", "--check needs a program that says what to compute"),
    ("baseline of level 2", "{d}/blocks.mlir --target=emulate --baseline", "--baseline needs a program that says what to compute"),
    ("level above 2", "{d}/blocks.mlir --target=emulate --dump=l1", "there is no level above to dump"),
    ("dump stage", "{d}/good.mlir --dump=l0,l7", "no stage 'l7'; the stages are"),
    ("gpu stage on the CPU", "{d}/good.mlir --dump=ptx", "ptx is a stage of GPU targets"),
    ("level 3 on the CPU", "{d}/good.mlir --dump=l3", "l3 is a stage of GPU targets"),
    ("layout of an emulation", "{d}/good.mlir --target=emulate --layout=bnhd", "takes dense tensors only"),
    ("CPU stage on a GPU", "{d}/good.mlir --target=sm_80 --dump=asm", "linalg, llvm and asm are stages of the CPU target"),
    ("tiles on a GPU", "{d}/good.mlir --target=sm_80 --count-tiles", "counts the tiles of the CPU target; use --target=cpu"),
    ("layout on the CPU", "{d}/good.mlir --layout=bnhd", "the CPU target takes dense tensors only"),
    ("layout without a GPU", "{d}/good.mlir --target=auto --layout=bnhd --cuda-driver={d}/none.so", "--layout=bnhd needs a GPU, and the program does not run on one: no NVIDIA driver"),
    ("ptxas without a GPU", "{d}/good.mlir --target=auto --ptxas --cuda-driver={d}/none.so", "--ptxas needs a GPU, and"),
    ("ptxas on the CPU", "{d}/good.mlir --ptxas", "--ptxas assembles kernels for GPUs"),
    ("layout", "{d}/good.mlir --layout=nchw", "unknown layout 'nchw'; the layouts are bhnd and bnhd"),
    ("time-out", "{d}/good.mlir --timeout=0", "is not a number of seconds from 0 to 86400"),
    ("fill without value", "{d}/good.mlir --fill=0", "--fill=0 is malformed"),
    ("fill value", "{d}/good.mlir --fill=0=y3", "malformed"),
    ("fill row", "{d}/good.mlir --fill=0=1@a", "malformed"),
    ("fill argument", "{d}/good.mlir --fill=3=1", "--fill of argument 3: there are 3 arguments"),
    ("fill past the rows", "{d}/good.mlir --fill=0=1@16", "the row 16 is not from -16 to 15"),
    ("fill before the rows", "{d}/good.mlir --fill=0=1@-17", "the row -17 is not from -16 to 15"),
    ("fill of integers", "{d}/division.mlir --fill=0=nan", "its elements are integers"),
    # Ahead of time.
    ("kernels for the CPU", "{d}/good.mlir -o {d}/k.ptx", "-o writes kernels for GPUs; use --target=sm_90a"),
    ("kernels of another kind", "{d}/good.mlir --target=sm_80 -o {d}/k.so", "the name must end in .ptx or .cubin"),
    ("header alone", "{d}/good.mlir --target=sm_80 --header={d}/k.h", "give -o too"),
    ("kernel folder", "{d}/good.mlir --target=sm_80 -o {d}/none/k.ptx", "cannot write.*no directory"),
    ("header twice", "{d}/good.mlir --target=sm_80 -o {d}/k.ptx --header={d}/k.ptx", "named twice"),
    ("not for GPUs", "{d}/division.mlir --target=sm_80 -o {d}/k.ptx", "cannot be compiled|what no GPU target can launch"),
    # Suites.
    ("suite and program", "{d}/good.mlir --suite={d}/empty.mlir", "--suite names the programs; leave out"),
    ("missing suite", "--suite={d}/none.txt", "cannot read the suite .*none.txt"),
    ("empty suite", "--suite={d}/empty.mlir", "has no cases"),
    ("outputs of a suite", "--suite={d}/suite.txt --outputs=a.npy", "write them into the suite's lines"),
    ("first without a suite", "{d}/good.mlir --first=2", "--first is the number of a case of --suite"),
    ("first of none", "--suite={d}/suite.txt --first=0", "counted from 1"),
    ("first past the end", "--suite={d}/suite.txt --first=7", "--first=7: the suite has 6 cases"),
    ("suite in a suite", "--suite={d}/suite.txt", "a case of a suite cannot have '--suite=x'"),
    ("help in a suite", "--suite={d}/suite.txt", "a case of a suite cannot have '--help'"),
    ("unknown flag in a suite", "--suite={d}/suite.txt", "Unknown command line argument '--chek'"),
    ("case without program", "--suite={d}/suite.txt", "the case names no program"),
    ("NUL in a suite", "--suite={d}/nul.txt", "nul.txt' is no text: there is a NUL in line 2"),
    ("open quote in a suite", "--suite={d}/quotes.txt", "a quote is not closed"),
    ("open apostrophe in a suite", "--suite={d}/apostrophe.txt", "a quote is not closed"),
    ("backslash ends a line of a suite", "--suite={d}/backslash.txt", "a backslash ends the line"),
    ("bad case", "--suite={d}/suite.txt", "--threads=0 is not from 1 to 1024"),
    ("missing program in a suite", "--suite={d}/suite.txt", "none.mlir"),
    ("schedule key", "{d}/good.mlir --schedule=query=64", "no key 'query'; the keys are"),
    ("schedule value", "{d}/good.mlir --schedule=query_tile=63", "query_tile must be a multiple of 8.*got 63; the nearest is 64"),
    ("schedule range", "{d}/good.mlir --schedule=key_tile=4096", "key_tile must be .*got 4096; the nearest is 1024"),
    ("schedule zero", "{d}/good.mlir --schedule=key_tile=0", "the nearest is 8"),
    ("schedule warps", "{d}/good.mlir --target=sm_80 --schedule=warps=33", "warps must be from 1 to 32, got 33"),
    ("schedule stages", "{d}/good.mlir --target=emulate --schedule=stages=0", "stages must be from 1 to 16, got 0"),
    ("warps on the CPU", "{d}/good.mlir --schedule=warps=4", "the CPU target has query_tile, key_tile and products; the other keys are of block programs; use a GPU target"),
    ("stages without a GPU", "{d}/good.mlir --target=auto --schedule=stages=2 --cuda-driver={d}/none.so", "--schedule with keys of block programs needs a GPU, and the program does not run on one: no NVIDIA driver"),
    ("schedule features", "{d}/good.mlir --target=sm_90a --schedule=features=overlap|fast", "'overlap.fast' is no list of features"),
    ("features twice", "{d}/good.mlir --target=sm_90a --schedule=features=overlap,features=overlap", "--schedule: features is given twice"),
    ("emulated features", "{d}/good.mlir --target=emulate --schedule=features=specialize_warps", "the features specialize_warps need the target sm_90a and elements of 16 bits"),
    ("schedule of level 2", "{d}/blocks.mlir --target=emulate --schedule=query_tile=64", "where the tiles are cut already"),
    ("emulated schedule", "{d}/good.mlir --target=emulate --schedule=query_tile=8", "query_tile must be a multiple of 16 on tensor cores, got 8; the nearest is 16"),
    ("registers of a schedule", "{d}/good.mlir --target=sm_80 --dump=l2 --schedule=query_tile=256,key_tile=256,warps=1", r"need \d+ registers of each of 32 threads, and there are 223; choose smaller tiles or more warps"),
    ("memory of a schedule", "{d}/good.mlir --target=sm_80 --dump=l2 --schedule=key_tile=256,stages=16", "bytes of shared memory, and a block may have 166912; choose smaller tiles or fewer stages, such as key_tile = 160"),
    ("schedule text", "{d}/good.mlir --schedule=key_tile=big", "needs a number"),
    ("schedule twice", "{d}/good.mlir --schedule=key_tile=8,key_tile=8", "key_tile is given twice"),
]


def main():
    tool = sys.argv[1]
    failures = 0
    for name, arguments, message in CASES:
        with tempfile.TemporaryDirectory() as folder:
            for file, content in FILES.items():
                path = pathlib.Path(folder, file)
                path.write_bytes(content if isinstance(content, bytes) else content.encode())
            os.mkfifo(pathlib.Path(folder, "pipe"))
            command = [tool] + arguments.format(d=folder).split()
            if "--target" not in arguments:
                command.append("--target=cpu")
            try:
                process = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=60)
                code, text = process.returncode, (process.stderr + process.stdout).decode(errors="replace")
            except subprocess.TimeoutExpired:
                code, text = "timeout", ""
            written = {p.name for p in pathlib.Path(folder).iterdir()} - set(FILES) - {"pipe"}
            problems = []
            if code != 1:
                problems.append(f"exit status {code}")
            if "Stack dump" in text or "Assertion" in text:
                problems.append("crash")
            if not re.search(message, text):
                problems.append(f"no message like /{message}/")
            if written:
                problems.append(f"wrote {written}")
            if problems:
                failures += 1
                print(f"FAILED {name}: {', '.join(problems)}\n  {' '.join(command)}\n{text[:1500]}")
    print(f"{len(CASES) - failures} of {len(CASES)} bad inputs refused as they should")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
