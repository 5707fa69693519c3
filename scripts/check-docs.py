"""Keeps what the pages show equal to what the tools do.

Usage: check-docs.py FLASH_OPT [--write]

- Every ```mlir block of README.md, docs/*.md, docs/course/*.md and docs/lab/*.md must parse and verify.
- A block after `<!-- output: PASSES of FILE -->` must be the output of flash-opt
  with these passes on that file; --write puts it there.
- A plain block after `<!-- excerpt: PASSES of FILE from "A" to "B" -->` must be the
  lines of that output from the first with A to the next with B; with `of which "C"`
  before the end of the comment, only those in which the regular expression C is
  found. Passes with --mlir-print-ir-before or -after stand for what these print;
  instead of passes there may be `flash-run` and its options.
- A plain block after `<!-- flash-run: OPTIONS -->` must be what flash-run prints.
- docs/levels.md names every pass of docs/reference, and docs/lab/README.md every experiment, whose files begin with a date.
- What the pages link to is there, headings included, and so is what they tell `make` to make.
"""
import glob
import os
import re
import shlex
import subprocess
import sys
import textwrap

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BLOCK = re.compile(r"(?:<!-- output: (?P<passes>[^\n]*?) ?of (?P<file>\S+) -->\n+)?```mlir\n(?P<text>.*?)```\n", re.S)
EXCERPT = re.compile(r'<!-- excerpt: (?P<passes>[^\n]*?) ?of (?P<file>\S+) from "(?P<first>[^\n]*?)" to "(?P<last>[^\n]*?)"(?: of which "(?P<kept>[^\n]*?)")? -->\n+'
                     r"```\n(?P<text>.*?)```\n", re.S)
PRINTED = re.compile(r"<!-- flash-run: (?P<options>[^\n]*?) -->\n+```\n(?P<text>.*?)```\n", re.S)


def read(page):
    with open(page) as file:
        return file.read()


def flash_opt(tool, arguments, text):
    done = subprocess.run([tool, *arguments], input=text, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"flash-opt {' '.join(arguments)}: {done.stderr}")
    return done.stderr if "--mlir-print-ir" in " ".join(arguments) else done.stdout


def run_passes(tool, match):
    file = os.path.join(ROOT, match["file"])
    arguments = shlex.split(match["passes"])
    if arguments and arguments[0] == "flash-run":
        command = [os.path.join(os.path.dirname(tool), "flash-run"), file, *arguments[1:]]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout
    with open(file) as source:
        return flash_opt(tool, ["-"] + arguments, source.read())


def take_lines(output, first, last, kept):
    lines = output.splitlines()
    start = next((i for i, line in enumerate(lines) if first in line), None)
    end = next((i for i, line in enumerate(lines) if start is not None and i > start and last in line), None)
    if end is None:
        sys.exit(f'check-docs: there are no lines from "{first}" to "{last}"')
    taken = [line.rstrip() for line in lines[start : end + 1] if re.search(kept or "", line)]
    return textwrap.dedent("\n".join(taken)) + "\n"


def renew(text, tool):
    def replace(match, new):
        return match[0][: match.start("text") - match.start()] + new + "```\n"

    def renew_block(match):
        if not match["file"]:
            flash_opt(tool, ["-"], match["text"])
            return match[0]
        return replace(match, run_passes(tool, match).strip("\n") + "\n")

    def renew_excerpt(match):
        return replace(match, take_lines(run_passes(tool, match), match["first"], match["last"], match["kept"]))

    def renew_printed(match):
        command = [os.path.join(os.path.dirname(tool), "flash-run"), *shlex.split(match["options"])]
        return replace(match, subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT).stdout)

    return PRINTED.sub(renew_printed, EXCERPT.sub(renew_excerpt, BLOCK.sub(renew_block, text)))


def find_missing_passes():
    levels = read(os.path.join(ROOT, "docs", "levels.md"))
    for page in glob.glob(os.path.join(ROOT, "docs", "reference", "*-passes.md")):
        for name in re.findall(r"^### `-(\S+)`$", read(page), re.M):
            if f"`{name}`" not in levels:
                yield name


def find_unlisted_experiments():
    lab = os.path.join(ROOT, "docs", "lab")
    listed = read(os.path.join(lab, "README.md"))
    for name in sorted(os.listdir(lab)):
        is_dated = re.match(r"\d{4}-\d\d-\d\d-[\w-]+\.md$", name)
        if name != "README.md" and not (is_dated and f"]({name})" in listed):
            yield name


def find_anchors(page):
    """The anchors of a page: of its headings, as GitHub makes them, and those that are written down."""
    text = read(page)
    headings = re.findall(r"^#+ (.*)$", text, re.M)
    made = [re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-") for heading in headings]
    return {*made, *re.findall(r'<a id="([^"]*)">', text)}


def find_dangling(pages):
    """Links of the pages, and targets of `make`, that lead nowhere."""
    targets = re.findall(r"^([\w-]+):", read(os.path.join(ROOT, "Makefile")), re.M)
    for page in pages:
        text = read(page)
        name = os.path.relpath(page, ROOT)
        for link in re.findall(r"\]\(([^)\s]+)\)", text):
            path, _, anchor = link.partition("#")
            to = os.path.normpath(os.path.join(os.path.dirname(page), path)) if path else page
            is_there = link.startswith("http") or (os.path.exists(to) and (not anchor or anchor in find_anchors(to)))
            if not is_there:
                yield f"{name}: {link}"
        for target in re.findall(r"(?:^ *|`)make ([a-z][\w-]*)", text, re.M):
            if target not in targets:
                yield f"{name}: make {target}"


def main(tool, write):
    stale = []
    pages = [os.path.join(ROOT, name) for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")]
    pages += sorted(page for folder in ("", "course", "lab") for page in glob.glob(os.path.join(ROOT, "docs", folder, "*.md")))
    for page in pages:
        text = read(page)
        renewed = renew(text, tool)
        if renewed != text:
            stale.append(page)
            if write:
                with open(page, "w") as file:
                    file.write(renewed)
    if stale and not write:
        sys.exit("out of date, run `make docs`: " + " ".join(stale))
    if dangling := list(find_dangling(pages)):
        sys.exit("these lead nowhere: " + ", ".join(dangling))
    if missing := sorted(find_missing_passes()):
        sys.exit("docs/levels.md does not name the passes " + " ".join(missing))
    if unlisted := list(find_unlisted_experiments()):
        sys.exit("docs/lab/README.md does not list, or no date begins the name of, " + ", ".join(unlisted))


if __name__ == "__main__":
    main(sys.argv[1], "--write" in sys.argv)
