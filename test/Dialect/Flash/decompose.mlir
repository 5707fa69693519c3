// The text that every target takes: rows are queries, columns are keys.
// RUN: flash-opt %s --flash-decompose --split-input-file --verify-diagnostics | FileCheck %s
// RUN: flash-opt %s --flash-decompose=guard-values --split-input-file --verify-diagnostics | FileCheck %s --check-prefix=GUARD

// In units of the scale, the maximum is that of the products: 0.5 * log2(e) joins the exponential.

// CHECK-DAG:   #[[MD:.*]] = affine_map<(d0, d1, d2) -> (d0, d2)>
// CHECK-DAG:   #[[ND:.*]] = affine_map<(d0, d1, d2) -> (d1, d2)>
// CHECK-DAG:   #[[DN:.*]] = affine_map<(d0, d1, d2) -> (d2, d1)>
// CHECK-DAG:   #[[MN:.*]] = affine_map<(d0, d1, d2) -> (d0, d1)>
// CHECK-DAG:   #[[TILE:.*]] = affine_map<(d0, d1) -> (d0, d1)>
// CHECK-DAG:   #[[ROW:.*]] = affine_map<(d0, d1) -> (d0)>
// CHECK-LABEL: func @step(
// CHECK-SAME:    %[[Q:.*]]: tensor<16x8xf16>, %[[K:.*]]: tensor<32x8xf16>, %[[V:.*]]: tensor<32x24xf16>,
// CHECK-SAME:    %[[ACC:.*]]: tensor<16x24xf32>, %[[MAX:.*]]: tensor<16xf32>, %[[SUM:.*]]: tensor<16xf32>
// CHECK:         %[[ZERO:.*]] = linalg.fill ins(%cst
// CHECK:         %[[S:.*]] = linalg.contract indexing_maps = [#[[MD]], #[[ND]], #[[MN]]] ins(%[[Q]], %[[K]] : {{.*}}) outs(%[[ZERO]] : tensor<16x32xf32>)
// CHECK:         %[[LEAST:.*]] = linalg.fill ins(%cst
// CHECK:         %[[T:.*]] = linalg.generic {indexing_maps = [#[[TILE]], #[[ROW]]], iterator_types = ["parallel", "reduction"]} ins(%[[S]] : {{.*}}) outs(%[[LEAST]]
// CHECK:           arith.maxnumf %out, %in
// CHECK:         %[[GROWN:.*]]:2 = linalg.generic {{.*}} ins(%[[T]] : {{.*}}) outs(%[[MAX]], %{{.*}} :
// CHECK:           %[[M1:.*]] = arith.maxnumf %out, %in
// CHECK:           %[[C:.*]] = arith.constant 0.72134751
// CHECK:           %[[BEFORE:.*]] = math.fma %out, %[[C]], %{{.*}}
// CHECK:           %[[Z:.*]] = math.fma %[[M1]], %[[C]], %{{.*}}
// CHECK:           %[[LOWEST:.*]] = arith.constant -3.40282347E+38
// CHECK:           %[[SHIFT:.*]] = arith.maxnumf %[[Z]], %[[LOWEST]]
// CHECK:           %[[D:.*]] = arith.subf %[[BEFORE]], %[[SHIFT]]
// CHECK:           %[[R:.*]] = math.exp2 %[[D]]
// CHECK:           linalg.yield %[[M1]], %[[R]]
// CHECK:         %[[OFROWS:.*]]:2 = linalg.generic {{.*}} ins(%[[GROWN]]#0
// CHECK:         %[[P:.*]] = linalg.generic {indexing_maps = [#[[ROW]], #[[TILE]]], iterator_types = ["parallel", "parallel"]} ins(%[[OFROWS]]#1 : {{.*}}) outs(%[[S]]
// CHECK:           %[[MINUS:.*]] = arith.negf %in
// CHECK:           %[[X:.*]] = math.fma %out, %{{.*}}, %[[MINUS]]
// CHECK:           math.exp2 %[[X]]
// CHECK:         %[[KEPT:.*]] = linalg.generic {{.*}} ins(%[[GROWN]]#1 : {{.*}}) outs(%[[SUM]]
// CHECK:         %[[L1:.*]] = linalg.generic {{.*}} iterator_types = ["parallel", "reduction"]} ins(%[[P]] : {{.*}}) outs(%[[KEPT]]
// CHECK:           arith.addf %out, %in
// CHECK:         %[[RESCALED:.*]] = linalg.generic {{.*}} ins(%[[GROWN]]#1 : {{.*}}) outs(%[[ACC]]
// CHECK:           arith.mulf %out, %in
// CHECK:         %[[PT:.*]] = arith.truncf %[[P]] : tensor<16x32xf32> to tensor<16x32xf16>
// CHECK:         %[[A1:.*]] = linalg.contract indexing_maps = [#[[MD]], #[[DN]], #[[MN]]] ins(%[[PT]], %[[V]] : {{.*}}) outs(%[[RESCALED]]
// CHECK:         return %[[A1]], %[[GROWN]]#0, %[[L1]]
func.func @step(%q: tensor<16x8xf16>, %k: tensor<32x8xf16>, %v: tensor<32x24xf16>, %acc: tensor<16x24xf32>, %max: tensor<16xf32>, %sum: tensor<16xf32>)
    -> (tensor<16x24xf32>, tensor<16xf32>, tensor<16xf32>) {
  %a, %m, %l = flash.online_attention ins(%q, %k, %v : tensor<16x8xf16>, tensor<32x8xf16>, tensor<32x24xf16>)
      outs(%acc, %max, %sum : tensor<16x24xf32>, tensor<16xf32>, tensor<16xf32>) at[0, 0, 0, 0] of[16, 32] scale(0.5) unit(0.5)
  return %a, %m, %l : tensor<16x24xf32>, tensor<16xf32>, tensor<16xf32>
}

