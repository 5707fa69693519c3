// RUN: flash-opt %s --split-input-file --verify-diagnostics

!list = tensor<1x1x4x8xi32>
!n = tensor<1x1x4x2xi32>
!s = tensor<4xf32>
func.func @visit(%a: index, %l: !list, %n: !n, %x: !s) -> !s {
  // expected-error @below {{tiles have at least one element, got 0}}
  %0 = flash.visit keys tile(0) from %a to %a by %a exist(%a) init(%x : !s) {
  ^bb0(%i0: index, %i1: index, %s: !s):
    flash.next %s : !s
  }
  return %0 : !s
}

// -----

!list = tensor<1x1x4x8xi32>
!n = tensor<1x1x4x2xi32>
!s = tensor<4xf32>
func.func @visit(%a: index, %l: !list, %n: !n, %x: !s) -> !s {
  // expected-error @below {{says from, to and by, or a list, whose end counts say}}
  %0 = flash.visit keys tile(4) exist(%a) init(%x : !s) {
  ^bb0(%i0: index, %i1: index, %s: !s):
    flash.next %s : !s
  }
  return %0 : !s
}

// -----

!list = tensor<1x1x4x8xi32>
!n = tensor<1x1x4x2xi32>
!s = tensor<4xf32>
func.func @visit(%a: index, %l: !list, %n: !n, %x: !s) -> !s {
  // expected-error @below {{says from, to and by, or a list, whose end counts say}}
  %0 = flash.visit keys tile(4) from %a to %a by %a exist(%a) list(%l, %n : !list, !n)[%a, %a, %a] init(%x : !s) {
  ^bb0(%i0: index, %i1: index, %s: !s):
    flash.next %s : !s
  }
  return %0 : !s
}

// -----

!list = tensor<1x1x4x8xi32>
!n = tensor<1x1x4x2xi32>
!s = tensor<4xf32>
func.func @visit(%a: index, %l: !list, %n: !n, %x: !s) -> !s {
  // expected-error @below {{lists are of keys or of queries, not of heads}}
  %0 = flash.visit heads tile(4) exist(%a, %a) list(%l, %n : !list, !n)[%a, %a, %a] init(%x : !s) {
  ^bb0(%i0: index, %i1: index, %i2: index, %s: !s):
    flash.next %s : !s
  }
  return %0 : !s
}

// -----

!list = tensor<1x1x4x8xi32>
!n = tensor<1x1x4x2xi32>
!s = tensor<4xf32>
func.func @visit(%a: index, %l: !list, %n: !n, %x: !s) -> !s {
  // expected-error @below {{the row of a list is a batch, a head and a number, got 2 indices}}
  %0 = flash.visit keys tile(4) exist(%a) list(%l, %n : !list, !n)[%a, %a] init(%x : !s) {
  ^bb0(%i0: index, %i1: index, %s: !s):
    flash.next %s : !s
  }
  return %0 : !s
}

// -----

!list = tensor<1x1x4x8xi32>
!n = tensor<1x1x4x2xi32>
!s = tensor<4xf32>
func.func @visit(%a: index, %l: !list, %n: !n, %x: !s) -> !s {
  // expected-error @below {{a list already says which tiles are visited; it has no tiles and no contributors}}
  %0 = flash.visit keys tile(4) exist(%a) list(%l, %n : !list, !n)[%a, %a, %a] tiles(<hi = []>) init(%x : !s) {
  ^bb0(%i0: index, %i1: index, %s: !s):
    flash.next %s : !s
  }
  return %0 : !s
}

// -----

!list = tensor<1x1x4x8xi32>
!n = tensor<1x1x4x2xi32>
!s = tensor<4xf32>
func.func @visit(%a: index, %l: !list, %n: !n, %x: !s) -> !s {
  // expected-error @below {{ranks are of the tiles of a list}}
  %0 = flash.visit queries tile(4) from %a to %a by %a exist(%a) ranks(%l : !list) init(%x : !s) {
  ^bb0(%i0: index, %i1: index, %i2: index, %s: !s):
    flash.next %s : !s
  }
  return %0 : !s
}

// -----

