// What a mask leaves of each pair of tiles is counted, then each entry of a list
// finds its tile.
// RUN: flash-opt %s --flash-tile-block-maps --convert-flash-to-scf | FileCheck %s

// CHECK-DAG:   #[[ROWS:.*]] = affine_map<(d0)[s0] -> (-d0 + s0, 64)>
// CHECK-DAG:   #[[TILES:.*]] = affine_map<()[s0] -> (s0 ceildiv 32)>
// CHECK-DAG:   #[[PLUS:.*]] = affine_map<(d0, d1) -> (d0 + d1)>
// CHECK-DAG:   #[[OF_TILE:.*]] = affine_map<(d0) -> (d0 floordiv 64)>

// CHECK-LABEL: func @documents(
// CHECK-SAME:    %[[IDS:.*]]: tensor<?xi32>, %[[N:.*]]: tensor<2xi32>, %[[NQ:.*]]: index, %[[NK:.*]]: index
// CHECK:       %[[TK:.*]] = affine.apply #[[TILES]]()[%[[NK]]]
// The least and the greatest number of each tile's documents, for queries and for keys.
// CHECK:       %[[OF_Q:.*]]:2 = scf.forall (%{{.*}}, %{{.*}}, %[[U:.*]]) = (0, 0, 0) to (1, 1, %{{.*}}) step (1, 1, 8)
// CHECK:         linalg.generic {{.*}} outs(%{{.*}} : tensor<8x64xf32>)
// CHECK:           %[[TILE:.*]] = arith.addi %[[U]], %{{.*}}
// CHECK:           %[[START:.*]] = arith.muli %[[TILE]], %c64
// CHECK:           %[[ROW:.*]] = arith.addi %[[START]], %{{.*}}
// CHECK:           %[[BELOW:.*]] = arith.minsi %[[ROW]], %{{.*}}
// CHECK:           tensor.extract %[[IDS]][%[[BELOW]]]
// CHECK:         arith.maximumf
// CHECK:         arith.negf
// CHECK:         arith.maximumf
// CHECK:       %[[OF_K:.*]]:2 = scf.forall (%{{.*}}, %{{.*}}, %{{.*}}) = (0, 0, 0) to (1, 1, %{{.*}}) step (1, 1, 8)
// CHECK:         linalg.generic {{.*}} outs(%{{.*}} : tensor<8x32xf32>)
// Tiles with other documents are left out without looking at their elements, if f32 has the numbers. Others are not decided.
// CHECK:       %[[KNOWN:.*]] = scf.forall (%[[B:.*]], %[[H:.*]], %{{.*}}, %{{.*}}) = (0, 0, 0, 0) to (2, 1, %{{.*}}, %[[TK]]) step (1, 1, 8, 128)
// CHECK:         %[[LENGTH:.*]] = tensor.extract %[[N]][%[[B]]]
// CHECK:         linalg.generic {{.*}} outs(%{{.*}} : tensor<8x128xf32>)
// CHECK:           tensor.extract %[[OF_Q]]#0
// CHECK:           tensor.extract %[[OF_Q]]#1
// CHECK:           %[[SMALL:.*]] = arith.cmpf olt
// CHECK:           tensor.extract %[[OF_K]]#0
// CHECK:           %[[SMALL_K:.*]] = arith.cmpf olt
// CHECK:           %[[EXACT:.*]] = arith.andi %[[SMALL]], %[[SMALL_K]]
// CHECK:           %[[SAME:.*]] = arith.andi
// CHECK:           %[[MEET:.*]] = arith.andi
// CHECK:           arith.select %[[EXACT]], %[[SAME]], %false
// CHECK:           arith.select %[[EXACT]], %[[MEET]], %true
// CHECK:           %[[UNDECIDED:.*]] = arith.constant -1.0
// CHECK:           %[[STATE:.*]] = arith.select %{{.*}}, %{{.*}}, %[[UNDECIDED]]
// CHECK:           arith.select %{{.*}}, %[[STATE]], %cst
// CHECK:         tensor.parallel_insert_slice