// -----

// Products of f32 have f32 probabilities, and say if they may round. Their time is long enough to subtract
// the maximum before the factor, exactly for products of any size. It is finite, also where all are masked.

// CHECK-LABEL: func @tf32(
// CHECK-NOT:     arith.truncf
// CHECK:         linalg.contract {{.*}} {flash.precision = #flash.precision<tf32>}
// CHECK:         %[[LEAST:.*]] = arith.constant -3.40282347E+38
// CHECK:         linalg.fill ins(%[[LEAST]]
// CHECK:         %[[GROWN:.*]]:2 = linalg.generic
// CHECK-NOT:     arith.truncf
// CHECK:         linalg.generic {{.*}} ins(%[[GROWN]]#0 : tensor<16xf32>) outs(%{{.*}} : tensor<16x32xf32>)
// CHECK-NEXT:    ^bb0
// CHECK-NEXT:      %[[D:.*]] = arith.subf %out, %in
// CHECK-NEXT:      %[[C:.*]] = arith.constant 0.72134751
// CHECK-NEXT:      %[[X:.*]] = arith.mulf %[[D]], %[[C]]
// CHECK-NEXT:      math.exp2 %[[X]]
// CHECK-NOT:     arith.truncf
// CHECK:         linalg.contract {{.*}} {flash.precision = #flash.precision<tf32>}
func.func @tf32(%q: tensor<16x8xf32>, %k: tensor<32x8xf32>, %acc: tensor<16x8xf32>, %max: tensor<16xf32>, %sum: tensor<16xf32>)
    -> tensor<16x8xf32> {
  %a, %m, %l = flash.online_attention ins(%q, %k, %k : tensor<16x8xf32>, tensor<32x8xf32>, tensor<32x8xf32>)
      outs(%acc, %max, %sum : tensor<16x8xf32>, tensor<16xf32>, tensor<16xf32>) at[0, 0, 0, 0] of[16, 32] scale(0.5) unit(0.5) precision(tf32)
  return %a : tensor<16x8xf32>
}

// -----

// Where no maximum grows by more than 8 all of them stay, and nothing is
// rescaled.

