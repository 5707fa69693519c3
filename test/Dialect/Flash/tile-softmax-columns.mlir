// Rows and columns of a tile as GPUs have them: a warp holds a row, and a step is
// as many bytes of it as its lanes read at once. What a kernel is made of:
//   - reads of a tile of 8 rows, padded with -inf;
//   - a maximum and a sum of each row, which a loop carries;
//   - elementwise arithmetic on tiles and on values of rows;
//   - writes of a tile into the slice of the result that the second loop carries.
// Sums that each lane keeps for itself in the first loop are not here: they are a
// trick that a later pass plays on the reduction (tile-partial-sums).
// RUN: flash-opt %s --flash-tile-softmax="row-tile=8 reduction-bytes=1024" --split-input-file --verify-diagnostics | FileCheck %s
// RUN: not flash-opt %s --flash-tile-softmax=row-tile=0 2>&1 | FileCheck %s --check-prefix=NOROW
// RUN: not flash-opt %s --flash-tile-softmax=reduction-bytes=-8 2>&1 | FileCheck %s --check-prefix=NEGATIVE
// NOROW: error: a tile of a softmax must not be smaller than 1, got 0
// NEGATIVE: error: a tile of a softmax must not be smaller than 0, got -8

// 1024 bytes are 512 elements of f16.

// CHECK-DAG:   #[[TILE:.*]] = affine_map<(d0, d1) -> (d0, d1)>
// CHECK-DAG:   #[[ROWS:.*]] = affine_map<(d0, d1) -> (d0)>
// CHECK-LABEL: func @last(
// CHECK:         scf.forall (%[[H:.*]], %[[I:.*]]) = (0, 0) to (4, 64) step (1, 8) shared_outs(%[[OUT:.*]] = %{{.*}})
// CHECK:           %[[DEST:.*]] = tensor.extract_slice %[[OUT]][%[[H]], %[[I]], 0] [1, 8, 4096]
// CHECK:           %[[STATE:.*]]:2 = scf.for %[[J:.*]] = %c0{{.*}} to %c4096{{.*}} step %c512{{.*}} iter_args(%[[M:.*]] = %{{.*}}, %[[L:.*]] = %{{.*}})
// CHECK:             %[[X:.*]] = tensor.extract_slice %arg0[%[[H]], %[[I]], %[[J]]] [1, 8, 512]
// CHECK:             %[[WIDE:.*]] = arith.extf %[[X]] : tensor<8x512xf16> to tensor<8x512xf32>
// CHECK:             %[[T:.*]] = linalg.generic {indexing_maps = [#[[TILE]], #[[ROWS]]], iterator_types = ["parallel", "reduction"]} ins(%[[WIDE]]
// CHECK:               arith.maxnumf
// CHECK:             %[[G:.*]]:2 = linalg.generic {{.*}} ins(%[[T]] : {{.*}}) outs(%[[M]],
// CHECK:             %[[Z:.*]] = linalg.generic {{.*}} ins(%[[G]]#0
// CHECK:             %[[P:.*]] = linalg.generic {{.*}} ins(%[[WIDE]], %[[Z]] :
// CHECK:             %[[RL:.*]] = linalg.generic {{.*}} ins(%[[G]]#1 : {{.*}}) outs(%[[L]]
// CHECK:             %[[NL:.*]] = linalg.generic {{.*}} iterator_types = ["parallel", "reduction"]} ins(%[[P]] : {{.*}}) outs(%[[RL]]
// CHECK:             scf.yield %[[G]]#0, %[[NL]]
// CHECK:           %[[Z:.*]] = linalg.generic {{.*}} ins(%[[STATE]]#0
// CHECK:           %[[R:.*]] = linalg.generic {{.*}} ins(%[[STATE]]#1
// CHECK:           %[[BLOCK:.*]] = scf.for %[[J:.*]] = {{.*}} iter_args(%[[B:.*]] = %[[DEST]])
// CHECK:             %[[X:.*]] = tensor.extract_slice %arg0[%[[H]], %[[I]], %[[J]]] [1, 8, 512]
// CHECK:             %[[Y:.*]] = linalg.generic {{.*}} ins(%[[X]], %[[Z]], %[[R]]
// CHECK:             %[[NEXT:.*]] = tensor.insert_slice %[[Y]] into %[[B]][0, 0, %[[J]]] [1, 8, 512]
// CHECK:             scf.yield %[[NEXT]]
// CHECK:           tensor.parallel_insert_slice %[[BLOCK]] into %[[OUT]][%[[H]], %[[I]], 0] [1, 8, 4096]
func.func @last(%x: tensor<4x64x4096xf16>, %e: tensor<4x64x4096xf16>) -> tensor<4x64x4096xf16> {
  %p = linalg.softmax dimension(2) ins(%x : tensor<4x64x4096xf16>) outs(%e : tensor<4x64x4096xf16>) -> tensor<4x64x4096xf16>
  return %p : tensor<4x64x4096xf16>
}

