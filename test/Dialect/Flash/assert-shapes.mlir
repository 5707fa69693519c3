// RUN: flash-opt %s --flash-assert-shapes --split-input-file | FileCheck %s

// CHECK-LABEL: func @lengths_differ(
// CHECK-DAG:     %[[NK:.*]] = tensor.dim %arg1, %c2
// CHECK-DAG:     %[[NV:.*]] = tensor.dim %arg2, %c2
// CHECK:         %[[AGREE:.*]] = arith.cmpi eq, %[[NK]], %[[NV]]
// CHECK:         cf.assert %[[AGREE]], "flash.attention at {{.*}}assert-shapes.mlir:[[# @LINE + 4]]:8: lengths of key and value differ"
// CHECK-NOT:     cf.assert
// CHECK:         flash.attention
func.func @lengths_differ(%q: tensor<2x4x8x16xf32>, %k: tensor<2x2x?x16xf32>, %v: tensor<2x2x?x16xf32>) -> tensor<2x4x8x16xf32> {
  %o = flash.attention %q, %k, %v : (tensor<2x4x8x16xf32>, tensor<2x2x?x16xf32>, tensor<2x2x?x16xf32>) -> tensor<2x4x8x16xf32>
  return %o : tensor<2x4x8x16xf32>
}

// -----

// CHECK-LABEL: func @known(
// CHECK-NOT:     cf.assert
func.func @known(%q: tensor<2x4x8x16xf32>, %k: tensor<2x2x9x16xf32>, %n: tensor<2xi32>, %s: tensor<4xf32>)
    -> (tensor<2x4x?x16xf32>, tensor<?x4x8xf32>) {
  %o, %lse = flash.attention %q, %k, %k lengths(%n : tensor<2xi32>) sink(%s : tensor<4xf32>)
      : (tensor<2x4x8x16xf32>, tensor<2x2x9x16xf32>, tensor<2x2x9x16xf32>) -> (tensor<2x4x?x16xf32>, tensor<?x4x8xf32>)
  return %o, %lse : tensor<2x4x?x16xf32>, tensor<?x4x8xf32>
}

// -----

// One dynamic tensor agrees with itself.

// CHECK-LABEL: func @same(
// CHECK:         cf.assert {{.*}} there is no key head
// CHECK-NOT:     cf.assert
func.func @same(%q: tensor<?x?x?x16xf32>) -> tensor<?x?x?x16xf32> {
  %o = flash.attention %q, %q, %q : (tensor<?x?x?x16xf32>, tensor<?x?x?x16xf32>, tensor<?x?x?x16xf32>) -> tensor<?x?x?x16xf32>
  return %o : tensor<?x?x?x16xf32>
}

// -----

// CHECK-LABEL: func @all(
// CHECK:         cf.assert {{.*}} batch sizes of query and key differ
// CHECK:         cf.assert {{.*}} batch sizes of query and value differ
// CHECK:         cf.assert {{.*}} head counts of key and value differ
// CHECK:         %[[SOME:.*]] = arith.cmpi uge, %[[HK:.*]], %c1
// CHECK:         cf.assert %[[SOME]], {{.*}} there is no key head
// CHECK:         %[[DIVISOR:.*]] = arith.maxui %[[HK]], %c1
// CHECK:         %[[REST:.*]] = arith.remui %{{.*}}, %[[DIVISOR]]
// CHECK:         arith.cmpi eq, %[[REST]], %c0
// CHECK:         cf.assert {{.*}} query heads are not a multiple of key heads
// CHECK:         cf.assert {{.*}} lengths of key and value differ
// CHECK:         cf.assert {{.*}} batch size and number of lengths differ
// CHECK:         cf.assert {{.*}} query heads and number of sinks differ
// CHECK:         cf.assert {{.*}} batch sizes of query and output differ
// CHECK:         cf.assert {{.*}} head counts of query and log-sum-exp differ
// CHECK:         cf.assert {{.*}} lengths of query and log-sum-exp differ
// CHECK-NOT:     cf.assert
func.func @all(%q: tensor<?x?x?x16xf32>, %k: tensor<?x?x?x16xf32>, %v: tensor<?x?x?x16xf32>, %n: tensor<?xi32>, %s: tensor<?xf32>)
    -> (tensor<2x?x?x16xf32>, tensor<?x4x8xf32>) {
  %o, %lse = flash.attention %q, %k, %v lengths(%n : tensor<?xi32>) sink(%s : tensor<?xf32>)
      : (tensor<?x?x?x16xf32>, tensor<?x?x?x16xf32>, tensor<?x?x?x16xf32>) -> (tensor<2x?x?x16xf32>, tensor<?x4x8xf32>)
  return %o, %lse : tensor<2x?x?x16xf32>, tensor<?x4x8xf32>
}

