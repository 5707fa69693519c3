"""Feeds mutated programs and arrays to the tools and looks for crashes.

The seeds are the example programs, the dialect's tests and small .npy files.
Each input is a seed (or two, spliced) changed at the level of bytes, tokens or
lines. It goes to flash-opt (round trip, or this project's pipelines, parts of them
and random lists of passes) or to flash-run, where that is built. A run is bad when it ends by a
signal, reports an assertion or a sanitizer finding, or takes too long; that a
tool refuses an input is its job. The same --seed gives the same inputs.

Only passes of this project are drawn: crashes of upstream passes on arbitrary
input are upstream's, see docs/testing.md.
"""
import argparse
import collections
import concurrent.futures
import glob
import io
import math
import os
import random
import re
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
ALARMS = re.compile(
    rb"AddressSanitizer|UndefinedBehaviorSanitizer|LeakSanitizer|runtime error:"
    rb"|Assertion `|UNREACHABLE executed|LLVM ERROR|PLEASE submit a bug report|terminate called"
)
# A compiled program may fault by its own doing (an extract out of range, say);
# flash-run then says so. These are counted apart, for a person to look at.
FAULT = re.compile(rb"the program (accessed memory|executed an illegal)")
TOKEN = re.compile(r"[%#@^!]?[A-Za-z_][\w.$]*|[-+]?\d+(?:\.\d+(?:[eE][-+]?\d+)?)?|\"[^\"\n]*\"|->|[^\w\s]|\s+")
WORDS = """0 1 -1 7 8 64 65 256 257 1024 2147483648 9223372036854775807 -9223372036854775808
99999999999999999999 1.0 -0.0 1.0e400 0x7FC00000 ? x * [] () {} < > , : -> : index f16 bf16 f32 f64 i1 i32 i64
tensor<?x?x?x64xf32> tensor<*xf32> tensor<4xf32> tensor<2x4x8x64xf16> tensor<0x4x8x64xf32> tensor<f32>
vector<4xf32> memref<4xf32> none mask lengths sink scale score leading(batch) leading(heads) keys at of
mask(#flash.full) mask(#flash.causal<top_left>) mask(#flash.prefix<0>) scale(0.0) scale(-1.0e300)
func.func return flash.yield""".split() + [
    "schedule(<query_tile = 8, key_tile = 8>)",
    "schedule(<query_tile = 1024, key_tile = 1024>)",
    "mask(#flash.window<left = 0, right = 0>)",
    "mask(#flash.any_of<[#flash.causal, #flash.prefix<3>]>)",
    "mask(#flash.all_of<[#flash.causal, #flash.window<left = 5>]>)",
    "mask(#flash.affine<affine_set<(b,h,i,j)[nq,nk]:(i floordiv 7 - j mod 5 == 0)>>)",
    "mask(#flash.affine<affine_set<(b,h,i,j)[nq,nk]:(1 == 0)>>)",
    "at[0, 0, 0, 0] of[1, 1]",
]


