// A kernel becomes a parallel loop, and its stores slices.
// RUN: flash-opt %s --convert-flash-to-scf --canonicalize --cse | FileCheck %s
// RUN: flash-opt %s | flash-opt | FileCheck %s --check-prefix=PRINTED

// CHECK-LABEL: func @stores
// CHECK:         scf.forall (%[[B:.*]], %[[H:.*]], %[[I:.*]]) = (0, 0, 0) to (2, 8, %[[N:.*]]) step (1, 4, 16) shared_outs(%[[O:.*]] = %{{.*}}, %[[L:.*]] = %{{.*}})
// CHECK:           %[[ROWS:.*]] = affine.min
// CHECK:           %[[SOME:.*]] = tensor.extract_slice %{{.*}}[0] [%[[ROWS]]] [1] : tensor<64xf32> to tensor<?xf32>
// CHECK:           scf.forall.in_parallel {
// CHECK-NEXT:        tensor.parallel_insert_slice %{{.*}} into %[[O]][%[[B]], %[[H]], %[[I]], 0] [1, 4, 16, 8] [1, 1, 1, 1] : tensor<4x16x8xf16> into tensor<2x8x?x8xf16>
// CHECK-NEXT:        tensor.parallel_insert_slice %[[SOME]] into %[[L]][%[[B]], %[[H]], %[[I]]] [1, 1, %[[ROWS]]] [1, 1, 1] : tensor<?xf32> into tensor<2x8x?xf32>
// CHECK:         } {flash.schedule = #flash.schedule<warps = 4, stages = 2>, mapping =
// CHECK-SAME:    tile.order = #tile.order<backwards>}
// PRINTED: flash.kernel over(%{{.*}}, %{{.*}}, %{{.*}}) by [1, 4, 16] outs(%{{.*}}, %{{.*}} : tensor<2x8x?x8xf16>, tensor<2x8x?xf32>) schedule(<warps = 4, stages = 2>) order(<backwards>)
// PRINTED: flash.store_rows %{{.*}} into %{{.*}}[%{{.*}}, %{{.*}}, %{{.*}}] packed(4) : tensor<64x8xf16> into tensor<2x8x?x8xf16>
// PRINTED: flash.store_rows %{{.*}} into %{{.*}}[%{{.*}}, %{{.*}}, %{{.*}}] rows(%{{.*}}) : tensor<64xf32> into tensor<2x8x?xf32>
func.func @stores(%o: tensor<2x8x?x8xf16>, %l: tensor<2x8x?xf32>, %x: tensor<64x8xf16>, %y: tensor<64xf32>)
    -> (tensor<2x8x?x8xf16>, tensor<2x8x?xf32>) {
  %c2 = arith.constant 2 : index
  %c8 = arith.constant 8 : index
  %n = tensor.dim %o, %c2 : tensor<2x8x?x8xf16>
  %0:2 = flash.kernel over(%c2, %c8, %n) by [1, 4, 16] outs(%o, %l : tensor<2x8x?x8xf16>, tensor<2x8x?xf32>)
      schedule(<warps = 4, stages = 2>) order(<backwards>) {
  ^bb0(%b: index, %h: index, %i: index, %to: tensor<2x8x?x8xf16>, %lse: tensor<2x8x?xf32>):
    %rows = affine.min affine_map<(d0)[s0] -> (s0 - d0, 64)>(%i)[%n]
    flash.store {
      flash.store_rows %x into %to[%b, %h, %i] packed(4) : tensor<64x8xf16> into tensor<2x8x?x8xf16>
      flash.store_rows %y into %lse[%b, %h, %i] rows(%rows) : tensor<64xf32> into tensor<2x8x?xf32>
    }
  }
  return %0#0, %0#1 : tensor<2x8x?x8xf16>, tensor<2x8x?xf32>
}
