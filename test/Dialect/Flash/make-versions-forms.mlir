// Sizes that types say, that several arguments have, and attentions of others' results.
// RUN: flash-opt %s --flash-attach-target=target=sm_80 --flash-make-versions="calls=3x?x64,3x100x64,?" --cse --split-input-file | FileCheck %s

// The batch size is one of three arguments, of which one says it; no condition is on the number of queries, which
// the type has, nor on a size that decides nothing.

// CHECK-LABEL: func.func @said(
// CHECK-SAME:    %[[Q:.*]]: tensor<?x70x64xf32>, %[[K:.*]]: tensor<?x?x64xf32>, %{{.*}}: tensor<?xf32>,
// CHECK-DAG:     %[[B:.*]] = tensor.dim %[[Q]], %c0
// CHECK-DAG:     %[[NK:.*]] = tensor.dim %[[K]], %c1
// CHECK:         arith.cmpi eq, %[[B]], %c3
// CHECK:         arith.cmpi uge, %[[NK]], %c96
// CHECK:         arith.cmpi ule, %[[NK]], %c111
// CHECK:         scf.if
// CHECK:           flash.attention {{.*}}schedule(
// CHECK:             tensor.extract
// CHECK:         } else {
func.func @said(%q: tensor<?x70x64xf32>, %k: tensor<?x?x64xf32>, %bias: tensor<?xf32>, %n: tensor<?xi32>) -> tensor<?x70x64xf32> {
  %o = flash.attention %q, %k, %k leading(batch) lengths(%n : tensor<?xi32>) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %e = tensor.extract %bias[%j] : tensor<?xf32>
    %r = arith.addf %s, %e : f32
    flash.yield %r : f32
  } : (tensor<?x70x64xf32>, tensor<?x?x64xf32>, tensor<?x?x64xf32>) -> tensor<?x70x64xf32>
  return %o : tensor<?x70x64xf32>
}

// -----

// A version has all attentions of the function; each of its results is one of the choice.

// CHECK-LABEL: func.func @two(
// CHECK:         %[[R:.*]]:2 = scf.if
// CHECK-COUNT-2:   flash.attention {{.*}}schedule(
// CHECK:         } else {
// CHECK-NOT:       schedule(
// CHECK:         return %[[R]]#0, %[[R]]#1
func.func @two(%q: tensor<?x70x64xf32>, %k: tensor<?x?x64xf32>, %unused: tensor<?xf32>) -> (tensor<?x70x64xf32>, tensor<?x70x64xf32>) {
  %o = flash.attention %q, %k, %k leading(batch) : (tensor<?x70x64xf32>, tensor<?x?x64xf32>, tensor<?x?x64xf32>) -> tensor<?x70x64xf32>
  %p = flash.attention %o, %k, %k leading(batch) : (tensor<?x70x64xf32>, tensor<?x?x64xf32>, tensor<?x?x64xf32>) -> tensor<?x70x64xf32>
  return %o, %p : tensor<?x70x64xf32>, tensor<?x70x64xf32>
}