class Mutator:
    def __init__(self, rng, seeds):
        self.rng, self.seeds = rng, seeds

    def text(self):
        text = self.rng.choice(self.seeds)
        # What the parser refuses never reaches a pass: most inputs have other
        # numbers at most.
        if self.rng.random() < 0.3:
            return text
        steps = [self.number] if self.rng.random() < 0.6 else [self.tokens, self.tokens, self.tokens, self.number, self.lines,
                                                               self.bytes]
        for _ in range(self.rng.choice([1, 1, 1, 2, 2, 3, 6])):
            step = self.rng.choice(steps)
            text = step(text)
        return text

    def number(self, text):
        found = list(re.finditer(r"\d+", text))
        if not found:
            return text
        spot = self.rng.choice(found)
        value = self.rng.choice(["0", "1", "2", "3", "5", "8", "16", "63", "64", "128", "1000", "?", "-1",
                                 "1073741824", "9223372036854775807"])
        # A size usually occurs in several types; change all of them at times.
        if self.rng.random() < 0.5:
            return re.sub(r"\b%s(?=x)|(?<=x)%s\b" % (spot.group(), spot.group()), value, text)
        return text[: spot.start()] + value + text[spot.end():]

    def tokens(self, text):
        tokens = TOKEN.findall(text)
        if not tokens:
            return text
        i, j = self.rng.randrange(len(tokens)), self.rng.randrange(len(tokens))
        action = self.rng.randrange(5)
        if action == 0:
            del tokens[i]
        elif action == 1:
            tokens[i] = tokens[j]
        elif action == 2:
            tokens[i], tokens[j] = tokens[j], tokens[i]
        elif action == 3:
            tokens[i] = self.rng.choice(WORDS)
        else:
            tokens.insert(i, " " + self.rng.choice(WORDS) + " ")
        return "".join(tokens)

    def lines(self, text):
        lines = text.split("\n")
        i, j = self.rng.randrange(len(lines)), self.rng.randrange(len(lines))
        action = self.rng.randrange(4)
        if action == 0:
            del lines[i]
        elif action == 1:
            lines.insert(i, lines[j])
        elif action == 2:
            lines[i], lines[j] = lines[j], lines[i]
        else:
            other = self.rng.choice(self.seeds).split("\n")
            lines[i:i] = other[self.rng.randrange(len(other)):][: self.rng.randrange(1, 6)]
        return "\n".join(lines)

    def bytes(self, text):
        data = bytearray(text.encode("utf-8", "surrogateescape"))
        for _ in range(self.rng.choice([1, 1, 4, 16])):
            if not data:
                break
            i = self.rng.randrange(len(data))
            action = self.rng.randrange(4)
            if action == 0:
                data[i] ^= 1 << self.rng.randrange(8)
            elif action == 1:
                data[i] = self.rng.randrange(256)
            elif action == 2:
                del data[i: i + self.rng.choice([1, 1, 2, 50])]
            else:
                data[i:i] = bytes([self.rng.randrange(256)])
        return data.decode("utf-8", "surrogateescape")


def split_seeds(paths):
    """One program per `// -----`; `RUN` and `CHECK` lines only add noise."""
    seeds = []
    for path in paths:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            for part in file.read().split("// -----"):
                lines = [line for line in part.split("\n") if not re.match(r"\s*//", line)]
                if any(line.strip() for line in lines):
                    seeds.append("\n".join(lines) + "\n")
    return seeds


class Passes:
    """This project's passes and pipelines, as flash-opt lists them."""

    # Of upstream's, these two are run on anything.
    ROBUST = ("canonicalize", "cse")

    def __init__(self, opt):
        described = subprocess.run([opt, "--help"], capture_output=True, text=True, check=True).stdout
        passes, pipelines = re.search(r"\n +Passes:\n(.*)\n +Pass Pipelines:\n(.*)", described, re.S).groups()
        own = r"^ {6}--(flash-[\w-]+|tile-[\w-]+|convert-(?:flash|tile|nvx)-[\w-]+) "
        self.names = sorted(re.findall(own, passes, re.M))
        self.pipelines = sorted(re.findall(own, pipelines, re.M))
        self.ways, self.anchors = [], {}
        for pipeline in self.pipelines:
            printed = subprocess.run([opt, f"--{pipeline}", "--dump-pass-pipeline", "-o", os.devnull], input="module {}",
                                     capture_output=True, text=True, check=True).stderr
            way = [(anchor, name, text) for anchor, name, text in flatten(printed[printed.index("builtin.module("):])
                   if name in self.names or name in self.ROBUST]
            self.ways.append(way)
            self.anchors.update({name: anchor for anchor, name, _ in way if name in self.names})

    def draw(self, rng):
        """A part of a pipeline from its start, a whole one, or any list of passes."""
        kind = rng.random()
        if kind < 0.2:
            return f"--{rng.choice(self.pipelines)}"
        if kind < 0.6:
            way = rng.choice(self.ways)
            drawn = [(anchor, text) for anchor, _, text in way[: rng.randrange(1, len(way) + 1)]]
        else:
            names = rng.choices(self.names, k=rng.randrange(1, 6))
            drawn = [(self.anchors.get(name, ()), name + rng.choice(OPTIONS.get(name, [""]))) for name in names]
        texts = ["".join(f"{op}(" for op in anchor) + text + ")" * len(anchor) for anchor, text in drawn]
        return f"--pass-pipeline=builtin.module({','.join(texts)})"


