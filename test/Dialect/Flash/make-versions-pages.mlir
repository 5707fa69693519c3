// Versions of a program whose keys lie in pages: the table says how many sequences there are and how many pages each may have.
// RUN: flash-opt %s --flash-attach-target=target=sm_80 --flash-make-versions="calls=2..8x32x1x128,?x8x16x128,?x8x16x128,?x64..70" --cse | FileCheck %s
// Tables of other widths, which have the version, too, need not have room for whole tiles.
// RUN: flash-opt %s --flash-attach-target=target=sm_80 --flash-make-versions="calls=2x32x128x128,?x8x16x128,?x8x16x128,?x68" --cse | FileCheck %s --check-prefix=WIDTHS
// RUN: not flash-opt %s --flash-attach-target=target=sm_80 --flash-make-versions="calls=8x32x1x128,?x8x16x128" 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// RUN: not flash-opt %s --flash-attach-target=target=sm_80 --flash-make-versions="calls=8x32x1x128,?x8x16x128,?x8x16x128,9x64" 2>&1 | FileCheck %s --check-prefix=CONTRADICTS
// RUN: not flash-opt %s --flash-attach-target=target=sm_80 --flash-make-versions="calls=8x32x1x128,50x8x16x128,?x8x16x128,?x64" 2>&1 | FileCheck %s --check-prefix=PAGES

// UNKNOWN: cannot have versions for the call '8x32x1x128,?x8x16x128': it does not say the number of pages of a sequence (size 1 of argument 3)
// CONTRADICTS: it says 8 and 9 of the batch size
// PAGES: no schedule depends on size 0 of argument 1; write ?

// WIDTHS: arith.cmpi uge, %{{.*}}, %c65
// WIDTHS: arith.cmpi ule, %{{.*}}, %c79
// WIDTHS: multiples([128, 1]) schedule(<query_tile = 128, key_tile = 32

// CHECK-LABEL: func.func @decode(
// CHECK-SAME:    %[[Q:.*]]: tensor<?x?x?x128xbf16>, %[[K:.*]]: tensor<?x?x16x128xbf16>, %{{.*}}: tensor<?x?x16x128xbf16>, %[[T:.*]]: tensor<?x?xi32>,
// CHECK-DAG:     %[[B:.*]] = tensor.dim %[[Q]], %c0
// CHECK-DAG:     %[[HK:.*]] = tensor.dim %[[K]], %c1
// CHECK-DAG:     %[[COLUMNS:.*]] = tensor.dim %[[T]], %c1
// CHECK-DAG:     arith.cmpi uge, %[[B]], %c2
// CHECK-DAG:     arith.cmpi ule, %[[B]], %c8
// CHECK-DAG:     arith.cmpi eq, %[[HK]], %c8
// CHECK-DAG:     arith.cmpi uge, %[[COLUMNS]], %c64
// CHECK-DAG:     arith.cmpi ule, %[[COLUMNS]], %c79
// CHECK:         scf.if
// CHECK:           %[[OF:.*]] = tensor.cast %[[K]] : tensor<?x?x16x128xbf16> to tensor<?x8x16x128xbf16>
// CHECK:           flash.unpage %[[OF]] by %[[T]]
// CHECK:           flash.attention {{.*}} schedule(<query_tile = 16, {{.*}}packed_heads = 4
// CHECK:         } else {
// CHECK:           flash.unpage %[[K]] by %[[T]]
// CHECK-NOT:       schedule
// CHECK:         return
!q = tensor<?x?x?x128xbf16>
!cache = tensor<?x?x16x128xbf16>
func.func @decode(%q: !q, %k: !cache, %v: !cache, %table: tensor<?x?xi32>, %n: tensor<?xi32>) -> !q {
  %ks = flash.unpage %k by %table lengths(%n : tensor<?xi32>) : !cache, tensor<?x?xi32> -> !q
  %vs = flash.unpage %v by %table lengths(%n : tensor<?xi32>) : !cache, tensor<?x?xi32> -> !q
  %o = flash.attention %q, %ks, %vs key_lengths(%n : tensor<?xi32>) : (!q, !q, !q) -> !q
  return %o : !q
}
