// The splits of the keys of a query tile, and the combination of what they have
// computed.
// RUN: flash-opt %s --flash-online-softmax --flash-tile --convert-flash-to-scf --canonicalize --cse --split-input-file | FileCheck %s

// A known number: the loop over query tiles is also one over splits, each of
// which takes every third tile of keys. All write partial results.

// CHECK-LABEL: func @splits(
// CHECK-DAG:     %[[OUTS:.*]] = tensor.empty() : tensor<3x2x8x128x48xf32>
// CHECK-DAG:     %[[LSES:.*]] = tensor.empty() : tensor<3x2x8x128xf32>
// CHECK:         %[[PART:.*]]:2 = scf.forall (%[[S:.*]], %[[B:.*]], %[[H:.*]], %[[I:.*]]) = (0, 0, 0, 0) to (3, 2, 8, 128) step (1, 1, 1, 64)
// CHECK-SAME:        shared_outs(%[[O:.*]] = %[[OUTS]], %[[L:.*]] = %[[LSES]])
// CHECK:           %[[FIRST:.*]] = affine.apply #{{.*}}(%[[S]])
// CHECK:           %[[STATE:.*]]:3 = scf.for %[[J:.*]] = %[[FIRST]] to %c1280 step %c384
// CHECK:             flash.online_attention {{.*}} at[%[[B]], %[[H]], %[[I]], %[[J]]]
// CHECK:           %[[OT:.*]], %[[LT:.*]] = flash.finalize ins(%[[STATE]]#0, {{.*}} -> (tensor<64x48xf32>, tensor<64xf32>)
// CHECK:           tensor.parallel_insert_slice %[[OT]] into %[[O]][%[[S]], %[[B]], %[[H]], %[[I]], 0] [1, 1, 1, 64, 48]
// CHECK:           tensor.parallel_insert_slice %[[LT]] into %[[L]][%[[S]], %[[B]], %[[H]], %[[I]]] [1, 1, 1, 64]
// CHECK:         scf.forall (%[[B:.*]], %[[H:.*]], %[[I:.*]]) = (0, 0, 0) to (2, 8, 128) step (1, 1, 8)
// CHECK:           %[[OS:.*]] = tensor.extract_slice %[[PART]]#0[0, %[[B]], %[[H]], %[[I]], 0] [3, 1, 1, 8, 48]
// CHECK:           %[[LS:.*]] = tensor.extract_slice %[[PART]]#1[0, %[[B]], %[[H]], %[[I]]] [3, 1, 1, 8]
// CHECK:           %[[X:.*]] = flash.combine %[[OS]], %[[LS]] : (tensor<3x8x48xf32>, tensor<3x8xf32>) -> tensor<8x48xf16>
// CHECK:           tensor.parallel_insert_slice %[[X]] into %{{.*}}[%[[B]], %[[H]], %[[I]], 0] [1, 1, 8, 48]
func.func @splits(%q: tensor<2x8x128x64xf16>, %k: tensor<2x2x1280x64xf16>, %v: tensor<2x2x1280x48xf16>) -> tensor<2x8x128x48xf16> {
  %o = flash.attention %q, %k, %v schedule(<query_tile = 64, key_tile = 128, num_splits = 3>)
      : (tensor<2x8x128x64xf16>, tensor<2x2x1280x64xf16>, tensor<2x2x1280x48xf16>) -> tensor<2x8x128x48xf16>
  return %o : tensor<2x8x128x48xf16>
}

// -----

// More than 128 columns of few queries are combined in blocks, by themselves.

