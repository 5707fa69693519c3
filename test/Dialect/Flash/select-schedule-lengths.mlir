// Splits where only the device knows how many keys a batch of few queries has: of a number of keys, by what the lengths may be.
// RUN: split-file %s %t
// Blocks of one warp: many rows have longer splits than few, and so have rows whose blocks then run at once; very many have none.
// RUN: flash-opt %t/batch.mlir --flash-version="target=sm_90a sizes=42x32x1x128,42x8x26000x128,42x8x26000x128" | FileCheck %s --check-prefixes=SPLIT,FEW
// RUN: flash-opt %t/batch.mlir --flash-version="target=sm_90a sizes=128x32x1x128,128x8x32768x128,128x8x32768x128" | FileCheck %s --check-prefixes=SPLIT,MANY
// RUN: flash-opt %t/batch.mlir --flash-version="target=sm_90a sizes=16x32x1x128,16x8x4096x128,16x8x4096x128" | FileCheck %s --check-prefixes=SPLIT,FEW
// RUN: flash-opt %t/batch.mlir --flash-version="target=sm_90a sizes=32x32x1x128,32x8x4096x128,32x8x4096x128" | FileCheck %s --check-prefixes=SPLIT,WAVE
// RUN: flash-opt %t/batch.mlir --flash-version="target=sm_90a sizes=2048x32x1x128,2048x8x8192x128,2048x8x8192x128" | FileCheck %s --check-prefix=WAVES
// With more rows partial results are larger, and so are splits; warps have roles where rows are more than 16, and claim tiles where rows are very many. There are at most 24 splits.
// RUN: flash-opt %t/batch.mlir --flash-version="target=sm_90a sizes=64x32x4x128,64x8x8192x128,64x8x8192x128" | FileCheck %s --check-prefixes=SPLIT,MANY
// RUN: flash-opt %t/batch.mlir --flash-version="target=sm_90a sizes=2048x32x8x128,2048x8x8192x128,2048x8x8192x128" | FileCheck %s --check-prefix=CLAIMS
// RUN: flash-opt %t/batch.mlir --flash-version="target=sm_90a sizes=16x32x8x128,16x8x8192x128,16x8x8192x128" | FileCheck %s --check-prefix=DRAFTS
// RUN: flash-opt %t/batch.mlir --flash-version="target=sm_90a sizes=8x32x1x128,8x8x131072x128,8x8x131072x128" | FileCheck %s --check-prefix=LONG
// So few rows that blocks for all of their splits run at once, short ones, and many queries of each are as if lengths were known.
// RUN: flash-opt %t/batch.mlir --flash-version="target=sm_90a sizes=4x32x1x128,4x8x32768x128,4x8x32768x128" | FileCheck %s --check-prefix=CTAS
// RUN: flash-opt %t/batch.mlir --flash-version="target=sm_90a sizes=300x32x1x128,300x8x512x128,300x8x512x128" | FileCheck %s --check-prefix=ONE
// RUN: flash-opt %t/batch.mlir --flash-version="target=sm_90a sizes=64x32x64x128,64x8x32768x128,64x8x32768x128" | FileCheck %s --check-prefix=ONE
// What is given stays: tiles, of which a split has some, splits of other numbers of keys, whose bits are the same as for more rows, and how many there are.
// RUN: flash-opt %t/batch.mlir --flash-version="target=sm_90a schedule=key_tile=80 sizes=128x32x1x128,128x8x32768x128,128x8x32768x128" | FileCheck %s --check-prefix=TILE
// RUN: flash-opt %t/batch.mlir --flash-version="target=sm_90a schedule=key_tile=64,split_keys=1024 sizes=128x32x1x128,128x8x32768x128,128x8x32768x128" | FileCheck %s --check-prefix=GIVEN
// RUN: flash-opt %t/batch.mlir --flash-version="target=sm_90a schedule=num_splits=3 sizes=128x32x1x128,128x8x32768x128,128x8x32768x128" | FileCheck %s --check-prefix=THREE
// RUN: flash-opt %t/batch.mlir --flash-version="target=sm_90a schedule=key_tile=64,split_keys=1048576 sizes=64x32x1x128,64x8x4096x128,64x8x4096x128" | FileCheck %s --check-prefix=WHOLE
// Warps without roles have the same splits, and so have lengths of a padded batch and programs of known sizes.
// RUN: flash-opt %t/batch.mlir --flash-version="target=sm_80 sizes=128x32x1x128,128x8x32768x128,128x8x32768x128" | FileCheck %s --check-prefix=SM80
// RUN: flash-opt %t/known.mlir --flash-attach-target=target=sm_90a --flash-select-schedule | FileCheck %s --check-prefixes=SPLIT,MANY
// RUN: flash-opt %t/batch.mlir --flash-version="sizes=128x32x1x128,128x8x32768x128,128x8x32768x128" | FileCheck %s --check-prefix=CPU

// SPLIT:  query_tile = 16, key_tile = 32, {{.*}} stages = 2, features = none,
// FEW-SAME:  split_keys = 1024>
// WAVE-SAME: split_keys = 1408>
// MANY-SAME: split_keys = 2048>
// WAVES:  query_tile = 16, key_tile = 32, {{.*}} num_splits = 1>
// CLAIMS: key_tile = 128, {{.*}}|persistent|bulk_store|claim_tiles, {{.*}}num_splits = 1>
// DRAFTS: features = specialize_warps|overlap|bulk_store, {{.*}}split_keys = 4096>
// LONG:   split_keys = 5632>
// CTAS:   features = specialize_warps{{.*}}persistent{{.*}}split_ctas = 132>
// ONE:    persistent|bulk_store, {{.*}}num_splits = 1>
// TILE:   key_tile = 80, {{.*}}stages = 2, {{.*}}split_keys = 5680>
// GIVEN:  features = specialize_warps|overlap|bulk_store, block_map = 0, split_keys = 1024>
// THREE:  num_splits = 3>
// WHOLE:  features = specialize_warps|overlap|bulk_store, block_map = 0, split_keys = 1048576>
// SM80:   features = none, block_map = 0, split_keys = 2048>
// CPU-NOT: split

//--- batch.mlir
!q = tensor<?x?x?x128xbf16>
func.func @attention(%q: !q, %k: !q, %v: !q, %n: tensor<?xi32>) -> !q {
  %o = flash.attention %q, %k, %v mask(#flash.causal) key_lengths(%n : tensor<?xi32>) : (!q, !q, !q) -> !q
  return %o : !q
}
//--- known.mlir
!q = tensor<128x32x1x128xbf16>
!k = tensor<128x8x32768x128xbf16>
func.func @attention(%q: !q, %k: !k, %v: !k, %n: tensor<128xi32>) -> !q {
  %o = flash.attention %q, %k, %v lengths(%n : tensor<128xi32>) : (!q, !k, !k) -> !q
  return %o : !q
}
