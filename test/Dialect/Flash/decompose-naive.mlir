// RUN: flash-opt %s --flash-decompose-naive --split-input-file | FileCheck %s
// RUN: flash-opt %s --flash-decompose-naive=row-block=16 --split-input-file | FileCheck %s --check-prefix=BLOCK

// The group of 4 query heads is read through the indexing map; scores outside
// the mask are -inf, probabilities are rounded to f16, and a masked element
// adds nothing to the output.

// CHECK-DAG:   #[[KEY:.*]] = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1 floordiv 4, d3, d4)>
// CHECK-LABEL: func @causal(
// CHECK:         %[[KT:.*]] = linalg.generic {{.*}} ins(%arg1 : {{.*}}) outs({{.*}} : tensor<2x2x64x50xf32>)
// CHECK:           arith.extf
// CHECK:         %[[QK:.*]] = linalg.generic {indexing_maps = [{{.*}}, #[[KEY]], {{.*}}], iterator_types = ["parallel", "parallel", "parallel", "reduction", "parallel"]}
// CHECK-SAME:      ins(%arg0, %[[KT]] : {{.*}}) outs({{.*}} : tensor<2x8x40x50xf32>)
// CHECK:         %[[S:.*]] = linalg.generic {{.*}} outs(%[[QK]] :
// CHECK:           arith.mulf %{{.*}}, %cst{{.*}} : f32
// CHECK:           %[[KEEP:.*]] = arith.cmpi sge
// CHECK:           arith.select %[[KEEP]]
// CHECK:         %[[M:.*]] = linalg.generic {{.*}} ins(%[[S]] :
// CHECK:           arith.maximumf
// CHECK:         %[[E:.*]] = linalg.generic {{.*}} ins(%[[M]] : {{.*}}) outs(%[[S]] :
// CHECK:           math.exp
// CHECK:         %[[L:.*]] = linalg.generic {{.*}} ins(%[[E]] :
// CHECK:           arith.addf
// CHECK:         %[[P:.*]] = linalg.generic {{.*}} ins(%[[E]], %[[L]] : {{.*}}) outs({{.*}} : tensor<2x8x40x50xf16>)
// CHECK:           arith.divf
// CHECK:           arith.truncf
// CHECK:         %[[PV:.*]] = linalg.generic {indexing_maps = [{{.*}}, #[[KEY]], {{.*}}], iterator_types = ["parallel", "parallel", "parallel", "reduction", "parallel"]}
// CHECK-SAME:      ins(%[[P]], %arg2 :
// CHECK:           %[[PRODUCT:.*]] = arith.mulf
// CHECK:           %[[KEEP2:.*]] = arith.cmpi sge
// CHECK:           %[[TERM:.*]] = arith.select %[[KEEP2]], %[[PRODUCT]], %{{.*}} : f32
// CHECK:           arith.addf %{{.*}}, %[[TERM]]
// CHECK:         %[[O:.*]] = linalg.generic {{.*}} ins(%[[PV]], %[[L]] :
// CHECK:           arith.truncf
// CHECK:         return %[[O]] : tensor<2x8x40x48xf16>

