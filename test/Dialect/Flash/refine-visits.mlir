// RUN: flash-opt %s --flash-refine-visits --split-input-file --verify-diagnostics | FileCheck %s

!q = tensor<16x8xf32>
!v = tensor<16xf32>

// Under a causal mask tiles are visited up to the diagonal, and full before it.

// CHECK-DAG:   #[[ZERO:.*]] = affine_map<(d0, d1, d2)[s0, s1] -> (0)>
// CHECK-DAG:   #[[HI:.*]] = affine_map<(d0, d1, d2)[s0, s1] -> (d2 floordiv 16 + 1)>
// CHECK-DAG:   #[[FULL:.*]] = affine_map<(d0, d1, d2)[s0, s1] -> (d2 floordiv 16)>
// CHECK-LABEL: func @causal(
// CHECK:         flash.visit keys
// CHECK-SAME:      tiles(<lo = [#flash.bound<#[[ZERO]]>], hi = [#flash.bound<#[[HI]]>], full_hi = [#flash.bound<#[[FULL]]>]>)
func.func @causal(%q: !q, %k: tensor<1x1x64x8xf32>, %acc: !q, %max: !v, %sum: !v) -> !q {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %c64 = arith.constant 64 : index
  %r:3 = flash.visit keys tile(16) from %c0 to %c64 by %c16 exist(%c64) init(%acc, %max, %sum : !q, !v, !v) {
  ^bb0(%j: index, %rows: index, %a: !q, %m: !v, %l: !v):
    %kt = flash.load_rows %k[%c0, %c0, %j] : tensor<1x1x64x8xf32> -> !q
    %a1, %m1, %l1 = flash.online_attention ins(%q, %kt, %kt : !q, !q, !q) outs(%a, %m, %l : !q, !v, !v)
        at[0, 0, 16, %j] of[64, 64] scale(1.0) mask(#flash.causal)
    flash.next %a1, %m1, %l1 : !q, !v, !v
  }
  return %r#0 : !q
}

// -----

!q = tensor<16x8xf32>
!v = tensor<16xf32>
!t = tensor<1x1x?x8xf32>

// Where both lengths are multiples of the tiles, the full tiles end at the last visited one. Not so where only one length is.

// CHECK-DAG:   #[[HI:.*]] = affine_map<(d0, d1, d2)[s0, s1] -> (s1 ceildiv 16, (d2 - s0 + s1) floordiv 16 + 1)>
// CHECK-DAG:   #[[FULL:.*]] = affine_map<(d0, d1, d2)[s0, s1] -> ((d2 - s0 + s1) floordiv 16)>
// CHECK-DAG:   #[[ANY_HI:.*]] = affine_map<(d0, d1, d2)[s0, s1] -> (s1 ceildiv 16, (d2 - s0 + s1 + 15) floordiv 16 + 1)>
// CHECK-DAG:   #[[ANY_FULL:.*]] = affine_map<(d0, d1, d2)[s0, s1] -> ((d2 - s0 + s1 + 1) floordiv 16)>
// CHECK-LABEL: func @multiples(
// CHECK:         hi = [#flash.bound<#[[HI]]>], full_hi = [#flash.bound<#[[FULL]]>]>)
// CHECK-LABEL: func @no_multiples(
// CHECK:         hi = [#flash.bound<#[[ANY_HI]]>], full_hi = [#flash.bound<#[[ANY_FULL]] if
func.func @multiples(%k: !t, %q: !q, %acc: !q, %max: !v, %sum: !v, %nq: index, %nk: index) -> !q {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %r:3 = flash.visit keys tile(16) from %c0 to %nk by %c16 exist(%nk) multiples([48, 16]) init(%acc, %max, %sum : !q, !v, !v) {
  ^bb0(%j: index, %rows: index, %a: !q, %m: !v, %l: !v):
    %kt = flash.load_rows %k[%c0, %c0, %j] : !t -> !q
    %a1, %m1, %l1 = flash.online_attention ins(%q, %kt, %kt : !q, !q, !q) outs(%a, %m, %l : !q, !v, !v)
        at[0, 0, 16, %j] of[%nq, %nk] scale(1.0) mask(#flash.causal)
    flash.next %a1, %m1, %l1 : !q, !v, !v
  }
  return %r#0 : !q
}
func.func @no_multiples(%k: !t, %q: !q, %acc: !q, %max: !v, %sum: !v, %nq: index, %nk: index) -> !q {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %r:3 = flash.visit keys tile(16) from %c0 to %nk by %c16 exist(%nk) multiples([1, 16]) init(%acc, %max, %sum : !q, !v, !v) {
  ^bb0(%j: index, %rows: index, %a: !q, %m: !v, %l: !v):
    %kt = flash.load_rows %k[%c0, %c0, %j] : !t -> !q
    %a1, %m1, %l1 = flash.online_attention ins(%q, %kt, %kt : !q, !q, !q) outs(%a, %m, %l : !q, !v, !v)
        at[0, 0, 16, %j] of[%nq, %nk] scale(1.0) mask(#flash.causal)
    flash.next %a1, %m1, %l1 : !q, !v, !v
  }
  return %r#0 : !q
}

// -----

!q = tensor<16x8xf32>
!v = tensor<16xf32>

// A mask that leaves all of each visited tile, or nothing, is gone.

// CHECK-LABEL: func @all(
// CHECK:         flash.visit keys
// CHECK-NOT:     mask
// CHECK-LABEL: func @none(
// CHECK:         flash.visit keys
// CHECK-SAME:      tiles(<full_hi
// CHECK-NOT:     mask
// CHECK:         return
func.func @all(%q: !q, %k: tensor<1x1x64x8xf32>, %acc: !q, %max: !v, %sum: !v) -> !q {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %c64 = arith.constant 64 : index
  %r:3 = flash.visit keys tile(16) from %c0 to %c64 by %c16 exist(%c64) init(%acc, %max, %sum : !q, !v, !v) {
  ^bb0(%j: index, %rows: index, %a: !q, %m: !v, %l: !v):
    %kt = flash.load_rows %k[%c0, %c0, %j] : tensor<1x1x64x8xf32> -> !q
    %a1, %m1, %l1 = flash.online_attention ins(%q, %kt, %kt : !q, !q, !q) outs(%a, %m, %l : !q, !v, !v)
        at[0, 0, 16, %j] of[64, 64] scale(1.0) mask(#flash.window<left = 100, right = 100>)
    flash.next %a1, %m1, %l1 : !q, !v, !v
  }
  return %r#0 : !q
}
func.func @none(%q: !q, %k: tensor<1x1x64x8xf32>, %acc: !q, %max: !v, %sum: !v) -> !q {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %c64 = arith.constant 64 : index
  %r:3 = flash.visit keys tile(16) from %c0 to %c64 by %c16 exist(%c64) init(%acc, %max, %sum : !q, !v, !v) {
  ^bb0(%j: index, %rows: index, %a: !q, %m: !v, %l: !v):
    %kt = flash.load_rows %k[%c0, %c0, %j] : tensor<1x1x64x8xf32> -> !q
    %a1, %m1, %l1 = flash.online_attention ins(%q, %kt, %kt : !q, !q, !q) outs(%a, %m, %l : !q, !v, !v)
        at[0, 0, 16, %j] of[64, 64] scale(1.0) mask(#flash.prefix<0>)
    flash.next %a1, %m1, %l1 : !q, !v, !v
  }
  return %r#0 : !q
}

// -----

!q = tensor<16x8xf32>
!v = tensor<16xf32>
!list = tensor<1x2x4x8xi32>
!n = tensor<1x2x4x2xi32>

// Left as they are: lists, tiles between the tiles of the analysis, two steps, extents that only the step knows, and
// a position that is not the visit's.

// CHECK-LABEL: func @list(
// CHECK-NOT:     tiles(<
// CHECK-LABEL: func @shifted(
// CHECK-NOT:     tiles(<
// CHECK-LABEL: func @two_steps(
// CHECK-NOT:     tiles(<
// CHECK-LABEL: func @own_extents(
// CHECK-NOT:     tiles(<
// CHECK-LABEL: func @elsewhere(
// CHECK-NOT:     tiles(<
// CHECK:         return
func.func @list(%b: index, %tiles: !list, %counts: !n, %q: !q, %k: !q, %acc: !q, %max: !v, %sum: !v) -> !q {
  %c64 = arith.constant 64 : index
  %r:3 = flash.visit keys tile(16) exist(%c64) list(%tiles, %counts : !list, !n)[%b, %b, %b] init(%acc, %max, %sum : !q, !v, !v) {
  ^bb0(%j: index, %rows: index, %a: !q, %m: !v, %l: !v):
    %a1, %m1, %l1 = flash.online_attention ins(%q, %k, %k : !q, !q, !q) outs(%a, %m, %l : !q, !v, !v)
        at[%b, 0, 0, %j] of[64, 64] scale(1.0) mask(#flash.causal)
    flash.next %a1, %m1, %l1 : !q, !v, !v
  }
  return %r#0 : !q
}
func.func @shifted(%i: index, %q: !q, %k: !q, %acc: !q, %max: !v, %sum: !v) -> !q {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %c64 = arith.constant 64 : index
  %r:3 = flash.visit keys tile(16) from %c0 to %c64 by %c16 exist(%c64) init(%acc, %max, %sum : !q, !v, !v) {
  ^bb0(%j: index, %rows: index, %a: !q, %m: !v, %l: !v):
    %a1, %m1, %l1 = flash.online_attention ins(%q, %k, %k : !q, !q, !q) outs(%a, %m, %l : !q, !v, !v)
        at[0, 0, %i, %j] of[64, 64] scale(1.0) mask(#flash.causal)
    flash.next %a1, %m1, %l1 : !q, !v, !v
  }
  return %r#0 : !q
}
func.func @two_steps(%q: !q, %k: !q, %acc: !q, %max: !v, %sum: !v) -> !q {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %c64 = arith.constant 64 : index
  %r:3 = flash.visit keys tile(16) from %c0 to %c64 by %c16 exist(%c64) init(%acc, %max, %sum : !q, !v, !v) {
  ^bb0(%j: index, %rows: index, %a: !q, %m: !v, %l: !v):
    %a1, %m1, %l1 = flash.online_attention ins(%q, %k, %k : !q, !q, !q) outs(%a, %m, %l : !q, !v, !v)
        at[0, 0, 0, %j] of[64, 64] scale(1.0) mask(#flash.causal)
    %a2, %m2, %l2 = flash.online_attention ins(%q, %k, %k : !q, !q, !q) outs(%a1, %m1, %l1 : !q, !v, !v)
        at[0, 0, 0, %j] of[64, 64] scale(1.0) mask(#flash.causal)
    flash.next %a2, %m2, %l2 : !q, !v, !v
  }
  return %r#0 : !q
}
func.func @own_extents(%q: !q, %k: !q, %acc: !q, %max: !v, %sum: !v) -> !q {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %c64 = arith.constant 64 : index
  %r:3 = flash.visit keys tile(16) from %c0 to %c64 by %c16 exist(%c64) init(%acc, %max, %sum : !q, !v, !v) {
  ^bb0(%j: index, %rows: index, %a: !q, %m: !v, %l: !v):
    %nq = arith.addi %j, %c16 : index
    %a1, %m1, %l1 = flash.online_attention ins(%q, %k, %k : !q, !q, !q) outs(%a, %m, %l : !q, !v, !v)
        at[0, 0, 0, %j] of[%nq, 64] scale(1.0) mask(#flash.causal)
    flash.next %a1, %m1, %l1 : !q, !v, !v
  }
  return %r#0 : !q
}
func.func @elsewhere(%q: !q, %k: !q, %acc: !q, %max: !v, %sum: !v) -> !q {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %c64 = arith.constant 64 : index
  %r:3 = flash.visit keys tile(16) from %c0 to %c64 by %c16 exist(%c64) init(%acc, %max, %sum : !q, !v, !v) {
  ^bb0(%j: index, %rows: index, %a: !q, %m: !v, %l: !v):
    %k2 = arith.addi %j, %c16 : index
    %a1, %m1, %l1 = flash.online_attention ins(%q, %k, %k : !q, !q, !q) outs(%a, %m, %l : !q, !v, !v)
        at[0, 0, 0, %k2] of[64, 64] scale(1.0) mask(#flash.causal)
    flash.next %a1, %m1, %l1 : !q, !v, !v
  }
  return %r#0 : !q
}

// -----

!q = tensor<16x8xf32>
!r = tensor<16xf32>
!s = tensor<16x16xf32>
#nested = affine_set<(b, h, i, j)[nq, nk] : ((i * 7 + j * 5) floordiv 31 + (i * 3 - j) mod 29 - (j * 11 + i) mod 13 >= 0)>

// Diagonals between those of tiles are left, and of pairs of tiles the ones that start anywhere; a mask that is too
// complicated gets a warning.

// CHECK-LABEL: func @diagonal(
// CHECK:         flash.visit diagonal {{.*}} tiles(<
// CHECK-LABEL: func @between_diagonals(
// CHECK-NOT:     tiles(<
// CHECK-LABEL: func @pairs(
// CHECK:         flash.visit batches {{.*}} tiles(<{{.*}} visited = [#set{{[0-9]*}}], not_full = [#set{{[0-9]*}}]>)
// CHECK-LABEL: func @between_tiles(
// CHECK-NOT:     tiles(<
// CHECK-LABEL: func @too_complicated(
func.func @diagonal(%c: tensor<64xf32>, %q: !q, %r: !r, %sum: !s) -> !s {
  %c16 = arith.constant 16 : index
  %c64 = arith.constant 64 : index
  %0 = flash.visit diagonal tile(16) from %c16 to %c64 by %c16 distance %c16 exist(%c64, %c64) init(%sum : !s) {
  ^bb0(%i: index, %j: index, %nq: index, %nk: index, %s: !s):
    %1 = flash.captured_grad_step of(%c : tensor<64xf32>) reads([0]) ins(%q, %q, %q, %q, %r, %r : !q, !q, !q, !q, !r, !r)
        outs(%s : !s) at[0, 0, %i, %j] of[64, 64] scale(1.0) mask(#flash.causal) score {
    ^bb0(%x: f32, %b: index, %h: index, %qi: index, %kj: index):
      %e = tensor.extract %c[%kj] : tensor<64xf32>
      %y = arith.addf %x, %e : f32
      flash.yield %y : f32
    }
    flash.next %1 : !s
  }
  return %0 : !s
}
func.func @between_diagonals(%c: tensor<64xf32>, %q: !q, %r: !r, %sum: !s) -> !s {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %c16 = arith.constant 16 : index
  %c64 = arith.constant 64 : index
  %0 = flash.visit diagonal tile(16) from %c0 to %c64 by %c16 distance %c8 exist(%c64, %c64) init(%sum : !s) {
  ^bb0(%i: index, %j: index, %nq: index, %nk: index, %s: !s):
    %1 = flash.captured_grad_step of(%c : tensor<64xf32>) reads([0]) ins(%q, %q, %q, %q, %r, %r : !q, !q, !q, !q, !r, !r)
        outs(%s : !s) at[0, 0, %i, %j] of[64, 64] scale(1.0) mask(#flash.causal) score {
    ^bb0(%x: f32, %b: index, %h: index, %qi: index, %kj: index):
      %e = tensor.extract %c[%kj] : tensor<64xf32>
      %y = arith.addf %x, %e : f32
      flash.yield %y : f32
    }
    flash.next %1 : !s
  }
  return %0 : !s
}
func.func @pairs(%c: tensor<64xf32>, %n: index, %q: !q, %r: !r, %sum: !s) -> !s {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %0 = flash.visit batches tile(1) from %c0 to %n by %c1 exist(%c16, %c16) init(%sum : !s) {
  ^bb0(%batch: index, %nq: index, %nk: index, %s: !s):
    %1 = flash.captured_grad_step of(%c : tensor<64xf32>) reads([0]) ins(%q, %q, %q, %q, %r, %r : !q, !q, !q, !q, !r, !r)
        outs(%s : !s) at[%batch, 0, 16, 0] of[64, 64] scale(1.0) mask(#flash.causal) score {
    ^bb0(%x: f32, %b: index, %h: index, %qi: index, %kj: index):
      %e = tensor.extract %c[%kj] : tensor<64xf32>
      %y = arith.addf %x, %e : f32
      flash.yield %y : f32
    }
    flash.next %1 : !s
  }
  return %0 : !s
}
func.func @between_tiles(%c: tensor<64xf32>, %n: index, %at: index, %q: !q, %r: !r, %sum: !s) -> !s {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %0 = flash.visit batches tile(1) from %c0 to %n by %c1 exist(%c16, %c16) init(%sum : !s) {
  ^bb0(%batch: index, %nq: index, %nk: index, %s: !s):
    %1 = flash.captured_grad_step of(%c : tensor<64xf32>) reads([0]) ins(%q, %q, %q, %q, %r, %r : !q, !q, !q, !q, !r, !r)
        outs(%s : !s) at[%batch, 0, %at, 0] of[64, 64] scale(1.0) mask(#flash.causal) score {
    ^bb0(%x: f32, %b: index, %h: index, %qi: index, %kj: index):
      %e = tensor.extract %c[%kj] : tensor<64xf32>
      %y = arith.addf %x, %e : f32
      flash.yield %y : f32
    }
    flash.next %1 : !s
  }
  return %0 : !s
}
func.func @too_complicated(%c: tensor<64xf32>, %q: !q, %r: !r, %sum: !s) -> !s {
  %c16 = arith.constant 16 : index
  %c64 = arith.constant 64 : index
  // expected-warning-re @below {{the mask {{.*}} is too complicated, or its numbers are too large, to determine which tiles of queries and keys it leaves out: all are visited, which is right but slow}}
  %0 = flash.visit diagonal tile(16) from %c16 to %c64 by %c16 distance %c16 exist(%c64, %c64) init(%sum : !s) {
  ^bb0(%i: index, %j: index, %nq: index, %nk: index, %s: !s):
    %1 = flash.captured_grad_step of(%c : tensor<64xf32>) reads([0]) ins(%q, %q, %q, %q, %r, %r : !q, !q, !q, !q, !r, !r)
        outs(%s : !s) at[0, 0, %i, %j] of[64, 64] scale(1.0) mask(#flash.affine<#nested>) score {
    ^bb0(%x: f32, %b: index, %h: index, %qi: index, %kj: index):
      %e = tensor.extract %c[%kj] : tensor<64xf32>
      %y = arith.addf %x, %e : f32
      flash.yield %y : f32
    }
    flash.next %1 : !s
  }
  return %0 : !s
}

// -----

!q = tensor<16x8xf32>
!v = tensor<16xf32>
!k = tensor<1x1x?x8xf32>
#top_left = affine_set<(b, h, i, j)[nq, nk] : (i - j >= 0)>

// A mask that is aligned to the ends keeps only keys that exist, whatever the lengths are, and one that is aligned to the
// start may keep others. Of other keys than the mask's nothing is known.

// CHECK-LABEL: func @bounded(
// CHECK:         flash.visit keys
// CHECK-SAME:      bounded init
// CHECK:         flash.visit keys
// CHECK-NOT:       bounded
// CHECK:         flash.visit keys
// CHECK-NOT:       bounded
// CHECK:         return
func.func @bounded(%q: !q, %k: !k, %acc: !q, %max: !v, %sum: !v, %nq: index, %nk: index, %n: index) -> (!q, !q, !q) {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %r:3 = flash.visit keys tile(16) from %c0 to %nk by %c16 exist(%nk) init(%acc, %max, %sum : !q, !v, !v) {
  ^bb0(%j: index, %rows: index, %a: !q, %m: !v, %l: !v):
    %kt = flash.load_rows %k[%c0, %c0, %j] rows(%rows) : !k -> !q
    %a1, %m1, %l1 = flash.online_attention ins(%q, %kt, %kt : !q, !q, !q) outs(%a, %m, %l : !q, !v, !v)
        at[0, 0, 16, %j] of[%nq, %nk] keys(%rows) scale(1.0) mask(#flash.causal)
    flash.next %a1, %m1, %l1 : !q, !v, !v
  }
  %s:3 = flash.visit keys tile(16) from %c0 to %nk by %c16 exist(%nk) init(%acc, %max, %sum : !q, !v, !v) {
  ^bb0(%j: index, %rows: index, %a: !q, %m: !v, %l: !v):
    %kt = flash.load_rows %k[%c0, %c0, %j] rows(%rows) : !k -> !q
    %a1, %m1, %l1 = flash.online_attention ins(%q, %kt, %kt : !q, !q, !q) outs(%a, %m, %l : !q, !v, !v)
        at[0, 0, 16, %j] of[%nq, %nk] keys(%rows) scale(1.0) mask(#flash.affine<#top_left>)
    flash.next %a1, %m1, %l1 : !q, !v, !v
  }
  %t:3 = flash.visit keys tile(16) from %c0 to %n by %c16 exist(%n) init(%acc, %max, %sum : !q, !v, !v) {
  ^bb0(%j: index, %rows: index, %a: !q, %m: !v, %l: !v):
    %kt = flash.load_rows %k[%c0, %c0, %j] rows(%rows) : !k -> !q
    %a1, %m1, %l1 = flash.online_attention ins(%q, %kt, %kt : !q, !q, !q) outs(%a, %m, %l : !q, !v, !v)
        at[0, 0, 16, %j] of[%nq, %nk] keys(%rows) scale(1.0) mask(#flash.causal)
    flash.next %a1, %m1, %l1 : !q, !v, !v
  }
  return %r#0, %s#0, %t#0 : !q, !q, !q
}

// -----

// A tile of queries that another visit has come to is aligned where that visit starts at and goes by whole tiles.

!q = tensor<16x8xf32>
!v = tensor<16xf32>
!all = tensor<1x1x64x8xf32>

// CHECK-LABEL: func @in_a_visit(
// CHECK:         flash.visit queries tile(16) from %c16
// CHECK:           flash.visit keys {{.*}} tiles(
// CHECK:         flash.visit queries tile(16) from %c8
// CHECK:           flash.visit keys
// CHECK-NOT:       tiles(
func.func @in_a_visit(%q: !all, %k: !all, %acc: !q, %max: !v, %sum: !v) -> (!q, !q) {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %c16 = arith.constant 16 : index
  %c64 = arith.constant 64 : index
  %whole:3 = flash.visit queries tile(16) from %c16 to %c64 by %c16 exist(%c64) init(%acc, %max, %sum : !q, !v, !v) {
  ^bb0(%i: index, %n: index, %a: !q, %m: !v, %l: !v):
    %qt = flash.load_rows %q[%c0, %c0, %i] : !all -> !q
    %r:3 = flash.visit keys tile(16) from %c0 to %c64 by %c16 exist(%c64) init(%a, %m, %l : !q, !v, !v) {
    ^bb0(%j: index, %rows: index, %a1: !q, %m1: !v, %l1: !v):
      %kt = flash.load_rows %k[%c0, %c0, %j] : !all -> !q
      %a2, %m2, %l2 = flash.online_attention ins(%qt, %kt, %kt : !q, !q, !q) outs(%a1, %m1, %l1 : !q, !v, !v)
          at[0, 0, %i, %j] of[64, 64] scale(1.0) mask(#flash.causal)
      flash.next %a2, %m2, %l2 : !q, !v, !v
    }
    flash.next %r#0, %r#1, %r#2 : !q, !v, !v
  }
  %parts:3 = flash.visit queries tile(16) from %c8 to %c64 by %c16 exist(%c64) init(%acc, %max, %sum : !q, !v, !v) {
  ^bb0(%i: index, %n: index, %a: !q, %m: !v, %l: !v):
    %qt = flash.load_rows %q[%c0, %c0, %i] : !all -> !q
    %r:3 = flash.visit keys tile(16) from %c0 to %c64 by %c16 exist(%c64) init(%a, %m, %l : !q, !v, !v) {
    ^bb0(%j: index, %rows: index, %a1: !q, %m1: !v, %l1: !v):
      %kt = flash.load_rows %k[%c0, %c0, %j] : !all -> !q
      %a2, %m2, %l2 = flash.online_attention ins(%qt, %kt, %kt : !q, !q, !q) outs(%a1, %m1, %l1 : !q, !v, !v)
          at[0, 0, %i, %j] of[64, 64] scale(1.0) mask(#flash.causal)
      flash.next %a2, %m2, %l2 : !q, !v, !v
    }
    flash.next %r#0, %r#1, %r#2 : !q, !v, !v
  }
  return %whole#0, %parts#0 : !q, !q
}
