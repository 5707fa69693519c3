// Gradients as one program, whose blocks add to gradients of queries in order: with keys
// of several numbers of tiles, masks from either side, groups, lengths, open sizes, and
// with more heads than fit a wave, of which the last ones come forwards. A
// block that comes before its rank is an error of the emulation.
// DEFINE: %{run} = flash-run %s --target=emulate:sm_90a --check
// DEFINE: %{open} = --shape 0=1x2x130x64 --shape 1=1x1x390x64 --shape 2=1x1x390x48 --shape 3=1x2x130x48 --shape 4=1
// DEFINE: %{no-queries} = --shape 0=1x2x0x64 --shape 1=1x1x390x64 --shape 2=1x1x390x48 --shape 3=1x2x0x48 --shape 4=1
// RUN: %{run} --function=causal | FileCheck %s
// RUN: %{run} --function=window | FileCheck %s
// RUN: %{run} --function=unseen | FileCheck %s
// RUN: %{run} --function=heads | FileCheck %s
// RUN: %{run} --function=open %{open} --fill=4=300@0 | FileCheck %s
// RUN: %{run} --function=open %{open} --fill=4=0@0 | FileCheck %s
// RUN: %{run} --function=open %{no-queries} --fill=4=300@0 | FileCheck %s
// CHECK: check: ok

// RUN: flash-run %s --target=emulate:sm_90a --function=causal --dump=l2 | FileCheck %s --check-prefix=L2
// L2: tile.add_in_order

#schedule = #flash.schedule<products = 5>

!qh = tensor<2x24x300x64xf16>
!kh = tensor<2x12x290x64xf16>
!lh = tensor<2x24x300xf32>
func.func @heads(%q: !qh, %k: !kh, %v: !kh, %do: !qh) -> (!qh, !kh, !kh) {
  %o, %lse = flash.attention %q, %k, %v mask(#flash.window<left = 100>) : (!qh, !kh, !kh) -> (!qh, !lh)
  %dq, %dk, %dv = flash.attention_grad %q, %k, %v, %o, %lse, %do mask(#flash.window<left = 100>) schedule(#schedule)
      : (!qh, !kh, !kh, !qh, !lh, !qh) -> (!qh, !kh, !kh)
  return %dq, %dk, %dv : !qh, !kh, !kh
}

!qc = tensor<1x4x300x128xf16>
!kc = tensor<1x2x290x128xf16>
!lc = tensor<1x4x300xf32>
func.func @causal(%q: !qc, %k: !kc, %v: !kc, %do: !qc) -> (!qc, !kc, !kc) {
  %o, %lse = flash.attention %q, %k, %v mask(#flash.causal) : (!qc, !kc, !kc) -> (!qc, !lc)
  %dq, %dk, %dv = flash.attention_grad %q, %k, %v, %o, %lse, %do mask(#flash.causal) schedule(#schedule)
      : (!qc, !kc, !kc, !qc, !lc, !qc) -> (!qc, !kc, !kc)
  return %dq, %dk, %dv : !qc, !kc, !kc
}

!q = tensor<1x2x500x64xbf16>
!l = tensor<1x2x500xf32>
func.func @window(%q: !q, %k: !q, %v: !q, %do: !q) -> (!q, !q, !q) {
  %o, %lse = flash.attention %q, %k, %v mask(#flash.window<left = 100, right = 60>) : (!q, !q, !q) -> (!q, !l)
  %dq, %dk, %dv = flash.attention_grad %q, %k, %v, %o, %lse, %do mask(#flash.window<left = 100, right = 60>) schedule(#schedule)
      : (!q, !q, !q, !q, !l, !q) -> (!q, !q, !q)
  return %dq, %dk, %dv : !q, !q, !q
}

// Most queries see no key.
!ku = tensor<1x2x140x64xbf16>
func.func @unseen(%q: !q, %k: !ku, %v: !ku, %do: !q) -> (!q, !ku, !ku) {
  %o, %lse = flash.attention %q, %k, %v mask(#flash.window<left = 5>) : (!q, !ku, !ku) -> (!q, !l)
  %dq, %dk, %dv = flash.attention_grad %q, %k, %v, %o, %lse, %do mask(#flash.window<left = 5>) schedule(#schedule)
      : (!q, !ku, !ku, !q, !l, !q) -> (!q, !ku, !ku)
  return %dq, %dk, %dv : !q, !ku, !ku
}

!qo = tensor<?x?x?x64xbf16>
!ko = tensor<?x?x?x64xbf16>
!vo = tensor<?x?x?x48xbf16>
!oo = tensor<?x?x?x48xbf16>
!lo = tensor<?x?x?xf32>
func.func @open(%q: !qo, %k: !ko, %v: !vo, %do: !oo, %n: tensor<?xi32>) -> (!qo, !ko, !vo) {
  %o, %lse = flash.attention %q, %k, %v lengths(%n : tensor<?xi32>) : (!qo, !ko, !vo) -> (!oo, !lo)
  %dq, %dk, %dv = flash.attention_grad %q, %k, %v, %o, %lse, %do lengths(%n : tensor<?xi32>) schedule(#schedule)
      : (!qo, !ko, !vo, !oo, !lo, !oo) -> (!qo, !ko, !vo)
  return %dq, %dk, %dv : !qo, !ko, !vo
}
