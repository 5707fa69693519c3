// Versions of a program for the sizes of calls, and the choice between them.
// RUN: flash-opt %s --flash-attach-target=target=sm_90a --flash-make-versions="calls=16x32x1x128,16x8x4096x128" --cse | FileCheck %s
// RUN: flash-opt %s --flash-attach-target=target=sm_90a --flash-make-versions="calls=1x32x1x128,?x8x1..131071x128" --cse | FileCheck %s --check-prefix=KEYS
// RUN: flash-opt %s --flash-attach-target=target=sm_90a --flash-make-versions="calls=4x16x512..1023x128,?x16x512..1023x128" --cse | FileCheck %s --check-prefix=DIVISORS
// RUN: flash-opt %s --flash-attach-target=target=sm_90a --flash-make-versions="calls=16x32x1x128,16x8x4096x128;16x32x1x128,16x8x5119x128" --cse | FileCheck %s --check-prefix=SAME

// One version. Batch sizes are alike above 64, lengths where their three highest bits and divisors are; heads are not.

// CHECK-LABEL: func.func @open(
// CHECK-SAME:    %[[Q:.*]]: tensor<?x?x?x128xf16>, %[[K:.*]]: tensor<?x?x?x128xf16>, %{{.*}}: tensor<?xi32>)
// CHECK-DAG:     %[[B:.*]] = tensor.dim %[[Q]], %c0
// CHECK-DAG:     %[[HQ:.*]] = tensor.dim %[[Q]], %c1
// CHECK-DAG:     %[[NQ:.*]] = tensor.dim %[[Q]], %c2
// CHECK-DAG:     %[[HK:.*]] = tensor.dim %[[K]], %c1
// CHECK-DAG:     %[[NK:.*]] = tensor.dim %[[K]], %c2
// CHECK-DAG:     arith.cmpi eq, %[[B]], %c16
// CHECK-DAG:     arith.cmpi eq, %[[HQ]], %c32
// CHECK-DAG:     arith.cmpi eq, %[[NQ]], %c1
// CHECK-DAG:     arith.cmpi eq, %[[HK]], %c8
// CHECK-DAG:     arith.cmpi uge, %[[NK]], %c4096
// CHECK-DAG:     arith.cmpi ule, %[[NK]], %c5119
// CHECK:         %[[REST:.*]] = arith.remui %[[NK]], %c256
// CHECK:         arith.cmpi eq, %[[REST]], %c0
// CHECK:         scf.if %{{.*}} -> (tensor<?x?x?x128xf16>, tensor<?x?x?xf32>) {
// CHECK:           tensor.cast %[[Q]] : tensor<?x?x?x128xf16> to tensor<?x32x1x128xf16>
// CHECK:           flash.attention {{.*}} schedule(<query_tile = 16, {{.*}}packed_heads = 4
// CHECK:         } else {
// CHECK-NEXT:      flash.attention %[[Q]], %[[K]], %[[K]] lengths(
// CHECK-NOT:       schedule
// CHECK:         return

// Classes that follow one another are one condition, whatever divides their sizes.

// KEYS:         %[[NK:.*]] = tensor.dim %{{.*}}, %c2
// KEYS-NOT:     arith.remui
// KEYS:         arith.cmpi uge, %[[NK]], %c1
// KEYS:         arith.cmpi ule, %[[NK]], %c511
// KEYS:         scf.if
// KEYS:           flash.attention {{.*}} num_splits = 1>)
// KEYS-DAG:       arith.cmpi uge, %[[NK]], %c512
// KEYS-DAG:       arith.cmpi ule, %[[NK]], %c8191
// KEYS:           scf.if
// KEYS:             flash.attention {{.*}}query_tile = 16, key_tile = 64, {{.*}} split_ctas =
// KEYS-DAG:       arith.cmpi uge, %[[NK]], %c8192
// KEYS-DAG:       arith.cmpi ule, %[[NK]], %c81919
// KEYS:           scf.if
// KEYS:             flash.attention {{.*}}query_tile = 64, key_tile = 64, {{.*}} split_ctas =
// KEYS:             arith.cmpi uge, %[[NK]], %c81920
// KEYS:             arith.cmpi ule, %[[NK]], %c131071
// KEYS:             scf.if
// KEYS:               flash.attention {{.*}} key_tile = 128, {{.*}} split_ctas =

// What versions with the same schedule state of lengths makes four of one.

// DIVISORS:     %[[REST:.*]] = arith.remui %{{.*}}, %c128
// DIVISORS:     arith.cmpi eq, %[[REST]], %c0
// DIVISORS:     scf.if
// DIVISORS:       multiples([128, 128]) schedule(<query_tile = 128, key_tile = 128,
// DIVISORS:       arith.cmpi ne, %[[REST]], %c0
// DIVISORS:       scf.if
// DIVISORS:         multiples([1, 128]) schedule(<query_tile = 128, key_tile = 128,
// DIVISORS:         scf.if
// DIVISORS:           multiples([128, 1]) schedule(<query_tile = 128, key_tile = 128,
// DIVISORS:           scf.if
// DIVISORS-NOT:         multiples
// DIVISORS:             schedule(<query_tile = 128, key_tile = 128,
// DIVISORS-NOT: scf.if
// DIVISORS:     return

// Two calls whose versions are one.

// SAME:         %[[BY_256:.*]] = arith.remui %[[NK:.*]], %c256
// SAME:         arith.cmpi eq, %[[BY_256]], %c0
// SAME:         %[[BY_64:.*]] = arith.remui %[[NK]], %c64
// SAME:         arith.cmpi ne, %[[BY_64]], %c0
// SAME:         arith.ori
// SAME-COUNT-2: flash.attention
// SAME-NOT:     flash.attention
// SAME:         return

func.func @open(%q: tensor<?x?x?x128xf16>, %k: tensor<?x?x?x128xf16>, %n: tensor<?xi32>)
    -> (tensor<?x?x?x128xf16>, tensor<?x?x?xf32>) {
  %o, %l = flash.attention %q, %k, %k lengths(%n : tensor<?xi32>)
      : (tensor<?x?x?x128xf16>, tensor<?x?x?x128xf16>, tensor<?x?x?x128xf16>) -> (tensor<?x?x?x128xf16>, tensor<?x?x?xf32>)
  return %o, %l : tensor<?x?x?x128xf16>, tensor<?x?x?xf32>
}
