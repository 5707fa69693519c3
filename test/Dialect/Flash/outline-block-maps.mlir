// Maps become results of a function of their own, and arguments of the program.
// RUN: flash-opt %s --flash-outline-block-maps --split-input-file --verify-diagnostics | FileCheck %s

!t = tensor<1x1x5x10xi32>
!n = tensor<1x1x5x2xi32>
!q = tensor<2x4x300x16xf32>

// CHECK-LABEL: func @f(
// CHECK-SAME:    %[[IDS:[^:]*]]: tensor<300xi32>, %[[T:[^:]*]]: tensor<1x1x5x10xi32>, %[[N:[^:]*]]: tensor<1x1x5x2xi32>) -> tensor<2x4x300x16xf32>
// CHECK:         flash.block_map of[1, 1, 300, 300] tiles([64, 32]) given(%[[T]], %[[N]] : {{.*}}) keep {
// CHECK:           tensor.extract %[[IDS]]
// CHECK:         flash.attention
// CHECK:         return %{{.*}} : tensor<2x4x300x16xf32>

// CHECK-LABEL: func @f_plan(
// CHECK-SAME:    %{{[^:]*}}: tensor<300xi32>) -> (tensor<1x1x5x10xi32>, tensor<1x1x5x2xi32>)
// CHECK:         %[[TILES:.*]], %[[COUNTS:.*]] = flash.block_map of[1, 1, 300, 300] tiles([64, 32]) keep
// CHECK:         return %[[TILES]], %[[COUNTS]]
func.func @f(%q: !q, %ids: tensor<300xi32>) -> !q {
  %t, %n = flash.block_map of[1, 1, 300, 300] tiles([64, 32]) keep {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %x = tensor.extract %ids[%i] : tensor<300xi32>
    %y = tensor.extract %ids[%j] : tensor<300xi32>
    %same = arith.cmpi eq, %x, %y : i32
    flash.yield %same : i1
  } : !t, !n
  %o = flash.attention %q, %q, %q blocks(%t, %n : !t, !n) schedule(<query_tile = 64, key_tile = 32>) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %x = tensor.extract %ids[%i] : tensor<300xi32>
    %y = tensor.extract %ids[%j] : tensor<300xi32>
    %same = arith.cmpi eq, %x, %y : i32
    flash.yield %s keep %same : f32
  } : (!q, !q, !q) -> !q
  return %o : !q
}

// CHECK-LABEL: func @ranks(
// CHECK-SAME:    %[[T:[^:]*]]: tensor<1x1x4x6xi32>, %[[N:[^:]*]]: tensor<1x1x4x2xi32>, %[[RANKS:[^:]*]]: tensor<1x1x4x2xi32>)
// CHECK:         flash.block_map {{.*}} given(%[[T]], %[[N]], %[[RANKS]] : {{.*}})
// CHECK-LABEL: func @ranks_plan(
// CHECK:         return %{{.*}}, %{{.*}}, %{{.*}} :
!u = tensor<1x1x4x2xi32>
!r = tensor<1x1x4x6xi32>
func.func @ranks(%q: tensor<1x1x128x16xf32>, %l: tensor<1x1x128xf32>) -> tensor<1x1x128x16xf32> {
  %t, %n, %ranks = flash.block_map of[1, 1, 128, 128] tiles([64, 32]) over_queries : !r, !u, !u
  %0, %1, %2 = flash.attention_grad %q, %q, %q, %q, %l, %q query_blocks(%t, %n, %ranks : !r, !u, !u)
      schedule(<query_tile = 64, key_tile = 32>)
      : (tensor<1x1x128x16xf32>, tensor<1x1x128x16xf32>, tensor<1x1x128x16xf32>, tensor<1x1x128x16xf32>, tensor<1x1x128xf32>, tensor<1x1x128x16xf32>)
      -> (tensor<1x1x128x16xf32>, tensor<1x1x128x16xf32>, tensor<1x1x128x16xf32>)
  return %0 : tensor<1x1x128x16xf32>
}

// CHECK-LABEL: func @without(
// CHECK-NOT:   _plan
func.func @without(%q: !q) -> !q {
  %o = flash.attention %q, %q, %q : (!q, !q, !q) -> !q
  return %o : !q
}

// -----

func.func @f(%c: i1, %a: tensor<1x1x1x4xi32>) -> tensor<1x1x1x4xi32> {
  %r = scf.if %c -> tensor<1x1x1x4xi32> {
    // expected-error @below {{cannot be computed by a function of its own: whether there is a map is a choice of the program}}
    %t, %n = flash.block_map of[1, 1, 64, 128] tiles([64, 32]) : tensor<1x1x1x4xi32>, tensor<1x1x1x2xi32>
    scf.yield %t : tensor<1x1x1x4xi32>
  } else {
    scf.yield %a : tensor<1x1x1x4xi32>
  }
  return %r : tensor<1x1x1x4xi32>
}

// -----

// expected-error @below {{has block maps, and there is a @f_plan already, which would compute them}}
func.func @f() -> tensor<1x1x1x4xi32> {
  %t, %n = flash.block_map of[1, 1, 64, 128] tiles([64, 32]) : tensor<1x1x1x4xi32>, tensor<1x1x1x2xi32>
  return %t : tensor<1x1x1x4xi32>
}
func.func private @f_plan()
