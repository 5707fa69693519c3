// RUN: flash-opt %s --flash-decompose --split-input-file --verify-diagnostics | FileCheck %s

// CHECK-DAG:   #[[DI:.*]] = affine_map<(d0, d1) -> (d1, d0)>
// CHECK-DAG:   #[[KEY:.*]] = affine_map<(d0, d1, d2) -> (d0, d2)>
// CHECK-DAG:   #[[QUERY:.*]] = affine_map<(d0, d1, d2) -> (d2, d1)>
// CHECK-LABEL: func @step(
// CHECK-SAME:    %[[Q:.*]]: tensor<16x8xf32>, %[[K:.*]]: tensor<32x8xf32>, %[[V:.*]]: tensor<32x24xf32>,
// CHECK-SAME:    %[[ACC:.*]]: tensor<16x24xf32>, %[[MAX:.*]]: tensor<16xf32>, %[[SUM:.*]]: tensor<16xf32>
// CHECK:         %[[QT:.*]] = linalg.generic {indexing_maps = [#[[DI]], {{.*}} ins(%[[Q]]
// Scaled to base-2 logarithms: 0.5 * log2(e).
// CHECK:           arith.constant 0.72134751
// CHECK:         %[[S:.*]] = linalg.generic {indexing_maps = [#[[KEY]], #[[QUERY]], {{.*}} ins(%[[K]], %[[QT]] : {{.*}} outs(%{{.*}} : tensor<32x16xf32>)
// CHECK:         %[[NEW_MAX:.*]] = linalg.generic {{.*}} iterator_types = ["reduction", "parallel"]} ins(%[[S]] : {{.*}} outs(%[[MAX]]
// CHECK:         %[[SHIFT:.*]] = linalg.generic {{.*}} ins(%[[NEW_MAX]]
// CHECK:         %[[RESCALE:.*]] = linalg.generic {{.*}} ins(%[[MAX]], %[[SHIFT]]
// CHECK:           math.exp2
// CHECK:         %[[P:.*]] = linalg.generic {{.*}} ins(%[[SHIFT]] : {{.*}} outs(%[[S]]
// CHECK:           math.exp2
// CHECK:         %[[TILE_SUM:.*]] = linalg.generic {{.*}} ins(%[[P]]
// CHECK:         %[[NEW_SUM:.*]] = linalg.generic {{.*}} ins(%[[TILE_SUM]], %[[RESCALE]] : {{.*}} outs(%[[SUM]]
// CHECK:         %[[PV:.*]] = linalg.generic {{.*}} ins(%[[P]], %[[V]]
// CHECK:         %[[NEW_ACC:.*]] = linalg.generic {{.*}} ins(%[[PV]], %[[RESCALE]] : {{.*}} outs(%[[ACC]]
// CHECK:         return %[[NEW_ACC]], %[[NEW_MAX]], %[[NEW_SUM]]
func.func @step(%q: tensor<16x8xf32>, %k: tensor<32x8xf32>, %v: tensor<32x24xf32>, %acc: tensor<16x24xf32>, %max: tensor<16xf32>, %sum: tensor<16xf32>)
    -> (tensor<16x24xf32>, tensor<16xf32>, tensor<16xf32>) {
  %a, %m, %l = flash.online_attention ins(%q, %k, %v : tensor<16x8xf32>, tensor<32x8xf32>, tensor<32x24xf32>)
      outs(%acc, %max, %sum : tensor<16x24xf32>, tensor<16xf32>, tensor<16xf32>) at[0, 0, 0, 0] of[16, 32] scale(0.5)
  return %a, %m, %l : tensor<16x24xf32>, tensor<16xf32>, tensor<16xf32>
}

// -----

// 16-bit tiles are widened once, so that products run on f32 alone.

