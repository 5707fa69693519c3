// Padding past the last query or key gets the last one's position only where a
// score program might fail there.
// RUN: flash-opt %s --flash-online-softmax --flash-tile --flash-refine-visits --convert-flash-to-scf --canonicalize --cse \
// RUN:   --flash-decompose=guard-values --cse --convert-linalg-to-tile --canonicalize --cse | FileCheck %s

!part = tensor<1x2x100x64xf16>
!whole = tensor<1x2x96x64xf16>

// Arithmetic cannot fail: neither position has a bound.

// CHECK-LABEL: gpu.func @arithmetic(
// CHECK:       tile.map
// CHECK-NOT:     arith.minsi
// CHECK:         arith.sitofp
// CHECK:         tile.yield
func.func @arithmetic(%q: !part, %k: !part) -> !part {
  %o = flash.attention %q, %k, %k schedule(<query_tile = 32, key_tile = 16>) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %d = arith.subi %j, %i : index
    %n = arith.index_cast %d : index to i32
    %x = arith.sitofp %n : i32 to f32
    %y = arith.addf %s, %x : f32
    flash.yield %y : f32
  } : (!part, !part, !part) -> !part
  return %o : !part
}

// A tensor is read at the query: the key has no bound.

// CHECK-LABEL: gpu.func @of_queries(
// CHECK:       tile.map
// CHECK:         %[[QUERY:.*]] = arith.minsi %{{.*}}, %c99
// CHECK-NOT:     arith.minsi
// CHECK:         memref.load %{{.*}}[%[[QUERY]]]
// CHECK-NOT:     arith.minsi
// CHECK:         tile.yield
func.func @of_queries(%q: !part, %k: !part, %bias: tensor<100xf32>) -> !part {
  %o = flash.attention %q, %k, %k schedule(<query_tile = 32, key_tile = 16>) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %x = tensor.extract %bias[%i] : tensor<100xf32>
    %n = arith.index_cast %j : index to i32
    %f = arith.sitofp %n : i32 to f32
    %y = arith.mulf %f, %x : f32
    %z = arith.addf %s, %y : f32
    flash.yield %z : f32
  } : (!part, !part, !part) -> !part
  return %o : !part
}

// At the key, which has a bound in the last tile alone: the others are whole.

// CHECK-LABEL: gpu.func @of_keys(
// CHECK:       scf.for
// CHECK:         tile.map
// CHECK-NOT:       arith.minsi
// CHECK:           memref.load
// CHECK:           tile.yield
// CHECK:       tile.map
// CHECK:         %[[KEY:.*]] = arith.minsi %{{.*}}, %c99
// CHECK:         memref.load %{{.*}}[%[[KEY]]]
// CHECK:         tile.yield
func.func @of_keys(%q: !part, %k: !part, %bias: tensor<100xf32>) -> !part {
  %o = flash.attention %q, %k, %k schedule(<query_tile = 32, key_tile = 16>) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %x = tensor.extract %bias[%j] : tensor<100xf32>
    %y = arith.addf %s, %x : f32
    flash.yield %y : f32
  } : (!part, !part, !part) -> !part
  return %o : !part
}

// No tile of 96 keys by 16 is in part.

// CHECK-LABEL: gpu.func @whole_tiles(
// CHECK-NOT:   arith.minsi
// CHECK:       gpu.return
func.func @whole_tiles(%q: !part, %k: !whole, %bias: tensor<96xf32>) -> !part {
  %o = flash.attention %q, %k, %k schedule(<query_tile = 32, key_tile = 16>) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %x = tensor.extract %bias[%j] : tensor<96xf32>
    %y = arith.addf %s, %x : f32
    flash.yield %y : f32
  } : (!part, !whole, !whole) -> !part
  return %o : !part
}

// A quotient of integers fails where its divisor is 0, as 100 - i is outside.

// CHECK-LABEL: gpu.func @quotient(
// CHECK:       tile.map
// CHECK:         %[[QUERY:.*]] = arith.minsi %{{.*}}, %c99
// CHECK:         %[[LEFT:.*]] = arith.subi %c100, %[[QUERY]]
// CHECK:         arith.divsi %{{.*}}, %[[LEFT]]
func.func @quotient(%q: !part, %k: !part) -> !part {
  %c100 = arith.constant 100 : index
  %o = flash.attention %q, %k, %k schedule(<query_tile = 32, key_tile = 16>) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %left = arith.subi %c100, %i : index
    %part = arith.divsi %j, %left : index
    %n = arith.index_cast %part : index to i32
    %x = arith.sitofp %n : i32 to f32
    %y = arith.addf %s, %x : f32
    flash.yield %y : f32
  } : (!part, !part, !part) -> !part
  return %o : !part
}

// By a constant it does not.

// CHECK-LABEL: gpu.func @quotient_by_constant(
// CHECK:       tile.map
// CHECK-NOT:     arith.minsi
// CHECK:         arith.divsi
// CHECK:         tile.yield
func.func @quotient_by_constant(%q: !part, %k: !part) -> !part {
  %c100 = arith.constant 100 : index
  %o = flash.attention %q, %k, %k schedule(<query_tile = 32, key_tile = 16>) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %part = arith.divsi %i, %c100 : index
    %n = arith.index_cast %part : index to i32
    %x = arith.sitofp %n : i32 to f32
    %y = arith.addf %s, %x : f32
    flash.yield %y : f32
  } : (!part, !part, !part) -> !part
  return %o : !part
}
