"""Runs the lit suite of a build directory and ends with one line of tally.

Usage: run-tests.py LIT BUILD. The exit status is 0 only when tests ran and none
of them failed.
"""
import collections
import json
import os
import subprocess
import sys

GOOD = {"PASS", "XFAIL", "FLAKYPASS"}
SKIPPED = {"UNSUPPORTED", "SKIPPED", "EXCLUDED"}


def main(lit, build):
    report = os.path.join(build, "test-results.json")
    if os.path.exists(report):
        os.remove(report)
    status = subprocess.call([lit, "-sv", "--output", report, os.path.join(build, "test")])
    codes = collections.Counter()
    if os.path.exists(report):
        with open(report) as file:
            codes.update(test["code"] for test in json.load(file)["tests"])
    passed = sum(codes[code] for code in GOOD)
    skipped = sum(codes[code] for code in SKIPPED)
    failed = sum(codes.values()) - passed - skipped
    if passed + failed == 0:  # lit itself did not run
        failed = 1
    tally = f"lit: {passed} passed, {failed} failed"
    print(tally + (f", {skipped} skipped" if skipped else ""))
    return 1 if failed or status else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