// -----

// A static number of heads is a multiple of one, and need not be of another.

// CHECK-LABEL: func @heads(
// CHECK-NOT:     cf.assert
// CHECK:         flash.attention
// CHECK:         arith.remui %{{.*}}, %c3
// CHECK:         cf.assert {{.*}} query heads are not a multiple of key heads
func.func @heads(%q: tensor<1x?x8x16xf32>, %one: tensor<1x1x8x16xf32>, %three: tensor<1x3x8x16xf32>)
    -> (tensor<1x?x8x16xf32>, tensor<1x?x8x16xf32>) {
  %o = flash.attention %q, %one, %one : (tensor<1x?x8x16xf32>, tensor<1x1x8x16xf32>, tensor<1x1x8x16xf32>) -> tensor<1x?x8x16xf32>
  %p = flash.attention %q, %three, %three : (tensor<1x?x8x16xf32>, tensor<1x3x8x16xf32>, tensor<1x3x8x16xf32>) -> tensor<1x?x8x16xf32>
  return %o, %p : tensor<1x?x8x16xf32>, tensor<1x?x8x16xf32>
}

// -----

// Arrays that the score region reads: an element for each position, the one of a
// constant, and any where the index is computed and elements take no part. What types say costs nothing.

// CHECK-LABEL: func @reads(
// CHECK:         %[[NQ:.*]] = tensor.dim %arg0, %c2
// CHECK:         cf.assert {{.*}}"flash.attention at {{.*}}: tensor.extract at {{.*}}assert-shapes.mlir:{{.*}} reads dimension 1 at the index of the query, beyond its end"
// CHECK:         cf.assert {{.*}} reads dimension 0 at 6, which it does not have"
// CHECK:         %[[SOME:.*]] = arith.minui {{.*}}, %[[NQ]]
// CHECK:         cf.assert {{.*}} reads dimension 1, which is empty"
// CHECK-NOT:     cf.assert
func.func @reads(%q: tensor<2x4x?x16xf32>, %t: tensor<?x?xf32>, %h: tensor<4xf32>) -> tensor<2x4x?x16xf32> {
  %o = flash.attention %q, %q, %q mask(#flash.causal) score {
  ^bb0(%s: f32, %b: index, %head: index, %i: index, %j: index):
    %c6 = arith.constant 6 : index
    %x = tensor.extract %t[%c6, %i] : tensor<?x?xf32>
    %d = arith.subi %i, %j : index
    %y = tensor.extract %t[%c6, %d] : tensor<?x?xf32>
    %z = tensor.extract %h[%head] : tensor<4xf32>
    %u = arith.addf %x, %y : f32
    %r = arith.addf %u, %z : f32
    flash.yield %r : f32
  } : (tensor<2x4x?x16xf32>, tensor<2x4x?x16xf32>, tensor<2x4x?x16xf32>) -> tensor<2x4x?x16xf32>
  return %o : tensor<2x4x?x16xf32>
}

// -----

// Lengths of which something is said.

// CHECK-LABEL: func @multiples(
// CHECK:         %[[R:.*]] = arith.remui %{{.*}}, %c128
// CHECK:         cf.assert {{.*}}, "flash.attention at {{.*}}: the number of keys is not a multiple of 128"
// CHECK-NOT:     cf.assert {{.*}} multiple
func.func @multiples(%q: tensor<2x4x64x16xf32>, %k: tensor<2x4x?x16xf32>) -> tensor<2x4x64x16xf32> {
  %o = flash.attention %q, %k, %k multiples([64, 128]) : (tensor<2x4x64x16xf32>, tensor<2x4x?x16xf32>, tensor<2x4x?x16xf32>) -> tensor<2x4x64x16xf32>
  return %o : tensor<2x4x64x16xf32>
}