def flatten(text):
    """The passes of a pipeline's text: the ops in a module that each is run on, its name, and the name with options."""
    around = []
    text = re.sub(r"\s*([(),])\s*", r"\1", text)
    for name, options, then in re.findall(r"([\w.-]+)(\{[^}]*\})?([(),]*)", text):
        if then == "(":
            around.append(name)
            continue
        yield tuple(around[1:]), name, name + options
        for _ in range(then.count(")")):
            around.pop()


# Options that take a bounded time on any legal sizes.
OPTIONS = {"flash-select-schedule": ["", "{schedule=query_tile=8,key_tile=16}", "{schedule=query_tile=-3}", "{schedule=key_tile=99999}",
                                     "{schedule=num_splits=3}"],
           "flash-attach-target": ["", "{target=sm_90a}", "{target=sm_75}", "{target=sm_70}", "{keys=multiprocessors=7}", "{keys=registers=1}",
                                   "{target=sm_90a keys=shared_bytes_per_block=40000,copies=loads}", "{keys=multiprocessors=-1}"],
           "tile-allocate-smem": [""]}


def npy_seeds(np, directory):
    arrays = [np.zeros((2, 4, 8, 8), np.float32), np.ones((4, 8, 8), np.float16), np.zeros((2,), np.int32),
              np.zeros((0, 3), np.float32), np.asfortranarray(np.ones((3, 5), np.float64))]
    blobs = []
    for array in arrays:
        buffer = io.BytesIO()
        np.save(buffer, array)
        blobs.append(buffer.getvalue())
    return blobs


def mutate_blob(rng, blob):
    data = bytearray(blob)
    for _ in range(rng.choice([1, 2, 8])):
        if not data:
            break
        i = rng.randrange(min(len(data), 140))  # mostly the header
        action = rng.randrange(4)
        if action == 0:
            data[i] = rng.randrange(256)
        elif action == 1:
            del data[i:]
        elif action == 2:
            data[i:i] = bytes(rng.randrange(256) for _ in range(rng.randrange(1, 9)))
        else:
            at = data.find(b"shape")
            data[at + 9: at + 10] = str(rng.choice([0, 7, 10**9, 2**63, -1])).encode()
    return bytes(data)


# What MLIR keeps until the process ends is no finding; and its libraries, built
# without sanitizers, do not unpoison what our code poisons in shared arenas.
ENVIRONMENT = dict(os.environ, ASAN_OPTIONS="detect_leaks=0:allow_user_poisoning=0",
                   UBSAN_OPTIONS="print_stacktrace=1")


def execute(command, timeout):
    """Runs `command`; returns why it is bad, or None, and its output's tail."""
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                              timeout=timeout, env=ENVIRONMENT)
    except subprocess.TimeoutExpired:
        return "time-out", b""
    if done.returncode < 0:
        return f"signal {-done.returncode}", done.stderr
    if done.returncode >= 128:
        return f"status {done.returncode}", done.stderr
    if FAULT.search(done.stderr):
        return "program fault", done.stderr
    alarm = ALARMS.search(done.stderr)
    return (alarm.group().decode() if alarm else None), done.stderr


# Of a tensor, in a program that runs. Larger ones, which are only compiled, take minutes in the emulation.
MOST_ELEMENTS = 2**20


def count_elements(text):
    """Of the largest tensor with static sizes in the text."""
    return max((math.prod(map(int, sizes.split("x")[:-1])) for sizes in re.findall(r"tensor<((?:\d+x)+)", text)), default=0)