// CHECK-LABEL: func @lazy(
// CHECK-SAME:    %[[MAX:[^:,]*]]: tensor<16xf32>, %[[SUM:[^:,]*]]: tensor<16xf32>)
// CHECK:         %[[ABOVE:.*]] = linalg.generic {{.*}} ins(%[[T:.*]], %[[MAX]] : tensor<16xf32>, tensor<16xf32>) outs(%{{.*}} : tensor<16xi1>)
// CHECK:           %[[EIGHT:.*]] = arith.constant 11.09035
// CHECK:           %[[BOUND:.*]] = arith.addf %{{.*}}, %[[EIGHT]]
// CHECK:           arith.cmpf ogt, %in, %[[BOUND]]
// CHECK:         %[[ANY:.*]] = flash.any %[[ABOVE]]
// CHECK:         %[[G:.*]]:2 = scf.if %[[ANY]] -> (tensor<16xf32>, tensor<16xf32>) {
// CHECK:           linalg.generic {{.*}} ins(%[[T]] : tensor<16xf32>) outs(%[[MAX]], %{{.*}} :
// CHECK:             %[[GROWN:.*]] = arith.maxnumf
// CHECK:             %[[R:.*]] = math.exp2
// CHECK:             linalg.yield %[[GROWN]], %[[R]]
// CHECK:         } else {
// CHECK:           %[[ONE:.*]] = arith.constant 1.0
// CHECK:           %[[ONES:.*]] = linalg.fill ins(%[[ONE]] :
// CHECK:           scf.yield %[[MAX]], %[[ONES]]
// CHECK:         scf.if %[[ANY]] -> (tensor<16x8xf32>) {
// CHECK:           linalg.generic {{.*}} ins(%[[G]]#1 : tensor<16xf32>) outs(%[[ACC:.*]] : tensor<16x8xf32>)
// CHECK:             arith.mulf
// CHECK:         } else {
// CHECK:           scf.yield %[[ACC]]
func.func @lazy(%q: tensor<16x8xf16>, %k: tensor<32x8xf16>, %acc: tensor<16x8xf32>, %max: tensor<16xf32>, %sum: tensor<16xf32>)
    -> (tensor<16x8xf32>, tensor<16xf32>, tensor<16xf32>) {
  %0:3 = flash.online_attention ins(%q, %k, %k : tensor<16x8xf16>, tensor<32x8xf16>, tensor<32x8xf16>)
      outs(%acc, %max, %sum : tensor<16x8xf32>, tensor<16xf32>, tensor<16xf32>) at[0, 0, 0, 0] of[16, 32] scale(0.5) unit(0.5)
      schedule(<query_tile = 16, key_tile = 32, features = lazy_rescale>)
  return %0#0, %0#1, %0#2 : tensor<16x8xf32>, tensor<16xf32>, tensor<16xf32>
}

// -----

// Mask and missing keys become -inf. What takes no part is not multiplied by
// its value, or only by values that are known to be finite.

// CHECK-LABEL: func @masked(
// CHECK-SAME:    %[[N:[^:]*]]: index
// CHECK:         %[[S:.*]] = linalg.contract
// CHECK:         %[[X:.*]] = linalg.generic {{.*}} outs(%[[S]]
// CHECK:           %[[QUERY:.*]] = linalg.index 0
// CHECK:           %[[KEY:.*]] = linalg.index 1
// CHECK:           arith.addi {{.*}} overflow<nsw> : index
// CHECK:           %[[KEPT:.*]] = arith.cmpi sge
// CHECK:           %[[EXISTS:.*]] = arith.cmpi slt, %[[KEY]], %[[N]]
// CHECK:           %[[BOTH:.*]] = arith.andi %[[KEPT]], %[[EXISTS]]
// CHECK:           %[[LEAST:.*]] = arith.constant 0xFF800000
// CHECK:           arith.select %[[BOTH]], %out, %[[LEAST]] : f32
// CHECK:         %[[ACC:.*]] = linalg.generic {{.*}} outs(%{{.*}} : tensor<16x8xf32>)
// CHECK:         %[[P:.*]] = arith.truncf
// CHECK-NOT:     flash.is_finite
// CHECK:         linalg.generic {{.*}} iterator_types = ["parallel", "parallel", "reduction"]} ins(%[[P]], %{{.*}} : {{.*}}) outs(%[[ACC]]
// CHECK:           linalg.index 0
// CHECK:           linalg.index 2
// CHECK:           %[[PRODUCT:.*]] = arith.mulf
// CHECK:           %[[SUM:.*]] = arith.addf %out, %[[PRODUCT]]
// CHECK:           arith.select %{{.*}}, %[[SUM]], %out : f32