// -----

// f32 needs no widening; a row that is shorter is one step, and is read once.

// CHECK-LABEL: func @short(
// CHECK-NOT:     scf.for %
// CHECK-NOT:     arith.extf
// CHECK:         tensor.extract_slice %{{.*}} to tensor<8x100xf32>
// CHECK:         return
func.func @short(%x: tensor<64x100xf32>, %e: tensor<64x100xf32>) -> tensor<64x100xf32> {
  %p = linalg.softmax dimension(1) ins(%x : tensor<64x100xf32>) outs(%e : tensor<64x100xf32>) -> tensor<64x100xf32>
  return %p : tensor<64x100xf32>
}

// -----

// A flash.softmax is of a block of rows already. Its sink is one more score, and
// a row without scores becomes 0. What the block stores is written at once.

// CHECK-LABEL: func @block(
// CHECK:         scf.forall (%[[B:.*]], %[[I:.*]]) = {{.*}} shared_outs(%[[O:.*]] = %{{.*}}, %[[L:.*]] = %{{.*}})
// CHECK:           %[[ROWCOUNT:.*]] = affine.min
// CHECK:           %[[SINK:.*]] = tensor.extract %arg1
// CHECK:           %[[DEST:.*]] = tensor.extract_slice %[[O]][%[[B]], %[[I]], 0] [1, %[[ROWCOUNT]], %{{.*}}]
// CHECK:           %[[STATE:.*]]:2 = scf.for
// CHECK:             %[[X:.*]] = tensor.extract_slice %arg0[%[[B]], %[[I]], %{{.*}}] [1, %[[ROWCOUNT]], %{{.*}}] {{.*}} : tensor<2x37x?xf32> to tensor<?x?xf32>
// CHECK:             tensor.pad %[[X]]
// CHECK:             } : tensor<?x?xf32> to tensor<8x256xf32>
// CHECK:           %[[ALL:.*]]:2 = linalg.generic {{.*}} outs(%[[STATE]]#0, %[[STATE]]#1 :
// CHECK:             arith.maxnumf %{{.*}}, %[[SINK]]
// CHECK:             arith.subf %[[SINK]]
// CHECK:           linalg.generic {{.*}} ins(%[[ALL]]#1
// CHECK:             arith.select
// CHECK:             arith.divf
// CHECK:           %[[BLOCK:.*]] = scf.for {{.*}} iter_args(%{{.*}} = %[[DEST]])
// CHECK:           %[[LSE:.*]] = linalg.generic {{.*}} ins(%[[ALL]]#0, %[[ALL]]#1
// CHECK:             math.log
// CHECK:           %[[EXISTING:.*]] = tensor.extract_slice %[[LSE]][0] [%[[ROWCOUNT]]]
// CHECK:           tensor.parallel_insert_slice %[[BLOCK]] into %[[O]]
// CHECK:           tensor.parallel_insert_slice %[[EXISTING]] into %[[L]]
func.func @block(%x: tensor<2x37x?xf32>, %s: tensor<2xf32>, %o: tensor<2x37x?xf32>, %l: tensor<2x37xf32>, %n: index) -> (tensor<2x37x?xf32>, tensor<2x37xf32>) {
  %r:2 = scf.forall (%b, %i) = (0, 0) to (2, 37) step (1, 8) shared_outs(%oo = %o, %ll = %l) -> (tensor<2x37x?xf32>, tensor<2x37xf32>) {
    %rows = affine.min affine_map<(d0) -> (-d0 + 37, 8)>(%i)
    %slice = tensor.extract_slice %x[%b, %i, 0] [1, %rows, %n] [1, 1, 1] : tensor<2x37x?xf32> to tensor<?x?xf32>
    %sink = tensor.extract %s[%b] : tensor<2xf32>
    %p, %lse = flash.softmax %slice sink(%sink) : tensor<?x?xf32> -> (tensor<?x?xf32>, tensor<?xf32>)
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %p into %oo[%b, %i, 0] [1, %rows, %n] [1, 1, 1] : tensor<?x?xf32> into tensor<2x37x?xf32>
      tensor.parallel_insert_slice %lse into %ll[%b, %i] [1, %rows] [1, 1] : tensor<?xf32> into tensor<2x37xf32>
    }
  }
  return %r#0, %r#1 : tensor<2x37x?xf32>, tensor<2x37xf32>
}

// -----

func.func @whole(%x: tensor<?x100xf32>) -> tensor<?x100xf32> {
  // expected-error @below {{has no known bound on its number of rows; cut it into blocks of rows first}}
  %p = flash.softmax %x : tensor<?x100xf32> -> tensor<?x100xf32>
  return %p : tensor<?x100xf32>
}
