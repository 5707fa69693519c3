// Attention in linalg with the causal mask as a select against -inf and the
// scale folded into the query: recognised, fused, and equal to what was written.
// RUN: flash-run --target=cpu %s --check --dump=l0 | FileCheck %s
// CHECK:     flash.attention {{.*}} scale(1.000000e+00) mask(#flash.causal)
// CHECK-NOT: linalg.softmax
// CHECK:     check: ok
#id = affine_map<(b, i, j) -> (b, i, j)>
func.func @attention(%q: tensor<4x200x32xf32>, %k: tensor<4x200x32xf32>, %v: tensor<4x200x32xf32>) -> tensor<4x200x32xf32> {
  %zero = arith.constant 0.0 : f32
  %infinity = arith.constant dense<0xFF800000> : tensor<4x200x200xf32>
  %scale = arith.constant dense<0.176776695> : tensor<4x200x32xf32>
  %qs = arith.mulf %q, %scale : tensor<4x200x32xf32>
  %es = tensor.empty() : tensor<4x200x200xf32>
  %s0 = linalg.fill ins(%zero : f32) outs(%es : tensor<4x200x200xf32>) -> tensor<4x200x200xf32>
  %s = linalg.batch_matmul indexing_maps = [affine_map<(b, m, n, d) -> (b, m, d)>, affine_map<(b, m, n, d) -> (b, n, d)>,
                                            affine_map<(b, m, n, d) -> (b, m, n)>]
      ins(%qs, %k : tensor<4x200x32xf32>, tensor<4x200x32xf32>) outs(%s0 : tensor<4x200x200xf32>) -> tensor<4x200x200xf32>
  %em = tensor.empty() : tensor<4x200x200xi1>
  %mask = linalg.generic {indexing_maps = [#id], iterator_types = ["parallel", "parallel", "parallel"]} outs(%em : tensor<4x200x200xi1>) {
  ^bb0(%out: i1):
    %i = linalg.index 1 : index
    %j = linalg.index 2 : index
    %keep = arith.cmpi sle, %j, %i : index
    linalg.yield %keep : i1
  } -> tensor<4x200x200xi1>
  %x = arith.select %mask, %s, %infinity : tensor<4x200x200xi1>, tensor<4x200x200xf32>
  %ep = tensor.empty() : tensor<4x200x200xf32>
  %p = linalg.softmax dimension(2) ins(%x : tensor<4x200x200xf32>) outs(%ep : tensor<4x200x200xf32>) -> tensor<4x200x200xf32>
  %eo = tensor.empty() : tensor<4x200x32xf32>
  %o0 = linalg.fill ins(%zero : f32) outs(%eo : tensor<4x200x32xf32>) -> tensor<4x200x32xf32>
  %o = linalg.batch_matmul ins(%p, %v : tensor<4x200x200xf32>, tensor<4x200x32xf32>) outs(%o0 : tensor<4x200x32xf32>) -> tensor<4x200x32xf32>
  return %o : tensor<4x200x32xf32>
}
