// RUN: flash-opt %s --convert-flash-to-scf --split-input-file --verify-diagnostics

func.func @no_step(%n: index, %x: tensor<16xf32>) -> tensor<16xf32> {
  %c0 = arith.constant 0 : index
  // expected-error @below {{says which tiles a mask leaves, but its region has no single step that has the mask}}
  %0 = flash.visit keys tile(16) from %c0 to %n by %n exist(%n) tiles(<hi = []>) init(%x : tensor<16xf32>) {
  ^bb0(%at: index, %rows: index, %s: tensor<16xf32>):
    flash.next %s : tensor<16xf32>
  }
  return %0 : tensor<16xf32>
}

// -----

!q = tensor<16x8xf32>
!v = tensor<16xf32>
func.func @elsewhere(%q: !q, %acc: !q, %max: !v, %sum: !v) -> !q {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %c64 = arith.constant 64 : index
  %r:3 = flash.visit keys tile(16) from %c0 to %c64 by %c16 exist(%c64) tiles(<hi = []>) init(%acc, %max, %sum : !q, !v, !v) {
  ^bb0(%j: index, %rows: index, %a: !q, %m: !v, %l: !v):
    %i = arith.addi %j, %c16 : index
    // expected-error @below {{is at a position, or of lengths, that only the step knows; the tiles that a mask leaves are known before it}}
    %a1, %m1, %l1 = flash.online_attention ins(%q, %q, %q : !q, !q, !q) outs(%a, %m, %l : !q, !v, !v)
        at[0, 0, %i, %j] of[64, 64] scale(1.0) mask(#flash.causal)
    flash.next %a1, %m1, %l1 : !q, !v, !v
  }
  return %r#0 : !q
}

// -----

!q = tensor<1x1x16x8xf32>
!v = tensor<1x1x16xf32>
func.func @whole(%q: !q, %acc: !q, %max: !v, %sum: !v) -> !q {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %c64 = arith.constant 64 : index
  %r:3 = flash.visit keys tile(16) from %c0 to %c64 by %c16 exist(%c64) tiles(<hi = []>) init(%acc, %max, %sum : !q, !v, !v) {
  ^bb0(%j: index, %rows: index, %a: !q, %m: !v, %l: !v):
    // expected-error @below {{is of whole tensors, not of tiles of 2 dimensions and static sizes, which the visit says the mask leaves}}
    %a1, %m1, %l1 = flash.online_attention ins(%q, %q, %q : !q, !q, !q) outs(%a, %m, %l : !q, !v, !v)
        at[0, 0, 0, %j] of[64, 64] scale(1.0) mask(#flash.causal)
    flash.next %a1, %m1, %l1 : !q, !v, !v
  }
  return %r#0 : !q
}

// -----

!q = tensor<16x8xf32>
!v = tensor<16xf32>
func.func @not_its_own(%q: !q, %acc: !q, %max: !v, %sum: !v) {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %c64 = arith.constant 64 : index
  %r:3 = flash.visit keys tile(16) from %c0 to %c64 by %c16 exist(%c64) tiles(<hi = []>) init(%acc, %max, %sum : !q, !v, !v) {
  ^bb0(%j: index, %rows: index, %a: !q, %m: !v, %l: !v):
    // expected-error @below {{is not where the visit is, which says which tiles a mask leaves: number 3 of its position is to be argument 0 of the visit's region}}
    %a1, %m1, %l1 = flash.online_attention ins(%q, %q, %q : !q, !q, !q) outs(%a, %m, %l : !q, !v, !v)
        at[0, 0, 0, 16] of[64, 64] scale(1.0) mask(#flash.causal)
    flash.next %a1, %m1, %l1 : !q, !v, !v
  }
  return
}

// -----

!q = tensor<16x8xf32>
!v = tensor<16xf32>
func.func @another_row(%q: !q, %acc: !q, %max: !v, %sum: !v) {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %c64 = arith.constant 64 : index
  %r:3 = flash.visit keys tile(16) from %c0 to %c64 by %c16 exist(%c64) tiles(<hi = []>) init(%acc, %max, %sum : !q, !v, !v) {
  ^bb0(%j: index, %rows: index, %a: !q, %m: !v, %l: !v):
    // expected-error @below {{is at a position, or of lengths, that only the step knows; the tiles that a mask leaves are known before it}}
    %a1, %m1, %l1 = flash.online_attention ins(%q, %q, %q : !q, !q, !q) outs(%a, %m, %l : !q, !v, !v)
        at[0, 0, %j, %j] of[64, 64] scale(1.0) mask(#flash.causal)
    flash.next %a1, %m1, %l1 : !q, !v, !v
  }
  return
}

// -----

!q = tensor<16x8xf32>
!v = tensor<16xf32>
func.func @half_tiles(%q: !q, %acc: !q, %max: !v, %sum: !v) {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %c64 = arith.constant 64 : index
  %r:3 = flash.visit keys tile(8) from %c0 to %c64 by %c16 exist(%c64) tiles(<hi = []>) init(%acc, %max, %sum : !q, !v, !v) {
  ^bb0(%j: index, %rows: index, %a: !q, %m: !v, %l: !v):
    // expected-error @below {{is of tiles of 16 rows, and the visit, which says which tiles a mask leaves, of tiles of 8; they are the same}}
    %a1, %m1, %l1 = flash.online_attention ins(%q, %q, %q : !q, !q, !q) outs(%a, %m, %l : !q, !v, !v)
        at[0, 0, 0, %j] of[64, 64] scale(1.0) mask(#flash.causal)
    flash.next %a1, %m1, %l1 : !q, !v, !v
  }
  return
}

// -----

!q = tensor<16x8xf32>
!v = tensor<16xf32>
func.func @overlapping(%q: !q, %acc: !q, %max: !v, %sum: !v) {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %c64 = arith.constant 64 : index
  // expected-error @below {{says which tiles a mask leaves, and its by is 8, no multiple of 16; leave out tiles}}
  %r:3 = flash.visit keys tile(16) from %c0 to %c64 by %c8 exist(%c64) tiles(<hi = []>) init(%acc, %max, %sum : !q, !v, !v) {
  ^bb0(%j: index, %rows: index, %a: !q, %m: !v, %l: !v):
    %a1, %m1, %l1 = flash.online_attention ins(%q, %q, %q : !q, !q, !q) outs(%a, %m, %l : !q, !v, !v)
        at[0, 0, 0, %j] of[64, 64] scale(1.0) mask(#flash.causal)
    flash.next %a1, %m1, %l1 : !q, !v, !v
  }
  return
}

// -----

func.func @empty(%n: index) -> tensor<4x8xf32> {
  %c0 = arith.constant 0 : index
  %x = tensor.empty(%n) : tensor<1x1x?x8xf32>
  // expected-error @below {{reads a tensor.empty, whose elements have no values; read a linalg.fill of it, or an argument}}
  %t = flash.load_rows %x[%c0, %c0, %c0] : tensor<1x1x?x8xf32> -> tensor<4x8xf32>
  return %t : tensor<4x8xf32>
}