// Of tiles that are not decided the first and the last row are evaluated: if some of their elements are kept, some of the tile's are.
// CHECK:       %[[SOME:.*]] = scf.forall (%[[B:.*]], %[[H:.*]], %[[I:.*]], %[[T:.*]]) = (0, 0, 0, 0) to (2, 1, %[[NQ]], %[[TK]]) step (1, 1, 64, 8)
// CHECK:         %[[EXIST:.*]] = affine.min #[[ROWS]](%[[I]])[%[[NQ]]]
// CHECK:         %[[STATE:.*]] = tensor.extract %[[KNOWN]]
// CHECK:         arith.cmpf olt, %[[STATE]]
// CHECK:         %[[END:.*]] = arith.select %{{.*}}, %c2{{.*}}, %c0
// CHECK:         scf.for %[[R:.*]] = %{{.*}} to %[[END]] step
// CHECK:           %[[LAST:.*]] = arith.subi %[[EXIST]], %c1
// CHECK:           arith.muli %[[R]], %[[LAST]]
// CHECK:         linalg.generic {{.*}} outs(%{{.*}} : tensor<8xf32>)
// CHECK:           %[[STATE:.*]] = tensor.extract %[[KNOWN]]
// CHECK:           arith.cmpf olt, %[[SUM:.*]], %cst
// CHECK:           arith.cmpf ogt, %[[SUM]]
// CHECK:           %[[FOUND:.*]] = arith.select %{{.*}}, %cst{{.*}}, %cst
// CHECK:           arith.select %{{.*}}, %[[FOUND]], %[[STATE]]

// What is not decided then needs all rows.
// CHECK:       %[[KEPT:.*]] = scf.forall (%[[B:.*]], %[[H:.*]], %[[I:.*]], %[[T:.*]]) = (0, 0, 0, 0) to (2, 1, %[[NQ]], %[[TK]]) step (1, 1, 64, 8)
// CHECK:         %[[EXIST:.*]] = affine.min #[[ROWS]](%[[I]])[%[[NQ]]]
// CHECK:         tensor.extract %[[SOME]]
// CHECK:         %[[END:.*]] = arith.select %{{.*}}, %[[EXIST]], %c0
// CHECK:         %[[SUM:.*]] = scf.for %[[R:.*]] = %{{.*}} to %[[END]] step %{{.*}} iter_args(%[[SO_FAR:.*]] = %{{.*}}) -> (tensor<8xf32>)
// CHECK:           %[[QUERY:.*]] = affine.apply #[[PLUS]](%[[I]], %[[R]])
// CHECK:           tensor.extract %[[N]][%[[B]]]
// CHECK:           %[[ONES:.*]] = linalg.generic {{.*}} outs(%{{.*}} : tensor<8x32xf32>)
// CHECK:             arith.cmpi sge
// CHECK:             %[[BELOW:.*]] = arith.cmpi slt, %[[KEY:.*]], %{{.*}}
// CHECK:             arith.cmpi slt, %[[KEY]], %[[NK]]
// CHECK:             %[[LAST:.*]] = arith.minsi %[[KEY]], %{{.*}}
// CHECK:             tensor.extract %[[IDS]][%[[QUERY]]]
// CHECK:             tensor.extract %[[IDS]][%[[LAST]]]
// CHECK:             arith.select %{{.*}}, %cst{{.*}}, %cst
// CHECK:           linalg.generic {{.*}}"reduction"]} ins(%[[ONES]] : tensor<8x32xf32>) outs(%[[SO_FAR]] : tensor<8xf32>)
// CHECK:         linalg.generic {{.*}} outs(%[[SUM]] : tensor<8xf32>)
// CHECK:           %[[STATE:.*]] = tensor.extract %[[SOME]]
// CHECK:           arith.select %{{.*}}, %{{.*}}, %[[STATE]]
// CHECK:         %[[TQ:.*]] = affine.apply #[[OF_TILE]](%[[I]])
// CHECK:         tensor.parallel_insert_slice {{.*}} into %{{.*}}[%[[B]], %[[H]], %[[TQ]], %[[T]]]