!list = tensor<1x1x4x8xi32>
!n = tensor<1x1x4x2xi32>
!s = tensor<4xf32>
func.func @visit(%a: index, %l: !list, %n: !n, %x: !s) -> !s {
  // expected-error @below {{a diagonal has a distance, and nothing else has, but this is of keys with one}}
  %0 = flash.visit keys tile(4) from %a to %a by %a distance %a exist(%a) init(%x : !s) {
  ^bb0(%i0: index, %i1: index, %s: !s):
    flash.next %s : !s
  }
  return %0 : !s
}

// -----

!list = tensor<1x1x4x8xi32>
!n = tensor<1x1x4x2xi32>
!s = tensor<4xf32>
func.func @visit(%a: index, %l: !list, %n: !n, %x: !s) -> !s {
  // expected-error @below {{a diagonal has a distance, and nothing else has, but this is of diagonal without one}}
  %0 = flash.visit diagonal tile(4) from %a to %a by %a exist(%a, %a) init(%x : !s) {
  ^bb0(%i0: index, %i1: index, %i2: index, %i3: index, %s: !s):
    flash.next %s : !s
  }
  return %0 : !s
}

// -----

!list = tensor<1x1x4x8xi32>
!n = tensor<1x1x4x2xi32>
!s = tensor<4xf32>
func.func @visit(%a: index, %l: !list, %n: !n, %x: !s) -> !s {
  // expected-error @below {{says of 1 dimension(s) how many elements exist, got 2}}
  %0 = flash.visit keys tile(4) from %a to %a by %a exist(%a, %a) init(%x : !s) {
  ^bb0(%i0: index, %i1: index, %s: !s):
    flash.next %s : !s
  }
  return %0 : !s
}

// -----

!list = tensor<1x1x4x8xi32>
!n = tensor<1x1x4x2xi32>
!s = tensor<4xf32>
func.func @visit(%a: index, %l: !list, %n: !n, %x: !s) -> !s {
  // expected-error @below {{the region takes 3 indices and then the state, got ('index', 'index', 'tensor<4xf32>')}}
  %0 = flash.visit batches tile(4) from %a to %a by %a exist(%a, %a) init(%x : !s) {
  ^bb0(%i0: index, %i1: index, %s: !s):
    flash.next %s : !s
  }
  return %0 : !s
}

// -----

!s = tensor<4xf32>
func.func @next(%a: index, %y: tensor<5xf32>, %x: !s) -> !s {
  %0 = flash.visit keys tile(4) from %a to %a by %a exist(%a) init(%x : !s) {
  ^bb0(%at: index, %rows: index, %s: !s):
    // expected-error @below {{gives the state of the visit, 'tensor<4xf32>', got ('tensor<5xf32>')}}
    flash.next %y : tensor<5xf32>
  }
  return %0 : !s
}

// -----

!s = tensor<4xf32>
func.func @terminator(%a: index, %x: !s) -> !s {
  // expected-error @below {{ends in flash.next, not in llvm.unreachable}}
  %0 = flash.visit keys tile(4) from %a to %a by %a exist(%a) init(%x : !s) {
  ^bb0(%at: index, %rows: index, %s: !s):
    "llvm.unreachable"() : () -> ()
  }
  return %0 : !s
}

// -----

