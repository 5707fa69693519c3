"""Runs PTX on a machine without a GPU: the threads of one block after another, in numpy.

What the threads of random programs on tiles (linalg_tiles.py, row_tiles.py) compute is compared with numpy, as
programs.py does it for the levels above: here are the addresses, shuffles, barriers and instructions
of tensor cores that sm_80 has. An address out of range, one that is not aligned, and a barrier
that not all threads come to are findings, too. Kernels of warps with roles are for sm_90a and not run.

    ptx.py --seed S --first N --count 20

Threads that are at the same instruction carry it out together, those that are behind first; where lanes of a warp work
together, all of them. A register is a vector of u64, an element for each thread. Denormal numbers are kept, and
approximations are exact. A copy by cp.async is made as late as can be, at the wait for its group; until then nobody
may touch where it goes, other copies included.
"""
import argparse
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "Run" / "suite")]
import attentions
import programs

u64 = np.uint64
LOW = u64(0xFFFFFFFF)
UNSIGNED = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}
GUARD = 256  # Bytes between tensors, which nobody may touch.


class Fault(Exception):
    """What a GPU would not do, or this file does not know."""


# --- Numbers -----------------------------------------------------------------------


def to_float(bits, kind):
    """The numbers of registers, as f64."""
    if kind == "f32":
        return (bits & LOW).astype(np.uint32).view(np.float32).astype(np.float64)
    low = (bits & u64(0xFFFF)).astype(np.uint16)
    if kind == "f16":
        return low.view(np.float16).astype(np.float64)
    return (low.astype(np.uint32) << 16).view(np.float32).astype(np.float64)


def from_float(values, kind):
    single = np.asarray(values, np.float32)
    if kind == "f32":
        return single.view(np.uint32).astype(u64)
    if kind == "f16":
        return single.astype(np.float16).view(np.uint16).astype(u64)
    bits = single.view(np.uint32).astype(u64)
    rounded = (bits + u64(0x7FFF) + ((bits >> u64(16)) & u64(1))) >> u64(16)
    return np.where(np.isnan(single), u64(0x7FFF), rounded & u64(0xFFFF))


def signed(bits, width):
    return bits.view(np.int64) if width == 64 else (bits & LOW).astype(np.uint32).view(np.int32).astype(np.int64)


def integer(bits, kind):
    """As the type of an instruction has it: u32, b64, s32."""
    width = int(kind[1:])
    if kind[0] == "s":
        return signed(bits, width)
    return bits if width == 64 else bits & LOW


FLOATS = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "neg": np.negative, "abs": np.abs,
          "fma": lambda x, y, z: x * y + z, "ex2": np.exp2, "lg2": np.log2, "sqrt": np.sqrt, "tanh": np.tanh}
EXTREMES = {"min": (np.fmin, np.minimum), "max": (np.fmax, np.maximum)}  # The latter give NaN for one.
COMPARISONS = {"gt": np.greater, "ge": np.greater_equal, "lt": np.less, "le": np.less_equal, "eq": np.equal, "ne": np.not_equal}
BITS = {"add": np.add, "sub": np.subtract, "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
        "not": np.invert, "neg": lambda x: u64(0) - x}


# --- Programs ------------------------------------------------------------------------


def split(text):
    """At the commas outside of braces and brackets."""
    return [part.strip() for part in re.findall(r"(?:\{[^}]*\}|\[[^\]]*\]|[^,{\[])+", text)]


class Kernel:
    """The instructions of a PTX function: the predicate and whether it is negated, the name, the operands."""

    def __init__(self, text):
        header, body = re.search(r"\.entry \w+\((.*?)\)\n.*?\{(.*)\n\}", text, re.S).groups()
        self.parameters = re.findall(r"\w+_param_\d+", header)
        self.code, self.labels = [], {}
        body = re.sub(r"(\$\w+):", r"\1:;", re.sub(r"//.*|\s\.reg .*", "", body))
        for statement in filter(None, map(str.strip, body.split(";"))):
            if statement[-1] == ":":
                self.labels[statement[:-1]] = len(self.code)
                continue
            predicate, name, operands = re.match(r"(?:@(!?%p\d+)\s+)?(\S+)\s*(.*)", statement, re.S).groups()
            self.code.append((predicate, name, split(operands.replace("\n", " "))))