// GUARD-LABEL: func @masked(
// GUARD:         %[[ACC:.*]] = linalg.generic {{.*}} outs(%{{.*}} : tensor<16x8xf32>)
// GUARD:         %[[FINITE:.*]] = flash.is_finite %[[V:.*]] : tensor<32x8xf16>
// GUARD:         %[[A1:.*]] = scf.if %[[FINITE]]
// GUARD:           linalg.contract {{.*}} ins(%[[P:.*]], %[[V]] : {{.*}}) outs(%[[ACC]]
// GUARD:         } else {
// GUARD:           linalg.generic {{.*}} ins(%[[P]], %[[V]] : {{.*}}) outs(%[[ACC]]
// GUARD:             arith.select
// GUARD:         return %[[A1]]
func.func @masked(%n: index, %q: tensor<16x8xf16>, %k: tensor<32x8xf16>, %acc: tensor<16x8xf32>, %max: tensor<16xf32>, %sum: tensor<16xf32>)
    -> tensor<16x8xf32> {
  %a, %m, %l = flash.online_attention ins(%q, %k, %k : tensor<16x8xf16>, tensor<32x8xf16>, tensor<32x8xf16>)
      outs(%acc, %max, %sum : tensor<16x8xf32>, tensor<16xf32>, tensor<16xf32>)
      at[0, 0, 0, 0] of[16, 32] keys(%n) scale(0.5) unit(0.5) mask(#flash.causal)
  return %a : tensor<16x8xf32>
}

// -----

// Elements are masked where some may be, and values are checked there.

// CHECK-LABEL: func @partial(
// GUARD-LABEL: func @partial(
// GUARD-SAME:    %[[C:[a-z0-9]+]]: i1
// GUARD:         %[[S:.*]] = linalg.contract
// GUARD:         scf.if %[[C]] -> (tensor<16x32xf32>) {
// GUARD:           linalg.generic {{.*}} outs(%[[S]]
// GUARD:             arith.select
// GUARD:         } else {
// GUARD-NEXT:      scf.yield %[[S]]
// GUARD:         %[[FINITE:.*]] = scf.if %[[C]] -> (i1) {
// GUARD-NEXT:      %[[ASKED:.*]] = flash.is_finite
// GUARD-NEXT:      scf.yield %[[ASKED]]
// GUARD-NEXT:    } else {
// GUARD-NEXT:      %[[TRUE:.*]] = arith.constant true
// GUARD-NEXT:      scf.yield %[[TRUE]]
// GUARD:         scf.if %[[FINITE]] -> (tensor<16x8xf32>)
func.func @partial(%c: i1, %q: tensor<16x8xf16>, %k: tensor<32x8xf16>, %acc: tensor<16x8xf32>, %max: tensor<16xf32>) -> tensor<16x8xf32> {
  %0:3 = flash.online_attention ins(%q, %k, %k : tensor<16x8xf16>, tensor<32x8xf16>, tensor<32x8xf16>)
      outs(%acc, %max, %max : tensor<16x8xf32>, tensor<16xf32>, tensor<16xf32>) at[0, 0, 0, 0] of[16, 32] partial(%c) scale(0.5) unit(0.5) mask(#flash.causal)
  return %0#0 : tensor<16x8xf32>
}

// -----

// What a region does to scores it does in both cases, and what it leaves out in one.

// CHECK-LABEL: func @partial_score(
// CHECK-SAME:    %[[C:[a-z0-9]+]]: i1
// CHECK:         scf.if %[[C]] -> (tensor<16x32xf32>) {
// CHECK:           math.tanh
// CHECK:           arith.select
// CHECK:         } else {
// CHECK:           math.tanh
// CHECK-NOT:       arith.select
// CHECK:           scf.yield
// GUARD-LABEL: func @partial_score(
func.func @partial_score(%c: i1, %n: index, %q: tensor<16x8xf32>, %k: tensor<32x8xf32>, %max: tensor<16xf32>) -> tensor<16x8xf32> {
  %0:3 = flash.online_attention ins(%q, %k, %k : tensor<16x8xf32>, tensor<32x8xf32>, tensor<32x8xf32>)
      outs(%q, %max, %max : tensor<16x8xf32>, tensor<16xf32>, tensor<16xf32>) at[0, 0, 0, 0] of[16, 32] keys(%n) partial(%c) scale(0.5) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %x = arith.cmpi ne, %i, %j : index
    %r = math.tanh %s : f32
    flash.yield %r keep %x : f32
  }
  return %0#0 : tensor<16x8xf32>
}

// -----

// A scale that is not the unit multiplies scores before the maximum.

// CHECK-LABEL: func @negative(
// CHECK:         linalg.generic
// CHECK:           arith.constant -5.000000e-01
// CHECK:           arith.mulf
// CHECK:         linalg.generic {{.*}} "reduction"
func.func @negative(%q: tensor<16x8xf32>, %k: tensor<32x8xf32>, %acc: tensor<16x8xf32>, %max: tensor<16xf32>, %sum: tensor<16xf32>)
    -> tensor<16x8xf32> {
  %a, %m, %l = flash.online_attention ins(%q, %k, %k : tensor<16x8xf32>, tensor<32x8xf32>, tensor<32x8xf32>)
      outs(%acc, %max, %sum : tensor<16x8xf32>, tensor<16xf32>, tensor<16xf32>) at[0, 0, 0, 0] of[16, 32] scale(-0.5)
  return %a : tensor<16x8xf32>
}

// -----

// A score region sees natural units and, where it reads a tensor, positions that
// exist. Without keys(n) all keys do.

// CHECK-LABEL: func @score(
// CHECK-SAME:    %[[BIAS:[^:]*]]: tensor<?xf32>
// CHECK:         %[[J:.*]] = arith.addi
// CHECK-NOT:     arith.minsi
// CHECK:         %[[SCALED:.*]] = arith.mulf %out, %{{.*}} : f32
// CHECK:         %[[B:.*]] = tensor.extract %[[BIAS]][%[[J]]]
// CHECK:         %[[SUM:.*]] = arith.addf %[[SCALED]], %[[B]]
// CHECK:         linalg.yield %[[SUM]]
// Where the maximum is large, a factor of 1 instead of log2(e) keeps the shift exact.
// CHECK:         linalg.generic {{.*}} "reduction"
// CHECK:         %[[OFROWS:.*]]:2 = linalg.generic {{.*}} ins(%{{.*}}#0 : tensor<16xf32>)
// CHECK:           %[[MAGNITUDE:.*]] = math.absf %in
// CHECK:           %[[LARGE:.*]] = arith.cmpf ogt, %[[MAGNITUDE]], %{{.*}}
// CHECK:           %[[ONE:.*]] = arith.constant 1.000000e+00
// CHECK:           %[[LOG2E:.*]] = arith.constant 1.44269502
// CHECK:           %[[FACTOR:.*]] = arith.select %[[LARGE]], %[[ONE]], %[[LOG2E]]
// CHECK:           linalg.yield %[[FACTOR]], %{{.*}}
// CHECK:         linalg.generic {{.*}} ins(%[[OFROWS]]#0, %[[OFROWS]]#1 :
// CHECK:           %[[MINUS:.*]] = arith.negf
// CHECK:           math.fma %out, %in, %[[MINUS]]
// CHECK-LABEL: func @ragged(
// CHECK:         arith.minsi
// CHECK:         %[[J:.*]] = arith.minsi
// CHECK:         tensor.extract %{{.*}}[%{{.*}}, %[[J]]]
func.func @score(%bias: tensor<?xf32>, %q: tensor<16x8xf16>, %k: tensor<32x8xf16>, %acc: tensor<16x8xf32>, %max: tensor<16xf32>, %sum: tensor<16xf32>)
    -> tensor<16x8xf32> {
  %a, %m, %l = flash.online_attention ins(%q, %k, %k : tensor<16x8xf16>, tensor<32x8xf16>, tensor<32x8xf16>)
      outs(%acc, %max, %sum : tensor<16x8xf32>, tensor<16xf32>, tensor<16xf32>) at[0, 0, 0, 0] of[16, 32] scale(0.5) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %e = tensor.extract %bias[%j] : tensor<?xf32>
    %r = arith.addf %s, %e : f32
    flash.yield %r : f32
  }
  return %a : tensor<16x8xf32>
}
func.func @ragged(%n: index, %bias: tensor<?x?xf32>, %q: tensor<16x8xf32>, %k: tensor<32x8xf32>, %acc: tensor<16x8xf32>, %max: tensor<16xf32>, %sum: tensor<16xf32>)
    -> tensor<16x8xf32> {
  %a, %m, %l = flash.online_attention ins(%q, %k, %k : tensor<16x8xf32>, tensor<32x8xf32>, tensor<32x8xf32>)
      outs(%acc, %max, %sum : tensor<16x8xf32>, tensor<16xf32>, tensor<16xf32>) at[0, 0, 0, 0] of[12, 32] keys(%n) scale(0.5) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %e = tensor.extract %bias[%i, %j] : tensor<?x?xf32>
    %r = arith.addf %s, %e : f32
    flash.yield %r : f32
  }
  return %a : tensor<16x8xf32>
}

