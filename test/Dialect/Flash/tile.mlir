// RUN: flash-opt %s --flash-tile --convert-flash-to-scf --canonicalize --cse --split-input-file --verify-diagnostics | FileCheck %s

#schedule = #flash.schedule<query_tile = 64, key_tile = 128>

// Sizes that are multiples of the tile: no padding anywhere. Query heads 0..3
// read key head 0, 4..7 key head 1.

// CHECK-LABEL: func @even(
// CHECK-SAME:    %[[Q:.*]]: tensor<2x8x128x64xf16>, %[[K:[^:]*]]: tensor
// CHECK:         scf.forall (%[[B:.*]], %[[H:.*]], %[[I:.*]]) = (0, 0, 0) to (2, 8, 128) step (1, 1, 64)
// CHECK:           %[[QT:.*]] = tensor.extract_slice %[[Q]][%[[B]], %[[H]], %[[I]], 0] [1, 1, 64, 64]
// CHECK:           %[[HK:.*]] = affine.apply #{{.*}}(%[[H]])
// CHECK:           %[[STATE:.*]]:3 = scf.for %[[J:.*]] = %c0 to %c256 step %c128
// CHECK-SAME:          -> (tensor<64x48xf32>, tensor<64xf32>, tensor<64xf32>)
// CHECK:             %[[KT:.*]] = tensor.extract_slice %[[K]][%[[B]], %[[HK]], %[[J]], 0] [1, 1, 128, 64]
// CHECK-NOT:         tensor.pad
// CHECK:             flash.online_attention ins(%[[QT]], %[[KT]],
// CHECK-SAME:          at[%[[B]], %[[H]], %[[I]], %[[J]]] of[128, 256] scale
// CHECK:           %[[O:.*]] = flash.finalize ins(%[[STATE]]#0, %[[STATE]]#1, %[[STATE]]#2
// CHECK:           tensor.parallel_insert_slice %[[O]] into %{{.*}}[%[[B]], %[[H]], %[[I]], 0] [1, 1, 64, 48]
// CHECK:         } {mapping = [#gpu.block<linear_dim_2>, #gpu.block<linear_dim_1>, #gpu.block<linear_dim_0>]}
func.func @even(%q: tensor<2x8x128x64xf16>, %k: tensor<2x2x256x64xf16>, %v: tensor<2x2x256x48xf16>,
                %acc: tensor<2x8x128x48xf32>, %max: tensor<2x8x128xf32>, %sum: tensor<2x8x128xf32>,
                %out: tensor<2x8x128x48xf16>) -> tensor<2x8x128x48xf16> {
  %a, %m, %l = flash.online_attention ins(%q, %k, %v : tensor<2x8x128x64xf16>, tensor<2x2x256x64xf16>, tensor<2x2x256x48xf16>)
      outs(%acc, %max, %sum : tensor<2x8x128x48xf32>, tensor<2x8x128xf32>, tensor<2x8x128xf32>)
      at[0, 0, 0, 0] of[128, 256] scale(1.0) schedule(#schedule)
  %o = flash.finalize ins(%a, %m, %l : tensor<2x8x128x48xf32>, tensor<2x8x128xf32>, tensor<2x8x128xf32>)
      outs(%out : tensor<2x8x128x48xf16>) -> tensor<2x8x128x48xf16>
  return %o : tensor<2x8x128x48xf16>
}

// -----

#schedule = #flash.schedule<query_tile = 64, key_tile = 128>

// Dynamic sizes and run-time lengths: ragged tiles are padded, padded queries
// dropped, padded keys excluded, and the key loop ends at the batch's length.

// CHECK-DAG:   #[[ROWS:.*]] = affine_map<(d0)[s0] -> (-d0 + s0, 64)>
// CHECK-DAG:   #[[KEYS:.*]] = affine_map<(d0)[s0] -> (-d0 + s0, 128)>
// CHECK-LABEL: func @ragged(
// CHECK-SAME:    %[[LENGTHS:[^:]*]]: tensor<?xi32>
// CHECK:         %[[GROUP:.*]] = arith.divui
// CHECK:         scf.forall (%[[B:.*]], %[[H:.*]], %[[I:.*]]) = (0, 0, 0)
// CHECK:           %[[ROWS_HERE:.*]] = affine.min #[[ROWS]](%[[I]])
// CHECK:           tensor.extract_slice {{.*}} [1, 1, %[[ROWS_HERE]], 64]
// CHECK:           %[[QT:.*]] = tensor.pad {{.*}} high[{{.*}}, 0]
// CHECK:           tensor<?x64xf32> to tensor<64x64xf32>
// CHECK:           %[[LENGTH:.*]] = tensor.extract %[[LENGTHS]][%[[B]]]
// CHECK:           %[[CAST:.*]] = arith.index_cast %[[LENGTH]]
// CHECK:           %[[NOT_NEGATIVE:.*]] = arith.maxsi %[[CAST]], %c0
// CHECK:           %[[END:.*]] = arith.minsi %[[NOT_NEGATIVE]]
// CHECK:           arith.divui %[[H]], %[[GROUP]]
// CHECK:           scf.for %[[J:.*]] = %c0 to %[[END]] step %c128
// CHECK:             %[[KEYS_HERE:.*]] = affine.min #[[KEYS]](%[[J]])[%[[END]]]
// CHECK:             flash.online_attention ins(%[[QT]]
// CHECK-SAME:          keys(%[[KEYS_HERE]])
// CHECK:           tensor.extract_slice {{.*}}[0, 0] [%[[ROWS_HERE]], 64]
// CHECK:           tensor.parallel_insert_slice
func.func @ragged(%lengths: tensor<?xi32>, %q: tensor<?x?x?x64xf32>, %k: tensor<?x?x?x64xf32>, %v: tensor<?x?x?x64xf32>,
                  %acc: tensor<?x?x?x64xf32>, %max: tensor<?x?x?xf32>, %sum: tensor<?x?x?xf32>, %nq: index, %nk: index,
                  %out: tensor<?x?x?x64xf32>) -> tensor<?x?x?x64xf32> {
  %a, %m, %l = flash.online_attention ins(%q, %k, %v : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>)
      outs(%acc, %max, %sum : tensor<?x?x?x64xf32>, tensor<?x?x?xf32>, tensor<?x?x?xf32>)
      at[0, 0, 0, 0] of[%nq, %nk] scale(1.0) lengths(%lengths : tensor<?xi32>) schedule(#schedule)
  %o = flash.finalize ins(%a, %m, %l : tensor<?x?x?x64xf32>, tensor<?x?x?xf32>, tensor<?x?x?xf32>)
      outs(%out : tensor<?x?x?x64xf32>) -> tensor<?x?x?x64xf32>
  return %o : tensor<?x?x?x64xf32>
}

// -----

func.func @no_schedule(%q: tensor<1x1x64x64xf32>, %acc: tensor<1x1x64x64xf32>, %max: tensor<1x1x64xf32>, %sum: tensor<1x1x64xf32>,
                       %out: tensor<1x1x64x64xf32>) -> tensor<1x1x64x64xf32> {
  // expected-error @below {{has no schedule with query_tile and key_tile; run flash-select-schedule or write them}}
  %a, %m, %l = flash.online_attention ins(%q, %q, %q : tensor<1x1x64x64xf32>, tensor<1x1x64x64xf32>, tensor<1x1x64x64xf32>)
      outs(%acc, %max, %sum : tensor<1x1x64x64xf32>, tensor<1x1x64xf32>, tensor<1x1x64xf32>) at[0, 0, 0, 0] of[64, 64] scale(1.0)
  %o = flash.finalize ins(%a, %m, %l : tensor<1x1x64x64xf32>, tensor<1x1x64xf32>, tensor<1x1x64xf32>)
      outs(%out : tensor<1x1x64x64xf32>) -> tensor<1x1x64x64xf32>
  return %o : tensor<1x1x64x64xf32>
}

// -----

#schedule = #flash.schedule<query_tile = 64, key_tile = 64>

func.func @elsewhere(%q: tensor<1x1x64x64xf32>, %acc: tensor<1x1x64x64xf32>, %max: tensor<1x1x64xf32>, %sum: tensor<1x1x64xf32>,
                     %out: tensor<1x1x64x64xf32>) -> tensor<1x1x64x64xf32> {
  // expected-error @below {{can be tiled only from position [0, 0, 0, 0] on}}
  %a, %m, %l = flash.online_attention ins(%q, %q, %q : tensor<1x1x64x64xf32>, tensor<1x1x64x64xf32>, tensor<1x1x64x64xf32>)
      outs(%acc, %max, %sum : tensor<1x1x64x64xf32>, tensor<1x1x64xf32>, tensor<1x1x64xf32>)
      at[0, 0, 64, 0] of[128, 64] scale(1.0) schedule(#schedule)
  %o = flash.finalize ins(%a, %m, %l : tensor<1x1x64x64xf32>, tensor<1x1x64xf32>, tensor<1x1x64xf32>)
      outs(%out : tensor<1x1x64x64xf32>) -> tensor<1x1x64x64xf32>
  return %o : tensor<1x1x64x64xf32>
}

// -----

#schedule = #flash.schedule<query_tile = 64, key_tile = 64>

func.func @other_user(%q: tensor<1x1x64x64xf32>, %acc: tensor<1x1x64x64xf32>, %max: tensor<1x1x64xf32>, %sum: tensor<1x1x64xf32>)
    -> tensor<1x1x64x64xf32> {
  // expected-error @below {{can be tiled only if all of its results go to one flash.finalize and nowhere else}}
  %a, %m, %l = flash.online_attention ins(%q, %q, %q : tensor<1x1x64x64xf32>, tensor<1x1x64x64xf32>, tensor<1x1x64x64xf32>)
      outs(%acc, %max, %sum : tensor<1x1x64x64xf32>, tensor<1x1x64xf32>, tensor<1x1x64xf32>)
      at[0, 0, 0, 0] of[64, 64] scale(1.0) schedule(#schedule)
  return %a : tensor<1x1x64x64xf32>
}

// -----

// Multiples of the tiles need no padding, though they are open; lengths may end anywhere.

// CHECK-LABEL: func @multiples(
// CHECK:         scf.forall
// CHECK-NOT:       tensor.pad
// CHECK:           scf.for
// CHECK-NOT:       tensor.pad
// CHECK:           flash.online_attention
// CHECK-NOT:         keys(
// CHECK:         scf.forall
// CHECK:           scf.for
// CHECK:             tensor.pad
// CHECK:             flash.online_attention {{.*}} keys(
func.func @multiples(%q: tensor<1x2x?x16xf32>, %n: tensor<1xi32>, %a: tensor<1x2x?x16xf32>, %r: tensor<1x2x?xf32>, %e: index)
    -> (tensor<1x2x?x16xf32>, tensor<1x2x?x16xf32>) {
  %s:3 = flash.online_attention ins(%q, %q, %q : tensor<1x2x?x16xf32>, tensor<1x2x?x16xf32>, tensor<1x2x?x16xf32>)
      outs(%a, %r, %r : tensor<1x2x?x16xf32>, tensor<1x2x?xf32>, tensor<1x2x?xf32>) at[0, 0, 0, 0] of[%e, %e] scale(1.0)
      multiples([16, 32]) schedule(<query_tile = 16, key_tile = 32>)
  %o = flash.finalize ins(%s#0, %s#1, %s#2 : tensor<1x2x?x16xf32>, tensor<1x2x?xf32>, tensor<1x2x?xf32>)
      outs(%a : tensor<1x2x?x16xf32>) -> tensor<1x2x?x16xf32>
  %t:3 = flash.online_attention ins(%q, %q, %q : tensor<1x2x?x16xf32>, tensor<1x2x?x16xf32>, tensor<1x2x?x16xf32>)
      outs(%a, %r, %r : tensor<1x2x?x16xf32>, tensor<1x2x?xf32>, tensor<1x2x?xf32>) at[0, 0, 0, 0] of[%e, %e] scale(1.0)
      lengths(%n : tensor<1xi32>) multiples([16, 32]) schedule(<query_tile = 16, key_tile = 32>)
  %p = flash.finalize ins(%t#0, %t#1, %t#2 : tensor<1x2x?x16xf32>, tensor<1x2x?xf32>, tensor<1x2x?xf32>)
      outs(%a : tensor<1x2x?x16xf32>) -> tensor<1x2x?x16xf32>
  return %o, %p : tensor<1x2x?x16xf32>, tensor<1x2x?x16xf32>
}

// -----

func.func @columns(%q: tensor<1x1x64x64xf32>, %acc: tensor<1x1x64x64xf32>, %max: tensor<1x1x64xf32>, %sum: tensor<1x1x64xf32>,
                   %out: tensor<1x1x64x64xf32>) -> tensor<1x1x64x64xf32> {
  // expected-error @below {{cannot be tiled: blocks of value_columns = 72 of 64 columns of values do not begin multiples of 8 columns apart; the nearest is 64}}
  %a, %m, %l = flash.online_attention ins(%q, %q, %q : tensor<1x1x64x64xf32>, tensor<1x1x64x64xf32>, tensor<1x1x64x64xf32>)
      outs(%acc, %max, %sum : tensor<1x1x64x64xf32>, tensor<1x1x64xf32>, tensor<1x1x64xf32>) at[0, 0, 0, 0] of[64, 64] scale(1.0) schedule(<query_tile = 64, key_tile = 64, value_columns = 72>)
  %o = flash.finalize ins(%a, %m, %l : tensor<1x1x64x64xf32>, tensor<1x1x64xf32>, tensor<1x1x64xf32>)
      outs(%out : tensor<1x1x64x64xf32>) -> tensor<1x1x64x64xf32>
  return %o : tensor<1x1x64x64xf32>
}
