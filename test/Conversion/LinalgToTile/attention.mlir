// RUN: flash-opt %s --flash-online-softmax --flash-tile --flash-refine-visits --convert-flash-to-scf --canonicalize --cse \
// RUN:   --flash-decompose=guard-values --cse --convert-linalg-to-tile --tile-lower-positions --canonicalize --cse | FileCheck %s

// The launch: a block for each tile of queries, head and batch; memory with
// strides known at run time, a contiguous last dimension.

// CHECK-LABEL: func.func @attention(
// CHECK-SAME:  %[[Q:.*]]: tensor<2x4x?x64xf16>,
// CHECK:       %[[SIZE:.*]] = tensor.dim %[[Q]], %c2
// CHECK:       %[[RESULT:.*]] = memref.alloc(%[[SIZE]])
// CHECK:       %[[TILES:.*]] = arith.ceildivsi %[[SIZE]], %c32
// CHECK:       %[[BLOCKS:.*]] = arith.muli %[[TILES]], %c8
// CHECK:       gpu.launch_func @kernels::@attention blocks in (%[[BLOCKS]], %c1, %c1) threads in (%c64, %c1, %c1)
// CHECK:       bufferization.to_tensor %[[RESULT]]

// CHECK-LABEL: gpu.func @attention(
// CHECK-SAME:  %[[QM:.*]]: memref<2x4x?x64xf16, strided<[?, ?, ?, 1], offset: ?>>,
// CHECK-SAME:  %[[KM:[^,]*]]: memref<2x2x?x64xf16,
// CHECK-SAME:  %[[SLOPES:[^,]*]]: memref<4xf32,
// CHECK-SAME:  %[[CAP:[^,]*]]: f32,
// CHECK-SAME:  flash.schedule = #flash.schedule<warps = 2, stages = 3>
// CHECK-SAME:  known_block_size = array<i32: 64, 1, 1>

// The last tiles of queries come first, those of some heads together: under
// this mask they have most keys. Heads follow each other where two waves of
// blocks are whole heads.
// CHECK:       %[[ID:.*]] = gpu.block_id x
// CHECK:       arith.divui %c264,
// CHECK-NEXT:  %[[SOME:.*]] = arith.minui %{{.*}}, %c8 :
// CHECK:       %[[PART:.*]] = arith.remui %c264, %{{.*}} :
// CHECK-NEXT:  %[[WHOLE:.*]] = arith.cmpi eq, %[[PART]], %c0 :
// CHECK-NEXT:  %[[TOGETHER:.*]] = arith.select %[[WHOLE]], %c1, %[[SOME]] :
// CHECK-NEXT:  %[[TILES:.*]] = arith.muli %[[TOGETHER]], %[[N:.*]] :
// CHECK:       %[[GROUP:.*]] = arith.divui %[[ID]], %[[TILES]] :
// CHECK:       %[[INSIDE:.*]] = arith.remui %[[ID]], %[[TILES]] :
// CHECK:       %[[FIRST:.*]] = arith.muli %[[GROUP]], %[[TOGETHER]]
// CHECK:       %[[HEADS:.*]] = arith.minui %[[TOGETHER]],
// CHECK:       %[[T:.*]] = arith.divui %[[INSIDE]], %[[HEADS]] :
// CHECK:       %[[H:.*]] = arith.remui %[[INSIDE]], %[[HEADS]] :
// CHECK:       arith.addi %[[FIRST]], %[[H]]
// CHECK:       %[[LAST:.*]] = arith.subi %[[N]], %c1
// CHECK:       %[[TILE:.*]] = arith.subi %[[LAST]], %[[T]]
// CHECK:       %[[I:.*]] = arith.muli %[[TILE]], %c32
// CHECK:       %[[QT:.*]] = tile.fetch %[[QM]][%[[B:.*]], %{{.*}}, %[[I]]] rows(
// CHECK:       %[[HEAD:.*]] = affine.apply

