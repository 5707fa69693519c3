// --schedule replaces the program's choice and the model's.
// RUN: flash-run --target=cpu %s --schedule=query_tile=16,key_tile=24 --dump=l1 --check | FileCheck %s
// CHECK: flash.online_attention ins({{.*}} : tensor<16x8xf32>, tensor<24x8xf32>
// CHECK: check: ok
func.func @attention(%q: tensor<1x2x48x8xf32>, %k: tensor<1x2x48x8xf32>, %v: tensor<1x2x48x8xf32>) -> tensor<1x2x48x8xf32> {
  %o = flash.attention %q, %k, %v schedule(#flash.schedule<query_tile = 8, key_tile = 8>)
      : (tensor<1x2x48x8xf32>, tensor<1x2x48x8xf32>, tensor<1x2x48x8xf32>) -> tensor<1x2x48x8xf32>
  return %o : tensor<1x2x48x8xf32>
}