// How many entries of a list are parts, and how many there are.
// CHECK:       %[[COUNTS:.*]] = scf.forall (%[[B:.*]], %[[H:.*]], %[[I:.*]]) = (0, 0, 0) to (2, 1, %[[NQ]]) step (1, 1, 64)
// CHECK:         %[[ALL:.*]] = arith.sitofp
// CHECK:         scf.for %[[U:.*]] = %{{.*}} to %[[TK]] step %c128{{.*}} -> (tensor<8xf32>)
// CHECK:           linalg.generic {{.*}} outs(%{{.*}} : tensor<8x128xf32>)
// CHECK:             %[[COUNT:.*]] = tensor.extract %[[KEPT]]
// CHECK:             arith.cmpf ogt, %[[COUNT]]
// CHECK:             arith.cmpf olt, %[[COUNT]], %[[ALL]]
// CHECK:           linalg.generic {{.*}}"reduction"]}
// CHECK:         arith.fptosi
// CHECK:         scf.forall.in_parallel
// CHECK-NEXT:      tensor.parallel_insert_slice %{{.*}} into %{{.*}}[%[[B]], %[[H]], %{{.*}}, 0] [1, 1, 1, 2]

// A block whose entries the list does not have looks for nothing.
// CHECK:       scf.forall (%[[B:.*]], %[[H:.*]], %[[I:.*]], %[[P:.*]]) = (0, 0, 0, 0) to (2, 1, %[[NQ]], %[[TK]]) step (1, 1, 64, 8)
// CHECK:         tensor.extract %[[COUNTS]][%[[B]], %[[H]], %{{.*}}, %c1
// CHECK:         %[[USED:.*]] = arith.cmpi slt, %[[P]]
// CHECK:         tensor.extract %[[COUNTS]][%[[B]], %[[H]], %{{.*}}, %c0
// CHECK:         %[[PARTS:.*]] = arith.sitofp
// Whole groups of tiles are counted first; the entry's tile is in the group behind the last one with too few.
// CHECK:         %[[GROUPS:.*]] = arith.select %[[USED]], %{{.*}}, %c0
// CHECK:         %[[GROUP:.*]]:3 = scf.for %[[START:.*]] = %{{.*}} to %[[GROUPS]] step %c128
// CHECK:           arith.addi %[[START]], %{{.*}}
// CHECK:           arith.cmpf ole
// CHECK:         %[[HALVINGS:.*]] = arith.select %[[USED]], %{{.*}}, %c0
// CHECK:         %[[FOUND:.*]]:2 = scf.for {{.*}} to %[[HALVINGS]] {{.*}} iter_args(%[[FROM:.*]] = %[[GROUP]]#2, %[[TO:.*]] = %{{.*}}) -> (tensor<8xf32>, tensor<8xf32>)
// CHECK:           %[[MIDDLE:.*]] = linalg.generic {{.*}} ins(%[[FROM]], %[[TO]]
// CHECK:             math.floor
// CHECK:           linalg.generic {{.*}} ins(%[[MIDDLE]], %[[GROUP]]#2
// CHECK:             arith.cmpf ole
// CHECK:             arith.cmpf olt, %{{.*}}, %[[PARTS]]
// CHECK:           linalg.generic {{.*}}"reduction"]} {{.*}} outs(%[[GROUP]]#1
// CHECK:         arith.minimumf
// CHECK:         arith.fptosi
// CHECK:         scf.forall.in_parallel
// CHECK-NEXT:      tensor.parallel_insert_slice %{{.*}} into %{{.*}}[%[[B]], %[[H]], %{{.*}}, %[[P]]] [1, 1, 1, %{{.*}}]
func.func @documents(%ids: tensor<?xi32>, %n: tensor<2xi32>, %nq: index, %nk: index) -> (tensor<2x1x?x?xi32>, tensor<2x1x?x2xi32>) {
  %tiles, %counts = flash.block_map of[2, 1, %nq, %nk] tiles([64, 32]) mask(#flash.causal) lengths(%n : tensor<2xi32>) keep {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %x = tensor.extract %ids[%i] : tensor<?xi32>
    %y = tensor.extract %ids[%j] : tensor<?xi32>
    %same = arith.cmpi eq, %x, %y : i32
    flash.yield %same : i1
  } : tensor<2x1x?x?xi32>, tensor<2x1x?x2xi32>
  return %tiles, %counts : tensor<2x1x?x?xi32>, tensor<2x1x?x2xi32>
}

