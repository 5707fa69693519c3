// Tiles whose rows lie along two dimensions of memory, through the passes.
// RUN: flash-opt %s --pass-pipeline="builtin.module(gpu.module(gpu.func(tile-make-rings)))" | FileCheck %s --check-prefix=RING
// RUN: flash-opt %s --pass-pipeline="builtin.module(gpu.module(gpu.func(tile-make-rings)),tile-allocate-smem,gpu.module(gpu.func(tile-lower-rings)))" | FileCheck %s --check-prefix=COPY
// RUN: flash-opt %s --pass-pipeline="builtin.module(gpu.module(gpu.func(tile-make-rings)),tile-allocate-smem,gpu.module(gpu.func(tile-lower-rings,convert-tile-to-nvx)))" | FileCheck %s --check-prefix=THREAD

!memory = memref<?x?x?x64xf16, strided<[?, ?, ?, 1]>>
!tile = !tile.smem<16x64xf16, swizzle = 128>

gpu.module @m {
  // RING-LABEL: gpu.func @kernel(
  // RING:         tile.copy_async %{{.*}}[%{{.*}}, %{{.*}}, %{{.*}}] packed(3) rows(%{{.*}}) to_end to
  // COPY-LABEL: gpu.func @kernel(
  // COPY:         tile.copy %{{.*}}[%{{.*}}, %{{.*}}, %{{.*}}] packed(3) rows(%{{.*}}) to

  // 16 rows of 8 chunks are 4 for each of 32 threads, of four rows: each address is
  // that of its own query and head. Results are stored by twos to
  // such addresses too.
  // THREAD-LABEL: gpu.func @kernel(
  // THREAD-SAME:    %[[H:[^ ]*]]: index, %[[I:[^ ]*]]: index, %[[N:[^ ]*]]: index)
  // THREAD:         %[[ROW:.*]] = arith.divui %{{.*}}, %c8
  // THREAD-DAG:     %[[QUERY:.*]] = arith.divui %{{.*}}, %c3
  // THREAD-DAG:     arith.addi %[[I]], %[[QUERY]]
  // THREAD-DAG:     %[[HEAD:.*]] = arith.remui %{{.*}}, %c3
  // THREAD-DAG:     arith.addi %[[H]], %[[HEAD]]
  // THREAD-COUNT-4: nvvm.cp.async.shared.global
  // THREAD-NOT:     nvvm.cp.async.shared.global
  // THREAD:         arith.divui %{{.*}}, %c3
  // THREAD:         llvm.store %{{.*}}, %{{.*}} : i32, !llvm.ptr<1>
  gpu.func @kernel(%q: !memory, %out: !memory, %h: index, %i: index, %n: index) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    %c0 = arith.constant 0 : index
    %qt = tile.fetch %q[%c0, %i, %h] packed(3) rows(%n) to_end : !memory to !tile
    %x = tile.load %qt : !tile to tensor<16x64xf16, #tile.fragment<1>>
    tile.store %x, %out[%c0, %i, %h] packed(3) rows(%n) : tensor<16x64xf16, #tile.fragment<1>> to !memory
    gpu.return
  }
}
