// How long packed sequences are only the data tell: blocks claim their tiles, and gradients are one program. Keys are not
// split, since the number of sequences would decide the bits of each.
// RUN: flash-opt %s --flash-attach-target=target=sm_90a --flash-select-schedule | FileCheck %s
// RUN: flash-opt %s --flash-attach-target=target=sm_90a --flash-select-schedule='schedule=features=-persistent' | FileCheck %s --check-prefix=LEFT --implicit-check-not=claim_tiles
// RUN: flash-opt %s --flash-attach-target=target=sm_80 --flash-select-schedule | FileCheck %s --check-prefix=NOSPLIT --implicit-check-not=split_ctas

!m = tensor<1x4x?x64xf16>
!v = tensor<?x4x?x64xf16>
!l = tensor<?x4x?xf32>
!n = tensor<?xi32>
// LEFT-LABEL:  func.func @packed(
// LEFT:          features = specialize_warps|overlap|ping_pong|lazy_rescale|bulk_store|skip_rows,
// CHECK-LABEL: func.func @packed(
// CHECK:         flash.attention %
// CHECK-SAME:    features = specialize_warps|overlap|ping_pong|lazy_rescale|persistent|bulk_store|claim_tiles|skip_rows,
// CHECK-SAME:    num_splits = 1
// NOSPLIT:       flash.attention %{{.*}}num_splits = 1
// CHECK:         flash.attention_grad %
// CHECK-SAME:    products = 5
// CHECK-SAME:    features = specialize_warps|persistent|bulk_store|defer_products|claim_tiles,
func.func @packed(%q: !m, %offsets: !n, %l: !l, %g: !v) -> (!v, !v, !v, !v) {
  %x, %n = flash.unpack %q by %offsets : !m, !n -> !v, !n
  %o = flash.attention %x, %x, %x mask(#flash.causal) query_lengths(%n : !n) key_lengths(%n : !n) : (!v, !v, !v) -> !v
  %0:3 = flash.attention_grad %x, %x, %x, %o, %l, %g mask(#flash.causal) query_lengths(%n : !n) key_lengths(%n : !n)
      : (!v, !v, !v, !v, !l, !v) -> (!v, !v, !v)
  return %o, %0#0, %0#1, %0#2 : !v, !v, !v, !v
}

!mw = tensor<1x4x?x256xf16>
!w = tensor<?x4x?x256xf16>
// CHECK-LABEL: func.func @wide(
// CHECK:         flash.attention %{{.*}}num_splits = 1
// NOSPLIT:       flash.attention %{{.*}}num_splits = 1
func.func @wide(%q: !mw, %offsets: !n) -> !w {
  %x, %n = flash.unpack %q by %offsets : !mw, !n -> !w, !n
  %o = flash.attention %x, %x, %x query_lengths(%n : !n) key_lengths(%n : !n) : (!w, !w, !w) -> !w
  return %o : !w
}
