// Packed heads on all targets: parts of groups, rows that are left, open numbers of
// queries, splits, memory that is too small.
// RUN: flash-run %s --target=cpu --schedule=query_tile=16,key_tile=32,packed_heads=3 --shape 0=2x12x7x32 --check
// RUN: flash-run %s --target=cpu --schedule=query_tile=40,key_tile=32,packed_heads=6 --shape 0=2x12x70x32 --check
// RUN: flash-run %s --target=emulate --schedule=query_tile=16,key_tile=32,packed_heads=3 --shape 0=2x12x7x32 --check
// RUN: flash-run %s --target=emulate --schedule=query_tile=32,key_tile=32,packed_heads=6,num_splits=3 --shape 0=2x12x23x32 --check
// RUN: flash-run %s --target=emulate:sm_90a --schedule=query_tile=64,key_tile=32,packed_heads=6 --shape 0=2x12x23x32 --check
// RUN: flash-run %s --target=emulate:sm_90a --schedule=query_tile=128,key_tile=48,packed_heads=3,split_ctas=40 --shape 0=2x12x23x32 --check

// At level 2, with other rows: what is touched beyond the heads or the queries is seen.
// RUN: flash-run %s --target=emulate --schedule=query_tile=16,key_tile=32,packed_heads=3 --dump=l2 > %t.mlir
// RUN: sed 's/packed(3) rows(%[^ ]*) to_end to/packed(16) to/' %t.mlir > %t.heads.mlir
// RUN: not flash-run %t.heads.mlir --target=emulate --shape 0=2x12x7x32 2>&1 | FileCheck %s --check-prefix=HEADS
// HEADS: error: tile.copy_async at {{.*}} touches indices {{[0-9]+}} to {{[0-9]+}} of dimension 2, which has 12
// RUN: sed 's/\(tile.store .*\) packed(3) rows(%[^ ]*) : tensor<16x32xf16/\1 packed(3) : tensor<16x32xf16/' %t.mlir > %t.queries.mlir
// RUN: not flash-run %t.queries.mlir --target=emulate --shape 0=2x12x7x32 2>&1 | FileCheck %s --check-prefix=QUERIES
// QUERIES: error: tile.store at {{.*}} touches indices 5 to 10 of dimension 1, which has 7
func.func @f(%q: tensor<2x12x?x32xf16>, %k: tensor<2x2x270x32xf16>, %s: tensor<12xf32>) -> (tensor<2x12x?x32xf16>, tensor<2x12x?xf32>) {
  %o, %l = flash.attention %q, %k, %k mask(#flash.causal) sink(%s : tensor<12xf32>)
      : (tensor<2x12x?x32xf16>, tensor<2x2x270x32xf16>, tensor<2x2x270x32xf16>) -> (tensor<2x12x?x32xf16>, tensor<2x12x?xf32>)
  return %o, %l : tensor<2x12x?x32xf16>, tensor<2x12x?xf32>
}
