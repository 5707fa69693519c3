// Attentions of other forms, and what is refused.
// RUN: flash-opt %s --flash-attach-target=target=sm_80 --flash-specialize="sizes=8x1x64,2x300x64" --split-input-file --verify-diagnostics | FileCheck %s

// Of rank 3 the heads come first; what the program says of its schedule stays; a region that reads another
// argument is no hindrance; keys may be values too.

// CHECK-LABEL: func.func @heads(
// CHECK-SAME:    %[[Q:.*]]: tensor<8x1x64xf32>, %[[K:.*]]: tensor<2x?x64xf32>, %[[B:.*]]: tensor<?xf32>)
// CHECK:         flash.attention %[[Q]], %[[K]], %[[K]]
// CHECK-SAME:      schedule(<query_tile = 16, key_tile = 32,
// CHECK:           tensor.extract %[[B]]
func.func @heads(%q: tensor<?x?x64xf32>, %k: tensor<?x?x64xf32>, %bias: tensor<?xf32>) -> tensor<?x?x64xf32> {
  %o = flash.attention %q, %k, %k schedule(<query_tile = 16, key_tile = 32>) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %e = tensor.extract %bias[%j] : tensor<?xf32>
    %r = arith.addf %s, %e : f32
    flash.yield %r : f32
  } : (tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?x64xf32>) -> tensor<?x?x64xf32>
  return %o : tensor<?x?x64xf32>
}

// -----

// Rank 3 without heads, and an attention of another one's result: its sizes are known, too.

// CHECK-LABEL: func.func @batch(%arg0: tensor<?x?x64xf32>, %arg1: tensor<?x?x64xf32>)
// CHECK-COUNT-2: schedule(
func.func @batch(%q: tensor<?x?x64xf32>, %k: tensor<?x?x64xf32>) -> tensor<?x?x64xf32> {
  %o = flash.attention %q, %q, %q leading(batch) : (tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?x64xf32>) -> tensor<?x?x64xf32>
  %p = flash.attention %o, %q, %q leading(batch) : (tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?x64xf32>) -> tensor<?x?x64xf32>
  return %p : tensor<?x?x64xf32>
}

// -----

// Heads are packed where types say how many there are: not of what no argument is.

// CHECK-LABEL: func.func @computed(
// CHECK-SAME:    %{{.*}}: tensor<?x?x64xf32>, %[[K:.*]]: tensor<2x?x64xf32>)
// CHECK:         %[[O:.*]] = flash.attention
// CHECK:         flash.attention %[[O]], %[[K]], %[[K]] schedule(
// CHECK-NOT:     packed_heads
// CHECK:         return
func.func @computed(%q: tensor<?x?x64xf32>, %k: tensor<?x?x64xf32>) -> tensor<?x?x64xf32> {
  %o = flash.attention %q, %q, %q : (tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?x64xf32>) -> tensor<?x?x64xf32>
  %p = flash.attention %o, %k, %k : (tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?x64xf32>) -> tensor<?x?x64xf32>
  return %p : tensor<?x?x64xf32>
}

// -----

// expected-error @below {{'func.func' op takes 1 arguments, and sizes are given for 2}}
func.func @fewer(%q: tensor<?x?x64xf32>) -> tensor<?x?x64xf32> {
  return %q : tensor<?x?x64xf32>
}

// -----

// expected-error @below {{'func.func' op has an argument 1 of type 'tensor<?x?x32xf32>', which is never of the sizes 2x300x64}}
func.func @other(%q: tensor<?x?x64xf32>, %k: tensor<?x?x32xf32>) -> tensor<?x?x64xf32> {
  return %q : tensor<?x?x64xf32>
}

// -----

// A schedule that cannot be.

func.func @schedule(%q: tensor<?x?x64xf32>, %k: tensor<?x?x64xf32>) -> tensor<?x?x64xf32> {
  // expected-error @below {{cannot be scheduled: }}
  %o = flash.attention %q, %k, %k schedule(<query_tile = 24, key_tile = 32>)
      : (tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?x64xf32>) -> tensor<?x?x64xf32>
  return %o : tensor<?x?x64xf32>
}
