// Which attention gets a map of the tiles that its mask leaves, and for what.
// RUN: flash-opt %s --flash-make-block-maps | FileCheck %s

#tiles = #flash.schedule<query_tile = 64, key_tile = 32>
!t = tensor<2x4x300x16xf32>

// Nothing depends on batch or head.
// CHECK-LABEL: func @documents(
// CHECK:       %[[T:.*]], %[[N:.*]] = flash.block_map of[1, 1, 300, 300] tiles([64, 32]) mask(#flash.causal) keep {
// CHECK-NEXT:  ^bb0(%{{.*}}: index, %{{.*}}: index, %[[I:.*]]: index, %[[J:.*]]: index):
// CHECK-NEXT:    %[[X:.*]] = tensor.extract %{{.*}}[%[[I]]]
// CHECK-NEXT:    %[[Y:.*]] = tensor.extract %{{.*}}[%[[J]]]
// CHECK-NEXT:    %[[SAME:.*]] = arith.cmpi eq, %[[X]], %[[Y]]
// CHECK-NEXT:    flash.yield %[[SAME]] : i1
// CHECK-NEXT:  } : tensor<1x1x5x10xi32>, tensor<1x1x5x2xi32>
// CHECK:       flash.attention {{.*}} mask(#flash.causal) blocks(%[[T]], %[[N]] : tensor<1x1x5x10xi32>, tensor<1x1x5x2xi32>)
func.func @documents(%q: !t, %ids: tensor<300xi32>, %cap: f32) -> !t {
  %o = flash.attention %q, %q, %q mask(#flash.causal) schedule(#tiles) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %u = arith.mulf %s, %cap : f32
    %x = tensor.extract %ids[%i] : tensor<300xi32>
    %y = tensor.extract %ids[%j] : tensor<300xi32>
    %same = arith.cmpi eq, %x, %y : i32
    flash.yield %u keep %same : f32
  } : (!t, !t, !t) -> !t
  return %o : !t
}

// Lengths are one for each batch, and the mask depends on the head.
// CHECK-LABEL: func @per_head(
// CHECK:       %[[NQ:.*]] = tensor.dim %{{.*}}, %c2 : tensor<2x?x?x16xf32>
// CHECK:       flash.block_map of[2, %{{.*}}, %[[NQ]], %{{.*}}] tiles([64, 32]) lengths(%{{.*}} : tensor<2xi32>) keep
// CHECK:       } : tensor<2x?x?x?xi32>, tensor<2x?x?x2xi32>
func.func @per_head(%q: tensor<2x?x?x16xf32>, %n: tensor<2xi32>, %w: tensor<?xindex>) -> tensor<2x?x?x16xf32> {
  %o = flash.attention %q, %q, %q lengths(%n : tensor<2xi32>) schedule(#tiles) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %x = tensor.extract %w[%h] : tensor<?xindex>
    %d = arith.subi %i, %j : index
    %near = arith.cmpi sle, %d, %x : index
    flash.yield %s keep %near : f32
  } : (tensor<2x?x?x16xf32>, tensor<2x?x?x16xf32>, tensor<2x?x?x16xf32>) -> tensor<2x?x?x16xf32>
  return %o : tensor<2x?x?x16xf32>
}