// CHECK-LABEL: func @columns(
// CHECK:         %[[PART:.*]]:2 = scf.forall
// CHECK:         scf.forall (%[[C:.*]], %[[B:.*]], %[[H:.*]], %[[I:.*]]) = (0, 0, 0, 0) to (97, 2, 8, 16) step (96, 1, 1, 8)
// CHECK:           %[[OS:.*]] = tensor.extract_slice %[[PART]]#0[0, %[[B]], %[[H]], %[[I]], %[[C]]] [3, 1, 1, 8, 96]
// CHECK:           %[[LS:.*]] = tensor.extract_slice %[[PART]]#1[0, %[[B]], %[[H]], %[[I]]] [3, 1, 1, 8]
// CHECK:           %[[X:.*]] = flash.combine %[[OS]], %[[LS]] : (tensor<3x8x96xf32>, tensor<3x8xf32>) -> tensor<8x96xf16>
// CHECK:           tensor.parallel_insert_slice %[[X]] into %{{.*}}[%[[B]], %[[H]], %[[I]], %[[C]]] [1, 1, 8, 96]
func.func @columns(%q: tensor<2x8x16x64xf16>, %k: tensor<2x2x1280x64xf16>, %v: tensor<2x2x1280x192xf16>) -> tensor<2x8x16x192xf16> {
  %o = flash.attention %q, %k, %v schedule(<query_tile = 16, key_tile = 128, num_splits = 3>)
      : (tensor<2x8x16x64xf16>, tensor<2x2x1280x64xf16>, tensor<2x2x1280x192xf16>) -> tensor<2x8x16x192xf16>
  return %o : tensor<2x8x16x192xf16>
}

// CHECK-LABEL: func @whole_rows(
// CHECK:         scf.forall
// CHECK:         scf.forall {{.*}} to (2, 8, 24) step (1, 1, 8)
// CHECK:           flash.combine {{.*}} -> tensor<8x192xf16>
func.func @whole_rows(%q: tensor<2x8x24x64xf16>, %k: tensor<2x2x1280x64xf16>, %v: tensor<2x2x1280x192xf16>) -> tensor<2x8x24x192xf16> {
  %o = flash.attention %q, %k, %v schedule(<query_tile = 16, key_tile = 128, num_splits = 3>)
      : (tensor<2x8x24x64xf16>, tensor<2x2x1280x64xf16>, tensor<2x2x1280x192xf16>) -> tensor<2x8x24x192xf16>
  return %o : tensor<2x8x24x192xf16>
}

// -----

// `split_ctas` of known sizes: 32 query tiles, so three splits for at most 100 CTAs.

// CHECK-LABEL: func @split_ctas(
// CHECK:         scf.forall {{.*}} to (3, 2, 8, 128) step (1, 1, 1, 64)
// CHECK:         scf.forall
// CHECK:           flash.combine
func.func @split_ctas(%q: tensor<2x8x128x64xf16>, %k: tensor<2x2x1280x64xf16>) -> tensor<2x8x128x64xf16> {
  %o = flash.attention %q, %k, %k schedule(<query_tile = 64, key_tile = 128, split_ctas = 100>)
      : (tensor<2x8x128x64xf16>, tensor<2x2x1280x64xf16>, tensor<2x2x1280x64xf16>) -> tensor<2x8x128x64xf16>
  return %o : tensor<2x8x128x64xf16>
}

// -----

// Seven tiles of keys are not split: there is nothing to combine. Nor are any
// where the query tiles alone are more than half of the CTAs.

// CHECK-LABEL: func @short(
// CHECK:         scf.forall {{.*}} to (2, 8, 128) step (1, 1, 64)
// CHECK-NOT:     flash.combine
func.func @short(%q: tensor<2x8x128x64xf16>, %k: tensor<2x2x896x64xf16>) -> tensor<2x8x128x64xf16> {
  %o = flash.attention %q, %k, %k schedule(<query_tile = 64, key_tile = 128, split_ctas = 100>)
      : (tensor<2x8x128x64xf16>, tensor<2x2x896x64xf16>, tensor<2x2x896x64xf16>) -> tensor<2x8x128x64xf16>
  return %o : tensor<2x8x128x64xf16>
}

