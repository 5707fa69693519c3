// Elements of 8 bits are multiplied by warps with roles, whose products with values have registers of their own.
// RUN: flash-opt %s --flash-attach-target=target=sm_90a --flash-select-schedule --split-input-file --verify-diagnostics | FileCheck %s

// CHECK-LABEL: func @wide
// CHECK: schedule(<query_tile = 128, key_tile = 128, {{.*}}, features = specialize_warps|overlap|persistent|bulk_store, num_splits = 1>)
!q = tensor<2x16x8192x128xbf16>
func.func @wide(%q: tensor<2x16x8192x128xf8E4M3FN>, %s: tensor<2x16xf32>) -> !q {
  %qd = flash.dequantize %q scale(%s : tensor<2x16xf32>) : tensor<2x16x8192x128xf8E4M3FN> -> !q
  %o = flash.attention %qd, %qd, %qd precision(fp8) : (!q, !q, !q) -> !q
  return %o : !q
}

// -----

// CHECK-LABEL: func @masked
// CHECK: schedule(<query_tile = 128, key_tile = 128, {{.*}}, features = specialize_warps|overlap|ping_pong|persistent|bulk_store, num_splits = 1>)
!q = tensor<2x16x8192x128xbf16>
func.func @masked(%q: tensor<2x16x8192x128xf8E4M3FN>, %s: tensor<2x16xf32>) -> !q {
  %qd = flash.dequantize %q scale(%s : tensor<2x16xf32>) : tensor<2x16x8192x128xf8E4M3FN> -> !q
  %o = flash.attention %qd, %qd, %qd mask(#flash.causal) precision(fp8) : (!q, !q, !q) -> !q
  return %o : !q
}

// -----

// CHECK-LABEL: func @narrow
// CHECK: schedule(<query_tile = 192, key_tile = 96, {{.*}}, features = specialize_warps|overlap|ping_pong|persistent|bulk_store, num_splits = 1>)
!q = tensor<2x16x8192x64xf16>
func.func @narrow(%q: tensor<2x16x8192x64xf8E4M3FN>, %s: tensor<1xf32>) -> !q {
  %qd = flash.dequantize %q scale(%s : tensor<1xf32>) : tensor<2x16x8192x64xf8E4M3FN> -> !q
  %o = flash.attention %qd, %qd, %qd mask(#flash.causal) precision(fp8) : (!q, !q, !q) -> !q
  return %o : !q
}

// -----

!q = tensor<2x4x128x64xbf16>
func.func @keys(%q: tensor<2x4x128x64xf8E4M3FN>, %s: tensor<1xf32>) -> !q {
  %qd = flash.dequantize %q scale(%s : tensor<1xf32>) : tensor<2x4x128x64xf8E4M3FN> -> !q
  // expected-error @below {{cannot be scheduled: key_tile must be a multiple of 32 for precision(fp8), got 80; the nearest is 96}}
  %o = flash.attention %qd, %qd, %qd precision(fp8) schedule(<key_tile = 80>) : (!q, !q, !q) -> !q
  return %o : !q
}

// -----

!q = tensor<2x4x128x24xbf16>
func.func @columns(%q: tensor<2x4x128x24xf8E4M3FN>, %s: tensor<1xf32>) -> !q {
  %qd = flash.dequantize %q scale(%s : tensor<1xf32>) : tensor<2x4x128x24xf8E4M3FN> -> !q
  // expected-error @below {{cannot be scheduled: precision(fp8) takes head dimensions that are multiples of 16, got 24; leave it out, or use 32}}
  %o = flash.attention %qd, %qd, %qd precision(fp8) : (!q, !q, !q) -> !q
  return %o : !q
}

// -----

!q = tensor<2x4x128x320xbf16>
func.func @divided(%q: tensor<2x4x128x320xf8E4M3FN>, %s: tensor<1xf32>) -> !q {
  %qd = flash.dequantize %q scale(%s : tensor<1xf32>) : tensor<2x4x128x320xf8E4M3FN> -> !q
  // expected-error @below {{cannot be scheduled: precision(fp8) is of warpgroups that have all columns of a block; leave divide_columns out, or choose value_columns}}
  %o = flash.attention %qd, %qd, %qd precision(fp8) schedule(<query_tile = 64, key_tile = 64, features = specialize_warps|divide_columns>) : (!q, !q, !q) -> !q
  return %o : !q
}

// -----

!q = tensor<2x4x128x128xbf16>
func.func @lazy(%q: tensor<2x4x128x128xf8E4M3FN>, %s: tensor<1xf32>) -> !q {
  %qd = flash.dequantize %q scale(%s : tensor<1xf32>) : tensor<2x4x128x128xf8E4M3FN> -> !q
  // expected-error @below {{cannot be scheduled: lazy_rescale leaves exponentials as large as 2^8, and with precision(fp8) they are that large without it; leave it out of the features}}
  %o = flash.attention %qd, %qd, %qd precision(fp8) schedule(<features = specialize_warps|lazy_rescale>) : (!q, !q, !q) -> !q
  return %o : !q
}

// -----

!q = tensor<2x4x128x128xbf16>
func.func @without_roles(%q: tensor<2x4x128x128xf8E4M3FN>, %s: tensor<1xf32>) -> !q {
  %qd = flash.dequantize %q scale(%s : tensor<1xf32>) : tensor<2x4x128x128xf8E4M3FN> -> !q
  // expected-error @below {{cannot be scheduled: precision(fp8) is of warps with roles, which multiply 64, 128 or 192 queries by a multiple of 32 keys; choose such tiles and features, or leave them out}}
  %o = flash.attention %qd, %qd, %qd precision(fp8) schedule(<features = none>) : (!q, !q, !q) -> !q
  return %o : !q
}

// -----

// Blocks have half of the columns.
// CHECK-LABEL: func @widest
// CHECK: schedule(<query_tile = {{64|128}}, key_tile = 128, value_columns = 128,
!q = tensor<2x4x512x256xbf16>
func.func @widest(%q: tensor<2x4x512x256xf8E4M3FN>, %s: tensor<1xf32>) -> !q {
  %qd = flash.dequantize %q scale(%s : tensor<1xf32>) : tensor<2x4x512x256xf8E4M3FN> -> !q
  %o = flash.attention %qd, %qd, %qd precision(fp8) : (!q, !q, !q) -> !q
  return %o : !q
}

// -----

// The accumulator and what a step adds to it.
!q = tensor<2x4x128x192xbf16>
func.func @registers(%q: tensor<2x4x128x192xf8E4M3FN>, %s: tensor<1xf32>) -> !q {
  %qd = flash.dequantize %q scale(%s : tensor<1xf32>) : tensor<2x4x128x192xf8E4M3FN> -> !q
  // expected-error @below {{cannot be scheduled: scores, probabilities and accumulator of 64 queries and 64 keys need 256 registers of a thread, and with 1 warpgroups there are 240; choose a smaller key_tile}}
  %o = flash.attention %qd, %qd, %qd precision(fp8) schedule(<query_tile = 64, key_tile = 64, value_columns = 192>) : (!q, !q, !q) -> !q
  return %o : !q
}
