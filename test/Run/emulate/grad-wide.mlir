// Gradients of wide keys and values as one program: with one stage of the gradients of scores, and keys that are copied
// without NaN and infinities to the stage of a sum. Odd lengths, masks, groups, lengths of batches, keys that are not
// finite and are left out, and head dimensions whose rows are no multiple of 128 bytes.
// DEFINE: %{run} = flash-run %s --target=emulate:sm_90a --check
// RUN: %{run} --function=full | FileCheck %s
// RUN: %{run} --function=causal | FileCheck %s
// RUN: %{run} --function=causal --fill=1=nan@297 | FileCheck %s
// RUN: %{run} --function=window --fill=1=inf@5 | FileCheck %s
// RUN: %{run} --function=lengths --fill=4=150@0 | FileCheck %s
// RUN: %{run} --function=narrow_keys --fill=1=nan@297 | FileCheck %s
// CHECK: check: ok

// RUN: flash-run %s --target=emulate:sm_90a --function=causal --dump=l2 | FileCheck %s --check-prefix=L2
// L2: tile.ring.copy_finite

#schedule = #flash.schedule<products = 5>

!q = tensor<1x2x140x192xbf16>
!k = tensor<1x2x131x192xbf16>
!v = tensor<1x2x131x128xbf16>
!o = tensor<1x2x140x128xbf16>
!l = tensor<1x2x140xf32>
func.func @full(%q: !q, %k: !k, %v: !v, %do: !o) -> (!q, !k, !v) {
  %o, %lse = flash.attention %q, %k, %v : (!q, !k, !v) -> (!o, !l)
  %dq, %dk, %dv = flash.attention_grad %q, %k, %v, %o, %lse, %do schedule(#schedule)
      : (!q, !k, !v, !o, !l, !o) -> (!q, !k, !v)
  return %dq, %dk, %dv : !q, !k, !v
}

// Keys 297 to 299 are those of no query that others see.
!qc = tensor<1x2x300x160xf16>
!kc = tensor<1x1x300x160xf16>
!lc = tensor<1x2x300xf32>
func.func @causal(%q: !qc, %k: !kc, %v: !kc, %do: !qc) -> (!qc, !kc, !kc) {
  %o, %lse = flash.attention %q, %k, %v mask(#flash.causal) : (!qc, !kc, !kc) -> (!qc, !lc)
  %dq, %dk, %dv = flash.attention_grad %q, %k, %v, %o, %lse, %do mask(#flash.causal) schedule(#schedule)
      : (!qc, !kc, !kc, !qc, !lc, !qc) -> (!qc, !kc, !kc)
  return %dq, %dk, %dv : !qc, !kc, !kc
}

!qw = tensor<1x1x200x144xbf16>
!vw = tensor<1x1x200x176xbf16>
!lw = tensor<1x1x200xf32>
func.func @window(%q: !qw, %k: !qw, %v: !vw, %do: !vw) -> (!qw, !qw, !vw) {
  %o, %lse = flash.attention %q, %k, %v mask(#flash.window<left = 70, right = 10>) : (!qw, !qw, !vw) -> (!vw, !lw)
  %dq, %dk, %dv = flash.attention_grad %q, %k, %v, %o, %lse, %do mask(#flash.window<left = 70, right = 10>) schedule(#schedule)
      : (!qw, !qw, !vw, !vw, !lw, !vw) -> (!qw, !qw, !vw)
  return %dq, %dk, %dv : !qw, !qw, !vw
}

!n = tensor<1xi32>
func.func @lengths(%q: !q, %k: !k, %v: !v, %do: !o, %n: !n) -> (!q, !k, !v) {
  %o, %lse = flash.attention %q, %k, %v lengths(%n : !n) : (!q, !k, !v) -> (!o, !l)
  %dq, %dk, %dv = flash.attention_grad %q, %k, %v, %o, %lse, %do lengths(%n : !n) schedule(#schedule)
      : (!q, !k, !v, !o, !l, !o) -> (!q, !k, !v)
  return %dq, %dk, %dv : !q, !k, !v
}

// Keys whose halves begin with panels of eight columns.
!qn = tensor<1x1x300x112xbf16>
!vn = tensor<1x1x300x160xbf16>
!ln = tensor<1x1x300xf32>
func.func @narrow_keys(%q: !qn, %k: !qn, %v: !vn, %do: !vn) -> (!qn, !qn, !vn) {
  %o, %lse = flash.attention %q, %k, %v mask(#flash.causal) : (!qn, !qn, !vn) -> (!vn, !ln)
  %dq, %dk, %dv = flash.attention_grad %q, %k, %v, %o, %lse, %do mask(#flash.causal) schedule(#schedule)
      : (!qn, !qn, !vn, !vn, !ln, !vn) -> (!qn, !qn, !vn)
  return %dq, %dk, %dv : !qn, !qn, !vn
}
