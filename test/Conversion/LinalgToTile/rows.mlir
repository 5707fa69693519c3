// Programs that work along rows alone: a row is one warp's, or a few warps'.
// RUN: flash-opt %s --convert-linalg-to-tile --canonicalize --cse --split-input-file | FileCheck %s

#m = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
#v = affine_map<(i) -> (i)>

// Any number of rows and columns. What is padded is read with how much exists and
// the value of the padding; of the result, what exists is stored.

// CHECK-LABEL: gpu.func @norm(
// CHECK-SAME:    known_block_size = array<i32: 96, 1, 1>
// CHECK:         %[[NONE:.*]] = arith.constant 1.000000e+00 : f16
// CHECK:         %[[N:.*]] = affine.min
// CHECK:         %[[X:.*]] = tile.read %{{.*}} rows(%[[N]]) padding(%[[NONE]] : f16) nonempty : {{.*}} to tensor<3x100xf16, #tile.warp_rows<3, 4>>
// CHECK:         %[[W:.*]] = arith.extf %[[X]]
// CHECK:         %[[SQUARE:.*]] = arith.mulf %[[W]], %[[W]]
// CHECK:         %[[LANES:.*]] = tile.fold {{ *}}add %[[SQUARE]] into %{{.*}} into tensor<3x32xf32, #tile.warp_rows<3, 1>>
// CHECK:         %[[SUM:.*]] = tile.reduce {{ *}}add %[[LANES]] : {{.*}} to tensor<3xf32, #tile.warp_rows<3, 1>>
// CHECK:         %[[B:.*]] = tile.broadcast %[[SUM]] : {{.*}} to tensor<3x100xf32, #tile.warp_rows<3, 4>>
// CHECK:         %[[Y:.*]] = arith.divf %[[W]], %[[B]]
// CHECK-DAG:     tile.store %[[Y]], %{{.*}} rows(%[[N]]) : tensor<3x100xf32, #tile.warp_rows<3, 4>>
// CHECK-DAG:     tile.store %[[SUM]], %{{.*}} rows(%[[N]]) : tensor<3xf32, #tile.warp_rows<3, 1>>
func.func @norm(%x: tensor<20x100xf16>) -> (tensor<20x100xf32>, tensor<20xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<20x100xf32>
  %l = tensor.empty() : tensor<20xf32>
  %r:2 = scf.forall (%i) = (0) to (20) step (3) shared_outs(%o = %e, %p = %l) -> (tensor<20x100xf32>, tensor<20xf32>) {
    %n = affine.min affine_map<(d0) -> (20 - d0, 3)>(%i)
    %high = affine.apply affine_map<(d0) -> (3 - d0)>(%n)
    %slice = tensor.extract_slice %x[%i, 0] [%n, 100] [1, 1] : tensor<20x100xf16> to tensor<?x100xf16>
    %padded = tensor.pad %slice low[0, 0] high[%high, 0] {
    ^bb0(%a: index, %b: index):
      %one = arith.constant 1.0 : f16
      tensor.yield %one : f16
    } : tensor<?x100xf16> to tensor<3x100xf16>
    %wide = arith.extf %padded : tensor<3x100xf16> to tensor<3x100xf32>
    %0 = tensor.empty() : tensor<3xf32>
    %1 = linalg.fill ins(%zero : f32) outs(%0 : tensor<3xf32>) -> tensor<3xf32>
    %sum = linalg.generic {indexing_maps = [#m, #row], iterator_types = ["parallel", "reduction"]}
        ins(%wide : tensor<3x100xf32>) outs(%1 : tensor<3xf32>) {
    ^bb0(%a: f32, %s: f32):
      %2 = arith.mulf %a, %a : f32
      %3 = arith.addf %s, %2 : f32
      linalg.yield %3 : f32
    } -> tensor<3xf32>
    %4 = tensor.empty() : tensor<3x100xf32>
    %y = linalg.generic {indexing_maps = [#m, #row, #m], iterator_types = ["parallel", "parallel"]}
        ins(%wide, %sum : tensor<3x100xf32>, tensor<3xf32>) outs(%4 : tensor<3x100xf32>) {
    ^bb0(%a: f32, %s: f32, %unused: f32):
      %5 = arith.divf %a, %s : f32
      linalg.yield %5 : f32
    } -> tensor<3x100xf32>
    %rows = tensor.extract_slice %y[0, 0] [%n, 100] [1, 1] : tensor<3x100xf32> to tensor<?x100xf32>
    %sums = tensor.extract_slice %sum[0] [%n] [1] : tensor<3xf32> to tensor<?xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %rows into %o[%i, 0] [%n, 100] [1, 1] : tensor<?x100xf32> into tensor<20x100xf32>
      tensor.parallel_insert_slice %sums into %p[%i] [%n] [1] : tensor<?xf32> into tensor<20xf32>
    }
  }
  return %r#0, %r#1 : tensor<20x100xf32>, tensor<20xf32>
}

// -----

// A loop that writes tiles into a slice of an output stores each of them where it
// belongs, and carries nothing. Elements with positions are of warp rows, too.

// CHECK-LABEL: gpu.func @steps(
// CHECK:         scf.for %[[J:[^ ]*]] = %c0 to %{{.*}} step %c256 {
// CHECK:           %[[C:.*]] = affine.min {{.*}}(%[[J]])
// CHECK:           %[[X:.*]] = tile.read %{{.*}}[%[[I:.*]], %[[J]]] columns(%[[C]]) padding(%{{.*}} : f32) nonempty : {{.*}} to tensor<8x256xf32, #tile.warp_rows<8, 4>>
// CHECK:           %[[Y:.*]] = tile.map %[[X]] : {{.*}}#tile.warp_rows<8, 4>
// CHECK:           tile.store %[[Y]], %{{.*}}[%[[I]], %[[J]]] columns(%[[C]])
// CHECK-NEXT:    }
// CHECK-NEXT:    gpu.return
#m = affine_map<(i, j) -> (i, j)>
func.func @steps(%x: tensor<64x?xf32>, %n: index) -> tensor<64x?xf32> {
  %c0 = arith.constant 0 : index
  %c256 = arith.constant 256 : index
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty(%n) : tensor<64x?xf32>
  %r = scf.forall (%i) = (0) to (64) step (8) shared_outs(%o = %e) -> (tensor<64x?xf32>) {
    %part = tensor.extract_slice %o[%i, 0] [8, %n] [1, 1] : tensor<64x?xf32> to tensor<8x?xf32>
    %all = scf.for %j = %c0 to %n step %c256 iter_args(%b = %part) -> tensor<8x?xf32> {
      %c = affine.min affine_map<(d0)[s0] -> (s0 - d0, 256)>(%j)[%n]
      %high = affine.apply affine_map<(d0) -> (256 - d0)>(%c)
      %slice = tensor.extract_slice %x[%i, %j] [8, %c] [1, 1] : tensor<64x?xf32> to tensor<8x?xf32>
      %padded = tensor.pad %slice low[0, 0] high[0, %high] {
      ^bb0(%p: index, %q: index):
        tensor.yield %zero : f32
      } : tensor<8x?xf32> to tensor<8x256xf32>
      %0 = tensor.empty() : tensor<8x256xf32>
      %y = linalg.generic {indexing_maps = [#m, #m], iterator_types = ["parallel", "parallel"]}
          ins(%padded : tensor<8x256xf32>) outs(%0 : tensor<8x256xf32>) {
      ^bb0(%a: f32, %unused: f32):
        %k = linalg.index 1 : index
        %at = arith.addi %k, %j : index
        %keep = arith.cmpi sle, %at, %i : index
        %1 = arith.select %keep, %a, %zero : f32
        linalg.yield %1 : f32
      } -> tensor<8x256xf32>
      %exists = tensor.extract_slice %y[0, 0] [8, %c] [1, 1] : tensor<8x256xf32> to tensor<8x?xf32>
      %next = tensor.insert_slice %exists into %b[0, %j] [8, %c] [1, 1] : tensor<8x?xf32> into tensor<8x?xf32>
      scf.yield %next : tensor<8x?xf32>
    }
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %all into %o[%i, 0] [8, %n] [1, 1] : tensor<8x?xf32> into tensor<64x?xf32>
    }
  }
  return %r : tensor<64x?xf32>
}

// -----

// Where there are few long rows, warps share them; a wide tile of many rows needs
// no fragments, a narrow one is better off with them. The neighbours of a lane are
// in step with the rows in memory.

#m = affine_map<(i, j) -> (i, j)>

// CHECK-LABEL: gpu.func @long(
// CHECK:         tile.read {{.*}} to tensor<1x4096xf16, #tile.warp_rows<8, 8, 256>>
// CHECK-LABEL: gpu.func @wide(
// CHECK:         tile.read {{.*}} to tensor<16x256xf16, #tile.warp_rows<8, 8>>
// CHECK-LABEL: gpu.func @narrow(
// CHECK:         tile.load {{.*}} to tensor<16x128xf16, #tile.fragment<1>>
// CHECK-LABEL: gpu.func @odd(
// CHECK:         tile.read {{.*}} to tensor<4x101xf16, #tile.warp_rows<4, 2>>
// CHECK-LABEL: gpu.func @warps(
// CHECK:         tile.read {{.*}} to tensor<6x64xf32, #tile.warp_rows<4, 1, 64>>
func.func @long(%x: tensor<1x4096xf16>) -> tensor<1x4096xf16> {
  %e = tensor.empty() : tensor<1x4096xf16>
  %r = scf.forall (%i) in (1) shared_outs(%o = %e) -> (tensor<1x4096xf16>) {
    %0 = arith.negf %x : tensor<1x4096xf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %0 into %o[0, 0] [1, 4096] [1, 1] : tensor<1x4096xf16> into tensor<1x4096xf16>
    }
  }
  return %r : tensor<1x4096xf16>
}

func.func @wide(%x: tensor<16x256xf16>) -> tensor<16x256xf16> {
  %e = tensor.empty() : tensor<16x256xf16>
  %r = scf.forall (%i) in (1) shared_outs(%o = %e) -> (tensor<16x256xf16>) {
    %0 = arith.negf %x : tensor<16x256xf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %0 into %o[0, 0] [16, 256] [1, 1] : tensor<16x256xf16> into tensor<16x256xf16>
    }
  }
  return %r : tensor<16x256xf16>
}

func.func @narrow(%x: tensor<16x128xf16>) -> tensor<16x128xf16> {
  %e = tensor.empty() : tensor<16x128xf16>
  %r = scf.forall (%i) in (1) shared_outs(%o = %e) -> (tensor<16x128xf16>) {
    %0 = arith.negf %x : tensor<16x128xf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %0 into %o[0, 0] [16, 128] [1, 1] : tensor<16x128xf16> into tensor<16x128xf16>
    }
  }
  return %r : tensor<16x128xf16>
}

func.func @odd(%x: tensor<4x101xf16>) -> tensor<4x101xf16> {
  %e = tensor.empty() : tensor<4x101xf16>
  %r = scf.forall (%i) in (1) shared_outs(%o = %e) -> (tensor<4x101xf16>) {
    %0 = arith.negf %x : tensor<4x101xf16>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %0 into %o[0, 0] [4, 101] [1, 1] : tensor<4x101xf16> into tensor<4x101xf16>
    }
  }
  return %r : tensor<4x101xf16>
}

func.func @warps(%x: tensor<6x64xf32>) -> tensor<6x64xf32> {
  %e = tensor.empty() : tensor<6x64xf32>
  %r = scf.forall (%i) in (1) shared_outs(%o = %e) -> (tensor<6x64xf32>) {
    %0 = arith.negf %x : tensor<6x64xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %0 into %o[0, 0] [6, 64] [1, 1] : tensor<6x64xf32> into tensor<6x64xf32>
    }
  } {flash.schedule = #flash.schedule<warps = 4>}
  return %r : tensor<6x64xf32>
}