// 40 queries are two blocks of 16 and one of 8.
// BLOCK-DAG:   #[[ROWS:.*]] = affine_map<(d0) -> (16, -d0 + 40)>
// BLOCK-DAG:   #[[HEAD:.*]] = affine_map<(d0) -> (d0 floordiv 4)>
// BLOCK-LABEL: func @causal(
// BLOCK:         scf.forall (%[[B:.*]], %[[H:.*]], %[[I:.*]]) = (0, 0, 0) to (2, 8, 40) step (1, 1, 16)
// BLOCK-SAME:        shared_outs(%[[SHARED:.*]] = %{{.*}})
// BLOCK:           %[[N:.*]] = affine.min #[[ROWS]](%[[I]])
// BLOCK:           %[[HK:.*]] = affine.apply #[[HEAD]](%[[H]])
// BLOCK:           tensor.extract_slice %arg0[%[[B]], %[[H]], %[[I]], 0] [1, 1, %[[N]], 64]
// BLOCK:           tensor.extract_slice %arg1[%[[B]], %[[HK]], 0, 0] [1, 1, 50, 64]
// BLOCK:           tensor.extract_slice %arg2[%[[B]], %[[HK]], 0, 0] [1, 1, 50, 48]
// BLOCK:           linalg.index 0
// BLOCK:           arith.addi %[[I]], %
// BLOCK:           tensor.parallel_insert_slice %{{.*}} into %[[SHARED]][%[[B]], %[[H]], %[[I]], 0] [1, 1, %[[N]], 48]
func.func @causal(%q: tensor<2x8x40x64xf16>, %k: tensor<2x2x50x64xf16>, %v: tensor<2x2x50x48xf16>) -> tensor<2x8x40x48xf16> {
  %o = flash.attention %q, %k, %v mask(#flash.causal)
      : (tensor<2x8x40x64xf16>, tensor<2x2x50x64xf16>, tensor<2x2x50x48xf16>) -> tensor<2x8x40x48xf16>
  return %o : tensor<2x8x40x48xf16>
}

// -----

// Without a mask nothing is selected by position, and in f32 the softmax is
// computed in place. A scale that f32 cannot hold is kept in f64.

// CHECK-LABEL: func @full(
// CHECK:         %[[SCALE:.*]] = arith.constant 2.000000e-01 : f64
// CHECK:         arith.truncf %[[SCALE]] : f64 to f32
// CHECK-NOT:     arith.cmpi
// CHECK:         %[[O:.*]] = linalg.generic {{.*}} outs(%{{.*}} : tensor<1x1x16x16xf32>)
// CHECK:         %[[LSE:.*]] = linalg.generic {{.*}} outs(%{{.*}} : tensor<1x1x16xf32>)
// CHECK:           math.log
// CHECK:         return %{{.*}}, %[[LSE]]

// BLOCK-LABEL: func @full(
// BLOCK:         scf.forall {{.*}} to (1, 1, 16) step (1, 1, 16)
// BLOCK:           tensor.extract_slice %arg0{{.*}} to tensor<16x16xf32>
// BLOCK:           math.log
// BLOCK:           tensor.parallel_insert_slice {{.*}} : tensor<16x16xf32>
// BLOCK:           tensor.parallel_insert_slice {{.*}} : tensor<16xf32>
func.func @full(%q: tensor<1x1x16x16xf32>, %k: tensor<1x1x32x16xf32>, %v: tensor<1x1x32x16xf32>)
    -> (tensor<1x1x16x16xf32>, tensor<1x1x16xf32>) {
  %o, %lse = flash.attention %q, %k, %v scale(0.2)
      : (tensor<1x1x16x16xf32>, tensor<1x1x32x16xf32>, tensor<1x1x32x16xf32>) -> (tensor<1x1x16x16xf32>, tensor<1x1x16xf32>)
  return %o, %lse : tensor<1x1x16x16xf32>, tensor<1x1x16xf32>
}

// -----

// Head counts that are not static: whole tensors copy key heads, blocks compute
// which one to read.

// CHECK-LABEL: func @dynamic(
// CHECK:         linalg.generic
// CHECK:           %[[SCALED:.*]] = arith.muli
// CHECK:           %[[HEAD:.*]] = arith.divui %[[SCALED]], %
// CHECK:           tensor.extract %arg1[%{{.*}}, %[[HEAD]], %{{.*}}, %{{.*}}]
// CHECK:           tensor.extract %arg2[
// A length and the score region, with its captured tensor, apply to each score.
// CHECK:           %[[LENGTH:.*]] = tensor.extract %arg3[
// CHECK:           %[[KEEP:.*]] = arith.cmpi slt
// CHECK:           %[[BIAS:.*]] = tensor.extract %arg5[
// CHECK:           %[[MODIFIED:.*]] = arith.addf %{{.*}}, %[[BIAS]]
// CHECK:           arith.select %[[KEEP]], %[[MODIFIED]],
// The sink is in the maximum and in the sum.
// CHECK:           tensor.extract %arg4[
// CHECK:           arith.maximumf
// CHECK:           tensor.extract %arg4[
// CHECK:           math.exp

// BLOCK-LABEL: func @dynamic(
// BLOCK:         scf.forall (%[[B:.*]], %[[H:.*]], %{{.*}}) =
// BLOCK:           %[[SCALED:.*]] = arith.muli %[[H]], %
// BLOCK:           %[[HEAD:.*]] = arith.divui %[[SCALED]], %
// BLOCK:           tensor.extract_slice %arg1[%[[B]], %[[HEAD]], 0, 0]
// BLOCK:           tensor.extract %arg3[%[[B]]]
func.func @dynamic(%q: tensor<?x?x?x16xf32>, %k: tensor<?x?x?x16xf32>, %v: tensor<?x?x?x16xf32>, %n: tensor<?xi32>,
                   %sink: tensor<?xf32>, %bias: tensor<?xf32>) -> tensor<?x?x?x16xf32> {
  %o = flash.attention %q, %k, %v lengths(%n : tensor<?xi32>) sink(%sink : tensor<?xf32>) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %x = tensor.extract %bias[%j] : tensor<?xf32>
    %r = arith.addf %s, %x : f32
    flash.yield %r : f32
  } : (tensor<?x?x?x16xf32>, tensor<?x?x?x16xf32>, tensor<?x?x?x16xf32>) -> tensor<?x?x?x16xf32>
  return %o : tensor<?x?x?x16xf32>
}

