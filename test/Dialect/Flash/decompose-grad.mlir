// The steps of the gradients as linalg: for tensor cores, and transposed for vectors.
// RUN: flash-opt %s --flash-decompose --canonicalize --split-input-file --verify-diagnostics | FileCheck %s
// RUN: flash-opt %s --flash-decompose="transpose-scores" --canonicalize --split-input-file --verify-diagnostics \
// RUN:   | FileCheck %s --check-prefix=TRANSPOSED

// CHECK-DAG:   #[[QD:.*]] = affine_map<(d0, d1, d2) -> (d0, d2)>
// CHECK-DAG:   #[[KD:.*]] = affine_map<(d0, d1, d2) -> (d1, d2)>
// CHECK-DAG:   #[[OUT:.*]] = affine_map<(d0, d1, d2) -> (d0, d1)>
// CHECK-DAG:   #[[ROWS:.*]] = affine_map<(d0, d1, d2) -> (d2, d1)>
// CHECK-LABEL: func @query(
// CHECK-SAME:    %[[Q:[^:]*]]: {{[^%]*}}%[[K:[^:]*]]: {{[^%]*}}%[[V:[^:]*]]: {{[^%]*}}%[[DO:[^:]*]]: {{[^%]*}}%[[SHIFT:[^:]*]]: {{[^%]*}}%[[DELTA:[^:]*]]: {{[^%]*}}%[[DQ:[^:]*]]:
// CHECK:         %[[S:.*]] = linalg.contract indexing_maps = [#[[QD]], #[[KD]], #[[OUT]]] ins(%[[Q]], %[[K]] {{.*}} -> tensor<16x32xf32>
// CHECK:         %[[P:.*]] = linalg.generic {{.*}} ins(%[[SHIFT]] {{.*}} outs(%[[S]]
// CHECK:           arith.negf
// CHECK:           math.fma
// CHECK:           math.exp2
// CHECK:         %[[DP:.*]] = linalg.contract indexing_maps = [#[[QD]], #[[KD]], #[[OUT]]] ins(%[[DO]], %[[V]]
// CHECK:         %[[DS:.*]] = linalg.generic {{.*}} ins(%[[P]], %[[DELTA]] {{.*}} outs(%[[DP]]
// CHECK:           arith.subf
// CHECK:           arith.mulf
// CHECK-NOT:       select
// CHECK:         %[[ROUNDED:.*]] = arith.truncf %[[DS]]
// CHECK:         linalg.contract indexing_maps = [#[[QD]], #[[ROWS]], #[[OUT]]] ins(%[[ROUNDED]], %[[K]] {{.*}} outs(%[[DQ]]

// The query and the output's gradient are transposed once, and each tile of the
// loop is widened once, the keys for both products.
// TRANSPOSED-LABEL: func @query(
// TRANSPOSED-SAME:    %[[Q:[^:]*]]: {{[^%]*}}%[[K:[^:]*]]: {{[^%]*}}%[[V:[^:]*]]: {{[^%]*}}%[[DO:[^:]*]]:
// TRANSPOSED:         %[[QT:.*]] = linalg.generic {{.*}} ins(%[[Q]] {{.*}} outs(%{{.*}} : tensor<64x16xf32>)
// TRANSPOSED:         %[[WIDE:.*]] = linalg.generic {{.*}} ins(%[[K]] : tensor<32x64xf16>) outs(%{{.*}} : tensor<32x64xf32>)
// TRANSPOSED:         linalg.contract {{.*}} ins(%[[WIDE]], %[[QT]] {{.*}} -> tensor<32x16xf32>
// TRANSPOSED:         linalg.contract {{.*}} -> tensor<32x16xf32>
// TRANSPOSED-NOT:     ins(%[[K]]
// TRANSPOSED:         linalg.contract {{.*}} ins(%{{.*}}, %[[WIDE]] {{.*}} -> tensor<16x64xf32>
func.func @query(%q: tensor<16x64xf16>, %k: tensor<32x64xf16>, %v: tensor<32x48xf16>, %do: tensor<16x48xf16>,
                 %shift: tensor<16xf32>, %delta: tensor<16xf32>, %dq: tensor<16x64xf32>) -> tensor<16x64xf32> {
  %0 = flash.query_grad_step ins(%q, %k, %v, %do, %shift, %delta : tensor<16x64xf16>, tensor<32x64xf16>,
          tensor<32x48xf16>, tensor<16x48xf16>, tensor<16xf32>, tensor<16xf32>)
      outs(%dq : tensor<16x64xf32>) at[0, 0, 0, 0] of[16, 32] scale(0.125)
  return %0 : tensor<16x64xf32>
}

