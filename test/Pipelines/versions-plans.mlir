// The version of a program for calls of certain sizes, and its plan: flash-opt
// has the pipelines of the C library.
// RUN: flash-opt %s --flash-version="target=sm_90a sizes=1x4x1x64,1x4x4096x64" | FileCheck %s --check-prefix=VERSION
// RUN: flash-opt %s --flash-plan="target=sm_90a" | FileCheck %s --check-prefix=PLAN
// RUN: flash-opt %s --flash-plan="target=sm_90a sizes=1x4x1x64,1x4x4096x64 schedule=key_tile=64,block_map=1" | FileCheck %s --check-prefixes=PLAN,SIZES

// VERSION:     func.func @attention(
// VERSION-NOT:   flash.block_map
// VERSION:       schedule(<query_tile = 64, {{.*}}split_ctas = 44>)

// PLAN:  func.func @attention({{.*}}, %[[TILES:[^:]*]]: tensor<1x1x?x?xi32>, %[[COUNTS:[^:]*]]: tensor<1x1x?x2xi32>)
// PLAN:    flash.block_map {{.*}} given(%[[TILES]], %[[COUNTS]] :
// SIZES:   schedule(<query_tile = 64, key_tile = 64
// PLAN:  func.func @attention_plan(
// PLAN:    %[[TILES:.*]], %[[COUNTS:.*]] = flash.block_map
// PLAN-NOT: given
// PLAN:    return %[[TILES]], %[[COUNTS]]
func.func @attention(%q: tensor<?x?x?x64xf16>, %k: tensor<?x?x?x64xf16>, %ids: tensor<?xi32>) -> tensor<?x?x?x64xf16> {
  %o = flash.attention %q, %k, %k score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %x = tensor.extract %ids[%i] : tensor<?xi32>
    %y = tensor.extract %ids[%j] : tensor<?xi32>
    %same = arith.cmpi eq, %x, %y : i32
    %none = arith.constant 0xFF800000 : f32
    %masked = arith.select %same, %s, %none : f32
    flash.yield %masked : f32
  } : (tensor<?x?x?x64xf16>, tensor<?x?x?x64xf16>, tensor<?x?x?x64xf16>) -> tensor<?x?x?x64xf16>
  return %o : tensor<?x?x?x64xf16>
}
