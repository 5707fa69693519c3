// The text of a combination as a kernel: each row is one warp's, and parts are read
// before the first is needed, all of them if there are few, else eight at a time.
// What kernels have written is known to be aligned, so no read waits for a question, and reads begin in their order.
// RUN: flash-opt %s --flash-online-softmax --flash-tile --convert-flash-to-scf --cse --flash-decompose=guard-values=1 --cse --convert-linalg-to-tile --canonicalize --cse --split-input-file | FileCheck %s

// CHECK-LABEL: func @three(
// CHECK:         %[[OUTS:.*]] = memref.alloc() : memref<3x1x2x100x64xf32>
// CHECK:         %[[LSES:.*]] = memref.alloc() : memref<3x1x2x100xf32>
// CHECK:         gpu.launch_func @kernels::@three
// CHECK:         %[[RESULT:.*]] = memref.alloc() : memref<1x2x100x64xf16>
// CHECK:         gpu.launch_func @kernels::@three_0 {{.*}} threads in (%c128,

// CHECK-LABEL: gpu.func @three_0(
// CHECK-NOT:     scf.for
// CHECK:         %[[N:.*]] = affine.min
// CHECK-COUNT-3: tile.read %{{.*}} rows(%[[N]]) padding(%{{.*}} : f32) aligned nonempty in_order : {{.*}} to tensor<8x64xf32, #tile.warp_rows<4, 4, 16>>
// CHECK:         tile.read %{{.*}} rows(%[[N]]) padding(%{{.*}} : f32) nonempty in_order : {{.*}} to tensor<8xf32, #tile.warp_rows<4, 1, 16>>
// CHECK-NOT:     tile.read
// CHECK-COUNT-3: arith.maxnumf
// CHECK-COUNT-3: math.fma
// CHECK:         %[[O:.*]] = arith.truncf
// CHECK:         tile.store %[[O]], {{.*}} rows(%[[N]])
func.func @three(%q: tensor<1x2x100x64xf16>, %k: tensor<1x2x500x64xf16>) -> tensor<1x2x100x64xf16> {
  %o = flash.attention %q, %k, %k schedule(<query_tile = 64, key_tile = 32, warps = 4, stages = 1, num_splits = 3>)
      : (tensor<1x2x100x64xf16>, tensor<1x2x500x64xf16>, tensor<1x2x500x64xf16>) -> tensor<1x2x100x64xf16>
  return %o : tensor<1x2x100x64xf16>
}

// -----

// Where heads are packed, rows are not next to each other among the statistics;
// they are read as other rows are.

// CHECK-LABEL: gpu.func @packed_0(
// CHECK-COUNT-3: tile.read %{{.*}} rows(%{{.*}}) padding(%{{.*}} : f32) nonempty in_order : memref<{{.*}}, strided<[?, ?, ?, ?], {{.*}}> to tensor<8xf32, #tile.warp_rows<4, 1, 16>>
// CHECK-NOT:     memref.load
// CHECK:         gpu.return
func.func @packed(%q: tensor<1x22x1x64xf16>, %k: tensor<1x2x500x64xf16>) -> tensor<1x22x1x64xf16> {
  %o = flash.attention %q, %k, %k schedule(<query_tile = 16, key_tile = 32, warps = 1, stages = 1, num_splits = 3, packed_heads = 11>)
      : (tensor<1x22x1x64xf16>, tensor<1x2x500x64xf16>, tensor<1x2x500x64xf16>) -> tensor<1x22x1x64xf16>
  return %o : tensor<1x22x1x64xf16>
}

// -----

// A known number needs no question whether a part exists, if all steps have as
// many.

// CHECK-LABEL: gpu.func @twelve_0(
// CHECK:         scf.for %{{.*}} = %c0 to %c12 step %c6
// CHECK-NOT:     arith.cmpi sle
// CHECK-COUNT-6: aligned
// CHECK-NOT:     aligned
// CHECK:         scf.yield
func.func @twelve(%q: tensor<1x2x100x64xf32>, %k: tensor<1x2x500x64xf32>) -> tensor<1x2x100x64xf32> {
  %o = flash.attention %q, %k, %k schedule(<query_tile = 64, key_tile = 32, num_splits = 12>)
      : (tensor<1x2x100x64xf32>, tensor<1x2x500x64xf32>, tensor<1x2x500x64xf32>) -> tensor<1x2x100x64xf32>
  return %o : tensor<1x2x100x64xf32>
}

// -----

// A number that is known at run time only: the second kernel writes to where the
// first one writes if there is one split.

// CHECK-LABEL: func @any(
// CHECK:         %[[RESULT:.*]] = memref.alloc({{.*}}) : memref<1x2x?x64xf16>
// CHECK:         %[[LSE:.*]] = memref.alloc({{.*}}) : memref<1x2x?xf32>
// CHECK:         %[[OUTS:.*]] = memref.alloc({{.*}}) : memref<?x1x2x?x64xf32>
// CHECK:         %[[TO:.*]] = memref.cast %[[RESULT]]
// CHECK:         gpu.launch_func @kernels::@any {{.*}}%[[TO]] :
// CHECK-NOT:     memref.alloc
// CHECK:         gpu.launch_func @kernels::@any_0 {{.*}}%[[TO]] :

// A kernel is passed no condition: it compares the number itself.
// CHECK-LABEL: gpu.func @any(
// CHECK-NOT:     i1
// CHECK-SAME:    {
// CHECK:         %[[ONE:.*]] = arith.cmpi eq, %{{.*}}, %c1
// CHECK:         arith.select %[[ONE]]

// CHECK-LABEL: gpu.func @any_0(
// CHECK:         scf.for %[[S:[^ ]*]] = %c0 to %[[COUNT:[^ ]*]] step %c8
// CHECK:           %[[LAST:.*]] = arith.subi %[[COUNT]], %c1
// CHECK-DAG:       %[[EXISTS:.*]] = arith.cmpi sle, %[[S]], %[[LAST]]
// CHECK-DAG:       arith.minsi %[[S]], %[[LAST]]
// CHECK:           arith.select %[[EXISTS]], %{{.*}}, %{{.*}} : f32
// CHECK:         math.log
// CHECK:         tile.store
// CHECK:         tile.store
func.func @any(%q: tensor<1x2x?x64xf16>, %k: tensor<1x2x500x64xf16>) -> (tensor<1x2x?x64xf16>, tensor<1x2x?xf32>) {
  %o, %l = flash.attention %q, %k, %k schedule(<query_tile = 64, key_tile = 32, split_ctas = 40>)
      : (tensor<1x2x?x64xf16>, tensor<1x2x500x64xf16>, tensor<1x2x500x64xf16>) -> (tensor<1x2x?x64xf16>, tensor<1x2x?xf32>)
  return %o, %l : tensor<1x2x?x64xf16>, tensor<1x2x?xf32>
}