// CHECK-LABEL: func @half(
// CHECK:         linalg.generic {{.*}} ins(%{{.*}} : tensor<32x8xf16>) outs(%{{.*}} : tensor<32x8xf32>)
// CHECK-NEXT:    ^bb0
// CHECK-NEXT:      arith.extf
// CHECK:         linalg.generic {{.*}} ins(%{{.*}} : tensor<32x24xf16>) outs(%{{.*}} : tensor<32x24xf32>)
// CHECK-NEXT:    ^bb0
// CHECK-NEXT:      arith.extf
func.func @half(%q: tensor<16x8xf16>, %k: tensor<32x8xf16>, %v: tensor<32x24xf16>, %acc: tensor<16x24xf32>, %max: tensor<16xf32>, %sum: tensor<16xf32>)
    -> tensor<16x24xf32> {
  %a, %m, %l = flash.online_attention ins(%q, %k, %v : tensor<16x8xf16>, tensor<32x8xf16>, tensor<32x24xf16>)
      outs(%acc, %max, %sum : tensor<16x24xf32>, tensor<16xf32>, tensor<16xf32>) at[0, 0, 0, 0] of[16, 32] scale(0.5)
  return %a : tensor<16x24xf32>
}

// -----

// Mask and missing keys become -inf; values that are not finite take the
// product that leaves masked elements out.

// CHECK-LABEL: func @masked(
// CHECK-SAME:    %[[N:[^:]*]]: index
// CHECK:         %[[KEY:.*]] = linalg.index 0
// CHECK:         %[[QUERY:.*]] = linalg.index 1
// CHECK:         %[[KEPT:.*]] = arith.cmpi sge
// CHECK:         %[[EXISTS:.*]] = arith.cmpi slt, %[[KEY]], %[[N]]
// CHECK:         %[[BOTH:.*]] = arith.andi %[[KEPT]], %[[EXISTS]]
// CHECK:         arith.select %[[BOTH]], %{{.*}}, %{{.*}} : f32
// CHECK:         %[[FINITE:.*]] = arith.cmpf ord, %[[ZERO:.*]], %[[ZERO]]
// CHECK:         scf.if %[[FINITE]]
// CHECK-NOT:       arith.select
// CHECK:         } else {
// CHECK:           arith.select
func.func @masked(%n: index, %q: tensor<16x8xf32>, %k: tensor<32x8xf32>, %acc: tensor<16x8xf32>, %max: tensor<16xf32>, %sum: tensor<16xf32>)
    -> tensor<16x8xf32> {
  %a, %m, %l = flash.online_attention ins(%q, %k, %k : tensor<16x8xf32>, tensor<32x8xf32>, tensor<32x8xf32>)
      outs(%acc, %max, %sum : tensor<16x8xf32>, tensor<16xf32>, tensor<16xf32>)
      at[0, 0, 0, 0] of[16, 32] keys(%n) scale(0.5) mask(#flash.causal)
  return %a : tensor<16x8xf32>
}

// -----

// A score region sees natural units and clamped positions.

// CHECK-LABEL: func @score(
// CHECK-SAME:    %[[BIAS:[^:]*]]: tensor<?xf32>
// CHECK:         arith.minsi
// CHECK:         %[[J:.*]] = arith.minsi
// CHECK:         %[[B:.*]] = tensor.extract %[[BIAS]][%[[J]]]
// CHECK:         %[[SUM:.*]] = arith.addf %{{.*}}, %[[B]]
// CHECK:         arith.mulf %[[SUM]], %{{.*}} : f32
func.func @score(%bias: tensor<?xf32>, %q: tensor<16x8xf32>, %k: tensor<32x8xf32>, %acc: tensor<16x8xf32>, %max: tensor<16xf32>, %sum: tensor<16xf32>)
    -> tensor<16x8xf32> {
  %a, %m, %l = flash.online_attention ins(%q, %k, %k : tensor<16x8xf32>, tensor<32x8xf32>, tensor<32x8xf32>)
      outs(%acc, %max, %sum : tensor<16x8xf32>, tensor<16xf32>, tensor<16xf32>) at[0, 0, 0, 0] of[16, 32] scale(0.5) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %e = tensor.extract %bias[%j] : tensor<?xf32>
    %r = arith.addf %s, %e : f32
    flash.yield %r : f32
  }
  return %a : tensor<16x8xf32>
}

// -----

