"""Runs PTX on a machine without a GPU: thread by thread, in numpy.

    ptx.py --seed S --first N --count 20     random programs on tiles
    ptx.py --suite DIR/suite.txt --jobs 2    cases that suite.py [--gradients] --write DIR has written
    ptx.py --program FILE                    a program that is linked with the driver

This is the GPU of the driver in unittests/FakeCuda.cpp, which flash-run loads: hosts launch kernels as on any other.
What the threads of random programs (linalg_tiles.py, row_tiles.py) compute is compared with numpy, as programs.py does
it for the levels above, and cases of the suite with fp64, by flash-run --check: here are the addresses, shuffles,
barriers and instructions of tensor cores that sm_80 has. An address out of range, one that is not aligned, and a
barrier that not all threads come to are findings, too. A case that flash-run refuses for sm_80, or with an instruction
that this file does not know, is named and counted as not run.

Threads that are at the same instruction carry it out together, those that are behind first; where lanes of a warp work
together, all of them. Several blocks run at once. A register is a vector of u64, an element for each thread. Denormal
numbers are kept, and approximations are exact. A copy by cp.async is made as late as can be, at the wait for its group;
until then nobody may touch where it goes, other copies included.
"""
import argparse
import collections
import concurrent.futures
import functools
import hashlib
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
RED_ZONE = 4096  # Bytes of each allocation at both ends that nobody may touch if flash-run has --check.
MOST_THREADS = 2048  # Of the blocks that run at once.


class Fault(Exception):
    """What a GPU would not do."""


class Unknown(Exception):
    """What this file does not know."""


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
    """There is one NaN only: which one numpy gives depends on where arrays lie."""
    single = np.asarray(values, np.float32)
    if kind == "f16":
        bits = single.astype(np.float16).view(np.uint16).astype(u64)
    else:
        bits = single.view(np.uint32).astype(u64)
    if kind == "bf16":
        bits = ((bits + u64(0x7FFF) + ((bits >> u64(16)) & u64(1))) >> u64(16)) & u64(0xFFFF)
    return np.where(np.isnan(single), u64(0x7FFFFFFF if kind == "f32" else 0x7FFF), bits)


def signed(bits, width):
    return bits.view(np.int64) if width == 64 else (bits & LOW).astype(np.uint32).view(np.int32).astype(np.int64)


def integer(bits, kind):
    """As the type of an instruction has it: u32, b64, s32."""
    width = int(kind[1:])
    if kind[0] == "s":
        return signed(bits, width)
    return bits if width == 64 else bits & LOW


FLOATS = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "neg": np.negative, "abs": np.abs,
          "fma": lambda x, y, z: x * y + z, "rcp": np.reciprocal, "ex2": np.exp2,
          "lg2": np.log2, "sqrt": np.sqrt, "tanh": np.tanh}
EXTREMES = {"min": (np.fmin, np.minimum), "max": (np.fmax, np.maximum)}  # The latter give NaN for one.
COMPARISONS = {"gt": np.greater, "ge": np.greater_equal, "lt": np.less, "le": np.less_equal,
               "eq": np.equal, "ne": np.not_equal}
BITS = {"add": np.add, "sub": np.subtract, "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
        "not": np.invert, "neg": lambda x: u64(0) - x,
        "popc": lambda x: sum((x >> u64(i)) & u64(1) for i in range(64))}
