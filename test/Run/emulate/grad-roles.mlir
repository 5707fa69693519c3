// Gradients where warps have roles, with what schedules propose and what not:
// ordered additions, persistent blocks, other tiles, two programs of keys, of which one has rotated loops.
// DEFINE: %{features} = specialize_warps|bulk_store
// DEFINE: %{sizes} = --shape 0=1x2x130x64 --shape 1=1x1x170x64 --shape 2=1x1x170x48 --shape 3=1x2x130x48 --shape 4=1
// DEFINE: %{schedule} =
// DEFINE: %{masked} = sed 's/SCHEDULE/%{schedule}/' %s | flash-run - --function=masked --target=emulate:sm_90a --check
// DEFINE: %{open} = sed 's/SCHEDULE/%{schedule}/' %s | flash-run - --function=open %{sizes} --target=emulate:sm_90a --check
// REDEFINE: %{schedule} = features = %{features}
// RUN: %{masked} | FileCheck %s
// RUN: %{open} | FileCheck %s
// REDEFINE: %{schedule} = features = %{features}|ping_pong|persistent
// RUN: %{masked} | FileCheck %s
// RUN: %{open} | FileCheck %s
// REDEFINE: %{schedule} = features = %{features}|overlap, key_programs = 2
// RUN: %{masked} | FileCheck %s
// REDEFINE: %{schedule} = features = %{features}|ping_pong
// RUN: %{open} | FileCheck %s
// REDEFINE: %{schedule} = features = %{features}, query_tile = 64, key_tile = 64, key_step = 96, query_step = 128, key_programs = 2
// RUN: %{masked} | FileCheck %s
// REDEFINE: %{schedule} = features = %{features}, key_programs = 2, key_program_stages = 1
// RUN: %{masked} | FileCheck %s
// RUN: %{open} | FileCheck %s
// CHECK: check: ok
!q = tensor<1x4x200x64xf16>
!k = tensor<1x2x150x64xf16>
!l = tensor<1x4x200xf32>
func.func @masked(%q: !q, %k: !k, %v: !k, %do: !q) -> (!q, !k, !k) {
  %o, %lse = flash.attention %q, %k, %v mask(#flash.window<left = 100>) : (!q, !k, !k) -> (!q, !l)
  %dq, %dk, %dv = flash.attention_grad %q, %k, %v, %o, %lse, %do mask(#flash.window<left = 100>) schedule(<SCHEDULE>)
      : (!q, !k, !k, !q, !l, !q) -> (!q, !k, !k)
  return %dq, %dk, %dv : !q, !k, !k
}

!qo = tensor<?x?x?x64xbf16>
!ko = tensor<?x?x?x64xbf16>
!vo = tensor<?x?x?x48xbf16>
!oo = tensor<?x?x?x48xbf16>
!lo = tensor<?x?x?xf32>
func.func @open(%q: !qo, %k: !ko, %v: !vo, %do: !oo, %n: tensor<?xi32>) -> (!qo, !ko, !vo) {
  %o, %lse = flash.attention %q, %k, %v lengths(%n : tensor<?xi32>) : (!qo, !ko, !vo) -> (!oo, !lo)
  %dq, %dk, %dv = flash.attention_grad %q, %k, %v, %o, %lse, %do lengths(%n : tensor<?xi32>) schedule(<SCHEDULE>)
      : (!qo, !ko, !vo, !oo, !lo, !oo) -> (!qo, !ko, !vo)
  return %dq, %dk, %dv : !qo, !ko, !vo
}