// -----

// The gradients: each operand with a row for each query, and sizes of results
// that their types say and those of the operands do not.

// CHECK-LABEL: func @gradients(
// CHECK:         cf.assert {{.*}}, "flash.attention_grad at {{.*}}assert-shapes.mlir:{{.*}}: lengths of query and output differ"
// CHECK:         cf.assert {{.*}}: lengths of query and log-sum-exp differ"
// CHECK:         cf.assert {{.*}}: lengths of query and gradient of the output differ"
// CHECK:         cf.assert {{.*}}: lengths of query and gradient of the log-sum-exp differ"
// CHECK:         cf.assert {{.*}}: lengths of key and its gradient differ"
// CHECK:         cf.assert {{.*}}: sizes of the sink and its gradient differ"
// CHECK:         cf.assert {{.*}}: sizes of tensor #0 of wrt and its gradient differ"
// CHECK:         cf.assert {{.*}} reads dimension 0 at the index of the head, beyond its end"
// CHECK-NOT:     cf.assert
func.func @gradients(%q: tensor<2x4x64x16xf32>, %k: tensor<2x4x?x16xf32>, %x: tensor<2x4x?x16xf32>, %lse: tensor<2x4x?xf32>,
                     %s: tensor<?xf32>, %t: tensor<?xf32>) -> tensor<2x4x70x16xf32> {
  %0:5 = flash.attention_grad %q, %k, %k, %x, %lse, %x sink(%s : tensor<?xf32>) lse_grad(%lse : tensor<2x4x?xf32>)
      wrt(%t : tensor<?xf32>) score {
  ^bb0(%z: f32, %b: index, %h: index, %i: index, %j: index):
    %e = tensor.extract %t[%h] : tensor<?xf32>
    %r = arith.addf %z, %e : f32
    flash.yield %r : f32
  } : (tensor<2x4x64x16xf32>, tensor<2x4x?x16xf32>, tensor<2x4x?x16xf32>, tensor<2x4x?x16xf32>, tensor<2x4x?xf32>, tensor<2x4x?x16xf32>)
      -> (tensor<2x4x?x16xf32>, tensor<2x4x70x16xf32>, tensor<2x4x?x16xf32>, tensor<4xf32>, tensor<7xf32>)
  return %0#1 : tensor<2x4x70x16xf32>
}

// -----

// A block map is of the attention's sizes, or of one batch or head for all.

// CHECK-LABEL: func @blocks(
// CHECK-SAME:    , %[[HEADS:[^ ]*]]: index, %[[NK:[^ ]*]]: index)
// CHECK:         arith.cmpi eq, %[[HEADS]], %c4
// CHECK-NEXT:    cf.assert {{.*}}, "flash.attention at {{.*}}: the block map is of another number of heads"
// CHECK:         %[[SIZE:.*]] = tensor.dim %{{.*}}, %c2
// CHECK:         arith.cmpi eq, %[[NK]], %[[SIZE]]
// CHECK-NEXT:    cf.assert {{.*}}, "flash.attention at {{.*}}: the block map is of another number of keys"
// CHECK-NOT:     cf.assert
func.func @blocks(%q: tensor<2x4x64x16xf32>, %k: tensor<2x4x?x16xf32>, %h: index, %nk: index) -> tensor<2x4x64x16xf32> {
  %t, %c = flash.block_map of[1, %h, 64, %nk] tiles([64, 32]) : tensor<1x?x1x?xi32>, tensor<1x?x1x2xi32>
  %o = flash.attention %q, %k, %k blocks(%t, %c : tensor<1x?x1x?xi32>, tensor<1x?x1x2xi32>) schedule(<query_tile = 64, key_tile = 32>)
      : (tensor<2x4x64x16xf32>, tensor<2x4x?x16xf32>, tensor<2x4x?x16xf32>) -> tensor<2x4x64x16xf32>
  return %o : tensor<2x4x64x16xf32>
}

// -----

// A map that is given has as many tiles as its sizes need.