# Of integers, rounded to zero.
QUOTIENTS = {"div": lambda x, y: (x - np.fmod(x, y)) // y, "rem": np.fmod}


# --- Programs ------------------------------------------------------------------------


def split(text):
    """At the commas outside of braces and brackets."""
    return [part.strip() for part in re.findall(r"(?:\{[^}]*\}|\[[^\]]*\]|[^,{\[])+", text)]


class Kernel:
    """The instructions of a PTX function: the predicate and whether it is negated, the name, the operands."""

    def __init__(self, text, name):
        self.name = name
        header, body = re.search(rf"\.entry {name}\((.*?)\)\n.*?\{{(.*?)\n\}}", text, re.S).groups()
        # Parameters: names, offsets and bytes.
        self.parameters, end = {}, 0
        for bits, parameter in re.findall(r"\.param \.[ubs](\d+) .*?(\w+_param_\d+)", header):
            size = int(bits) // 8
            start = -(-end // size) * size
            end = start + size
            self.parameters[parameter] = slice(start, end)
        self.code, self.labels = [], {}
        body = re.sub(r"(\$\w+):", r"\1:;", re.sub(r"//.*|\s\.reg .*", "", body))
        for statement in filter(None, map(str.strip, body.split(";"))):
            if statement[-1] == ":":
                self.labels[statement[:-1]] = len(self.code)
                continue
            predicate, name, operands = re.match(r"(?:@(!?%p\d+)\s+)?(\S+)\s*(.*)", statement, re.S).groups()
            self.code.append((predicate, name, split(operands.replace("\n", " "))))


class Memory:
    """Allocations; kernels see their addresses: where each starts and ends, and where it is in `data`."""

    def __init__(self, addresses, sizes, data, red_zone):
        self.addresses, self.places, self.data = np.array(addresses), np.cumsum([0] + sizes[:-1]), data
        self.starts, self.ends = self.addresses + red_zone, self.addresses + np.array(sizes) - red_zone

    def find(self, addresses, count):
        own = np.searchsorted(self.addresses, addresses, "right") - 1
        if ((own < 0) | (addresses < self.starts[own]) | (addresses + count > self.ends[own])).any():
            raise Fault("an address in global memory is out of range")
        return addresses - self.addresses[own] + self.places[own]


class Blocks:
    """Some blocks of a grid; those with the numbers from `first` on."""

    def __init__(self, kernel, threads, first, count, memory, arguments, shared_bytes):
        self.kernel, self.first, self.count, self.arguments = kernel, first, count, arguments
        self.block_threads, self.threads, self.shared_bytes = threads, threads * count, shared_bytes
        self.memory = memory
        # Of one block after the other. What nobody has written is NaN.
        self.shared = np.full(shared_bytes * count, 0xFF, np.uint8)
        self.registers = {}
        self.blocks = np.arange(self.threads) // threads
        # Groups of copies that each thread has committed. Copies: threads, their groups, addresses and bytes.
        self.groups, self.copies, self.is_pending = np.zeros(self.threads, int), [], np.zeros(len(self.shared), bool)

    def run(self):
        at, barrier = np.zeros(self.threads, int), np.full(self.threads, -1)
        running = np.ones(self.threads, bool)
        while running.any():
            ready = running & (barrier < 0)
            if not ready.any():
                raise Fault("some threads wait at a barrier that the others do not come to")
            # A label that threads meet at may stand before the branches that lead there.
            for here in self.order(at[ready]):
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
                self.meet(name, operands, mask, barrier)
            elif mask.any():
                self.execute(name.split("."), operands, np.nonzero(mask)[0])

    @staticmethod
    def order(at):
        first = at.min()
        yield first
        yield from np.unique(at[at > first])

    def meet(self, name, operands, mask, barrier):
        """A barrier that votes has a predicate before and behind its number and threads."""
        asks = name != "bar.sync"
        result, *place, asked = operands if asks else [None, *operands, None]
        number = int(place[0])
        barrier[mask] = number
        needed = int(place[1]) if len(place) > 1 else self.block_threads
        arrived = np.bincount(self.blocks[barrier == number], minlength=self.count)
        if arrived.max() > needed:
            raise Fault(f"{arrived.max()} threads come to a barrier of {needed}")
        here = np.nonzero((barrier == number) & (arrived == needed)[self.blocks])[0]
        if asks and len(here):
            values = self.registers[asked.lstrip("!")][here] ^ (asked[0] == "!")
            true = np.bincount(self.blocks[here[values]], minlength=self.count)
            self.set(result, here, (true > 0 if ".or." in name else true == needed)[self.blocks[here]])
        barrier[here] = -1

    # Operands.

    def get(self, operand, threads):
        if operand in self.registers:
            return self.registers[operand][threads]
        if re.fullmatch(r"-?\d+", operand):
            value = int(operand) & 0xFFFFFFFFFFFFFFFF
        elif re.match("0[fx]", operand):
            value = int(operand[2:].rstrip("U"), 16)
        elif operand == "%tid.x":
            return (threads % self.block_threads).astype(u64)
        elif operand == "%ctaid.x":
            return (self.first + self.blocks[threads]).astype(u64)
        elif operand == "shared_memory":
            value = 0
        elif re.fullmatch(r"%[a-z]+\d+", operand):
            value = 0  # Written on no way to here.
        else:
            raise Unknown(f"unknown operand {operand}")
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

    def bytes_at(self, space, addresses, count, threads):
        """Where the bytes are, and the memory; `addresses` are multiples of `count`."""
        if (addresses % count).any():
            raise Fault(f"an address is no multiple of {count}")
        if space == "global":
            return self.memory.data, self.memory.find(addresses, count)[:, None] + np.arange(count)
        if space != "shared":
            raise Unknown(f"unknown memory {space}")
        addresses = addresses % 2**32
        if addresses.max(initial=0) + count > self.shared_bytes:
            raise Fault("an address in shared memory is out of range")
        places = (addresses + self.blocks[threads] * self.shared_bytes)[:, None] + np.arange(count)
        if self.is_pending[places].any():
            raise Fault("shared memory is touched into which a copy is pending")
        return self.shared, places

    # Instructions.

    def execute(self, name, operands, threads):
        try:
            getattr(self, f"do_{name[0]}", self.do_arithmetic)(name, operands, threads)
        except Fault as fault:
            raise Fault(f"{fault} ({'.'.join(name)} {', '.join(operands)} of kernel {self.kernel.name})")

    def do_arithmetic(self, name, operands, threads):
        kind, values = name[-1], [self.get(operand, threads) for operand in operands[1:]]
        if kind in ("f32", "f16", "bf16"):
            function = EXTREMES[name[0]]["NaN" in name] if name[0] in EXTREMES else FLOATS.get(name[0])
            values = [to_float(value, kind) for value in values]
        elif name[0] in EXTREMES:
            function = EXTREMES[name[0]][1]
            values = [integer(value, kind) for value in values]
        elif name[0] in QUOTIENTS:
            function = QUOTIENTS[name[0]]
            values = [integer(value, kind) for value in values]
        else:
            function = BITS.get(name[0])
        if not function:
            raise Unknown(f"unknown instruction {'.'.join(name)}")
        result = function(*values)
        if kind in ("f32", "f16", "bf16"):
            result = from_float(result, kind)
        elif kind != "pred":
            result = result.astype(np.int64).view(u64)
        self.set(operands[0], threads, result)

    def do_ld(self, name, operands, threads):
        name = [part for part in name if part != "volatile"]
        if name[1] == "param":
            self.set(operands[0], threads, np.full(len(threads), self.arguments[operands[1].strip("[]")], u64))
            return
        registers, width = split(operands[0].strip("{}")), int(name[-1][1:]) // 8
        memory, places = self.bytes_at(name[1], self.address(operands[1], threads), width * len(registers), threads)
        words = memory[places].view(UNSIGNED[width])
        for i, register in enumerate(registers):
            self.set(register, threads, words[:, i].astype(u64))

    def do_st(self, name, operands, threads):
        registers, width = split(operands[1].strip("{}")), int(name[-1][1:]) // 8
        memory, places = self.bytes_at(name[1], self.address(operands[0], threads), width * len(registers), threads)
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
        _, places = self.bytes_at("shared", to, 16, threads)
        copied = counts > 0
        memory, sources = self.bytes_at("global", source[copied], 16, threads[copied])
        values = np.zeros(places.shape, np.uint8)
        values[copied] = memory[sources] * (np.arange(16) < counts[copied, None])
        self.is_pending[places] = True
        self.copies.append((threads, self.groups[threads], places, values))

    def complete(self, threads, left):
        """Makes the copies of all groups of the threads but the last `left`."""
        rest = []
        for owners, groups, places, values in self.copies:
            done = np.isin(owners, threads) & (groups < self.groups[owners] - left)
            self.shared[places[done]] = values[done]
            self.is_pending[places[done]] = False
            if not done.all():
                rest.append((owners[~done], groups[~done], places[~done], values[~done]))
        self.copies = rest

    def do_mov(self, name, operands, threads):
        if name[-1] == "pred":
            self.set(operands[0], threads, self.get(operands[1], threads))
            return
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

    def do_prmt(self, name, operands, threads):
        low, high, bytes_of = (self.get(operand, threads) for operand in operands[1:])
        both, value = (low & LOW) | (high << u64(32)), u64(0)
        for i in range(4):
            byte = both >> u64(8) * (bytes_of >> u64(4 * i) & u64(7)) & u64(0xFF)
            value = value | byte << u64(8 * i)
        self.set(operands[0], threads, value)

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
        if "hi" in name and name[-1].endswith("64"):
            product = ((x.astype(object) * y.astype(object)) >> 64).astype(x.dtype)
        else:
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
        warps = np.unique(threads // 32)
        lanes = (warps[:, None] * 32 + np.arange(32)).ravel()
        addresses = self.address(operands[1], lanes).reshape(-1, 32)
        for i, register in enumerate(split(operands[0].strip("{}"))):
            owners = lanes.reshape(-1, 32)[:, 8 * i:8 * i + 8].ravel()
            shared, places = self.bytes_at("shared", addresses[:, 8 * i:8 * i + 8].ravel(), 16, owners)
            matrices = shared[places].view(np.uint16).reshape(-1, 8, 8).astype(u64)
            if "trans" in name:
                matrices = matrices.swapaxes(1, 2)
            pairs = matrices.reshape(-1, 2)
            self.set(register, lanes, pairs[:, 0] | (pairs[:, 1] << u64(16)))

    def do_mma(self, name, operands, threads):
        kind = name[-2]
        result, a, b, c = (split(operand.strip("{}")) for operand in operands)
        lanes = (np.unique(threads // 32)[:, None] * 32 + np.arange(32)).ravel()

        def number(bits):
            """Of an accumulator."""
            return integer(bits, "s32").astype(np.float64) if kind == "s8" else to_float(bits, "f32")

        def matrix(registers, down, across):
            """Blocks of 8 x 4 registers, one below the other, then beside; registers of 16 bits are two columns, of 8 bits four."""
            blocks = []
            for register in registers:
                bits = self.get(register, lanes)
                if kind == "tf32":
                    block = to_float(bits & u64(0xFFFFE000), "f32")
                elif kind == "s8":
                    block = np.stack([(bits >> u64(8 * i)).astype(np.uint8).view(np.int8) for i in range(4)], axis=-1).astype(np.float64)
                else:
                    block = np.stack([to_float(bits >> u64(16 * half), kind) for half in range(2)], axis=-1)
                blocks.append(block.reshape(-1, 8, 4 if block.ndim == 1 else 4 * block.shape[-1]))
            rows = [np.concatenate(blocks[i::down], axis=2) for i in range(down)]
            return np.concatenate(rows, axis=1)
        # The two columns of an accumulator are registers of their own.
        sums = np.zeros((len(lanes) // 32, 16, 8))
        for i, register in enumerate(c):
            part = number(self.get(register, lanes))
            sums[:, 8 * (i // 2):8 * (i // 2) + 8, i % 2::2] = part.reshape(-1, 8, 4)
        total = matrix(a, 2, 2) @ matrix(b, 1, 2).swapaxes(1, 2) + sums
        for i, register in enumerate(result):
            own = total[:, 8 * (i // 2):8 * (i // 2) + 8, i % 2::2].reshape(-1)
            self.set(register, lanes, own.astype(np.int64).view(u64) if kind == "s8" else from_float(own, "f32"))


# --- Launches --------------------------------------------------------------------------


@functools.lru_cache(maxsize=64)
def parse(ptx, name):
    return Kernel(ptx.decode(), name)


def launch(kernel, grid, threads, shared_bytes, parameters, memory):
    arguments = {name: int.from_bytes(parameters[place], "little") for name, place in kernel.parameters.items()}
    at_once = max(1, MOST_THREADS // threads)
    for first in range(0, grid, at_once):
        Blocks(kernel, threads, first, min(at_once, grid - first), memory, arguments, shared_bytes).run()


class Gpu:
    """Runs the kernels that programs launch on the driver of FakeCuda.cpp."""

    def __init__(self, tools):
        self.tool = os.path.join(tools, "flash-run")
        self.driver = os.path.join(tools, "..", "unittests", "libFakeCudaAmpere.so")

    def flash_run(self, arguments, red_zone):
        command = [self.tool, *arguments, "--target=sm_80", "--threads=1", f"--cuda-driver={self.driver}"]
        return self.run(command, red_zone)

    def run(self, command, red_zone):
        """The status and what was printed; how often kernels were launched is `launches`."""
        self.launches, self.results, self.red_zone = 0, {}, red_zone
        take, requests = os.pipe()
        answers, give = os.pipe()
        with tempfile.TemporaryFile() as printed, os.fdopen(take, "rb") as source, os.fdopen(give, "wb") as target:
            process = subprocess.Popen(command, stdout=printed, stderr=printed, pass_fds=(requests, answers),
                                       env=os.environ | {"FAKE_KERNELS": f"{requests},{answers}"})
            os.close(requests)
            os.close(answers)
            try:
                while line := source.readline():
                    target.write(self.answer(line.decode().split(), source))
                    target.flush()
            except BaseException:
                process.kill()
                raise
            finally:
                process.wait()
            printed.seek(0)
            return process.returncode, printed.read().decode(errors="replace")

    def answer(self, line, source):
        """What memory is after a launch."""
        (*grid, threads, wide, deep, shared_bytes, ptx_bytes, parameter_bytes), name = map(int, line[:9]), line[9]
        addresses, sizes = ([int(number) for number in line[start::2]] for start in (10, 11))
        ptx, parameters, memory = source.read(ptx_bytes), source.read(parameter_bytes), source.read(sum(sizes))
        if wide * deep * grid[1] * grid[2] > 1:
            raise Unknown("a grid or blocks of several dimensions")
        self.launches += 1
        # With --check there are two runs, which do the same.
        key = hashlib.sha256(b" ".join([repr(line).encode(), ptx, parameters, memory])).digest()
        if key not in self.results:
            data = np.frombuffer(memory, np.uint8).copy()
            allocations = Memory(addresses, sizes, data, self.red_zone)
            launch(parse(ptx, name), grid[0], threads, shared_bytes, parameters, allocations)
            self.results[key] = data.tobytes()
        return self.results[key]


# --- Programs that run ------------------------------------------------------------------


# What is wrong with a program, "" if nothing is; and why it was not run, if so.
Result = collections.namedtuple("Result", "name wrong refusal", defaults=("", ""))


def run(gpu, name, command, red_zone, check):
    """Runs flash-run; `check` gets what it prints and returns what is wrong with the results."""
    np.seterr(all="ignore")
    try:
        status, printed = gpu.flash_run(command, red_zone)
    except Fault as fault:
        return Result(name, wrong=str(fault))
    except Unknown as unknown:
        return Result(name, refusal=str(unknown))
    error = next((line for line in printed.splitlines() if "error: " in line), f"status {status}\n{printed}")
    if status in (0, 1) and not gpu.launches:
        return Result(name, refusal=error if status else "no kernel is launched")
    return Result(name, wrong=error if status else check(printed))


def run_random(task):
    number, arguments = task
    name = f"program {number}"
    program = programs.draw(random.Random(f"{arguments.seed}/{number}"), "linalg")
    if program.targets:
        return Result(name, refusal="its warps have roles")
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "program.mlir").write_text(program.text)
        inputs, outputs = ([str(folder / f"{name}.npy") for name, *_ in tensors]
                           for tensors in (program.arguments, program.outputs))
        for file, (_, array, element) in zip(inputs, program.arguments):
            np.save(file, attentions.to_file(array, element))

        def check(printed):
            results = [attentions.from_file(np.load(file), element)
                       for file, (_, element) in zip(outputs, program.outputs)]
            return program.compare(results)[0] or ""
        command = [str(folder / "program.mlir"), f"--inputs={','.join(inputs)}", f"--outputs={','.join(outputs)}"]
        return run(Gpu(arguments.bin), name, command, 0, check)


def run_case(task):
    (file, *flags), arguments = task

    def check(printed):
        return "" if "check: ok" in printed else printed
    return run(Gpu(arguments.bin), file, [str(arguments.suite.parent / file), *flags], RED_ZONE, check)


def run_program(gpu, file):
    np.seterr(all="ignore")
    status, printed = gpu.run([file], 0)
    print(f"{printed}ptx: {gpu.launches} launches")
    return status


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default=str(HERE.parent.parent / "build" / "bin"), help="where flash-run is")
    parser.add_argument("--seed", default="ptx", help="of random programs")
    parser.add_argument("--suite", type=pathlib.Path, metavar="FILE", help="run the cases of suite.txt instead")
    parser.add_argument("--program", metavar="FILE", help="run this instead; the status is its own")
    parser.add_argument("--only", default="", help="run the cases whose name contains this")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, help="of programs that run (20), or of cases (all)")
    parser.add_argument("--jobs", type=int, default=1)
    arguments = parser.parse_args()
    if arguments.program:
        return run_program(Gpu(arguments.bin), arguments.program)
    runs, bad, refusals = 0, 0, collections.Counter()
    with concurrent.futures.ProcessPoolExecutor(arguments.jobs) as pool:
        def run_all(what, tasks):
            nonlocal runs, bad
            for result in pool.map(what, ((task, arguments) for task in tasks)):
                runs += not result.refusal
                bad += bool(result.wrong)
                if result.wrong:
                    print(f"{result.name}: {result.wrong}", flush=True)
                elif result.refusal and arguments.suite:
                    print(f"{result.name} was not run: {result.refusal}", flush=True)
                elif result.refusal:
                    refusals[programs.kind_of(result.refusal)] += 1
        if arguments.suite:
            cases = [line.split() for line in arguments.suite.read_text().splitlines() if line and line[0] != "#"]
            cases = [case for case in cases if arguments.only in case[0]][arguments.first:][:arguments.count]
            run_all(run_case, cases)
            print(f"ptx: {runs} of {len(cases)} cases were run, {bad} bad")
            return 1 if bad or not runs else 0
        count, first = 20 if arguments.count is None else arguments.count, arguments.first
        while runs < count:
            numbers = range(first, first + count - runs)
            first = numbers.stop
            run_all(run_random, numbers)
    for kind, times in refusals.most_common():
        print(f"not run {times} times: {kind}")
    print(f"ptx: {runs} programs, {bad} bad")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
