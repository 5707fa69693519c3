// An element of an argument that is read outside of kernels is read by the kernels that need it.
// RUN: flash-run %s --target=cpu,emulate,emulate:sm_90a --check | FileCheck %s
// CHECK: cpu check: ok
// CHECK: emulate check: ok
// CHECK: emulate:sm_90a check: ok
!t = tensor<1x2x32x16xf16>
func.func @main(%q: !t, %k: !t, %t: tensor<1xf32>) -> !t {
  %c0 = arith.constant 0 : index
  %c = tensor.extract %t[%c0] : tensor<1xf32>
  %r = flash.attention %q, %k, %k score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %x = arith.mulf %s, %c : f32
    flash.yield %x : f32
  } : (!t, !t, !t) -> !t
  return %r : !t
}