// CHECK-LABEL: func @given(
// CHECK-SAME:    %[[T:[^:]*]]: tensor<1x2x?x?xi32>, %[[N:[^:]*]]: tensor<1x2x?x2xi32>, %[[NQ:.*]]: index, %[[NK:.*]]: index
// CHECK:         affine.apply #{{.*}}()[%[[NQ]]]
// CHECK-COUNT-3: cf.assert {{.*}}, "flash.block_map at {{.*}}: the map that is given is of another number of tiles of
// CHECK-NOT:     cf.assert
func.func @given(%t: tensor<1x2x?x?xi32>, %n: tensor<1x2x?x2xi32>, %nq: index, %nk: index) -> tensor<1x2x?x?xi32> {
  %0, %1 = flash.block_map of[1, 4, %nq, %nk] tiles([64, 32]) packed(2) given(%t, %n : tensor<1x2x?x?xi32>, tensor<1x2x?x2xi32>)
      : tensor<1x2x?x?xi32>, tensor<1x2x?x2xi32>
  return %0 : tensor<1x2x?x?xi32>
}

// Lists of queries are those of tiles of keys.
// CHECK-LABEL: func @given_over_queries(
// CHECK-SAME:    %[[T:[^:]*]]: tensor<1x1x?x?xi32>, %[[N:[^:]*]]: tensor<1x1x?x2xi32>, %[[NQ:.*]]: index, %[[NK:.*]]: index
// CHECK:         affine.apply #{{.*}}()[%[[NK]]]
// CHECK:         cf.assert {{.*}}, "flash.block_map at {{.*}}: the map that is given is of another number of tiles of keys
// CHECK:         affine.apply #{{.*}}()[%[[NQ]]]
// CHECK:         cf.assert {{.*}}, "flash.block_map at {{.*}}: the map that is given is of another number of tiles of queries
// CHECK:         affine.apply #{{.*}}()[%[[NK]]]
// CHECK:         cf.assert {{.*}}, "flash.block_map at {{.*}}: the map that is given is of another number of tiles of keys
// CHECK-NOT:     cf.assert
func.func @given_over_queries(%t: tensor<1x1x?x?xi32>, %n: tensor<1x1x?x2xi32>, %nq: index, %nk: index) -> tensor<1x1x?x?xi32> {
  %0, %1 = flash.block_map of[1, 1, %nq, %nk] tiles([64, 32]) over_queries given(%t, %n : tensor<1x1x?x?xi32>, tensor<1x1x?x2xi32>)
      : tensor<1x1x?x?xi32>, tensor<1x1x?x2xi32>
  return %0 : tensor<1x1x?x?xi32>
}

// A run has three numbers.
// CHECK-LABEL: func @given_turns(
// CHECK-SAME:    %[[T:[^:]*]]: tensor<1x1x?x?xi32>
// CHECK:         cf.assert
// CHECK:         %[[TIMES_3:.*]] = affine.apply #{{.*}}()[%{{.*}}]
// CHECK:         %[[DIM:.*]] = tensor.dim %[[T]], %
// CHECK:         %[[SAME:.*]] = arith.cmpi eq, %[[DIM]], %[[TIMES_3]]
// CHECK:         cf.assert %[[SAME]], "flash.block_map at {{.*}}: the map that is given is of another number of tiles of queries
// CHECK-COUNT-3: cf.assert
func.func @given_turns(%t: tensor<1x1x?x?xi32>, %n: tensor<1x1x?x2xi32>, %u: tensor<1x1x?x?xi32>, %nq: index, %nk: index) -> tensor<1x1x?x?xi32> {
  %0, %1, %2 = flash.block_map of[1, 1, %nq, %nk] tiles([64, 32]) over_queries
      given(%t, %n, %u : tensor<1x1x?x?xi32>, tensor<1x1x?x2xi32>, tensor<1x1x?x?xi32>)
      : tensor<1x1x?x?xi32>, tensor<1x1x?x2xi32>, tensor<1x1x?x?xi32>
  return %2 : tensor<1x1x?x?xi32>
}