// -----

// A slice of all queries that there are has no others; one of more has.

// CHECK-LABEL: func @slice_of_all(
// CHECK-NOT:     arith.minsi
// CHECK:         tensor.extract %{{[^[]*}}[%{{.*}}] : tensor<?xf32>
// CHECK-LABEL: func @slice_of_more(
// CHECK:         %[[I:.*]] = arith.minsi
// CHECK:         tensor.extract %{{.*}}[%[[I]]]
func.func @slice_of_all(%bias: tensor<?xf32>, %at: index, %q: tensor<?x8xf32>, %k: tensor<32x8xf32>, %acc: tensor<16x8xf32>, %max: tensor<16xf32>, %sum: tensor<16xf32>)
    -> tensor<16x8xf32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %q, %c0 : tensor<?x8xf32>
  %tile = tensor.extract_slice %q[%at, 0] [16, 8] [1, 1] : tensor<?x8xf32> to tensor<16x8xf32>
  %a, %m, %l = flash.online_attention ins(%tile, %k, %k : tensor<16x8xf32>, tensor<32x8xf32>, tensor<32x8xf32>)
      outs(%acc, %max, %sum : tensor<16x8xf32>, tensor<16xf32>, tensor<16xf32>) at[0, 0, %at, 0] of[%n, 32] scale(0.5) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %e = tensor.extract %bias[%i] : tensor<?xf32>
    %r = arith.addf %s, %e : f32
    flash.yield %r : f32
  }
  return %a : tensor<16x8xf32>
}
func.func @slice_of_more(%bias: tensor<?xf32>, %at: index, %q: tensor<64x8xf32>, %k: tensor<32x8xf32>, %acc: tensor<16x8xf32>, %max: tensor<16xf32>, %sum: tensor<16xf32>)
    -> tensor<16x8xf32> {
  %tile = tensor.extract_slice %q[%at, 0] [16, 8] [1, 1] : tensor<64x8xf32> to tensor<16x8xf32>
  %a, %m, %l = flash.online_attention ins(%tile, %k, %k : tensor<16x8xf32>, tensor<32x8xf32>, tensor<32x8xf32>)
      outs(%acc, %max, %sum : tensor<16x8xf32>, tensor<16xf32>, tensor<16xf32>) at[0, 0, %at, 0] of[60, 32] scale(0.5) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %e = tensor.extract %bias[%i] : tensor<?xf32>
    %r = arith.addf %s, %e : f32
    flash.yield %r : f32
  }
  return %a : tensor<16x8xf32>
}

