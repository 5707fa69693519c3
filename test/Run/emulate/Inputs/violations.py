"""Block programs that use their rings wrongly, and what flash-run says of each.

The program copies rows of its argument through a ring of two stages. A body that
keeps the protocol comes first: what fails below fails for its own reason.
"""

import pathlib
import subprocess
import sys
import tempfile

TEMPLATE = """\
!smem = !tile.smem<16x16xf32, swizzle = 64>
!ring = !tile.ring<2, !smem>
!x = tensor<16x16xf32, #tile.fragment<1>>
!memory = memref<64x16xf32>
module attributes {gpu.container_module} {
func.func @main(%x: tensor<64x16xf32>) -> tensor<64x16xf32> {
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %in = bufferization.to_buffer %x read_only : tensor<64x16xf32> to !memory
  %out = memref.alloc() : !memory
  gpu.launch_func @kernels::@main blocks in (%c1, %c1, %c1) threads in (%c32, %c1, %c1)
      args(%in : !memory, %out : !memory)
  %r = bufferization.to_tensor %out restrict writable : !memory to tensor<64x16xf32>
  return %r : tensor<64x16xf32>
}
gpu.module @kernels {
gpu.func @main(%in: !memory, %out: !memory) kernel {
  %minus = arith.constant -1 : index
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %c5 = arith.constant 5 : index
  %c60 = arith.constant 60 : index
  %pages = tile.ring copies = 2 : !ring
  %ring = tile.ring : !ring
BODY  gpu.return
}
}
}
"""

ACQUIRE = "tile.ring.acquire %ring[%c{}] : !ring"
COPY = "tile.copy_async %in[%c{0}] to %ring[%c{0}] : !memory to !ring"
WAIT = "%t{0} = tile.ring.wait %ring[%c{0}] : !ring"
LOAD = "%x{0} = tile.load %t{0} : !smem to !x"
STORE = "tile.store %x{0}, %out[%c{0}] : !x to !memory"
RELEASE = "tile.ring.release %ring[%c{}] : !ring"


def steps(text, step=0):
    """Operations by their initials, on one step."""
    table = {"a": ACQUIRE, "c": COPY, "w": WAIT, "l": LOAD, "s": STORE, "r": RELEASE}
    return [table[letter].format(step) for letter in text]


PAGE = "tile.copy_async %in[%c0] to %pages[%c0] part(%{}) : !memory to !ring"
ACQUIRE_PAGES = "tile.ring.acquire %pages[%c0] : !ring"
WAIT_PAGES = "%pt = tile.ring.wait %pages[%c0] : !ring"
RELEASE_PAGES = "tile.ring.release %pages[%c0] : !ring"
ZERO = "%zero = arith.constant dense<0.0> : !x"
PUT = "tile.ring.put %zero to %ring[%c0] : !x to !ring"

MMA = "%p = tile.mma_async %t0, %t0 transpose_b : !smem, !smem -> !tile.pending<!x>"
MMA_WAIT = "%d = tile.mma_wait %p : !tile.pending<!x>"
STORE_D = "tile.store %d, %out[%c0] : !x to !memory"

