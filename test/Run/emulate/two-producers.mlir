// Keys and values in pages of 16 rows: of two warps each copies into one of the rings. The first one claims tiles for the other.
// DEFINE: %{sizes} = --shape 0=1x8x190x64 --shape 1=70x2x16x64 --shape 2=70x2x16x64 --shape 4=4x20 --fill 5=320@0 --fill 5=5@1 --fill 5=0@2
// DEFINE: %{claims} = --schedule="features=specialize_warps|overlap|persistent|claim_tiles"
// RUN: flash-run %s --target=emulate:sm_90a %{sizes} --dump=l2 | FileCheck %s
// RUN: flash-run %s --target=emulate:sm_90a %{sizes} --check
// RUN: flash-run %s --target=emulate:sm_90a %{sizes} %{claims} --dump=l2 | FileCheck %s --check-prefixes=CHECK,CLAIM
// RUN: flash-run %s --target=emulate:sm_90a %{sizes} %{claims} --check --seed 1
// RUN: flash-run %s --target=emulate:sm_90a %{sizes} --check --seed 2 --schedule="query_tile=128,key_tile=64,features=specialize_warps|overlap|ping_pong"
// Few copies are one warp's.
// RUN: flash-run %s --target=emulate:sm_90a %{sizes} --schedule=query_tile=64,key_tile=32 --dump=l2 | FileCheck %s --check-prefix=FEW

// CHECK:     @producer(warps = 1,
// CLAIM:     tile.claim
// CHECK:     tile.copy_async {{.*}} to %[[KEYS:.*]][{{.*}} part(%c7)
// CHECK:     @second_producer(warps = 1,
// CLAIM:     tile.claim
// CHECK-NOT: to %[[KEYS]][
// CHECK:     tile.copy_async {{.*}} to %[[VALUES:.*]][{{.*}} part(%c7)
// CHECK:     @nonfinite_check(warps = 2,
// FEW:       @producer(warps = 1,
// FEW-NOT:   @second_producer
// FEW:       @nonfinite_check(warps = 3,

!rows = tensor<1x8x?x64xf16>
!cache = tensor<?x2x16x64xf16>
!view = tensor<4x2x?x64xf16>
!queries = tensor<4x8x?x64xf16>
func.func @packed(%q: !rows, %k: !cache, %v: !cache, %offsets: tensor<5xi32>, %table: tensor<4x?xi32>, %n: tensor<4xi32>) -> !rows {
  %c2 = arith.constant 2 : index
  %qs, %nq = flash.unpack %q by %offsets : !rows, tensor<5xi32> -> !queries, tensor<4xi32>
  %ks = flash.unpage %k by %table lengths(%n : tensor<4xi32>) : !cache, tensor<4x?xi32> -> !view
  %vs = flash.unpage %v by %table lengths(%n : tensor<4xi32>) : !cache, tensor<4x?xi32> -> !view
  %os = flash.attention %qs, %ks, %vs mask(#flash.causal) query_lengths(%nq : tensor<4xi32>) key_lengths(%n : tensor<4xi32>)
      : (!queries, !view, !view) -> !queries
  %t = tensor.dim %q, %c2 : !rows
  %e = tensor.empty(%t) : !rows
  %o = flash.pack %os by %offsets into %e : !queries, tensor<5xi32> into !rows
  return %o : !rows
}