// -----

// A quotient of a score of 16-bit operands is a product; of f32 it stays.

// CHECK-LABEL: func @quotient(
// CHECK-NOT:     arith.divf
// CHECK:         %[[FACTOR:.*]] = arith.constant 5.000000e-02
// CHECK:         arith.mulf %{{.*}}, %[[FACTOR]]
// CHECK-LABEL: func @exact_quotient(
// CHECK:         arith.divf
func.func @quotient(%q: tensor<16x8xf16>, %k: tensor<32x8xf16>, %acc: tensor<16x8xf32>, %max: tensor<16xf32>, %sum: tensor<16xf32>)
    -> tensor<16x8xf32> {
  %c = arith.constant 20.0 : f32
  %a, %m, %l = flash.online_attention ins(%q, %k, %k : tensor<16x8xf16>, tensor<32x8xf16>, tensor<32x8xf16>)
      outs(%acc, %max, %sum : tensor<16x8xf32>, tensor<16xf32>, tensor<16xf32>) at[0, 0, 0, 0] of[16, 32] scale(0.5) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %r = arith.divf %s, %c : f32
    flash.yield %r : f32
  }
  return %a : tensor<16x8xf32>
}
func.func @exact_quotient(%q: tensor<16x8xf32>, %k: tensor<32x8xf32>, %acc: tensor<16x8xf32>, %max: tensor<16xf32>, %sum: tensor<16xf32>)
    -> tensor<16x8xf32> {
  %c = arith.constant 20.0 : f32
  %a, %m, %l = flash.online_attention ins(%q, %k, %k : tensor<16x8xf32>, tensor<32x8xf32>, tensor<32x8xf32>)
      outs(%acc, %max, %sum : tensor<16x8xf32>, tensor<16xf32>, tensor<16xf32>) at[0, 0, 0, 0] of[16, 32] scale(0.5) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %r = arith.divf %s, %c : f32
    flash.yield %r : f32
  }
  return %a : tensor<16x8xf32>
}