// What nothing reads is not computed.
// CHECK-LABEL: func @unused(
// CHECK-NEXT:    return
func.func @unused() {
  %tiles, %counts = flash.block_map of[1, 1, 128, 128] tiles([64, 32]) : tensor<1x1x2x4xi32>, tensor<1x1x2x2xi32>
  return
}

// Of heads that share tiles all elements count, as rows of one tile.
// CHECK-LABEL: func @packed(
// CHECK:       scf.forall (%{{.*}}, %[[MAP:.*]], %[[I:.*]], %{{.*}}) = (0, 0, 0, 0) to (1, 2, 40, 4) step (1, 1, 16, 8)
// CHECK:         scf.for %[[R:.*]] = %{{.*}} to %{{.*}} step
// CHECK:           %[[HEAD:.*]] = affine.apply #{{.*}}(%[[MAP]], %[[R]])
// CHECK:           affine.apply #{{.*}}(%[[I]], %[[R]])
// CHECK:           tensor.extract %{{.*}}[%[[HEAD]]]
func.func @packed(%w: tensor<8xindex>) -> tensor<1x2x3x2xi32> {
  %tiles, %counts = flash.block_map of[1, 8, 40, 100] tiles([16, 32]) packed(4) keep {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %x = tensor.extract %w[%h] : tensor<8xindex>
    %keep = arith.cmpi slt, %j, %x : index
    flash.yield %keep : i1
  } : tensor<1x2x3x4xi32>, tensor<1x2x3x2xi32>
  return %counts : tensor<1x2x3x2xi32>
}

// CHECK-LABEL: func @given(
// CHECK-SAME:    %[[T:[^:]*]]: tensor<1x1x2x4xi32>, %[[N:[^:]*]]: tensor<1x1x2x2xi32>
// CHECK-NEXT:    return %[[T]], %[[N]]
func.func @given(%t: tensor<1x1x2x4xi32>, %n: tensor<1x1x2x2xi32>) -> (tensor<1x1x2x4xi32>, tensor<1x1x2x2xi32>) {
  %0, %1 = flash.block_map of[1, 1, 128, 128] tiles([64, 32]) given(%t, %n : tensor<1x1x2x4xi32>, tensor<1x1x2x2xi32>)
      : tensor<1x1x2x4xi32>, tensor<1x1x2x2xi32>
  return %0, %1 : tensor<1x1x2x4xi32>, tensor<1x1x2x2xi32>
}

// Of tiles of keys the lists of queries: positions have keys, and queries behind the last read the last.
// CHECK-LABEL: func @over_queries(
// CHECK:       scf.forall (%{{.*}}, %{{.*}}, %[[J:.*]], %{{.*}}) = (0, 0, 0, 0) to (1, 1, 500, 10) step (1, 1, 64, 8)
// CHECK:         %[[KEY:.*]] = affine.apply #{{.*}}(%[[J]], %{{.*}})
// CHECK:         linalg.generic {{.*}} outs(%{{.*}} : tensor<8x32xf32>)
// CHECK:           arith.cmpi slt, %[[QUERY:.*]], %c300
// CHECK:           %[[LAST:.*]] = arith.minsi %[[QUERY]], %{{.*}}
// CHECK:           tensor.extract %arg0[%[[LAST]]]
// CHECK:           tensor.extract %arg0[%[[KEY]]]
// CHECK:       scf.forall {{.*}} to (1, 1, 500) step (1, 1, 64) {{.*}} -> (tensor<1x1x8x2xi32>)
// CHECK:       scf.forall {{.*}} to (1, 1, 500, 10) step (1, 1, 64, 8) {{.*}} -> (tensor<1x1x8x10xi32>)
func.func @over_queries(%ids: tensor<500xi32>) -> (tensor<1x1x8x10xi32>, tensor<1x1x8x2xi32>) {
  %t, %n = flash.block_map of[1, 1, 300, 500] tiles([32, 64]) over_queries keep {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %x = tensor.extract %ids[%i] : tensor<500xi32>
    %y = tensor.extract %ids[%j] : tensor<500xi32>
    %same = arith.cmpi eq, %x, %y : i32
    flash.yield %same : i1
  } : tensor<1x1x8x10xi32>, tensor<1x1x8x2xi32>
  return %t, %n : tensor<1x1x8x10xi32>, tensor<1x1x8x2xi32>
}

