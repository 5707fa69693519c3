// Keys and values of 8 bits are converted by warps without roles, and their tiles of 8 bits take shared memory beside the
// ones that are multiplied.
// RUN: flash-opt %s --flash-attach-target=target=sm_90a --flash-select-schedule --split-input-file --verify-diagnostics | FileCheck %s

// CHECK-LABEL: func @decode
// CHECK: schedule(<query_tile = 16, key_tile = 16, packed_heads = 4, warps = 1, stages = 1, features = none, split_ctas = 1584>)
!q = tensor<32x32x1x128xbf16>
!k = tensor<32x8x8192x128xbf16>
func.func @decode(%q: !q, %k: tensor<32x8x8192x128xf8E4M3FN>, %v: !k, %s: tensor<1xf32>) -> !q {
  %kd = flash.dequantize %k scale(%s : tensor<1xf32>) : tensor<32x8x8192x128xf8E4M3FN> -> !k
  %o = flash.attention %q, %kd, %v : (!q, !k, !k) -> !q
  return %o : !q
}

// -----

!q = tensor<2x4x128x128xbf16>
func.func @roles(%q: !q, %k: tensor<2x4x128x128xi8>, %s: tensor<1xf32>) -> !q {
  %kd = flash.dequantize %k scale(%s : tensor<1xf32>) : tensor<2x4x128x128xi8> -> !q
  // expected-error @below {{cannot be scheduled: the features specialize_warps are of kernels whose keys and values have 16 bits in memory, and quantized ones are converted by warps without roles; leave the features out}}
  %o = flash.attention %q, %kd, %kd schedule(<features = specialize_warps>) : (!q, !q, !q) -> !q
  return %o : !q
}

// -----

!q = tensor<2x4x128x24xbf16>
func.func @columns(%q: !q, %k: tensor<2x4x128x24xi8>, %s: tensor<1xf32>) -> !q {
  %kd = flash.dequantize %k scale(%s : tensor<1xf32>) : tensor<2x4x128x24xi8> -> !q
  // expected-error @below {{cannot be scheduled: quantized keys and values have head dimensions that are multiples of 16 on tensor cores, got 24; use tensors of 16 bits, or cpu}}
  %o = flash.attention %q, %kd, %kd : (!q, !q, !q) -> !q
  return %o : !q
}

// -----

// Tiles of 16 bits fit with twice as many stages.
!q = tensor<2x4x128x256xbf16>
func.func @fits(%q: !q, %k: !q) -> !q {
  %o = flash.attention %q, %k, %k schedule(<query_tile = 64, key_tile = 32, stages = 6, features = none>) : (!q, !q, !q) -> !q
  return %o : !q
}
func.func @memory(%q: !q, %k: tensor<2x4x128x256xi8>, %v: tensor<2x4x128x256xi8>, %s: tensor<1xf32>) -> !q {
  %kd = flash.dequantize %k scale(%s : tensor<1xf32>) : tensor<2x4x128x256xi8> -> !q
  %vd = flash.dequantize %v scale(%s : tensor<1xf32>) : tensor<2x4x128x256xi8> -> !q
  // expected-error @below {{cannot be scheduled: the tiles need 245760 bytes of shared memory, and a block may have 232448; choose smaller tiles or fewer stages}}
  %o = flash.attention %q, %kd, %vd schedule(<query_tile = 64, key_tile = 32, stages = 11, features = none>) : (!q, !q, !q) -> !q
  return %o : !q
}
