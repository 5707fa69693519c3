// The order of blocks under a mask. Tiles of some heads go by their length, but
// where two rounds of blocks are whole heads, heads follow each other. A round
// has as many blocks as the 132 multiprocessors hold.
// RUN: flash-opt %s --flash-online-softmax --flash-tile --flash-split-mask --canonicalize --cse \
// RUN:   --convert-flash-to-tile --canonicalize --cse | FileCheck %s

!tiles8 = tensor<1x64x512x64xf16>
!tiles11 = tensor<1x64x704x64xf16>
!tiles16 = tensor<1x64x1024x64xf16>
!few_heads = tensor<1x4x1024x64xf16>

// Of 8 tiles to a head, 264 blocks are 33 whole heads.

// CHECK-LABEL: gpu.func @whole_heads(
// CHECK:       %[[QUOTIENT:.*]] = arith.divui %block_id_x, %c8 :
// CHECK-NEXT:  %[[HEAD:.*]] = arith.minui %[[QUOTIENT]], %c63 :
// CHECK-NEXT:  %[[BEFORE:.*]] = arith.muli %[[HEAD]], %c8 :
// CHECK-NEXT:  %[[INSIDE:.*]] = arith.subi %block_id_x, %[[BEFORE]] :
// CHECK-NEXT:  arith.subi %c7, %[[INSIDE]] :
func.func @whole_heads(%q: !tiles8) -> !tiles8 {
  %o = flash.attention %q, %q, %q mask(#flash.causal) schedule(<query_tile = 64, key_tile = 64, features = specialize_warps|persistent>) : (!tiles8, !tiles8, !tiles8) -> !tiles8
  return %o : !tiles8
}

// Of 11 tiles, they are 24. The 64 heads fill two such pairs of rounds and some
// of a third: the last whole pair and the rest, 40 heads, go together.

// CHECK-LABEL: gpu.func @odd(
// CHECK:       %[[QUOTIENT:.*]] = arith.divui %block_id_x, %c11 :
// CHECK-NEXT:  %[[FIRST:.*]] = arith.minui %[[QUOTIENT]], %c24 :
// CHECK-NEXT:  %[[LAST:.*]] = arith.cmpi eq, %[[FIRST]], %c24 :
// CHECK-NEXT:  %[[HEADS:.*]] = arith.select %[[LAST]], %c40, %c1 :
// CHECK-NEXT:  %[[BEFORE:.*]] = arith.muli %[[FIRST]], %c11 :
// CHECK-NEXT:  %[[INSIDE:.*]] = arith.subi %block_id_x, %[[BEFORE]] :
// CHECK-NEXT:  %[[T:.*]] = arith.divui %[[INSIDE]], %[[HEADS]] :
// CHECK-NEXT:  %[[H:.*]] = arith.remui %[[INSIDE]], %[[HEADS]] :
// CHECK-NEXT:  arith.subi %c10, %[[T]] :
// CHECK-NEXT:  arith.addi %[[FIRST]], %[[H]] :
func.func @odd(%q: !tiles11) -> !tiles11 {
  %o = flash.attention %q, %q, %q mask(#flash.causal) schedule(<query_tile = 64, key_tile = 64, features = specialize_warps|persistent>) : (!tiles11, !tiles11, !tiles11) -> !tiles11
  return %o : !tiles11
}

// Of 16 they are not: the 528 tiles of 33 heads are two such pairs of rounds.

// CHECK-LABEL: gpu.func @heads_together(
// The 31 heads behind them are the last group.
// CHECK:       %[[GROUP:.*]] = arith.divui %block_id_x, %c528 :
// CHECK-NEXT:  %[[HEAD:.*]] = arith.muli %[[GROUP]], %c33 :
// CHECK-NEXT:  %[[FIRST:.*]] = arith.minui %[[HEAD]], %c33 :
// CHECK-NEXT:  %[[LAST:.*]] = arith.cmpi eq, %[[FIRST]], %c33 :
// CHECK-NEXT:  arith.select %[[LAST]], %c31, %c33 :
func.func @heads_together(%q: !tiles16) -> !tiles16 {
  %o = flash.attention %q, %q, %q mask(#flash.causal) schedule(<query_tile = 64, key_tile = 64, features = specialize_warps|persistent>) : (!tiles16, !tiles16, !tiles16) -> !tiles16
  return %o : !tiles16
}

// With two blocks on each multiprocessor they are: 528 blocks are 33 heads. As
// there is but one such pair of rounds, all heads go together.

// CHECK-LABEL: gpu.func @resident_blocks(
// CHECK:       arith.divui %block_id_x, %c64 :
// CHECK-NEXT:  arith.remui %block_id_x, %c64 :
func.func @resident_blocks(%q: !tiles16) -> !tiles16 {
  %o = flash.attention %q, %q, %q mask(#flash.causal) schedule(<query_tile = 64, key_tile = 64, resident_blocks = 2, features = specialize_warps|persistent>) : (!tiles16, !tiles16, !tiles16) -> !tiles16
  return %o : !tiles16
}

// No more heads go together than there are.

// CHECK-LABEL: gpu.func @few_heads(
// CHECK:       %[[TILE:.*]] = arith.divui %block_id_x, %c4 :
// CHECK-NEXT:  arith.remui %block_id_x, %c4 :
// CHECK-NEXT:  arith.subi %c15, %[[TILE]] :
func.func @few_heads(%q: !few_heads) -> !few_heads {
  %o = flash.attention %q, %q, %q mask(#flash.causal) schedule(<query_tile = 64, key_tile = 64, features = specialize_warps|persistent>) : (!few_heads, !few_heads, !few_heads) -> !few_heads
  return %o : !few_heads
}

// Where blocks do not know their tiles beforehand, the last heads are as the others.

// CHECK-LABEL: gpu.func @one_tile(
// CHECK:       arith.divui %block_id_x, %c11 :
// CHECK-NEXT:  arith.remui %block_id_x, %c11 :
func.func @one_tile(%q: !tiles11) -> !tiles11 {
  %o = flash.attention %q, %q, %q mask(#flash.causal) schedule(<query_tile = 64, key_tile = 64>) : (!tiles11, !tiles11, !tiles11) -> !tiles11
  return %o : !tiles11
}

// Without a mask all tiles have one length, and their order is that of queries.

// CHECK-LABEL: gpu.func @unmasked(
// CHECK:       arith.divui %block_id_x, %c16 :
// CHECK-NEXT:  %[[TILE:.*]] = arith.remui %block_id_x, %c16 :
// CHECK-NEXT:  arith.muli %[[TILE]], %c64 :
func.func @unmasked(%q: !tiles16) -> !tiles16 {
  %o = flash.attention %q, %q, %q schedule(<query_tile = 64, key_tile = 64, features = specialize_warps|persistent>) : (!tiles16, !tiles16, !tiles16) -> !tiles16
  return %o : !tiles16
}
