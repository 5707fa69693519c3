// The order of blocks under a mask; TileOrderTest looks at all numbers of many
// sizes. A wave has as many blocks as the 132 multiprocessors hold.
// RUN: flash-opt %s --flash-online-softmax --flash-tile --flash-refine-visits --convert-flash-to-scf --flash-decompose=guard-values --canonicalize --cse \
// RUN:   --convert-linalg-to-tile --tile-lower-positions --canonicalize --cse | FileCheck %s

!tiles8 = tensor<1x64x512x64xf16>
!tiles11 = tensor<1x64x704x64xf16>
!tiles16 = tensor<1x64x1024x64xf16>
!many_heads = tensor<1x256x1024x64xf16>
!few_heads = tensor<1x4x1024x64xf16>

// Of 8 tiles to a head, two waves are 33 whole heads, one behind the other.

// CHECK-LABEL: gpu.func @whole_heads(
// CHECK:       %[[HEAD:.*]] = arith.divui %block_id_x, %c8 :
// CHECK-NEXT:  %[[LEVEL:.*]] = arith.remui %block_id_x, %c8 :
// CHECK-NEXT:  %[[TILE:.*]] = arith.subi %c7, %[[LEVEL]] :
// CHECK-NEXT:  %[[ROW:.*]] = arith.muli %[[TILE]], %c64 :
// CHECK-NEXT:  tile.fetch %{{.*}}[%c0, %[[HEAD]], %[[ROW]]]
func.func @whole_heads(%q: !tiles8) -> !tiles8 {
  %o = flash.attention %q, %q, %q mask(#flash.causal) schedule(<query_tile = 64, key_tile = 64, features = specialize_warps|persistent>) : (!tiles8, !tiles8, !tiles8) -> !tiles8
  return %o : !tiles8
}

// 64 heads of 16 tiles are 7.8 waves: four of them in pairs of a tile of one
// head and, in a wave that goes backwards, one of the next; the other 32 heads
// by length.

// CHECK-LABEL: gpu.func @pairs(
// CHECK:       %[[PAIRED:.*]] = arith.cmpi ult, %block_id_x, %c528 :
// CHECK:       %[[INROUND:.*]] = arith.remui %block_id_x, %c132 :
// CHECK:       %[[ROUND:.*]] = arith.divui %block_id_x, %c132 :
// CHECK:       %[[ODD:.*]] = arith.remui %[[ROUND]], %c2 :
// CHECK:       %[[SECOND:.*]] = arith.cmpi eq, %[[ODD]], %c1 :
// CHECK:       %[[MIRRORED:.*]] = arith.subi %c131, %[[INROUND]] :
// CHECK:       %[[BLOCK:.*]] = arith.select %[[SECOND]], %[[MIRRORED]], %[[INROUND]] :
// CHECK:       %[[BEFORE:.*]] = arith.muli %{{.*}}, %c132 :
// CHECK:       %[[PAIR:.*]] = arith.addi %[[BEFORE]], %[[BLOCK]] :
// CHECK:       %[[DIVIDEND:.*]] = arith.select %[[PAIRED]], %[[PAIR]],
// CHECK:       %[[DIVISOR:.*]] = arith.select %[[PAIRED]], %c16,
// CHECK:       %[[QUOTIENT:.*]] = arith.divui %[[DIVIDEND]], %[[DIVISOR]] :
// CHECK:       %[[REST:.*]] = arith.remui %[[DIVIDEND]], %[[DIVISOR]] :
// CHECK:       %[[BY_LENGTH:.*]] = arith.addi %{{.*}}, %c32 :
// CHECK-NEXT:  arith.select %[[PAIRED]], %{{.*}}, %[[BY_LENGTH]] :
func.func @pairs(%q: !tiles16) -> !tiles16 {
  %o = flash.attention %q, %q, %q mask(#flash.causal) schedule(<query_tile = 64, key_tile = 64, features = specialize_warps|persistent>) : (!tiles16, !tiles16, !tiles16) -> !tiles16
  return %o : !tiles16
}

// Of a window, the first tiles are shorter than all others, and pairs are not even:
// all heads go together by length.

// CHECK-LABEL: gpu.func @by_length(
// CHECK:       %[[EXISTS:.*]] = arith.cmpi ult, %block_id_x, %c1024 :
// CHECK:       %[[ID:.*]] = arith.select %[[EXISTS]], %block_id_x,
// CHECK:       %[[HEADS:.*]] = arith.select %[[EXISTS]], %c64,
// CHECK-NEXT:  arith.divui %[[ID]], %[[HEADS]] :
// CHECK-NEXT:  arith.remui %[[ID]], %[[HEADS]] :
func.func @by_length(%q: !tiles16) -> !tiles16 {
  %o = flash.attention %q, %q, %q mask(#flash.window<left = 255, right = 0>) schedule(<query_tile = 64, key_tile = 64, features = specialize_warps|persistent>) : (!tiles16, !tiles16, !tiles16) -> !tiles16
  return %o : !tiles16
}

// With two blocks on each multiprocessor, a wave has twice as many.

// CHECK-LABEL: gpu.func @ctas_per_sm(
// CHECK:       arith.remui %block_id_x, %c264 :
// CHECK:       arith.subi %c263,
func.func @ctas_per_sm(%q: !many_heads) -> !many_heads {
  %o = flash.attention %q, %q, %q mask(#flash.causal) schedule(<query_tile = 64, key_tile = 64, ctas_per_sm = 2, features = specialize_warps|persistent>) : (!many_heads, !many_heads, !many_heads) -> !many_heads
  return %o : !many_heads
}

// Blocks that take one tile each, whenever there is room for them, take those of
// one head after the other too where two waves are whole heads,

// CHECK-LABEL: gpu.func @one_tile(
// CHECK:       %[[HEAD:.*]] = arith.divui %block_id_x, %c11 :
// CHECK-NEXT:  %[[INSIDE:.*]] = arith.remui %block_id_x, %c11 :
// CHECK:       %[[TOGETHER:.*]] = arith.minui %{{.*}}, %c1 :
// CHECK:       %[[LEVEL:.*]] = arith.divui %[[INSIDE]], %[[TOGETHER]] :
// CHECK:       arith.subi %c10, %[[LEVEL]] :
func.func @one_tile(%q: !tiles11) -> !tiles11 {
  %o = flash.attention %q, %q, %q mask(#flash.causal) schedule(<query_tile = 64, key_tile = 64>) : (!tiles11, !tiles11, !tiles11) -> !tiles11
  return %o : !tiles11
}

// and else the longest of as many heads as fill two waves, but of no more than
// there are.

// CHECK-LABEL: gpu.func @one_tile_of_few(
// CHECK:       %[[INSIDE:.*]] = arith.remui %block_id_x, %c64 :
// CHECK:       %[[TOGETHER:.*]] = arith.minui %{{.*}}, %c4 :
// CHECK:       %[[LEVEL:.*]] = arith.divui %[[INSIDE]], %[[TOGETHER]] :
// CHECK:       arith.subi %c15, %[[LEVEL]] :
func.func @one_tile_of_few(%q: !few_heads) -> !few_heads {
  %o = flash.attention %q, %q, %q mask(#flash.causal) schedule(<query_tile = 64, key_tile = 64>) : (!few_heads, !few_heads, !few_heads) -> !few_heads
  return %o : !few_heads
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
