// Words among the clauses of an operation that are none, or stand elsewhere.
// RUN: flash-opt %s --split-input-file --verify-diagnostics

!t = tensor<1x1x4x8xf32>
func.func @unknown(%q: !t) -> !t {
  // expected-error @below {{custom op 'flash.attention' has no clause 'maks' here; its clauses are, in this order: leading, scale, mask, lengths, query_lengths, key_lengths, sink, blocks, of, precision, multiples, schedule, score; ':' follows}}
  %o = flash.attention %q, %q, %q maks(#flash.causal) : (!t, !t, !t) -> !t
  return %o : !t
}

// -----

// Words of names, comments and parentheses are no clauses.
!t = tensor<1x1x4x8xf32>
func.func @order(%scale: !t, %lengths: tensor<1xi32>) -> !t {
  %o = flash.attention %scale, %scale, %scale lengths(%lengths : tensor<1xi32>) // mask
    precision(tf32)
    // expected-error @below {{has the clause 'scale' behind 'lengths', before which it stands; its clauses are}}
    scale(2.0) : (!t, !t, !t) -> !t
  return %o : !t
}

// -----

!t = tensor<1x1x4x8xf32>
func.func @mask(%q: !t) -> !t {
  // expected-error @below {{'flash.attention' has the mask 'causal', and masks are attributes; write '#flash.causal'}}
  %o = flash.attention %q, %q, %q mask(causal) : (!t, !t, !t) -> !t
  return %o : !t
}

// -----

!t = tensor<1x1x4x8xf32>
func.func @twice(%q: !t) -> !t {
  // expected-error @below {{has the clause 'mask' twice; its clauses are}}
  %o = flash.attention %q, %q, %q mask(#flash.causal) mask(#flash.causal) : (!t, !t, !t) -> !t
  return %o : !t
}

// -----

!t = tensor<1x1x4x8xf32>
func.func @behind_region(%q: !t) -> !t {
  %o = flash.attention %q, %q, %q score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    flash.yield %s : f32
  // expected-error @below {{has the clause 'schedule' behind 'score', before which it stands}}
  } schedule(<query_tile = 4>) : (!t, !t, !t) -> !t
  return %o : !t
}

// -----

!t = tensor<1x1x4x8xf32>
func.func @no_types(%q: !t) -> !t {
  %o = flash.attention %q, %q, %q
  // expected-error @below {{has no clause 'return' here}}
  return %o : !t
}

// -----

!t = tensor<1x1x4x8xf32>
!n = tensor<1x1x4xf32>
func.func @gradients(%q: !t, %n: !n) {
  // expected-error @below {{'flash.attention_grad' has no clause 'wtr' here; its clauses are, in this order: leading, scale, mask, lengths, query_lengths, key_lengths, sink, blocks, query_blocks, of, precision, multiples, schedule, lse_grad, wrt, score; ':' follows}}
  %g:3 = flash.attention_grad %q, %q, %q, %q, %n, %q wtr(%q : !t) : (!t, !t, !t, !t, !n, !t) -> (!t, !t, !t)
  return
}

// -----

func.func @block_map() {
  // expected-error @below {{'flash.block_map' has the clause 'packed' behind 'over_queries', before which it stands; its clauses are, in this order: packed, over_queries, mask, lengths, given, keep; ':' follows}}
  %t, %n = flash.block_map of[1, 1, 64, 64] tiles([16, 16]) over_queries packed(1) : tensor<1x1x4x4xi32>, tensor<1x1x4x2xi32>
  return
}

// -----

func.func @softmax(%s: tensor<4x8xf32>, %x: f32) {
  // expected-error @below {{'flash.softmax' has no clause 'sinks' here; its clauses are, in this order: sink; ':' follows}}
  %p = flash.softmax %s sinks(%x) : tensor<4x8xf32> -> tensor<4x8xf32>
  return
}

// -----

func.func @combine(%o: tensor<2x4x8xf32>, %l: tensor<2x4xf32>) {
  // expected-error @below {{'flash.combine' has no clause 'steps' here; its clauses are, in this order: step; ':' follows}}
  %r = flash.combine %o, %l steps(2) : (tensor<2x4x8xf32>, tensor<2x4xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @unpack(%a: index, %x: tensor<1x2x9x8xf32>, %n: tensor<3xi32>, %c: tensor<1xi32>) {
  // expected-error @below {{'flash.unpack' has the clause 'count' behind 'of', before which it stands; its clauses are, in this order: count, of; ':' follows}}
  %v, %l = flash.unpack %x by %n of[%a, %a] count(%c : tensor<1xi32>) : tensor<1x2x9x8xf32>, tensor<3xi32> -> tensor<2x2x9x8xf32>, tensor<2xi32>
  return
}

// -----

func.func @pack(%v: tensor<2x2x9x8xf32>, %n: tensor<3xi32>, %x: tensor<1x2x9x8xf32>) {
  // expected-error @below {{'flash.pack' has no clause 'size' here; its clauses are, in this order: count, of; ':' follows}}
  %m = flash.pack %v by %n into %x size[1, 9] : tensor<2x2x9x8xf32>, tensor<3xi32> into tensor<1x2x9x8xf32>
  return
}

// -----

!t = tensor<1x1x4x8xf32>
func.func @yield(%q: !t, %c: i1) {
  %o = flash.attention %q, %q, %q score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    // expected-error @below {{'flash.yield' has no clause 'kept' here; its clauses are, in this order: keep; ':' follows}}
    flash.yield %s kept %c : f32
  } : (!t, !t, !t) -> !t
  return
}

// -----

func.func @visit(%a: index) {
  // expected-error @below {{'flash.visit' has the clause 'to' behind 'by', before which it stands; its clauses are, in this order: from, to, by, distance, exist, list, cut, ranks, heads, tiles, contributors, fill_once, read_ahead, neutral_zeros, bounded, multiples, init; '{' follows}}
  flash.visit keys tile(4) from %a by %a to %a {
  }
  return
}

// -----

func.func @kernel(%a: index, %o: tensor<4x8xf32>) {
  // expected-error @below {{'flash.kernel' has no clause 'out' here; its clauses are, in this order: rows, outs, schedule, order; '{' follows}}
  flash.kernel over(%a) by [2] out(%o : tensor<4x8xf32>) {
  }
  return
}
