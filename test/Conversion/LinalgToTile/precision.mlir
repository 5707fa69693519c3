// precision(tf32) from attention of rank 3 with a mask to every product of each
// step, and one instruction for each product there instead of three.
// RUN: sed 's/PRECISION/precision(tf32)/' %s > %t-tf32.mlir
// RUN: sed 's/PRECISION//' %s > %t-f32.mlir
// DEFINE: %{to_tile} = --flash-expand-rank --flash-online-softmax --flash-tile --flash-refine-visits --convert-flash-to-scf --canonicalize --cse --flash-decompose=guard-values --cse --convert-linalg-to-tile
// RUN: flash-opt %t-tf32.mlir %{to_tile} | FileCheck %s --check-prefix=TF32 --implicit-check-not=tile.mma_async
// RUN: flash-opt %t-f32.mlir %{to_tile} | FileCheck %s --check-prefix=F32 --implicit-check-not=tf32
// RUN: flash-opt %t-tf32.mlir --flash-gpu=target=sm_80 | FileCheck %s --check-prefix=ONE --implicit-check-not=nvvm.mma.sync
// RUN: flash-opt %t-f32.mlir --flash-gpu=target=sm_80 | FileCheck %s --check-prefix=THREE --implicit-check-not=nvvm.mma.sync

// Two of the tiles without the mask, then two of those on the diagonal.
// TF32-COUNT-4:   tile.mma_async {{.*}} tf32 :
// F32-COUNT-4:    tile.mma_async

// For 16 queries, 8 keys and 8 elements.
// ONE-COUNT-4:    nvvm.mma.sync
// THREE-COUNT-12: nvvm.mma.sync
func.func @attention(%q: tensor<4x64x8xf32>) -> tensor<4x64x8xf32> {
  %o = flash.attention %q, %q, %q mask(#flash.causal) PRECISION schedule(<query_tile = 16, key_tile = 8>)
      : (tensor<4x64x8xf32>, tensor<4x64x8xf32>, tensor<4x64x8xf32>) -> tensor<4x64x8xf32>
  return %o : tensor<4x64x8xf32>
}