// -----

// The rows are keys; queries from the n-th on count for nothing, whatever they are.

// CHECK-LABEL: func @key(
// CHECK-SAME:    %[[Q:[^:]*]]: {{[^%]*}}%[[K:[^:]*]]: {{[^%]*}}%[[V:[^:]*]]: {{[^%]*}}%[[DO:[^:]*]]: {{[^%]*}}%[[SHIFT:[^:]*]]: {{[^%]*}}%[[DELTA:[^:]*]]: {{[^%]*}}%[[N:[^:]*]]: index
// CHECK:         %[[S:.*]] = linalg.contract {{.*}} ins(%[[K]], %[[Q]] {{.*}} -> tensor<32x16xf32>
// CHECK:         %[[P:.*]] = linalg.generic
// CHECK:           %[[QUERY:.*]] = linalg.index 1
// CHECK:           %[[EXISTS:.*]] = arith.cmpi slt, %[[QUERY]], %[[N]]
// CHECK:           arith.select %[[EXISTS]], %{{.*}}, %cst
// CHECK:         %[[DP:.*]] = linalg.contract {{.*}} ins(%[[V]], %[[DO]]
// CHECK:         linalg.contract {{.*}} ins(%[[P]], %[[DO]] {{.*}} -> tensor<32x48xf32>
// CHECK:         %[[DS:.*]] = linalg.generic {{.*}} ins(%[[P]], %[[DELTA]]
// CHECK:           arith.select
// CHECK:         linalg.contract {{.*}} ins(%[[DS]], %[[Q]] {{.*}} -> tensor<32x64xf32>

// Vectors of keys.
// TRANSPOSED-LABEL: func @key(
// TRANSPOSED:         linalg.contract {{.*}} -> tensor<16x32xf32>
// TRANSPOSED:           linalg.index 0
func.func @key(%q: tensor<16x64xf32>, %k: tensor<32x64xf32>, %v: tensor<32x48xf32>, %do: tensor<16x48xf32>,
               %shift: tensor<16xf32>, %delta: tensor<16xf32>, %n: index)
    -> (tensor<32x64xf32>, tensor<32x48xf32>) {
  %zero = arith.constant 0.0 : f32
  %e0 = tensor.empty() : tensor<32x64xf32>
  %e1 = tensor.empty() : tensor<32x48xf32>
  %dk = linalg.fill ins(%zero : f32) outs(%e0 : tensor<32x64xf32>) -> tensor<32x64xf32>
  %dv = linalg.fill ins(%zero : f32) outs(%e1 : tensor<32x48xf32>) -> tensor<32x48xf32>
  %0:2 = flash.key_grad_step ins(%q, %k, %v, %do, %shift, %delta : tensor<16x64xf32>, tensor<32x64xf32>,
          tensor<32x48xf32>, tensor<16x48xf32>, tensor<16xf32>, tensor<16xf32>)
      outs(%dk, %dv : tensor<32x64xf32>, tensor<32x48xf32>) at[0, 0, 0, 0] of[16, 32] queries(%n) scale(0.125)
  return %0#0, %0#1 : tensor<32x64xf32>, tensor<32x48xf32>
}

// -----

// A soft cap: the derivative of tanh needs the score, which is computed again. A
// bias does not, and is not read twice.

