// Tensors that score programs read by the query or the key end with the last one,
// as tiles in part do not.
// RUN: flash-run %s --target=emulate --check | FileCheck %s
// RUN: flash-run %s --target=emulate:sm_90a --check | FileCheck %s
// CHECK: check: ok
!query = tensor<1x2x5x64xf16>
!key = tensor<1x2x100x64xf16>
func.func @attention(%q: !query, %k: !key, %of_query: tensor<5xf32>, %of_key: tensor<100xf32>) -> !query {
  %o = flash.attention %q, %k, %k score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %x = tensor.extract %of_query[%i] : tensor<5xf32>
    %y = tensor.extract %of_key[%j] : tensor<100xf32>
    %t = arith.addf %s, %x : f32
    %u = arith.addf %t, %y : f32
    flash.yield %u : f32
  } : (!query, !key, !key) -> !query
  return %o : !query
}