// CHECK-LABEL: func @finalize(
// CHECK:         arith.divf
// CHECK:         arith.cmpf oeq
// CHECK:         arith.select
// CHECK:         arith.truncf {{.*}} to bf16
// CHECK:         math.log
func.func @finalize(%a: tensor<16x8xf32>, %m: tensor<16xf32>, %l: tensor<16xf32>, %o: tensor<16x8xbf16>, %e: tensor<16xf32>)
    -> (tensor<16x8xbf16>, tensor<16xf32>) {
  %r:2 = flash.finalize ins(%a, %m, %l : tensor<16x8xf32>, tensor<16xf32>, tensor<16xf32>)
      outs(%o, %e : tensor<16x8xbf16>, tensor<16xf32>) -> (tensor<16x8xbf16>, tensor<16xf32>)
  return %r#0, %r#1 : tensor<16x8xbf16>, tensor<16xf32>
}

// -----

func.func @whole(%q: tensor<1x1x64x64xf32>, %acc: tensor<1x1x64x64xf32>, %max: tensor<1x1x64xf32>, %sum: tensor<1x1x64xf32>)
    -> tensor<1x1x64x64xf32> {
  // expected-error @below {{can be decomposed only as a statically shaped tile of rank 2; run flash-tile first}}
  %a, %m, %l = flash.online_attention ins(%q, %q, %q : tensor<1x1x64x64xf32>, tensor<1x1x64x64xf32>, tensor<1x1x64x64xf32>)
      outs(%acc, %max, %sum : tensor<1x1x64x64xf32>, tensor<1x1x64xf32>, tensor<1x1x64xf32>) at[0, 0, 0, 0] of[64, 64] scale(1.0)
  return %a : tensor<1x1x64x64xf32>
}

// -----

// A guard gives the value where the element takes part, of a query that exists;
// without a mask every element does.

// CHECK-LABEL: func @guards(
// CHECK-SAME:    %[[BIAS:[^:]*]]: tensor<?xf32>
// CHECK:         %[[KEEP:.*]] = arith.cmpi sge
// CHECK:         %[[EXISTS:.*]] = arith.cmpi slt
// CHECK:         %[[BOTH:.*]] = arith.andi %[[KEEP]], %[[EXISTS]]
// CHECK-COUNT-2: arith.minsi
// CHECK-NEXT:    %[[D:.*]] = arith.subi
// CHECK:         %[[AT:.*]] = arith.select %[[BOTH]], %[[D]], %c0{{.*}} : index
// CHECK:         tensor.extract %[[BIAS]][%[[AT]]]
// CHECK:         arith.select %[[KEEP]]
// CHECK-COUNT-2: arith.minsi
// CHECK-NEXT:    %[[E:.*]] = arith.subi
// CHECK-NEXT:    tensor.extract %[[BIAS]][%[[E]]]
func.func @guards(%bias: tensor<?xf32>, %q: tensor<16x8xf32>, %k: tensor<32x8xf32>, %acc: tensor<16x8xf32>, %max: tensor<16xf32>, %sum: tensor<16xf32>)
    -> tensor<16x8xf32> {
  %0:3 = flash.online_attention ins(%q, %k, %k : tensor<16x8xf32>, tensor<32x8xf32>, tensor<32x8xf32>)
      outs(%acc, %max, %sum : tensor<16x8xf32>, tensor<16xf32>, tensor<16xf32>) at[0, 0, 0, 0] of[12, 32] scale(0.5) mask(#flash.causal<top_left>) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %d = arith.subi %i, %j : index
    %n = flash.guard %d else 0 : index
    %e = tensor.extract %bias[%n] : tensor<?xf32>
    %r = arith.addf %s, %e : f32
    flash.yield %r : f32
  }
  %1:3 = flash.online_attention ins(%q, %k, %k : tensor<16x8xf32>, tensor<32x8xf32>, tensor<32x8xf32>)
      outs(%0#0, %0#1, %0#2 : tensor<16x8xf32>, tensor<16xf32>, tensor<16xf32>) at[0, 0, 0, 0] of[12, 32] scale(0.5) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %d = arith.subi %i, %j : index
    %n = flash.guard %d else 0 : index
    %e = tensor.extract %bias[%n] : tensor<?xf32>
    %r = arith.addf %s, %e : f32
    flash.yield %r : f32
  }
  return %1#0 : tensor<16x8xf32>
}
