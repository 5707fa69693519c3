// Several attentions, a call and elementwise arithmetic between them.
// RUN: flash-run --target=cpu %s --check | FileCheck %s
// CHECK: check: ok
func.func private @helper(%q: tensor<1x2x64x64xf32>) -> tensor<1x2x64x64xf32> {
  %o = flash.attention %q, %q, %q mask(#flash.causal) : (tensor<1x2x64x64xf32>, tensor<1x2x64x64xf32>, tensor<1x2x64x64xf32>) -> tensor<1x2x64x64xf32>
  return %o : tensor<1x2x64x64xf32>
}
func.func @main(%q: tensor<1x2x64x64xf32>, %w: tensor<1x2x64x64xf32>) -> tensor<1x2x64x64xf32> {
  %a = call @helper(%q) : (tensor<1x2x64x64xf32>) -> tensor<1x2x64x64xf32>
  %s = arith.mulf %a, %w : tensor<1x2x64x64xf32>
  %o = flash.attention %s, %q, %a : (tensor<1x2x64x64xf32>, tensor<1x2x64x64xf32>, tensor<1x2x64x64xf32>) -> tensor<1x2x64x64xf32>
  return %o : tensor<1x2x64x64xf32>
}