// CHECK-LABEL: func @softcap_and_bias(
// CHECK:         linalg.generic
// CHECK:           math.tanh
// CHECK:           tensor.extract
// CHECK:           math.exp2
// CHECK:         linalg.generic
// CHECK:           %[[SCORE:.*]] = arith.mulf %{{.*}}, %cst
// CHECK:           %[[X:.*]] = arith.divf %[[SCORE]], %[[CAP:.*]] : f32
// CHECK:           %[[T:.*]] = math.tanh %[[X]]
// CHECK-NOT:       tensor.extract
// CHECK:           %[[G:.*]] = arith.mulf %{{.*}}, %{{.*}} : f32
// CHECK:           %[[GT:.*]] = arith.mulf %[[G]], %[[CAP]]
// CHECK:           %[[NEG:.*]] = arith.negf %[[T]]
// CHECK:           %[[SLOPE:.*]] = math.fma %[[NEG]], %[[T]], %cst
// CHECK:           %[[GX:.*]] = arith.mulf %[[GT]], %[[SLOPE]]
// CHECK:           arith.divf %[[GX]], %[[CAP]]
// CHECK-NEXT:      linalg.yield
// TRANSPOSED-LABEL: func @softcap_and_bias(
func.func @softcap_and_bias(%q: tensor<16x64xf32>, %k: tensor<32x64xf32>, %v: tensor<32x48xf32>, %do: tensor<16x48xf32>,
                            %shift: tensor<16xf32>, %delta: tensor<16xf32>, %dq: tensor<16x64xf32>,
                            %cap: f32, %bias: tensor<16x32xf32>) -> tensor<16x64xf32> {
  %0 = flash.query_grad_step ins(%q, %k, %v, %do, %shift, %delta : tensor<16x64xf32>, tensor<32x64xf32>,
          tensor<32x48xf32>, tensor<16x48xf32>, tensor<16xf32>, tensor<16xf32>)
      outs(%dq : tensor<16x64xf32>) at[0, 0, 0, 0] of[16, 32] scale(0.125) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %x = arith.divf %s, %cap : f32
    %t = math.tanh %x : f32
    %c = arith.mulf %t, %cap : f32
    %e = tensor.extract %bias[%i, %j] : tensor<16x32xf32>
    %r = arith.addf %c, %e : f32
    flash.yield %r : f32
  }
  return %0 : tensor<16x64xf32>
}

// -----

// A score that is set to -inf has the gradient 0.

// CHECK-LABEL: func @masked_by_the_region(
// CHECK:         math.exp2
// CHECK:         linalg.generic
// CHECK:           %[[KEEP:.*]] = arith.cmpi sge
// CHECK:           %[[G:.*]] = arith.mulf
// CHECK:           arith.select %[[KEEP]], %[[G]], %cst
// TRANSPOSED-LABEL: func @masked_by_the_region(
func.func @masked_by_the_region(%q: tensor<16x64xf32>, %k: tensor<32x64xf32>, %v: tensor<32x48xf32>, %do: tensor<16x48xf32>,
                                %shift: tensor<16xf32>, %delta: tensor<16xf32>, %dq: tensor<16x64xf32>) -> tensor<16x64xf32> {
  %0 = flash.query_grad_step ins(%q, %k, %v, %do, %shift, %delta : tensor<16x64xf32>, tensor<32x64xf32>,
          tensor<32x48xf32>, tensor<16x48xf32>, tensor<16xf32>, tensor<16xf32>)
      outs(%dq : tensor<16x64xf32>) at[0, 0, 0, 0] of[16, 32] scale(0.125) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %low = arith.constant 0xFF800000 : f32
    %keep = arith.cmpi sge, %i, %j : index
    %r = arith.select %keep, %s, %low : f32
    flash.yield %r : f32
  }
  return %0 : tensor<16x64xf32>
}

// -----

// A mask in memory is read once: a probability that takes no part is -0, and so
// its gradient is 0.

// CHECK-LABEL: func @masked_by_memory(
// CHECK:         %[[EXP:.*]] = math.exp2
// CHECK:         %[[READ:.*]] = tensor.extract
// CHECK:         %[[KEEP:.*]] = arith.cmpi ne, %[[READ]]
// CHECK:         arith.select %[[KEEP]], %[[EXP]], %{{.*}} : f32
// CHECK:         linalg.generic
// CHECK-NOT:     tensor.extract
// CHECK:           %[[BITS:.*]] = arith.bitcast %[[P:.*]] : f32 to i32
// CHECK:           %[[USED:.*]] = arith.cmpi ne, %[[BITS]], %c-2147483648_i32
// CHECK:           %[[G:.*]] = arith.mulf %[[P]],
// CHECK:           arith.select %[[USED]], %[[G]], %{{.*}} : f32
// TRANSPOSED-LABEL: func @masked_by_memory(
func.func @masked_by_memory(%q: tensor<16x64xf32>, %k: tensor<32x64xf32>, %v: tensor<32x48xf32>, %do: tensor<16x48xf32>,
                            %shift: tensor<16xf32>, %delta: tensor<16xf32>, %dq: tensor<16x64xf32>,
                            %seen: tensor<16x32xi8>) -> tensor<16x64xf32> {
  %0 = flash.query_grad_step ins(%q, %k, %v, %do, %shift, %delta : tensor<16x64xf32>, tensor<32x64xf32>,
          tensor<32x48xf32>, tensor<16x48xf32>, tensor<16xf32>, tensor<16xf32>)
      outs(%dq : tensor<16x64xf32>) at[0, 0, 0, 0] of[16, 32] scale(0.125) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %zero = arith.constant 0 : i8
    %e = tensor.extract %seen[%i, %j] : tensor<16x32xi8>
    %keep = arith.cmpi ne, %e, %zero : i8
    flash.yield %s keep %keep : f32
  }
  return %0 : tensor<16x64xf32>
}

