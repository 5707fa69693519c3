"""Runs random programs and compares them with their meaning, written in numpy: attention, its gradients with
--kind gradients, or with --kind linalg products and arithmetic on tiles.

    programs.py                            100 programs, from a fresh seed that is printed
    programs.py --count 3000 --save DIR    the long run; failures are kept in DIR
    programs.py --seed S --first N --count 1 --save DIR    one of them again
    programs.py --kind gradients --write DIR               command lines, for a machine with flash-run and NumPy alone
    programs.py --run DIR --bin . --jobs 16 --target sm_80 there

Each program runs on the CPU and emulated, as sm_80 and as sm_90a, with schedules
drawn for each. A finding is a wrong number, a crash, a time-out, an error at run time,
or a refusal that is not listed in REFUSALS: what may be refused is a schedule that does
not fit. Refusals are counted by kind, since a program that is refused tests nothing.
The reference that flash-run compiles runs only at every eighth run, which
checks also that nothing behind the arguments is read.
"""
import argparse
import collections
import concurrent.futures
import os
import pathlib
import random
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "Run" / "suite")]
import attentions
import gradients
import linalg_tiles
import row_tiles
import tiles
from fuzz import ALARMS, ENVIRONMENT
from oracle import attention

TARGETS = ["cpu", "emulate", "emulate:sm_90a"]
# What runs emulated is compiled for these, too.
GPUS = {"emulate": "sm_80", "emulate:sm_90a": "sm_90a"}
EMULATIONS = {gpu: emulation for emulation, gpu in GPUS.items()}
# Schedules are drawn without regard to what fits into registers and shared memory.
REFUSALS = [re.compile(text) for text in (
    "needs? N registers of (each of N threads|a thread)",
    "need N bytes of shared memory",
    "overlap needs N stages where values are columns of the keys",
)]
# Keys of schedules of gradients that do not go together.
GRADIENT_REFUSALS = [re.compile(text) for text in (
    "'flash.attention_grad' op cannot be scheduled",
)]
# What the targets of block programs do not translate of linalg on tiles, or not with the
# registers and shared memory that they have. The CPU refuses nothing.
TILE_REFUSALS = [re.compile(text) for text in (
    "has no translation to a block program",
    "stores no tile that is in registers",
    "runs on the CPU only",
    "needs? N registers of (each of N threads|a thread)",
    "needs? N bytes of shared memory",
    # Products of warpgroups.
    "needs N rows for each warpgroup",
    "has no form for warpgroups",
)]
# What a launch refuses, of sizes that are known then.
LAUNCH_REFUSAL = re.compile("the strides of its (operands|results) must be multiples")
# As flash-run --check has them (docs/flash-run.md), but for each row of a result.
ROW_FACTOR = 6
TOLERANCES = {"f32": 1e-6, "f16": 1e-3, "bf16": 8e-3}


