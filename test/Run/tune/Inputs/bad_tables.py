"""Tuning files with a fault each, and the messages.

Usage: bad_tables.py FLASH_RUN FOLDER
"""
import json
import pathlib
import subprocess
import sys

PROGRAM = """!t = tensor<1x2x64x16xf32>
func.func @attention(%q: !t, %k: !t, %v: !t) -> !t {
  %o = flash.attention %q, %k, %v : (!t, !t, !t) -> !t
  return %o : !t
}
"""
TWO = PROGRAM.replace("  return", "  %p = flash.attention %o, %k, %v : (!t, !t, !t) -> !t\n  return").replace("%o : !t\n}", "%p : !t\n}")
GOOD = {"device": "X", "target": "cpu", "dtype": "f32", "head_dim": 16, "value_dim": 16, "mask": "full", "score": False,
        "lengths": False, "queries": 128, "keys": None, "keys_per_query": None, "blocks": "few", "schedule": {"query_tile": 32, "key_tile": 32},
        "ms": 1, "default_ms": 2}


def entry(**changes):
    changed = {**GOOD, **changes}
    return json.dumps({key: value for key, value in changed.items() if value != "gone"})


def schedule(**keys):
    return entry(schedule={"query_tile": 32, "key_tile": 32, **keys})


OTHER = entry(mask="causal")
TABLES = [
    ("{", ":2: this is no JSON object: "),
    ("[1]", ":2: a line must be one JSON object"),
    (OTHER, ":2: line 1 is for the same programs"),
    (entry(device="gone"), ":2: 'device' is missing"),
    (entry(device=""), ":2: 'device' must be a text"),
    (entry(head_dim=0), ":2: 'head_dim' must be a positive integer"),
    (entry(score=1), ":2: 'score' must be true or false"),
    (entry(gradients=1), ":2: 'gradients' must be true or false"),
    (entry(queries=100), ":2: 'queries' must be a power of two from 128 on, or null for lengths that are known at run time only"),
    (entry(keys=64), ":2: 'keys' must be a power of two from 128 on"),
    (entry(keys_per_query=16), ":2: 'keys_per_query' must be a power of two from 32 on"),
    (entry(blocks="some"), ":2: 'blocks' must be \"few\", \"many\" or null"),
    (entry(ms=0), ":2: 'ms' must be a number of milliseconds"),
    (entry(extra=1), ":2: there is a key that entries do not have"),
    (entry(schedule=[]), ":2: 'schedule' must be an object such as {\"query_tile\": 128, \"key_tile\": 64}"),
    (entry(schedule={"query_tile": 32}), ":2: the schedule needs query_tile and key_tile"),
    (schedule(query_tile=12), ":2: query_tile must be a multiple of 8 from 8 to 1024, got 12; the nearest is 16"),
    (schedule(warps="4"), ":2: 'warps' of the schedule must be an integer"),
    (schedule(features="fast"), ":2: 'fast' is no list of features such as specialize_warps|overlap"),
    (schedule(tile=1), ":2: a schedule has no key 'tile'; the keys are query_tile, key_tile,"),
    (schedule(num_splits=2, split_ctas=4), ":2: num_splits says what split_ctas leaves to the sizes; write one of them"),
    (entry(), "has no schedules for 'Y'; it has some for 'X'"),
    (None, "cannot read the tuning file "),
]
FLAGS = [
    (PROGRAM, ["--tune", "--schedule=query_tile=64"], "--tune looks for the schedule; leave out --schedule"),
    (PROGRAM, ["--tune", "--baseline"], "--tune compares schedules; run the program once more with --baseline"),
    (PROGRAM, ["--tune-seconds=3"], "--tune-seconds says how long --tune takes; give --tune too"),
    (PROGRAM, ["--tune", "--tune-seconds=-1"], "--tune-seconds=-1.00 is not a number of seconds from 0 to 86400"),
    (PROGRAM, ["--tuning-file="], "--tuning-file needs a file name"),
    (TWO, ["--tune"], "--tune: the program has 2 attentions, or gradients of some, and a schedule is looked for where there is one"),
    (PROGRAM, ["--schedule=num_splits=2,split_ctas=3"], "--schedule: num_splits says what split_ctas leaves to the sizes; write one of them"),
]


def main(tool, folder):
    folder.mkdir(parents=True, exist_ok=True)
    program, table = folder / "program.mlir", folder / "table.jsonl"
    faults = 0

    def expect(flags, message):
        done = subprocess.run([tool, program, "--target=cpu", *flags], capture_output=True, text=True)
        if done.returncode != 1 or message not in done.stderr:
            print(f"{flags}: exit {done.returncode}, expected: {message}\n{done.stdout}{done.stderr}")
            return 1
        return 0

    program.write_text(PROGRAM)
    for line, message in TABLES:
        table.unlink(missing_ok=True)
        if line is not None:
            table.write_text(f"{OTHER}\n{line}\n")
        faults += expect([f"--tuning-file={table}", "--device=Y"], message)
        # Also before a search, which would overwrite the file.
        if line is not None and message.startswith(":"):
            faults += expect([f"--tuning-file={table}", "--tune"], message)
    for text, flags, message in FLAGS:
        program.write_text(text)
        faults += expect(flags, message)
    return faults


if __name__ == "__main__":
    sys.exit(1 if main(sys.argv[1], pathlib.Path(sys.argv[2])) else 0)