// -----

// A mask of positions is computed again, wherever the tiles are from.

// CHECK-LABEL: func @masked_by_positions(
// CHECK-NOT:     arith.bitcast
// CHECK:         return
// TRANSPOSED-LABEL: func @masked_by_positions(
func.func @masked_by_positions(%all: tensor<64x64xf32>, %at: tensor<4xindex>, %k: tensor<32x64xf32>, %v: tensor<32x48xf32>,
                               %do: tensor<16x48xf32>, %shift: tensor<16xf32>, %delta: tensor<16xf32>,
                               %dq: tensor<16x64xf32>) -> tensor<16x64xf32> {
  %c0 = arith.constant 0 : index
  %first = tensor.extract %at[%c0] : tensor<4xindex>
  %q = tensor.extract_slice %all[%first, 0] [16, 64] [1, 1] : tensor<64x64xf32> to tensor<16x64xf32>
  %0 = flash.query_grad_step ins(%q, %k, %v, %do, %shift, %delta : tensor<16x64xf32>, tensor<32x64xf32>,
          tensor<32x48xf32>, tensor<16x48xf32>, tensor<16xf32>, tensor<16xf32>)
      outs(%dq : tensor<16x64xf32>) at[0, 0, 0, 0] of[16, 32] scale(0.125) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %seen = arith.addi %j, %first : index
    %keep = arith.cmpi sge, %i, %seen : index
    flash.yield %s keep %keep : f32
  }
  return %0 : tensor<16x64xf32>
}

// -----

func.func @no_derivative(%q: tensor<16x64xf32>, %k: tensor<32x64xf32>, %v: tensor<32x48xf32>, %do: tensor<16x48xf32>,
                         %shift: tensor<16xf32>, %delta: tensor<16xf32>, %dq: tensor<16x64xf32>) -> tensor<16x64xf32> {
  %0 = flash.query_grad_step ins(%q, %k, %v, %do, %shift, %delta : tensor<16x64xf32>, tensor<32x64xf32>,
          tensor<32x48xf32>, tensor<16x48xf32>, tensor<16xf32>, tensor<16xf32>)
      outs(%dq : tensor<16x64xf32>) at[0, 0, 0, 0] of[16, 32] scale(0.125) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    // expected-error @below {{has no derivative: it takes the bits of a value whose gradient is needed; use a function of arith or math}}
    %n = arith.bitcast %s : f32 to i32
    %f = arith.sitofp %n : i32 to f32
    %r = arith.addf %s, %f : f32
    flash.yield %r : f32
  }
  return %0 : tensor<16x64xf32>
}

// -----

func.func @open(%q: tensor<?x64xf32>, %k: tensor<32x64xf32>, %v: tensor<32x48xf32>, %do: tensor<?x48xf32>,
                %rows: tensor<?xf32>, %dq: tensor<?x64xf32>) -> tensor<?x64xf32> {
  // expected-error @below {{can be decomposed only as a statically shaped tile of rank 2; run flash-tile first}}
  %0 = flash.query_grad_step ins(%q, %k, %v, %do, %rows, %rows : tensor<?x64xf32>, tensor<32x64xf32>,
          tensor<32x48xf32>, tensor<?x48xf32>, tensor<?xf32>, tensor<?xf32>)
      outs(%dq : tensor<?x64xf32>) at[0, 0, 0, 0] of[16, 32] scale(0.125)
  return %0 : tensor<?x64xf32>
}

// -----

// The gradients of what was read, 0 behind the counts of both tiles, are added to a
// sum of the rows of the fixed tile, or of pairs; a read of 16 bits has a gradient of f32.

