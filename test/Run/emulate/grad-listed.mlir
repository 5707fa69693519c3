// Gradients as one program that goes through lists of tiles, which say the rank
// of each block: documents, of groups of heads and with lengths and open sizes, a window of each head, and
// a mask of positions that leaves no ranges. A block that comes before its
// rank is an error of the emulation.
// DEFINE: %{run} = flash-run %s --target=emulate:sm_90a --check
// DEFINE: %{open} = --shape 0=2x2x300x64 --shape 1=2x1x390x64 --shape 2=2x1x390x48 --shape 3=2x2x300x48 --shape 4=2 --shape 5=1
// RUN: %{run} --function=documents --fill=4=70 | FileCheck %s
// RUN: %{run} --function=heads --fill=4=90 --fill=4=200@1 | FileCheck %s
// RUN: %{run} --function=open %{open} --fill=4=300@0 --fill=4=0@1 --fill=5=40 | FileCheck %s
// RUN: %{run} --function=open --shape 0=2x2x300x64 --shape 1=2x1x0x64 --shape 2=2x1x0x48 --shape 3=2x2x300x48 --shape 4=2 --shape 5=1 --fill=5=40 | FileCheck %s
// RUN: %{run} --function=pixels | FileCheck %s
// CHECK: check: ok

// RUN: flash-run %s --target=emulate:sm_90a --function=documents --dump=l2 | FileCheck %s --check-prefix=L2
// L2: memref.load %{{.*}} : memref<1x1x5x10xi32
// L2: tile.add_in_order

#schedule = #flash.schedule<products = 5, block_map = 1>

!q = tensor<1x4x600x128xf16>
!k = tensor<1x2x600x128xf16>
!l = tensor<1x4x600xf32>
func.func @documents(%q: !q, %k: !k, %v: !k, %do: !q, %shift: tensor<1xi32>) -> (!q, !k, !k) {
  %c0 = arith.constant 0 : index
  %length = arith.constant 250 : index
  %o, %lse = flash.attention %q, %k, %v mask(#flash.causal) score {
  ^bb0(%x: f32, %b: index, %h: index, %i: index, %j: index):
    %s = tensor.extract %shift[%c0] : tensor<1xi32>
    %first = arith.index_cast %s : i32 to index
    %is = arith.addi %i, %first : index
    %js = arith.addi %j, %first : index
    %id = arith.divui %is, %length : index
    %jd = arith.divui %js, %length : index
    %same = arith.cmpi eq, %id, %jd : index
    flash.yield %x keep %same : f32
  } : (!q, !k, !k) -> (!q, !l)
  %dq, %dk, %dv = flash.attention_grad %q, %k, %v, %o, %lse, %do mask(#flash.causal) schedule(#schedule) score {
  ^bb0(%x: f32, %b: index, %h: index, %i: index, %j: index):
    %s = tensor.extract %shift[%c0] : tensor<1xi32>
    %first = arith.index_cast %s : i32 to index
    %is = arith.addi %i, %first : index
    %js = arith.addi %j, %first : index
    %id = arith.divui %is, %length : index
    %jd = arith.divui %js, %length : index
    %same = arith.cmpi eq, %id, %jd : index
    flash.yield %x keep %same : f32
  } : (!q, !k, !k, !q, !l, !q) -> (!q, !k, !k)
  return %dq, %dk, %dv : !q, !k, !k
}

!qh = tensor<1x2x500x64xbf16>
!lh = tensor<1x2x500xf32>
func.func @heads(%q: !qh, %k: !qh, %v: !qh, %do: !qh, %windows: tensor<2xi32>) -> (!qh, !qh, !qh) {
  %o, %lse = flash.attention %q, %k, %v score {
  ^bb0(%x: f32, %b: index, %h: index, %i: index, %j: index):
    %w = tensor.extract %windows[%h] : tensor<2xi32>
    %width = arith.index_cast %w : i32 to index
    %d = arith.subi %i, %j : index
    %in = arith.cmpi ule, %d, %width : index
    flash.yield %x keep %in : f32
  } : (!qh, !qh, !qh) -> (!qh, !lh)
  %dq, %dk, %dv = flash.attention_grad %q, %k, %v, %o, %lse, %do schedule(#schedule) score {
  ^bb0(%x: f32, %b: index, %h: index, %i: index, %j: index):
    %w = tensor.extract %windows[%h] : tensor<2xi32>
    %width = arith.index_cast %w : i32 to index
    %d = arith.subi %i, %j : index
    %in = arith.cmpi ule, %d, %width : index
    flash.yield %x keep %in : f32
  } : (!qh, !qh, !qh, !qh, !lh, !qh) -> (!qh, !qh, !qh)
  return %dq, %dk, %dv : !qh, !qh, !qh
}

!qo = tensor<?x?x?x64xf16>
!vo = tensor<?x?x?x48xf16>
!lo = tensor<?x?x?xf32>
func.func @open(%q: !qo, %k: !qo, %v: !vo, %do: !vo, %n: tensor<?xi32>, %shift: tensor<?xi32>) -> (!qo, !qo, !vo) {
  %c0 = arith.constant 0 : index
  %length = arith.constant 130 : index
  %o, %lse = flash.attention %q, %k, %v lengths(%n : tensor<?xi32>) score {
  ^bb0(%x: f32, %b: index, %h: index, %i: index, %j: index):
    %s = tensor.extract %shift[%c0] : tensor<?xi32>
    %first = arith.index_cast %s : i32 to index
    %is = arith.addi %i, %first : index
    %id = arith.divui %is, %length : index
    %jd = arith.divui %j, %length : index
    %same = arith.cmpi eq, %id, %jd : index
    flash.yield %x keep %same : f32
  } : (!qo, !qo, !vo) -> (!vo, !lo)
  %dq, %dk, %dv = flash.attention_grad %q, %k, %v, %o, %lse, %do lengths(%n : tensor<?xi32>) schedule(#schedule) score {
  ^bb0(%x: f32, %b: index, %h: index, %i: index, %j: index):
    %s = tensor.extract %shift[%c0] : tensor<?xi32>
    %first = arith.index_cast %s : i32 to index
    %is = arith.addi %i, %first : index
    %id = arith.divui %is, %length : index
    %jd = arith.divui %j, %length : index
    %same = arith.cmpi eq, %id, %jd : index
    flash.yield %x keep %same : f32
  } : (!qo, !qo, !vo, !vo, !lo, !vo) -> (!qo, !qo, !vo)
  return %dq, %dk, %dv : !qo, !qo, !vo
}

!qp = tensor<1x1x1024x64xf16>
!lp = tensor<1x1x1024xf32>
#own = affine_set<(b, h, i, j)[nq, nk] : (i floordiv 256 - j floordiv 256 == 0)>
#next = affine_set<(b, h, i, j)[nq, nk] : (i floordiv 256 - j floordiv 256 - 2 == 0)>
#pixels = #flash.any_of<[#flash.affine<#own>, #flash.affine<#next>]>
func.func @pixels(%q: !qp, %k: !qp, %v: !qp, %do: !qp) -> (!qp, !qp, !qp) {
  %o, %lse = flash.attention %q, %k, %v mask(#pixels) : (!qp, !qp, !qp) -> (!qp, !lp)
  %dq, %dk, %dv = flash.attention_grad %q, %k, %v, %o, %lse, %do mask(#pixels) schedule(#schedule)
      : (!qp, !qp, !qp, !qp, !lp, !qp) -> (!qp, !qp, !qp)
  return %dq, %dk, %dv : !qp, !qp, !qp
}