class Block:
    def __init__(self, kernel, threads, number, memory, arguments, shared_bytes):
        self.kernel, self.threads, self.number, self.arguments = kernel, threads, number, arguments
        # What nobody has written is NaN.
        self.spaces = {"global": memory, "shared": np.full(shared_bytes, 0xFF, np.uint8)}
        self.registers = {}
        # Groups of copies that each thread has committed. Copies: threads, their groups, places and bytes.
        self.groups, self.copies, self.is_pending = np.zeros(threads, int), [], np.zeros(shared_bytes, bool)

    def run(self):
        at, barrier = np.zeros(self.threads, int), np.full(self.threads, -1)
        running = np.ones(self.threads, bool)
        while running.any():
            ready = running & (barrier < 0)
            if not ready.any():
                raise Fault("some threads wait at a barrier that the others do not come to")
            # A label that threads meet at may stand before the branches that lead there.
            for here in np.unique(at[ready]):
                predicate, name, operands = self.kernel.code[here]
                mask = ready & (at == here)
                if name.startswith(("shfl", "mma", "ldmatrix")):
                    mask &= np.repeat((mask | ~running).reshape(-1, 32).all(axis=1), 32)
                if mask.any():
                    break
            else:
                raise Fault("some lanes wait for those that do not come")
            at[mask] += 1
            if predicate:
                mask &= self.registers[predicate.lstrip("!")] ^ (predicate[0] == "!")
            if name.startswith("bra"):
                at[mask] = self.kernel.labels[operands[0]]
            elif name == "ret":
                running &= ~mask
            elif name in ("bar.sync", "bar.red.or.pred", "bar.red.and.pred"):
                # A barrier that asks has a predicate before and behind its number and threads.
                asks = name != "bar.sync"
                result, *place, asked = operands if asks else [None, *operands, None]
                number = int(place[0])
                barrier[mask] = number
                arrived, needed = (barrier == number).sum(), int(place[1]) if len(place) > 1 else self.threads
                if arrived > needed:
                    raise Fault(f"{arrived} threads come to a barrier of {needed}")
                if arrived == needed:
                    here = np.nonzero(barrier == number)[0]
                    if asks:
                        values = self.registers[asked.lstrip("!")][here] ^ (asked[0] == "!")
                        answer = values.any() if ".or." in name else values.all()
                        self.set(result, here, np.full(len(here), answer))
                    barrier[here] = -1
            elif mask.any():
                self.execute(name.split("."), operands, np.nonzero(mask)[0])

    # Operands.

    def get(self, operand, threads):
        if operand in self.registers:
            return self.registers[operand][threads]
        if re.fullmatch(r"-?\d+", operand):
            value = int(operand) & 0xFFFFFFFFFFFFFFFF
        elif re.match("0[fx]", operand):
            value = int(operand[2:], 16)
        elif operand == "%tid.x":
            return threads.astype(u64)
        elif operand in ("%ctaid.x", "shared_memory"):
            value = self.number if operand == "%ctaid.x" else 0
        elif operand[0] == "%":
            value = 0  # Written on no way to here.
        else:
            raise Fault(f"unknown operand {operand}")
        return np.full(len(threads), value, u64)

    def set(self, operand, threads, value):
        if operand == "_":
            return
        if value.dtype != bool and not operand.startswith("%rd"):
            value = value & (u64(0xFFFF) if operand.startswith("%rs") else LOW)
        register = self.registers.setdefault(operand, np.zeros(self.threads, value.dtype))
        register[threads] = value

    def address(self, operand, threads):
        base, offset = re.fullmatch(r"\[(.*?)(?:\+(-?\d+))?\]", operand).groups()
        return self.get(base, threads).astype(np.int64) + int(offset or 0)

    def bytes_at(self, space, addresses, count):
        """Where the bytes are, and the memory; `addresses` are multiples of `count`."""
        memory = self.spaces[space]
        if space == "shared":
            addresses = addresses % 2**32
        if (addresses % count).any():
            raise Fault(f"an address is no multiple of {count}")
        if addresses.min(initial=0) < 0 or addresses.max(initial=0) + count > len(memory):
            raise Fault(f"an address in {space} memory is out of range")
        places = addresses[:, None] + np.arange(count)
        if space == "shared" and self.is_pending[places].any():
            raise Fault("shared memory is touched into which a copy is pending")
        return memory, places

    # Instructions.

    def execute(self, name, operands, threads):
        getattr(self, f"do_{name[0]}", self.do_arithmetic)(name, operands, threads)

    def do_arithmetic(self, name, operands, threads):
        kind, values = name[-1], [self.get(operand, threads) for operand in operands[1:]]
        if kind in ("f32", "f16", "bf16"):
            function = EXTREMES[name[0]]["NaN" in name] if name[0] in EXTREMES else FLOATS.get(name[0])
            values = [to_float(value, kind) for value in values]
        elif name[0] in EXTREMES:
            function = EXTREMES[name[0]][1]
            values = [integer(value, kind) for value in values]
        else:
            function = BITS.get(name[0])
        if not function:
            raise Fault(f"unknown instruction {'.'.join(name)}")
        result = function(*values)
        if kind in ("f32", "f16", "bf16"):
            result = from_float(result, kind)
        elif kind != "pred":
            result = result.astype(np.int64).view(u64)
        self.set(operands[0], threads, result)

    def do_ld(self, name, operands, threads):
        if name[1] == "param":
            self.set(operands[0], threads, np.full(len(threads), self.arguments[operands[1].strip("[]")], u64))
            return
        registers, width = split(operands[0].strip("{}")), int(name[-1][1:]) // 8
        memory, places = self.bytes_at(name[1], self.address(operands[1], threads), width * len(registers))
        words = memory[places].view(UNSIGNED[width])
        for i, register in enumerate(registers):
            self.set(register, threads, words[:, i].astype(u64))

    def do_st(self, name, operands, threads):
        registers, width = split(operands[1].strip("{}")), int(name[-1][1:]) // 8
        memory, places = self.bytes_at(name[1], self.address(operands[0], threads), width * len(registers))
        words = np.stack([self.get(register, threads) for register in registers], axis=1).astype(UNSIGNED[width])
        memory[places] = words.view(np.uint8)

    def do_cp(self, name, operands, threads):
        """cp.async of 16 bytes, their groups, and waits."""
        if name[2] == "commit_group":
            self.groups[threads] += 1
            return
        if name[2] == "wait_group":
            self.complete(threads, int(operands[0]))
            return
        counts = self.get(operands[3], threads).astype(int) if len(operands) > 3 else np.full(len(threads), 16)
        to, source = self.address(operands[0], threads), self.address(operands[1], threads)
        _, places = self.bytes_at("shared", to, 16)
        copied = counts > 0
        memory, sources = self.bytes_at("global", source[copied], 16)
        values = np.zeros(places.shape, np.uint8)
        values[copied] = memory[sources] * (np.arange(16) < counts[copied, None])
        self.is_pending[places] = True
        self.copies.append((threads, self.groups[threads], places, values))

    def complete(self, threads, left):
        """Makes the copies of all groups of the threads but the last `left`."""
        rest = []
        for owners, groups, places, values in self.copies:
            done = np.isin(owners, threads) & (groups < self.groups[owners] - left)
            self.spaces["shared"][places[done]] = values[done]
            self.is_pending[places[done]] = False
            if not done.all():
                rest.append((owners[~done], groups[~done], places[~done], values[~done]))
        self.copies = rest

    def do_mov(self, name, operands, threads):
        half = u64(int(name[-1][1:]) // 2)
        if operands[0][0] == "{":
            value = self.get(operands[1], threads)
            for i, register in enumerate(split(operands[0].strip("{}"))):
                self.set(register, threads, (value >> (half * u64(i))) & ((u64(1) << half) - u64(1)))
            return
        parts = [self.get(part, threads) for part in split(operands[1].strip("{}"))]
        self.set(operands[0], threads, parts[0] if len(parts) == 1 else parts[0] | (parts[1] << half))

    def do_cvt(self, name, operands, threads):
        to, source = name[-2:]
        values = [self.get(operand, threads) for operand in operands[1:]]
        if to in ("f16x2", "bf16x2"):
            high, low = (from_float(to_float(value, "f32"), to[:-2]) for value in values)
            result = low | (high << u64(16))
        elif source[-3:] in ("f32", "f16"):
            result = from_float(to_float(values[0], source), to)
        elif to == "f32":
            result = from_float(integer(values[0], source).astype(np.float64), to)
        else:
            result = integer(values[0], "u32" if source == "u16" else source).astype(np.int64).view(u64)
        self.set(operands[0], threads, result)

    def do_setp(self, name, operands, threads):
        kind, how = name[-1], name[1]
        x, y = (self.get(operand, threads) for operand in operands[1:])
        if kind in ("f32", "f16", "bf16"):
            x, y = to_float(x, kind), to_float(y, kind)
            unordered = np.isnan(x) | np.isnan(y)
            if how in ("num", "nan"):
                result = unordered ^ (how == "num")
            else:
                result = COMPARISONS[how[:2]](x, y) & ~unordered | unordered & (how[2:] == "u")
        else:
            result = COMPARISONS[how](integer(x, kind), integer(y, kind))
        self.set(operands[0], threads, result)

    def do_selp(self, name, operands, threads):
        x, y, condition = (self.get(operand, threads) for operand in operands[1:])
        self.set(operands[0], threads, np.where(condition, x, y))

    def do_shl(self, name, operands, threads):
        x, count = (self.get(operand, threads) for operand in operands[1:])
        self.set(operands[0], threads, np.where(count < 64, x << np.minimum(count, u64(63)), u64(0)))

    def do_shr(self, name, operands, threads):
        x, count = integer(self.get(operands[1], threads), name[-1]), self.get(operands[2], threads)
        self.set(operands[0], threads, (x >> np.minimum(count, u64(63)).astype(x.dtype)).astype(np.int64).view(u64))

    def do_mul(self, name, operands, threads):
        if name[-1] in ("f32", "f16", "bf16"):
            self.do_arithmetic(name, operands, threads)
            return
        x, y = (integer(self.get(operand, threads), name[-1]) for operand in operands[1:3])
        product = x * y
        if "hi" in name:
            product >>= product.dtype.type(32)
        product = product.astype(np.int64).view(u64)
        if len(operands) > 3:
            product = product + self.get(operands[3], threads)
        self.set(operands[0], threads, product)

    do_mad = do_mul

    def do_bfe(self, name, operands, threads):
        x, start, count = (self.get(operand, threads) for operand in operands[1:])
        field = (x >> start) & ((u64(1) << count) - u64(1))
        if name[-1][0] == "s":
            sign = u64(1) << (count - u64(1))
            field = (field ^ sign) - sign
        self.set(operands[0], threads, field)

    def do_shfl(self, name, operands, threads):
        """All lanes of a warp are there."""
        lanes, other = threads % 32, self.get(operands[2], threads).astype(int)
        source = threads - lanes + (lanes ^ other if name[2] == "bfly" else other)
        self.set(operands[0], threads, self.get(operands[1], np.arange(self.threads))[source])

    # Tensor cores: lane 4 g + c of each warp has row g and the columns 2 c and 2 c + 1 of a matrix.

    def do_ldmatrix(self, name, operands, threads):
        everyone = np.arange(self.threads)
        addresses = self.address(operands[1], everyone).reshape(-1, 32)
        for i, register in enumerate(split(operands[0].strip("{}"))):
            shared, places = self.bytes_at("shared", addresses[:, 8 * i:8 * i + 8].ravel(), 16)
            matrices = shared[places].view(np.uint16).reshape(-1, 8, 8).astype(u64)
            if "trans" in name:
                matrices = matrices.swapaxes(1, 2)
            pairs = matrices.reshape(-1, 2)
            self.set(register, threads, (pairs[:, 0] | (pairs[:, 1] << u64(16)))[threads])

    def do_mma(self, name, operands, threads):
        kind = name[-2]
        result, a, b, c = (split(operand.strip("{}")) for operand in operands)
        everyone = np.arange(self.threads)

        def matrix(registers, down, across):
            """Blocks of 8 x 4 registers, one below the other, then beside; registers of 16 bits are two columns."""
            blocks = []
            for register in registers:
                bits = self.get(register, everyone)
                if kind == "tf32" and registers is not c:
                    bits = bits & u64(0xFFFFE000)
                if kind == "tf32" or registers is c:
                    block = to_float(bits, "f32")
                else:
                    block = np.stack([to_float(bits >> u64(16 * half), kind) for half in range(2)], axis=-1)
                blocks.append(block.reshape(-1, 8, 4 if block.ndim == 1 else 8))
            rows = [np.concatenate(blocks[i::down], axis=2) for i in range(down)]
            return np.concatenate(rows, axis=1)
        # The two columns of an accumulator are registers of their own.
        sums = np.zeros((self.threads // 32, 16, 8))
        for i, register in enumerate(c):
            sums[:, 8 * (i // 2):8 * (i // 2) + 8, i % 2::2] = to_float(self.get(register, everyone), "f32").reshape(-1, 8, 4)
        total = matrix(a, 2, 2) @ matrix(b, 1, 2).swapaxes(1, 2) + sums
        for i, register in enumerate(result):
            own = total[:, 8 * (i // 2):8 * (i // 2) + 8, i % 2::2].reshape(-1)
            self.set(register, threads, from_float(own, "f32")[threads])


# --- Launches --------------------------------------------------------------------------


class View:
    """A memref: the address, sizes and strides in elements, and the bytes of an element."""

    def __init__(self, start, sizes, strides, width):
        self.start, self.sizes, self.strides, self.width = start, sizes, strides, width

    def transposed(self, order):
        return View(self.start, [self.sizes[i] for i in order], [self.strides[i] for i in order], self.width)


def launch(level3, ptx, inputs):
    """The outputs of a program of one kernel and static sizes, given what flash-run prints of it."""
    host = level3[:level3.index("gpu.func")]
    views, constants, outputs = {}, {}, []
    memory, used = np.full(1 << 24, 0xFF, np.uint8), GUARD

    def allocate(sizes, width):
        nonlocal used
        view = View(used, sizes, [int(np.prod(sizes[i + 1:])) for i in range(len(sizes))], width)
        used += -(-int(np.prod(sizes)) * width // GUARD) * GUARD + GUARD
        return view
    for name, array in zip(re.findall(r"(%arg\d+): tensor", host), inputs):
        views[name] = allocate(array.shape, array.itemsize)
        memory[views[name].start:views[name].start + array.nbytes] = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    for name, operation, rest in re.findall(r"(%\w+) = ([\w.]+)\s*(.*)", host):
        operand = re.match(r"%\w+", rest)
        if operation == "arith.constant":
            constants[name] = int(re.match(r"-?\d+", rest)[0])
        elif operation == "memref.alloc":
            sizes, element = re.search(r"memref<((?:\d+x)*)(\w+)", rest).groups()
            views[name] = allocate([int(size) for size in sizes.split("x")[:-1]], 4 if element == "f32" else 2)
            outputs.append(views[name])
        elif operation in ("memref.cast", "bufferization.to_buffer", "memref.assume_alignment"):
            views[name] = views[operand[0]]
        elif operation == "memref.transpose":
            order = re.search(r"-> \(([^)]*)\)", rest)[1]
            views[name] = views[operand[0]].transposed([int(dim.strip()[1:]) for dim in order.split(",")])
    blocks, threads, shared, operands = re.search(
        r"blocks in \((%\w+),.*? threads in \((%\w+),[^)]*\)\s*(?:dynamic_shared_memory_size (%\w+))?\s*args\((.*)\)", host).groups()
    # A memref is its address and those strides that its type leaves open.
    values = []
    for name, strides in re.findall(r"(%\w+) : (?:memref<[^>]*?strided<\[([^\]]*)\])?", operands):
        if name in constants:
            values.append(constants[name])
            continue
        values.append(views[name].start)
        values += [own for own, known in zip(views[name].strides, strides.split(",")) if known.strip() == "?"]
    kernel = Kernel(ptx)
    if len(values) != len(kernel.parameters):
        raise Fault(f"{len(values)} arguments for {len(kernel.parameters)} parameters")
    for number in range(constants[blocks]):
        Block(kernel, constants[threads], number, memory, dict(zip(kernel.parameters, values)), constants.get(shared, 0)).run()
    return [memory[view.start:view.start + int(np.prod(view.sizes)) * view.width].view(UNSIGNED[view.width]).reshape(view.sizes)
            for view in outputs]


def check(program, tool, folder):
    """What is wrong, None if nothing is; or False for a program that is refused."""
    file = folder / "program.mlir"
    file.write_text(program.text)
    texts = []
    for level in ("l3", "ptx"):
        done = subprocess.run([tool, str(file), "--target=sm_80", f"--dump={level}"], capture_output=True, text=True)
        if done.returncode:
            return False
        texts.append(done.stdout)
    try:
        raw = launch(*texts, [attentions.to_file(array, element) for _, array, element in program.arguments])
    except Fault as fault:
        return str(fault)
    with np.errstate(invalid="ignore"):
        results = [to_float(bits.astype(u64), element).reshape(bits.shape) for bits, (_, element) in zip(raw, program.outputs)]
    return program.compare(results)[0]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default=str(HERE.parent.parent / "build" / "bin"), help="where flash-run is")
    parser.add_argument("--seed", default="ptx")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=20, help="of programs that run")
    arguments = parser.parse_args()
    np.seterr(all="ignore")
    runs, bad, number = 0, 0, arguments.first
    while runs < arguments.count:
        program = programs.draw(random.Random(f"{arguments.seed}/{number}"), "linalg")
        number += 1
        if program.targets or "?" in program.text.splitlines()[0]:
            continue
        with tempfile.TemporaryDirectory() as folder:
            wrong = check(program, os.path.join(arguments.bin, "flash-run"), pathlib.Path(folder))
        if wrong is False:
            continue
        runs += 1
        if wrong:
            bad += 1
            print(f"program {number - 1}: {wrong}", flush=True)
    print(f"ptx: {runs} programs, {bad} bad")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