// A step, first without the mask: a sum for each row, which tile-partial-sums
// gives to lanes.
// CHECK:       scf.for %[[J:[^ ]*]] = {{.*}} -> (tensor<32x32xf32, #tile.fragment<2>>, tensor<32xf32, #tile.rows<2>>, tensor<32xf32, #tile.rows<2>>)
// CHECK-NEXT:    %[[KT:.*]] = tile.fetch %[[KM]][%[[B]], %[[HEAD]], %[[J]]] :
// CHECK-NEXT:    %[[SP:.*]] = tile.mma_async %[[QT]], %[[KT]] transpose_b
// CHECK-NEXT:    %[[S:.*]] = tile.mma_wait %[[SP]]
// CHECK-NEXT:    tile.map %[[S]]
// CHECK:           memref.load %[[SLOPES]][
// CHECK:           arith.addf %{{.*}}, %[[CAP]]
// CHECK-NOT:       arith.select
// CHECK:           tile.yield
// CHECK:         tile.fold max
// CHECK:         tile.reduce max
// CHECK:         %[[P:.*]] = math.exp2 {{.*}} : tensor<32x16xf32, #tile.fragment<2>>
// CHECK:         %[[LANES:.*]] = tile.fold add %[[P]]
// CHECK-NEXT:    %[[MORE:.*]] = tile.reduce add %[[LANES]]
// CHECK-NEXT:    arith.addf %{{.*}}, %[[MORE]] : tensor<32xf32, #tile.rows<2>>
// CHECK:         %[[PH:.*]] = arith.truncf %[[P]]
// CHECK:         %[[VT:.*]] = tile.fetch
// CHECK-NEXT:    %[[OP:.*]] = tile.mma_async %[[PH]], %[[VT]] add %{{.*}} :
// CHECK-NEXT:    %[[O:.*]] = tile.mma_wait %[[OP]]
// CHECK-NEXT:    scf.yield %[[O]]

// Then with keys that do not exist, whose scores are -inf. Their values are
// zero: a product does.
// CHECK:       scf.for
// CHECK:         %[[KEYS:.*]] = affine.min
// CHECK:         tile.fetch %[[KM]]{{.*}} rows(%[[KEYS]])
// CHECK:         tile.map
// CHECK:           arith.select
// CHECK-NOT:     scf.if
// CHECK:         scf.yield

// At the end with the mask, under which values may be no numbers: then the sum
// is of the terms that take part.
// CHECK:       %[[END:.*]]:3 = scf.for
// CHECK:         tile.map
// CHECK:           arith.select
// CHECK:         %[[LAST_VT:.*]] = tile.fetch
// CHECK:         %[[FINITE:.*]] = tile.is_finite %[[LAST_VT]]
// CHECK:         scf.if %[[FINITE]]
// CHECK:           tile.mma_async %{{.*}}, %[[LAST_VT]] add
// CHECK:         } else {
// CHECK:           scf.for %[[AT:.*]] = %c0 to %c16 step %c1
// CHECK:             %[[COLUMN:.*]] = tile.column %{{.*}}[%[[AT]]]
// CHECK:             %[[ROW:.*]] = tile.load_row %[[LAST_VT]][%[[AT]]]
// CHECK:             %[[COLUMNS:.*]] = tile.broadcast %[[COLUMN]]
// CHECK:             tile.map %[[COLUMNS]], %[[ROW]], %{{.*}} :
// CHECK:               arith.select
// CHECK:       arith.cmpf oeq, %[[END]]#2,
// CHECK:       tile.store {{.*}} rows(
func.func @attention(%q: tensor<2x4x?x64xf16>, %k: tensor<2x2x?x64xf16>, %v: tensor<2x2x?x32xf16>,
                     %slopes: tensor<4xf32>, %cap: f32) -> tensor<2x4x?x32xf16> {
  %o = flash.attention %q, %k, %v mask(#flash.causal)
      schedule(<query_tile = 32, key_tile = 16, warps = 2, stages = 3>) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %slope = tensor.extract %slopes[%h] : tensor<4xf32>
    %x = arith.mulf %s, %slope : f32
    %y = arith.addf %x, %cap : f32
    flash.yield %y : f32
  } : (tensor<2x4x?x64xf16>, tensor<2x2x?x64xf16>, tensor<2x2x?x32xf16>) -> tensor<2x4x?x32xf16>
  return %o : tensor<2x4x?x32xf16>
}

// A score program with a long function goes element by element. A quotient of a
// score by a constant is a product where the inputs have 16 bits.

// CHECK-LABEL: gpu.func @capped
// CHECK:       tile.map
// CHECK-NOT:   arith.divf
// CHECK:         %[[T:.*]] = math.tanh %{{.*}} : f32
// CHECK:         arith.mulf %[[T]], %cst{{.*}} : f32
func.func @capped(%q: tensor<1x1x64x64xf16>) -> tensor<1x1x64x64xf16> {
  %cap = arith.constant 30.0 : f32
  %o = flash.attention %q, %q, %q schedule(<query_tile = 32, key_tile = 16, warps = 2>) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %x = arith.divf %s, %cap : f32
    %t = math.tanh %x : f32
    %y = arith.mulf %t, %cap : f32
    flash.yield %y : f32
  } : (tensor<1x1x64x64xf16>, tensor<1x1x64x64xf16>, tensor<1x1x64x64xf16>) -> tensor<1x1x64x64xf16>
  return %o : tensor<1x1x64x64xf16>
}