// CHECK-LABEL: func @many(
// CHECK:         scf.forall {{.*}} to (2, 8, 128) step (1, 1, 64)
// CHECK-NOT:     flash.combine
func.func @many(%q: tensor<2x8x128x64xf16>, %k: tensor<2x2x?x64xf16>) -> tensor<2x8x128x64xf16> {
  %o = flash.attention %q, %k, %k schedule(<query_tile = 64, key_tile = 128, split_ctas = 63>)
      : (tensor<2x8x128x64xf16>, tensor<2x2x?x64xf16>, tensor<2x2x?x64xf16>) -> tensor<2x8x128x64xf16>
  return %o : tensor<2x8x128x64xf16>
}

// -----

// Sizes known at run time: one program, whose CTAs write all rows of the
// results and none of the partial ones where there is one split, or the other
// way round. Then the second loop has no iteration. Only the first split starts
// from the sink.

// CHECK-LABEL: func @dynamic(
// CHECK-SAME:    %[[Q:[^:]*]]: tensor<2x4x?x64xf32>
// CHECK:         %[[N:.*]] = tensor.dim %[[Q]], %c2
// CHECK:         %[[QTILES:.*]] = arith.ceildivui %[[N]], %c64
// CHECK:         %[[HEADS:.*]] = arith.muli %[[QTILES]], %c8
// CHECK:         %[[WANTED:.*]] = arith.divui %c40
// CHECK:         %[[KTILES:.*]] = arith.ceildivui %{{.*}}, %c32
// CHECK:         %[[MOST:.*]] = arith.divui %[[KTILES]], %c2
// CHECK:         arith.minui %[[WANTED]], %[[MOST]]
// CHECK:         %[[PAYS:.*]] = arith.cmpi uge, %[[KTILES]], %c8
// CHECK:         arith.select %[[PAYS]], %{{.*}}, %c1
// CHECK:         %[[COUNT:.*]] = arith.maxui %{{.*}}, %c1
// CHECK:         %[[ONE:.*]] = arith.cmpi eq, %[[COUNT]], %c1
// CHECK:         %[[MEMORY:.*]] = arith.select %[[ONE]], %c0, %[[COUNT]]
// CHECK:         %[[PART:.*]] = tensor.empty(%[[MEMORY]], %[[N]]) : tensor<?x2x4x?x64xf32>
// CHECK:         %[[BOTH:.*]]:4 = scf.forall (%[[S:.*]], %{{.*}}, %[[H:.*]], %{{.*}}) = (0, 0, 0, 0) to (%[[COUNT]], 2, 4, %[[N]]) step (1, 1, 1, 64)
// CHECK:           %[[ROWS:.*]] = affine.min
// CHECK:           %[[FIRST:.*]] = arith.cmpi eq, %[[S]], %c0
// CHECK:           scf.if %[[FIRST]]
// CHECK:             %[[SINK:.*]] = tensor.extract
// CHECK:             %[[QUOTIENT:.*]] = arith.mulf %[[SINK]],
// CHECK:             %[[MAX:.*]] = arith.minimumf %[[QUOTIENT]],
// CHECK:             linalg.fill ins(%[[MAX]] :
// CHECK:           } else {
// CHECK:             linalg.fill ins(%{{cst.*}} :
// CHECK:           %[[STEP:.*]] = affine.apply #{{.*}}()[%[[COUNT]]]
// CHECK:           scf.for %{{.*}} = %{{.*}} to %{{.*}} step %[[STEP]]
// CHECK:           %[[OWN:.*]] = arith.select %[[ONE]], %[[ROWS]], %c0
// CHECK:           %[[SHARED:.*]] = arith.select %[[ONE]], %c0, %[[ROWS]]
// CHECK:           tensor.extract_slice %{{.*}}[0, 0] [%[[OWN]], 64]
// CHECK:           tensor.extract_slice %{{.*}}[0, 0] [%[[SHARED]], 64]
// CHECK:         %[[NONE:.*]] = arith.select %[[ONE]], %c0, %{{.*}}
// CHECK:         scf.forall {{.*}} to (2, 4, %[[NONE]]) step (1, 1, 8) shared_outs(%{{.*}} = %[[BOTH]]#0, %{{.*}} = %[[BOTH]]#1)
// CHECK:           flash.combine {{.*}} : (tensor<?x?x64xf32>, tensor<?x?xf32>) -> (tensor<?x64xf32>, tensor<?xf32>)
func.func @dynamic(%q: tensor<2x4x?x64xf32>, %k: tensor<2x4x?x64xf32>, %s: tensor<4xf32>) -> (tensor<2x4x?x64xf32>, tensor<2x4x?xf32>) {
  %o, %l = flash.attention %q, %k, %k sink(%s : tensor<4xf32>) schedule(<query_tile = 64, key_tile = 32, split_ctas = 40>)
      : (tensor<2x4x?x64xf32>, tensor<2x4x?x64xf32>, tensor<2x4x?x64xf32>) -> (tensor<2x4x?x64xf32>, tensor<2x4x?xf32>)
  return %o, %l : tensor<2x4x?x64xf32>, tensor<2x4x?xf32>
}

