// Where types say how many rows lie behind each other, of how many sequences, tiles and splits are as of a batch of the mean length.
// RUN: flash-opt %s --flash-attach-target=target=sm_90a --flash-select-schedule | FileCheck %s --check-prefix=ROLES
// RUN: flash-opt %s --flash-attach-target=target=sm_80 --flash-select-schedule | FileCheck %s

!q = tensor<1x32x4x128xf16>
!k = tensor<1x8x16000x128xf16>
!qs = tensor<4x32x4x128xf16>
!ks = tensor<4x8x16000x128xf16>
!n = tensor<4xi32>
// CHECK: flash.attention {{.*}}packed_heads = 4, {{.*}}split_ctas = 
// ROLES: flash.attention {{.*}}packed_heads = 4, {{.*}}features = specialize_warps|overlap|lazy_rescale|bulk_store, {{.*}}split_ctas = 
func.func @decode(%q: !q, %k: !k, %of: tensor<5xi32>, %to: tensor<5xi32>) -> !q {
  %qs, %nq = flash.unpack %q by %of : !q, tensor<5xi32> -> !qs, !n
  %ks, %nk = flash.unpack %k by %to : !k, tensor<5xi32> -> !ks, !n
  %os = flash.attention %qs, %ks, %ks mask(#flash.causal) query_lengths(%nq : !n) key_lengths(%nk : !n) : (!qs, !ks, !ks) -> !qs
  %e = tensor.empty() : !q
  %o = flash.pack %os by %of into %e : !qs, tensor<5xi32> into !q
  return %o : !q
}
