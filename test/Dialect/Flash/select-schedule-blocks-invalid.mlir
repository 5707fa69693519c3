// RUN: flash-opt %s --split-input-file --verify-diagnostics --flash-select-schedule
// RUN: not flash-opt %s --split-input-file --flash-attach-target=target=sm_80 --flash-select-schedule 2>&1 | FileCheck %s

// Tensor cores have multiples of 16.
// CHECK: blocks have a multiple of 16 keys, got 20; the nearest is 32
// CHECK: key_tile must divide the 48 keys of a block, got 32; the nearest is 48

!t = tensor<2x16x4096x64xf16>
!l = tensor<?x?x?x?xi32>
func.func @written(%q: !t, %l: !l) -> !t {
  // expected-error @below {{cannot be scheduled: query_tile must divide the 128 queries of a block, got 96; the nearest is 128}}
  %o = flash.attention %q, %q, %q blocks(%l, %l : !l, !l) of [128, 128] schedule(<query_tile = 96>) : (!t, !t, !t) -> !t
  return %o : !t
}

// -----

!t = tensor<1x4x256x64xf16>
!l = tensor<?x?x?x?xi32>
func.func @of_20(%q: !t, %l: !l) -> !t {
  // expected-error @below {{cannot be scheduled: blocks have a multiple of 8 keys, got 20; the nearest is 24}}
  %o = flash.attention %q, %q, %q blocks(%l, %l : !l, !l) of [128, 20] : (!t, !t, !t) -> !t
  return %o : !t
}

// -----

!t = tensor<1x4x192x64xf16>
!l = tensor<?x?x?x?xi32>
func.func @of_48(%q: !t, %l: !l) -> !t {
  // expected-error @below {{cannot be scheduled: key_tile must divide the 48 keys of a block, got 32; the nearest is 24}}
  %o = flash.attention %q, %q, %q blocks(%l, %l : !l, !l) of [64, 48] schedule(<key_tile = 32>) : (!t, !t, !t) -> !t
  return %o : !t
}

// -----

!t = tensor<2x16x4096x64xf16>
!l = tensor<?x?x?x?xi32>
func.func @written_keys(%q: !t, %l: !l) -> !t {
  // expected-error @below {{cannot be scheduled: key_tile must divide the 96 keys of a block, got 64; the nearest is 48}}
  %o = flash.attention %q, %q, %q blocks(%l, %l : !l, !l) of [128, 96] schedule(<key_tile = 64>) : (!t, !t, !t) -> !t
  return %o : !t
}

// -----

!t = tensor<2x16x16x64xf16>
!k = tensor<2x4x4096x64xf16>
!l = tensor<?x?x?x?xi32>
func.func @packed(%q: !t, %k: !k, %l: !l) -> !t {
  // expected-error @below {{cannot be scheduled: lists of blocks that are given are of one head each; leave out packed_heads}}
  %o = flash.attention %q, %k, %k blocks(%l, %l : !l, !l) of [128, 128] schedule(<packed_heads = 4>) : (!t, !k, !k) -> !t
  return %o : !t
}

// -----

!t = tensor<2x16x4096x64xf16>
!s = tensor<2x16x4096xf32>
!l = tensor<?x?x?x?xi32>
func.func @steps(%q: !t, %lse: !s, %l: !l) -> !t {
  // expected-error @below {{cannot be scheduled: query_step must divide the 128 queries of a block, got 48; the nearest is 64}}
  %dq, %dk, %dv = flash.attention_grad %q, %q, %q, %q, %lse, %q blocks(%l, %l : !l, !l) query_blocks(%l, %l : !l, !l) of [128, 128] schedule(<query_step = 48>)
      : (!t, !t, !t, !t, !s, !t) -> (!t, !t, !t)
  return %dq : !t
}