// The analysis gives up.
#nested = affine_set<(b, h, i, j)[nq, nk] : ((i * 7 + j * 5) floordiv 31 + (i * 3 - j) mod 29 - (j * 11 + i) mod 13 >= 0)>
// CHECK-LABEL: func @nested(
// CHECK:       flash.block_map of[1, 1, %{{.*}}, %{{.*}}] tiles([64, 32]) mask(#flash.affine<{{.*}}>) : tensor<1x1x?x?xi32>, tensor<1x1x?x2xi32>
func.func @nested(%q: tensor<?x?x?x16xf32>) -> tensor<?x?x?x16xf32> {
  %o = flash.attention %q, %q, %q mask(#flash.affine<#nested>) schedule(#tiles)
      : (tensor<?x?x?x16xf32>, tensor<?x?x?x16xf32>, tensor<?x?x?x16xf32>) -> tensor<?x?x?x16xf32>
  return %o : tensor<?x?x?x16xf32>
}

// Heads that share tiles share a map, of as many queries as a tile has of each,
// if the mask depends on the head.
// CHECK-LABEL: func @packed(
// CHECK:       flash.block_map of[1, 1, 300, 300] tiles([16, 32]) keep
// CHECK:       flash.block_map of[1, 4, 300, 300] tiles([32, 32]) packed(2) keep
// CHECK:       } : tensor<1x2x10x10xi32>, tensor<1x2x10x2xi32>
func.func @packed(%q: !t, %k: tensor<2x1x300x16xf32>) -> (!t, !t) {
  %0 = flash.attention %q, %k, %k schedule(<query_tile = 64, key_tile = 32, packed_heads = 4>) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %x = arith.cmpi ne, %i, %j : index
    flash.yield %s keep %x : f32
  } : (!t, tensor<2x1x300x16xf32>, tensor<2x1x300x16xf32>) -> !t
  %1 = flash.attention %q, %k, %k schedule(<query_tile = 64, key_tile = 32, packed_heads = 2>) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %x = arith.cmpi ne, %h, %j : index
    flash.yield %s keep %x : f32
  } : (!t, tensor<2x1x300x16xf32>, tensor<2x1x300x16xf32>) -> !t
  return %0, %1 : !t, !t
}

// A mask that is known, a single tile of keys, keys in splits of their own, and
// a schedule that says so. What nobody uses is not computed.
// CHECK-LABEL: func @none(
// CHECK-NOT:   flash.block_map
// CHECK-COUNT-4: flash.attention
// CHECK-NOT:   flash.attention
func.func @none(%q: !t, %few: tensor<2x4x32x16xf32>) -> (!t, !t, !t, !t) {
  %0 = flash.attention %q, %q, %q mask(#flash.causal) schedule(#tiles) : (!t, !t, !t) -> !t
  %1 = flash.attention %q, %few, %few schedule(#tiles) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %x = arith.cmpi ne, %i, %j : index
    flash.yield %s keep %x : f32
  } : (!t, tensor<2x4x32x16xf32>, tensor<2x4x32x16xf32>) -> !t
  %2 = flash.attention %q, %q, %q schedule(<query_tile = 64, key_tile = 32, split_keys = 64>) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %x = arith.cmpi ne, %i, %j : index
    flash.yield %s keep %x : f32
  } : (!t, !t, !t) -> !t
  %3 = flash.attention %q, %q, %q schedule(<query_tile = 64, key_tile = 32, block_map = 0>) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %x = arith.cmpi ne, %i, %j : index
    flash.yield %s keep %x : f32
  } : (!t, !t, !t) -> !t
  %4 = flash.attention %q, %q, %q schedule(#tiles) : (!t, !t, !t) -> !t
  return %0, %1, %2, %3 : !t, !t, !t, !t
}

// One program for all gradients is over keys, and has that map alone.
// CHECK-LABEL: func @one_program(
// CHECK:       flash.block_map of[1, 1, 300, 300] tiles([64, 128]) over_queries keep
// CHECK-NOT:   flash.block_map
// CHECK:       flash.attention_grad {{.*}} query_blocks({{[^)]*}}) schedule
func.func @one_program(%q: !t, %l: tensor<2x4x300xf32>, %ids: tensor<300xi32>) -> !t {
  %0, %1, %2 = flash.attention_grad %q, %q, %q, %q, %l, %q
      schedule(<query_tile = 64, key_tile = 128, products = 5>) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %x = tensor.extract %ids[%i] : tensor<300xi32>
    %y = tensor.extract %ids[%j] : tensor<300xi32>
    %same = arith.cmpi eq, %x, %y : i32
    flash.yield %s keep %same : f32
  } : (!t, !t, !t, !t, tensor<2x4x300xf32>, !t) -> (!t, !t, !t)
  return %0 : !t
}

