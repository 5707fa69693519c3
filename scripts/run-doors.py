#!/usr/bin/env python3
"""Runs what README.md shows under "Five minutes", as it stands there, and says how long each step took.

    run-doors.py README.md

Commands run in the current directory, with the `python` and the tools of the PATH. A Python program whose first line
is a comment with the name of a library is left out where that library is not installed, which is said.
"""

import re
import subprocess
import sys
import tempfile
import time


def find(text):
    """(kind, text) of each block of the section."""
    section = re.search(r"^## Five minutes\n(.*?)^## ", text, re.S | re.M)
    if not section:
        sys.exit('run-doors: there is no section "Five minutes"')
    return re.findall(r"^```(sh|python)\n(.*?)^```$", section[1], re.S | re.M)


def run(what, command):
    start = time.perf_counter()
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        sys.exit(f"run-doors: {what}: exit status {done.returncode}\n{done.stdout}")
    print(f"{time.perf_counter() - start:7.1f} s  {what}", flush=True)


def is_there(library):
    return subprocess.run(["python", "-c", f"import {library}"], stderr=subprocess.DEVNULL).returncode == 0


def main(page):
    with open(page) as file:
        blocks = find(file.read())
    for kind, text in blocks:
        if kind == "sh":
            for command in filter(None, map(str.strip, text.splitlines())):
                run(command.split("  #")[0].strip(), ["bash", "-c", command])
            continue
        first = text.splitlines()[0]
        library = re.fullmatch(r"# ([a-z]+)", first)
        if library and not is_there(library[1]):
            print(f" left out  {first}: it is not installed")
            continue
        with tempfile.NamedTemporaryFile("w", suffix=".py") as program:
            program.write(text)
            program.flush()
            run(f"python: {first}", ["python", program.name])


if __name__ == "__main__":
    main(sys.argv[1])
