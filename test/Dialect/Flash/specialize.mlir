// The version of a program for calls of certain sizes.
// RUN: flash-opt %s --flash-attach-target=target=sm_90a --flash-specialize="sizes=16x32x1x128,16x8x4096x128,16x8x4096x128" | FileCheck %s --check-prefixes=CHECK,MANY
// RUN: flash-opt %s --flash-attach-target=target=sm_90a --flash-specialize="sizes=1x32x1x128,1x8x131072x128,1x8x131072x128" | FileCheck %s --check-prefixes=CHECK,FEW
// RUN: flash-opt %s --flash-attach-target=target=sm_90a --flash-specialize="sizes=1x32x1x128,1x8x140000x128,1x8x140000x128" | FileCheck %s --check-prefixes=CHECK,FEW
// RUN: flash-opt %s --flash-attach-target=target=sm_90a --flash-specialize="sizes=16x32x8x128,16x8x4096x128,16x8x4096x128" | FileCheck %s --check-prefix=EIGHT
// RUN: flash-opt %s --flash-attach-target=target=sm_90a --flash-specialize="sizes=16x32x33x128,16x8x4096x128,16x8x4096x128" | FileCheck %s --check-prefix=APART
// RUN: flash-opt %s --flash-attach-target=target=sm_90a --flash-specialize="sizes=4x16x4096x128,4x16x4096x128,4x16x4096x128" | FileCheck %s --check-prefix=ROWS
// RUN: flash-opt %s --flash-attach-target=target=sm_90a --flash-specialize="sizes=1x4x512x128,1x4x8192x128,1x4x8192x128" | FileCheck %s --check-prefix=SPLITS
// RUN: flash-opt %s --flash-attach-target=target=sm_90a --flash-specialize="sizes=16x32x1x128,16x8x?x128,16x8x?x128" | FileCheck %s --check-prefix=UNKNOWN
// RUN: flash-opt %s --flash-attach-target=target=sm_90a --flash-specialize="sizes=2x6x1x128,2x4x100x128,2x4x100x128" | FileCheck %s --check-prefix=UNEVEN
// RUN: flash-opt %s --flash-specialize="sizes=?x?x15x128,?x?x63x128,?x?x63x128" | FileCheck %s --check-prefix=LENGTHS

// One query: what packs the heads of a group stands in the types.
// CHECK-LABEL: func.func @open(
// CHECK-SAME:    %[[Q:.*]]: tensor<?x32x1x128xf16>, %[[K:.*]]: tensor<?x8x?x128xf16>, %[[V:.*]]: tensor<?x8x?x128xf16>, %[[N:.*]]: tensor<?xi32>)
// CHECK-SAME:    -> (tensor<?x?x?x128xf16>, tensor<?x?x?xf32>)
// CHECK-NOT:     tensor.cast
// CHECK-NOT:     multiples
// CHECK:         %[[O:.*]], %[[L:.*]] = flash.attention %[[Q]], %[[K]], %[[V]]
// MANY-SAME:       packed_heads = 4, {{.*}} split_keys = 1024>
// FEW-SAME:        split_ctas = 132>
// CHECK-SAME:      -> (tensor<?x32x1x128xf16>, tensor<?x32x1xf32>)
// CHECK:         tensor.cast %[[O]] : tensor<?x32x1x128xf16> to tensor<?x?x?x128xf16>
// CHECK:         tensor.cast %[[L]] : tensor<?x32x1xf32> to tensor<?x?x?xf32>

// So it is up to 32 queries; more are not packed.
// EIGHT:  func.func @open(%{{.*}}: tensor<?x32x8x128xf16>, %{{.*}}: tensor<?x8x?x128xf16>
// EIGHT-NOT: multiples
// EIGHT:    schedule(<query_tile = 64, key_tile = 64, packed_heads = 4,
// APART:  func.func @open(%{{.*}}: tensor<?x?x?x128xf16>
// APART-NOT: packed_heads

// Many queries: another schedule, and all sizes are open. No tile of 80 keys divides 4096.
// ROWS:   func.func @open(%{{.*}}: tensor<?x?x?x128xf16>
// ROWS-NOT: multiples
// ROWS:     query_tile = 192, key_tile = 80
// Tiles of more than 64 queries have no registers for a number of splits that is open.
// SPLITS:   multiples([128, 128]) schedule(<query_tile = 128, {{.*}} num_splits = {{[2-9]|1[0-9]}}>

// Lengths alone have a say, too; the types stay open.
// LENGTHS: func.func @open(%{{.*}}: tensor<?x?x?x128xf16>
// LENGTHS-NOT: multiples
// LENGTHS:   schedule(<query_tile = 16, key_tile = 64>)
// UNKNOWN-NOT: schedule
// UNEVEN-NOT: schedule
// CHECK-NOT: flash.calls
func.func @open(%q: tensor<?x?x?x128xf16>, %k: tensor<?x?x?x128xf16>, %v: tensor<?x?x?x128xf16>, %n: tensor<?xi32>)
    -> (tensor<?x?x?x128xf16>, tensor<?x?x?xf32>) {
  %o, %l = flash.attention %q, %k, %v lengths(%n : tensor<?xi32>)
      : (tensor<?x?x?x128xf16>, tensor<?x?x?x128xf16>, tensor<?x?x?x128xf16>) -> (tensor<?x?x?x128xf16>, tensor<?x?x?xf32>)
  return %o, %l : tensor<?x?x?x128xf16>, tensor<?x?x?xf32>
}
