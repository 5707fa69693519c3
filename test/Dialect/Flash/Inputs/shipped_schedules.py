"""Looks up every schedule that is compiled in: it must be found, and fit.

Usage: shipped_schedules.py FLASH_OPT TABLE...
"""
import json
import pathlib
import subprocess
import sys

MASKS = {"full": "", "causal": "mask(#flash.causal)", "window": "mask(#flash.window<left = 100, right = 0>)",
         "prefix": "mask(#flash.prefix<100>)"}
SCORE = """score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    flash.yield %s : f32
  }"""


def program(entry):
    queries, keys = (entry[name] or "?" for name in ("queries", "keys"))
    # As many heads as make the blocks few or many.
    heads = {"few": 1, "many": 256, None: "?"}[entry["blocks"]]
    query = f"tensor<1x{heads}x{queries}x{entry['head_dim']}x{entry['dtype']}>"
    key = f"tensor<1x{heads}x{keys}x{entry['head_dim']}x{entry['dtype']}>"
    value = f"tensor<1x{heads}x{keys}x{entry['value_dim']}x{entry['dtype']}>"
    result = f"tensor<1x{heads}x{queries}x{entry['value_dim']}x{entry['dtype']}>"
    lengths = "lengths(%n : tensor<1xi32>)" if entry["lengths"] else ""
    return (f"func.func @f(%q: {query}, %k: {key}, %v: {value}, %n: tensor<1xi32>) -> {result} {{\n"
            f"  %o = flash.attention %q, %k, %v {MASKS[entry['mask']]} {lengths} {SCORE if entry['score'] else ''}"
            f" : ({query}, {key}, {value}) -> {result}\n  return %o : {result}\n}}\n")


def main(tool, tables):
    faults = count = 0
    for line in "\n".join(pathlib.Path(table).read_text() for table in tables).splitlines():
        entry = json.loads(line)
        if entry["mask"] not in MASKS:
            continue
        count += 1
        passes = [f"--flash-attach-target=target={entry['target']}", f"--flash-select-schedule=device='{entry['device']}'"]
        done = subprocess.run([tool, *passes], input=program(entry), capture_output=True, text=True)
        wanted = f"schedule(<query_tile = {entry['schedule']['query_tile']}, key_tile = {entry['schedule']['key_tile']}"
        if wanted not in done.stdout:
            faults += 1
            print(f"{line}\n{done.stdout}{done.stderr}")
    print(f"{count - faults} of {count} schedules found")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
