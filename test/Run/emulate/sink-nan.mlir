// A sink that is NaN makes the rows of its head NaN, and not rows without weight for their keys.

// RUN: flash-run %s --function=gradients --target=cpu --check --fill 1=nan@1 | FileCheck %s
// RUN: flash-run %s --function=gradients --target=emulate --check --fill 1=nan@1 | FileCheck %s
// RUN: flash-run %s --function=gradients --target=emulate:sm_90a --check --fill 1=nan@1 | FileCheck %s
// RUN: flash-run %s --function=splits --target=emulate --check --fill 1=nan@1 | FileCheck %s
// RUN: flash-run %s --function=splits --target=emulate:sm_90a --check --fill 1=nan@1 | FileCheck %s

// CHECK: check: ok

!t = tensor<1x2x70x16xf16>
!l = tensor<1x2x70xf32>
!s = tensor<2xf32>

func.func @gradients(%x: !t, %sinks: !s) -> (!t, !l, !s) {
  %o, %lse = flash.attention %x, %x, %x sink(%sinks : !s) : (!t, !t, !t) -> (!t, !l)
  %dq, %dk, %dv, %ds = flash.attention_grad %x, %x, %x, %o, %lse, %o sink(%sinks : !s)
      : (!t, !t, !t, !t, !l, !t) -> (!t, !t, !t, !s)
  return %o, %lse, %ds : !t, !l, !s
}

func.func @splits(%x: !t, %sinks: !s) -> (!t, !l) {
  %o, %lse = flash.attention %x, %x, %x sink(%sinks : !s) schedule(<key_tile = 32, num_splits = 2>)
      : (!t, !t, !t) -> (!t, !l)
  return %o, %lse : !t, !l
}
