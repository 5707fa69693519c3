"""Runs what a page shows: its programs go to files, its commands are run.

Usage: run_tutorial.py PAGE FOLDER

A program stands after `<!-- file: NAME -->`. A command with --check must say that all is
well; a block after `<!-- output of the last command -->` is what the command before
printed.
"""
import pathlib
import re
import subprocess
import sys

BLOCK = re.compile(r"(?:<!-- (?P<note>[^\n]*) -->\n)?```(?P<kind>\w*)\n(?P<text>.*?)```\n", re.S)


def main(page, folder):
    folder.mkdir(parents=True, exist_ok=True)
    printed, commands = "", 0
    for block in BLOCK.finditer(page.read_text()):
        note, text = block["note"] or "", block["text"]
        if note.startswith("file: "):
            (folder / note[6:]).write_text(text)
        elif note == "output of the last command" and printed != text:
            sys.exit(f"the page shows\n{text}and the command printed\n{printed}")
        elif block["kind"] == "sh":
            for command in text.splitlines():
                done = subprocess.run(command, shell=True, cwd=folder, capture_output=True, text=True)
                printed, commands = done.stdout, commands + 1
                print(f"$ {command}\n{done.stdout}{done.stderr}", flush=True)
                if done.returncode or ("--check" in command and "check: ok" not in printed):
                    sys.exit(f"failed: {command}")
    if not commands:
        sys.exit(f"{page} has no commands")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]))
