"""Finds words that pages and comments do not use for what is technical.

Usage: check-words.py LIST

LIST has sections: a line `[GLOB ...]` names files, from the root of the sources, and each line behind it has a regular
expression, ` -> ` and what to write instead. Of sources, comments, descriptions of .td files and docstrings of Python
are read; of pages all but addresses of links, and code, which is between backticks, indented, or between lines of
three. Ends with 1 where there is such a word.
"""
import bisect
import glob
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
CODE = re.compile(r"^ *```.*?^ *```|^ {4}.*?$|<!--.*?-->", re.S | re.M)
COMMENT = re.compile(r"//([^\n]*)|/\*(.*?)\*/|\[\{(.*?)\}\]", re.S)
# Other strings of Python are matched, since they may have a #, and have no group.
PYTHON = re.compile(r'''"""(.*?)"""|#([^\n]*)|"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*\'''', re.S)


def read_prose(path):
    """The words of a file with one space between them, where each line begins in that, and its number."""
    with open(path) as file:
        text = file.read()
    if path.endswith(".md"):
        text = CODE.sub(lambda match: "\n" * match[0].count("\n"), text)
        text = re.sub(r"\]\([^)\n]*\)", "]", text)
        parts = [(0, text)]
    else:
        comment = PYTHON if path.endswith((".py", ".pyi")) else COMMENT
        parts = [(match.start(), match[match.lastindex]) for match in comment.finditer(text) if match.lastindex]
    words, starts, numbers = "", [], []
    for begin, part in parts:
        first = text.count("\n", 0, begin) + 1
        for number, line in enumerate(part.splitlines(), first):
            starts.append(len(words))
            numbers.append(number)
            words += "".join(word + " " for word in re.sub(r"`[^`]+`", "_", line.lstrip("/* ")).split())
    return words, starts, numbers


def main(path):
    found, files, proses = 0, [], {}
    with open(path) as file:
        lines = [line for line in file.read().splitlines() if line and not line.startswith("#")]
    for line in lines:
        if line.startswith("["):
            files = [f for pattern in line[1:-1].split() for f in sorted(glob.glob(os.path.join(ROOT, pattern), recursive=True))]
            if not files:
                sys.exit(f"check-words: there are no files {line}")
            continue
        word, instead = line.split(" -> ")
        pattern = re.compile(rf"\b(?:{word})\b", re.I)
        for name in files:
            if name not in proses:
                proses[name] = read_prose(name)
            words, starts, numbers = proses[name]
            for match in pattern.finditer(words):
                found += 1
                number = numbers[bisect.bisect_right(starts, match.start()) - 1]
                print(f"{os.path.relpath(name, ROOT)}:{number}: '{match[0]}', which should be: {instead}")
    print(f"{found} words to replace")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