// The maps of gradients are of their sizes.
// CHECK-LABEL: func @gradients(
// CHECK:         cf.assert {{.*}}, "flash.attention_grad at {{.*}}: the block map is of another number of queries
// CHECK:         cf.assert {{.*}}, "flash.attention_grad at {{.*}}: the block map is of another number of keys
// CHECK:         cf.assert {{.*}}, "flash.attention_grad at {{.*}}: the block map is of another number of queries
// CHECK:         cf.assert {{.*}}, "flash.attention_grad at {{.*}}: the block map is of another number of keys
!g = tensor<1x1x?x16xf32>
func.func @gradients(%q: !g, %l: tensor<1x1x?xf32>, %n: index) -> !g {
  %t, %c = flash.block_map of[1, 1, %n, %n] tiles([64, 32]) : tensor<1x1x?x?xi32>, tensor<1x1x?x2xi32>
  %tq, %cq = flash.block_map of[1, 1, %n, %n] tiles([64, 32]) over_queries : tensor<1x1x?x?xi32>, tensor<1x1x?x2xi32>
  %0, %1, %2 = flash.attention_grad %q, %q, %q, %q, %l, %q blocks(%t, %c : tensor<1x1x?x?xi32>, tensor<1x1x?x2xi32>)
      query_blocks(%tq, %cq : tensor<1x1x?x?xi32>, tensor<1x1x?x2xi32>) schedule(<query_tile = 64, key_tile = 32>)
      : (!g, !g, !g, !g, tensor<1x1x?xf32>, !g) -> (!g, !g, !g)
  return %0 : !g
}

// -----

// Computed indices, as far as sizes say what they are: by batch and head always, by query and key where all elements
// take part.

// CHECK-LABEL: func @computed(
// CHECK:         %[[LAST:.*]] = arith.floordivsi %{{.*}}, %c16{{.*}} : index
// CHECK:         %[[COUNT:.*]] = arith.addi %[[LAST]], %c1
// CHECK:         %[[WANTED:.*]] = arith.muli %{{.*}}, %[[COUNT]]
// CHECK:         arith.cmpi sle, %[[WANTED]]
// CHECK:         cf.assert {{.*}} reads dimension 0 beyond its end"
// CHECK:         cf.assert {{.*}} reads dimension 1 at a negative index"
// CHECK:         cf.assert {{.*}} reads dimension 1 beyond its end"
// CHECK-NOT:     cf.assert
// CHECK:         flash.attention
func.func @computed(%q: tensor<2x4x?x16xf32>, %pages: tensor<?x?xf32>, %h: tensor<2xf32>) -> tensor<2x4x?x16xf32> {
  %o = flash.attention %q, %q, %q score {
  ^bb0(%s: f32, %b: index, %head: index, %i: index, %j: index):
    %c16 = arith.constant 16 : index
    %c2 = arith.constant 2 : index
    %page = arith.floordivsi %j, %c16 : index
    %back = arith.subi %head, %i : index
    %x = tensor.extract %pages[%page, %back] : tensor<?x?xf32>
    %group = arith.divsi %head, %c2 : index
    %y = tensor.extract %h[%group] : tensor<2xf32>
    %t = arith.addf %s, %x : f32
    %r = arith.addf %t, %y : f32
    flash.yield %r : f32
  } : (tensor<2x4x?x16xf32>, tensor<2x4x?x16xf32>, tensor<2x4x?x16xf32>) -> tensor<2x4x?x16xf32>
  return %o : tensor<2x4x?x16xf32>
}

// CHECK-LABEL: func @hidden(
// CHECK-NOT:     beyond its end
// CHECK:         cf.assert {{.*}} reads dimension 0, which is empty"
// CHECK:         cf.assert {{.*}} reads dimension 1 beyond its end"
// CHECK:         flash.attention
func.func @hidden(%q: tensor<2x4x?x16xf32>, %pages: tensor<?x?xf32>) -> tensor<2x4x?x16xf32> {
  %o = flash.attention %q, %q, %q mask(#flash.causal) score {
  ^bb0(%s: f32, %b: index, %head: index, %i: index, %j: index):
    %c16 = arith.constant 16 : index
    %page = arith.floordivsi %j, %c16 : index
    %both = arith.addi %b, %head : index
    %x = tensor.extract %pages[%page, %both] : tensor<?x?xf32>
    %t = arith.addf %s, %x : f32
    flash.yield %t : f32
  } : (tensor<2x4x?x16xf32>, tensor<2x4x?x16xf32>, tensor<2x4x?x16xf32>) -> tensor<2x4x?x16xf32>
  return %o : tensor<2x4x?x16xf32>
}