// CHECK-LABEL: func @captured(
// CHECK-SAME:    %[[M:[^:]*]]: index, %[[N:[^:]*]]: index, {{.*}} %[[SUM:[^:]*]]: tensor<16xf32>)
// CHECK:         linalg.contract
// CHECK:         math.exp2
// CHECK:         linalg.contract
// CHECK:         %[[G:.*]] = linalg.generic
// CHECK:           %[[I:.*]] = linalg.index 0
// CHECK:           %[[J:.*]] = linalg.index 1
// CHECK-DAG:       arith.cmpi slt, %[[J]], %[[N]]
// CHECK-DAG:       arith.cmpi slt, %[[I]], %[[M]]
// CHECK:           arith.select
// CHECK:         linalg.generic {{.*}} iterator_types = ["parallel", "reduction"]} ins(%[[G]] : tensor<16x32xf32>) outs(%[[SUM]] : tensor<16xf32>)
// CHECK:           arith.addf
// TRANSPOSED-LABEL: func @captured(
// TRANSPOSED:         linalg.generic {{.*}} iterator_types = ["reduction", "parallel"]} ins(%{{.*}} : tensor<32x16xf32>) outs(%{{.*}} : tensor<16xf32>)
func.func @captured(%m: index, %n: index, %q: tensor<16x64xf32>, %k: tensor<32x64xf32>, %v: tensor<32x48xf32>,
                    %do: tensor<16x48xf32>, %shift: tensor<16xf32>, %delta: tensor<16xf32>, %bias: tensor<?xf16>,
                    %0: tensor<16xf32>) -> tensor<16xf32> {
  %1 = flash.captured_grad_step of(%bias : tensor<?xf16>) reads([0]) ins(%q, %k, %v, %do, %shift, %delta : tensor<16x64xf32>,
          tensor<32x64xf32>, tensor<32x48xf32>, tensor<16x48xf32>, tensor<16xf32>, tensor<16xf32>)
      outs(%0 : tensor<16xf32>) at[0, 0, 0, 0] of[16, 32] queries(%m) keys(%n) scale(0.125) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %e = tensor.extract %bias[%j] : tensor<?xf16>
    %w = arith.extf %e : f16 to f32
    %r = arith.addf %s, %w : f32
    flash.yield %r : f32
  }
  return %1 : tensor<16xf32>
}

// Of two reads the gradient of one is wanted. Pairs of keys and queries, with the keys as rows.

// CHECK-LABEL: func @pairs(
// CHECK-SAME:    %[[SUM:[^:]*]]: tensor<32x16xf32>)
// CHECK:         math.exp2
// CHECK:         linalg.contract
// CHECK:         %[[G:.*]] = linalg.generic
// CHECK:         linalg.generic {{.*}} iterator_types = ["parallel", "parallel"]} ins(%[[G]] : tensor<32x16xf32>) outs(%[[SUM]] : tensor<32x16xf32>)
func.func @pairs(%q: tensor<16x64xf32>, %k: tensor<32x64xf32>, %do: tensor<16x64xf32>, %rows: tensor<16xf32>,
                 %bias: tensor<48x48xf32>, %0: tensor<32x16xf32>) -> tensor<32x16xf32> {
  %1 = flash.captured_grad_step of(%bias : tensor<48x48xf32>) reads([1]) ins(%q, %k, %k, %do, %rows, %rows : tensor<16x64xf32>,
          tensor<32x64xf32>, tensor<32x64xf32>, tensor<16x64xf32>, tensor<16xf32>, tensor<16xf32>)
      outs(%0 : tensor<32x16xf32>) at[0, 0, 0, 0] of[16, 32] over_queries scale(0.125) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %e = tensor.extract %bias[%i, %i] : tensor<48x48xf32>
    %x = tensor.extract %bias[%i, %j] : tensor<48x48xf32>
    %t = arith.mulf %s, %e : f32
    %r = arith.addf %t, %x : f32
    flash.yield %r : f32
  }
  return %1 : tensor<32x16xf32>
}

// -----

// All gradients: that of queries is a product of what scores have and of keys, of
// which those that are not finite are left out where a mask leaves some out. Keys
// that do not exist have no part in it. Its columns are in two parts.