// Runs begin where a part follows none or a whole tile follows nothing, and end where another kind of tile is. How many
// later tiles of keys have a tile of queries is its rank.
// CHECK-LABEL: func @ranks(
// CHECK-COUNT-2: scf.forall {{.*}} -> (tensor<1x1x8x10xf32>)
// CHECK:       %[[KEPT:.*]] = scf.forall {{.*}} -> (tensor<1x1x8x10xf32>)
// CHECK:       scf.forall {{.*}} to (1, 1, 500) step (1, 1, 64) {{.*}} -> (tensor<1x1x8x2xi32>)
// CHECK:       scf.forall (%{{.*}}, %{{.*}}, %[[J:.*]], %[[P:.*]]) = {{.*}} to (1, 1, 500, 10) step (1, 1, 64, 8) {{.*}} -> (tensor<1x1x8x30xi32>, tensor<1x1x8x10xi32>)
// CHECK:         %[[FOUND:.*]]:2 = scf.for
// CHECK:             %[[BEFORE:.*]] = arith.maxsi
// CHECK:             tensor.extract %[[KEPT]][%{{.*}}, %{{.*}}, %{{.*}}, %[[BEFORE]]]
// CHECK:         %[[FIRST:.*]] = linalg.generic {{.*}} ins(%[[FOUND]]#0
// CHECK:         %[[FOUND:.*]]:2 = scf.for
// CHECK:           ins(%{{.*}}, %[[FIRST]], %{{.*}} : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>)
// CHECK:         %[[MIDDLE:.*]] = linalg.generic {{.*}} ins(%[[FOUND]]#0
// CHECK:         scf.for
// CHECK:           ins(%{{.*}}, %[[MIDDLE]], %{{.*}} : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>)
// CHECK:         scf.for %[[U:.*]] = %{{.*}} to %c8{{.*}} step %c128
// CHECK:             %[[OTHER:.*]] = arith.addi %[[U]], %{{.*}}
// CHECK:             arith.cmpi slt, %[[OTHER]], %c8
// CHECK:             %[[IS_BEHIND:.*]] = arith.cmpi sgt, %[[OTHER]], %{{.*}}
// CHECK:             %[[BELOW:.*]] = arith.minsi %[[OTHER]]
// CHECK:             %[[COUNT:.*]] = tensor.extract %[[KEPT]][%{{.*}}, %{{.*}}, %[[BELOW]], %{{.*}}]
// CHECK:             %[[IS_SOME:.*]] = arith.cmpf ogt, %[[COUNT]]
// CHECK:             arith.andi %[[IS_BEHIND]], %[[IS_SOME]]
// CHECK:         scf.forall.in_parallel
// CHECK-NEXT:      tensor.parallel_insert_slice %{{.*}} into %{{.*}}[%{{.*}}, %{{.*}}, %{{.*}}, %[[P]]]
// CHECK-NEXT:      tensor.parallel_insert_slice
// CHECK-NEXT:      tensor.parallel_insert_slice
// CHECK-NEXT:      tensor.parallel_insert_slice %{{.*}} into %{{.*}}[%{{.*}}, %{{.*}}, %{{.*}}, %[[P]]]
func.func @ranks(%ids: tensor<500xi32>) -> (tensor<1x1x8x30xi32>, tensor<1x1x8x2xi32>, tensor<1x1x8x10xi32>) {
  %t, %n, %ranks = flash.block_map of[1, 1, 300, 500] tiles([32, 64]) over_queries keep {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %x = tensor.extract %ids[%i] : tensor<500xi32>
    %y = tensor.extract %ids[%j] : tensor<500xi32>
    %same = arith.cmpi eq, %x, %y : i32
    flash.yield %same : i1
  } : tensor<1x1x8x30xi32>, tensor<1x1x8x2xi32>, tensor<1x1x8x10xi32>
  return %t, %n, %ranks : tensor<1x1x8x30xi32>, tensor<1x1x8x2xi32>, tensor<1x1x8x10xi32>
}

