"""Keeps what the pages show equal to what the tools do.

Usage: check-docs.py FLASH_OPT [--write]

- Every ```mlir block of README.md and docs/*.md must parse and verify.
- A block after `<!-- output: PASSES of FILE -->` must be the output of flash-opt
  with these passes on that file; --write puts it there.
"""
import glob
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BLOCK = re.compile(r"(?:<!-- output: (?P<passes>[^\n]*?) ?of (?P<file>\S+) -->\n+)?```mlir\n(?P<text>.*?)```\n", re.S)


def flash_opt(tool, arguments, text):
    done = subprocess.run([tool, *arguments], input=text, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"flash-opt {' '.join(arguments)}: {done.stderr}")
    return done.stdout


def main(tool, write):
    stale = []
    for page in [os.path.join(ROOT, "README.md")] + sorted(glob.glob(os.path.join(ROOT, "docs", "*.md"))):
        with open(page) as file:
            text = file.read()

        def renew(match):
            if not match["file"]:
                flash_opt(tool, ["-"], match["text"])
                return match[0]
            with open(os.path.join(ROOT, match["file"])) as source:
                output = flash_opt(tool, ["-"] + match["passes"].split(), source.read()).strip("\n") + "\n"
            head = match[0][: match.start("text") - match.start()]
            return head + output + "```\n"

        renewed = BLOCK.sub(renew, text)
        if renewed != text:
            stale.append(page)
            if write:
                with open(page, "w") as file:
                    file.write(renewed)
    if stale and not write:
        sys.exit("out of date, run `make docs`: " + " ".join(stale))


if __name__ == "__main__":
    main(sys.argv[1], "--write" in sys.argv)
