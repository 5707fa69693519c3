"""Calls of edges.mlir (`calls`), and whether what they did is right (`check FILE`)."""

import re
import sys

MIDDLE = 1 << 62
OPERATIONS = ["add", "sub", "mul", "divs", "ceildivs", "floordivs", "rems", "divu", "ceildivu", "remu"]


def print_calls():
    ends = [0, MIDDLE - 1, MIDDLE, 2 * MIDDLE - 1]
    sizes = [0, 1, MIDDLE - 1, MIDDLE, MIDDLE + 1, 2 * MIDDLE - 1]
    lines = []
    for number in range(len(OPERATIONS)):
        for d0 in sizes:
            for d1 in sizes:
                for bits in range(4) if d0 in ends and d1 in ends else [3]:
                    lines.append(f"{d0}x{d1}x{bits}:0x0x0 {number} -")
    print("\n".join(lines[::3] + lines[1::7]))


def divide(a, b):
    """The quotient that rounds to 0."""
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def compute(operation, a, b):
    """As a signed number of 64 bits; None if there is none."""
    if operation in ("add", "sub", "mul"):
        result = {"add": a + b, "sub": a - b, "mul": a * b}[operation]
    elif b == 0:
        return None
    elif operation.endswith("u"):
        a, b = a % 2**64, b % 2**64
        result = {"divu": a // b, "ceildivu": -(-a // b), "remu": a % b}[operation]
        return (result + 2**63) % 2**64 - 2**63
    else:
        result = {
            "divs": divide(a, b),
            "ceildivs": -(-a // b),
            "floordivs": a // b,
            "rems": a - b * divide(a, b),
        }[operation]
    return result if -(2**63) <= result < 2**63 else None


def check(path):
    count = 0
    with open(path) as file:
        calls = re.findall(r"^(\d+)x(\d+)x(\d):0x0x0 (\d) -\n((?:[a-z].*\n)*)", file.read(), re.MULTILINE)
    for d0, d1, bits, number, text in calls:
        a = 2 * (int(d0) - MIDDLE) + int(bits) % 2
        b = 2 * (int(d1) - MIDDLE) + int(bits) // 2
        operation = OPERATIONS[int(number)]
        launch = re.search(r"^launch k .* ([0-9a-f]{16})$", text, re.MULTILINE)
        found = launch and int.from_bytes(bytes.fromhex(launch[1]), "little", signed=True)
        if found != compute(operation, a, b) or bool(launch) == ("error" in text):
            sys.exit(f"{operation} of {a} and {b}: {found}, expected {compute(operation, a, b)}\n{text}")
        count += 1
    if count < 400:
        sys.exit(f"only {count} calls")


if sys.argv[1] == "calls":
    print_calls()
else:
    check(sys.argv[2])