// CHECK-DAG:   #[[OFSCORES:.*]] = affine_map<(d0, d1, d2, d3) -> (d3, d1)>
// CHECK-DAG:   #[[OFKEYS:.*]] = affine_map<(d0, d1, d2, d3) -> (d3, d0, d2)>
// CHECK-DAG:   #[[OFSUM:.*]] = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>
// CHECK-LABEL: func @all(
// CHECK-SAME:    %[[K:[^:]*]]: tensor<32x64xf16>
// CHECK:         %[[FINITE:.*]] = flash.zero_nonfinite %[[K]]
// CHECK:         %[[EXISTS:.*]] = arith.cmpi slt
// CHECK:         %[[USED:.*]] = arith.andi %{{.*}}, %[[EXISTS]]
// CHECK:         arith.subf
// CHECK:         arith.select %[[USED]]
// CHECK:         } -> tensor<32x48xf32>
// CHECK:         } -> tensor<32x64xf32>
// CHECK:         %[[DS:.*]] = arith.truncf %{{.*}} : tensor<32x16xf32> to tensor<32x16xf16>
// CHECK:         %[[PARTS:.*]] = tensor.expand_shape %[[FINITE]] {{\[\[}}0], [1, 2]] {{.*}} into tensor<32x2x32xf16>
// CHECK:         %[[SUM:.*]] = linalg.contract indexing_maps = [#[[OFSCORES]], #[[OFKEYS]], #[[OFSUM]]] ins(%[[DS]], %[[PARTS]] : {{.*}}) outs(%{{.*}} : tensor<2x16x32xf32>)
// CHECK:         tensor.collapse_shape %[[SUM]] {{\[\[}}0, 1], [2]] : tensor<2x16x32xf32> into tensor<32x32xf32>
// TRANSPOSED-LABEL: func @all(
func.func @all(%q: tensor<16x64xf16>, %k: tensor<32x64xf16>, %v: tensor<32x48xf16>, %do: tensor<16x48xf16>,
               %shift: tensor<16xf32>, %delta: tensor<16xf32>, %n: index, %dk: tensor<32x64xf32>,
               %dv: tensor<32x48xf32>, %dq: tensor<32x32xf32>) -> (tensor<32x64xf32>, tensor<32x48xf32>, tensor<32x32xf32>) {
  %0:3 = flash.key_grad_step ins(%q, %k, %v, %do, %shift, %delta : tensor<16x64xf16>, tensor<32x64xf16>,
          tensor<32x48xf16>, tensor<16x48xf16>, tensor<16xf32>, tensor<16xf32>)
      outs(%dk, %dv, %dq : tensor<32x64xf32>, tensor<32x48xf32>, tensor<32x32xf32>)
      at[0, 0, 0, 0] of[16, 32] keys(%n) scale(0.125) mask(#flash.causal)
  return %0#0, %0#1, %0#2 : tensor<32x64xf32>, tensor<32x48xf32>, tensor<32x32xf32>
}

// -----

// Beside wide gradients probabilities are rounded before dP is multiplied by them, and the gradients of queries come last, as under masks.

// CHECK-LABEL: func @wide(
// CHECK:         math.exp2
// CHECK:         linalg.contract {{.*}} outs(%{{.*}} : tensor<32x16xf32>)
// CHECK:         %[[P:.*]] = arith.truncf %{{.*}} : tensor<32x16xf32> to tensor<32x16xf16>
// CHECK:         %[[ROUNDED:.*]] = arith.extf %[[P]]
// CHECK:         linalg.generic {{.*}} ins(%[[ROUNDED]], %{{.*}} : tensor<32x16xf32>, tensor<16xf32>)
// CHECK:         linalg.contract {{.*}} -> tensor<32x128xf32>
// CHECK:         linalg.contract {{.*}} -> tensor<32x192xf32>
// CHECK:         linalg.contract {{.*}} -> tensor<2x16x96xf32>
// TRANSPOSED-LABEL: func @wide(
func.func @wide(%q: tensor<16x192xf16>, %k: tensor<32x192xf16>, %v: tensor<32x128xf16>, %do: tensor<16x128xf16>,
                %shift: tensor<16xf32>, %delta: tensor<16xf32>, %dk: tensor<32x192xf32>,
                %dv: tensor<32x128xf32>, %dq: tensor<32x96xf32>) -> (tensor<32x192xf32>, tensor<32x128xf32>, tensor<32x96xf32>) {
  %0:3 = flash.key_grad_step ins(%q, %k, %v, %do, %shift, %delta : tensor<16x192xf16>, tensor<32x192xf16>,
          tensor<32x128xf16>, tensor<16x128xf16>, tensor<16xf32>, tensor<16xf32>)
      outs(%dk, %dv, %dq : tensor<32x192xf32>, tensor<32x128xf32>, tensor<32x96xf32>)
      at[0, 0, 0, 0] of[16, 32] scale(0.125)
  return %0#0, %0#1, %0#2 : tensor<32x192xf32>, tensor<32x128xf32>, tensor<32x96xf32>
}
