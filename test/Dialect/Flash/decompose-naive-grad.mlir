// RUN: flash-opt %s --flash-decompose-naive-grad --split-input-file | FileCheck %s
// RUN: flash-opt %s --flash-decompose-naive-grad=row-block=0 --split-input-file | FileCheck %s --check-prefix=HEAD

// Two query heads read a key head, and 100 queries are two blocks. What is
// masked, and a row that sees no key, adds nothing to any product.

// CHECK-DAG:   #[[ROWS:.*]] = affine_map<(d0) -> (64, -d0 + 100)>
// CHECK-DAG:   #[[FIRST:.*]] = affine_map<(d0) -> (d0 * 2)>
// CHECK-LABEL: func @causal(
// CHECK:         %[[DELTA:.*]] = linalg.generic {{.*}} ins(%arg5, %arg3 :
// CHECK:         scf.forall (%{{.*}}, %[[HK:.*]]) in (2, 2) shared_outs
// CHECK:           %[[H0:.*]] = affine.apply #[[FIRST]](%[[HK]])
// CHECK:           %[[K:.*]] = tensor.extract_slice %arg1
// CHECK:           %[[KT:.*]] = linalg.generic {{.*}} ins(%[[K]] : {{.*}}) outs({{.*}} : tensor<64x70xf32>)
// CHECK:           %[[VT:.*]] = linalg.generic {{.*}} outs({{.*}} : tensor<32x70xf32>)
// CHECK:           scf.for %[[G:.*]] = %c0{{.*}} to %c2
// CHECK:             scf.for %[[I:.*]] = {{.*}} to %c100 step %c64
// CHECK:               arith.addi %[[H0]], %[[G]]
// CHECK:               affine.min #[[ROWS]](%[[I]])
// CHECK:               %[[Q:.*]] = linalg.generic
// CHECK:                 arith.cmpf une, %{{.*}}, %{{.*}} : f32
// CHECK:                 arith.select
// CHECK:               %[[DO:.*]] = linalg.generic
// CHECK:               %[[QK:.*]] = linalg.generic {{.*}} ins(%[[Q]], %[[KT]] :
// CHECK:               %[[X:.*]] = linalg.generic {{.*}} outs(%[[QK]] :
// CHECK:               %[[P:.*]] = linalg.generic {{.*}} ins(%[[X]],
// CHECK:                 arith.cmpi sge
// CHECK:                 arith.cmpf une
// CHECK:                 math.exp
// CHECK:                 arith.select
// CHECK:               %[[DP:.*]] = linalg.generic {{.*}} ins(%[[DO]], %[[VT]] :
// CHECK:               %[[DS:.*]] = linalg.generic {{.*}} ins(%[[P]], %[[DP]],
// CHECK:                 %[[DIFFERENCE:.*]] = arith.subf
// CHECK:                 arith.mulf %{{.*}}, %[[DIFFERENCE]]
// CHECK:               linalg.generic {{.*}} iterator_types = ["parallel", "reduction", "parallel"]} ins(%[[DS]], %[[K]] :
// CHECK:                 arith.cmpi sge
// CHECK:                 arith.select
// CHECK:               linalg.generic {{.*}} iterator_types = ["reduction", "parallel", "parallel"]} ins(%[[DS]], %[[Q]] :
// CHECK:               linalg.generic {{.*}} iterator_types = ["reduction", "parallel", "parallel"]} ins(%[[P]], %[[DO]] :
// CHECK-NOT:     math.exp

