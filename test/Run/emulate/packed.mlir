// Packed heads on all targets: parts of groups, rows that are left, open numbers of
// queries, splits, memory that is too small.
// RUN: flash-run %s --target=cpu --schedule=query_tile=16,key_tile=32,packed_heads=3 --shape 0=2x12x7x32 --check
// RUN: flash-run %s --target=cpu --schedule=query_tile=40,key_tile=32,packed_heads=6 --shape 0=2x12x70x32 --check
// RUN: flash-run %s --target=emulate --schedule=query_tile=16,key_tile=32,packed_heads=3 --shape 0=2x12x7x32 --check
// RUN: flash-run %s --target=emulate --schedule=query_tile=32,key_tile=32,packed_heads=6,num_splits=3 --shape 0=2x12x23x32 --check
// RUN: flash-run %s --target=emulate:sm_90a --schedule=query_tile=64,key_tile=32,packed_heads=6 --shape 0=2x12x23x32 --check
// RUN: flash-run %s --target=emulate:sm_90a --schedule=query_tile=128,key_tile=48,packed_heads=3,split_ctas=40 --shape 0=2x12x23x32 --check

// Level 2, with a head and a query more than there are: the checks of emulation see both.
// RUN: flash-run %s --target=emulate --schedule=query_tile=16,key_tile=32,packed_heads=3 --dump=l2 > %t.mlir
// RUN: sed 's/\(tile.copy_async %arg0\[.*\]\) packed(3) rows(%[^ ]*)/\1 packed(3)/' %t.mlir > %t.rows.mlir
// RUN: not flash-run %t.rows.mlir --target=emulate --shape 0=2x12x7x32 2>&1 | FileCheck %s --check-prefix=ROWS
// ROWS: error: {{.*}}needs 'rows': of 16 rows, packed by 3, the last 1 do not exist
// RUN: sed 's/packed(3) rows(%[^ ]*) to/packed(16) to/' %t.mlir > %t.heads.mlir
// RUN: not flash-run %t.heads.mlir --target=emulate --shape 0=2x12x7x32 2>&1 | FileCheck %s --check-prefix=HEADS
// HEADS: error: tile.copy_async {{.*}} touches indices 0 to 15 of dimension 2, which has 12
func.func @f(%q: tensor<2x12x?x32xf16>, %k: tensor<2x2x270x32xf16>, %s: tensor<12xf32>) -> (tensor<2x12x?x32xf16>, tensor<2x12x?xf32>) {
  %o, %l = flash.attention %q, %k, %k mask(#flash.causal) sink(%s : tensor<12xf32>)
      : (tensor<2x12x?x32xf16>, tensor<2x2x270x32xf16>, tensor<2x2x270x32xf16>) -> (tensor<2x12x?x32xf16>, tensor<2x12x?xf32>)
  return %o, %l : tensor<2x12x?x32xf16>, tensor<2x12x?xf32>
}