// -----

// A union of sets is a disjunction of conjunctions.

#block = affine_set<(b, h, i, j)[nq, nk] : (i floordiv 8 - j floordiv 8 == 0, j mod 3 - 1 >= 0)>
// CHECK-LABEL: func @union(
// CHECK:         %[[PREFIX:.*]] = arith.cmpi sge
// CHECK:         %[[SAME:.*]] = arith.cmpi eq
// CHECK:         %[[THIRD:.*]] = arith.cmpi sge
// CHECK:         %[[BOTH:.*]] = arith.andi %[[SAME]], %[[THIRD]]
// CHECK:         arith.ori %[[PREFIX]], %[[BOTH]]
func.func @union(%q: tensor<1x1x16x16xf32>) -> tensor<1x1x16x16xf32> {
  %o = flash.attention %q, %q, %q mask(#flash.any_of<[#flash.prefix<4>, #flash.affine<#block>]>)
      : (tensor<1x1x16x16xf32>, tensor<1x1x16x16xf32>, tensor<1x1x16x16xf32>) -> tensor<1x1x16x16xf32>
  return %o : tensor<1x1x16x16xf32>
}

// -----

// Division of what is not negative, or by a power of two, has no sign.

#quotients = affine_set<(b, h, i, j)[nq, nk] : (i floordiv 100 - j floordiv 64 == 0, (i - j) mod 4 + (j + 5) mod 3 - 1 >= 0)>
#signed = affine_set<(b, h, i, j)[nq, nk] : ((i - j) mod 3 == 0)>
// CHECK-LABEL: func @quotients(
// CHECK-DAG:     %[[HUNDRED:.*]] = arith.constant 100 : index
// CHECK-DAG:     arith.divui %{{.*}}, %[[HUNDRED]]
// CHECK-DAG:     %[[SIX:.*]] = arith.constant 6 : index
// CHECK-DAG:     arith.shrsi %{{.*}}, %[[SIX]]
// CHECK-DAG:     %[[THREE:.*]] = arith.constant 3 : index
// CHECK-DAG:     arith.andi %{{.*}}, %[[THREE]]
// CHECK-DAG:     arith.remui %{{.*}}, %[[THREE]]
// CHECK:         return
// CHECK-LABEL: func @signed(
// CHECK:         arith.remsi
func.func @quotients(%q: tensor<1x1x16x16xf32>) -> tensor<1x1x16x16xf32> {
  %o = flash.attention %q, %q, %q mask(#flash.affine<#quotients>)
      : (tensor<1x1x16x16xf32>, tensor<1x1x16x16xf32>, tensor<1x1x16x16xf32>) -> tensor<1x1x16x16xf32>
  return %o : tensor<1x1x16x16xf32>
}
func.func @signed(%q: tensor<1x1x16x16xf32>) -> tensor<1x1x16x16xf32> {
  %o = flash.attention %q, %q, %q mask(#flash.affine<#signed>)
      : (tensor<1x1x16x16xf32>, tensor<1x1x16x16xf32>, tensor<1x1x16x16xf32>) -> tensor<1x1x16x16xf32>
  return %o : tensor<1x1x16x16xf32>
}

// -----

// What a region masks it leaves out of the scores and of the last product.

// CHECK-LABEL: func @keep(
// CHECK:         %[[IN:.*]] = arith.cmpi sge
// CHECK:         %[[KEEP:.*]] = arith.cmpi ne
// CHECK:         %[[ALL:.*]] = arith.andi %[[IN]], %[[KEEP]]
// CHECK:         arith.select %[[ALL]], %{{.*}}, %cst
// CHECK:         %[[KEEP:.*]] = arith.cmpi ne
// CHECK:         %[[ALL:.*]] = arith.andi %{{.*}}, %[[KEEP]]
// CHECK:         arith.select %[[ALL]]
func.func @keep(%q: tensor<1x1x16x16xf32>) -> tensor<1x1x16x16xf32> {
  %o = flash.attention %q, %q, %q mask(#flash.causal) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %keep = arith.cmpi ne, %i, %j : index
    flash.yield %s keep %keep : f32
  } : (tensor<1x1x16x16xf32>, tensor<1x1x16x16xf32>, tensor<1x1x16x16xf32>) -> tensor<1x1x16x16xf32>
  return %o : tensor<1x1x16x16xf32>
}