// The scores of all queries of a head.
// HEAD-LABEL: func @causal(
// HEAD:         scf.for {{.*}} step %c100
// HEAD:           tensor<100x70xf32>
func.func @causal(%q: tensor<2x4x100x64xf16>, %k: tensor<2x2x70x64xf16>, %v: tensor<2x2x70x32xf16>,
                  %o: tensor<2x4x100x32xf16>, %lse: tensor<2x4x100xf32>, %do: tensor<2x4x100x32xf16>)
    -> (tensor<2x4x100x64xf16>, tensor<2x2x70x64xf16>, tensor<2x2x70x32xf16>) {
  %dq, %dk, %dv = flash.attention_grad %q, %k, %v, %o, %lse, %do mask(#flash.causal)
      : (tensor<2x4x100x64xf16>, tensor<2x2x70x64xf16>, tensor<2x2x70x32xf16>,
         tensor<2x4x100x32xf16>, tensor<2x4x100xf32>, tensor<2x4x100x32xf16>)
      -> (tensor<2x4x100x64xf16>, tensor<2x2x70x64xf16>, tensor<2x2x70x32xf16>)
  return %dq, %dk, %dv : tensor<2x4x100x64xf16>, tensor<2x2x70x64xf16>, tensor<2x2x70x32xf16>
}

// -----

// The gradient of the log-sum-exp is subtracted from delta; the sink's is a sum
// over batches and queries. Scores are not needed where nothing else is wanted.

// CHECK-LABEL: func @sink(
// CHECK:         %[[MINUS:.*]] = linalg.generic {{.*}} ins(%arg3 :
// CHECK-NEXT:    ^bb0
// CHECK-NEXT:      arith.negf
// CHECK:         %[[DELTA:.*]] = linalg.generic {{.*}} outs(%[[MINUS]] :
// CHECK-NOT:     scf.forall
// CHECK:         linalg.generic {{.*}} iterator_types = ["parallel", "reduction", "reduction"]} ins(%arg1, %[[DELTA]] :
// CHECK:           tensor.extract %arg2
// CHECK:           math.exp
// CHECK:           arith.select
func.func @sink(%q: tensor<2x4x?x16xf32>, %lse: tensor<2x4x?xf32>, %s: tensor<4xf32>, %dl: tensor<2x4x?xf32>) -> tensor<4xf32> {
  %0:4 = flash.attention_grad %q, %q, %q, %q, %lse, %q sink(%s : tensor<4xf32>) lse_grad(%dl : tensor<2x4x?xf32>)
      : (tensor<2x4x?x16xf32>, tensor<2x4x?x16xf32>, tensor<2x4x?x16xf32>, tensor<2x4x?x16xf32>, tensor<2x4x?xf32>, tensor<2x4x?x16xf32>)
      -> (tensor<2x4x?x16xf32>, tensor<2x4x?x16xf32>, tensor<2x4x?x16xf32>, tensor<4xf32>)
  return %0#3 : tensor<4xf32>
}

// -----

// Gradients of what the score region reads are added in f64, one element after
// the other, in loops that are not parallel.

// CHECK-LABEL: func @captured(
// CHECK-NOT:     scf.forall
// CHECK:         scf.for %{{.*}} = %c0{{.*}} to %c8
// CHECK:           scf.for %{{.*}} = %c0{{.*}} to %c6
// CHECK:         scf.if
// CHECK:           %[[D:.*]] = arith.subi
// CHECK:           tensor.extract %arg2[%[[D]]] : tensor<15xbf16>
// CHECK:           %[[OLD:.*]] = tensor.extract %[[SUM:.*]][%[[D]]] : tensor<15xf64>
// CHECK:           %[[NEW:.*]] = arith.addf %[[OLD]], %{{.*}} : f64
// CHECK:           tensor.insert %[[NEW]] into %[[SUM]][%[[D]]] : tensor<15xf64>
// CHECK:         arith.truncf %{{.*}} : f64 to bf16
func.func @captured(%q: tensor<1x1x8x8xf32>, %k: tensor<1x1x6x8xf32>, %table: tensor<15xbf16>, %lse: tensor<1x1x8xf32>) -> tensor<15xbf16> {
  %0:4 = flash.attention_grad %q, %k, %k, %q, %lse, %q wrt(%table : tensor<15xbf16>) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %d = arith.subi %i, %j : index
    %t = tensor.extract %table[%d] : tensor<15xbf16>
    %e = arith.extf %t : bf16 to f32
    %r = arith.addf %s, %e : f32
    flash.yield %r : f32
  } : (tensor<1x1x8x8xf32>, tensor<1x1x6x8xf32>, tensor<1x1x6x8xf32>, tensor<1x1x8x8xf32>, tensor<1x1x8xf32>, tensor<1x1x8x8xf32>)
      -> (tensor<1x1x8x8xf32>, tensor<1x1x6x8xf32>, tensor<1x1x6x8xf32>, tensor<15xbf16>)
  return %0#3 : tensor<15xbf16>
}

// -----

// Without keys the gradients are zeros; no slice would be valid.
// CHECK-LABEL: func @no_keys(
// CHECK-NOT:     tensor.extract_slice
// CHECK:         linalg.fill {{.*}} -> tensor<1x1x8x8xf16>
func.func @no_keys(%q: tensor<1x1x8x8xf16>, %k: tensor<1x1x0x8xf16>, %lse: tensor<1x1x8xf32>) -> tensor<1x1x8x8xf16> {
  %0:3 = flash.attention_grad %q, %k, %k, %q, %lse, %q
      : (tensor<1x1x8x8xf16>, tensor<1x1x0x8xf16>, tensor<1x1x0x8xf16>, tensor<1x1x8x8xf16>, tensor<1x1x8xf32>, tensor<1x1x8x8xf16>)
      -> (tensor<1x1x8x8xf16>, tensor<1x1x0x8xf16>, tensor<1x1x0x8xf16>)
  return %0#0 : tensor<1x1x8x8xf16>
}