// -----

// Lists of blocks that are given: 1 serves all batches or heads, and there are as many rows as blocks.
// CHECK-LABEL: func @given_blocks(
// CHECK:         cf.assert %{{.*}}, "flash.attention at {{.*}}: numbers of batches of blocks and their counts differ"
// CHECK:         arith.ori
// CHECK:         cf.assert %{{.*}}, "flash.attention at {{.*}}: blocks are of another number of batches"
// CHECK-NOT:     number of heads
// CHECK:         cf.assert %{{.*}}, "flash.attention at {{.*}}: blocks are of another number of blocks"
// CHECK-NOT:     another number of blocks
func.func @given_blocks(%q: tensor<2x4x300x16xf32>, %l: tensor<?x1x?x?xi32>, %n: tensor<?x1x3x2xi32>) -> tensor<2x4x300x16xf32> {
  %o = flash.attention %q, %q, %q blocks(%l, %n : tensor<?x1x?x?xi32>, tensor<?x1x3x2xi32>) of [128, 128]
      : (tensor<2x4x300x16xf32>, tensor<2x4x300x16xf32>, tensor<2x4x300x16xf32>) -> tensor<2x4x300x16xf32>
  return %o : tensor<2x4x300x16xf32>
}

// -----

// CHECK-LABEL: func @pages(
// CHECK:         %[[COLUMNS:.*]] = tensor.dim %[[TABLE:.*]], %c1{{.*}} : tensor<2x?xi32>
// CHECK:         %[[MOST:.*]] = arith.minui %[[COLUMNS]], %c1
// CHECK:         %[[PAGES:.*]] = tensor.dim %{{.*}}, %c0{{.*}} : tensor<?x2x16x16xf32>
// CHECK:         %[[ARE:.*]] = arith.cmpi ule, %[[MOST]], %[[PAGES]]
// CHECK:         cf.assert %[[ARE]], "flash.attention at {{.*}}: the table has room for pages, and there is none"
func.func @pages(%q: tensor<2x4x8x16xf32>, %k: tensor<?x2x16x16xf32>, %table: tensor<2x?xi32>, %n: tensor<2xi32>) -> tensor<2x4x8x16xf32> {
  %ks = flash.unpage %k by %table lengths(%n : tensor<2xi32>) : tensor<?x2x16x16xf32>, tensor<2x?xi32> -> tensor<2x2x?x16xf32>
  %o = flash.attention %q, %ks, %ks key_lengths(%n : tensor<2xi32>) : (tensor<2x4x8x16xf32>, tensor<2x2x?x16xf32>, tensor<2x2x?x16xf32>) -> tensor<2x4x8x16xf32>
  return %o : tensor<2x4x8x16xf32>
}

// -----

// CHECK-LABEL: func @scales(
// CHECK:         cf.assert %{{.*}}, "flash.attention at {{.*}}: batch sizes of keys or values and their scales differ"
// CHECK:         cf.assert %{{.*}}, "flash.attention at {{.*}}: head counts of keys or values and their scales differ"
// CHECK:         cf.assert %{{.*}}, "flash.attention at {{.*}}: lengths of keys or values and their scales differ"
// CHECK-NOT:     their scales
func.func @scales(%q: tensor<2x4x8x16xf16>, %k: tensor<2x?x40x16xi8>, %of_rows: tensor<?x?x?xf32>, %one: tensor<1xf32>) -> tensor<2x4x8x16xf16> {
  %ks = flash.dequantize %k scale(%of_rows : tensor<?x?x?xf32>) : tensor<2x?x40x16xi8> -> tensor<2x?x40x16xf16>
  %vs = flash.dequantize %k scale(%one : tensor<1xf32>) : tensor<2x?x40x16xi8> -> tensor<2x?x40x16xf16>
  %o = flash.attention %q, %ks, %vs : (tensor<2x4x8x16xf16>, tensor<2x?x40x16xf16>, tensor<2x?x40x16xf16>) -> tensor<2x4x8x16xf16>
  return %o : tensor<2x4x8x16xf16>
}
