// Which tile a block takes; TileOrderTest looks at all numbers of many sizes.
// RUN: flash-opt %s --split-input-file --flash-attach-target=keys=multiprocessors=4 --tile-lower-positions | FileCheck %s

// Row by row, the last dimension the fastest.
// CHECK-LABEL: gpu.func @linear(
// CHECK-SAME:    %[[N:.*]]: index, %[[B:.*]]: index, %[[H:.*]]: index, %[[T:.*]]: index,
// CHECK:         %[[REST:.*]] = arith.divui %[[N]], %[[T]] : index
// CHECK:         %[[I:.*]] = arith.remui %[[N]], %[[T]] : index
// CHECK:         %[[BATCH:.*]] = arith.divui %[[REST]], %[[H]] : index
// CHECK:         %[[HEAD:.*]] = arith.remui %[[REST]], %[[H]] : index
// CHECK:         memref.load %{{.*}}[%[[BATCH]], %[[HEAD]], %[[I]]]
gpu.module @m {
  gpu.func @linear(%n: index, %b: index, %h: index, %t: index, %m: memref<?x?x?xf32>) kernel {
    %p:3 = tile.position %n of (%b, %h, %t) linear
    %x = memref.load %m[%p#0, %p#1, %p#2] : memref<?x?x?xf32>
    memref.store %x, %m[%p#0, %p#1, %p#2] : memref<?x?x?xf32>
    gpu.return
  }
}

// -----

// As many heads together as have a wave of four tiles, but one at least: the tiles
// of one number follow each other, from the first on or from the last.
// CHECK-LABEL: gpu.func @interleaved(
// CHECK-SAME:    %[[N:.*]]: index, %[[H:.*]]: index, %[[T:.*]]: index,
// CHECK:         %[[PER_HEAD:.*]] = arith.maxui %[[T]], %c1
// CHECK:         %[[FIT:.*]] = arith.divui %c4, %[[PER_HEAD]]
// CHECK:         %[[LEAST:.*]] = arith.maxui %[[FIT]], %c1
// CHECK:         %[[GROUP:.*]] = arith.minui %[[LEAST]], %{{.*}}
// CHECK:         %[[TOGETHER:.*]] = arith.minui %[[GROUP]], %{{.*}}
// CHECK:         %[[TILE:.*]] = arith.divui %{{.*}}, %[[TOGETHER]]
// CHECK:         %[[IN_GROUP:.*]] = arith.remui %{{.*}}, %[[TOGETHER]]
// CHECK:         %[[HEAD:.*]] = arith.addi %{{.*}}, %[[IN_GROUP]]
// CHECK:         memref.load %{{.*}}[%[[HEAD]], %[[TILE]]]
// Blocks that claim tiles have two waves of heads together.
// CHECK-LABEL: gpu.func @claimed(
// CHECK:         %[[PER_HEAD:.*]] = arith.maxui %{{.*}}, %c1
// CHECK:         arith.divui %c8, %[[PER_HEAD]]
// A tile begins two additions behind the one before of its head.
// CHECK-LABEL: gpu.func @additions(
// CHECK-SAME:    %{{.*}}: index, %{{.*}}: index, %{{.*}}: index, %[[ADDITIONS:.*]]: index,
// CHECK:         %[[HALF:.*]] = arith.divui %[[ADDITIONS]], %c2
// CHECK:         %[[TOGETHER:.*]] = arith.maxui %[[HALF]], %c1
// CHECK:         arith.divui %c4, %[[TOGETHER]]
// Blocks that claim what only the data say the length of have one.
// CHECK-LABEL: gpu.func @sequences(
// CHECK:         %[[PER_HEAD:.*]] = arith.maxui %{{.*}}, %c1
// CHECK:         arith.divui %c4, %[[PER_HEAD]]
// Backwards, but for the last heads, of at most four waves.
// CHECK-LABEL: gpu.func @both_ways(
// CHECK-SAME:    %[[N:.*]]: index, %[[H:.*]]: index, %[[T:.*]]: index,
// CHECK:         %[[PER_HEAD:.*]] = arith.maxui %[[T]], %c1
// CHECK:         arith.divui %c4{{.*}}, %[[PER_HEAD]]
// CHECK:         arith.divui %c16{{.*}}, %[[PER_HEAD]]
// CHECK:         %[[IS:.*]] = arith.cmpi ult, %[[N]], %{{.*}}
// CHECK:         %[[LAST:.*]] = arith.subi %[[PER_HEAD]], %c1
// CHECK:         %[[MIRRORED:.*]] = arith.subi %[[LAST]], %[[AT:.*]] : index
// CHECK:         %[[TILE:.*]] = arith.select %[[IS]], %[[MIRRORED]], %[[AT]]
// CHECK:         memref.load %{{.*}}[%{{.*}}, %[[TILE]]]
// Backwards in all heads.
// CHECK-LABEL: gpu.func @reverse(
// CHECK-SAME:    %{{.*}}: index, %{{.*}}: index, %[[T:.*]]: index,
// CHECK:         %[[AT:.*]] = arith.divui %{{.*}}, %{{.*}}
// CHECK:         %[[HEAD:.*]] = arith.addi
// CHECK:         %[[COUNT:.*]] = arith.maxui %[[T]], %c1
// CHECK:         %[[LAST:.*]] = arith.subi %[[COUNT]], %c1
// CHECK:         %[[TILE:.*]] = arith.subi %[[LAST]], %{{.*}}
// CHECK:         memref.load %{{.*}}[%[[HEAD]], %[[TILE]]]
// Backwards through all heads.
// CHECK-LABEL: gpu.func @backwards(
// CHECK-SAME:    %[[N:.*]]: index, %[[H:.*]]: index, %[[T:.*]]: index,
// CHECK:         %[[COUNT:.*]] = arith.muli %[[H]], %[[T]]
// CHECK:         %[[LAST:.*]] = arith.subi %[[COUNT]], %c1
// CHECK:         %[[NUMBER:.*]] = arith.subi %[[LAST]], %[[N]]
// CHECK:         arith.divui %[[NUMBER]], %[[T]]
// CHECK:         arith.remui %[[NUMBER]], %[[T]]
gpu.module @m {
  gpu.func @interleaved(%n: index, %h: index, %t: index, %m: memref<?x?xf32>) kernel {
    %p:2 = tile.position %n of (%h, %t) interleaved
    %x = memref.load %m[%p#0, %p#1] : memref<?x?xf32>
    memref.store %x, %m[%p#0, %p#1] : memref<?x?xf32>
    gpu.return
  }
  gpu.func @claimed(%n: index, %h: index, %t: index, %m: memref<?x?xf32>) kernel attributes {flash.schedule = #flash.schedule<features = persistent>} {
    %p:2 = tile.position %n of (%h, %t) interleaved
    %x = memref.load %m[%p#0, %p#1] : memref<?x?xf32>
    memref.store %x, %m[%p#0, %p#1] : memref<?x?xf32>
    gpu.return
  }
  gpu.func @additions(%n: index, %h: index, %t: index, %a: index, %m: memref<?x?xf32>) kernel {
    %p:2 = tile.position %n of (%h, %t) interleaved additions(%a)
    %x = memref.load %m[%p#0, %p#1] : memref<?x?xf32>
    memref.store %x, %m[%p#0, %p#1] : memref<?x?xf32>
    gpu.return
  }
  gpu.func @sequences(%n: index, %h: index, %t: index, %m: memref<?x?xf32>) kernel attributes {flash.schedule = #flash.schedule<features = specialize_warps|persistent|claim_tiles>} {
    %p:2 = tile.position %n of (%h, %t) reverse
    %x = memref.load %m[%p#0, %p#1] : memref<?x?xf32>
    memref.store %x, %m[%p#0, %p#1] : memref<?x?xf32>
    gpu.return
  }
  gpu.func @both_ways(%n: index, %h: index, %t: index, %m: memref<?x?xf32>) kernel {
    %p:3 = tile.position %n of (%h, %t) both_ways
    %x = memref.load %m[%p#0, %p#1] : memref<?x?xf32>
    memref.store %x, %m[%p#0, %p#1] : memref<?x?xf32>
    gpu.return
  }
  gpu.func @reverse(%n: index, %h: index, %t: index, %m: memref<?x?xf32>) kernel {
    %p:2 = tile.position %n of (%h, %t) reverse
    %x = memref.load %m[%p#0, %p#1] : memref<?x?xf32>
    memref.store %x, %m[%p#0, %p#1] : memref<?x?xf32>
    gpu.return
  }
  gpu.func @backwards(%n: index, %h: index, %t: index, %m: memref<?x?xf32>) kernel {
    %p:2 = tile.position %n of (%h, %t) backwards
    %x = memref.load %m[%p#0, %p#1] : memref<?x?xf32>
    memref.store %x, %m[%p#0, %p#1] : memref<?x?xf32>
    gpu.return
  }
}

// -----

// The longest tiles, which are the last, come first: of as many heads as fill two
// waves of four blocks.
// CHECK-LABEL: gpu.func @longest_first(
// CHECK-SAME:    %[[N:[^:]*]]: index, %[[H:[^:]*]]: index, %[[T:[^:]*]]: index,
// CHECK:         %[[TWO_WAVES:.*]] = arith.constant 8 : index
// CHECK:         %[[TOGETHER:.*]] = arith.select
// CHECK:         %[[GROUP:.*]] = arith.muli %[[TOGETHER]],
// CHECK:         %[[INSIDE:.*]] = arith.remui %[[N]], %[[GROUP]] : index
// CHECK:         %[[LEVEL:.*]] = arith.divui %[[INSIDE]],
// CHECK:         %[[TILE:.*]] = arith.subi %{{.*}}, %[[LEVEL]] : index
// CHECK:         memref.load %{{.*}}[%{{.*}}, %[[TILE]]]
gpu.module @m {
  gpu.func @longest_first(%n: index, %h: index, %t: index, %m: memref<?x?xf32>) kernel {
    %p:2 = tile.position %n of (%h, %t) longest_first
    %x = memref.load %m[%p#0, %p#1] : memref<?x?xf32>
    memref.store %x, %m[%p#0, %p#1] : memref<?x?xf32>
    gpu.return
  }
}

// -----

// A wave has more blocks where they share a multiprocessor; with one dimension
// there is one head.
// CHECK-LABEL: gpu.func @shared(
// CHECK-SAME:    %[[N:.*]]: index, %[[T:.*]]: index,
// CHECK-DAG:     arith.constant 16 : index
// CHECK:         memref.load
gpu.module @m {
  gpu.func @shared(%n: index, %t: index, %m: memref<?xf32>) kernel attributes {flash.schedule = #flash.schedule<ctas_per_sm = 2>} {
    %p = tile.position %n of (%t) snake
    %x = memref.load %m[%p] : memref<?xf32>
    memref.store %x, %m[%p] : memref<?xf32>
    gpu.return
  }
}

// -----

// The tiles of one number of all heads of a batch follow each other.
// CHECK-LABEL: gpu.func @heads(
// CHECK-SAME:    %[[N:[^:]*]]: index, %[[H:[^:]*]]: index, %[[T:[^:]*]]: index,
// CHECK:         %[[HEAD:.*]] = arith.remui %[[N]], %[[H]]
// CHECK:         %[[REST:.*]] = arith.divui %[[N]], %[[H]]
// CHECK:         %[[TILE:.*]] = arith.remui %[[REST]], %[[T]]
// CHECK:         %[[BATCH:.*]] = arith.divui %[[REST]], %[[T]]
// CHECK:         memref.load %{{.*}}[%[[BATCH]], %[[HEAD]], %[[TILE]]]
gpu.module @m {
  gpu.func @heads(%n: index, %h: index, %t: index, %b: index, %m: memref<?x?x?xf32>) kernel {
    %p:3 = tile.position %n of (%b, %h, %t) heads_fastest
    %x = memref.load %m[%p#0, %p#1, %p#2] : memref<?x?x?xf32>
    memref.store %x, %m[%p#0, %p#1, %p#2] : memref<?x?x?xf32>
    gpu.return
  }
}

// -----

// Both halves of a head backwards; if a wave has room for several heads, all tiles of as many.
// CHECK-LABEL: gpu.func @halves(
// CHECK-SAME:    %[[N:[^:]*]]: index, %[[H:[^:]*]]: index, %[[T:[^:]*]]: index,
// CHECK:         %[[TILES:.*]] = arith.maxui %[[T]], %c1
// CHECK:         %[[IN_WAVE:.*]] = arith.divui %c4, %[[TILES]]
// CHECK:         %[[ARE_WHOLE:.*]] = arith.cmpi ugt, %[[IN_WAVE]], %c1
// CHECK:         %[[SEVERAL:.*]] = arith.minui %[[IN_WAVE]], %{{.*}}
// CHECK:         %[[GROUP:.*]] = arith.select %[[ARE_WHOLE]], %[[SEVERAL]], %c1
// CHECK:         %[[OF_GROUP:.*]] = arith.muli %[[GROUP]], %[[TILES]]
// CHECK:         %[[INSIDE:.*]] = arith.remui %[[N]], %[[OF_GROUP]]
// CHECK:         %[[LEVEL:.*]] = arith.divui %[[INSIDE]]
// CHECK:         %[[HEAD:.*]] = arith.addi
// CHECK:         %[[LAST:.*]] = arith.subi %[[TILES]], %c1
// CHECK:         %[[HALF:.*]] = arith.divui %[[TILES]], %c2
// CHECK:         %[[ODD:.*]] = arith.remui %[[LEVEL]], %c2
// CHECK:         %[[IS_SECOND:.*]] = arith.cmpi eq, %[[ODD]], %c0
// CHECK:         %[[OF_FIRST:.*]] = arith.subi %[[HALF]], %c1
// CHECK:         %[[OF_HALF:.*]] = arith.select %[[IS_SECOND]], %[[LAST]], %[[OF_FIRST]]
// CHECK:         %[[BEHIND:.*]] = arith.divui %[[LEVEL]], %c2
// CHECK:         %[[DISTANCE:.*]] = arith.select %[[ARE_WHOLE]], %[[LEVEL]], %[[BEHIND]]
// CHECK:         %[[END:.*]] = arith.select %[[ARE_WHOLE]], %[[LAST]], %[[OF_HALF]]
// CHECK:         %[[TILE:.*]] = arith.subi %[[END]], %[[DISTANCE]]
// CHECK:         memref.load %{{.*}}[%[[HEAD]], %[[TILE]]]
gpu.module @m {
  gpu.func @halves(%n: index, %h: index, %t: index, %m: memref<?x?xf32>) kernel {
    %p:2 = tile.position %n of (%h, %t) halves
    %x = memref.load %m[%p#0, %p#1] : memref<?x?xf32>
    memref.store %x, %m[%p#0, %p#1] : memref<?x?xf32>
    gpu.return
  }
}