// Where warps have roles blocks add in order, and a mask that leaves no ranges has lists, too.
// CHECK-LABEL: func @ranks(
// CHECK:       %[[T:.*]], %[[N:.*]], %[[RANKS:.*]] = flash.block_map of[1, 1, 4096, 4096] tiles([128, 128]) over_queries mask(#{{.*}}) : tensor<1x1x32x96xi32>, tensor<1x1x32x2xi32>, tensor<1x1x32x32xi32>
// CHECK:       flash.attention_grad {{.*}} query_blocks(%[[T]], %[[N]], %[[RANKS]] : {{.*}}) schedule
#strided = affine_set<(b, h, i, j)[nq, nk] : ((i - j) mod 1024 == 0)>
!h = tensor<1x2x4096x64xf16>
func.func @ranks(%q: !h, %l: tensor<1x2x4096xf32>) -> !h {
  %0, %1, %2 = flash.attention_grad %q, %q, %q, %q, %l, %q mask(#flash.affine<#strided>)
      schedule(<query_tile = 128, key_tile = 128, products = 5, features = specialize_warps>)
      : (!h, !h, !h, !h, tensor<1x2x4096xf32>, !h) -> (!h, !h, !h)
  return %0 : !h
}

// Gradients have two programs and two maps: of tiles of keys for the one over queries, of tiles of queries for
// the one over keys, which has one step of queries here and no map.
// CHECK-LABEL: func @gradients(
// CHECK:       %[[T:.*]], %[[N:.*]] = flash.block_map of[1, 1, 300, 300] tiles([64, 16]) keep
// CHECK:       } : tensor<1x1x5x19xi32>, tensor<1x1x5x2xi32>
// CHECK:       %[[TQ:.*]], %[[NQ:.*]] = flash.block_map of[1, 1, 300, 300] tiles([32, 128]) over_queries keep
// CHECK:       } : tensor<1x1x3x10xi32>, tensor<1x1x3x2xi32>
// CHECK:       flash.attention_grad {{.*}} blocks(%[[T]], %[[N]] : {{.*}}) query_blocks(%[[TQ]], %[[NQ]] : {{.*}}) schedule
// CHECK:       flash.block_map of[1, 1, 300, 300] tiles([64, 16]) keep
// CHECK-NOT:   flash.block_map
// CHECK:       flash.attention_grad {{.*}} blocks({{[^)]*}}) schedule
!l = tensor<2x4x300xf32>
func.func @gradients(%q: !t, %l: !l, %ids: tensor<300xi32>) -> (!t, !t) {
  %0, %1, %2 = flash.attention_grad %q, %q, %q, %q, %l, %q
      schedule(<query_tile = 64, key_tile = 128, query_step = 32, key_step = 16>) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %x = tensor.extract %ids[%i] : tensor<300xi32>
    %y = tensor.extract %ids[%j] : tensor<300xi32>
    %same = arith.cmpi eq, %x, %y : i32
    flash.yield %s keep %same : f32
  } : (!t, !t, !t, !t, !l, !t) -> (!t, !t, !t)
  %3, %4, %5 = flash.attention_grad %q, %q, %q, %q, %l, %q
      schedule(<query_tile = 64, key_tile = 128, query_step = 512, key_step = 16>) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %x = tensor.extract %ids[%i] : tensor<300xi32>
    %y = tensor.extract %ids[%j] : tensor<300xi32>
    %same = arith.cmpi eq, %x, %y : i32
    flash.yield %s keep %same : f32
  } : (!t, !t, !t, !t, !l, !t) -> (!t, !t, !t)
  return %1, %4 : !t, !t
}

// A mask that the compiler knows, whose tiles are no range: where the schedule demands a map.
// CHECK-LABEL: func @sinks(
// CHECK:       flash.block_map of[1, 1, 300, 300] tiles([64, 32]) mask(#flash.all_of<
// CHECK-NOT:   flash.block_map
#asked = #flash.schedule<query_tile = 64, key_tile = 32, block_map = 1>
func.func @sinks(%q: !t) -> (!t, !t, !t) {
  %0 = flash.attention %q, %q, %q mask(#flash.all_of<[#flash.causal, #flash.any_of<[#flash.window<left = 40>, #flash.prefix<4>]>]>)
      schedule(#asked) : (!t, !t, !t) -> !t
  %1 = flash.attention %q, %q, %q mask(#flash.all_of<[#flash.causal, #flash.any_of<[#flash.window<left = 40>, #flash.prefix<4>]>]>)
      schedule(#tiles) : (!t, !t, !t) -> !t
  %2 = flash.attention %q, %q, %q mask(#flash.causal) schedule(#asked) : (!t, !t, !t) -> !t
  return %0, %1, %2 : !t, !t, !t
}