// -----

// So many keys for each split: the loop of one ends where the next begins, or the keys do. Steps of the combination
// do not depend on how many there are.

// CHECK:       #[[FIRST:.*]] = affine_map<(d0) -> (d0 * 512)>
// CHECK:       #[[END:.*]] = affine_map<(d0) -> (1300, d0 * 512 + 512)>
// CHECK-LABEL: func @keys(
// CHECK:         scf.forall (%[[S:.*]], %{{.*}}, %{{.*}}, %{{.*}}) = (0, 0, 0, 0) to (3, 2, 8, 128) step (1, 1, 1, 64)
// CHECK:           %[[FROM:.*]] = affine.apply #[[FIRST]](%[[S]])
// CHECK:           %[[TO:.*]] = affine.min #[[END]](%[[S]])
// CHECK:           scf.for %{{.*}} = %[[FROM]] to %[[TO]] step %c128
// CHECK:         scf.forall
// CHECK:           flash.combine {{.*}} step(8) : (tensor<3x8x64xf32>,
func.func @keys(%q: tensor<2x8x128x64xf16>, %k: tensor<2x2x1300x64xf16>) -> tensor<2x8x128x64xf16> {
  %o = flash.attention %q, %k, %k schedule(<query_tile = 64, key_tile = 128, split_keys = 512>)
      : (tensor<2x8x128x64xf16>, tensor<2x2x1300x64xf16>, tensor<2x2x1300x64xf16>) -> tensor<2x8x128x64xf16>
  return %o : tensor<2x8x128x64xf16>
}

// -----

// Of a number that is open, one at least; and no second loop where types say that one is enough.

// CHECK-LABEL: func @open_keys(
// CHECK:         %[[COUNT:.*]] = affine.max #{{.*}}()[%{{.*}}]
// CHECK:         %[[ONE:.*]] = arith.cmpi eq, %[[COUNT]], %c1
// CHECK:         scf.forall {{.*}} to (%[[COUNT]], 2, 8, 128)
// CHECK:           flash.combine {{.*}} step(8)
func.func @open_keys(%q: tensor<2x8x128x64xf16>, %k: tensor<2x2x?x64xf16>) -> tensor<2x8x128x64xf16> {
  %o = flash.attention %q, %k, %k schedule(<query_tile = 64, key_tile = 128, split_keys = 512>)
      : (tensor<2x8x128x64xf16>, tensor<2x2x?x64xf16>, tensor<2x2x?x64xf16>) -> tensor<2x8x128x64xf16>
  return %o : tensor<2x8x128x64xf16>
}

