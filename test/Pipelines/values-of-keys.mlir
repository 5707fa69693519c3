// RUN: flash-opt %s --flash-gpu=target=sm_90a --mlir-print-ir-after=tile-make-rings -o /dev/null 2>&1 | FileCheck %s --implicit-check-not="x512xbf16, swizzle"
// RUN: flash-opt %s --flash-attach-target=target=sm_90a --flash-select-schedule='schedule=features=specialize_warps|divide_columns|ping_pong|bulk_store' | flash-opt --flash-gpu=target=sm_90a --mlir-print-ir-after=tile-make-rings -o /dev/null 2>&1 | FileCheck %s --check-prefix=PIECES --implicit-check-not="x512xbf16, swizzle"

// Values that are the first columns of the keys have no tiles in shared memory: products read panels of the tiles of keys, or
// pieces of these tiles if warpgroups alternate.
// CHECK: tile.mma_async {{.*}} transpose_b : !tile.smem<{{.*}}>, <64x576xbf16, swizzle = 128>
// CHECK: tile.mma_async {{.*}} panel(
// PIECES-LABEL: gpu.func @decode(
// PIECES: scf.for
// PIECES: %[[KEYS:.*]] = tile.ring.wait {{.*}} : <1, <64x256xbf16, swizzle = 128>>
// PIECES: tile.mma_async {{.*}}, %[[KEYS]] transpose_b
// PIECES: tile.mma_async {{.*}}, %[[KEYS]] add
func.func @decode(%q: tensor<4x16x1x576xbf16>, %k: tensor<4x1x?x576xbf16>) -> tensor<4x16x1x512xbf16> {
  %c2 = arith.constant 2 : index
  %n = tensor.dim %k, %c2 : tensor<4x1x?x576xbf16>
  %v = tensor.extract_slice %k[0, 0, 0, 0] [4, 1, %n, 512] [1, 1, 1, 1] : tensor<4x1x?x576xbf16> to tensor<4x1x?x512xbf16>
  %o = flash.attention %q, %k, %v : (tensor<4x16x1x576xbf16>, tensor<4x1x?x576xbf16>, tensor<4x1x?x512xbf16>) -> tensor<4x16x1x512xbf16>
  return %o : tensor<4x16x1x512xbf16>
}
