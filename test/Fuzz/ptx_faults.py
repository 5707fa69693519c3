"""Whether ptx.py finds what is wrong with short kernels, each beside one that is right."""
import sys

import numpy as np

import ptx

# The parameter is the address of 64 bytes. Of shared memory there are 64, too.
KERNEL = """
.visible .entry kernel(
	.param .u64 .ptr .global .align 1 kernel_param_0
)
.reqntid 32
{{
	.reg .b32 %r<9>;
	ld.param.b64 %rd0, [kernel_param_0];
	mov.u32 %r1, %tid.x;
	mov.b32 %r2, 0;
	setp.eq.b32 %p1, %r1, 0;
	@!%p1 bra $end;
{}
$end:
	ret;
}}
"""
COPY = "cp.async.cg.shared.global [%r2], [%rd0], 16;\ncp.async.commit_group;"
ZEROS = "cp.async.cg.shared.global [%r2], [%rd0], 16, 0;\ncp.async.commit_group;"
ELSEWHERE = "cp.async.cg.shared.global [%r2+16], [%rd0], 16;\ncp.async.commit_group;"
READ = "ld.shared.b32 %r3, [%r2];\nst.global.b32 [%rd0], %r3;"


def wait(left):
    return f"cp.async.wait_group {left};"


PENDING = "a copy is pending"
CASES = [
    ([COPY, wait(0), READ], None),
    ([COPY, READ], PENDING),
    ([ZEROS, READ], PENDING),
    # A wait leaves the youngest groups.
    ([COPY, ELSEWHERE, wait(1), READ], None),
    ([ELSEWHERE, COPY, wait(1), READ], PENDING),
    # Nothing orders copies among each other.
    ([COPY, COPY, wait(0), READ], PENDING),
    ([ZEROS, COPY, wait(0), READ], PENDING),
    ([COPY, wait(0), COPY, wait(0), READ], None),
    (["st.shared.b32 [%r2], 1;", COPY, wait(0), READ], None),
    ([COPY, "st.shared.b32 [%r2+12], 1;"], PENDING),
    ([COPY, "st.shared.b32 [%r2+16], 1;"], None),
    (["st.global.b32 [%rd0+60], 1;"], None),
    (["st.global.b32 [%rd0+64], 1;"], "an address in global memory is out of range"),
    (["st.global.b32 [%rd0+-4], 1;"], "an address in global memory is out of range"),
    (["st.shared.b32 [%r2+64], 1;"], "an address in shared memory is out of range"),
    (["st.global.v2.b32 [%rd0+4], {1, 1};"], "an address is no multiple of 8"),
    (["bar.sync 1, 33;"], "some threads wait at a barrier"),
    (["bar.sync 1, 0;"], "come to a barrier of 0"),
]


def main():
    bad = 0
    for statements, expected in CASES:
        text = "\n".join(statements)
        kernel = ptx.Kernel(KERNEL.format(text), "kernel")
        # Behind one allocation there is another one.
        memory = ptx.Memory([4096, 8192], [64, 64], np.zeros(128, np.uint8), 0)
        try:
            # Of two blocks.
            ptx.launch(kernel, 2, 32, 64, (4096).to_bytes(8, "little"), memory)
            found = None
        except ptx.Fault as fault:
            found = str(fault)
        if bool(found) != bool(expected) or expected and expected not in found:
            bad += 1
            print(f"{text}\nfound: {found}; expected: {expected}\n")
    print(f"{len(CASES)} kernels, {bad} bad")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