# Name, body, operation and line of the body (from 1 on) that fails, message.
CASES = [
    ("copy without acquire", steps("cwlr"), "tile.copy_async", 1, "step 0 (stage 0) of the ring at {ring} was not acquired"),
    ("copy of another step", steps("a") + steps("c", 2), "tile.copy_async", 2, "step 2 (stage 0) of the ring at {ring} was not acquired"),
    ("second copy", steps("acc"), "tile.copy_async", 3, "step 0 (stage 0) of the ring at {ring} is copied a second time"),
    ("copy after release", steps("acwrc"), "tile.copy_async", 5, "step 0 (stage 0) of the ring at {ring} was released before"),
    ("wait without copy", steps("awlr"), "tile.ring.wait", 2, "step 0 (stage 0) of the ring at {ring} was never copied"),
    ("wait for a later step", steps("acw") + steps("w", 3), "tile.ring.wait", 4, "step 3 (stage 1) of the ring at {ring} was never copied"),
    ("wait after release", steps("acwr") + [WAIT.format(0).replace("%t0", "%again")], "tile.ring.wait", 5, "step 0 (stage 0) of the ring at {ring} was released before"),
    ("acquire of a full stage", steps("acw") + steps("a", 2), "tile.ring.acquire", 4, "deadlock: step 2 (stage 0) of the ring at {ring} waits for the release of step 0"),
    ("acquire of a skipped step", steps("a", 5), "tile.ring.acquire", 1, "deadlock: step 5 (stage 1) of the ring at {ring} waits for the release of step 3"),
    ("second acquire", steps("aa"), "tile.ring.acquire", 2, "step 0 (stage 0) of the ring at {ring} is acquired a second time"),
    ("acquire of a released step", steps("acwra"), "tile.ring.acquire", 5, "step 0 (stage 0) of the ring at {ring} is acquired a second time"),
    ("release without wait", steps("acr"), "tile.ring.release", 3, "step 0 (stage 0) of the ring at {ring} was not waited for"),
    ("release of a later step", steps("acw") + steps("r", 2), "tile.ring.release", 4, "step 2 (stage 0) of the ring at {ring} was not waited for"),
    ("second release", steps("acwrr"), "tile.ring.release", 5, "step 0 (stage 0) of the ring at {ring} was released before"),
    ("load after release", steps("acwrls"), "tile.load", 5, "reads step 0 (stage 0) of the ring at {ring} after its release"),
    ("load after reuse", steps("acwr") + steps("acw", 2) + steps("ls") + steps("r", 2), "tile.load", 8, "reads step 0 (stage 0) of the ring at {ring} after its release"),
    ("product after release", steps("acwr") + [MMA, MMA_WAIT, STORE_D], "tile.mma_async", 5, "reads step 0 (stage 0) of the ring at {ring} after its release"),
    ("release before the product's end", steps("acw") + [MMA] + steps("r") + [MMA_WAIT, STORE_D], "tile.mma_wait", 6, "reads step 0 (stage 0) of the ring at {ring} after its release"),
    ("acquired at the end", steps("a"), None, 0, "the block ends, but step 0 (stage 0) of the ring at {ring} was never copied"),
    ("copied at the end", steps("ac"), None, 0, "the block ends, but step 0 (stage 0) of the ring at {ring} was never waited for"),
    ("full at the end", steps("acwls"), None, 0, "the block ends, but step 0 (stage 0) of the ring at {ring} was never released"),
    ("negative step", ["tile.ring.acquire %ring[%minus] : !ring"], "tile.ring.acquire", 1, "step -1 of the ring at {ring} is out of range: steps count from 0 on"),
    ("a part missing", [ACQUIRE_PAGES, PAGE.format("c1"), WAIT_PAGES], "tile.ring.wait", 3, "step 0 (stage 0) of the {pages} was never copied"),
    ("a part twice", [ACQUIRE_PAGES, PAGE.format("c1"), PAGE.format("c1")], "tile.copy_async", 3, "part 1 of step 0 (stage 0) of the {pages} is copied a second time"),
    ("no such part", [ACQUIRE_PAGES, PAGE.format("c2")], "tile.copy_async", 2, "step 0 (stage 0) of the {pages} has no part 2 of 2"),
    ("put without acquire", [ZERO, PUT], "tile.ring.put", 2, "step 0 (stage 0) of the ring at {ring} was not acquired"),
    ("put into a full stage", [ZERO] + steps("a") + [PUT, PUT], "tile.ring.put", 4, "step 0 (stage 0) of the ring at {ring} is copied a second time"),
    ("put never released", [ZERO] + steps("a") + [PUT], None, 0, "the block ends, but step 0 (stage 0) of the ring at {ring} was never released"),
    ("copy past the end", steps("a") + ["tile.copy_async %in[%c60] to %ring[%c0] : !memory to !ring"], "tile.copy_async", 2, "touches indices 60 to 75 of dimension 0, which has 64"),
    ("fetch before the start", ["%t0 = tile.fetch %in[%minus] : !memory to !smem"] + steps("ls"), "tile.fetch", 1, "touches indices -1 to 14 of dimension 0, which has 64"),
    ("store past the end", steps("acwlr") + ["tile.store %x0, %out[%c60] : !x to !memory"], "tile.store", 6, "touches indices 60 to 75 of dimension 0, which has 64"),
]

def roles(consumer, producer):
    return (["tile.warp_specialize @consumer(warps = 4, registers = 232) {"] + consumer + ["} @producer(warps = 1, registers = 40) {"] + producer + ["}"])