def draw_schedule(rng, target, element):
    """Keys of --schedule, or None for the model's choice."""
    if rng.random() < 0.25:
        return None
    if target == "cpu":
        return f"query_tile={rng.choice([8, 16, 24, 32, 64, 128])},key_tile={rng.choice([8, 16, 32, 48, 64, 128])}"
    keys = {}
    if target == "emulate:sm_90a" and element != "f32" and rng.random() < 0.8:
        keys["query_tile"] = rng.choice([64, 64, 128, 128, 192])
        keys["key_tile"] = rng.choice([16, 16, 32, 48, 64, 80])
        features = ["specialize_warps"] + [feature for feature in ("overlap", "lazy_rescale", "persistent", "bulk_store")
                                           if rng.random() < 0.6]
        if keys["query_tile"] > 64 and rng.random() < 0.5:
            features.append("ping_pong")
        keys["features"] = "|".join(features)
        if rng.random() < 0.3:
            keys["query_stages"] = rng.choice([1, 2])
        if rng.random() < 0.2:
            keys["ctas_per_sm"] = 2
        most = 5
    else:
        keys["query_tile"] = rng.choice([16, 16, 32, 48, 64, 128])
        keys["key_tile"] = rng.choice([8, 16, 24, 32, 64] if element == "f32" else [16, 16, 32, 48, 64])
        if rng.random() < 0.4:
            keys["warps"] = rng.choice([n for n in (1, 2, 3, 4, 8) if keys["query_tile"] // 16 % n == 0])
        if target == "emulate:sm_90a" and element != "f32":
            keys["features"] = "none"
        most = 4
    if rng.random() < 0.7:
        keys["stages"] = rng.randint(1, most)
    if rng.random() < 0.3:
        key = rng.choice(["num_splits", "split_ctas", "split_keys"])
        keys[key] = rng.choice([1, 2, 3, 5, 40]) * (keys["key_tile"] if key == "split_keys" else 1)
    return ",".join(f"{key}={value}" for key, value in keys.items())


class Finding(Exception):
    """What is wrong with a run."""


def compare(program, target, results):
    """Raises a Finding if a result is not what the definition gives."""
    scale = program.scale if program.scale is not None else program.q.shape[-1] ** -0.5
    with np.errstate(invalid="ignore", over="ignore"):
        expected = attention(*(x.astype(np.float64) for x in (program.q, program.k, program.v)), scale, program.count,
                             program.score, None if program.sinks is None else program.sinks.astype(np.float64))
    # A score is off by units in the last place of the products that are summed up in it,
    # which may be larger than the score.
    norms = [np.sqrt((np.where(np.isfinite(x), x, 0).astype(np.float64) ** 2).sum(-1)).max(initial=0)
             for x in (program.q, program.k)]
    lse = np.where(np.isfinite(expected[1]), np.abs(expected[1]), 0)
    magnitude = max(1, norms[0] * norms[1] * abs(scale), lse.max(initial=0))
    if program.score:
        magnitude = max(10, 4 * magnitude)  # Score regions multiply, add and subtract.
    if np.shares_memory(program.q, program.k):
        # No product of a row with itself is negative, so each rounding is of a sum that only grows: four standard
        # deviations of so many are 4 / 3 * 2**-24 * sqrt(D) of the sum.
        magnitude *= max(1, 0.4 * np.sqrt(program.q.shape[-1]))
    # Log-sum-exps have 24 bits whatever the elements have.
    tolerances = [max(TOLERANCES[program.element], 1e-7 * magnitude), max(1e-6, 2e-7 * magnitude)]
    if program.tf32 and target != "cpu":
        tolerances = [max(1e-3, 1e-4 * magnitude), 1e-3 * magnitude]
    worst = 0
    for what, got, want, tolerance in zip(("output", "log-sum-exp"), results, expected, tolerances):
        want = want.reshape(got.shape)
        finite = np.isfinite(want)
        same = (got == want) | (np.isnan(got) & np.isnan(want))
        if not np.all(np.where(finite, np.isfinite(got), same)):
            at = np.argwhere(~np.where(finite, np.isfinite(got), same))[0]
            raise Finding(f"{what}{list(at)} is {got[tuple(at)]}, not {want[tuple(at)]}")
        with np.errstate(invalid="ignore"):
            error = got - want
        error, want = np.where(finite, error, 0), np.where(finite, want, 0)
        if what == "output":
            # Of rows, such that one key too few in one row is seen.
            error, want = (np.sqrt((x**2).sum(-1)) for x in (error, want))
            whole = np.sqrt((error**2).sum()) / max(np.sqrt((want**2).sum()), 1e-300)
            if whole > tolerance:
                raise Finding(f"the output is off by {whole:.2e}")
            bound = ROW_FACTOR * tolerance * np.maximum(want, np.sqrt((want**2).mean()) / 2 if want.size else 0)
        else:
            bound = np.full(error.shape, tolerance)
        if error.size:
            with np.errstate(invalid="ignore", divide="ignore"):
                worst = max(worst, np.nan_to_num(np.abs(error) / bound).max())
        if np.any(np.abs(error) > bound):
            at = np.unravel_index(np.argmax(np.abs(error) - bound), error.shape)
            raise Finding(f"{what}{list(at)} is off by {abs(error[at]):.2e}, and may be by {bound[at]:.2e}")
    return worst


def kind_of(message):
    """A message without source locations, shapes and numbers."""
    message = re.sub(r"^\S*:\d+:\d+: ", "", message)
    message = re.sub(r"(?<=tensor<)[\d?x]+x", "", message)
    return re.sub(r"-?\b\d+\b", "N", message)[:160]


def prepare(program, target, rng, file, arguments):
    """The file to run on a target, which is one of TARGETS, and the flags. `file` has the program."""
    flags = [f"--threads={rng.choice([1, 1, 2])}"]
    if isinstance(program, linalg_tiles.Program) or program.targets is not None:
        return file, flags
    of_gradients = isinstance(program, gradients.Program)
    schedule = (gradients.draw_schedule if of_gradients else draw_schedule)(rng, target, program.element)
    planned = plan(file, target, schedule, arguments) if of_gradients and program.planned else None
    if planned:
        file = file.with_name(f"{file.stem}-planned-{target.replace(':', '-')}.mlir")
        file.write_text(planned)
        flags.append("--function=gradients")
    elif schedule:
        flags.append(f"--schedule={schedule}")
    if rng.random() < 0.125:
        flags.append("--check")
    return file, flags


def plan(file, target, schedule, arguments):
    """The program with its schedule, block maps among its arguments, and a function that returns them; None if it has
    no maps, or the schedule does not fit."""
    schedule = schedule or ""
    if "block_map=" not in schedule:
        schedule += ("," if schedule else "") + "block_map=1"
    command = [os.path.join(arguments.bin, "flash-opt"), str(file), "--flash-separate-masks", "--flash-expand-rank",
               f"--flash-attach-target=target={GPUS.get(target, target)}", f"--flash-select-schedule=schedule={schedule}",
               "--flash-make-block-maps", "--flash-outline-block-maps"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=arguments.timeout, env=ENVIRONMENT)
    return done.stdout if done.returncode == 0 and "@gradients_plan(" in done.stdout else None


def call(file, target, flags, inputs, outputs, arguments):
    """Runs a function of a program; returns its command, the lines of errors, and whether it returned results."""
    command = [os.path.join(arguments.bin, "flash-run"), str(file), f"--target={target}", *flags,
               f"--inputs={','.join(map(str, inputs))}", f"--outputs={','.join(map(str, outputs))}"]
    with open(outputs[0].parent / "command.txt", "a") as commands:
        commands.write(shlex.join(command) + "\n")
    for output in outputs:
        output.unlink(missing_ok=True)
    try:
        done = subprocess.run(command, capture_output=True, timeout=arguments.timeout, env=ENVIRONMENT)
    except subprocess.TimeoutExpired:
        raise Finding("time-out")
    errors = done.stderr.decode(errors="replace")
    alarm = ALARMS.search(done.stderr)
    if done.returncode < 0 or done.returncode > 1 or alarm:
        raise Finding(f"crash with status {done.returncode}{': ' + alarm.group().decode() if alarm else ''}\n{errors[-4000:]}")
    return done.returncode == 0, errors + done.stdout.decode(errors="replace")


def run(program, target, file, flags, folder, arguments):
    """The kind of the refusal, if the run was refused, or else None; and the largest error."""
    on_tiles, of_gradients = isinstance(program, linalg_tiles.Program), isinstance(program, gradients.Program)
    inputs = [folder / f"{name}.npy" for name, _, _ in program.arguments]
    named = program.outputs if on_tiles or of_gradients else [("o", program.element), ("l", "f32")][: 2 if program.lse else 1]
    outputs = [folder / f"{name}.npy" for name, _ in named]
    (folder / "command.txt").unlink(missing_ok=True)
    succeeds, text = True, ""
    if "--function=gradients" in flags:
        signature = re.search(r"@gradients_plan\(.*\) -> \((.*)\)", file.read_text()).group(1)
        maps = [folder / f"map{number}.npy" for number in range(signature.count("tensor<"))]
        planning = ["--function=gradients_plan", *(flag for flag in flags if flag.startswith("--threads"))]
        succeeds, text = call(file, target, planning, inputs, maps, arguments)
        inputs += maps
    if succeeds:
        succeeds, text = call(file, target, flags, inputs, outputs, arguments)
    if not succeeds:
        line = next((line for line in text.splitlines() if "error: " in line), text)
        kind = kind_of(line)
        refusals = REFUSALS + GRADIENT_REFUSALS if of_gradients else TILE_REFUSALS if on_tiles and target != "cpu" else [] if on_tiles else REFUSALS
        if line.startswith(str(file)) and any(refusal.search(kind) for refusal in refusals):
            return kind, 0
        if on_tiles and target in GPUS.values() and LAUNCH_REFUSAL.search(line):
            return kind, 0
        raise Finding(f"{kind}\n{line}")
    with np.errstate(invalid="ignore"):  # Results may hold NaN where nothing is written.
        results = [attentions.from_file(np.load(path), element) for path, element in zip(outputs, [element for _, element in named])]
    for result, shape in zip(results, program.shapes):
        if list(result.shape) != list(shape):
            raise Finding(f"a result has the shape {result.shape}, not {shape}")
    if on_tiles or of_gradients:
        wrong, worst = program.compare(results)
        if wrong:
            raise Finding(wrong)
        if on_tiles and target in GPUS:
            compile(folder / "program.mlir", GPUS[target], arguments)
        return None, worst
    return None, compare(program, target, results)


def compile(file, gpu, arguments):
    """Raises a Finding if a GPU refuses a program for other reasons than its size."""
    command = [os.path.join(arguments.bin, "flash-run"), str(file), f"--target={gpu}", "--dump=ptx"]
    done = subprocess.run(command, capture_output=True, timeout=arguments.timeout, env=ENVIRONMENT)
    errors = done.stderr.decode(errors="replace")
    if done.returncode and not any(refusal.search(kind_of(errors)) for refusal in REFUSALS):
        raise Finding(f"no PTX for {gpu}\n{errors[-2000:]}")


def draw(rng, kind):
    """Of five programs of attention one is on tiles, of four of linalg one works along rows alone."""
    if kind == "linalg":
        return row_tiles.draw(rng) if rng.random() < 0.25 else linalg_tiles.draw(rng)
    if kind == "gradients":
        return gradients.draw(rng)
    return tiles.draw(rng) if rng.random() < 0.2 else attentions.draw(rng)


def one(task):
    """Draws and runs a program; returns its findings and kinds of refusals by target."""
    index, written, arguments = task
    program = draw(random.Random(f"{arguments.seed}/{index}"), arguments.kind)
    findings, refusals, worst = [], [], 0
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "program.mlir").write_text(program.text)
        for argument, array, element in program.arguments:
            np.save(folder / f"{argument}.npy", attentions.to_file(array, element))
        for target in arguments.target or TARGETS:
            known = EMULATIONS.get(target, target)
            if known not in (getattr(program, "targets", None) or TARGETS):
                continue
            try:
                if written is None:
                    # Of its own, so that --target repeats the run that it was among the others.
                    target_rng = random.Random(f"{arguments.seed}/{index}/{known}")
                    file, flags = prepare(program, known, target_rng, folder / "program.mlir", arguments)
                else:
                    if (arguments.run / f"{index}.mlir").read_text() != program.text:
                        raise Finding("the program is drawn otherwise than it was written, by another Python or NumPy")
                    file, flags = written[known]
                    file = shutil.copy(arguments.run / file, folder)
                refusal, error = run(program, target, pathlib.Path(file), flags, folder, arguments)
                worst = max(worst, error)
                if refusal:
                    refusals.append((target, refusal))
            except Finding as finding:
                commands = folder / "command.txt"
                text = f"{finding}\n{commands.read_text() if commands.exists() else ''}"
                if re.search("[<x]0x", program.text):
                    text += "(A size is 0 where the program is compiled.)\n"
                if arguments.save:
                    keep = arguments.save / f"{index}-{target.replace(':', '-')}"
                    text = text.replace(name, str(keep))
                    shutil.copytree(folder, keep, dirs_exist_ok=True)
                    (keep / "command.txt").write_text(text)
                findings.append((target, text))
    return index, findings, refusals, worst


def write_one(task):
    """Writes the files of a program and returns its lines of suite.txt."""
    index, _, arguments = task
    program = draw(random.Random(f"{arguments.seed}/{index}"), arguments.kind)
    file = arguments.write / f"{index}.mlir"
    file.write_text(program.text)
    lines = []
    for target in getattr(program, "targets", None) or TARGETS:
        rng = random.Random(f"{arguments.seed}/{index}/{target}")
        chosen, flags = prepare(program, target, rng, file, arguments)
        lines.append(shlex.join([chosen.name, f"--target={target}", *flags]) + "\n")
    return lines


def read_suite(arguments):
    """Of a written folder, for each program its files and flags by target. Sets kind and seed."""
    head, *lines = (arguments.run / "suite.txt").read_text().splitlines()
    arguments.kind, arguments.seed = re.fullmatch(r"# \d+ programs of (\w+), seed (.*)", head).groups()
    written = collections.defaultdict(dict)
    for line in lines:
        file, target, *flags = shlex.split(line)
        written[int(re.match(r"\d+", file).group())][target.removeprefix("--target=")] = file, flags
    return written


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default=str(HERE.parent.parent / "build" / "bin"), help="where flash-run is")
    parser.add_argument("--kind", choices=["attention", "gradients", "linalg"], default="attention", help="linalg: of linalg on tiles")
    parser.add_argument("--count", type=int, help="100, or all that are written")
    parser.add_argument("--first", type=int, default=0, help="number of the first program, to repeat one")
    parser.add_argument("--seed", default=str(time.time_ns() % 2**31))
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--timeout", type=float, default=120, help="of one run, in seconds")
    parser.add_argument("--target", choices=TARGETS + list(GPUS.values()), action="append", help="only this one, and those "
                        "of further --target; sm_80 and sm_90a run on the machine's GPU")
    parser.add_argument("--save", type=pathlib.Path, help="a directory for the programs that failed")
    parser.add_argument("--print", action="store_true", help="print the programs, do not run them")
    parser.add_argument("--write", type=pathlib.Path, metavar="DIR", help="write the programs and suite.txt, do not run them")
    parser.add_argument("--run", type=pathlib.Path, metavar="DIR", help="run what --write has written")
    arguments = parser.parse_args()

    if arguments.print:
        for index in range(arguments.first, arguments.first + (arguments.count or 100)):
            print(f"// Program {index}.\n{draw(random.Random(f'{arguments.seed}/{index}'), arguments.kind).text}")
        return 0
    written = collections.defaultdict(lambda: None)
    if arguments.run:
        written = read_suite(arguments)
        numbers = [number for number in sorted(written) if number >= arguments.first][:arguments.count]
    else:
        numbers = range(arguments.first, arguments.first + (arguments.count or 100))
    print(f"seed {arguments.seed}", flush=True)
    tasks = ((index, written[index], arguments) for index in numbers)
    if arguments.write:
        arguments.write.mkdir(parents=True, exist_ok=True)
        with concurrent.futures.ProcessPoolExecutor(arguments.jobs) as pool, open(arguments.write / "suite.txt", "w") as suite:
            suite.write(f"# {len(numbers)} programs of {arguments.kind}, seed {arguments.seed}\n")
            suite.writelines(line for lines in pool.map(write_one, tasks, chunksize=8) for line in lines)
        return 0
    bad, refused, worst = 0, collections.Counter(), 0
    # Threads would wait for one another in numpy.
    with concurrent.futures.ProcessPoolExecutor(arguments.jobs) as pool:
        for done, (index, findings, refusals, error) in enumerate(pool.map(one, tasks), 1):
            worst = max(worst, error)
            bad += len(findings)
            refused.update(refusals)
            for target, finding in findings:
                print(f"program {index} on {target}: {finding}", flush=True)
            if done % 100 == 0 and done != len(numbers):
                print(f"{done} programs, {bad} bad", flush=True)
    for (target, kind), count in refused.most_common():
        print(f"refused {count} times on {target}: {kind}")
    runs = len(numbers) * len(arguments.target or TARGETS)
    print(f"programs: {len(numbers)} in {runs} runs, {sum(refused.values())} refused, {bad} bad; "
          f"the largest error is {worst:.2f} of what it may be")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
