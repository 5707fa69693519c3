// Tiles divide the blocks of the lists that a caller gives, whichever the models would have.
// RUN: flash-opt %s --split-input-file --flash-select-schedule | FileCheck %s --check-prefix=CPU
// RUN: flash-opt %s --split-input-file --flash-attach-target=target=sm_80 --flash-select-schedule | FileCheck %s --check-prefix=SM80
// RUN: flash-opt %s --split-input-file --flash-attach-target=target=sm_90a --flash-select-schedule | FileCheck %s --check-prefix=SM90

!t = tensor<2x16x4096x64xf16>
!s = tensor<2x16x4096xf32>
!l = tensor<?x?x?x?xi32>
// CPU-LABEL:  func @of_128(
// CPU:        schedule(<query_tile = 128, key_tile = 128, packed_heads = 1>)
// CPU:        schedule(<query_tile = 64, key_tile = 64, products = 5>)
// SM80-LABEL: func @of_128(
// SM80:       schedule(<query_tile = 128, key_tile = 64, packed_heads = 1,
// SM80:       schedule(<query_tile = 32, key_tile = 64
// SM80-NOT:   products = 5
// SM90-LABEL: func @of_128(
// SM90:       schedule(<query_tile = 128, key_tile = 128, packed_heads = 1, {{.*}}specialize_warps
// SM90:       schedule(<query_tile = 128, key_tile = 128, query_step = 64, {{.*}}products = 7, {{.*}}specialize_warps
func.func @of_128(%q: !t, %lse: !s, %l: !l) -> (!t, !t) {
  %o = flash.attention %q, %q, %q blocks(%l, %l : !l, !l) of [128, 128] : (!t, !t, !t) -> !t
  %dq, %dk, %dv = flash.attention_grad %q, %q, %q, %o, %lse, %o blocks(%l, %l : !l, !l) query_blocks(%l, %l : !l, !l) of [128, 128]
      : (!t, !t, !t, !t, !s, !t) -> (!t, !t, !t)
  return %o, %dq : !t, !t
}

// -----

!t = tensor<2x16x4096x64xf16>
!l = tensor<?x?x?x?xi32>
// Warps have no roles where tiles are no multiple of 64 queries.
// CPU-LABEL:  func @of_48(
// CPU:        schedule(<query_tile = 48, key_tile = 80,
// SM80-LABEL: func @of_48(
// SM80:       schedule(<query_tile = 16, key_tile = 16, {{.*}}features = none
// SM90-LABEL: func @of_48(
// SM90:       schedule(<query_tile = 16, key_tile = 16, {{.*}}features = none
func.func @of_48(%q: !t, %l: !l) -> !t {
  %o = flash.attention %q, %q, %q blocks(%l, %l : !l, !l) of [48, 80] : (!t, !t, !t) -> !t
  return %o : !t
}

// -----

!t = tensor<2x16x4096x64xf16>
!l = tensor<?x?x?x?xi32>
// Of divisors those that are tiles: 76 is none.
// CPU-LABEL:  func @of_304(
// CPU:        schedule(<query_tile = 152, key_tile = 152,
// SM80-LABEL: func @of_304(
// SM80:       schedule(<query_tile = 16, key_tile = 16,
// SM90-LABEL: func @of_304(
// SM90:       schedule(<query_tile = 16, key_tile = 16,
func.func @of_304(%q: !t, %l: !l) -> !t {
  %o = flash.attention %q, %q, %q blocks(%l, %l : !l, !l) of [304, 304] : (!t, !t, !t) -> !t
  return %o : !t
}