# The same of blocks whose warps have roles. Lines are those of the body too: the
# consumers' start at 2, the producer's at 3 behind their end.
ROLE_CASES = [
    ("read after release", roles(steps("wr") + steps("ls"), steps("ac") + steps("ac", 1)), "tile.load", 4, "reads step 0 (stage 0) of the ring at {ring} after its release"),
    ("release before the product's end", roles(steps("w") + [MMA] + steps("r") + [MMA_WAIT, STORE_D], steps("ac")), "tile.mma_wait", 5, "reads step 0 (stage 0) of the ring at {ring} after its release"),
    ("producer without acquire", roles(steps("w") + steps("r"), steps("c")), "tile.copy_async", 5, "step 0 (stage 0) of the ring at {ring} was not acquired"),
    ("producer past the end", roles(steps("w") + steps("r"), steps("a") + ["tile.copy_async %in[%c60] to %ring[%c0] : !memory to !ring"]), "tile.copy_async", 6, "touches indices 60 to 75 of dimension 0, which has 64"),
    ("never released", roles(steps("wls"), steps("ac")), None, 0, "the block ends, but step 0 (stage 0) of the ring at {ring} was never released"),
    ("never read", roles([], steps("ac")), None, 0, "the block ends, but step 0 (stage 0) of the ring at {ring} was never waited for"),
]
STUCK_ACQUIRE = "tile.ring.acquire at {program}:{line}:3: step 2 (stage 0) of the ring at {ring} waits for the release of step 0"
STUCK_WAIT = "tile.ring.wait at {program}:{line}:9: step {step} of the ring at {ring} was never copied"
# Name, body, and what the message says of each role: text, line, step.
DEADLOCKS = [
    ("no stage for the step", roles(steps("wls") + steps("w", 2) + steps("rr", 0), steps("ac") + steps("ac", 2)), [(STUCK_ACQUIRE, 11, ""), (STUCK_WAIT, 5, "2 (stage 0)")]),
    ("consumers have ended", roles(steps("wls"), steps("ac") + steps("ac", 2)), [(STUCK_ACQUIRE, 8, "")]),
    ("producer has ended", roles(steps("wlsr") + steps("w", 1), steps("ac")), [(STUCK_WAIT, 6, "1 (stage 1)")]),
    ("another order", roles(steps("w", 1) + steps("lsr", 1) + steps("wlsr"), steps("ac") + steps("ac", 2) + steps("ac", 1)), [(STUCK_ACQUIRE, 13, ""), (STUCK_WAIT, 2, "1 (stage 1)")]),
]

LEGAL = [
    ("one step", steps("acwlrs")),
    ("both stages", steps("ac") + steps("ac", 1) + steps("wlrs") + steps("wlrs", 1) + steps("acwlrs", 2)),
    ("two waits", steps("acwl") + [WAIT.format(0).replace("%t0", "%again")] + steps("rs")),
    ("product", steps("acw") + [MMA, MMA_WAIT] + steps("r") + [STORE_D]),
    ("rows past the end", steps("a") + ["tile.copy_async %in[%c60] rows(%c4) to %ring[%c0] : !memory to !ring"] + steps("wlr")
     + ["tile.store %x0, %out[%c60] rows(%c4) : !x to !memory"]),
    ("roles", roles(steps("wlsr") + steps("wlsr", 1) + steps("wlsr", 2) + steps("wlsr", 3), steps("ac") + steps("ac", 1) + steps("ac", 2) + steps("ac", 3))),
    ("parts in any order", [ACQUIRE_PAGES, PAGE.format("c1"), PAGE.format("c0"), WAIT_PAGES, RELEASE_PAGES]),
    ("put", [ZERO] + steps("a") + [PUT] + steps("wlsr")),
    ("roles with nothing to do", roles([], [])),
]


def run(folder, body):
    program = folder / "p.mlir"
    head, tail = TEMPLATE.split("BODY")
    program.write_text(head + "".join(f"  {line}\n" for line in body) + tail)
    command = ["flash-run", str(program), "--target=emulate"]
    process = subprocess.run(command, capture_output=True, text=True, timeout=60)
    return program, head.count("\n"), process


def main():
    failures = 0
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for name, body in LEGAL:
            _, _, process = run(folder, body)
            if process.returncode:
                failures += 1
                print(f"FAILED {name}: {process.stderr}")
        for name, body, operation, line, message in CASES + ROLE_CASES:
            program, before, process = run(folder, body)
            place = f"{operation} at {program}:{before + line}:" if operation else ""
            expected = message.format(ring=f"{program}:{before}:11", pages=f"ring at {program}:{before - 1}:12")
            got = process.stderr.strip()
            if (process.returncode != 1 or f"flash-run: error: {place}" not in got or f"{expected} (block 0)" not in got):
                failures += 1
                print(f"FAILED {name} (exit {process.returncode})\n  expected: {place} {expected}\n  got:      {got}")
        for name, body, waits in DEADLOCKS:
            program, before, process = run(folder, body)
            expected = ["flash-run: error: deadlock: all roles of the block wait or have ended; "]
            for text, line, step in waits:
                expected.append(text.format(program=program, line=before + line, ring=f"{program}:{before}:11", step=step))
            got = process.stderr.strip()
            if process.returncode != 1 or not all(part in got for part in expected):
                failures += 1
                print(f"FAILED {name} (exit {process.returncode})\n  expected: {expected}\n  got:      {got}")
    print(f"{failures} of {len(CASES) + len(ROLE_CASES) + len(DEADLOCKS) + len(LEGAL)} programs went otherwise")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