def one(task):
    index, args, seeds, passes, blobs = task
    rng = random.Random(f"{args.seed}/{index}")
    mutator = Mutator(rng, seeds)
    run = os.path.join(args.bin, "flash-run")
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "input.mlir")
        files = [path]
        use_run = os.path.exists(run) and rng.random() < 0.25
        if use_run and blobs and rng.random() < 0.3:
            text = SMALL_PROGRAM
            files += [os.path.join(directory, f"{n}.npy") for n in "qkv"]
            for file in files[1:]:
                with open(file, "wb") as out:
                    out.write(mutate_blob(rng, rng.choice(blobs)))
        else:
            text = mutator.text()
        with open(path, "w", encoding="utf-8", errors="surrogateescape") as out:
            out.write(text)
        if use_run:
            compilations = [["--target=sm_80", "--dump=ptx"], ["--target=sm_90a", "--dump=ptx"]]
            runs = [["--target=cpu", "--check"], ["--target=emulate", "--check"], ["--target=emulate:sm_90a", "--check"]]
            flags = rng.choice(compilations if count_elements(text) > MOST_ELEMENTS else runs + compilations)
            command = [run, path, *flags] + (["--inputs", ",".join(files[1:])] if len(files) > 1 else [])
        else:
            command = [os.path.join(args.bin, "flash-opt"), path, "--split-input-file"]
            if rng.random() < 0.7:
                command.append(passes.draw(rng))
            elif rng.random() < 0.5:
                command.append("--mlir-print-op-generic")
        reason, stderr = execute(command, args.timeout)
        if reason is None:
            return index, None, None
        if args.save:
            os.makedirs(args.save, exist_ok=True)
            for file in files:
                name = os.path.join(args.save, f"{index}-{os.path.basename(file)}")
                with open(file, "rb") as source, open(name, "wb") as out:
                    out.write(source.read())
            with open(os.path.join(args.save, f"{index}.txt"), "wb") as out:
                out.write(" ".join(command).encode() + b"\n" + reason.encode() + b"\n" + stderr[-20000:])
        return index, reason, " ".join(command[1:])


SMALL_PROGRAM = """func.func @attention(%q: tensor<2x4x8x8xf32>, %k: tensor<2x4x8x8xf32>, %v: tensor<2x4x8x8xf32>)
    -> tensor<2x4x8x8xf32> {
  %o = flash.attention %q, %k, %v : (tensor<2x4x8x8xf32>, tensor<2x4x8x8xf32>, tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32>
  return %o : tensor<2x4x8x8xf32>
}
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default=os.path.join(ROOT, "build", "bin"), help="where the tools are")
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0, help="number of the first input, to repeat one")
    parser.add_argument("--seed", default="flash")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--timeout", type=float, default=60)
    parser.add_argument("--save", help="a directory for the inputs that failed")
    args = parser.parse_args()

    tests = [path for path in sorted(glob.glob(os.path.join(ROOT, "test", "**", "*.mlir"), recursive=True))]
    seeds = split_seeds(sorted(glob.glob(os.path.join(ROOT, "examples", "*.mlir"))) + tests)
    passes = Passes(os.path.join(args.bin, "flash-opt"))
    blobs = []
    try:
        import numpy
        blobs = npy_seeds(numpy, None)
    except ImportError:
        pass

    reasons = collections.Counter()
    tasks = ((i, args, seeds, passes, blobs) for i in range(args.first, args.first + args.count))
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        for done, (index, reason, command) in enumerate(pool.map(one, tasks), 1):
            if reason:
                reasons[reason] += 1
                print(f"input {index}: {reason}: {command}", flush=True)
            if done % 1000 == 0 and done != args.count:
                print(f"{done} inputs, {sum(reasons.values())} bad", flush=True)
    apart = {reason: reasons.pop(reason) for reason in ("program fault",) if reason in reasons}
    bad = sum(reasons.values())
    print(f"fuzz: {args.count} inputs, {len(seeds)} seeds, {len(passes.names)} passes, {bad} bad"
          + (f" ({dict(reasons)})" if bad else "") + (f"; apart: {apart}" if apart else ""))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
