// Sequences among rows in several parts, and a count of them in memory: kernels over their rows end with the tiles that exist.
// RUN: flash-opt %s --convert-flash-to-scf=only-kernels --canonicalize --cse | FileCheck %s

// CHECK-DAG:   #[[TILES:.*]] = affine_map<(d0)[s0] -> ((d0 * 63 + s0) floordiv 64)>
// CHECK-DAG:   #[[NUMBER:.*]] = affine_map<(d0, d1)[s0] -> (d0 * s0 + d1)>
// CHECK-LABEL: func @parts(
// CHECK-SAME:      %[[X:.*]]: tensor<?x4x?x64xf16>, %[[OFFSETS:.*]]: tensor<?xi32>, %[[COUNT:.*]]: tensor<1xi32>, %[[M:.*]]: index, %[[T:.*]]: index)
// CHECK:         scf.forall (%{{.*}}, %[[H:.*]], %[[ROW:.*]]) = (0, 0, 0) to (1, 4, %{{.*}}) step (1, 1, 64) shared_outs(%[[TO:.*]] = %{{.*}})
// CHECK:           %[[INGRID:.*]] = arith.divui %[[ROW]], %c64
// CHECK:           tensor.extract %[[COUNT]][%c0]
// CHECK:           affine.apply #[[TILES]](%{{.*}})[%{{.*}}]
// CHECK:           %[[EXIST:.*]] = arith.select
// CHECK:           %[[ALL:.*]] = arith.muli %[[EXIST]], %c4
// CHECK:           tile.end_grid %[[ALL]]
// CHECK:           %[[N:.*]] = affine.apply #[[NUMBER]](%[[H]], %[[INGRID]])
// CHECK:           %[[P:.*]]:2 = tile.position %[[N]] of(%c4, %[[EXIST]]) longest_first
// A sequence ends with the rows among which it starts.
// CHECK:           %[[ROWS:.*]] = arith.maxsi %[[T]], %c1
// CHECK:           %[[PART:.*]] = arith.divui %[[START:.*]], %[[ROWS]]
// CHECK:           %[[KNOWN:.*]] = arith.minsi %[[PART]]
// CHECK:           %[[NEXT:.*]] = arith.addi %[[KNOWN]], %c1
// CHECK:           %[[BEHIND:.*]] = arith.muli %[[NEXT]], %[[ROWS]]
// CHECK:           %[[END:.*]] = arith.minsi %{{.*}}, %[[BEHIND]]
// CHECK:           arith.subi %[[END]], %[[START]]
// CHECK:           tensor.extract_slice %[[X]][%[[KNOWN]], %[[P]]#0, %[[AT:.*]], 0] [1, 1, %{{.*}}, 64]
// CHECK:           tensor.parallel_insert_slice %{{.*}} into %[[TO]][%[[KNOWN]], %[[P]]#0, %[[AT]], 0]
// CHECK:         } {{.*}}tile.order = #tile.order<linear>
func.func @parts(%x: tensor<?x4x?x64xf16>, %offsets: tensor<?xi32>, %count: tensor<1xi32>, %m: index, %t: index) -> tensor<?x4x?x64xf16> {
  %c4 = arith.constant 4 : index
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %view, %n = flash.unpack %x by %offsets count(%count : tensor<1xi32>) of[%m, %t] : tensor<?x4x?x64xf16>, tensor<?xi32> -> tensor<?x4x?x64xf16>, tensor<?xi32>
  %e = tensor.empty(%m, %t) : tensor<?x4x?x64xf16>
  %b = tensor.dim %offsets, %c0 : tensor<?xi32>
  %stored = flash.kernel over(%b, %c4, %t) by [1, 1, 64] rows(%view : tensor<?x4x?x64xf16>) outs(%view : tensor<?x4x?x64xf16>) order(<longest_first>) {
  ^bb0(%batch: index, %h: index, %i: index, %out: tensor<?x4x?x64xf16>):
    %length = tensor.extract %n[%batch] : tensor<?xi32>
    %l = arith.index_cast %length : i32 to index
    %left = arith.subi %l, %i : index
    %rows = arith.minsi %left, %c64 : index
    %tile = flash.load_rows %view[%batch, %h, %i] rows(%rows) : tensor<?x4x?x64xf16> -> tensor<64x64xf16>
    flash.store {
      flash.store_rows %tile into %out[%batch, %h, %i] rows(%rows) : tensor<64x64xf16> into tensor<?x4x?x64xf16>
    }
  }
  %p = flash.pack %stored by %offsets into %e count(%count : tensor<1xi32>) of[%m, %t] : tensor<?x4x?x64xf16>, tensor<?xi32> into tensor<?x4x?x64xf16>
  return %p : tensor<?x4x?x64xf16>
}