// A mask that the compiler knows is computed for tiles, where they are listed. With lengths, what it leaves whole must lie before them.
// CHECK-LABEL: func @known(
// CHECK:       scf.forall {{.*}} to (2, 1, 300) step (1, 1, 64) {{.*}} -> (tensor<2x1x5x2xi32>)
// CHECK:         %[[LENGTH:.*]] = arith.index_cast
// CHECK:         %[[ALL:.*]] = arith.sitofp
// CHECK:         linalg.generic {{.*}} outs(%{{.*}} : tensor<8x128xf32>)
// CHECK:           %[[LEFT:.*]] = arith.ori
// CHECK:           %[[END:.*]] = arith.cmpi sle, %{{.*}}, %[[LENGTH]]
// CHECK:           %[[BEFORE:.*]] = arith.cmpi slt, %{{.*}}, %[[LENGTH]]
// CHECK:           %[[WHOLE:.*]] = arith.andi %{{.*}}, %[[END]]
// CHECK:           arith.andi %{{.*}}, %[[BEFORE]]
// CHECK:           arith.select %[[WHOLE]], %[[ALL]], %cst
// CHECK:       = scf.forall {{.*}} -> (tensor<2x1x5x7xi32>)
// CHECK-NOT:   = scf.forall
// CHECK:       return
func.func @known(%n: tensor<2xi32>) -> (tensor<2x1x5x7xi32>, tensor<2x1x5x2xi32>) {
  %tiles, %counts = flash.block_map of[2, 1, 300, 400] tiles([64, 64])
      mask(#flash.all_of<[#flash.causal, #flash.any_of<[#flash.window<left = 100>, #flash.prefix<4>]>]>)
      lengths(%n : tensor<2xi32>) : tensor<2x1x5x7xi32>, tensor<2x1x5x2xi32>
  return %tiles, %counts : tensor<2x1x5x7xi32>, tensor<2x1x5x2xi32>
}

// A window that is the same for a tile says of most tiles whether all or nothing of them is left: both ends of the
// distance are compared with it. A comparison of single keys says nothing, but takes nothing away.
// CHECK-LABEL: func @window_of_head(
// CHECK:         scf.forall (%{{.*}}, %[[H:.*]], %{{.*}}, %{{.*}}) = (0, 0, 0, 0) to (1, 4, 64, 64) step (1, 1, 8, 128)
// CHECK:           %[[I:.*]] = arith.muli
// CHECK:           %[[LEAST:.*]] = arith.subi %[[I]], %[[LAST_KEY:.*]] : index
// CHECK:           %[[MOST:.*]] = arith.subi %[[LAST_QUERY:.*]], %[[KEY:.*]] : index
// CHECK:           tensor.extract %arg0[%[[H]]]
// CHECK:           %[[W:.*]] = arith.index_cast
// CHECK:           arith.cmpi sle, %[[MOST]], %[[W]]
// CHECK:           arith.cmpi sle, %[[LEAST]], %[[W]]
// CHECK:         scf.forall
// CHECK:           scf.for
func.func @window_of_head(%w: tensor<4xi32>) -> (tensor<1x4x64x64xi32>, tensor<1x4x64x2xi32>) {
  %tiles, %counts = flash.block_map of[1, 4, 8192, 8192] tiles([128, 128]) mask(#flash.causal) keep {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %d = arith.subi %i, %j : index
    %x = tensor.extract %w[%h] : tensor<4xi32>
    %y = arith.index_cast %x : i32 to index
    %near = arith.cmpi sle, %d, %y : index
    flash.yield %near : i1
  } : tensor<1x4x64x64xi32>, tensor<1x4x64x2xi32>
  return %tiles, %counts : tensor<1x4x64x64xi32>, tensor<1x4x64x2xi32>
}