// -----

// CHECK-LABEL: func @finalize(
// CHECK-SAME:    %[[ACC:.*]]: tensor<16x8xf32>, %[[MAX:.*]]: tensor<16xf32>, %[[SUM:.*]]: tensor<16xf32>, %[[O:.*]]: tensor<16x8xbf16>, %[[E:.*]]: tensor<16xf32>
// CHECK:         %[[INVERSE:.*]] = linalg.generic {{.*}} ins(%[[SUM]]
// CHECK:           %[[EMPTY:.*]] = arith.cmpf oeq
// CHECK:           %[[DIVISOR:.*]] = arith.select %[[EMPTY]], %[[ONE:.*]], %in
// CHECK:           arith.divf %[[ONE]], %[[DIVISOR]]
// CHECK:         %[[OUT:.*]] = linalg.generic {{.*}} ins(%[[ACC]], %[[INVERSE]] : {{.*}}) outs(%[[O]]
// CHECK:           arith.mulf
// CHECK:           arith.truncf {{.*}} to bf16
// CHECK:         %[[LSE:.*]] = linalg.generic {{.*}} ins(%[[MAX]], %[[SUM]] : {{.*}}) outs(%[[E]]
// CHECK:           %[[UNIT:.*]] = arith.constant 2.500000e-01
// CHECK:           %[[NATURAL:.*]] = arith.mulf %{{.*}}, %[[UNIT]]
// CHECK:           %[[LOG:.*]] = math.log
// CHECK:           arith.addf %[[NATURAL]], %[[LOG]]
// CHECK:         return %[[OUT]], %[[LSE]]
func.func @finalize(%a: tensor<16x8xf32>, %m: tensor<16xf32>, %l: tensor<16xf32>, %o: tensor<16x8xbf16>, %e: tensor<16xf32>)
    -> (tensor<16x8xbf16>, tensor<16xf32>) {
  %r:2 = flash.finalize ins(%a, %m, %l : tensor<16x8xf32>, tensor<16xf32>, tensor<16xf32>)
      outs(%o, %e : tensor<16x8xbf16>, tensor<16xf32>) unit(0.25) -> (tensor<16x8xbf16>, tensor<16xf32>)
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
// CHECK:         arith.minsi
// CHECK:         %[[D:.*]] = arith.subi
// CHECK:         %[[AT:.*]] = arith.select %[[BOTH]], %[[D]], %c0{{.*}} : index
// CHECK:         tensor.extract %[[BIAS]][%[[AT]]]
// CHECK:         %[[KEEP:.*]] = arith.cmpi sge
// CHECK:         arith.select %[[KEEP]]
// CHECK:         arith.minsi
// CHECK:         %[[E:.*]] = arith.subi
// CHECK-NEXT:    tensor.extract %[[BIAS]][%[[E]]]
func.func @guards(%bias: tensor<?xf32>, %q: tensor<16x8xf32>, %k: tensor<32x8xf32>, %acc: tensor<16x8xf32>, %max: tensor<16xf32>, %sum: tensor<16xf32>)
    -> tensor<16x8xf32> {
  %0:3 = flash.online_attention ins(%q, %k, %k : tensor<16x8xf32>, tensor<32x8xf32>, tensor<32x8xf32>)
      outs(%acc, %max, %sum : tensor<16x8xf32>, tensor<16xf32>, tensor<16xf32>) at[0, 0, 0, 0] of[12, 32] scale(0.5) unit(0.5) mask(#flash.causal<top_left>) score {
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

// -----

// What a region masks it leaves out of the scores, which it does not change
// otherwise, and of the product of values that are not finite. The region's
// reads are kept in range by the mask beside it.

// CHECK-LABEL: func @keep(
// CHECK:         %[[S:.*]] = linalg.contract
// CHECK:         linalg.generic {{.*}} outs(%[[S]]
// CHECK:         ^bb0(%[[X:.*]]: f32):
// CHECK:           %[[IN:.*]] = arith.cmpi sge
// CHECK:           %[[AT:.*]] = arith.select %{{.*}}, %{{.*}}, %c0{{.*}} : index
// CHECK:           %[[E:.*]] = tensor.extract %{{.*}}[%[[AT]]]
// CHECK:           %[[KEEP:.*]] = arith.cmpi eq, %[[E]]
// CHECK:           %[[ALL:.*]] = arith.andi %[[IN]], %[[KEEP]] : i1
// CHECK:           arith.select %[[ALL]], %[[X]], %
// CHECK:         linalg.generic {{.*}} ["parallel", "parallel", "reduction"]
// CHECK:           tensor.extract
// CHECK:           arith.andi
// CHECK:           arith.select
// GUARD-LABEL: func @keep(
// GUARD:         flash.is_finite
func.func @keep(%t: tensor<?xi32>, %one: i32, %q: tensor<16x8xf32>, %k: tensor<32x8xf32>, %max: tensor<16xf32>, %sum: tensor<16xf32>) -> tensor<16x8xf32> {
  %0:3 = flash.online_attention ins(%q, %k, %k : tensor<16x8xf32>, tensor<32x8xf32>, tensor<32x8xf32>)
      outs(%q, %max, %sum : tensor<16x8xf32>, tensor<16xf32>, tensor<16xf32>) at[0, 0, 0, 0] of[12, 32] scale(0.5) unit(0.5) mask(#flash.causal<top_left>) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %d = arith.subi %i, %j : index
    %n = flash.guard %d else 0 : index
    %e = tensor.extract %t[%n] : tensor<?xi32>
    %keep = arith.cmpi eq, %e, %one : i32
    flash.yield %s keep %keep : f32
  }
  return %0#0 : tensor<16x8xf32>
}