// expected-error @below {{hi has #flash.bound of (b, h, i)[nq, nk], got 1}}
func.func private @bound() attributes {a = #flash.tiles<hi = [1]>}

// -----

// expected-error @below {{full_lo has #flash.bound of (b, h, i)[nq, nk]}}
func.func private @dims() attributes {a = #flash.tiles<full_lo = [#flash.bound<affine_map<(b) -> (b)>>]>}

// -----

// expected-error @below {{not_full has affine sets of (b, h, i, t)[nq, nk]}}
func.func private @set() attributes {a = #flash.tiles<not_full = [affine_set<(b) : (b == 0)>]>}

// -----

func.func @rank(%a: index, %x: tensor<8x8xf32>) {
  // expected-error @below {{loads rows of [B, H, N, D] or [B, H, N], got 'tensor<8x8xf32>'}}
  %0 = flash.load_rows %x[%a, %a, %a] : tensor<8x8xf32> -> tensor<4x8xf32>
  return
}

// -----

func.func @position(%a: index, %x: tensor<1x1x8x8xf32>) {
  // expected-error @below {{the position of rows is a batch, a head and a row, got 2 indices}}
  %0 = flash.load_rows %x[%a, %a] : tensor<1x1x8x8xf32> -> tensor<4x8xf32>
  return
}

// -----

func.func @columns(%a: index, %x: tensor<1x1x8x8xf32>) {
  // expected-error @below {{a tile has a number of rows, and the columns and the elements of 'tensor<1x1x8x8xf32>', or fewer columns from column(...) on, got 'tensor<4x7xf32>'}}
  %0 = flash.load_rows %x[%a, %a, %a] : tensor<1x1x8x8xf32> -> tensor<4x7xf32>
  return
}

// -----

func.func @packed(%a: index, %x: tensor<1x1x8x8xf32>) {
  // expected-error @below {{packs two heads or more, got 1}}
  %0 = flash.load_rows %x[%a, %a, %a] packed(1) : tensor<1x1x8x8xf32> -> tensor<4x8xf32>
  return
}

// -----

func.func @neutral_zeros(%a: index, %x: tensor<4xf32>) {
  // expected-error @below {{neutral_zeros are of a flash.key_grad_step whose score region, if it has one, changes no score; leave it out}}
  %0 = flash.visit queries tile(16) from %a to %a by %a exist(%a) neutral_zeros init(%x : tensor<4xf32>) {
  ^bb0(%i: index, %n: index, %s: tensor<4xf32>):
    flash.next %s : tensor<4xf32>
  }
  return
}

// -----

func.func @fill_once(%a: index, %x: tensor<4xf32>) {
  // expected-error @below {{fill_once is of loops over the steps of a flash.online_attention; leave it out}}
  %0 = flash.visit keys tile(16) from %a to %a by %a exist(%a) fill_once init(%x : tensor<4xf32>) {
  ^bb0(%i: index, %n: index, %s: tensor<4xf32>):
    flash.next %s : tensor<4xf32>
  }
  return
}

// -----

func.func @all_to_end(%a: index, %x: tensor<1x1x8x8xf32>) {
  // expected-error @below {{to_end says of rows(...) of a tensor that they are its last ones; a view has no end in memory}}
  %0 = flash.load_rows %x[%a, %a, %a] to_end : tensor<1x1x8x8xf32> -> tensor<4x8xf32>
  return
}

// -----

func.func @view_to_end(%a: index, %x: tensor<1x1x8x8xf32>, %offsets: tensor<3xi32>) {
  %v, %n = flash.unpack %x by %offsets : tensor<1x1x8x8xf32>, tensor<3xi32> -> tensor<2x1x8x8xf32>, tensor<2xi32>
  // expected-error @below {{to_end says of rows(...) of a tensor that they are its last ones; a view has no end in memory}}
  %0 = flash.load_rows %v[%a, %a, %a] rows(%a) to_end : tensor<2x1x8x8xf32> -> tensor<4x8xf32>
  return
}

// -----

!list = tensor<1x1x4x8xi32>
!n = tensor<1x1x4x2xi32>
!s = tensor<4xf32>
func.func @visit(%a: index, %l: !list, %n: !n, %x: !s) -> !s {
  // expected-error @below {{has visited, which says which tiles it visits, and needs not_full, which says which of them are full}}
  %0 = flash.visit keys tile(4) from %a to %a by %a exist(%a) tiles(<visited = []>) init(%x : !s) {
  ^bb0(%i0: index, %i1: index, %s: !s):
    flash.next %s : !s
  }
  return %0 : !s
}

// -----

!list = tensor<1x1x4x8xi32>
!n = tensor<1x1x4x2xi32>
!s = tensor<4xf32>
func.func @visit(%a: index, %l: !list, %n: !n, %x: !s) -> !s {
  // expected-error @below {{tiles of heads have no range: visited and not_full are missing}}
  %0 = flash.visit heads tile(4) from %a to %a by %a exist(%a, %a) tiles(<hi = []>) init(%x : !s) {
  ^bb0(%i0: index, %i1: index, %i2: index, %s: !s):
    flash.next %s : !s
  }
  return %0 : !s
}

// -----

!list = tensor<1x1x4x8xi32>
!n = tensor<1x1x4x2xi32>
!s = tensor<4xf32>
func.func @visit(%a: index, %l: !list, %n: !n, %x: !s) -> !s {
  // expected-error @below {{contributors are of a visit of queries, not of keys}}
  %0 = flash.visit keys tile(4) from %a to %a by %a exist(%a) tiles(<hi = []>) contributors(<hi = []>) init(%x : !s) {
  ^bb0(%i0: index, %i1: index, %s: !s):
    flash.next %s : !s
  }
  return %0 : !s
}

// -----

!list = tensor<1x1x4x8xi32>
!n = tensor<1x1x4x2xi32>
!s = tensor<4xf32>
func.func @visit(%a: index, %l: !list, %n: !n, %x: !s) -> !s {
  // expected-error @below {{has contributors, but no tiles}}
  %0 = flash.visit queries tile(4) from %a to %a by %a exist(%a) contributors(<hi = []>) init(%x : !s) {
  ^bb0(%i0: index, %i1: index, %s: !s):
    flash.next %s : !s
  }
  return %0 : !s
}

// -----

!n = tensor<1x1x4x2xi32>
!s = tensor<4xf32>
func.func @generic(%a: index, %n: !n, %x: !s) -> !s {
  // expected-error @below {{a list has counts, and nothing else has}}
  %0 = "flash.visit"(%a, %a, %a, %a, %n, %x) <{kind = 0 : i32, operandSegmentSizes = array<i32: 1, 1, 1, 0, 1, 0, 1, 0, 0, 0, 1>, tile = 4 : i64}> ({
  ^bb0(%at: index, %rows: index, %s: !s):
    flash.next %s : !s
  }) : (index, index, index, index, !n, !s) -> !s
  return %0 : !s
}

// -----

!n = tensor<1x1x4x2xi32>
!s = tensor<4xf32>
func.func @generic(%a: index, %n: !n, %x: !s) -> !s {
  // expected-error @below {{the row is of a list, and there is none}}
  %0 = "flash.visit"(%a, %a, %a, %a, %a, %x) <{kind = 0 : i32, operandSegmentSizes = array<i32: 1, 1, 1, 0, 1, 0, 0, 0, 0, 1, 1>, tile = 4 : i64}> ({
  ^bb0(%at: index, %rows: index, %s: !s):
    flash.next %s : !s
  }) : (index, index, index, index, index, !s) -> !s
  return %0 : !s
}

// -----

func.func @visit(%a: index) {
  // expected-error @below {{cuts the entries of a list without ranks, and this is none}}
  flash.visit keys tile(4) from %a to %a by %a exist(%a) cut(8) {
  ^bb0(%i0: index, %i1: index):
    flash.next
  }
  return
}

// -----

!list = tensor<1x1x4x8xi32>
!n = tensor<1x1x4x2xi32>
func.func @visit(%a: index, %l: !list, %n: !n) {
  // expected-error @below {{cuts blocks of 10 elements into tiles of 4, which must divide them}}
  flash.visit keys tile(4) exist(%a) list(%l, %n : !list, !n)[%a, %a, %a] cut(10) {
  ^bb0(%i0: index, %i1: index):
    flash.next
  }
  return
}

// -----

func.func @bounded_without_mask(%a: index, %x: tensor<4xf32>) {
  // expected-error @below {{only the mask of a step of keys or queries is bounded, and this is of keys without one}}
  %0 = flash.visit keys tile(16) from %a to %a by %a exist(%a) bounded init(%x : tensor<4xf32>) {
  ^bb0(%i: index, %n: index, %s: tensor<4xf32>):
    flash.next %s : tensor<4xf32>
  }
  return
}

// -----

func.func @f(%x: tensor<1x1x8x8xf32>, %i: index) {
  // expected-error @below {{a tile has a number of rows, and the columns and the elements of 'tensor<1x1x8x8xf32>', or fewer columns from column(...) on, got 'tensor<4x8xf32>'}}
  %t = flash.load_rows %x[%i, %i, %i] column(%i) : tensor<1x1x8x8xf32> -> tensor<4x8xf32>
  return
}

// -----

func.func @f(%x: tensor<1x1x8xf32>, %i: index) {
  // expected-error @below {{or fewer columns from column(...) on, got 'tensor<4xf32>'}}
  %t = flash.load_rows %x[%i, %i, %i] column(%i) : tensor<1x1x8xf32> -> tensor<4xf32>
  return
}

// -----

func.func @tile(%a: index) {
  // expected-error @below {{tiles have at least one element, got -8}}
  flash.visit keys tile(-8) from %a to %a by %a exist(%a) {
  ^bb0(%j: index, %n: index):
    flash.next
  }
  return
}

// -----

func.func @from(%a: index) {
  %c = arith.constant -16 : index
  // expected-error @below {{starts at 0 or later, got from -16}}
  flash.visit keys tile(16) from %c to %a by %a exist(%a) {
  ^bb0(%j: index, %n: index):
    flash.next
  }
  return
}

// -----

func.func @by(%a: index) {
  %c0 = arith.constant 0 : index
  // expected-error @below {{goes on by 1 or more, got by 0}}
  flash.visit keys tile(16) from %c0 to %a by %c0 exist(%a) {
  ^bb0(%j: index, %n: index):
    flash.next
  }
  return
}

// -----

func.func @heads(%a: index) {
  // expected-error @below {{visits tiles of a list with ranks for each head, and this is none; leave out heads}}
  flash.visit queries tile(16) from %a to %a by %a exist(%a) heads(%a) {
  ^bb0(%i: index, %n: index, %h: index):
    flash.next
  }
  return
}

// -----

func.func @multiples(%a: index) {
  // expected-error @below {{multiples are two positive numbers, of queries and of keys}}
  flash.visit queries tile(16) from %a to %a by %a exist(%a) multiples([16, 0]) {
  ^bb0(%i: index, %n: index):
    flash.next
  }
  return
}

// -----

// A step that is wrong itself is found first.

func.func @multiples_of_no_step(%q: tensor<16x8xf32>, %v: tensor<16xf32>, %nk: index) {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %r:3 = flash.visit keys tile(16) from %c0 to %nk by %c16 exist(%nk) multiples([16, 16]) init(%q, %v, %v : tensor<16x8xf32>, tensor<16xf32>, tensor<16xf32>) {
  ^bb0(%j: index, %rows: index, %a: tensor<16x8xf32>, %m: tensor<16xf32>, %l: tensor<16xf32>):
    // expected-error @below {{'at' and 'of' need one operand per dynamic entry}}
    %a1, %m1, %l1 = "flash.online_attention"(%q, %q, %q, %a, %m, %l, %j, %nk) <{
      operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0>, scale = 1.0 : f64,
      static_extents = array<i64: -9223372036854775808, -9223372036854775808>, static_position = array<i64: 0, 0, 16, -9223372036854775808>
    }> ({}) : (tensor<16x8xf32>, tensor<16x8xf32>, tensor<16x8xf32>, tensor<16x8xf32>, tensor<16xf32>, tensor<16xf32>, index, index)
      -> (tensor<16x8xf32>, tensor<16xf32>, tensor<16xf32>)
    flash.next %a1, %m1, %l1 : tensor<16x8xf32>, tensor<16xf32>, tensor<16xf32>
  }
  return
}

// -----

func.func @no_multiple(%k: tensor<1x1x?x8xf32>, %q: tensor<16x8xf32>, %v: tensor<16xf32>, %nk: index) {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  // expected-error @below {{has 40 queries, no multiple of 16}}
  %r:3 = flash.visit keys tile(16) from %c0 to %nk by %c16 exist(%nk) multiples([16, 16]) init(%q, %v, %v : tensor<16x8xf32>, tensor<16xf32>, tensor<16xf32>) {
  ^bb0(%j: index, %rows: index, %a: tensor<16x8xf32>, %m: tensor<16xf32>, %l: tensor<16xf32>):
    %kt = flash.load_rows %k[%c0, %c0, %j] : tensor<1x1x?x8xf32> -> tensor<16x8xf32>
    %a1, %m1, %l1 = flash.online_attention ins(%q, %kt, %kt : tensor<16x8xf32>, tensor<16x8xf32>, tensor<16x8xf32>) outs(%a, %m, %l : tensor<16x8xf32>, tensor<16xf32>, tensor<16xf32>)
        at[0, 0, 16, %j] of[40, %nk] scale(1.0)
    flash.next %a1, %m1, %l1 : tensor<16x8xf32>, tensor<16xf32>, tensor<16xf32>
  }
  return
}

// -----

func.func @read_ahead(%a: index) {
  // expected-error @below {{reads ranks ahead, and has none; leave out read_ahead}}
  flash.visit queries tile(16) from %a to %a by %a exist(%a) read_ahead {
  ^bb0(%i: index, %n: index):
    flash.next
  }
  return
}

// -----

!q = tensor<16x8xf32>
!v = tensor<16xf32>
func.func @kind(%a: index, %q: !q, %v: !v) {
  // expected-error @below {{of queries has a step over keys}}
  %r:3 = flash.visit queries tile(16) from %a to %a by %a exist(%a) init(%q, %v, %v : !q, !v, !v) {
  ^bb0(%i: index, %n: index, %acc: !q, %max: !v, %sum: !v):
    %a1, %m1, %l1 = flash.online_attention ins(%q, %q, %q : !q, !q, !q) outs(%acc, %max, %sum : !q, !v, !v)
        at[0, 0, %i, 0] of[64, 64] scale(1.0)
    flash.next %a1, %m1, %l1 : !q, !v, !v
  }
  return
}

// -----

func.func @destination(%x: tensor<1x1x8x8xf32>, %i: index) {
  flash.kernel over(%i) by [4] outs(%x : tensor<1x1x8x8xf32>) {
  ^bb0(%0: index, %out: tensor<1x1x8x8xf32>):
    // expected-error @below {{reads a destination of the kernel, into which its positions store; read what it starts from, outs(...) of the kernel}}
    %t = flash.load_rows %out[%i, %i, %0] : tensor<1x1x8x8xf32> -> tensor<4x8xf32>
    flash.store {
      flash.store_rows %t into %out[%i, %i, %0] : tensor<4x8xf32> into tensor<1x1x8x8xf32>
    }
  }
  return
}

// -----

!q = tensor<16x8xf16>
!k = tensor<32x8xf16>
!acc = tensor<16x8xf32>
!v = tensor<16xf32>
func.func @scheduled_queries(%q: !q, %k: !k, %acc: !acc, %v: !v) {
  // expected-error @below {{has a tile of 16 queries, and its schedule has query_tile = 64; write query_tile = 16, or leave it out}}
  %a, %m, %s = flash.online_attention ins(%q, %k, %k : !q, !k, !k) outs(%acc, %v, %v : !acc, !v, !v)
      at[0, 0, 0, 0] of[16, 32] scale(1.0) schedule(<query_tile = 64, key_tile = 32>)
  return
}

// -----

!q = tensor<16x8xf16>
!k = tensor<32x8xf16>
!acc = tensor<16x8xf32>
!v = tensor<16xf32>
func.func @scheduled_keys(%q: !q, %k: !k, %acc: !acc, %v: !v) {
  // expected-error @below {{has a tile of 32 keys, and its schedule has key_tile = 64; write key_tile = 32, or leave it out}}
  %a, %m, %s = flash.online_attention ins(%q, %k, %k : !q, !k, !k) outs(%acc, %v, %v : !acc, !v, !v)
      at[0, 0, 0, 0] of[16, 32] scale(1.0) schedule(<key_tile = 64>)
  return
}

// -----

!q = tensor<16x8xf16>
!k = tensor<32x8xf16>
!acc = tensor<16x8xf32>
!v = tensor<16xf32>
func.func @scheduled_step(%q: !q, %k: !k, %acc: !acc, %v: !v) {
  // expected-error @below {{has a tile of 32 keys, and its schedule has key_step = 16; write key_step = 32, or leave it out}}
  %0 = flash.query_grad_step ins(%q, %k, %k, %q, %v, %v : !q, !k, !k, !q, !v, !v) outs(%acc : !acc)
      at[0, 0, 0, 0] of[16, 32] scale(1.0) schedule(<query_tile = 16, key_tile = 32, key_step = 16>)
  return
}

// -----

!q = tensor<16x8xf16>
!k = tensor<32x8xf16>
!acc = tensor<32x8xf32>
!v = tensor<16xf32>
func.func @scheduled_tile(%q: !q, %k: !k, %acc: !acc, %v: !v) {
  // expected-error @below {{has a tile of 16 queries, and its schedule has query_tile = 64; write query_tile = 16, or leave it out}}
  %0:2 = flash.key_grad_step ins(%q, %k, %k, %q, %v, %v : !q, !k, !k, !q, !v, !v) outs(%acc, %acc : !acc, !acc)
      at[0, 0, 0, 0] of[16, 32] scale(1.0) schedule(<query_tile = 64, key_tile = 32>)
  return
}