// CHECK-LABEL: func @one(
// CHECK:         scf.forall {{.*}} to (2, 8, 128) step (1, 1, 64)
// CHECK-NOT:     flash.combine
func.func @one(%q: tensor<2x8x128x64xf16>, %k: tensor<2x2x512x64xf16>) -> tensor<2x8x128x64xf16> {
  %o = flash.attention %q, %k, %k schedule(<query_tile = 64, key_tile = 128, split_keys = 512>)
      : (tensor<2x8x128x64xf16>, tensor<2x2x512x64xf16>, tensor<2x2x512x64xf16>) -> tensor<2x8x128x64xf16>
  return %o : tensor<2x8x128x64xf16>
}

// -----

// Where lengths say how many keys a batch has, a split behind them stores no row, and the combination reads the others alone, in one step
// where so many are the most. Of no keys there is one split, whose rows are 0.

// CHECK:       #[[ENDS:.*]] = affine_map<(d0) -> (d0 ceildiv 512, 1)>
// CHECK-LABEL: func @lengths(
// CHECK-SAME:    %[[N:[^:]*]]: tensor<2xi32>
// CHECK:         scf.forall (%[[S:.*]], %[[B:.*]], %{{.*}}, %{{.*}}) = (0, 0, 0, 0) to (3, 2, 8, 128) step (1, 1, 1, 64)
// CHECK:           %[[WRITTEN:.*]] = tensor.extract %[[N]][%[[B]]]
// CHECK:           %[[LENGTH:.*]] = arith.minsi
// CHECK:           %[[FIRST:.*]] = arith.muli %[[S]], %c512
// CHECK:           %[[END:.*]] = arith.maxsi %[[LENGTH]], %c1
// CHECK:           %[[EMPTY:.*]] = arith.cmpi sge, %[[FIRST]], %[[END]]
// CHECK:           %[[ROWS:.*]] = arith.select %[[EMPTY]], %c0, %c64
// CHECK:           tensor.extract_slice %{{.*}}[0, 0] [%[[ROWS]], 64]
// CHECK:         scf.forall (%[[B:.*]], %{{.*}}, %{{.*}}) =
// CHECK:           tensor.extract %[[N]][%[[B]]]
// CHECK:           %[[LENGTH:.*]] = arith.minsi
// CHECK:           %[[COUNT:.*]] = affine.max #[[ENDS]](%[[LENGTH]])
// CHECK:           tensor.extract_slice %{{.*}}[0, %[[B]], %{{.*}}, %{{.*}}, 0] [%[[COUNT]], 1, 1, 8, 64]
// CHECK:           flash.combine {{.*}} step(3) : (tensor<?x8x64xf32>,
func.func @lengths(%q: tensor<2x8x128x64xf16>, %k: tensor<2x2x1300x64xf16>, %n: tensor<2xi32>) -> tensor<2x8x128x64xf16> {
  %o = flash.attention %q, %k, %k key_lengths(%n : tensor<2xi32>) schedule(<query_tile = 64, key_tile = 128, split_keys = 512>)
      : (tensor<2x8x128x64xf16>, tensor<2x2x1300x64xf16>, tensor<2x2x1300x64xf16>) -> tensor<2x8x128x64xf16>
  return %o : tensor<2x8x128x64xf16>
}

// -----

// Every n-th tile is there for some split whatever the length is.

// CHECK-LABEL: func @every_third(
// CHECK:         scf.forall {{.*}} to (3, 2, 8, 128)
// CHECK:         flash.combine {{.*}} : (tensor<3x8x64xf32>,
func.func @every_third(%q: tensor<2x8x128x64xf16>, %k: tensor<2x2x1300x64xf16>, %n: tensor<2xi32>) -> tensor<2x8x128x64xf16> {
  %o = flash.attention %q, %k, %k key_lengths(%n : tensor<2xi32>) schedule(<query_tile = 64, key_tile = 128, num_splits = 3>)
      : (tensor<2x8x128x64xf16>, tensor<2x2x1300x64xf16>, tensor<2x2x1300x64xf16>) -> tensor<2x8x128x64xf16>
  return %o : tensor<2x8x128x64xf16>
}
