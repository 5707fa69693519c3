// A scale whose product with a constant f32 cannot hold multiplies scores before the maximum: 0 * -inf would be NaN.
// RUN: flash-run %s --target=cpu --check | FileCheck %s
// RUN: flash-run %s --target=emulate --check | FileCheck %s
// RUN: flash-run %s --target=emulate:sm_90a --check | FileCheck %s
// CHECK: check: ok
!t = tensor<1x1x47x64xf32>
func.func @f(%q: !t, %k: !t, %v: !t) -> !t {
  %o = flash.attention %q, %k, %v scale(1.0e-46) : (!t, !t, !t) -> !t
  return %o : !t
}
