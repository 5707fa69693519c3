// Keys and values of 8 bits are converted by warps without roles. Their tiles of 8 bits take shared memory beside the
// ones that are multiplied, unless a single warp converts them in registers.
// RUN: flash-opt %s --flash-attach-target=target=sm_90a --flash-select-schedule --split-input-file --verify-diagnostics | FileCheck %s

// CHECK-LABEL: func @decode
// CHECK: schedule(<query_tile = 16, key_tile = 32, packed_heads = 4, warps = 1, stages = 2, features = none, split_ctas = 1056>)
!q = tensor<32x32x1x128xbf16>
!k = tensor<32x8x8192x128xbf16>
func.func @decode(%q: !q, %k: tensor<32x8x8192x128xf8E4M3FN>, %v: !k, %s: tensor<1xf32>) -> !q {
  %kd = flash.dequantize %k scale(%s : tensor<1xf32>) : tensor<32x8x8192x128xf8E4M3FN> -> !k
  %o = flash.attention %q, %kd, %v : (!q, !k, !k) -> !q
  return %o : !q
}

// -----

// Masks have tiles converted in shared memory; of one query a causal mask leaves out nothing.
// CHECK-LABEL: func @drafts
// CHECK: schedule(<query_tile = 16, key_tile = 32, {{.*}}stages = 2, features = none
// CHECK: schedule(<query_tile = 16, key_tile = 16, {{.*}}stages = 2, features = none
!q = tensor<32x32x1x128xbf16>
!q4 = tensor<32x32x4x128xbf16>
!k = tensor<32x8x8192x128xbf16>
func.func @drafts(%q: !q, %q4: !q4, %k: tensor<32x8x8192x128xf8E4M3FN>, %s: tensor<1xf32>) -> (!q, !q4) {
  %kd = flash.dequantize %k scale(%s : tensor<1xf32>) : tensor<32x8x8192x128xf8E4M3FN> -> !k
  %o = flash.attention %q, %kd, %kd mask(#flash.causal) : (!q, !k, !k) -> !q
  %p = flash.attention %q4, %kd, %kd mask(#flash.causal) : (!q4, !k, !k) -> !q4
  return %o, %p : !q, !q4
}

// -----

// More blocks have registers for narrow heads.
// CHECK-LABEL: func @narrow
// CHECK: schedule(<query_tile = 16, key_tile = 32, packed_heads = 4, warps = 1, stages = 1, features = none, split_ctas = 2112>)
!q = tensor<32x32x1x64xbf16>
!k = tensor<32x8x8192x64xbf16>
func.func @narrow(%q: !q, %k: tensor<32x8x8192x64xi8>, %v: !k, %s: tensor<1xf32>) -> !q {
  %kd = flash.dequantize %k scale(%s : tensor<1xf32>) : tensor<32x8x8192x64xi8> -> !k
  %o = flash.attention %q, %kd, %v : (!q, !k, !k) -> !q
  return %o : !q
}

// -----

// Splits have a part of the bound, between half of what those of 16 bits have and as many.
// CHECK-LABEL: func @lengths
// CHECK: schedule(<query_tile = 16, key_tile = 32, {{.*}} split_keys = 512>)
// CHECK: schedule(<query_tile = 16, key_tile = 32, {{.*}} split_keys = 1024>)
!q = tensor<32x32x1x128xbf16>
!k = tensor<32x8x4096x128xbf16>
!k8 = tensor<32x8x4096x128xi8>
!long = tensor<32x8x32768x128xbf16>
!long8 = tensor<32x8x32768x128xi8>
func.func @lengths(%q: !q, %k: !k8, %l: !long8, %s: tensor<1xf32>, %n: tensor<32xi32>) -> (!q, !q) {
  %kd = flash.dequantize %k scale(%s : tensor<1xf32>) : !k8 -> !k
  %o = flash.attention %q, %kd, %kd key_lengths(%n : tensor<32xi32>) : (!q, !k, !k) -> !q
  %ld = flash.dequantize %l scale(%s : tensor<1xf32>) : !long8 -> !long
  %p = flash.attention %q, %ld, %ld key_lengths(%n : tensor<32xi32>) : (!q, !long, !long) -> !q
  return %o, %p : !q, !q
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

// -----

// There is room for 13 stages, but not for tiles of 16 bits beside them.
!q = tensor<2x4x1x256xbf16>
!k = tensor<2x4x512x256xbf16>
func.func @registers(%q: !q, %k: tensor<2x4x512x256xi8>, %v: tensor<2x4x512x256xi8>, %s: tensor<1xf32>) -> !q {
  %kd = flash.dequantize %k scale(%s : tensor<1xf32>) : tensor<2x4x512x256xi8> -> !k
  %vd = flash.dequantize %v scale(%s : tensor<1xf32>) : tensor<2x4x512x256xi8> -> !k
  %o = flash.attention %q, %kd, %vd schedule(<query_tile = 16, key_tile = 32, stages = 13, features = none>) : (!q, !k, !k) -> !q
  return %o : !q
}
